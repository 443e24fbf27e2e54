"""Continuous fuzzing: extraction, keys, readers and the evaluator's tasks, in turns, until the time is over.

Inputs are mutations of the tests' labelled answers, of the shipped run and of small files of every
format. What is checked: nothing is raised but ttsframe's own errors; a column gives what a single
string gives; an answer equals itself; a damaged line changes no other line's row;
a right verdict is confirmed by a checker that shares no code with the tasks; time is bounded.

    python benchmarks/fuzz.py [seconds, 3600 [seed, 1]]
    python benchmarks/fuzz.py readers [inputs of each format, 10000 [seed, 1]]

write ``benchmarks/results/fuzz.txt`` and ``fuzz_readers.txt``. ``fuzz_guided.py`` is guided by the branches that an input reaches.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final, get_args

import hostile_answers
import hostile_responses
import polars as pl

import ttsframe as tts
from ttsframe._typing import AnswerStyle
from ttsframe.errors import TtsframeError

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results"
BATCH: Final = 250
STYLES: Final[tuple[AnswerStyle, ...]] = get_args(AnswerStyle)
MOST_SECONDS: Final = 2.0  # processor time of one string alone
ODD_VALUES: Final = (
    None, [], {}, [None], [[]], [["x"]], "", "12", 12, -1, 0.5, True, float("nan"), float("inf"), 10**30, {"x": [None]}, "\ud800", "a\x00b",
)  # fmt: skip
COMPRESSED: Final = ("inspect_ai.eval", "inspect_ai_folders.eval", "inspect_ai.json.gz")

Row = dict[str, Any]


class Findings:
    """What went wrong: the first input of each kind, and how often it came."""

    def __init__(self) -> None:
        """Start with none."""
        self.first: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, found: object) -> None:
        """Note one."""
        self.counts[kind] += 1
        self.first.setdefault(kind, ascii(found)[:600])

    def add_error(self, target: str, error: BaseException, found: object) -> None:
        """Note an exception by its type and the last line of ours that raised it."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "ttsframe" in frame.filename] or frames[-1:]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        self.add(f"{target}: {type(error).__name__} at {where}: {str(error)[:120]}", found)


def labelled(name: str, *fields: str) -> list[str]:
    """Return texts of the tests' labelled cases."""
    lines = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)[field] for line in lines for field in fields]


def samples() -> dict[str, list[Row]]:
    """Return a few rows of every format, as the contract of the readers has them."""
    path = ROOT / "tests" / "contracts" / "test_readers.py"
    spec = importlib.util.spec_from_file_location("contract_of_readers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows: dict[str, list[Row]] = module.SAMPLES
    return rows


def mutated(text: str, others: list[str], rng: Random) -> str:
    """Cut, double, splice, or put a token or an odd character into a text, up to five times."""
    for _ in range(rng.randint(1, 5)):
        at, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        match rng.randrange(7):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:end] + text[at:]
            case 2:
                text = text[:at] + rng.choice(hostile_answers.TOKENS) + text[at:]
            case 3:
                text = (
                    text[:at] + rng.choice(hostile_answers.STRANGE) + text[at + rng.randrange(2) :]
                )
            case 4:
                other = rng.choice(others)
                start = rng.randint(0, len(other))
                text = text[:at] + other[start : start + rng.randint(1, 40)] + text[at:]
            case 5:
                text = text[:at] + text[at:end] * rng.randint(2, 30) + text[end:]
            case _:
                text = text[:at] + str(rng.choice([0, 1, 7, 10**9, 0.5])) + text[end:]
    return text[:20_000]


