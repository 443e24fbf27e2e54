"""Functions of a user on the command line: `package.module:name` in the place of a name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

SOURCE = """
import polars as pl

def best():
    return pl.col("attempt").filter(pl.col("score") == pl.col("score").max()).min()

def wordiest():
    n_chars = pl.col("completion").str.len_chars()
    return pl.col("attempt").sort_by(n_chars, "attempt", descending=[True, False]).first()

def latest(step_scores):
    return step_scores.list.last()

def never():
    return pl.col("answer").is_null() & pl.col("answer").is_not_null()

def undecided():
    return pl.when(pl.col("attempt") > 3).then(pl.lit(True))

def peek():
    return pl.col("attempt").sort_by("is_correct").last()
"""
MODULE = "own_functions_of_the_command_line"


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("package")
    (folder / f"{MODULE}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return folder


@pytest.mark.usefixtures("own")
def test_a_function_stands_in_the_place_of_a_name(
    ttsframe: Callable[..., Result], sample: Path
) -> None:
    selectors = f"best_of_n,{MODULE}:best,{MODULE}:wordiest"
    reductions = f"last,{MODULE}:latest"
    options = ["--selectors", selectors, "--reductions", reductions]
    done = ttsframe("curve", sample, *options, "--json")
    assert done.exit_code == 0, done.stderr
    curve = pl.DataFrame(json.loads(done.stdout)["curve"])
    lines = {
        key: rows["accuracy"].to_list() for key, rows in curve.group_by("selector", "reduction")
    }
    assert lines["best", "latest"] == lines["best", "last"] == lines["best_of_n", "last"]
    assert lines["wordiest", None] != lines["best", "last"]
    job = ttsframe("curve", sample, *options, "-o", "curve.parquet")
    assert job.exit_code == 0, job.stderr
    assert (
        pl
        .read_parquet("curve.parquet")
        .select("selector", "accuracy")
        .sort("selector")
        .equals(curve.select("selector", "accuracy").sort("selector"))
    )
    page = ttsframe("report", sample, *options, "-o", "page.html")
    assert page.exit_code == 0, page.stderr
    assert "wordiest" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("own")
def test_a_grader_of_ones_own(ttsframe: Callable[..., Result], sample: Path) -> None:
    for output in ("scored.parquet", "scored.jsonl"):
        options = ["--grade", f"{MODULE}:never", "--reduction", f"{MODULE}:latest", "-o", output]
        done = ttsframe("score", sample, *options)
        assert done.exit_code == 0, done.stderr
    assert not pl.read_parquet("scored.parquet")["is_correct"].any()
    curve = json.loads(ttsframe("curve", sample, "--grade", f"{MODULE}:never", "--json").stdout)
    assert {row["accuracy"] for row in curve["curve"]} == {0.0}
    vote = ttsframe("vote", sample, "--grade", f"{MODULE}:never", "-o", "votes.parquet")
    assert vote.exit_code == 0, vote.stderr
    assert not pl.read_parquet("votes.parquet")["is_correct"].any()


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--selectors", f"{MODULE}:worst"], "has no 'worst'; its functions: ['best', 'wordiest',"),
        (
            ["--selectors", f"{MODULE}:peek"],
            "reads 'is_correct', which is known only after grading",
        ),
        (["--selectors", "no_module_of_mine:best"], "Hint: set PYTHONPATH"),
        (["--reductions", f"{MODULE}:best"], "raised TypeError"),
        (["--grade", f"{MODULE}:best"], "'best' reads: 'score'"),
        (["--grade", "exact"], "must be written as package.module:name"),
        (["--selectors", "best_of"], "is not one of"),
    ],
)
def test_a_mistake_ends_with_one_message(
    ttsframe: Callable[..., Result], sample: Path, options: list[str], message: str
) -> None:
    done = ttsframe("curve", sample, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_the_installed_command_imports_from_pythonpath_and_not_from_the_working_directory(
    own: Path, sample: Path
) -> None:
    command = [
        sys.executable, "-P", "-m", "ttsframe",
        "curve", str(sample), "--selectors", f"{MODULE}:best", "--budgets", "4", "--json",
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=own,
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    refused = run()
    assert refused.returncode == 2
    assert f"{MODULE}.py lies in the working directory" in refused.stderr
    assert "Traceback" not in refused.stderr
    accepted = run(PYTHONPATH=str(own))
    assert accepted.returncode == 0, accepted.stderr
    assert json.loads(accepted.stdout)["curve"][0]["selector"] == "best"


@pytest.mark.usefixtures("own")
def test_grades_that_are_null_are_explained(ttsframe: Callable[..., Result], sample: Path) -> None:
    done = ttsframe("curve", sample, "--grade", f"{MODULE}:undecided")
    assert done.exit_code == 0, done.stderr
    assert (
        "ungraded: --grade gave null, neither right nor wrong, for a chosen attempt" in done.stdout
    )
    assert "--gold" not in done.stdout
