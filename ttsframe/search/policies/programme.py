"""The integer programme of ETS: which leaves of a tree are worth the branches above them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ttsframe._typing import Flags, Floats, Integers

_TIE: float = 1e-9
"""Objectives closer than this are equal."""
_EVEN: float = 1e-12
"""Gains nearer to 0 than this are 0: a sum of as many as there are leaves is still a tie."""


class Branches(NamedTuple):
    """The tree above some leaves; a branch comes behind the one above it."""

    leaf_cost: Floats
    """Cost of each leaf; with those of branches they sum to 1."""
    branch_cost: Floats
    above_leaf: Integers
    """Branch above each leaf, -1 for none."""
    above_branch: Integers
    levels: list[slice]
    """Branches of equal depth, first steps first."""


def make_branches(paths: pl.Series, tokens: pl.Series | None, depth: Integers) -> Branches:
    """Return the branches above leaves, each once, and what they cost; without tokens all cost the same."""
    ids = paths.explode(empty_as_null=False).to_numpy()
    cost = np.ones(len(ids))
    if tokens is not None:
        cost = tokens.explode(empty_as_null=False).cast(pl.Float64).to_numpy()
    last = np.cumsum(depth) - 1
    is_leaf = np.zeros(len(ids), dtype=np.bool_)
    is_leaf[last] = True
    level = np.arange(len(ids)) - np.repeat(last - depth + 1, depth)
    rows = np.flatnonzero(~is_leaf)
    _, first, number = np.unique(ids[rows], return_index=True, return_inverse=True)
    order = np.argsort(level[rows[first]], kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    branch = np.full(len(ids), -1, dtype=np.int64)
    branch[rows] = place[number]
    above = np.where(level > 0, np.roll(branch, 1), -1)
    found = rows[first[order]]
    branch_cost = cost[found]
    total = float(cost[last].sum() + branch_cost.sum()) or 1.0
    bounds = np.searchsorted(level[found], np.arange(int(level[found].max(initial=-1)) + 2))
    levels = [slice(*pair) for pair in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
    return Branches(cost[last] / total, branch_cost / total, above[last], above[found], levels)


class _Worth(NamedTuple):
    """What subtrees are worth at best, given what lies above them."""

    leaf: Floats
    branch: Floats
    """Less its own cost."""


@dataclass(frozen=True)
class Programme:
    """Choose leaves: the most of shares, less the cost of their tree, plus the clusters they cover."""

    shares: Floats
    tree: Branches
    labels: Integers
    cost_weight: float
    diversity_weight: float

    def value(self, is_kept: Flags) -> float:
        """Return the objective of a choice."""
        is_needed = self._above(is_kept)
        cost = self.tree.leaf_cost[is_kept].sum() + self.tree.branch_cost[is_needed].sum()
        covered = len(np.unique(self.labels[is_kept])) * self.bonus
        return float(self.shares[is_kept].sum() - self.cost_weight * cost + covered)

    def solve(self, *, keeps_more: bool) -> Flags:
        """Return the best choice; of several, that with fewest leaves (or most), then the earliest."""
        gains = self.shares - self.cost_weight * self.tree.leaf_cost
        small = self._reduced(gains)
        if self.bonus == 0 or (small.label < 0).all():
            found = self._solved(small.gain, keeps_more=keeps_more)
        else:
            found = small.solve(self, keeps_more=keeps_more)
        if self.bonus and not (found.any() and self.value(found) > -_EVEN):
            # Nothing is worth its cost, yet one leaf must be kept: nothing may be left out beforehand.
            found = self._whole(gains).solve(self, keeps_more=keeps_more)
        return found if found.any() else np.arange(len(gains)) == int(np.argmax(self.shares))

    @property
    def bonus(self) -> float:
        return self.diversity_weight / (int(self.labels.max()) + 1)

    def _above(self, is_kept: Flags) -> Flags:
        """Return the branches above kept leaves."""
        tree = self.tree
        is_needed = np.zeros(len(tree.branch_cost) + 1, dtype=np.bool_)
        is_needed[tree.above_leaf[is_kept]] = True
        for level in reversed(tree.levels):
            is_needed[tree.above_branch[level][is_needed[level]]] = True
        return is_needed[:-1]

    def _worth(self, leaf: Floats) -> _Worth:
        """Return what each subtree is worth if it keeps just what adds to it."""
        tree = self.tree
        n = len(tree.branch_cost)
        worth = np.append(-self.cost_weight * tree.branch_cost, 0.0)
        np.add.at(worth, tree.above_leaf, np.maximum(leaf, 0.0))
        for level in reversed(tree.levels):
            np.add.at(worth, tree.above_branch[level], np.maximum(worth[level], 0.0))
        return _Worth(leaf, worth[:n])

    def _solved(self, gains: Floats, *, keeps_more: bool) -> Flags:
        """Solve without clusters: a subtree is kept if it is worth more than nothing."""
        tree = self.tree
        worth = self._worth(gains)
        least = -_EVEN if keeps_more else _EVEN
        is_good, goes = worth.leaf > least, np.append(worth.branch > least, True)
        for level in tree.levels:
            goes[level] &= goes[tree.above_branch[level]]
        found = is_good & goes[tree.above_leaf]
        if found.any() or self.bonus:
            return np.asarray(found)
        return self._one_path(is_good, worth, least, keeps_more=keeps_more)

    def _one_path(self, is_good: Flags, worth: _Worth, least: float, *, keeps_more: bool) -> Flags:
        """Keep the path that loses least, with what is worth something beside it."""
        # For each leaf and branch: value, leaves and sum of positions of the choice that contains it.
        tree = self.tree
        n, m = len(is_good), len(worth.branch)
        leaves = np.column_stack([worth.leaf, np.ones(n), np.arange(n)])
        own = np.zeros((m + 1, 3))
        own[:m, 0] = -self.cost_weight * tree.branch_cost
        np.add.at(own, tree.above_leaf, np.where(is_good[:, None], leaves, 0.0))
        is_worth = np.append(worth.branch > least, False)
        for level in reversed(tree.levels):
            np.add.at(
                own, tree.above_branch[level], np.where(is_worth[level, None], own[level], 0.0)
            )
        with_path = own.copy()
        for level in tree.levels:
            above = tree.above_branch[level]
            with_path[level] += with_path[above] - np.where(is_worth[level, None], own[level], 0.0)
        choices = leaves + with_path[tree.above_leaf] - np.where(is_good[:, None], leaves, 0.0)
        value, n_kept, positions = choices.T
        is_top = value >= value.max() - _EVEN
        best = np.lexsort((positions, -n_kept if keeps_more else n_kept, ~is_top))[0]
        goes = np.append(np.zeros(m, dtype=np.bool_), True)
        goes[:m] = self._above(np.arange(n) == best)
        for level in tree.levels:
            goes[level] |= is_worth[level] & goes[tree.above_branch[level]]
        return np.asarray((is_good & goes[tree.above_leaf]) | (np.arange(n) == best))

    def _whole(self, gains: Floats) -> _Reduced:
        m = len(self.tree.branch_cost)
        is_open = np.ones(len(gains), dtype=np.bool_)
        return _Reduced(
            gains, self.labels, is_open, ~is_open, np.ones(m, dtype=np.bool_), np.arange(m)
        )

    def _reduced(self, gains: Floats) -> _Reduced:
        """Decide what is the same in every best choice."""
        gain, label = gains.copy(), self.labels.copy()
        if self.bonus == 0:
            label[:] = -1
        tree, bonus = self.tree, self.bonus
        m = len(tree.branch_cost)
        while True:
            most = self._worth(np.where(label >= 0, gain + bonus, gain))
            least = self._worth(gain)
            # What cannot be worth anything is left out; what is worth something without any cluster is kept
            # with what lies above it, and has its variable.
            is_there = np.append(most.branch >= -_EVEN, True)
            variable = np.append(np.where(least.branch > _EVEN, -1, np.arange(m)), -1)
            for level in tree.levels:
                above = tree.above_branch[level]
                is_there[level] &= is_there[above]
                variable[level] = np.where(
                    least.branch[level] > _EVEN, variable[above], variable[level]
                )
            at = variable[tree.above_leaf]
            is_open = is_there[tree.above_leaf] & (most.leaf >= -_EVEN)
            is_sure = is_open & (gain > _EVEN)
            if not self._settle(gain, label, at, is_open, is_sure):
                return _Reduced(gain, label, is_open, is_sure, is_there[:m], variable[:m])

    def _settle(
        self, gain: Floats, label: Integers, at: Integers, is_open: Flags, is_sure: Flags
    ) -> bool:
        """Give the bonus of a cluster to a leaf where no other choice is better; say if anything changed."""
        there = np.flatnonzero(is_open & (label >= 0))
        n = int(label.max()) + 1
        if n == 0:
            return False
        # The best leaf of each cluster and variable, the earliest of equals.
        order = there[np.lexsort((there, -gain[there], at[there], label[there]))]
        is_again = np.append(
            False, (label[order[1:]] == label[order[:-1]]) & (at[order[1:]] == at[order[:-1]])
        )
        n_variables = np.bincount(label[order[~is_again[: len(order)]]], minlength=n)
        sure = there[is_sure[there] & (at[there] < 0)]
        is_covered = np.zeros(n, dtype=np.bool_)
        is_covered[label[sure]] = True
        gain[sure[np.unique(label[sure], return_index=True)[1]]] += self.bonus
        folds = (n_variables == 1) & ~is_covered
        best = order[~is_again[: len(order)]]
        best = best[folds[label[best]]]
        gain[best] += self.bonus
        again = order[is_again[: len(order)]]
        again = again[(gain[again] < -_EVEN) & ~folds[label[again]] & ~is_covered[label[again]]]
        is_done = is_covered | (n_variables < 2)
        done = np.flatnonzero((label >= 0) & is_done[label])
        label[done] = -1
        label[again] = -1
        return bool(len(done) or len(again))


class _Rows(NamedTuple):
    """Constraints: sums that are at most a bound."""

    rows: list[Integers]
    columns: list[Integers]
    values: list[Floats]
    bounds: list[float]

    def add(self, rows: Integers, columns: Integers, values: Floats, bound: float) -> None:
        """Add constraints, numbered from 0, with the same bound."""
        self.rows.append(len(self.bounds) + rows)
        self.columns.append(columns)
        self.values.append(values)
        self.bounds.extend([bound] * (int(rows.max(initial=-1)) + 1))


class _Reduced(NamedTuple):
    """What is left to decide."""

    gain: Floats
    """Gains of leaves, with the bonus of clusters that only this leaf can earn."""
    label: Integers
    """Clusters that several subtrees can earn, -1 for none."""
    is_open: Flags
    """Leaves that may be kept."""
    is_sure: Flags
    """Leaves that are kept if the variable above them is."""
    is_there: Flags
    """Branches that may be kept."""
    variable: Integers
    """The branch whose variable decides about each branch, -1 if it is kept in any case."""

    def solve(self, programme: Programme, *, keeps_more: bool) -> Flags:
        """Return the best choice, an empty one if there is none."""
        best = self._choose(programme, None, keeps_more=keeps_more)
        if not best.any():
            return best
        top = programme.value(best)
        tied = self._choose(programme, top - _TIE, keeps_more=keeps_more)
        # The solver's own tolerance is wider than a tie.
        return tied if tied.any() and programme.value(tied) >= top - _TIE else best

    def _choose(self, programme: Programme, least: float | None, *, keeps_more: bool) -> Flags:
        """Maximize the objective; or the preference among ties, at an objective of at least `least`."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        tree, n = programme.tree, len(self.gain)
        # Variables: one that is 1, the branches that decide, the leaves that are not sure, the clusters.
        deciding = np.flatnonzero(self.is_there & (self.variable == np.arange(len(self.variable))))
        of_branch = np.zeros(len(self.variable) + 1, dtype=np.int64)
        of_branch[deciding] = 1 + np.arange(len(deciding))
        place = np.where(self.variable < 0, 0, of_branch[self.variable])
        place = np.append(place, 0)
        is_free = self.is_open & ~self.is_sure
        free = np.flatnonzero(is_free)
        of_leaf = place[tree.above_leaf]
        of_leaf[free] = 1 + len(deciding) + np.arange(len(free))
        clusters, cluster = np.unique(self.label, return_inverse=True)
        first = 1 + len(deciding) + len(free) - int(clusters[0] < 0)
        is_member = self.is_open & (self.label >= 0)
        size = first + len(clusters)
        gains, preference = np.zeros(size), np.zeros(size)
        np.add.at(gains, of_leaf[self.is_open], self.gain[self.is_open])
        there = np.flatnonzero(self.is_there)
        np.add.at(gains, place[there], -programme.cost_weight * tree.branch_cost[there])
        n_clusters = size - 1 - len(deciding) - len(free)
        gains[size - n_clusters :] = programme.bonus
        # Together positions weigh less than one leaf, so the number of leaves decides first.
        positions = np.arange(n) / (n * (n + 1.0))
        wish = (1.0 - positions) if keeps_more else -(1.0 + positions)
        np.add.at(preference, of_leaf[self.is_open], wish[self.is_open])
        rows = _Rows([], [], [], [])
        # Nothing is kept without what lies above it.
        lower = np.append(of_leaf[free], of_branch[deciding])
        upper = place[np.append(tree.above_leaf[free], tree.above_branch[deciding])]
        pair = np.arange(len(lower))
        rows.add(
            np.append(pair, pair), np.append(lower, upper), np.repeat([1.0, -1.0], len(pair)), 0.0
        )
        # A cluster counts if one of its leaves is kept.
        pairs = np.unique(np.column_stack([first + cluster, of_leaf])[is_member], axis=0)
        counted = np.arange(size - n_clusters, size)
        row = np.append(pairs[:, 0], counted) - counted[0]
        signs = np.repeat([-1.0, 1.0], [len(pairs), n_clusters])
        rows.add(row, np.append(pairs[:, 1], counted), signs, 0.0)
        # One leaf is kept.
        holders = np.unique(of_leaf[self.is_open])
        rows.add(np.zeros_like(holders), holders, np.full(len(holders), -1.0), -1.0)
        if least is not None:
            rows.add(np.zeros(size, dtype=np.int64), np.arange(size), -gains, -least)
        matrix = csr_array(
            (
                np.concatenate(rows.values),
                (np.concatenate(rows.rows), np.concatenate(rows.columns)),
            ),
            shape=(len(rows.bounds), size),
        )
        is_one = np.arange(size) == 0
        found = milp(
            -(gains if least is None else preference),
            constraints=LinearConstraint(matrix, -np.inf, np.array(rows.bounds)),
            integrality=np.arange(size) < 1 + len(deciding) + len(free),
            bounds=Bounds(is_one.astype(np.float64), 1),
            options={"mip_rel_gap": 0.0},
        )
        if found.x is None:
            return np.zeros(n, dtype=np.bool_)
        return np.asarray(self.is_open & (found.x[of_leaf] > 0.5))
