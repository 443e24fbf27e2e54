"""Speed and coverage of answer keys: each distinct string read once, in a fresh process, on one core.

The strings are the real ones of ``../shared/data``, or generated ones where those are absent. Times are
processor time. Run as a script it writes ``benchmarks/results/answer_speed.txt``.

    python benchmarks/bench_answers.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ttsframe.answers.engine import Canonical, canonicalize
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy

STRINGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "answers" / "real_strings.jsonl"
RESULT = Path(__file__).parent / "results" / "answer_speed.txt"
POLICY = AnswerPolicy()
# spellings of one answer each: a reader that is fast and wrong does not count
SAME = [
    (r"$\frac{\sqrt{12}}{2}$", r"\sqrt3"),
    (r"\left(x+1\right)^2", "x^2+2x+1"),
    ("y=2x+1", "2x-y+1=0"),
    (r"x \sin^2 t + x \cos^2 t", "x"),
    ("x+\\sqrt{4}", "x+2"),
    ("(1, 2)", r"\left( 1,\, 2 \right)"),
]
FORMS = [
    str,
    lambda i: rf"$\frac{{{i}}}{{{i % 7 + 2}}}$",
    lambda i: rf"{i}+\sqrt{{{i % 11 + 2}}}",
    lambda i: f"({i}, {i / 8})",
    lambda i: f"$x^2 + {i}x-{i % 5}$",
    lambda i: rf"$y=c_{{1}} e^{{{i} t}}+c_{{2}} \cos {i} t$",
    lambda i: rf"{i}\text{{ cm}}",
    lambda i: f"[{i}, \\infty)",
    lambda i: rf"x = \frac{{{i} \pi}}{{6}}, \frac{{{i + 1} \pi}}{{6}}",
]


def strings() -> tuple[str, list[str]]:
    """Return distinct strings and what they are."""
    if STRINGS.is_file():
        lines = STRINGS.read_text().splitlines()
        return "real", list(dict.fromkeys(json.loads(line) for line in lines))
    return "generated", [FORMS[i % len(FORMS)](i) for i in range(2_000)]


def read_once(answers: list[str]) -> tuple[list[Canonical], list[float]]:
    """Return the key of each string and the milliseconds of processor time it took."""
    # loads the parser and the arithmetic
    for one, other in SAME:
        if canonicalize(one, POLICY).key != canonicalize(other, POLICY).key:
            sys.exit(f"{one!r} and {other!r} have different keys")
    canonicals, times = [], []
    for answer in answers:
        start = time.process_time_ns()
        canonical = canonicalize(answer, POLICY)
        times.append((time.process_time_ns() - start) / 1e6)
        canonicals.append(canonical)
    return canonicals, times


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]


def report() -> str:
    """Read each string once and describe the times."""
    name, answers = strings()
    canonicals, times = read_once(answers)
    kinds = Counter(canonical.kind for canonical in canonicals)
    start = time.process_time_ns()
    for _ in range(10):
        table = {i & 63: (i, str(i)) for i in range(100_000)}
    unit = (time.process_time_ns() - start) / 1e6 / 10
    assert len(table) == 64
    statistics = {
        "mean": sum(times) / len(times),
        "p50": quantile(times, 0.5),
        "p90": quantile(times, 0.9),
        "p99": quantile(times, 0.99),
        "max": max(times),
    }
    lines = [
        f"{len(answers):,} {name} strings, {len({one.key for one in canonicals}):,} keys",
        "each read once in a fresh process, milliseconds of processor time:",
        ", ".join(f"{label} {value:.3f}" for label, value in statistics.items()),
        f"to compare machines: 100,000 entries of a dict in a loop {unit:.1f} ms",
        f"{'kind':10} {'strings':>8} {'mean':>7} {'p99':>7}",
    ]
    for kind, count in kinds.most_common():
        of_kind = [t for t, one in zip(times, canonicals, strict=True) if one.kind == kind]
        lines.append(
            f"{kind:10} {count:8,} {sum(of_kind) / count:7.3f} {quantile(of_kind, 0.99):7.2f}"
        )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def answers() -> list[str]:
    return strings()[1]


def test_each_string_is_read_in_time(answers: list[str]) -> None:
    """Bounds far above the measured times: that they hold must not depend on the load of the machine."""
    result = subprocess.run(
        [sys.executable, __file__, "--print"], capture_output=True, text=True, check=True
    )
    print("\n" + result.stdout)
    canonicals, times = read_once(answers)
    assert sum(times) / len(times) <= 1
    assert max(times) <= 100
    assert sum(bool(one.unresolved) for one in canonicals) <= 0.01 * len(answers)
    assert sum(one.kind == "text" for one in canonicals) <= 0.12 * len(answers)


@pytest.mark.benchmark(group="answer keys")
def test_keys(benchmark: BenchmarkFixture, answers: list[str]) -> None:
    assert canonicalize("\\frac{\\sqrt{12}}{2}", POLICY).key == canonicalize("\\sqrt3", POLICY).key
    keys = benchmark(lambda: [canonicalize(answer, POLICY).key for answer in answers])
    assert len(keys) == len(answers)


@pytest.mark.benchmark(group="answer keys")
def test_baseline_of_normalised_text_alone(benchmark: BenchmarkFixture, answers: list[str]) -> None:
    texts = benchmark(lambda: [normalize_text(answer) for answer in answers])
    assert len(texts) == len(answers)


if __name__ == "__main__":
    text = report()
    print(text)
    if "--print" not in sys.argv:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(text + "\n")
