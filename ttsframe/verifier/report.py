"""All tables about a verifier, from one read of the attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Final, get_args

import polars as pl

from ttsframe import _html
from ttsframe._checks import check_budgets, check_fraction, check_positive, check_seed
from ttsframe._exprs import safe_names, to_safe, unused_name
from ttsframe._typing import ColumnNames, Reduction
from ttsframe._waits import Threads, result_of
from ttsframe.schema import require_columns
from ttsframe.verifier.labels import processbench_f1
from ttsframe.verifier.lengths import BIAS, BIAS_TABLE
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
from ttsframe.verifier.tables import AttemptColumns, attempt_columns
from ttsframe.verifier.threshold import THRESHOLD, threshold_table
from ttsframe.votes.engine.picked import PICKED_COLUMNS, pick_winners, problem_columns
from ttsframe.votes.engine.pools import key_dtype, map_pools, new_category
from ttsframe.votes.engine.registry import SELECTORS, Pick

__all__ = ["VerifierReport", "verifier_report"]

_TAKEN: Final = {*METRICS, *RELIABILITY, *DISTRIBUTION, *THRESHOLD, *BIAS, *PROFILE}

_READ: Final = (
    "problem_id",
    "attempt",
    "answer_key",
    "is_correct",
    "gold_key",
    "gold",
    "score",
    "step_scores",
    "n_tokens",
)

_HEADLINE: Final = (
    "reduction",
    "auroc_within",
    "ci_low",
    "ci_high",
    "auroc",
    "brier",
    "n_attempts",
    "n_judged",
)
"""Metrics that are shown before all others."""

_N_SCORE_BINS: Final = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifierReport:
    """The tables of `verifier_report`, each with the columns of `by` first.

    Parameters
    ----------
    metrics
        Discrimination and calibration of the scores: `verifier_metrics`.
    reliability
        Accuracy by score, in bins of equal width and of equal mass: `reliability_curve`.
    distribution
        Number of right and wrong attempts by score: `score_distribution`.
    thresholds
        The best thresholds, evaluated on held-out problems: `best_threshold`.
    length_bias
        Rank correlation of scores with lengths: `length_bias`; None if attempts have no length.
    profile
        Mean step scores by position, of right and wrong attempts at the same problems:
        `step_profile`; None without `step_scores`.
    over_optimization
        Best-of-N by budget, and whether it declines: `over_optimization`; None without `attempt` or
        `answer_key`.
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

    def _repr_html_(self) -> str:
        """Return a chart of the metrics and the tables for notebooks."""
        from ttsframe.charts import reduction_comparison
        from ttsframe.charts.picture import show_chart

        shown = [name for name in _HEADLINE if name in self.metrics.columns]
        first = self.metrics.columns[: self.metrics.columns.index("reduction")]
        tables = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) is not None
        }
        return _html.fragment(
            show_chart(lambda: reduction_comparison(self.metrics)),
            _html.table(self.metrics.select(*first, *shown)),
            *(_html.folded(name, _html.table(rows)) for name, rows in tables.items()),
        )


