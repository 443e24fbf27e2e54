"""Every chart becomes a PNG and an SVG without a network, and is a valid Vega-Lite specification."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ttsframe import charts

CHARTS = {
    "scaling_curve": "curve",
    "optimal_curve": "curve choices",
    "level_bars": "leveled",
    "complexity_curve": "complexities",
    "pareto_frontier": "frontier",
    "level_curves": "leveled",
    "difficulty_histogram": "levels",
    "selection_gap": "gap",
    "step_profile": "profile",
    "answer_votes": "votes",
    "over_optimization": "turns",
    "reduction_comparison": "metrics",
    "reliability": "reliability_curve",
    "score_distribution": "distribution",
    "step_values": "steps",
    "label_agreement": "label_rollouts",
}


def test_every_chart_is_tested_here() -> None:
    assert sorted(CHARTS) == charts.__all__


@pytest.mark.parametrize(("name", "table"), CHARTS.items())
def test_charts_become_files(
    name: str, table: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    chart = getattr(charts, name)(*map(request.getfixturevalue, table.split()))
    chart.save(tmp_path / "chart.png")
    chart.save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (tmp_path / "chart.png").stat().st_size > 10_000
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("name", "table"), CHARTS.items())
def test_charts_carry_their_data(name: str, table: str, request: pytest.FixtureRequest) -> None:
    chart = getattr(charts, name)(*map(request.getfixturevalue, table.split()))
    spec = chart.to_dict(validate=True)
    assert '"url"' not in json.dumps(spec)
    assert sum(len(rows) for rows in spec["datasets"].values()) > 0


def test_charts_need_no_network(curve: pl.DataFrame, tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], check=False).returncode:
        pytest.skip("no way here to take the network away from a process")
    curve.write_parquet(tmp_path / "curve.parquet")
    script = (
        "import polars as pl; from ttsframe import charts; "
        "chart = charts.scaling_curve(pl.read_parquet('curve.parquet')); "
        "chart.save('curve.png'); chart.save('curve.svg')"
    )
    command = [unshare, "-rn", sys.executable, "-c", script]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_importing_the_package_does_not_load_altair() -> None:
    script = "import sys, ttsframe; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
