#!/usr/bin/env python3
"""Draw the picture of the README: the curves of the sample run, as `ttsframe report` shows them.

`python data/make_picture.py [TARGET]` writes `data/accuracy.svg`, or TARGET. Nothing in it is
random: the run is the committed `data/sample.jsonl`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ttsframe as tts

BUDGETS = [1, 2, 4, 8, 16]
SELECTORS = ["majority_vote", "weighted_vote", "best_of_n", "oracle"]
RUN = Path(__file__).with_name("sample.jsonl")


def main(target: Path) -> None:
    """Draw the curves into a file whose suffix, `.svg` or `.png`, names the format."""
    curve = (
        tts
        .read_trajectories(RUN)
        .pipe(tts.score_trajectories)
        .pipe(tts.select_answers, selectors=SELECTORS, reductions="last", budgets=BUDGETS)
        .pipe(tts.scaling_curve)
    )
    chart = tts.charts.scaling_curve(curve, confidence_level=0.95)
    chart.properties(background="white").save(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("accuracy.svg"))
