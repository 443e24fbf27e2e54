"""The curve written out as slow, obvious Python: what `scaling_curve` must agree with."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

SEVERITY = ["ok", "ungraded", "undefined", "unscored", "short"]


def curve(
    problems: Sequence[dict[str, Any]],
    *,
    common: bool = True,
    confidence_level: float = 0.95,
) -> dict[tuple[str, str | None, int | None], dict[str, Any]]:
    """Average problems per (selector, reduction, budget); rows of one problem are replicates."""
    lines: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in problems:
        lines[row["selector"], row["reduction"]].append(row)
    result = {}
    for line, rows in lines.items():
        budgets = sorted({row["budget"] for row in rows})
        cells = {
            (name, budget): judge(
                [r for r in rows if (r["problem_id"], r["budget"]) == (name, budget)], common=common
            )
            for name in {row["problem_id"] for row in rows}
            for budget in budgets
        }
        names = {name for name, _ in cells}
        if common:
            worst = {
                name: max((cells[name, b][1] for b in budgets), key=SEVERITY.index)
                for name in names
            }
            cells = {(name, b): (value, worst[name]) for (name, b), (value, _) in cells.items()}
        kept = [value for value, status in cells.values() if status == "ok"]
        is_fractional = any(value not in {0.0, 1.0} for value in kept)
        for budget in budgets:
            at_budget = [cells[name, budget] for name in names]
            values = [value for value, status in at_budget if status == "ok"]
            counts = {
                f"n_{status}": sum(found == status for _, found in at_budget)
                for status in SEVERITY[1:]
            }
            result[*line, budget] = counts | summary(
                values, is_fractional=is_fractional, confidence_level=confidence_level
            )
    return result


def judge(rows: Sequence[dict[str, Any]], *, common: bool) -> tuple[float | None, str]:
    """Average the replicates of one problem at one budget."""
    if not rows:
        return None, "short"
    statuses = [row["status"] for row in rows]
    status = (max if common else min)(statuses, key=SEVERITY.index)
    values = [row["value"] for row in rows if row["status"] == "ok"]
    return (math.fsum(values) / len(values) if values else None), status


def summary(
    values: Sequence[float], *, is_fractional: bool, confidence_level: float
) -> dict[str, Any]:
    """Return accuracy, standard error and interval of the values of problems."""
    n = len(values)
    found: dict[str, Any] = {
        "n_problems": n,
        "accuracy": math.fsum(values) / n if n else None,
        "standard_error": None,
        "ci_low": None,
        "ci_high": None,
    }
    if n < 2:
        return found
    mean = found["accuracy"]
    error = statistics.stdev(values) / math.sqrt(n)
    found["standard_error"] = error
    if is_fractional and 5.0 <= math.fsum(values) <= n - 5.0:
        half = stats.t.ppf((1 + confidence_level) / 2, n - 1) * error
        low, high = max(0.0, mean - half), min(1.0, mean + half)
    elif is_fractional:
        low, high = fractional_wilson(mean, n, confidence_level)
    else:
        test = stats.binomtest(round(math.fsum(values)), n)
        low, high = test.proportion_ci(confidence_level, method="wilson")
    return found | {"ci_low": low, "ci_high": high}


def fractional_wilson(mean: float, n: int, confidence_level: float) -> tuple[float, float]:
    """Return the proportions at which a mean is just not rejected: the roots of a quadratic."""
    z = stats.norm.ppf((1 + confidence_level) / 2)
    roots = np.roots([1 + z * z / n, -(2 * mean + z * z / n), mean * mean])
    return float(min(roots.real)), float(max(roots.real))
