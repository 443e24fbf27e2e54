"""What ttsframe makes for itself beside an output never leads elsewhere through a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ttsframe as tts
from ttsframe.errors import SourceError

S = tts.search


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "run.parquet"
    tts.simulate_trajectories(2, 2, seed=0, keys=True).write_parquet(path)
    return path


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def hard_link(path: Path, target: Path) -> None:
    path.hardlink_to(target)


@pytest.mark.parametrize("make", [link, hard_link])
def test_a_linked_lock_is_refused_and_its_target_kept(
    source: Path, tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("kept")
    make(tmp_path / ".o.parquet.lock", victim)
    with pytest.raises(SourceError, match=r"\.o\.parquet\.lock: is a link"):
        tts.batch.transform(source, tmp_path / "o.parquet")
    assert victim.read_text() == "kept"
    assert not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("inside", [".", "parts"])
def test_a_linked_job_folder_is_refused_and_its_target_kept(
    source: Path, tmp_path: Path, inside: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "manifest.json").write_text("{}")
    folder = tmp_path / ".o.parquet.job"
    if inside == "parts":
        folder.mkdir()
    link(folder / inside if inside == "parts" else folder, victim)
    for restart in (False, True):
        with pytest.raises(SourceError, match=r"\.o\.parquet\.job.*: is a link"):
            tts.batch.transform(source, tmp_path / "o.parquet", restart=restart)
    assert [path.name for path in victim.iterdir()] == ["manifest.json"]


def test_a_linked_journal_is_refused_and_its_target_kept(tmp_path: Path) -> None:
    world = S.simulate(1, seed=0)
    victim = tmp_path / "victim.txt"
    victim.write_text("kept")

    def search() -> None:
        S.search(
            world.problems, world.generator, world.prm, S.Beam(2), seed=0, checkpoint=tmp_path / "s"
        )

    search()
    (tmp_path / "s" / "nodes.parquet").unlink()
    link(tmp_path / "s" / "journal.bin", victim)
    with pytest.raises(SourceError, match=r"journal\.bin: is a link"):
        search()
    assert victim.read_text() == "kept"


def test_a_linked_cache_of_rollouts_is_refused(tmp_path: Path) -> None:
    from ttsframe.process.annotation.store import Folder

    Folder(tmp_path, ["completer"])
    (parts,) = tmp_path.iterdir()
    victim = parts.rename(tmp_path.parent / "victim")
    link(parts, victim)
    with pytest.raises(SourceError, match="is a link"):
        Folder(tmp_path, ["completer"])
