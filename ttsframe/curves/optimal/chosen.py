"""Which strategy is best for each level of difficulty and budget."""

from __future__ import annotations

import polars as pl

from ttsframe._checks import check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.optimal.choosing import Folding, choose
from ttsframe.curves.optimal.strategies import (
    CHOICE_COLUMNS,
    STRATEGY,
    Question,
    asked,
    placed_at_levels,
    renamed_back,
)

__all__ = ["optimal_choices"]


def optimal_choices(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    include: ProblemSet = "common",
) -> FrameT:
    """Say which strategy is best for each level of difficulty and budget, and by how much.

    What `optimal_curve` averages: one choice for each fold of problems, made on the others,
    and the choice on all problems, which is the one to use from now on. Folds that choose
    differently are strategies that these problems cannot tell apart.

    Parameters
    ----------
    problems
        `problems`, as in `optimal_curve`.
    levels
        One row per (by, `problem_id`), with `level`, or per half of the attempts.
    strategy
        Columns that tell strategies apart.
    by
        Columns that get choices of their own, such as the run.
    replicates
        Columns that number repetitions of one run, averaged per problem before anything else.
    cost
        Numeric column of `problems`: what a row cost, such as tokens or FLOPs.
    n_folds
        Number of folds of problems, at least 2.
    seed
        Seed of the folds.
    include
        "common" takes the same problems at every budget, "available" those that are there.

    Returns
    -------
    FrameT
        One row per (by, `level`, `budget`, `subsets`, `problem_fold`), sorted:

        - `problem_fold` (UInt32): the fold of problems that the choice is for; null: chosen on all
          problems, and judged on the same;
        - the columns of `strategy`: what was chosen;
        - `accuracy_seen` (Float64): its mean on the problems that it was chosen on;
        - `accuracy` (Float64): its mean on those that it is for;
        - `n_seen`, `n_problems` (UInt32): how many these are;
        - `n_strategies`, `n_tied` (UInt32): strategies there were, and those of them that were
          equally good, at least 1;
        - `cost` (Float64), if there is one: the mean of it on the problems that the choice is for,
          null where it is not known of all.

        A level whose problems are all in one fold has no rows: nothing can be chosen for it.

    Raises
    ------
    ColumnsError
        At once, as `optimal_curve`.
    ParameterTypeError
        At once, as `optimal_curve`.
    ParameterError
        At once, as `optimal_curve`.
    DataError
        On collection, as `optimal_curve`.

    See Also
    --------
    optimal_curve : The accuracy of what was chosen.

    References
    ----------
    Snell et al., "Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model
    Parameters", arXiv:2408.03314, sections 3.1 and 3.2.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> problems = pl.DataFrame({
    ...     "problem_id": ["a", "b", "c", "d"] * 2,
    ...     "budget": [8] * 8,
    ...     "selector": ["majority_vote"] * 4 + ["best_of_n"] * 4,
    ...     "reduction": [None] * 4 + ["last"] * 4,
    ...     "value": [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ...     "status": ["ok"] * 8,
    ... })
    >>> levels = pl.DataFrame({"problem_id": ["a", "b", "c", "d"], "level": [1, 1, 2, 2]})
    >>> choices = tts.curves.optimal_choices(problems, levels=levels)
    >>> choices.filter(pl.col("problem_fold").is_null()).select(
    ...     "level", "budget", "selector", "accuracy", "n_problems", "n_tied"
    ... )
    shape: (2, 6)
    ┌───────┬────────┬───────────────┬──────────┬────────────┬────────┐
    │ level ┆ budget ┆ selector      ┆ accuracy ┆ n_problems ┆ n_tied │
    │ ---   ┆ ---    ┆ ---           ┆ ---      ┆ ---        ┆ ---    │
    │ i64   ┆ i64   ┆ str           ┆ f64      ┆ u32        ┆ u32    │
    ╞═══════╪════════╪═══════════════╪══════════╪════════════╪════════╡
    │ 1     ┆ 8      ┆ majority_vote ┆ 1.0      ┆ 2          ┆ 1      │
    │ 2     ┆ 8      ┆ best_of_n     ┆ 1.0      ┆ 2          ┆ 1      │
    └───────┴────────┴───────────────┴──────────┴────────────┴────────┘
    """
    groups: tuple[str, ...] = check_names(by, "by", taken=("level",))
    question: Question = asked(
        problems,
        levels,
        strategy=strategy,
        by=groups,
        replicates=replicates,
        cost=cost,
        folding=Folding(n_folds, seed, include),
    )
    line: dict[str, str] = question.columns.line
    parts: dict[str, str] = question.columns.parts
    keys = [key for key, own in line.items() if own in groups]
    others = [key for key in line if key not in keys]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        lines = ("held_out", "in_sample")
        chosen = choose(placed_at_levels(lazy, levels.lazy(), question), question.columns, lines)
        is_held_out = pl.col("name") == lines[0]

        def own(column: str) -> pl.Expr:
            return pl.when(is_held_out).then(column).otherwise(f"{column}_all")

        cost_of = own("cost") / own("n")
        return (
            chosen
            .filter(pl.col("n_all") > pl.col("n"))
            .select(
                *line,
                *parts,
                *["level", "budget"],
                problem_fold=pl.when(is_held_out).then("problem_fold"),
                accuracy_seen=pl.col("total_seen") / pl.col("n_seen"),
                accuracy=own("total") / own("n"),
                n_seen=pl.col("n_problems_seen").cast(pl.UInt32),
                n_problems=own("n_problems").cast(pl.UInt32),
                n_strategies=pl.col("n_strategies"),
                n_tied=pl.col("n_tied"),
                cost=pl.when(cost_of.is_finite()).then(cost_of),
            )
            # Chosen on all, a strategy is the same for every fold.
            .unique([*line, "level", "budget", "problem_fold"])
            .sort(*keys, "level", "budget", *others, "problem_fold", nulls_last=True)
            .select(
                *renamed_back({key: line[key] for key in keys}),
                *["level", "budget"],
                *renamed_back({key: line[key] for key in others}),
                "problem_fold",
                *renamed_back(parts),
                *CHOICE_COLUMNS,
                *["cost"] * (cost is not None),
            )
        )

    return run_plan(problems, plan)
