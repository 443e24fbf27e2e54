"""Every reader gives the same table of attempts, lazily, in columns of one meaning and dtype."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import SkippedRowsWarning, SourceError, TtsframeError
from ttsframe.schema import COUNT_COLUMNS, TRAJECTORY_COLUMNS

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "search_and_learn": [
        {
            "unique_id": f"test/{i}.json",
            "problem": f"What is {i}?",
            "solution": rf"\boxed{{{i}}}",
            "answer": str(i),
            "completions": [rf"So \boxed{{{i}}}", "no"],
            "scores": [[0.5, 0.75], [0.25]],
        }
        for i in range(4)
    ],
    "qwen_math": [
        {
            "idx": i,
            "question": f"What is {i}?",
            "gt_cot": "",
            "gt": str(i),
            "code": [rf"So \boxed{{{i}}}", "no"],
            "pred": [str(i), ""],
            "score": [True, False],
            "pred_score": [[0.5, 1.5], [-2.0]],
        }
        for i in range(4)
    ],
    "lm_eval": [
        {
            "doc_id": i,
            "doc": {"question": f"What is {i}?"},
            "target": str(i),
            "resps": [[rf"So \boxed{{{i}}}", "no"]],
            "filtered_resps": [str(i)],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": 1.0,
        }
        for i in range(4)
    ],
    "lighteval": [
        {
            "doc": {"id": str(i), "query": f"What is {i}?", "choices": [str(i)], "gold_index": 0},
            "metric": {"em": 1.0},
            "model_response": {
                "text": [rf"So \boxed{{{i}}}", "no"],
                "output_tokens": [[1, 2], [3]],
            },
        }
        for i in range(4)
    ],
    "nemo_skills": [
        {
            "id": f"p{i}",
            "problem": f"What is {i}?",
            "generation": rf"So \boxed{{{attempt}}}",
            "expected_answer": "1",
            "predicted_answer": str(attempt),
            "symbolic_correct": attempt == 1,
            "reward_model_score": 0.5,
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "verl": [
        {
            "problem_id": f"p{i}",  # the tool has none: without it, reading warns
            "input": f"What is {i}?",
            "output": rf"So \boxed{{{attempt}}}",
            "gts": "1",
            "score": 0.5,
            "step": 10,
            "acc": attempt == 1,
            "pred": str(attempt),
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "trl": [
        {
            "problem_id": f"p{i}",
            "step": 10,
            "prompt": [{"role": "user", "content": f"What is {i}?"}],
            "completion": rf"So \boxed{{{attempt}}}",
            "accuracy_reward": 1.0,
            "gold": "1",
            "advantage": 0.5,
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "boinf": [
        {
            "problem_num": i,
            "total_answers": 2,
            "answer_counts": {"1": 1, "2": 1},
            "gold_answer": "1",
            "majority_answer": "1",
            "all_answers": [["1", 100], ["2", 200]],
        }
        for i in range(4)
    ],
    "openr1": [
        {
            "uuid": f"u{i}",
            "problem": f"What is {i}?",
            "solution": "So it is.",
            "answer": str(i),
            "generations": [rf"So \boxed{{{i}}}", "no"],
            "correctness_math_verify": [True, False],
            "correctness_llama": None,
            "is_reasoning_complete": [True, True],
            "finish_reasons": ["stop", "length"],
        }
        for i in range(4)
    ],
    "livecodebench": [
        {
            "question_id": f"q{i}",
            "question_content": f"Print {i}.",
            "difficulty": "easy",
            "output_list": [rf"So \boxed{{{i}}}", "no"],
            "code_list": ["print(1)", ""],
            "graded_list": [True, False],
            "pass@1": 0.5,
            "metadata": ["{}", "{}"],
        }
        for i in range(4)
    ],
    "human_eval": [
        {
            "task_id": f"HumanEval/{i}",
            "completion": f"    return {attempt}",
            "result": "passed" if attempt == 1 else "failed: ",
            "passed": attempt == 1,
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "verifiers": [
        {
            "example_id": i,
            "prompt": [{"role": "user", "content": f"What is {i}?"}],
            "completion": [{"role": "assistant", "content": rf"So \boxed{{{attempt}}}"}],
            "answer": "1",
            "reward": float(attempt == 1),
            "error": None,
            "is_truncated": False,
            "token_usage": {"input_tokens": 7.0, "output_tokens": 3.0},
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "every_eval_ever": [
        {
            "evaluation_id": "run",
            "model_id": "m",
            "evaluation_name": "sums",
            "sample_id": f"p{i}",
            "interaction_type": "single_turn",
            "input": {"raw": f"What is {i}?", "reference": ["1"]},
            "output": {"raw": [rf"So \boxed{{{attempt}}}"]},
            "answer_attribution": [{"extracted_value": str(attempt), "is_terminal": True}],
            "evaluation": {"score": 0.5, "is_correct": attempt == 1},
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "optillm": [
        {
            "index": i,
            "problem": f"What is {i}?",
            "attempts": [
                {"attempt_number": 1, "response": rf"So \boxed{{{i}}}", "predicted_answer": i},
                {"attempt_number": 2, "response": "no", "predicted_answer": None},
            ],
            "correct_answer": i,
            "is_correct": True,
            "first_correct_attempt": 1,
        }
        for i in range(4)
    ],
    "its_hub": [
        {
            "unique_id": f"p{i}",
            "budget": 2,
            "responses": [rf"So \boxed{{{i}}}", "no"],
            "log_probs": [-0.5, -1.5],
            "correct": 0.75,
            "gold": str(i),  # the tool has none
        }
        for i in range(4)
    ],
    "self_certainty": [
        {
            "session_id": f"p{i}",
            "model_input": f"What is {i}?",
            "output": [rf"So \boxed{{{i}}}", "no"],
            "generator": "m",
            "dataset": "sums",
            "confidence_list": [12.5, 11.5],
            "gold": str(i),  # the tool has none
        }
        for i in range(4)
    ],
    "verify_cot": [
        {
            "example_idx": i,
            "question": f"What is {i}?",
            "final_answer": str(i),
            "model_outputs": [f"It is {i}.", "no"],
            "pred_answers": [str(i), ""],
            "per_sample_correct": [True, False],
        }
        for i in range(4)
    ],
    "eval_framework": [
        {
            "id": 2 * i + attempt,
            "problem_id": f"p{i}",  # the tool has none: without it, reading warns
            "subject": "sums",
            "ground_truth": "1",
            "prompt": f"What is {i}?",
            "completion": str(attempt),
            "raw_completion": rf"So \boxed{{{attempt}}}",
            "raw_completion_sequence_positions": 3,
            "error": None,
        }
        for i in range(4)
        for attempt in range(2)
    ],
    "long_form": [
        {
            "problem_id": f"p{i}",
            "attempt": attempt,
            "completion": rf"So \boxed{{{attempt}}}",
            "gold": "1",
            "step_scores": [0.5, 0.25],
        }
        for i in range(4)
        for attempt in range(2)
    ],
}
"""Rows of eight attempts at four problems, by format; a new format goes here."""
OTHERS: dict[str, dict[str, Any]] = {
    "rebase": {"id": 0, "question": "q", "model_answer": [{"text": "a", "step_scores": [0.5]}]},
    "compute_optimal_tts": {
        "question": "q",
        "groundtruth": "1",
        "result": {"majority_vote": 1},
        "output": [{"text": "a", "value": [0.5]}],
    },
    "verl_generation": {
        "prompt": "p",
        "responses": ["a", "b"],
        "reward_model": {"ground_truth": "1"},
    },
    "sieval": {
        "sample_id": 0,
        "iteration": 0,
        "stage": "inferred",
        "infer_result": {"texts": ["a", "b"]},
    },
    "counts": {"problem_id": "a", "n": 4, "c": 1},
}
"""A row of formats whose runs are parted otherwise."""


def write(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", tts.READERS)
def test_every_registered_format_says_what_it_is(name: str) -> None:
    reader = tts.READERS[name]  # type: ignore[index]
    assert reader.summary
    assert reader.expects
    assert reader.unit
    assert "'" in reader.expects
    if reader.unpacking is None:
        assert reader.accepts([group[0] for group in reader.requires])
    renamed = {ours for ours in reader.columns.values() if not ours.startswith("source_")}
    assert renamed <= {*TRAJECTORY_COLUMNS, *COUNT_COLUMNS, "model", "seed"}
    if reader.scores is not None:
        assert reader.scores.column in {"score", "step_scores"}
    codes = [trap.code for trap in reader.traps]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("name", tts.READERS)
def test_traps_can_be_checked_on_any_table(name: str) -> None:
    traps = tts.READERS[name].traps  # type: ignore[index]
    for trap in traps:
        assert set(trap.is_caught.meta.root_names()) <= set(trap.columns), trap.code
        assert trap.clause, trap.code
        assert trap.hint.endswith("."), trap.code
    run = pl.DataFrame({"problem_id": ["a"], "attempt": [0], "completion": ["x"], "gold": "1"})
    assert tts.validate_trajectories(run, traps=traps).is_valid


def test_every_table_has_an_example_here() -> None:
    tables = {name for name, reader in tts.READERS.items() if reader.unpacking is None}
    assert SAMPLES.keys() | OTHERS.keys() == tables


@pytest.mark.filterwarnings("ignore::ttsframe.errors.SourceWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_another_format_is_recognised_and_can_be_named(name: str, tmp_path: Path) -> None:
    path = write([OTHERS[name]], tmp_path / "any.name")
    found = tts.read_trajectories(path)
    assert_frame_equal(found, tts.read_trajectories(path, format=name))  # type: ignore[arg-type]
    assert [other for other, each in tts.READERS.items() if each.recognizes(OTHERS[name])] == [name]
    number = "n_attempts" if name == "counts" else "attempt"
    assert found.columns[:2] == ["problem_id", number]
    assert found.schema[number] == pl.UInt32


@pytest.mark.parametrize("name", [*SAMPLES, *OTHERS])
def test_a_format_that_is_not_there_says_what_it_expects(name: str, tmp_path: Path) -> None:
    path = write([{"prompt": "x", "outputs": ["y"]}], tmp_path / "run.jsonl")
    with pytest.raises(SourceError) as caught:
        tts.scan_trajectories(path, format=name)  # type: ignore[arg-type]
    found = "found columns: ['prompt', 'outputs']"
    expected = f"{path}: is not in format {name!r}; {found}; expected: "
    assert str(caught.value).startswith(expected + tts.READERS[name].expects)  # type: ignore[index]
    with pytest.raises(SourceError, match=f"in no known format; {re.escape(found)}"):
        tts.scan_trajectories(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_recognised_by_its_content(name: str, tmp_path: Path) -> None:
    path = write(SAMPLES[name], tmp_path / "any.name")
    found = tts.read_trajectories(path)
    assert_frame_equal(found, tts.read_trajectories(path, format=name))  # type: ignore[arg-type]
    assert found.height == 8
    for other in set(tts.READERS) - {name, "long_form"}:
        assert not tts.READERS[other].recognizes(set(SAMPLES[name][0])), other


@pytest.mark.parametrize("name", SAMPLES)
def test_columns_have_the_dtypes_of_the_design(name: str, tmp_path: Path) -> None:
    plan = tts.scan_trajectories(write(SAMPLES[name], tmp_path / "run.jsonl"))
    assert type(plan) is pl.LazyFrame
    found = plan.collect()
    assert found.schema == plan.collect_schema()
    assert found.columns[:2] == ["problem_id", "attempt"]
    for column, dtype in found.schema.items():
        if column in TRAJECTORY_COLUMNS and column != "problem_id":
            assert dtype == TRAJECTORY_COLUMNS[column].dtype, column
    assert found.schema["problem_id"] == pl.String or found.schema["problem_id"].is_integer()
    numbers = found.group_by("problem_id").agg(pl.col("attempt").sort())["attempt"]
    assert numbers.to_list() == [[0, 1]] * 4


@pytest.mark.parametrize("name", SAMPLES)
def test_a_reading_goes_through_the_whole_analysis(name: str, tmp_path: Path) -> None:
    run = tts.scan_trajectories(write(SAMPLES[name], tmp_path / "run.jsonl"))
    problems = run.pipe(tts.score_trajectories).pipe(
        tts.select_answers, selectors=["majority_vote", "oracle"], budgets=[1, 2]
    )
    for engine in ("in-memory", "streaming"):
        curve = tts.scaling_curve(problems).collect(engine=engine)  # type: ignore[call-overload]
        assert curve.height == 4
        assert set(curve["n_problems"]) == {4}


@pytest.mark.parametrize("n_parts", [2, 4])
@pytest.mark.parametrize("name", SAMPLES)
def test_files_that_split_a_run_are_read_together_and_never_joined(
    name: str, n_parts: int, tmp_path: Path
) -> None:
    rows = SAMPLES[name]
    whole = tts.read_trajectories(write(rows, tmp_path / "whole.jsonl"))
    folder = tmp_path / "parts"
    folder.mkdir()
    size = len(rows) // n_parts
    for part in range(n_parts):
        write(rows[part * size : (part + 1) * size], folder / f"part-{part}.jsonl")
    together = tts.read_trajectories(folder)
    assert together["source_file"].n_unique() == n_parts
    assert_frame_equal(together.drop("source_file"), whole, check_row_order=False)


def test_nothing_is_read_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        tts.scan_trajectories(tmp_path / "gone.jsonl")


# -- damage: an error that names file and line, or the rows that are whole

WRONG: tuple[Any, ...] = (
    None,
    [],
    {},
    [None],
    [[]],
    [["x"]],
    "",
    "12",
    12,
    -1,
    0.5,
    True,
    float("nan"),
    float("inf"),
    10**30,
    {"x": [None]},
    "\ud800",
)
"""Values that are nearly everywhere of the wrong type, or of the right one and odd."""


def lines(name: str) -> list[bytes]:
    return [json.dumps(row).encode() for row in SAMPLES[name]]


def write_lines(path: Path, content: list[bytes], end: bytes = b"\n") -> Path:
    path.write_bytes(end.join(content) + end)
    return path


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(
    "damage", ["cut off", "no JSON", "not UTF-8", "a list", "a number", "two objects"]
)
def test_a_damaged_line_is_named_or_skipped_and_counted(
    name: str, damage: str, tmp_path: Path
) -> None:
    whole = lines(name)
    broken = {
        "cut off": whole[-1][:-7],
        "no JSON": b"{'id': 1}",
        "not UTF-8": whole[-1][:-3] + b'\xff"}',
        "a list": b"[" + whole[-1] + b"]",
        "a number": b"17",
        "two objects": whole[-1] + b" " + whole[-1],
    }[damage]
    path = write_lines(tmp_path / "x.jsonl", [*whole[:2], broken, *whole[2:]])
    with pytest.raises(SourceError, match=r"x\.jsonl, line 3: "):
        tts.read_trajectories(path)
    with pytest.warns(SkippedRowsWarning, match=r"^1 row skipped: .*line 3"):
        kept = tts.read_trajectories(path, on_error="skip")
    assert_frame_equal(kept, tts.read_trajectories(write_lines(tmp_path / "whole.jsonl", whole)))


@pytest.mark.parametrize("name", SAMPLES)
def test_marks_and_line_ends_of_other_systems_change_nothing(name: str, tmp_path: Path) -> None:
    whole = lines(name)
    expected = tts.read_trajectories(write_lines(tmp_path / "x.jsonl", whole))
    marked = [codecs.BOM_UTF8 + whole[0], *whole[1:]]
    assert_frame_equal(tts.read_trajectories(write_lines(tmp_path / "x.jsonl", marked)), expected)
    assert_frame_equal(
        tts.read_trajectories(write_lines(tmp_path / "x.jsonl", whole, b"\r\n")), expected
    )
    blank = [b"", *[part for line in whole for part in (line, b"", b"  ")]]
    assert_frame_equal(tts.read_trajectories(write_lines(tmp_path / "x.jsonl", blank)), expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_unknown_fields_pass_and_repeated_keys_count_once(name: str, tmp_path: Path) -> None:
    whole = lines(name)
    expected = tts.read_trajectories(write_lines(tmp_path / "x.jsonl", whole))
    more = [line[:-1] + b', "unknown_to_all": [1, {"a": null}]}' for line in whole]
    found = tts.read_trajectories(write_lines(tmp_path / "x.jsonl", more))
    assert_frame_equal(found.drop("unknown_to_all"), expected)
    key, value = next(iter(SAMPLES[name][0].items()))
    second = f", {json.dumps(key)}: {json.dumps(value)}}}".encode()
    twice = [line[:-1] + second for line in whole]
    assert_frame_equal(tts.read_trajectories(write_lines(tmp_path / "x.jsonl", twice)), expected)


def paths(value: object, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value of a row, also within lists and objects."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield (key,)
        if depth < 3:
            yield from ((key, *rest) for rest in paths(inner, depth + 1))


def replaced(row: Any, way: tuple[Any, ...], value: object) -> Any:
    copy = row.copy()
    copy[way[0]] = value if len(way) == 1 else replaced(row[way[0]], way[1:], value)
    return copy


@pytest.mark.parametrize("name", SAMPLES)
def test_a_wrong_value_anywhere_is_an_error_or_leaves_the_other_rows_as_they_are(
    name: str, tmp_path: Path
) -> None:
    rows = SAMPLES[name]
    expected = tts.read_trajectories(write_lines(tmp_path / "x.jsonl", lines(name)))
    last = expected["problem_id"][-1]
    keys = [
        each for each in ("problem_id", "attempt", "completion", "gold") if each in expected.columns
    ]
    others = expected.filter(pl.col("problem_id") != last).select(keys)
    n_read = 0
    # A quarter of all pairs; which depends on nothing but the name.
    pairs = [(way, value) for way in paths(rows[-1]) for value in WRONG]
    for way, value in pairs[len(name) % 4 :: 4]:
        path = write_lines(
            tmp_path / "x.jsonl",
            [json.dumps(row).encode() for row in [*rows[:-1], replaced(rows[-1], way, value)]],
        )
        try:
            found = tts.read_trajectories(path)
        except TtsframeError:
            continue
        n_read += 1
        kept = found.with_columns(pl.col("problem_id").cast(pl.String)).filter(
            pl.col("problem_id").is_in(others["problem_id"].cast(pl.String).implode())
        )
        assert_frame_equal(
            kept.select(set(keys) & set(found.columns)),
            others.with_columns(pl.col("problem_id").cast(pl.String)).select(
                set(keys) & set(found.columns)
            ),
            check_column_order=False,
            check_dtypes=False,
        )
    assert n_read
