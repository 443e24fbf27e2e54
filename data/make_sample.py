#!/usr/bin/env python3
"""Write the sample run: simulated attempts in the shape of a search-and-learn output.

``python data/make_sample.py [TARGET]`` writes ``data/sample.jsonl``, or TARGET; always the same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl

import ttsframe as tts

SEED = 8  # of 0 to 11 the one whose curves are easiest to tell apart
DIGITS = 4  # of a score


def sample_rows() -> list[dict[str, object]]:
    """Return the rows of the file, one per problem.

    Returns
    -------
    list[dict[str, object]]
        The fields of a search-and-learn output, without what it computed from them but for
        ``agg_scores`` (the last step's score).
    """
    run = tts.simulate_trajectories(
        60,
        16,
        seed=SEED,
        accuracy=(1.0, 1.3),
        n_wrong_answers=15,
        zipf_exponent=0.9,
        missing_share=0.04,
        n_steps=(3, 9),
        score_strength=1.1,
        texts=True,
    )
    scores = pl.col("step_scores").list.eval(pl.element().round(DIGITS))
    level = 5 - (pl.col("true_accuracy").first() * 5).floor().clip(0, 4)
    problems = run.group_by("problem_id", maintain_order=True).agg(
        pl.col("problem").first(),
        pl.col("solution").first(),
        pl.col("gold").first().alias("answer"),
        pl.lit("Simulated").first().alias("subject"),
        level.cast(pl.Int64).cast(pl.String).alias("level"),
        pl.col("problem_id").first().alias("unique_id"),
        pl.col("completion").alias("completions"),
        scores.alias("scores"),
        pl.col("n_tokens").alias("completion_tokens"),
        scores.list.last().alias("agg_scores"),
    )
    return problems.drop("problem_id").to_dicts()


def main(target: Path) -> None:
    """Write the file.

    Parameters
    ----------
    target
        Where to.
    """
    lines = [json.dumps(row) + "\n" for row in sample_rows()]
    target.write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("sample.jsonl"))
