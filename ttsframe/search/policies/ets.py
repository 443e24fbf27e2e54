"""ETS: REBASE on the paths that are worth the size of the tree, chosen by an integer programme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import check_choice, check_number
from ttsframe._settings import found
from ttsframe._typing import Flags, Floats, Integers
from ttsframe.errors import ParameterError
from ttsframe.search.policies.arrays import by_problem, column, left_of, scores_of
from ttsframe.search.policies.embeddings import check_embedder, clusters, embedded, word_vectors
from ttsframe.search.policies.kernels import allocate_ceil, make_groups, ranks, softmax_weights
from ttsframe.search.policies.policy import Policy
from ttsframe.search.policies.programme import Programme, make_branches

__all__ = ["ETS"]

NodeCost: TypeAlias = Literal["tokens", "nodes"]
TieBreak: TypeAlias = Literal["fewer", "keep"]


@dataclass(frozen=True)
class ETS(Policy):
    """ETS: efficient tree search.

    In each round the paths are kept that maximize their shares by REBASE, less the cost of the tree that
    they need, plus the number of different ideas among them. REBASE then shares the width among the
    kept ones.

    Parameters
    ----------
    width
        Number of solutions. A finished solution takes one from the width of later rounds.
    cost_weight
        Weight of the cost of the kept tree, at least 0. The cost is 1 if everything is kept.
    diversity_weight
        Weight of the share of clusters of steps of which one path is kept, at least 0.
    embed
        A function from a polars Series of texts, the last steps, to a matrix with one row per text.
    cluster_distance
        Cosine distance at which clusters (average linkage) are cut.
    temperature
        Temperature of REBASE's softmax over the scores of a round.
    node_cost
        What a step of the tree costs: its share of the "tokens", or the same for all "nodes".
    tie_break
        Of choices that are worth the same: "fewer" paths, and of as many the earliest; or "keep" as many as
        possible.
    **parameters
        Those of `tts.search.Policy`.

    References
    ----------
    Hooper et al. (2025), ETS: efficient tree search, arXiv:2502.13575.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(4, seed=0)
    >>> costs = []
    >>> for policy in (tts.search.Rebase(8), tts.search.ETS(8, diversity_weight=0.0)):
    ...     nodes = tts.search.search(problems, generator, prm, policy, seed=0)
    ...     costs.append(tts.search.cache_by_round(nodes)["cache_tokens"].sum())
    >>> costs[1] < costs[0]
    True
    """

    cost_weight: float = 1.0
    diversity_weight: float = 1.0
    embed: Callable[[pl.Series], npt.ArrayLike] = word_vectors
    cluster_distance: float = 0.05
    temperature: float = 0.2
    node_cost: NodeCost = "tokens"
    tie_break: TieBreak = "fewer"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.node_cost, "node_cost", get_args(NodeCost))
        check_choice(self.tie_break, "tie_break", get_args(TieBreak))
        for name in ("cost_weight", "diversity_weight", "cluster_distance"):
            value = check_number(getattr(self, name), name)
            if not 0 <= value < np.inf:
                raise ParameterError(f"{found(name, value)}, must be a number from 0.")
        if check_number(self.temperature, "temperature") <= 0:
            raise ParameterError(f"{found('temperature', self.temperature)}, must be above 0.")
        check_embedder(self.embed)

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "ets"

    @property
    def needs_paths(self) -> bool:
        """Whether the frontier has the columns `path` and `path_tokens`: it does."""
        return True

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Choose the paths of each problem, and share the width that it has left among them."""
        groups, scores = by_problem(frontier), scores_of(frontier)
        left = left_of(frontier, groups, self.width)
        weights = softmax_weights(groups, scores, self.temperature)
        shares = allocate_ceil(groups, weights, ranks(groups, scores), left)
        labels = self._clusters(frontier, groups.starts, groups.sizes)
        is_kept = np.zeros(len(scores), dtype=np.bool_)
        paths, tokens = frontier["path"], frontier["path_tokens"]
        depth = column(frontier, "depth")
        for start, size, width in zip(
            groups.starts.tolist(), groups.sizes.tolist(), left.tolist(), strict=True
        ):
            rows = slice(start, start + size)
            if width == 0:
                continue
            if size == 1:
                is_kept[rows] = True
                continue
            cost = tokens[rows] if self.node_cost == "tokens" else None
            tree = make_branches(paths[rows], cost, depth[rows])
            programme = Programme(
                shares[rows] / width, tree, labels[rows], self.cost_weight, self.diversity_weight
            )
            is_kept[rows] = programme.solve(keeps_more=self.tie_break == "keep")
        return self._answer(groups.of_row, scores, left, is_kept)

    def _answer(
        self, of_row: Integers, scores: Floats, left: Integers, is_kept: Flags
    ) -> pl.DataFrame:
        given = np.zeros(len(scores), dtype=np.int64)
        if is_kept.any():
            rows = np.flatnonzero(is_kept)
            kept = make_groups(of_row[rows])
            weights = softmax_weights(kept, scores[rows], self.temperature)
            order = ranks(kept, scores[rows])
            given[rows] = allocate_ceil(kept, weights, order, left[of_row[rows]][kept.starts])
        frame = pl.DataFrame({
            "n_allocated": given,
            "is_spent": left[of_row] == 0,
            "is_chosen": is_kept,
        })
        return frame.select(
            "n_allocated",
            pl
            .when(pl.col("n_allocated") > 0)
            .then(None)
            .when("is_spent")
            .then(pl.lit("budget"))
            .when("is_chosen")
            .then(pl.lit("zero_allocation"))
            .otherwise(pl.lit("cost_model"))
            .alias("dropped_because"),
        )

    def _clusters(self, frontier: pl.DataFrame, starts: Integers, sizes: Integers) -> Integers:
        """Return the cluster of each last step; all are one where diversity has no weight."""
        if self.diversity_weight == 0:
            return np.zeros(frontier.height, dtype=np.int64)
        vectors = embedded(self.embed, frontier["text"])
        return np.concatenate([
            clusters(vectors[start : start + size], self.cluster_distance)
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ])
