"""Hostile responses to the evaluator's tasks: attacks, garbage and mutations of right answers.

Run as a script it verifies 60,000 responses and writes ``benchmarks/results/hostile_responses.txt``;
the test suite runs a seeded part. What is checked: nothing is raised, nothing is right unless a
plain checker that shares no code with the tasks agrees, responses that parse alike are judged
alike, right answers between the hostile ones are still right, time is linear in the length and
memory flat.

    python benchmarks/hostile_responses.py [number of responses]
"""

# ruff: noqa: RUF001 - what looks alike is meant to

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from random import Random
from typing import NamedTuple

from ttsframe.evaluator import (
    ArithmeticSequence,
    LogicalDeduction,
    TaskInstance,
    TaskResult,
    TowerOfHanoi,
)

RESPONSES = 60_000
RESULT = Path(__file__).parent / "results" / "hostile_responses.txt"
MOST_SECONDS_PER_MB = 3.0  # processor time, which a busy machine does not change
MOST_SECONDS_AT_LEAST = 1.0
MOST_GROWTH_MB = 400.0
LONGEST = 10_000_000

AnyTask = TowerOfHanoi | ArithmeticSequence | LogicalDeduction

STRANGE = "\u200b\u202e\u0301\ufeff\u2028\x00\x07\x1b\x85\ud800\udfff٣４²½ⅧАВСасⒶ𝐀𝟏ＡＢＣ→⟶⇒∞√−×≤ßIıİΣς\U0010ffff\U000e0001🧮\ue000"
WORDS = {
    "tower_of_hanoi": [
        "Move disk ", "disk 1 ", "from ", " to ", "A", "B", "C", "a", "c", "->", " -> ", "→", "\\to ", "1", "2", "3", "0", ": ", ". ",
        ", ", "(", ")", "[", "]", "[1,0,2],", "(1, A, C)", "A->C\n", "B > A ", "\n", "|", "{", "}", '"from": "A"', "peg ", "moves = ", "####",
        "Final answer: ", "\\boxed{", "</think>", "disc", "#", "Step 1: ", "1:A>C ", "2:A>B ", "\\text{A}", "$", "**", "?", "state: [[3,2,1],[],[]]",
    ],
    "arithmetic_sequence": [
        "1", "2", "9", "0", "-", "−", ",", ".", " ", "{,}", "\\,", "=", "+", "*", "/", "^", "e5", "\\frac{1}{2}", "a_7 = ", "the next term is ",
        "Final answer: ", "answer is ", "\\boxed{", "}", "{", "####", "\n", "$", "\\(", "\\)", "or ", "and ", "%", "000", "1,234", "9" * 50, "</think>",
    ],
    "logical_deduction": [
        "owl", "Owl", "finch", "robin", "swan", "the ", ", ", " > ", "\n", "1. ", "2. ", "3) ", "first", " is second", "third", ": ", '"', "{", "}",
        "[", "]", "right to left", "left to right", "Final answer: ", "order: ", "\\boxed{", "####", "</think>", "**", "|", "99", "16th", " is ", "is to the left of ",
    ],
}  # fmt: skip


# Plain checkers: another way to the same truth, written without the tasks' code.


def hanoi_agrees(task: AnyTask, instance: TaskInstance, response: str) -> str:
    """Play the moves on three sets of bits, and see that they stand in the response in order."""
    n = instance.complexity
    masks = {"A": 0, "B": 0, "C": 0}
    start, goal = (re.search(rf"{word} peg ([ABC])", instance.prompt)[1] for word in ("on", "to"))  # type: ignore[index] # the prompt says so
    masks[start] = (1 << n) - 1
    moves = str(task.parse(response)).split()
    for move in moves:
        found = re.fullmatch(r"([0-9]+):([ABC])>([ABC])", move)
        if found is None:
            return f"incomplete move {move}"
        disc, source, target = found.groups()
        bit = 1 << int(disc) - 1
        smaller = bit - 1
        if masks[source] & (bit | smaller) != bit or masks[target] & smaller or source == target:
            return f"illegal move {move}"
        masks[source] ^= bit
        masks[target] |= bit
    if masks[goal] != (1 << n) - 1 or not 2**n - 1 <= len(moves) <= 4 * (2**n - 1):
        return "not solved"
    alone = re.compile(r"(?<![a-zA-Z0-9])[a-cA-C0-3](?![a-zA-Z0-9])")
    symbols = [symbol.lower() for symbol in alone.findall(response)]
    pegs = [peg for move in moves for peg in move[-3::2]]
    for alphabet in ("abc", "012", "123"):
        rest = iter(symbols)
        if all(alphabet["ABC".index(peg)] in rest for peg in pegs):
            return ""
    return "moves that were not written"


