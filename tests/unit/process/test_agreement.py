"""Agreement of labels beside plain recounts, enumerated subsets and a second annotation."""

from __future__ import annotations

import itertools
import json
import math
import random
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

SCHEMA = {
    "problem_id": pl.String,
    "solution_id": pl.Int64,
    "step": pl.Int64,
    "is_correct": pl.Boolean,
    "score": pl.Float64,
    "n_rollouts": pl.UInt32,
    "n_correct": pl.UInt32,
}

Step = dict[str, Any]


@st.composite
def labelled(draw: st.DrawFn) -> list[Step]:
    """Draw steps with labels and scores, some missing, and some with equal scores."""
    scores = st.sampled_from([None, math.nan, 0.0, 0.25, 0.5, 0.5, 0.75, 1.0])
    return [
        {
            "problem_id": f"p{solution // 2}",
            "solution_id": solution % 2,
            "step": step,
            "is_correct": draw(st.sampled_from([True, True, False, None])),
            "score": draw(scores),
        }
        for solution in range(draw(st.integers(0, 6)))
        for step in range(draw(st.integers(1, 4)))
    ]


def is_used(step: Step) -> bool:
    score = step["score"]
    return step["is_correct"] is not None and score is not None and not math.isnan(score)


def plain_kappa(pairs: list[tuple[bool, bool]]) -> float | None:
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    chance = sum(
        sum(a == value for a, _ in pairs) * sum(b == value for _, b in pairs) / n**2
        for value in (True, False)
    )
    return (observed - chance) / (1 - chance) if chance < 1 else None


def plain_area(steps: list[Step]) -> float | None:
    pairs = [
        (a["score"] > b["score"]) + 0.5 * (a["score"] == b["score"])
        for a in steps
        for b in steps
        if a["is_correct"] and not b["is_correct"]
    ]
    return sum(pairs) / len(pairs) if pairs else None


def plain_first_error(flags: list[bool | None]) -> int | None:
    if all(flag is None for flag in flags):
        return None
    return next((i for i, flag in enumerate(flags) if flag), -1)


def plain_mean(values: list[tuple[str, float]]) -> tuple[float | None, float | None]:
    """Return the mean, and its standard error with problems as clusters (CR2)."""
    if not values:
        return None, None
    mean = sum(value for _, value in values) / len(values)
    pulls: dict[str, list[float]] = {}
    for problem, value in values:
        pulls.setdefault(problem, []).append(value - mean)
    if len(pulls) < 2:
        return mean, None
    parts = [sum(p) ** 2 / (1 - len(p) / len(values)) for p in pulls.values()]
    return mean, math.sqrt(sum(parts)) / len(values)


def close(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)


def frame_of(rows: list[Step]) -> pl.DataFrame:
    known = {name: dtype for name, dtype in SCHEMA.items() if not rows or name in rows[0]}
    if not rows:
        known = {n: d for n, d in known.items() if n not in {"n_rollouts", "n_correct"}}
    frame = pl.DataFrame(rows, schema=known, orient="row")
    return frame.sample(fraction=1.0, shuffle=True, seed=len(rows))


@given(rows=labelled())
def test_scores_are_judged_as_by_a_plain_loop(rows: list[Step]) -> None:
    limits = [0.25, 0.5, 2.0]
    report = tts.process.step_agreement(frame_of(rows), wrong_below=limits)
    assert report.rollouts is None
    assert report.thresholds is not None
    used = [row for row in rows if is_used(row)]
    assert report.thresholds.height == (len(limits) if used else 0)
    for row in report.thresholds.iter_rows(named=True):
        pairs = [(step["is_correct"], step["score"] >= row["threshold"]) for step in used]
        for label, accepted in itertools.product([True, False], repeat=2):
            name = f"n_{'right' if label else 'wrong'}_{'accepted' if accepted else 'rejected'}"
            assert row[name] == pairs.count((label, accepted))
        values = [
            (step["problem_id"], float(a == b)) for step, (a, b) in zip(used, pairs, strict=True)
        ]
        mean, error = plain_mean(values)
        assert (row["agreement"], row["standard_error"]) == (close(mean), close(error))
        assert row["kappa"] == close(plain_kappa(pairs))
        assert row["n_problems"] == len({step["problem_id"] for step in used})
        if row["n_problems"] > 1:
            assert 0 <= row["ci_low"] <= row["agreement"] <= row["ci_high"] <= 1
    check_separation(report, rows, used)
    check_first_errors(report, rows, limits)


