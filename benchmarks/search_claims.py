"""What the literature says of searches, in simulation: `python benchmarks/search_claims.py`.

The simulated verifier has the parameters in `search_parameters.json`, which `search_fit.py` fitted before
any of these runs. Around them, noise, the persistence of errors, a bias of the verifier and the difficulty
of the problems are varied, each combination a cell. Cells are printed in full, then the share of cells in
which each claim holds, beside the counterfactual that removes its cause.

A claim that one search is better than another *holds* in a cell if the paired difference of accuracy over
the problems is above 0.02 and above two standard errors; it is *reversed* if it is below -0.02 and two
standard errors; else it is *open*. "At least as good" holds unless it is reversed.

Accuracy is that of the weighted vote over the solutions of a search, by their last scores, as in the
search-and-learn experiment; "best" takes the solution of the highest score instead.
Levels are fifths of the problems by their true accuracy. ``TTSFRAME_CLAIM_PROBLEMS`` sets the number of
problems of all levels (default 500).
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

import ttsframe as tts

N_PROBLEMS = int(os.environ.get("TTSFRAME_CLAIM_PROBLEMS", "500"))
FILE = json.loads((Path(__file__).parent / "search_parameters.json").read_text(encoding="utf-8"))
FITTED = FILE["parameters"]
WIDTHS = (4, 16, 64)
LEVELS = ("level 1", "level 2", "level 3", "level 4", "level 5")
"""Easiest first."""
EASY, HARD = ("level 1", "level 2"), ("level 3", "level 4", "level 5")
NOISE = {"no noise": 0.0, "fitted noise": 1.0, "twice the noise": 2.0}
"""Times the fitted noise."""
PERSISTENCE = {"independent": 0.0, "fitted": FITTED["persistence"], "persistent": 0.95}
BIAS: dict[str, dict[str, float]] = {
    "no bias": {},
    "exploits": {"hack_rate": 0.05, "hack_size": 4.0},
    "ideas": {name: FITTED[name] for name in ("trap_rate", "trap_size")},
    "as fitted": {name: FITTED[name] for name in ("trap_rate", "trap_size", "delay", "optimism")},
}
N_STEPS = tuple(FILE["n_steps"])
LOOKAHEADS, DELAYS = (0, 3), (0, 3)

Cell = tuple[str, str, str, str]


class Answers(NamedTuple):
    """Whether each problem of a cell was solved, by search, width and selector."""

    cell: Cell
    right: pl.DataFrame


def searched(
    setting: tuple[str, str, str],
    policies: Iterable[tts.search.Policy],
    faults: tts.search.VerifierFaults,
) -> list[Answers]:
    """Search all problems with all policies; return who solved what in each level."""
    world = tts.search.simulate(
        N_PROBLEMS,
        seed=0,
        accuracy=FITTED["accuracy"],
        spread=FITTED["spread"],
        n_steps=N_STEPS,
        faults=faults,
    )
    found = []
    for policy in policies:
        nodes = tts.search.search(*world, policy, seed=1)
        solutions = tts.search.to_trajectories(
            nodes, policy=policy, problems=world.problems.select("problem_id", "gold")
        )
        name = f"{policy.name} {policy.lookahead}".removesuffix(" 0")
        # Independent solutions hold the smaller runs: some of them, drawn by the hash in node_id.
        widths = WIDTHS if policy.is_exchangeable else [policy.width]
        found += [
            solutions.filter(
                pl.col("node_id").rank("ordinal").over("problem_id") <= width
            ).with_columns(name=pl.lit(name), width=pl.lit(width, pl.Int64))
            for width in widths
        ]
    # Only the last step has an answer.
    scored = tts.score_trajectories(
        pl.concat(found).with_columns(pl.col("completion").str.tail(40))
    )
    picked = tts.select_answers(
        scored, selectors=["majority_vote", "weighted_vote", "best_of_n"], by=["name", "width"]
    )
    rank = pl.col("true_accuracy").rank("ordinal", descending=True) - 1
    levels = world.problems.select(
        "problem_id", level=pl.concat_str(pl.lit("level "), rank * 5 // pl.len() + 1)
    )
    right = picked.join(levels, on="problem_id").select(
        "level",
        "name",
        "width",
        "selector",
        "problem_id",
        pl.col("is_correct").fill_null(value=False).cast(pl.Float64),
    )
    return [Answers((*setting, level), right.filter(level=level)) for level in LEVELS]


def outcome(difference: pl.Series) -> str:
    """Judge a paired difference."""
    mean = float(difference.mean())
    error = float(difference.std()) / len(difference) ** 0.5
    if mean > max(0.02, 2 * error):
        return "holds"
    return "reversed" if mean < min(-0.02, -2 * error) else "open"


def paired(
    right: pl.DataFrame, one: tuple[str, int, str], other: tuple[str, int, str]
) -> pl.Series:
    """Return the difference of two searches on each problem."""

    def of(name: str, width: int, selector: str) -> pl.DataFrame:
        rows = right.filter(name=name, width=width, selector=selector)
        return rows.select("problem_id", "is_correct")

    both = of(*one).join(of(*other), on="problem_id", suffix="_other")
    return both["is_correct"] - both["is_correct_other"]


def best_of(name: str, width: int) -> tuple[str, int, str]:
    return name, width, "best_of_n"


def vote(name: str, width: int) -> tuple[str, int, str]:
    return name, width, "weighted_vote"


def majority(width: int) -> tuple[str, int, str]:
    return "best_of_n", width, "majority_vote"


Where = Callable[[Cell], bool]


def tally(
    title: str,
    cells: list[Answers],
    one: tuple[str, int, str],
    other: tuple[str, int, str],
    where: Where,
    *,
    at_least: bool = False,
) -> float:
    """Print in how many of the cells a claim holds; return the mean difference."""
    chosen = [paired(each.right, one, other) for each in cells if where(each.cell)]
    outcomes = [outcome(each) for each in chosen]
    counts = {name: outcomes.count(name) for name in ("holds", "open", "reversed")}
    n = len(chosen)
    held = n - counts["reversed"] if at_least else counts["holds"]
    mean = sum(float(each.mean()) for each in chosen) / n
    kind = "at least as good" if at_least else "better"
    print(
        f"  {title}: {kind} in {held} of {n} cells ({held / n:.0%}); "
        f"better {counts['holds']}, open {counts['open']}, reversed {counts['reversed']}; "
        f"mean difference {mean:+.3f}"
    )
    return mean


def level_of(cell: Cell) -> str:
    return cell[3]


def is_fitted(cell: Cell) -> bool:
    """Leave out the counterfactuals: a perfect verifier, and independent errors."""
    return cell[0] != "no noise" and cell[1] != "independent"


def run_grid() -> list[Answers]:
    """Run every combination of noise, persistence and bias."""
    cells = []
    for noise, persistence, bias in itertools.product(NOISE, PERSISTENCE, BIAS):
        # Without noise its persistence means nothing; twice the noise is tried at the fitted one only.
        if noise != "fitted noise" and persistence != "fitted":
            continue
        faults = tts.search.VerifierFaults(
            noise=NOISE[noise] * FITTED["noise"],
            persistence=PERSISTENCE[persistence],
            **BIAS[bias],
        )
        policies = [
            tts.search.BestOfN(max(WIDTHS)),
            *[make(width) for make in (tts.search.Beam, tts.search.DVTS) for width in WIDTHS],
        ]
        cells += searched((noise, persistence, bias), policies, faults)
    return cells


def print_grid(cells: list[Answers]) -> None:
    """Print the accuracy of every search in every cell."""
    columns = [(name, width) for name in ("best_of_n", "beam", "dvts") for width in WIDTHS]
    heads = [f"{ {'best_of_n': 'bon'}.get(name, name) }{width}" for name, width in columns]
    print(
        f"{'noise':16} {'persistence':12} {'bias':15} {'level':8} maj64 "
        + " ".join(f"{h:>6}" for h in heads)
        + "  best: "
        + " ".join(f"{h:>6}" for h in heads)
    )
    for cell, right in cells:
        means = {
            row[:3]: row[3]
            for row in right
            .group_by("name", "width", "selector")
            .agg(pl.col("is_correct").mean())
            .rows()
        }
        votes = [means[(*column, "weighted_vote")] for column in columns]
        best = [means[(*column, "best_of_n")] for column in columns]
        row = " ".join(f"{value:6.3f}" for value in votes)
        print(
            f"{cell[0]:16} {cell[1]:12} {cell[2]:15} {cell[3]:8} {means['best_of_n', 64, 'majority_vote']:5.3f} "
            f"{row}        {' '.join(f'{value:6.3f}' for value in best)}"
        )


def claims(cells: list[Answers]) -> None:
    """Print each claim with its counterfactual."""
    print(
        "\n1. Beam search gains on medium and hard problems (levels 3 to 5), above all at small budgets."
    )
    for width in WIDTHS:
        for level in HARD:
            tally(
                f"beam {width} against best-of-{width}, {level}",
                cells,
                vote("beam", width),
                vote("best_of_n", width),
                lambda cell, level=level: is_fitted(cell) and level_of(cell) == level,
            )
    print("\n2. Beam search of width 4 is worth about best-of-16 there.")
    tally(
        "beam 4 against best-of-16, levels 3 to 5",
        cells,
        vote("beam", 4),
        vote("best_of_n", 16),
        lambda cell: is_fitted(cell) and level_of(cell) in HARD,
        at_least=True,
    )
    print(
        "\n3. At large budgets beam search falls behind best-of-N, even behind majority, on simple problems."
    )
    for bias in BIAS:
        for pick, other, name in (
            (vote, vote("best_of_n", 64), "best-of-64"),
            (vote, majority(64), "the majority of 64"),
        ):
            tally(
                f"{name} against beam 64, levels 1 and 2, {bias}",
                cells,
                other,
                pick("beam", 64),
                lambda cell, bias=bias: (
                    is_fitted(cell) and cell[2] == bias and level_of(cell) in EASY
                ),
            )
    print("   Counterfactual: a perfect verifier (no noise, no bias): beam search is never behind.")
    for width in WIDTHS:
        tally(
            f"beam {width} against best-of-{width}, all levels, perfect verifier",
            cells,
            vote("beam", width),
            vote("best_of_n", width),
            lambda cell: cell[0] == "no noise" and cell[2] == "no bias",
            at_least=True,
        )
    print(
        "   Counterfactual: independent errors from step to step, levels 1 and 2, with noise, no bias."
    )
    for persistence in PERSISTENCE:
        tally(
            f"best-of-64 against beam 64, {persistence} errors",
            cells,
            vote("best_of_n", 64),
            vote("beam", 64),
            lambda cell, p=persistence: (
                cell[0] != "no noise"
                and cell[1] == p
                and cell[2] == "no bias"
                and level_of(cell) in EASY
            ),
        )
    print(
        "\n4. DVTS is ahead of beam search at large budgets on easy and medium problems (levels 1 to 3)."
    )
    for bias in BIAS:
        tally(
            f"DVTS 64 against beam 64, levels 1 to 3, {bias}",
            cells,
            vote("dvts", 64),
            vote("beam", 64),
            lambda cell, bias=bias: (
                is_fitted(cell) and cell[2] == bias and level_of(cell) in (*EASY, "level 3")
            ),
        )
    print("   Counterfactual: independent errors, no bias, levels 1 to 3.")
    for persistence in PERSISTENCE:
        tally(
            f"DVTS 64 against beam 64, {persistence} errors",
            cells,
            vote("dvts", 64),
            vote("beam", 64),
            lambda cell, p=persistence: (
                cell[0] != "no noise"
                and cell[1] == p
                and cell[2] == "no bias"
                and level_of(cell) in (*EASY, "level 3")
            ),
        )
    print(
        "\n5. Over-optimization: the solution of the best score gets worse from 16 to 64 (best-of-N)."
    )
    for bias in BIAS:
        tally(
            f"best score of 16 against best score of 64, {bias}",
            cells,
            best_of("best_of_n", 16),
            best_of("best_of_n", 64),
            lambda cell, bias=bias: is_fitted(cell) and cell[2] == bias,
        )
    print("   Counterfactual: no bias, above; and a perfect verifier:")
    tally(
        "best score of 16 against best score of 64, perfect verifier",
        cells,
        best_of("best_of_n", 16),
        best_of("best_of_n", 64),
        lambda cell: cell[0] == "no noise" and cell[2] == "no bias",
    )


def lookahead() -> None:
    """Print what a lookahead gains with a verifier that sees errors late, and with one that does not."""
    print(
        "\n6. A lookahead of 3 steps helps a verifier that sees a wrong step 3 steps late (width 16)."
    )
    for delay in DELAYS:
        faults = tts.search.VerifierFaults(
            noise=FITTED["noise"], persistence=FITTED["persistence"], delay=delay
        )
        policies = [
            make(16, lookahead=steps)
            for make in (tts.search.Beam, tts.search.DVTS)
            for steps in LOOKAHEADS
        ]
        cells = searched(("fitted noise", "fitted", f"delay {delay}"), policies, faults)
        for name in ("beam", "dvts"):
            tally(
                f"{name} with lookahead 3 against none, verifier {delay} steps late",
                cells,
                vote(f"{name} 3", 16),
                vote(name, 16),
                lambda _: True,
            )
            means = {
                each.cell[3]: [
                    round(
                        float(
                            each.right.filter(name=n, selector="weighted_vote")["is_correct"].mean()
                        ),
                        3,
                    )
                    for n in (name, f"{name} 3")
                ]
                for each in cells
            }
            print(f"     accuracy without and with it: {means}")


def main() -> None:
    started = time.process_time()
    print(f"{N_PROBLEMS} problems a cell; parameters: {FITTED}; steps of a solution: {N_STEPS}")
    print(
        "Accuracy of the weighted vote, then of the best score; maj64: majority of 64 independent solutions.\n"
    )
    cells = run_grid()
    print_grid(cells)
    print(f"\n{len(cells)} cells. Unless said otherwise, cells with noise whose errors persist.")
    claims(cells)
    lookahead()
    print(f"\n{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
