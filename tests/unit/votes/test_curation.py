from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import Any

import polars as pl
import pytest
from contract_registry import ENGINES

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

SCHEMA = {
    "run": pl.String,
    "problem_id": pl.String,
    "attempt": pl.UInt32,
    "answer_key": pl.String,
    "is_correct": pl.Boolean,
    "score": pl.Float64,
    "step_scores": pl.List(pl.Float64),
}


def drawn(seed: int) -> pl.DataFrame:
    """Return a ragged run in a random order, with ties, nulls and NaN everywhere they may be."""
    draws = random.Random(seed)
    rows = [
        (
            name,
            f"p{problem}",
            attempt,
            draws.choice(["1", "2", "3", None]),
            draws.choice([True, False, None]),
            draws.choice([0.0, -0.0, 0.25, 0.5, 0.5, 1.0, -2.0, math.nan, None]),
            [draws.random()],
        )
        for name in ("x", "y")
        for problem in range(6)
        for attempt in range(draws.randint(1, 9))
    ]
    draws.shuffle(rows)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def best_in_python(
    rows: list[dict[str, Any]],
    *,
    n_per_problem: int,
    min_score: float | None = None,
    only_correct: bool = False,
    distinct: str | None = None,
) -> list[tuple[str, str, int]]:
    """Return (run, problem, attempt) of what is kept, in order, by sorting each problem's rows."""
    of_problem = defaultdict(list)
    for row in rows:
        of_problem[row["run"], row["problem_id"]].append(row)
    kept = []
    for key in sorted(of_problem):
        scored = [row for row in of_problem[key] if row["score"] is not None]
        scored = [row for row in scored if not math.isnan(row["score"])]
        if min_score is not None:
            scored = [row for row in scored if row["score"] >= min_score]
        if only_correct:
            scored = [row for row in scored if row["is_correct"] is True]
        seen: set[Any] = set()
        chosen = []
        for row in sorted(scored, key=lambda row: (-row["score"], row["attempt"])):
            value = None if distinct is None else row[distinct]
            if value is None or value not in seen:
                chosen.append(row)
            seen.add(value)
        kept += [(*key, row["attempt"]) for row in chosen[:n_per_problem]]
    return kept


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "options",
    [
        {"n_per_problem": 1},
        {"n_per_problem": 3},
        {"n_per_problem": 100},
        {"n_per_problem": 2, "min_score": 0.5},
        {"n_per_problem": 2, "min_score": 0.0},
        {"n_per_problem": 2, "min_score": 7.0},
        {"n_per_problem": 2, "only_correct": True},
        {"n_per_problem": 2, "distinct": "answer_key"},
        {"n_per_problem": 9, "distinct": "answer_key", "only_correct": True, "min_score": -3.0},
    ],
    ids=str,
)
def test_what_is_kept_is_what_sorting_keeps(options: dict[str, Any], engine: pl.Engine) -> None:
    for seed in range(20):
        run = drawn(seed)
        found = tts.votes.best_trajectories(run.lazy(), by="run", **options).collect(engine=engine)
        expected = best_in_python(run.to_dicts(), **options)
        assert found.select("run", "problem_id", "attempt").rows() == expected
        assert found.schema == run.schema
        assert found.join(run, on=["run", "problem_id", "attempt"]).height == found.height


def test_rows_are_kept_whole() -> None:
    run = drawn(3)
    found = tts.votes.best_trajectories(run, by="run", n_per_problem=2)
    same = run.join(found, on=["run", "problem_id", "attempt"], how="semi")
    keys = ["run", "problem_id", "attempt"]
    assert found.sort(keys).equals(same.sort(keys))


