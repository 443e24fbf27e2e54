"""Hostile answers: attacks, garbage and mutations of real answers, through extraction and keys.

Run as a script it reads 100,000 strings, kills workers on the way, and writes
``benchmarks/results/hostile_answers.txt``; the test suite runs a seeded tenth. What is checked: no
exception, no code run, no string above its limit, memory flat, workers replaced when they die, and
keys that do not depend on what else was read.

    python benchmarks/hostile_answers.py [number of strings]
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import polars as pl

import ttsframe as tts
from ttsframe.answers.engine import canonicalize
from ttsframe.answers.lookup import table, worker
from ttsframe.answers.normalize import normalize_text

STRINGS = 100_000
RESULT = Path(__file__).parent / "results" / "hostile_answers.txt"
CHUNK = 5_000
MOST_SECONDS = 1.0  # processor time, which a busy machine does not change
MOST_GROWTH_MB = 150.0

CONTROLS = [
    "0.5",
    r"\frac{2}{4}",
    "x+1",
    "[0,1)",
    "Evelyn",
    r"\int_0^2 3x dx",
    r"\sqrt{8}",
    "1,234",
    r"\text{(B)}",
]
REAL = [
    *CONTROLS, "42", "-3", "3.14", "25\\%", "\\$32", "5\\text{ cm}", "60^\\circ", "2^{99}", "10^{20000}", "3^{2025}", "12:00",
    r"\left( 3, \frac{\pi}{2} \right)", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "y=2x+1", r"x \in (-\infty, 5]", "1,-2",
    r"\{1\pm\sqrt{5},-2\}", "204_5", r"0.\overline{3}", r"3\frac{1}{2}", "10{,}000", r"\dfrac12", r"\text{even}", "p - q", "1 or 2",
    r"\sum_{n=1}^{\infty} \frac{1}{n^2}", r"\lim_{x\to 0} \frac{\sin x}{x}", r"\binom{10}{3}", "x^2+10x+24", r"\frac{1}{3}e^{2i\pi}",
]  # fmt: skip
TOKENS = [
    "{", "}", "(", ")", "[", "]", r"\left(", r"\right)", "^", "_", "\\", r"\\", "$", "&", "%", "#", "~", "|", ",", ";", ":", "=", "<",
    "!", "'", "+", "-", "*", "/", "0", "1", "2", "9", "10", "1e5", "x", "y", "i", "e", "d", "dx", r"\frac", r"\sqrt", r"\sum", r"\int",
    r"\lim", r"\infty", r"\pi", r"\to", r"\log", r"\ln", r"\sin", r"\cdot", r"\pm", r"\cup", r"\in", r"\text{", r"\boxed{",
    r"\operatorname{", r"\begin{pmatrix}", r"\end{pmatrix}", r"\binom", r"\overline", " ", " and ", " or ", "answer is", "####",
]  # fmt: skip
STRANGE = "\u200b\u202e\u0301\ufeff\u2028\x00\x07\x1b\x85٣४５²½Ⅷ∞π√−×÷≤≠∪∅𝟙𝐱𝔽ﬁẞßIıİΣςé\U0010ffff\U000e0001🧮\ue000"  # noqa: RUF001 - meant to confuse


def attacks(folder: Path) -> list[str]:
    """Return the attacks that are known, each with a file that would betray it."""
    target = folder / "betrayed"
    payload = f"__import__('os').system('touch {target}')"
    return [
        payload,
        f"exec(\"open('{target}','w')\")",
        f"().__class__.__base__.__subclasses__()[0]('{target}')",
        f"lambda: {payload}",
        rf"\variable{{{payload}}}",
        rf"\operatorname{{{payload}}}",
        rf"\frac{{1}}{{{payload}}}",
        f"$(touch {target})",
        f"`touch {target}`",
        f"'; DROP TABLE keys; --{target}",
        "9^{9^9}", "2^{2^{2^{49}}}", "9^9^9^9^9", "(10^9)!", "1000000!", "(a+b+c+d+e+f)^{50}", "(x+y+z+w)^{40}", "(x+1)^{1000000}",
        r"\binom{1000000}{500000}", "(" * 150 + "1" + ")" * 150, "{" * 5_000 + "}" * 5_000, r"\sqrt{" * 3_000,
        r"\operatorname{zeros}(8000)", r"\operatorname{eye}(6000)", r"\sum_{k=1}^{10^{9}} k", r"\prod_{k=1}^{99999} k",
        r"\int_0^{10^{99}} x^{x^x} dx", r"\sum_{k=1}^{\infty} \frac{\sin k}{k^{k}}", r"\lim_{x\to\infty} x^{x^{x}}", "1e999999999", "0." + "9" * 9_000,
        "9" * 20_000, "1/" + "3" * 5_000, r"\frac{1}{" * 400 + "2" + "}" * 400, "1+" * 4_000 + "1", "-" * 10_000 + "1",
        "\\boxed{1}," * 50_000, "\\boxed{" * 50_000, "answer is " * 50_000, "x=" * 2_000 + "1", r"\text{" * 500, "1,2;" * 3_000, r"\begin{pmatrix}" * 300, "((a|b)*)*" * 500,
    ]  # fmt: skip


def random_bytes(rng: Random) -> str:
    return rng.randbytes(rng.randint(1, 200)).decode("latin-1")


def strange_text(rng: Random) -> str:
    base = list(rng.choice(REAL))
    for _ in range(rng.randint(1, 6)):
        base.insert(rng.randint(0, len(base)), rng.choice(STRANGE))
    return "".join(base)


def any_unicode(rng: Random) -> str:
    points = (rng.randrange(0x110000) for _ in range(rng.randint(1, 60)))
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def mutated(rng: Random) -> str:
    text = list(rng.choice(REAL))
    for _ in range(rng.randint(1, 8)):
        where = rng.randint(0, len(text))
        change = rng.randrange(4)
        if change == 0:
            text.insert(where, rng.choice(TOKENS))
        elif change == 1 and text:
            del text[where : where + rng.randint(1, 3)]
        elif change == 2:
            text[where:where] = text[: rng.randint(0, len(text))]
        else:
            text[where:where] = rng.choice(REAL)
    return "".join(text)


def soup(rng: Random) -> str:
    return "".join(rng.choices(TOKENS, k=rng.randint(1, 40)))


def nested(rng: Random) -> str:
    depth = rng.randint(5, 400)
    opening, closing = rng.choice([
        ("(", ")"),
        ("{", "}"),
        ("[", "]"),
        (r"\sqrt{", "}"),
        (r"\frac{1}{", "}"),
        ("2^{", "}"),
    ])
    return opening * depth + rng.choice(REAL) + closing * (depth - rng.randrange(2))


def operators(rng: Random) -> str:
    body = "".join(
        rng.choices(
            [
                "x",
                "k",
                "2",
                "3",
                "+",
                "^2",
                r"\sin x",
                r"\frac{1}{x+1}",
                "e^{-x}",
                r"\ln x",
                r"\cdot",
                "n",
            ],
            k=rng.randint(1, 4),
        )
    )
    low, high = rng.randint(-3, 3), rng.choice(["5", "10", r"\infty", r"\pi", "n", "10^{9}"])
    head = rng.choice([
        rf"\sum_{{k={low}}}^{{{high}}} ",
        rf"\int_{{{low}}}^{{{high}}} ",
        rf"\lim_{{x\to {low}}} ",
        rf"\prod_{{k=1}}^{{{high}}} ",
    ])
    return head + body + rng.choice(["", " dx", "\\,dx"])


def megabyte(rng: Random) -> str:
    unit = rng.choice([
        rng.choice(REAL),
        soup(rng),
        "{",
        "$",
        "\\boxed{",
        "answer is ",
        "9",
        "\x00",
        "é",
    ])
    return unit * (1_000_000 // len(unit))


SOURCES: dict[str, tuple[Callable[[Random], str], float]] = {
    "random bytes": (random_bytes, 0.15),
    "any Unicode": (any_unicode, 0.1),
    "strange characters": (strange_text, 0.15),
    "mutated answers": (mutated, 0.345),
    "token soup": (soup, 0.2),
    "deep nesting": (nested, 0.05),
    "sums and integrals": (operators, 0.0047),
    "megabytes": (megabyte, 0.0003),
}


def hostile(count: int, seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Generate strings with the name of their source, the attacks first."""
    known = attacks(folder)
    yield from (("attacks", text) for text in known)
    rng = Random(seed)
    for name, (make, share) in SOURCES.items():
        yield from ((name, make(rng)) for _ in range(round(share * (count - len(known)))))


