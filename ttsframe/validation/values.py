"""Rules about single values: of an attempt's columns, and of the steps in its list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import polars as pl

from ttsframe._settings import constant
from ttsframe.validation.finding import Finding, Found, Severity

Row: TypeAlias = Mapping[str, int | float | None]

LOGIT_SHARE: Final = 0.05
"""Scores of which this share lies outside [0, 1] look like logits; fewer are strays."""


class _Check(NamedTuple):
    """A rule about single values: where it is broken, and what to say then."""

    code: str
    severity: Severity
    column: str
    is_broken: Callable[[pl.Expr], pl.Expr]
    clause: str
    hint: str
    shows_value: bool = False


def _is_outside(score: pl.Expr) -> pl.Expr:
    """Return whether a score is a number outside [0, 1]; NaN and infinities are not."""
    return score.is_finite() & ~score.is_between(0.0, 1.0)


_ABSTAINS: Final = "the attempt abstains from whatever reads its score; score it again or drop it."
_STRAY: Final = "a PRM score is a probability; see what wrote these values."
_LOGITS: Final = f"name {constant('weights', 'sigmoid')} or 'softmax' for a weighted vote; best_of_n reads their order alone."

ATTEMPT_CHECKS: Final = (
    _Check(
        "null_problem_ids",
        "error",
        "problem_id",
        pl.Expr.is_null,
        "have a null 'problem_id'",
        f"name the column that tells problems apart: {constant('rename', text='rename={...}')}.",
    ),
    _Check(
        "unnumbered_attempts",
        "error",
        "attempt",
        lambda attempt: attempt.is_null() | (attempt < 0),
        "have a null or negative 'attempt'",
        "tts.renumber_attempts(frame) numbers the attempts of a problem in row order.",
        shows_value=True,
    ),
    _Check(
        "empty_completions",
        "warning",
        "completion",
        lambda text: text.str.strip_chars().fill_null("") == "",
        "have no text",
        "look for failed requests; these attempts have no answer and count as wrong.",
    ),
    _Check(
        "missing_answers",
        "note",
        "answer",
        pl.Expr.is_null,
        "have no answer",
        "they abstain from votes and count as wrong; many of them point to a token limit or to "
        "another answer style.",
    ),
    _Check(
        "missing_answers",
        "note",
        "answer_key",
        pl.Expr.is_null,
        "have no answer",
        "they abstain from votes and count as wrong.",
    ),
    _Check(
        "missing_gold",
        "warning",
        "gold",
        pl.Expr.is_null,
        "have no gold answer",
        "they cannot be graded; read_trajectories(..., gold=...) joins gold answers from a file.",
    ),
    _Check(
        "ungraded_attempts",
        "warning",
        "is_correct",
        pl.Expr.is_null,
        "are not graded",
        "curves leave their problems out and count them; give them a gold answer.",
    ),
    _Check("missing_scores", "warning", "score", pl.Expr.is_null, "have no 'score'", _ABSTAINS),
    _Check("nan_scores", "warning", "score", pl.Expr.is_nan, "have a NaN 'score'", _ABSTAINS),
    _Check(
        "infinite_scores",
        "warning",
        "score",
        pl.Expr.is_infinite,
        "have an infinite 'score'",
        _STRAY,
        shows_value=True,
    ),
    _Check(
        "out_of_range_scores",
        "warning",
        "score",
        _is_outside,
        "have a 'score' outside [0, 1]",
        _STRAY,
        shows_value=True,
    ),
    _Check(
        "missing_scores",
        "warning",
        "step_scores",
        pl.Expr.is_null,
        "have no 'step_scores'",
        _ABSTAINS,
    ),
    _Check(
        "empty_steps",
        "warning",
        "step_scores",
        lambda scores: scores.list.len() == 0,
        "have an empty list of 'step_scores'",
        "every reduction of an empty list is null; see whether the text was split into steps.",
    ),
)
"""Rules about the value of a column in one row."""

STEP_CHECKS: Final = (
    _Check(
        "null_scores",
        "warning",
        "step_scores",
        pl.Expr.is_null,
        "are null",
        "reductions skip them, but a null last score makes step_last null.",
    ),
    _Check(
        "nan_scores",
        "warning",
        "step_scores",
        pl.Expr.is_nan,
        "are NaN",
        "a reduction that reads one is NaN, and the attempt abstains.",
    ),
    _Check(
        "infinite_scores",
        "warning",
        "step_scores",
        pl.Expr.is_infinite,
        "are infinite",
        _STRAY,
        shows_value=True,
    ),
    _Check(
        "out_of_range_scores",
        "warning",
        "step_scores",
        _is_outside,
        "are outside [0, 1]",
        _STRAY,
        shows_value=True,
    ),
)
"""Rules about one element of ``step_scores``."""


def flat_steps(rows: pl.LazyFrame) -> pl.LazyFrame:
    """List all step scores, one per row.

    Parameters
    ----------
    rows
        Attempts.

    Returns
    -------
    pl.LazyFrame
        One column ``step_scores`` (Float64).
    """
    return rows.select(pl.col("step_scores").explode(empty_as_null=False, keep_nulls=False))


def value_counts(
    rows: pl.LazyFrame, checks: Sequence[_Check], known: Collection[str], *, score: str
) -> pl.LazyFrame:
    """Count the values that break each rule.

    Parameters
    ----------
    rows
        Attempts, or steps.
    checks
        The rules.
    known
        Columns that are there.
    score
        Column of scores, whose finite values are described too.

    Returns
    -------
    pl.LazyFrame
        One row: ``n``, one count per rule, named ``<code> <column>``, and where there are scores
        ``n_finite``, ``least`` and ``most``.
    """
    counts = [
        check.is_broken(pl.col(check.column)).sum().alias(f"{check.code} {check.column}")
        for check in checks
        if check.column in known
    ]
    if score in known:
        finite = pl.col(score).filter(pl.col(score).is_finite())
        counts += [
            finite.len().alias("n_finite"),
            finite.min().alias("least"),
            finite.max().alias("most"),
        ]
    return rows.select(pl.len().alias("n"), *counts)


def value_findings(
    rows: pl.LazyFrame, counts: Row, checks: Sequence[_Check], places: Sequence[str], *, score: str
) -> Iterator[Found]:
    """Find the rules that some values break.

    Parameters
    ----------
    rows
        Attempts.
    counts
        The row that `value_counts` made of them, or of their steps.
    checks
        The rules.
    places
        Columns that say where an attempt is.
    score
        Column of scores.

    Yields
    ------
    Found
        One per rule that is broken, and one for scores that are all the same.
    """
    unit = "attempts" if score == "score" else "step scores"
    total, n_finite = _count(counts, "n"), _count(counts, "n_finite")
    for check in checks:
        count = _count(counts, f"{check.code} {check.column}")
        if not count:
            continue
        code, hint = check.code, check.hint
        of = n_finite if code == "out_of_range_scores" else total
        if code == "out_of_range_scores" and count >= LOGIT_SHARE * n_finite:
            code, hint = "logit_scores", _LOGITS
        message = f"{count:,} of {of:,} {unit} {check.clause}"
        if check.is_broken is _is_outside:
            message += f" ({counts['least']:.4g} to {counts['most']:.4g})"
        finding = Finding(code, check.severity, check.column, count, message, (), hint)
        yield Found(finding, _attempts_that_break(rows, check, places, of_steps=score != "score"))
    if n_finite > 1 and counts["least"] == counts["most"]:
        message = f"all {n_finite:,} values in {score!r} are {counts['least']}"
        hint = "best_of_n then takes the first attempt; see whether the scorer ran."
        yield Found(Finding("constant_scores", "warning", score, n_finite, message, (), hint))


def _attempts_that_break(
    rows: pl.LazyFrame, check: _Check, places: Sequence[str], *, of_steps: bool
) -> pl.LazyFrame:
    """Return the places of a broken rule, with the value that breaks it where it says something."""
    value = pl.col(check.column)
    if of_steps:
        value = value.list.eval(pl.element().filter(check.is_broken(pl.element())))
        broken, value = value.list.len() > 0, value.list.first()
    else:
        broken = check.is_broken(value)
    shown = [value.alias(check.column)] if check.shows_value and check.column not in places else []
    return rows.filter(broken).select(*places, *shown)


def _count(counts: Row, name: str) -> int:
    """Return a count, 0 where it was not made."""
    return int(counts.get(name) or 0)


def whole_run_findings(counts: Row, known: Collection[str]) -> Iterator[Found]:
    """Find what is missing from a run as a whole.

    Parameters
    ----------
    counts
        The row that `value_counts` made of its attempts.
    known
        Columns that are there.

    Yields
    ------
    Found
        No rows at all, or nothing that could grade them.
    """
    n_attempts = _count(counts, "n")
    if not n_attempts:
        hint = "see whether the file was read to its end, or a filter kept nothing."
        yield Found(Finding("no_attempts", "error", "attempt", 0, "there are no rows", (), hint))
    elif is_ungraded(counts, known):
        message = "no attempt is graded, and there are no gold answers to grade with"
        hint = "read_trajectories(..., gold=...) joins them; without them there is agreement only."
        yield Found(Finding("ungraded_run", "note", "is_correct", n_attempts, message, (), hint))


def is_ungraded(counts: Row, known: Collection[str]) -> bool:
    """Tell whether nothing says which attempts are right.

    Parameters
    ----------
    counts
        The row that `value_counts` made of the attempts.
    known
        Columns that are there.

    Returns
    -------
    bool
        True where neither grades nor gold answers nor solutions have a value.
    """
    n_attempts = _count(counts, "n")
    if "is_correct" in known and _count(counts, "ungraded_attempts is_correct") < n_attempts:
        return False
    if "gold" in known and _count(counts, "missing_gold gold") < n_attempts:
        return False
    return not {"solution", "gold_key"} & set(known)
