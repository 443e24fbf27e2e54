"""Pick answers for all budgets out of a search-and-learn file, in plain Python.

``python benchmarks/picks_in_python.py completions.jsonl 1 2 4 8`` is the baseline of
``bench_jsonl_picks.py``: what a script does that reads with `json.loads` and votes on strings.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

LAST_BOX = re.compile(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


class Pick(NamedTuple):
    """The answer of a problem under one selector and budget."""

    problem_id: str
    budget: int
    selector: str
    answer: str | None
    is_correct: bool


def picks(
    path: str | Path,
    budgets: list[int],
    key: Callable[[str], str] = str,
    n_problems: int | None = None,
) -> Iterator[Pick]:
    """Pick from the first problems of a file, or from all."""
    with Path(path).open() as lines:
        for line in itertools.islice(lines, n_problems):
            problem = json.loads(line)
            found = [LAST_BOX.findall(text) for text in problem["completions"]]
            answers = [key(boxes[-1]) if boxes else None for boxes in found]
            scores = [steps[-1] for steps in problem["scores"]]
            gold = key(problem["answer"])
            for budget in budgets:
                votes: defaultdict[str, int] = defaultdict(int)
                weights: defaultdict[str, float] = defaultdict(float)
                for answer, score in zip(answers[:budget], scores[:budget], strict=True):
                    if answer is not None:
                        votes[answer] += 1
                        weights[answer] += score
                chosen = {
                    "majority_vote": max(votes, key=votes.__getitem__, default=None),
                    "weighted_vote": max(weights, key=weights.__getitem__, default=None),
                    "best_of_n": answers[max(range(budget), key=scores.__getitem__)],
                }
                for selector, answer in chosen.items():
                    yield Pick(problem["unique_id"], budget, selector, answer, answer == gold)


if __name__ == "__main__":
    print(sum(pick.is_correct for pick in picks(sys.argv[1], [*map(int, sys.argv[2:])])))
