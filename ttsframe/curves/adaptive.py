"""Numbers of attempts that differ between problems: allocation of a total, and what it selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_budgets,
    check_frame,
    check_names,
    check_positive,
)
from ttsframe._exprs import from_safe, run_plan, safe_names, to_safe, unused_name
from ttsframe._typing import ColumnNames, FrameT, Reduction, Weights
from ttsframe.curves.lines import LEVELS_HINT, PROVENANCE, check_same_dtypes, refuse_where
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns
from ttsframe.votes.engine.registry import AnySelector
from ttsframe.votes.selectors import select_answers

__all__ = ["allocate_attempts", "select_allocated"]

ALLOCATION: Final[dict[str, pl.DataType]] = {
    "budget": pl.UInt32(),
    "policy": pl.String(),
    "n_attempts": pl.UInt32(),
}


def check_limits(budgets: int | Sequence[int]) -> tuple[int, ...]:
    """Return budgets in ascending order; all attempts (None) is not a budget here."""
    limits = check_budgets(budgets)
    if limits is None:
        raise ParameterError("budgets is None, must hold at least one number of attempts.")
    return limits


def allocate_attempts(
    levels: FrameT,
    /,
    *,
    budgets: int | Sequence[int],
    max_attempts: int,
    by: ColumnNames = (),
) -> FrameT:
    r"""Distribute a total budget over problems, each attempt where it helps most.

    Uniform budgets spend as much on a problem that the first attempt solves as on one that needs
    twenty. The value of an attempt follows from a difficulty estimated on other attempts, since an
    estimate on the same attempts would be known only after they were paid for.

    Parameters
    ----------
    levels
        Table that `difficulty_levels` returns with "pass_at_1" (or with mean scores in [0, 1], read
        as probabilities of success): `difficulty`, `n_used` and `fold`.
    budgets
        Mean number of attempts per problem, one or several.
    max_attempts
        Maximum number of attempts at a problem, for example the number stored in each half.
    by
        Columns that identify a run; each run, and each half, has a total of its own.

    Returns
    -------
    FrameT
        One row per (by, `problem_id`, `fold`, `budget`), sorted, as `select_allocated` reads it:

        - `policy` (String): "allocated";
        - `n_attempts` (UInt32): from 1 to `max_attempts`, with the budget as the mean;
        - `basis`, `caveat` (String): of the problem's level, null where `levels` lacks them. With
          "same_sample", what the allocation gains is biased upward: evaluate it on other attempts.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range, a budget is above `max_attempts`, or `by` names a
        column of the result.

    See Also
    --------
    select_allocated : Select answers from these attempts.

    Notes
    -----
    The sum over problems of the probability that any attempt is correct is maximized. If a share
    :math:`1 - d` of :math:`n` observed attempts was correct, then under a uniform prior the
    probability of success is :math:`\mathrm{Beta}(a, b)` with :math:`a = 1 + n (1 - d)` and
    :math:`b = 1 + n d`, and attempt :math:`m + 1` adds :math:`B(a + 1, b + m) / B(a, b)`. These
    values decrease with :math:`m`, so taking the largest first is optimal. Ties go to earlier
    attempts first, then in the order of `problem_id`. An unknown difficulty is :math:`n = 0`.

    References
    ----------
    Damani et al., "Learning How Hard to Think: Input-Adaptive Allocation of LM Computation",
    arXiv:2410.04707, section 3.1, with a learned probability of success instead of a counted one.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> levels = pl.DataFrame({
    ...     "problem_id": ["easy", "hard", "hopeless"],
    ...     "fold": pl.Series([None] * 3, dtype=pl.UInt32),
    ...     "difficulty": [0.0, 0.75, 1.0],
    ...     "n_used": [64, 64, 64],
    ... })
    >>> allocation = tts.curves.allocate_attempts(levels, budgets=6, max_attempts=16)
    >>> allocation.select("problem_id", "n_attempts").rows()
    [('easy', 2), ('hard', 11), ('hopeless', 5)]
    """
    check_frame(levels, "levels")
    means = check_limits(budgets)
    most = check_positive(max_attempts, "max_attempts")
    if means[-1] > most:
        raise ParameterError(
            f"budgets holds {means[-1]}, must be at most max_attempts == {most}: a mean cannot exceed "
            "the maximum."
        )
    groups: tuple[str, ...] = check_names(
        by, "by", taken=("problem_id", "fold", *ALLOCATION, *PROVENANCE)
    )
    names: list[str] = [*groups, "problem_id", "fold"]
    schema: pl.Schema = require_columns(
        levels,
        [*names, "difficulty", "n_used"],
        where="levels",
        hint=LEVELS_HINT,
    )
    keys: dict[str, str] = safe_names(names)
    runs: list[str] = [key for key, name in keys.items() if name != "problem_id"]
    dtypes = pl.Schema({
        **{key: schema[name] for key, name in keys.items()},
        **ALLOCATION,
        **dict.fromkeys(PROVENANCE, pl.String()),
    })
    provenance = {
        name: (pl.col(name) if name in schema else pl.lit(None)).cast(pl.String)
        for name in PROVENANCE
    }

    def allocate(rows: pl.DataFrame) -> pl.DataFrame:
        parts = rows.sort(*keys).partition_by(runs, maintain_order=True)
        tables: list[pl.DataFrame] = [
            _allocate(part, means, most).select(*dtypes).cast(dtypes) for part in parts
        ]
        return pl.concat([pl.DataFrame(schema=dtypes), *tables])

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        success = (1.0 - pl.col("difficulty").cast(pl.Float64)).clip(0.0, 1.0)
        n_seen = pl.when(success.is_not_null()).then(pl.col("n_used")).otherwise(0)
        n_seen = n_seen.cast(pl.Float64)
        return (
            lazy
            .select(
                *to_safe(keys),
                **provenance,
                n_right=(n_seen * success).fill_null(0.0),
                n_wrong=(n_seen * (1.0 - success)).fill_null(0.0),
            )
            .map_batches(allocate, schema=dtypes)
            .sort(*keys, "budget")
            .rename(keys)
        )

    return run_plan(levels, plan)


def select_allocated(
    trajectories: FrameT,
    /,
    *,
    allocation: pl.DataFrame | pl.LazyFrame,
    selectors: AnySelector | Sequence[AnySelector] = ("majority_vote",),
    reductions: Reduction | Sequence[Reduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Select answers from a number of attempts that differs between problems.

    Parameters
    ----------
    trajectories
        As in `select_answers`; halved attempts (`halve_attempts`) if the allocation has halves.
    allocation
        One row per (by, `problem_id`, `budget`) with `n_attempts` and `policy`, as
        `stopping_points` and `allocate_attempts` return it, of either kind of frame.
    selectors, reductions, weights
        As in `select_answers`.
    by
        Columns of both tables that identify a run and a half (`fold`).

    Returns
    -------
    FrameT
        `problems`, as `select_answers` returns it, from the first `n_attempts` of each problem:
        `budget` is that of the allocation, `n_attempts` the number used, and `selector` starts with
        the policy, for example "adaptive_majority_vote". `add_costs` and `cost_curve` give the curve
        over the attempts used. A problem with fewer attempts than allocated has `status` "short"; a
        problem without an allocation is left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or differs in dtype between the tables.
    ParameterError
        At once, when a parameter is out of range.
    DataError
        On collection, when a problem has several allocations of one budget and policy, or an
        attempt appears twice.

    See Also
    --------
    cost_curve : Accuracy against the mean number of attempts, or of tokens.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 32, seed=0, keys=True)
    >>> points = tts.curves.stopping_points(run, budgets=32)
    >>> problems = tts.curves.select_allocated(run, allocation=points)
    >>> curve = tts.cost_curve(tts.curves.add_costs(problems, budget_unit="attempts"))
    >>> curve.select("selector", "budget", "accuracy", "nominal_budget").rows()
    [('adaptive_majority_vote', 16.78, 0.775, 32)]
    >>> tts.select_answers(run, selectors="majority_vote", budgets=32)["value"].mean()
    0.775
    """
    check_frame(trajectories, "trajectories")
    check_frame(allocation, "allocation")
    groups: tuple[str, ...] = check_names(by, "by", taken=("problem_id", "attempt", *ALLOCATION))
    keys: list[str] = [*groups, "problem_id"]
    schema: pl.Schema = require_columns(trajectories, [*keys, "attempt"])
    of_allocation: pl.Schema = require_columns(
        allocation,
        [*keys, *ALLOCATION],
        where="allocation",
        hint="tts.curves.stopping_points(trajectories, budgets=[...]) makes this table.",
    )
    check_same_dtypes(of_allocation, keys, "allocation", schema, "trajectories")
    if "fold" in of_allocation and "fold" not in groups:
        raise ParameterError(
            "allocation has the column 'fold', so each row is for one half of the attempts. Hint: "
            "tts.curves.select_allocated(tts.curves.halve_attempts(run), by='fold', ...), or drop the "
            "column if it is null."
        )
    budget, policy, allowed = (
        unused_name(name, schema) for name in ("allocated_budget", "policy", "allowed")
    )
    allocated: list[str] = [budget, policy, allowed]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = _checked_allocation(allocation.lazy(), keys).rename(
            dict(zip(ALLOCATION, allocated, strict=True))
        )
        used = lazy.join(rows, on=keys, how="inner", nulls_equal=True).filter(
            pl.col("attempt") < pl.col(allowed)
        )
        selected = select_answers(
            used,
            selectors=selectors,
            reductions=reductions,
            weights=weights,
            by=[*groups, *allocated],
        )
        columns = [name for name in selected.collect_schema() if name not in allocated]
        is_short = pl.col("n_attempts") < pl.col(allowed)
        return (
            selected
            .with_columns(
                budget=pl.col(budget).cast(pl.UInt32),
                selector=pl.concat_str(policy, "selector", separator="_"),
                status=pl.when(is_short).then(pl.lit("short")).otherwise("status"),
                value=pl.when(~is_short).then("value"),
            )
            .sort(*keys, "budget", "selector", "reduction")
            .select(columns)
        )

    return run_plan(trajectories, plan)


