"""The tables of a report: what was loaded, curves of runs that differ, step profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe._typing import SelectorName, StepReduction, Weights
from ttsframe.errors import DataError
from ttsframe.scaling import scaling_curve
from ttsframe.selectors import SELECTORS
from ttsframe.verifier import step_profile

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
    "source_file",
)
_SHARE_OF_PROBLEMS: Final = 0.1
_RUN: Final = "_run"


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
    attempts = scored.lazy().select(*names, run.cast(pl.UInt32).alias(_RUN)).collect()
    if attempts.is_empty():
        raise DataError(
            "trajectories has no rows. Hint: look at the source with ttsframe validate."
        )
    return attempts


def alike_runs(
    attempts: pl.DataFrame, groups: Sequence[str], repeats: Sequence[str]
) -> Iterator[tuple[bool, int, pl.DataFrame]]:
    """Part the attempts into runs that are graded or not, and share their largest budget."""
    is_graded = pl.lit(value=False)
    if "is_correct" in attempts.columns:
        is_graded = pl.col("is_correct").is_not_null().any()
    graded = attempts.group_by(_RUN).agg(is_graded.alias("is_graded"))
    runs = (
        attempts
        .group_by(_RUN, *groups, *repeats, "problem_id")
        .agg(pl.len().alias("n"))
        .group_by(_RUN)
        .agg(pl.col("n").quantile(_SHARE_OF_PROBLEMS, "lower").cast(pl.Int64).alias("most"))
        .join(graded, on=_RUN)
        .sort("is_graded", "most", _RUN, descending=[True, True, False])
    )
    for (is_graded_run, most), rows in runs.partition_by(
        "is_graded", "most", as_dict=True, maintain_order=True
    ).items():
        yield bool(is_graded_run), int(most), attempts.join(rows.select(_RUN), on=_RUN, how="semi")


def powers_up_to(most: int) -> list[int]:
    """Return the powers of two up to a number, and the number."""
    return sorted({2**i for i in range(most.bit_length())} | {most})


def average_problems(problems: pl.DataFrame, options: Options, *, is_graded: bool) -> pl.DataFrame:
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
    problem = [_RUN, *parts, "problem_id"]
    n_each = attempts.group_by(problem).agg(pl.len().alias("n"))
    sizes = n_each.group_by(_RUN, *parts).agg(
        pl.len().alias("n_problems"),
        pl.col("n").sum().alias("n_attempts"),
        pl.col("n").min().alias("attempts_min"),
        pl.col("n").median().alias("attempts_median"),
        pl.col("n").max().alias("attempts_max"),
    )
    score = pl.col("score").fill_nan(None) if "score" in there else pl.lit(None, pl.Float64)
    is_correct = pl.col("is_correct") if "is_correct" in there else pl.lit(None, pl.Boolean)
    counts = attempts.group_by(_RUN, *parts).agg(
        pl.col("answer_key").null_count().alias("n_missing_answers"),
        (pl.len() - is_correct.count()).alias("n_ungraded_attempts"),
        (pl.len() - score.count()).alias("n_unscored_attempts"),
        score.min().alias("score_min"),
        score.max().alias("score_max"),
    )
    return sizes.join(counts, on=[_RUN, *parts], nulls_equal=True).sort(_RUN, *parts).drop(_RUN)


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
