"""What is wrong with a file of labelled steps is said by file and line, and can be left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError, SourceError
from ttsframe.readers.steps import WritableStepFormat

TAG = "\n" * 5
SHEPHERD = {"input": "Q? Step 1: a ки\nStep 2: b ки", "label": "Q? Step 1: a +\nStep 2: b -"}
TRL = {"prompt": "Q", "completions": ["a", "b"], "labels": [True, False]}
OPENR = {"question": "Q", "process": f"a {TAG} b {TAG}", "label": ["+", "-"]}
APS: dict[str, Any] = {
    "question": "Q",
    "final_answer": "1",
    "reasoning_steps": [{"solution_prefix": "Q", "mc_value": 0.5}, {"solution_prefix": "Qa"}],
}
TREE: dict[str, Any] = {
    "question": "Q",
    "final_answer": "1",
    "reasoning_steps": {"text": "Q", "mc_value": 0.5, "children": [{"text": "a"}]},
}
PRM: dict[str, Any] = {
    "question": {"problem": "Q"},
    "label": {"steps": [{"completions": [{"text": "a", "rating": 1}], "chosen_completion": 0}]},
}
# QwenLM/ProcessBench at 1aad799, code/run_eval_prm_rlhflow.py, `main`; without the id, which is that of a solution.
BENCH: dict[str, Any] = {
    "generator": "m",
    "problem": "Q",
    "steps": ["a", "b", "c"],
    "final_answer_correct": False,
    "label": 1,
    "prediction": 2,
    "match": False,
}
# ssmisya/PRMBench at cc7db59, mr_eval/tasks/prmtest_classified/task.py, `load_data_function`.
PRMBENCH: dict[str, Any] = {
    "original_question": "Q?",
    "modified_question": "Q",
    "original_process": ["a"],
    "modified_process": ["a", "b"],
    "modified_steps": [2],
    "error_steps": [2],
    "classification": "circular",
}
# ssmisya/PRMBench at 03a539b, mr_eval/tasks/base_dataset/base_evaluation_dataset.py, `save_item_into_ckpt_file`, and
# mr_eval/models/qwen_prm.py at 5b236bd, `QwenPRM.respond`.
CHECKPOINT: dict[str, Any] = {
    "task_name": "prmtest_classified",
    "model_name": "m",
    "results": {
        "scores": {
            "step_level_validity_scores": [0.75, 0.25],
            "step_level_validity_labels": [True, False],
        },
        "idx": "circular_prm_test_p1_0",
    },
}
TABLE = {"problem_id": "p", "solution_id": "s", "step": 0, "text": "a", "rating": 1}
GOOD: dict[str, dict[str, Any]] = {
    "math_shepherd": SHEPHERD,
    "math_aps": APS,
    "math_aps_tree": TREE,
    "prm800k": PRM,
    "openr": OPENR,
    "trl": TRL,
    "processbench": BENCH,
    "prmbench": PRMBENCH,
    "prmbench_results": CHECKPOINT,
    "table": TABLE,
}


def entry(**fields: Any) -> dict[str, Any]:
    return {**APS, "reasoning_steps": [fields]}


def node(**fields: Any) -> dict[str, Any]:
    return {**TREE, "reasoning_steps": {"text": "Q", **fields}}


def alternative(**fields: Any) -> dict[str, Any]:
    return {**PRM, "label": {"steps": [{"completions": [{"text": "a", "rating": 1, **fields}]}]}}


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("math_shepherd", {**SHEPHERD, "input": "Q? Step 1: a"}, "'input' has no 'ки'"),
    ("math_shepherd", {**SHEPHERD, "input": None}, "'input' is null"),
    ("math_shepherd", {**SHEPHERD, "label": None}, "'label' is null"),
    ("math_shepherd", {"input": "Q? a ки", "label": "Q? a +"}, "'input' has no 'Step 1:'"),
    ("math_shepherd", {**SHEPHERD, "label": "Q? Step 1: a +\nStep 2: c -"}, "differ before 'ки' 2"),
    ("math_shepherd", {**SHEPHERD, "label": "Q? Step 1: a +\nStep 2: b *"}, "no [+] or - in the place of 'ки' 2"),
    ("math_shepherd", {**SHEPHERD, "label": "Q? Step 1: a я\nStep 2: b -"}, "no [+] or - in the place of 'ки' 1"),
    ("math_shepherd", {**SHEPHERD, "label": "Q? Step 1: a +\nStep 2: b -+"}, "differ after the last 'ки'"),
    ("math_shepherd", {**SHEPHERD, "label": "Q? Step 1: a +"}, "differ before 'ки' 2"),
    ("trl", {**TRL, "labels": [True]}, "has 2 completions but 1 labels"),
    ("trl", {**TRL, "prompt": None}, "'prompt' is null"),
    ("trl", {**TRL, "completions": None}, "'completions' is null"),
    ("trl", {**TRL, "labels": None}, "'labels' is null"),
    ("trl", {**TRL, "completions": ["a", None]}, "'completions' has a null"),
    ("trl", {**TRL, "labels": [True, 1]}, r"labels\[1\] is a number \(1\), must be true or false"),
    ("trl", {**TRL, "problem_id": None}, "'problem_id' is null"),
    ("openr", {**OPENR, "label": ["+"]}, "has 1 labels but 2 steps that end in five line ends"),
    ("openr", {**OPENR, "process": f"a {TAG} b {TAG} c"}, "nothing after the last"),
    ("openr", {**OPENR, "label": ["+", "x"]}, r"must hold '\+' and '-' only"),
    ("openr", {**OPENR, "label": ["+", None]}, r"must hold '\+' and '-' only"),
    ("openr", {**OPENR, "label": None}, "'label' is null"),
    ("openr", {**OPENR, "process": None}, "'process' is null"),
    ("openr", {**OPENR, "question": None}, "'question' is null"),
    ("math_aps", entry(solution_prefix="x"), r"reasoning_steps\[0\].solution_prefix does not begin"),
    ("math_aps", entry(solution_prefix=None), "an object without 'solution_prefix'"),
    ("math_aps", entry(solution_prefix="Q", mc_value="x"), r"mc_value is a string \('x'\)"),
    ("math_aps", {**APS, "reasoning_steps": []}, "'reasoning_steps' is empty"),
    ("math_aps", {**APS, "reasoning_steps": None}, "'reasoning_steps' is null"),
    ("math_aps", {**APS, "question": None}, "'question' is null"),
    ("math_aps_tree", node(children=[{"mc_value": 1}]), r"children\[0\] must be an object with a text"),
    ("math_aps_tree", node(children=[{"text": "a", "mc_value": "x"}]), r"children\[0\].mc_value is a string"),
    ("math_aps_tree", node(visits=3), "has a key 'visits', must only have"),
    ("math_aps_tree", node(children={"text": "a"}), "children must be a list"),
    ("math_aps_tree", {**TREE, "reasoning_steps": None}, "'reasoning_steps' is null"),
    ("math_aps_tree", {**TREE, "question": None}, "'question' is null"),
    ("prm800k", {**PRM, "question": {"ground_truth_answer": "1"}}, "'question' has no problem"),
    ("prm800k", {**PRM, "label": {"total_time": 3}}, "'label' has no steps"),
    ("prm800k", {**PRM, "label": None}, "'label' has no steps"),
    ("prm800k", alternative(rating=2), "a rating must be -1, 0, 1 or null"),
    ("prm800k", alternative(rating="x"), "rating is a string"),
    ("prm800k", {**PRM, "label": {"steps": [{"completions": [None]}]}}, "an alternative is null"),
    ("processbench", {**BENCH, "label": 3}, "'label' is 3 but there are 3 steps"),
    ("processbench", {**BENCH, "label": -2}, "'label' is -2 but there are 3 steps"),
    ("processbench", {**BENCH, "label": None}, "'label' is null"),
    ("processbench", {**BENCH, "problem": None}, "'problem' is null"),
    ("processbench", {**BENCH, "steps": None}, "'steps' is null"),
    ("processbench", {**BENCH, "steps": ["a", None]}, "'steps' has a null element"),
    ("processbench", {**BENCH, "prediction": "x"}, r"prediction is a string \('x'\)"),
    ("prmbench", {**PRMBENCH, "error_steps": [0]}, "'error_steps' has 0 to 0, but there are 2 steps"),
    ("prmbench", {**PRMBENCH, "error_steps": [1, 3]}, "'error_steps' has 1 to 3, but there are 2"),
    ("prmbench", {**PRMBENCH, "error_steps": [None]}, "'error_steps' has a null element"),
    ("prmbench", {**PRMBENCH, "error_steps": None}, "'error_steps' is null"),
    ("prmbench", {**PRMBENCH, "modified_process": None}, "'modified_process' is null"),
    ("prmbench", {**PRMBENCH, "modified_process": [None]}, "'modified_process' has a null element"),
    ("prmbench", {**PRMBENCH, "modified_question": None}, "'modified_question' is null"),
    ("prmbench_results", {**CHECKPOINT, "results": {"idx": None, "scores": None}}, "'results.idx' is null"),
    ("prmbench_results", {**CHECKPOINT, "results": {"idx": "x", "scores": {"step_level_validity_scores": [0.5], "step_level_validity_labels": []}}}, "differ in length"),
    ("table", {**TABLE, "step": None}, "step is None, must be a whole number from -1"),
    ("table", {**TABLE, "step": 0.5}, "step is 0.5, must be a whole number from -1"),
    ("table", {**TABLE, "step": -2}, "step is -2, must be a whole number from -1"),
    ("table", {**TABLE, "rating": 3}, "rating is 3, must be -1, 0, 1 or null"),
    ("table", {**TABLE, "solution_id": None}, "solution_id is None"),
]  # fmt: skip

Store = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a function that writes rows as JSON lines."""

    def write(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "steps.jsonl"
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(("name", "row", "message"), BAD)
def test_a_bad_row_is_named_or_left_out(
    name: str, row: dict[str, Any], message: str, store: Store
) -> None:
    good = GOOD[name]
    if "problem_id" in row and name != "table":
        good = {**good, "problem_id": "p"}
    path = store(good, row, good)
    with pytest.raises(SourceError, match=message) as caught:
        tts.read_steps(path)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    with pytest.warns(tts.errors.SkippedRowsWarning, match=f"1 row skipped: .*line 2: .*{message}"):
        kept = tts.read_steps(path, on_error="skip")
    expected = tts.read_steps(store(good, good))
    assert kept.select(expected.columns).equals(expected)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_row_is_recognised_alone(name: str, store: Store) -> None:
    path = store(GOOD[name])
    steps = tts.read_steps(path)
    assert steps.equals(tts.read_steps(path, format=name))  # type: ignore[arg-type]
    assert steps.schema["step"] == pl.Int64()
    assert steps.height
    for other in GOOD.keys() - {name}:
        with pytest.raises(SourceError, match=f"is not in format '{other}'"):
            tts.read_steps(path, format=other)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in GOOD if name not in {"table", "processbench"}])
