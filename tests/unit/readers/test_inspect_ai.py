"""Logs of inspect_ai: made by the tool with its mock model (data/logs/make_inspect_ai.py), real, and damaged."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import SkippedRowsWarning, SourceError, SourceWarning
from ttsframe.readers.engine import archive

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs"
KEYS = ["problem_id", "attempt"]


def walk(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Read a sample the plain way, as far as every log has it."""
    choices = sample["output"]["choices"]
    content = choices[0]["message"]["content"] if choices else None
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content if part["type"] == "text")
    scores = sample.get("scores") or {}
    return {
        "problem_id": str(sample["id"]),
        "attempt": sample["epoch"] - 1,
        "completion": sample.get("attachments", {}).get(
            str(content).removeprefix("attachment://"), content
        ),
        "values": {name: score["value"] for name, score in scores.items()},
    }


def check_against(found: pl.DataFrame, samples: list[dict[str, Any]]) -> None:
    rows = {(row["problem_id"], row["attempt"]): row for row in found.to_dicts()}
    assert len(rows) == found.height == len(samples)
    for sample in samples:
        plain = walk(sample)
        row = rows[plain["problem_id"], plain["attempt"]]
        assert row["completion"] == plain["completion"]
        for name, value in plain["values"].items():
            parts = value if isinstance(value, dict) else {"": value}
            for key, part in parts.items():
                assert row[f"score_{name}_{key}" if key else f"score_{name}"] == part


def plain_samples(path: Path) -> list[dict[str, Any]]:
    if path.suffix != ".eval":
        content = path.read_bytes()
        plain = gzip.decompress(content) if path.suffix == ".gz" else content
        return list(json.loads(plain)["samples"])
    with zipfile.ZipFile(path) as log:
        names = [name for name in log.namelist() if name.startswith("samples/")]
        return [json.loads(log.read(name)) for name in names]


def test_a_log_of_today_is_read_in_each_of_its_three_forms() -> None:
    plain = plain_samples(LOGS / "inspect_ai.json.gz")
    zipped, folders, document = (
        tts.read_trajectories(LOGS / name).sort(KEYS)
        for name in ("inspect_ai.eval", "inspect_ai_folders.eval", "inspect_ai.json.gz")
    )
    with zipfile.ZipFile(LOGS / "inspect_ai.eval") as log:
        assert {info.compress_type for info in log.infolist()} == {93}  # zstd
    check_against(document, plain)
    assert_frame_equal(zipped, folders)
    assert_frame_equal(zipped, document)
    assert zipped["attempt"].to_list() == [0, 1] * 3
    # A text of more than 100 characters is an attachment in the archive.
    assert zipped["problem"].str.starts_with("A long prefix").sum() == 2
    assert zipped["finish_reason"].to_list() == ["length"] + ["stop"] * 5
    assert zipped["n_tokens"].null_count() == 0
    assert set(zipped["model"]) == {"mockllm/model"}


def test_the_metrics_of_the_tool_come_out() -> None:
    run = tts.read_trajectories(LOGS / "inspect_ai.eval")
    with gzip.open(LOGS / "inspect_ai.json.gz") as stream:
        results = json.load(stream)["results"]["scores"]
    published = {
        (score["scorer"], score["name"], metric): value["value"]
        for score in results
        for metric, value in score["metrics"].items()
    }
    assert run["is_correct"].mean() == pytest.approx(published["match", "match", "accuracy"])
    assert run["score_length"].mean() == pytest.approx(published["length", "length", "mean"])
    for key in ("right", "brief"):
        assert run[f"score_graded_{key}"].mean() == pytest.approx(published["graded", key, "mean"])


def test_several_targets_are_no_gold_answer() -> None:
    run = tts.read_trajectories(LOGS / "inspect_ai.eval").filter(problem_id="sum/2")
    assert run["gold"].to_list() == [None, None]
    assert run["targets"].to_list() == [["4", "four"]] * 2
    assert "score" not in run.columns


REAL = [
    "arc_qwen.json",
    "log_formats.eval",
    "log_formats.json",
    "message_deduplication.eval",
    "mmlu_no_summary_choices.eval",
    "popularity.json",
    "popularity_1.eval",
    "popularity_2.eval",
    "streaming.eval",
]


@pytest.mark.filterwarnings("ignore::ttsframe.errors.SourceWarning")
@pytest.mark.parametrize("name", REAL)
def test_real_logs_equal_a_plain_walk(shared_data: Path, name: str) -> None:
    path = shared_data / "inspect_ai" / name
    check_against(tts.read_trajectories(path), plain_samples(path))


