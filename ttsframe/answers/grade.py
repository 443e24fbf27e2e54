"""Grades: answers compared with gold answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress
from operator import or_
from typing import Final, NamedTuple

import polars as pl

from ttsframe._exprs import into_expr, keep_name, map_column
from ttsframe._typing import IntoExprColumn
from ttsframe.answers.columns import as_answers, as_strings
from ttsframe.answers.engine import numeric_value
from ttsframe.answers.keys import gold_answers, keys_of
from ttsframe.answers.lookup.table import KeyMethod, key_table
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import CODE_VERSION, AnswerPolicy
from ttsframe.answers.shapes.choices import choice_letter, labeled_option
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
    r"""Tell whether each answer is equivalent to its gold answer.

    Equivalent means equal keys, and what only a comparison with a gold answer can know: with
    `percent="ignored"`, an answer of 25% is also right where the gold answer is 0.25 or 1/4; `(B) 12` is
    right where the gold answer is `B` or 12. Only this function takes a tolerance: closeness is not
    transitive, so it cannot be part of a key or of a vote.

    Parameters
    ----------
    answer
        String column, answers as extracted; a name is a column, never an answer.
    gold
        String column, or Date or Datetime, gold answers; a box, `#### N` or a complete reference solution is read as in
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
        Boolean, named as `answer`. Null where there is no gold answer; false where there is
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

    See Also
    --------
    answers.grade_one : The grade of one answer; here a string names a column.

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
    grading = Grading(policy, method, rel_tol, abs_tol)
    source = into_expr(answer, "answer")
    columns = [source.alias("answer"), into_expr(gold, "gold").alias("gold")]
    if options is not None:
        columns.append(into_expr(options, "options").alias("options"))
    return keep_name(map_column(pl.struct(columns), grading, pl.Boolean()), source)


def is_same_key(answer_key: IntoExprColumn, gold_key: IntoExprColumn) -> pl.Expr:
    """Compare existing keys, such as columns of a file.

    Parameters
    ----------
    answer_key
        String column, keys of answers.
    gold_key
        String column, keys of gold answers.

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
    >>> frame = pl.DataFrame({"answer_key": ["3:3", "3:4", None], "gold_key": ["3:3"] * 3})
    >>> frame.select(tts.answers.is_same_key("answer_key", "gold_key"))["answer_key"].to_list()
    [True, False, False]
    """
    source = into_expr(answer_key, "answer_key")
    columns = [source.alias("answer_key"), into_expr(gold_key, "gold_key").alias("gold_key")]
    return keep_name(map_column(pl.struct(columns), _compare_keys, pl.Boolean()), source)


def grade_keyed(names: Sequence[str], *, policy: AnswerPolicy | None = None) -> pl.Expr:
    """Grade rows with recorded keys: as `is_equivalent` does where `names` has both texts, else by keys."""
    return map_column(pl.struct(*names), _GradingOfKeyed(policy), pl.Boolean()).alias("is_correct")


_VERSION: Final = rf"^(s?[1-{CODE_VERSION}](?:[a-z]\d+)*:)"
"""The beginning of keys made by ttsframe."""


def _compare_keys(rows: pl.Series) -> pl.Series:
    """Compare two columns of keys; raise where their versions differ."""
    frame = rows.struct.unnest()
    keys = as_strings(frame["answer_key"], "answer_key")
    golds = as_strings(frame["gold_key"], "gold_key")
    if _have_one_version(keys, golds):
        return _equal_keys(keys, golds)
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


def _have_one_version(keys: pl.Series, golds: pl.Series) -> bool:
    """Tell whether all keys begin as the first one; ten times as fast as reading the version of each."""
    first = keys.drop_nulls().head(1).to_list()
    version = re.match(_VERSION, first[0]) if first else None
    return version is not None and all(
        column.str.starts_with(version[1]).all() for column in (keys, golds)
    )


def _equal_keys(keys: pl.Series, golds: pl.Series) -> pl.Series:
    """Return equality of keys: null without a reference key, false without a key."""
    equal = (keys == golds).fill_null(value=False)
    return equal.zip_with(golds.is_not_null(), pl.Series([None], dtype=pl.Boolean))


# ---- what grading knows beside keys ------------------------------------------------------------------


