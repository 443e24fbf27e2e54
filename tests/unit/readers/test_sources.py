"""Paths, globs, folders, several files: what is read, and what is said when nothing can be."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError, SourceError


def run(folder: Path, name: str, **other: object) -> Path:
    row = {"problem": "p", "unique_id": "q", "completions": [name, name], **other}
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(row))
    return path


def test_one_file_as_text_and_as_path(tmp_path: Path) -> None:
    path = run(tmp_path, "a.jsonl")

    for source in (path, str(path), [path], (str(path),)):
        frame = tts.read_trajectories(source)
        assert frame["completion"].to_list() == ["a.jsonl"] * 2
        assert "source_file" not in frame.columns


def test_several_files_say_where_each_row_is_from(tmp_path: Path) -> None:
    paths = [run(tmp_path, "b.jsonl"), run(tmp_path, "a.jsonl")]

    frame = tts.read_trajectories(paths)

    assert frame["source_file"].to_list() == [str(path) for path in paths for _ in range(2)]
    assert frame["completion"].to_list() == ["b.jsonl"] * 2 + ["a.jsonl"] * 2
    # the same problem in two files stays apart
    assert frame.select("source_file", "problem_id", "attempt").is_unique().all()


@pytest.mark.parametrize("source", ["", "*.jsonl", "**/*.jsonl", "*"])
def test_folders_and_globs_are_read_in_natural_order(tmp_path: Path, source: str) -> None:
    for number in (10, 9, 1):
        run(tmp_path, f"run{number}.jsonl")

    frame = tts.read_trajectories(str(tmp_path / source))

    expected = ["run1.jsonl", "run9.jsonl", "run10.jsonl"]
    assert frame["completion"].unique(maintain_order=True).to_list() == expected


def test_a_folder_leaves_out_what_is_hidden_and_what_holds_no_attempts(tmp_path: Path) -> None:
    run(tmp_path, "seed0/bon.jsonl")
    run(tmp_path, "seed1/bon.jsonl")
    run(tmp_path, ".cache/bon.jsonl")
    run(tmp_path, "seed1/.bon.jsonl.tmp")
    (tmp_path / "README.md").write_text("# Runs")
    (tmp_path / "seed0" / "config.json").write_text(json.dumps({"n": 4}, indent=2))
    (tmp_path / "seed0" / "log.txt").write_text("started")

    frame = tts.read_trajectories(tmp_path)

    assert frame["completion"].to_list() == ["seed0/bon.jsonl"] * 2 + ["seed1/bon.jsonl"] * 2


def test_a_folder_that_is_linked_is_read(tmp_path: Path) -> None:
    run(tmp_path / "target", "a.jsonl")
    run(tmp_path / "runs", "seed0/b.jsonl")
    (tmp_path / "runs" / "seed1").symlink_to("../target")
    (tmp_path / "runs" / "latest").symlink_to("seed1")
    (tmp_path / "runs" / "first").symlink_to("seed0")

    frame = tts.read_trajectories(tmp_path / "runs")

    files = frame["source_file"].unique(maintain_order=True).to_list()
    assert files[-1] == str(tmp_path / "runs" / "seed0" / "b.jsonl")
    assert frame["completion"].to_list() == ["a.jsonl"] * 2 + ["seed0/b.jsonl"] * 2


def test_a_folder_that_cannot_be_followed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "runs", "seed0/b.jsonl")
    link = tmp_path / "runs" / "link"
    link.symlink_to("..")
    with pytest.raises(SourceError, match="link: is a link to a folder that holds it"):
        tts.read_trajectories(tmp_path / "runs")
    link.unlink()
    link.symlink_to("../gone")
    with pytest.raises(SourceError, match="link: is a link to nothing"):
        tts.read_trajectories(tmp_path / "runs")
    link.unlink()
    closed = tmp_path / "runs" / "seed1"
    closed.mkdir()
    # Rights do not hold for root, who may run this test.
    for name in ("listdir", "scandir"):
        original = getattr(os, name)

        def refuse(path: Any, original: Any = original) -> Any:
            if str(path) == str(closed):
                raise PermissionError(13, "Permission denied")
            return original(path)

        monkeypatch.setattr(f"os.{name}", refuse)
    with pytest.raises(SourceError, match=r"seed1: cannot be listed \(Permission denied\)"):
        tts.read_trajectories(tmp_path / "runs")


def test_a_pipe_is_read_once_and_a_device_is_refused(tmp_path: Path) -> None:
    path = run(tmp_path, "a.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit((tmp_path / "pipe").write_bytes, path.read_bytes())
        frame = tts.read_trajectories(tmp_path / "pipe")
        written.result()
    assert frame.equals(tts.read_trajectories(path))
    with pytest.raises(ParameterError, match="pipe: is not a local file, as a job needs"):
        tts.batch.transform(tmp_path / "pipe", tmp_path / "out.parquet")
    with pytest.raises(SourceError, match="/dev/null: is a device or a socket"):
        tts.read_trajectories("/dev/null")


def test_a_table_in_a_folder_that_is_not_understood_is_never_passed_over(tmp_path: Path) -> None:
    run(tmp_path, "a.jsonl")
    (tmp_path / "b.jsonl").write_text('{"prompt": "x"}\n{"prompt": "y"}')

    with pytest.raises(
        SourceError, match=r"b\.jsonl: in no known format; found columns: \['prompt'\]"
    ):
        tts.scan_trajectories(tmp_path)


def test_a_broken_file_in_a_folder_is_never_passed_over(tmp_path: Path) -> None:
    run(tmp_path, "a.jsonl")
    (tmp_path / "b.jsonl").write_text('{"prob')
    with pytest.raises(SourceError, match=r"b\.jsonl, line 1: is cut off"):
        tts.scan_trajectories(tmp_path)

    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(SourceError, match=r"b\.jsonl: is empty \(0 bytes\)"):
        tts.scan_trajectories(tmp_path)


def test_containers_of_one_format_can_be_mixed(tmp_path: Path) -> None:
    run(tmp_path, "a.jsonl", level=1)
    row: dict[str, Any] = {"problem": "p", "unique_id": "q", "completions": ["x"], "level": 2.5}
    pl.DataFrame([row]).write_parquet(tmp_path / "b.parquet")
    pl.DataFrame([row]).write_ipc(tmp_path / "c.arrow")
    pl.DataFrame([row]).write_ipc_stream(tmp_path / "d.arrows")

    frame = tts.read_trajectories(tmp_path)

    assert frame["level"].to_list() == [1.0, 1.0, 2.5, 2.5, 2.5]
    assert [Path(name).name for name in frame["source_file"].unique().sort()] == [
        "a.jsonl",
        "b.parquet",
        "c.arrow",
        "d.arrows",
    ]


def test_columns_of_one_file_are_null_in_the_others(tmp_path: Path) -> None:
    paths = [run(tmp_path, "a.jsonl", level=1), run(tmp_path, "b.jsonl", tier="hard")]

    frame = tts.read_trajectories(paths)

    assert frame.select("level", "tier").rows() == [(1, None)] * 2 + [(None, "hard")] * 2


def test_formats_are_not_mixed(tmp_path: Path) -> None:
    run(tmp_path, "a.jsonl")
    run(tmp_path, "b.jsonl")
    (tmp_path / "c.jsonl").write_text('{"problem_id": "q", "attempt": 0, "completion": "x"}')

    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(tmp_path)

    message = str(caught.value)
    assert message.startswith(
        "3 files in 2 formats, must be in one; found search_and_learn: 2 (for example "
    )
    assert f"long_form: 1 (for example {tmp_path / 'c.jsonl'})" in message
    assert "Hint: 'ttsframe score " in message


def test_the_format_is_not_taken_from_the_name(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    pl.DataFrame({"problem_id": ["a"], "completion": ["x"]}).write_parquet(path)

    assert tts.read_trajectories(path)["completion"].to_list() == ["x"]


def test_names_of_any_characters_are_sorted(tmp_path: Path) -> None:
    for name in ("run².jsonl", "run٣.jsonl", "läuft.jsonl"):
        run(tmp_path, name)

    assert tts.read_trajectories(tmp_path).height == 6


def test_a_path_with_the_marks_of_a_glob_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "run[n=4]*.parquet"
    pl.DataFrame({"problem_id": ["a"], "completion": ["x"]}).write_parquet(path)

    assert tts.read_trajectories(path).height == 1


def test_what_the_rows_say_of_their_origin_is_kept(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pl.DataFrame({
            "problem_id": ["q"],
            "completion": ["x"],
            "source_file": [f"{name} original"],
        }).write_parquet(tmp_path / f"{name}.parquet")

    frame = tts.read_trajectories(tmp_path)

    assert frame["source_file"].to_list() == ["a original", "b original"]


MISSING = {
    "missing.jsonl": "no such file or folder. Hint: {folder} holds here.jsonl.",
    "no/such/folder.jsonl": "no such file or folder. Hint: {folder} holds here.jsonl.",
    "*.parquet": "matches no file. Hint: {folder} holds here.jsonl.",
}


@pytest.mark.parametrize(("name", "reason"), MISSING.items())
def test_what_is_not_there_is_named_with_what_is(tmp_path: Path, name: str, reason: str) -> None:
    run(tmp_path, "here.jsonl")

    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(tmp_path / name)

    assert str(caught.value) == f"{tmp_path / name}: {reason.format(folder=tmp_path)}"


def test_an_empty_folder_and_one_of_hidden_files(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no files"):
        tts.scan_trajectories(tmp_path)
    run(tmp_path, ".hidden.jsonl")
    with pytest.raises(SourceError, match="holds no files"):
        tts.scan_trajectories(tmp_path)


def test_a_file_named_twice(tmp_path: Path) -> None:
    path = run(tmp_path, "a.jsonl")

    with pytest.raises(SourceError, match=r"named twice.* its rows would count twice"):
        tts.scan_trajectories([tmp_path, path])


@pytest.mark.parametrize("source", [3, None, b"a.jsonl", {"a.jsonl"}])
def test_a_source_of_another_type(source: Any) -> None:
    with pytest.raises(
        ParameterTypeError,
        match=r"source must be a path, a glob, a folder, a URL, a frame, .*, got",
    ):
        tts.scan_trajectories(source)


def test_sources_of_another_type() -> None:
    with pytest.raises(ParameterTypeError, match=r"source must hold paths .*, frames, .*got int"):
        tts.scan_trajectories([3])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="source is empty"):
        tts.scan_trajectories([])


def test_choices_are_checked(tmp_path: Path) -> None:
    path = run(tmp_path, "a.jsonl")
    with pytest.raises(
        ParameterError, match="format == 'jsonl', must be one of 'auto', 'inspect_ai', "
    ):
        tts.scan_trajectories(path, format="jsonl")  # type: ignore[arg-type]
    with pytest.raises(
        ParameterError, match="on_error == 'ignore', must be one of 'raise', 'skip'"
    ):
        tts.read_trajectories(path, on_error="ignore")  # type: ignore[arg-type]


# -- rename ---------------------------------------------------------------------------------------


def test_rename_goes_before_recognition(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"q": "p", "samples": ["a", "b"], "rewards": [[0.5], [0.25]]}))

    frame = tts.read_trajectories(
        path, rename={"q": "problem", "samples": "completions", "rewards": "scores"}
    )

    assert frame.select("problem", "completion", "step_scores").rows() == [
        ("p", "a", [0.5]),
        ("p", "b", [0.25]),
    ]


def test_rename_can_swap_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"problem_id": "a", "completion": "gold", "gold": "completion"}))

    frame = tts.read_trajectories(path, rename={"completion": "gold", "gold": "completion"})

    assert frame.select("gold", "completion").row(0) == ("gold", "completion")


def test_rename_that_does_not_fit(tmp_path: Path) -> None:
    path = run(tmp_path, "a.jsonl")

    with pytest.raises(ColumnsError) as caught:
        tts.scan_trajectories(path, rename={"response": "completion"})
    assert str(caught.value).startswith(
        f"1 missing column for rename in {path}: 'response'; found: ['problem', 'unique_id', "
    )
    with pytest.raises(
        ColumnsError, match="rename gives 'unique_id' the name 'problem', which another"
    ):
        tts.scan_trajectories(path, rename={"unique_id": "problem"})
    with pytest.raises(ParameterError, match="gives two columns the same name"):
        tts.scan_trajectories(path, rename={"unique_id": "x", "problem": "x"})
    with pytest.raises(ParameterTypeError, match="rename must be a mapping"):
        tts.scan_trajectories(path, rename=["x"])  # type: ignore[arg-type]