def solutions_of(rows: list[Step]) -> list[list[Step]]:
    groups: dict[tuple[str, int], list[Step]] = {}
    for row in rows:
        groups.setdefault((row["problem_id"], row["solution_id"]), []).append(row)
    return list(groups.values())


def check_separation(report: tts.process.StepAgreement, rows: list[Step], used: list[Step]) -> None:
    assert report.separation is not None
    assert report.separation.height == bool(rows)
    for row in report.separation.iter_rows(named=True):
        assert row["auroc"] == close(plain_area(used))
        areas = [(found[0]["problem_id"], plain_area(found)) for found in solutions_of(used)]
        judged = [(problem, area) for problem, area in areas if area is not None]
        mean, error = plain_mean(judged)
        assert (row["auroc_within"], row["standard_error"]) == (close(mean), close(error))
        assert (row["n_solutions"], row["n_judged"]) == (len(areas), len(judged))
        assert (row["n_steps"], row["n_right"]) == (
            len(used),
            sum(step["is_correct"] for step in used),
        )
        unlabelled = sum(step["is_correct"] is None for step in rows)
        assert row["n_unlabelled"] == unlabelled
        assert row["n_unscored"] == len(rows) - len(used) - unlabelled
        assert row["n_problems"] == len({step["problem_id"] for step in used})


def check_first_errors(
    report: tts.process.StepAgreement, rows: list[Step], limits: list[float]
) -> None:
    assert report.first_errors is not None
    assert report.first_errors.height == (len(limits) if rows else 0)
    for row in report.first_errors.iter_rows(named=True):
        matches = []
        for steps in solutions_of(rows):
            label = plain_first_error([
                None if step["is_correct"] is None else not step["is_correct"] for step in steps
            ])
            found = plain_first_error([
                None
                if step["score"] is None or math.isnan(step["score"])
                else step["score"] < row["threshold"]
                for step in steps
            ])
            if label is not None and found is not None:
                matches.append((steps[0]["problem_id"], float(label == found)))
        mean, error = plain_mean(matches)
        assert (row["agreement"], row["standard_error"]) == (close(mean), close(error))
        assert row["n_wrong"] + row["n_right"] == len(matches)


def enumerated(counts: list[tuple[int, int]], m: int) -> dict[str, float | None]:
    """Go through all subsets of m of each step's rollouts, and all pairs that are disjoint."""
    hard = agreement = repeat = 0.0
    kept = 1.0
    is_before_error = True
    for n, c in counts:
        rollouts = [True] * c + [False] * (n - c)
        subsets = list(itertools.combinations(range(n), m))
        labels = {subset: any(rollouts[i] for i in subset) for subset in subsets}
        share = sum(labels.values()) / len(labels)
        hard += share
        agreement += sum(label == (c > 0) for label in labels.values()) / len(labels)
        pairs = [labels[a] == labels[b] for a in subsets for b in subsets if not set(a) & set(b)]
        repeat = repeat + sum(pairs) / len(pairs) if pairs else math.nan
        is_before_error = is_before_error and c > 0
        kept *= share if is_before_error else 1.0
    k = len(counts)
    return {
        "hard": hard / k,
        "agreement": agreement / k,
        "repeat_agreement": None if math.isnan(repeat) else repeat / k,
        "first_error_agreement": kept,
    }


