"""What selectors are expected to get right in a block of problems, over all subsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import SelectorName, Weights
from ttsframe.estimators.counting import best_of_draws
from ttsframe.votes.engine.pools import UNGRADED, Block, Flags, Floats, Integers
from ttsframe.votes.engine.registry import SELECTORS, Pick
from ttsframe.votes.engine.runs import attempt_order
from ttsframe.votes.expectation.subset_votes import Sampling, vote_accuracies

_CLOSED_FORMS: Final[Mapping[SelectorName, Callable[[Block, int], Floats]]] = MappingProxyType({
    "best_of_n": lambda drawn, reading: drawn.scores[reading],
    # The first of a random order is any of the valid ones: best-of-k by a score that ties them.
    "first_valid": lambda drawn, _: np.where(drawn.key > 0, 0.0, np.nan),
    # A perfect scorer makes best-of-k pass@k.
    "oracle": lambda drawn, _: drawn.grade.astype(np.float64),
})
"""The score by which a selector is best-of-k, whose expectation has a closed form."""


class Question(NamedTuple):
    """What is asked of all problems."""

    picks: tuple[Pick, ...]
    budgets: Integers
    weights: Weights
    sampling: Sampling


class Expected(NamedTuple):
    """What is known of a block.

    Arrays of (problem,): `n_attempts`, `n_valid`, `is_graded`, `is_repeated`; of (problem, pick):
    `flaw`, an index of `Status`; of (problem, budget, pick): `value` and `error`.
    """

    n_attempts: Integers
    n_valid: Integers
    is_graded: Flags
    is_repeated: Flags
    flaw: Integers
    value: Floats
    error: Floats


OK, SHORT, UNSCORED, UNDEFINED, NEVER_GRADED = range(5)
"""Indices of the names in `Status`."""


def expect(block: Block, names: Sequence[object], question: Question) -> Expected:
    """Expect what each selector gets right in a block of problems.

    Parameters
    ----------
    block
        Attempts.
    names
        What names each problem of all blocks, on which its random subsets depend.
    question
        What is asked.

    Returns
    -------
    Expected
        What is known of the block.
    """
    picks, budgets, weights, sampling = question
    drawn, is_graded, is_repeated = _drawn_from(block)
    lengths = np.diff(drawn.starts)
    problem = np.repeat(np.arange(len(lengths)), lengths)
    shape = len(lengths), len(budgets), len(picks)
    expected = Expected(
        n_attempts=lengths,
        n_valid=np.bincount(problem, drawn.key > 0, len(lengths)).astype(np.int64),
        is_graded=is_graded,
        is_repeated=is_repeated,
        flaw=np.stack([_flaw(drawn, problem, pick, weights) for pick in picks], axis=1),
        value=np.zeros(shape),
        error=np.zeros(shape),
    )
    grade = drawn.grade.astype(np.float64)
    others = []
    for i, pick in enumerate(picks):
        if pick.selector in _CLOSED_FORMS:
            score = _CLOSED_FORMS[pick.selector](drawn, pick.number)
            values, is_null = best_of_draws(grade, score, drawn.starts[1:], budgets)
            # Where no attempt has an answer, none is right.
            expected.value[:, :, i] = np.clip(np.where(is_null, 0.0, values), 0.0, 1.0).T
        else:
            others.append(i)
    for row in np.flatnonzero(is_graded).tolist():
        asked = [i for i in others if expected.flaw[row, i] == OK]
        n_known = int(np.searchsorted(budgets, lengths[row], side="right"))
        if not asked or not n_known:
            continue
        values, errors = vote_accuracies(
            _one_problem(drawn, row),
            names[block.first_problem + row],
            [picks[i] for i in asked],
            budgets[:n_known],
            weights=weights,
            sampling=sampling,
        )
        expected.value[row, :n_known, asked] = values
        expected.error[row, :n_known, asked] = errors
    return expected


def nothing(n_budgets: int, n_picks: int) -> Expected:
    """Return what is known where there is no problem.

    Parameters
    ----------
    n_budgets
        Number of budgets.
    n_picks
        Number of picks.

    Returns
    -------
    Expected
        Arrays without problems.
    """
    return Expected(
        n_attempts=np.zeros(0, np.int64),
        n_valid=np.zeros(0, np.int64),
        is_graded=np.zeros(0, bool),
        is_repeated=np.zeros(0, bool),
        flaw=np.zeros((0, n_picks), np.int64),
        value=np.zeros((0, n_budgets, n_picks)),
        error=np.zeros((0, n_budgets, n_picks)),
    )


def _drawn_from(block: Block) -> tuple[Block, Flags, Flags]:
    """Return what is drawn from; and of each problem, has it a grade, and a number twice."""
    n_problems = len(block.starts) - 1
    problem = np.repeat(np.arange(n_problems), np.diff(block.starts))
    rows = attempt_order(problem, block.attempt)
    attempt, key, grade = block.attempt[rows], block.key[rows], block.grade[rows]
    is_twin = (attempt[1:] == attempt[:-1]) & (problem[1:] == problem[:-1])
    is_repeated = np.bincount(problem[1:], is_twin, n_problems) > 0
    is_graded = np.bincount(problem, grade != UNGRADED, n_problems) > 0
    is_failure = (grade == UNGRADED) & (key == 0) & is_graded[problem]
    grade = np.where(is_failure, 0, grade).astype(np.int8)
    is_drawn = (grade != UNGRADED) | ~is_graded[problem]
    rows, n_drawn = rows[is_drawn], np.bincount(problem[is_drawn], minlength=n_problems)
    drawn = Block(
        first_problem=block.first_problem,
        first_row=block.first_row,
        starts=np.append(0, np.cumsum(n_drawn)),
        attempt=attempt[is_drawn],
        key=key[is_drawn],
        grade=grade[is_drawn],
        # Plus zero, so that minus zero is zero.
        scores=tuple(score[rows] + 0.0 for score in block.scores),
        texts=block.texts and block.texts.take(rows),
    )
    return drawn, is_graded, is_repeated


def _one_problem(drawn: Block, row: int) -> Block:
    """Cut one problem out of a block."""
    rows = slice(int(drawn.starts[row]), int(drawn.starts[row + 1]))
    return Block(
        first_problem=0,
        first_row=0,
        starts=drawn.starts[row : row + 2] - drawn.starts[row],
        attempt=drawn.attempt[rows],
        key=drawn.key[rows],
        grade=drawn.grade[rows],
        scores=tuple(score[rows] for score in drawn.scores),
        texts=drawn.texts and drawn.texts.take(rows),
    )


def _flaw(drawn: Block, problem: Integers, pick: Pick, weights: Weights) -> Integers:
    """Return the status of each problem under a pick, as far as its scores decide it."""
    selector = SELECTORS[pick.selector]
    n_problems = len(drawn.starts) - 1
    flaw = np.full(n_problems, OK)
    if not selector.reads_score:
        return flaw
    score = drawn.scores[pick.number]
    kind = weights if selector.weighs_votes else "softmax"
    if selector.is_defined is not None and kind != "sigmoid":
        is_undefined = np.isinf(score) | ((score < 0.0) & (kind == "score"))
        flaw[np.bincount(problem, is_undefined, n_problems) > 0] = UNDEFINED
    flaw[np.bincount(problem, ~np.isnan(score), n_problems) == 0] = UNSCORED
    return flaw
