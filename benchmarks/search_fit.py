"""Fit the simulated verifier to the step scores of real runs: `python benchmarks/search_fit.py [FOLDER]`.

FOLDER has the runs of search-and-learn (default: ../shared/data/search_and_learn). What is compared are
means, standard deviations and the correlation of successive logits of step scores, of right and of wrong
solutions, in each third of the solution. Only independent samples are read: the first run has one
solution of each of 500 problems, the second 26 of each of 10, for how far problems differ.

The parameters are written to `benchmarks/search_parameters.json`, with the statistics of data and
simulation, and no data. Distributions cannot tell everything: a score that is too high in all steps of a
wrong solution may be an error about that idea (`trap_rate`), which the fit assumes, or a large persistent
one. `search_claims.py` varies both.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import minimize

import ttsframe as tts

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/search_and_learn")
OUTPUT = Path(__file__).parent / "search_parameters.json"
ALONE, REPEATED = "bon1_llama3.2-3b-awq_q500.jsonl", "bon256_q10_own_prompt_only.jsonl"
N_PROBLEMS, CLIP = 1_000, 0.02
DELAYS = (4,)
"""Of 0, 2 and 4, a first fit preferred 4: sums of squares 3.1, 3.0 and 2.2."""
START = np.array([0.0, 0.0, 2.0, 0.0, 1.8])


def statistics_of(run: pl.DataFrame) -> dict[str, float]:
    """Return what is compared, of attempts with `is_correct` and `step_scores`."""
    steps = (
        run
        .select("is_correct", "step_scores", attempt=pl.int_range(pl.len()))
        .filter(pl.col("step_scores").list.len() > 2)
        .explode("step_scores")
        .with_columns(
            score=pl.col("step_scores").clip(CLIP, 1 - CLIP),
            place=(pl.int_range(pl.len()) + 0.5) / pl.len(),
        )
        .with_columns(place=((pl.int_range(pl.len()) + 0.5) / pl.len()).over("attempt"))
        .with_columns(
            logit=pl.col("score").log() - (1 - pl.col("score")).log(),
            third=(pl.col("place") * 3).floor().cast(pl.Int8),
        )
    )
    cells = steps.group_by("is_correct", "third").agg(
        mean=pl.col("logit").mean(), sd=pl.col("logit").std()
    )
    found = {
        f"{name} of {'right' if row['is_correct'] else 'wrong'}, third {row['third'] + 1}": row[
            name
        ]
        for row in cells.sort("is_correct", "third").to_dicts()
        for name in ("mean", "sd")
    }
    rest = steps.join(cells, on=["is_correct", "third"]).with_columns(
        rest=(pl.col("logit") - pl.col("mean")) / pl.col("sd")
    )
    rest = rest.sort("attempt", "place").with_columns(
        after=pl.col("rest").shift(-1).over("attempt")
    )
    found["correlation of successive steps"] = rest.select(pl.corr("rest", "after")).item()
    return found


def simulated(parameters: dict[str, float], n_steps: tuple[int, int], seed: int) -> pl.DataFrame:
    """Return one solution of each simulated problem."""
    faults = tts.search.VerifierFaults(
        noise=parameters["noise"],
        persistence=parameters["persistence"],
        optimism=parameters["optimism"],
        trap_rate=parameters["trap_rate"],
        trap_size=parameters["trap_size"],
        delay=int(parameters["delay"]),
    )
    world = tts.search.simulate(
        N_PROBLEMS,
        seed=seed,
        accuracy=parameters["accuracy"],
        spread=parameters["spread"],
        n_steps=n_steps,
        faults=faults,
    )
    policy = tts.search.BestOfN(1)
    nodes = tts.search.search(*world, policy, seed=seed)
    found = tts.search.to_trajectories(nodes, policy=policy, problems=world.problems)
    return tts.score_trajectories(found)


def main() -> None:
    started = time.process_time()
    run = tts.read_trajectories(FOLDER / ALONE).pipe(tts.score_trajectories)
    truth = statistics_of(run)
    lengths = run["step_scores"].list.len()
    n_steps = (max(int(lengths.quantile(0.1)), 2), int(lengths.quantile(0.9)))
    accuracy = run["is_correct"].mean()
    repeated = tts.read_trajectories(FOLDER / REPEATED).pipe(tts.score_trajectories)
    rates = repeated.group_by("problem_id").agg(pl.col("is_correct").mean().alias("rate"))["rate"]
    # Half a success and half a failure, so that rates of 0 and 1 have a logit.
    n_each = repeated.height / repeated["problem_id"].n_unique()
    smooth = (rates.to_numpy() * n_each + 0.5) / (n_each + 1)
    # The logits of a logistic distribution have the standard deviation spread * pi / sqrt(3).
    spread = float(np.std(np.log(smooth / (1 - smooth)), ddof=1) * np.sqrt(3) / np.pi)

    # `accuracy` is the mean of the middle problem; the mean over problems is what was observed.
    def mean_accuracy(middle: float) -> float:
        world = tts.search.simulate(
            20_000, seed=0, accuracy=middle, spread=spread, n_steps=n_steps, recovery=0.02
        )
        return float(world.problems["true_accuracy"].mean())

    low, high = 0.01, 0.99
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_accuracy(middle) < accuracy else (low, middle)
    fixed = {"accuracy": round(low, 4), "spread": round(spread, 4)}
    names = ("noise", "persistence", "optimism", "trap_rate", "trap_size", "delay")

    def to_parameters(x: np.ndarray, delay: int) -> dict[str, float]:
        return fixed | {
            "noise": float(np.exp(x[0])),
            "persistence": float(1 / (1 + np.exp(-x[1]))),
            "optimism": float(x[2]),
            "trap_rate": float(1 / (1 + np.exp(-x[3]))),
            "trap_size": float(np.exp(x[4])),
            "delay": delay,
        }

    def distance(x: np.ndarray, delay: int) -> float:
        found = statistics_of(simulated(to_parameters(x, delay), n_steps, seed=1))
        weights = {name: 3.0 if name.startswith("correlation") else 1.0 for name in truth}
        return float(sum(weights[name] * (found[name] - truth[name]) ** 2 for name in truth))

    fits = {
        delay: minimize(
            distance,
            START,
            args=(delay,),
            method="Nelder-Mead",
            options={
                "maxfev": 80,
                "xatol": 0.01,
                "fatol": 0.005,
                "initial_simplex": np.vstack([START, START + 0.5 * np.eye(len(START))]),
            },
        )
        for delay in DELAYS
    }
    distances = {delay: float(fit.fun) for delay, fit in fits.items()}
    delay = min(distances, key=distances.__getitem__)
    parameters = to_parameters(fits[delay].x, delay)
    check = statistics_of(simulated(parameters, n_steps, seed=2))
    graded = simulated(parameters, n_steps, seed=2)["is_correct"].mean()
    document = {
        "data": [ALONE, REPEATED],
        "n_steps": list(n_steps),
        "parameters": {name: round(parameters[name], 4) for name in (*fixed, *names)},
        "sum of squares by delay": {str(name): round(fun, 3) for name, fun in distances.items()},
        "accuracy": {"data": round(accuracy, 4), "simulation": round(graded, 4)},
        "statistics": {
            name: {"data": round(truth[name], 3), "simulation": round(check[name], 3)}
            for name in truth
        },
    }
    OUTPUT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1))
    print(
        f"{sum(fit.nfev for fit in fits.values())} simulations, {time.process_time() - started:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
