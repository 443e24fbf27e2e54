"""Budgets that differ between problems: sharing them out, and answering with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_budgets, check_frame, check_names, check_positive
from ttsframe._exprs import raise_where, run_plan, unused_name
from ttsframe._typing import ColumnNames, FrameT, StepReduction, Weights
from ttsframe.errors import ColumnsError, DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.problem_values import describe_row
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.selectors import select_answers

__all__ = ["allocate_attempts", "select_allocated"]

_ALLOCATION: Final[dict[str, pl.DataType]] = {
    "budget": pl.UInt32(),
    "policy": pl.String(),
    "n_attempts": pl.UInt32(),
}


def allocate_attempts(
    levels: FrameT,
    /,
    *,
    budgets: int | Sequence[int],
    max_attempts: int,
    by: ColumnNames = (),
) -> FrameT:
    r"""Share a total budget among problems, an attempt each time where it helps most.

    Uniform budgets spend as much on a problem that the first attempt solves as on one that needs
    twenty. What an attempt is worth follows from the difficulty that other attempts have shown; one
    that the same attempts show would be known only after they were paid for.

    Parameters
    ----------
    levels
        Table that `difficulty_levels` makes with "pass_at_1" (or with mean scores in [0, 1], taken
        as chances of success): `difficulty`, `n_used` and `fold`.
    budgets
        Attempts per problem on average, one or several.
    max_attempts
        Most attempts at a problem, such as the number that is stored in each half.
    by
        Columns that tell runs apart; each run, and each half, has a total of its own.

    Returns
    -------
    FrameT
        One row per (by, `problem_id`, `fold`, `budget`), sorted, as `select_allocated` reads it:

        - `policy` (String): "allocated";
        - `n_attempts` (UInt32): at least 1, at most `max_attempts`; on average the budget, where
          that is not above `max_attempts`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible, a budget is above `max_attempts`, or `by` names a
        column of the result.

    See Also
    --------
    select_allocated : Picks answers among these attempts.

    Notes
    -----
    What is maximised is the sum over problems of the chance that any attempt is right. Of :math:`n`
    attempts that were seen the share :math:`1 - d` was right; under a uniform prior the chance of
    success is then :math:`\mathrm{Beta}(a, b)` with :math:`a = 1 + n (1 - d)` and
    :math:`b = 1 + n d`, and attempt :math:`m + 1` is worth
    :math:`B(a + 1, b + m) / B(a, b)`. These fall with :math:`m`, so taking the largest first is
    optimal. Equal ones go to earlier attempts first, then in the order of `problem_id`. Unknown
    difficulty is :math:`n = 0`.

    References
    ----------
    Damani et al., "Learning How Hard to Think: Input-Adaptive Allocation of LM Computation",
    arXiv:2410.04707, section 3.1, with a learned chance of success in place of a counted one.

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
    means = check_budgets(budgets)
    most = check_positive(max_attempts, "max_attempts")
    if means is None:
        raise ParameterError("budgets is None, must hold at least one number of attempts.")
    if means[-1] > most:
        raise ParameterError(
            f"budgets holds {means[-1]}, must be at most max_attempts == {most}: more attempts on "
            "average than any problem may have."
        )
    groups: tuple[str, ...] = check_names(by, "by", taken=("problem_id", "fold", *_ALLOCATION))
    names: list[str] = [*groups, "problem_id", "fold"]
    schema: pl.Schema = require_columns(
        levels,
        [*names, "difficulty", "n_used"],
        where="levels",
        hint="tts.difficulty_levels(trajectories) makes this table.",
    )
    parts = {f"part{i}": name for i, name in enumerate(names)}
    total: list[str] = [part for part, name in parts.items() if name != "problem_id"]
    dtypes: dict[str, pl.DataType] = {
        **{part: schema[name] for part, name in parts.items()},
        **_ALLOCATION,
    }

    def share(rows: pl.DataFrame) -> pl.DataFrame:
        rows = rows.sort(*parts)
        tables: list[pl.DataFrame] = [
            _allocate(run, means, most) for run in rows.partition_by(total, maintain_order=True)
        ]
        empty = pl.DataFrame(schema=dtypes)
        return pl.concat([
            empty,
            *[table.select(*dtypes).cast(pl.Schema(dtypes)) for table in tables],
        ])

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        chance = (1.0 - pl.col("difficulty").cast(pl.Float64)).clip(0.0, 1.0)
        seen = pl.when(chance.is_not_null()).then(pl.col("n_used")).otherwise(0).cast(pl.Float64)
        return (
            lazy
            .select(
                *[pl.col(name).alias(part) for part, name in parts.items()],
                n_right=(seen * chance).fill_null(0.0),
                n_wrong=(seen * (1.0 - chance)).fill_null(0.0),
            )
            .map_batches(share, schema=dtypes)
            .sort(*parts, "budget")
            .rename(parts)
        )

    return run_plan(levels, plan)


