"""Early stopping, replayed on stored attempts: when the vote on a problem is decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_between,
    check_choice,
    check_fraction,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._exprs import in_order, raise_where, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers
from ttsframe.curves.adaptive import ALLOCATION, check_limits, select_allocated
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.pools import Block, Pools, map_pools, name_problem
from ttsframe.votes.selectors import majority_vote

__all__ = ["stopping_points", "tune_stopping"]

StoppingRule: TypeAlias = Literal["beta", "dirichlet", "early_stopping", "bayes_factor"]

_UNSEEN: Final = 0.3
"""Attempts that the answers not seen yet are worth in the Bayes factor, as in its published code."""

_N_NODES: Final = 128

_STOPPING: Final[dict[str, pl.DataType]] = {**ALLOCATION, "is_decided": pl.Boolean()}


class _Votes(NamedTuple):
    """The votes so far on the problems of a block."""

    ballots: Ballots
    of_answer: Integers
    lead: Integers
    """The leading answer of each problem."""
    first: Integers
    """Votes for the leading answer of each problem."""
    second: Integers


_Decides: TypeAlias = Callable[[_Votes, Integers], Flags]
"""Says which of some problems are decided."""


class _Rule(NamedTuple):
    """A row of the registry."""

    summary: str
    policy: str
    """The start of the names of selectors that run on the attempts used."""
    threshold: float
    thresholds: tuple[float, ...]
    """What is tried when a threshold is tuned."""
    decides: Callable[[float, int], _Decides] | None
    """None: windows of attempts, not votes, decide."""


def stopping_points(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int],
    rule: StoppingRule = "beta",
    threshold: float | None = None,
    by: ColumnNames = (),
) -> FrameT:
    r"""Find the attempt after which the vote on each problem is decided, so sampling could stop.

    The attempts at easy problems agree after a few, and the rest of the budget changes nothing.
    Replaying stored attempts shows what stopping early would have saved, and what it would have
    cost in accuracy.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `answer_key` (null: no answer, which costs an attempt but does not vote).
    budgets
        Maximum number of attempts at a problem, one or several.
    rule
        When a vote is decided, see the notes: "beta" and "dirichlet" (adaptive consistency),
        "early_stopping" (ESC), or "bayes_factor" (Best-of-infinity).
    threshold
        Of "beta" and "dirichlet", the posterior probability that must be exceeded, in (0, 1), by
        default 0.95; of "early_stopping" the number of attempts in a window, by default 5; of
        "bayes_factor" the factor to reach, greater than 0, by default 10.
    by
        Columns that identify a run.

    Returns
    -------
    FrameT
        One row per (by, `problem_id`, `budget`), sorted, as `select_allocated` reads it:

        - `policy` (String): "adaptive" for "beta", otherwise the rule;
        - `n_attempts` (UInt32): attempts until the decision, the budget if there is none;
        - `is_decided` (Boolean): whether the criterion was met within the budget.

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
    select_allocated : Select answers from these attempts; `cost_curve` and `charts.pareto_frontier`
        then show accuracy by cost, one line per rule.
    tune_stopping : Choose the threshold on other problems.

    Notes
    -----
    "beta": with :math:`v_1 \ge v_2` votes for the two leading answers,
    :math:`P(\mathrm{Beta}(v_1 + 1, v_2 + 1) > 1/2) > p`. For integers that probability is
    :math:`2^{-n} \sum_{j \le v_1} \binom{n}{j}` with :math:`n = v_1 + v_2 + 1`, which is compared
    exactly. At 0.95, four attempts that agree suffice.

    "dirichlet": the chance that the leading answer is the most likely one, under
    :math:`\mathrm{Dirichlet}(v_1 + 1, \dots, v_K + 1)` over the answers seen (with an unseen second one
    where all agree), is above p. With independent gamma variables it is an integral over one of them,

    .. math:: \Pi = \int_0^1 \prod_{j > 1} F_{v_j + 1}\bigl(F^{-1}_{v_1 + 1}(u)\bigr) \, du

    which a Gauss-Legendre rule of 128 nodes computes, in place of the paper's Monte Carlo.

    "bayes_factor": :math:`(s + 1) \, \Pi / (1 - \Pi) \ge B` with s different answers and
    :math:`\Pi` as above with one more category of weight :math:`0.3 + 1` for answers not seen yet. Weights
    and factor are those of the published code.

    "early_stopping": attempts are made in windows of w; sampling stops after a window whose attempts
    all gave the same answer.

    References
    ----------
    Aggarwal et al., "Let's Sample Step by Step: Adaptive-Consistency for Efficient Reasoning and
    Coding with LLMs", arXiv:2305.11860, section 3. Li et al., "Escape Sky-high Cost: Early-stopping
    Self-Consistency for Multi-step Reasoning", arXiv:2401.10480. Komiyama et al., "Best-of-infinity",
    arXiv:2509.21091.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["easy"] * 6 + ["hard"] * 6,
    ...     "attempt": [0, 1, 2, 3, 4, 5] * 2,
    ...     "answer_key": ["7"] * 6 + ["1", "2", "1", "3", "2", "1"],
    ... })
    >>> tts.curves.stopping_points(run, budgets=6).select("problem_id", "n_attempts", "is_decided").rows()
    [('easy', 4, True), ('hard', 6, False)]
    >>> windows = tts.curves.stopping_points(run, budgets=6, rule="early_stopping", threshold=3)
    >>> windows["n_attempts"].to_list()
    [3, 6]
    """
    check_frame(trajectories, "trajectories")
    limits = check_limits(budgets)
    check_choice(rule, "rule", get_args(StoppingRule))
    bound: float = _check_threshold(rule, threshold)
    taken = ("problem_id", "attempt", *_STOPPING)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    keys: list[str] = [*groups, "problem_id"]
    schema: pl.Schema = require_columns(trajectories, [*keys, "attempt", "answer_key"])
    caps = np.array(limits)

    def work(pools: Pools) -> pl.DataFrame:
        decides = STOPPING_RULES[rule].decides
        decide = None if decides is None else decides(bound, limits[-1])
        parts = pools.in_blocks(1, lambda block: _replay(block, caps, decide, bound))
        if not parts:
            parts = [(np.empty((0, len(caps)), np.int64), np.empty((0, len(caps)), bool))]
        used, decided = (np.concatenate(part)[pools.order] for part in zip(*parts, strict=True))
        if (used < 0).any():
            problem = int(pools.order[int(np.argwhere(used < 0)[0][0])])
            raise DataError(
                f"{name_problem(pools, problem, keys)}: an attempt appears twice. Hint: name the "
                "column that identifies the run in by=(...)."
            )
        of_problem, cap = (axis.ravel() for axis in np.indices(used.shape))
        columns: dict[str, pl.Series | pl.Expr] = {
            "budget": pl.Series(caps[cap]),
            "policy": pl.lit(STOPPING_RULES[rule].policy),
            "n_attempts": pl.Series(used.ravel()),
            "is_decided": pl.Series(decided.ravel()),
        }
        return pools.problems.select(pl.all().gather(pools.order[of_problem])).with_columns(**{
            name: columns[name].cast(dtype) for name, dtype in _STOPPING.items()
        })

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return map_pools(lazy, schema, keys=keys, readings=(), work=work, made=_STOPPING)

    return run_plan(trajectories, plan)


def _check_threshold(rule: StoppingRule, threshold: float | None) -> float:
    """Return the threshold of a rule, checked."""
    if threshold is None:
        return STOPPING_RULES[rule].threshold
    if rule == "early_stopping":
        if threshold < 1 or threshold != round(threshold):
            raise ParameterError(
                f"threshold == {threshold}, must be a whole number of attempts, at least 1."
            )
        return float(threshold)
    if rule == "bayes_factor":
        if not 0.0 < threshold < math.inf:
            raise ParameterError(f"threshold == {threshold}, must be greater than 0 and finite.")
        return float(threshold)
    return float(check_fraction(threshold, "threshold"))


def _by_beta(threshold: float, n_attempts: int) -> _Decides:
    """Compare the two leading answers, in exact arithmetic."""
    needed = np.array([*_decisive_votes(Fraction(threshold), n_attempts)], dtype=np.int64)

    def decides(votes: _Votes, problems: Integers) -> Flags:
        behind = votes.second[problems]
        is_over: Flags = votes.first[problems] >= needed[np.minimum(behind, len(needed) - 1)]
        return is_over & (behind < len(needed))

    return decides


def _decisive_votes(posterior: Fraction, n_attempts: int) -> Iterator[int]:
    """Yield how many votes are decisive against 0, 1, 2, ... votes for the second answer."""
    first, second = 0, 0
    n, term, total = 1, 1, 1
    # total: the sum of C(n, j) over j <= first; term: its last summand; n: first + second + 1.
    while first + second <= n_attempts:
        while total * posterior.denominator <= posterior.numerator << n:
            following = term * (n - first) // (first + 1)
            total, first, n = 2 * total + following, first + 1, n + 1
            term = term + following
        yield first
        total, second = 2 * total - term, second + 1
        n, term = n + 1, term * (n + 1) // (n + 1 - first)


def _by_dirichlet(threshold: float, _: int) -> _Decides:
    """Compare the leading answer with all others."""

    def decides(votes: _Votes, problems: Integers) -> Flags:
        chance, n_answers = _lead_chances(votes, problems, None)
        is_over: Flags = (chance > threshold) & (n_answers > 0)
        return is_over

    return decides


def _by_bayes_factor(threshold: float, _: int) -> _Decides:
    """Compare the leading answer with all others and with what was not seen yet."""

    def decides(votes: _Votes, problems: Integers) -> Flags:
        chance, n_answers = _lead_chances(votes, problems, _UNSEEN + 1.0)
        odds = (n_answers + 1.0) * chance
        is_over: Flags = (odds >= threshold * (1.0 - chance)) & (n_answers > 0)
        return is_over

    return decides


def _lead_chances(
    votes: _Votes, problems: Integers, unseen: float | None
) -> tuple[Floats, Integers]:
    """Return the chance that the leading answer is the most likely one, and the number of answers."""
    # `unseen` is the Dirichlet weight of one more category; None: 1 where there is no second answer.
    from scipy.special import gammainc

    ballots = votes.ballots
    position = np.full(len(ballots.problems), -1)
    position[problems] = np.arange(len(problems))
    answers = np.flatnonzero((position[ballots.answer_problem] >= 0) & (votes.of_answer > 0))
    group, count = position[ballots.answer_problem[answers]], votes.of_answer[answers]
    n_answers = np.bincount(group, minlength=len(problems))
    lead = votes.first[problems]
    numbers, which = np.unique(lead, return_inverse=True)
    points = np.array([_quantiles(int(number)) for number in numbers]).reshape(-1, _N_NODES)
    is_rival = answers != votes.lead[problems][group]
    rivals, of_rival = count[is_rival], group[is_rival]
    pairs, pair = np.unique(which[of_rival] * (1 << 32) + rivals, return_inverse=True)
    below = gammainc((pairs % (1 << 32) + 1.0)[:, None], points[pairs >> 32])
    product = np.ones((len(problems), _N_NODES))
    starts = np.flatnonzero(np.diff(of_rival, prepend=-1))
    if len(starts):
        product[of_rival[starts]] = np.multiply.reduceat(below[pair], starts, axis=0)
    if unseen is not None:
        product *= gammainc(unseen, points)[which]
    else:
        is_alone = n_answers == 1
        product[is_alone] = gammainc(1.0, points)[which[is_alone]]
    return product @ _quadrature()[1], n_answers


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    """Return the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


