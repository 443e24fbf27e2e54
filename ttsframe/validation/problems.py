"""Rules about all attempts at a problem."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe._settings import BY_FILE
from ttsframe.validation.finding import Finding, Found, Severity


class _ProblemCheck(NamedTuple):
    """A rule about all attempts at a problem: by how much it is broken, and what to say then."""

    code: str
    severity: Severity
    column: str
    excess: pl.Expr  # 0 where the rule holds
    shown: str  # name of the excess in examples
    message: (
        str  # with {problems}, how many of how many, {total}, the sum of the excess, and {most}
    )
    hint: str
    counts_problems: bool = True


_NUMBERED: Final = pl.col("n_numbered").cast(pl.Int64)
_NUMBERS: Final = pl.col("n_numbers").cast(pl.Int64)
PROBLEM_CHECKS: Final = (
    _ProblemCheck(
        "duplicate_attempts",
        "error",
        "attempt",
        _NUMBERED - _NUMBERS,
        "n_repeated",
        "{problems} hold rows that repeat an 'attempt', {total:,} in all",
        f"name the column that tells runs apart, such as {BY_FILE}; or drop the rows that a "
        "file holds twice.",
        counts_problems=False,
    ),
    _ProblemCheck(
        "attempt_gaps",
        "warning",
        "attempt",
        pl.col("last") + 1 - _NUMBERS,
        "n_missing",
        "{problems} number their attempts with gaps, {total:,} in all",
        "tts.renumber_attempts(frame) closes the gaps; budgets above a gap leave the problem out.",
    ),
    _ProblemCheck(
        "ragged_attempts",
        "warning",
        "attempt",
        pl.col("n").max().cast(pl.Int64) - pl.col("n"),
        "n_fewer",
        "{problems} have fewer attempts than the {most:,} of others",
        "larger budgets leave these problems out and count them as short.",
    ),
    _ProblemCheck(
        "conflicting_problems",
        "error",
        "problem",
        pl.col("n_distinct_problem").cast(pl.Int64) - 1,
        "n_other_texts",
        "{problems} have more than one text under their 'problem_id'",
        "a row number is no id; use one that the source gives, or name the runs in by.",
    ),
    _ProblemCheck(
        "conflicting_problems",
        "error",
        "gold",
        pl.col("n_distinct_gold").cast(pl.Int64) - 1,
        "n_other_answers",
        "{problems} have more than one gold answer",
        "a row number is no id; use one that the source gives, or name the runs in by.",
    ),
    _ProblemCheck(
        "duplicate_completions",
        "warning",
        "completion",
        pl.col("n_completion").cast(pl.Int64) - pl.col("n_distinct_completion"),
        "n_repeated",
        "{problems} hold completions that repeat another text, {total:,} in all",
        "beam search pads its output with copies, and they vote; tts.drop_duplicate_completions "
        "drops them.",
        counts_problems=False,
    ),
)
"""Rules about the attempts at one problem."""

_DISTINCT: Final = ("problem", "gold", "completion")


def problem_counts(rows: pl.LazyFrame, keys: Sequence[str], known: Collection[str]) -> pl.LazyFrame:
    """Count, problem by problem, what has to be told apart.

    Parameters
    ----------
    rows
        Attempts.
    keys
        What identifies a problem.
    known
        Columns that are there.

    Returns
    -------
    pl.LazyFrame
        One row per problem: ``n`` attempts, numbers and distinct values of columns that are there.
    """
    counts = [pl.len().alias("n")]
    if "attempt" in known:
        attempt = pl.col("attempt").filter(pl.col("attempt") >= 0)
        counts += [
            attempt.len().alias("n_numbered"),
            attempt.n_unique().alias("n_numbers"),
            attempt.max().alias("last"),
        ]
    for name in _DISTINCT:
        if name in known:
            # Texts are long: their hashes are compared. Two of 10^9 differing texts share one with
            # a probability below 1 in 30.
            value = pl.col(name).drop_nulls().hash()
            counts += [
                pl.col(name).count().alias(f"n_{name}"),
                value.n_unique().alias(f"n_distinct_{name}"),
            ]
    return rows.filter(pl.col("problem_id").is_not_null()).group_by(keys).agg(counts)


def problem_findings(problems: pl.DataFrame, keys: Sequence[str]) -> Iterator[Found]:
    """Find the rules that the attempts at some problems break.

    Parameters
    ----------
    problems
        What `problem_counts` made.
    keys
        What identifies a problem.

    Yields
    ------
    Found
        One per rule that is broken.
    """
    for check in PROBLEM_CHECKS:
        if not set(check.excess.meta.root_names()) <= set(problems.columns):
            continue
        broken = problems.select(*keys, check.excess.alias(check.shown)).filter(
            pl.col(check.shown) > 0
        )
        if broken.height:
            total = int(broken[check.shown].sum())
            message = check.message.format(
                problems=f"{broken.height:,} of {problems.height:,} problems",
                total=total,
                most=problems["n"].max(),
            )
            count = broken.height if check.counts_problems else total
            finding = Finding(
                check.code, check.severity, check.column, count, message, (), check.hint
            )
            yield Found(finding, broken.lazy())


def inconsistent_answers(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """List the answers that are graded as right in some attempts and as wrong in others.

    Parameters
    ----------
    rows
        Attempts with ``answer_key`` and ``is_correct``.
    keys
        What identifies a problem.

    Returns
    -------
    pl.LazyFrame
        One row per such answer: the keys and ``answer_key``.
    """
    graded = rows.filter(
        pl.all_horizontal(pl.col("problem_id", "answer_key", "is_correct").is_not_null())
    )
    grades = graded.group_by(*keys, "answer_key").agg(
        pl.col("is_correct").any().alias("some"), pl.col("is_correct").all().alias("every")
    )
    return grades.filter(pl.col("some") & ~pl.col("every")).select(*keys, "answer_key")


def grade_findings(answers: pl.DataFrame) -> Iterator[Found]:
    """Find answers whose grades contradict each other.

    Parameters
    ----------
    answers
        What `inconsistent_answers` made.

    Yields
    ------
    Found
        One, where there are any.
    """
    if answers.height:
        message = f"answers that are right in some attempts and wrong in others: {answers.height:,}"
        hint = (
            "either 'answer_key' merges different answers, or the recorded 'is_correct' is wrong."
        )
        finding = Finding(
            "inconsistent_grades", "warning", "is_correct", answers.height, message, (), hint
        )
        yield Found(finding, answers.lazy())
