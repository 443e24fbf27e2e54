"""What an answer costs: attempts, tokens or floating-point operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names
from ttsframe._exprs import raise_where, run_plan, unused_name
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.levels.leveled import level_curve
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import ColumnsError, DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.problem_values import describe_row

__all__ = ["add_costs", "cost_curve"]

BudgetUnit: TypeAlias = Literal["attempts", "tokens", "flops"]

_COST_COLUMNS: Final = ("cost", "verifier_cost", "cost_unit")

_HINT: Final = "tts.select_answers(trajectories, budgets=[...]) makes this table."


def add_costs(
    problems: FrameT,
    /,
    *,
    trajectories: pl.DataFrame | pl.LazyFrame | None = None,
    budget_unit: BudgetUnit = "tokens",
    generator_parameters: float | None = None,
    verifier_parameters: float | None = None,
    tree_tokens: str | None = None,
    tree: str | None = None,
    by: ColumnNames = (),
) -> FrameT:
    r"""Say what each answer of `problems` cost.

    Sixteen attempts of one method are not sixteen of another: long solutions, a larger model or a
    verifier make attempts dearer, and a search pays for branches that it then cuts.

    Parameters
    ----------
    problems
        `problems`, as `select_answers`, `expected_accuracy` or `select_allocated` makes it.
    trajectories
        The attempts that the answers were picked from, of either kind of frame, with `n_tokens`
        (generated tokens of each) or the column named in `tree_tokens`; halved if those were. Not
        needed for attempts.
    budget_unit
        "attempts", "tokens" (generated ones), or "flops".
    generator_parameters
        Number of parameters of the model that wrote the attempts; for FLOPs.
    verifier_parameters
        Number of parameters of the model that scored them, 0 for none; for FLOPs. Only answers of
        selectors that read a score pay for it; of search trees all do, since it guided the search.
    tree_tokens
        Column with the tokens of the whole search tree that an attempt is a path of, repeated in
        each of its paths: counted once per tree, as soon as any path of it is within the budget.
    tree
        Column that tells the trees of a problem apart; None: a problem has one tree.
    by
        Columns of both tables that tell runs, models, seeds or halves apart.

    Returns
    -------
    FrameT
        The same rows with

        - `cost` (Float64): of the answer, in that unit; null where the tokens of an attempt within
          the budget are unknown. Over all subsets it is the expectation, in the same way;
        - `verifier_cost` (Float64): the part of it that is the verifier's, 0 for other units;
        - `cost_unit` (String): `budget_unit`.

        Columns of these names are replaced.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or differs in dtype between the tables.
    ParameterError
        At once, when a parameter is impossible, or one is missing that the unit needs.
    DataError
        On collection, when a problem has an attempt twice, or a tree two numbers of tokens.

    See Also
    --------
    cost_curve : Averages these rows by what they cost.

    Notes
    -----
    A token takes about 2 FLOPs per parameter to generate, and 2 per parameter of the verifier to
    score: :math:`2 P T + 2 P_v T`. The prompt, and attention over long contexts, are not counted.

    References
    ----------
    Snell et al., arXiv:2408.03314, section 7. Kaplan et al., "Scaling Laws for Neural Language
    Models", arXiv:2001.08361, section 2.1.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["a"] * 2,
    ...     "attempt": [0, 1],
    ...     "answer_key": ["1", "2"],
    ...     "is_correct": [True, False],
    ...     "score": [0.5, 0.75],
    ...     "n_tokens": [100, 300],
    ... })
    >>> problems = tts.select_answers(
    ...     run, selectors=["majority_vote", "best_of_n"], budgets=[1, 2]
    ... )
    >>> dear = tts.curves.add_costs(
    ...     problems,
    ...     trajectories=run,
    ...     budget_unit="flops",
    ...     generator_parameters=1e9,
    ...     verifier_parameters=8e9,
    ... )
    >>> dear.select("budget", "selector", "cost", "verifier_cost").rows()[:2]
    [(1, 'majority_vote', 200000000000.0, 0.0), (1, 'best_of_n', 1800000000000.0, 1600000000000.0)]
    """
    check_frame(problems, "problems")
    check_choice(budget_unit, "budget_unit", get_args(BudgetUnit))
    taken = ("problem_id", "attempt", "n_attempts", "budget", *_COST_COLUMNS)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    keys: list[str] = [*groups, "problem_id"]
    needed = [*keys, "budget", "reduction", "n_attempts"]
    schema: pl.Schema = require_columns(problems, needed, where="problems", hint=_HINT)
    flops = _flops(budget_unit, generator_parameters, verifier_parameters)
    if budget_unit != "attempts":
        if trajectories is None:
            raise ParameterError(
                f"trajectories is None, which budget_unit == {budget_unit!r} needs to count tokens. "
                "Hint: add_costs(problems, trajectories=run, ...)."
            )
        check_frame(trajectories, "trajectories")
        tokens = _tokens(trajectories, schema, keys, tree_tokens, tree)
    names = {f"part{i}": name for i, name in enumerate(keys)}
    is_expected = pl.col("subsets") == "all" if "subsets" in schema else pl.lit(value=False)
    n_attempts, budget = pl.col("n_attempts").cast(pl.Int64), pl.col("budget").cast(pl.Float64)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        if budget_unit == "attempts":
            spent = pl.when(is_expected).then(budget).otherwise(n_attempts.cast(pl.Float64))
            priced = lazy.with_columns(cost=spent, verifier_cost=pl.lit(0.0))
        else:
            used = unused_name("spent", schema)
            all_of_it = pl.col(used) / n_attempts.cast(pl.Float64) * budget
            count = pl.when(is_expected).then(all_of_it).otherwise(used)
            of_generator, of_verifier = flops
            is_scored = pl.col("reduction").is_not_null() | pl.lit(tree_tokens is not None)
            to_score = pl.when(is_scored).then(of_verifier).otherwise(0.0)
            priced = (
                lazy
                .join(
                    tokens.rename({**names, "spent": used}),
                    left_on=[*keys, n_attempts],
                    right_on=[*keys, "n_seen"],
                    how="left",
                    nulls_equal=True,
                    maintain_order="left",
                )
                .with_columns(
                    cost=count * (of_generator + to_score), verifier_cost=count * to_score
                )
                .select(*[name for name in schema if name not in _COST_COLUMNS], *_COST_COLUMNS[:2])
            )
        return priced.with_columns(cost_unit=pl.lit(budget_unit)).select(
            *[name for name in schema if name not in _COST_COLUMNS], *_COST_COLUMNS
        )

    return run_plan(problems, plan)


def cost_curve(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame | None = None,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    """Average problems into one row per budget, at the budget that was spent on average.

    Parameters
    ----------
    problems
        `problems` with `cost` and `cost_unit`, as `add_costs` makes it.
    levels
        Table that `difficulty_levels` makes, for a curve per level; None: all problems together.
    by, replicates, include, confidence_level
        As in `scaling_curve`.

    Returns
    -------
    FrameT
        `curve` as `scaling_curve` makes it (with `levels`, as `level_curve` does), but

        - `budget` (Float64): mean of `cost` over the problems that are averaged;
        - `budget_unit` (String): `cost_unit`;
        - `nominal_budget` (UInt32): the budget that they had, last column;
        - `n_undefined` (UInt32): counts problems of unknown cost too, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible.
    DataError
        On collection, where `scaling_curve` or `level_curve` raises it.

    See Also
    --------
    pareto_frontier : Which of its points are worth their cost.
    efficiency_gain : How much cheaper one line is at equal accuracy.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 8, seed=0, keys=True)
    >>> problems = tts.select_answers(run, selectors=["majority_vote"], budgets=[1, 8])
    >>> curve = problems.pipe(tts.curves.add_costs, trajectories=run).pipe(tts.cost_curve)
    >>> curve.select("budget", "budget_unit", "accuracy", "nominal_budget").rows()
    [(286.55, 'tokens', 0.59, 1), (2314.67, 'tokens', 0.77, 8)]
    """
    check_frame(problems, "problems")
    schema: pl.Schema = require_columns(
        problems,
        ["cost", "cost_unit", "value", "status"],
        where="problems",
        hint="tts.curves.add_costs(problems, trajectories=run) adds what each answer cost.",
    )
    options: dict[str, Any] = {
        "by": by,
        "replicates": replicates,
        "include": include,
        "confidence_level": confidence_level,
    }
    groups: tuple[str, ...] = check_names(by, "by", taken=("cost", "cost_unit", "nominal_budget"))

    def average(rows: pl.LazyFrame) -> pl.LazyFrame:
        if levels is None:
            return scaling_curve(rows, **options)
        return level_curve(rows, levels=levels, **options)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        is_unknown = pl.col("cost").is_null() & (pl.col("status") == "ok")
        priced = (
            lazy
            .drop([name for name in ("budget_unit",) if name in schema])
            .rename({"cost_unit": "budget_unit"})
            .with_columns(
                status=pl.when(is_unknown).then(pl.lit("undefined")).otherwise("status"),
                value=pl.when(~is_unknown).then("value"),
            )
        )
        curve = average(priced)
        # The mean cost has the same problems, replicates and halves as the accuracy.
        paid = average(
            priced.with_columns(value=pl.when(pl.col("value").is_not_null()).then("cost"))
        )
        levelled: list[str] = [] if levels is None else ["level"]
        point = [*groups, *levelled, "selector", "reduction", "budget", "budget_unit", "subsets"]
        columns = curve.collect_schema().names()
        spent = unused_name("spent", columns)
        mean = paid.select(*point, pl.col("accuracy").alias(spent))
        return (
            curve
            .join(mean, on=point, how="left", nulls_equal=True)
            .sort(*groups, *levelled, "selector", "reduction", "budget", "subsets", nulls_last=True)
            .with_columns(nominal_budget=pl.col("budget"), budget=pl.col(spent))
            .select(*columns, "nominal_budget")
        )

    return run_plan(problems, plan)


def _flops(
    budget_unit: BudgetUnit, generator: float | None, verifier: float | None
) -> tuple[float, float]:
    """Return what a token costs to generate, and to score."""
    if budget_unit != "flops":
        return 1.0, 0.0
    given = {"generator_parameters": generator, "verifier_parameters": verifier}
    per_token = []
    for name, value in given.items():
        if value is None:
            raise ParameterError(
                f"{name} is None, must be the number of parameters of the model for FLOPs. Hint: "
                "7e9; 0 where there is no such model."
            )
        if not 0.0 <= value < float("inf"):
            raise ParameterError(f"{name} == {value}, must be a number of parameters, at least 0.")
        per_token.append(2.0 * value)
    return per_token[0], per_token[1]


def _tokens(
    trajectories: pl.DataFrame | pl.LazyFrame,
    of_problems: pl.Schema,
    keys: Sequence[str],
    tree_tokens: str | None,
    tree: str | None,
) -> pl.LazyFrame:
    """Return `spent` tokens by the time that `n_seen` attempts at a problem were seen."""
    if tree is not None and tree_tokens is None:
        raise ParameterError(
            f"tree == {tree!r}, which needs the column of a tree's tokens. Hint: tree_tokens="
            "'total_tokens'."
        )
    counted = tree_tokens or "n_tokens"
    trees = [tree] if tree else []
    schema: pl.Schema = require_columns(
        trajectories,
        [*keys, "attempt", counted, *trees],
        hint="'n_tokens' counts the tokens of each attempt; tree_tokens='...' names a tree's.",
    )
    for name in keys:
        if schema[name] != of_problems[name]:
            raise ColumnsError(
                f"trajectories: {name!r} is {schema[name]}, must be {of_problems[name]} as in "
                "problems. Hint: cast it."
            )
    names = {f"part{i}": name for i, name in enumerate(keys)}
    rows = trajectories.lazy().select(
        *[pl.col(name).alias(part) for part, name in names.items()],
        pl.col("attempt").cast(pl.Int64),
        tokens=pl.col(counted).cast(pl.Float64).fill_nan(None),
        tree=pl.col(tree) if tree else pl.lit(0),
    )
    if tree_tokens:
        whole = [*names, "tree"]
        is_first = pl.col("attempt") == pl.col("attempt").min().over(whole)
        differs = pl.col("tokens").n_unique().over(whole) > 1
        described = pl.struct(differs.alias("broken"), *names, "tree")
        rows = rows.filter(raise_where(described, lambda bad: _uneven(bad, names))).with_columns(
            tokens=pl.when(is_first).then("tokens").otherwise(0.0)
        )

    def in_order(expr: pl.Expr) -> pl.Expr:
        return expr.over([*names], order_by="attempt")

    n_unknown = pl.col("tokens").is_null().cast(pl.Int64).cum_sum()
    repeated = pl.col("attempt").is_duplicated().over([*names])
    described = pl.struct(repeated.alias("broken"), *names, "attempt")
    return rows.filter(raise_where(described, lambda bad: _twice(bad, names))).select(
        *names,
        n_seen=in_order(pl.int_range(1, pl.len() + 1)),
        spent=pl.when(in_order(n_unknown) == 0).then(in_order(pl.col("tokens").cum_sum())),
    )


def _twice(rows: pl.DataFrame, names: dict[str, str]) -> DataError:
    """Describe an attempt that is there twice."""
    row = rows.sort(*names, "attempt").row(0, named=True)
    return DataError(
        f"{describe_row(row, names)}: attempt {row['attempt']} is there twice. Hint: name the column that "
        "tells runs or halves apart in by=(...), in select_answers as here."
    )


def _uneven(rows: pl.DataFrame, names: dict[str, str]) -> DataError:
    """Describe a tree whose paths disagree about its tokens."""
    row = rows.sort(*names, "tree").row(0, named=True)
    return DataError(
        f"{describe_row(row, names)}: paths of one tree have different numbers of tokens, expected the whole "
        "tree's in each. Hint: name the column that tells trees apart in tree='...', or leave "
        "tree_tokens out where the count is the attempt's own."
    )
