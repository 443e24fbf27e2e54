"""The traps of each source format, on small files written here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, SourceError


def write(folder: Path, rows: Sequence[dict[str, Any]], name: str = "run.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


# -- search-and-learn -----------------------------------------------------------------------------


def best_of_n(number: int = 0, **other: object) -> dict[str, Any]:
    return {
        "problem": f"p{number}",
        "answer": "42",
        "completions": ["a", "b"],
        "scores": [[0.5, 0.25], [0.75]],
        **other,
    }


def test_the_answer_of_search_and_learn_is_the_reference(tmp_path: Path) -> None:
    frame = tts.read_trajectories(write(tmp_path, [best_of_n()]))

    assert frame["gold"].to_list() == ["42", "42"]
    assert "answer" not in frame.columns


def test_agg_scores_are_kept_per_attempt_and_nothing_is_computed_from_them(tmp_path: Path) -> None:
    frame = tts.read_trajectories(write(tmp_path, [best_of_n(agg_scores=[0.25, 0.75])]))

    assert frame["agg_scores"].to_list() == [0.25, 0.75]
    assert "score" not in frame.columns


def test_the_picks_of_the_tool_are_repeated_for_each_attempt(tmp_path: Path) -> None:
    picks = {"pred": "b", "pred_naive@1": "\\boxed{1}", "pred_maj@2": "\\boxed{2}"}

    frame = tts.read_trajectories(write(tmp_path, [best_of_n(**picks)]))

    assert frame.select(list(picks)).rows() == [("b", "\\boxed{1}", "\\boxed{2}")] * 2


TOKENS = {
    "best-of-N": ([311, 120], [311, 120], [None, None]),
    "beam search": ([0, 0], [None, None], [False, False]),
    "DVTS": (-1, [None, None], [False, False]),
    "partly counted": ([0, 5], [0, 5], [None, None]),
    "null": (None, [None, None], [None, None]),
}


@pytest.mark.parametrize("tool", TOKENS)
@pytest.mark.parametrize("beside", ["nothing", "list", "number"])
def test_token_counts_and_what_they_tell(tmp_path: Path, tool: str, beside: str) -> None:
    written, n_tokens, is_exchangeable = TOKENS[tool]
    rows = [best_of_n(completion_tokens=written)]
    if beside != "nothing":  # another row of the file holds another kind
        rows.append(best_of_n(1, completion_tokens=[7, 8] if beside == "list" else -1))

    frame = tts.read_trajectories(write(tmp_path, rows)).head(2)

    assert frame["n_tokens"].to_list() == n_tokens
    assert frame["is_exchangeable"].to_list() == is_exchangeable


def test_without_token_counts_nothing_is_claimed(tmp_path: Path) -> None:
    frame = tts.read_trajectories(write(tmp_path, [best_of_n(completions=["same", "same"])]))

    assert {"n_tokens", "is_exchangeable"}.isdisjoint(frame.columns)


def test_token_counts_of_dvts_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "dvts.parquet"
    pl.DataFrame([best_of_n(completion_tokens=-1)]).write_parquet(path)

    frame = tts.read_trajectories(path)

    assert frame.select("n_tokens", "is_exchangeable").rows() == [(None, False)] * 2


def test_a_problem_without_an_id_gets_the_hash_of_its_text(tmp_path: Path) -> None:
    texts = ["What is 1 + 1?", "  What is 1 + 1?\n", "Was ist π?"]
    rows = [best_of_n(problem=text) for text in texts]

    frame = tts.read_trajectories(write(tmp_path, rows))

    expected = [hashlib.blake2b(text.strip().encode(), digest_size=8).hexdigest() for text in texts]
    assert frame["problem_id"].to_list() == [digest for digest in expected for _ in range(2)]
    # the digest is part of saved runs: this very value must never change
    assert frame["problem_id"][0] == "e265702b26f3ffa7"


def test_ids_may_be_numbers_and_texts(tmp_path: Path) -> None:
    numbers = [best_of_n(number, unique_id=number) for number in range(2)]
    assert tts.read_trajectories(write(tmp_path, numbers)).schema["problem_id"] == pl.Int64

    mixed = [best_of_n(0, unique_id=7), best_of_n(1, unique_id="q")]
    frame = tts.read_trajectories(write(tmp_path, mixed))
    assert frame["problem_id"].to_list() == ["7", "7", "q", "q"]


def test_ids_that_are_fractions_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [best_of_n(unique_id=0.5)])

    with pytest.raises(
        ColumnsError, match=r"column 'unique_id' is Float64, must be String or an integer"
    ):
        tts.scan_trajectories(path)


def test_a_renamed_id_goes_before_the_one_of_the_tool(tmp_path: Path) -> None:
    path = write(tmp_path, [best_of_n(unique_id="theirs", mine="own")])

    frame = tts.read_trajectories(path, rename={"mine": "problem_id"})

    assert frame.select("problem_id", "unique_id").row(0) == ("own", "theirs")


def test_one_completion_with_many_scores_is_one_attempt(tmp_path: Path) -> None:
    frame = tts.read_trajectories(
        write(tmp_path, [best_of_n(completions=["a"], scores=[[0.5] * 16])])
    )

    assert frame["step_scores"].to_list() == [[0.5] * 16]


def test_null_scores_stay_null_and_empty_lists_stay_empty(tmp_path: Path) -> None:
    rows = [best_of_n(scores=[[0.5, None], []]), best_of_n(1, scores=[None, [None]])]

    frame = tts.read_trajectories(write(tmp_path, rows))

    assert frame["step_scores"].to_list() == [[0.5, None], [], None, [None]]


def test_narrow_floats_and_arrays_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    dtype = pl.List(pl.Array(pl.Float32, 1))
    pl.DataFrame([best_of_n(scores=[[0.5], [0.25]])]).with_columns(
        pl.col("scores").cast(dtype)
    ).write_parquet(path)

    frame = tts.read_trajectories(path)

    assert frame.schema["step_scores"] == pl.List(pl.Float32)
    assert frame["step_scores"].to_list() == [[0.5], [0.25]]


def test_text_scores_of_parquet_are_refused_at_the_call(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pl.DataFrame([best_of_n(scores=[["high"], ["low"]])]).write_parquet(path)

    with pytest.raises(ColumnsError) as caught:
        tts.scan_trajectories(path)

    assert str(caught.value).startswith(
        f"{path}: column 'scores' is List(List(String)), must be List(List(Float64)). Hint: cast it"
    )


def test_lists_of_parquet_that_differ_in_length_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    rows = [best_of_n(number) for number in range(5)] + [best_of_n(5, scores=[[0.5]])]
    pl.DataFrame(rows).write_parquet(path)

    with pytest.raises(
        SourceError, match=r"run\.parquet, row 6: .* has 2 'completions' but 1 'scores'"
    ):
        tts.read_trajectories(path)
    with pytest.warns(tts.errors.SkippedRowsWarning, match="^1 row skipped: .*row 6"):
        assert tts.read_trajectories(path, on_error="skip").height == 10


def test_two_columns_of_one_meaning_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [best_of_n(gold="7")])

    with pytest.raises(
        ColumnsError, match=r"cannot be put into one table \(.*'gold'.*\). Hint: rename"
    ):
        tts.scan_trajectories(path)

    frame = tts.read_trajectories(path, rename={"gold": "other_gold"})
    assert frame.select("gold", "other_gold").row(0) == ("42", "7")


# -- Qwen2.5-Math ---------------------------------------------------------------------------------


def qwen(**other: object) -> dict[str, Any]:
    return {
        "idx": 3,
        "question": "q",
        "gt": "1",
        "gt_cot": "because",
        "code": ["a", "b"],
        "pred": ["1", ""],
        "report": [None, None],
        "score": [True, False],
        **other,
    }


def test_qwen_without_rewards_and_responses(tmp_path: Path) -> None:
    frame = tts.read_trajectories(write(tmp_path, [qwen()]))

    assert "step_scores" not in frame.columns
    assert frame.select(
        "problem_id", "completion", "answer", "is_correct", "gold", "solution"
    ).rows() == [(3, "a", "1", True, "1", "because"), (3, "b", None, False, "1", "because")]


def test_rewards_of_qwen_are_lists_of_one_logit(tmp_path: Path) -> None:
    rows = [qwen(pred_score=[[3.5], [-2.0]])]

    assert tts.read_trajectories(write(tmp_path, rows))["step_scores"].to_list() == [[3.5], [-2.0]]


def test_a_grade_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 1: problem 3 has 2 'code' but 1 'score'"):
        tts.read_trajectories(write(tmp_path, [qwen(score=[True])]))


# -- REBASE and ETS -------------------------------------------------------------------------------


def rebase(number: int = 0, **other: object) -> dict[str, Any]:
    return {
        "id": number,
        "question": f"q{number}",
        "model_answer": [
            {"text": "The answer is: 1", "step_scores": [0.5, None]},
            {"text": "The answer is: 2", "step_scores": []},
        ],
        "ground_truth_answer": "1",
        "total_tokens": 5310,
        **other,
    }


def test_tokens_of_a_tree_are_no_tokens_of_an_attempt(tmp_path: Path) -> None:
    frame = tts.read_trajectories(write(tmp_path, [rebase()]))

    assert "n_tokens" not in frame.columns
    assert frame["total_tokens"].to_list() == [5310, 5310]
    assert frame["step_scores"].to_list() == [[0.5, None], []]
    assert frame["is_exchangeable"].to_list() == [False, False]


def test_tokens_of_the_sampling_baseline_are(tmp_path: Path) -> None:
    candidates = [
        {"text": "x", "num_gen_tokens": 7, "logprob": -1.5},
        {"text": "y", "num_gen_tokens": 8},
    ]

    frame = tts.read_trajectories(write(tmp_path, [rebase(model_answer=candidates)]))

    assert frame["n_tokens"].to_list() == [7, 8]
    assert frame["logprob"].to_list() == [-1.5, None]
    assert frame["is_exchangeable"].to_list() == [None, None]
    assert "step_scores" not in frame.columns


def test_numbers_for_reference_answers_are_texts(tmp_path: Path) -> None:
    rows = [rebase(0, ground_truth_answer=12), rebase(1, ground_truth_answer="\\frac12")]

    frame = tts.read_trajectories(write(tmp_path, rows))

    assert frame["gold"].to_list() == ["12", "12", "\\frac12", "\\frac12"]


def test_a_run_in_pieces_is_one_run(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        path = tmp_path / "rebase" / f"answer_q{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(rebase(number), indent=4))
    (tmp_path / "rebase" / "config.json").write_text(json.dumps({"width": 16, "seed": 0}))

    for source in (tmp_path / "rebase", str(tmp_path / "rebase" / "answer_q*.json")):
        frame = tts.read_trajectories(source)

        assert "source_file" not in frame.columns
        assert frame["problem_id"].to_list() == [1, 1, 2, 2, 10, 10]


def test_two_runs_in_pieces_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for run in ("a", "b"):
        for number in range(2):
            write(tmp_path, [rebase(number)], f"{run}/answer_q{number}.json")

    frame = tts.read_trajectories(tmp_path)

    folders = [str(tmp_path / run) for run in ("a", "b") for _ in range(4)]
    assert frame["source_file"].to_list() == folders


def test_a_run_and_its_pieces_are_not_read_together(tmp_path: Path) -> None:
    write(tmp_path, [rebase(0)], "answer_q0.json")
    write(tmp_path, [rebase(0)], "answers.json")

    with pytest.raises(
        SourceError, match=r"holds both a complete run \(answers.json\) and the files"
    ):
        tts.scan_trajectories(tmp_path)


def test_a_fault_in_a_laid_out_array_names_the_element(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    broken = rebase(2, model_answer=[{"text": "x", "step_scores": ["high"]}])
    path.write_text(json.dumps([rebase(0), rebase(1), broken], indent=2))

    with pytest.raises(SourceError) as caught:
        tts.read_trajectories(path)

    assert str(caught.value).startswith(
        f"{path}, element 3: model_answer[0].step_scores[0] is a string ('high'), must be a number."
    )


def test_parquet_of_structs(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    frame = pl.DataFrame([rebase(model_answer=[{"text": "x", "step_scores": [0.5], "seed": 1}])])
    narrow = pl.List(
        pl.Struct({"text": pl.String, "step_scores": pl.List(pl.Float32), "seed": pl.Int8})
    )
    frame.with_columns(pl.col("model_answer").cast(narrow)).write_parquet(path)

    found = tts.read_trajectories(path)

    assert found.schema["step_scores"] == pl.List(pl.Float32)
    assert found.select("completion", "step_scores", "seed").rows() == [("x", [0.5], 1)]

    frame.with_columns(
        pl.Series("model_answer", [[{"text": "x", "step_scores": "0.5"}]])
    ).write_parquet(path)
    with pytest.raises(ColumnsError, match=r"run\.parquet: column 'model_answer' is List\(Struct"):
        tts.scan_trajectories(path)
    frame.with_columns(model_answer=pl.lit("x")).write_parquet(path)
    with pytest.raises(
        ColumnsError, match=r"run\.parquet: column 'model_answer' is String, must be List"
    ):
        tts.scan_trajectories(path)


def test_a_field_named_as_a_column_of_the_problem_is_kept_under_both_names(tmp_path: Path) -> None:
    rows = [rebase(model_answer=[{"text": "x", "total_tokens": 7}])]

    frame = tts.read_trajectories(write(tmp_path, rows))

    assert frame.select("total_tokens", "model_answer_total_tokens").rows() == [(5310, 7)]


# -- compute-optimal-tts and OpenR ----------------------------------------------------------------


def record(*paths: dict[str, Any], question: str = "q", **other: object) -> dict[str, Any]:
    return {
        "question": question,
        "groundtruth": "so \\boxed{1}",
        "result": {"majority_vote": 1, "total_completion_tokens": 9},
        "output": list(paths),
        **other,
    }


def test_records_of_one_question_are_numbered_on(tmp_path: Path) -> None:
    one = {"path_idx": 0, "text": "a", "value": [0.5], "completion_tokens": 5}

    frame = tts.read_trajectories(
        write(tmp_path, [record(one), record(one, question="other"), record(one), record(one, one)])
    )

    of_q = frame.filter(pl.col("problem") == "q")
    assert of_q["attempt"].to_list() == [0, 1, 2, 3]
    assert of_q["is_correct"].to_list() == [True, True, None, None]
    assert of_q["n_tokens"].to_list() == [5, 5, None, None]
    assert of_q["is_exchangeable"].to_list() == [None, None, False, False]


def test_a_lone_path_that_was_not_scored_has_no_score(tmp_path: Path) -> None:
    lone = {"text": "a", "value": [0], "completion_tokens": 0, "extracted_answer": ""}
    pair = [{"text": "b", "value": [0]}, {"text": "c", "value": [0.5]}]

    frame = tts.read_trajectories(write(tmp_path, [record(lone), record(*pair, question="other")]))

    assert frame["step_scores"].to_list() == [None, [0.0], [0.5]]
    assert frame["n_tokens"].to_list() == [None, None, None]
    assert frame["answer"].to_list() == [None, None, None]


def test_records_in_folders_are_pieces_of_one_run(tmp_path: Path) -> None:
    for question in range(2):
        for number in (0, 1, 10, 2):
            path = {"text": f"{number}", "value": [0.5]}
            write(
                tmp_path,
                [record(path, question=f"q{question}")],
                f"1_1_1/question_{question}/record_{number}.jsonl",
            )
    (tmp_path / "1_1_1" / "avg_result.json").write_text(json.dumps([{"majority_vote": 0.5}]))

    frame = tts.read_trajectories(tmp_path)

    assert "source_file" not in frame.columns
    assert frame["attempt"].to_list() == [0, 1, 2, 3] * 2
    assert frame["completion"].to_list() == ["0", "1", "2", "10"] * 2
