"""JSON rows: nothing lost silently, every fault named by file and line, on both engines."""

from __future__ import annotations

import bz2
import gzip
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ttsframe as tts
from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers.engine import chunks as _chunks
from ttsframe.readers.engine import dtypes as _dtypes
from ttsframe.readers.engine import json_rows as _json_rows
from ttsframe.readers.engine import jsonl as _jsonl
from ttsframe.readers.engine import sniff as _sniff

ENGINES = ("in-memory", "streaming")
N = 100


def row(number: int, **other: object) -> dict[str, Any]:
    return {
        "problem": f"What is {number} + 1?",
        "answer": str(number + 1),
        "completions": [f"{number} a", f"{number} b"],
        "scores": [[0.5, 0.25], [number / 128]],
        "unique_id": f"q{number}",
        **other,
    }


LINES = [json.dumps(row(number)) for number in range(N)]


def file_with(folder: Path, line: str | bytes, at: int = 41) -> Path:
    """Write a run whose line ``at + 1`` is this one, among a hundred."""
    lines = [text.encode() for text in LINES]
    lines[at] = line.encode() if isinstance(line, str) else line
    path = folder / "run.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(params=ENGINES)
def collect(request: pytest.FixtureRequest) -> Callable[[Path], pl.DataFrame]:
    return lambda path: tts.scan_trajectories(path).collect(engine=request.param)


# -- faults ---------------------------------------------------------------------------------------

FAULTS = {
    "malformed": ('{"problem": oops}', "not JSON at column 13, near '{\"problem\": oops}'"),
    "two objects": (LINES[1] + LINES[2], "a second value follows at column"),
    "text after": (LINES[1] + " ,", "text follows the object at column"),
    "unclosed": (LINES[1][:-1], "not JSON at column"),
    "a list": ("[1]", "holds a list, must hold one JSON object"),
    "a number": ("3", r"holds a number \(3\), must hold one JSON object"),
    "not UTF-8": (b'{"problem": "\xff"}', "byte 14 is not UTF-8"),
    "control character": (
        '{"problem": "a\tb"}',
        r"not JSON at column 15, near .* \(Invalid control character",
    ),
    "too deep": ('{"x": ' + "[" * 5000 + "]" * 5000 + "}", "brackets are nested too deeply"),
    "too many digits": ('{"x": ' + "1" * 5000 + "}", "holds a number with too many digits"),
    "text for a score": (
        json.dumps(row(41, scores=[[0.5, "high"], [0.1]])),
        r"scores\[0\]\[1\] is a string \('high'\), must be a number",
    ),
    "boolean for a score": (
        json.dumps(row(41, scores=[[0.5], [True]])),
        r"scores\[1\]\[0\] is a boolean \(True\), must be a number",
    ),
    "number for a list": (
        json.dumps(row(41, scores=0.5)),
        r"scores is a number \(0.5\), must be a list",
    ),
    "text for a list": (
        json.dumps(row(41, completions="one")),
        r"completions is a string \('one'\), must be a list",
    ),
    "object for a score list": (
        json.dumps(row(41, scores=[{"a": 1}, [0.1]])),
        r"scores\[0\] is an object, must be a list",
    ),
    "lengths": (
        json.dumps(row(41, scores=[[0.5]])),
        "problem 'q41' has 2 'completions' but 1 'scores'; the two lists must have the same length",
    ),
    "no attempts": (
        json.dumps(row(41, completions=[])),
        "problem 'q41' has no attempt: 'completions' is an empty list",
    ),
    "no list": (
        json.dumps(row(41, completions=None)),
        "problem 'q41' has no attempt: 'completions' is null",
    ),
    "no id": (json.dumps(row(41, unique_id=None)), "problem_id is null"),
}