class Report(NamedTuple):
    """What a run has seen."""

    n_strings: int
    seconds: dict[str, list[float]]
    growth_mb: float
    n_killed: int
    statistics: tts.answers.AnswerStatistics
    problems: list[str]


def resident_mb() -> float:
    """Return the memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def columns() -> list[pl.Expr]:
    """Return every expression on answers, on the same text."""
    text = pl.col("text")
    return [
        tts.answer_key("text").alias("key"),
        tts.answers.answer_kind("text").alias("kind"),
        tts.normalize_answer("text").alias("normalized"),
        tts.extract_answer("text").alias("extracted"),
        tts.extract_answer(pl.concat_str(pl.lit("So \\boxed{"), text, pl.lit("}."))).alias("boxed"),
        tts.gold_key("text").alias("gold_key"),
        tts.is_equivalent("text", pl.lit("1/2"), rel_tol=1e-3).alias("is_half"),
    ]


def run(count: int, seed: int, *, n_timed: int, n_kills: int) -> Report:
    """Read hostile strings and note whatever goes wrong."""
    problems: list[str] = []
    rng = Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="hostile"))
    strings = list(hostile(count, seed, folder))
    rng.shuffle(strings)
    controls = pl.DataFrame({"text": CONTROLS})
    expected = controls.select(columns())
    pl.DataFrame({"text": [text for _, text in strings[:CHUNK]]}).select(columns())
    before, failed_before = resident_mb(), tts.answers.answer_statistics().n_failed
    keys: list[str | None] = []
    n_killed = 0
    for start in range(0, len(strings), CHUNK):
        chunk = pl.LazyFrame({"text": [text for _, text in strings[start : start + CHUNK]]})
        victims = [each.process.pid for each in worker._pool.workers]
        if victims and n_killed < n_kills:
            os.kill(rng.choice(victims), signal.SIGKILL)
            n_killed += 1
        engine = "streaming" if start % 2 else "in-memory"
        keys += chunk.select(columns()).collect(engine=engine)["key"].to_list()
        if not controls.select(columns()).equals(expected):
            problems.append(f"other keys after {start + CHUNK} strings")
    growth = resident_mb() - before
    if growth > MOST_GROWTH_MB:
        problems.append(f"{growth:.0f} MB more than before")
    if list(folder.iterdir()):
        problems.append(f"code was run: {[path.name for path in folder.iterdir()]}")
    problems += impure(strings, keys, rng, n_timed)
    seconds = timed(rng.sample(strings, min(n_timed, len(strings))), problems)
    slow = {name: max(times) for name, times in seconds.items() if max(times) > MOST_SECONDS}
    problems += [f"{name} took {time_:.2f} s" for name, time_ in slow.items()]
    n_failed = tts.answers.answer_statistics().n_failed - failed_before
    if n_failed:
        problems.append(f"{n_failed} answers could not be read")
    return Report(
        len(strings), seconds, growth, n_killed, tts.answers.answer_statistics(), problems
    )


def impure(
    strings: list[tuple[str, str]], keys: list[str | None], rng: Random, count: int
) -> list[str]:
    """Read some strings again, alone and in another order, with nothing remembered."""
    table._tables.clear()
    chosen = rng.sample(range(len(strings)), min(count, len(strings)))
    frame = pl.DataFrame({"text": [strings[i][1] for i in chosen]})
    again = frame.select(tts.answer_key(pl.col("text")))["text"].to_list()
    return [
        f"key of {strings[i][1][:60]!r} was {keys[i]!r}, is {key!r}"
        for i, key in zip(chosen, again, strict=True)
        if key != keys[i]
    ]


def timed(strings: list[tuple[str, str]], problems: list[str]) -> dict[str, list[float]]:
    """Time the reading of single strings, without workers; note those that cannot be read."""
    policy = tts.answers.AnswerPolicy()
    seconds: dict[str, list[float]] = {}
    for name, text in strings:
        start = time.thread_time()
        try:
            canonicalize(text, policy)
            normalize_text(text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            problems.append(f"{type(error).__name__} at {text[:200]!r}")
        seconds.setdefault(name, []).append(time.thread_time() - start)
    return seconds


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STRINGS
    start = time.perf_counter()
    report = run(count, seed=0, n_timed=count, n_kills=20)
    wall = time.perf_counter() - start
    lines = [
        f"{report.n_strings:,} strings in {wall:.0f} s on {os.cpu_count()} cores",
        f"Python {platform.python_version()}, polars {pl.__version__}",
        f"{'source':<22}{'strings':>9}{'mean ms':>10}{'p99 ms':>10}{'max ms':>10}",
    ]
    for name, times in sorted(report.seconds.items()):
        times.sort()
        milliseconds = [
            1e3 * sum(times) / len(times),
            1e3 * times[int(0.99 * len(times))],
            1e3 * times[-1],
        ]
        lines.append(
            f"{name:<22}{len(times):>9,}" + "".join(f"{value:>10.2f}" for value in milliseconds)
        )
    lines += [
        f"memory of the parent: {report.growth_mb:+.0f} MB after the first {CHUNK:,} strings",
        f"workers killed on purpose: {report.n_killed}; {report.statistics}",
        f"problems: {len(report.problems)}",
        *report.problems[:20],
    ]
    print("\n".join(lines))
    if count >= STRINGS:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n")
    sys.exit(bool(report.problems))


if __name__ == "__main__":
    main()