@pytest.mark.parametrize("column", ["step", "text", "problem", "soft", "node", "__texts"])
def test_a_column_with_the_name_of_one_that_is_made_is_refused(
    name: str, column: str, store: Store
) -> None:
    with pytest.raises(
        ColumnsError, match=f"column '{column}' has the name of a column that reading"
    ):
        tts.read_steps(store({**GOOD[name], column: "mine"}))
    kept = tts.read_steps(store({**GOOD[name], column: "mine"}), rename={column: "theirs"})
    assert kept["theirs"].unique().to_list() == ["mine"]


@pytest.mark.parametrize("name", GOOD)
def test_files_of_one_format_are_read_together_and_told_apart(
    name: str, store: Store, tmp_path: Path
) -> None:
    store(GOOD[name]).rename(tmp_path / "one.jsonl")
    store(GOOD[name]).rename(tmp_path / "two.jsonl")
    steps = tts.read_steps(tmp_path)
    assert steps["source_file"].unique().len() == 2
    one = steps.filter(pl.col("source_file").str.ends_with("one.jsonl")).drop("source_file")
    assert one.equals(tts.read_steps(tmp_path / "one.jsonl"))


@pytest.mark.parametrize("name", sorted(GOOD.keys() - {"table", "prmbench_results"}))
def test_equal_solutions_get_numbers(name: str, store: Store, tmp_path: Path) -> None:
    path = store(GOOD[name], GOOD[name], GOOD[name])
    steps = tts.read_steps(path)
    ids = steps["solution_id"].unique(maintain_order=True).to_list()
    assert ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]
    assert steps["problem_id"].n_unique() == 1
    if name in get_args(WritableStepFormat):
        copy = tmp_path / "copy.jsonl"
        tts.write_steps(steps, copy, format=name)  # type: ignore[arg-type]
        assert len(copy.read_bytes().splitlines()) == 3
        assert b"solution_id" not in copy.read_bytes()