@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    m=st.integers(1, 6),
)
def test_fewer_rollouts_are_all_subsets_of_them(counts: list[int], m: int) -> None:
    rows = [
        {"problem_id": "p", "solution_id": 0, "step": i, "n_rollouts": 6, "n_correct": c}
        for i, c in enumerate(counts)
    ]
    table = tts.process.step_agreement(frame_of(rows), n_rollouts=m).rollouts
    assert table is not None
    row = table.row(0, named=True)
    for name, value in enumerated([(6, c) for c in counts], m).items():
        assert row[name] == close(value), name
    variance = sum(c * (6 - c) / 30 for c in counts) / len(counts)
    assert row["soft_error"] == close(math.sqrt(variance / m))
    assert (row["n_rollouts"], row["n_steps"], row["n_short"]) == (m, len(counts), 0)
    assert row["ci_low"] is None


def test_kappas_are_those_of_the_expected_counts() -> None:
    counts = [6, 4, 1, 0, 2, 0]
    rows = [
        {"problem_id": f"p{i}", "solution_id": 0, "step": 0, "n_rollouts": 6, "n_correct": c}
        for i, c in enumerate(counts)
    ]
    table = tts.process.step_agreement(frame_of(rows), n_rollouts=2).rollouts
    assert table is not None
    row = table.row(0, named=True)
    pairs, repeats = [], []
    for c in counts:
        rollouts = [True] * c + [False] * (6 - c)
        subsets = list(itertools.combinations(range(6), 2))
        any_right = {subset: any(rollouts[i] for i in subset) for subset in subsets}
        # Each step has as many subsets, and as many disjoint pairs of them, as any other.
        pairs += [(label, c > 0) for label in any_right.values()]
        repeats += [
            (any_right[a], any_right[b]) for a in subsets for b in subsets if not set(a) & set(b)
        ]
    assert row["kappa"] == close(plain_kappa(pairs))
    assert row["repeat_kappa"] == close(plain_kappa(repeats))


def annotated(truth: np.ndarray, n: int, seed: int) -> pl.DataFrame:
    """Return counts of n rollouts of each step; `truth` is (n_solutions, n_steps)."""
    found = np.random.default_rng(seed).binomial(n, truth)
    solution, step = np.indices(truth.shape).reshape(2, -1)
    return pl.DataFrame({
        "problem_id": solution // 3,
        "solution_id": solution,
        "step": step,
        "n_rollouts": n,
        "n_correct": found.ravel(),
    })


def test_repeat_agreement_is_what_a_second_annotation_shows() -> None:
    truth = np.random.default_rng(0).beta(0.5, 2.0, (900, 5))
    stored = tts.process.step_agreement(annotated(truth, 16, seed=1), n_rollouts=[1, 4, 8]).rollouts
    assert stored is not None
    for m in (1, 4, 8):
        first, second = (annotated(truth, m, seed=s)["n_correct"] > 0 for s in (2, 3))
        row = stored.row(by_predicate=pl.col("n_rollouts") == m, named=True)
        seen = (first == second).mean()
        error = math.hypot(row["repeat_standard_error"], math.sqrt(seen * (1 - seen) / truth.size))
        assert row["repeat_agreement"] == pytest.approx(seen, abs=4 * error)
        assert row["hard"] == pytest.approx(first.mean(), abs=0.03)
        # Labels from some of the rollouts agree more with those from all than two annotations do.
        assert row["agreement"] != row["repeat_agreement"]
    assert stored["hard"].is_sorted()
    assert stored["soft_error"].to_list() == pytest.approx(
        [math.sqrt((truth * (1 - truth)).mean() / m) for m in (1, 4, 8)], rel=0.05
    )


def test_intervals_have_problems_as_their_units() -> None:
    truth = np.repeat(np.random.default_rng(4).beta(0.4, 0.4, (200, 1)), 20, axis=0)[:, [0] * 5]
    stored = annotated(truth, 4, seed=5).with_columns(
        problem_id=pl.col("solution_id") // 20, score=pl.col("n_correct") / 4, is_correct=True
    )
    noisy = stored.with_columns(is_correct=pl.Series(np.random.default_rng(6).random(20_000) < 0.5))
    narrow = tts.process.step_agreement(noisy).thresholds
    report = tts.process.step_agreement(stored)
    assert report.thresholds is not None
    assert narrow is not None
    row, other = report.thresholds.row(0, named=True), narrow.row(0, named=True)
    # Steps of one problem are alike: the interval is that of 200 problems, not of 20,000 steps.
    per_step = math.sqrt(row["agreement"] * (1 - row["agreement"]) / 20_000)
    assert row["standard_error"] > 5 * per_step
    assert other["standard_error"] == pytest.approx(0.5 / math.sqrt(20_000), rel=0.2)
    z = NormalDist().inv_cdf(0.975)
    half = (row["ci_high"] - row["ci_low"]) / 2
    assert half == pytest.approx(z * row["standard_error"], rel=0.02)