def test_a_real_log_is_the_same_in_both_forms(shared_data: Path) -> None:
    folder = shared_data / "inspect_ai"
    as_json, as_zip = (
        tts.read_trajectories(folder / f"log_formats.{end}") for end in ("json", "eval")
    )
    assert_frame_equal(as_json, as_zip)


def test_a_real_log_gives_the_accuracy_that_it_states(shared_data: Path) -> None:
    path = shared_data / "inspect_ai" / "arc_qwen.json"
    stated = json.loads(path.read_text())["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert tts.read_trajectories(path)["is_correct"].mean() == pytest.approx(stated)


def test_a_log_without_samples_is_an_empty_table_and_a_warning(shared_data: Path) -> None:
    with pytest.warns(
        SourceWarning, match=r"no_samples.json: the log holds no samples \(status 'cancelled'\)"
    ):
        run = tts.read_trajectories(shared_data / "inspect_ai" / "no_samples.json")
    assert run.height == 0
    assert {"problem_id", "attempt", "completion", "is_correct"} <= set(run.columns)


# -- logs written here ----------------------------------------------------------------------------


def sample(
    identifier: str | int = "a", epoch: int = 1, text: object = "4", **more: object
) -> dict[str, Any]:
    return {
        "id": identifier,
        "epoch": epoch,
        "input": "2 + 2?",
        "target": "4",
        "output": {"choices": [{"message": {"content": text}, "stop_reason": "stop"}]},
        "scores": {"match": {"value": "C"}},
        **more,
    }


def header(status: str = "success", metrics: object = None, **spec: object) -> dict[str, Any]:
    listed = [{"name": "match", "metrics": metrics or [{"name": "accuracy"}]}]
    return {
        "version": 2,
        "status": status,
        "eval": {"task": "t", "model": "m", "scorers": listed, "dataset": {"samples": 3}, **spec},
    }


def write_log(path: Path, members: Mapping[str, object], start: object = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("_journal/start.json", json.dumps(start or header()))
        for name, content in members.items():
            log.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


def member(one: dict[str, Any]) -> str:
    return f"samples/{one['id']}_epoch_{one['epoch']}.json"


def write_samples(path: Path, *samples: dict[str, Any], start: object = None) -> Path:
    return write_log(path, {member(one): one for one in samples}, start)


def test_a_running_log_is_read_as_far_as_it_is_there(tmp_path: Path) -> None:
    path = write_samples(tmp_path / "x.eval", sample(), start=header("started"))
    with pytest.warns(SourceWarning, match=r"status 'started'; 1 of 3 samples are in its log"):
        assert tts.read_trajectories(path).height == 1


def test_samples_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = write_samples(tmp_path / "x.eval", sample(10), sample(9, 2), sample(9), sample(1))
    run = tts.read_trajectories(path)
    assert run.select(KEYS).rows() == [("1", 0), ("9", 0), ("9", 1), ("10", 0)]


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_of_a_requeued_sample_the_last_counts(tmp_path: Path) -> None:
    path = write_samples(tmp_path / "x.eval", sample(text="first"))
    with zipfile.ZipFile(path, "a") as log:
        log.writestr(member(sample()), json.dumps(sample(text="second")))
    assert tts.read_trajectories(path)["completion"].to_list() == ["second"]
    both = {**header(), "samples": [sample(text="first"), sample("b"), sample(text="second")]}
    (tmp_path / "x.json").write_text(json.dumps(both))
    assert tts.read_trajectories(tmp_path / "x.json")["completion"].to_list() == ["second", "4"]


GRADES = [
    ("C", True),
    ("I", False),
    ("N", False),
    ("P", None),
    (True, True),
    (1, True),
    (0.0, False),
    (0.5, None),
]


@pytest.mark.parametrize(("value", "is_correct"), GRADES)
def test_a_grade_is_read_for_what_it_says(
    tmp_path: Path, value: object, is_correct: object
) -> None:
    graded = sample(scores={"other": {"value": "I"}, "match": {"value": value}})
    run = tts.read_trajectories(write_samples(tmp_path / "x.eval", graded, sample("b")))
    assert run["is_correct"].to_list() == [is_correct, True]
    assert "score" not in run.columns


def test_numbers_of_a_scale_without_accuracy_are_no_grades(tmp_path: Path) -> None:
    graded = sample(scores={"match": {"value": 0.0}})
    start = header(metrics=[{"name": "mean"}])
    run = tts.read_trajectories(write_samples(tmp_path / "x.eval", graded, start=start))
    assert "is_correct" not in run.columns
    assert run["score_match"].to_list() == [0.0]


def test_errors_and_partial_grades_are_findings(tmp_path: Path) -> None:
    path = write_samples(
        tmp_path / "x.eval",
        sample("a", scores={"match": {"value": "P"}}),
        sample("b", scores={}, error={"message": "timeout"}, output={"choices": []}),
        sample("c"),
    )
    run = tts.read_trajectories(path)
    assert run["finish_reason"].to_list() == ["stop", "error", "stop"]
    codes = {
        each.code: each.count
        for each in tts.validate_trajectories(run, traps=tts.READERS["inspect_ai"].traps).findings
    }
    assert codes["sample_errors"] == 1
    assert codes["partial_grades"] == 1


def test_tokens_of_several_turns_are_added_up_and_reasoning_is_apart(tmp_path: Path) -> None:
    parts = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    output = {
        "choices": [{"message": {"content": parts}}],
        "usage": {"output_tokens": 3, "input_tokens": 9},
    }
    usage = {"m": {"output_tokens": 7, "input_tokens": 20}, "grader": {"output_tokens": 99}}
    turns = [{"role": "assistant"}, {"role": "user"}, {"role": "assistant"}]
    run = tts.read_trajectories(
        write_samples(
            tmp_path / "x.eval",
            sample("one", output=output, model_usage=usage, messages=turns[:1]),
            sample("two", output=output, model_usage=usage, messages=turns),
        )
    )
    assert run["n_tokens"].to_list() == [3, 7]
    assert run["n_prompt_tokens"].to_list() == [9, 20]
    assert run["completion"].to_list() == ["a\nb"] * 2
    assert run["reasoning"].to_list() == ["hm"] * 2


# -- damage and attacks ---------------------------------------------------------------------------

BROKEN = {
    "cut off": b'{"id": "b", "epoch": 1, "output": {"cho',
    "not UTF-8": b'{"id": "b\xff", "epoch": 1}',
    "no object": b"[1, 2]",
    "no id": b'{"epoch": 1}',
    "no epoch": b'{"id": "b"}',
    "epoch as text": b'{"id": "b", "epoch": "1"}',
    "epoch 0": b'{"id": "b", "epoch": 0}',
    "deep": b"[" * 100_000,
    "digits": b'{"id": ' + b"9" * 5000 + b"}",
    "tokens as text": json.dumps(
        sample("b", output={"choices": [], "usage": {"output_tokens": "x"}})
    ).encode(),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_member_is_named_or_skipped_and_counted(tmp_path: Path, damage: str) -> None:
    members = {member(sample("a")): sample("a"), "samples/b_epoch_1.json": BROKEN[damage]}
    path = write_log(tmp_path / "x.eval", members)
    with pytest.raises(SourceError, match=r"x\.eval, member 'samples/b_epoch_1\.json': "):
        tts.read_trajectories(path)
    with pytest.warns(
        SkippedRowsWarning, match=r"^1 row skipped: .*member 'samples/b_epoch_1\.json'"
    ):
        assert tts.read_trajectories(path, on_error="skip")["problem_id"].to_list() == ["a"]


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_sample_of_a_document_is_named(tmp_path: Path, damage: str) -> None:
    try:
        broken = json.loads(BROKEN[damage])
    except (ValueError, RecursionError):
        pytest.skip("would break the whole document")
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**header(), "samples": [sample("a"), broken]}))
    with pytest.raises(SourceError, match=r"x\.json, sample 2: "):
        tts.read_trajectories(path)
    with pytest.warns(SkippedRowsWarning, match="^1 row skipped"):
        assert tts.read_trajectories(path, on_error="skip").height == 1


