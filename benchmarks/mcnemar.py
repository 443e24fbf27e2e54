"""Size and power of McNemar's test, mid-p and exact, by enumeration.

``python benchmarks/mcnemar.py`` prints the tables that are kept in ``benchmarks/results/mcnemar.txt``.
Every number is a finite sum over how many problems differ, and how many of those are won.
"""

from __future__ import annotations

from typing import Final

import ttsframe as tts
from ttsframe.statistics.power import PairedTest

TESTS: Final[tuple[PairedTest, ...]] = ("mcnemar_mid_p", "mcnemar_exact")
SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def power(effect: float, share: float, n_problems: int, test: PairedTest) -> float:
    """Return the power where a share of the problems differs."""
    design = tts.statistics.PairedDesign(
        variance_between=share - effect**2, variance_within=0.0, variance_within_baseline=0.0
    )
    return design.power(effect, n_problems=n_problems, test=test)


def largest_size(share: float, test: PairedTest) -> tuple[float, int]:
    """Return the largest size over 5 to 400 problems, and the number of problems."""
    return max((power(0.0, share, n, test), n) for n in range(5, 401))


def main() -> None:
    """Print size and power."""
    print("Largest size at 5 % over 5 to 400 problems, by the share of problems that differ\n")
    print("share   mid-p  (problems)   exact")
    for share in SHARES:
        (mid, n), (exact, _) = (largest_size(share, test) for test in TESTS)
        print(f"{share:<6g}{mid:>7.4f}{n:>12}{exact:>8.4f}")
    print(
        "\nPower for a difference in accuracy\n\nproblems  share  difference   mid-p   exact  gained"
    )
    for n_problems in (30, 100, 500):
        for share in (0.1, 0.3, 0.5):
            for effect in (0.05, 0.1, 0.2):
                if effect >= share:
                    continue
                mid, exact = (power(effect, share, n_problems, test) for test in TESTS)
                print(
                    f"{n_problems:<10}{share:<7g}{effect:<12g}{mid:>6.3f}{exact:>8.3f}{mid - exact:>8.3f}"
                )


if __name__ == "__main__":
    main()