def test_all_steps_alike_still_have_an_interval() -> None:
    rows = [
        {"problem_id": f"p{i}", "solution_id": 0, "step": 0, "is_correct": True, "score": 0.9}
        for i in range(10)
    ]
    report = tts.process.step_agreement(frame_of(rows))
    assert report.thresholds is not None
    row = report.thresholds.row(0, named=True)
    z2 = NormalDist().inv_cdf(0.975) ** 2
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(10 / (10 + z2)), 1.0)
    assert row["kappa"] is None
    assert report.separation is not None
    assert report.separation.select("auroc", "auroc_within", "n_judged").row(0) == (None, None, 0)


def test_steps_with_fewer_rollouts_are_left_out_and_counted() -> None:
    counts = [("a", 0, 4, 4), ("a", 1, 4, 0), ("b", 0, 4, 4), ("b", 1, 3, 0), ("b", 2, 0, 0)]
    rows = [
        {"problem_id": p, "solution_id": 0, "step": s, "n_rollouts": n, "n_correct": c}
        for p, s, n, c in counts
    ]
    table = tts.process.step_agreement(frame_of(rows)).rollouts
    assert table is not None
    assert table["n_rollouts"].to_list() == [1, 2, 4]
    table = tts.process.step_agreement(frame_of(rows), n_rollouts=[1, 4]).rollouts
    assert table is not None
    assert (
        table.select("n_steps", "n_short", "n_solutions", "n_problems").rows() == [(3, 1, 1, 2)] * 2
    )
    # Two annotations of one rollout fit into four, two of four do not.
    assert table["repeat_agreement"].null_count() == 1
    none = tts.process.step_agreement(frame_of(rows), n_rollouts=9).rollouts
    assert none is not None
    assert none.height == 0


def test_the_problem_itself_is_no_step() -> None:
    rows = [
        {"problem_id": "p", "solution_id": 0, "step": s, "n_rollouts": 2, "n_correct": s + 1}
        for s in (-1, 0)
    ]
    table = tts.process.step_agreement(frame_of(rows)).rollouts
    assert table is not None
    assert table["n_steps"].to_list() == [1, 1]


def test_by_gives_each_group_what_it_gets_alone() -> None:
    truth = np.random.default_rng(7).beta(0.5, 0.5, (60, 4))
    parts = []
    for name, seed in (("x", 1), ("y", 2)):
        draws = random.Random(seed)
        part = annotated(truth, 8, seed=seed).with_columns(
            is_correct=pl.col("n_correct") > 0, prefix=pl.lit(name)
        )
        scores = [draws.choice([0.1, 0.4, 0.6, 0.9]) for _ in range(part.height)]
        parts.append(part.with_columns(score=pl.Series(scores)))
    both = pl.concat(parts)
    report = tts.process.step_agreement(both.lazy(), by="prefix").to_dict()
    for part in parts:
        alone = tts.process.step_agreement(part.drop("prefix")).to_dict()
        name = part["prefix"][0]
        for table, rows in alone.items():
            mine = [row for row in report[table] if row["prefix"] == name]  # type: ignore[attr-defined]
            assert [{k: v for k, v in row.items() if k != "prefix"} for row in mine] == [
                {k: close(v) if isinstance(v, float) else v for k, v in row.items()}
                for row in rows  # type: ignore[attr-defined]
            ]
    with pytest.raises(DataError, match=r"step 0: several rows.*by="):
        tts.process.step_agreement(both)


