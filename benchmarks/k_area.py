"""The area between the curves of two K: coverage, size and power, beside the test of the largest level.

Worlds are those of `k_scaling.py`: K does not matter, only accuracy rises, or further levels become
solvable. The interval of the area is to hold the true area in 95 % of the runs.

    python benchmarks/k_area.py [runs]

writes ``benchmarks/results/k_area.txt``; misses are named at its end.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Final

import numpy as np
from k_scaling import IT_RISES, K_DOES_NOT_MATTER, ONLY_ACCURACY_RISES, SEED, SIZES, World

from ttsframe.evaluator._area import area_between
from ttsframe.evaluator._crossings import level_tests, rise_p_value

RESULT: Final = Path(__file__).parent / "results" / "k_area.txt"


def run(world: World, n: int, n_runs: int) -> tuple[float, list[float]]:
    """Return the true area; and the shares of runs that hold it, reject 0, and find a rise of the level."""
    rng = np.random.default_rng([SEED, n, *world.name.encode()])
    gained = world.high - world.low
    truth = float(gained.sum() - (gained[0] + gained[-1]) / 2.0)
    found = []
    for _ in range(n_runs):
        low, high = world.draw(world, n, rng)
        area = area_between([*low], [*high], world.levels, of_k=(1, 10), confidence_level=0.95)
        least, most = area["ci_low"], area["ci_high"]
        assert least is not None
        assert most is not None
        tests = [level_tests([*values], world.threshold) for values in (low, high)]
        found.append((
            least <= truth + 1e-9 and truth - 1e-9 <= most,
            least > 0.0 or most < 0.0,
            rise_p_value(*tests) <= 0.05,
            most - least,
        ))
    return truth, np.mean(np.array(found, dtype=np.float64), axis=0).tolist()


def main(n_runs: int) -> None:
    """Write the table."""
    lines = [
        f"Area between the curves, in levels: {n_runs:,} runs a line of n instances a level. Shares of runs whose",
        "95 % interval holds the true area, or leaves out 0; in which the test of the largest solvable level",
        "rejects at 5 %; and the mean width of the interval.",
        "",
        f"{'true accuracy by level':<52}{'area':>6}{'n':>4}{'holds':>8}{'not 0':>8}{'level':>8}{'width':>7}",
    ]
    missed = []
    for world in (*K_DOES_NOT_MATTER, *ONLY_ACCURACY_RISES, *IT_RISES):
        for n in SIZES:
            truth, (held, rejected, level, width) = run(world, n, n_runs)
            lines.append(
                f"{world.name:<52}{truth:>6.2f}{n:>4}{held:>8.3f}{rejected:>8.3f}{level:>8.3f}{width:>7.2f}"
            )
            if held < 0.95 - 2.0 * math.sqrt(0.05 * 0.95 / n_runs):
                missed.append(f"  {world.name}, n = {n}: {held:.3f}")
    lines += ["", "below 95 % by two Monte-Carlo errors:", *(missed or ["  none"])]
    print("\n".join(lines))
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
