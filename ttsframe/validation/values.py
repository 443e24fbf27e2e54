"""Rules about single values: the columns of an attempt, and the elements of its step scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import polars as pl

from ttsframe._settings import constant, setting
from ttsframe._traps import Trap
from ttsframe.validation.finding import Finding, Pending, Severity

Row: TypeAlias = Mapping[str, int | float | None]

LOGIT_SHARE: Final = 0.05
"""From this share of scores outside [0, 1] on, scores look like logits; fewer are outliers."""


class _Check(NamedTuple):
    """A rule about single values, and the texts of its finding."""

    code: str
    column: str
    is_broken: Callable[[pl.Expr], pl.Expr]
    clause: str
    hint: str
    severity: Severity = "warning"
    shows_value: bool = False


def _is_outside(score: pl.Expr) -> pl.Expr:
    """Return whether a finite score is outside [0, 1]."""
    return score.is_finite() & ~score.is_between(0.0, 1.0)


_ABSTAINS: Final = (
    "these attempts abstain from selectors that read scores; score them again or drop them."
)
_OUTLIER: Final = "a PRM score is a probability; check the tool that wrote these values."
_LOGITS: Final = f"use {constant('weights', 'sigmoid')} or {constant('weights', 'softmax')} for a weighted vote; best_of_n only reads their order."
_LOGARITHMS: Final = (
    "none is above 0: they look like log-probabilities, of which exp() makes probabilities. Sums over tokens "
    f"favor short attempts; {constant('weights', 'softmax')} reads them as they are."
)
_POINTS: Final = (5, 10, 100)

_NO_ANSWER: Final = (
    "they abstain from votes, and are wrong where there is a gold answer. Many of them point to a token "
    f"limit, or to another answer style: extract again with {constant('style', 'last_number')} or another. "
    "Code and proofs have no answers to vote on; oracle, pass@k and best_of_n read their grades."
)
_REPLACED: Final = (
    "no answer was found in them, so they count as wrong. Look at their texts, and extract again: "
    "tts.score_trajectories(trajectories, overwrite=['answer']) or ttsframe score --overwrite answer, with "
    f"{constant('style', 'last_number')} or another where the completions mark answers in their own way."
)

ATTEMPT_CHECKS: Final = (
    _Check(
        "null_problem_ids",
        "problem_id",
        pl.Expr.is_null,
        "have a null 'problem_id'",
        f"name the column that identifies problems: {constant('rename', text='rename={...}')}.",
        severity="error",
    ),
    _Check(
        "unnumbered_attempts",
        "attempt",
        lambda attempt: attempt.is_null() | (attempt < 0),
        "have a null or negative 'attempt'",
        "tts.renumber_attempts(trajectories) numbers the attempts of a problem in row order.",
        shows_value=True,
        severity="error",
    ),
    _Check(
        "empty_completions",
        "completion",
        lambda text: text.str.strip_chars().fill_null("") == "",
        "have no text",
        "look for failed requests; these attempts have no answer and count as wrong.",
    ),
    _Check(
        "missing_answers",
        "answer",
        pl.Expr.is_null,
        "have no answer",
        _NO_ANSWER,
        severity="note",
    ),
    _Check(
        "missing_answers",
        "answer_key",
        pl.Expr.is_null,
        "have no answer",
        _NO_ANSWER,
        severity="note",
    ),
    _Check(
        "missing_gold",
        "gold",
        pl.Expr.is_null,
        "have no gold answer",
        f"they cannot be graded; {constant('gold')} adds gold answers from a file.",
    ),
    _Check(
        "ungraded_attempts",
        "is_correct",
        pl.Expr.is_null,
        "are not graded",
        "curves leave their problems out and count them; add gold answers to grade them.",
    ),
    _Check("missing_scores", "score", pl.Expr.is_null, "have no 'score'", _ABSTAINS),
    _Check("nan_scores", "score", pl.Expr.is_nan, "have a NaN 'score'", _ABSTAINS),
    _Check(
        "infinite_scores",
        "score",
        pl.Expr.is_infinite,
        "have an infinite 'score'",
        _OUTLIER,
        shows_value=True,
    ),
    _Check(
        "out_of_range_scores",
        "score",
        _is_outside,
        "have a 'score' outside [0, 1]",
        _OUTLIER,
        shows_value=True,
    ),
    _Check(
        "missing_scores",
        "step_scores",
        pl.Expr.is_null,
        "have no 'step_scores'",
        _ABSTAINS,
    ),
    _Check(
        "empty_steps",
        "step_scores",
        lambda scores: scores.list.len() == 0,
        "have an empty list of 'step_scores'",
        "every reduction of an empty list is null; check that the text was split into steps.",
    ),
)
"""The rules about the columns of an attempt."""

STEP_CHECKS: Final = (
    _Check(
        "null_scores",
        "step_scores",
        pl.Expr.is_null,
        "are null",
        "reductions skip them, but a null last score makes step_last null.",
    ),
    _Check(
        "nan_scores",
        "step_scores",
        pl.Expr.is_nan,
        "are NaN",
        "a reduction that reads a NaN is NaN, and the attempt abstains.",
    ),
    _Check(
        "infinite_scores",
        "step_scores",
        pl.Expr.is_infinite,
        "are infinite",
        _OUTLIER,
        shows_value=True,
    ),
    _Check(
        "out_of_range_scores",
        "step_scores",
        _is_outside,
        "are outside [0, 1]",
        _OUTLIER,
        shows_value=True,
    ),
)
"""The rules about the elements of `step_scores`."""


def lost_grades(usable: Collection[str]) -> pl.Expr | None:
    """Return which attempts another tool graded as right although no answer was found; None if unknown."""
    answer, gold = (
        next((name for name in names if name in usable), None)
        for names in (("answer_key", "answer"), ("gold_key", "gold"))
    )
    grades = [name for name in ("is_correct_recorded", "is_correct") if name in usable]
    if answer is None or gold is None or not grades:
        return None
    return pl.col(answer).is_null() & pl.col(gold).is_not_null() & pl.coalesce(grades)


def lost_findings(
    rows: pl.LazyFrame, counts: Row, usable: Collection[str], places: Sequence[str]
) -> Iterator[Pending]:
    """Report attempts whose grade by another tool is lost because no answer was found."""
    count, is_lost = _count(counts, "lost_grades"), lost_grades(usable)
    if count and is_lost is not None:
        message = (
            f"{count:,} of {_count(counts, 'n'):,} attempts were graded as right by another tool, and "
            "have no answer"
        )
        finding = Finding("lost_grades", "warning", "answer", count, message, (), _REPLACED)
        yield Pending(finding, rows.filter(is_lost).select(*places))


def trap_findings(
    rows: pl.LazyFrame, traps: Sequence[Trap], schema: Collection[str], places: Sequence[str]
) -> Iterator[Pending]:
    """Report the attempts that the traps of a format catch."""
    possible = [trap for trap in traps if set(trap.columns) <= set(schema)]
    if not possible:
        return
    n, *counts = (
        rows
        .select(pl.len(), *(trap.is_caught.sum().alias(trap.code) for trap in possible))
        .collect(engine="streaming")
        .row(0)
    )
    for trap, count in zip(possible, counts, strict=True):
        if count:
            message = f"{count:,} of {n:,} attempts {trap.clause}"
            finding = Finding(
                trap.code, trap.severity, trap.columns[0], count, message, (), trap.hint
            )
            shown = [trap.columns[0]] if trap.columns[0] not in places else []
            yield Pending(finding, rows.filter(trap.is_caught).select(*places, *shown))


def flat_steps(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return all step scores, one per row."""
    return rows.select(pl.col("step_scores").explode(empty_as_null=False, keep_nulls=False))


