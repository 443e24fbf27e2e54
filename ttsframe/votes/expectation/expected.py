"""Expected accuracy of selectors in a block of problems, over all subsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ttsframe._typing import Flags, Floats, Integers, Weights
from ttsframe.estimators.counting import best_of_draws
from ttsframe.votes.engine.ballots import weigh
from ttsframe.votes.engine.pools import UNGRADED, Block
from ttsframe.votes.engine.registry import Pick
from ttsframe.votes.engine.runs import attempt_order
from ttsframe.votes.expectation.subset_votes import Sampling, vote_accuracies


class Settings(NamedTuple):
    """The parameters of `expected_accuracy`, checked."""

    picks: tuple[Pick, ...]
    budgets: Integers
    weights: Weights
    sampling: Sampling


class Expected(NamedTuple):
    """Results of a block: arrays of (problem,), unless stated otherwise."""

    n_attempts: Integers
    n_valid: Integers
    is_graded: Flags
    is_repeated: Flags
    status: Integers
    """Index in `Status`, (problem, pick)."""
    n_unanswered: Integers
    """Size of the largest subset that may be right without any answer; 0 for none."""
    value: Floats
    """(problem, budget, pick)."""
    error: Floats
    """(problem, budget, pick)."""


OK, SHORT, UNSCORED, UNDEFINED, NEVER_GRADED = range(5)
"""Indices of the names in `Status`."""


def compute_expected(block: Block, names: Sequence[object], settings: Settings) -> Expected:
    """Compute the expected accuracy of each selector; `names` identify the problems of all blocks."""
    picks, budgets, weights, sampling = settings
    drawn, is_graded, is_repeated = _attempts_to_draw(block)
    lengths = np.diff(drawn.starts)
    problem = np.repeat(np.arange(len(lengths)), lengths)
    shape = len(lengths), len(budgets), len(picks)
    expected = Expected(
        n_attempts=lengths,
        n_valid=np.bincount(problem, drawn.key > 0, len(lengths)).astype(np.int64),
        is_graded=is_graded,
        is_repeated=is_repeated,
        status=np.stack([_status(drawn, problem, pick, weights) for pick in picks], axis=1),
        n_unanswered=_n_unanswered(drawn, problem),
        value=np.zeros(shape),
        error=np.zeros(shape),
    )
    grade = drawn.grade.astype(np.float64)
    others = []
    for i, pick in enumerate(picks):
        best_of_k = pick.selector.best_of_k
        if best_of_k is not None:
            score = best_of_k(drawn, pick.number)
            values, is_null = best_of_draws(grade, score, drawn.starts[1:], budgets)
            # Without any answer no attempt is correct.
            expected.value[:, :, i] = np.clip(np.where(is_null, 0.0, values), 0.0, 1.0).T
        else:
            others.append(i)
    for row in np.flatnonzero(is_graded).tolist():
        defined = [i for i in others if expected.status[row, i] == OK]
        n_known = int(np.searchsorted(budgets, lengths[row], side="right"))
        if not defined or not n_known:
            continue
        values, errors = vote_accuracies(
            _one_problem(drawn, row),
            names[block.first_problem + row],
            [picks[i] for i in defined],
            budgets[:n_known],
            weights=weights,
            sampling=sampling,
        )
        expected.value[row, :n_known, defined] = values
        expected.error[row, :n_known, defined] = errors
    return expected


def empty_expected(n_budgets: int, n_picks: int) -> Expected:
    """Return results without problems."""
    return Expected(
        n_attempts=np.zeros(0, np.int64),
        n_valid=np.zeros(0, np.int64),
        is_graded=np.zeros(0, bool),
        is_repeated=np.zeros(0, bool),
        status=np.zeros((0, n_picks), np.int64),
        n_unanswered=np.zeros(0, np.int64),
        value=np.zeros((0, n_budgets, n_picks)),
        error=np.zeros((0, n_budgets, n_picks)),
    )


def _attempts_to_draw(block: Block) -> tuple[Block, Flags, Flags]:
    """Return the sorted attempts to draw from, and which problems are graded, or have duplicates."""
    n_problems = len(block.starts) - 1
    problem = np.repeat(np.arange(n_problems), np.diff(block.starts))
    rows = attempt_order(problem, block.attempt)
    attempt, grade = block.attempt[rows], block.grade[rows]
    is_duplicate = (attempt[1:] == attempt[:-1]) & (problem[1:] == problem[:-1])
    is_repeated = np.bincount(problem[1:], is_duplicate, n_problems) > 0
    is_graded = np.bincount(problem, grade != UNGRADED, n_problems) > 0
    is_drawn = (grade != UNGRADED) | ~is_graded[problem]
    n_drawn = np.bincount(problem[is_drawn], minlength=n_problems)
    drawn = block.take(rows[is_drawn], np.append(0, np.cumsum(n_drawn)))._replace(
        first_problem=block.first_problem,
        first_row=block.first_row,
        is_answerless=block.is_answerless,
    )
    # Adding zero turns minus zero into zero.
    return (
        drawn._replace(scores=tuple(score + 0.0 for score in drawn.scores)),
        is_graded,
        is_repeated,
    )


def _one_problem(drawn: Block, number: int) -> Block:
    """Return the attempts at one problem."""
    start, stop = drawn.starts[number : number + 2].tolist()
    return drawn.take(slice(start, stop), np.array([0, stop - start]))


def _n_unanswered(drawn: Block, problem: Integers) -> Integers:
    """Count the attempts without an answer, 0 where none of them is right."""
    is_unanswered = drawn.key == 0
    n_problems = len(drawn.starts) - 1
    n_right = np.bincount(problem, is_unanswered & (drawn.grade == 1), n_problems)
    n_unanswered = np.bincount(problem, is_unanswered, n_problems)
    return np.where(n_right > 0, n_unanswered, 0).astype(np.int64)


def _status(drawn: Block, problem: Integers, pick: Pick, weights: Weights) -> Integers:
    """Return the status of each problem as far as it is the same at all budgets."""
    selector = pick.selector
    n_problems = len(drawn.starts) - 1
    status = np.full(n_problems, OK)
    if selector.needs_answer and drawn.is_answerless is not None:
        is_graded = np.bincount(problem, drawn.grade != UNGRADED, n_problems) > 0
        status[drawn.is_answerless & is_graded] = UNDEFINED
    if not selector.reads_score:
        return status
    score = drawn.scores[pick.number]
    kind = selector.weights_of(weights)
    if kind is not None:
        total = np.bincount(problem, weigh(score, kind), n_problems)
        status[~np.isfinite(total)] = UNDEFINED
    status[np.bincount(problem, ~np.isnan(score), n_problems) == 0] = UNSCORED
    return status
