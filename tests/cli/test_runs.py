"""Several files are one run where their problems differ, and runs of their own where they do not."""

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


@pytest.fixture
def files(ttsframe: Run) -> tuple[str, str]:  # noqa: ARG001  (which goes to the folder)
    """Two runs of the same problems, in the folder that commands run in."""
    for name, strength in (("a.jsonl", 1.5), ("b.jsonl", 0.2)):
        run = tts.simulate_trajectories(12, 4, seed=1, score_strength=strength)
        run.write_ndjson(name)
    return "a.jsonl", "b.jsonl"


def points(result: Result) -> pl.DataFrame:
    assert result.exit_code == 0, result.stderr
    return pl.DataFrame(json.loads(result.stdout)["curve"])


@pytest.mark.parametrize("command", ["curve", "report"])
def test_files_of_the_same_problems_are_kept_apart_and_it_is_said(
    ttsframe: Run, files: tuple[str, str], command: str
) -> None:
    unasked, asked = (
        ttsframe(command, *files, *by, "--json") for by in ([], ["--by", "source_file"])
    )
    assert unasked.stderr == (
        "Note: a.jsonl and b.jsonl hold attempts at the same 12 problems: each file is a run of its own "
        "(--by source_file).\n"
    )
    assert not asked.stderr
    assert_frame_equal(points(unasked), points(asked))
    assert set(points(unasked)["source_file"]) == set(files)


def test_compare_takes_the_files(ttsframe: Run, files: tuple[str, str]) -> None:
    unasked = ttsframe("compare", *files, "--json")
    assert "the files are compared (--column source_file)" in unasked.stderr
    assert json.loads(unasked.stdout)["column"] == "source_file"
    by = ttsframe("compare", *files, "--by", "source_file", "--json")
    assert (json.loads(by.stdout)["column"], by.stderr) == ("selector", "")
    named = ttsframe("compare", *files, "--column", "selector")
    assert named.exit_code == 2
    assert "--by source_file keeps them apart" in named.stderr


def test_runs_in_folders_are_named_by_what_tells_them_apart(ttsframe: Run) -> None:
    folder = Path("experiments of this year on the whole data set")
    for model in ("small", "large"):
        path = folder / f"a model that is {model}" / "run.jsonl"
        path.parent.mkdir(parents=True)
        tts.simulate_trajectories(12, 4, seed=1, score_strength=len(model)).write_ndjson(path)
    for command in ("compare", "rank", "curve", "report"):
        result = ttsframe(command, str(folder))
        assert result.exit_code == 0, result.stderr
        assert "a model that is small" in result.stdout, command
        assert "experiments" not in result.stdout, command


def test_files_that_number_other_problems_alike_are_not_compared(ttsframe: Run) -> None:
    run = tts.simulate_trajectories(6, 4, seed=1)
    is_first = pl.col("problem_id") < "sim-000002"
    for name, text in (("a.jsonl", "Name a city"), ("b.jsonl", "Name a river")):
        other = pl.when(is_first).then(pl.lit(text)).otherwise("problem_id")
        run.with_columns(problem=other).write_ndjson(name)
    result = ttsframe("compare", "a.jsonl", "b.jsonl", "--json")
    assert "share 6 problems by problem_id, 2 of them with different texts" in result.stderr
    assert {row["n_pairs"] for row in json.loads(result.stdout)["comparison"]} == {4}


@pytest.mark.parametrize(
    "command",
    [
        ["vote"],
        ["vote", "-o", "votes.parquet"],
        ["curve", "-o", "curve.parquet"],
        ["curve", "--by", "n_tokens"],
    ],
)
def test_what_others_read_needs_a_decision(
    ttsframe: Run, files: tuple[str, str], command: list[str]
) -> None:
    if "--by" in command:  # a column that does not tell the runs apart
        for name in files:
            pl.read_ndjson(name).with_columns(n_tokens=pl.lit(1)).write_ndjson(name)
    result = ttsframe(command[0], *files, *command[1:])
    assert result.exit_code == 2
    assert "Error: a.jsonl and b.jsonl hold attempts at the same 12 problems" in result.stderr
    assert "Hint: --by source_file keeps them apart" in result.stderr
    assert not list(Path().glob("*.parquet"))