def test_ids_of_the_source_are_kept(store: Store, tmp_path: Path) -> None:
    path = store({**TRL, "problem_id": 7, "solution_id": "mine"})
    steps = tts.read_steps(path)
    assert steps["problem_id"].to_list() == [7, 7]
    assert steps["solution_id"].to_list() == ["mine"] * 2
    tts.write_steps(steps, tmp_path / "copy.jsonl", format="trl")
    copy = json.loads((tmp_path / "copy.jsonl").read_bytes())
    assert copy == {**TRL, "problem_id": 7, "solution_id": "mine"}


def test_problems_pair_with_those_of_runs(store: Store, tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    run.write_text(json.dumps({"problem": "Q?", "completion": "42"}))
    steps = tts.read_steps(store(SHEPHERD))
    assert steps["problem_id"][0] == tts.read_trajectories(run)["problem_id"][0]


def test_text_after_the_last_token_is_a_step_without_a_label(store: Store) -> None:
    steps = tts.read_steps(
        store({"input": "Q? Step 1: a ки\nStep 2: cut", "label": "Q? Step 1: a +\nStep 2: cut"})
    )
    assert steps["text"].to_list() == ["Step 1: a", "Step 2: cut"]
    assert steps["is_correct"].to_list() == [True, None]


def test_the_problem_ends_before_the_first_step_one(store: Store) -> None:
    steps = tts.read_steps(
        store({"input": "Step 1: a Step 1: b ки", "label": "Step 1: a Step 1: b +"})
    )
    assert steps.select("problem", "text").rows() == [("", "Step 1: a Step 1: b")]


def test_completions_are_no_steps(store: Store) -> None:
    with pytest.raises(ColumnsError, match="'rollout' marks a table of completions"):
        tts.read_steps(store({**TABLE, "rollout": 0}))


def test_what_is_no_format_of_steps_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"in no known format.*math_aps_tree: 'question' and 'reasoning_steps' \(a Struct\)"):  # fmt: skip
        tts.read_steps(store({"a": 1}))
    text = tmp_path / "notes.txt"
    text.write_text("steps")
    with pytest.raises(SourceError, match="write a table with one row per step"):
        tts.read_steps(text)
    with pytest.raises(ParameterError, match="format == 'steps', must be one of"):
        tts.read_steps(text, format="steps")  # type: ignore[arg-type]
    with pytest.raises(ColumnsError, match="no row has 'steps' in its 'label'"):
        tts.read_steps(store({**PRM, "label": {"total_time": 3}}))
    with pytest.raises(ColumnsError, match=r"'reasoning_steps' is .* must be a list of objects"):
        tts.read_steps(store({**APS, "reasoning_steps": [{"mc_value": 0.5}]}))
    with pytest.raises(ColumnsError, match="column 'step' is List"):
        tts.read_steps(store({**TABLE, "step": [1]}))