@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_file_line_and_way_out(
    tmp_path: Path, collect: Callable[[Path], pl.DataFrame], line: str, reason: str
) -> None:
    path = file_with(tmp_path, line)

    with pytest.raises(SourceError, match=rf"run\.jsonl, line 42: {reason}") as caught:
        collect(path)

    assert 'Hint: repair the row, or on_error="skip" leaves such rows out' in str(caught.value)
    with pytest.raises(SourceError, match=r"run\.jsonl, line 42: "):
        tts.read_trajectories(path)


@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_skipping_keeps_the_rest_and_counts(tmp_path: Path, line: str, reason: str) -> None:
    path = file_with(tmp_path, line)

    with pytest.warns(
        tts.errors.SkippedRowsWarning, match=rf"^1 row skipped: .*line 42: {reason}"
    ) as caught:
        frame = tts.scan_trajectories(path, on_error="skip")

    assert [warning.message.n_skipped for warning in caught] == [1]  # type: ignore[union-attr]
    expected = [f"q{number}" for number in range(N) if number != 41 for _ in range(2)]
    for engine in ENGINES:
        # also where the columns asked for are not those that are wrong
        for columns in (["problem_id"], ["problem_id", "step_scores"], ["gold", "problem_id"]):
            kept = frame.select(columns).collect(engine=engine)
            assert kept["problem_id"].to_list() == expected


def test_skipping_with_nothing_to_skip_says_nothing(tmp_path: Path) -> None:
    path = file_with(tmp_path, LINES[41])

    assert tts.read_trajectories(path, on_error="skip").equals(tts.read_trajectories(path))


def test_many_skipped_rows_are_all_counted_and_some_shown(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES[:50] + ["oops {"] * 7 + LINES[50:]))

    with pytest.warns(
        tts.errors.SkippedRowsWarning, match="^7 rows skipped: .*line 55: .* and 2 more.$"
    ):
        frame = tts.read_trajectories(path, on_error="skip")

    assert frame.height == 2 * N


def test_a_value_error_waits_for_the_columns_that_hold_it(tmp_path: Path) -> None:
    path = file_with(tmp_path, json.dumps(row(41, solution="s", agg_scores=["x", "y"])))

    with pytest.raises(SourceError, match=r"line 42: agg_scores\[0\] is a string"):
        tts.scan_trajectories(path).select("agg_scores").collect()


@pytest.mark.parametrize("lost", [1, 20, 60, 100])
def test_a_file_that_is_cut_off_says_so(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES)[:-lost])

    with pytest.raises(
        SourceError, match=r"run\.jsonl, line 100: is cut off after \d+ characters, .* "
    ):
        tts.scan_trajectories(path)


def test_a_run_of_one_cut_off_line_is_not_taken_for_another_format(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(LINES[0][:80])

    with pytest.raises(SourceError, match=r"run\.jsonl, line 1: is cut off after 80 characters"):
        tts.scan_trajectories(path)


def test_an_array_that_is_cut_off_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    whole = json.dumps([row(number) for number in range(10)], indent=1)
    path.write_text(whole[:-60])
    with pytest.raises(SourceError, match=r"run\.json, element 10: is cut off after"):
        tts.scan_trajectories(path)
    path.write_text(whole.rstrip("]\n "))
    with pytest.raises(SourceError, match=r"run\.json, element 11: the array has no end"):
        tts.scan_trajectories(path)
    with pytest.warns(tts.errors.SkippedRowsWarning, match="^1 row skipped"):
        assert tts.read_trajectories(path, on_error="skip").height == 20
    path.write_text(whole + "garbage")
    with pytest.raises(SourceError, match=r"element 11: not JSON at column 1, near 'garbage'"):
        tts.scan_trajectories(path)


def test_an_array_that_is_not_utf_8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b'[{"problem": "\xff"}]')

    with pytest.raises(SourceError, match=r"run\.json, byte 14: is not UTF-8"):
        tts.scan_trajectories(path)