def test_parts_of_a_run_are_one_run(ttsframe: Run, files: tuple[str, str]) -> None:
    whole = pl.read_ndjson(files[0])
    first = whole["problem_id"].unique().sort()[:5].implode()
    for parts in (
        pl.col("problem_id").is_in(first),
        pl.col("attempt") < 2,
        pl.col("attempt") % 2 == 0,
    ):
        whole.filter(parts).write_ndjson("part1.jsonl")
        whole.filter(~parts).write_ndjson("part2.jsonl")
        joined = ttsframe("curve", "part1.jsonl", "part2.jsonl", "--json")
        assert not joined.stderr
        assert_frame_equal(points(joined), points(ttsframe("curve", "a.jsonl", "--json")))


@pytest.mark.parametrize("output", [[], ["-o", "out.parquet"], ["-o", "out.csv"]])
def test_one_file_can_be_told_apart_by_its_name(
    ttsframe: Run, files: tuple[str, str], output: list[str]
) -> None:
    curve = points(ttsframe("curve", files[0], "--by", "source_file", "--json", *output))
    assert set(curve["source_file"]) == {"a.jsonl"}
    without = points(ttsframe("curve", files[0], "--json"))
    assert_frame_equal(curve.drop("source_file"), without)
    votes = ttsframe("vote", files[0], "--by", "source_file", "--json")
    assert {row["source_file"] for row in json.loads(votes.stdout)["problems"]} == {"a.jsonl"}
    assert ttsframe("validate", files[0], "--by", "source_file").exit_code in {0, 1}


@pytest.mark.parametrize("scored", ["scored/", "scored.parquet"])
def test_the_job_of_two_steps_works_for_two_runs(
    ttsframe: Run, files: tuple[str, str], scored: str
) -> None:
    assert ttsframe("score", *files, "-o", scored, "--rows-per-part", "30").exit_code == 0
    assert_frame_equal(
        points(ttsframe("curve", scored, "--json")).drop("reduction"),  # of a score, not of steps
        points(ttsframe("curve", *files, "--json")).drop("reduction"),
    )
    job = ttsframe("curve", scored, "--by", "source_file", "-o", "curve.parquet")
    assert job.exit_code == 0, job.stderr
    assert set(pl.read_parquet("curve.parquet")["source_file"]) == set(files)
    assert ttsframe("report", scored).exit_code == 0


@pytest.mark.parametrize("command", ["curve", "report"])
def test_filters_of_lm_eval_are_kept_apart_and_give_what_the_tool_states(
    ttsframe: Run, command: str
) -> None:
    logs = Path(__file__).resolve().parents[1] / "data" / "logs"
    result = ttsframe(command, str(logs / "lm_eval_sums.jsonl"), "--json")
    assert "each is a run of its own (--by filter)." in result.stderr
    stated = json.loads((logs / "lm_eval_results.json").read_text())["results"]["sums"]
    found = points(result).filter(selector="majority_vote").select("filter", "accuracy").rows()
    assert {name: pytest.approx(accuracy) for name, accuracy in found} == {
        name: stated[f"exact_match,{name}"] for name in ("strict-match", "flexible-extract")
    }
    repeated = ttsframe("curve", str(logs / "lm_eval_sums_majority.jsonl"), "--json")
    assert "filter" not in points(repeated).columns


def test_a_run_without_reference_answers_names_the_option_that_adds_them(
    ttsframe: Run, tmp_path: Path
) -> None:
    run = tts.simulate_trajectories(3, 2, seed=0).drop("gold", "true_accuracy", "true_is_correct")
    run.drop("true_key").write_parquet(tmp_path / "run.parquet")
    assert "--gold FILE adds them" in ttsframe("validate", tmp_path / "run.parquet").stdout
    page = ttsframe("report", tmp_path / "run.parquet", "-o", tmp_path / "page.html").stdout
    assert "Note: no attempt is graded, and no gold answers exist to grade it." in page
