"""Published collections of samples: real answers of Best-of-infinity, and files written by hand from the source.

large-language-monkeys: ScalingIntelligence/large_language_monkeys at 5c2d75a, `save_yaml` of llmonk/utils.py,
`run_inference` of llmonk/generate/{gsm8k,code_contests}.py, `process_sample` of llmonk/evaluate/math_datasets.py.
human-eval: openai/human-eval at 9d3aa8b, human_eval/evaluation.py, `combine_results`.
LiveCodeBench: LiveCodeBench/LiveCodeBench at 19133f2, lcb_runner/benchmarks/code_generation.py,
`insert_output_evaluation`.
OpenR1-Math: the columns of the data set open-r1/OpenR1-Math-220k, as projects that read it list them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import SkippedRowsWarning, SourceError

# -- Best-of-infinity -----------------------------------------------------------------------------


def test_real_answers_equal_a_plain_walk_and_their_majority(shared_data: Path) -> None:
    paths = sorted((shared_data / "boinf").glob("*.jsonl"))
    run = tts.read_trajectories(shared_data / "boinf")
    expected, majorities, tied = [], {}, set()
    for path in paths:
        for row in map(json.loads, path.read_text().splitlines()):
            key = (str(path), row["problem_num"])
            expected += [
                (*key, number, answer or None, n_tokens, row["gold_answer"])
                for number, (answer, n_tokens) in enumerate(row["all_answers"])
            ]
            # The tool counts an empty answer as one more answer.
            counts = Counter(answer for answer, _ in row["all_answers"])
            (_, most), *others = counts.most_common(2)
            majorities[key] = row["majority_answer"]
            tied |= {key} if others and others[0][1] == most else set()
    names = ("source_file", "problem_id", "attempt", "answer", "n_tokens", "gold")
    assert sorted(run.select(names).rows()) == sorted(expected)
    votes = (
        run
        .with_columns(pl.col("answer").fill_null(""))
        .group_by("source_file", "problem_id", "answer")
        .agg(pl.len())
        .sort("len")
        .group_by("source_file", "problem_id", maintain_order=True)
        .agg(pl.col("answer").last())
    )
    found = {(file, number): answer for file, number, answer in votes.rows()}
    assert {key for key in found if found[key] != majorities[key]} <= tied
    assert len(found) == 30 * len(paths)
    traps = tts.READERS["boinf"].traps
    findings = tts.validate_trajectories(run, traps=traps, by="source_file").findings
    without = {key for key, majority in majorities.items() if not majority}
    n_attempts = sum((file, number) in without for file, number, *_ in expected)
    assert [each.count for each in findings if each.code == "empty_majority"] == [n_attempts]


def test_answers_without_texts_can_be_voted_on(shared_data: Path) -> None:
    path = next((shared_data / "boinf").glob("*Qwen3-4B.jsonl"))
    run = tts.read_trajectories(path)
    graded = tts.score_trajectories(run)
    assert graded["is_correct"].to_list() == (
        (run["answer"] == run["gold"]).fill_null(value=False).to_list()
    )


@pytest.mark.parametrize("pair", [["1"], ["1", 5, 6], ["1", None], ["1", -1], ["1", 0.5], None, []])
def test_what_is_no_pair_is_named(tmp_path: Path, pair: object) -> None:
    path = tmp_path / "analysis.jsonl"
    rows = [
        {"problem_num": number, "gold_answer": "1", "all_answers": [["1", 5], last]}
        for number, last in enumerate((["", 7], pair))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SourceError, match="line 2"):
        tts.read_trajectories(path)
    with pytest.warns(SkippedRowsWarning, match="^1 row skipped"):
        run = tts.read_trajectories(path, on_error="skip")
    assert run.select("answer", "n_tokens").rows() == [("1", 5), (None, 7)]


# -- OpenR1-Math ----------------------------------------------------------------------------------


def openr1(number: int = 0, **more: object) -> dict[str, Any]:
    row = {
        "problem": f"What is {number}?",
        "solution": "It is so.",
        "answer": "1",
        "problem_type": "Algebra",
        "uuid": f"u{number}",
        "is_reasoning_complete": [True, False, True],
        "generations": ["1", "2", "3"],
        "correctness_math_verify": [True, False, False],
        "correctness_llama": None,
        "finish_reasons": None,
        "correctness_count": 1,
        "messages": [{"role": "user", "content": "x"}],
    }
    return {**row, **more}


def test_either_grader_makes_an_attempt_right(tmp_path: Path) -> None:
    rows = [
        openr1(),
        openr1(1, correctness_llama=[False, True, None]),
        openr1(2, correctness_math_verify=None, finish_reasons=["stop", "length", "stop"]),
    ]
    path = tmp_path / "train.parquet"
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    run = tts.read_trajectories(path)
    assert run["problem_id"].to_list() == [f"u{number}" for number in range(3) for _ in range(3)]
    assert run["completion"].to_list() == ["1", "2", "3"] * 3
    grades = [True, False, False, True, True, False, None, None, None]
    assert run["is_correct"].to_list() == grades
    assert run["finish_reason"].to_list() == [None] * 6 + ["stop", "length", "stop"]
    assert set(run["gold"]) == {"1"}
    assert {"messages", "correctness_count", "uuid"}.isdisjoint(run.columns)
    found = tts.validate_trajectories(run, traps=tts.READERS["openr1"].traps).findings
    counts = {each.code: each.count for each in found}
    assert counts["graders_differ"] == 2
    assert counts["incomplete_reasoning"] == 3


# -- large-language-monkeys -----------------------------------------------------------------------

GSM8K = """gt_answer: 'Add, and it is {n}

  #### {n}'
{grades}: {flags}
prompt: "Question: a\\tb, c\\nAnswer:"
question: What is {n}, then?
samples:
- 'It is

  #### {n}'
