"""Formats of labelled steps on files that other tools wrote, recounted in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts

FILES = {
    "math_shepherd": "samples_math-shepherd.jsonl",
    "math_aps": "samples_math-aps.jsonl",
    "math_aps_tree": "samples_math-aps-tree.jsonl",
    "prm800k": "samples_prm800k.jsonl",
}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(params=FILES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(shared_data: Path, name: str) -> Path:
    return shared_data / "openr" / FILES[name]


def test_the_format_is_recognised_by_content(path: Path, name: str, tmp_path: Path) -> None:
    copy = tmp_path / "no_name"
    copy.write_bytes(path.read_bytes())
    assert tts.read_steps(copy).equals(tts.read_steps(path, format=name))  # type: ignore[arg-type]


def test_what_was_read_is_written_again_value_for_value(shared_data: Path, tmp_path: Path) -> None:
    path, copy = shared_data / "openr" / FILES["math_shepherd"], tmp_path / "copy.jsonl"
    tts.write_steps(tts.read_steps(path), copy, format="math_shepherd")
    assert rows_of(copy) == rows_of(path)


def test_no_order_of_rows_changes_a_row_that_is_written(shared_data: Path, tmp_path: Path) -> None:
    path, copy = shared_data / "openr" / FILES["math_shepherd"], tmp_path / "copy.jsonl"
    shuffled = tts.read_steps(path).sample(fraction=1.0, shuffle=True, seed=3)
    tts.write_steps(shuffled, copy, format="math_shepherd")
    written = [json.dumps(row, sort_keys=True) for row in rows_of(copy)]
    assert sorted(written) == sorted(json.dumps(row, sort_keys=True) for row in rows_of(path))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl"])
def test_the_table_itself_comes_back_from_any_file(
    path: Path, name: str, suffix: str, tmp_path: Path
) -> None:
    steps = tts.read_steps(path)
    saved, copy = tmp_path / f"steps.{suffix}", tmp_path / "copy.jsonl"
    tts.write_steps(steps, saved, format="table")
    back = tts.read_steps(saved)
    # JSON does not say of which type a column without values is.
    assert_frame_equal(back, steps, check_dtypes=suffix != "jsonl")
    if name == "math_shepherd":
        tts.write_steps(back, copy, format=name)
        assert rows_of(copy) == rows_of(path)


@pytest.mark.parametrize("name", ["math_aps", "math_aps_tree", "prm800k"])
def test_a_format_that_is_only_read_is_not_written(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    steps = tts.read_steps(shared_data / "openr" / FILES[name])
    with pytest.raises(tts.errors.ParameterError) as caught:
        tts.write_steps(steps, tmp_path / "copy.jsonl", format=name)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"format == {name!r} can only be read, must be one of 'math_shepherd', 'openr', 'trl', 'table' "
        "to be written."
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_scanning_gives_what_reading_gives(
    path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tts.read_steps(path)
    monkeypatch.setenv("POLARS_ENGINE_AFFINITY", engine)
    assert tts.scan_steps(path).collect().equals(expected)
    scanned = tts.scan_steps(path).select("step", "problem_id").collect()
    assert scanned.equals(expected.select("step", "problem_id"))


def test_every_step_has_one_key(path: Path, name: str) -> None:
    steps = tts.read_steps(path)
    if name == "prm800k":
        steps = steps.filter("is_on_path")
    key = ["problem_id", "solution_id", "node" if "node" in steps.columns else "step"]
    assert not steps.select(pl.struct(key).is_duplicated().any()).item()


def test_math_shepherd_labels_are_the_marks_of_its_lines(shared_data: Path) -> None:
    path = shared_data / "openr" / FILES["math_shepherd"]
    steps = tts.read_steps(path)
    # its lines end in the token, which is an independent way to find steps and labels
    expected = [
        (line[:-2].rstrip(" "), marked[-1] == "+")
        for row in rows_of(path)
        for line, marked in zip(row["input"].split("\n"), row["label"].split("\n"), strict=True)
    ]
    found = [
        (row["problem"] + " " + row["text"] if row["step"] == 0 else row["text"], row["is_correct"])
        for row in steps.iter_rows(named=True)
    ]
    assert found == expected
    marks = Counter("+" if label else "-" for _, label in expected)
    assert steps.height == 25
    assert steps["is_correct"].sum() == marks["+"]
    assert steps["text"].str.starts_with("Step ").all()
    assert steps["solution_id"].n_unique() == 7


def test_prm800k_ratings_are_those_of_every_alternative(shared_data: Path) -> None:
    path = shared_data / "openr" / FILES["prm800k"]
    steps = tts.read_steps(path)
    expected: Counter[int | None] = Counter()
    chosen = []
    for row in rows_of(path):
        for step in row["label"]["steps"]:
            expected.update(one["rating"] for one in step["completions"] or [])
            if step["human_completion"] is not None:
                expected[step["human_completion"]["rating"]] += 1
            texts = [one["text"] for one in step["completions"] or []]
            if step["chosen_completion"] is not None:
                chosen.append(texts[step["chosen_completion"]])
            elif step["human_completion"] is not None:
                chosen.append(step["human_completion"]["text"])
            elif texts:
                chosen.append(texts[0])
    told = steps.filter(pl.col("text").is_not_null())
    assert Counter(told["rating"].to_list()) == expected
    assert steps.filter("is_on_path")["text"].to_list() == chosen
    assert told["is_correct"].sum() == expected[1]
    assert (~told["is_correct"]).sum() == expected[-1]
    # the step of the labeller who gave up has no text at all, and is there
    assert steps.height - told.height == 1
    assert set(steps["finish_reason"].unique()) == {"solution", "found_error", "give_up"}


def test_math_aps_values_are_those_of_every_prefix(shared_data: Path) -> None:
    path = shared_data / "openr" / FILES["math_aps"]
    steps = tts.read_steps(path)
    rows = rows_of(path)
    assert steps["question_id"].unique().sort().to_list() == [2, 3]
    assert steps["problem_id"].n_unique() == 3, "the id that comes twice is of two questions"
    at = 0
    for row in rows:
        prefixes = [entry["solution_prefix"] for entry in row["reasoning_steps"]]
        own = steps.slice(at, len(prefixes)).to_dicts()
        at += len(prefixes)
        for number, (prefix, entry) in enumerate(
            zip(prefixes, row["reasoning_steps"], strict=True)
        ):
            before = [other for other in prefixes if other != prefix and prefix.startswith(other)]
            longest = max(before, key=len, default="")
            step = own[number]
            assert step["soft"] == entry["mc_value"]
            assert step["step"] == len(set(before)) - 1
            assert step["text"] == (prefix[len(longest) :] if longest else None)
            assert step["parent"] == (prefixes.index(longest) if longest else None)
    assert at == steps.height == 145


def test_math_aps_trees_have_their_nodes_at_their_depth(shared_data: Path) -> None:
    path = shared_data / "openr" / FILES["math_aps_tree"]
    steps = tts.read_steps(path)
    found: list[tuple[int, str, float]] = []

    def walk(node: dict[str, Any], depth: int) -> None:
        found.append((depth, node["text"], node["mc_value"]))
        for child in node["children"]:
            walk(child, depth + 1)

    for row in rows_of(path):
        walk(row["reasoning_steps"], -1)
    texts = steps.select("step", pl.coalesce("text", "problem"), "soft").rows()
    assert texts == found
    assert steps.filter(pl.col("step") == -1)["text"].null_count() == 3


def test_a_list_and_a_tree_hold_the_same_steps(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "openr" / FILES["math_aps"]
    steps = tts.read_steps(source)
    tree = tmp_path / "tree.jsonl"
    tree.write_text("".join(json.dumps(as_tree(row)) + "\n" for row in rows_of(source)))
    columns = ["problem_id", "step", "text", "soft"]
    read = tts.read_steps(tree)
    assert read.height == steps.height
    assert read.select(columns).sort(columns).equals(steps.select(columns).sort(columns))


def as_tree(row: dict[str, Any]) -> dict[str, Any]:
    """Return the tree of a list of prefixes, each below the longest that it begins with."""
    nodes: dict[str, dict[str, Any]] = {}
    for entry in sorted(row["reasoning_steps"], key=lambda entry: len(entry["solution_prefix"])):
        prefix = entry["solution_prefix"]
        others = (other for other in nodes if other != prefix and prefix.startswith(other))
        parent = max(others, key=len, default="")
        node = {"text": prefix[len(parent) :], "mc_value": entry["mc_value"], "children": []}
        if parent:
            nodes[parent]["children"].append(node)
        nodes.setdefault(prefix, node)
    return {**row, "reasoning_steps": next(iter(nodes.values()))}


def test_paths_are_as_many_as_leaves_and_end_in_them(shared_data: Path) -> None:
    path = shared_data / "openr" / FILES["math_aps_tree"]
    steps = tts.read_steps(path)
    paths = tts.process.step_paths(steps)
    expected = []

    def walk(node: dict[str, Any], texts: list[str]) -> None:
        here = [*texts, node["text"]]
        for child in node["children"]:
            walk(child, here)
        if not node["children"]:
            expected.append(here)

    for row in rows_of(path):
        walk(row["reasoning_steps"], [])
    found = paths.group_by("solution_id", maintain_order=True).agg(
        pl.coalesce("text", "problem").alias("texts")
    )
    assert found["texts"].to_list() == expected
    assert tts.process.step_paths(steps.lazy()).collect().equals(paths)
