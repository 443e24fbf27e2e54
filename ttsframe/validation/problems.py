"""Rules about all attempts at a problem."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe._exprs import from_safe, safe_names, to_safe, unused_name
from ttsframe._wording import counted
from ttsframe.validation.finding import Finding, Pending, Severity


class _ProblemCheck(NamedTuple):
    """A rule about all attempts at a problem, and the texts of its finding."""

    code: str
    column: str
    excess: pl.Expr
    """0 where the rule holds."""
    shown: str
    """Name of the excess in examples."""
    message: str
    """With {problems} (how many of how many), {total} (the sum of the excess) and {most}, which says
    how many attempts the other problems have."""
    hint: str
    severity: Severity = "warning"
    counts_problems: bool = True


_NUMBERED: Final = pl.col("n_numbered").cast(pl.Int64)
_NUMBERS: Final = pl.col("n_numbers").cast(pl.Int64)
PROBLEM_CHECKS: Final = (
    _ProblemCheck(
        "duplicate_attempts",
        "attempt",
        _NUMBERED - _NUMBERS,
        "n_repeated",
        "{problems} have rows that repeat an 'attempt', {total:,} in all",
        "name the column that identifies a run, such as by='source_file', or drop rows that appear "
        "twice.",
        counts_problems=False,
        severity="error",
    ),
    _ProblemCheck(
        "attempt_gaps",
        "attempt",
        pl.col("last") + 1 - _NUMBERS,
        "n_missing",
        "{problems} have gaps in their attempt numbers, {total:,} in all",
        "tts.renumber_attempts(trajectories) closes the gaps; until then, budgets above a gap leave the "
        "problem out.",
    ),
    _ProblemCheck(
        "ragged_attempts",
        "attempt",
        pl.col("n_most").cast(pl.Int64) - pl.col("n"),
        "n_fewer",
        "{problems} have fewer {most}",
        "larger budgets leave these problems out and count them as short.",
    ),
    _ProblemCheck(
        "conflicting_problems",
        "problem",
        pl.col("n_distinct_problem").cast(pl.Int64) - 1,
        "n_other_texts",
        "{problems} have several problem texts under one 'problem_id'",
        "row numbers are not ids; use the ids of the source, or name the column of runs in by=.",
        severity="error",
    ),
    _ProblemCheck(
        "conflicting_problems",
        "gold",
        pl.col("n_distinct_gold").cast(pl.Int64) - 1,
        "n_other_answers",
        "{problems} have several gold answers",
        "row numbers are not ids; use the ids of the source, or name the column of runs in by=.",
        severity="error",
    ),
    _ProblemCheck(
        "differing_prompts",
        "prompt",
        pl.col("n_distinct_prompt").cast(pl.Int64) - 1,
        "n_other_prompts",
        "{problems} have several values of 'prompt'",
        "attempts at one problem should answer the same text, unless examples in it are drawn anew; rows of "
        "several problems may share a 'problem_id'.",
    ),
    _ProblemCheck(
        "duplicate_completions",
        "completion",
        pl.col("n_completion").cast(pl.Int64) - pl.col("n_distinct_completion"),
        "n_repeated",
        "{problems} have completions that repeat another text, {total:,} in all",
        "each copy votes. A beam search pads its output with copies: "
        "tts.drop_duplicate_completions(trajectories) drops them. Independent samples may agree by chance: "
        "keep those.",
        counts_problems=False,
    ),
)
"""The rules about all attempts at a problem."""

_DISTINCT: Final = ("problem", "gold", "prompt", "completion")


def problem_counts(
    rows: pl.LazyFrame, keys: Mapping[str, str], usable: Collection[str]
) -> pl.LazyFrame:
    """Count the attempts, attempt numbers and distinct values of each problem, under safe names."""
    counts = [pl.len().alias("n")]
    if "attempt" in usable:
        attempt = pl.col("attempt").filter(pl.col("attempt") >= 0)
        counts += [
            attempt.len().alias("n_numbered"),
            attempt.n_unique().alias("n_numbers"),
            attempt.max().alias("last"),
        ]
    for name in _DISTINCT:
        if name in usable:
            # Comparing hashes of long texts is faster. The probability that any two of 10^9 distinct
            # texts share a hash is below 1/30.
            value = pl.col(name).drop_nulls().hash()
            counts += [
                pl.col(name).count().alias(f"n_{name}"),
                value.n_unique().alias(f"n_distinct_{name}"),
            ]
    return rows.filter(pl.col("problem_id").is_not_null()).group_by(to_safe(keys)).agg(counts)


def problem_findings(problems: pl.DataFrame, keys: Mapping[str, str]) -> Iterator[Pending]:
    """Find the rules that some problems break, from their counts."""
    (problem,) = [key for key, name in keys.items() if name == "problem_id"]
    run = [key for key in keys if key != problem]
    most = pl.col("n").max().over(run) if run else pl.col("n").max()
    problems = problems.with_columns(n_most=most)
    sizes = problems["n_most"].unique().to_list()
    # A problem that several runs attempted is one problem.
    n_problems = problems[problem].n_unique()
    for check in PROBLEM_CHECKS:
        if not set(check.excess.meta.root_names()) <= set(problems.columns):
            continue
        shown = unused_name(check.shown, keys.values())
        broken = problems.select(*from_safe(keys), check.excess.alias(shown)).filter(
            pl.col(shown) > 0
        )
        if broken.height:
            total = int(broken[shown].sum())
            message = check.message.format(
                problems=f"{broken['problem_id'].n_unique():,} of {n_problems:,} problems",
                total=total,
                most=(
                    f"than {sizes[0]:,} attempts"
                    if len(sizes) == 1
                    else "attempts than others of their run"
                ),
            )
            count = broken.height if check.counts_problems else total
            finding = Finding(
                check.code, check.severity, check.column, count, message, (), check.hint
            )
            yield Pending(finding, broken.lazy())


def inconsistent_answers(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """List the answers that are graded as correct in some attempts and as wrong in others."""
    graded = rows.filter(
        pl.all_horizontal(pl.col("problem_id", "answer_key", "is_correct").is_not_null())
    )
    names = safe_names(dict.fromkeys([*keys, "answer_key"]))
    grades = graded.group_by(to_safe(names)).agg(
        pl.col("is_correct").any().alias("some"), pl.col("is_correct").all().alias("every")
    )
    return grades.filter(pl.col("some") & ~pl.col("every")).select(from_safe(names))


def grade_findings(answers: pl.DataFrame) -> Iterator[Pending]:
    """Report the inconsistent answers, if any."""
    if answers.height:
        verb = "is" if answers.height == 1 else "are"
        message = (
            f"{counted([answers.height], 'answer')} {verb} graded as correct in some attempts and as wrong "
            "in others"
        )
        hint = (
            "a vote takes the grade of its first attempt. Either only grading tells them apart (a percent "
            "sign, the content of an option), or 'answer_key' merges different answers, or a recorded "
            "'is_correct' is wrong."
        )
        finding = Finding(
            "inconsistent_grades", "warning", "is_correct", answers.height, message, (), hint
        )
        yield Pending(finding, answers.lazy())
