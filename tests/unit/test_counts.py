"""Tables of counts give what the attempts behind them give, and refuse what needs attempts."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.cli import cli
from ttsframe.errors import (
    ColumnsError,
    DataError,
    ParameterError,
    SkippedRowsWarning,
    SourceError,
    TtsframeError,
)

COUNTS = pl.DataFrame({
    "model": ["a"] * 4 + ["b"] * 4,
    "problem_id": ["p", "q", "r", "s"] * 2,
    "n_attempts": [8, 8, 8, 6, 8, 8, 8, 8],
    "n_correct": [0, 3, 8, 2, 1, 5, 8, 0],
})


@pytest.fixture
def attempts() -> pl.DataFrame:
    return pl.DataFrame([
        {
            "model": row["model"],
            "problem_id": row["problem_id"],
            "attempt": i,
            "answer_key": "1" if i < row["n_correct"] else "2",
            "is_correct": i < row["n_correct"],
        }
        for row in COUNTS.iter_rows(named=True)
        for i in range(row["n_attempts"])
    ])


@pytest.mark.parametrize(
    "estimate",
    [tts.pass_at_k, tts.pass_hat_k, tts.g_pass_at_k, tts.estimators.mean_g_pass_at_k],
)
def test_estimators_agree_with_attempts(
    estimate: Callable[..., pl.Expr], attempts: pl.DataFrame
) -> None:
    k = [1, 2, 5, 7, 8]
    of_counts = COUNTS.select(
        "model", "problem_id", estimate("n_correct", k, n_attempts="n_attempts").alias("v")
    )
    of_attempts = attempts.group_by("model", "problem_id", maintain_order=True).agg(
        estimate("is_correct", k).alias("v")
    )
    assert_frame_equal(of_counts.unnest("v"), of_attempts.unnest("v"), abs_tol=1e-12)
    one = COUNTS.select(estimate("n_correct", 2, n_attempts=pl.col("n_attempts")))
    assert one.schema == {"n_correct": pl.Float64}


@pytest.mark.parametrize(("n", "c"), [(3, 4), (3, -1), (3, 0.5), (2.5, 1), (math.inf, 1)])
def test_impossible_counts_are_refused(n: float, c: float) -> None:
    counts = pl.DataFrame({"n": [5, n], "c": [1, c]}, strict=False)
    with pytest.raises(DataError, match="must be a whole number from 0"):
        counts.select(tts.pass_at_k("c", 1, n_attempts="n"))


def test_unknown_counts_are_null() -> None:
    counts = pl.DataFrame({"n": [4, None, 0], "c": [1, 1, None]})
    passes = counts.select(tts.pass_at_k("c", 2, n_attempts="n"))["c"]
    assert passes.to_list() == [0.5, None, None]


def test_expected_accuracy_and_curves_agree_with_attempts(attempts: pl.DataFrame) -> None:
    settings = {"selectors": "oracle", "budgets": [1, 4, 8], "by": "model"}
    of_counts = tts.expected_accuracy(COUNTS, **settings)
    of_attempts = tts.expected_accuracy(attempts, **settings)
    made = ("n_valid",)  # known of attempts only
    assert_frame_equal(of_counts.drop(made), of_attempts.drop(made), abs_tol=1e-12)
    assert_frame_equal(
        tts.scaling_curve(of_counts, by="model"),
        tts.scaling_curve(of_attempts, by="model"),
        abs_tol=1e-12,
    )
    compared = [
        tts.compare(problems, column="model", baseline="a") for problems in (of_counts, of_attempts)
    ]
    assert_frame_equal(*compared, abs_tol=1e-9)


def test_lazy_counts_stay_lazy() -> None:
    lazy = tts.expected_accuracy(COUNTS.lazy(), selectors="oracle", budgets=2, by="model")
    assert isinstance(lazy, pl.LazyFrame)
    eager = tts.expected_accuracy(COUNTS, selectors="oracle", budgets=2, by="model")
    assert_frame_equal(lazy.collect(), eager)


def test_fits_variance_and_levels_agree_with_attempts(attempts: pl.DataFrame) -> None:
    of_counts, of_attempts = (
        tts.fit_pass_at_k(frame, by="model").parameters for frame in (COUNTS, attempts)
    )
    assert_frame_equal(of_counts, of_attempts)
    of_counts, of_attempts = (
        tts.statistics.variance_components(frame, by="model") for frame in (COUNTS, attempts)
    )
    assert_frame_equal(of_counts, of_attempts, abs_tol=1e-12)
    of_counts, of_attempts = (
        tts.difficulty_levels(frame, n_levels=2, estimate="same_sample", by="model")
        for frame in (COUNTS, attempts)
    )
    assert_frame_equal(of_counts, of_attempts)
    by_reference = tts.difficulty_levels(
        attempts, reference=COUNTS.filter(model="b").drop("model"), n_levels=2, by="model"
    )
    assert by_reference.filter(model="a")["difficulty"].to_list() == [0.875, 0.375, 0.0, 1.0]


def test_check_of_extrapolation_draws_the_same_order_every_time() -> None:
    counts = pl.DataFrame({
        "problem_id": range(40),
        "n_attempts": [64] * 40,
        "n_correct": [i % 20 for i in range(40)],
    })
    checks = [
        tts.statistics.check_extrapolation(frame, n_fitted=8, models="beta_binomial")
        for frame in (counts, counts.reverse())
    ]
    assert_frame_equal(*checks)
    # The observed pass@64 uses all attempts, so no draw changes it.
    observed = checks[0].filter(budget=64)["observed"].item()
    assert observed == pytest.approx(38 / 40)


@pytest.mark.parametrize(
    "function",
    [
        tts.majority_vote,
        tts.tally_votes,
        tts.score_trajectories,
        tts.renumber_attempts,
        tts.run_health,
        tts.verifier_report,
        tts.build_report,
        tts.drop_duplicate_completions,
        lambda counts: tts.expected_accuracy(counts, budgets=1, by="model"),
        lambda counts: tts.PassAtK(k=1)(counts, ["problem_id"]),
    ],
)
def test_what_needs_attempts_says_so(function: Callable[[pl.DataFrame], object]) -> None:
    with pytest.raises(ColumnsError, match="'n_attempts', 'n_correct'"):
        function(COUNTS)


def test_levels_that_halve_attempts_are_refused() -> None:
    with pytest.raises(ParameterError, match="halves the attempts"):
        tts.difficulty_levels(COUNTS, by="model")


def test_rows_of_several_runs_ask_for_by() -> None:
    for call in (
        lambda: tts.expected_accuracy(COUNTS, selectors="oracle", budgets=1),
        lambda: tts.fit_pass_at_k(COUNTS),
        lambda: tts.statistics.variance_components(COUNTS),
    ):
        with pytest.raises(DataError, match=r"2 rows of counts, expected one.*by="):
            call()
    report = tts.validate_trajectories(COUNTS)
    assert [finding.code for finding in report.findings] == ["duplicate_counts", "ragged_attempts"]


def test_a_problem_without_graded_attempts_is_ungraded() -> None:
    counts = pl.DataFrame({
        "problem_id": ["p", "q", "r"],
        "n_attempts": [4, 0, None],
        "n_correct": [1, 0, None],
    })
    problems = tts.expected_accuracy(counts, selectors="oracle", budgets=[1, 8])
    assert problems["status"].to_list() == ["ok", "short"] + ["ungraded"] * 4
    report = tts.validate_trajectories(counts)
    assert {finding.code for finding in report.findings} == {"ungraded_problems", "ragged_attempts"}


READ = {
    "ours": ("problem_id,model,n_attempts,n_correct", "p1,a,4,1"),
    "n and c": ("problem_id,model,n,c", "p1,a,4,1"),
    "eval-arena": ("benchmark_id,model,example_id,pass1,count,correct", "he,a,p1,0.25,4,1"),
}


@pytest.mark.parametrize("name", READ)
def test_files_of_counts_are_recognized(name: str, tmp_path: Path) -> None:
    header, row = READ[name]
    path = tmp_path / "counts.csv"
    path.write_text(f"{header}\n{row}\n")
    table = tts.read_trajectories(path)
    assert table.select("problem_id", "n_attempts", "n_correct", "model").row(0) == (
        "p1",
        4,
        1,
        "a",
    )
    assert table.schema["n_attempts"] == pl.UInt32
    lines = tmp_path / "counts.jsonl"
    values = [int(v) if v.isdigit() else v for v in row.split(",")]
    lines.write_text(json.dumps(dict(zip(header.split(","), values, strict=True))) + "\n")
    assert tts.read_trajectories(lines)["n_correct"].to_list() == [1]


@pytest.mark.parametrize(
    ("n", "c"), [("4", "5"), ("4", "-1"), ("4.5", "1"), ("nan", "1"), ("99999999999", "1")]
)
def test_impossible_counts_in_a_file_name_the_row(n: str, c: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"problem_id,n,c\np,4,1\nq,{n},{c}\n")
    with pytest.raises(SourceError, match=r"counts\.csv, row 2.*must be whole numbers"):
        tts.read_trajectories(path)
    with pytest.warns(SkippedRowsWarning, match="1 row skipped"):
        assert tts.read_trajectories(path, on_error="skip").height == 1


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments], prog_name="ttsframe")
    assert result.exit_code == 0, result.output
    return result.output


def test_commands_take_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    COUNTS.write_csv(path)
    curve = json.loads(run("curve", str(path), "--by", "model", "--budgets", "1,8", "--json"))
    assert [row["selector"] for row in curve["curve"]] == ["oracle"] * 4
    values = {(row["model"], row["budget"]): row["accuracy"] for row in curve["curve"]}
    assert values["b", 8] == pytest.approx(0.75)
    table = json.loads(run("compare", str(path), "--column", "model", "--budgets", "1", "--json"))
    assert table["baseline"] == "a"
    assert table["comparison"][0]["difference"] == pytest.approx((1 / 8 + 2 / 8 - 1 / 3) / 4)
    run("validate", str(path), "--by", "model", "--by", "n_attempts", "--json")
    target = tmp_path / "counts.parquet"
    run("convert", str(path), "-o", str(target))
    assert pl.read_parquet(target)["n_correct"].to_list() == COUNTS["n_correct"].to_list()
    refused = CliRunner().invoke(cli, ["report", str(path), "--by", "model"], prog_name="ttsframe")
    assert refused.exit_code == 2
    assert "holds counts" in refused.output


@pytest.mark.parametrize("name", ["aime2024", "human_eval_plus"])
def test_published_pass_at_1_and_standard_errors(name: str, shared_data: Path) -> None:
    """The source's table: pass@1, and its error split into problems and predictions, over N."""
    folder = shared_data / "noises"
    counts = tts.read_trajectories(folder / f"{name}.csv")
    with (folder / "published.csv").open() as handle:
        published = {
            row["model"]: row for row in csv.DictReader(handle) if row["benchmark"] == name
        }
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    with (folder / f"{name}.csv").open() as handle:
        for row in csv.DictReader(handle):
            rows[row["model"]].append((int(row["n"]), int(row["c"])))
    problems = tts.expected_accuracy(counts, selectors="oracle", budgets=[1, 64], by="model")
    curve = tts.scaling_curve(problems, by="model", include="available")
    split = {
        row["model"]: row
        for row in tts.statistics.variance_components(counts, by="model").iter_rows(named=True)
    }
    assert set(split) == set(published) == set(rows)
    for row in curve.iter_rows(named=True):
        n_c = rows[row["model"]]
        if row["budget"] == 64:
            known = [1 - math.comb(n - c, 64) / math.comb(n, 64) for n, c in n_c if n >= 64]
            assert row["n_problems"] == len(known)
            if known:
                assert row["accuracy"] == pytest.approx(sum(known) / len(known), abs=1e-12)
            continue
        theirs = {
            key: float(published[row["model"]][key]) for key in ("pass1", "se", "se_x", "se_pred")
        }
        parts, n_problems = split[row["model"]], row["n_problems"]
        n = parts["n_attempts"]
        assert row["accuracy"] == pytest.approx(theirs["pass1"], abs=1e-9)
        of_problems = row["standard_error"] * math.sqrt((n_problems - 1) / n_problems)
        assert of_problems == pytest.approx(theirs["se_x"], abs=1e-9)
        of_samples = math.sqrt(parts["variance_within"] * (n - 1) / n / n_problems)
        assert of_samples == pytest.approx(theirs["se_pred"], abs=1e-9)
        assert math.hypot(of_problems, of_samples) == pytest.approx(theirs["se"], abs=1e-9)


def test_errors_have_one_root() -> None:
    with pytest.raises(TtsframeError):
        tts.majority_vote(COUNTS)