@lru_cache(maxsize=4096)
def _quantiles(lead: int) -> Floats:
    """Return the quantiles, at the nodes of the rule, of the gamma variable of `lead` votes."""
    from scipy.special import gammaincinv

    quantiles: Floats = gammaincinv(lead + 1.0, _quadrature()[0])
    return quantiles


STOPPING_RULES: Final[Mapping[StoppingRule, _Rule]] = MappingProxyType({
    "beta": _Rule(
        "the leader stays ahead of the second answer",
        "adaptive",
        0.95,
        (0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999),
        _by_beta,
    ),
    "dirichlet": _Rule(
        "the leader is the most likely of all answers",
        "dirichlet",
        0.95,
        (0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999),
        _by_dirichlet,
    ),
    "early_stopping": _Rule(
        "all answers in a window are equal (ESC)",
        "early_stopping",
        5.0,
        (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0),
        None,
    ),
    "bayes_factor": _Rule(
        "the odds of the leader, with answers not seen yet (Best-of-infinity)",
        "bayes_factor",
        10.0,
        (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0),
        _by_bayes_factor,
    ),
})
"""Every rule by name."""


def _replay(
    block: Block, caps: Integers, decide: _Decides | None, window: float
) -> tuple[Integers, Flags]:
    """Return the attempts that each problem uses within each budget, and whether it is decided."""
    n_problems = len(block.starts) - 1
    ballots = Ballots(block, caps, "score")
    used = np.broadcast_to(caps, (n_problems, len(caps))).copy()
    stop = np.full(len(ballots.problems), caps[-1] + 1)
    starts, n_rows = ballots.problem_starts, len(ballots.attempt)
    ends = np.append(starts[1:], n_rows)
    lead, first, second = (np.full(len(starts), fill) for fill in (-1, 0, 0))
    votes = _Votes(ballots, np.zeros(ballots.n_answers, np.int64), lead, first, second)
    agrees, of_window = np.ones(len(starts), bool), np.full(len(starts), -1)
    undecided = np.arange(len(starts))
    for seen in range(int((ends - starts).max(initial=0))):
        undecided = undecided[starts[undecided] + seen < ends[undecided]]
        row = starts[undecided] + seen
        answer = ballots.answer[row]
        voting = ballots.is_answer[answer]
        is_over = np.zeros(len(undecided), bool)
        if decide is None:
            place = seen % int(window)
            if place == 0:
                agrees[undecided], of_window[undecided] = True, answer
            agrees[undecided] &= voting & (answer == of_window[undecided])
            if place == int(window) - 1:
                is_over = agrees[undecided]
        else:
            problem, answer = undecided[voting], answer[voting]
            votes.of_answer[answer] += 1
            count = votes.of_answer[answer]
            is_lead = answer == lead[problem]
            overtakes = ~is_lead & (count > first[problem])
            runner_up = np.where(overtakes, first[problem], np.maximum(second[problem], count))
            second[problem] = np.where(is_lead, second[problem], runner_up)
            lead[problem] = np.where(overtakes, answer, lead[problem])
            first[problem] = np.where(is_lead | overtakes, count, first[problem])
            # Below a posterior of one half, a problem may be decided before anybody has voted.
            is_over[:] = decide(votes, undecided)
        stop[undecided[is_over]] = ballots.attempt[row[is_over]] + 1
        undecided = undecided[~is_over]
    decided = np.zeros(used.shape, bool)
    decided[ballots.problems] = stop[:, None] <= caps
    used[ballots.problems] = np.minimum(stop[:, None], caps)
    used[ballots.problems[ballots.is_repeated()[-1]]] = -1
    return used, decided