def test_trees_as_deep_as_brackets_may_nest(store: Store, tmp_path: Path) -> None:
    tree = TREE["reasoning_steps"]
    for _ in range(400):
        tree = {"text": "Q", "mc_value": 0.5, "children": [tree]}
    row = {**TREE, "reasoning_steps": tree}
    steps = tts.read_steps(store(row))
    assert steps["step"].max() == 400
    assert steps["node"].to_list() == list(range(steps.height))
    assert steps["parent"].to_list()[:401] == [None, *range(400)]
    opened = '{"text": "a", "children": ['
    path = tmp_path / "deep.jsonl"
    path.write_text('{"question": "Q", "reasoning_steps": ' + opened * 5000 + "]}" * 5000 + "}")
    with pytest.raises(SourceError, match="line 1: brackets are nested too deeply"):
        tts.read_steps(path)


def test_latex_in_a_tree_is_read_as_it_stands(store: Store) -> None:
    text = 'so \\frac{1}{2}\\neq "x"\t\\\\ and \\n is no line end\n'
    steps = tts.read_steps(store(node(children=[{"text": text, "mc_value": 0.25, "children": []}])))
    assert steps["text"].to_list() == [None, text]


def test_nested_columns_of_parquet_are_read(store: Store, tmp_path: Path) -> None:
    for name in ("math_aps", "math_aps_tree", "prm800k", "trl", "openr", "math_shepherd"):
        path = store(GOOD[name])
        pl.read_ndjson(path).write_parquet(tmp_path / "steps.parquet")
        steps = tts.read_steps(tmp_path / "steps.parquet")
        assert steps.equals(tts.read_steps(path)), name