- "No: 'x'\\t#### 9"
- ''
"""


def gsm8k(
    path: Path, n: int, grades: str = "is_corrects", flags: str = "\n- true\n- false\n- false"
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GSM8K.format(n=n, grades=grades, flags=flags))
    return path


def test_a_folder_of_problems_is_a_run(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    for number in (10, 2, 0):
        gsm8k(tmp_path / f"{number}.yaml", number, "is_correct" if number else "is_corrects")
    (tmp_path / "config.yaml").write_text("model: x\nsamples: 3\n")
    run = tts.read_trajectories(tmp_path)
    texts = ["It is\n#### {}", "No: 'x'\t#### 9", ""]
    names = ("problem_id", "attempt", "completion", "is_correct", "gold", "problem")
    assert sorted(run.select(names).rows()) == sorted(
        (str(n), i, text.format(n), i == 0, str(n), f"What is {n}, then?")
        for n in (0, 2, 10)
        for i, text in enumerate(texts)
    )
    assert set(run["prompt"]) == {"Question: a\tb, c\nAnswer:"}
    assert "source_file" not in run.columns


def test_samples_that_were_not_evaluated_have_no_grades(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "1575_A. Another Sorting Problem.yaml"
    path.write_text(
        "prompt: p\nquestion: q\nsamples:\n- print(1)\n- '12'\n"
        "test_cases:\n  input:\n  - '1'\n  output:\n  - '2'\ntimeout: 2.0\n"
    )
    run = tts.read_trajectories(path)
    assert run.select("problem_id", "completion").rows() == [
        ("1575_A. Another Sorting Problem", "print(1)"),
        ("1575_A. Another Sorting Problem", "12"),
    ]
    assert {"is_correct", "gold", "test_cases"}.isdisjoint(run.columns)


def test_what_the_writer_of_yaml_writes_comes_back(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    samples = [
        "true",
        "null",
        "~",
        "",
        "12",
        "1:30",
        "- a",
        "a: b",
        "&x *y",
        "é\u2028z",
        "\t",
        "# c",
    ]
    samples += [
        "x" * 300,
        "two\nlines\n",
        " lead",
        "'q' \"r\"",
        "2024-01-01",
        "\U0001f600",
        "!!int 3",
    ]
    out = {"prompt": "p", "question": "q", "samples": samples, "gt_answer": "12"}
    (tmp_path / "0.yaml").write_text(yaml.dump(out, sort_keys=True))
    run = tts.read_trajectories(tmp_path)
    assert run["completion"].to_list() == samples
    assert set(run["gold"]) == {"12"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("question: q\nsamples:\n- 'cut", "is not valid YAML .*may be cut off"),
        ("question: q\nsamples:\n- true\n", "'samples' must be a list of texts"),
        ("question: q\nsamples:\n- [a]\n", "'samples' must be a list of texts"),
        ("question: [a]\nsamples:\n- a\n", "'question' must be text"),
        ("question: q\nsamples:\n- a\nis_correct:\n- 1\n", "'is_correct' must be a list of true"),
        ("question: &x q\nsamples:\n- *x\n", r"refers to '\*x'"),
        ("question: q\nsamples:\n- " + "[" * 100_000, "more than 20 lists within each other"),
        ("question: q\nsamples:\n" + "- " * 100_000 + "x", "more than 20 lists within each other"),
        ("question: q\nsamples:\n- \x07\n", "is not valid YAML"),
        ("question: q\nsamples:\n- a\nis_correct:\n- true\n- true\n", "1 'samples' but 2"),
        ("question: q\nsamples: []\n", "no attempt"),
        ("question: q\nsamples:\n- a\n---\nquestion: r\n", "is not one mapping"),
        ("question: q\n? [a]\n: b\nsamples:\n- a\n", "is no mapping of names"),
    ],
)
def test_damage_is_named_or_skipped(tmp_path: Path, content: str, reason: str) -> None:
    pytest.importorskip("yaml")
    gsm8k(tmp_path / "0.yaml", 0)
    (tmp_path / "1.yaml").write_text(content)
    with pytest.raises(SourceError, match=rf"1\.yaml.*{reason}"):
        tts.read_trajectories(tmp_path)
    with pytest.warns(SkippedRowsWarning, match=r"^1 row skipped: .*1\.yaml"):
        run = tts.read_trajectories(tmp_path, on_error="skip")
    assert run["problem_id"].to_list() == ["0"] * 3


def test_without_its_package_the_error_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(SourceError, match=r"0\.yaml: YAML needs PyYAML.*ttsframe\[yaml\]"):
        tts.read_trajectories(gsm8k(tmp_path / "0.yaml", 0))


# -- programs -------------------------------------------------------------------------------------


def test_samples_of_human_eval(tmp_path: Path) -> None:
    rows = [
        {"task_id": task, "completion": f"    return {n}", "result": result, "passed": n == 1}
        for n, result in ((1, "passed"), (2, "timed out"))
        for task in ("HumanEval/0", "HumanEval/1")
    ]
    path = tmp_path / "samples.jsonl_results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = tts.read_trajectories(path)
    names = ("problem_id", "attempt", "completion", "is_correct", "result")
    assert run.select(names).rows() == [
        (row["task_id"], number // 2, row["completion"], row["passed"], row["result"])
        for number, row in enumerate(rows)
    ]


def test_questions_of_livecodebench(tmp_path: Path) -> None:
    rows = [
        {
            "question_title": "t",
            "question_content": f"Print {number}.",
            "question_id": f"1873_{number}",
            "difficulty": "easy",
            "output_list": ["so\nprint(1)", "none"],
            "code_list": ["print(1)", ""],
            "graded_list": [True, False],
            "pass@1": 0.5,
            "metadata": ["{}", json.dumps({"error_code": -2})],
        }
        for number in range(2)
    ]
    path = tmp_path / "Scenario.codegeneration_2_0.2_eval_all.json"
    path.write_text(json.dumps(rows, indent=4))
    run = tts.read_trajectories(path)
    names = ("problem_id", "attempt", "problem", "completion", "code", "is_correct", "difficulty")
    assert run.select(names).rows() == [
        (row["question_id"], number, row["question_content"], output, code, grade, "easy")
        for row in rows
        for number, (output, code, grade) in enumerate(
            zip(row["output_list"], row["code_list"], row["graded_list"], strict=True)
        )
    ]
    assert "metadata" not in run.columns