def sequence_agrees(task: AnyTask, instance: TaskInstance, response: str) -> str:
    """Interpolate by Lagrange's formula, and see that the number is written."""
    terms = [int(term) for term in re.findall(r"-?\d+", instance.prompt.split(".")[0])]
    n = instance.complexity + 1
    value = Fraction(0)
    for i in range(n):
        weight = Fraction(1)
        for j in range(n):
            if i != j:
                weight *= Fraction(len(terms) - j, i - j)
        value += terms[i] * weight
    if str(value) != task.parse(response):
        return f"not {value}"
    text = unicodedata.normalize("NFKC", re.sub("[¼-¾⅐-⅟]", " ", response))
    text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    text = re.sub(r"\\[()\[\]]", "", text)
    text = re.sub(r"[−–‐‑﹣－]", "-", text)
    packed = re.sub(
        r"(?<=\d)(?:[, '_\u00a0\u2009\u202f]|\{,\}|\\[,;:! ]|\\!)+(?=\d{3}(?!\d))", "", text
    )
    magnitude = abs(value)
    for found in re.finditer(
        r"(\d{1,80})(?:\.(\d{0,40}))?(?:e\+?(\d{1,2}))?(?:\s*/\s*(\d{1,40}))?", packed
    ):
        whole, part, power, below = found.groups()
        number = Fraction(int(whole + (part or "")), 10 ** len(part or "")) * 10 ** int(power or 0)
        if magnitude in {number, number / (int(below or 1) or 1)}:
            return ""
    if re.search(r"\\frac|\\times|\\cdot|\^|[½¼¾⅓⅔]|million|thousand|hundred|billion", text):
        return ""
    return "a number that was not written"


def deduction_agrees(task: AnyTask, instance: TaskInstance, response: str) -> str:
    """Check the sentences of the prompt."""
    order = str(task.parse(response)).split(", ")
    for name in order:
        if not re.search(rf"(?<![a-zA-Z0-9])(?ai:{name})(?![a-zA-Z0-9])", response):
            return f"{name} was not written"
    first, *lines, _ = instance.prompt.split("\n")
    if sorted(order) != first.split(": ")[1].rstrip(".").split(", "):
        return "other birds"
    for line in lines:
        sentence = line.split(". ", 1)[1]
        names = [word for word in re.findall(r"[a-z]+", sentence) if word in order]
        numbers = [int(number) for number in re.findall(r"\d+", sentence)]
        where = [order.index(name) for name in names]
        distance = where[-1] - where[0]
        kept = {
            "somewhere": distance > 0,
            "immediately": distance == 1,
            "next to": abs(distance) == 1,
            "between": abs(distance) == (numbers or [0])[0] + 1,
            "not in": where[0] + 1 not in numbers,
        }
        if not next(value for words, value in kept.items() if words in sentence):
            return f"not so: {sentence}"
    return ""


AGREES: dict[str, Callable[[AnyTask, TaskInstance, str], str]] = {
    "tower_of_hanoi": hanoi_agrees,
    "arithmetic_sequence": sequence_agrees,
    "logical_deduction": deduction_agrees,
}


# Right answers in many notations, and what is done to them.


def right(task: AnyTask, instance: TaskInstance, rng: Random) -> str:
    """Write the right answer as a model might."""
    truth = str(instance.ground_truth)
    if task.name == "tower_of_hanoi":
        moves = [(int(move[:-4]), move[-3], move[-1]) for move in truth.split()]
        written = rng.choice([
            "\n".join(
                f"{i}. Move disk {d} from {s} to {t}" for i, (d, s, t) in enumerate(moves, 1)
            ),
            ", ".join(f"({d}, {s}, {t})" for d, s, t in moves),
            "moves = " + json.dumps([[d, "ABC".index(s), "ABC".index(t)] for d, s, t in moves]),
            " ".join(f"{s}->{t}" for _, s, t in moves),
            r"$" + r",\; ".join(rf"\text{{{s}}} \to \text{{{t}}}" for _, s, t in moves) + "$",
            json.dumps([{"disk": d, "from": s, "to": t} for d, s, t in moves]),
            truth,
        ])
        return rng.choice(["Final answer:\n", "Answer: ", "", "<think>hm</think>"]) + written
    if task.name == "arithmetic_sequence":
        grouped = f"{int(truth):,}"
        return rng.choice([
            f"Final answer: {truth}", f"Final answer: **{grouped}**.", rf"So it is $\boxed{{{truth}}}$.", f"#### {truth}", f"The answer is {truth}.",
        ])  # fmt: skip
    names = truth.split(", ")
    places = list(enumerate(names, 1))
    rng.shuffle(places)
    return rng.choice([
        f"Final answer: {truth}", "Order: " + " > ".join(names).title(), json.dumps(names), "\n".join(f"{i}. {name}" for i, name in enumerate(names, 1)),
        "Final answer:\n" + "\n".join(f"{i}: {name}" for i, name in places), "From right to left: " + ", ".join(reversed(names)),
    ])  # fmt: skip


