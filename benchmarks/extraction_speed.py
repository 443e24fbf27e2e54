"""Final answers out of columns of one run's size, on one thread, in MB/s.

Each column holds the completions of one real run of ``../shared/data``, once as they are, once without their
boxes, and once repeated to the size of a large run; one column holds all four runs, and one these ten
times with other digits, so that the texts differ. Nothing is remembered from one call to the next. Times are processor time, the best of several calls, in processes that alternate
between this checkout and, if its folder is given, another. The result goes to
``benchmarks/results/extraction_speed.txt``.

    python benchmarks/extraction_speed.py [OTHER]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import polars as pl

HERE = Path(__file__).resolve().parents[1]
DATA = HERE.parent / "shared" / "data"
RESULT = Path(__file__).parent / "results" / "extraction_speed.txt"
RUNS = [
    "beam16_llama3.2-3b-awq_q100", "beam3_llama3.1-8b-awq_q500", "bon1_llama3.2-3b-awq_q500",
    "edge_logit-scores_qwen2.5-math_q500",
]  # fmt: skip
BOX = r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
LARGE = 40
"""Megabytes of a repeated column."""
N_CALLS = 3
N_PROCESSES = 3


def columns() -> Iterator[tuple[str, pl.Series]]:
    """Yield names and texts."""
    runs = []
    for name in RUNS:
        lines = (DATA / "search_and_learn" / f"{name}.jsonl").read_text().splitlines()
        texts = pl.Series(
            "text", [text for row in lines for text in json.loads(row)["completions"]]
        )
        runs.append(texts)
        label = name.split("_")[0] + " " + name.split("_")[1]
        yield label, texts
        yield f"{label}, no boxes", texts.str.replace_all(BOX, "${1}")
        times = int(LARGE * 1e6 / texts.str.len_bytes().sum()) + 1
        yield f"{label}, repeated", pl.concat([texts] * times)
    four = pl.concat(runs)
    yield "four runs in one column", four
    yield "four runs in one column, no boxes", four.str.replace_all(BOX, "${1}")
    digits = [*"0123456789"]
    turned = [four.str.replace_many(digits, digits[i:] + digits[:i]) for i in range(10)]
    yield "four runs, each digit in ten ways", pl.concat(turned)
    rows = map(
        json.loads, (DATA / "gsm8k" / "example_model_solutions.jsonl").read_text().splitlines()
    )
    solved = pl.Series(
        "text",
        [made["solution"] for row in rows for made in row.values() if isinstance(made, dict)],
    )
    yield "gsm8k, four systems", solved
    # no text has a mark: each ending is read, and none has an answer that can be told from a step
    yield "gsm8k, no phrase", solved.str.replace(r"\n?A: .*$", "")


def forget() -> None:
    """Drop what functions of the package remember of earlier texts."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("ttsframe.answers"):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def measure() -> None:
    """Print a JSON object: column to milliseconds of processor time."""
    import ttsframe as tts  # that of the checkout under PYTHONPATH

    extract = tts.extract_answer("text")
    best: dict[str, tuple[float, float, int]] = {}
    for label, texts in columns():
        frame = texts.rechunk().to_frame()
        times = []
        for _ in range(N_CALLS + 1):
            forget()
            start = time.process_time()
            found = frame.select(extract)["text"]
            times.append(time.process_time() - start)
        size = texts.str.len_bytes().sum() / 1e6
        best[label] = (min(times[1:]), size, found.null_count())
    print(json.dumps(best))


def results(checkout: Path) -> dict[str, tuple[float, float, int]]:
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve()), "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--measure"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    checkouts = [HERE, *map(Path, sys.argv[1:])]
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    facts: dict[str, tuple[float, int]] = {}
    for _ in range(N_PROCESSES):
        for number, checkout in enumerate(checkouts):
            for label, (best, size, n_null) in results(checkout).items():
                seconds[number, label].append(best)
                facts.setdefault(label, (size, n_null))
                if facts[label][1] != n_null:
                    print(f"{label}: {n_null} texts without an answer, not {facts[label][1]}")
    start = time.process_time()
    for _ in range(10):
        table = {i & 63: (i, str(i)) for i in range(100_000)}
    unit = (time.process_time() - start) / 10 * 1e3
    assert len(table) == 64
    lines = [
        f"Extraction on one thread, MB of text per second of processor time, best of {N_PROCESSES * N_CALLS} calls.",
        "Nothing is remembered from one call to the next. The other checkout is an earlier version, in alternate processes.",
        f"Load of the machine: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores.",
        f"to compare machines: 100,000 entries of a dict in a loop {unit:.1f} ms",
        f"{'column':38} {'MB':>6} {'no answer':>9} {'MB/s':>6}"
        + "".join(f" {'other':>6} {'ratio':>6}" for _ in checkouts[1:]),
    ]
    for label, (size, n_null) in facts.items():
        speeds = [size / min(seconds[number, label]) for number in range(len(checkouts))]
        others = "".join(f" {speed:6.0f} {speeds[0] / speed:6.2f}" for speed in speeds[1:])
        lines.append(f"{label:38} {size:6.2f} {n_null:9,} {speeds[0]:6.0f}{others}")
    text = "\n".join(lines)
    print(text)
    RESULT.write_text(text + "\n")


if __name__ == "__main__":
    measure() if "--measure" in sys.argv else main()