def value_counts(
    rows: pl.LazyFrame, checks: Sequence[_Check], usable: Collection[str], *, score: str
) -> pl.LazyFrame:
    """Count the values that break each rule, as `<code> <column>`, and describe the finite scores."""
    counts = [
        check.is_broken(pl.col(check.column)).sum().alias(f"{check.code} {check.column}")
        for check in checks
        if check.column in usable
    ]
    if score in usable:
        finite = pl.col(score).filter(pl.col(score).is_finite())
        counts += [
            finite.len().alias("n_finite"),
            finite.min().alias("least"),
            finite.max().alias("most"),
        ]
    is_lost = lost_grades(usable) if score == "score" else None
    if is_lost is not None:
        counts.append(is_lost.sum().alias("lost_grades"))
    answer = next((name for name in ("answer", "answer_key") if name in usable), None)
    if answer is not None and "is_correct" in usable and score == "score":
        right = pl.col("is_correct").cast(pl.Boolean).fill_null(value=False)
        counts.append((pl.col(answer).is_null() & right).sum().alias("n_right_without_answer"))
    return rows.select(pl.len().alias("n"), *counts)


def value_findings(
    rows: pl.LazyFrame, counts: Row, checks: Sequence[_Check], places: Sequence[str], *, score: str
) -> Iterator[Pending]:
    """Find the rules that some values break, from their counts; `places` locate an attempt."""
    unit = "attempts" if score == "score" else "step scores"
    total, n_finite = _count(counts, "n"), _count(counts, "n_finite")
    for check in checks:
        count = _count(counts, f"{check.code} {check.column}")
        if not count:
            continue
        code, hint = check.code, check.hint
        of = n_finite if code == "out_of_range_scores" else total
        if code == "out_of_range_scores" and count >= LOGIT_SHARE * n_finite:
            code, hint = _name_scale(counts["least"] or 0.0, counts["most"] or 0.0)
        message = f"{count:,} of {of:,} {unit} {check.clause}"
        if check.is_broken is _is_outside:
            message += f" ({counts['least']:.4g} to {counts['most']:.4g})"
        severity: Severity = "warning" if _lacks_answers(code, count, counts) else check.severity
        finding = Finding(code, severity, check.column, count, message, (), hint)
        yield Pending(finding, _attempts_that_break(rows, check, places, of_steps=score != "score"))
    if n_finite > 1 and counts["least"] == counts["most"]:
        message = f"all {n_finite:,} values in {score!r} are {counts['least']}"
        hint = "best_of_n then picks the first attempt; check that the scorer ran."
        yield Pending(Finding("constant_scores", "warning", score, n_finite, message, (), hint))