def test_an_array_larger_than_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: pl.DataFrame
) -> None:
    monkeypatch.setattr(_chunks, "CHUNK_BYTES", 1_000)
    path = tmp_path / "run.json"
    rows = [json.loads(line) for line in LINES]
    path.write_text(json.dumps(rows, indent=2))
    assert tts.read_trajectories(path).equals(plain)

    path.write_text(json.dumps([*rows[:70], row(70, scores=[[0.5]])]))
    with pytest.raises(SourceError, match=r"run\.json, element 71: problem 'q70'"):
        tts.read_trajectories(path)


EMPTY = {
    b"": "is empty (0 bytes)",
    b"\n \r\n\n": "holds no rows, only white space",
    b"[]": "holds no rows",
    b"{}": "holds no rows",
    b"a,b\n1,2\n": "in no known format; found columns: ['a', 'b']",
    b"a text\nof words": "is neither Parquet, Arrow IPC, JSON nor CSV",
    '{"problem": 1}'.encode("utf-16"): "is UTF-16 text, must be UTF-8. Hint: iconv",
    b"PAR1 and then nothing": "cannot be read as Parquet",
    b"ARROW1 and then nothing": "cannot be read as Arrow IPC",
    gzip.compress("\n".join(LINES).encode())[:-9]: "cannot be read (",
}


@pytest.mark.parametrize(("content", "reason"), EMPTY.items(), ids=EMPTY.values())
def test_a_file_that_is_no_table_says_what_it_is(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)

    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(path)

    assert str(caught.value).startswith(f"{path}: {reason}")


# -- what JSON writers do -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    path = tmp_path_factory.mktemp("plain") / "run.jsonl"
    path.write_text("\n".join(LINES))
    return tts.read_trajectories(path)


def _compressed_zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


JSONL = "\n".join(LINES).encode()
WRITINGS: dict[str, bytes] = {
    "line end at the end": JSONL + b"\n",
    "blank lines": JSONL.replace(b"\n", b"\n\n  \n"),
    "CRLF": JSONL.replace(b"\n", b"\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + JSONL,
    "array": b"[" + b",".join(line.encode() for line in LINES) + b"]",
    "array laid out": json.dumps([json.loads(line) for line in LINES], indent=4).encode(),
    "array with a byte order mark": b"\xef\xbb\xbf \n[" + JSONL.replace(b"\n", b",\n") + b"\n]\n",
    "objects laid out": "\n".join(
        json.dumps(json.loads(line), indent=2) for line in LINES
    ).encode(),
    "gzip": gzip.compress(JSONL),
    "gzip in members": gzip.compress(JSONL[:5000]) + gzip.compress(JSONL[5000:]),
    "bzip2": bz2.compress(JSONL),
    "zstd": _compressed_zstd(JSONL),
}


@pytest.mark.parametrize("content", WRITINGS.values(), ids=WRITINGS)
def test_the_same_rows_however_written(
    tmp_path: Path, plain: pl.DataFrame, collect: Callable[[Path], pl.DataFrame], content: bytes
) -> None:
    path = tmp_path / "whatever.name"
    path.write_bytes(content)

    assert collect(path).equals(plain)


def test_line_numbers_count_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n\n".join([*LINES[:20], json.dumps(row(20, scores=[[0.5]])), *LINES[21:]]))

    with pytest.raises(SourceError, match="line 41: problem 'q20'"):
        tts.read_trajectories(path)


def test_nan_and_infinity_are_read(tmp_path: Path, collect: Callable[[Path], pl.DataFrame]) -> None:
    scores = [[math.nan, 0.5], [math.inf, -math.inf]]
    path = file_with(tmp_path, json.dumps(row(41, scores=scores)))

    frame = collect(path)

    found = frame.filter(pl.col("problem_id") == "q41")["step_scores"].to_list()
    assert math.isnan(found[0][0])
    assert found[0][1:] == [0.5]
    assert found[1] == [math.inf, -math.inf]
    assert frame["problem_id"].to_list() == [f"q{number}" for number in range(N) for _ in range(2)]


def test_half_a_surrogate_pair_becomes_the_replacement_character(
    tmp_path: Path, collect: Callable[[Path], pl.DataFrame]
) -> None:
    texts = ["cut \ud83d here", "whole \U0001f600, \udc00 alone, and a literal \\ud800"]
    path = file_with(tmp_path, json.dumps(row(41, completions=texts)))

    frame = collect(path)

    assert frame.filter(pl.col("problem_id") == "q41")["completion"].to_list() == [
        "cut \ufffd here",
        "whole \U0001f600, \ufffd alone, and a literal \\ud800",
    ]


def test_a_nul_character_stays(tmp_path: Path) -> None:
    path = file_with(tmp_path, json.dumps(row(41, completions=["a\0b", "c"])))

    assert tts.read_trajectories(path)["completion"][82] == "a\0b"


@pytest.mark.parametrize("suffix", ["", ', "note": NaN'], ids=["fast", "slow"])
def test_of_a_key_that_comes_twice_the_first_value_counts(tmp_path: Path, suffix: str) -> None:
    path = file_with(tmp_path, LINES[41][:-1] + ', "answer": "other"' + suffix + "}")

    assert tts.read_trajectories(path)["gold"].to_list()[82] == "42"


def test_null_lists_and_missing_lists_are_null_for_each_attempt(tmp_path: Path) -> None:
    lacking = row(42)
    del lacking["scores"]
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, [row(40), row(41, scores=None), lacking])))

    frame = tts.read_trajectories(path)

    assert frame["step_scores"].to_list() == [[0.5, 0.25], [40 / 128], None, None, None, None]
    assert frame["attempt"].to_list() == [0, 1] * 3


