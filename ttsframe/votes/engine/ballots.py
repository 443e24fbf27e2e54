"""Votes and weights of the answers in a block of problems, at every budget at once.

Rows are attempts in order of (problem, attempt), so that the smallest row is the earliest attempt.
An attempt's bucket is the first budget that includes it. Each (answer, bucket) is added up once, and
buckets cumulate into budgets: the work over attempts does not grow with the number of budgets.

Matrices have a row per budget, and a column per answer or per problem.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from ttsframe._typing import Weights
from ttsframe.votes.engine.pools import UNGRADED, Block, Flags, Floats, Integers
from ttsframe.votes.engine.runs import (
    attempt_order,
    cumulate_scaled,
    run_lengths,
    run_starts,
    stable_order,
)

NONE: Final = -1
"""Instead of a row or an answer, where there is none."""

NEVER: Final = np.iinfo(np.int64).max
"""A row beyond all."""


class Ballots:
    """The attempts of a block that are within the last budget, and what follows from them.

    Problems without any such attempt are left out; `problems` numbers the others in the block.
    Answers are numbered by problem and first attempt; no answer at all counts as one more of them.

    Parameters
    ----------
    block
        Attempts.
    budgets
        Ascending numbers of attempts.
    weights
        What a vote weighs.
    """

    def __init__(self, block: Block, budgets: Integers, weights: Weights) -> None:
        self.budgets = budgets
        self.kind = weights
        problem = np.repeat(np.arange(len(block.starts) - 1), np.diff(block.starts))
        is_earlier = block.attempt[1:] <= block.attempt[:-1]
        rows: Integers | slice = slice(None)
        if (is_earlier & (problem[1:] == problem[:-1])).any():
            rows = attempt_order(problem, block.attempt)
        within = block.attempt[rows] < budgets[-1]
        if not within.all():
            rows = np.flatnonzero(within) if isinstance(rows, slice) else rows[within]
        problem = problem[rows]
        self.row_in_block: Integers = np.arange(len(block.attempt))[rows]
        self.attempt: Integers = block.attempt[rows].astype(np.int64)
        self.grade = block.grade[rows]
        self.scores: tuple[Floats, ...] = tuple(
            # Plus zero, so that minus zero is zero.
            score[rows] + 0.0
            for score in block.scores
        )
        self.texts = block.texts and block.texts.take(rows)
        self._weights_of: dict[int, Floats] = {}
        self._key = block.key[rows].astype(np.int64)
        self.problem_starts = run_starts(problem)
        self.problems: Integers = problem[self.problem_starts]
        self.problem: Integers = np.repeat(
            np.arange(len(self.problems)), run_lengths(self.problem_starts, len(problem))
        )
        self.bucket: Integers = np.searchsorted(budgets, self.attempt, side="right")
        self._number_answers()

    def _number_answers(self) -> None:
        """Bring the rows of an answer together, and find where it has attempts in a bucket."""
        n_rows, n_budgets = len(self.attempt), len(self.budgets)
        key_bits = int(self._key.max(initial=0)).bit_length()
        group = self.problem << key_bits | self._key
        self._by_answer = stable_order(group)
        starts = run_starts(group[self._by_answer])
        first_row = self._by_answer[starts]
        is_first = np.zeros(n_rows, bool)
        is_first[first_row] = True
        label = np.cumsum(is_first)[first_row] - 1
        self.n_answers = len(starts)
        self.first_row: Integers = np.flatnonzero(is_first)
        self.is_answer: Flags = self._key[self.first_row] > 0
        self.answer_problem: Integers = self.problem[self.first_row]
        self.answer_starts = run_starts(self.answer_problem)
        by_answer = np.repeat(label, run_lengths(starts, n_rows))
        self.answer: Integers = np.empty(n_rows, np.int64)
        self.answer[self._by_answer] = by_answer
        cell = by_answer * n_budgets + self.bucket[self._by_answer]
        self._cell_starts = run_starts(cell)
        answer, bucket = np.divmod(cell[self._cell_starts], n_budgets)
        self._cell: Integers = bucket * self.n_answers + answer
        bucket_of_problem = self.problem * n_budgets + self.bucket
        self._slot_starts = run_starts(bucket_of_problem)
        problem, bucket = np.divmod(bucket_of_problem[self._slot_starts], n_budgets)
        self._slot: Integers = bucket * len(self.problems) + problem

    # answers

    def _of_answers(self, values: Floats, fill: float) -> Floats:
        """Spread a value of each (answer, bucket) over the matrix of answers."""
        matrix = np.full(len(self.budgets) * self.n_answers, fill)
        matrix[self._cell] = values
        return matrix.reshape(len(self.budgets), self.n_answers)

    @cached_property
    def votes(self) -> Integers:
        """Number of attempts with each answer within each budget."""
        matrix = np.zeros(len(self.budgets) * self.n_answers, np.int64)
        matrix[self._cell] = run_lengths(self._cell_starts, len(self.attempt))
        return np.cumsum(matrix.reshape(len(self.budgets), self.n_answers), axis=0)

    def first_scored(self, reading: int) -> Integers:
        """Return the first row of each answer that has a score, or a row beyond all.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        Integers
            One row per answer.
        """
        is_scored = ~np.isnan(self.scores[reading])
        if is_scored.all():
            return self.first_row
        first = np.full(self.n_answers, NEVER)
        rows = np.flatnonzero(is_scored)[::-1]
        # Of several rows the last assignment stays: the earliest attempt.
        first[self.answer[rows]] = rows
        return first

    def is_within(self, rows: Integers) -> Flags:
        """Return whether rows are within each budget.

        Parameters
        ----------
        rows
            Rows, `NONE`, or rows beyond all.

        Returns
        -------
        Flags
            One row per budget.
        """
        there = (rows != NONE) & (rows != NEVER)
        attempt = np.where(there, self.attempt[np.where(there, rows, 0)], NEVER)
        return attempt < self.budgets[:, None]

    def weights(self, reading: int) -> Floats:
        """Add up the weights of each answer within each budget.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        Floats
            Matrix of answers; infinite where an attempt's weight is none.
        """
        if reading not in self._weights_of:
            self._weights_of[reading] = self._add_weights(reading)
        return self._weights_of[reading]

    def is_defined(self, reading: int) -> Flags:
        """Return whether all weights of a problem are finite and not negative.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        Flags
            Matrix of problems.
        """
        return np.isfinite(self.sum_answers(self.weights(reading)))

    def _add_weights(self, reading: int) -> Floats:
        """Add up weights of any kind."""
        if self.kind == "softmax":
            return self.softmax(reading, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            weight = self.row_weights(reading)[self._by_answer]
            sums = np.add.reduceat(weight, self._cell_starts)
            return np.cumsum(self._of_answers(sums, 0.0), axis=0)

    def row_weights(self, reading: int) -> Floats:
        """Return what a vote weighs by its score alone, which a softmax does not say.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        Floats
            One weight per row, 0 without a score; infinite for a negative one.
        """
        score = self.scores[reading]
        if self.kind == "sigmoid":
            with np.errstate(over="ignore"):
                weight = 1.0 / (1.0 + np.exp(-score))
        else:
            # An infinite weight survives any sum, so that a negative one shows there.
            weight = np.where(score < 0, np.inf, score)
        return np.where(np.isnan(score), 0.0, weight)

    def softmax(self, reading: int, temperature: float) -> Floats:
        """Add up each answer's part of the softmax over the scored attempts within each budget.

        Parameters
        ----------
        reading
            Number of the reading.
        temperature
            What scores are divided by.

        Returns
        -------
        Floats
            Matrix of answers; NaN where a score is infinite.
        """
        score = self.scores[reading]
        with np.errstate(over="ignore", invalid="ignore"):
            # The highest score of the bucket, not of the problem: attempts beyond a budget must
            # not push the weights within it below the smallest float.
            highest = np.fmax.reduceat(score, self._slot_starts)
            shift = np.repeat(highest, run_lengths(self._slot_starts, len(score)))
            weight = np.where(np.isnan(score), 0.0, np.exp((score - shift) / temperature))
            sums = np.add.reduceat(weight[self._by_answer], self._cell_starts)
            of_bucket = self._of_problems(highest, np.nan)[:, self.answer_problem]
            total = cumulate_scaled(self._of_answers(sums, 0.0), of_bucket, temperature)
            return total / self.sum_answers(total)[:, self.answer_problem]

    # problems

    def _of_problems(self, values: Floats, fill: float) -> Floats:
        """Spread a value of each (problem, bucket) over the matrix of problems."""
        matrix = np.full(len(self.budgets) * len(self.problems), fill)
        matrix[self._slot] = values
        return matrix.reshape(len(self.budgets), len(self.problems))

    def sum_answers(self, matrix: Floats) -> Floats:
        """Add up answers.

        Parameters
        ----------
        matrix
            Matrix of answers.

        Returns
        -------
        Floats
            Matrix of problems.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(matrix, self.answer_starts, axis=1)

    @cached_property
    def n_attempts(self) -> Integers:
        """Attempts of each problem within each budget."""
        return np.add.reduceat(self.votes, self.answer_starts, axis=1)

    @cached_property
    def n_valid(self) -> Integers:
        """Those that have an answer."""
        votes = np.where(self.is_answer, self.votes, 0)
        return np.add.reduceat(votes, self.answer_starts, axis=1)

    def first_where(self, condition: Flags) -> Integers:
        """Find the first row of each problem on which a condition holds.

        Parameters
        ----------
        condition
            One flag per row.

        Returns
        -------
        Integers
            Matrix of problems: rows, `NONE` where there is none within the budget.
        """
        rows = np.where(condition, np.arange(len(condition)), NEVER)
        first = np.minimum.reduceat(rows, self.problem_starts)
        return np.where(self.is_within(first), first, NONE)

    def is_graded(self) -> Flags:
        """Return whether any attempt is graded.

        Returns
        -------
        Flags
            Matrix of problems.
        """
        is_graded: Flags = self.first_where(self.grade != UNGRADED) != NONE
        return is_graded

    def is_repeated(self) -> Flags:
        """Return whether several rows have the same number.

        Returns
        -------
        Flags
            Matrix of problems.
        """
        repeated = np.zeros(len(self.attempt), bool)
        repeated[1:] = self.attempt[1:] == self.attempt[:-1]
        repeated[self.problem_starts] = False
        is_repeated: Flags = self.first_where(repeated) != NONE
        return is_repeated

    def is_scored(self, reading: int) -> Flags:
        """Return whether any attempt has a score.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        Flags
            Matrix of problems.
        """
        is_scored: Flags = self.first_where(~np.isnan(self.scores[reading])) != NONE
        return is_scored

    def highest(self, reading: int) -> tuple[Integers, Floats]:
        """Find the attempt with the highest score, the earliest of several.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        tuple[Integers, Floats]
            Matrices of problems: the row, `NONE` without a score, and the score, NaN without.
        """
        score = self.scores[reading]
        tops = np.fmax.reduceat(score, self._slot_starts)
        is_top = score == np.repeat(tops, run_lengths(self._slot_starts, len(score)))
        rows = np.where(is_top, np.arange(len(score)), NEVER)
        first = np.minimum.reduceat(rows, self._slot_starts)
        of_bucket = self._of_problems(tops, np.nan)
        flat = np.full(of_bucket.size, NONE)
        flat[self._slot] = first
        row_of_bucket: Integers = flat.reshape(of_bucket.shape)
        highest = np.fmax.accumulate(of_bucket, axis=0)
        row: Integers = np.full(of_bucket.shape[1], NONE)
        best = np.full(of_bucket.shape[1], np.nan)
        chosen = np.empty_like(row_of_bucket)
        for budget in range(len(self.budgets)):
            is_higher = (of_bucket[budget] > best) | (np.isnan(best) & ~np.isnan(of_bucket[budget]))
            row = np.where(is_higher, row_of_bucket[budget], row)
            best = highest[budget]
            chosen[budget] = row
        return chosen, highest

    def top_scores(self, reading: int) -> Floats:
        """Find the highest score of each answer.

        Parameters
        ----------
        reading
            Number of the reading.

        Returns
        -------
        Floats
            Matrix of answers, NaN without a score.
        """
        tops = np.fmax.reduceat(self.scores[reading][self._by_answer], self._cell_starts)
        return np.fmax.accumulate(self._of_answers(tops, np.nan), axis=0)
