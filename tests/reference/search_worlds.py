"""Trees whose nodes are a function of their identifiers, for the package and for the oracles alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
import search_oracle as plain

from ttsframe._draws import Bits, bits_at, uniforms
from ttsframe.search import Policy


@dataclass(frozen=True)
class World:
    """Random trees: `stop` and `cut` are rates of steps, scores are of a kind with ties and gaps."""

    stop: float = 0.2
    cut: float = 0.03
    unscored: float = 0.05
    digits: int = 1
    logits: bool = False
    deepest: int = 7
    """Depth at which every chain stops."""
    n_texts: int = 0
    """Number of different texts of steps; 0: all differ."""

    def reason(self, node: int, depth: int) -> str:
        u = plain.uniform(plain.bits_at(node, 1001))
        if u < self.cut:
            return "length"
        return "stop" if u < self.cut + self.stop or depth >= self.deepest else "step"

    def score(self, node: int) -> float | None:
        if plain.uniform(plain.bits_at(node, 1002)) < self.unscored:
            return None
        u = plain.uniform(plain.bits_at(node, 1003))
        return round(24 * (u - 0.5), self.digits) if self.logits else round(u, self.digits)

    def texts(self, ids: Bits) -> pl.Series:
        if not self.n_texts:
            return pl.Series(ids).cast(pl.String)
        return pl.select(pl.format("word{}", pl.Series(ids % np.uint64(self.n_texts)))).to_series()

    def generate(self, requests: pl.DataFrame) -> pl.DataFrame:
        n = requests["n"].to_numpy()
        parents = np.repeat(requests["node_id"].to_numpy(), n)
        child = np.arange(len(parents)) - np.repeat(np.cumsum(n) - n, n)
        ids = bits_at(parents, child)
        depth = np.repeat(requests["depth"].to_numpy(), n) + 1
        u = uniforms(bits_at(ids, np.array([1001])))
        is_stop = (u < self.cut + self.stop) | (depth >= self.deepest)
        reason = np.where(u < self.cut, 2, np.where(is_stop, 1, 0))
        return pl.DataFrame({
            "text": self.texts(ids),
            "finish_reason": pl.Series(["step", "stop", "length"]).gather(reason),
            "n_tokens": depth,
        })

    def verify(self, prefixes: pl.DataFrame) -> list[float | None]:
        return [self.score(node) for node in prefixes["node_id"].to_list()]


@dataclass(frozen=True)
class Compared:
    """Runs a policy and its oracle on the same trees."""

    world: World
    n_problems: int

    def problems(self) -> pl.DataFrame:
        return pl.DataFrame({"problem_id": [f"p{i}" for i in range(self.n_problems)]})

    def check(
        self, policy: Policy, oracle: Callable[[plain.Search], None], nodes: pl.DataFrame, seed: int
    ) -> None:
        from ttsframe.search.identity import root_ids

        names = self.problems()["problem_id"]
        expected = {}
        for name, root in zip(names, root_ids(names).tolist(), strict=True):
            search = plain.Search(
                root, seed, self.world.score, self.world.reason, policy.max_rounds
            )
            oracle(search)
            for node in search.nodes:
                expected[name, node.id] = (
                    node.parent,
                    node.depth,
                    node.subtree,
                    node.n_allocated,
                    node.n_children,
                    node.reason,
                    node.dropped,
                    node.score,
                )
        columns = ["parent_id", "depth", "subtree", "n_allocated", "n_children", "finish_reason"]
        columns += ["dropped_because", "step_score"]
        found = {
            (row["problem_id"], row["node_id"]): tuple(row[name] for name in columns)
            for row in nodes.iter_rows(named=True)
        }
        assert len(found) == nodes.height
        assert found == expected
        assert (nodes["is_kept"] == nodes["dropped_because"].is_null()).all()
