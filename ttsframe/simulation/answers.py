"""The answers of simulated problems: exact values in several equivalent spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ttsframe._draws import Ints, Purpose, integers_below, problem_bits, uniforms

MAX_WRONG_ANSWERS: Final = 100
"""One less than the number of values of the smallest family."""

_Form: TypeAlias = Literal["whole", "grouped", "fraction", "decimal"]


class _Spelling(NamedTuple):
    """A way to write a value: the text before, between and after its one or two numbers."""

    form: _Form
    opening: str = ""
    middle: str = ""
    closing: str = ""


class _Family(NamedTuple):
    """A kind of answer: its share of the problems, its values and their spellings."""

    share: float
    smallest: int
    n_values: int
    """A prime: any smaller stride visits every value before it returns."""
    spellings: tuple[_Spelling, ...]
    """The usual one first."""
    denominators: tuple[tuple[int, int], ...] = ((1, 0),)
    """Powers of a prime, each with the prime."""
    negative_share: float = 0.0


_WHOLE: Final = _Spelling("whole")
_FRACTIONS: Final = (
    _Spelling("fraction", r"\frac{", "}{", "}"),
    _Spelling("fraction", r"\dfrac{", "}{", "}"),
    _Spelling("fraction", "", "/"),
)
_FAMILIES: Final = (
    _Family(
        0.40,
        1,
        997,
        (_WHOLE, _Spelling("whole", closing=".0"), _Spelling("whole", closing=".00")),
        negative_share=0.2,
    ),
    _Family(
        0.12,
        1_000,
        99_991,
        (
            _WHOLE,
            _Spelling("grouped", middle=","),
            _Spelling("grouped", middle="{,}"),
            _Spelling("grouped", middle=r"\,"),
        ),
    ),
    _Family(
        0.14,
        1,
        101,
        (*_FRACTIONS, _Spelling("fraction", r"\tfrac{", "}{", "}")),
        denominators=((3, 3), (7, 7), (9, 3), (11, 11)),
        negative_share=0.2,
    ),
    _Family(
        0.14,
        1,
        101,
        (*_FRACTIONS, _Spelling("decimal", middle="."), _Spelling("decimal", "", ".", "0")),
        denominators=((2, 2), (4, 2), (5, 5), (8, 2)),
        negative_share=0.2,
    ),
    _Family(
        0.08,
        1,
        997,
        (_Spelling("whole", r"\$"), _WHOLE, _Spelling("whole", r"\$", closing=".00")),
    ),
    _Family(
        0.06,
        1,
        179,
        (_Spelling("whole", closing=r"^\circ"), _WHOLE, _Spelling("whole", closing=r"^{\circ}")),
    ),
    _Family(
        0.06,
        1,
        499,
        (_Spelling("whole", closing=r"\text{ cm}"), _WHOLE, _Spelling("whole", closing=" cm")),
    ),
)
_N_SPELLINGS: Final = max(len(family.spellings) for family in _FAMILIES)
_PADDED: Final = tuple(
    (*family.spellings, *(_N_SPELLINGS - len(family.spellings)) * (_WHOLE,)) for family in _FAMILIES
)
_DECIMALS: Final = {2: 1, 5: 1, 4: 2, 8: 3}


class Problems(NamedTuple):
    """The parameters of the answers to each problem; all fields are (n_problems,)."""

    family: Ints
    sign: Ints
    prime: Ints
    denominator: Ints
    start: Ints
    stride: Ints

    def take(self, rows: Ints) -> Problems:
        """Select problems by position, with repetition."""
        return Problems(*(field[rows] for field in self))


def draw_problems(seed: int, problems: Ints) -> Problems:
    """Draw the family and the answers of each problem number."""

    def draw(purpose: Purpose, bounds: Ints) -> Ints:
        return integers_below(problem_bits(seed, purpose, problems), bounds)

    limits = np.cumsum([family.share for family in _FAMILIES])[:-1]
    chosen = uniforms(problem_bits(seed, Purpose.FAMILY, problems))
    family = np.searchsorted(limits, chosen, side="right").astype(np.int64)
    negative_share = np.array([kind.negative_share for kind in _FAMILIES])[family]
    negative = uniforms(problem_bits(seed, Purpose.SIGN, problems)) < negative_share
    n_values = np.array([kind.n_values for kind in _FAMILIES])[family]
    n_denominators = np.array([len(kind.denominators) for kind in _FAMILIES])[family]
    denominators = np.array([
        (*kind.denominators, *(4 - len(kind.denominators)) * ((1, 0),)) for kind in _FAMILIES
    ])
    denominator, prime = denominators[family, draw(Purpose.DENOMINATOR, n_denominators)].T
    return Problems(
        family=family,
        sign=np.where(negative, -1, 1),
        prime=prime,
        denominator=denominator,
        start=draw(Purpose.VALUE, n_values),
        stride=1 + draw(Purpose.STRIDE, n_values - 1),
    )


def n_spellings(problems: Problems) -> Ints:
    """Count the spellings of the answers to each problem, at least 2."""
    return np.array([len(family.spellings) for family in _FAMILIES])[problems.family]


def answer_keys(problems: Problems, rows: Ints, answers: Ints) -> pl.Series:
    """Write answers, of which 0 is correct, as integers or fractions in lowest terms: "-7/8"."""
    n_answers = int(answers.max()) + 1

    def write(codes: Ints) -> pl.Series:
        row, answer = np.divmod(codes, n_answers)
        return _key_strings(problems.take(row), answer)

    return _write_distinct(write, rows * n_answers + answers, len(problems.sign) * n_answers)


def answer_strings(problems: Problems, rows: Ints, answers: Ints, spellings: Ints) -> pl.Series:
    """Write answers as a model would; spelling 0 is the usual one."""
    n_answers = int(answers.max()) + 1

    def write(codes: Ints) -> pl.Series:
        pair, spelling = np.divmod(codes, _N_SPELLINGS)
        row, answer = np.divmod(pair, n_answers)
        return _spelled_strings(problems.take(row), answer, spelling)

    codes = (rows * n_answers + answers) * _N_SPELLINGS + spellings
    return _write_distinct(write, codes, len(problems.sign) * n_answers * _N_SPELLINGS)


def _write_distinct(write: Callable[[Ints], pl.Series], codes: Ints, n_codes: int) -> pl.Series:
    """Write each row, or each possible string once if that is less work."""
    if n_codes > len(codes):
        return write(codes)
    return write(np.arange(n_codes)).gather(codes)


def _numerators(problems: Problems, answers: Ints) -> Ints:
    """Return the positive numerators in lowest terms; distinct answers have distinct numerators."""
    smallest = np.array([family.smallest for family in _FAMILIES])[problems.family]
    n_values = np.array([family.n_values for family in _FAMILIES])[problems.family]
    nth = smallest + (problems.start + answers * problems.stride) % n_values
    skipped = (nth - 1) // np.maximum(problems.prime - 1, 1)  # the multiples of the prime
    numerators: Ints = nth + np.where(problems.prime > 0, skipped, 0)
    return numerators


def _key_strings(problems: Problems, answers: Ints) -> pl.Series:
    """Write answers as integers and as fractions in lowest terms."""
    parts = pl.DataFrame({
        "numerator": problems.sign * _numerators(problems, answers),
        "denominator": problems.denominator,
    })
    numerator = pl.col("numerator").cast(pl.String)
    return parts.select(
        pl
        .when(pl.col("denominator") == 1)
        .then(numerator)
        .otherwise(numerator + "/" + pl.col("denominator").cast(pl.String))
        .alias("key")
    ).to_series()


def _spelled_strings(problems: Problems, answers: Ints, spellings: Ints) -> pl.Series:
    """Write answers in the given spellings."""
    numerator, denominator = _numerators(problems, answers), problems.denominator
    rows = problems.family * _N_SPELLINGS + spellings
    flat = [spelling for family in _PADDED for spelling in family]
    form = np.array([("whole", "grouped", "fraction", "decimal").index(s.form) for s in flat])[rows]
    decimals = np.array([_DECIMALS.get(d, 0) for d in range(12)])[denominator]
    digits = (numerator % denominator) * 10**decimals // denominator
    ones = np.ones_like(numerator)
    head = np.choose(form, [numerator, numerator // 1_000, numerator, numerator // denominator])
    tail = np.choose(form, [ones, numerator % 1_000, denominator, digits])
    width = np.choose(form, [ones, 3 * ones, ones, decimals])

    def template(part: Literal["opening", "middle", "closing"]) -> pl.Series:
        return pl.Series(part, [getattr(spelling, part) for spelling in flat]).gather(rows)

    parts = pl.DataFrame({
        "sign": problems.sign,
        "opening": template("opening"),
        "head": head,
        "middle": template("middle"),
        "has_tail": form > 0,
        "tail": tail,
        "width": width,
        "closing": template("closing"),
    })
    tail_text = pl.col("tail").cast(pl.String).str.zfill(pl.col("width"))
    return parts.select(
        pl.concat_str(
            pl.when(pl.col("sign") < 0).then(pl.lit("-")).otherwise(pl.lit("")),
            "opening",
            pl.col("head").cast(pl.String),
            "middle",
            pl.when("has_tail").then(tail_text).otherwise(pl.lit("")),
            "closing",
        ).alias("answer")
    ).to_series()