# -- columns of the source ------------------------------------------------------------------------

MIXED = {
    "int then float": ([1, 2.5], pl.Float64(), [1.0, 2.5]),
    "int then text": ([1, "hard"], pl.String(), ["1", "hard"]),
    "int then true": ([1, True], pl.String(), ["1", "true"]),
    "true then null": ([True, None], pl.Boolean(), [True, None]),
    "null then list": ([None, [1, 2]], pl.List(pl.Int64()), [None, [1, 2]]),
    "empty then floats": ([[], [0.5]], pl.List(pl.Float64()), [[], [0.5]]),
    "nulls in lists": ([[None], [0.5]], pl.List(pl.Float64()), [[None], [0.5]]),
    "list then number": ([[1], 2], pl.String(), ["[1]", "2"]),
    "object then text": ([{"a": 1}, "x"], pl.String(), ['{"a": 1}', "x"]),
    "fields that differ": (
        [{"a": 1}, {"b": "x"}],
        pl.Struct({"a": pl.Int64(), "b": pl.String()}),
        [{"a": 1, "b": None}, {"a": None, "b": "x"}],
    ),
    "only null": ([None, None], pl.String(), [None, None]),
    "only empty lists": ([[], []], pl.List(pl.String()), [[], []]),
    "empty objects": ([{}, {}], pl.String(), ["{}", "{}"]),
    "large integers": ([2**63 - 1, -(2**63)], pl.Int64(), [2**63 - 1, -(2**63)]),
    "larger integers": ([2**63, 1], pl.String(), [str(2**63), "1"]),
}


@pytest.mark.parametrize(("values", "dtype", "expected"), MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("gap", [0, 20_000], ids=["together", "far apart"])
def test_columns_that_mix_types_lose_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    values: list[Any],
    dtype: pl.DataType,
    expected: list[Any],
    gap: int,
) -> None:
    monkeypatch.setattr(_chunks, "CHUNK_BYTES", 4_096)  # far apart is in different chunks
    first, last = (row(number, extra=value) for number, value in enumerate(values))
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(first) + "\n" + " " * gap + "\n" + json.dumps(last))

    frame = tts.read_trajectories(path)

    assert frame.schema["extra"] == dtype
    assert frame["extra"].gather_every(2).to_list() == expected


