"""Grades: answers compared with reference answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import polars as pl

from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import IntoExprColumn
from ttsframe.answers.columns import as_strings
from ttsframe.answers.engine import numeric_value
from ttsframe.answers.keys import gold_answers, keys_of
from ttsframe.answers.lookup.table import KeyMethod, KeyTable, key_table
from ttsframe.answers.policy import CODE_VERSION, AnswerPolicy
from ttsframe.errors import ColumnsError, DataError, ParameterError

__all__ = ["is_equivalent", "is_same_key"]


def is_equivalent(
    answer: IntoExprColumn,
    gold: IntoExprColumn,
    *,
    policy: AnswerPolicy | None = None,
    method: KeyMethod = "auto",
    rel_tol: float | None = None,
    abs_tol: float | None = None,
    options: IntoExprColumn | None = None,
) -> pl.Expr:
    r"""Tell whether each answer is equivalent to its reference answer.

    Equivalent means equal keys. Only this function takes a tolerance: closeness is not transitive, so it
    cannot be part of a key or of a vote.

    Parameters
    ----------
    answer
        String column, answers as extracted.
    gold
        String column, reference answers; a box, `#### N` or a complete reference solution is read as in
        `gold_key`.
    policy, method
        As in `answer_key`.
    rel_tol
        Two real numbers are also equivalent when they differ by at most this fraction of the reference
        answer; None for no tolerance.
    abs_tol
        The same for the absolute difference. With both, one of the two is enough.
    options
        List(String) column, the texts of options A, B, C, ... of a multiple-choice problem. An answer may
        then name an option by its letter, by its text, or by both.

    Returns
    -------
    pl.Expr
        Boolean, named as `answer`. Null where there is no reference answer; false where there is
        one and no answer.

    Raises
    ------
    ParameterError
        At once, when a tolerance is negative or not finite, `method` is unknown, or `"sympy"`
        is given a policy.
    ParameterTypeError
        At once, when `policy` is not an AnswerPolicy.
    MissingExtraError
        As in `answer_key`.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"answer": ["0.5", "3.14", None], "gold": ["1/2", r"\pi", "2"]})
    >>> frame.select(tts.is_equivalent("answer", "gold"))["answer"].to_list()
    [True, False, False]
    >>> frame.select(tts.is_equivalent("answer", "gold", rel_tol=1e-3))["answer"].to_list()
    [True, True, False]
    """
    table = key_table(policy, method)
    tolerance = _Tolerance(rel_tol, abs_tol, policy or AnswerPolicy())
    source = into_expr(answer, "answer")
    columns = [source.alias("answer"), into_expr(gold, "gold").alias("gold")]
    if options is not None:
        columns.append(into_expr(options, "options").alias("options"))

    def grade(rows: pl.Series) -> pl.Series:
        return _grade(rows.struct.unnest(), table, tolerance)

    grades = pl.struct(columns).map_batches(grade, return_dtype=pl.Boolean, is_elementwise=True)
    return keep_name(grades, source)


def is_same_key(answer_key: IntoExprColumn, gold_key: IntoExprColumn) -> pl.Expr:
    """Compare existing keys, such as columns of a file.

    Parameters
    ----------
    answer_key
        String column, keys of answers.
    gold_key
        String column, keys of reference answers.

    Returns
    -------
    pl.Expr
        Boolean, named as `answer_key`. Null where there is no reference key; false where there
        is one and no key.

    Raises
    ------
    DataError
        On collection, when two keys of a row come from different policies, versions or tools: such keys
        cannot be compared.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"answer_key": ["1:3", "1:4", None], "gold_key": ["1:3"] * 3})
    >>> frame.select(tts.answers.is_same_key("answer_key", "gold_key"))["answer_key"].to_list()
    [True, False, False]
    """
    source = into_expr(answer_key, "answer_key")
    columns = [source.alias("answer_key"), into_expr(gold_key, "gold_key").alias("gold_key")]
    same = pl.struct(columns).map_batches(
        _compare_keys, return_dtype=pl.Boolean, is_elementwise=True
    )
    return keep_name(same, source)


_VERSION: Final = rf"^(s?[1-{CODE_VERSION}](?:[a-z]\d+)*:)"
"""The beginning of keys made by ttsframe."""


def _compare_keys(rows: pl.Series) -> pl.Series:
    """Compare two columns of keys; raise where their versions differ."""
    frame = rows.struct.unnest()
    keys = as_strings(frame["answer_key"], "answer_key")
    golds = as_strings(frame["gold_key"], "gold_key")
    versions = [column.str.extract(_VERSION, 1).fill_null("") for column in (keys, golds)]
    differ = (versions[0] != versions[1]) & keys.is_not_null() & golds.is_not_null()
    if differ.any():
        row = int(differ.arg_max() or 0)
        raise DataError(
            f"answer_key {keys[row]!r} and gold_key {golds[row]!r} were made under different "
            "policies, versions or tools, and cannot be compared. Hint: compute both again with "
            "tts.score_trajectories(..., overwrite=('answer_key', 'gold_key'))."
        )
    return _equal_keys(keys, golds)


def _equal_keys(keys: pl.Series, golds: pl.Series) -> pl.Series:
    """Return equality of keys: null without a reference key, false without a key."""
    equal = (keys == golds).fill_null(value=False)
    return equal.zip_with(golds.is_not_null(), pl.Series([None], dtype=pl.Boolean))


class _Tolerance:
    """The largest accepted difference from the reference number."""

    def __init__(self, rel_tol: float | None, abs_tol: float | None, policy: AnswerPolicy) -> None:
        for name, bound in (("rel_tol", rel_tol), ("abs_tol", abs_tol)):
            if bound is not None and not 0.0 <= bound < math.inf:
                raise ParameterError(f"{name} == {bound}, must be finite and at least 0.")
        self.is_given = rel_tol is not None or abs_tol is not None
        self.relative = Fraction(rel_tol or 0.0)
        self.absolute = Fraction(abs_tol or 0.0)
        self.policy = policy
        self.table = key_table(policy, "auto")

    def values(self, texts: set[str]) -> dict[str, Fraction]:
        """Return the real numbers among some texts."""
        entries = self.table.look_up(list(texts))
        numbers = {
            text: numeric_value(text, self.policy)
            for text, entry in entries.items()
            if entry.kind in {"exact", "numeric"}
        }
        return {
            text: Fraction(number)
            for text, number in numbers.items()
            if isinstance(number, Fraction) or (number is not None and math.isfinite(number))
        }

    def accepts(self, number: Fraction | None, gold: Fraction | None) -> bool:
        """Tell whether a number is within the tolerance."""
        if number is None or gold is None:
            return False
        return abs(number - gold) <= max(self.relative * abs(gold), self.absolute)


def _grade(frame: pl.DataFrame, table: KeyTable, tolerance: _Tolerance) -> pl.Series:
    """Compare keys, then check the distinct pairs that differ by tolerance and by option."""
    answers, golds = as_strings(frame["answer"], "answer"), gold_answers(frame["gold"])
    graded = _equal_keys(keys_of(answers, table), keys_of(golds, table))
    checks: list[Callable[[pl.DataFrame], list[bool]]] = []
    if tolerance.is_given:
        checks.append(lambda pairs: _within_tolerance(pairs, tolerance))
    pairs = pl.DataFrame({"answer": answers, "gold": golds})
    if "options" in frame.columns:
        pairs = pairs.with_columns(_checked_options(frame["options"]))
        checks.append(lambda pairs: _same_option(pairs, table))
    for check in checks:
        open_pairs = pairs.filter(~graded & answers.is_not_null())
        distinct = open_pairs.unique(maintain_order=True)
        accepted = distinct.filter(pl.Series(check(distinct), dtype=pl.Boolean))
        flags = pairs.join(
            accepted.with_columns(pl.lit(value=True).alias("is_accepted")),
            on=pairs.columns,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )["is_accepted"].fill_null(value=False)
        graded |= flags & graded.is_not_null()
    return graded


def _within_tolerance(pairs: pl.DataFrame, tolerance: _Tolerance) -> list[bool]:
    """Tell which pairs are numbers within the tolerance."""
    values = tolerance.values(set(pairs["answer"]) | set(pairs["gold"]))
    rows = pairs.select("answer", "gold").rows()
    return [tolerance.accepts(values.get(answer), values.get(gold)) for answer, gold in rows]


def _checked_options(options: pl.Series) -> pl.Series:
    """Check the dtype of the options."""
    if options.dtype != pl.List(pl.String):
        raise ColumnsError(
            f"options is of dtype {options.dtype}, must be List(String), one list of option texts "
            "per row. Hint: pl.concat_list('A', 'B', 'C', 'D')."
        )
    return options


_LETTER: Final = re.compile(r"\(?\s*([A-J])\s*(?:\)|[.:])?\s*")


def _same_option(pairs: pl.DataFrame, table: KeyTable) -> list[bool]:
    """Tell which pairs name the same option, each by its letter, its text or both."""
    rows = pairs.rows()
    texts = {
        part for a, g, options in rows for part in (a, g, *(options or ())) if part is not None
    }
    keys = {text: entry.key for text, entry in table.look_up([*texts]).items()}
    return [
        options is not None
        and (named := _option(answer, options, keys)) is not None
        and named == _option(gold, options, keys)
        for answer, gold, options in rows
    ]


def _option(text: str, options: list[str | None], keys: dict[str, str | None]) -> int | None:
    """Return the index of the option that a text names."""
    plain = re.sub(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}", r"\1", text).strip(" $.")
    letter = _LETTER.match(plain)
    if letter:
        index = ord(letter[1]) - ord("A")
        rest = plain[letter.end() :].strip()
        if index < len(options) and (not rest or rest == (options[index] or "").strip()):
            return index
    same = [
        i for i, option in enumerate(options) if option is not None and keys[option] == keys[text]
    ]
    return same[0] if len(same) == 1 and keys[text] is not None else None