def select_allocated(
    trajectories: FrameT,
    /,
    *,
    allocation: pl.DataFrame | pl.LazyFrame,
    selectors: SelectorName | Sequence[SelectorName] = ("majority_vote",),
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick answers when each problem has a number of attempts of its own.

    Parameters
    ----------
    trajectories
        As for `select_answers`; halved attempts (`halve_attempts`) where the allocation has halves.
    allocation
        One row per (by, `problem_id`, `budget`) with `n_attempts` and `policy`, as
        `stopping_points` and `allocate_attempts` make it, of either kind of frame.
    selectors, reductions, weights
        As for `select_answers`.
    by
        Columns of both tables that tell runs and halves (`fold`) apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it, with the first `n_attempts` of each problem:
        `budget` is the allocation's, `n_attempts` what was used, and `selector` is named for the
        policy, such as "adaptive_majority_vote". `add_costs` and `cost_curve` give the curve over
        what was used. A problem with fewer attempts than were allocated has `status` "short"; one
        without an allocation is left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or differs in dtype between the tables.
    ParameterError
        At once, when a parameter is impossible.
    DataError
        On collection, when a problem has several allocations of one budget or policy, or an attempt
        twice.

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
    groups: tuple[str, ...] = check_names(by, "by", taken=("problem_id", "attempt", *_ALLOCATION))
    keys: list[str] = [*groups, "problem_id"]
    schema: pl.Schema = require_columns(trajectories, [*keys, "attempt"])
    of_allocation: pl.Schema = require_columns(
        allocation,
        [*keys, *_ALLOCATION],
        where="allocation",
        hint="tts.curves.stopping_points(trajectories, budgets=[...]) makes this table.",
    )
    for name in keys:
        if schema[name] != of_allocation[name]:
            raise ColumnsError(
                f"allocation: {name!r} is {of_allocation[name]}, must be {schema[name]} as in "
                "trajectories. Hint: cast it."
            )
    if "fold" in of_allocation and "fold" not in groups:
        raise ParameterError(
            "allocation has the column 'fold', each for one half of the attempts. Hint: "
            "tts.curves.select_allocated(tts.curves.halve_attempts(run), by='fold', ...), or drop it where it is "
            "null."
        )
    inner: list[str] = [unused_name(name, schema) for name in ("given", "policy", "allowed")]
    given, policy, allowed = inner

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        parts = {f"part{i}": name for i, name in enumerate(keys)}
        rows = (
            allocation
            .lazy()
            .select(
                *[pl.col(name).alias(part) for part, name in parts.items()],
                *["budget", "policy", "n_attempts"],
                n_rows=pl.len().over(*keys, "budget", "policy"),
            )
            .filter(_one_allocation(parts))
            .select(
                *[pl.col(part).alias(name) for part, name in parts.items()],
                pl.col("budget").alias(given),
                pl.col("policy").alias(policy),
                pl.col("n_attempts").cast(pl.UInt32).alias(allowed),
            )
        )
        used = lazy.join(rows, on=keys, how="inner", nulls_equal=True).filter(
            pl.col("attempt") < pl.col(allowed)
        )
        picked = select_answers(
            used,
            selectors=selectors,
            reductions=reductions,
            weights=weights,
            by=[*groups, *inner],
        )
        columns = [name for name in picked.collect_schema() if name not in inner]
        is_short = pl.col("n_attempts") < pl.col(allowed)
        return (
            picked
            .with_columns(
                budget=pl.col(given).cast(pl.UInt32),
                selector=pl.concat_str(policy, "selector", separator="_"),
                status=pl.when(is_short).then(pl.lit("short")).otherwise("status"),
                value=pl.when(~is_short).then("value"),
            )
            .sort(*keys, "budget", "selector", "reduction")
            .select(columns)
        )

    return run_plan(trajectories, plan)


def _allocate(rows: pl.DataFrame, means: Sequence[int], most: int) -> pl.DataFrame:
    """Share each total among the problems of one run."""
    right, wrong = rows["n_right"].to_numpy(), rows["n_wrong"].to_numpy()
    # What an attempt is worth after 1, 2, ... others that were wrong; the first is made anyway.
    chance = (1.0 + right) / (2.0 + right + wrong)
    worth = np.empty((most, len(chance)))
    worth[0] = chance
    for m in range(1, most):
        worth[m] = worth[m - 1] * (wrong + m) / (2.0 + right + wrong + m)
    order = np.argsort(-worth[1:], axis=None, kind="stable") % max(len(chance), 1)
    tables = []
    for mean in means:
        chosen = order[: (mean - 1) * len(chance)]
        n_attempts = 1 + np.bincount(chosen, minlength=len(chance))
        tables.append(
            rows.with_columns(
                budget=pl.lit(mean), policy=pl.lit("allocated"), n_attempts=pl.Series(n_attempts)
            )
        )
    return pl.concat(tables)


def _one_allocation(parts: Mapping[str, str]) -> pl.Expr:
    """Build the filter that raises where a problem has several allocations of one budget."""

    def describe(rows: pl.DataFrame) -> DataError:
        row = rows.sort(*parts, "budget").row(0, named=True)
        return DataError(
            f"{describe_row(row, parts)}: {row['n_rows']} allocations of budget {row['budget']}, expected "
            "one. Hint: name the column that tells runs or halves apart in by=(...)."
        )

    is_repeated = pl.col("n_rows") > 1
    described = pl.struct(is_repeated.alias("broken"), *parts, "budget", "n_rows")
    return raise_where(described, describe)