def test_fields_that_no_format_knows_become_columns(store: Store) -> None:
    rows = {
        "prm800k": {
            "question": {"problem": "Q", "ground_truth_answer": "1", "origin": "mine"},
            "label": {
                "steps": [
                    {
                        "completions": [{"text": "a", "rating": 1, "flagged": False, "seen": 3}],
                        "human_completion": {"text": "b", "rating": 1, "flagged": False, "corrected_rating": 0},
                        "chosen_completion": None,
                        "seconds": 1.5,
                    }
                ],
                "total_time": 3,
                "finish_reason": "solution",
                "round": 2,
            },
            "batch": "b",
        },
        "math_aps": entry(solution_prefix="Q", mc_value=0.5, visits=3) | {"level": 5},
    }  # fmt: skip
    prm = tts.read_steps(store(rows["prm800k"]))
    columns = ["text", "question.origin", "label.round", "step.seconds", "completion.seen"]
    assert prm.select(*columns, "completion.corrected_rating", "batch").rows() == [
        ("a", "mine", 2, 1.5, 3, None, "b"),
        ("b", "mine", 2, 1.5, None, 0, "b"),
    ]
    aps = tts.read_steps(store(rows["math_aps"]))
    assert aps.select("step", "soft", "reasoning_steps.visits", "level").rows() == [(-1, 0.5, 3, 5)]


def test_labels_of_processbench_end_at_the_first_wrong_step(store: Store) -> None:
    right = {**BENCH, "label": -1, "prediction": -1, "match": True, "id": "gsm8k-7"}
    steps = tts.read_steps(store({**BENCH, "id": "gsm8k-3"}, right))
    assert steps["is_correct"].to_list() == [True, False, None, True, True, True]
    assert steps["solution_id"].unique(maintain_order=True).to_list() == ["gsm8k-3", "gsm8k-7"]
    assert steps["problem_id"].n_unique() == 1
    assert steps["text"].to_list() == ["a", "b", "c"] * 2
    assert steps.select("prediction", "match", "generator").unique(maintain_order=True).rows() == [
        (2, False, "m"),
        (-1, True, "m"),
    ]


def test_data_and_results_of_prmbench_join_by_their_solutions(store: Store) -> None:
    data = tts.read_steps(store({**PRMBENCH, "idx": "prm_test_p1_0", "ground_truth": "7"}))
    assert data["is_correct"].to_list() == [True, False]
    assert data["gold"].to_list() == ["7"] * 2
    failed = {"scores": {}, "idx": "circular_prm_test_p1_1", "validity": False}
    path = store(CHECKPOINT, {**CHECKPOINT, "results": failed})
    results = tts.read_steps(path)
    assert results.select("step", "score", "is_correct_predicted", "model").rows() == [
        (0, 0.75, True, "m"),
        (1, 0.25, False, "m"),
        (-1, None, None, "m"),
    ]
    joined = data.join(results, on=["problem_id", "solution_id", "step"])
    assert joined.select("text", "is_correct", "score").rows() == [
        ("a", True, 0.75),
        ("b", False, 0.25),
    ]


def test_all_steps_of_other_solutions_of_prmbench_are_right(shared_data: Path) -> None:
    path = shared_data / "prmbench" / "prm_test_p12_multi_solutions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    steps = tts.read_steps(path)
    assert steps["text"].to_list() == [text for row in rows for text in row["modified_process"]]
    assert steps["is_correct"].all()
    assert steps["solution_id"].n_unique() == len(rows)
