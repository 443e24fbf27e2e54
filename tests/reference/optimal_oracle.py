"""Compute-optimal choices written out as slow, obvious Python, one problem after the other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import curve_oracle

HONEST, IN_SAMPLE = "compute_optimal", "compute_optimal_in_sample"


def folds_of(levels: Mapping[Any, Any], *, n_folds: int, seed: int) -> dict[Any, int]:
    """Deal problems into folds; `levels` is by (problem, half)."""
    hardest: dict[Any, Any] = {}
    for (name, _), level in levels.items():
        known = [each for each in (hardest.get(name), level) if each is not None]
        hardest[name] = max(known, default=None)

    def order(name: Any) -> tuple[Any, ...]:
        digest = hashlib.blake2b(f"{seed} {name!r}".encode(), digest_size=8).digest()
        level = hardest[name]
        return (level is not None, level or 0, int.from_bytes(digest, "little"), name)

    return {name: i % n_folds for i, name in enumerate(sorted(hardest, key=order))}


def optimal(
    rows: Sequence[dict[str, Any]],
    levels: Mapping[Any, Any],
    *,
    n_folds: int = 2,
    seed: int = 0,
    common: bool = True,
    strategy: Sequence[str] = ("selector", "reduction"),
) -> tuple[dict[Any, dict[str, Any]], dict[Any, dict[str, Any]]]:
    """Return the curve by (line, None, budget), and choices by (level, budget, fold)."""
    rows = [row for row in rows if row["selector"] != "oracle"]
    folds = folds_of(levels, n_folds=n_folds, seed=seed)
    cells = {
        (r["problem_id"], r.get("fold"), r["budget"], tuple(r[s] for s in strategy)): r
        for r in rows
    }
    assert len(cells) == len(rows)
    places = sorted({cell[:3] for cell in cells}, key=repr)
    status = {place: judge(place, cells, common=common) for place in places}
    level = {
        (name, half, budget): levels.get((name, half), levels.get((name, None)))
        for name, half, budget in places
    }
    for place in places:
        if level[place] is None:
            status[place] = max(status[place], "undefined", key=curve_oracle.SEVERITY.index)
    choices: dict[Any, dict[str, Any]] = {}
    judged: list[dict[str, Any]] = []
    for place in places:
        name, half, budget = place
        base = {"problem_id": name, "half": half, "budget": budget, "reduction": None}
        if status[place] != "ok":
            judged += [
                base | {"selector": line, "value": None, "status": status[place]}
                for line in (HONEST, IN_SAMPLE)
            ]
            continue
        alike = [
            p for p in places if status[p] == "ok" and level[p] == level[place] and p[2] == budget
        ]
        others = [p for p in alike if folds[p[0]] != folds[name]]
        for line, seen in ((HONEST, others), (IN_SAMPLE, alike)):
            if not others:
                judged.append(base | {"selector": line, "value": None, "status": "undefined"})
                continue
            used = [p for p in alike if folds[p[0]] == folds[name]] if line == HONEST else alike
            choice = choose(seen, used, cells, strategy)
            fold = folds[name] if line == HONEST else None
            choices[level[place], budget, fold] = choice
            value = cells[*place, choice["strategy"]]["value"]
            judged.append(base | {"selector": line, "value": value, "status": "ok"})
    return curve_oracle.curve(judged, common=common), choices


def judge(place: Any, cells: Mapping[Any, dict[str, Any]], *, common: bool) -> str:
    """Return the worst status of a problem under all strategies (and, in common, budgets)."""
    name, half, budget = place
    if common:
        wanted = {cell[1:] for cell in cells}
        found = {cell[1:]: row for cell, row in cells.items() if cell[0] == name}
    else:
        wanted = {cell[3:] for cell in cells if cell[1:3] == (half, budget)}
        found = {cell[3:]: row for cell, row in cells.items() if cell[:3] == place}
    if wanted - found.keys():
        return "short"
    return max((row["status"] for row in found.values()), key=curve_oracle.SEVERITY.index)


def choose(
    seen: Sequence[Any],
    used: Sequence[Any],
    cells: Mapping[Any, dict[str, Any]],
    strategy: Sequence[str],
) -> dict[str, Any]:
    """Return the best strategy on some problems, and what it is worth on others."""
    candidates = {cell[3] for cell in cells if cell[2] == seen[0][2]}

    def mean(which: Any, places: Sequence[Any], column: str) -> float:
        return math.fsum(cells[*place, which].get(column) or 0 for place in places) / len(places)

    best = max(mean(each, seen, "value") for each in candidates)
    tied = [each for each in candidates if mean(each, seen, "value") >= best - 1e-9]
    cheapest = min(mean(each, seen, "tokens") for each in tied)
    cheap = [each for each in tied if mean(each, seen, "tokens") <= cheapest * (1 + 1e-9)]

    def order(which: Any) -> Any:
        reads = dict(zip(strategy, which, strict=True)).get("reduction") is not None
        return (reads, [(part is not None, part or "") for part in which])

    chosen = min(cheap, key=order)
    return {
        "strategy": chosen,
        "accuracy_seen": mean(chosen, seen, "value"),
        "accuracy": mean(chosen, used, "value"),
        "n_seen": len({place[0] for place in seen}),
        "n_problems": len({place[0] for place in used}),
        "n_strategies": len(candidates),
        "n_tied": len(tied),
        "cost": mean(chosen, used, "tokens"),
    }
