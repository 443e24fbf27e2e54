"""Search policies as plain Python, one problem and one node at a time, after their published descriptions.

They share nothing with the package: identifiers and draws are SplitMix64, written out again. Shares are
exact fractions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

WORD = (1 << 64) - 1


def bits_at(key: int, position: int) -> int:
    x = (key + (position + 1) * 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def round_draw(seed: int, root: int, number: int) -> int:
    return bits_at(bits_at(bits_at(root ^ bits_at(seed, 0), 0), 1 << 33), number)


def uniform(bits: int) -> float:
    return (bits >> 11) * 2.0**-53


@dataclass(eq=False)
class Node:
    id: int
    parent: int | None
    depth: int
    subtree: int
    score: float | None
    reason: str
    position: int
    """Index among the children of its parent."""
    n_allocated: int = 0
    n_children: int = 0
    dropped: str | None = None
    copies: int = 1

    @property
    def is_finished(self) -> bool:
        return self.reason == "stop"


@dataclass
class Search:
    """One problem: what its nodes are like is a function of their identifiers."""

    root: int
    seed: int
    score_of: Callable[[int], float | None]
    reason_of: Callable[[int, int], str]
    max_rounds: int
    subtree_size: int = 1
    nodes: list[Node] = field(default_factory=list)
    finished: int = 0
    cut_goes_on: bool = False
    """Whether a step that a limit cut is continued as others are."""

    def start(self) -> Node:
        return Node(self.root, None, 0, 0, None, "step", 0)

    def expand(self, node: Node, n: int) -> list[Node]:
        """Make children; those that a limit cut are dropped at once."""
        node.n_allocated = node.n_children = n
        made = []
        for child in range(n):
            name = bits_at(node.id, child)
            subtree = child // self.subtree_size if node.depth == 0 else node.subtree
            parent = node.id if node.depth else None
            reason = self.reason_of(name, node.depth + 1)
            new = Node(name, parent, node.depth + 1, subtree, self.score_of(name), reason, child)
            if reason in {"length", "error"} and not self.cut_goes_on:
                new.dropped = "truncated"
            made.append(new)
        self.nodes += made
        return made

    def drop(self, nodes: list[Node], reason: str) -> None:
        for node in nodes:
            node.dropped = reason


def ranked(nodes: list[Node], *, prefers_later: bool = False) -> list[Node]:
    """Sort by score, the best first; without a score last; ties by place in the list."""
    sign = -1 if prefers_later else 1

    def key(pair: tuple[int, Node]) -> tuple[bool, float, int]:
        at, node = pair
        return (node.score is None, -(node.score or 0.0), sign * at)

    return [node for _, node in sorted(enumerate(nodes), key=key)]


def best_of_n(search: Search, width: int) -> None:
    frontier = [search.start()]
    for number in range(search.max_rounds):
        children = []
        for node in frontier:
            children += search.expand(node, width if number == 0 else 1)
        frontier = [node for node in children if node.reason == "step"]
    search.drop(frontier, "budget")


def spread(kept: list[Node], width: int) -> list[int]:
    return [width // len(kept) + (i < width % len(kept)) for i in range(len(kept))]


def beam(search: Search, width: int, m: int) -> None:
    """Keep one path in m of the width that is left."""
    frontier, left = [search.start()], width
    for _ in range(search.max_rounds):
        if not frontier:
            return
        if left <= 0:
            search.drop(frontier, "budget")
            return
        order = ranked(frontier)
        kept = order[: math.ceil(left / m)]
        search.drop([node for node in frontier if node not in kept], "pruned")
        given = dict(zip((node.id for node in kept), spread(kept, left), strict=True))
        children = []
        for node in frontier:
            if node.dropped is None:
                children += search.expand(node, given[node.id])
        left -= sum(node.is_finished for node in children)
        frontier = [node for node in children if node.reason == "step"]
    search.drop(frontier, "budget")


def dvts(search: Search, width: int, m: int) -> None:
    """Give each of width / m subtrees a greedy search of its own."""
    search.subtree_size = m
    first = search.expand(search.start(), width)
    for subtree in range(width // m):
        candidates = [node for node in first if node.subtree == subtree]
        left = m
        for _ in range(search.max_rounds - 1):
            left -= sum(node.is_finished for node in candidates)
            open_ = [node for node in candidates if node.reason == "step"]
            if not open_:
                break
            if left <= 0:
                search.drop(open_, "budget")
                break
            best = ranked(open_)[0]
            search.drop([node for node in open_ if node is not best], "pruned")
            candidates = search.expand(best, left)
        else:
            search.drop([node for node in candidates if node.reason == "step"], "budget")


def softmax(nodes: list[Node], temperature: float) -> list[float]:
    known = [node.score for node in nodes if node.score is not None]
    if not known:
        return [1.0] * len(nodes)
    return [
        0.0 if node.score is None else math.exp((node.score - max(known)) / temperature)
        for node in nodes
    ]


def shares_ceil(nodes: list[Node], width: int, temperature: float) -> dict[int, int]:
    """Give each its share of the rest, rounded up, best first."""
    order = ranked(nodes)
    weights = [Fraction(weight) for weight in softmax(order, temperature)]
    given = {}
    for i, node in enumerate(order):
        rest = sum(weights[i:])
        given[node.id] = math.ceil(width * weights[i] / rest) if rest else 0
        width -= given[node.id]
    return given


def shares_round(nodes: list[Node], width: int, temperature: float) -> dict[int, int]:
    """Round each share, then cut the list of copies to the width or repeat it up to the width."""
    weights = softmax(nodes, temperature)
    copies: list[int] = []
    for node, weight in zip(nodes, weights, strict=True):
        copies += [node.id] * round(weight / sum(weights) * width)
    copies = copies or [node.id for node in nodes if node in ranked(nodes)[:width]]
    while len(copies) < width:
        copies += copies
    copies = copies[:width]
    return {node.id: copies.count(node.id) for node in nodes}


def shares_dora(nodes: list[Node], width: int, temperature: float, n_texts: int) -> dict[int, int]:
    """Share by REBASE, then among those with a share by quality times uniqueness.

    The text of a node is one of `n_texts` words; equal words have the cosine 1, others 0.
    """
    first = shares_round(nodes, width, temperature)
    kept = [node for node in nodes if first[node.id]]
    quality = softmax(kept, temperature)
    words = [node.id % n_texts if node.depth else None for node in kept]
    weights = []
    for word, weight in zip(words, quality, strict=True):
        row = sum(math.exp(0.0 if other == word else -100.0) for other in words)
        weights.append(weight * (1.0 / row))
    copies: list[int] = []
    for node, weight in zip(kept, weights, strict=True):
        copies += [node.id] * round(weight / sum(weights) * width)
    if not copies:
        order = sorted(range(len(kept)), key=lambda i: (-weights[i], i))[:width]
        copies = [node.id for i, node in enumerate(kept) if i in order]
    while len(copies) < width:
        copies += copies
    copies = copies[:width]
    return {node.id: copies.count(node.id) for node in nodes}


def rebase(
    search: Search,
    width: int,
    temperature: float,
    shares: Callable[[list[Node], int, float], dict[int, int]],
) -> None:
    frontier, left = [search.start()], width
    for _ in range(search.max_rounds):
        if not frontier:
            return
        if left <= 0:
            search.drop(frontier, "budget")
            return
        given = shares(frontier, left, temperature)
        search.drop([node for node in frontier if not given[node.id]], "zero_allocation")
        children = []
        for node in frontier:
            if given[node.id]:
                children += search.expand(node, given[node.id])
        left -= sum(node.is_finished for node in children)
        frontier = [node for node in children if node.reason == "step"]
    search.drop(frontier, "budget")


def particle_filter(search: Search, width: int) -> None:
    pool = [search.start()]
    for number in range(search.max_rounds):
        if all(node.is_finished for node in pool):
            break
        odds = []
        for node in pool:
            p = None if node.score is None else min(max(node.score, 1e-7), 1 - 1e-7)
            odds.append(0.0 if p is None else p / (1 - p))
        if not any(odds):
            odds = [1.0] * len(pool)
        ends = [sum(odds[: i + 1]) for i in range(len(odds))]
        draw = round_draw(search.seed, search.root, number)
        counts = [0] * len(pool)
        for slot in range(width):
            counts[bisect_right(ends, uniform(bits_at(draw, slot)) * ends[-1])] += 1
        stays, children = [], []
        for node, n in zip(pool, counts, strict=True):
            node.n_allocated = n
            if n == 0:
                node.dropped = "zero_allocation"
            elif node.is_finished:
                node.copies = n
                stays.append(node)
            else:
                children += search.expand(node, n)
        pool = stays + [node for node in children if node.dropped is None]
        if not children:
            break
    for node in pool:
        if node.is_finished:
            node.n_allocated = node.copies
        else:
            node.dropped = "budget"


def its_hub_beam(search: Search, width: int, n_kept: int) -> None:
    """Sort all candidates, keep the best, and repeat them all, finished ones too."""
    search.cut_goes_on = True
    first = search.expand(search.start(), width // n_kept)
    candidates = list(first)
    for number in range(1, search.max_rounds + 1):
        candidates.sort(key=lambda node: -1.0 if node.score is None else node.score, reverse=True)
        for node in candidates[n_kept:]:
            if node not in candidates[:n_kept]:
                node.dropped, node.n_allocated = "pruned", 0
        candidates = candidates[:n_kept] * (width // n_kept)
        for node in candidates:
            node.n_allocated = candidates.count(node)
        if number == search.max_rounds or all(node.is_finished for node in candidates):
            return
        following, expanded = [node for node in candidates if node.is_finished], []
        for node in candidates:
            if not node.is_finished and node not in expanded:
                expanded.append(node)
                following += search.expand(node, width // n_kept)
        candidates = following


def its_hub_particle(search: Search, width: int) -> None:
    """Draw particles by the odds of their scores, once more when all are finished."""
    search.cut_goes_on = True
    particles = search.expand(search.start(), width)
    for number in range(1, search.max_rounds + 1):
        odds, nodes = [], list(dict.fromkeys(particles))
        for node in nodes:
            p = None if node.score is None else min(max(node.score, 1e-7), 1 - 1e-7)
            odds.append(0.0 if p is None else p / (1 - p))
        if not any(odds):
            odds = [1.0] * len(nodes)
        ends = [sum(odds[: i + 1]) for i in range(len(odds))]
        draw = round_draw(search.seed, search.root, number)
        points = [uniform(bits_at(draw, slot)) * ends[-1] for slot in range(width)]
        drawn = [nodes[bisect_right(ends, point)] for point in points]
        for node in nodes:
            node.n_allocated = drawn.count(node)
            if node not in drawn:
                node.dropped = "zero_allocation"
        if number == search.max_rounds or all(node.is_finished for node in drawn):
            return
        particles = [node for node in nodes if node.is_finished and node in drawn]
        for node in nodes:
            if not node.is_finished and node in drawn:
                particles += search.expand(node, node.n_allocated)


def compute_optimal_tts(search: Search, width: int, m: int, word_of: Callable[[int], int]) -> None:
    """Choose among finished and unfinished candidates until all places are held by finished ones."""
    n_kept = width // m
    ends: list[Node] = []

    def legal(children: list[Node]) -> list[Node]:
        seen: set[int] = set()
        found = []
        for node in children:
            if node.dropped is None and word_of(node.id) in seen:
                node.dropped = "duplicate"
            elif node.dropped is None:
                seen.add(word_of(node.id))
                found.append(node)
        return found

    candidates = legal(search.expand(search.start(), width))
    for number in range(1, search.max_rounds + 1):
        kept = ranked(candidates)[: n_kept - len(ends)]
        search.drop([node for node in candidates if node not in kept], "pruned")
        for node in kept:
            node.n_allocated = 1
        ends += [node for node in kept if node.is_finished]
        if number == search.max_rounds:
            return
        going = [node for node in candidates if node in kept and not node.is_finished]
        candidates = []
        for node in going:
            candidates += legal(search.expand(node, m))
