"""Keys beside the published form and beside plain strings, on the real runs of ``../shared/data``.

Run as a script it times both methods on the same distinct strings, counts the pairs of answers to one
problem on which they agree, names the class of each disagreement, lists the majorities that keys change,
and writes ``benchmarks/results/key_agreement.txt``.

    python benchmarks/key_agreement.py
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import polars as pl

import ttsframe as tts

RUNS = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULT = Path(__file__).parent / "results" / "key_agreement.txt"

Pair = tuple[str, str]


def either(pattern: str) -> Callable[[Pair], bool]:
    """Tell whether exactly one of two answers holds a pattern."""
    return lambda pair: (
        (re.search(pattern, pair[0]) is None) != (re.search(pattern, pair[1]) is None)
    )


# judged by hand: which of the two methods is right, and why
CLASSES: dict[str, tuple[str, Callable[[Pair], bool]]] = {
    "a percent sign is dropped": ("keys", either(r"%")),
    "a base is dropped": ("keys", either(r"\d_\{?\d")),
    "an equation is a truth value": ("keys", lambda pair: any("=" in text and re.search(r"[\d)}]\s*=", text) for text in pair)),
    "a name stays or goes": ("convention", either(r"=")),
    "'and' is deleted, joining numbers": ("keys", lambda pair: any(" and " in text for text in pair)),
    "a list has an order": ("keys", lambda pair: sorted(re.findall(r"-?\d+", pair[0])) == sorted(re.findall(r"-?\d+", pair[1])) and "," in pair[0] and pair[0] != pair[1] and not re.search(r"frac|\(", pair[0])),
    "a degree sign is not read": ("keys", either(r"°|\\circ")),
    "a choice keeps its brackets": ("keys", either(r"\([A-J]\)")),
    "LaTeX inside a tuple is compared as text": ("keys", lambda pair: all(re.search(r"\(.*,.*\)", text) for text in pair)),
    "LaTeX is not parsed": ("keys", lambda pair: any(re.search(r"√|sqrt\(|\^\(|\^\\frac", text) for text in pair)),
    "an identity is not seen": ("keys", lambda pair: any(re.search(r"\\(?:tan|cot|sin|cos)", text) for text in pair)),
}  # fmt: skip


def real_strings() -> pl.DataFrame:
    lines = (RUNS / "answers" / "real_strings.jsonl").read_text().splitlines()
    return pl.DataFrame({"answer": [json.loads(line) for line in lines]}).unique(
        maintain_order=True
    )


def attempts() -> pl.DataFrame:
    """Read the runs with several completions a problem."""
    rows = []
    for path in sorted((RUNS / "search_and_learn").glob("b*.jsonl")):
        if "switch_roles" in path.name:
            continue
        for problem, line in enumerate(path.read_text().splitlines()):
            record = json.loads(line)
            for attempt, text in enumerate(record["completions"]):
                rows.append((path.stem, problem, attempt, text, record["answer"]))
    names = ["run", "problem", "attempt", "completion", "gold"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.with_columns(answer=tts.extract_answer("completion")).drop("completion")


def agreement(frame: pl.DataFrame) -> tuple[Counter[tuple[bool, bool]], list[tuple[bool, Pair]]]:
    """Compare both methods on every pair of answers to one problem."""
    keyed = frame.select("problem", "gold", "answer").drop_nulls().unique(maintain_order=True)
    keyed = keyed.with_columns(
        tts.answer_key("answer").alias("key"),
        tts.answer_key("answer", method="sympy").alias("published"),
    )
    table: Counter[tuple[bool, bool]] = Counter()
    apart = []
    for _, answers in keyed.group_by("problem", "gold", maintain_order=True):
        for a, b in combinations(answers.rows(named=True), 2):
            same = (a["key"] == b["key"], a["published"] == b["published"])
            table[same] += 1
            if same[0] != same[1]:
                apart.append((same[0], (a["answer"], b["answer"])))
    return table, apart


def class_of(pair: Pair) -> str:
    return next((name for name, (_, holds) in CLASSES.items() if holds(pair)), "unexplained")


def majorities(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the majority of each problem, the earliest of the tied, when answers are told apart by a column."""
    votes = (
        frame
        .filter(pl.col(by).is_not_null())
        .group_by("run", "problem", pl.col(by).alias("group"))
        .agg(
            pl.len().alias("n_votes"),
            pl.col("attempt").min(),
            pl.col("answer", "gold").sort_by("attempt").first(),
        )
        .sort("n_votes", "attempt", descending=[True, False])
    )
    return votes.group_by("run", "problem", maintain_order=True).first()


def main() -> None:
    strings = real_strings()
    tts.answer_key("answer")
    strings.head(1).select(tts.answer_key("answer", method="sympy"))
    start = time.perf_counter()
    strings.select(tts.answer_key("answer"))
    own = time.perf_counter() - start
    start = time.perf_counter()
    strings.select(tts.answer_key("answer", method="sympy"))
    published = time.perf_counter() - start
    lines = [
        (
            f"{strings.height:,} real strings: keys {own:.2f} s on one core, published form {published:.2f} s "
            f"on the workers of this machine, {published / own:.0f} times as long"
        ),
        f"wall time, with a load of about {os.getloadavg()[2]:.0f} on {os.cpu_count()} cores",
    ]
    frame = attempts()
    table, apart = agreement(frame)
    lines += [
        "",
        f"pairs of different answers to one problem: {table.total():,}",
        f"  same for both {table[True, True]:,}, different for both {table[False, False]:,}",
        f"  same by key only {table[True, False]:,}, same by published form only {table[False, True]:,}",
    ]
    classes = Counter((class_of(pair), merged) for merged, pair in apart)
    examples = {(class_of(pair), merged): pair for merged, pair in reversed(apart)}
    for (name, merged), count in classes.most_common():
        right = CLASSES[name][0] if name in CLASSES else "?"
        verdict = "same by key only" if merged else "same by published form only"
        first, second = examples[name, merged]
        lines.append(f"  {count:>4}  {verdict:<28} {name}; right: {right}; {first!r}, {second!r}")
    keyed = frame.with_columns(
        key=tts.answer_key("answer"), is_right=tts.is_equivalent("answer", "gold")
    )
    both = majorities(keyed, "key").join(
        majorities(keyed, "answer"), on=["run", "problem"], suffix="_text"
    )
    graded = both.with_columns(
        is_right=tts.is_equivalent("answer", "gold"),
        is_right_text=pl.col("answer_text") == pl.col("gold"),
        is_right_graded=tts.is_equivalent("answer_text", "gold"),
    )
    changed = graded.filter(tts.answer_key("answer") != tts.answer_key("answer_text")).sort(
        "run", "problem"
    )
    lines += [
        "",
        f"majorities of {both.height:,} problems: {changed.height} change their answer against equality of strings,",
        (
            f"  {graded.filter(pl.col('is_right') != pl.col('is_right_graded')).height} of them their correctness; "
            f"graded by strings too, {graded.filter(pl.col('is_right') != pl.col('is_right_text')).height} change"
        ),
    ]
    lines += [
        f"  {row['run'][:24]} {row['problem']}: {row['answer']!r} ({row['n_votes']} votes) for "
        f"{row['answer_text']!r} ({row['n_votes_text']}); gold {row['gold']!r}"
        for row in changed.rows(named=True)
    ]
    print("\n".join(lines))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n")
    sys.exit(any(name == "unexplained" for name, _ in classes))


if __name__ == "__main__":
    main()