ODD = (None, [], {}, "", 7, True, [None], [[]], {"x": None}, float("nan"))
FIELDS = (
    "input",
    "target",
    "choices",
    "output",
    "scores",
    "score",
    "metadata",
    "model_usage",
    "error",
    "limit",
    "attachments",
    "messages",
)


@pytest.mark.parametrize("field", FIELDS)
def test_odd_values_never_end_in_a_traceback_and_keep_the_rest(tmp_path: Path, field: str) -> None:
    odd = [sample(f"odd{number}", **{field: value}) for number, value in enumerate(ODD)]
    run = tts.read_trajectories(write_samples(tmp_path / "x.eval", sample("a"), *odd))
    assert run.height == len(ODD) + 1
    kept = run.filter(problem_id="a").row(0, named=True)
    assert (kept["completion"], kept["gold"], kept["is_correct"]) == ("4", "4", True)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_a_log_that_is_cut_off_says_so(tmp_path: Path, share: float) -> None:
    whole = (LOGS / "inspect_ai.eval").read_bytes()
    path = tmp_path / "x.eval"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(
        SourceError,
        match=r"x\.eval: cannot be read as a zip archive .*cut off, or still being written",
    ):
        tts.read_trajectories(path)


def test_every_byte_of_a_log_may_be_damaged(tmp_path: Path) -> None:
    whole = (LOGS / "inspect_ai.eval").read_bytes()
    expected = tts.read_trajectories(LOGS / "inspect_ai.eval")
    path = tmp_path / "x.eval"
    for place in range(7, len(whole), 1499):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found = tts.read_trajectories(path)
        except SourceError:
            continue
        assert_frame_equal(found, expected)  # the damage is in a member that is not read