def test_the_report_is_json() -> None:
    rollouts = pl.DataFrame({
        "problem_id": ["a"] * 4,
        "solution_id": [0] * 4,
        "step": [0, 0, 1, 1],
        "rollout": [0, 1, 0, 1],
        "is_correct": [True, False, False, False],
    })
    steps = tts.process.estimate_steps(rollouts)
    found = json.loads(json.dumps(tts.process.step_agreement(steps).to_dict(), allow_nan=False))
    assert [name for name, rows in found.items() if rows is not None] == ["rollouts"]
    scored = steps.with_columns(score=pl.Series([0.9, math.nan]))
    found = json.loads(json.dumps(tts.process.step_agreement(scored).to_dict(), allow_nan=False))
    assert found["separation"][0]["n_unscored"] == 1


@pytest.mark.parametrize("is_empty", [True, False])
def test_nothing_to_judge_gives_tables_of_the_same_columns(*, is_empty: bool) -> None:
    steps = pl.DataFrame({
        "problem_id": ["a", "b"],
        "solution_id": [0, 0],
        "step": [0, 0],
        "is_correct": [True, False],
        "score": [0.9, 0.4],
        "n_rollouts": [2, 2],
        "n_correct": [2, 0],
    })
    full = tts.process.step_agreement(steps)
    if is_empty:
        found = tts.process.step_agreement(steps.clear())
    else:
        found = tts.process.step_agreement(
            steps.with_columns(
                is_correct=pl.lit(None, pl.Boolean), score=None, n_rollouts=0, n_correct=0
            )
        )
    for name in ("thresholds", "separation", "first_errors", "rollouts"):
        mine, theirs = getattr(found, name), getattr(full, name)
        assert mine.schema == theirs.schema, name
        assert theirs.height > 0
    if not is_empty:
        assert found.separation is not None
        assert found.separation["n_unlabelled"].item() == 2


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (lambda f: f.drop("step"), {}, ColumnsError, "1 missing column for steps: 'step'"),
        (
            lambda f: f.drop("score", "n_correct"),
            {},
            ColumnsError,
            "neither labels and scores .* nor counts of rollouts",
        ),
        (lambda f: f, {"labels": "rating"}, ColumnsError, "'rating'"),
        (lambda f: f, {"scores": "prm"}, ColumnsError, "'prm'"),
        (lambda f: f.cast({"is_correct": pl.Int8}), {}, ColumnsError, "is Int8, must be Boolean"),
        (lambda f: f.cast({"score": pl.String}), {}, ColumnsError, "must be a number"),
        (lambda f: f.cast({"n_correct": pl.Float64}), {}, ColumnsError, "must be an integer"),
        (lambda f: f, {"wrong_below": math.nan}, ParameterError, "wrong_below is NaN"),
        (lambda f: f, {"wrong_below": []}, ParameterError, "wrong_below is empty"),
        (
            lambda f: f,
            {"wrong_below": "high"},
            ParameterTypeError,
            "wrong_below must be a number, got str",
        ),
        (lambda f: f, {"n_rollouts": [0]}, ParameterError, "n_rollouts == 0"),
        (lambda f: f, {"confidence_level": 0.0}, ParameterError, "confidence_level"),
        (lambda f: f, {"by": "kappa"}, ParameterError, "by names"),
        (
            lambda f: f.with_columns(n_correct=3),
            {},
            DataError,
            "problem_id 'a'.*n_correct 3 of n_rollouts 2",
        ),
        (lambda f: f.cast({"step": pl.Float64}), {}, ColumnsError, "'step' is Float64"),
        (lambda f: f.with_columns(step=None), {}, DataError, "step is null"),
        (lambda f: pl.concat([f, f]), {}, DataError, "several rows, expected one per step"),
        (
            lambda f: f.to_dicts(),
            {},
            ParameterTypeError,
            "steps must be a polars DataFrame or LazyFrame, got list",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    change: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    steps = pl.DataFrame({
        "problem_id": ["a"],
        "solution_id": [0],
        "step": [0],
        "is_correct": [True],
        "score": [0.9],
        "n_rollouts": [2],
        "n_correct": [2],
    })
    with pytest.raises(error, match=message):
        tts.process.step_agreement(change(steps), **options)
