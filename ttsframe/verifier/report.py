"""The report card of a verifier: every table at once, from one read of the attempts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Final, get_args

import polars as pl

from ttsframe._checks import check_budgets, check_fraction, check_positive, check_seed
from ttsframe._exprs import unused_name
from ttsframe._typing import ColumnNames, StepReduction
from ttsframe.schema import require_columns
from ttsframe.verifier.labels import processbench_f1
from ttsframe.verifier.lengths import BIAS, bias_table
from ttsframe.verifier.metrics import METRICS, metrics_table
from ttsframe.verifier.overoptimization import over_optimization
from ttsframe.verifier.profile import PROFILE, step_profile
from ttsframe.verifier.reliability import (
    DISTRIBUTION,
    RELIABILITY,
    Binning,
    distribution_table,
    reliability_table,
)
from ttsframe.verifier.sheet import Request, name_numbers, request
from ttsframe.verifier.threshold import THRESHOLD, threshold_table
from ttsframe.votes.engine.picked import PICKED_COLUMNS, pick_winners, problem_columns
from ttsframe.votes.engine.pools import key_dtype, map_pools
from ttsframe.votes.engine.registry import Pick

__all__ = ["VerifierReport", "verifier_report"]

_TAKEN: Final = {*METRICS, *RELIABILITY, *DISTRIBUTION, *THRESHOLD, *BIAS, *PROFILE}

_READ: Final = (
    "problem_id",
    "attempt",
    "answer_key",
    "is_correct",
    "score",
    "step_scores",
    "n_tokens",
)

_N_SCORE_BINS: Final = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifierReport:
    """What `verifier_report` found: a tidy table per question, each with the columns of `by` first.

    Parameters
    ----------
    metrics
        How well scores tell right from wrong, and how well they are calibrated: what
        `verifier_metrics` makes.
    reliability
        Accuracy by score, in bins of equal width and of equal mass: `reliability_curve`.
    distribution
        How many right and wrong attempts have which score: `score_distribution`.
    thresholds
        The best thresholds, judged on problems held out: `best_threshold`.
    length_bias
        Rank correlation of scores with lengths: `length_bias`; None where attempts have no length.
    profile
        Mean step scores by position: `step_profile`; None without `step_scores`.
    over_optimization
        Best-of-N by budget, and whether it turns down: `over_optimization`; None without `attempt`
        or `answer_key`.
    first_errors
        How well step scores find the first error: `processbench_f1`; None without labels.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 8, seed=1, keys=True)
    >>> report = tts.verifier_report(run, reductions=["last", "prod"])
    >>> report.metrics.select("reduction", "auroc_within").height
    2
    >>> report.first_errors is None
    True
    """

    metrics: pl.DataFrame
    reliability: pl.DataFrame
    distribution: pl.DataFrame
    thresholds: pl.DataFrame
    length_bias: pl.DataFrame | None
    profile: pl.DataFrame | None
    over_optimization: pl.DataFrame | None
    first_errors: pl.DataFrame | None


def verifier_report(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
    budgets: int | Sequence[int] | None = None,
    labels: str | None = None,
    error_threshold: float | Sequence[float] = 0.5,
    n_bins: int = 10,
    seed: int = 0,
    confidence_level: float = 0.95,
) -> VerifierReport:
    """Say what the scores of a run are worth, and where they mislead.

    Best-of-N and weighted votes are as good as the scores they read. This is all that the tables of
    the verifier say, from one read of the attempts.

    Parameters
    ----------
    trajectories
        One row per graded attempt, with `problem_id`, `is_correct` (Boolean; null: not graded) and
        `score` or `step_scores`; collected if lazy, the columns that are read alone. `attempt` and
        `answer_key` are needed for curves over budgets, `step_scores` or `n_tokens` for lengths.
    reductions
        Names in `STEP_REDUCTIONS`, each of which gets rows; None is the column `score`.
    by
        Columns that get rows of their own, such as the model or the difficulty level.
    budgets
        Numbers of attempts of the best-of-N curve; None is the powers of two up to the median
        number of attempts at a problem.
    labels
        Column with the labels of steps, as `processbench_f1` reads it; None: there are none.
    error_threshold
        Step scores below it are taken for errors, where there are labels; one or several.
    n_bins
        Number of bins of reliability and of the profile along the solution.
    seed
        Decides which problems choose the thresholds and which judge them, 0 to 2^64 - 1.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    VerifierReport
        The tables.

    Raises
    ------
    ColumnsError
        When a column is missing or has a dtype that cannot be used.
    ParameterError
        When a parameter is impossible or `by` names a column of a result.
    ParameterTypeError
        When a number is none.
    DataError
        When a run or model is not named in `by`, so that attempts of a problem have equal numbers.

    Notes
    -----
    Each reading of the scores is sorted once, for all tables.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 16, seed=1, keys=True, score_strength=2.0)
    >>> report = tts.verifier_report(run, reductions=["last", "mean", "prod"])
    >>> report.metrics.select("reduction", pl.col("auroc", "auroc_within").round(2)).rows()
    [('last', 0.92, 0.92), ('mean', 0.84, 0.85), ('prod', 0.81, 0.82)]
    >>> longest = report.over_optimization.filter(budget=16)
    >>> longest.select("reduction", "is_turned_down").rows()
    [('last', False), ('mean', False), ('prod', False)]
    """
    check_positive(n_bins, "n_bins")
    check_fraction(confidence_level, "confidence_level")
    check_seed(seed)
    limits = check_budgets(budgets)
    asked = request(trajectories, reductions, by, _TAKEN)
    known = [name for name in _READ if name in asked.schema]
    read = dict.fromkeys([*asked.groups, *known, *([] if labels is None else [labels])])
    require_columns(trajectories, [*read])
    # Lists of step scores are reduced once, for all tables.
    scores = {unused_name(reading.name, read): reading.score for reading in asked.readings}
    attempts = trajectories.lazy().select(*read, **scores).collect()
    asked = asked._replace(
        readings=tuple(
            reading._replace(score=pl.col(column))
            for reading, column in zip(asked.readings, scores, strict=True)
        )
    )
    # Numbers are grouped and compared several times faster than texts.
    numbered = attempts.with_columns(name_numbers(attempts["problem_id"]))
    groups = asked.groups

    def over_budgets() -> pl.DataFrame | None:
        if not {"attempt", "answer_key"} <= set(known):
            return None
        picked = _best_of_n(attempts, asked, limits or _powers_of_two(numbered, groups))
        return over_optimization(picked, by=groups, confidence_level=confidence_level)

    def over_steps() -> pl.DataFrame | None:
        if "step_scores" not in known:
            return None
        return step_profile(numbered, n_bins=n_bins, by=groups, confidence_level=confidence_level)

    with ThreadPoolExecutor(1) as aside:
        turning, profiling = aside.submit(over_budgets), aside.submit(over_steps)
        sheet = asked.sheet(asked.narrow(numbered.lazy()).collect())
        tables = {
            "metrics": metrics_table(n_bins=n_bins, confidence_level=confidence_level),
            "reliability": reliability_table(
                n_bins=n_bins, binnings=get_args(Binning), confidence_level=confidence_level
            ),
            "distribution": distribution_table(sheet, n_bins=_N_SCORE_BINS),
            "thresholds": threshold_table(sheet, seed=seed),
        }
        if {"step_scores", "n_tokens"} & set(known):
            tables["length_bias"] = bias_table()
        made = {
            name: asked.named(found, table.schema)
            for (name, table), found in zip(
                tables.items(), sheet.tables([*tables.values()]), strict=True
            )
        }
        turned, profile = turning.result(), profiling.result()
    errors = None
    if labels is not None:
        errors = processbench_f1(attempts, threshold=error_threshold, labels=labels, by=groups)
    return VerifierReport(
        metrics=made["metrics"],
        reliability=made["reliability"],
        distribution=made["distribution"],
        thresholds=made["thresholds"],
        length_bias=made.get("length_bias"),
        profile=profile,
        over_optimization=turned,
        first_errors=errors,
    )


def _best_of_n(attempts: pl.DataFrame, asked: Request, budgets: tuple[int, ...]) -> pl.DataFrame:
    """Return what `over_optimization` reads of the answers that `best_of_n` selects."""
    keys = [*asked.groups, "problem_id"]
    picks = [Pick("best_of_n", reading) for reading in asked.readings]
    columns = ("budget", "subsets", "selector", "reduction", "value", "status")
    return map_pools(
        attempts.lazy(),
        attempts.schema,
        keys=keys,
        readings=asked.readings,
        work=lambda pools: pick_winners(pools, picks, budgets, "score", keys),
        made={**PICKED_COLUMNS, "answer_key": key_dtype(attempts.schema)},
        result={
            name: expression for name, expression in problem_columns().items() if name in columns
        },
    ).collect()


def _powers_of_two(attempts: pl.DataFrame, groups: Sequence[str]) -> tuple[int, ...]:
    """Return the powers of two up to the median number of attempts at a problem."""
    sizes = attempts.group_by(*groups, "problem_id").len()["len"].to_list()
    most = int(median(sizes or [1]))
    return tuple(2**i for i in range(most.bit_length()))