def test_a_column_that_starts_late_is_found(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join([*LINES, json.dumps(row(N, late={"seconds": 1.5}))]))

    frame = tts.read_trajectories(path)

    assert frame["late"].to_list() == [None] * (2 * N) + [{"seconds": 1.5}] * 2


@pytest.mark.parametrize("is_slow", [False, True])
def test_wild_structures_become_text(tmp_path: Path, *, is_slow: bool) -> None:
    nested: Any = 1
    for _ in range(40):
        nested = [nested]
    wide = {f"key{number}": number for number in range(1_000)}
    path = tmp_path / "run.jsonl"
    not_for_polars = ', "note": NaN}' if is_slow else "}"
    path.write_text(json.dumps(row(0, nested=nested, wide=wide))[:-1] + not_for_polars)

    frame = tts.read_trajectories(path)

    assert frame.schema["wide"] == pl.String
    assert json.loads(frame["wide"][0]) == wide
    assert str(frame["nested"].to_list()[0]).count("1") == 1


def test_a_list_where_a_text_belongs_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(row(0, answer=["1", "2"])))

    with pytest.raises(
        ColumnsError,
        match=r"column 'answer' is List\(String\), must be String, one value per attempt. Hint",
    ):
        tts.scan_trajectories(path)


# -- the machinery --------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@example(rows=[{"a": None, "c": 0.0}, {"a": None, "b": None, "c": []}], chunk_bytes=16)
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abc"), JSON_VALUES, min_size=1), min_size=1, max_size=12
    ),
    chunk_bytes=st.sampled_from([16, 64, 1 << 20]),
)
def test_any_json_rows_can_be_read_and_none_is_lost(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], chunk_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    file = _sniff.sniff(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_chunks, "CHUNK_BYTES", chunk_bytes)
        found = _jsonl.inspect_file(file, frozenset())
        schema = {
            name: _dtypes.resolve_dtype(dtype, unseen=pl.String())
            for name, dtype in found.dtypes.items()
        }
        item = _jsonl.JsonFile(file, found.has_lone_surrogates, frozenset())
        frame = _jsonl.scan([item], schema).collect()
        in_spans = _jsonl.scan([item._replace(spans=tuple(found.spans))], schema).collect()

    assert found.faults == []
    assert in_spans.equals(frame)
    assert frame.height == len(rows) == found.n_rows
    assert set(schema) == {name for row in rows for name in row}
    assert frame[_jsonl.ROW].to_list() == list(range(1, len(rows) + 1))
    for name in schema:
        is_null = [row.get(name) is None for row in rows]
        assert frame[name].is_null().to_list() == is_null


@given(content=st.text(alphabet='{}[]",: 1\n', max_size=60), parts=st.integers(0, 3))
def test_chunks_are_the_file_and_number_its_lines(
    tmp_path_factory: pytest.TempPathFactory, content: str, parts: int
) -> None:
    path = tmp_path_factory.mktemp("chunks") / "lines"
    path.write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_chunks, "CHUNK_BYTES", 7)
        chunks = list(_chunks.read_chunks(_sniff.DataFile(path, "jsonl", None)))
    for _ in range(parts):
        chunks = [half for chunk in chunks for half in chunk.halves() or [chunk]]

    found = [(number, line.decode()) for chunk in chunks for number, line, _ in chunk.rows()]

    lines = content.encode().decode().split("\n")
    assert found == [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


@given(
    content=st.text(alphabet="a\n", max_size=60).map(str.encode),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    chunk_bytes=st.integers(1, 20),
)
def test_spans_are_whole_lines_and_together_the_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, mark: bytes, chunk_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("spans") / "lines"
    path.write_bytes(mark + content)
    file = _sniff.DataFile(path, "jsonl", None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_chunks, "CHUNK_BYTES", chunk_bytes)
        spans = _chunks.cut_spans(file)

    pieces = [_chunks.read_span(file, span).data for span in spans]
    assert b"".join(pieces) == content
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    ends = [0, *(span.end for span in spans)]
    assert [span.start for span in spans] == ends[:-1]
    assert ends[-1] == path.stat().st_size
    # as small as whole lines allow
    lengths = [max(map(len, piece.split(b"\n"))) for piece in pieces]
    assert all(
        len(piece) <= len(mark) + chunk_bytes + length
        for piece, length in zip(pieces, lengths, strict=True)
    )


@pytest.mark.parametrize("chunk_bytes", [64, 1_000, 1 << 20])
def test_faults_and_spans_are_numbered_across_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(_chunks, "CHUNK_BYTES", chunk_bytes)
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join([*LINES[:40], "", "  ", "oops", *LINES[40:], "[1]", ""]))

    found = _jsonl.inspect_file(_sniff.sniff(path), frozenset())

    assert [fault.row for fault in found.faults] == [43, 104]
    data = path.read_bytes()
    for span in found.spans:
        assert span.first == 1 + data[: span.start].count(b"\n")


