"""The cost of an answer in attempts, tokens or FLOPs, and curves over cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names
from ttsframe._exprs import run_plan, safe_names, to_safe, unused_name
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.levels import level_curve_with
from ttsframe.curves.lines import SELECT_HINT, check_same_dtypes, refuse_where
from ttsframe.curves.scaling import scaling_curve_with
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns

__all__ = ["add_costs", "cost_curve", "pareto_frontier"]

BudgetUnit: TypeAlias = Literal["attempts", "tokens", "flops"]

_COST_COLUMNS: Final = ("cost", "verifier_cost", "cost_unit")


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
    r"""Add the cost of each answer of `problems` in attempts, tokens or FLOPs.

    Sixteen attempts of two methods can differ in cost: long solutions, a larger model or a verifier
    make attempts more expensive, and a search pays for branches that it discards.

    Parameters
    ----------
    problems
        `problems`, as `select_answers`, `expected_accuracy` or `select_allocated` returns it.
    trajectories
        The attempts that the answers were selected from, of either kind of frame, with `n_tokens`
        (generated tokens of an attempt) or the column named in `tree_tokens`. If the answers are
        from halved attempts, pass these. Not needed for attempts.
    budget_unit
        "attempts", "tokens" (generated tokens), or "flops".
    generator_parameters
        Number of parameters of the model that wrote the attempts; for FLOPs.
    verifier_parameters
        Number of parameters of the model that scored them, 0 for none; for FLOPs. It is charged to
        answers of selectors that read a score, and to all answers from search trees, since it
        guided the search.
    tree_tokens
        Column with the tokens of the complete search tree that an attempt is a path of, repeated in
        each of its paths: counted once per tree, as soon as any of its paths is within the budget.
    tree
        Column that identifies the tree within a problem; None: a problem has one tree.
    by
        Columns of both tables that identify a run, model, seed or half.

    Returns
    -------
    FrameT
        The same rows with

        - `cost` (Float64): cost of the answer in `budget_unit`, its expectation if `subsets` is "all";
          null where the tokens of an attempt within the budget are unknown;
        - `verifier_cost` (Float64): the verifier's part of it, 0 for attempts and tokens;
        - `cost_unit` (String): `budget_unit`.

        Existing columns of these names are replaced.

    Raises
    ------
    ColumnsError
        At once, when a column is missing or differs in dtype between the tables.
    ParameterError
        At once, when a parameter is out of range, or one is missing that the unit needs.
    DataError
        On collection, when an attempt at a problem appears twice, or a tree has two numbers of
        tokens.

    See Also
    --------
    cost_curve : Average these rows over their cost.

    Notes
    -----
    Generating a token takes about 2 FLOPs per parameter, and scoring it 2 per parameter of the
    verifier: :math:`2 P T + 2 P_v T`. The prompt and attention over long contexts are not counted.

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
    >>> costs = tts.curves.add_costs(
    ...     problems,
    ...     trajectories=run,
    ...     budget_unit="flops",
    ...     generator_parameters=1e9,
    ...     verifier_parameters=8e9,
    ... )
    >>> costs.select("budget", "selector", "cost", "verifier_cost").rows()[:2]
    [(1, 'majority_vote', 200000000000.0, 0.0), (1, 'best_of_n', 1800000000000.0, 1600000000000.0)]
    """
    check_frame(problems, "problems")
    check_choice(budget_unit, "budget_unit", get_args(BudgetUnit))
    taken = ("problem_id", "attempt", "n_attempts", "budget", *_COST_COLUMNS)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    keys: list[str] = [*groups, "problem_id"]
    schema: pl.Schema = require_columns(
        problems, [*keys, "budget", "reduction", "n_attempts"], where="problems", hint=SELECT_HINT
    )
    kept = [name for name in schema if name not in _COST_COLUMNS]
    per_token, to_score = _flops_per_token(budget_unit, generator_parameters, verifier_parameters)
    is_expected = pl.col("subsets") == "all" if "subsets" in schema else pl.lit(value=False)
    n_attempts, budget = (pl.col(name).cast(pl.Float64) for name in ("n_attempts", "budget"))
    if budget_unit == "attempts":
        spent = pl.when(is_expected).then(budget).otherwise(n_attempts)

        def count_attempts(lazy: pl.LazyFrame) -> pl.LazyFrame:
            return lazy.select(
                *kept, cost=spent, verifier_cost=pl.lit(0.0), cost_unit=pl.lit(budget_unit)
            )

        return run_plan(problems, count_attempts)
    if trajectories is None:
        raise ParameterError(
            f"trajectories is None, which budget_unit == {budget_unit!r} needs to count tokens. "
            "Hint: add_costs(problems, trajectories=run, ...)."
        )
    check_frame(trajectories, "trajectories")
    tokens = _cumulative_tokens(trajectories, schema, keys, tree_tokens, tree)
    # The caller's columns stay, so those of the other table get names that none of them has.
    total: str = unused_name("tokens", schema)
    n_seen: str = unused_name("n_seen", schema)
    other: dict[str, str] = {key: unused_name(key, schema) for key in safe_names(keys)}
    expected = pl.col(total) / n_attempts * budget
    n_tokens = pl.when(is_expected).then(expected).otherwise(total)
    is_scored = pl.col("reduction").is_not_null() | pl.lit(tree_tokens is not None)
    verifier = pl.when(is_scored).then(to_score).otherwise(0.0)

    def count_tokens(lazy: pl.LazyFrame) -> pl.LazyFrame:
        # A join with the few counts that occur first is much smaller.
        occurring = lazy.select(n_seen=pl.col("n_attempts").cast(pl.Int64)).unique()
        kept_tokens = tokens.join(occurring, on="n_seen", how="semi")
        return lazy.join(
            kept_tokens.rename({**other, "tokens": total, "n_seen": n_seen}),
            left_on=[*keys, pl.col("n_attempts").cast(pl.Int64)],
            right_on=[*other.values(), n_seen],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        ).select(
            *kept,
            cost=n_tokens * (per_token + verifier),
            verifier_cost=n_tokens * verifier,
            cost_unit=pl.lit(budget_unit),
        )

    return run_plan(problems, count_tokens)


def cost_curve(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame | None = None,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    """Average problems into one row per budget, placed at the mean cost.

    Parameters
    ----------
    problems
        `problems` with `cost` and `cost_unit`, as `add_costs` returns it.
    levels
        Table that `difficulty_levels` returns, for a curve per level; None: all problems together.
    by, replicates, cluster, include, confidence_level
        As in `scaling_curve`.

    Returns
    -------
    FrameT
        `curve` as in `scaling_curve` (with `levels`, as in `level_curve`), except that

        - `budget` (Float64): mean of `cost` over the problems averaged;
        - `budget_unit` (String): `cost_unit`;
        - `nominal_budget` (UInt32): the budget of these problems, last column;
        - `n_undefined` (UInt32): also counts problems of unknown cost, which are left out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range.
    DataError
        On collection, as `scaling_curve` and `level_curve`.

    See Also
    --------
    pareto_frontier : Mark the points that no other point beats.
    efficiency_gain : Ratio of costs at equal accuracy.

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
    require_columns(
        problems,
        ["cost", "cost_unit", "value", "status"],
        where="problems",
        hint="tts.curves.add_costs(problems, trajectories=run) adds the cost of each answer.",
    )
    options: dict[str, Any] = {
        "by": by,
        "replicates": replicates,
        "cluster": cluster,
        "include": include,
        "confidence_level": confidence_level,
    }
    groups: tuple[str, ...] = check_names(by, "by", taken=("cost", "cost_unit", "nominal_budget"))

    # The mean cost is over the same problems, replicates and halves as the accuracy.
    mean_cost: str = unused_name("cost", groups)
    also = {mean_cost: pl.col("cost").cast(pl.Float64)}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        is_unknown = pl.col("cost").is_null() & (pl.col("status") == "ok")
        with_status = (
            lazy
            .drop("budget_unit", strict=False)
            .rename({"cost_unit": "budget_unit"})
            .with_columns(
                status=pl.when(is_unknown).then(pl.lit("undefined")).otherwise("status"),
                value=pl.when(~is_unknown).then("value"),
            )
        )
        if levels is None:
            curve = scaling_curve_with(with_status, also, **options)
        else:
            curve = level_curve_with(with_status, also, levels=levels, **options)
        line: list[str] = [*groups, *([] if levels is None else ["level"]), "selector", "reduction"]
        return (
            curve
            .sort(*line, "budget", "subsets", nulls_last=True)
            .with_columns(nominal_budget=pl.col("budget"), budget=pl.col(mean_cost))
            .drop(mean_cost)
        )

    return run_plan(problems, plan)


