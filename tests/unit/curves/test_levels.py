"""Levels of difficulty: against plain Python, search-and-learn, and by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

ENGINES = ("in-memory", "streaming")


def attempts(grades: dict[str, list[bool | None]], **more: Any) -> pl.DataFrame:
    rows = [
        {"problem_id": name, "attempt": attempt, "is_correct": grade}
        for name, listed in grades.items()
        for attempt, grade in enumerate(listed)
    ]
    schema = {"problem_id": pl.String, "attempt": pl.UInt32, "is_correct": pl.Boolean}
    return pl.DataFrame(rows, schema=schema).with_columns(**{
        name: pl.lit(value) for name, value in more.items()
    })


def plain_levels(metrics: list[float | None], n_levels: int) -> list[int | None]:
    """Rank by counting, one problem at a time."""
    known = [metric for metric in metrics if metric is not None]
    levels: list[int | None] = []
    for metric in metrics:
        if metric is None:
            levels.append(None)
            continue
        easier = sum(other > metric for other in known)
        equal = sum(other == metric for other in known)
        # Ranks easier + 1 .. easier + equal; twice the middle of their cells.
        levels.append(n_levels * (2 * easier + equal) // (2 * len(known)) + 1)
    return levels


def plain_mean(listed: list[bool | None]) -> float | None:
    known = [grade for grade in listed if grade is not None]
    return sum(known) / len(known) if known else None


@given(
    runs=st.lists(
        st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6),
        min_size=1,
        max_size=9,
    ),
    n_levels=st.integers(1, 7),
)
def test_levels_are_those_of_plain_python(runs: list[list[bool | None]], n_levels: int) -> None:
    run = attempts({f"p{i}": listed for i, listed in enumerate(runs)})
    same = tts.difficulty_levels(run, estimate="same_sample", n_levels=n_levels)
    metrics = [plain_mean(listed) for listed in runs]
    assert same["level"].to_list() == plain_levels(metrics, n_levels)
    assert same["difficulty"].to_list() == [None if m is None else 1 - m for m in metrics]
    assert same["n_used"].to_list() == [sum(g is not None for g in listed) for listed in runs]
    filled = {level for level in same["level"] if level is not None}
    assert set(same["n_empty_levels"]) == {n_levels - len(filled)}

    crossed = tts.difficulty_levels(run, n_levels=n_levels)
    for fold in (0, 1):
        metrics = [plain_mean(listed[1 - fold :: 2]) for listed in runs]
        half = crossed.filter(pl.col("fold") == fold)
        assert half["level"].to_list() == plain_levels(metrics, n_levels)
        assert half["difficulty"].to_list() == [None if m is None else 1 - m for m in metrics]


def test_no_attempt_is_evaluated_under_a_level_estimated_on_it() -> None:
    run = tts.simulate_trajectories(30, 8, seed=2, keys=True)
    levels = tts.difficulty_levels(run)
    for fold in (0, 1):
        is_judged = pl.col("attempt") % 2 == fold
        turned = run.with_columns(is_correct=pl.col("is_correct") ^ is_judged)
        of_fold = pl.col("fold") == fold
        assert_frame_equal(tts.difficulty_levels(turned).filter(of_fold), levels.filter(of_fold))
        assert not tts.difficulty_levels(turned).filter(~of_fold).equals(levels.filter(~of_fold))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("metric", "expected"), [("pass_at_1", "level_pass@1"), ("mean_score", "level_mean_score")]
)
def test_search_and_learn_gives_the_same_levels(
    shared_data: Path, metric: str, expected: str, engine: pl.Engine
) -> None:
    path = shared_data / "search_and_learn" / "synthetic_100x64_expected.json"
    problems = json.loads(path.read_text(encoding="utf-8"))["problems"]
    run = pl.DataFrame([
        {"problem_id": i, "attempt": j, "is_correct": grade, "score": score}
        for i, problem in enumerate(problems)
        for j, (grade, score) in enumerate(
            zip(problem["correct"], problem["agg"]["last"], strict=True)
        )
    ])
    options: dict[str, Any] = {"metric": metric, "estimate": "same_sample"}
    levels = tts.difficulty_levels(run.lazy(), rule="search_and_learn", **options)
    found = levels.collect(engine=engine)["level"].to_list()
    assert found == [problem[expected] for problem in problems]
    assert (
        tts.difficulty_levels(run, **options)["level"].to_list() != found or metric != "pass_at_1"
    )


def test_rules_differ_where_problems_tie() -> None:
    run = attempts({name: [True] for name in "abcd"})
    options: dict[str, Any] = {"estimate": "same_sample"}
    middle = tts.difficulty_levels(run, **options)
    assert middle["level"].to_list() == [3] * 4
    assert middle["n_empty_levels"].to_list() == [4] * 4
    easiest = tts.difficulty_levels(run, rule="search_and_learn", **options)
    assert easiest["level"].to_list() == [1] * 4
    # The middle of the ranks of two is the edge between two levels: the harder one.
    two = tts.difficulty_levels(run.head(2), n_levels=2, **options)
    assert two["level"].to_list() == [2, 2]


def test_scores_that_are_missing_are_left_out() -> None:
    run = pl.DataFrame({
        "problem_id": ["a"] * 3 + ["b"] * 3 + ["c"] * 3,
        "attempt": [0, 1, 2] * 3,
        "score": [0.9, None, 0.7, 0.2, math.nan, 0.4, None, math.nan, None],
        "step_scores": [[0.9, 0.1], [], [0.7], [0.2], None, [0.4], None, [], [math.nan]],
    })
    options: dict[str, Any] = {"metric": "mean_score", "estimate": "same_sample", "n_levels": 2}
    levels = tts.difficulty_levels(run, **options)
    assert levels["level"].to_list() == [1, 2, None]
    assert levels["difficulty"].to_list() == pytest.approx([0.2, 0.7, None])
    assert levels["n_used"].to_list() == [2, 2, 0]
    reduced = tts.difficulty_levels(run, reduction="last", **options)
    assert reduced["difficulty"].to_list() == pytest.approx([0.6, 0.7, None])


def test_levels_can_be_estimated_on_a_reference_run() -> None:
    run = attempts({name: [True, False] for name in ("a", "b", "d")})
    other = attempts({"a": [False] * 20, "b": [True] * 20, "c": [True, False] * 10})
    levels = tts.difficulty_levels(run, reference=other.lazy(), n_levels=2)
    assert levels["problem_id"].to_list() == ["a", "b", "d"]
    assert levels["level"].to_list() == [2, 1, None]
    assert levels["n_used"].to_list() == [20, 20, 0]
    assert set(levels["basis"]) == {"reference"}
    assert levels["fold"].null_count() == 3
    assert levels["caveat"].to_list() == [None, None, "few_attempts"]


def test_a_reference_need_not_know_the_columns_of_by() -> None:
    run = pl.concat(
        attempts({"a": [True], "b": [False]}, model=model, seed=1) for model in ("x", "y")
    )
    other = pl.concat([
        attempts({"a": [True], "b": [False]}, model="x"),
        attempts({"a": [False], "b": [True]}, model="y"),
    ])
    options: dict[str, Any] = {"by": ["model", "seed"], "n_levels": 2}
    levels = tts.difficulty_levels(run, reference=other, **options)
    assert levels.select("model", "problem_id", "level").rows() == [
        ("x", "a", 1),
        ("x", "b", 2),
        ("y", "a", 2),
        ("y", "b", 1),
    ]
    alone = tts.difficulty_levels(run, reference=other.filter(model="y").drop("model"), **options)
    assert alone["level"].to_list() == [2, 1, 2, 1]


def test_a_column_can_state_the_difficulty() -> None:
    run = attempts({name: [True, False] for name in "abcd"}).with_columns(
        hard=pl.col("problem_id").replace_strict({"a": 1, "b": 4, "c": 4, "d": None})
    )
    levels = tts.difficulty_levels(run, column="hard", n_levels=None)
    assert levels["level"].to_list() == [1, 2, 2, None]
    assert levels["difficulty"].to_list() == [1.0, 4.0, 4.0, None]
    assert set(levels["basis"]) == {"given"}
    assert levels.select("caveat", "fold").null_count().row(0) == (4, 4)
    assert set(levels["n_levels"]) == {2}
    cut = tts.difficulty_levels(run, column="hard", n_levels=3)
    assert cut["level"].to_list() == [1, 3, 3, None]
    with pytest.raises(DataError, match=r"problem_id 'b': 2 different values.*expected one"):
        tts.difficulty_levels(
            run.with_columns(hard=pl.col("attempt") + (pl.col("problem_id") == "b")).filter(
                (pl.col("problem_id") == "b") | (pl.col("attempt") == 0)
            ),
            column="hard",
        )


@pytest.mark.parametrize(
    ("n", "is_exchangeable", "caveat"),
    [(32, True, None), (31, True, "few_attempts"), (32, False, "not_exchangeable")],
)
def test_the_result_has_its_basis_and_caveat(
    n: int, is_exchangeable: bool, caveat: str | None
) -> None:
    run = attempts({"a": [True] * n}, is_exchangeable=is_exchangeable)
    levels = tts.difficulty_levels(run)
    # Of 31 attempts 16 are even, which say the level of the odd ones.
    assert levels["n_used"].to_list() == [n // 2, (n + 1) // 2]
    assert levels["caveat"][0] == caveat
    assert set(levels["basis"]) == {"cross_fitted"}


def test_levels_say_whether_they_are_oracle_or_predicted() -> None:
    run = attempts({"a": [True] * 4}, score=0.5, hard=1)
    metrics: list[dict[str, Any]] = [{}, {"metric": "mean_score"}, {"column": "hard"}]
    found = [set(tts.difficulty_levels(run, **options)["metric"]) for options in metrics]
    assert found == [{"pass_at_1"}, {"mean_score"}, {"given"}]


def test_equal_sums_are_equal_in_any_order() -> None:
    values = [0.1, 0.2, 0.3, 0.7, 1e-3]
    rows = [
        {"problem_id": p, "attempt": i, "score": values[(i * (p + 1)) % 5]}
        for p in range(4)
        for i in range(5)
    ]
    run = pl.DataFrame(rows)
    levels = tts.difficulty_levels(run, metric="mean_score", estimate="same_sample")
    assert set(levels["level"]) == {3}


def test_what_is_impossible_is_refused() -> None:
    run = attempts({"a": [True, False]})
    levels = tts.difficulty_levels
    with pytest.raises(ParameterError, match="n_levels is None, which needs a column"):
        levels(run, n_levels=None)
    with pytest.raises(ParameterError, match="n_levels == 0"):
        levels(run, n_levels=0)
    with pytest.raises(ParameterError, match="metric == 'accuracy', must be one of"):
        levels(run, metric="accuracy")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="column == 'x' and reference are both given"):
        levels(run, column="x", reference=run)
    with pytest.raises(ColumnsError, match="'is_correct'"):
        levels(run.drop("is_correct"))
    with pytest.raises(ColumnsError, match="1 missing column for reference: 'is_correct'"):
        levels(run, reference=run.drop("is_correct"))
    with pytest.raises(ColumnsError, match="'problem_id' is Int64, must be String"):
        levels(run, reference=run.with_columns(problem_id=pl.lit(1, pl.Int64)))
    with pytest.raises(ColumnsError, match="'hard' is String, must be a number"):
        levels(run.with_columns(hard=pl.lit("Level 5")), column="hard")
    with pytest.raises(ParameterTypeError, match=r"reference must be .*, got dict"):
        levels(run, reference={})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"problem_id 'a': 4 rows with 2 numbers of 'attempt'.*by="):
        levels(pl.concat([run, run]))
    with pytest.raises(ParameterError, match="by names"):
        levels(run.with_columns(level=1), by="level")
