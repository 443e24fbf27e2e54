"""What is written comes back equal, or is named; other tools' files have the shape of their own."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.cli import cli
from ttsframe.errors import ColumnsError, DataError, LostColumnsWarning, ParameterError, SourceError

RUN = pl.DataFrame({
    "problem_id": ["b", "b", "a", "a"],
    "attempt": pl.Series([0, 1, 0, 1], dtype=pl.UInt32),
    "problem": ['1 + 1 = "?"'] * 2 + ["Ä\n\\frac{1}{2}, \u2028?"] * 2,
    "completion": ["2", "\u0000\t3", "1/2 \U0001f600", ""],
    "step_scores": [[0.5, None], [], [1e-300], [0.1 + 0.2]],
    "answer": ["2", "3", "1/2", None],
    "gold": ["2", "2", "1/2", "1/2"],
    "is_correct": [True, False, True, False],
    "n_tokens": pl.Series([3, 4, None, 7], dtype=pl.Int64),
    "level": [1, 1, 5, 5],
    "tags": [["x"], ["x"], [], []],
})


def write(run: pl.DataFrame, path: Path, **settings: Any) -> list[str]:
    """Write a run, and return the columns that are named as lost."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tts.write_trajectories(run, path, **settings)
    (message,) = [str(each.message) for each in caught] or [""]
    assert all(each.category is LostColumnsWarning for each in caught)
    listed = message.partition("does not hold ")[2].partition(". Hint")[0]
    return [name.strip("'") for name in listed.split(", ") if name]


def lines(path: Path) -> list[str]:
    """Split at line ends alone: texts hold other separators."""
    return path.read_text("utf-8").rstrip("\n").split("\n")


def sort(run: pl.DataFrame) -> pl.DataFrame:
    return run.sort("problem_id", "attempt")


@pytest.mark.parametrize("name", ["long_form", "datasets"])
def test_parquet_holds_everything(name: Any, tmp_path: Path) -> None:
    run = RUN.with_columns(
        when=pl.lit("2026-01-02").str.to_date(),
        kind=pl.lit("x").cast(pl.Categorical if name == "long_form" else pl.String),
        nested=pl.struct(a=pl.lit(1), b=pl.concat_list(pl.lit(0.5))),
        score=pl.lit(float("nan")),
    )
    path = tmp_path / "run.parquet"
    assert write(run, path, format=name) == []
    assert_frame_equal(tts.read_trajectories(path).select(run.columns), run)


