"""The README is correct: its examples run, its tables match the registries, its links work."""

from __future__ import annotations

import doctest
import re
import runpy
import shutil
import tomllib
from operator import attrgetter
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import ttsframe as tts
from ttsframe.cli import cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
COMMANDS = [
    "pip install . && ttsframe report data/sample.jsonl",
    "pip install -e '.[dev]' && pytest",
]


def section(heading: str) -> str:
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert found, heading
    return found[1]


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the section's table, without its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(heading: str) -> list[str]:
    return [cells[0].strip("`") for cells in rows(heading)]


def test_python_blocks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert sum(block.count(">>> ") for block in blocks) >= 15
    parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)

    results = runner.run(parsed, out=report.append)

    assert not results.failed, "".join(report)


def test_the_page_on_functions_of_ones_own_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = str(ROOT / "docs" / "manual" / "own.md")
    results = doctest.testfile(page, module_relative=False)
    assert results.attempted >= 15
    assert not results.failed


def test_printed_table_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = re.search(
        r"^<!-- output: ttsframe (.*?) -->\n```\n(.*?)^```", README, re.MULTILINE | re.DOTALL
    )
    assert shown
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "sample.jsonl", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    result = CliRunner().invoke(cli, shown[1].split())

    assert result.exit_code == 0, result.output
    assert result.stdout == shown[2]
    assert (tmp_path / "report.html").exists()


def test_marked_blocks_are_the_two_commands() -> None:
    blocks = re.findall(
        r"^<!-- commands.*?-->\n```\n(.*?)^```\n<!-- end of commands -->",
        README,
        re.MULTILINE | re.DOTALL,
    )
    assert [line for block in blocks for line in block.splitlines()] == COMMANDS


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 250


def test_formats_are_all_named() -> None:
    table = README.partition("| files of | formats |")[2].partition("\n\n")[0]
    named = [name for name in re.findall(r"`([a-z_0-9]+)`", table) if name in tts.READERS]
    assert sorted(named) == sorted(tts.READERS)


def test_commands_are_all_named_with_their_help() -> None:
    found = {
        name.split()[1]: cells[1]
        for name, cells in zip(names("Command line"), rows("Command line"), strict=True)
    }
    helps = {name: command.get_short_help_str(200) for name, command in cli.commands.items()}
    assert list(found) == list(helps)
    for name, shown in found.items():
        assert shown.casefold() == helps[name].rstrip(".").casefold(), name


def test_names_in_code_exist() -> None:
    for name in set(re.findall(r"\btts\.(\w+(?:\.\w+)?)", README)):
        attrgetter(name)(tts)


def test_links_lead_to_files_that_are_here() -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert "data/accuracy.svg" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_picture_shows_the_numbers_of_the_sample_run() -> None:
    picture = (ROOT / "data" / "accuracy.svg").read_text(encoding="utf-8")
    run = tts.read_trajectories(ROOT / "data" / "sample.jsonl").pipe(tts.score_trajectories)
    selectors = ["majority_vote", "weighted_vote", "best_of_n", "oracle"]
    problems = run.pipe(tts.select_answers, selectors=selectors, reductions="last", budgets=16)
    accuracy = problems.group_by("selector").agg(pl.col("value").mean())

    for name, value in accuracy.rows():
        assert f"{name.replace('_', ' ')} {value:.1%}" in picture
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", picture)


def test_benchmark_table_has_the_rows_of_its_script() -> None:
    benches = runpy.run_path(str(ROOT / "benchmarks" / "table.py"))["BENCHES"]
    expected = [(row.work, bench.size) for bench in benches for row in bench.rows if row.in_readme]
    assert [(cells[0], cells[1]) for cells in rows("Speed")] == expected
    full = (ROOT / "benchmarks" / "results" / "table.md").read_text(encoding="utf-8")
    every = [(row.work, bench.size) for bench in benches for row in bench.rows]
    assert re.findall(r"^\| (?!work)([^|]+) \| ([^|]+) \|", full, re.MULTILINE) == every
    for cells in rows("Speed"):
        assert f"| {' | '.join(cells)} |" in full


def test_changelog_begins_with_unreleased_and_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    heads = re.findall(r"^## \[(.+?)\](.*)$", CHANGELOG, re.MULTILINE)
    assert heads[0] == ("Unreleased", "")
    assert heads[1][0] == version == tts.__version__
    assert re.fullmatch(r" - \d{4}-\d{2}-\d{2}", heads[1][1])
