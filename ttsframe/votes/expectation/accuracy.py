"""Expected accuracy of selectors over all subsets of a problem's attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, get_args

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_budgets,
    check_choice,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._exprs import raise_where, run_plan, safe_names, to_safe
from ttsframe._typing import (
    ColumnNames,
    Flags,
    Floats,
    FrameT,
    Integers,
    Reduction,
    Status,
    Weights,
)
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import holds_counts, require_columns
from ttsframe.votes.engine.picked import ALL_ATTEMPTS, PROBLEM_COLUMNS, check_one_run
from ttsframe.votes.engine.pools import Pools, key_dtype, map_pools
from ttsframe.votes.engine.registry import (
    AnySelector,
    check_selectors,
    columns_read,
    make_picks,
)
from ttsframe.votes.expectation.counts import expect_of_counts
from ttsframe.votes.expectation.expected import (
    NEVER_GRADED,
    OK,
    SHORT,
    UNDEFINED,
    Expected,
    Settings,
    compute_expected,
    empty_expected,
)
from ttsframe.votes.expectation.subset_votes import Sampling

__all__ = ["expected_accuracy"]

_COLUMNS: Final[Mapping[str, pl.DataType | type[pl.DataType]]] = MappingProxyType({
    **PROBLEM_COLUMNS,
    "monte_carlo_error": pl.Float64,
})

_LARGE: Final = 1 << 17
"""Attempts that the subsets of a problem draw, from which threads pay. Below, numpy's calls are so short
that threads wait for Python's lock: on 2 cores, 2 threads took 1.2 times as long as one at 51,200, and
.8 times as long at 204,800. Exact counts never gained: 1.5 times as long at 256 attempts."""


def expected_accuracy(
    trajectories: FrameT,
    /,
    *,
    selectors: AnySelector | Sequence[AnySelector] = (
        "majority_vote",
        "weighted_vote",
        "best_of_n",
    ),
    reductions: Reduction | Sequence[Reduction] | None = None,
    budgets: int | Sequence[int],
    weights: Weights = "score",
    by: ColumnNames = (),
    n_subsets: int = 200,
    seed: int = 0,
) -> FrameT:
    r"""Average selectors over all subsets of each problem's attempts, at each budget.

    `select_answers` uses the first `budget` attempts, one subset of many. Here all attempts count at
    every budget, so curves are smoother and their intervals narrower.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (unique within `by` and problem),
        `answer_key` (null: no answer found) and `is_correct`. Selectors that read a score need
        `score` (Float64, higher is better) or `step_scores`. For "oracle" alone, also a table of
        counts: one row per problem with `n_attempts` and `n_correct`, both of graded attempts.
    selectors, reductions
        As in `select_answers`.
    budgets
        Numbers of attempts in a subset.
    weights
        As in `select_answers`; a "softmax" is over the scored attempts of the subset.
    by
        As in `select_answers`.
    n_subsets
        Number of subsets of each size to draw where no exact count is used, at least 2.
    seed
        Seed of these draws, 0 to 2^64 - 1. They depend on it and on the values of `by` and
        `problem_id`, and are the same for all selectors.

    Returns
    -------
    FrameT
        `problems`, one row per (by, `problem_id`, `budget`, `selector`, `reduction`), sorted by the
        first three, as `scaling_curve` reads it:

        - `subsets` (String): "all";
        - `value` (Float64 in [0, 1]): the expected accuracy; null unless `status` is "ok";
        - `status` (String): "ok"; "short", fewer attempts than the budget; "unscored", no attempt
          has a score; "undefined", a weight is negative or not finite, or there is no answer to
          vote on; "ungraded", no attempt has a grade;
        - `n_attempts`, `n_valid` (with an answer) (UInt32): attempts that subsets are drawn from;
        - `monte_carlo_error` (Float64): standard error of `value` from drawing subsets; 0 if the
          value is exact or all draws agree, null if `value` is null;
        - `attempt`, `answer`, `answer_key`, `is_correct`, `n_votes`, `weight`, `agreement`: null,
          since no single answer is picked.

        Selectors that read no score have one row, with a null `reduction`.

    Raises
    ------
    ColumnsError
        At once, if a column is missing.
    ParameterError
        At once, if a selector, reduction, budget, kind of weight, `n_subsets` or `seed` is invalid,
        or `by` names a column of the result.
    DataError
        On collection, if `is_exchangeable` is false in a row, as in tree search, where attempts
        depend on each other and only the first `budget` attempts are a valid subset; or if an
        attempt appears twice: `by` does not name the column that tells runs apart.

    See Also
    --------
    select_answers : The same for the first attempts, with the picked answers.
    pass_at_k : The expectation of `oracle`, as an expression.
    best_of_k : The expectation of `best_of_n`, as an expression.

    Notes
    -----
    Exact: `oracle` (pass@k), `best_of_n` and `first_valid` in closed form, and `majority_vote` by
    the coefficients of a product over answers,

    .. math::

        \binom{n}{k}^{-1} \sum_{a, v} r_a \binom{c_a}{v} [x^{k-v}] \int_0^1 (1 + x)^{c_0}
        \prod_{b \ne a} \Bigl( \sum_{u < v} \binom{c_b}{u} x^u + y \binom{c_b}{v} x^v \Bigr) dy

    with :math:`c_a` votes for answer :math:`a`, of which the share :math:`r_a` is correct, and
    :math:`c_0` abstentions; the integral shares ties equally. All other selectors, and a majority
    vote that takes much longer to count than to sample (more than 256 answers given equally often),
    are averaged over `n_subsets` subsets drawn without replacement. Only one subset has all
    attempts, so at that budget only a selector of your own is drawn. A count takes about as long as
    200 subsets, or less. A selector of your own gets the place of an attempt in its subset, from 0,
    as `attempt`.

    The Monte-Carlo error of a mean over problems is that of one problem over the square root of
    their number. The standard error of `scaling_curve` includes it, as part of the spread over
    problems.

    A subset without any answer counts 0, and so does one without any score for a selector that
    reads one. Attempts without a grade are left out, as in `pass_at_k`; an attempt with neither
    answer nor grade is wrong if another attempt at the problem is graded (`grade_failures`), and one
    without an answer is wrong where there is a gold answer. Where something else than answers is
    graded, as in `select_answers`, a vote is "undefined": always without any answers, else at the
    budgets at which a subset may be right without one. Ties are shared equally;
    totals within 1e-9 of the sum of weights are tied. `minimum_bayes_risk` reads each answer as its
    earliest attempt at the problem spells it. A selector of your own breaks its ties itself.

    References
    ----------
    pass@k: Chen et al., "Evaluating Large Language Models Trained on Code", arXiv:2107.03374,
    equation 1. Majority: Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in
    Language Models", arXiv:2203.11171.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 5,
    ...     "attempt": [0, 1, 2, 3, 4],
    ...     "answer_key": ["7", "7", "8", "8", "9"],
    ...     "is_correct": [True, True, False, False, False],
    ...     "score": [0.9, 0.5, 0.7, 0.2, 0.1],
    ... })
    >>> problems = tts.expected_accuracy(
    ...     trajectories, selectors=["majority_vote", "best_of_n"], budgets=[1, 3]
    ... )
    >>> problems.select("budget", "selector", pl.col("value").round(4), "monte_carlo_error")
    shape: (4, 4)
    ┌────────┬───────────────┬────────┬───────────────────┐
    │ budget ┆ selector      ┆ value  ┆ monte_carlo_error │
    │ ---    ┆ ---           ┆ ---    ┆ ---               │
    │ u32    ┆ str           ┆ f64    ┆ f64               │
    ╞════════╪═══════════════╪════════╪═══════════════════╡
    │ 1      ┆ majority_vote ┆ 0.4    ┆ 0.0               │
    │ 1      ┆ best_of_n     ┆ 0.4    ┆ 0.0               │
    │ 3      ┆ majority_vote ┆ 0.4333 ┆ 0.0               │
    │ 3      ┆ best_of_n     ┆ 0.7    ┆ 0.0               │
    └────────┴───────────────┴────────┴───────────────────┘
    """
    check_frame(trajectories, "trajectories")
    chosen = check_selectors(selectors)
    checked = check_budgets(budgets)
    if checked is None:
        raise ParameterError(
            "budgets is None, must hold at least one number of attempts. Hint: "
            "tts.select_answers(trajectories) picks from all attempts."
        )
    check_choice(weights, "weights", get_args(Weights))
    if check_positive(n_subsets, "n_subsets") < 2:
        raise ParameterError("n_subsets == 1, must be at least 2: an error needs two subsets.")
    sampling = Sampling(n_subsets, check_seed(seed))
    names: tuple[str, ...] = check_names(by, "by", taken=("problem_id", *_COLUMNS))
    keys: list[str] = [*names, "problem_id"]
    if holds_counts(trajectories.collect_schema()):
        return expect_of_counts(trajectories, selectors=chosen, budgets=checked, by=names)
    schema: pl.Schema = require_columns(
        trajectories, [*keys, "attempt", "answer_key", "is_correct"]
    )
    picks, readings = make_picks(chosen, schema, reductions)
    settings = Settings(picks, np.array(checked), weights, sampling)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        if "is_exchangeable" in schema:
            lazy = lazy.filter(_exchangeable_only(keys))
        return map_pools(
            lazy,
            schema,
            keys=keys,
            readings=readings,
            work=lambda pools: _table(pools, settings, keys),
            made={**_COLUMNS, "answer_key": key_dtype(schema)},
            read=columns_read(picks),
        )

    return run_plan(trajectories, plan)


def _exchangeable_only(keys: Sequence[str]) -> pl.Expr:
    """Build a filter that raises if attempts depend on each other."""
    named = safe_names(keys)

    def describe(rows: pl.DataFrame) -> DataError:
        row = rows.sort(*named).row(0, named=True)
        where = ", ".join(f"{name} {row[key]!r}" for key, name in named.items())
        return DataError(
            f"{where}: is_exchangeable is false, expected true: attempts of a tree search depend on "
            "each other, so a random subset of them is not a run with a smaller budget. Hint: "
            "tts.select_answers(trajectories, budgets=[...]) takes the first attempts, the only "
            "valid subset."
        )

    is_broken = ~pl.col("is_exchangeable")
    described = pl.struct(is_broken.alias("broken"), *to_safe(named))
    return raise_where(described, describe)


def _table(pools: Pools, settings: Settings, names: Sequence[str]) -> pl.DataFrame:
    """Make the table of expected accuracies."""
    picks, budgets = settings.picks, settings.budgets
    problems = pools.problems.rows()
    n_subsets = settings.sampling.n_subsets
    if any(pick.selector.reads_texts for pick in picks):
        pools = pools.with_texts()
    blocks = _with_threads_that_help(pools, settings).in_blocks(
        n_subsets,
        lambda block: compute_expected(block, problems, settings),
        uses_polars=any(pick.selector.is_own for pick in picks),
    )
    if not blocks:
        blocks = [empty_expected(len(budgets), len(picks))]
    parts = [np.concatenate(parts)[pools.order] for parts in zip(*blocks, strict=True)]
    expected = Expected(*parts)
    check_one_run(
        pools,
        expected.n_attempts[:, None],
        expected.is_repeated[:, None],
        np.array([ALL_ATTEMPTS]),
        names,
    )
    problem, budget, pick = (axis.ravel() for axis in np.indices(expected.value.shape))
    status = expected.status[problem, pick]
    needs_answer = np.array([chosen.selector.needs_answer for chosen in picks])[pick]
    is_unanswered = needs_answer & (budgets[budget] <= expected.n_unanswered[problem])
    status = np.where(is_unanswered & (status == OK), UNDEFINED, status)
    status = np.where(expected.is_graded[problem] | (status != OK), status, NEVER_GRADED)
    status = np.where(expected.n_attempts[problem] < budgets[budget], SHORT, status)
    is_ok = status == OK
    columns: dict[str, pl.Series | pl.Expr] = {
        "budget": pl.Series(budgets[budget]),
        "subsets": pl.lit("all"),
        "selector": _of_picks([chosen.name for chosen in picks], pick),
        "reduction": _of_picks([chosen.reading and chosen.reading.name for chosen in picks], pick),
        "status": pl.Series(get_args(Status)).gather(status),
        "n_attempts": pl.Series(expected.n_attempts[problem]),
        "n_valid": pl.Series(expected.n_valid[problem]),
        "value": _where_ok(expected.value, is_ok),
        "monte_carlo_error": _where_ok(expected.error, is_ok),
    }
    dtypes = {**_COLUMNS, "answer_key": pools.key_dtype}
    null: pl.Series | pl.Expr = pl.lit(None)
    return pools.problems.select(pl.all().gather(pools.order[problem])).with_columns(**{
        name: columns.get(name, null).cast(dtype) for name, dtype in dtypes.items()
    })


def _with_threads_that_help(pools: Pools, settings: Settings) -> Pools:
    """Use one thread, unless problems are large and subsets of them are sampled."""
    is_sampled = any(
        pick.selector.best_of_k is None
        and (pick.selector.weighs_votes or not pick.selector.counts_votes)
        for pick in settings.picks
    )
    n_drawn = pools.rows.height * settings.sampling.n_subsets
    is_large = n_drawn >= _LARGE * pools.problems.height
    return pools if is_sampled and is_large else pools._replace(n_threads=1)


def _of_picks(values: Sequence[str | None], pick: Integers) -> pl.Series:
    """Return a value per row from one per pick."""
    return pl.Series(values, dtype=pl.String).gather(pick)


def _where_ok(values: Floats, is_ok: Flags) -> pl.Series:
    """Return values, null where the status is not ok."""
    return pl.Series(np.where(is_ok, values.ravel(), np.nan), nan_to_null=True)