def fuzz_extraction(rng: Random, findings: Findings) -> int:
    """A column gives what each text gives alone; no answer is empty."""
    texts = [mutated(rng.choice(TEXTS), TEXTS, rng) for _ in range(BATCH)]
    style = rng.choice(STYLES)
    found = (
        pl.DataFrame({"text": texts}).select(tts.extract_answer("text", style=style)).to_series()
    )
    for text, answer in zip(texts, found, strict=True):
        begin = time.thread_time()
        alone = tts.answers.explain_extraction(text, style=style).answer
        if time.thread_time() - begin > MOST_SECONDS:
            findings.add("extraction: slow", text)
        if alone != answer:
            findings.add("extraction: a column differs from one text", (style, text, answer, alone))
        if answer == "":
            findings.add("extraction: an empty answer", text)
    return BATCH


def fuzz_keys(rng: Random, findings: Findings) -> int:
    """A column gives what each answer gives alone, and an answer equals itself."""
    texts = [mutated(rng.choice(ANSWERS), ANSWERS, rng) for _ in range(BATCH)]
    others = [rng.choice([*texts[:20], rng.choice(ANSWERS)]) for _ in texts]
    frame = pl.DataFrame({"a": texts, "b": others})
    table = frame.with_columns(
        key=tts.answer_key("a"),
        again=tts.answer_key("a"),
        gold=tts.answers.gold_key("a"),
        itself=tts.is_equivalent("a", "a"),
        other=tts.is_equivalent("a", "b"),
    )
    for row in table.iter_rows(named=True):
        begin = time.thread_time()
        alone = tts.answers.key_of(row["a"])
        if time.thread_time() - begin > MOST_SECONDS:
            findings.add("keys: slow", row["a"])
        if alone != row["key"] or row["again"] != row["key"]:
            findings.add("keys: a column differs from one answer", (row["a"], row["key"], alone))
        # A gold answer may be a solution, whose answer follows a mark.
        if row["key"] is not None and row["gold"] == row["key"] and row["itself"] is not True:
            findings.add("keys: an answer differs from itself", row["a"])
        if row["key"] == "":
            findings.add("keys: an empty key", row["a"])
    return BATCH


def read(path: Path, options: dict[str, Any]) -> pl.DataFrame | None:
    """Read a file; None where ttsframe refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tts.read_trajectories(path, **options)
        except TtsframeError as error:
            if not str(error).strip():
                raise RuntimeError("an error without words") from error
            return None


def places(value: object) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value of a row."""
    items = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    for key, inner in items:
        yield (key,)
        yield from ((key, *rest) for rest in places(inner))


def with_odd_value(row: Row, rng: Random) -> bytes:
    """Write a row with one value, anywhere, that is of another type or odd."""
    copy = json.loads(json.dumps(row))
    *way, last = rng.choice(list(places(copy)))
    inner = copy
    for key in way:
        inner = inner[key]
    inner[last] = rng.choice(ODD_VALUES)
    return json.dumps(copy).encode()


def with_odd_bytes(line: bytes, rng: Random) -> bytes:
    """Change, cut or double a few bytes of a line."""
    changed = bytearray(line)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([rng.choice(b'"{}[],:\\0e-.nt \xff\x00')])
            case 1:
                del changed[at : at + rng.randint(1, 12)]
            case 2:
                changed[at:at] = changed[at : at + rng.randint(1, 30)]
            case _:
                changed[at:at] = rng.choice([
                    b"null",
                    b"NaN",
                    b"1e999",
                    b'"\\ud800"',
                    b"[[",
                    b"{}",
                    b"\xc3\x28",
                    b"true",
                ])
    return bytes(changed).replace(b"\n", b" ").replace(b"\r", b" ")


def same_rows(found: pl.DataFrame, expected: pl.DataFrame, *, damaged: str | None) -> bool:
    """Whether rows of problems that were not touched are there, or absent, but never changed."""
    keys = [
        each
        for each in ("problem_id", "attempt", "completion", "answer", "gold")
        if each in found.columns and each in expected.columns
    ]
    as_text = pl.col(keys).cast(pl.String)
    rows = found.select(as_text).filter(
        pl.col("problem_id") != damaged if damaged is not None else True
    )
    known = expected.select(as_text).filter(
        pl.col("problem_id") != damaged if damaged is not None else True
    )
    if damaged is None:
        return set(rows.rows()) <= set(known.rows())
    ids = set(known["problem_id"])
    there, wanted = Counter(row for row in rows.rows() if row[0] in ids), Counter(known.rows())
    # A damaged row may name another problem, and is then an attempt at it.
    return wanted <= there and (there - wanted).total() <= expected.height - known.height


