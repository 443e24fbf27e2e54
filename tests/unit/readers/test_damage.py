"""A damaged table, text that is not UTF-8, and lines without end: each is named by file, rows and column."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import ttsframe as tts
from ttsframe.cli import cli
from ttsframe.errors import SourceError

N = 40
COLUMNS = ("problem_id", "attempt", "completion", "gold", "answer")
BAD = b"bad \xff\xfe"


def rows() -> list[list[bytes]]:
    """Return rows of which one, the 26th, has an answer that is not UTF-8."""
    made = [[b"p%d" % (i // 4), b"%d" % (i % 4), b"text", b"1", b"%d" % (i % 3)] for i in range(N)]
    made[25][4] = BAD
    return made


def texts(values: list[bytes]) -> pa.Array:
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value))
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    return pa.StringArray.from_buffers(len(values), offsets, pa.py_buffer(b"".join(values)))


def table() -> pa.Table:
    columns = [texts(list(column)) for column in zip(*rows(), strict=True)]
    columns[1] = pa.array([i % 4 for i in range(N)], pa.uint32())
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def write_parquet(path: Path) -> str:
    parquet.write_table(table(), path, row_group_size=20)
    return "rows 21 to 40, column 'answer'"


def write_arrow(path: Path) -> str:
    with pa.ipc.new_file(str(path), table().schema) as writer:
        writer.write_table(table(), max_chunksize=20)
    return "rows 21 to 40, column 'answer'"


def write_csv(path: Path) -> str:
    path.write_bytes(
        b"\n".join([",".join(COLUMNS).encode(), *(b",".join(row) for row in rows())]) + b"\n"
    )
    return "line 27, column 'answer'"


def write_damaged(path: Path) -> str:
    """Write Parquet and damage a page of the second group of rows."""
    run = tts.score_trajectories(tts.simulate_trajectories(20, 8, seed=0)).with_columns(
        answer=pl.col("answer").hash().cast(pl.String)
    )
    run.write_parquet(path, row_group_size=80)
    group = parquet.read_metadata(path).row_group(1)
    columns = [group.column(i) for i in range(group.num_columns)]
    column = next(each for each in columns if each.path_in_schema == "answer")
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    for i in range(start + 40, start + column.total_compressed_size - 40):
        data[i] ^= 0x5A
    path.write_bytes(data)
    return "rows 81 to 160, column 'answer'"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("run.parquet", write_parquet),
        ("run.arrow", write_arrow),
        ("run.csv", write_csv),
        ("run.parquet", write_damaged),
    ],
)
def test_every_command_names_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Callable[[Path], str]
) -> None:
    monkeypatch.chdir(tmp_path)
    place = write(Path(name))
    with pytest.raises(SourceError, match=f"{name}, {place}: cannot be read"):
        tts.read_trajectories(name)
    for command in (
        ["report", "-o", "r.html"],
        ["validate"],
        ["convert", "-o", "c.jsonl"],
        ["score", "-o", "s.parquet"],
        ["vote"],
        ["curve"],
        ["compare"],
        ["rank"],
    ):
        done = CliRunner().invoke(cli, [*command, name])
        assert done.exit_code == 2, done.output
        assert f"Error: {name}, {place}: cannot be read" in done.stderr


def test_a_line_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"problem": "p", "unique_id": "q", "completions": ["a"]}
    last = json.dumps({**row, "unique_id": "r", "completions": ["x" * (9 << 20)]})
    lines = f"{json.dumps(row)}\n{last}\n".encode()
    made = {
        "a.jsonl": (lines, "a.jsonl, a line after byte 0"),
        "a.jsonl.gz": (gzip.compress(lines, 1), "a.jsonl.gz, line 2"),
        "b.jsonl.gz": (gzip.compress(last.encode(), 1), "b.jsonl.gz, line 1"),
        "a.json.gz": (gzip.compress(b"[" + last.encode() + b"]", 1), "a.json.gz"),
        "a.csv.gz": (gzip.compress(b"problem_id,completion\n1," + lines, 1), "a.csv.gz"),
    }
    for name, (data, _) in made.items():
        (tmp_path / name).write_bytes(data)
    assert tts.read_trajectories(tmp_path / "a.jsonl.gz").height == 2
    monkeypatch.setitem(os.environ, "TTSFRAME_MAX_LINE_BYTES", str(1 << 20))
    for name, (_, place) in made.items():
        with pytest.raises(SourceError, match=rf"{place}: holds more than .* Hint: .*MAX_LINE_BYT"):
            tts.read_trajectories(tmp_path / name)
