"""Mistyped names are answered with near ones, and the shell completes names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ttsframe.cli import cli

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("options", "near"),
    [
        (
            ["--selectors", "majority_vot"],
            "Did you mean 'majority_vote' or 'majority_of_the_bests'?",
        ),
        (["--reductions", "last,mn"], "Did you mean 'min' or 'mean'?"),
        (["--weights", "Softmx"], "Did you mean 'softmax'?"),
        (["--style", "box"], "Did you mean 'boxed'?"),
        (["--format", "search-and-learn"], "Did you mean 'search_and_learn'?"),
        (["--answer-policy", "percnt=kept"], "Did you mean 'percent'?"),
        (["--answer-policy", "percent=fractn"], "Did you mean 'fraction'?"),
        (["--by", "problm"], "did you mean 'problem' for 'problm'?"),
        (["--buget", "4"], "Did you mean one of: '--budgets'"),
    ],
)
def test_near_names_are_said(ttsframe: Run, sample: Path, options: list[str], near: str) -> None:
    result = ttsframe("curve", sample, *options)
    assert result.exit_code == 2
    assert near in result.stderr


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["crve"], "'curve'"),
        (["report", "--sections", "acuracy"], "Did you mean 'accuracy'?"),
        (["compare", "--correction", "hlm"], "Did you mean 'holm'?"),
        (["compare", "--column", "selectr"], "did you mean 'selector' for 'selectr'?"),
        (["vote", "--table", "vote"], "Did you mean 'votes'?"),
        (["score", "--reduction", "geometric", "-o", "o.csv"], "Did you mean 'geometric_mean'?"),
        (
            ["score", "--overwrite", "is_corect", "-o", "o.csv"],
            "Did you mean 'is_correct' or 'score'?",
        ),
        (["score", "--engine", "polar", "-o", "o/"], "Did you mean 'polars'?"),
    ],
)
def test_so_does_every_command(
    ttsframe: Run, sample: Path, arguments: list[str], near: str
) -> None:
    command, *options = arguments
    result = ttsframe(command, sample, *options)
    assert result.exit_code == 2
    assert near in result.stderr


def test_a_name_like_none_gets_no_guess(ttsframe: Run, sample: Path) -> None:
    said = ttsframe("curve", sample, "--selectors", "zzzz").stderr
    assert "Did you mean" not in said
    assert "'majority_vote', 'weighted_vote'" in said


def completing(line: str) -> dict[str, str]:
    """Return what bash sets to complete the last word of a command line."""
    return {
        "_TTSFRAME_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ttsframe co", ["plain,convert", "plain,compare"]),
        ("ttsframe curve --bud", ["plain,--budgets"]),
        ("ttsframe curve x --selectors best", ["plain,best_of_n", "plain,best_of_majority"]),
        (
            "ttsframe vote x --selectors oracle,m",
            [
                f"plain,oracle,{name}"
                for name in ("majority_vote", "majority_of_the_bests", "minimum_bayes_risk")
            ],
        ),
        ("ttsframe report x --reductions last,la", []),
        ("ttsframe report x --sections diff", ["plain,difficulty"]),
        ("ttsframe score x --format se", ["plain,search_and_learn"]),
        ("ttsframe curve x --answer-policy units=", ["plain,units=dropped", "plain,units=kept"]),
        ("ttsframe curve run", ["file,run"]),
    ],
)
def test_the_shell_completes(line: str, expected: list[str]) -> None:
    done = CliRunner().invoke(cli, env=completing(line), prog_name="ttsframe")
    assert done.stdout.split() == expected


def test_the_installed_program_completes() -> None:
    code = "import sys; sys.argv[0] = 'ttsframe'; from ttsframe.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | completing("ttsframe curve --bud"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["plain,--budgets"]


def test_the_list_of_commands_is_completed_without_loading_them() -> None:
    code = (
        "import sys, click, ttsframe.cli as c; c.cli.shell_complete(click.Context(c.cli), 'c');"
        "print(sorted(name for name in sys.modules if name.startswith('ttsframe.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['ttsframe.cli._console', 'ttsframe.cli._errors']"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_help_says_how_to_turn_it_on(ttsframe: Run, shell: str) -> None:
    assert f"_TTSFRAME_COMPLETE={shell}_source ttsframe" in ttsframe("--help").stdout
