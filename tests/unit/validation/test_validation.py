from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.schema import TRAJECTORY_COLUMNS

CLEAN = tts.simulate_trajectories(
    20, 6, seed=1, missing_share=0.0, keys=True, texts=True
).with_columns(answer="true_answer")


def clean(**columns: pl.Expr) -> pl.DataFrame:
    """Return a run in which nothing is wrong but what the expressions put there."""
    return CLEAN.with_columns(**columns)


def at(problem: int, attempt: int) -> pl.Expr:
    """Return where an attempt of the clean run is."""
    return (pl.col("problem_id") == f"sim-{problem:06d}") & (pl.col("attempt") == attempt)


def put(column: str, value: Any, where: pl.Expr) -> dict[str, pl.Expr]:
    """Return what replaces a value of a column."""
    return {column: pl.when(where).then(pl.lit(value, CLEAN.schema[column])).otherwise(column)}


def codes(frame: pl.DataFrame | pl.LazyFrame, **options: Any) -> dict[tuple[str, str], int]:
    """Return what was found: the count for each code and column."""
    report = tts.validate_trajectories(frame, **options)
    return {(finding.code, finding.column): finding.count for finding in report.findings}


CASES: dict[str, tuple[Callable[[], pl.DataFrame], dict[tuple[str, str], int], str]] = {
    "nothing": (lambda: CLEAN, {}, ""),
    "null problem_id": (
        lambda: clean(**put("problem_id", None, at(3, 1))),
        {
            ("null_problem_ids", "problem_id"): 1,
            ("attempt_gaps", "attempt"): 1,
            ("ragged_attempts", "attempt"): 1,
        },
        "error",
    ),
    "null attempt": (
        lambda: clean(**put("attempt", None, at(3, 5))),
        {("unnumbered_attempts", "attempt"): 1},
        "error",
    ),
    "negative attempt": (
        lambda: clean(attempt=pl.col("attempt").cast(pl.Int64) - 1),
        {("unnumbered_attempts", "attempt"): 20},
        "error",
    ),
    "duplicate attempts": (
        lambda: pl.concat([CLEAN, CLEAN.filter(at(2, 0) | at(3, 1))]),
        {
            ("duplicate_attempts", "attempt"): 2,
            ("duplicate_completions", "completion"): 2,
            ("ragged_attempts", "attempt"): 18,
        },
        "error",
    ),
    "gaps": (
        lambda: CLEAN.filter(~(at(2, 0) | at(2, 1) | at(3, 4))),
        {("attempt_gaps", "attempt"): 2, ("ragged_attempts", "attempt"): 2},
        "warning",
    ),
    "starts at one": (
        lambda: clean(attempt=pl.col("attempt") + 1),
        {("attempt_gaps", "attempt"): 20},
        "warning",
    ),
    "ragged": (
        lambda: CLEAN.filter(~at(2, 5)),
        {("ragged_attempts", "attempt"): 1},
        "warning",
    ),
    "two texts under one id": (
        lambda: clean(**put("problem", "another", at(2, 5))),
        {("conflicting_problems", "problem"): 1},
        "error",
    ),
    "two gold answers under one id": (
        lambda: clean(**put("gold", "another", at(2, 5) | at(4, 5))),
        {("conflicting_problems", "gold"): 2},
        "error",
    ),
    "copies of texts": (
        lambda: clean(
            completion=pl
            .when(pl.col("attempt") < 3)
            .then(pl.col("completion").first().over("problem_id"))
            .otherwise("completion")
        ),
        {("duplicate_completions", "completion"): 40},
        "warning",
    ),
    "empty texts": (
        lambda: clean(**put("completion", " \n", at(2, 5))).with_columns(
            **put("completion", None, at(3, 5))
        ),
        {("empty_completions", "completion"): 2},
        "warning",
    ),
    "missing answers": (
        lambda: clean(**put("answer", None, at(2, 5) | at(2, 4))),
        {("missing_answers", "answer"): 2},
        "note",
    ),
    "most answers missing, and wrong": (
        lambda: clean(
            **put("answer_key", None, pl.lit(value=True)),
            **put("is_correct", False, pl.lit(value=True)),
        ).drop("answer"),
        {("missing_answers", "answer_key"): 120},
        "warning",
    ),
    "missing keys": (
        lambda: clean(
            **put("answer_key", None, at(2, 5)), **put("is_correct", False, at(2, 5))
        ).drop("answer"),
        {("missing_answers", "answer_key"): 1},
        "note",
    ),
    "right without an answer": (
        lambda: clean(
            **put("answer_key", None, at(2, 5)), **put("is_correct", True, at(2, 5))
        ).drop("answer"),
        {("missing_answers", "answer_key"): 1, ("lost_grades", "answer"): 1},
        "warning",
    ),
    "some not graded": (
        lambda: clean(**put("is_correct", None, at(2, 5))),
        {("ungraded_attempts", "is_correct"): 1},
        "warning",
    ),
    "some without gold": (
        lambda: clean(**put("gold", None, at(2, 5))).drop("is_correct"),
        {("missing_gold", "gold"): 1},
        "warning",
    ),
    "nothing to grade with": (
        lambda: CLEAN.drop("is_correct", "gold", "gold_key", "solution"),
        {("ungraded_run", "is_correct"): 120},
        "note",
    ),
    "all grades null": (
        lambda: clean(is_correct=pl.lit(None, pl.Boolean), gold=pl.lit(None)).drop(
            "gold_key", "solution"
        ),
        {("ungraded_run", "is_correct"): 120},
        "note",
    ),
    "grades that differ": (
        lambda: clean(answer_key=pl.lit("7"), is_correct=pl.col("attempt") == 0),
        {("inconsistent_grades", "is_correct"): 20},
        "warning",
    ),
    "null score": (
        lambda: clean(**put("score", None, at(2, 5))),
        {("missing_scores", "score"): 1},
        "warning",
    ),
    "NaN score": (
        lambda: clean(**put("score", math.nan, at(2, 5))),
        {("nan_scores", "score"): 1},
        "warning",
    ),
    "infinite score": (
        lambda: clean(**put("score", -math.inf, at(2, 5))),
        {("infinite_scores", "score"): 1},
        "warning",
    ),
    "stray score": (
        lambda: clean(**put("score", 1.5, at(2, 5))),
        {("out_of_range_scores", "score"): 1},
        "warning",
    ),
    "logits": (
        lambda: clean(score=pl.col("score") * 30 - 60),
        {("log_scores", "score"): 120},
        "warning",
    ),
    "constant scores": (
        lambda: clean(score=pl.lit(0.0), step_scores=pl.lit([1, 1], pl.List(pl.Int64))),
        {("constant_scores", "score"): 120, ("constant_scores", "step_scores"): 240},
        "warning",
    ),
    "no step scores": (
        lambda: clean(**put("step_scores", None, at(2, 5))),
        {("missing_scores", "step_scores"): 1},
        "warning",
    ),
    "empty steps": (
        lambda: clean(**put("step_scores", [], at(2, 5))),
        {("empty_steps", "step_scores"): 1},
        "warning",
    ),
    "null steps": (
        lambda: clean(**put("step_scores", [None, 0.5, None], at(2, 5))),
        {("null_scores", "step_scores"): 2},
        "warning",
    ),
    "NaN steps": (
        lambda: clean(**put("step_scores", [math.nan, 0.5], at(2, 5))),
        {("nan_scores", "step_scores"): 1},
        "warning",
    ),
    "infinite steps": (
        lambda: clean(**put("step_scores", [math.inf, 0.5], at(2, 5))),
        {("infinite_scores", "step_scores"): 1},
        "warning",
    ),
    "stray steps": (
        lambda: clean(**put("step_scores", [-0.25, 0.5, 7.0], at(2, 5))),
        {("out_of_range_scores", "step_scores"): 2},
        "warning",
    ),
    "logit steps": (
        lambda: clean(step_scores=pl.col("step_scores").list.eval(pl.element() * 30 - 15)),
        {
            ("logit_scores", "step_scores"): int(
                (~(CLEAN["step_scores"].explode() * 30 - 15).is_between(0, 1)).sum()
            )
        },
        "warning",
    ),
    "no rows": (CLEAN.clear, {("no_attempts", "attempt"): 0}, "error"),
    "no problem_id": (
        lambda: CLEAN.drop("problem_id"),
        {("missing_column", "problem_id"): 1},
        "error",
    ),
    "no attempt": (lambda: CLEAN.drop("attempt"), {("missing_column", "attempt"): 1}, "error"),
    "strings for scores": (
        lambda: clean(
            step_scores=pl.col("step_scores").cast(pl.List(pl.String)), score=pl.lit("x")
        ),
        {("wrong_dtype", "step_scores"): 1, ("wrong_dtype", "score"): 1},
        "error",
    ),
    "numbers for grades": (
        lambda: clean(is_correct=pl.col("is_correct").cast(pl.Int8)),
        {("wrong_dtype", "is_correct"): 1},
        "error",
    ),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_found_and_nothing_else(case: str, *, lazy: bool) -> None:
    make, expected, severity = CASES[case]
    frame = make()
    report = tts.validate_trajectories(frame.lazy() if lazy else frame)
    assert {(each.code, each.column): each.count for each in report.findings} == expected
    assert report.is_valid == (severity != "error")
    assert [each.severity for each in report.findings][:1] == [severity][: len(expected)]
    for finding in report.findings:
        assert f"{finding.count:,}" in finding.message or finding.code in {
            "missing_column",
            "wrong_dtype",
            "no_attempts",
            "ungraded_run",
        }
        assert finding.hint.endswith(".")
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["is_valid"] == report.is_valid


def test_examples_name_the_first_places() -> None:
    report = tts.validate_trajectories(clean(**put("score", 1.5, pl.col("attempt") > 3)).reverse())
    (finding,) = report.findings
    assert finding.code == "logit_scores"
    assert finding.examples == tuple(
        {"problem_id": problem, "attempt": attempt, "score": 1.5}
        for problem, attempt in [("sim-000000", 4), ("sim-000000", 5), ("sim-000001", 4)]
    )
    assert (
        finding.message
        == "40 of 120 attempts have a 'score' outside [0, 1] (0.1135 to 1.5)".replace(
            "0.1135", f"{CLEAN.filter(pl.col('attempt') <= 3)['score'].min():.4g}"
        )
    )
    steps = clean(**put("step_scores", [0.5, -3.0, 4.0], at(2, 5)))
    (finding,) = tts.validate_trajectories(steps).findings
    assert finding.examples == ({"problem_id": "sim-000002", "attempt": 5, "step_scores": -3.0},)


def test_by_tells_runs_apart() -> None:
    runs = pl.concat([
        CLEAN.with_columns(
            run=pl.lit(name), source_file=pl.lit(name), completion=pl.col("completion") + name
        )
        for name in "ab"
    ])
    assert ("duplicate_attempts", "attempt") in codes(runs)
    assert codes(runs, by="run") == {}
    assert codes(runs, by=["run", "source_file"]) == {}
    report = tts.validate_trajectories(runs, by="run")
    assert (report.n_problems, report.n_runs) == (20, 2)
    assert str(report).startswith("240 attempts at 20 problems in 2 runs (6 each): ")
    odd = runs.with_columns(source_file=pl.col("attempt") // 3)
    assert codes(odd, by="source_file") == codes(odd, by=["source_file"])
    assert ("wrong_dtype", "source_file") in codes(odd, by="source_file")


def test_the_sizes_of_a_ragged_run() -> None:
    report = tts.validate_trajectories(CLEAN.filter(~(at(2, 5) | at(2, 4))))
    assert report.attempts_per_problem == (4, 6.0, 6)
    assert (report.n_attempts, report.n_problems) == (118, 20)
    assert str(report).splitlines() == [
        "118 attempts at 20 problems (4 to 6 each, median 6): 1 warning",
        "warning: 1 of 20 problems have fewer than 6 attempts [ragged_attempts]",
        "    e.g. problem_id 'sim-000002', n_fewer 2",
        "    hint: larger budgets leave these problems out and count them as short.",
    ]


def test_errors_come_before_warnings_before_notes() -> None:
    frame = clean(
        **put("answer", None, at(1, 1)),
        **put("score", None, at(1, 1)),
        **put("attempt", None, at(1, 5)),
    )
    report = tts.validate_trajectories(frame)
    assert [finding.severity for finding in report.findings] == ["error", "warning", "note"]
    assert "1 error, 1 warning, 1 note" in str(report)


def test_row_order_does_not_matter() -> None:
    frame = pl.concat([CASES["copies of texts"][0](), CLEAN.filter(at(2, 0))])
    reports = [
        tts.validate_trajectories(frame.sample(fraction=1.0, shuffle=True, seed=seed))
        for seed in range(5)
    ]
    assert len({str(report) for report in reports}) == 1


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Int8, pl.UInt64])
def test_any_number_will_do_for_a_score(dtype: type[pl.DataType]) -> None:
    frame = clean(
        score=(pl.col("attempt") % 2).cast(dtype),
        step_scores=pl.col("step_scores").cast(pl.List(pl.Float32)),
    )
    assert codes(frame) == {}


