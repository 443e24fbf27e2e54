"""The tables of a report: what was loaded, curves of runs that differ, step profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe._typing import AnswerStyle, StepReduction, Weights
from ttsframe.answers import extract_answer, gold_key
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import DataError
from ttsframe.verifier import step_profile
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.selectors import SELECTORS

_READ: Final = (
    "problem_id",
    "attempt",
    "problem",
    "answer",
    "answer_key",
    "gold",
    "is_correct",
    "score",
    "step_scores",
    "n_tokens",
    "is_exchangeable",
    "source_file",
)
_GRADES: Final = ("is_correct", "gold_key", "gold", "solution")
"""What says whether an attempt can be graded; the first that is there."""
SHARE_OF_PROBLEMS: Final = 0.1
RUN: Final = "_run"
"""Column with the number of each attempt's run."""


class Options(NamedTuple):
    """How answers are picked and averaged, once what the run lacks is known."""

    selectors: tuple[SelectorName, ...]
    reductions: StepReduction | Sequence[StepReduction] | None
    weights: Weights
    groups: tuple[str, ...]
    repeats: tuple[str, ...]
    confidence_level: float


def collect_attempts(
    scored: pl.DataFrame | pl.LazyFrame, keys: Sequence[str], groups: Sequence[str]
) -> pl.DataFrame:
    """Collect what the analysis reads, the run of each attempt as a number."""
    schema = scored.collect_schema()
    names = [*keys, *[name for name in _READ if name in schema and name not in keys]]
    run = pl.struct(groups).rank("dense") if groups else pl.lit(1)
    attempts = scored.lazy().select(*names, run.cast(pl.UInt32).alias(RUN)).collect()
    if attempts.is_empty():
        raise DataError(
            "trajectories has no rows. Hint: look at the source with ttsframe validate."
        )
    return attempts


def find_runs(
    attempts: pl.LazyFrame,
    groups: Sequence[str],
    repeats: Sequence[str],
    *,
    style: AnswerStyle,
    is_sized: bool,
) -> pl.DataFrame:
    """Find the runs, whether any attempt of each is graded, and how many attempts its problems have.

    Little is read and held: the columns that tell problems apart, and of grades their distinct
    values.

    Parameters
    ----------
    attempts
        The attempts, as they are recorded.
    groups, repeats
        Columns that tell runs, and repetitions of one, apart.
    style
        Where an answer stands in a solution.
    is_sized
        Whether the number of attempts is asked for.

    Returns
    -------
    pl.DataFrame
        `groups`, `is_graded` and `most`: how many attempts at least nine in ten problems have, 0 if
        that is not asked for. Graded runs come first, and those with more attempts.

    Raises
    ------
    DataError
        When there are no attempts.
    """
    run: list[str] = list(groups) or [RUN]
    if not groups:
        attempts = attempts.with_columns(pl.lit(1, pl.UInt32).alias(RUN))
    schema = attempts.collect_schema()
    grade = next((name for name in _GRADES if name in schema), None)
    grades = attempts.select(*run, *([] if grade is None else [grade])).unique()
    most = pl.lit(0, pl.Int64)
    sizes = attempts.select(run).unique()
    if is_sized:
        each = [*run, *[name for name in (*repeats, "problem_id") if name not in run]]
        sizes = attempts.group_by(each).agg(pl.len().alias("n"))
        most = pl.col("n").quantile(SHARE_OF_PROBLEMS, "lower").cast(pl.Int64)
    found, counts = pl.collect_all(
        [grades, sizes.group_by(run).agg(most.alias("most"))], engine="streaming"
    )
    if found.is_empty():
        raise DataError(
            "trajectories has no rows. Hint: look at the source with ttsframe validate."
        )
    value = pl.lit(None, pl.Boolean)
    if grade is not None:
        texts = extract_answer(grade, style=style) if grade == "solution" else pl.col(grade)
        value = gold_key(texts) if grade in {"gold", "solution"} else texts
    return (
        found
        .with_columns(value.is_not_null().alias("is_graded"))
        .group_by(run)
        .agg(pl.col("is_graded").any())
        .join(counts, on=run, nulls_equal=True)
        .sort("is_graded", "most", *run, descending=[True, True, *[False] * len(run)])
        .drop(RUN, strict=False)
    )


def powers_up_to(most: int) -> list[int]:
    """Return the powers of two up to a number, and the number."""
    return sorted({2**i for i in range(most.bit_length())} | {most})


def average_problems(problems: pl.LazyFrame, options: Options, *, is_graded: bool) -> pl.LazyFrame:
    """Average the problems; without grades, average how many attempts agree with the pick."""
    if not is_graded:
        ungraded = pl.col("status") == "ungraded"
        problems = problems.filter(pl.col("selector") != "oracle").with_columns(
            value=pl.when(ungraded).then("agreement"),
            status=pl.when(ungraded).then(pl.lit("ok")).otherwise("status"),
        )
    curve = scaling_curve(
        problems,
        by=options.groups,
        replicates=options.repeats,
        confidence_level=options.confidence_level,
    )
    return curve if is_graded else curve.rename({"accuracy": "agreement"})


def join_curves(curves: Sequence[pl.DataFrame], groups: Sequence[str]) -> pl.DataFrame | None:
    """Put the curves of several runs into one table, selectors in the order of the registry."""
    if not curves:
        return None
    rank = pl.col("selector").replace_strict(
        {name: i for i, name in enumerate(SELECTORS)}, return_dtype=pl.UInt8
    )
    return pl.concat(curves).sort(*groups, rank, "reduction", "budget", maintain_order=True)


def count_loaded(attempts: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Count what was loaded, per file and run."""
    there = set(attempts.columns)
    parts = [*groups, *[name for name in ("source_file",) if name in there - set(groups)]]
    problem = [RUN, *parts, "problem_id"]
    n_each = attempts.group_by(problem).agg(pl.len().alias("n"))
    sizes = n_each.group_by(RUN, *parts).agg(
        pl.len().alias("n_problems"),
        pl.col("n").sum().alias("n_attempts"),
        pl.col("n").min().alias("attempts_min"),
        pl.col("n").median().alias("attempts_median"),
        pl.col("n").max().alias("attempts_max"),
    )
    score = pl.col("score").fill_nan(None) if "score" in there else pl.lit(None, pl.Float64)
    is_correct = pl.col("is_correct") if "is_correct" in there else pl.lit(None, pl.Boolean)
    counts = attempts.group_by(RUN, *parts).agg(
        pl.col("answer_key").null_count().alias("n_missing_answers"),
        (pl.len() - is_correct.count()).alias("n_ungraded_attempts"),
        (pl.len() - score.count()).alias("n_unscored_attempts"),
        score.min().alias("score_min"),
        score.max().alias("score_max"),
    )
    return sizes.join(counts, on=[RUN, *parts], nulls_equal=True).sort(RUN, *parts).drop(RUN)


def average_steps(
    attempts: pl.DataFrame, groups: Sequence[str], confidence_level: float
) -> pl.DataFrame | None:
    """Average the step scores along the attempt, where there are any."""
    if "step_scores" not in attempts.columns:
        return None
    if "is_correct" not in attempts.columns:
        attempts = attempts.with_columns(is_correct=pl.lit(None, pl.Boolean))
    profile = step_profile(attempts, by=groups, confidence_level=confidence_level)
    return profile if profile["mean_score"].count() else None
