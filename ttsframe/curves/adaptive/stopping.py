"""Stopping when a vote is decided, replayed on stored attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import (
    check_budgets,
    check_fraction,
    check_frame,
    check_names,
)
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, Integers
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.pools import Block, Pools, map_pools

__all__ = ["stopping_points"]

_MADE: Final[dict[str, pl.DataType]] = {
    "budget": pl.UInt32(),
    "policy": pl.String(),
    "n_attempts": pl.UInt32(),
    "is_decided": pl.Boolean(),
}


def stopping_points(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int],
    threshold: float = 0.95,
    by: ColumnNames = (),
) -> FrameT:
    r"""Find where a vote over attempts in their order is decided, so that sampling could stop.

    Easy problems agree after a few attempts, and the rest of their budget changes nothing. Stored
    attempts tell what stopping there would have saved, and what it would have cost in accuracy.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `answer_key` (null: no answer, which costs an attempt and is no vote).
    budgets
        Most attempts at a problem, one or several limits.
    threshold
        Sampling stops once the leading answer is ahead for good with more than this probability,
        in (0, 1).
    by
        Columns that tell runs apart.

    Returns
    -------
    FrameT
        One row per (by, `problem_id`, `budget`), sorted, as `select_allocated` reads it:

        - `policy` (String): "adaptive";
        - `n_attempts` (UInt32): attempts made by then, the budget where it was never decided;
        - `is_decided` (Boolean): whether the criterion stopped it, at the budget or before.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.
    DataError
        On collection, when a problem has an attempt twice.

    See Also
    --------
    select_allocated : Picks answers among these attempts.

    Notes
    -----
    With :math:`v_1 \ge v_2` votes for the two leading answers, the criterion is
    :math:`P(\mathrm{Beta}(v_1 + 1, v_2 + 1) > 1/2) > t`. For whole numbers that probability is the
    share :math:`2^{-n} \sum_{j \le v_1} \binom{n}{j}` with :math:`n = v_1 + v_2 + 1`, which is
    compared exactly. At 0.95, four attempts that agree are enough.

    References
    ----------
    Aggarwal et al., "Let's Sample Step by Step: Adaptive-Consistency for Efficient Reasoning and
    Coding with LLMs", arXiv:2305.11860, section 3.

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
    """
    check_frame(trajectories, "trajectories")
    limits = check_budgets(budgets)
    if limits is None:
        raise ParameterError("budgets is None, must hold at least one number of attempts.")
    exact = Fraction(check_fraction(threshold, "threshold"))
    taken = ("problem_id", "attempt", *_MADE)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    keys: list[str] = [*groups, "problem_id"]
    schema: pl.Schema = require_columns(trajectories, [*keys, "attempt", "answer_key"])
    caps = np.array(limits)

    def work(pools: Pools) -> pl.DataFrame:
        needed = _needed_votes(exact, limits[-1])
        parts = pools.in_blocks(1, lambda block: _replay(block, caps, needed))
        if not parts:
            parts = [(np.empty((0, len(caps)), np.int64), np.empty((0, len(caps)), bool))]
        used, decided = (np.concatenate(part)[pools.order] for part in zip(*parts, strict=True))
        if (used < 0).any():
            problem = pools.problems.row(int(pools.order[int(np.argwhere(used < 0)[0][0])]))
            raise DataError(
                f"{dict(zip(keys, problem, strict=True))}: an attempt is there twice. Hint: name the "
                "column that tells runs apart in by=(...)."
            )
        of_problem, cap = (axis.ravel() for axis in np.indices(used.shape))
        columns: dict[str, pl.Series | pl.Expr] = {
            "budget": pl.Series(caps[cap]),
            "policy": pl.lit("adaptive"),
            "n_attempts": pl.Series(used.ravel()),
            "is_decided": pl.Series(decided.ravel()),
        }
        return pools.problems.select(pl.all().gather(pools.order[of_problem])).with_columns(**{
            name: columns[name].cast(dtype) for name, dtype in _MADE.items()
        })

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return map_pools(lazy, schema, keys=keys, readings=(), work=work, made=_MADE)

    return run_plan(trajectories, plan)


def _needed_votes(threshold: Fraction, n_attempts: int) -> Integers:
    """Return how many votes decide against 0, 1, 2, ... of the runner-up."""
    return np.array([*_decisive(threshold, n_attempts)], dtype=np.int64)


def _decisive(threshold: Fraction, n_attempts: int) -> Iterator[int]:
    """Walk along the smallest decisive leads, with whole numbers alone."""
    first, second = 0, 0
    n, term, total = 1, 1, 1
    # total: the sum over j <= first of C(n, j); term: its last summand; n: first + second + 1.
    while first + second <= n_attempts:
        while total * threshold.denominator <= threshold.numerator << n:
            following = term * (n - first) // (first + 1)
            total, first, n = 2 * total + following, first + 1, n + 1
            term = term + following
        yield first
        total, second = 2 * total - term, second + 1
        n, term = n + 1, term * (n + 1) // (n + 1 - first)


def _replay(
    block: Block, caps: Integers, needed: Integers
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return how many attempts each problem uses within each budget, and whether it is decided."""
    n_problems = len(block.starts) - 1
    ballots = Ballots(block, caps, "score")
    used = np.broadcast_to(caps, (n_problems, len(caps))).copy()
    stop = np.full(len(ballots.problems), caps[-1] + 1)
    starts, n_rows = ballots.problem_starts, len(ballots.attempt)
    ends = np.append(starts[1:], n_rows)
    votes = np.zeros(ballots.n_answers, np.int64)
    lead, first, second = (np.full(len(starts), fill) for fill in (-1, 0, 0))
    live = np.arange(len(starts))
    for seen in range(int((ends - starts).max(initial=0))):
        live = live[starts[live] + seen < ends[live]]
        row = starts[live] + seen
        answer = ballots.answer[row]
        voting = ballots.is_answer[answer]
        problem, answer = live[voting], answer[voting]
        votes[answer] += 1
        count = votes[answer]
        is_lead = answer == lead[problem]
        overtakes = ~is_lead & (count > first[problem])
        runner_up = np.where(overtakes, first[problem], np.maximum(second[problem], count))
        second[problem] = np.where(is_lead, second[problem], runner_up)
        lead[problem] = np.where(overtakes, answer, lead[problem])
        first[problem] = np.where(is_lead | overtakes, count, first[problem])
        behind = second[live]
        is_over = first[live] >= needed[np.minimum(behind, len(needed) - 1)]
        is_over &= behind < len(needed)
        stop[live[is_over]] = ballots.attempt[row[is_over]] + 1
        live = live[~is_over]
    decided = np.zeros(used.shape, bool)
    decided[ballots.problems] = stop[:, None] <= caps
    used[ballots.problems] = np.minimum(stop[:, None], caps)
    used[ballots.problems[ballots.is_repeated()[-1]]] = -1
    return used, decided