@dataclass(frozen=True)
class Grading:
    """Grades answers; a value that pickles, and finds the tables of the process that runs it."""

    policy: AnswerPolicy | None = None
    method: KeyMethod = "auto"
    rel_tol: float | None = None
    abs_tol: float | None = None

    def __post_init__(self) -> None:
        """Check every option."""
        key_table(self.policy, self.method)
        for name in ("rel_tol", "abs_tol"):
            bound = getattr(self, name)
            if bound is not None and not 0.0 <= bound < math.inf:
                raise ParameterError(f"{name} == {bound}, must be finite and at least 0.")

    def __call__(self, rows: pl.Series) -> pl.Series:
        """Compare keys, then check the distinct pairs that differ in the ways that only grading knows."""
        frame = rows.struct.unnest()
        table = key_table(self.policy, self.method)
        answers, golds = as_answers(frame["answer"], "answer"), gold_answers(frame["gold"])
        pairs = pl.DataFrame({"answer": answers, "gold": golds})
        if "options" in frame.columns:
            pairs = pairs.with_columns(_checked_options(frame["options"]))
        graded = _equal_keys(keys_of(answers, table), keys_of(golds, table))
        return self.accept(pairs, graded)

    def accept(self, pairs: pl.DataFrame, graded: pl.Series) -> pl.Series:
        """Return grades by keys, completed by what the texts of `answer` and `gold` allow."""
        checks: list[_Check] = []
        if self.method == "auto":
            checks = [_Check(_MAY_BE_LABELED, self._same_label)]
            if self._conventions.percent == "ignored":
                checks.append(_Check(_MAY_BE_PERCENT, self._same_fraction))
        if self.rel_tol is not None or self.abs_tol is not None:
            checks.append(_Check(None, self._within_tolerance))
        if "options" in pairs.columns:
            checks.append(_Check(None, self._same_option))
        has_texts = pairs["answer"].is_not_null() & pairs["gold"].is_not_null()
        has_marks = _with_marks(pairs) if self.method == "auto" else None
        for check in checks:
            is_open = (~graded & has_texts).fill_null(value=False)
            if check.pattern is not None and has_marks is not None:
                is_open = _where_matching(pairs, is_open & has_marks, check.pattern)
            if not is_open.any():
                continue
            rows = pairs.filter(is_open)
            distinct = rows.unique(maintain_order=True)
            accepted = distinct.with_columns(
                pl.Series("is_accepted", check.accepts(distinct), dtype=pl.Boolean)
            )
            found = rows.join(
                accepted, on=pairs.columns, how="left", nulls_equal=True, maintain_order="left"
            )
            graded = graded.scatter(is_open.arg_true(), found["is_accepted"])
        return graded

    @property
    def _conventions(self) -> AnswerPolicy:
        return self.policy or AnswerPolicy()

    def _same_label(self, pairs: pl.DataFrame) -> list[bool]:
        """Tell which pairs are equal by the letters of both sides, or by their contents, as (B) 12 and 12 are."""
        rows = pairs.select("answer", "gold").rows()
        sides = [(_Labeled.read(answer), _Labeled.read(gold)) for answer, gold in rows]
        contents = [(answer.content, gold.content) for answer, gold in sides]
        table = key_table(self.policy, self.method)
        entries = table.look_up([*{text for pair in contents for text in pair}])
        is_equal = [_is_equal(entries[answer].key, entries[gold].key) for answer, gold in contents]
        if self._conventions.percent == "ignored":
            texts = pl.DataFrame(contents, schema=["answer", "gold"], orient="row")
            is_equal = [*map(or_, is_equal, self._same_fraction(texts))]
        return [
            answer.letter == gold.letter if answer.letter and gold.letter else is_same
            for (answer, gold), is_same in zip(sides, is_equal, strict=True)
        ]

    def _same_fraction(self, pairs: pl.DataFrame) -> list[bool]:
        """Tell which percentages are the fraction that a gold answer without the sign names."""
        table = key_table(replace(self._conventions, percent="fraction"), self.method)
        rows = pairs.select("answer", "gold").rows()
        are_open = [
            bool(_PERCENT.search(answer)) and not _PERCENT.search(gold) for answer, gold in rows
        ]
        # Texts of other rows would fill a second table of keys.
        entries = table.look_up([*{text for row in compress(rows, are_open) for text in row}])
        return [
            is_open and _is_equal(entries[answer].key, entries[gold].key)
            for is_open, (answer, gold) in zip(are_open, rows, strict=True)
        ]

    def _within_tolerance(self, pairs: pl.DataFrame) -> list[bool]:
        """Tell which pairs are numbers within the tolerance."""
        values = self._values(set(pairs["answer"]) | set(pairs["gold"]))
        relative, absolute = Fraction(self.rel_tol or 0.0), Fraction(self.abs_tol or 0.0)
        rows = pairs.select("answer", "gold").rows()
        return [
            answer in values
            and gold in values
            and abs(values[answer] - values[gold]) <= max(relative * abs(values[gold]), absolute)
            for answer, gold in rows
        ]

    def _values(self, texts: set[str]) -> dict[str, Fraction]:
        """Return the real numbers among some texts."""
        entries = key_table(self.policy, "auto").look_up(list(texts))
        numbers = {
            text: numeric_value(text, self._conventions)
            for text, entry in entries.items()
            if entry.kind in {"exact", "numeric"}
        }
        return {
            text: Fraction(number)
            for text, number in numbers.items()
            if isinstance(number, Fraction) or (number is not None and math.isfinite(number))
        }

    def _same_option(self, pairs: pl.DataFrame) -> list[bool]:
        """Tell which pairs name the same option, each by its letter, its text or both."""
        table = key_table(self.policy, self.method)
        rows = pairs.select("answer", "gold", "options").rows()
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


