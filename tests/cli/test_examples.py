"""Every example of a help text, and of the README's list of commands, runs as it stands."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner, Result

import ttsframe as tts
from ttsframe.cli import cli

Run = Callable[..., Result]

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def examples_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith("ttsframe ")]


def help_examples() -> list[str]:
    context = click.Context(cli)
    found = examples_of(cli.epilog or "")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        own = examples_of(command.epilog or "")
        assert own, name
        assert all(line.startswith(f"ttsframe {name} ") for line in own)
        found += own
    return found


def readme_examples() -> list[str]:
    """Return the block below the table of commands."""
    section = README.read_text(encoding="utf-8").partition("## Command line")[2]
    return examples_of(section.split("```")[1])


def rated_step(text: str, rating: int) -> dict[str, object]:
    completion = {"text": text, "rating": rating, "flagged": False}
    return {"completions": [completion], "chosen_completion": 0, "human_completion": None}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put the sample run under the names that the examples use."""
    folder = tmp_path_factory.mktemp("examples")
    with contextlib.chdir(folder):
        write_files(ROOT / "data" / "sample.jsonl")
    return folder


def write_files(sample: Path) -> None:
    Path("runs").mkdir()
    shutil.copy(sample, "runs/bon.jsonl")
    rows = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    # Copies of a run are a finding of validate.
    other = [row | {"completions": [f"So: {text}" for text in row["completions"]]} for row in rows]
    Path("runs/beam.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in other), encoding="utf-8"
    )
    gold = pl.DataFrame([{"problem": row["problem"], "answer": row["answer"]} for row in rows])
    gold.write_ndjson("math500.jsonl")
    assert CliRunner().invoke(cli, ["score", "runs/*.jsonl", "-o", "scored/"]).exit_code == 0
    shepherd = {
        "input": "1 + 1? Step 1: add ки\nStep 2: 2 ки",
        "label": "1 + 1? Step 1: add +\nStep 2: 2 -",
        "task": "m",
    }
    Path("math-shepherd.jsonl").write_text(json.dumps(shepherd), encoding="utf-8")
    rated = {
        "question": {"problem": "1 + 1?", "ground_truth_answer": "2"},
        "label": {"steps": [rated_step("add", 0), rated_step("2", 1)], "finish_reason": "solution"},
    }
    Path("prm800k.jsonl").write_text(json.dumps(rated), encoding="utf-8")
    rollouts = tts.simulate_trajectories(3, 8, seed=1).select(
        "problem_id",
        solution_id=pl.lit("s"),
        step=pl.lit(0),
        rollout="attempt",
        is_correct="true_is_correct",
    )
    rollouts.write_parquet("rollouts.parquet")
    problems, bank = tts.search.simulate_bank(5, n_children=(4, 2), seed=0)
    bank.write_parquet("bank.parquet")
    problems.write_parquet("questions.parquet")
    runs = [tts.read_trajectories(sample).with_columns(model=pl.lit(name)) for name in "abc"]
    pl.concat(runs).write_parquet("runs.parquet")


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("line", dict.fromkeys([*help_examples(), *readme_examples()]))
def test_it_runs(ttsframe: Run, folder: Path, line: str) -> None:
    _, *arguments = shlex.split(line)
    if arguments[:2] == ["score", "runs/*.jsonl"]:  # into the folder that other examples read
        shutil.rmtree(folder / "scored")
    if "runs/a.jsonl" in arguments:
        for name in "abc":
            shutil.copy(folder / "runs" / "bon.jsonl", folder / "runs" / f"{name}.jsonl")
    before = set(folder.rglob("*"))
    result = ttsframe(*arguments)
    assert result.exit_code == 0, result.stderr
    assert "Warning" not in result.stderr
    made = {path.name for path in set(folder.rglob("*")) - before}
    if "-o" in arguments:
        assert Path(arguments[arguments.index("-o") + 1]).name in made