def pareto_frontier(curve: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    """Mark the points of a curve that no other point beats at the same budget or less.

    The frontier is chosen on the problems that it is shown on, so among many points with the same
    true accuracy it has the luckiest. The intervals of its rows do not account for this choice.

    Parameters
    ----------
    curve
        `curve`, with `budget` (null: not comparable), `accuracy` and optionally `budget_unit`, for
        example from `cost_curve`, for several selectors, reductions and methods.
    by
        Columns that define separate frontiers, for example the level; all other rows compete.

    Returns
    -------
    FrameT
        The same rows in ascending order of `by`, `budget_unit`, `budget` and `accuracy`, with

        - `is_efficient` (Boolean): no row of the group has at least the same accuracy at a smaller
          budget, or a higher accuracy at the same budget. Equal points are both efficient. False
          if accuracy or budget is null.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.

    See Also
    --------
    cost_curve : Put methods on a common axis of cost.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> curve = pl.DataFrame({
    ...     "selector": ["a", "a", "b", "b"],
    ...     "budget": [100.0, 400.0, 200.0, 800.0],
    ...     "accuracy": [0.5, 0.55, 0.6, 0.7],
    ... })
    >>> tts.pareto_frontier(curve).filter("is_efficient")["budget"].to_list()
    [100.0, 200.0, 800.0]
    """
    check_frame(curve, "curve")
    groups: tuple[str, ...] = check_names(by, "by", taken=("budget", "accuracy", "is_efficient"))
    schema: pl.Schema = require_columns(
        curve,
        [*groups, "budget", "accuracy"],
        where="curve",
        hint="tts.cost_curve(problems) makes this table.",
    )
    group: list[str] = [*dict.fromkeys([*groups, "budget_unit"])]
    if "budget_unit" not in schema:
        group.remove("budget_unit")
    columns = [name for name in schema if name != "is_efficient"]
    highest, before = (unused_name(name, schema) for name in ("highest", "before"))

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        # Means of the same values can differ in the last bits, by the order of addition.
        accuracy = pl.col("accuracy").cast(pl.Float64).fill_nan(None).round(12)
        best = (
            lazy
            .group_by(*group, "budget")
            .agg(accuracy.max().alias(highest))
            .sort(*group, "budget")
            .with_columns(
                _over(pl.col(highest).cum_max().forward_fill().shift(), group).alias(before)
            )
        )
        is_highest = (accuracy == pl.col(highest)) & pl.col("budget").is_not_null()
        is_higher = (accuracy > pl.col(before)).fill_null(value=True)
        others = [name for name in columns if not schema[name].is_nested()]
        return (
            lazy
            .join(best, on=[*group, "budget"], how="left", nulls_equal=True)
            .with_columns(is_efficient=(is_highest & is_higher).fill_null(value=False))
            .sort(*group, "budget", "accuracy", *others, nulls_last=True)
            .select(*columns, "is_efficient")
        )

    return run_plan(curve, plan)


def _flops_per_token(
    budget_unit: BudgetUnit, generator: float | None, verifier: float | None
) -> tuple[float, float]:
    """Return what generating a token costs, and scoring it."""
    if budget_unit != "flops":
        return 1.0, 0.0
    given = {"generator_parameters": generator, "verifier_parameters": verifier}
    per_token = []
    for name, value in given.items():
        if value is None:
            raise ParameterError(
                f"{name} is None, must be the number of parameters of the model for FLOPs. Hint: "
                "7e9, or 0 if there is no such model."
            )
        if not 0.0 <= value < float("inf"):
            raise ParameterError(f"{name} == {value}, must be a number of parameters, at least 0.")
        per_token.append(2.0 * value)
    return per_token[0], per_token[1]


def _cumulative_tokens(
    trajectories: pl.DataFrame | pl.LazyFrame,
    of_problems: pl.Schema,
    keys: Sequence[str],
    tree_tokens: str | None,
    tree: str | None,
) -> pl.LazyFrame:
    """Return the `tokens` of the first `n_seen` attempts at each problem."""
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
    check_same_dtypes(schema, keys, "trajectories", of_problems, "problems")
    names = safe_names(keys)
    rows = trajectories.lazy().select(
        *to_safe(names),
        pl.col("attempt").cast(pl.Int64),
        tokens=pl.col(counted).cast(pl.Float64).fill_nan(None),
        tree=pl.col(tree) if tree else pl.lit(0),
    )
    if tree_tokens:
        one_tree = [*names, "tree"]
        is_first = pl.col("attempt") == pl.col("attempt").min().over(one_tree)
        is_equal = refuse_where(
            pl.col("tokens").n_unique().over(one_tree) > 1,
            names,
            "paths of one tree have different numbers of tokens, expected that of the complete tree in "
            "each. Hint: name the column that identifies the tree in tree='...', or omit tree_tokens "
            "if the column counts the tokens of the attempt.",
        )
        rows = rows.filter(is_equal).with_columns(
            tokens=pl.when(is_first).then("tokens").otherwise(0.0)
        )
    is_unique = refuse_where(
        pl.col("attempt").is_duplicated().over([*names]),
        names,
        "attempt {attempt} appears twice. Hint: name the column that identifies the run or half in "
        "by=(...), here and in select_answers.",
        "attempt",
    )

    def in_order(expr: pl.Expr) -> pl.Expr:
        return expr.over([*names], order_by="attempt")

    n_unknown = pl.col("tokens").is_null().cast(pl.Int64).cum_sum()
    return rows.filter(is_unique).select(
        *names,
        n_seen=in_order(pl.int_range(1, pl.len() + 1)),
        tokens=pl.when(in_order(n_unknown) == 0).then(in_order(pl.col("tokens").cum_sum())),
    )


def _over(expr: pl.Expr, group: Sequence[str]) -> pl.Expr:
    """Evaluate within groups in the order of budgets, over all rows if there is no group."""
    ordered: list[str | pl.Expr] = [*group] if group else [pl.lit(0)]
    return expr.over(*ordered, order_by="budget", nulls_last=True)
