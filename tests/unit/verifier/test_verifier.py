"""Step profiles against a plain recount, and the rules on what is missing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError

ATTEMPTS = pl.DataFrame({
    "problem_id": ["a", "a", "a", "b", "b", "c"],
    "step_scores": [[0.5, 0.75], [0.5, 0.25], [0.25, None, math.nan, 1.0], [0.75, 1.0], [0.0], []],
    "is_correct": [True, False, True, True, False, False],
})

scores = st.one_of(st.none(), st.just(math.nan), st.floats(-2.0, 2.0, width=32))
attempts = st.lists(
    st.tuples(
        st.sampled_from("pqr"),
        st.sampled_from([True, False, None]),
        st.one_of(st.none(), st.lists(scores, max_size=7)),
    ),
    max_size=12,
)


def recount(
    rows: Sequence[tuple[Any, bool | None, list[float | None] | None]], n_bins: int
) -> dict[tuple[bool | None, int], dict[str, Any]]:
    """Average per attempt, then per problem, then over problems, in plain Python."""
    per_problem: dict[Any, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    unscored: dict[Any, int] = defaultdict(int)
    for problem, is_correct, row_scores in rows:
        bins: dict[int, list[float]] = defaultdict(list)
        for i, score in enumerate(row_scores or [], start=1):
            place = math.ceil(i * n_bins / len(row_scores or []) - 1e-9)
            unscored[is_correct, place] += 0
            if score is None or math.isnan(score):
                unscored[is_correct, place] += 1
            else:
                bins[place].append(score)
        for place, kept in bins.items():
            per_problem[is_correct, place][problem].append(mean(kept))
    table = {}
    for key, n_unscored in unscored.items():
        means = [mean(values) for values in per_problem[key].values()]
        error = stdev(means) / math.sqrt(len(means)) if len(means) > 1 else None
        table[key] = {
            "mean_score": mean(means) if means else None,
            "standard_error": error,
            "half": None if error is None else error * stats.t.ppf(0.975, len(means) - 1),
            "n_attempts": sum(map(len, per_problem[key].values())),
            "n_problems": len(means),
            "n_unscored_steps": n_unscored,
        }
    return table


@given(rows=attempts, n_bins=st.integers(1, 6))
def test_profiles_equal_a_plain_recount(
    rows: list[tuple[str, bool | None, list[float | None] | None]], n_bins: int
) -> None:
    frame = pl.DataFrame(
        rows,
        schema={
            "problem_id": pl.String,
            "is_correct": pl.Boolean,
            "step_scores": pl.List(pl.Float64),
        },
        orient="row",
    )
    profile = tts.verifier.step_profile(frame, n_bins=n_bins)
    expected = recount(rows, n_bins)
    assert profile.height == len(expected)
    for row in profile.iter_rows(named=True):
        place = round(row["position"] * n_bins + 0.5)
        assert row["position"] == pytest.approx((place - 0.5) / n_bins)
        want = expected[row["is_correct"], place]
        for name in ("mean_score", "standard_error"):
            assert row[name] == (
                None if want[name] is None else pytest.approx(want[name], abs=1e-12)
            )
        for name in ("n_attempts", "n_problems", "n_unscored_steps"):
            assert row[name] == want[name]
        if want["half"] is None:
            assert row["ci_low"] is None
        else:
            kept = [s for *_, listed in rows for s in listed or [] if s is not None and s == s]  # noqa: PLR0124  (NaN)
            is_bounded = min(kept) >= 0 and max(kept) <= 1
            clip = (lambda x: min(max(x, 0), 1)) if is_bounded else float
            if want["half"] < 1e-11:  # equal means: the widest interval, or none without bounds
                assert (row["ci_low"] is not None) == is_bounded
                if is_bounded:
                    assert row["ci_low"] - 1e-9 <= row["mean_score"] <= row["ci_high"] + 1e-9
                    assert row["ci_high"] - row["ci_low"] > 0.5 / want["n_problems"]
                continue
            assert row["ci_low"] == pytest.approx(clip(want["mean_score"] - want["half"]), abs=1e-9)
            assert row["ci_high"] == pytest.approx(
                clip(want["mean_score"] + want["half"]), abs=1e-9
            )


def test_the_last_step_is_in_the_last_bin_and_so_is_an_only_one() -> None:
    profile = tts.verifier.step_profile(ATTEMPTS, n_bins=10)
    last = profile.filter(position=0.95)
    assert last["n_attempts"].to_list() == [2, 3]
    assert last["mean_score"].to_list() == [(0.25 + 0.0) / 2, ((0.75 + 1.0) / 2 + 1.0) / 2]


def test_the_problem_is_the_unit() -> None:
    frame = pl.DataFrame({
        "problem_id": ["a"] * 99 + ["b"],
        "step_scores": [[1.0]] * 99 + [[0.0]],
        "is_correct": True,
    })
    profile = tts.verifier.step_profile(frame, n_bins=1)
    assert profile["mean_score"].item() == 0.5
    assert profile["standard_error"].item() == 0.5
    assert profile["n_attempts"].item() == 100


def test_missing_scores_are_left_out_and_counted() -> None:
    profile = tts.verifier.step_profile(ATTEMPTS, n_bins=4).filter("is_correct")
    assert profile["n_unscored_steps"].to_list() == [0, 1, 1, 0]
    assert profile["mean_score"].to_list() == [0.25, 0.625, None, 0.9375]
    assert profile["n_attempts"].to_list() == [1, 2, 0, 3]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy_frames_stay_lazy_and_rows_may_be_shuffled(engine: Any) -> None:
    lazy = tts.verifier.step_profile(ATTEMPTS.lazy(), n_bins=3)
    assert isinstance(lazy, pl.LazyFrame)
    shuffled = tts.verifier.step_profile(
        ATTEMPTS.sample(fraction=1.0, shuffle=True, seed=1), n_bins=3
    )
    assert_frame_equal(lazy.collect(engine=engine), shuffled)


def test_infinite_scores_of_both_signs_have_no_mean() -> None:
    run = pl.DataFrame({
        "problem_id": ["p", "p", "q"],
        "step_scores": [[math.inf], [-math.inf], [0.5]],
        "is_correct": True,
    })
    profile = tts.verifier.step_profile(run, n_bins=1)
    assert profile.select("mean_score", "n_attempts", "n_unscored_steps").rows() == [(None, 3, 0)]


def test_columns_of_any_name_identify_runs() -> None:
    runs = pl.concat([
        ATTEMPTS.with_columns(key0=pl.lit("x"), bin=pl.lit(1)),
        ATTEMPTS.with_columns(key0=pl.lit("y"), bin=pl.lit(1)),
    ])
    profile = tts.verifier.step_profile(runs, by=["bin", "key0"], n_bins=3)
    assert profile.columns[:2] == ["bin", "key0"]
    alone = tts.verifier.step_profile(ATTEMPTS, n_bins=3)
    assert_frame_equal(profile.filter(key0="y").drop("bin", "key0"), alone)


def test_schemas_of_lazy_and_eager_results_agree() -> None:
    lazy = tts.verifier.step_profile(ATTEMPTS.lazy())
    assert (
        lazy.collect_schema() == lazy.collect().schema == tts.verifier.step_profile(ATTEMPTS).schema
    )


@pytest.mark.parametrize(
    "dtype", [pl.List(pl.Float32), pl.List(pl.Int64), pl.Array(pl.Float64, 2), pl.Null]
)
def test_dtypes_of_step_scores(dtype: Any) -> None:
    values = [None, None] if dtype == pl.Null else [[0, 1], [1, 1]]
    frame = pl.DataFrame({
        "problem_id": [1, 2],
        "step_scores": pl.Series(values, dtype=dtype),
        "is_correct": [True, True],
    })
    profile = tts.verifier.step_profile(frame, n_bins=2)
    assert profile["mean_score"].to_list() == ([] if dtype == pl.Null else [0.5, 1.0])


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({}, {"n_bins": 0}, ParameterError, "n_bins == 0"),
        ({}, {"confidence_level": 1.0}, ParameterError, "confidence_level"),
        ({}, {"by": "is_correct"}, ParameterError, "by names .'is_correct'."),
        ({}, {"by": "model"}, ColumnsError, "'model'"),
        ({"step_scores": pl.lit("0.5, 0.7")}, {}, ColumnsError, "'step_scores' is String"),
        ({"step_scores": pl.lit(0.5)}, {}, ColumnsError, "'step_scores' is Float64"),
        ({"is_correct": pl.lit("yes")}, {}, ColumnsError, "'is_correct' is String"),
    ],
)
def test_what_cannot_be_used(
    change: dict[str, pl.Expr], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tts.verifier.step_profile(ATTEMPTS.with_columns(**change), **options)


def test_the_verifier_of_a_real_run_scores_right_attempts_higher(shared_data: Path) -> None:
    source = shared_data / "search_and_learn" / "beam16_llama3.2-3b-awq_q100.jsonl"
    graded = tts.score_trajectories(tts.read_trajectories(source))
    last = tts.verifier.step_profile(graded).filter(position=0.95)
    assert last["is_correct"].to_list() == [False, True]
    assert last["mean_score"][1] > last["mean_score"][0]
    rows = graded.select("problem_id", "is_correct", "step_scores").rows()
    expected = recount(rows, 10)
    assert last["mean_score"].to_list() == pytest.approx([
        expected[False, 10]["mean_score"],
        expected[True, 10]["mean_score"],
    ])