def verifier_report(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
    cluster: str | None = None,
    budgets: int | Sequence[int] | None = None,
    labels: str | None = None,
    error_threshold: float | Sequence[float] = 0.5,
    n_bins: int = 10,
    seed: int = 0,
    confidence_level: float = 0.95,
) -> VerifierReport:
    """Measure how good the scores of a run are, and where they mislead.

    Best-of-N and weighted votes are only as good as the scores they read. The report has every table
    about the verifier, from one read of the attempts.

    Parameters
    ----------
    trajectories
        As in `verifier_metrics`; of a lazy frame, only the columns needed are collected. `attempt`
        and `answer_key` are needed for the curve over budgets, `step_scores` or `n_tokens` for
        lengths.
    reductions, by, cluster
        As in `verifier_metrics`.
    budgets
        Numbers of attempts of the best-of-N curve; None: the powers of two up to the median number
        of attempts at a problem.
    labels
        Column with the step labels, as in `processbench_f1`; None: there are none.
    error_threshold
        As in `processbench_f1`; used if there are labels.
    n_bins
        Number of bins of the reliability curve, the calibration errors and the step profile.
    seed
        As in `best_threshold`.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    VerifierReport
        The tables.

    Raises
    ------
    ColumnsError
        When a column is missing or has an unsuitable dtype.
    ParameterError
        When a parameter is out of range or `by` names a column of a result.
    ParameterTypeError
        When a parameter is not a number.
    DataError
        When an attempt at a problem appears twice, because `by` does not name the column of the run
        or model.

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
    columns = attempt_columns(trajectories, reductions, by, _TAKEN, cluster)
    attempts, columns = _collect(trajectories, columns, labels)
    groups = columns.groups

    def by_budget() -> pl.DataFrame | None:
        if not {"attempt", "answer_key"} <= set(columns.schema):
            return None
        selected = _best_of_n(attempts, columns, limits or _powers_of_two(attempts, groups))
        if cluster is not None:
            names = [*groups, "problem_id"]
            of_problem = attempts.select(*names, cluster).unique(names)
            selected = selected.join(of_problem, on=names, how="left", nulls_equal=True)
        return over_optimization(
            selected, by=groups, cluster=cluster, confidence_level=confidence_level
        )

    def by_position() -> pl.DataFrame | None:
        if "step_scores" not in columns.schema:
            return None
        return step_profile(
            attempts,
            n_bins=n_bins,
            same_problems=True,
            by=groups,
            cluster=cluster,
            confidence_level=confidence_level,
        )

    with Threads(1) as thread:
        curve, profile = thread.submit(by_budget), thread.submit(by_position)
        tables = _score_tables(attempts, columns, n_bins, seed, confidence_level)
        errors = None
        if labels is not None:
            errors = processbench_f1(
                attempts, error_threshold=error_threshold, labels=labels, by=groups
            )
        return VerifierReport(
            metrics=tables["metrics"],
            reliability=tables["reliability"],
            distribution=tables["distribution"],
            thresholds=tables["thresholds"],
            length_bias=tables.get("length_bias"),
            profile=result_of(profile),
            over_optimization=result_of(curve),
            first_errors=errors,
        )


def _collect(
    trajectories: pl.DataFrame | pl.LazyFrame, columns: AttemptColumns, labels: str | None
) -> tuple[pl.DataFrame, AttemptColumns]:
    """Read the columns of all tables, with step scores reduced once."""
    known = [name for name in _READ if name in columns.schema]
    others = [name for name in (labels, columns.cluster) if name is not None]
    read = dict.fromkeys([*columns.groups, *known, *others])
    require_columns(trajectories, [*read])
    scores = {unused_name(reading.name, read): reading.score for reading in columns.readings}
    readings = tuple(
        reading._replace(score=pl.col(name))
        for reading, name in zip(columns.readings, scores, strict=True)
    )
    frame = trajectories.lazy().select(*read, **scores)
    if columns.schema["problem_id"] == pl.String:
        # Categories are compared and copied several times faster than texts.
        frame = frame.with_columns(pl.col("problem_id").cast(new_category()))
    attempts = frame.collect()
    return attempts, columns._replace(readings=readings)


def _score_tables(
    attempts: pl.DataFrame,
    columns: AttemptColumns,
    n_bins: int,
    seed: int,
    confidence_level: float,
) -> dict[str, pl.DataFrame]:
    """Make the tables that read sorted scores, by their name in the report."""
    is_clustered = columns.cluster is not None
    groups = columns.split(columns.select(attempts.lazy()).collect())
    tables = {
        "metrics": metrics_table(
            n_bins=n_bins, confidence_level=confidence_level, is_clustered=is_clustered
        ),
        "reliability": reliability_table(
            n_bins=n_bins,
            binnings=get_args(Binning),
            confidence_level=confidence_level,
            is_clustered=is_clustered,
        ),
        "distribution": distribution_table(
            groups, n_bins=_N_SCORE_BINS, n_threads=columns.n_threads
        ),
        "thresholds": threshold_table(groups, seed=seed),
    }
    if {"step_scores", "n_tokens"} & set(columns.schema):
        tables["length_bias"] = BIAS_TABLE
    return dict(zip(tables, columns.tables(groups, [*tables.values()]), strict=True))


def _best_of_n(
    attempts: pl.DataFrame, columns: AttemptColumns, budgets: tuple[int, ...]
) -> pl.DataFrame:
    """Return the columns of `best_of_n` answers that `over_optimization` reads."""
    keys = [*columns.groups, "problem_id"]
    picks = [Pick("best_of_n", SELECTORS["best_of_n"], reading) for reading in columns.readings]
    read = ("budget", "subsets", "selector", "reduction", "value", "status")
    return map_pools(
        attempts.lazy(),
        attempts.schema,
        keys=keys,
        readings=columns.readings,
        work=lambda pools: pick_winners(pools, picks, budgets, "score", keys),
        made={**PICKED_COLUMNS, "answer_key": key_dtype(attempts.schema)},
        result={name: expression for name, expression in problem_columns().items() if name in read},
    ).collect()


def _powers_of_two(attempts: pl.DataFrame, groups: Sequence[str]) -> tuple[int, ...]:
    """Return the powers of two up to the median number of attempts at a problem."""
    keys = safe_names([*groups, "problem_id"])
    sizes = (
        attempts.select(to_safe(keys)).group_by([*keys]).len("n_attempts")["n_attempts"].to_list()
    )
    most = int(median(sizes or [1]))
    return tuple(2**i for i in range(most.bit_length()))
