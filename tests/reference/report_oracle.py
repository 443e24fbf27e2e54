"""Every number of a report page in plain Python: what its tables and sentences must show.

Answers, keys and grades are the package's, and so is the draw of the problems that thresholds are
chosen on; both have tests of their own. Ends of resampled intervals are `Around` their estimate.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import curve_oracle
import numpy as np
import optimal_oracle
import polars as pl
import selection_oracle
from scipy import special, stats

import ttsframe as tts
from ttsframe.charts.latex_text import plain_text
from ttsframe.verifier.tables import is_held_out

Attempt = dict[str, Any]
Number = Any
"""A number as it is shown, or `Around` an estimate."""

SCORELESS = ("majority_vote", "oracle")
NAMES = ("majority_vote", "weighted_vote", "best_of_n", "oracle")
LEVEL = 0.95


class Around(NamedTuple):
    """An end of an interval that is held by its seed: on this side of the estimate."""

    estimate: float
    sign: int


class Run(NamedTuple):
    """The attempts of a file, by problem in the order of ids."""

    problems: dict[Any, list[Attempt]]
    is_exchangeable: bool

    @property
    def attempts(self) -> list[Attempt]:
        return [a for rows in self.problems.values() for a in rows]

    @property
    def has_scores(self) -> bool:
        return any(a["score"] is not None for a in self.attempts)

    @property
    def lines(self) -> list[tuple[str, str | None]]:
        """Selectors and reductions."""
        names = NAMES if self.has_scores else SCORELESS
        return [(name, None if name in SCORELESS else "last") for name in names]


# Reading.


def read_search_and_learn(path: Path) -> Run:
    """Read a file of search-and-learn: a line per problem, with lists."""
    rows: list[Attempt] = []
    is_tree = False
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        tokens = record["completion_tokens"]
        is_tree = is_tree or max(tokens) == 0
        for i, completion in enumerate(record["completions"]):
            rows.append({
                "problem_id": record["unique_id"],
                "attempt": i,
                "problem": record["problem"],
                "completion": completion,
                "gold": record["answer"],
                "steps": record["scores"][i],
                "n_tokens": None if max(tokens) == 0 else tokens[i],
            })
    texts = pl.DataFrame([{k: a[k] for k in ("completion", "gold")} for a in rows])
    answers = texts.select(answer=tts.extract_answer("completion"), gold="gold")
    return _finish(rows, answers, is_exchangeable=not is_tree)


def read_qwen_math(path: Path) -> Run:
    """Read a file of Qwen2.5-Math: grades are recorded, a reward is one logit per attempt."""
    rows: list[Attempt] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for i, answer in enumerate(record["pred"]):
            rows.append({
                "problem_id": record["idx"],
                "attempt": i,
                "problem": record["question"],
                "answer": answer or None,
                "gold": record["gt"],
                "is_correct": record["score"][i],
                "steps": record["pred_score"][i],
                "n_tokens": None,
            })
    return _finish(rows, pl.DataFrame([{k: a[k] for k in ("answer", "gold")} for a in rows]))


def read_boinf(path: Path) -> Run:
    """Read a file of BoInf: a line per problem, with answers and token counts."""
    rows: list[Attempt] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for i, (answer, n_tokens) in enumerate(record["all_answers"]):
            rows.append({
                "problem_id": record["problem_num"],
                "attempt": i,
                "problem": None,
                "answer": answer or None,
                "gold": str(record["gold_answer"]),
                "steps": None,
                "n_tokens": n_tokens,
            })
    return _finish(rows, pl.DataFrame([{k: a[k] for k in ("answer", "gold")} for a in rows]))


def read_solutions(solutions: pl.DataFrame) -> Run:
    """Read the solutions of a search."""
    rows = [a | {"steps": a["step_scores"]} for a in solutions.to_dicts()]
    answers = solutions.select(answer=tts.extract_answer("completion"), gold="gold")
    return _finish(rows, answers, is_exchangeable=False)


def _finish(rows: list[Attempt], answers: pl.DataFrame, *, is_exchangeable: bool = True) -> Run:
    """Add the package's keys and grades, and the last step's score."""
    graded = answers.with_columns(
        answer_key=tts.answer_key("answer"), is_equal=tts.is_equivalent("answer", "gold")
    )
    problems: dict[Any, list[Attempt]] = defaultdict(list)
    for a, found in zip(rows, graded.to_dicts(), strict=True):
        a["answer"], a["answer_key"] = found["answer"], found["answer_key"]
        a.setdefault("is_correct", bool(found["is_equal"]))
        a["score"] = None if a["steps"] is None else a["steps"][-1]
        problems[a["problem_id"]].append(a)
    return Run({name: problems[name] for name in sorted(problems)}, is_exchangeable)


# Statistics.


def wilson(total: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's interval."""
    return curve_oracle.fractional_wilson(total / n, n, level)  # type: ignore[arg-type]


def student(mean: float, error: float, n: int) -> tuple[float, float]:
    """Return Student's interval of n units."""
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return mean - half, mean + half