def tune_stopping(
    trajectories: FrameT,
    /,
    *,
    budget: int,
    rule: StoppingRule = "beta",
    thresholds: Sequence[float] | None = None,
    max_loss: float = 0.0,
    n_folds: int = 2,
    seed: int = 0,
    by: ColumnNames = (),
) -> FrameT:
    """Stop by the threshold that was cheapest on other problems without loss of accuracy there.

    A threshold that is chosen on the problems it is judged on saves more, and loses less, than it would
    on others. Few problems choose badly: on 30 AIME problems, a threshold that lost nothing on the 15
    others lost 1.8 points of accuracy on those it was scored on ("beta", mean of 11 models), and saved 91
    % of the tokens; the default lost .3 points and saved 77 % (`benchmarks/results/stopping.txt`).

    Parameters
    ----------
    trajectories
        As in `stopping_points`, with `is_correct`.
    budget
        Maximum number of attempts at a problem.
    rule
        As in `stopping_points`.
    thresholds
        Thresholds to choose from; None: seven between the careless and the careful, by rule.
    max_loss
        Accuracy that a threshold may lose on the other problems against the majority vote of the whole
        budget, in [0, 1].
    n_folds
        Number of folds of problems, at least 2; the threshold of each is chosen on the others.
    seed
        Seed of the folds, which depend on it and on the problems' ids only.
    by
        Columns that identify a run; each run chooses for itself.

    Returns
    -------
    FrameT
        As `stopping_points` at one budget, so `select_allocated` reads it, and last

        - `problem_fold` (UInt32): the fold of the problem, the same in all runs;
        - `threshold` (Float64): chosen on the other folds: of those that lose at most `max_loss` there,
          the one with the fewest attempts, with the higher accuracy where that is equal; of none, the one
          with the highest accuracy.

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
    stopping_points : The rules, at one threshold.
    select_allocated : Select answers from these attempts.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(100, 32, seed=0, keys=True)
    >>> points = tts.curves.tune_stopping(run, budget=32, max_loss=0.01)
    >>> sorted(set(points.select("problem_fold", "threshold").rows()))
    [(0, 0.8), (1, 0.8)]
    >>> problems = tts.curves.select_allocated(run, allocation=points)
    >>> problems.select(pl.col("value", "n_attempts").mean()).row(0)
    (0.83, 8.57)
    """
    check_frame(trajectories, "trajectories")
    cap = check_positive(budget, "budget")
    check_choice(rule, "rule", get_args(StoppingRule))
    tried: Sequence[float] = STOPPING_RULES[rule].thresholds if thresholds is None else thresholds
    bounds = [*dict.fromkeys(_check_threshold(rule, one) for one in tried)]
    if not bounds:
        raise ParameterError("thresholds is empty, must hold at least one.")
    loss = check_between(max_loss, "max_loss", 0.0, 1.0)
    if check_positive(n_folds, "n_folds") < 2:
        raise ParameterError(f"n_folds == {n_folds}, must be at least 2.")
    check_seed(seed)
    taken = ("problem_id", "attempt", *_STOPPING, "problem_fold", "threshold")
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    schema: pl.Schema = require_columns(
        trajectories, [*groups, "problem_id", "attempt", "answer_key", "is_correct"]
    )
    safe: dict[str, str] = safe_names(groups)
    runs: list[str] = [*safe]
    keys: list[str] = [*runs, "problem_id"]
    more = [name for name in ("gold_key", "gold") if name in schema]
    result = {
        **{key: schema[name] for key, name in safe.items()},
        "problem_id": schema["problem_id"],
        **_STOPPING,
        "problem_fold": pl.UInt32(),
        "threshold": pl.Float64(),
    }

    def tune(rows: pl.DataFrame) -> pl.DataFrame:
        points = [
            stopping_points(rows, budgets=cap, rule=rule, threshold=bound, by=runs).with_columns(
                threshold=pl.lit(bound)
            )
            for bound in bounds
        ]
        values = [
            _values(select_allocated(rows, allocation=of_bound, by=runs), keys).with_columns(
                threshold=pl.lit(bound)
            )
            for bound, of_bound in zip(bounds, points, strict=True)
        ]
        whole = _values(majority_vote(rows, budgets=cap, by=runs), keys).select(
            *keys, whole="value"
        )
        folds = assign_folds(rows["problem_id"], n_folds, seed)
        table = (
            pl
            .concat(points)
            .join(pl.concat(values), on=[*keys, "threshold"], how="left", nulls_equal=True)
            .join(whole, on=keys, how="left", nulls_equal=True)
            .join(folds, on="problem_id", how="left", nulls_equal=True)
        )
        chosen = [_choose(table, runs, fold, loss) for fold in range(n_folds)]
        on = [*runs, "problem_fold", "threshold"]
        return (
            table
            .join(pl.concat(chosen), on=on, how="semi", nulls_equal=True)
            .sort(*keys)
            .select(pl.col(name).cast(dtype) for name, dtype in result.items())
        )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        read = lazy.select(
            *to_safe(safe), "problem_id", "attempt", "answer_key", "is_correct", *more
        )
        tuned = read.filter(attempted_once(safe)).map_batches(tune, schema=result)
        return tuned.rename(safe)

    return run_plan(trajectories, plan)


