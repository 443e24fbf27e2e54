"""``ttsframe compare`` against the library's function and counts by plain loops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from polars.testing import assert_frame_equal

import ttsframe as tts

Run = Callable[..., Result]


def comparison(ttsframe: Run, *arguments: object) -> pl.DataFrame:
    result = ttsframe("compare", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return pl.DataFrame(json.loads(result.stdout)["comparison"])


def test_selectors_are_compared_at_the_largest_budget(ttsframe: Run, sample: Path) -> None:
    table = comparison(ttsframe, sample)
    scored = tts.score_trajectories(tts.read_trajectories(sample))
    problems = tts.select_answers(scored, budgets=16)
    values = {
        (row["selector"], row["problem_id"]): row["value"] for row in problems.iter_rows(named=True)
    }
    names = sorted({problem for _, problem in values})
    assert table["selector"].to_list() == ["best_of_n", "weighted_vote"]
    for row in table.iter_rows(named=True):
        differences = [
            values[row["selector"], name] - values["majority_vote", name] for name in names
        ]
        assert row["budget"] == 16
        assert row["n_wins"] == differences.count(1.0)
        assert row["n_losses"] == differences.count(-1.0)
        assert row["difference"] == pytest.approx(sum(differences) / 60)


def test_what_is_printed_is_what_json_says(
    ttsframe: Run, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    arguments = [sample, "--budgets", "4,16", "--reductions", "last,min"]
    text = ttsframe("compare", *arguments).stdout
    table = comparison(ttsframe, *arguments)
    assert "selector: compared with majority_vote; p: McNemar's mid-p test" in text
    assert "Intervals: Bonett and Price's, which can disagree with p" in text
    exact = ttsframe("compare", *arguments, "--mcnemar", "exact").stdout
    assert "p: McNemar's exact test" in exact
    assert f"corrected: for {table.height} tests (holm)" in text
    lines = [line for line in text.splitlines() if "/" in line and "%" in line]
    assert len(lines) == table.height == 8
    for line, row in zip(lines, table.iter_rows(named=True), strict=True):
        assert line.startswith(str(row["budget"]))
        assert f"{row['selector']} ({row['reduction']})" in line
        assert f"{100 * row['difference']:+.1f} [{100 * row['ci_low']:+.1f}" in line
        assert line.endswith(f"{row['n_wins']}/{row['n_ties']}/{row['n_losses']}")
    plain = ttsframe("compare", *arguments, "--correction", "none").stdout
    assert "corrected" not in plain


def test_runs_are_compared_at_equal_selector_and_shared_budget(
    ttsframe: Run, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = sample.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(rows), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("".join(rows[:40]), encoding="utf-8")
    table = comparison(ttsframe, "a.jsonl", "b.jsonl", "--column", "source_file")
    assert set(table["baseline"]) == {"a.jsonl"}
    assert table["selector"].to_list() == ["best_of_n", "majority_vote", "weighted_vote"]
    assert set(table["n_pairs"]) == {40}
    assert set(table["n_unpaired"]) == {20}
    assert set(table["n_ties"]) == {40}
    text = ttsframe("compare", "a.jsonl", "b.jsonl", "--column", "source_file").stdout
    assert "unpaired" in text
    turned = comparison(
        ttsframe, "a.jsonl", "b.jsonl", "--column", "source_file", "--baseline", "b.jsonl"
    )
    assert set(turned["source_file"]) == {"a.jsonl"}


def test_budgets_are_compared_with_the_smallest(ttsframe: Run, sample: Path) -> None:
    table = comparison(ttsframe, sample, "--column", "budget", "--selectors", "oracle")
    assert table["budget"].to_list() == [2, 4, 8, 16]
    assert set(table["baseline"]) == {1}
    assert table["n_losses"].sum() == 0
    assert table["difference"].is_sorted()


@pytest.fixture
def two_seeds(tmp_path: Path) -> Path:
    """Write a run of two models and two seeds, with the text that each problem asks about."""
    parts = [
        tts.simulate_trajectories(30, 4, seed=10 * seed + number, keys=True).with_columns(
            model=pl.lit(model), seed=pl.lit(seed)
        )
        for seed in (1, 2)
        for number, model in enumerate("xy")
    ]
    path = tmp_path / "run.parquet"
    text = pl.col("problem_id").str.slice(-1).alias("text")
    pl.concat(parts).with_columns(text).write_parquet(path)
    return path


def test_replicates_and_clusters_are_named(ttsframe: Run, two_seeds: Path) -> None:
    run = pl.read_parquet(two_seeds)
    by = ["model", "seed", "text"]
    problems = tts.select_answers(run, budgets=4, selectors="majority_vote", by=by)
    expected = tts.compare(
        problems, column="model", baseline="x", replicates="seed", cluster="text"
    ).row(0, named=True)
    table = comparison(
        ttsframe,
        *[two_seeds, "--column", "model", "--selectors", "majority_vote", "--budgets", "4"],
        *["--replicates", "seed", "--cluster", "text"],
    )
    assert table.row(0, named=True) == pytest.approx(expected)
    assert (expected["test"], expected["n_clusters"]) == ("clustered_t", 10)


def test_a_table_is_written(ttsframe: Run, sample: Path, tmp_path: Path) -> None:
    target = tmp_path / "pairs.parquet"
    result = ttsframe("compare", sample, "-o", target)
    assert result.exit_code == 0
    assert "Wrote" in result.stdout
    written = pl.read_parquet(target)
    printed = comparison(ttsframe, sample)
    assert_frame_equal(written, printed, check_dtypes=False, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--baseline", "vote"], "selector == 'vote', the baseline; found: ['best_of_n', 'maj"),
        (["--column", "model"], "1 missing column for --column: 'model'"),
        (["--column", "budget", "--baseline", "few"], "baseline == 'few', must be a value of"),
        (["--selectors", "majority_vote"], "selector has only the value 'majority_vote'"),
        (["--column", "subject"], "subject has only the value 'Simulated'"),
        (["--correction", "sidak"], "'sidak' is not one of"),
        (["--column", "step_scores"], "step_scores"),
        (["-o", "gone/pairs.csv"], "gone: no such folder"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_message(
    ttsframe: Run, sample: Path, options: list[str], words: str
) -> None:
    result = ttsframe("compare", sample, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_ungraded_runs_are_not_compared(ttsframe: Run, two_seeds: Path, tmp_path: Path) -> None:
    path = tmp_path / "ungraded.parquet"
    run = pl.read_parquet(two_seeds).filter(model="x", seed=1)
    names = [name for name in ("is_correct", "gold", "gold_key", "solution") if name in run.columns]
    run.drop(names).write_parquet(path)
    result = ttsframe("compare", path)
    assert result.exit_code == 2
    assert "no problem is graded on both sides of a pair. Hint: --gold" in result.stderr


def test_ranks_are_printed_as_json_says_with_clusters(
    ttsframe: Run, sample: Path, tmp_path: Path
) -> None:
    arguments = [sample, "--budgets", "16", "--reductions", "last,min"]
    text = ttsframe("rank", *arguments).stdout
    table = pl.DataFrame(json.loads(ttsframe("rank", *arguments, "--json").stdout)["ranking"])
    assert table["rank"].to_list() == sorted(table["rank"].to_list())
    assert "all true ranks are in their ranges\nbudget 16\n" in text
    for row in table.iter_rows(named=True):
        assert f"{row['rank_low']}-{row['rank_high']}" in text
    written = tmp_path / "ranks.parquet"
    ttsframe("rank", *arguments, "-o", written)
    assert pl.read_parquet(written).height == table.height
    refused = ttsframe("rank", sample, "--cluster", "texts")
    assert refused.exit_code == 2
    assert "'texts'" in refused.stderr


def test_searches_of_different_widths_are_compared_with_all_their_attempts(
    ttsframe: Run, tmp_path: Path
) -> None:
    files = [tmp_path / f"width{width}.parquet" for width in (4, 8)]
    for path, width in zip(files, (4, 8), strict=True):
        tts.simulate_trajectories(30, width, seed=1, keys=True).with_columns(
            policy=pl.lit("beam"), width=width, is_exchangeable=False
        ).write_parquet(path)
    table = comparison(ttsframe, *files, "--column", "width", "--by", "policy")
    narrow, wide = (tts.select_answers(pl.read_parquet(path)) for path in files)
    for row in table.iter_rows(named=True):
        values = [rows.filter(selector=row["selector"])["value"].mean() for rows in (wide, narrow)]
        assert (row["width"], row["baseline"], row["budget"]) == (8, 4, None)
        assert [row["accuracy"], row["baseline_accuracy"]] == pytest.approx(values)
    assert table.height == 3
    ranks = ttsframe("rank", *files, "--column", "width", "--by", "policy", "--json")
    assert ranks.exit_code == 0, ranks.stderr


def test_runs_without_a_number_of_attempts_in_common_are_refused(
    ttsframe: Run, tmp_path: Path
) -> None:
    run = tts.simulate_trajectories(30, 6, seed=1, keys=True)
    searched = run.with_columns(policy=pl.lit("beam"), width=6, is_exchangeable=False)
    sampled = run.filter(pl.col("attempt") < 4)
    pl.concat(
        [searched, sampled.with_columns(policy=pl.lit("sample"), width=6)], how="diagonal"
    ).write_parquet(tmp_path / "runs.parquet")
    result = ttsframe("compare", tmp_path / "runs.parquet", "--column", "policy", "--by", "width")
    assert result.exit_code == 2
    assert "the runs have no number of attempts in common. Hint: --budgets" in result.stderr


def test_counts_have_one_selector_so_that_nothing_is_compared(
    ttsframe: Run, tmp_path: Path
) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("problem_id,n,c\na,4,1\nb,4,3\n")
    result = ttsframe("compare", path)
    assert result.exit_code == 2
    assert "selector has only the value 'oracle'" in result.stderr


def test_a_budget_that_no_problem_reaches_is_the_reason(ttsframe: Run, tmp_path: Path) -> None:
    for seed in (1, 2):
        run = tts.simulate_trajectories(5, 4, seed=seed)
        run.drop("true_accuracy").write_parquet(tmp_path / f"{seed}.parquet")
    result = ttsframe("compare", tmp_path / "*.parquet", "--column", "source_file", "--budgets", 8)
    assert result.exit_code == 2
    assert "no problem has so many attempts under two values of source_file" in result.stderr
    assert "smaller --budgets" in result.stderr
