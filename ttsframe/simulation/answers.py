"""The answers of simulated problems: exact values, each written in several equivalent ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ttsframe._draws import Ints, Purpose, integers_below, problem_bits, uniforms

MAX_WRONG_ANSWERS: Final = 100
"""One less than the smallest number of values that a family of answers has."""

_Form: TypeAlias = Literal["whole", "grouped", "fraction", "decimal"]


class _Spelling(NamedTuple):
    """A way to write a value: what stands before, between and after its one or two numbers."""

    form: _Form
    opening: str = ""
    middle: str = ""
    closing: str = ""


class _Family(NamedTuple):
    """A kind of answer, how common it is, which values it has, how they are spelled."""

    share: float
    smallest: int
    n_values: int  # prime: a stride below it visits every value before it returns
    spellings: tuple[_Spelling, ...]  # the usual one first
    denominators: tuple[tuple[int, int], ...] = ((1, 0),)  # powers of a prime, and the prime
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
    """What decides the answers of each problem; all fields are (n_problems,)."""

    family: Ints
    sign: Ints
    prime: Ints
    denominator: Ints
    start: Ints
    stride: Ints

    def take(self, rows: Ints) -> Problems:
        """Repeat or choose problems.

        Parameters
        ----------
        rows
            Positions of the problems to take.

        Returns
        -------
        Problems
            One per position.
        """
        return Problems(*(field[rows] for field in self))


def draw_problems(seed: int, problems: Ints) -> Problems:
    """Draw for each problem the kind of answer that it has, and the answers themselves.

    Parameters
    ----------
    seed
        Seed of the whole simulation.
    problems
        Numbers of the problems.

    Returns
    -------
    Problems
        One per number.
    """

    def drawn(purpose: Purpose, bounds: Ints) -> Ints:
        return integers_below(problem_bits(seed, purpose, problems), bounds)

    limits = np.cumsum([family.share for family in _FAMILIES])[:-1]
    chosen = uniforms(problem_bits(seed, Purpose.FAMILY, problems))
    family = np.searchsorted(limits, chosen, side="right").astype(np.int64)
    negative_share = np.array([each.negative_share for each in _FAMILIES])[family]
    negative = uniforms(problem_bits(seed, Purpose.SIGN, problems)) < negative_share
    n_values = np.array([each.n_values for each in _FAMILIES])[family]
    n_denominators = np.array([len(each.denominators) for each in _FAMILIES])[family]
    denominators = np.array([
        (*each.denominators, *(4 - len(each.denominators)) * ((1, 0),)) for each in _FAMILIES
    ])
    denominator, prime = denominators[family, drawn(Purpose.DENOMINATOR, n_denominators)].T
    return Problems(
        family=family,
        sign=np.where(negative, -1, 1),
        prime=prime,
        denominator=denominator,
        start=drawn(Purpose.VALUE, n_values),
        stride=1 + drawn(Purpose.STRIDE, n_values - 1),
    )


def n_spellings(problems: Problems) -> Ints:
    """Count the ways in which the answers of each problem can be written.

    Parameters
    ----------
    problems
        The problems.

    Returns
    -------
    Ints
        One count per problem, at least 2.
    """
    return np.array([len(family.spellings) for family in _FAMILIES])[problems.family]


def answer_keys(problems: Problems, rows: Ints, answers: Ints) -> pl.Series:
    """Write answers canonically: equal strings, within a problem, where the values are equal.

    Parameters
    ----------
    problems
        The problems.
    rows
        Position, among the problems, of the problem that is answered.
    answers
        Number of the answer within its problem: 0 is the right one.

    Returns
    -------
    pl.Series
        String series of integers and of fractions in lowest terms, such as ``-7/8``.
    """
    n_answers = int(answers.max()) + 1

    def write(codes: Ints) -> pl.Series:
        row, answer = np.divmod(codes, n_answers)
        return _key_strings(problems.take(row), answer)

    return _write_each(write, rows * n_answers + answers, len(problems.sign) * n_answers)


def answer_strings(problems: Problems, rows: Ints, answers: Ints, spellings: Ints) -> pl.Series:
    """Write answers as a model would.

    Parameters
    ----------
    problems
        The problems.
    rows
        Position, among the problems, of the problem that is answered.
    answers
        Number of the answer within its problem: 0 is the right one.
    spellings
        Number of the spelling: 0 is the usual one, less than `n_spellings` of the problem.

    Returns
    -------
    pl.Series
        String series.
    """
    n_answers = int(answers.max()) + 1

    def write(codes: Ints) -> pl.Series:
        pair, spelling = np.divmod(codes, _N_SPELLINGS)
        row, answer = np.divmod(pair, n_answers)
        return _spelled_strings(problems.take(row), answer, spelling)

    codes = (rows * n_answers + answers) * _N_SPELLINGS + spellings
    return _write_each(write, codes, len(problems.sign) * n_answers * _N_SPELLINGS)


def _write_each(write: Callable[[Ints], pl.Series], codes: Ints, n_codes: int) -> pl.Series:
    """Return every possible string, written once or per row, whichever is less work."""
    if n_codes > len(codes):
        return write(codes)
    return write(np.arange(n_codes)).gather(codes)


def _numerators(problems: Problems, answers: Ints) -> Ints:
    """Return the numerators, positive and in lowest terms; distinct answers have distinct ones."""
    smallest = np.array([family.smallest for family in _FAMILIES])[problems.family]
    n_values = np.array([family.n_values for family in _FAMILIES])[problems.family]
    nth = smallest + (problems.start + answers * problems.stride) % n_values
    skipped = (nth - 1) // np.maximum(problems.prime - 1, 1)  # the multiples of the prime
    numerators: Ints = nth + np.where(problems.prime > 0, skipped, 0)
    return numerators


def _key_strings(problems: Problems, answers: Ints) -> pl.Series:
    """Return answers as integers and as fractions in lowest terms."""
    parts = pl.DataFrame({
        "numerator": problems.sign * _numerators(problems, answers),
        "denominator": problems.denominator,
    })
    whole = pl.col("numerator").cast(pl.String)
    return parts.select(
        pl
        .when(pl.col("denominator") == 1)
        .then(whole)
        .otherwise(whole + "/" + pl.col("denominator").cast(pl.String))
        .alias("key")
    ).to_series()


def _spelled_strings(problems: Problems, answers: Ints, spellings: Ints) -> pl.Series:
    """Return answers as a model writes them."""
    numerator, denominator = _numerators(problems, answers), problems.denominator
    rows = problems.family * _N_SPELLINGS + spellings
    flat = [spelling for family in _PADDED for spelling in family]
    form = np.array([("whole", "grouped", "fraction", "decimal").index(s.form) for s in flat])[rows]
    decimals = np.array([_DECIMALS.get(d, 0) for d in range(12)])[denominator]
    digits = (numerator % denominator) * 10**decimals // denominator
    one = np.ones_like(numerator)
    head = np.choose(form, [numerator, numerator // 1_000, numerator, numerator // denominator])
    tail = np.choose(form, [one, numerator % 1_000, denominator, digits])
    width = np.choose(form, [one, 3 * one, one, decimals])

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
