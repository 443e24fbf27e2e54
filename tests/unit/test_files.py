from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest

from ttsframe._files import replacing
from ttsframe.errors import SourceError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with replacing(target) as path:
        path.write_text("half")
        assert not target.exists()
        # On the same disk, under the same name, where no glob of the folder finds it.
        assert (path.name, path.parent.parent) == (target.name, tmp_path)
        assert path.parent.name.startswith(".")
        path.write_text("whole")
    assert target.read_text() == "whole"
    assert names(tmp_path) == ["out.txt"]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def write_half() -> None:
        with replacing(str(target)) as path:
            path.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def test_a_failing_query_leaves_the_old_table(tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(target)
    failing = pl.LazyFrame({"a": ["x"]}).with_columns(pl.col("a").cast(pl.Int64))
    # The file of a sink that fails is at times created after the error has been raised.
    for _ in range(50):
        with pytest.raises(pl.exceptions.InvalidOperationError), replacing(target) as path:
            failing.sink_parquet(path)
    time.sleep(0.05)
    assert pl.read_parquet(target)["a"].to_list() == [1]
    assert names(tmp_path) == ["out.parquet"]


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("a much longer old text")
    with replacing(target) as path:
        path.write_text("new")
    assert target.read_text() == "new"


def test_nothing_written_is_an_error_and_no_empty_file(tmp_path: Path) -> None:
    with (
        pytest.raises(SourceError, match=r"out\.txt: could not be written"),
        replacing(tmp_path / "out.txt"),
    ):
        pass
    assert names(tmp_path) == []


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with replacing(target) as first, replacing(target) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first"
    assert names(tmp_path) == ["out.txt"]


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a folder, must be a file"), replacing(tmp_path):
        pytest.fail("nothing can be written there")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    target = tmp_path / "gone" / "out.txt"
    with (
        pytest.raises(SourceError, match=r"gone: no such folder, so out\.txt cannot"),
        replacing(target),
    ):
        pytest.fail("nothing can be written there")
