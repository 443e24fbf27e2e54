"""A library that cannot be imported is an error of every command, and never changes a grade."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

import ttsframe as tts
from ttsframe.answers.lookup import table, worker


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a run with an integral, in a process whose workers cannot import sympy."""
    script = tmp_path / "child.py"
    reply = '{"status": "unavailable", "value": "ModuleNotFoundError: no module"}'
    script.write_text(f"print({reply!r}, flush=True)")
    pool = worker._Pool()
    monkeypatch.setattr(worker, "_CHILD", script)
    monkeypatch.setattr(worker, "_pool", pool)
    monkeypatch.setattr(table, "_tables", {})
    frame = pl.DataFrame({
        "problem_id": ["a", "a"],
        "attempt": pl.Series([0, 1], dtype=pl.UInt32),
        "answer": [r"\int_0^1 x dx", "2"],
        "gold": ["1/2", "1/2"],
    })
    frame.write_parquet(tmp_path / "run.parquet")
    yield tmp_path / "run.parquet"
    pool.close()


@pytest.mark.parametrize(
    "arguments", [["score", "-o", "out.parquet"], ["vote"], ["curve"], ["report"], ["validate"]]
)
def test_commands_end_with_the_error(
    ttsframe: Callable[..., Result], run: Path, arguments: list[str]
) -> None:
    result = ttsframe(*arguments[:1], run, *arguments[1:])
    assert result.exit_code == 2
    assert "sympy cannot be imported" in result.output
    assert not Path("out.parquet").exists()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_queries_end_with_the_error(run: Path, engine: str) -> None:
    scored = tts.score_trajectories(pl.scan_parquet(run))
    with pytest.raises(tts.errors.MissingExtraError, match="sympy cannot be imported"):
        scored.collect(engine=engine)  # type: ignore[call-overload]