LOOKALIKES = st.sampled_from(["a", '"a":1,', '{"a": true}', "true", "1", '\\"a":', "\n", "[1]"])
DTYPES: dict[pl.DataType, Callable[[Any], bool]] = {
    pl.Null(): lambda _: False,
    pl.Boolean(): lambda value: isinstance(value, bool),
    pl.Int64(): lambda value: type(value) is int,
    pl.Float64(): lambda value: type(value) in {int, float},
}


def is_of(value: object, dtype: pl.DataType) -> bool:
    """Tell whether a JSON value is null or of a dtype, and so are the items of a list."""
    if value is None:
        return True
    if isinstance(dtype, pl.List):
        inner = _dtypes.as_instance(dtype.inner)
        return isinstance(value, list) and all(is_of(item, inner) for item in value)
    return DTYPES[dtype](value)


@given(
    rows=st.lists(
        st.dictionaries(
            st.sampled_from("ab") | LOOKALIKES, JSON_VALUES | LOOKALIKES, min_size=1, max_size=3
        ),
        min_size=1,
        max_size=4,
    ),
    scalar=st.sampled_from([*DTYPES]),
    depth=st.integers(0, 2),
    is_compact=st.booleans(),
)
def test_what_a_search_says_of_a_column_is_so(
    rows: list[dict[str, Any]], scalar: pl.DataType, depth: int, *, is_compact: bool
) -> None:
    dtype = scalar
    for _ in range(depth):
        dtype = pl.List(dtype)
    separators = (",", ":") if is_compact else None
    data = "\n".join(json.dumps(row, separators=separators) for row in rows).encode()

    is_fitting = "a" in _jsonl.search(data, {"a": dtype}).confirmed

    assert not is_fitting or all(is_of(row.get("a"), dtype) for row in rows)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, -2, None, 10**17], pl.Int64()),
        ([1, -2.5, 1e300, -1e-7, None], pl.Float64()),
        ([True, False, None], pl.Boolean()),
        ([[1, 2], [], None, [None, 3]], pl.List(pl.Int64())),
        ([[[0.5], []], [[1e-9, None], None]], pl.List(pl.List(pl.Float64()))),
        ([[], [[], None]], pl.List(pl.List(pl.Null()))),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_search_finds_what_is_plain(
    values: list[Any], dtype: pl.DataType, indent: int | None
) -> None:
    rows = [{"a": value, "text": 'not "a": true', "last": value} for value in values]
    lines = [json.dumps(row, indent=indent).replace("\n", "\t") for row in rows]

    found = _jsonl.search("\n".join(lines).encode(), {"a": dtype, "last": dtype, "no": dtype})

    assert found.confirmed == {"a", "last", "no"}
    assert not found.may_hold_surrogates


