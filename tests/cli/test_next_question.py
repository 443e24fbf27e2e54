"""`--keep-next-question` reads on after the answer, in every command that reads completions."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ttsframe.cli import cli

TEXT = "The answer is 4.\n\nQuestion: What is 3 + 3?\nThe answer is 6."


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.parquet"
    pl.DataFrame({
        "problem_id": ["p", "p", "q", "q"],
        "attempt": [0, 1, 0, 1],
        "completion": [TEXT] * 4,
        "gold": ["4"] * 4,
    }).write_parquet(path)
    return path


@pytest.mark.parametrize("name", ["curve", "vote", "report", "score"])
def test_the_next_question_is_read_only_by_name(run: Path, tmp_path: Path, name: str) -> None:
    outputs = {"score": "scored.csv", "report": "report.html"}
    said: list[object] = []
    for options in ([], ["--keep-next-question"]):
        output = str(tmp_path / outputs.get(name, ""))
        arguments = [name, str(run), *options, "--json"]
        if name in outputs:
            arguments += ["-o", output]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        said.append(json.loads(done.stdout))
        if name == "score":
            said[-1] = pl.read_csv(output)["is_correct"].sum()
    assert said[0] != said[1]
    if name == "score":
        assert said == [4, 0]