def test_dtypes_that_mean_the_same_are_fine() -> None:
    frame = clean(
        problem_id=pl.col("problem_id").str.tail(3).cast(pl.Int16),
        attempt=pl.col("attempt").cast(pl.UInt64),
        answer_key=pl.col("answer_key").cast(pl.Categorical),
        gold=pl.col("gold").cast(pl.Enum(CLEAN["gold"].unique())),
        solution=pl.lit(None),
    )
    assert codes(frame) == {}


@pytest.mark.parametrize("name", TRAJECTORY_COLUMNS)
@pytest.mark.parametrize(
    "value",
    [pl.lit(1.5), pl.lit("x"), pl.lit([["a"]]), pl.lit(value=True), pl.lit(None), pl.lit(b"x")],
)
def test_no_dtype_of_any_column_makes_it_crash(name: str, value: pl.Expr) -> None:
    report = tts.validate_trajectories(clean(**{name: value}))
    assert report.n_attempts == 120
    assert str(report)


@pytest.mark.parametrize("name", CLEAN.columns)
def test_no_missing_column_makes_it_crash(name: str) -> None:
    found = codes(CLEAN.drop(name))
    assert found == ({("missing_column", name): 1} if name in {"problem_id", "attempt"} else {})


def test_a_frame_of_other_columns_is_described_not_refused() -> None:
    report = tts.validate_trajectories(pl.DataFrame({"id": [1, 2]}))
    assert report.attempts_per_problem is None
    assert str(report).startswith(
        "2 attempts: 2 errors, 1 note\nerror: no column 'problem_id'; found: ['id']"
    )


