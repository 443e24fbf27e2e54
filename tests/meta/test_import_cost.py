"""Importing the package is cheap: what is heavy waits until it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LATE = (
    "altair",
    "vl_convert",
    "scipy",
    "sympy",
    "flint",
    "latex2sympy2",
    "antlr4",
    "pyarrow",
    "pandas",
    "click",
    "httpx",
    "ray",
    "numpy",
)


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after some code."""
    return {name.split(".")[0] for name in modules_after(code)}


def modules_after(code: str) -> set[str]:
    """Return all modules that a fresh interpreter has loaded after some code."""
    program = f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    return set(done.stderr.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_after("import ttsframe")
    assert {"ttsframe", "polars"} <= loaded
    assert not loaded & set(LATE)


def test_packages_load_on_first_use() -> None:
    loaded = modules_after("import ttsframe as tts; tts.step_last('step_scores')")
    own = {name for name in loaded if name.startswith("ttsframe.")}
    assert "ttsframe.steps" in own
    packages = {name.split(".")[1] for name in own}
    assert packages <= {
        "_forks",
        "_namespace",
        "_program",
        "_typing",
        "_settings",
        "errors",
        "_exprs",
        "_checks",
        "_own",
        "steps",
    }


HELP = """
from ttsframe.cli import main
try:
    main(["--help"])
except SystemExit as end:
    assert end.code == 0
"""


def test_the_list_of_commands_loads_no_command() -> None:
    own = {name for name in modules_after(HELP) if name.startswith("ttsframe.")}
    light = {"_forks", "_namespace", "_program", "_settings", "errors"}
    assert {name.split(".")[1] for name in own} == {*light, "cli"}
    assert all(name.startswith("ttsframe.cli._") for name in own if name.count(".") > 1)


ANALYSIS = """
import ttsframe as tts
run = tts.simulate_trajectories(4, 4, seed=0, keys=True)
curve = run.pipe(tts.select_answers, budgets=[1, 4]).pipe(tts.scaling_curve)
assert curve.height == 6
assert tts.build_report(run).curve.height == 12
"""


def test_votes_and_curves_need_neither_charts_nor_answers() -> None:
    modules = modules_after(ANALYSIS)
    assert "ttsframe.report.sections.search" in modules
    assert "ttsframe.search" not in modules
    assert not {name.split(".")[0] for name in modules} & {
        "altair",
        "vl_convert",
        "sympy",
        "latex2sympy2",
        "antlr4",
        "flint",
        "click",
    }


@pytest.mark.parametrize(("code", "name"), [("import ttsframe.charts", "altair")])
def test_what_is_heavy_comes_by_name(code: str, name: str) -> None:
    assert name in loaded_after(code)
