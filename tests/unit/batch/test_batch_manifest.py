from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from numpydoc.validate import validate

import ttsframe as tts
from ttsframe.batch.manifest import Manifest, fingerprint, make_manifest
from ttsframe.errors import SourceError


def manifest_of(*paths: Path, **options: object) -> Manifest:
    given: dict[str, object] = {
        "gold": None,
        "reading": {"format": "auto", "rename": {}, "on_error": "raise"},
        "by": (),
        "stages": (tts.batch.Score(), tts.batch.Select(budgets=[1, 4])),
        "parts": {"n_rows": 10, "n_bytes": 100},
    }
    return make_manifest(paths, **{**given, **options})  # type: ignore[arg-type]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("{}\n")
    return path


def test_a_manifest_comes_back_from_json(source: Path) -> None:
    manifest = replace(manifest_of(source), layout={"kind": "direct", "n_parts": 1})
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert manifest.versions["polars"] == pl.__version__
    assert manifest.versions["keys"] == tts.answers.AnswerPolicy().prefix


def test_a_touched_file_is_the_same_and_a_changed_one_is_not(source: Path) -> None:
    before = fingerprint(source)
    os.utime(source, (1, 1))
    touched = fingerprint(source)
    assert before.mtime_ns != touched.mtime_ns
    assert before.is_same(touched)
    source.write_text("[]\n")
    assert not before.is_same(fingerprint(source))


@pytest.mark.parametrize("at", [0, 1_000_000, 5_000_000 - 1])
def test_of_a_long_file_beginning_end_and_blocks_between_are_looked_at(
    tmp_path: Path, at: int
) -> None:
    path = tmp_path / "long"
    content = bytearray(5_000_000)
    path.write_bytes(content)
    before = fingerprint(path)
    # A block of 64 KiB begins about every 160 kB.
    content[at : at + 160_000] = b"x" * len(content[at : at + 160_000])
    path.write_bytes(content)
    assert not before.is_same(fingerprint(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone: cannot be read \(No such file"):
        fingerprint(tmp_path / "gone")


def test_what_differs_is_said_exactly(source: Path, tmp_path: Path) -> None:
    manifest = manifest_of(source)
    assert manifest.changes(manifest_of(source)) == []
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n")
    assert manifest.changes(manifest_of(source, other)) == [f"source file {other} is new"]
    assert manifest_of(source, other).changes(manifest) == [f"source file {other} is missing"]
    assert manifest_of(source, other).changes(manifest_of(other, source)) == [
        "source files are in another order"
    ]
    stages = (tts.batch.Score(), tts.batch.Select(budgets=[1, 8]))
    assert manifest.changes(manifest_of(source, stages=stages)) == [
        "select budgets: [1, 4] -> [1, 8]"
    ]
    assert manifest.changes(manifest_of(source, stages=stages[:1])) == [
        "stages: ['score', 'select'] -> ['score']"
    ]
    assert manifest.changes(manifest_of(source, by=("seed",))) == ["by: [] -> ['seed']"]
    assert manifest.changes(manifest_of(source, parts={"n_rows": 20, "n_bytes": 100})) == [
        "parts n_rows: 10 -> 20"
    ]
    later = replace(manifest, versions={**manifest.versions, "polars": "9.9"})
    assert manifest.changes(later) == [f"version of polars: '{pl.__version__}' -> '9.9'"]
    with_gold = manifest_of(source, gold=other)
    assert manifest.changes(with_gold) == [f"gold file {other} is new"]
    other.write_text("{ }")
    assert with_gold.changes(manifest_of(source, gold=other)) == [f"gold file {other} changed"]
    source.write_text("{}\n{}\n")
    assert manifest.changes(manifest_of(source)) == [f"source file {source} changed (3 -> 6 bytes)"]
    source.write_text("[]\n")
    assert manifest.changes(manifest_of(source)) == [f"source file {source} changed"]


def test_many_changed_files_are_counted(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.jsonl" for i in range(6)]
    for path in paths:
        path.write_text("{}")
    changes = manifest_of(paths[0]).changes(manifest_of(*paths))
    assert changes[-1] == "and 2 more"


def test_a_manifest_is_read_from_what_a_job_wrote_and_from_nothing_else(tmp_path: Path) -> None:
    plain = tmp_path / "plain.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(plain)
    with pytest.raises(SourceError, match=r"plain\.parquet: has no manifest; the Parquet metadata"):
        tts.batch.read_manifest(plain)
    with pytest.raises(SourceError, match=r"gone\.parquet: has no manifest, because no Parquet"):
        tts.batch.read_manifest(tmp_path / "gone.parquet")
    later = tmp_path / "later.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(later, metadata={tts.batch.METADATA_KEY: "{}"})
    with pytest.raises(SourceError, match="that this version of ttsframe cannot read"):
        tts.batch.read_manifest(later)


@pytest.mark.parametrize("name", tts.batch.__all__)
def test_public_names_are_documented_in_the_form_of_the_house(name: str) -> None:
    if name in {"ENGINES", "METADATA_KEY", "Stage"}:
        return
    exempt = {"PR04", "SA01", "ES01"} | ({"PR01", "EX01"} if "Engine" in name else set())
    errors = [e for e in validate(f"ttsframe.batch.{name}")["errors"] if e[0] not in exempt]
    assert not errors