def fuzz_readers(rng: Random, findings: Findings) -> int:
    """Damage files of one format."""
    return fuzz_reader(rng.choice(list(SAMPLES)), rng, findings)


def fuzz_reader(name: str, rng: Random, findings: Findings) -> int:
    """A damaged last line is refused, or changes no row of the others."""
    rows = SAMPLES[name]
    lines = [json.dumps(row).encode() for row in rows]
    path = FOLDER / "run.jsonl"
    expected = EXPECTED[name]
    damaged = str(expected["problem_id"][-1])
    n_cases = 40
    for _ in range(n_cases):
        last = with_odd_value(rows[-1], rng) if rng.randrange(2) else with_odd_bytes(lines[-1], rng)
        path.write_bytes(b"\n".join([*lines[:-1], last]) + b"\n")
        options: dict[str, Any] = rng.choice([
            {},
            {"format": name},
            {"on_error": "skip"},
            {"on_error": "skip", "format": name},
        ])
        try:
            found = read(path, options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            findings.add_error(f"readers, {name}", error, last)
            continue
        if found is not None and not same_rows(found, expected, damaged=damaged):
            findings.add(f"readers, {name}: a row of another line changed", (options, last))
    return n_cases


def fuzz_archives(rng: Random, findings: Findings) -> int:
    """Damage one of the archives."""
    return fuzz_archive(rng.choice(COMPRESSED), rng, findings)


def fuzz_archive(name: str, rng: Random, findings: Findings) -> int:
    """Compressed logs with changed bytes are refused, or give rows that the log has."""
    whole = (ROOT / "tests" / "data" / "logs" / name).read_bytes()
    expected = EXPECTED[name]
    n_cases = 20
    for _ in range(n_cases):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            at = (
                rng.randrange(len(changed))
                if rng.randrange(2)
                else len(changed) - 1 - rng.randrange(min(2_000, len(changed)))
            )
            changed[at] = rng.randrange(256)
        if not rng.randrange(5):
            del changed[rng.randrange(len(changed)) :]
        path = FOLDER / name
        path.write_bytes(changed)
        try:
            found = read(path, rng.choice([{}, {"on_error": "skip"}]))
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            findings.add_error(
                f"archives, {name}",
                error,
                [i for i in range(min(len(whole), len(changed))) if whole[i] != changed[i]],
            )
            continue
        if found is not None and found.height and not same_rows(found, expected, damaged=None):
            findings.add(
                f"archives, {name}: rows that the log has not",
                [
                    (i, changed[i])
                    for i in range(min(len(whole), len(changed)))
                    if whole[i] != changed[i]
                ],
            )
    return n_cases


def fuzz_tasks(rng: Random, findings: Findings) -> int:
    """Hostile responses to the tasks: the suite of that name, with a new seed each time."""
    seed = rng.randrange(2**31)
    report = hostile_responses.run(200, seed)
    for problem in report.problems:
        findings.add(f"tasks: {problem.split(' at ')[0][:80]}", (seed, problem))
    return report.n_responses


TARGETS: Final[dict[str, Callable[[Random, Findings], int]]] = {
    "extraction": fuzz_extraction,
    "keys": fuzz_keys,
    "readers": fuzz_readers,
    "archives": fuzz_archives,
    "tasks": fuzz_tasks,
}
SAMPLES: Final = samples()
TEXTS: Final = [
    *labelled("answer_extractions.jsonl", "text"),
    *(text for row in map(json.loads, (ROOT / "data" / "sample.jsonl").read_text(encoding="utf-8").splitlines()[:20]) for text in row["completions"][:4]),
]  # fmt: skip
ANSWERS: Final = [*labelled("answer_pairs.jsonl", "a", "b"), *hostile_answers.REAL]
FOLDER: Final = Path(tempfile.mkdtemp(prefix="ttsframe-fuzz-"))
EXPECTED: Final[dict[str, pl.DataFrame]] = {}


def prepare() -> None:
    """Read every file whole."""
    for name, rows in SAMPLES.items():
        path = FOLDER / "run.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        whole = read(path, {"format": name})
        assert whole is not None, name
        EXPECTED[name] = whole
    for name in COMPRESSED:
        whole = read(ROOT / "tests" / "data" / "logs" / name, {})
        assert whole is not None, name
        EXPECTED[name] = whole


def run(seconds: float, seed: int) -> tuple[dict[str, int], Findings]:
    """Give each target the same processor time, until the wall clock says that the time is over."""
    prepare()
    findings = Findings()
    n_cases: dict[str, int] = dict.fromkeys(TARGETS, 0)
    spent = dict.fromkeys(TARGETS, 0.0)
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        name = min(spent, key=lambda each: spent[each])
        begin = time.process_time()
        try:
            n_cases[name] += TARGETS[name](Random(f"{seed} {turn}"), findings)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            findings.add_error(name, error, f"turn {turn}")
        spent[name] += time.process_time() - begin + 1e-3
        turn += 1
    return n_cases, findings


def fuzz_format(name: str, n_inputs: int, seed: int) -> tuple[str, int, Findings]:
    """Damage files of one format, or members of one archive, a number of times."""
    prepare()
    findings, n_cases, turn = Findings(), 0, 0
    while n_cases < n_inputs:
        rng = Random(f"{seed} {name} {turn}")
        n_cases += (fuzz_archive if name in COMPRESSED else fuzz_reader)(name, rng, findings)
        turn += 1
    return name, n_cases, findings


def fuzz_every_format(n_inputs: int, seed: int) -> None:
    """Damage files of each format, and write what was found."""
    start = time.monotonic()
    names = [*SAMPLES, *COMPRESSED]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        done = list(pool.map(partial(fuzz_format, n_inputs=n_inputs, seed=seed), names))
    lines = [f"{heading(seed)}: {time.monotonic() - start:,.0f} s by the clock"]
    for name, n_cases, findings in done:
        lines.append(f"{name:<24}{n_cases:>8,} inputs, {sum(findings.counts.values()):,} findings")
        lines += described(findings)
    write(lines, "fuzz_readers.txt")


def heading(seed: int) -> str:
    """Return what was run on which machine."""
    commit = subprocess.run(
        ["/usr/bin/env", "git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    ).stdout.strip()
    machine = f"Python {platform.python_version()}, Polars {pl.__version__}, {os.cpu_count()} cores"
    return f"commit {commit}, seed {seed}; {machine}"


def described(findings: Findings) -> list[str]:
    """Return the kinds of findings, the most frequent first, each with an example."""
    return [
        f"{count:>8,} x {kind}\n           {findings.first[kind]}"
        for kind, count in findings.counts.most_common()
    ]


def write(lines: list[str], name: str) -> None:
    """Write and print a result."""
    (RESULTS / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def main(seconds: float, seed: int) -> None:
    """Fuzz, and write what was found."""
    start, cpu = time.monotonic(), time.process_time()
    n_cases, findings = run(seconds, seed)
    took = f"{time.monotonic() - start:,.0f} s by the clock, {time.process_time() - cpu:,.0f} s of one process"
    lines = [f"{heading(seed)}: {took}"]
    lines += [f"{name:<12}{count:>12,} cases" for name, count in n_cases.items()]
    lines.append(f"kinds of findings: {len(findings.counts)}")
    write([*lines, *described(findings)], "fuzz.txt")


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["readers"]:
        fuzz_every_format(int((*given[1:], 10_000)[0]), int((*given[2:], 1)[0]))
    else:
        main(float((*given, 3_600)[0]), int((*given[1:], 1)[0]))