def _lacks_answers(code: str, count: int, counts: Row) -> bool:
    """Return whether most attempts have no answer and are wrong for it, which those of code are not."""
    is_most = code == "missing_answers" and 2 * count >= _count(counts, "n")
    return is_most and counts.get("n_right_without_answer") == 0


def _name_scale(least: float, most: float) -> tuple[str, str]:
    """Say what scores that are no probabilities look like, by their range; the code and the hint."""
    if most <= 0.0:
        return "log_scores", _LOGARITHMS
    top = next((top for top in _POINTS if top / 2 < most <= top), None)
    if least >= 0.0 and top is not None:
        return "unscaled_scores", f"they look like points of 0 to {top}: divide them by {top}."
    return "logit_scores", _LOGITS


def _attempts_that_break(
    rows: pl.LazyFrame, check: _Check, places: Sequence[str], *, of_steps: bool
) -> pl.LazyFrame:
    """Return the attempts that break a rule, with the value where it is informative."""
    value = pl.col(check.column)
    if of_steps:
        value = value.list.eval(pl.element().filter(check.is_broken(pl.element())))
        broken, value = value.list.len() > 0, value.list.first()
    else:
        broken = check.is_broken(value)
    shown = [value.alias(check.column)] if check.shows_value and check.column not in places else []
    return rows.filter(broken).select(*places, *shown)


def _count(counts: Row, name: str) -> int:
    """Return a count, 0 if its column is missing."""
    return int(counts.get(name) or 0)


def whole_run_findings(counts: Row, usable: Collection[str]) -> Iterator[Pending]:
    """Report a run without rows, or without anything to grade it."""
    n_attempts = _count(counts, "n")
    if not n_attempts:
        hint = "check that the source has rows and that no filter dropped them all."
        yield Pending(
            Finding("no_attempts", "error", "attempt", 0, "the run has no rows", (), hint)
        )
    elif is_ungraded(counts, usable):
        message = "no attempt is graded, and no gold answers exist to grade it"
        hint = (
            f"{setting('gold')} adds them when the run is read; without them only agreement can be "
            "computed."
        )
        yield Pending(Finding("ungraded_run", "note", "is_correct", n_attempts, message, (), hint))


def is_ungraded(counts: Row, usable: Collection[str]) -> bool:
    """Return whether neither grades nor gold answers nor solutions exist."""
    n_attempts = _count(counts, "n")
    if "is_correct" in usable and _count(counts, "ungraded_attempts is_correct") < n_attempts:
        return False
    if "gold" in usable and _count(counts, "missing_gold gold") < n_attempts:
        return False
    return not {"solution", "gold_key"} & set(usable)
