"""Curves of estimators over k in one call, and the limit of majority votes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_between,
    check_choice,
    check_draws,
    check_fraction,
    check_frame,
    check_names,
)
from ttsframe._exprs import from_safe, run_plan, safe_names, to_safe, unused_name
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers
from ttsframe._wording import count_left_out
from ttsframe.curves.scaling import scaling_curve, scaling_curve_with
from ttsframe.errors import ParameterError
from ttsframe.estimators.failures import grade_failures
from ttsframe.estimators.passk import g_pass_at_k, pass_at_k, pass_hat_k
from ttsframe.schema import CLUSTER_COLUMNS, holds_counts, require_columns
from ttsframe.statistics.clusters import check_cluster, in_one_cluster
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.picked import ALL_ATTEMPTS, check_one_run
from ttsframe.votes.engine.pools import Block, Pools, map_pools
from ttsframe.votes.engine.registry import pick_majority
from ttsframe.votes.engine.winners import share_right
from ttsframe.votes.expectation import expected_accuracy

__all__ = ["estimator_curve", "majority_limit"]

EstimatorName: TypeAlias = Literal["pass@k", "pass^k", "g_pass@k", "maj@k"]

_OfGrades: TypeAlias = Callable[[pl.Expr, Sequence[int], float, pl.Expr | None], pl.Expr]

ESTIMATORS_AT_K: Final[Mapping[EstimatorName, _OfGrades | None]] = MappingProxyType({
    "pass@k": lambda grade, k, _, n: pass_at_k(grade, k, n_attempts=n),
    "pass^k": lambda grade, k, _, n: pass_hat_k(grade, k, n_attempts=n),
    "g_pass@k": lambda grade, k, tau, n: g_pass_at_k(grade, k, tau=tau, n_attempts=n),
    "maj@k": None,
})
"""How each estimator follows from the grades of a problem; None: from its answers."""

_LIMIT: Final[dict[str, type[pl.DataType]]] = {
    "accuracy": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_problems": pl.UInt32,
    "n_left_out": pl.UInt32,
    "n_tied": pl.UInt32,
    "n_undecided": pl.UInt32,
    "accuracy_if_undecided_wrong": pl.Float64,
    "accuracy_if_undecided_right": pl.Float64,
}


def estimator_curve(
    trajectories: FrameT,
    /,
    *,
    estimators: EstimatorName | Sequence[EstimatorName] = (
        "pass@k",
        "pass^k",
        "g_pass@k",
        "maj@k",
    ),
    k: int | Sequence[int],
    tau: float = 0.5,
    by: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
) -> FrameT:
    """Estimate pass@k, pass^k, G-Pass@k and maj@k of a run, with intervals, in one call.

    `charts.scaling_curve` draws the table. On thinned counts of real models the intervals for new
    problems held the truth in 94.5 to 99.6 % of runs, in 89.5 % for the worst model
    (`benchmarks/results/estimators_at_k.txt`).

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id` and `is_correct`; "maj@k" needs `attempt` and
        `answer_key` too. Or a table of counts (`n_attempts`, `n_correct`), for all but "maj@k".
    estimators
        "pass@k": any of k attempts is right; "pass^k": all are; "g_pass@k": at least a share `tau`;
        "maj@k": the majority vote of k attempts.
    k
        Numbers of attempts drawn, one or several.
    tau
        Share of "g_pass@k", in [0, 1].
    by
        Columns that define separate curves, for example the model.
    cluster
        As in `scaling_curve`.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, as in `scaling_curve`: `selector` is the estimator, `budget` is k, `subsets` "all". A
        problem with fewer than k graded attempts is in `n_short` at all k of the estimator.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range, or maj@k is asked of a table of counts.

    See Also
    --------
    scaling_curve : Intervals of any table of problems, with the rules of these.
    majority_limit : Where maj@k goes as k grows.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 16, seed=0, keys=True)
    >>> curve = tts.curves.estimator_curve(run, k=8)
    >>> curve.select("selector", pl.col("accuracy", "ci_low", "ci_high").round(3)).rows()[1]
    ('maj@k', 0.744, 0.671, 0.817)
    """
    check_frame(trajectories, "trajectories")
    draws: tuple[int, ...] = check_draws(k)
    check_between(tau, "tau", 0.0, 1.0)
    check_fraction(confidence_level, "confidence_level")
    named: tuple[EstimatorName, ...] = (
        (estimators,) if isinstance(estimators, str) else tuple(dict.fromkeys(estimators))
    )
    if not named:
        raise ParameterError("estimators is empty, must name at least one estimator.")
    for name in named:
        check_choice(name, "estimators", get_args(EstimatorName))
    own = {"problem_id", "estimator", "n_graded"}
    groups: tuple[str, ...] = check_names(by, "by", taken=own)
    clusters: tuple[str, ...] = () if cluster is None else (cluster,)
    keys: list[str] = [*groups, *clusters, "problem_id"]
    schema: pl.Schema = trajectories.collect_schema()
    of_counts: bool = holds_counts(schema)
    if of_counts and "maj@k" in named:
        raise ParameterError(
            "estimators names 'maj@k', which counts of correct attempts do not tell: it depends on the "
            "answers. Hint: estimators=('pass@k', 'pass^k', 'g_pass@k')."
        )
    require_columns(
        trajectories, [*keys, *(("n_attempts", "n_correct") if of_counts else ("is_correct",))]
    )
    unique = [*dict.fromkeys(draws)]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        parts = [
            _of_grades(lazy, keys, name, _with(estimate, unique, tau), unique)
            for name in named
            if (estimate := ESTIMATORS_AT_K[name]) is not None
        ]
        if "maj@k" in named:
            votes = expected_accuracy(
                lazy, selectors="majority_vote", budgets=unique, by=[*groups, *clusters]
            )
            parts.append(
                votes.with_columns(selector=pl.lit("maj@k")).select(
                    *keys, "budget", "selector", "value", "status"
                )
            )
        problems = pl.concat(parts).with_columns(
            reduction=pl.lit(None, pl.String), subsets=pl.lit("all")
        )
        return scaling_curve(
            problems, by=groups, cluster=cluster, confidence_level=confidence_level
        )

    return run_plan(trajectories, plan)


def _with(
    estimate: _OfGrades, draws: Sequence[int], tau: float
) -> Callable[[pl.Expr, pl.Expr | None], pl.Expr]:
    """Fix k and tau of an estimator."""
    return lambda grade, n: estimate(grade, draws, tau, n)


def _of_grades(
    lazy: pl.LazyFrame,
    keys: Sequence[str],
    name: str,
    estimate: Callable[[pl.Expr, pl.Expr | None], pl.Expr],
    draws: Sequence[int],
) -> pl.LazyFrame:
    """Estimate from the grades of each problem, one row per problem and k."""
    schema = lazy.collect_schema()
    if holds_counts(schema):
        n = pl.col("n_attempts")
        rows = lazy.select(
            *keys,
            n_graded=n.fill_null(0).cast(pl.Int64),
            estimator=estimate(pl.col("n_correct"), n),
        )
    else:
        grade = pl.col("is_correct")
        if "answer_key" in schema:
            grade = grade_failures("is_correct", "answer_key")
        rows = lazy.group_by(keys).agg(
            n_graded=grade.count().cast(pl.Int64), estimator=estimate(grade, None)
        )
    budget = pl.col("budget")
    status = (
        pl
        .when(pl.col("n_graded") == 0)
        .then(pl.lit("ungraded"))
        .when(pl.col("n_graded") < budget)
        .then(pl.lit("short"))
        .otherwise(pl.lit("ok"))
    )
    return (
        rows
        .with_columns(
            value=pl.concat_list(
                pl.col("estimator").struct.field(field)
                for field in [f"{name.removesuffix('k')}{draw}" for draw in draws]
            ),
            budget=pl.lit([*draws], pl.List(pl.UInt32)),
        )
        .explode("value", "budget", empty_as_null=False)
        .select(*keys, "budget", selector=pl.lit(name), value="value", status=status)
    )


def majority_limit(
    trajectories: FrameT,
    /,
    *,
    by: ColumnNames = (),
    cluster: str | None = None,
    posterior: float = 0.95,
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Estimate where majority votes go as attempts grow: the share of problems whose mode is right.

    With many attempts the majority vote gives a problem's most likely answer. The most frequent answer
    of the n attempts stands for it here, which makes this maj@n, not yet the limit: too high where
    wrong answers that are in truth most likely are still behind, too low in the opposite case.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt`, `answer_key` and `is_correct`.
    by
        Columns that tell runs apart; each run gets a row.
    cluster
        As in `scaling_curve`.
    posterior
        Problems whose leading answer is ahead of the second with at most this posterior probability
        count as undecided, in (0, 1).
    confidence_level
        Coverage of the interval of the share, in (0, 1).

    Returns
    -------
    FrameT
        One row per combination of `by`, sorted:

        - `accuracy` (Float64): share of problems whose most frequent answer is right, ties shared;
        - `standard_error`, `ci_low`, `ci_high` (Float64): over problems, as in `scaling_curve`, of what
          as many attempts give at new problems; they do not contain the bias;
        - `n_problems`, `n_left_out` (UInt32): problems that are graded, and the others;
        - `n_tied`, `n_undecided` (UInt32): problems whose most frequent answers are tied, and those that
          are not decided;
        - `accuracy_if_undecided_wrong`, `accuracy_if_undecided_right` (Float64): the share if the mode
          of every undecided problem is wrong, or right: how far the bias can reach;
        - `n_clusters` (UInt32), `df` (Float64): as in `scaling_curve`, only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range or `by` names a column of the result.
    DataError
        On collection, when an attempt at a problem appears twice.

    See Also
    --------
    estimator_curve : Estimates maj@k for finite k, without bias.
    stopping_points : Documents the rule by which a problem counts as decided.

    Notes
    -----
    For problem q let :math:`a_q` be the answer with the largest chance. The limit is the mean of
    :math:`1[a_q \text{ is right}]`; the estimate takes the mode of the n observed answers, and its
    expectation is maj@n. A problem is decided if
    :math:`P(\mathrm{Beta}(v_1 + 1, v_2 + 1) > 1/2)` is above `posterior`. Measured biases:
    `benchmarks/results/estimators_at_k.txt`.

    References
    ----------
    Best-of-infinity: Komiyama et al., arXiv:2509.21091, on the limit. Aggarwal et al., "Let's Sample
    Step by Step", arXiv:2305.11860, section 3, on the criterion.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 64, seed=0, keys=True)
    >>> tts.curves.majority_limit(run).select("accuracy", "n_undecided").row(0)
    (0.825, 22)
    """
    check_frame(trajectories, "trajectories")
    check_fraction(confidence_level, "confidence_level")
    check_fraction(posterior, "posterior")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_LIMIT, "problem_id"})
    clusters: tuple[str, ...] = check_cluster(cluster, {*_LIMIT, "problem_id"}, groups)
    keys: list[str] = [*groups, *clusters, "problem_id"]
    schema: pl.Schema = require_columns(
        trajectories, [*keys, "attempt", "answer_key", "is_correct"]
    )
    modes_dtypes: dict[str, pl.DataType] = {
        "value": pl.Float64(),
        "is_tied": pl.Boolean(),
        "is_undecided": pl.Boolean(),
    }
    safe: dict[str, str] = safe_names(groups)
    made: dict[str, pl.DataType] = {
        unused_name(name, schema): dtype for name, dtype in modes_dtypes.items()
    }

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        modes = map_pools(
            lazy,
            schema,
            keys=keys,
            readings=(),
            work=lambda pools: _modes(pools, posterior, keys, [*made]),
            made=made,
        )
        value, is_tied, is_undecided = (pl.col(name) for name in modes_dtypes)
        problems = modes.select(
            *to_safe(safe),
            "problem_id",
            *(pl.col(name).alias("cluster") for name in clusters),
            **{name: pl.col(own) for name, own in zip(modes_dtypes, made, strict=True)},
        ).with_columns(
            status=pl.when(value.is_null()).then(pl.lit("ungraded")).otherwise(pl.lit("ok")),
            selector=pl.lit("majority_vote"),
            reduction=pl.lit(None, pl.String),
            budget=pl.lit(None, pl.UInt32),
        )
        if clusters:
            unit = safe | {"problem_id": "problem_id"}
            n_clusters = pl.col("cluster").n_unique().over(*unit)
            problems = problems.with_columns(n_clusters=n_clusters).filter(
                in_one_cluster(unit, clusters[0])
            )
        shares = {
            "n_tied": is_tied.cast(pl.Float64),
            "n_undecided": is_undecided.cast(pl.Float64),
            "surely": pl.when(is_undecided).then(0.0).otherwise(value),
        }
        curve = scaling_curve_with(
            problems,
            shares,
            by=[*safe],
            replicates=(),
            cluster="cluster" if clusters else None,
            include="common",
            confidence_level=confidence_level,
        )
        counts = (pl.col("n_tied", "n_undecided") * pl.col("n_problems")).round().fill_null(0)
        return (
            curve
            .sort(*safe, "n_problems")
            .with_columns(
                counts,
                count_left_out(),
                accuracy_if_undecided_wrong="surely",
                accuracy_if_undecided_right=pl.col("surely") + pl.col("n_undecided"),
            )
            .select(
                *from_safe(safe),
                *[pl.col(name).cast(dtype) for name, dtype in _LIMIT.items()],
                *(CLUSTER_COLUMNS if clusters else ()),
            )
        )

    return run_plan(trajectories, plan)


def _modes(
    pools: Pools, posterior: float, keys: Sequence[str], names: Sequence[str]
) -> pl.DataFrame:
    """Return for each problem whether its most frequent answer is right, and whether it is certain."""
    from scipy.special import betainc

    caps = np.array([ALL_ATTEMPTS])

    def of_block(block: Block) -> tuple[Floats, Flags, Flags, Integers, Flags]:
        n_problems = len(block.starts) - 1
        value = np.full(n_problems, np.nan)
        is_tied, is_undecided = np.zeros(n_problems, bool), np.ones(n_problems, bool)
        n_attempts, is_repeated = np.zeros(n_problems, np.int64), np.zeros(n_problems, bool)
        ballots = Ballots(block, caps, "score")
        if not len(ballots.problems):
            return value, is_tied, is_undecided, n_attempts, is_repeated
        right = share_right(ballots, pick_majority(ballots, 0))[0]
        votes = np.where(ballots.is_answer, ballots.votes[0], 0)
        starts, problem = ballots.answer_starts, ballots.answer_problem
        first = np.maximum.reduceat(votes, starts)
        leads = votes == first[problem]
        tied = np.add.reduceat(leads.astype(np.int64), starts) > 1
        others = np.maximum.reduceat(np.where(leads, 0, votes), starts)
        second = np.where(tied, first, others)
        known = ballots.is_graded()[0] & ~ballots.is_unanswerable()[0]
        value[ballots.problems] = np.where(known, right, np.nan)
        is_tied[ballots.problems] = tied & (first > 0)
        ahead = 1.0 - betainc(first + 1.0, second + 1.0, 0.5)
        is_undecided[ballots.problems] = ~(ahead > posterior)
        n_attempts[ballots.problems] = ballots.n_attempts[0]
        is_repeated[ballots.problems] = ballots.is_repeated()[0]
        return value, is_tied, is_undecided, n_attempts, is_repeated

    parts = pools.in_blocks(1, of_block)
    empty = np.empty(0)
    if not parts:
        parts = [
            (
                empty,
                empty.astype(bool),
                empty.astype(bool),
                empty.astype(np.int64),
                empty.astype(bool),
            )
        ]
    value, is_tied, is_undecided, n_attempts, is_repeated = (
        np.concatenate(part)[pools.order] for part in zip(*parts, strict=True)
    )
    check_one_run(pools, n_attempts[:, None], is_repeated[:, None], caps, keys)
    return pools.problems.select(pl.all().gather(pools.order)).with_columns(
        pl.Series(names[0], value, nan_to_null=True),
        pl.Series(names[1], is_tied),
        pl.Series(names[2], is_undecided),
    )