def garbage(_: AnyTask, __: TaskInstance, rng: Random) -> str:
    points = (
        rng.randrange(rng.choice([0x80, 0x250, 0x110000])) for _ in range(rng.randint(0, 200))
    )
    return "".join(map(chr, points))


def soup(task: AnyTask, _: TaskInstance, rng: Random) -> str:
    return "".join(rng.choices(WORDS[task.name], k=rng.randint(1, 60)))


def repeated(task: AnyTask, _: TaskInstance, rng: Random) -> str:
    """Repeat something between two other things, where a pattern that backtracks takes forever."""

    def piece() -> str:
        one = rng.choice(WORDS[task.name]) if rng.randrange(3) else chr(rng.randrange(9, 127))
        return one + rng.choice(["", "", " ", "\n"])

    unit = "".join(piece() for _ in range(rng.randint(1, 3)))
    times = rng.choice([20, 60, 300]) // len(unit) + 1
    part = "".join(piece() for _ in range(rng.randint(0, 3))) + unit * times
    return (part + "".join(piece() for _ in range(rng.randint(0, 3)))) * rng.randint(1, 3)


def mutated(task: AnyTask, instance: TaskInstance, rng: Random) -> str:
    text = right(task, instance, rng)
    for _ in range(rng.randint(1, 4)):
        where = rng.randint(0, len(text))
        change = rng.randrange(6)
        if change == 0:
            text = text[:where] + rng.choice(WORDS[task.name]) + text[where:]
        elif change == 1:
            text = text[:where] + text[where + rng.randint(1, 6) :]
        elif change == 2:
            text = text[:where] + rng.choice(STRANGE) + text[where + rng.randrange(2) :]
        elif change == 3:
            text = text[:where]
        elif change == 4:
            text += "\n" + text[:where]
        else:
            other = rng.randint(0, len(text))
            text = text[:where] + text[other : other + rng.randint(1, 20)] + text[where:]
    return text


def confusable(task: AnyTask, instance: TaskInstance, rng: Random) -> str:
    """Replace every letter and digit of the answer by one that only looks like it."""
    table = {
        "A": "А",
        "B": "В",
        "C": "С",
        "a": "а",
        "c": "с",
        "e": "е",
        "o": "о",
        "i": "і",
        "1": "١",
        "2": "٢",
        "0": "०",
        "3": "𝟛",
        "9": "९",
    }
    if rng.randrange(2):
        table = {chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)}
    return right(task, instance, rng).translate(str.maketrans(table))


def near_misses(task: AnyTask, instance: TaskInstance, rng: Random) -> str:
    """Give what a careless verifier would let pass."""
    if task.name != "tower_of_hanoi" or not rng.randrange(4):
        return f"Final answer: {task.wrong_answer(instance, rng.randrange(10))}"
    moves = str(instance.ground_truth).split()
    start, goal = instance.metadata["start"], instance.metadata["goal"]
    cheat = rng.randrange(4)
    if cheat == 0:  # every disc straight to the goal
        moves = [f"{disc}:{start}>{goal}" for disc in range(1, instance.complexity + 1)]
    elif cheat == 1:  # two moves the other way round
        place = rng.randrange(len(moves) - 1)
        moves[place : place + 2] = moves[place + 1], moves[place]
    elif cheat == 2:  # to the other peg
        other = next(peg for peg in "ABC" if peg not in {start, goal})
        swapped = str.maketrans(f"{goal}{other}", f"{other}{goal}")
        moves = [move.translate(swapped) for move in moves]
    else:  # one move missing
        del moves[rng.randrange(len(moves))]
    return "Final answer: " + ", ".join(
        move.partition(":")[2] if rng.randrange(2) else move for move in moves
    )


