"""Results of other evaluations, on files written by hand from the source of the tools that write them.

OpenCompass: open-compass/opencompass, opencompass/openicl/icl_inferencer/icl_base_inferencer.py at 00c80cd
(`GenInferencerOutputHandler.save_results`), icl_evaluator/icl_base_evaluator.py at 0a24b2e (`BaseEvaluator.evaluate`),
opencompass/evaluator/math_evaluator.py at 1c65fe9 (`MATHVerifyEvaluator.score`).
EvalPlus: evalplus/evalplus at 58571f9, evalplus/evaluate.py, `evaluate`; the old form: `evaluate` of release 0.1.2, with the
statuses of evalplus/eval/__init__.py at 038088e, `untrusted_check`.
BigCodeBench: bigcode-project/bigcodebench at 0133cc1, bigcodebench/evaluate.py, `evaluate`.
HELM: stanford-crfm/helm, src/helm/benchmark/runner.py at 0010b10 (`Runner.run_one`), adaptation/request_state.py at
317976a (`RequestState`), src/helm/common/request.py at 05a0c7c (`Sequence`, `RequestResult`).
verifiers: PrimeIntellect-ai/verifiers at 00d8320, verifiers/utils/save_utils.py, `state_to_output`.
optillm: codelion/optillm at 82b6c24, scripts/eval_aime_benchmark.py, `main`.
its_hub: Red-Hat-AI-Innovation-Team/its_hub at 13dee14, scripts/benchmark.py, `main`.
Self-Certainty: backprop07/Self-Certainty at 10f47c7, src/confidence_list.py, `confidence_with_file`.
verify_cot: lz1oceani/verify_cot at 2fd67c0, results/chatgpt3.5/natural_program/date_np.json; run_verification.py at
403f57d, `verification`.
eval-framework: Aleph-Alpha-Research/eval-framework, src/eval_framework/shared/types.py at 02bc102 (`Completion`),
result_processors/result_processor.py at 1053f5b (`ResultsFileProcessor.save_responses`).
every_eval_ever: evaleval/every_eval_ever, None/narrativeqa/openai/gpt2/None_samples.jsonl at eb7600f (its converter of
HELM), every_eval_ever/schemas/instance_level_eval.schema.json at 21b3d1a.
sieval: scitix/sieval, sieval/core/tasks/context.py at 1e68a27 (`TaskContext.serialize`), records.py at 11125c3
(`build_judgement_record`), saver.py at 37d1354 (`TaskSaver._write_shard`), core/models/_legacy_bridge.py at 8729a19.
verl: volcengine/verl at 0d75188, verl/trainer/main_generation.py, `main_task` (a column `responses` beside those of the data set).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, SkippedRowsWarning, SourceError, SourceWarning


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def document(path: Path, content: object, indent: int | None = None) -> Path:
    path.write_text(json.dumps(content, indent=indent))
    return path


def findings(run: pl.DataFrame, name: str) -> dict[str, int]:
    traps = tts.READERS[name].traps  # type: ignore[index]
    codes = {trap.code for trap in traps}
    found = tts.validate_trajectories(run, traps=traps).findings
    return {each.code: each.count for each in found if each.code in codes}


# -- OpenCompass ----------------------------------------------------------------------------------

PREDICTIONS = {
    str(number): {
        "origin_prompt": [
            {"role": "SYSTEM", "prompt": "Be brief."},
            {"role": "HUMAN", "prompt": f"What is {number % 3}?"},
        ],
        "prediction": f"So {number}.",
        "gold": str(number % 3),
        "res_length": number + 1,
        "all_input_length": 9,
    }
    for number in range(6)  # three problems, twice, in blocks
}


def test_predictions_of_opencompass_are_blocks_of_the_data_set(tmp_path: Path) -> None:
    path = document(tmp_path / "sums.json", PREDICTIONS, indent=4)
    with pytest.warns(SourceWarning, match="equal prompts are taken for one problem"):
        run = tts.read_trajectories(path)
    names = ["problem", "attempt", "completion", "gold", "n_tokens", "n_prompt_tokens"]
    assert run.select(names).rows() == [
        (f"What is {n % 3}?", n // 3, f"So {n}.", str(n % 3), n + 1, 9) for n in range(6)
    ]
    assert run["problem_id"].n_unique() == 3


@pytest.mark.filterwarnings("ignore::ttsframe.errors.SourceWarning")
def test_predictions_are_in_the_order_of_their_numbers_and_may_be_lists(tmp_path: Path) -> None:
    samples = {
        "10": {"origin_prompt": "p", "prediction": ["c", "d"], "res_length": [3, 4]},
        "2": {"origin_prompt": "p", "prediction": "b"},
        "0": {"origin_prompt": "p", "prediction": {"prediction": "a", "reasoning": "r"}},
    }
    run = tts.read_trajectories(document(tmp_path / "x.json", samples))
    assert run.select("completion", "attempt", "n_tokens").rows() == [
        ("a", 0, None),
        ("b", 1, None),
        ("c", 2, 3),
        ("d", 3, 4),
    ]


def details(**more: object) -> dict[str, Any]:
    return {
        "accuracy (2 runs average)": 50.0,
        "G-Pass@2_0.5": 75.0,
        "details": [
            {
                "example_abbr": "aime2024_0",
                "G-Pass@2_0.5": 0.75,
                "pred": ["[12, '12']", r"[1/2, '\\frac{1}{2}']"],
                "answer": ["[12, '12']", "[12, '12']"],
                "correct": [True, False],
            },
            {
                "example_abbr": "aime2024_1",
                "G-Pass@2_0.5": 0.0,
                "pred": ["[]", "x"],
                "answer": ["7", "7"],
                "correct": [False, False],
                **more,
            },
        ],
    }


def test_details_of_opencompass_are_the_verdicts_on_each_repeat(tmp_path: Path) -> None:
    run = tts.read_trajectories(document(tmp_path / "x.json", details(), indent=4))
    assert run.select(
        "problem_id", "attempt", "answer", "gold", "is_correct", "G-Pass@2_0.5"
    ).rows() == [
        ("aime2024_0", 0, "12", "12", True, 0.75),
        ("aime2024_0", 1, r"\frac{1}{2}", "12", False, 0.75),
        ("aime2024_1", 0, None, "7", False, 0.0),
        ("aime2024_1", 1, "x", "7", False, 0.0),
    ]


def test_details_of_before_were_not_flat(tmp_path: Path) -> None:
    flat = details()
    nested = {
        "details": [
            {
                "predictions": [
                    {"pred": pred, "answer": answer, "is_correct": grade}
                    for pred, answer, grade in zip(
                        each["pred"], each["answer"], each["correct"], strict=True
                    )
                ],
                "example_abbr": each["example_abbr"],
                "G-Pass@2_0.5": each["G-Pass@2_0.5"],
            }
            for each in flat["details"]
        ]
    }
    found = tts.read_trajectories(document(tmp_path / "new.json", nested))
    assert found.equals(tts.read_trajectories(document(tmp_path / "old.json", flat)))


# -- programs -------------------------------------------------------------------------------------


def solution(base: str, plus: str | None) -> dict[str, Any]:
    return {
        "task_id": "HumanEval/0",
        "solution": f"def f(): return {base!r}",
        "base_status": base,
        "plus_status": plus,
        "base_fail_tests": [] if base == "pass" else [[1]],
        "plus_fail_tests": [],
    }


def test_a_solution_of_evalplus_must_pass_all_tests_that_ran(tmp_path: Path) -> None:
    pairs = [
        ("pass", "pass"),
        ("pass", "fail"),
        ("fail", "pass"),
        ("timeout", "fail"),
        ("pass", None),
    ]
    tasks = {
        "HumanEval/0": [solution(*pair) for pair in pairs],
        "HumanEval/1": [solution("fail", None)],
    }
    content = {"date": "2026-01-01 10:00", "hash": "ab12", "eval": tasks, "pass_at_k": {"base": {}}}
    run = tts.read_trajectories(document(tmp_path / "x_eval_results.json", content))
    assert run["is_correct"].to_list() == [True, False, False, False, True, False]
    assert run.select("problem_id", "attempt").rows() == [
        *(("HumanEval/0", number) for number in range(5)),
        ("HumanEval/1", 0),
    ]
    assert run["completion"][0] == "def f(): return 'pass'"
    assert findings(run, "evalplus") == {"base_tests_only": 2}


@pytest.mark.parametrize("is_base_only", [False, True])
def test_old_results_of_evalplus_have_lists_of_statuses(tmp_path: Path, is_base_only: bool) -> None:
    base = [
        ["success", [True, True]],
        ["failed", [True, False]],
        ["timed out", []],
        ["success", [True]],
    ]
    plus = [["success", [True]], ["failed", []], ["failed", []], ["failed", [False]]]
    tasks = {
        name: {"nfiles": 4, "base": base, "plus": [] if is_base_only else plus}
        for name in ("HumanEval/0", "HumanEval/1")
    }
    content = {"date": "2023-05-09 16:43", "hash": -8219741, "eval": tasks}
    run = tts.read_trajectories(document(tmp_path / "x_eval_results.json", content))
    assert run.select("problem_id", "attempt").rows() == [
        (name, number) for name in tasks for number in range(4)
    ]
    assert run["is_correct"].to_list() == [True, False, False, is_base_only] * 2
    assert run["base_status"].to_list() == [status for status, _ in base] * 2
    tasks["HumanEval/1"]["plus"] = plus[:3]
    path = document(tmp_path / "x_eval_results.json", content)
    with pytest.raises(SourceError, match=r"HumanEval/1.*has 4 results 'base' and 3 'plus'"):
        tts.read_trajectories(path)


def test_solutions_of_bigcodebench(tmp_path: Path) -> None:
    tasks = {
        f"BigCodeBench/{number}": [
            {
                "task_id": f"BigCodeBench/{number}",
                "solution": f"s{status}",
                "status": status,
                "details": {},
            }
            for status in ("pass", "fail", "timeout")
        ]
        for number in range(2)
    }
    content = {"date": "2026-01-01 10:00", "eval": tasks}
    run = tts.read_trajectories(document(tmp_path / "x_eval_results.json", content, indent=2))
    assert (
        run.select("attempt", "completion", "is_correct", "status").rows()
        == [
            (0, "spass", True, "pass"),
            (1, "sfail", False, "fail"),
            (2, "stimeout", False, "timeout"),
        ]
        * 2
    )
    grouped = run.group_by("problem_id").agg(tts.pass_at_k("is_correct", k=2))
    assert grouped["is_correct"].to_list() == pytest.approx([2 / 3] * 2)


# -- HELM -----------------------------------------------------------------------------------------


def state(name: str = "id1", trial: int = 0, **more: object) -> dict[str, Any]:
    return {
        "instance": {
            "input": {"text": f"Question {name}?"},
            "references": [
                {"output": {"text": "one"}, "tags": []},
                {"output": {"text": "two"}, "tags": ["correct"]},
            ],
            "split": "test",
            "id": name,
        },
        "train_trial_index": trial,
        "request": {"model": "openai/gpt2", "prompt": "...", "num_completions": 2},
        "result": {
            "success": True,
            "completions": [
                {
                    "text": " B",
                    "logprob": -1.5,
                    "tokens": [{"text": " B"}],
                    "finish_reason": {"reason": "stop"},
                },
                {
                    "text": "cut",
                    "logprob": -2.5,
                    "tokens": [],
                    "finish_reason": {"reason": "length"},
                },
            ],
            "cached": False,
        },
        "output_mapping": {"A": "one", "B": "two"},
        "num_train_instances": 5,
        "prompt_truncated": False,
        **more,
    }


def scenario(path: Path, states: list[Any]) -> Path:
    return document(path, {"adapter_spec": {"method": "x"}, "request_states": states}, indent=2)


def test_completions_of_helm_are_attempts_at_their_instance(tmp_path: Path) -> None:
    path = scenario(tmp_path / "scenario_state.json", [state(), state("id2"), state(trial=1)])
    run = tts.read_trajectories(path)
    assert run.select(
        "problem_id", "attempt", "completion", "answer", "finish_reason", "n_tokens"
    ).rows() == [
        ("id1", 0, " B", "two", "stop", 1),
        ("id1", 1, "cut", None, "length", None),
        ("id2", 0, " B", "two", "stop", 1),
        ("id2", 1, "cut", None, "length", None),
        ("id1", 2, " B", "two", "stop", 1),
        ("id1", 3, "cut", None, "length", None),
    ]
    assert set(run["gold"]) == {"two"}
    assert set(run["model"]) == {"openai/gpt2"}
    assert run["logprob"].to_list() == [-1.5, -2.5] * 3
    assert findings(run, "helm") == {"several_prompts": 2}
    assert tts.score_trajectories(run)["is_correct"].to_list() == [True, False] * 3


def test_perturbed_failed_and_old_instances_of_helm(tmp_path: Path) -> None:
    perturbed = state()
    perturbed["instance"]["perturbation"] = {"name": "typos", "prob": 0.1}
    failed = state(result={"success": False, "completions": [], "error": "timeout"})
    old = state("id3")
    old["instance"] |= {"input": "Old?", "references": [{"output": "a", "tags": ["correct"]}] * 2}
    run = tts.read_trajectories(scenario(tmp_path / "x.json", [perturbed, failed, old]))
    assert run["problem_id"].to_list() == ["id1/typos/0.1"] * 2 + ["id1"] + ["id3"] * 2
    assert run["finish_reason"].to_list() == ["stop", "length", "error", "stop", "length"]
    assert run["problem"][4] == "Old?"
    assert run["gold"].to_list() == ["two"] * 3 + [None] * 2
    assert run["targets"].to_list() == [None] * 3 + [["a", "a"]] * 2


# -- faults inside a document ----------------------------------------------------------------------

DOCUMENTS: Mapping[str, tuple[Any, tuple[str | int, ...]]] = {
    "opencompass": (PREDICTIONS, ("5",)),
    "opencompass details": (details(), ("details", 1)),
    "evalplus": (
        {
            "date": "",
            "hash": "",
            "eval": {name: [solution("pass", "pass")] * 2 for name in ("a", "b")},
        },
        ("eval", "b", 1),
    ),
    "evalplus, old form": (
        {"date": "", "hash": 1, "eval": {name: {"base": [["success", []]]} for name in ("a", "b")}},
        ("eval", "b"),
    ),
    "bigcodebench": (
        {
            "date": "",
            "eval": {name: [{"solution": "s", "status": "pass"}] * 2 for name in ("a", "b")},
        },
        ("eval", "b", 1),
    ),
    "helm": (
        {"adapter_spec": {}, "request_states": [state("id1"), state("id2")]},
        ("request_states", 1),
    ),
}
"""Documents, and the way to their last object."""

WRONG: tuple[Any, ...] = (
    None,
    [],
    {},
    [[1]],
    "",
    "12",
    -1,
    0.5,
    True,
    float("nan"),
    10**30,
    "\ud800",
)


def replaced(value: Any, way: tuple[str | int, ...], new: object) -> Any:
    copy = value.copy()
    copy[way[0]] = new if len(way) == 1 else replaced(value[way[0]], way[1:], new)
    return copy


@pytest.mark.filterwarnings("ignore::ttsframe.errors.SourceWarning")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_object_that_is_none_is_named_or_skipped(tmp_path: Path, name: str) -> None:
    content, way = DOCUMENTS[name]
    path = document(tmp_path / "x.json", replaced(content, way, 17))
    with pytest.raises(SourceError, match=r"x\.json, .*(?:\[[01]\]|'5'): is 17, must be an object"):
        tts.read_trajectories(path)
    whole = tts.read_trajectories(document(tmp_path / "whole.json", content))
    with pytest.warns(SkippedRowsWarning, match="^1 row skipped"):
        kept = tts.read_trajectories(path, on_error="skip")
    assert kept.select("problem_id", "attempt").equals(
        whole.select("problem_id", "attempt").head(kept.height)
    )
    (tmp_path / "x.json").write_text(json.dumps(content)[:-20])
    with pytest.raises(SourceError, match="may be cut off"):
        tts.read_trajectories(path)


@pytest.mark.filterwarnings("ignore::ttsframe.errors.SourceWarning")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_wrong_value_in_a_document_leaves_the_other_rows_as_they_are(
    tmp_path: Path, name: str
) -> None:
    content, way = DOCUMENTS[name]
    last = content
    for key in way:
        last = last[key]
    names = ["problem_id", "attempt", "completion"]
    whole = tts.read_trajectories(document(tmp_path / "x.json", content))
    names = [each for each in names if each in whole.columns]
    n_kept = whole.height - max(
        1, whole.height // 2 if name in {"helm", "opencompass details"} else 1
    )
    expected = whole.select(names).head(n_kept).rows()
    for field in last:
        for value in WRONG:
            changed = replaced(content, way, {**last, field: value})
            try:
                found = tts.read_trajectories(document(tmp_path / "x.json", changed))
            except (SourceError, ColumnsError):
                continue
            assert found.select(names).head(n_kept).rows() == expected, (field, value)


# -- tables ---------------------------------------------------------------------------------------


def rollout(example: int, reward: float, **more: object) -> dict[str, Any]:
    return {
        "example_id": example,
        "prompt": [
            {"role": "system", "content": "Think."},
            {"role": "user", "content": f"What is {example}?"},
        ],
        "completion": [
            {"role": "assistant", "content": "let me see"},
            {"role": "tool", "content": "9"},
            {"role": "assistant", "content": f"It is {reward}"},
        ],
        "answer": str(example),
        "reward": reward,
        "error": None,
        "timing": {"total_ms": 1.5},
        "is_completed": True,
        "is_truncated": False,
        "stop_condition": "max_turns",
        "metrics": {"correct_answer": reward},
        "correct_answer": reward,
        "tool_defs": None,
        "token_usage": {"input_tokens": 12.0, "output_tokens": 34.0},
        **more,
    }


def test_rollouts_of_verifiers(tmp_path: Path) -> None:
    error = {"error": "TimeoutError", "error_chain_repr": "x", "error_chain_str": "x"}
    rows = [
        rollout(0, 1.0),
        rollout(1, 0.5, is_truncated=True),
        rollout(0, 0.0, error=error, completion=None, is_completed=False),
    ]
    run = tts.read_trajectories(lines(tmp_path / "results.jsonl", rows))
    assert run.select(
        "problem_id", "attempt", "problem", "completion", "gold", "finish_reason"
    ).rows() == [
        (0, 0, "What is 0?", "let me see\n\nIt is 1.0", "0", "stop"),
        (1, 0, "What is 1?", "let me see\n\nIt is 0.5", "1", "length"),
        (0, 1, "What is 0?", None, "0", "error"),
    ]
    assert run.select("n_tokens", "n_prompt_tokens").unique().rows() == [(34, 12)]
    assert run["reward"].to_list() == run["correct_answer"].to_list() == [1.0, 0.5, 0.0]
    assert {"score", "is_correct"}.isdisjoint(run.columns)
    assert findings(run, "verifiers") == {"rollout_errors": 1}


def test_texts_beside_messages_are_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [rollout(0, 1.0, completion="text"), rollout(1, 1.0)])
    with pytest.raises(
        SourceError, match="line 2: 'completion' is a list of messages, but text in"
    ):
        tts.read_trajectories(path)


def test_an_attempt_of_optillm_is_right_if_its_answer_is(tmp_path: Path) -> None:
    row = {
        "index": 60,
        "problem": "p",
        "attempts": [
            {
                "attempt_number": 1,
                "response": "r1",
                "predicted_answer": 204,
                "thought_analysis": {"a": 1},
            },
            {"attempt_number": 2, "response": "r2", "predicted_answer": 33},
            {"attempt_number": 3, "response": None, "predicted_answer": None, "error": "timeout"},
        ],
        "correct_answer": 204,
        "is_correct": True,
        "first_correct_attempt": 1,
    }
    run = tts.read_trajectories(document(tmp_path / "x.json", [row], indent=2))
    assert run.select(
        "problem_id", "attempt", "completion", "answer", "gold", "is_correct", "finish_reason"
    ).rows() == [
        (60, 0, "r1", "204", "204", True, None),
        (60, 1, "r2", "33", "204", False, None),
        (60, 2, None, None, "204", False, "error"),
    ]
    assert set(run["is_any_correct"]) == {True}


def test_budgets_of_its_hub_are_runs(tmp_path: Path) -> None:
    rows = [
        {"unique_id": f"test/{n}", "budget": budget, "response": f"r{n}", "correct": n < budget}
        for budget in (1, 4)
        for n in range(3)
    ]
    run = tts.read_trajectories(lines(tmp_path / "x.jsonl", rows))
    assert run.select("problem_id", "attempt", "completion", "is_correct", "budget").rows() == [
        (row["unique_id"], 0, row["response"], row["correct"], row["budget"]) for row in rows
    ]
    assert findings(run, "its_hub") == {"several_budgets": 3}
    for row in rows:
        row["correct"] = float(row["correct"]) if row["budget"] == 1 else None
    again = tts.read_trajectories(lines(tmp_path / "x.jsonl", rows))
    assert again["is_correct"].to_list() == [True, False, False, None, None, None]


def test_particles_of_its_hub_have_their_weights_as_scores(tmp_path: Path) -> None:
    row = {
        "unique_id": 3,
        "budget": 2,
        "responses": ["a", "b"],
        "log_probs": [-0.5, -2.0],
        "correct": 0.25,
    }
    run = tts.read_trajectories(lines(tmp_path / "x.jsonl", [row]))
    assert run.select("problem_id", "attempt", "completion", "score", "is_exchangeable").rows() == [
        (3, 0, "a", -0.5, False),
        (3, 1, "b", -2.0, False),
    ]
    assert run["expected_accuracy"].to_list() == [0.25, 0.25]


def test_confidences_are_scores(tmp_path: Path) -> None:
    row = {
        "session_id": "math-l5#0",
        "model_input": "<|user|>p",
        "input": "p",
        "output": ["a", "b"],
        "generator": "meta/llama",
        "dataset": "math-l5",
        "answer": "7",
        "confidence_list": [16.5, 12.25],
        "processed_index": 0,
    }
    run = tts.read_trajectories(document(tmp_path / "x.json", [row], indent=4))
    assert run.select(
        "problem_id", "attempt", "problem", "completion", "score", "gold", "model"
    ).rows() == [
        ("math-l5#0", 0, "p", "a", 16.5, "7", "meta/llama"),
        ("math-l5#0", 1, "p", "b", 12.25, "7", "meta/llama"),
    ]


def test_chains_of_verify_cot(tmp_path: Path) -> None:
    row = {
        "question": "What is the date today?",
        "final_answer": "11/22/2002",
        "example_idx": 297,
        "model_input": "...",
        "model_outputs": ["#1. a", "#1. b", "#1. c"],
        "pred_answers": ["12/13/2001", "11/22/2001", None],
        "per_sample_correct": [False, False, False],
        "majority_results": ["11/22/2001", "12/13/2001"],
        "majority_corrects": [False, False],
        "majority_count": 1,
        "gt_count": 0,
        "majority_correct": 0.0,
        "sample_idx_need_verify": [0, 1],
        "need_verify_samples_info": "12/13/2001->1",
        "verify_model_results": [[None, {"verify_model_outputs": ["yes"]}], "no"],
        "verify_correct": [True, False],
    }
    number = {**row, "example_idx": 3, "final_answer": 18, "pred_answers": [18, 18.5, None]}
    run = tts.read_trajectories(document(tmp_path / "x.json", [row, number], indent=4))
    assert run["problem_id"].to_list() == [297] * 3 + [3] * 3
    assert run["completion"].to_list() == row["model_outputs"] * 2
    assert run["answer"].to_list()[:3] == row["pred_answers"]
    assert run["is_correct"].to_list() == [False] * 6
    assert run["gold"].to_list() == ["11/22/2002"] * 3 + ["18"] * 3
    graded = tts.score_trajectories(run, overwrite=["is_correct"])
    assert graded["is_correct"].to_list()[3:] == [True, False, False]
    assert run["verify_correct"].to_list() == [[True, False]] * 6


def completion(number: int, **more: object) -> dict[str, Any]:
    return {
        "id": number,
        "subject": "algebra",
        "ground_truth": "4",
        "prompt": "2 + 2?",
        "prompt_sequence_positions": 5,
        "concat_compression": None,
        "messages": [{"role": "user", "content": "2 + 2?"}],
        "completion": "4",
        "raw_completion": "It is 4.",
        "raw_completion_sequence_positions": 4,
        "context": None,
        "error": None,
        **more,
    }


def test_repeats_of_eval_framework_have_one_prompt(tmp_path: Path) -> None:
    error = {"error_class": "E", "message": "too long", "traceback": "..."}
    rows = [
        completion(0),
        completion(1, error=error),
        completion(2, prompt="3 + 3?", ground_truth=None),
        completion(2, subject="geometry"),
    ]
    path = lines(tmp_path / "output.jsonl", rows)
    with pytest.warns(SourceWarning, match="equal prompts of a subject are taken for one problem"):
        run = tts.read_trajectories(path)
    assert run["attempt"].to_list() == [0, 1, 0, 0]
    assert run["problem_id"].n_unique() == 3
    assert run.row(1, named=True) | {"problem_id": 0} == {
        "problem_id": 0,
        "attempt": 1,
        "problem": "2 + 2?",
        "completion": "It is 4.",
        "gold": "4",
        "n_tokens": 4,
        "n_prompt_tokens": 5,
        "finish_reason": "error",
        "sample_id": 1,
        "subject": "algebra",
        "processed_completion": "4",
        "error": "too long",
    }
    with pytest.warns(SourceWarning):
        named = tts.read_trajectories(path, rename={"completion": "answer"})
    assert set(named["answer"]) == {"4"}


@pytest.mark.filterwarnings("ignore::ttsframe.errors.SourceWarning")
def test_several_truths_are_targets(tmp_path: Path) -> None:
    rows = [completion(n, ground_truth=truth) for n, truth in enumerate((["a"], ["a", "b"]))]
    run = tts.read_trajectories(lines(tmp_path / "output.jsonl", rows))
    assert run.select("gold", "targets").rows() == [("a", None), (None, ["a", "b"])]


def instance(sample: str, **more: object) -> dict[str, Any]:
    return {
        "schema_version": "0.2.1",
        "evaluation_id": "None_samples",
        "model_id": "openai/gpt2",
        "evaluation_name": "narrativeqa",
        "sample_id": sample,
        "sample_hash": "293d01d8",
        "interaction_type": "single_turn",
        "input": {"raw": f"Passage {sample}", "formatted": None, "reference": ["the mascot"], "choices": None},
        "output": {"raw": [" Olive."], "reasoning_trace": []},
        "messages": None,
        "answer_attribution": [
            {"turn_idx": 0, "source": "output.raw", "extracted_value": "draft", "extraction_method": "x", "is_terminal": False},
            {"turn_idx": 0, "source": "output.raw", "extracted_value": "Olive.", "extraction_method": "x", "is_terminal": True},
        ],
        "evaluation": {"score": 0.25, "is_correct": False, "num_turns": None, "tool_calls_count": None},
        "token_usage": {"input_tokens": 790, "output_tokens": 2, "total_tokens": 792},
        "performance": {"generation_time_ms": 831.4},
        "error": None,
        "metadata": None,
        **more,
    }  # fmt: skip


def test_instances_of_every_eval_ever(tmp_path: Path) -> None:
    turns = [
        {"turn_idx": 0, "role": "user", "content": "q"},
        {"turn_idx": 1, "role": "assistant", "content": "said"},
    ]
    several = {"raw": "Passage", "reference": ["a", "b"]}
    rows = [
        instance("id1", metadata={"attempt": "1"}),
        instance("id1", metadata={"attempt": "0"}, error="refused"),
        instance("id2", interaction_type="multi_turn", output=None, messages=turns, input=several),
    ]
    run = tts.read_trajectories(lines(tmp_path / "x_samples.jsonl", rows))
    assert run.select(
        "problem_id", "attempt", "completion", "answer", "gold", "is_correct"
    ).rows() == [
        ("id1", 1, " Olive.", "Olive.", "the mascot", False),
        ("id1", 0, " Olive.", "Olive.", "the mascot", False),
        ("id2", 0, "said", "Olive.", None, False),
    ]
    assert run["targets"].to_list() == [None, None, ["a", "b"]]
    assert run["finish_reason"].to_list() == [None, "error", None]
    assert run.select("n_tokens", "n_prompt_tokens", "source_score", "model").unique().rows() == [
        (2, 790, 0.25, "openai/gpt2")
    ]
    assert "score" not in run.columns


def test_models_of_a_file_are_counted_apart_and_several_responses_refused(tmp_path: Path) -> None:
    rows = [instance("id1"), instance("id1", model_id="other")]
    run = tts.read_trajectories(lines(tmp_path / "x.jsonl", rows))
    assert run["attempt"].to_list() == [0, 0]
    assert findings(run, "every_eval_ever") == {"several_evaluations": 1}
    rows.append(instance("id3", output={"raw": ["a", "b"]}))
    path = lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(SourceError, match=r"line 3: sample 'id3' has 2 responses in 'output.raw'"):
        tts.read_trajectories(path)


def test_what_is_written_as_instances_comes_back(tmp_path: Path) -> None:
    simulated = tts.simulate_trajectories(n_problems=4, n_attempts=3, seed=1).with_columns(
        problem=pl.format("What is {}?", "problem_id"),
        completion=pl.format("{} {}", "problem_id", "attempt"),
    )
    run = tts.score_trajectories(simulated)
    held = ["problem_id", "attempt", "problem", "completion", "answer", "gold", "is_correct"]
    run = run.select(held).with_columns(pl.col("problem_id").cast(pl.String))
    tts.write_trajectories(run, tmp_path / "x.jsonl", format="every_eval_ever")
    found = tts.read_trajectories(tmp_path / "x.jsonl")
    assert found.select(held).equals(run)


# -- sieval ---------------------------------------------------------------------------------------


def stages(folder: Path) -> Path:
    result: Mapping[str, tuple[str, list[Any]]] = {
        "preprocessed": (
            "preprocess_result",
            [{"prompt": [{"role": "user", "content": f"q{n}"}], "reference": n} for n in range(3)],
        ),
        "inferred": (
            "infer_result",
            [
                {
                    "model": {"model": "m"},
                    "texts": [f"a{n}", f"b{n}"],
                    "finish_reasons": ["stop", "length"],
                }
                for n in range(2)
            ],
        ),
        "postprocessed": (
            "postprocess_result",
            [
                {
                    "rollouts": [
                        {"index": 0, "prediction": n, "extracted": True},
                        {"index": 1, "extracted": False},
                    ]
                }
                for n in range(2)
            ],
        ),
        "feedback": (
            "feedback_result",
            [
                {
                    "reference": n,
                    "rollouts": [
                        {"index": 0, "correct": True, "score": 1.0},
                        {"index": 1, "correct": False},
                    ],
                    "n_rollouts": 2,
                    "n_correct": 1,
                }
                for n in range(2)
            ],
        ),
    }
    for stage, (field, values) in result.items():
        rows = [
            {
                "sample_id": n,
                "iteration": 0,
                "stage": stage,
                field: value,
                "meta_last": {"timing_s": 1.5},
            }
            for n, value in enumerate(values)
        ]
        lines(folder / "0" / stage / "0.jsonl", rows)
    failed = {
        "sample_id": 2,
        "iteration": 0,
        "stage": "failed",
        "error_action": "infer",
        "error_msg": "timeout",
    }
    lines(folder / "0" / "failed" / "0.jsonl", [failed])
    manifest = [{"sample_id": 0, "iteration": 0, "stage": "final", "final": True, "failed": False}]
    document(folder / "manifest.json", manifest)
    document(folder / "report.json", {"accuracy": 0.5})
    return folder


def test_stages_of_a_folder_are_put_together(tmp_path: Path) -> None:
    run = tts.read_trajectories(stages(tmp_path)).sort("problem_id", "attempt")
    names = [
        "problem_id",
        "attempt",
        "problem",
        "completion",
        "answer",
        "gold",
        "is_correct",
        "finish_reason",
    ]
    assert run.select(names).rows() == [
        (0, 0, "q0", "a0", "0", "0", True, "stop"),
        (0, 1, "q0", "b0", None, "0", False, "length"),
        (1, 0, "q1", "a1", "1", "1", True, "stop"),
        (1, 1, "q1", "b1", None, "1", False, "length"),
        (2, 0, "q2", None, None, "2", None, "error"),
    ]
    assert run["source_score"].to_list() == [1.0, None, 1.0, None, None]
    assert "source_file" not in run.columns


def test_a_stage_that_ran_again_counts_once(tmp_path: Path) -> None:
    folder = stages(tmp_path)
    again = {
        "sample_id": 0,
        "iteration": 1,
        "stage": "inferred",
        "infer_result": {"texts": ["c", "d"]},
    }
    lines(folder / "1" / "inferred" / "0.jsonl", [again])
    run = tts.read_trajectories(folder).filter(pl.col("problem_id") == 0)
    assert run["completion"].to_list() == ["c", "d"]
    assert run["is_correct"].to_list() == [True, False]


def test_one_stage_alone_is_read_and_lengths_must_agree(tmp_path: Path) -> None:
    folder = stages(tmp_path)
    grades = tts.read_trajectories(folder / "0" / "feedback" / "0.jsonl")
    assert grades["is_correct"].to_list() == [True, False] * 2
    short = {"sample_id": 1, "iteration": 0, "stage": "inferred", "infer_result": {"texts": ["a"]}}
    lines(folder / "1" / "inferred" / "0.jsonl", [short])
    with pytest.raises(SourceError, match="problem 1 has 1 'rollouts' but 2 '"):
        tts.read_trajectories(folder)


# -- verl, BoInf ----------------------------------------------------------------------------------


def test_generations_of_verl_are_lists_of_responses(tmp_path: Path) -> None:
    prompts = ["What is 1?", "What is 2?", "What is 1?"]
    frame = pl.DataFrame({
        "data_source": ["sums"] * 3,
        "prompt": [[{"role": "user", "content": prompt}] for prompt in prompts],
        "reward_model": [{"style": "rule", "ground_truth": prompt[8]} for prompt in prompts],
        "responses": [["1", "2"]] * 3,
    })
    frame.write_parquet(tmp_path / "x.parquet")
    with pytest.warns(SourceWarning, match="equal prompts are taken for one problem"):
        run = tts.read_trajectories(tmp_path / "x.parquet")
    assert run["problem"].to_list() == [prompt for prompt in prompts for _ in range(2)]
    assert run["attempt"].to_list() == [0, 1, 0, 1, 2, 3]
    assert run["gold"].to_list() == ["1", "1", "2", "2", "1", "1"]


@pytest.mark.parametrize("data_set", ["aime2024", "gpqa_diamond"])
def test_the_name_of_a_file_of_boinf_has_its_model(tmp_path: Path, data_set: str) -> None:
    row = {"problem_num": 0, "gold_answer": "1", "all_answers": [["1", 5], ["2", 6]]}
    for model in ("Qwen3-4B", "Phi_4"):
        lines(tmp_path / f"analysis_{data_set}_{model}.jsonl", [row])
    run = tts.read_trajectories(tmp_path)
    assert run["model"].to_list() == ["Phi_4"] * 2 + ["Qwen3-4B"] * 2
    other = lines(tmp_path / "other.jsonl", [row])
    assert "model" not in tts.read_trajectories(other).columns


def test_a_column_that_has_the_name_of_ours_is_set_apart(tmp_path: Path) -> None:
    """A row of `every_eval_ever` with `model` in the place of `model_id` was an error of Polars."""
    row = {
        "evaluation_id": "run",
        "evaluation_name": "sums",
        "interaction_type": "single_turn",
        "input": {"raw": "What is 3?", "reference": ["3"]},
        "output": {"raw": ["So \\boxed{3}"]},
        "answer_attribution": [{"extracted_value": "3", "is_terminal": True}],
        "evaluation": {"score": 1.0, "is_correct": True},
    }
    rows = [{**row, "sample_id": "a", "model_id": "m"}, {**row, "sample_id": "b", "model": "n"}]
    path = tmp_path / "run_samples.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    found = tts.read_trajectories(path, format="every_eval_ever")
    assert found.select("problem_id", "model", "source_model").rows() == [
        ("a", "m", None),
        ("b", None, "n"),
    ]
