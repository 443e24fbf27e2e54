"""``ttsframe steps`` against plain recounts of the files that it reads."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result
from polars.testing import assert_frame_equal

import ttsframe as tts

Run = Callable[..., Result]

SHEPHERD = [
    {
        "input": f"{number} + 1? Step 1: add ки\nStep 2: {number + 1} ки",
        "label": f"{number} + 1? Step 1: add {first}\nStep 2: {number + 1} {second}",
        "task": "mine",
    }
    for number, (first, second) in enumerate(["++", "+-", "--", "-+", "++"])
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "shepherd.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in SHEPHERD), encoding="utf-8")
    return path


def rollouts() -> pl.DataFrame:
    """Return 8 completions of each of 4 steps, fewer right the later the step."""
    return pl.DataFrame([
        {
            "problem_id": f"p{problem}",
            "solution_id": "s",
            "step": step,
            "rollout": rollout,
            "is_correct": rollout + problem >= 4 * step,
        }
        for problem in range(3)
        for step in range(4)
        for rollout in range(8)
    ])


def document(ttsframe: Run, *arguments: object) -> dict[str, Any]:
    result = ttsframe("steps", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_labels_and_first_errors_are_counted(ttsframe: Run, source: Path) -> None:
    found = document(ttsframe, source)
    marks = Counter(
        mark for row in SHEPHERD for mark in re.findall("[+-]$", row["label"], re.MULTILINE)
    )
    assert found["format"] == "math_shepherd"
    assert (found["n_problems"], found["n_solutions"], found["n_steps"]) == (5, 5, 10)
    assert (found["n_right"], found["n_wrong"]) == (marks["+"], marks["-"])
    assert (found["n_neutral"], found["n_unlabelled"]) == (0, 0)
    assert found["first_errors"] == [
        {"step": 0, "n_solutions": 2},
        {"step": 1, "n_solutions": 1},
        {"step": None, "n_solutions": 2},
    ]
    assert found["agreement"] is None


def test_people_read_what_programs_read(ttsframe: Run, source: Path) -> None:
    text = ttsframe("steps", source).stdout
    assert text.startswith("math_shepherd: 10 steps in 5 solutions to 5 problems\n")
    assert re.search(r"^right +6 +60.0%$", text, re.MULTILINE)
    assert re.search(r"^wrong +4 +40.0%$", text, re.MULTILINE)
    assert "neutral" not in text
    assert re.search(r"^first wrong step +solutions +share$", text, re.MULTILINE)
    assert re.search(r"^none +2 +40.0%$", text, re.MULTILINE)


def test_ratings_are_counted_with_all_alternatives_and_errors_on_the_path(
    ttsframe: Run, shared_data: Path
) -> None:
    path = shared_data / "openr" / "samples_prm800k.jsonl"
    found = document(ttsframe, path)
    ratings: Counter[int | None] = Counter()
    for line in path.read_bytes().splitlines():
        for step in json.loads(line)["label"]["steps"]:
            ratings.update(one["rating"] for one in step["completions"] or [])
            ratings.update([None] if step["human_completion"] else [])
    assert found["n_right"] == ratings[1]
    assert found["n_wrong"] == ratings[-1]
    assert found["n_neutral"] == ratings[0]
    assert found["n_unlabelled"] == ratings[None]
    assert found["n_judged"] == 6
    assert sum(row["n_solutions"] for row in found["first_errors"]) == 6


def test_values_above_a_threshold_are_labels_along_each_path(
    ttsframe: Run, shared_data: Path
) -> None:
    path = shared_data / "openr" / "samples_math-aps-tree.jsonl"
    assert document(ttsframe, path)["n_unlabelled"] == 254
    found = document(ttsframe, path, "--right-above", "0.5")
    firsts: Counter[int | None] = Counter()
    values = []

    def walk(node: dict[str, Any], step: int, first: int | None) -> None:
        for child in node["children"]:
            values.append(child["mc_value"])
            wrong = first if first is not None or child["mc_value"] > 0.5 else step
            walk(child, step + 1, wrong)
            if not child["children"]:
                firsts[wrong] += 1

    for line in path.read_bytes().splitlines():
        walk(json.loads(line)["reasoning_steps"], 0, None)
    assert found["n_right"] == sum(value > 0.5 for value in values)
    assert found["n_wrong"] == sum(value <= 0.5 for value in values)
    assert found["mean_soft"] == pytest.approx(sum(values) / len(values))
    assert {row["step"]: row["n_solutions"] for row in found["first_errors"]} == firsts
    assert found["n_paths"] == firsts.total()
    assert "paths" in ttsframe("steps", path, "--right-above", "0.5").stdout


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_completions_become_labels_first(ttsframe: Run, tmp_path: Path, suffix: str) -> None:
    frame = rollouts()
    path = tmp_path / f"rollouts.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ndjson(path)
    found = document(ttsframe, path, "-o", "steps.parquet")
    expected = tts.process.estimate_steps(frame)
    assert found["format"] == "rollouts"
    assert found["n_steps"] == expected.height == 12
    assert found["n_wrong"] == (~expected["is_correct"]).sum()
    assert found["mean_soft"] == pytest.approx(expected["soft"].mean())
    assert pl.read_parquet("steps.parquet").equals(expected)
    by_hand = tts.process.step_agreement(expected).rollouts
    assert by_hand is not None
    printed = pl.DataFrame(found["agreement"]["rollouts"], schema=by_hand.schema)
    assert_frame_equal(printed, by_hand)
    text = ttsframe("steps", path, "--right-above", "0.5").stdout
    assert "Labels with fewer completions" in text
    wrong = (~tts.process.estimate_steps(frame, right_above=0.5)["is_correct"]).sum()
    assert re.search(rf"^wrong +{wrong} ", text, re.MULTILINE)


def test_runs_are_told_apart(ttsframe: Run, tmp_path: Path) -> None:
    both = [rollouts().with_columns(model=pl.lit(name)) for name in ("a", "b")]
    pl.concat(both).write_parquet(tmp_path / "rollouts.parquet")
    found = document(ttsframe, "rollouts.parquet", "--by", "model")
    assert (found["n_problems"], found["n_solutions"], found["n_steps"]) == (3, 6, 24)
    assert {row["model"] for row in found["agreement"]["rollouts"]} == {"a", "b"}
    assert ttsframe("steps", "rollouts.parquet").exit_code == 2


def test_labels_are_compared_with_scores(ttsframe: Run, source: Path, tmp_path: Path) -> None:
    steps = tts.read_steps(source)
    scored = steps.with_columns(score=pl.int_range(pl.len()) / 10, prm=pl.lit(0.9))
    scored.write_parquet(tmp_path / "scored.parquet")
    found = document(ttsframe, "scored.parquet")
    by_hand = tts.process.step_agreement(scored)
    for table in ("thresholds", "separation", "first_errors"):
        expected = getattr(by_hand, table)
        printed = pl.DataFrame(found["agreement"][table], schema=expected.schema)
        assert_frame_equal(printed, expected)
    named = document(ttsframe, "scored.parquet", "--scores", "prm")["agreement"]
    assert named["thresholds"][0]["n_wrong_accepted"] == 4
    text = ttsframe("steps", "scored.parquet").stdout
    assert "Labels and scores, by threshold" in text
    assert "Whether scores find the first wrong step" in text


@pytest.mark.parametrize("name", ["openr", "trl", "math_shepherd"])
def test_a_format_is_converted_and_back(ttsframe: Run, source: Path, name: str) -> None:
    done = document(ttsframe, source, "--to", name, "-o", "there.jsonl")
    assert done["written"] == {"output": "there.jsonl", "format": name, "n_solutions": 5}
    assert document(ttsframe, "there.jsonl")["format"] == name
    assert ttsframe("steps", "there.jsonl", "--to", "math_shepherd", "-o", "back.jsonl").exit_code == 0  # fmt: skip
    back = [json.loads(line) for line in Path("back.jsonl").read_bytes().splitlines()]
    assert back == SHEPHERD


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "arrow", "csv"])
def test_the_table_is_written_as_its_suffix_says(ttsframe: Run, source: Path, suffix: str) -> None:
    done = document(ttsframe, source, "-o", f"steps.{suffix}")
    assert done["written"]["n_rows"] == 10
    if suffix != "csv":
        assert tts.read_steps(f"steps.{suffix}").equals(tts.read_steps(source))


def test_what_people_rated_is_converted_with_what_they_mean(
    ttsframe: Run, shared_data: Path
) -> None:
    path = shared_data / "openr" / "samples_prm800k.jsonl"
    steps = tts.read_steps(path).filter("is_on_path")
    whole = steps.filter(pl.col("rating").is_not_null().all().over("solution_id"))
    tts.write_steps(whole, "rated.jsonl", format="table")
    options = ["--paths", "--drop", "flagged", "--drop", "source", "--neutral", "wrong", "--to", "trl", "-o", "trl.jsonl"]  # fmt: skip
    assert ttsframe("steps", "rated.jsonl", *options).exit_code == 0
    labels = [
        label
        for line in Path("trl.jsonl").read_bytes().splitlines()
        for label in json.loads(line)["labels"]
    ]
    assert labels == (whole["rating"] == 1).to_list()


def test_bad_rows_stop_or_are_counted(ttsframe: Run, source: Path) -> None:
    with source.open("a", encoding="utf-8") as stream:
        stream.write('{"input": "no step", "label": "no step", "task": "mine"}\n')
    stopped = ttsframe("steps", source)
    assert stopped.exit_code == 2
    assert "line 6: 'input' has no 'ки'" in stopped.stderr
    assert "--on-error skip leaves such rows out" in stopped.stderr
    kept = ttsframe("steps", source, "--on-error", "skip", "--json")
    assert json.loads(kept.stdout)["n_steps"] == 10
    assert "Warning: 1 row skipped" in kept.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "trl"], "--to says how a file is written; name the file with -o FILE"),
        (["--neutral", "right"], "--neutral says how a file is written"),
        (["--to", "trl", "-o", "x.parquet"], "must end in .jsonl or .json"),
        (["-o", "x.txt"], "must end in .parquet, .jsonl"),
        (["-o", "no/x.parquet"], "no such folder"),
        (["-o", "shepherd.jsonl"], "is one of the sources"),
        (["--drop", "nothing"], "1 missing column for --drop: 'nothing'"),
        (["--scores", "nothing"], "1 missing column for steps: 'nothing'"),
        (["--by", "task"], "--by tells completions or scores of several runs apart"),
        (["--scores", "is_correct", "--by", "step"], "by names ['step'], which are columns of the result"),
        (["--scores", "is_correct", "--by", "nothing"], "1 missing column for steps: 'nothing'"),
        (["--to", "math_aps", "-o", "x.jsonl"], "'math_aps' is not one of 'math_shepherd', 'openr', 'trl', 'table'"),
        (["--to", "prm800k", "--neutral", "right", "-o", "x.jsonl"], "'prm800k' is not one of"),
        (["--format", "trl"], "is not in format 'trl'"),
        (["--right-above", "2"], "2.0 is not in the range"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_message(
    ttsframe: Run, source: Path, arguments: list[str], message: str
) -> None:
    result = ttsframe("steps", source, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in source.parent.iterdir()) == ["shepherd.jsonl"]


def test_hints_are_options(ttsframe: Run, shared_data: Path) -> None:
    folder = shared_data / "openr"
    to = ["--to", "trl", "-o", "x.jsonl"]
    tree = folder / "samples_math-aps-tree.jsonl"
    assert "Hint: --paths makes a solution of each path" in ttsframe("steps", tree, *to).stderr
    paths = ttsframe("steps", tree, "--paths", *to).stderr
    assert "--drop soft leaves that out. --right-above 0.5 turns" in paths
    rated = folder / "samples_prm800k.jsonl"
    assert "Hint: --paths keeps the one" in ttsframe("steps", rated, *to).stderr
    neutral = ttsframe("steps", rated, "--paths", *to).stderr
    assert "--neutral right counts it as right, as OpenR does, --neutral wrong" in neutral


def test_files_of_several_formats_are_not_mixed(ttsframe: Run, source: Path) -> None:
    assert ttsframe("steps", source, "--to", "trl", "-o", "trl.jsonl").exit_code == 0
    result = ttsframe("steps", source, "trl.jsonl")
    assert result.exit_code == 2
    assert "'ttsframe steps SOURCE -o run.parquet' converts each format" in result.stderr
