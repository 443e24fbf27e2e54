"""Logs of inspect_ai to one row per attempt, beside zipfile with json.loads, and the tool's own data frame.

``TTSFRAME_BENCH_SAMPLES`` sets the number of samples (default 400). The samples are those of a log that
the tool wrote with its mock model, with other texts. ``inspect`` runs where inspect_ai is installed:
``summaries`` is its default, without texts, and ``full`` has the messages.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ttsframe as tts

N_SAMPLES = int(os.environ.get("TTSFRAME_BENCH_SAMPLES", "400"))
N_EPOCHS = 4
LOG = Path(__file__).resolve().parents[1] / "tests" / "data" / "logs" / "inspect_ai.json.gz"
COLUMNS = ["problem_id", "attempt", "completion", "gold", "is_correct", "n_tokens"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = json.loads(gzip.decompress(LOG.read_bytes()))
    model = log.pop("samples")[0]
    rng = random.Random(1)
    words = [f"word{number}" for number in range(2000)]
    file = tmp_path_factory.mktemp("bench") / "run.eval"
    keys = ("id", "epoch", "input", "target", "scores", "model_usage", "metadata", "uuid")
    summaries = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(log))
        for number in range(N_SAMPLES):
            sample = json.loads(json.dumps(model))
            sample |= {
                "id": number // N_EPOCHS,
                "epoch": number % N_EPOCHS + 1,
                "uuid": f"u{number}",
            }
            message = sample["output"]["choices"][0]["message"]
            message["content"] = " ".join(rng.choices(words, k=300))
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample, separators=(",", ":")))  # as the tool does
            summaries.append({**{key: sample[key] for key in keys}, "completed": True})
        archive.writestr("summaries.json", json.dumps(summaries))
        archive.writestr("header.json", json.dumps(log))
    return file


def python_loop(path: Path) -> pl.DataFrame:
    """Read as a script does: a dict per sample."""
    rows = []
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("samples/"):
                sample = json.loads(archive.read(name))
                rows.append({
                    "problem_id": str(sample["id"]),
                    "attempt": sample["epoch"] - 1,
                    "completion": sample["output"]["choices"][0]["message"]["content"],
                    "gold": sample["target"],
                    "is_correct": sample["scores"]["match"]["value"] == "C",
                    "n_tokens": sample["output"]["usage"]["output_tokens"],
                })
    return pl.DataFrame(rows, schema_overrides={"attempt": pl.UInt32})


@pytest.mark.benchmark(group="inspect_ai log to attempts")
@pytest.mark.parametrize("way", ["read", "python", "inspect summaries", "inspect full"])
def test_read(benchmark: BenchmarkFixture, path: Path, way: str) -> None:
    ways: dict[str, Any] = {
        "read": lambda: tts.read_trajectories(path),
        "python": lambda: python_loop(path),
    }
    if way.startswith("inspect"):
        analysis = pytest.importorskip("inspect_ai.analysis")
        columns = analysis.SampleSummary + (analysis.SampleMessages if way.endswith("full") else [])
        ways[way] = lambda: analysis.samples_df(str(path), columns=columns, quiet=True)
    found = benchmark.pedantic(ways[way], rounds=3, warmup_rounds=1)
    assert len(found) == N_SAMPLES
    if not way.startswith("inspect"):
        expected = python_loop(path).sort("problem_id", "attempt")
        assert found.sort("problem_id", "attempt").select(COLUMNS).equals(expected)
