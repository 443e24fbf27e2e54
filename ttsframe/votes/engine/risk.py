"""Picks of minimum Bayes risk: the answer that is most similar to all answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ttsframe._typing import Floats, Integers, Utility
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.runs import run_lengths, run_starts
from ttsframe.votes.engine.tokens import Tokens
from ttsframe.votes.engine.winners import Winners, pick_heaviest

_MAX_CELLS: Final = 1 << 21
"""Largest number of elements of a matrix of tokens, or of pairs of them."""


def pick_least_risk(ballots: Ballots, _: int, *, utility: Utility = "token_f1") -> Winners:
    """Pick the answer with the highest sum of utilities over the answers of all attempts."""
    votes = np.where(ballots.is_answer, ballots.votes, 0).astype(np.float64)
    gains = votes
    if utility == "token_f1":
        if ballots.texts is None:
            raise TypeError("the texts of answers were not read")
        gains = _token_f1(ballots, ballots.texts, votes)
    return pick_heaviest(ballots, gains, ballots.first_row)


def _token_f1(ballots: Ballots, texts: Tokens, votes: Floats) -> Floats:
    """Sum the F1 of each answer with the answers of all attempts, as a matrix of answers."""
    # The F1 of two texts is twice the number of shared tokens over the sum of their lengths. For one
    # token, all texts of equal length that have it contribute the same, so the sum runs over pairs
    # of lengths per token, not over pairs of answers.
    text = np.where(ballots.is_answer, texts.text[ballots.first_row], -1)
    begin = texts.starts[text]
    length = np.where(text < 0, 0, texts.starts[text + 1] - begin)
    shared = np.zeros(len(length), np.int64)
    gains = np.zeros_like(votes)
    for first, last in _split_answers(ballots, length):
        lengths = length[first:last]
        answer = np.repeat(np.arange(first, last), lengths)
        nth = np.arange(len(answer)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        token = texts.token[begin[answer] + nth]
        problem = ballots.answer_problem[answer]
        order = np.lexsort((length[answer], token, problem))
        answer, token, problem = answer[order], token[order], problem[order]
        is_new = np.ones(len(answer), bool)
        is_new[1:] = (token[1:] != token[:-1]) | (problem[1:] != problem[:-1])
        group = np.cumsum(is_new) - 1
        # A token that no other answer has contributes the votes of its own answer.
        is_shared = np.bincount(group)[group] > 1
        answer, group = answer[is_shared], group[is_shared]
        if len(answer):
            shared += np.bincount(answer, minlength=len(length))
            _add_shared(gains, votes, answer, group, length)
    unshared = np.where(length > 0, (length - shared) / np.maximum(length, 1), 1.0)
    return gains + votes * unshared


def _split_answers(ballots: Ballots, length: Integers) -> Iterator[tuple[int, int]]:
    """Split the answers between problems so that a matrix of the tokens of a part is small."""
    ends = np.append(ballots.answer_starts[1:], len(length))
    n_tokens = np.cumsum(length)[ends - 1]
    most = max(_MAX_CELLS // len(ballots.budgets), 1)
    first, before, done = 0, 0, 0
    while done < len(ends):
        fitting = int(np.searchsorted(n_tokens, before + most, side="right"))
        done = max(fitting, done + 1)
        last = int(ends[done - 1])
        yield first, last
        first, before = last, int(n_tokens[done - 1])


def _add_shared(
    gains: Floats, votes: Floats, answer: Integers, group: Integers, length: Integers
) -> None:
    """Add to `gains` what shared tokens contribute; these are sorted by group and length."""
    of_entry = length[answer]
    is_new = np.ones(len(answer), bool)
    is_new[1:] = (group[1:] != group[:-1]) | (of_entry[1:] != of_entry[:-1])
    cells = np.flatnonzero(is_new)
    cell_of_entry = np.cumsum(is_new) - 1
    cell_length, cell_group = of_entry[cells].astype(np.float64), group[cells]
    weight = np.add.reduceat(votes[:, answer], cells, axis=1)
    starts = run_starts(cell_group)
    sizes = run_lengths(starts, len(cells))
    n_others = np.repeat(sizes, sizes)
    gain = np.empty_like(weight)
    for first, last in _split_sizes(n_others, max(_MAX_CELLS // len(votes), 1)):
        n = n_others[first:last]
        cell = np.repeat(np.arange(first, last), n)
        begins = np.cumsum(n) - n
        other = np.repeat(np.repeat(starts, sizes)[first:last] - begins, n) + np.arange(len(cell))
        factor = 2.0 / (cell_length[cell] + cell_length[other])
        gain[:, first:last] = np.add.reduceat(weight[:, other] * factor, begins, axis=1)
    for budget, of_cell in enumerate(gain):
        gains[budget] += np.bincount(answer, of_cell[cell_of_entry], len(length))


def _split_sizes(sizes: Integers, most: int) -> Iterator[tuple[int, int]]:
    """Split sizes into parts whose sums are at most a limit, or single ones above it."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        last = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
        yield first, last
        first, before = last, int(ends[last - 1])
