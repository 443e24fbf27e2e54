"""A run from a pipe: every command reads it, and what writes parts says that it cannot."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ttsframe.cli import cli

Run = Callable[..., Result]


def piped(data: bytes, *args: str) -> Result:
    result = CliRunner().invoke(cli, list(args), input=data, prog_name="ttsframe")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize(
    "command", [("validate",), ("curve", "--budgets", "1,4"), ("vote",), ("compare",)]
)
def test_a_command_prints_the_same_of_a_pipe(
    ttsframe: Run, sample: Path, command: tuple[str, ...]
) -> None:
    name, *options = command
    data = sample.read_bytes()

    for result in (
        piped(data, name, "-", *options),
        piped(gzip.compress(data), name, "-", *options),
    ):
        assert result.stdout == ttsframe(name, sample, *options).stdout


def test_a_file_is_written_from_a_pipe(ttsframe: Run, sample: Path) -> None:
    data = sample.read_bytes()

    assert piped(data, "convert", "-", "-o", "piped.parquet").exit_code == 0
    assert ttsframe("convert", sample, "-o", "read.parquet").exit_code == 0

    piped_run = pl.read_parquet("piped.parquet")
    assert piped_run.sort("problem_id", "attempt").equals(
        pl.read_parquet("read.parquet").sort("problem_id", "attempt")
    )


def test_parts_are_not_written_from_a_pipe(ttsframe: Run, sample: Path) -> None:
    del ttsframe
    result = piped(sample.read_bytes(), "score", "-", "-o", "parts/")

    assert result.exit_code == 2
    assert "needs local files, not standard input. Hint: -o X.parquet" in result.stderr
    assert not Path("parts").exists()


def test_the_options_that_read_a_pipe_are_named(ttsframe: Run) -> None:
    del ttsframe
    row = {"question": "1 + 1?", "response": "2", "ground_truth": "2"}
    result = piped(json.dumps(row).encode(), "validate", "-")

    assert result.exit_code == 2
    options = "--rename response=completion --rename question=problem --rename ground_truth=gold"
    assert "standard input: in no known format; " in result.stderr
    assert f"Hint: {options} reads it as long_form." in result.stderr
    assert piped(json.dumps(row).encode(), "validate", "-", *options.split()).exit_code in {0, 1}


def test_attempts_and_steps_name_the_other_command(ttsframe: Run, sample: Path) -> None:
    result = ttsframe("steps", sample)
    assert result.exit_code == 2
    assert "It holds attempts in format 'search_and_learn'. Hint: " in result.stderr
    Path("steps.jsonl").write_text(
        json.dumps({"prompt": "1?", "completions": ["2"], "labels": [True]})
    )
    result = ttsframe("validate", "steps.jsonl")
    assert (
        "labeled steps in format 'trl'. Hint: tts.read_steps(...) and 'ttsframe steps'"
        in result.stderr
    )
