"""Run the command line in this process, with its two streams apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ttsframe.cli import cli

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sample() -> Path:
    return ROOT / "data" / "sample.jsonl"


@pytest.fixture
def lines(sample: Path) -> list[str]:
    return sample.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def ttsframe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return a function that runs a command in an empty folder; a traceback fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: object) -> Result:
        result = CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="ttsframe")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
