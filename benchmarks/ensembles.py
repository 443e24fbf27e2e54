"""Ensembles of real models against the best single one, both chosen on other problems.

``python benchmarks/ensembles.py > benchmarks/results/ensembles.txt``

11 reasoning models x 30 AIME 2024 problems x 80 attempts (Best-of-infinity, ../shared/data/boinf), and the six of them
with the lowest accuracy. Each line has as many attempts for the ensemble as for the single model. Means are over 20
divisions of the problems into halves; the interval is `compare`'s, of the first division. `chosen on the same`: shares
and model chosen on the problems that they are scored on, which no reader should believe.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from stopping import BOINF, load

import ttsframe as tts
from ttsframe.curves.ensemble import ENSEMBLE, _plan
from ttsframe.votes.selectors import majority_vote

N_DIVISIONS: Final = 20


def main() -> None:
    print(__doc__)
    if not BOINF.exists():
        print("../shared/data/boinf is not here")
        return
    run = load()
    accuracy = run.group_by("model").agg(pl.col("is_correct").mean()).sort("is_correct")
    for model, value in accuracy.rows():
        print(f"{model:<32}{value:.3f}")
    weak = run.filter(pl.col("model").is_in(accuracy["model"].head(6).to_list()))
    print(
        "\nmodels  budget  single  ensemble  difference  first division: 95 %       p | chosen on the same"
    )
    for name, part in (("all 11", run), ("weak 6", weak)):
        for budget in (8, 16, 64):
            found = [
                tts.compare(
                    tts.curves.ensemble_vote(part, budget=budget, seed=seed), baseline="best_single"
                ).row(0, named=True)
                for seed in range(N_DIVISIONS)
            ]
            single, both = (
                float(np.mean([row[key] for row in found]))
                for key in ("baseline_accuracy", "accuracy")
            )
            first = found[0]
            print(
                f"{name:<8}{budget:>6}{single:>8.3f}{both:>10.3f}{both - single:>+12.3f}  "
                f"[{first['ci_low']:+.3f}, {first['ci_high']:+.3f}]{first['p_value']:>16.3f} |"
                f"{seen(part, budget):>19.3f}",
                flush=True,
            )


def seen(run: pl.DataFrame, budget: int) -> float:
    """Return the accuracy of the ensemble that was chosen on all problems, on the same."""
    models = run["model"].unique().sort()
    plan = _plan(run, models, budget, 20).filter(line=ENSEMBLE)
    used = (
        run
        .join(plan, on="model")
        .filter(pl.col("attempt") < pl.col("n_given"))
        .sort("problem_id", (pl.col("attempt") + 0.5) / pl.col("n_given"), "model")
        .with_columns(attempt=pl.int_range(pl.len(), dtype=pl.UInt32).over("problem_id"))
    )
    return float(majority_vote(used, budgets=budget)["value"].to_numpy().mean())


if __name__ == "__main__":
    main()