def paired(
    differences: Sequence[float], level: float = LEVEL, *, is_fractional: bool
) -> dict[str, Any]:
    """Return interval and test of paired differences, as the docstring of `compare` defines them."""
    n = len(differences)
    mean = math.fsum(differences) / n
    error = statistics.stdev(differences) / math.sqrt(n)
    gained = math.fsum(d for d in differences if d > 1e-9)
    lost = -math.fsum(d for d in differences if d < -1e-9)
    wins, losses = sum(d > 1e-9 for d in differences), sum(d < -1e-9 for d in differences)
    if is_fractional and wins + losses >= 6:
        half = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
        low, high = mean - half, mean + half
    else:
        p, q = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
        half = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
        low, high = p - q - half, p - q + half
    if is_fractional:
        p_value = 1.0
        if wins + losses:
            t = abs(mean) / error if error else math.inf
            p_value = max(2 * float(special.stdtr(n - 1, -t)), 2.0 ** (1 - wins - losses))
        if wins + losses >= 6 and p_value > 1 - level:
            low, high = min(low, 0.0), max(high, 0.0)
    else:
        fewer, n_differ = min(wins, losses), wins + losses
        p_value = float(sum(stats.binom.cdf([fewer, fewer - 1], n_differ, 0.5)))
    return {
        "difference": mean,
        "low": max(low, -1.0),
        "high": min(high, 1.0),
        "p": min(p_value, 1.0),
        "wins": wins,
        "losses": losses,
    }


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the rank correlation, ties at their mean rank."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1])


# Picks.


def pick_all(run: Run, budgets: Sequence[int]) -> list[dict[str, Any]]:
    """Pick an answer per problem, line and budget."""
    return [
        selection_oracle.pick(rows, name, budget)
        | {"problem_id": problem, "selector": name, "reduction": reduction, "budget": budget}
        for problem, rows in run.problems.items()
        for name, reduction in run.lines
        for budget in budgets
    ]


def budgets_of(run: Run) -> list[int]:
    """Return the powers of two up to the number of attempts, and it."""
    (most,) = {len(rows) for rows in run.problems.values()}
    return sorted({2**i for i in range(most.bit_length())} | {most})