def test_a_file_that_lost_rows_after_the_scan_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES) + "\n")
    scan = tts.scan_trajectories(path)
    size = path.stat().st_size
    path.write_text("\n".join(LINES[:50]) + "\n")

    with pytest.raises(
        SourceError,
        match=rf"run\.jsonl: has {path.stat().st_size:,} bytes, had at least {size:,} when",
    ):
        scan.collect()


def test_rows_that_were_added_after_the_scan_are_left_out(
    tmp_path: Path, plain: pl.DataFrame
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES) + "\n")
    scan = tts.scan_trajectories(path)
    with path.open("a") as stream:
        stream.write('{"problem": ')

    assert scan.collect().equals(plain)


def test_a_scan_can_be_dropped_by_one_of_its_own_threads() -> None:
    is_begun, is_dropped = threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item == 1:
            is_begun.wait(10)
            numbers.close()
            is_dropped.set()
        return item

    numbers = _jsonl.on_all_cores(work, range(1_000))
    assert next(numbers) == 0
    is_begun.set()

    assert is_dropped.wait(10)
    assert list(numbers) == []


def test_python_filters_stay_where_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES))
    wanted = pl.col("problem_id").map_batches(
        lambda ids: ids.str.ends_with("7"), return_dtype=pl.Boolean, is_elementwise=True
    )

    for engine in ENGINES:
        frame = tts.scan_trajectories(path).filter(wanted).select("gold").collect(engine=engine)
        assert frame.height == 20


def test_projections_slices_and_counts(tmp_path: Path, plain: pl.DataFrame) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES))
    scan = tts.scan_trajectories(path)

    for engine in ENGINES:
        assert scan.select(pl.len()).collect(engine=engine).item() == 2 * N
        assert scan.head(5).collect(engine=engine).equals(plain.head(5))
        assert scan.slice(7, 3).collect(engine=engine).equals(plain.slice(7, 3))
        assert (
            scan.select("gold").tail(3).collect(engine=engine).equals(plain.select("gold").tail(3))
        )
        both = pl.concat([scan, scan]).collect(engine=engine)
        assert both.equals(pl.concat([plain, plain]))


def test_small_and_large_chunks_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: pl.DataFrame
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(LINES))
    for size in (10, 100, 1_000, 10_000):
        monkeypatch.setattr(_chunks, "CHUNK_BYTES", size)
        assert tts.read_trajectories(path).equals(plain)


@pytest.mark.parametrize("name", ["extra", "größe"])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_objects_among_texts_become_json_that_can_be_read(
    tmp_path: Path, collect: Callable[[Path], pl.DataFrame], name: str, ensure_ascii: bool
) -> None:
    values: list[Any] = ["{not json", {"a": '\\frac{1}{2} "q"'}, ["x\\y\n", 1], 3, None]
    rows = [row(number, **{name: value}) for number, value in enumerate(values)]
    path = tmp_path / "run.jsonl"
    lines = (json.dumps(each, ensure_ascii=ensure_ascii) for each in rows)
    path.write_text("\n".join(lines), encoding="utf-8")

    found = collect(path).unique("problem_id").sort("problem_id")[name].to_list()

    assert found[0] == values[0]
    assert [json.loads(text) for text in found[1:4]] == values[1:4]
    assert found[4] is None


def test_no_column_is_taken_for_one_of_the_readers_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(row(0, __row=7, __file="mine")), encoding="utf-8")

    assert tts.read_trajectories(path).select("__row", "__file").row(0) == (7, "mine")


@pytest.mark.parametrize("number", ["0.0", "1.0", "-0.0", "1.5", "1e22", "1.25e-7", "1e300", "1E5"])
def test_a_number_has_one_text_whoever_parses_it(number: str) -> None:
    by_polars = pl.read_ndjson(f'{{"c": {number}}}\n'.encode(), schema={"c": pl.String}).item()
    assert _json_rows.fit_value(float(number), pl.String(), "c") == by_polars