def zstd_log(path: Path, content: bytes, *, claimed: int | None = None) -> Path:
    """Write a log whose only sample is compressed by zstd, with a length that may be a lie."""
    write_log(path, {})
    packed = pa.compress(content, codec="zstd", asbytes=True)
    info = zipfile.ZipInfo("samples/a_epoch_1.json")
    with zipfile.ZipFile(path, "a") as log:
        log.writestr(info, packed)
    data = bytearray(path.read_bytes())
    size = len(content) if claimed is None else claimed
    # The method and the sizes, in the list of members; the header of the member stays.
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<H", data, at + 10, 93)
    struct.pack_into("<III", data, at + 16, zlib.crc32(content), len(packed), size)
    path.write_bytes(bytes(data))
    return path


def test_bombs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    bomb = b" " * (64 << 20)
    honest = write_log(tmp_path / "honest.eval", {"samples/a_epoch_1.json": bomb})
    lying = zstd_log(tmp_path / "lying.eval", bomb, claimed=1000)
    for path, reason in (
        (honest, "claims 67,108,864 bytes, at most 1,048,576 are read"),
        (lying, "is damaged, or holds more than the 1,000 bytes that it claims"),
    ):
        with pytest.raises(SourceError, match=rf"member 'samples/a_epoch_1\.json': {reason}"):
            tts.read_trajectories(path)
    assert (
        tts.read_trajectories(zstd_log(tmp_path / "x.eval", json.dumps(sample()).encode())).height
        == 1
    )


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "x.eval", {member(sample()): sample(metadata={"x": list(range(5000))})}
    )
    data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as log:
        start, end = log.start_dir, data.rindex(b"PK\x05\x06")
    entries = data[start:end]
    entry = entries[entries.rindex(b"PK\x01\x02") :]
    copies = [
        entry.replace(b"samples/a_epoch", b"samples/%c_epoch" % letter) for letter in b"bcdefghij"
    ]
    tail = bytearray(data[end:])
    struct.pack_into("<HHI", tail, 8, 11, 11, end - start + sum(map(len, copies)))
    path.write_bytes(data[:end] + b"".join(copies) + bytes(tail))
    with pytest.raises(SourceError, match="they overlap"):
        tts.read_trajectories(path)


def test_names_that_leave_the_folder_are_only_names(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    members = {
        f"samples/{name}_epoch_1.json": sample(f"{name}") for name in ("../../up", "/root", "c:\\x")
    }
    run = tts.read_trajectories(write_log(inside / "x.eval", members))
    assert sorted(run["problem_id"]) == ["../../up", "/root", "c:\\x"]
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "x.eval"]


def test_another_archive_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as other:
        other.writestr("run.jsonl", "{}")
    with pytest.raises(SourceError, match=r"header\.json.*unpack an archive first"):
        tts.read_trajectories(path)
    with pytest.raises(
        SourceError, match=r"none of the files that are no tables .inspect_ai: .*header.json"
    ):
        tts.read_trajectories(path, format="inspect_ai")


