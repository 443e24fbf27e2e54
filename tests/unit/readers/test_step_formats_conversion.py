"""From one format of labelled steps to another: nothing is lost in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError, SourceError

TOLD = ["problem_id", "solution_id", "step", "problem", "text", "is_correct"]

Write = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes steps and gives the rows of the file."""

    def write_rows(steps: pl.DataFrame, name: str, **options: Any) -> list[dict[str, Any]]:
        path = tmp_path / f"{name}.jsonl"
        tts.write_steps(steps, path, format=name, **options)  # type: ignore[arg-type]
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    return write_rows


def labelled(**columns: Any) -> pl.DataFrame:
    """Return a solution of two steps, the second wrong, with further columns."""
    return pl.DataFrame({
        "problem_id": "p",
        "solution_id": "s",
        "step": [0, 1],
        "problem": "6 x 7 + 5?",
        "text": ["Step 1: 6 x 7 is 42.", "Step 2: 42 + 5 is 49."],
        "is_correct": [True, False],
    }).with_columns(**{
        name: value if isinstance(value, pl.Series) else pl.lit(value)
        for name, value in columns.items()
    })


def tree(**columns: Any) -> pl.DataFrame:
    """Return a problem with two first steps."""
    return pl.DataFrame({
        "problem_id": "p",
        "solution_id": "s",
        "node": [0, 1, 2],
        "parent": [None, 0, 0],
        "step": [-1, 0, 0],
        "problem": "6 x 7?",
        "text": [None, " 42", " 47"],
        "soft": [0.5, 1.0, 0.0],
    }).with_columns(**columns)


def test_texts_labels_and_ids_survive_a_journey_through_the_formats(
    shared_data: Path, tmp_path: Path
) -> None:
    source = shared_data / "openr" / "samples_math-shepherd.jsonl"
    steps = start = tts.read_steps(source)
    for name in ("openr", "trl", "table", "math_shepherd"):
        path = tmp_path / f"{name}.jsonl"
        if name == "table":
            steps = steps.select([*TOLD, "task"])
        tts.write_steps(steps, path, format=name)  # type: ignore[arg-type]
        steps = tts.read_steps(path)
        assert steps.select(TOLD).equals(start.select(TOLD)), name
        assert steps["task"].equals(start["task"])
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert rows == [json.loads(line) for line in source.read_bytes().splitlines()]


def test_openr_writes_its_tag_and_marks(write: Write) -> None:
    assert write(labelled(), "openr") == [
        {
            "question": "6 x 7 + 5?",
            "process": "Step 1: 6 x 7 is 42. \n\n\n\n\n Step 2: 42 + 5 is 49. \n\n\n\n\n",
            "label": ["+", "-"],
            "problem_id": "p",
            "solution_id": "s",
        }
    ]


def test_openr_is_read_with_the_other_tag_as_well(tmp_path: Path) -> None:
    path = tmp_path / "openr.jsonl"
    row = {"question": "Q", "process": "a ки\nb\n c ки", "label": ["+", "-"]}
    path.write_text(json.dumps(row), encoding="utf-8")
    steps = tts.read_steps(path)
    assert steps["text"].to_list() == ["a", "b\n c"]
    assert steps["is_correct"].to_list() == [True, False]


def test_values_above_the_threshold_are_right_and_at_it_wrong(write: Write) -> None:
    steps = labelled(soft=pl.Series([0.5000001, 0.5])).drop("is_correct")
    (row,) = write(steps, "trl", right_above=0.5)
    assert row["labels"] == [True, False]
    (row,) = write(steps.with_columns(soft=pl.Series([0.0, 1e-9])), "trl", right_above=0)
    assert row["labels"] == [False, True]


def test_neutral_ratings_become_what_the_caller_says(write: Write) -> None:
    steps = labelled(rating=pl.Series([1, 0])).drop("is_correct")
    assert write(steps, "openr", neutral=True)[0]["label"] == ["+", "+"]
    assert write(steps, "openr", neutral=False)[0]["label"] == ["+", "-"]
    assert [row["rating"] for row in write(steps, "table")] == [1, 0]


def test_paths_of_a_tree_become_solutions_with_labels(shared_data: Path, write: Write) -> None:
    steps = tts.read_steps(shared_data / "openr" / "samples_math-aps-tree.jsonl")
    rows = write(tts.process.step_paths(steps), "openr", right_above=0.5)
    expected = []

    def walk(node: dict[str, Any], texts: list[str], marks: list[str]) -> None:
        for child in node["children"]:
            mark = "+" if child["mc_value"] > 0.5 else "-"
            here = [*texts, child["text"]], [*marks, mark]
            walk(child, *here)
            if not child["children"]:
                expected.append(here)

    source = shared_data / "openr" / "samples_math-aps-tree.jsonl"
    for line in source.read_bytes().splitlines():
        walk(json.loads(line)["reasoning_steps"], [], [])
    found = [
        (row["process"].removesuffix(" \n\n\n\n\n").split(" \n\n\n\n\n "), row["label"])
        for row in rows
    ]
    assert found == expected
    assert len(rows) == tts.process.step_paths(steps)["solution_id"].n_unique()


