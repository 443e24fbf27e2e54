"""Graded and scored attempts of one group as arrays, sorted once per reading for every table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ttsframe.verifier.ordered import Flags, Floats, Ints, RightRuns, areas_within
from ttsframe.votes.engine.runs import run_starts


class Attempts(NamedTuple):
    """Attempts of one group, in any order; arrays are (n_attempts,) but for `problems`.

    - `tag`: twice the number of the attempt's problem in the group, and one more where it is right;
    - `is_right`, `is_graded`: whether it is right, and whether that is known;
    - `problems` (n_problems,): number of each of the group's problems among all;
    - `lengths`: by unit, whole numbers in the order of lengths, -1 where there is none.
    """

    tag: Ints
    is_right: Flags
    is_graded: Flags
    problems: Ints
    lengths: Mapping[str, Ints]


class Marks:
    """What one reading of the scores gives the attempts of one group that are graded and scored.

    These, `n` of them, stand in ascending order of `score`, with `tag` and `is_right`; `right`
    are the places of the right ones. `bounds` is where each distinct score begins, and `n`; None
    where no two scores are equal.

    Parameters
    ----------
    reduction
        Name of the reading.
    attempts
        All attempts of the group.
    score
        Their scores, NaN where there is none.
    """

    def __init__(self, reduction: str, attempts: Attempts, score: Floats) -> None:
        self.reduction = reduction
        self.problems = attempts.problems
        is_used = attempts.is_graded > np.isnan(score)
        n_graded, self.n = (int(np.count_nonzero(of)) for of in (attempts.is_graded, is_used))
        self.n_ungraded, self.n_unscored = len(score) - n_graded, n_graded - self.n
        if self.n == len(score):
            order = np.argsort(score)
        else:
            rows = np.flatnonzero(is_used)
            order = rows[np.argsort(score[rows])]
        self.score: Floats = score[order]
        self.tag: Ints = attempts.tag[order]
        self._order, self._lengths = order, attempts.lengths
        self.is_right = attempts.is_right[order]
        self.right = np.flatnonzero(self.is_right)
        is_distinct = (self.score[1:] != self.score[:-1]).all()
        self.bounds = None if is_distinct else np.append(run_starts(self.score), self.n)

    @property
    def lengths(self) -> dict[str, Ints]:
        """Code of each attempt's length by unit, -1 where there is none."""
        return {unit: codes[self._order] for unit, codes in self._lengths.items()}

    @property
    def right_runs(self) -> RightRuns:
        """Runs of equal scores in which some attempt is right."""
        if self.bounds is None:
            before = np.arange(len(self.right))
            one = np.broadcast_to(1, before.shape)
            return RightRuns(self.right, one, one, before, self.n)
        n_right = np.add.reduceat(self.is_right, self.bounds[:-1], dtype=np.int64)
        there = np.flatnonzero(n_right > 0)
        first, n_right = self.bounds[there], n_right[there]
        n_equal, before = self.bounds[there + 1] - first, np.cumsum(n_right) - n_right
        return RightRuns(first, n_equal, n_right, before, self.n)

    def first_equal(self, places: Ints) -> Ints:
        """Find where the runs of equal scores begin that some places are in.

        Parameters
        ----------
        places
            Places in the order of scores.

        Returns
        -------
        Ints
            One place for each.
        """
        if self.bounds is None:
            return places
        return self.bounds[np.searchsorted(self.bounds, places, side="right") - 1]

    def n_right_before(self, places: Ints) -> Ints:
        """Count right attempts before some places.

        Parameters
        ----------
        places
            Places in the order of scores, 0 to `n`.

        Returns
        -------
        Ints
            One number for each.
        """
        return np.searchsorted(self.right, places)

    @property
    def by_problem(self) -> Ints:
        """Wrong and right attempts at each problem of the group, (n_problems, 2)."""
        return np.bincount(self.tag, minlength=2 * len(self.problems)).reshape(-1, 2)

    def areas_within(self) -> Floats:
        """Give the area under the curve of each problem of the group.

        Returns
        -------
        Floats
            (n_problems,), NaN where there are right or wrong attempts alone.
        """
        return areas_within(self.tag, self.is_right, self.bounds, self.by_problem)

    @property
    def n_out_of_range(self) -> int:
        """Number of scores that are no probabilities."""
        first, end = np.searchsorted(self.score, 0.0), np.searchsorted(self.score, 1.0, "right")
        return self.n - int(end - first)