def _values(problems: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the value of each problem, null unless its status is ok."""
    return problems.select(*keys, value=pl.when(pl.col("status") == "ok").then("value"))


def assign_folds(problems: pl.Series, n_folds: int, seed: int) -> pl.DataFrame:
    """Divide problems into folds of equal size, by a shuffle of their sorted ids."""
    ids = problems.unique().sort()
    fold = np.random.default_rng(seed).permutation(len(ids)) % n_folds
    return pl.DataFrame([ids, pl.Series("problem_fold", fold, dtype=pl.UInt32)])


def _choose(table: pl.DataFrame, groups: Sequence[str], fold: int, max_loss: float) -> pl.DataFrame:
    """Return the threshold of each run that is cheapest on the problems outside a fold."""
    known = pl.col("value").is_not_null() & pl.col("whole").is_not_null()
    n_used = pl.col("n_attempts").cast(pl.Int64)
    means = (
        table
        .filter(pl.col("problem_fold") != fold)
        .with_columns(run=pl.lit(0))
        .group_by(*groups, "run", "threshold")
        .agg(
            in_order(pl.col("value").filter(known)).list.sum().alias("right"),
            in_order(pl.col("whole").filter(known)).list.sum().alias("most"),
            known.sum().alias("n"),
            n_used.sum().alias("used"),
        )
        .with_columns(
            is_good=pl.col("right") >= pl.col("most") - max_loss * pl.col("n") - 1e-9,
        )
    )
    cost = pl.when("is_good").then("used")
    return (
        means
        .sort(
            *groups,
            ~pl.col("is_good"),
            cost,
            pl.col("right"),
            pl.col("used"),
            "threshold",
            descending=[False] * len(groups) + [False, False, True, False, False],
        )
        .group_by(*groups, "run", maintain_order=True)
        .first()
        .select(*groups, "threshold", problem_fold=pl.lit(fold, pl.UInt32))
    )


def attempted_once(keys: Mapping[str, str]) -> pl.Expr:
    """Build the filter that raises where an attempt at a problem appears twice."""

    def repeated(rows: pl.DataFrame) -> DataError:
        row = rows.sort([*keys, "problem_id"]).row(0, named=True)
        named = "".join(f"{name} {row[key]!r}, " for key, name in keys.items())
        return DataError(
            f"{named}problem_id {row['problem_id']!r}: an attempt appears twice. Hint: name the column "
            "that identifies the run in by=(...)."
        )

    n_rows = pl.len().over(*keys, "problem_id", "attempt")
    return raise_where(pl.struct((n_rows > 1).alias("broken"), *keys, "problem_id"), repeated)