def test_search_and_learn_holds_what_its_rows_say(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert write(RUN, path, format="search_and_learn") == ["answer", "is_correct"]
    held = RUN.drop("answer", "is_correct")
    assert_frame_equal(sort(tts.read_trajectories(path).select(held.columns)), sort(held))
    rows = [json.loads(line) for line in lines(path)]
    assert [row["problem_id"] for row in rows] == ["b", "a"]
    assert rows[0]["completions"] == ["2", "\u0000\t3"]
    assert rows[0]["scores"] == [[0.5, None], []]
    assert rows[1]["completion_tokens"] == [None, 7]
    assert (rows[0]["answer"], rows[0]["level"]) == ("2", 1)


@pytest.mark.parametrize(
    ("columns", "lost"),
    [
        ({"is_exchangeable": [False] * 4, "n_tokens": pl.Series([None] * 4, dtype=pl.Int64)}, []),
        ({"is_exchangeable": [True] * 4}, ["is_exchangeable"]),
        ({"is_exchangeable": [False] * 4}, ["is_exchangeable"]),
        ({"n_tokens": [0] * 4}, ["n_tokens"]),
        ({"attempt": [0, 2, 0, 1]}, ["attempt"]),
        ({"level": [1, 2, 3, 4]}, ["level"]),
        ({"day": pl.Series(["2026-01-02"] * 4).str.to_date()}, ["day"]),
    ],
)
def test_what_search_and_learn_cannot_say_is_named(
    columns: dict[str, Any], lost: list[str], tmp_path: Path
) -> None:
    run = RUN.drop("answer", "is_correct").with_columns(**{
        name: pl.Series(values) for name, values in columns.items()
    })
    path = tmp_path / "run.jsonl"
    assert write(run, path, format="search_and_learn") == lost
    held = run.drop(lost)
    back = tts.read_trajectories(path)
    order = ["problem_id", "completion"]
    assert_frame_equal(back.select(held.columns).sort(order), held.sort(order), check_dtypes=False)


SOURCES = (
    "search_and_learn/beam16_llama3.2-3b-awq_q100.jsonl",
    "search_and_learn/bon256_q10_own_prompt_only.jsonl",
    "search_and_learn/edge_null-scores_qwen2.5-math_q100.jsonl",
    "qwen_math/math_cot_50.jsonl",
    "ets/synthetic_20x16.json",
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["long_form", "datasets", "search_and_learn"])
def test_real_runs_come_back(source: str, name: Any, tmp_path: Path, shared_data: Path) -> None:
    run = tts.read_trajectories(shared_data / source)
    path = tmp_path / f"run{tts.WRITERS[name].suffix}"
    lost = write(run, path, format=name)
    back = tts.read_trajectories(path)
    held = [column for column in run.columns if column not in lost]
    assert_frame_equal(sort(back).select(held), sort(run).select(held))
    if name != "search_and_learn":
        assert not lost
    elif source.startswith("search_and_learn"):
        assert not lost  # the tool's own files hold all that is read from them


def test_lm_eval_samples_have_the_shape_of_the_tool(tmp_path: Path, shared_data: Path) -> None:
    (real_path,) = (shared_data / "lm_eval").glob("samples_*.jsonl")
    real = [json.loads(line) for line in lines(real_path)]
    run = pl.DataFrame([
        {
            "problem_id": sample["doc_id"],
            "attempt": 0,
            "problem": sample["arguments"]["gen_args_0"]["arg_0"],
            "completion": sample["resps"][0][0],
            "gold": sample["target"],
            "is_correct": sample["exact_match"] == 1.0,
        }
        for sample in real
    ])
    path = tmp_path / "samples_mine.jsonl"
    assert write(run, path, format="lm_eval") == []
    ours = [json.loads(line) for line in lines(path)]
    same = [
        "doc_id",
        "target",
        "resps",
        "filtered_resps",
        "filter",
        "metrics",
        "prompt_hash",
        "target_hash",
        "exact_match",
    ]
    for sample, written in zip(real, ours, strict=True):
        assert written.keys() == sample.keys()
        assert {key: written[key] for key in same} == {key: sample[key] for key in same}
        assert written["arguments"]["gen_args_0"]["arg_0"] == run["problem"][sample["doc_id"]]


def test_lm_eval_samples_hold_repeats(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    lost = write(RUN, path, format="lm_eval")
    assert lost == ["answer", "is_correct", "n_tokens", "step_scores"]
    first, second = (json.loads(line) for line in lines(path))
    assert first["resps"] == [["2", "\u0000\t3"]]
    assert first["filtered_resps"] == ["2"]
    assert (first["doc_id"], second["doc_id"]) == (0, 1)
    assert first["doc"]["problem_id"] == "b"
    assert first["target_hash"] == hashlib.sha256(b"2").hexdigest()
    assert first["metrics"] == []
    held = ["problem_id", "attempt", "problem", "completion", "gold"]
    assert_frame_equal(sort(tts.read_trajectories(path).select(held)), sort(RUN.select(held)))


def test_every_eval_ever_instances_follow_the_schema(tmp_path: Path) -> None:
    """Required keys and types by instance_level_eval.schema.json 0.2.2 of evaleval/every_eval_ever."""
    run = RUN.with_columns(
        model=pl.lit("org/model"),
        evaluation_name=pl.lit("aime"),
        n_tokens=pl.lit(5),
        n_prompt_tokens=pl.lit(2),
    )
    path = tmp_path / "mine_samples.jsonl"
    assert write(run, path, format="every_eval_ever") == ["level", "step_scores", "tags"]
    rows = [json.loads(line) for line in lines(path)]
    assert len(rows) == run.height
    for row, attempt in zip(rows, run.iter_rows(named=True), strict=True):
        assert row["schema_version"] == "0.2.2"
        names = (row["evaluation_id"], row["model_id"], row["evaluation_name"])
        assert names == ("mine_samples", "org/model", "aime")
        assert row["sample_id"] == attempt["problem_id"]
        assert row["interaction_type"] == "single_turn"
        assert row["input"] == {"raw": attempt["problem"], "reference": [attempt["gold"]]}
        assert row["output"] == {"raw": [attempt["completion"]]}
        assert row["evaluation"] == {
            "score": float(attempt["is_correct"]),
            "is_correct": attempt["is_correct"],
        }
        assert row["token_usage"] == {"input_tokens": 2, "output_tokens": 5, "total_tokens": 7}
        assert row["metadata"] == {"attempt": str(attempt["attempt"])}
        extracted = [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": attempt["answer"],
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ]
        assert row["answer_attribution"] == ([] if attempt["answer"] is None else extracted)
    assert len({row["sample_hash"] for row in rows}) == 2
    with pytest.raises(DataError, match=r"1 of 4 attempts are not graded"):
        tts.write_trajectories(
            RUN.with_columns(is_correct=pl.Series([True, None, True, False])),
            path,
            format="every_eval_ever",
        )


def test_parquet_says_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    write(RUN.with_columns(source_file=pl.lit("runs/a.jsonl")), path)
    metadata = json.loads(pq.read_metadata(path).metadata[b"ttsframe"])
    assert metadata["written_by"] == f"ttsframe {tts.__version__}"
    assert metadata["source_files"] == ["runs/a.jsonl"]
    assert "number" not in metadata["columns"]
    assert metadata["columns"]["n_tokens"] == "generated tokens"
    first = path.read_bytes()
    write(RUN.with_columns(source_file=pl.lit("runs/a.jsonl")), path)
    assert path.read_bytes() == first


def test_features_of_datasets_are_those_of_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    run = RUN.with_columns(pairs=pl.concat_list(pl.struct(a=pl.lit(1, pl.Int32))))
    write(run, path, format="datasets")
    info = json.loads(pq.read_metadata(path).metadata[b"huggingface"])["info"]
    text, number = ({"dtype": kind, "_type": "Value"} for kind in ("string", "float64"))
    features = info["features"]
    assert list(features) == run.columns
    assert features["completion"] == text
    assert features["step_scores"] == {"feature": number, "_type": "Sequence"}
    assert features["attempt"]["dtype"] == "uint32"
    assert features["pairs"] == [{"a": {"dtype": "int32", "_type": "Value"}}]
    datasets = pytest.importorskip("datasets", reason="the package datasets is not here")
    loaded = datasets.Dataset.from_parquet(str(path))
    assert loaded[0]["step_scores"] == [0.5, None]


@pytest.mark.parametrize(
    ("change", "name", "error", "match"),
    [
        ({"attempt": [0, 0, 0, 1]}, "search_and_learn", DataError, "attempt 0 appears twice"),
        ({"step_scores": [[float("nan")]] * 4}, "search_and_learn", DataError, "holds NaN"),
        ({"gold": ["1", "2", "3", "3"]}, "search_and_learn", DataError, "'gold' differs"),
        ({"problem_id": ["a", None, "b", "c"]}, "lm_eval", DataError, "problem_id is null"),
    ],
)
def test_a_failure_leaves_the_old_file(
    change: dict[str, Any], name: Any, error: type[Exception], match: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("old")
    run = RUN.with_columns(**{key: pl.Series(values) for key, values in change.items()})
    with pytest.raises(error, match=match):
        tts.write_trajectories(run, path, format=name)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["run.jsonl"]


def test_wrong_parameters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"writes \.parquet"):
        tts.write_trajectories(RUN, tmp_path / "run.jsonl")
    with pytest.raises(ParameterError, match="must be one of 'long_form'"):
        tts.write_trajectories(RUN, tmp_path / "run.jsonl", format="csv")  # type: ignore[arg-type]
    with pytest.raises(ColumnsError, match="'completion'"):
        tts.write_trajectories(RUN.drop("completion"), tmp_path / "a.jsonl", format="lm_eval")
    with pytest.raises(SourceError, match="no such folder"):
        tts.write_trajectories(RUN, tmp_path / "none" / "run.parquet")


def test_the_command_writes_formats(tmp_path: Path) -> None:
    source, target = tmp_path / "run.parquet", tmp_path / "run.jsonl"
    write(RUN, source)
    result = CliRunner().invoke(
        cli, ["convert", str(source), "-o", str(target), "--to", "search_and_learn"]
    )
    assert result.exit_code == 0, result.output
    assert "does not hold 'answer', 'is_correct'" in result.output
    assert len(lines(target)) == 2
    wrong = CliRunner().invoke(
        cli, ["convert", str(source), "-o", str(target), "--to", "datasets"], prog_name="ttsframe"
    )
    assert wrong.exit_code == 2
    assert "must end in .parquet" in wrong.output
