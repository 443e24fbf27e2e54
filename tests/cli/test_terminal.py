"""What a run holds can neither control a terminal nor run in a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

import ttsframe as tts
from ttsframe.cli._console import Console

ESCAPES = "\x1b[2J\x9b31m\u202e\x07"


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    run = tts.simulate_trajectories(3, 4, seed=0, keys=True)
    path = tmp_path / "run.parquet"
    run.with_columns(
        pl.lit("x").alias(f"note{ESCAPES}"), pl.lit(f"m{ESCAPES}").alias("model")
    ).write_parquet(path)
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "-o", "a.jsonl"],
        ["convert", "-o", "b.parquet", "--log-json"],
        ["score", "-o", "c.csv"],
        ["vote", "--by", "model"],
        ["curve", "--by", "model", "--json"],
        ["curve", "--by", f"gone{ESCAPES}"],
        ["validate"],
        ["report", "-o", f"r{ESCAPES}.html", "--by", "model"],
    ],
)
def test_no_command_lets_control_characters_through(
    ttsframe: Callable[..., Result], hostile: str, command: list[str]
) -> None:
    done = ttsframe(*command, hostile)
    said = done.stdout + done.stderr
    assert said
    assert not set(said) & set(ESCAPES.replace("[2J", "").replace("31m", ""))


def test_json_still_holds_what_it_held(capsys: pytest.CaptureFixture[str]) -> None:
    Console(is_json=True).result({"a": ESCAPES})
    said = capsys.readouterr().out
    assert said.strip().isprintable()
    assert json.loads(said) == {"a": ESCAPES}


def test_formulas_are_guarded_in_csv_where_that_is_asked_for(
    ttsframe: Callable[..., Result], tmp_path: Path
) -> None:
    answers = ["=1+1", "+1", "-x", "@a", "\t=1", "\uff1d1", "2", "-3.5", "x=1", None]
    rows = pl.DataFrame({
        "problem_id": "p",
        "attempt": range(len(answers)),
        "answer": answers,
        "gold": "1",
        "=name": -1,
    })
    rows.write_parquet(tmp_path / "run.parquet")
    assert ttsframe("convert", "run.parquet", "-o", "a.csv").exit_code == 0
    assert ttsframe("convert", "run.parquet", "-o", "b.csv", "--guard-formulas").exit_code == 0
    plain = pl.read_csv(tmp_path / "a.csv", infer_schema=False)
    assert plain["answer"].to_list() == answers
    guarded = pl.read_csv(tmp_path / "b.csv", infer_schema=False)
    expected = ["'=1+1", "+1", "'-x", "'@a", "'\t=1", "'\uff1d1", "2", "-3.5", "x=1", None]
    assert guarded["answer"].to_list() == expected
    assert guarded["'=name"].to_list() == ["-1"] * len(answers)