def test_logs_of_a_folder_are_runs_of_their_own_and_may_come_through_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        write_samples(tmp_path / f"{name}.eval", sample(text=name))
    run = tts.read_trajectories(tmp_path)
    assert [Path(name).stem for name in run["source_file"]] == ["one", "two"]
    piped = io.TextIOWrapper(io.BytesIO((tmp_path / "one.eval").read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    assert tts.read_trajectories("-")["completion"].to_list() == ["one"]


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"events": [1, {"model_usage": 2}], "model_usage": {"x": [3]}},
        {"a": 1, "messages": [{"b": 1}], "output": {"choices": []}},
        {"a": 1, "store": {"b": 1}, "events": [1], "model_usage": {}},
        {"a": 1, "events_data": {"b": 1}, "turn_count": 3},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_events_are_left_out_only_where_they_are_those_of_the_sample(
    tmp_path: Path, indent: int | None, metadata: dict[str, Any]
) -> None:
    events = [
        {"event": "model", "events": [{"a": "]"}], "model_usage": {}},
        {"text": '],"model_usage":'},
    ]
    one = {**sample(), "metadata": metadata}
    end = {"model_usage": {"m": {"output_tokens": 7, "input_tokens": 3}}, "turn_count": 2}
    after: list[dict[str, Any]] = [
        {"events": events, **end},
        {
            "events": events,
            **end,
            "attachments": {"k": '"events":[],"model_usage":'},
            "x": [{"model_usage": 1}],
        },
        {**end, "events": events},
        {"events": [], **end},
        {
            "messages": [{"role": "assistant", "content": '],"output":{'}, {"output": {"a": 1}}],
            "output": one["output"],
            "store": {"events": [1]},
            "events": events,
            "model_usage": end["model_usage"],
            "events_data": {"calls": []},
            "turn_count": 2,
        },
    ]
    expected = None
    for number, more in enumerate(after):
        whole = {name: value for name, value in one.items() if name not in more} | more
        separators = None if indent else (",", ":")
        path = tmp_path / f"{number}.eval"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
            log.writestr("header.json", json.dumps(header()))
            text = json.dumps(whole, indent=indent, separators=separators)
            log.writestr("samples/a_epoch_1.json", text)
        found = tts.read_trajectories(path)
        expected = found if expected is None else expected
        assert found.equals(expected)
        assert found["n_tokens"].to_list() == [7]


@pytest.mark.parametrize("room", [1 << 28, 0])
def test_values_are_the_same_however_the_rows_are_parted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    values: list[object] = [1, 2.5, "x", None, True, 2**63, [1, 2.5], {"k": 1.0}, {"k": None}, []]
    columns = {
        "mixed": values,
        "numbers": [1, 2.5, None, -3, 1e22, 7, 8, 9, 10, 11],
        "counts": [1, 2, None, 4, 5, 6, 7, 8, 9, 10],
        "lists": [[], None, [1], [2.5], [None], [3], [], [], [], []],
        "texts": ["a", "\ud800", "\0", "", None, "b", "c", "d", "e", "f"],
    }
    path = write_samples(
        tmp_path / "a.eval",
        *(
            sample(str(i), metadata={name: column[i] for name, column in columns.items()})
            for i in range(len(values))
        ),
    )
    monkeypatch.setattr(
        "ttsframe.readers.engine.survey.Room.__init__", lambda self: vars(self).update(n_bytes=room)
    )
    together = tts.read_trajectories(path).sort("problem_id")
    monkeypatch.setattr("ttsframe.readers.engine.unpacked._CHUNK_CHARACTERS", 0)
    monkeypatch.setattr("ttsframe.readers.engine.unpacked._PLENTY", 1 << 40)
    assert_frame_equal(tts.read_trajectories(path).sort("problem_id"), together)
    assert together["metadata_mixed"].to_list() == [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]
    assert together["metadata_numbers"].to_list() == columns["numbers"]
    assert together["metadata_counts"].to_list() == columns["counts"]
    assert together["metadata_counts"].dtype == pl.Int64
    assert together["metadata_lists"].to_list() == columns["lists"]
    assert together["metadata_texts"].to_list() == ["a", "\ufffd", *columns["texts"][2:]]


def test_only_the_damaged_one_of_many_members_is_left_out(tmp_path: Path) -> None:
    path = write_samples(tmp_path / "a.eval", *(sample(str(i)) for i in range(30)))
    with zipfile.ZipFile(path) as log:
        name = log.namelist()[12]
        start = log.getinfo(name).header_offset + 30 + len(name)
    damaged = bytearray(path.read_bytes())
    damaged[start + 20 : start + 24] = b"\xff\xff\xff\xff"
    path.write_bytes(damaged)
    with pytest.raises(SourceError, match=f"member '{name}'"):
        tts.read_trajectories(path)
    with pytest.warns(SkippedRowsWarning, match=f"1 row skipped: .*member '{name}'"):
        assert len(tts.read_trajectories(path, on_error="skip")) == 29