def test_the_path_that_people_took_becomes_one_solution(shared_data: Path, write: Write) -> None:
    steps = tts.read_steps(shared_data / "openr" / "samples_prm800k.jsonl")
    counting = ["alternative", "n_alternatives", "chosen_completion", "is_human"]
    path = steps.filter("is_on_path").drop(*counting, "flagged", "source")
    whole = path.filter((pl.col("rating").is_not_null()).all().over("solution_id"))
    rows = write(whole, "trl", neutral=True)
    assert [row["completions"] for row in rows] == [
        texts
        for (texts,) in whole
        .group_by("solution_id", maintain_order=True)
        .agg("text")
        .select("text")
        .rows()
    ]
    assert [label for row in rows for label in row["labels"]] == [
        rating >= 0 for rating in whole["rating"]
    ]
    assert rows[0]["labeler"] == whole["labeler"][0]
    assert rows[0]["gold"] == whole["gold"][0]


def test_columns_of_whole_solutions_become_keys_and_come_back(write: Write, tmp_path: Path) -> None:
    steps = labelled(
        gold="47", task="mine", seed=3, weights=pl.Series([[1, 2], [1, 2]]), nothing=None
    )
    (row,) = write(steps, "math_shepherd")
    assert row["gold"] == "47"
    assert row["weights"] == [1, 2]
    assert "nothing" not in row
    back = tts.read_steps(tmp_path / "math_shepherd.jsonl")
    columns = [*TOLD, "gold", "task", "seed", "weights"]
    assert back.select(columns).equals(steps.select(columns))


def test_solutions_without_a_step_stay(write: Write, tmp_path: Path) -> None:
    steps = pl.concat([labelled(), labelled(solution_id="none", text=None, is_correct=None).head(1)
                       .with_columns(step=pl.lit(-1, dtype=pl.Int64), text=pl.lit(None, dtype=pl.String), is_correct=pl.lit(None, dtype=pl.Boolean))])  # fmt: skip
    for name in ("trl", "openr"):
        write(steps, name)
        assert tts.read_steps(tmp_path / f"{name}.jsonl").select(TOLD).equals(steps.select(TOLD))
    with pytest.raises(DataError, match="step -1: the solution has no step"):
        write(steps, "math_shepherd")


def test_a_cut_off_last_step_has_no_label_in_math_shepherd(write: Write, tmp_path: Path) -> None:
    steps = labelled(is_correct=pl.Series([True, None]))
    (row,) = write(steps, "math_shepherd")
    assert row["label"] == "6 x 7 + 5? Step 1: 6 x 7 is 42. +\nStep 2: 42 + 5 is 49."
    assert tts.read_steps(tmp_path / "math_shepherd.jsonl").select(TOLD).equals(steps.select(TOLD))


