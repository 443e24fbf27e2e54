"""Notebooks are stored with the outputs of the current code."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
assert NOTEBOOKS

VEGA_LITE = "application/vnd.vegalite.v6+json"
HINT = "python notebooks/run.py stores the outputs of the current code"

OF_A_MACHINE = re.compile(
    r"/(root|home|work|tmp|usr|Users)/|\\Users\\|localhost:\d{5}|\.pypi\.|pypi\.org|site-packages"
)
"""Paths, ports and registry hosts."""


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shown(cells: list[dict[str, Any]]) -> list[Any]:
    """Return what the outputs say: texts and chart specifications, without the pictures."""
    outputs: list[Any] = []
    for cell in cells:
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                outputs.append("".join(output["text"]))
                continue
            data = output["data"]
            for kind, value in sorted(data.items()):
                if kind.startswith("text/"):
                    outputs.append("".join(value))
                elif kind == VEGA_LITE:
                    assert "image/png" in data
                    outputs.append(value)
                else:
                    assert kind == "image/png", kind
    return outputs


def inlined(value: Any, datasets: dict[str, Any]) -> Any:
    """Put data in place of their names, which are hashes of all digits."""
    if isinstance(value, dict):
        if value.keys() == {"name"} and value["name"] in datasets:
            return {"values": datasets[value["name"]]}
        datasets = value.get("datasets", datasets)
        return {key: inlined(each, datasets) for key, each in value.items() if key != "datasets"}
    if isinstance(value, list):
        return [inlined(each, datasets) for each in value]
    return value


def assert_same(found: Any, stored: Any) -> None:
    """Compare values; numbers to nine digits, since sums vary with the machine."""
    if isinstance(stored, dict):
        assert found.keys() == stored.keys()
        for key in stored:
            assert_same(found[key], stored[key])
    elif isinstance(stored, list):
        assert len(found) == len(stored)
        for each, other in zip(found, stored, strict=True):
            assert_same(each, other)
    elif isinstance(stored, float):
        assert found == pytest.approx(stored, rel=1e-9, abs=1e-12)
    else:
        assert found == stored


NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def assert_same_text(found: str, stored: str) -> None:
    """Compare texts; their numbers to nine digits."""
    assert NUMBER.sub("0.0", found) == NUMBER.sub("0.0", stored), HINT
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (found, stored)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-12), HINT


def assert_same_chart(found: Any, stored: Any) -> None:
    assert_same(inlined(json.loads(json.dumps(found)), {}), inlined(stored, {}))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_the_current_code(path: Path) -> None:
    stored = shown(code_cells(path))
    assert stored, HINT
    notebook = runpy.run_path(str(FOLDER / "run.py"))["run"](path, draws=False)
    found = shown([cell for cell in notebook.cells if cell.cell_type == "code"])
    assert len(found) == len(stored)
    for each, other in zip(found, stored, strict=True):
        if isinstance(other, str):
            assert_same_text(each, other)
        else:
            assert_same_chart(each, other)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_name_no_machine_and_no_time(path: Path) -> None:
    for cell in code_cells(path):
        assert "ExecuteTime" not in cell["metadata"]
        assert not cell["metadata"].get("execution")
        for text in shown([cell]):
            found = OF_A_MACHINE.search(text if isinstance(text, str) else json.dumps(text))
            assert not found, found


def test_the_comparison_finds_a_changed_number() -> None:
    chart = {"datasets": {"a": [{"x": 1.0}]}, "data": {"name": "a"}, "mark": "bar"}
    same = {"datasets": {"b": [{"x": 1.0 + 1e-13}]}, "data": {"name": "b"}, "mark": "bar"}
    other = {"datasets": {"a": [{"x": 1.001}]}, "data": {"name": "a"}, "mark": "bar"}
    assert_same_chart(same, chart)
    with pytest.raises(AssertionError):
        assert_same_chart(other, chart)
    assert_same_text("x 0.3", "x 0.30000000000000004")
    with pytest.raises(AssertionError):
        assert_same_text("x 0.3", "x 0.31")
    with pytest.raises(AssertionError):
        assert_same_text("x 0.3", "y 0.3")