def test_what_is_not_a_frame_or_not_there_is_refused() -> None:
    with pytest.raises(
        TypeError, match="trajectories must be a polars DataFrame or LazyFrame, got dict"
    ):
        tts.validate_trajectories({"problem_id": [1]})  # type: ignore[arg-type]
    with pytest.raises(tts.TtsframeError, match="1 missing column for trajectories: 'run'"):
        tts.validate_trajectories(CLEAN, by="run")


def test_reports_do_not_change() -> None:
    report = tts.validate_trajectories(CLEAN)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.n_attempts = 3  # type: ignore[misc]


def test_counts_on_a_real_beam_search(shared_data: Path) -> None:
    path = shared_data / "search_and_learn" / "beam16_llama3.2-3b-awq_q100.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    frame = pl.DataFrame([
        {
            "problem_id": row["unique_id"],
            "attempt": number,
            "completion": text,
            "step_scores": scores,
        }
        for row in rows
        for number, (text, scores) in enumerate(zip(row["completions"], row["scores"], strict=True))
    ])
    copies = sum(len(row["completions"]) - len(set(row["completions"])) for row in rows)
    assert copies > 0
    assert codes(frame) == {
        ("duplicate_completions", "completion"): copies,
        ("ungraded_run", "is_correct"): 1_600,
    }


def test_real_logits_look_like_logits(shared_data: Path) -> None:
    path = shared_data / "search_and_learn" / "edge_logit-scores_qwen2.5-math_q500.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scores = [scores for row in rows for scores in row["scores"]]
    frame = pl.DataFrame({"problem_id": range(len(scores)), "attempt": 0, "step_scores": scores})
    outside = sum(not 0 <= score <= 1 for steps in scores for score in steps)
    assert codes(frame)["logit_scores", "step_scores"] == outside
