"""Every command explains itself, and the README knows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import Result

from ttsframe.cli import cli
from ttsframe.readers import READERS
from ttsframe.report import SECTIONS
from ttsframe.steps import STEP_REDUCTIONS
from ttsframe.votes.selectors import SELECTORS

README = Path(__file__).resolve().parents[2] / "README.md"
COMMANDS = [
    "report",
    "validate",
    "convert",
    "score",
    "vote",
    "curve",
    "compare",
    "rank",
    "steps",
    "simulate",
]

Run = Callable[..., Result]


def loaded(name: str) -> click.Command:
    """Return a command with its options."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def test_the_commands_are_these_and_the_main_job_comes_first(ttsframe: Run) -> None:
    text = ttsframe("--help").stdout
    assert re.findall(r"^  (\w+)  +\S", text.partition("Commands:")[2], re.MULTILINE) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_parses_and_explains_every_option(
    ttsframe: Run, name: str
) -> None:
    result = ttsframe(name, "--help")
    assert result.exit_code == 0
    assert "\\b" not in result.stdout
    example = re.search(rf"^  +ttsframe {name} (.+)$", result.stdout, re.MULTILINE)
    assert example is not None
    command = loaded(name)
    command.make_context(name, example[1].split())
    options = [param for param in command.params if isinstance(param, click.Option)]
    assert options
    assert all(option.help for option in options)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_quiet(name: str) -> None:
    names = {option for param in loaded(name).params for option in param.opts}
    assert {"--json", "--quiet"} <= names


@pytest.mark.parametrize("name", ["report", "vote", "curve", "compare"])
def test_choices_are_the_registries(ttsframe: Run, name: str) -> None:
    text = " ".join(ttsframe(name, "--help").stdout.split())
    for registry in (SELECTORS, STEP_REDUCTIONS):
        assert ", ".join(registry) in text
    assert f"[auto|{'|'.join(READERS)}]" in text
    assert (", ".join(SECTIONS) in text) == (name == "report")


def test_version(ttsframe: Run) -> None:
    result = ttsframe("--version")
    assert result.exit_code == 0
    assert version("ttsframe") in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_mentions_every_command(name: str) -> None:
    assert re.search(rf"\bttsframe {name}\b", README.read_text(encoding="utf-8"))