def test_several_columns_are_distinct_together() -> None:
    run = pl.DataFrame({
        "problem_id": ["a"] * 5,
        "attempt": [0, 1, 2, 3, 4],
        "answer_key": ["1", "1", "1", "2", None],
        "style": ["x", "y", "x", "x", "x"],
        "score": [0.1, 0.2, 0.3, 0.4, 0.5],
    })
    found = tts.votes.best_trajectories(run, n_per_problem=9, distinct=["answer_key", "style"])
    assert found["attempt"].to_list() == [4, 3, 2, 1]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float32, pl.UInt8])
def test_scores_of_any_number_are_ranked_and_keep_their_dtype(dtype: type[pl.DataType]) -> None:
    run = pl.DataFrame({"problem_id": ["a"] * 3, "attempt": [0, 1, 2], "score": [1, 200, 3]})
    found = tts.votes.best_trajectories(
        run.with_columns(pl.col("score").cast(dtype)), n_per_problem=2
    )
    assert found["attempt"].to_list() == [1, 2]
    assert found.schema["score"] == dtype


def test_scores_that_float32_cannot_tell_apart_are_ranked_as_they_are_stored() -> None:
    scores = [1.0, 1.0 + 2**-40, 1.0]
    run = pl.DataFrame({"problem_id": ["a"] * 3, "attempt": [0, 1, 2], "score": scores})
    assert tts.votes.best_trajectories(run, n_per_problem=1)["attempt"].to_list() == [1]


def test_a_run_without_scores_or_grades_keeps_nothing() -> None:
    run = pl.DataFrame({
        "problem_id": ["a", "a"],
        "attempt": [0, 1],
        "score": [None, None],
        "is_correct": [None, None],
    })
    assert tts.votes.best_trajectories(run, n_per_problem=3).height == 0
    scored = run.with_columns(score=pl.lit(1.0))
    assert tts.votes.best_trajectories(scored, n_per_problem=3).height == 2
    assert tts.votes.best_trajectories(scored, n_per_problem=3, only_correct=True).height == 0


def test_a_forgotten_by_is_an_error() -> None:
    run = drawn(0).with_columns(score=pl.lit(0.5))
    with pytest.raises(DataError, match=r"problem_id 'p0': .* different attempts.*by=\(...\)"):
        tts.votes.best_trajectories(run, n_per_problem=1)
    plan = tts.votes.best_trajectories(run.lazy(), n_per_problem=1)
    with pytest.raises(DataError, match="different attempts"):
        plan.collect(engine="streaming")


def test_impossible_parameters_are_refused_at_once() -> None:
    run = drawn(0).lazy()
    with pytest.raises(ParameterError, match="n_per_problem == 0, must be at least 1"):
        tts.votes.best_trajectories(run, n_per_problem=0)
    with pytest.raises(ParameterTypeError, match=r"n_per_problem must be .*, got float"):
        tts.votes.best_trajectories(run, n_per_problem=1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="min_score == nan"):
        tts.votes.best_trajectories(run, n_per_problem=1, min_score=math.nan)
    with pytest.raises(ColumnsError, match=r"'score'; found: .*tts\.score_trajectories"):
        tts.votes.best_trajectories(run.drop("score"), n_per_problem=1)
    with pytest.raises(ColumnsError, match="'is_correct'"):
        tts.votes.best_trajectories(run.drop("is_correct"), n_per_problem=1, only_correct=True)
    with pytest.raises(ColumnsError, match="'gone'"):
        tts.votes.best_trajectories(run, n_per_problem=1, distinct="gone")
    with pytest.raises(ColumnsError, match="'score' is String, must be a number"):
        tts.votes.best_trajectories(run.with_columns(score=pl.lit("0.5")), n_per_problem=1)
    with pytest.raises(ColumnsError, match="'is_correct' is Float64, must be Boolean"):
        tts.votes.best_trajectories(
            run.with_columns(is_correct=pl.lit(0.5)), n_per_problem=1, only_correct=True
        )
    with pytest.raises(ParameterTypeError, match="must be a polars DataFrame or LazyFrame"):
        tts.votes.best_trajectories([], n_per_problem=1)  # type: ignore[type-var]
