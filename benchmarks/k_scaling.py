"""What an evaluation by complexity and K is worth, by simulation: bias, variance, size, coverage.

First, the evaluator itself, on a simulated reasoner whose accuracy at each level and K is known in
closed form: fresh draws for each K against one set of draws that every K reads (``reuse``). Each
instance is a replication, so that an accuracy of 1,000 instances has a standard error.

Second, whether the largest solvable complexity rises with K: how often the test rejects where it
does not (accuracy does not depend on K at all, or rises without a further level being solved), how
often the intervals hold the truth, and how often a true rise is found. Values of instances are
drawn here, tested by the functions that `compare_k_scaling` uses, and compared with the true
largest solvable complexities. Two tests that were not taken stand beside: a bootstrap of the
instances (percentiles of the rise), and exchanging the K of instances at random.

    python benchmarks/k_scaling.py

writes ``benchmarks/results/k_scaling.txt``; the exit status is 1 where the evaluator is further
than 4 standard errors from the truth, reuse does not save draws or variance, or the test rejects,
by more than 4 Monte-Carlo errors, more often than it says.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe.evaluator import (
    Evaluator,
    LogicalDeduction,
    SimulatedReasoner,
    TrajectoryAggregator,
)
from ttsframe.evaluator._crossings import (
    largest_solvable,
    level_tests,
    rise_p_value,
    solvable_interval,
)
from ttsframe.evaluator.results import SELECTOR_OF_METHOD, problems_of

Floats = npt.NDArray[np.float64]
Values = tuple[Floats, Floats]

RESULT: Final = Path(__file__).parent / "results" / "k_scaling.txt"
SEED: Final = 20_261_121
N_INSTANCES: Final = 1000
LEVELS: Final = (2, 7)
K_VALUES: Final = (1, 5, 10)
METHODS: Final = ("majority_vote", "first_valid", "oracle")
LIMIT: Final = 4.0
N_RUNS: Final = 1000
N_RESAMPLES: Final = 400
SIZES: Final = (5, 10, 30)


class Cell(NamedTuple):
    """One accuracy of the evaluator, and what it should be."""

    method: str
    reuse: bool
    k: int
    level: int
    accuracy: float
    truth: float
    standard_error: float

    @property
    def z(self) -> float:
        """Distance from the truth in standard errors."""
        return (self.accuracy - self.truth) / self.standard_error


class Spread(NamedTuple):
    """Variance over instances of the difference between the largest and the smallest K."""

    method: str
    level: int
    fresh: float
    reused: float


def evaluate(n_instances: int, seed: int) -> tuple[list[Cell], list[Spread], dict[bool, int]]:
    """Return accuracies with their truth, spreads of differences, and trajectories per instance."""
    cells, spreads, drawn = [], [], {}
    for method in METHODS:
        values: dict[bool, dict[int, pl.DataFrame]] = {}
        for reuse in (False, True):
            task = LogicalDeduction(seed=seed)
            model = SimulatedReasoner(task, collapse_at=4.5, seed=seed + reuse)
            n_drawn = 0

            def counting(prompt: str, k: int, model: SimulatedReasoner = model) -> list[str]:
                nonlocal n_drawn
                n_drawn += k
                return model(prompt, k)

            results = Evaluator(task, TrajectoryAggregator(method)).evaluate(  # type: ignore[arg-type]
                counting, LEVELS, K_VALUES, n_instances, verbose=False, reuse=reuse
            )
            drawn[reuse] = n_drawn // (n_instances * (LEVELS[1] - LEVELS[0] + 1))
            values[reuse] = {
                k: problems_of(result)
                .filter(selector=SELECTOR_OF_METHOD[method])
                .select("complexity", "problem_id", "value")
                for k, result in results.items()
            }
            for k, table in values[reuse].items():
                for (level,), of_level in table.group_by("complexity", maintain_order=True):
                    mean, spread = of_level["value"].mean(), of_level["value"].std()
                    truth = model.expected_accuracy(level, k, method)
                    # Where none or all are solved, the sample shows no spread, but the truth does; and
                    # a single instance is within the error.
                    if not reuse or k == max(K_VALUES):
                        spread = math.sqrt(truth * (1.0 - truth))
                    error = max(spread / math.sqrt(n_instances), 1.0 / n_instances)
                    assert math.isclose(
                        mean, results[k].accuracy_by_complexity[level], abs_tol=1e-9
                    )
                    cells.append(Cell(method, reuse, k, level, mean, truth, error))
        for level in range(LEVELS[0], LEVELS[1] + 1):
            fresh, reused = (
                values[reuse][K_VALUES[-1]]
                .join(values[reuse][K_VALUES[0]], on=["complexity", "problem_id"])
                .filter(complexity=level)
                .select((pl.col("value") - pl.col("value_right")).var())
                .item()
                for reuse in (False, True)
            )
            spreads.append(Spread(method, level, fresh, reused))
    return cells, spreads, drawn


class World(NamedTuple):
    """A truth: accuracy by level at the smallest and the largest K, and how values are drawn."""

    name: str
    low: Floats
    high: Floats
    threshold: float
    draw: Callable[[World, int, np.random.Generator], Values]

    @property
    def levels(self) -> list[int]:
        """Levels from 1."""
        return [*range(1, len(self.low) + 1)]

    def solvable(self) -> tuple[int, int]:
        """Return the true largest solvable complexity at either K."""
        low, high = (
            largest_solvable(means, self.levels, self.threshold) for means in (self.low, self.high)
        )
        return low, high


def fresh(world: World, n: int, rng: np.random.Generator) -> Values:
    """Draw solved or not, for each K on its own."""
    shape = (len(world.low), n)
    return tuple(  # type: ignore[return-value]
        (rng.random(shape) < chance[:, None]).astype(np.float64)
        for chance in (world.low, world.high)
    )


def uneven(world: World, n: int, rng: np.random.Generator) -> Values:
    """Draw solved or not, where instances of a level are easy or hard for both K alike."""
    rank = rng.random((len(world.low), n))
    chances = [
        np.clip(
            chance[:, None] + 0.8 * np.minimum(chance, 1.0 - chance)[:, None] * (rank - 0.5) * 2,
            0,
            1,
        )
        for chance in (world.low, world.high)
    ]
    return tuple((rng.random(rank.shape) < chance).astype(np.float64) for chance in chances)  # type: ignore[return-value]


def reused(
    shares: Sequence[Sequence[float]], n_draws: int, *, is_oracle: bool = False
) -> Callable[[World, int, np.random.Generator], Values]:
    """Return draws of answers, of which the first is right, that both K read: K = 1 and all."""

    def draw(_: World, n: int, rng: np.random.Generator) -> Values:
        low, high = [], []
        for of_level in shares:
            votes = rng.multinomial(n_draws, of_level, size=n)
            most = votes.max(axis=1)
            n_tied = (votes == most[:, None]).sum(axis=1)
            low.append(votes[:, 0] / n_draws)
            high.append(votes[:, 0] > 0 if is_oracle else (votes[:, 0] == most) / n_tied)
        return np.array(low), np.array(high, dtype=np.float64)

    return draw


def guessing(kinds: Sequence[int], threshold: float) -> World:
    """Return a world in which all answers of a level are equally likely: K cannot matter."""
    chances = 1.0 / np.array(kinds)
    shares = [[1.0 / kind] * kind for kind in kinds]
    name = f"even guesses among {', '.join(map(str, kinds))} answers, reused"
    return World(name, chances, chances, threshold, reused(shares, 10))


def voting(name: str, collapse_at: float, wrong: Sequence[float], *, is_oracle: bool) -> World:
    """Return a world in which the answers of a simulated reasoner are voted on, or judged."""
    model = SimulatedReasoner(
        LogicalDeduction(), collapse_at=collapse_at, wrong_weights=wrong, no_answer_share=0.0
    )
    levels = range(1, 9)
    method = "oracle" if is_oracle else "majority_vote"
    low, high = (
        np.array([model.expected_accuracy(level, k, method) for level in levels]) for k in (1, 10)
    )
    shares = [[chance, *[(1.0 - chance) * share / sum(wrong) for share in wrong]] for chance in low]
    return World(name, low, high, 0.5, reused(shares, 10, is_oracle=is_oracle))


def all_or_nothing(world: World, n: int, rng: np.random.Generator) -> Values:
    """Draw values of 0.9 and 0, of the mean that the world says, each drawn anew for each K; 0.01 apart at most."""
    shape = (len(world.low), n)
    return tuple(  # type: ignore[return-value]
        0.9 * (rng.random(shape) < chance[:, None] / 0.9) + 0.01 * rng.random(shape)
        for chance in (world.low, world.high)
    )


SLOPE: Final = np.array([0.98, 0.9, 0.75, 0.6, 0.42, 0.25, 0.1, 0.03])
LATER: Final = np.array([1.0, 0.99, 0.95, 0.9, 0.8, 0.65, 0.4, 0.2])
CLIFF: Final = np.array([0.95, 0.95, 0.95, 0.05, 0.05, 0.05])
FAR_CLIFF: Final = np.array([0.95, 0.95, 0.95, 0.95, 0.95, 0.05])
BELOW, ABOVE, AT, NEAR = (np.full(6, chance) for chance in (0.45, 0.6, 0.5, 0.49))

K_DOES_NOT_MATTER: Final = (
    World("slope", SLOPE, SLOPE, 0.5, fresh),
    World("slope, uneven instances", SLOPE, SLOPE, 0.5, uneven),
    World("cliff", CLIFF, CLIFF, 0.5, fresh),
    World("all levels at 45 %", BELOW, BELOW, 0.5, fresh),
    World("all levels at 50 %", AT, AT, 0.5, fresh),
    World("all levels at 60 %", ABOVE, ABOVE, 0.5, fresh),
    World(
        "all levels at 49 %, in values of 0.9 and 0",
        NEAR - 0.005,
        NEAR - 0.005,
        0.5,
        all_or_nothing,
    ),
    guessing([1, 2, 2, 3, 4, 5], 0.3),
    guessing([2, 2, 2, 2, 2, 2], 0.5),
    guessing([3, 3, 3, 3, 3, 3], 0.4),
)
ONLY_ACCURACY_RISES: Final = (
    World("all levels from 60 to 95 %", ABOVE, np.full(6, 0.95), 0.5, fresh),
    World(
        "60 to 95 %, then a cliff",
        np.array([0.6, 0.6, 0.6, 0.6, 0.05]),
        np.array([0.95, 0.95, 0.95, 0.95, 0.05]),
        0.5,
        fresh,
    ),
    World("cliff, and 5 to 45 % behind it", CLIFF, np.maximum(CLIFF, 0.45), 0.5, fresh),
    World("all levels from 5 to 45 %", np.full(6, 0.05), BELOW, 0.5, fresh),
    World(
        "90 to 49 % behind the first, in values of 0.9 and 0",
        np.array([0.89, 0.05, 0.05]),
        np.array([0.89, 0.49, 0.05]),
        0.5,
        all_or_nothing,
    ),
    voting("votes with one wrong answer", 4.6, [1.0], is_oracle=False),
)
IT_RISES: Final = (
    World("cliff 3 to 5", CLIFF, FAR_CLIFF, 0.5, fresh),
    World("slope 4 to 6", SLOPE, LATER, 0.5, fresh),
    World(
        "48 to 52 % at one level",
        np.array([0.9, 0.9, 0.48, 0.1]),
        np.array([0.9, 0.9, 0.52, 0.1]),
        0.5,
        fresh,
    ),
    voting("votes, ten wrong answers", 4.6, [1.0] * 10, is_oracle=False),
    voting("oracle", 4.6, [1.0], is_oracle=True),
)


class Row(NamedTuple):
    """What tests and intervals did in one world."""

    world: World
    n: int
    rejected: float
    """Share of runs with a p-value of at most 0.05."""
    bootstrapped: float
    """Share of runs in which the interval of a bootstrap does not hold 0."""
    exchanged: float
    """Share of runs that a test by exchanging the K rejects."""
    held: float
    """Share of intervals of the rise that hold the true one."""
    held_low: float
    held_high: float
    """The same of the largest solvable complexity at either K."""
    width: float
    """Mean width of the interval of the rise, in levels."""
    n_runs: int

    def excess(self, share: float) -> float:
        """Return by how many standard errors a share of wrong runs is above 5 %."""
        return (share - 0.05) / math.sqrt(0.05 * 0.95 / self.n_runs)

    @property
    def is_null(self) -> bool:
        """Whether there is no rise to be found."""
        low, high = self.world.solvable()
        return low == high


def many_solvable(means: Floats, threshold: float) -> npt.NDArray[np.int64]:
    """Return how many levels are solved before the first that is not, along the last axis."""
    return np.cumprod(means >= threshold - 1e-9, axis=-1).sum(axis=-1)


def bootstrap_rejects(values: Values, threshold: float, rng: np.random.Generator) -> bool:
    """Resample the instances of each level, the same for both K; read off percentiles of the rise."""
    n_levels, n = values[0].shape
    counts = rng.multinomial(n, np.full(n, 1 / n), size=(N_RESAMPLES, n_levels))
    low, high = (many_solvable((counts * of_k).sum(axis=-1) / n, threshold) for of_k in values)
    least, most = np.quantile(high - low, [0.025, 0.975], method="inverted_cdf")
    return bool(least > 0 or most < 0)


def exchange_rejects(values: Values, threshold: float, rng: np.random.Generator) -> bool:
    """Exchange the K of each instance with chance one half; see how often the rise is as large."""
    low, high = values
    n = low.shape[1]
    moved = (rng.integers(0, 2, (N_RESAMPLES, *low.shape)) * (high - low)).sum(axis=-1)
    rises = many_solvable((high.sum(axis=-1) - moved) / n, threshold) - many_solvable(
        (low.sum(axis=-1) + moved) / n, threshold
    )
    found = many_solvable(high.mean(axis=1), threshold) - many_solvable(low.mean(axis=1), threshold)
    return bool((1 + (abs(rises) >= abs(found)).sum()) / (1 + N_RESAMPLES) <= 0.05)


def run(world: World, n: int, n_runs: int, seed: int) -> Row:
    """Evaluate a world many times."""
    rng = np.random.default_rng([seed, n, *world.name.encode()])
    low, high = world.solvable()
    found = []
    for _ in range(n_runs):
        values = world.draw(world, n, rng)
        tests = [level_tests([*of_k], world.threshold) for of_k in values]
        of_low, of_high = (solvable_interval(one, world.levels, 0.025) for one in tests)
        least, most = (solvable_interval(one, world.levels, 0.0125) for one in tests)
        rise = (most[0] - least[1], most[1] - least[0])
        found.append((
            rise_p_value(*tests) <= 0.05,
            bootstrap_rejects(values, world.threshold, rng),
            exchange_rejects(values, world.threshold, rng),
            rise[0] <= high - low <= rise[1],
            of_low[0] <= low <= of_low[1],
            of_high[0] <= high <= of_high[1],
            rise[1] - rise[0],
        ))
    return Row(world, n, *np.mean(np.array(found, dtype=np.float64), axis=0).tolist(), n_runs)


def is_too_often(row: Row) -> bool:
    """Return whether a test rejects more often than it says where there is no rise."""
    return row.is_null and row.excess(row.rejected) > LIMIT


def table_of_cells(cells: Sequence[Cell]) -> list[str]:
    """Return the accuracies as text: the mean over levels, and the worst distance of one."""
    lines = [
        f"{'method':<16}{'K':>4}{'truth':>9}{'fresh':>9}{'worst z':>9}{'reused':>9}{'worst z':>9}"
    ]
    for method in METHODS:
        for k in K_VALUES:
            line = f"{method:<16}{k:>4}"
            for reuse in (False, True):
                own = [c for c in cells if (c.method, c.k, c.reuse) == (method, k, reuse)]
                if not reuse:
                    line += f"{np.mean([c.truth for c in own]):>9.4f}"
                line += (
                    f"{np.mean([c.accuracy for c in own]):>9.4f}{max(abs(c.z) for c in own):>9.1f}"
                )
            lines.append(line)
    return lines


def table_of_rows(rows: Sequence[Row]) -> list[str]:
    """Return tests and intervals as text."""
    head = f"{'true accuracy by level':<52}{'rise':>5}{'n':>4}{'test':>8}{'bootstr.':>9}{'exchange':>9}"
    lines = [f"{head}{'rise':>8}{'low K':>8}{'high K':>8}{'width':>7}"]
    for row in rows:
        low, high = row.world.solvable()
        lines.append(
            f"{row.world.name:<52}{high - low:>5}{row.n:>4}{row.rejected:>8.3f}"
            f"{row.bootstrapped:>9.3f}{row.exchanged:>9.3f}{row.held:>8.3f}{row.held_low:>8.3f}"
            f"{row.held_high:>8.3f}{row.width:>7.2f}"
        )
    return lines


def missed(rows: Sequence[Row]) -> list[str]:
    """Return the intervals that cover less than they say, by more than two standard errors."""
    lines = []
    for row in rows:
        for what in ("held", "held_low", "held_high"):
            share = getattr(row, what)
            if row.excess(1.0 - share) > 2.0:
                of = {"held": "the rise", "held_low": "low K", "held_high": "high K"}[what]
                lines.append(f"  {row.world.name}, n = {row.n}, {of}: {share:.3f}")
    return lines


def main() -> int:
    """Write the tables; the exit status is 1 where they are not as claimed."""
    cells, spreads, drawn = evaluate(N_INSTANCES, SEED)
    biased = [cell for cell in cells if abs(cell.z) > LIMIT]
    ratios = [spread.reused / spread.fresh for spread in spreads if spread.fresh]
    worlds = {
        "K does not matter": K_DOES_NOT_MATTER,
        "accuracy rises, and no further level is solved": ONLY_ACCURACY_RISES,
        "the largest solvable complexity rises": IT_RISES,
    }
    rows = {
        name: [run(world, n, N_RUNS, SEED) for world in each for n in SIZES]
        for name, each in worlds.items()
    }
    every = [row for each in rows.values() for row in each]
    too_often = [row for row in every if is_too_often(row)]
    lines = [
        f"Evaluator: {N_INSTANCES:,} instances a level, levels {LEVELS[0]} to {LEVELS[1]}, a simulated reasoner that",
        "collapses at 4.5; accuracy is the mean over levels, the worst z is that of one level.",
        "",
        f"trajectories of an instance: {drawn[False]} fresh, {drawn[True]} reused",
        f"accuracies further than {LIMIT:g} standard errors from the truth: {len(biased)} of {len(cells)}",
        (
            "variance of the difference between K = 10 and K = 1, reused / fresh: "
            f"{min(ratios):.3f} to {max(ratios):.3f} by method and level"
        ),
        "",
        *table_of_cells(cells),
        "",
        f"Largest solvable complexity: {N_RUNS:,} runs a line of n instances a level, seed {SEED}. Shares of",
        "runs in which the test rejects at 5 %, a bootstrap would, and exchanging K would; of 95 %",
        "intervals that hold the truth: of the rise, and of the level at the small and the large K; and",
        "the mean width of the interval of the rise, in levels.",
        "",
        (
            f"runs without a rise, in which the test rejects more than 5 % of the time, by {LIMIT:g} standard "
            f"errors: {len(too_often)} of {sum(row.is_null for row in every)} lines; most: "
            f"{max(row.rejected for row in every if row.is_null):.3f}"
        ),
        (
            "the same of the bootstrap: "
            f"{max(row.bootstrapped for row in every if row.is_null):.3f}, of exchanging K: "
            f"{max(row.exchanged for row in every if row.is_null):.3f}"
        ),
        "intervals that hold the truth less than 95 % of the time, by 2 standard errors:",
        *(missed(every) or ["  none"]),
    ]
    for name, each in rows.items():
        lines += ["", name, *table_of_rows(each)]
    print("\n".join(lines))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(bool(biased or too_often or drawn != {False: 16, True: 10} or max(ratios) >= 1.0))


if __name__ == "__main__":
    sys.exit(main())