@dataclass(frozen=True)
class _GradingOfKeyed:
    """Grades rows that have keys already, and perhaps the texts."""

    policy: AnswerPolicy | None

    def __call__(self, rows: pl.Series) -> pl.Series:
        graded = _compare_keys(rows)
        frame = rows.struct.unnest()
        if not {"answer", "gold"} <= set(frame.columns):
            return graded
        # keys of another policy or tool say what is equal by themselves
        prefix = (self.policy or AnswerPolicy()).prefix
        is_open = ~graded & as_strings(frame["gold_key"], "gold_key").str.starts_with(prefix)
        is_open = is_open.fill_null(value=False)
        left = frame.filter(is_open)
        pairs = left.select(as_answers(left["answer"], "answer"), as_answers(left["gold"], "gold"))
        has_marks = _with_marks(pairs)
        if not has_marks.any():
            return graded
        is_open = is_open.scatter(is_open.arg_true(), has_marks)
        pairs = pairs.filter(has_marks)
        pairs = pairs.with_columns(gold_answers(pairs["gold"]))
        accepted = Grading(self.policy).accept(pairs, graded.filter(is_open))
        return graded.scatter(is_open.arg_true(), accepted)


class _Check(NamedTuple):
    """A way in which answers are equivalent; a text on one side matches the pattern."""

    pattern: str | None
    accepts: Callable[[pl.DataFrame], list[bool]]


def _with_marks(pairs: pl.DataFrame) -> pl.Series:
    """Tell which pairs hold a mark of an option or of a percentage; few do, and plain marks are found fast."""
    has_mark = pl.col("answer", "gold").str.contains_any([*_MARKS], ascii_case_insensitive=True)
    return pairs.select(pl.any_horizontal(has_mark).fill_null(value=False)).to_series()


def _where_matching(pairs: pl.DataFrame, mask: pl.Series, pattern: str) -> pl.Series:
    """Keep a mask where one of the texts matches a pattern."""
    matching = pl.any_horizontal(pl.col("answer", "gold").str.contains(pattern))
    found = pairs.filter(mask).select(matching.fill_null(value=False)).to_series()
    return mask.clone().scatter(mask.arg_true(), found)


_MARKS: Final = (")", ". ", ":", "%", "percent", "per cent", "pct")
_MAY_BE_LABELED: Final = r"[A-J]\s*\}?\s*\)|[A-J]\.\s|[A-J]\s*:"
_MAY_BE_PERCENT: Final = r"%|(?i:percent|per cent|pct)"
_PERCENT: Final = re.compile(_MAY_BE_PERCENT)


class _Labeled(NamedTuple):
    """An answer as an option: its letter, or None, and its content."""

    letter: str | None
    content: str

    @staticmethod
    def read(text: str) -> _Labeled:
        """Split a text; a letter alone is both letter and content."""
        normalized = normalize_text(text)
        option = labeled_option(normalized, may_be_name=True)
        return _Labeled(choice_letter(normalized), text) if option is None else _Labeled(*option)


def _is_equal(key: str | None, gold_key: str | None) -> bool:
    return key is not None and key == gold_key


def _checked_options(options: pl.Series) -> pl.Series:
    """Check the dtype of the options."""
    if options.dtype != pl.List(pl.String):
        raise ColumnsError(
            f"options is of dtype {options.dtype}, must be List(String), one list of option texts "
            "per row. Hint: pl.concat_list('A', 'B', 'C', 'D')."
        )
    return options


_LETTER: Final = re.compile(r"\(?\s*([A-J])\s*(?:\)|[.:])?\s*")


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