def split_comparable(picks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Put all lines on the problems that all have; take out lines that lack more than a tenth."""
    worst: dict[Any, Any] = defaultdict(lambda: "ok")
    for row in picks:
        cell = (row["selector"], row["reduction"], row["problem_id"])
        worst[cell] = max(worst[cell], row["status"], key=curve_oracle.SEVERITY.index)
    n_ok = Counter(cell[:2] for cell, status in worst.items() if status == "ok")
    lines = {cell[:2] for cell in worst}
    lacking = sorted(
        (line for line in lines if n_ok[line] < 0.9 * max(n_ok.values())),
        key=lambda line: (line[0], line[1] or ""),
    )
    kept = [row for row in picks if (row["selector"], row["reduction"]) not in lacking]
    return share_problems(kept), lacking


def share_problems(picks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave a problem out of all lines where one leaves it out."""
    worst: dict[Any, Any] = defaultdict(lambda: "ok")
    for row in picks:
        name = row["problem_id"]
        worst[name] = max(worst[name], row["status"], key=curve_oracle.SEVERITY.index)
    return [row | {"status": worst[row["problem_id"]]} for row in picks]


def percents(*values: float | None) -> list[Number]:
    """Return fractions as they are shown, without missing ones."""
    return [100.0 * value for value in values if value is not None]


def left_out(point: Mapping[str, Any]) -> list[Number]:
    """Return the numbers of problems left out, by status, without zeros."""
    order = ("short", "unscored", "undefined", "ungraded")
    return [point[f"n_{status}"] for status in order if point[f"n_{status}"]]


def value_of(point: Mapping[str, Any]) -> list[Number]:
    return percents(point["accuracy"], point["ci_low"], point["ci_high"])


def curve_rows(
    curve: Mapping[Any, Any], lines: Iterable[Any], *head: str
) -> dict[Any, list[list[Number]]]:
    """Return the cells of a table of curves, by the texts of the first cells of a row."""
    rows = {}
    for line in lines:
        points = {key[2]: point for key, point in curve.items() if key[:2] == line}
        last = points[max(points)]
        cells = [value_of(points[budget]) for budget in sorted(points)]
        rows[(*head, line[0], line[1] or "—")] = [*cells, [last["n_problems"]], left_out(last)]
    return rows


def grouped(points: Sequence[Mapping[str, Any]]) -> list[Number]:
    """Return the values of lines, those of equal ones once."""
    found = {tuple(f"{v:.6f}" for v in value_of(point)): value_of(point) for point in points}
    return [number for value in found.values() for number in value]


class Expected(NamedTuple):
    """What a section shows: the numbers of its sentence, and the rows of its tables by caption."""

    sentence: list[Number]
    tables: dict[str, dict[Any, list[list[Number]]]]
    words: Sequence[str] = ()
    """Texts of the run in the sentence, whose numbers do not count."""


def expect(run: Run) -> tuple[dict[str, Expected], list[Number]]:
    """Return what each section shows, and the numbers at the top of the page."""
    budgets = budgets_of(run)
    picks = pick_all(run, budgets)
    shared, lacking = split_comparable(picks)
    lines = [line for line in run.lines if line not in lacking]
    curve = curve_oracle.curve(shared)
    sections = {
        "loaded": expect_loaded(run),
        "health": expect_health(run),
        "votes": expect_votes(run, picks, budgets[-1]),
        "accuracy": expect_accuracy(run, curve, lines, picks, lacking),
        "selection-gap": expect_gap(shared, lines, budgets),
        "steps": expect_steps(run),
        "verifier": expect_verifier(run, picks, budgets),
        "cost": expect_cost(run, shared, lines, budgets),
    }
    if run.is_exchangeable and budgets[-1] >= 16 and len(run.problems) >= 15:
        sections |= expect_levels(run)
    ends = [curve[*line, budgets[-1]] for line in lines]
    lead = [budgets[-1], ends[0]["n_problems"]]
    lead += [number for point in ends for number in percents(point["accuracy"])]
    return {name: section for name, section in sections.items() if section is not None}, lead


def expect_loaded(run: Run) -> Expected:
    rows = run.attempts
    sizes = [len(attempts) for attempts in run.problems.values()]
    n_missing = sum(a["answer_key"] is None for a in rows)
    share = 100 * n_missing / len(rows)
    scores = [a["score"] for a in rows if a["score"] is not None]
    cells = [
        [len(sizes)],
        [len(rows)],
        [min(sizes), statistics.median(sizes), max(sizes)],
        [n_missing, share],
        [sum(a["is_correct"] is None for a in rows)],
        [len(rows) - len(scores)],
        [float(f"{end:.4g}") for end in (min(scores), max(scores))] if scores else [],
    ]
    return Expected(
        [len(rows), len(sizes), sizes[0], n_missing, share], {"Problems and attempts": {(): cells}}
    )


def expect_health(run: Run) -> Expected:
    """Count attempts without an answer, the only issue of these files, and what they cost at most."""
    means = {
        problem: statistics.fmean(a["is_correct"] for a in rows)
        for problem, rows in run.problems.items()
    }
    possible = {
        problem: statistics.fmean(a["is_correct"] or a["answer_key"] is None for a in rows)
        for problem, rows in run.problems.items()
    }
    missing = [a for a in run.attempts if a["answer_key"] is None]
    if not missing:
        return Expected([], {})
    accuracy, then = statistics.fmean(means.values()), statistics.fmean(possible.values())
    n_problems = len({a["problem_id"] for a in missing})
    share = percents(len(missing) / len(run.attempts))
    cells = [[len(missing)], share, [n_problems], percents(then - accuracy)]
    return Expected(
        [len(missing), *share, 1, *percents(then, accuracy)],  # pass@1
        {"Issues": {("without an answer",): cells}},
    )


def expect_votes(run: Run, picks: list[dict[str, Any]], budget: int) -> Expected:
    """Find the vote that was lost by least, or else the most divided one."""
    last = {(row["problem_id"], row["selector"]): row for row in picks if row["budget"] == budget}
    lost, divided = [], []
    for problem in run.problems:
        vote, bound = last[problem, "majority_vote"], last[problem, "oracle"]
        if not vote["n_votes"]:
            continue
        is_other = bound["is_correct"] and bound["answer_key"] not in {None, vote["answer_key"]}
        if not vote["is_correct"] and is_other:
            lost.append((vote["n_votes"] - bound["n_votes"], -vote["n_votes"], problem))
        divided.append((vote["agreement"], problem))
    problem = min(lost)[-1] if lost else min(divided)[-1]
    votes: dict[str, list[Attempt]] = defaultdict(list)
    for a in run.problems[problem]:
        if a["answer_key"] is not None:
            votes[a["answer_key"]].append(a)
    ranked = sorted(votes.values(), key=lambda of: (-len(of), of[0]["attempt"]))
    winner, most = ranked[0], len(ranked[0])
    tied = sum(len(of) == most for of in ranked)
    numbers = [most] if tied == 1 else [tied, most]
    words = [plain_text(winner[0]["answer"])]
    right = [of for of in ranked if of[0]["is_correct"]]
    if not winner[0]["is_correct"] and right:
        words.append(plain_text(right[0][0]["answer"]))
        numbers += [len(right[0])] if len(right[0]) < most else []
    return Expected(numbers, {}, words)


def expect_accuracy(
    run: Run,
    curve: Mapping[Any, Any],
    lines: Sequence[Any],
    picks: list[dict[str, Any]],
    lacking: Sequence[Any],
) -> Expected:
    budgets = sorted({key[2] for key in curve})
    first, last = budgets[0], budgets[-1]
    sentence: list[Number] = []
    if first < last:
        sentence += [*percents(curve["majority_vote", None, first]["accuracy"]), first]
    ends = [curve[*line, last] for line in lines]
    sentence.append(last)
    if out := left_out(ends[0]):
        sentence += [ends[0]["n_problems"], ends[0]["n_problems"] + sum(out), *out]
    sentence += grouped(ends)
    tables = {"Accuracy by number of attempts": curve_rows(curve, lines)}
    alone: dict[Any, list[list[Number]]] = {}
    for line in lacking:
        beside = [*sorted({line, ("majority_vote", None), ("oracle", None)}, key=lambda of: of[0])]
        rows = [row for row in picks if (row["selector"], row["reduction"]) in beside]
        own = curve_oracle.curve(share_problems(rows))
        alone |= curve_rows(own, beside, f"{line[0]} ({line[1]})")
        points = [own[*of, last] for of in beside]
        out = left_out(points[0])
        sentence += [points[0]["n_problems"], points[0]["n_problems"] + sum(out), *out, last]
        sentence += grouped(points)
    if alone:
        tables["Lines without a result"] = alone
    if limit := majority_limit(run):
        ends = [limit[f"accuracy_if_undecided_{grade}"] for grade in ("wrong", "right")]
        counts = [limit["n_undecided"], limit["n_problems"]]
        sentence += [*percents(*ends), *counts] if counts[0] else percents(limit["accuracy"])
    return Expected(sentence, tables)


def majority_limit(run: Run) -> dict[str, float] | None:
    """Return the share of problems whose most frequent answer is right, and how far the undecided ones reach.

    A problem is undecided unless P(p > 1/2) > 95 % for the first of its two most frequent answers, with
    a uniform prior: P(Beta(a, b) > 1/2) is the chance of fewer than a heads in a + b - 1 tosses.
    """
    if not run.is_exchangeable or budgets_of(run)[-1] < 8:
        return None
    values, surely, n_tied, n_undecided = [], [], 0, 0
    for rows in run.problems.values():
        votes: dict[str, list[bool]] = defaultdict(list)
        for a in rows:
            if a["answer_key"] is not None:
                votes[a["answer_key"]].append(a["is_correct"])
        first, second, *_ = [*sorted(map(len, votes.values()), reverse=True), 0, 0]
        leading = [grades for grades in votes.values() if len(grades) == first]
        # Equal answers share the problem.
        value = statistics.fmean(map(statistics.fmean, leading)) if leading else 0.0
        n_tosses = first + second + 1
        ahead = Fraction(sum(math.comb(n_tosses, i) for i in range(first + 1)), 2**n_tosses)
        is_undecided = ahead <= Fraction(95, 100)
        n_tied += len(leading) > 1
        n_undecided += is_undecided
        values.append(value)
        surely.append(0.0 if is_undecided else value)
    is_fractional = any(value not in {0.0, 1.0} for value in values)
    least = math.fsum(surely) / len(values)
    return curve_oracle.summary(values, is_fractional=is_fractional, confidence_level=LEVEL) | {
        "n_left_out": 0,
        "n_tied": n_tied,
        "n_undecided": n_undecided,
        "accuracy_if_undecided_wrong": least,
        "accuracy_if_undecided_right": least + n_undecided / len(values),
    }


def expect_gap(
    shared: list[dict[str, Any]], lines: Sequence[Any], budgets: Sequence[int]
) -> Expected:
    value = {
        (row["selector"], row["budget"], row["problem_id"]): row["value"]
        for row in shared
        if row["status"] == "ok"
    }
    names = {key[2] for key in value}
    table, best = {}, None
    for selector, reduction in lines:
        if selector == "oracle":
            continue
        gaps = {b: [value["oracle", b, n] - value[selector, b, n] for n in names] for b in budgets}
        is_fractional = any(gap not in {0.0, 1.0} for of in gaps.values() for gap in of)
        points = {
            b: curve_oracle.summary(of, is_fractional=is_fractional, confidence_level=LEVEL)
            for b, of in gaps.items()
        }
        table[selector, reduction or "—"] = [*[value_of(points[b]) for b in budgets], [len(names)]]
        last = budgets[-1]
        accuracy = math.fsum(value[selector, last, n] for n in names) / len(names)
        gap = points[last]
        if best is None or accuracy > best[0] + 1e-9:
            rest = 1.0 - accuracy - gap["accuracy"]
            best = (accuracy, [*value_of(gap), *percents(rest)])
    assert best is not None
    sentence = [budgets[-1], *percents(best[0]), len(names), *best[1]]
    return Expected(sentence, {"Problems with a right attempt": table})


def expect_steps(run: Run) -> Expected | None:
    """Average the first and the last score of right and wrong attempts, at problems with both.

    Attempts of a single step have no course: the section on the verifier says how good their scores are.
    """
    if all(a["steps"] is None or len(a["steps"]) == 1 for a in run.attempts):
        return None
    means: dict[tuple[bool, int], list[float]] = defaultdict(list)
    mixed = [rows for rows in run.problems.values() if len({a["is_correct"] for a in rows}) == 2]
    for rows in mixed:
        for grade in (True, False):
            of = [a["steps"] for a in rows if a["is_correct"] is grade]
            for end in (0, -1):
                means[grade, end].append(statistics.fmean(steps[end] for steps in of))
    shown = [statistics.fmean(means[grade, end]) for end in (-1, 0) for grade in (True, False)]
    return Expected([len(mixed), *shown], {})


# The verifier.


def reduce_steps(steps: Sequence[float], name: str) -> float:
    makers: dict[str, Callable[[Sequence[float]], float]] = {
        "last": lambda of: of[-1],
        "min": min,
        "mean": statistics.fmean,
        "prod": math.prod,
    }
    return makers[name](steps)


def auroc(rows: Sequence[tuple[bool, float]]) -> float:
    """Compare all pairs, by the ranks of the right ones."""
    ranks = stats.rankdata([score for _, score in rows])
    n_right = sum(grade for grade, _ in rows)
    n_wrong = len(rows) - n_right
    total = math.fsum(rank for rank, (grade, _) in zip(ranks, rows, strict=True) if grade)
    return (total - n_right * (n_right + 1) / 2) / (n_right * n_wrong)


def average_precision(rows: Sequence[tuple[bool, float]]) -> float:
    n_right, hits, seen, total = sum(grade for grade, _ in rows), 0, 0, 0.0
    by_score: dict[float, list[bool]] = defaultdict(list)
    for grade, score in rows:
        by_score[score].append(grade)
    for score in sorted(by_score, reverse=True):
        seen += len(by_score[score])
        hits += sum(by_score[score])
        total += sum(by_score[score]) / n_right * hits / seen
    return total


def calibration_error(rows: Sequence[tuple[bool, float]], *, by_mass: bool) -> float:
    ordered = sorted(score for _, score in rows)
    low, high = {}, {}
    for i, score in enumerate(ordered):
        low.setdefault(score, i)
        high[score] = i + 1
    bins: dict[int, list[tuple[bool, float]]] = defaultdict(list)
    for grade, score in rows:
        place = max(next(b for b in range(1, 11) if score <= b / 10) - 1, 0)
        if by_mass:
            place = (low[score] + high[score]) * 10 // (2 * len(rows))
        bins[place].append((grade, score))
    gaps = [
        abs(sum(grade for grade, _ in of) - math.fsum(s for _, s in of)) for of in bins.values()
    ]
    return math.fsum(gaps) / len(rows)


def expect_verifier(
    run: Run, picks: list[dict[str, Any]], budgets: Sequence[int]
) -> Expected | None:
    if not run.has_scores:
        return None
    metrics, sentence = {}, []
    is_probability = all(0 <= step <= 1 for a in run.attempts for step in a["steps"][-1:])
    # Of a single step, all reductions are the same.
    has_steps = any(len(a["steps"]) > 1 for a in run.attempts)
    for name in ("last", "mean", "min", "prod") if has_steps else ("last",):
        by_problem = {
            problem: [(a["is_correct"], reduce_steps(a["steps"], name)) for a in rows]
            for problem, rows in run.problems.items()
        }
        rows = [row for of in by_problem.values() for row in of]
        areas = [auroc(of) for of in by_problem.values() if len({grade for grade, _ in of}) == 2]
        mean, n = statistics.fmean(areas), len(areas)
        if 5 - 1e-9 <= mean * n <= n - 5 + 1e-9:
            low, high = student(mean, statistics.stdev(areas) / math.sqrt(n), n)
        else:
            low, high = wilson(mean * n, n)
        within = [mean, max(low, 0.0), min(high, 1.0)]
        measured: list[list[Number]] = [[], [], []]
        if is_probability:
            measured = [
                [statistics.fmean((score - grade) ** 2 for grade, score in rows)],
                [calibration_error(rows, by_mass=False)],
                [calibration_error(rows, by_mass=True)],
            ]
        metrics[name,] = [
            within,
            [auroc(rows)],
            [average_precision(rows)],
            *measured,
            [len(rows)],
            [len(areas)],
        ]
        if name == "last":
            sentence = [*percents(*within), 50, len(areas)]
            sentence += percents(measured[2][0]) if is_probability else [0, 1]
    tables = {
        "Metrics of the scores": metrics,
        "Best threshold": expect_thresholds(run),
    }
    if lengths := expect_lengths(run):
        tables["Rank correlation"] = lengths
    return Expected([*sentence, *expect_decline(picks, budgets)], tables)


def expect_decline(picks: list[dict[str, Any]], budgets: Sequence[int]) -> list[Number]:
    """Compare best-of-n at the largest budget with its peak."""
    values = {
        b: [r["value"] for r in picks if r["selector"] == "best_of_n" and r["budget"] == b]
        for b in budgets
    }
    means = {b: statistics.fmean(of) for b, of in values.items()}
    peak = next(b for b in budgets if means[b] > max(means.values()) - 1e-9)
    last = budgets[-1]
    if peak == last:
        return [last]
    differences = [x - y for x, y in zip(values[peak], values[last], strict=True)]
    if abs(math.fsum(differences)) < 1e-9:
        return [last, peak]
    found = paired(differences, 1 - (1 - LEVEL) / (len(budgets) - 1), is_fractional=False)
    drop = percents(found["difference"], found["low"], found["high"])
    return [peak, *drop, last] if found["low"] > 0 else [*drop, last, peak]


def expect_thresholds(run: Run) -> dict[Any, list[list[Number]]]:
    held = dict(zip(run.problems, is_held_out(len(run.problems), 0), strict=True))
    seen, judged = (
        [(a["is_correct"], a["score"]) for a in run.attempts if held[a["problem_id"]] == of]
        for of in (False, True)
    )

    def accuracy(rows: Sequence[tuple[bool, float]], least: float) -> float:
        return sum((score >= least) == grade for grade, score in rows) / len(rows)

    def f1(rows: Sequence[tuple[bool, float]], least: float) -> float:
        hits = sum(score >= least and grade for grade, score in rows)
        return 2 * hits / (sum(s >= least for _, s in rows) + sum(grade for grade, _ in rows))

    table = {}
    for name, measure in (("accuracy", accuracy), ("f1", f1)):
        candidates = [*{score for _, score in seen}, math.inf]
        best = max(candidates, key=lambda least: (measure(seen, least), -least))
        shown = [measure(judged, least) for least in (best, -math.inf, math.inf)]
        table["last", name] = [[best], *[percents(value) for value in shown], [sum(held.values())]]
    return table


def expect_lengths(run: Run) -> dict[Any, list[list[Number]]]:
    table: dict[Any, list[list[Number]]] = {}
    units = {"steps": lambda a: len(a["steps"]), "tokens": lambda a: a["n_tokens"]}
    for unit, measure in units.items():
        cells: list[list[Number]] = []
        for grades in ({True, False}, {True}, {False}):
            rows = [a for a in run.attempts if a["is_correct"] in grades]
            known = [(a["score"], measure(a)) for a in rows if measure(a) is not None]
            found = spearman([s for s, _ in known], [n for _, n in known]) if known else None
            cells.append([] if found is None else [found])
        table["last", unit] = cells
    is_any = any(cell for cells in table.values() for cell in cells)
    return table if is_any else {}


# Cost.


def expect_cost(
    run: Run, shared: list[dict[str, Any]], lines: Sequence[Any], budgets: Sequence[int]
) -> Expected | None:
    if not run.is_exchangeable or any(a["n_tokens"] is None for a in run.attempts):
        return None
    tokens = {
        b: statistics.fmean(sum(a["n_tokens"] for a in rows[:b]) for rows in run.problems.values())
        for b in budgets
    }
    curve = curve_oracle.curve(shared)
    points = {(*line, b): curve[*line, b] for line in lines if line[0] != "oracle" for b in budgets}
    is_efficient = {
        key: not any(
            (other["accuracy"] >= point["accuracy"] - 1e-9 and tokens[o[2]] < tokens[key[2]])
            or (other["accuracy"] > point["accuracy"] + 1e-9 and o[2] == key[2])
            for o, other in points.items()
        )
        for key, point in points.items()
    }
    table = {
        (key[0], key[1] or "—", f"{key[2]:,}"): [
            [tokens[key[2]]],
            value_of(point),
            [is_efficient[key]],
            [point["n_problems"]],
        ]
        for key, point in points.items()
    }
    best = max(points, key=lambda key: (points[key]["accuracy"], -key[2]))
    sentence = [*value_of(points[best]), tokens[best[2]]]
    tables = {"Accuracy by generated tokens": table}
    gains = {}
    for line in lines:
        if line[0] in {"majority_vote", "oracle"}:
            continue
        gains[line] = _gain(points, tokens, budgets, line)
    if gains:
        goal = max(points["majority_vote", None, b]["accuracy"] for b in budgets)
        tables["Tokens per problem"] = {
            (line[0], line[1] or "—"): [
                percents(goal),
                [spent],
                [other],
                [spent / other, Around(spent / other, -1), Around(spent / other, 1)],
                [points[best]["n_problems"]],
            ]
            for line, (spent, other) in gains.items()
        }
        # Which line is surest follows from resampled ends; the page's own choice is checked by value.
        sentence += [*percents(goal), *[None] * 3]
    return Expected(sentence, tables)


def _gain(
    points: Mapping[Any, Any], tokens: Mapping[int, float], budgets: Sequence[int], line: Any
) -> tuple[float, float]:
    """Return the tokens of majority vote's best accuracy, and those of a line that reaches it."""

    def reach(values: Sequence[float], goal: float) -> float:
        spent = [tokens[b] for b in budgets]
        i = next(i for i, value in enumerate(values) if value >= goal - 1e-12)
        if i == 0:
            return spent[0]
        share = (goal - values[i - 1]) / (values[i] - values[i - 1])
        return math.exp(math.log(spent[i - 1]) + share * math.log(spent[i] / spent[i - 1]))

    base = [points["majority_vote", None, b]["accuracy"] for b in budgets]
    other = [points[*line, b]["accuracy"] for b in budgets]
    return reach(base, max(base)), reach(other, max(base))


# Levels.


def expect_levels(run: Run) -> dict[str, Expected]:
    """Judge each half of the attempts by the levels of the other."""
    n_levels = 5 if len(run.problems) >= 50 else 3
    difficulty = {
        (name, fold): 1
        - statistics.fmean(a["is_correct"] for a in rows if a["attempt"] % 2 != fold)
        for name, rows in run.problems.items()
        for fold in (0, 1)
    }
    levels: dict[Any, int] = {}
    for fold in (0, 1):
        of_fold = [round(difficulty[name, fold], 12) for name in run.problems]
        for name, rank in zip(run.problems, stats.rankdata(of_fold), strict=True):
            levels[name, fold] = int((2 * rank - 1) * n_levels // (2 * len(run.problems))) + 1
    halves = [
        Run(
            {
                name: [a | {"attempt": a["attempt"] // 2} for a in rows if a["attempt"] % 2 == fold]
                for name, rows in run.problems.items()
            },
            is_exchangeable=True,
        )
        for fold in (0, 1)
    ]
    n_half = min(len(rows) for half in halves for rows in half.problems.values())
    budgets = [b for b in budgets_of(run) if b <= n_half]
    rows = [row | {"fold": fold} for fold in (0, 1) for row in pick_all(halves[fold], budgets)]
    table, points = {}, {}
    for level in range(1, n_levels + 1):
        for line in run.lines:
            found = {b: _level_point(rows, levels, level, line, b) for b in budgets}
            is_fractional = any(point["is_fractional"] for point in found.values())
            cells = []
            for b in budgets:
                points[level, line, b] = _level_interval(found[b], is_fractional=is_fractional)
                cells.append(points[level, line, b])
            key = (str(level), line[0], line[1] or "—")
            table[key] = [*cells, [found[budgets[0]]["n_problems"]], []]
    first, last = budgets[0], budgets[-1]
    vote = ("majority_vote", None)
    filled = [level for level in range(1, n_levels + 1) if points[level, vote, last]]
    gain = {k: points[k, vote, last][0] - points[k, vote, first][0] for k in filled}
    most = [k for k in filled if gain[k] > max(gain.values()) - 1e-7]
    correlation = spearman(
        [difficulty[name, 0] for name in run.problems],
        [difficulty[name, 1] for name in run.problems],
    )
    assert correlation is not None
    degrees = len(run.problems) - 2
    p = float(special.stdtr(degrees, -correlation * math.sqrt(degrees / (1 - correlation**2))))
    sentence: list[Number] = [*most]
    for i, k in enumerate(most):
        ends = points[k, vote, first][0], points[k, vote, last][0]
        sentence += [ends[0], ends[1]] if i else [ends[0], first, ends[1], last]
    sentence.append(last)
    for k in (filled[0], filled[-1]):
        sentence += [*points[k, vote, last], k]
    sentence += [len(run.problems), correlation, max(p, 0.001)]
    sections = {"difficulty": Expected(sentence, {"Accuracy by number of attempts": table})}
    if run.has_scores:
        sections["compute-optimal"] = expect_optimal(run, rows, levels, budgets, n_levels)
    return sections


def _level_point(
    rows: Sequence[dict[str, Any]], levels: Mapping[Any, int], level: int, line: Any, budget: int
) -> dict[str, Any]:
    """Average each half of a level, and then the halves."""
    values: dict[int, dict[Any, float]] = {0: {}, 1: {}}
    for row in rows:
        is_here = (row["selector"], row["reduction"], row["budget"]) == (*line, budget)
        if is_here and levels[row["problem_id"], row["fold"]] == level:
            values[row["fold"]][row["problem_id"]] = row["value"]
    kept = {fold: of for fold, of in values.items() if of}
    names = {name for of in kept.values() for name in of}
    if not kept:
        return {"n_problems": 0, "is_fractional": False}
    means = {fold: statistics.fmean(of.values()) for fold, of in kept.items()}
    pulls = [
        sum(
            (of[name] - means[fold]) / (len(kept) * len(of))
            for fold, of in kept.items()
            if name in of
        )
        for name in names
    ]
    n = len(names)
    return {
        "n_problems": n,
        "accuracy": statistics.fmean(means.values()),
        "error": math.sqrt(n / (n - 1) * math.fsum(p * p for p in pulls)) if n > 1 else None,
        "n_each": sum(map(len, kept.values())) / len(kept),
        "is_fractional": len(kept) > 1,
    }


def _level_interval(point: Mapping[str, Any], *, is_fractional: bool) -> list[Number]:
    """Return a mean with its interval, in percent."""
    if not point["n_problems"]:
        return []
    mean, n = point["accuracy"], point["n_each"]
    if point["n_problems"] < 2:
        return percents(mean)
    if is_fractional and 5 - 1e-9 <= mean * n <= n - 5 + 1e-9:
        low, high = student(mean, point["error"], point["n_problems"])
    else:
        low, high = wilson(mean * n, n)
    return percents(mean, max(low, 0.0), min(high, 1.0))


def expect_optimal(
    run: Run,
    rows: Sequence[dict[str, Any]],
    levels: Mapping[Any, int],
    budgets: Sequence[int],
    n_levels: int,
) -> Expected:
    optimal, choices = optimal_oracle.optimal(rows, levels)
    curve = curve_oracle.curve([dict(row) for row in rows]) | optimal
    lines = [
        *run.lines,
        *[(name, None) for name in (optimal_oracle.HONEST, optimal_oracle.IN_SAMPLE)],
    ]
    chosen: dict[Any, list[list[Number]]] = {}
    for level in range(1, n_levels + 1):
        cells: list[list[Number]] = []
        for b in budgets:
            choice = choices[level, b, None]
            tied = [choice["n_tied"] - 1, choice["n_strategies"] - 1]
            cells.append(tied if choice["n_tied"] > 1 else [])
        chosen[str(level),] = [*cells, [choices[level, budgets[-1], None]["n_problems"]]]
    last = budgets[-1]
    single = max(
        (line for line in run.lines if line[0] != "oracle"),
        key=lambda line: (round(curve[*line, last]["accuracy"], 9), line[1] is None),
    )
    honest, seen = (
        curve[name, None, last] for name in (optimal_oracle.HONEST, optimal_oracle.IN_SAMPLE)
    )
    folds = optimal_oracle.folds_of(levels, n_folds=2, seed=0)
    value = {
        (row["problem_id"], row["fold"], row["selector"]): row["value"]
        for row in rows
        if row["budget"] == last
    }
    differences = []
    is_fractional = False
    for name in run.problems:
        sides = []
        for fold in (0, 1):
            strategy = choices[levels[name, fold], last, folds[name]]["strategy"][0]
            sides.append((value[name, fold, strategy], value[name, fold, single[0]]))
        mine, theirs = (statistics.fmean(side[i] for side in sides) for i in (0, 1))
        is_fractional = is_fractional or {mine, theirs} - {0.0, 1.0} != set()
        differences.append(mine - theirs)
    found = paired(differences, is_fractional=is_fractional)
    sentence = [
        last,
        *value_of(honest),
        *percents(curve[*single, last]["accuracy"]),
        *percents(found["difference"]),
        *percents(found["low"], found["high"]),
        *percents(seen["accuracy"]),
    ]
    tables = {
        "Best strategy by level": chosen,
        "Accuracy by number of attempts": curve_rows(curve, lines),
    }
    return Expected(sentence, tables)


# Two runs.


def expect_comparison(runs: Mapping[str, Run], budgets: Sequence[int]) -> Expected:
    """Compare the second run with the first, problem by problem."""
    (baseline, first), (name, second) = runs.items()
    values = [
        {
            (row["selector"], row["budget"], row["problem_id"]): row["value"]
            for row in pick_all(run, budgets)
        }
        for run in (first, second)
    ]
    found = {}
    for selector, reduction in first.lines:
        for b in budgets:
            pairs = [
                (values[0][selector, b, problem], values[1][selector, b, problem])
                for problem in first.problems
            ]
            found[selector, reduction, b] = paired(
                [y - x for x, y in pairs], is_fractional=False
            ) | {"means": [statistics.fmean(of) for of in zip(*pairs, strict=True)]}
    ordered = sorted(found, key=lambda key: found[key]["p"])
    highest = 0.0
    for i, key in enumerate(ordered):
        highest = max(highest, found[key]["p"] * (len(ordered) - i))
        found[key]["corrected"] = min(highest, 1.0)
    n = len(first.problems)
    table = {
        (name, selector, reduction or "—", str(b)): [
            [n],
            percents(of["means"][1]),
            percents(of["means"][0]),
            percents(of["difference"], of["low"], of["high"]),
            [of["wins"]],
            [of["losses"]],
            [max(of["p"], 0.001)],
            [max(of["corrected"], 0.001)],
        ]
        for (selector, reduction, b), of in found.items()
    }
    last = budgets[-1]
    votes = found["majority_vote", None, last]
    sentence = [n, last, *percents(*votes["means"][::-1])]
    sentence += percents(votes["difference"], votes["low"], votes["high"])
    sentence += [max(votes["p"], 0.001), votes["wins"], votes["losses"]]
    for line in first.lines:
        of = found[*line, last]
        if abs(of["difference"] - votes["difference"]) > 1e-9:
            sentence += percents(of["difference"], of["low"], of["high"])
    shares = {
        problem: [[a["is_correct"] for a in run.problems[problem]] for run in (second, first)]
        for problem in first.problems
    }
    gaps = {
        problem: statistics.fmean(mine) - statistics.fmean(theirs)
        for problem, (mine, theirs) in shares.items()
    }
    differing = sorted(
        (problem for problem, gap in gaps.items() if abs(gap) > 1e-9),
        key=lambda problem: (-round(abs(gaps[problem]), 12), problem),
    )
    most = {
        (name, problem, first.problems[problem][0]["problem"]): [
            *[[sum(grades), len(grades)] for grades in shares[problem]],
            percents(gaps[problem]),
            [len(differing)],
        ]
        for problem in differing[:10]
    }
    tables = {
        f"Differences from {baseline}": table,
        f"Problems that differ most from {baseline}": most,
    }
    return Expected(sentence, tables)


def expect_ranking(runs: Mapping[str, Run], budget: int) -> Expected:
    """Rank the runs by every pair, corrected by Holm; the shares of resamples are held by their seed."""
    sentence: list[Number] = []
    table, named = {}, set[str]()
    n_runs = len(runs)
    lines = [line for line in next(iter(runs.values())).lines if line[0] != "oracle"]
    for selector, reduction in lines:
        picks = {
            name: {
                problem: selection_oracle.pick(rows, selector, budget)
                for problem, rows in run.problems.items()
            }
            for name, run in runs.items()
        }
        problems = [
            problem
            for problem in next(iter(picks.values()))
            if all(of[problem]["status"] == "ok" for of in picks.values())
        ]
        values = {
            name: [of[problem]["value"] for problem in problems] for name, of in picks.items()
        }
        means = {name: statistics.fmean(of) for name, of in values.items()}
        tests = sorted(
            (paired([x - y for x, y in zip(values[a], values[b], strict=True)], is_fractional=False)["p"], a, b)
            for a, b in itertools.combinations(runs, 2)
        )  # fmt: skip
        highest, better, differ = 0.0, Counter[str](), set()
        worse = Counter[str]()
        for i, (p_value, a, b) in enumerate(tests):
            highest = max(highest, p_value * (len(tests) - i))
            if highest <= 1 - LEVEL:
                winner, loser = sorted((a, b), key=lambda name: -means[name])
                worse[winner] += 1
                better[loser] += 1
                differ.add(frozenset((a, b)))
        alike = [
            set(some)
            for size in range(n_runs, 0, -1)
            for some in itertools.combinations(runs, size)
            if not any(frozenset(pair) in differ for pair in itertools.combinations(some, 2))
        ]
        largest = [some for some in alike if not any(some < other for other in alike)]
        largest.sort(key=lambda some: sorted(-means[name] for name in some))
        best = [name for name in runs if not better[name]]
        named |= set(best) if len(best) < n_runs else set()
        # "Either run" has no number.
        sentence += [n_runs] * (len(best) == 1 or n_runs > 2) + [budget, len(problems)]
        for name in runs:
            table[name, selector, reduction or "—"] = [
                [1 + sum(mean > means[name] + 1e-9 for mean in means.values())],
                [1 + better[name], n_runs - worse[name]],
                percents(means[name]),
                [i + 1 for i, some in enumerate(largest) if name in some],
                [None],
                [len(problems)],
            ]
    return Expected(sentence, {"Ranks of the runs": table}, words=sorted(named))


def expect_search(
    nodes: Sequence[dict[str, Any]], runs: Mapping[Any, Sequence[Run]]
) -> tuple[list[list[Number]], dict[str, dict[Any, list[list[Number]]]]]:
    """Return the numbers of the sentence on each search, and the table; a search has a run per seed."""
    sentences, table = [], {}
    for (policy, width), seeds in runs.items():
        trees: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for node in nodes:
            if (node["policy"], node["width"]) == (policy, width):
                trees[node["seed"], node["problem_id"]].append(node)
        spent = {
            key: sum(node["n_tokens"] + (node["n_lookahead_tokens"] or 0) for node in tree)
            for key, tree in trees.items()
        }
        rounds = [len({node["round"] for node in tree}) for tree in trees.values()]
        generated = sum(node["n_tokens"] for tree in trees.values() for node in tree)
        dropped = sum(
            node["n_tokens"] for tree in trees.values() for node in tree if not node["is_kept"]
        )
        origins: dict[int, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
        for (_, problem), tree in trees.items():
            parents = {node["node_id"]: node["parent_id"] for node in tree}
            firsts: dict[int, set[Any]] = defaultdict(set)
            for node in tree:
                first = node["node_id"]
                while parents[first] is not None:
                    first = parents[first]
                firsts[node["depth"]] |= {first} if node["is_kept"] else set()
            for depth, found in firsts.items():
                origins[depth][problem].append(len(found))
        means = [
            statistics.fmean(statistics.fmean(of) for of in origins[depth].values())
            for depth in sorted(origins)
        ]
        costs = [
            [statistics.fmean(spent.values())],
            [statistics.fmean(len(tree) for tree in trees.values())],
            [statistics.fmean(rounds)],
            percents(dropped / generated),
        ]
        sentence = [*costs[0], *costs[2], *costs[3]]
        if len(means) > 1:
            middle = len(means) // 2
            sentence += [means[0], 1, means[middle], middle + 1]
        sentences.append(sentence)
        picks = [
            selection_oracle.pick(rows, selector, None)
            | {"problem_id": problem, "selector": selector, "reduction": reduction, "budget": width}
            for run in seeds
            for problem, rows in run.problems.items()
            for selector, reduction in run.lines
        ]
        for (selector, reduction, _), point in curve_oracle.curve(picks).items():
            table[policy, str(width), selector, reduction or "—"] = [
                value_of(point),
                *costs,
                [point["n_problems"]],
            ]
    return sentences, {"Per problem: generated tokens": table}
