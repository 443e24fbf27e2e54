"""The selection gap: accuracy lost in generation against accuracy lost in selection."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._exprs import from_safe, run_plan, to_safe
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.lines import ORACLE, CurveLines, curve_lines, refuse_where
from ttsframe.curves.scaling import average_lines, check_averages
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.problem_values import value_and_severity

__all__ = ["selection_gap"]

_PARTS: Final = ("accuracy", "selection_gap", "generation_gap")

_POINT: Final = ("selector", "reduction", "budget", "budget_unit", "subsets")

_STRATEGY: Final = ("selector", "reduction")

_REST: Final = tuple(name for name in CURVE_SCHEMA if name not in {*_POINT, "accuracy"})
"""Columns of a curve that describe the gap."""


def selection_gap(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Split the distance to 100 % accuracy into a selection gap and a generation gap.

    A problem without a correct attempt needs a better generator, or more attempts. A problem whose
    correct attempt is not selected needs a better verifier. At each budget, the selector's accuracy
    plus the selection gap (pass@k minus the accuracy) plus the generation gap (1 minus pass@k) is 1.

    Parameters
    ----------
    problems
        `problems` with the rows of `oracle` and of the selectors to compare with it, for example
        from `select_answers(..., selectors=["majority_vote", "oracle"])` or `expected_accuracy`.
    by, replicates, cluster
        As in `scaling_curve`.
    include
        As in `scaling_curve`; a problem counts where both the selector and the oracle have status
        "ok".
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `selector`, `reduction`, `budget`, `subsets`) except the oracle's, sorted:

        - `accuracy`, `selection_gap`, `generation_gap` (Float64): the three parts, means over the
          same problems, which add up to 1; null if no problem counts;
        - `standard_error`, `ci_low`, `ci_high` (Float64): of `selection_gap`, paired by problem, by
          the rules of `scaling_curve`: Wilson's interval where all differences are 0 or 1, or where
          few problems make up the gap, otherwise Student's t; null below two problems;
        - `budget_unit`, `n_problems`, `n_short`, `n_unscored`, `n_undefined`, `n_ungraded`: as in
          `scaling_curve`; a problem is left out where the selector or the oracle leaves it out;
        - `n_clusters`, `df`: as in `scaling_curve`, only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, as `scaling_curve`.
    DataError
        On collection, when a problem has no row of the oracle at a budget, and as `scaling_curve`.

    Notes
    -----
    With :math:`s_q` and :math:`o_q` the values of selector and oracle on problem :math:`q`, the gap
    is the mean of :math:`o_q - s_q`, and its standard error
    :math:`\mathrm{sd}(o_q - s_q) / \sqrt{Q}`. The intervals of the two curves are wider, because
    problems that are hard for one are hard for the other.

    References
    ----------
    Brown et al., "Large Language Monkeys", arXiv:2407.21787, section 4, on coverage that selection
    does not reach. Miller, "Adding Error Bars to Evals", arXiv:2411.00640, section 4, on pairing.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a"] * 3 + ["b"] * 3,
    ...     "attempt": [0, 1, 2] * 2,
    ...     "answer_key": ["1", "2", "2", "3", "4", "3"],
    ...     "is_correct": [True, False, False, False, False, False],
    ... })
    >>> problems = tts.select_answers(
    ...     trajectories, selectors=["majority_vote", "oracle"], budgets=[1, 3]
    ... )
    >>> gap = tts.selection_gap(problems)
    >>> gap.select("budget", "accuracy", "selection_gap", "generation_gap")
    shape: (2, 4)
    ┌────────┬──────────┬───────────────┬────────────────┐
    │ budget ┆ accuracy ┆ selection_gap ┆ generation_gap │
    │ ---    ┆ ---      ┆ ---           ┆ ---            │
    │ u32    ┆ f64      ┆ f64           ┆ f64            │
    ╞════════╪══════════╪═══════════════╪════════════════╡
    │ 1      ┆ 0.5      ┆ 0.0           ┆ 0.5            │
    │ 3      ┆ 0.0      ┆ 0.5           ┆ 0.5            │
    └────────┴──────────┴───────────────┴────────────────┘
    """
    check_averages(include, confidence_level)
    lines: CurveLines = curve_lines(
        problems,
        by=by,
        replicates=replicates,
        cluster=cluster,
        taken=_PARTS,
        hint="tts.select_answers(trajectories, selectors=[..., 'oracle'], budgets=[...]) makes it.",
    )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = _with_gaps(lazy, lines)
        averages = average_lines(lines, rows, include, confidence_level, also=["reached", "best"])
        return (
            averages
            .with_columns(
                accuracy="reached",
                selection_gap="accuracy",
                generation_gap=1.0 - pl.col("best"),
                **lines.defaults,
            )
            .sort(*lines.groups, "selector", "reduction", "budget", "subsets")
            .select(*from_safe(lines.groups), *_POINT, *_PARTS, *_REST, *lines.shown)
        )

    return run_plan(problems, plan)


def _with_gaps(lazy: pl.LazyFrame, lines: CurveLines) -> pl.LazyFrame:
    """Return a row of `CurveLines.select` for each row of a selector, with the gap as its value."""
    columns = lines.columns | lines.seeds | lines.clusters
    unit = [
        "problem_id",
        "budget",
        *[name for name in columns if name not in {*_STRATEGY, "cluster"}],
    ]
    rows = lazy.select(
        *to_safe(columns),
        "problem_id",
        "budget",
        pl.col("value").cast(pl.Float64).fill_nan(None),
        "status",
    )
    is_oracle = pl.col("selector") == ORACLE
    oracle = (
        rows
        .filter(is_oracle)
        .group_by(unit)
        .agg(pl.col("value").first().alias("best"), pl.col("status").first().alias("best_status"))
        .with_columns(has_oracle=True)
    )
    has_oracle = refuse_where(
        pl.col("has_oracle").is_null(),
        {"problem_id": "problem_id", "budget": "budget"},
        "no row of 'oracle', which the gap of {selector!r} is measured from. Hint: "
        "tts.select_answers(trajectories, selectors=[..., 'oracle'], budgets=[...]).",
        "selector",
    )
    value, best, status = pl.col("value"), pl.col("best"), pl.col("status")
    is_known = value.is_not_null() & best.is_not_null() & (status == "ok")
    gaps = (
        rows
        .filter(~is_oracle)
        .join(oracle, on=unit, how="left", nulls_equal=True)
        .filter(has_oracle)
        .with_columns(
            reached=value,
            value=best - value,
            status=pl.when(pl.col("best_status") == "ok").then(status).otherwise("best_status"),
        )
    )
    return gaps.select(
        *columns,
        "problem_id",
        "budget",
        **value_and_severity(),
        **{name: pl.when(is_known).then(name) for name in ("reached", "best")},
    )