def _checked_allocation(allocation: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Check that a problem has one allocation of each budget and policy."""
    names = safe_names(keys)
    is_unique = refuse_where(
        pl.col("n_rows") > 1,
        names,
        "{n_rows} allocations of budget {budget}, expected one. Hint: name the column that identifies "
        "the run or half in by=(...).",
        "budget",
        "n_rows",
    )
    return (
        allocation
        .select(
            *to_safe(names),
            "budget",
            "policy",
            pl.col("n_attempts").cast(pl.UInt32),
            n_rows=pl.len().over(*keys, "budget", "policy"),
        )
        .filter(is_unique)
        .select(*from_safe(names), *ALLOCATION)
    )


def _allocate(rows: pl.DataFrame, means: Sequence[int], most: int) -> pl.DataFrame:
    """Distribute each total over the problems of one run."""
    right, wrong = rows["n_right"].to_numpy(), rows["n_wrong"].to_numpy()
    # The value of an attempt after 0, 1, 2, ... wrong ones; the first is always made.
    success = (1.0 + right) / (2.0 + right + wrong)
    value = np.empty((most, len(success)))
    value[0] = success
    for m in range(1, most):
        value[m] = value[m - 1] * (wrong + m) / (2.0 + right + wrong + m)
    order = np.argsort(-value[1:], axis=None, kind="stable") % max(len(success), 1)
    tables = []
    for mean in means:
        chosen = order[: (mean - 1) * len(success)]
        n_attempts = 1 + np.bincount(chosen, minlength=len(success))
        tables.append(
            rows.with_columns(
                budget=pl.lit(mean), policy=pl.lit("allocated"), n_attempts=pl.Series(n_attempts)
            )
        )
    return pl.concat(tables)