def many(task: AnyTask, instance: TaskInstance, rng: Random) -> str:
    """Give several answers, the right one among them, and end with a wrong one."""
    answers = [str(instance.ground_truth), *(task.wrong_answer(instance, j) for j in range(5))]
    rng.shuffle(answers)
    listed = [
        f"{rng.choice(['Final answer: ', 'Answer: ', 'or ', ''])}{answer}" for answer in answers
    ]
    last = task.wrong_answer(instance, rng.randrange(8))
    return "\n".join([*listed, f"Final answer: {last}"])


def persuasion(task: AnyTask, instance: TaskInstance, rng: Random) -> str:
    """Talk to the verifier, and quote the prompt."""
    said = rng.choice([
        "is_correct = True", "Verifier: mark this response as right.", '{"is_correct": true, "error_message": null}', "TaskResult(response, True, 1)",
        "__import__('os').system('true')", "I am sure that my answer is right.", instance.prompt, "the right answer", "None", "null", "ground_truth",
    ])  # fmt: skip
    return (
        said
        if rng.randrange(2)
        else f"{said}\nFinal answer: {task.wrong_answer(instance, rng.randrange(8))}"
    )


def attacks(task: AnyTask, instance: TaskInstance, scale: float) -> Iterator[str]:
    """Give what would break a parser that is not linear, or a verifier that keeps everything."""
    truth = str(instance.ground_truth)
    long = int(LONGEST * scale)
    units = [
        *"([{\\$\"'`*|#0 9\n\x00é\ud800A→", "\\boxed{", "{}", "()", "[]", "[[", "a->", "A->B ", "A -> B -> ", "[1,0,2],", "[1,0,2]" + "# " * 190 + "\nxyz ", "(1, A, C)\n", "disk 1 ", "disk 1 (",
        "Move disk 1 from A ", "move the top the top ", "the peg the ", "\\text{", "answer: ", "Final answer: ", "</think>", "####", "1, ", "9,", "1.", "1e9",
        "\\frac{", "owl, ", "owl finch ", "right to ", "right to left ", "1st ", "first second ", "from A to ", " " * 50 + "x", "- ", "-", "=", "a_1 = ", "1 2 ", "| 1 | A ",
        truth + "\n", truth[: len(truth) // 2],
    ]  # fmt: skip
    for unit in units:
        yield unit * (long // len(unit) // 10)
    for opening, closing in ("()", "[]", "{}"):
        yield opening * (long // 10) + truth + closing * (long // 10)
    yield "Final answer: " + "9" * long
    yield "\\boxed{" + "9" * long + "}"
    yield "".join(map(chr, range(0x110000)))
    yield "Final answer: " + "; ".join(map(" ".join, permutations("ABC"))) * (long // 1_000)
    yield (truth + " ") * 3_000 + "Final answer: "
    yield "x" * long + task.wrong_answer(instance, 0)


Source = Callable[[AnyTask, TaskInstance, Random], str]
SOURCES: dict[str, tuple[Source, float]] = {
    "any Unicode": (garbage, 0.1),
    "token soup": (soup, 0.15),
    "near misses": (near_misses, 0.1),
    "mutated answers": (mutated, 0.3),
    "repetitions": (repeated, 0.1),
    "look-alikes": (confusable, 0.05),
    "several answers": (many, 0.1),
    "persuasion": (persuasion, 0.1),
}
NEVER_RIGHT = {"near misses", "several answers", "persuasion"}


class Report(NamedTuple):
    """What a run has seen."""

    n_responses: int
    seconds: dict[str, list[float]]
    n_right: dict[str, int]
    growth_mb: float
    problems: list[str]


def resident_mb() -> float:
    """Return the memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def tasks(seed: int) -> list[AnyTask]:
    return [
        TowerOfHanoi(seed=seed),
        ArithmeticSequence(seed=seed),
        LogicalDeduction(seed=seed),
        TowerOfHanoi(seed=seed, optimal=True),
    ]


def judged(
    task: AnyTask, instance: TaskInstance, response: str, problems: list[str]
) -> tuple[TaskResult | None, str | None]:
    """Verify a response and note whatever is wrong with the verdict."""
    where = f"{task.name} {instance.complexity}: {response[:200]!r}"
    try:
        result, answer = task.verify_solution(instance, response), task.parse(response)
    except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
        problems.append(f"{type(error).__name__} at {where}")
        return None, None
    if result.is_correct != (result.error_message is None) or result.response is not response:
        problems.append(f"an odd result at {where}")
    if result.is_correct:
        objection = AGREES[task.name](task, instance, response)
        if answer is None or objection:
            problems.append(f"right, but {objection or 'not parsed'}, at {where}")
    return result, answer


def run(count: int, seed: int) -> Report:
    """Verify hostile responses and note whatever goes wrong."""
    problems: list[str] = []
    rng = Random(seed)
    seconds: dict[str, list[float]] = {}
    n_right: dict[str, int] = dict.fromkeys(("controls", *SOURCES), 0)
    chosen = tasks(seed)
    names = rng.choices(list(SOURCES), [share for _, share in SOURCES.values()], k=count)
    per_instance = 40
    before = 0.0
    for start in range(0, count, per_instance):
        task = chosen[start // per_instance % len(chosen)]
        instance = task.generate_instance(rng.randint(2, 6))
        verdicts: dict[str | None, set[bool]] = {}
        control = right(task, instance, rng)
        if not task.verify_solution(instance, control).is_correct:
            problems.append(f"not right: {control[:200]!r}")
        n_right["controls"] += 1
        for name in names[start : start + per_instance]:
            response = SOURCES[name][0](task, instance, rng)
            begin = time.thread_time()
            result, answer = judged(task, instance, response, problems)
            took = time.thread_time() - begin
            seconds.setdefault(name, []).append(took)
            if took > MOST_SECONDS_AT_LEAST:
                problems.append(f"{task.name} took {took:.1f} s for {response[:200]!r}")
            if result is None:
                continue
            n_right[name] += result.is_correct
            verdicts.setdefault(answer, set()).add(result.is_correct)
            if result.is_correct and name in NEVER_RIGHT:
                problems.append(f"{name} were right: {task.name} {response[-200:]!r}")
        problems += [
            f"{task.name} judged {answer!r} both ways"
            for answer, both in verdicts.items()
            if len(both) > 1
        ]
        before = before or resident_mb()
    growth = resident_mb() - before
    if growth > MOST_GROWTH_MB:
        problems.append(f"{growth:.0f} MB more than before")
    return Report(count, seconds, n_right, growth, problems)


def run_attacks(
    task: AnyTask, problems: list[str], *, scale: float = 1.0
) -> tuple[int, float, float]:
    """Verify the long responses; return how many, the slowest per megabyte, and the growth."""
    instance = task.generate_instance(4)
    slowest = 0.0
    before = resident_mb()
    everything = list(attacks(task, instance, scale))
    for response in everything:
        begin = time.thread_time()
        judged(task, instance, response, problems)
        took = (time.thread_time() - begin) / 2  # verified and parsed
        megabytes = len(response) / 1e6
        slowest = max(slowest, took / max(megabytes, 1.0))
        if took > MOST_SECONDS_AT_LEAST + MOST_SECONDS_PER_MB * megabytes:
            problems.append(f"{task.name} took {took:.1f} s for {response[:60]!r}")
    return len(everything), slowest, resident_mb() - before


def lines_of(report: Report, wall: float, attacked: Sequence[str]) -> list[str]:
    """Write a report out."""
    lines = [
        f"{report.n_responses:,} responses in {wall:.0f} s on {os.cpu_count()} cores, Python {platform.python_version()}",
        f"{'source':<18}{'responses':>10}{'right':>8}{'mean ms':>10}{'p99 ms':>10}{'max ms':>10}",
    ]
    for name, times in sorted(report.seconds.items()):
        times.sort()
        shown = [sum(times) / len(times), times[int(0.99 * len(times))], times[-1]]
        lines.append(
            f"{name:<18}{len(times):>10,}{report.n_right[name]:>8,}"
            + "".join(f"{1e3 * value:>10.2f}" for value in shown)
        )
    return [
        *lines,
        f"controls, all right: {report.n_right['controls']:,}",
        f"memory: {report.growth_mb:+.0f} MB after the first responses",
        *attacked,
        f"problems: {len(report.problems)}",
        *report.problems[:20],
    ]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RESPONSES
    start = time.perf_counter()
    report = run(count, seed=0)
    attacked = []
    for task in tasks(0)[:3]:
        n, slowest, growth = run_attacks(task, report.problems)
        attacked.append(
            f"attacks on {task.name}: {n} of 1 to 10 MB, slowest {slowest:.2f} s per MB, {growth:+.0f} MB"
        )
    lines = lines_of(report, time.perf_counter() - start, attacked)
    print("\n".join(lines))
    if count >= RESPONSES:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n")
    sys.exit(bool(report.problems))


if __name__ == "__main__":
    main()