@pytest.mark.parametrize(
    ("steps", "name", "options", "error", "message"),
    [
        (labelled(is_correct=pl.Series([None, True])), "math_shepherd", {}, DataError, "step 0: has no label"),
        (labelled(is_correct=pl.Series([True, None])), "trl", {}, DataError, "step 1: has no label"),
        (labelled(rating=pl.Series([1, 0])).drop("is_correct"), "trl", {}, DataError, "step 1: rating 0 .* neutral=True"),
        (labelled(rating=pl.Series([1, 2])).drop("is_correct"), "trl", {}, DataError, "rating is 2, must be"),
        (labelled(rating=pl.Series([1, 1])), "trl", {}, DataError, "is_correct is False, but rating is 1"),
        (labelled(rating=pl.Series([1, 0])), "trl", {}, DataError, "is_correct is False, but rating is 0"),
        (labelled(soft=pl.Series([1.0, 0.8])), "trl", {"right_above": 0.5}, DataError, "is_correct is False, but soft is 0.8"),
        (labelled(soft=pl.Series([1.0, 0.0])), "trl", {}, ColumnsError, "'soft'.*right_above=0.5"),
        (labelled(x=pl.Series([1, 2]), y=pl.Series([1, 2])), "openr", {}, ColumnsError, r"columns 'x', 'y', whose .* Hint: steps\.drop\('x', 'y'\)"),
        (labelled(process="x"), "openr", {}, ColumnsError, "'process' is named like a key"),
        (labelled(__row=1), "openr", {}, ColumnsError, "'__row' of steps begins with two"),
        (labelled(step=pl.Series([0, 2])), "trl", {}, DataError, "step 2: does not follow"),
        (labelled(step=pl.Series([0, 0])), "trl", {}, DataError, "step 0: appears more than once.*1 more step has the same problem"),
        (labelled(step=pl.Series([0, -2])), "trl", {}, DataError, "step -2: steps are numbered"),
        (labelled(step="one"), "trl", {}, ColumnsError, "column 'step' of steps is String"),
        (labelled(step=pl.Series([0, None])), "table", {}, DataError, "step None: step is null"),
        (labelled(problem=pl.Series(["a", "b"])), "trl", {}, DataError, "another problem text"),
        (labelled(problem=None), "trl", {}, DataError, "problem is null"),
        (labelled(text=pl.Series(["Step 1: a", None])), "trl", {}, DataError, "step 1: text is null"),
        (labelled(text=pl.Series(["ok", "b"])), "math_shepherd", {}, DataError, "must begin with 'Step 1:'"),
        (labelled(problem="Step 1: add"), "math_shepherd", {}, DataError, "problem holds 'Step 1:'"),
        (labelled().drop("text"), "trl", {}, ColumnsError, "1 missing column for steps: 'text'"),
        (tree(), "trl", {"right_above": 0.5}, DataError, "step 0: appears more than once.*step_paths"),
        (labelled(soft=pl.Series([0.5, float("nan")])), "trl", {"right_above": 0.5}, DataError, "soft is nan, which JSON cannot"),
        (tree(soft=pl.Series([0.5, float("inf"), 1.0])), "table", {}, DataError, "soft is inf"),
        (labelled(), "prm800k", {}, ParameterError, "format == 'prm800k' can only be read, must be one of 'math_shepherd'"),
        (tree(), "math_aps", {"right_above": 0.5}, ParameterError, "format == 'math_aps' can only be read"),
        (tree(), "math_aps_tree", {}, ParameterError, "format == 'math_aps_tree' can only be read"),
        (labelled(), "table", {"neutral": True}, ParameterError, "neutral == True, but format 'table'"),
        (tree(), "table", {"right_above": 0.5}, ParameterError, "right_above == 0.5, but format 'table'"),
        (labelled(), "trl", {"right_above": 2}, ParameterError, "right_above == 2, must be from 0 to 1"),
        (labelled(), "trl", {"neutral": 1}, ParameterTypeError, "neutral must be a bool, got int"),
        (labelled(), "csv", {}, ParameterError, "format == 'csv', must be one of"),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold_is_refused(
    steps: pl.DataFrame,
    name: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    write: Write,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=message) as caught:
        write(steps, name, **options)
    if error is DataError:
        assert str(caught.value).startswith("problem 'p', solution 's', step ")
    assert not list(tmp_path.iterdir()), "nothing is left of a file that was refused"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (tree(parent=pl.Series([None, 0, 7])), "node 2 continues node 7, which is missing"),
        (tree(parent=pl.Series([None, 0, 1])), "node 2 does not follow the step of its parent"),
        (tree(node=pl.Series([0, 1, 1])), "node 1 appears more than once"),
        (tree(node=pl.Series([0, 1, None])), "node is null"),
        (tree(problem=None), "problem is null"),
        (tree(text=pl.Series([None, None, "4"])), "text is null"),
    ],
)
def test_what_is_no_tree_has_no_paths(steps: pl.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=f"problem 'p', solution 's', step .*: {message}"):
        tts.process.step_paths(steps)


def test_an_existing_file_outlives_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text("precious")
    with pytest.raises(DataError):
        tts.write_steps(labelled(problem=None), path, format="trl")
    assert path.read_text() == "precious"


def test_a_table_needs_a_suffix_that_says_how(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"must end in \.parquet, \.arrow, \.jsonl"):
        tts.write_steps(labelled(), tmp_path / "steps.csv", format="table")
    with pytest.raises(SourceError, match="no such folder"):
        tts.write_steps(labelled(), tmp_path / "no" / "steps.jsonl", format="trl")


def test_lazy_steps_are_written_as_eager_ones(tmp_path: Path) -> None:
    for number, steps in enumerate([labelled(), labelled().lazy()]):
        tts.write_steps(steps, tmp_path / f"{number}.jsonl", format="trl")
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()


def test_estimated_steps_become_labels(tmp_path: Path) -> None:
    rollouts = pl.DataFrame({
        "problem_id": "p",
        "solution_id": "s",
        "step": [0, 0, 1, 1],
        "rollout": [0, 1, 0, 1],
        "is_correct": [True, False, False, False],
    })
    estimated = tts.process.estimate_steps(rollouts).select(
        "problem_id", "solution_id", "step", "is_correct"
    )
    steps = labelled().drop("is_correct").join(estimated, on=["problem_id", "solution_id", "step"])
    tts.write_steps(steps, tmp_path / "steps.jsonl", format="math_shepherd")
    back = tts.read_steps(tmp_path / "steps.jsonl")
    assert back["is_correct"].to_list() == [True, False]
