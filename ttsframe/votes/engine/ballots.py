"""Votes and weights of the answers in a block of problems, at every budget at once.

Rows are attempts, sorted by (problem, attempt), so the smallest row is the earliest attempt.
An attempt's bucket is the first budget that includes it. Votes are added up once per answer and
bucket, then cumulated over buckets: the work over attempts does not grow with the number of budgets.

A matrix of answers, or of problems, has a row per budget and a column per answer or problem.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from ttsframe._typing import Flags, Floats, Integers, Weights
from ttsframe.votes.engine.pools import UNGRADED, Block
from ttsframe.votes.engine.runs import attempt_order, run_lengths, run_starts, stable_order

NONE: Final = -1
"""Stands for a missing row."""

LARGEST_CHANCE: Final = 0.999
"""Scores above it have its log-odds, so that no single attempt decides a vote."""

LATER: Final = np.iinfo(np.int64).max
"""Stands for a row that no budget includes."""


class Ballots:
    """The attempts of a block within the last budget: their answers, votes and weights.

    `problems` has the numbers, within the block, of the problems that have such an attempt.
    Answers are numbered by problem and first attempt. "No answer" is numbered as one more answer.
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
            # Adding zero turns minus zero into zero.
            score[rows] + 0.0
            for score in block.scores
        )
        self.texts = block.texts and block.texts.take(rows)
        self.columns = block.columns if block.columns is None else block.columns[rows]
        self._weights_of: dict[int, Floats] = {}
        self._key = block.key[rows].astype(np.int64)
        self.problem_starts = run_starts(problem)
        self.problems: Integers = problem[self.problem_starts]
        self._is_answerless = block.is_answerless
        self.problem: Integers = np.repeat(
            np.arange(len(self.problems)), run_lengths(self.problem_starts, len(problem))
        )
        self.bucket: Integers = np.searchsorted(budgets, self.attempt, side="right")
        self._number_answers()

    def _number_answers(self) -> None:
        """Assign numbers to the answers, and find the buckets in which each has attempts."""
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
        self._slot_of_row = np.repeat(
            np.arange(len(self._slot_starts)), run_lengths(self._slot_starts, n_rows)
        )
        problem, bucket = np.divmod(bucket_of_problem[self._slot_starts], n_budgets)
        self._slot: Integers = bucket * len(self.problems) + problem

    # Matrices of answers

    def _of_answers(self, values: Floats, fill: float) -> Floats:
        """Write a value per (answer, bucket) into a matrix of answers."""
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
        """Return the first scored row of each answer, `LATER` where it has none."""
        is_scored = ~np.isnan(self.scores[reading])
        if is_scored.all():
            return self.first_row
        first = np.full(self.n_answers, LATER)
        rows = np.flatnonzero(is_scored)[::-1]
        # The last assignment to an answer wins: its earliest attempt.
        first[self.answer[rows]] = rows
        return first

    def is_within(self, rows: Integers) -> Flags:
        """Return which rows are within each budget; `NONE` and `LATER` never are."""
        exists = (rows != NONE) & (rows != LATER)
        attempt = np.where(exists, self.attempt[np.where(exists, rows, 0)], LATER)
        return attempt < self.budgets[:, None]

    def weights(self, reading: int) -> Floats:
        """Return the total weight of each answer; not finite where a weight is undefined."""
        if reading not in self._weights_of:
            self._weights_of[reading] = self._add_weights(reading)
        return self._weights_of[reading]

    def _add_weights(self, reading: int) -> Floats:
        """Add up the weights of each answer within each budget."""
        if self.kind == "softmax":
            return self.softmax(reading, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            weight = weigh(self.scores[reading], self.kind)[self._by_answer]
            sums = np.add.reduceat(weight, self._cell_starts)
            return np.cumsum(self._of_answers(sums, 0.0), axis=0)

    def softmax(self, reading: int, temperature: float) -> Floats:
        """Return each answer's share of the softmax over scores; NaN where one is infinite."""
        score = self.scores[reading]
        with np.errstate(over="ignore", invalid="ignore"):
            # The highest score of the bucket, not of the problem: attempts beyond a budget must
            # not push the weights within it below the smallest float.
            highest = np.fmax.reduceat(score, self._slot_starts)
            shift = highest[self._slot_of_row]
            weight = np.where(np.isnan(score), 0.0, np.exp((score - shift) / temperature))
            sums = np.add.reduceat(weight[self._by_answer], self._cell_starts)
            of_bucket = self._of_problems(highest, np.nan)[:, self.answer_problem]
            total = _cumulate_scaled(self._of_answers(sums, 0.0), of_bucket, temperature)
            return total / self.sum_answers(total)[:, self.answer_problem]

    def top_scores(self, reading: int) -> Floats:
        """Return the highest score of each answer, NaN where it has none."""
        tops = np.fmax.reduceat(self.scores[reading][self._by_answer], self._cell_starts)
        return np.fmax.accumulate(self._of_answers(tops, np.nan), axis=0)

    # Matrices of problems

    def _of_problems(self, values: Floats, fill: float) -> Floats:
        """Write a value per (problem, bucket) into a matrix of problems."""
        matrix = np.full(len(self.budgets) * len(self.problems), fill)
        matrix[self._slot] = values
        return matrix.reshape(len(self.budgets), len(self.problems))

    def sum_answers(self, matrix: Floats) -> Floats:
        """Sum a matrix of answers over the answers of each problem."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(matrix, self.answer_starts, axis=1)

    @cached_property
    def n_attempts(self) -> Integers:
        """Number of attempts at each problem within each budget."""
        return np.add.reduceat(self.votes, self.answer_starts, axis=1)

    @cached_property
    def n_valid(self) -> Integers:
        """Number of these attempts that have an answer."""
        votes = np.where(self.is_answer, self.votes, 0)
        return np.add.reduceat(votes, self.answer_starts, axis=1)

    def first_where(self, condition: Flags) -> Integers:
        """Return the first row of each problem that meets a condition, `NONE` without one."""
        if condition.all():
            first = self.problem_starts
        elif condition.any():
            rows = np.where(condition, np.arange(len(condition)), LATER)
            first = np.minimum.reduceat(rows, self.problem_starts)
        else:
            return np.full((len(self.budgets), len(self.problems)), NONE)
        return np.where(self.is_within(first), first, NONE)

    def has_any(self, condition: Flags) -> Flags:
        """Return which problems have a row that meets a condition."""
        has_any: Flags = self.first_where(condition) != NONE
        return has_any

    def is_graded(self) -> Flags:
        """Return which problems have a graded attempt."""
        return self.has_any(self.grade != UNGRADED)

    def is_unanswerable(self) -> Flags:
        """Return which problems are graded by something other than the answers, which none has."""
        # Without answers a vote has nothing to pick, which is no failure of the model's.
        is_elsewhere = self.has_any(self.grade == 1)
        if self._is_answerless is not None:
            is_elsewhere |= self._is_answerless[self.problems]
        is_unanswerable: Flags = is_elsewhere & self.is_graded() & (self.n_valid == 0)
        return is_unanswerable

    def is_repeated(self) -> Flags:
        """Return which problems have several rows with the same attempt number."""
        repeated = np.zeros(len(self.attempt), bool)
        repeated[1:] = self.attempt[1:] == self.attempt[:-1]
        repeated[self.problem_starts] = False
        return self.has_any(repeated)

    def is_scored(self, reading: int) -> Flags:
        """Return which problems have a scored attempt."""
        return self.has_any(~np.isnan(self.scores[reading]))

    def is_defined(self, reading: int, kind: Weights) -> Flags:
        """Return which problems have no undefined weight."""
        if kind == "softmax":
            return ~self.has_any(np.isinf(weigh(self.scores[reading], kind)))
        return np.isfinite(self.sum_answers(self.weights(reading)))

    def highest(self, reading: int) -> tuple[Integers, Floats]:
        """Return the earliest row with the highest score, and this score; `NONE` and NaN without."""
        score = self.scores[reading]
        tops = np.fmax.reduceat(score, self._slot_starts)
        is_top = score == tops[self._slot_of_row]
        latest_first = np.flatnonzero(is_top)[::-1]
        # The last assignment to a slot wins: its earliest row.
        first = np.full(len(tops), LATER)
        first[self._slot_of_row[latest_first]] = latest_first
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


def weigh(score: Floats, kind: Weights) -> Floats:
    """Return the weight of each vote: 0 without a score, infinite where it is undefined."""
    # An infinite weight survives any sum, so a finite sum means that all weights are defined.
    if kind == "sigmoid":
        with np.errstate(over="ignore"):
            weight = 1.0 / (1.0 + np.exp(-score))
    elif kind == "softmax":
        # A softmax needs the other scores too; only undefined weights are known here.
        weight = np.where(np.isinf(score), np.inf, 0.0)
    elif kind == "logit":
        chance = np.clip(score, 0.5, LARGEST_CHANCE)
        weight = np.where((score < 0) | (score > 1), np.inf, np.log(chance / (1.0 - chance)))
    else:
        weight = np.where(score < 0, np.inf, score)
    return np.where(np.isnan(score), 0.0, weight)


def _cumulate_scaled(matrix: Floats, shift: Floats, temperature: float) -> Floats:
    """Cumulate sums of exponentials over rows, each scaled by its own highest exponent."""
    # `shift` holds these exponents times the temperature, NaN where a sum is empty. Each row of the
    # result is scaled by the highest exponent so far.
    total, highest = np.zeros(matrix.shape[1]), np.full(matrix.shape[1], np.nan)
    cumulated = np.empty_like(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        for row, (added, of_row) in enumerate(zip(matrix, shift, strict=True)):
            higher = np.fmax(highest, of_row)
            total = _scale(total, (highest - higher) / temperature)
            total += _scale(added, (of_row - higher) / temperature)
            cumulated[row], highest = total, higher
    return cumulated


def _scale(value: Floats, exponent: Floats) -> Floats:
    """Multiply by e to an exponent; 0 stays 0 whatever the exponent is."""
    return np.where(value == 0, 0.0, value * np.exp(exponent))
