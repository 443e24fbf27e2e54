"""Text tables: nothing is cut away, whatever the width."""

from __future__ import annotations

from itertools import chain

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.cli._console import printable
from ttsframe.cli._tables import curve_text, table_text


@pytest.mark.parametrize("width", [20, 40, 60, 200])
def test_every_cell_is_shown_at_every_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = ["row", *[f"column {i}" for i in range(6)]]
    rows = [[f"r{j}", *[f"cell {j}.{i}" for i in range(6)]] for j in range(3)]
    text = table_text(names, rows, numbers=[False] * 7, n_fixed=1)
    for cell in (*names, *chain(*rows)):
        assert cell in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("row") == len(text.split("\n\n"))


def test_numbers_are_flush_right() -> None:
    text = table_text(["n", "name"], [["1", "a"], ["100", "b"]], numbers=[True, False], n_fixed=0)
    assert text.splitlines() == ["  n  name", "---  ----", "  1  a", "100  b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("α + ½", "α + ½"), ("a\nb", "a\\nb"), ("\x1b[0m", "\\x1b[0m"), ("\u202ex", "\\u202ex")],
)
def test_control_characters_are_written_out(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_counts_that_vary_are_a_range_and_reasons_are_explained() -> None:
    run = tts.simulate_trajectories(10, 4, seed=1, keys=True)
    ragged = run.filter((pl.col("attempt") < 2) | (pl.col("problem_id") < "sim-000006"))
    problems = tts.select_answers(ragged, selectors=["majority_vote"], budgets=[2, 4])
    curve = tts.scaling_curve(problems, include="available", confidence_level=0.9)
    lines = curve_text(curve, confidence_level=0.9).splitlines()
    assert lines[0] == "Accuracy, with 90% intervals over problems"
    assert "problems  6-10" in " ".join("\n".join(lines).split()).replace(
        "problems 6", "problems  6"
    )
    assert "  short: fewer attempts than the largest budget" in lines
