"""Bad input ends in one message that says what, where, what was expected and the way out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import polars as pl
import pytest
from click.testing import Result

import ttsframe as tts
from ttsframe._checks import check_between
from ttsframe.cli._errors import in_options
from ttsframe.errors import ParameterError

Run = Callable[..., Result]

PYTHON_ONLY = ("on_error=", "rename=", "by=", "format=", "weights=", "references[")
"""Spellings of parameters that mean nothing on a command line."""


def fails(result: Result, *parts: str) -> str:
    """Check status, streams and wording of a failure, and return the message."""
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    for part in parts:
        assert part in result.stderr
    for word in (*PYTHON_ONLY, "Traceback"):
        assert word not in result.stderr
    assert not re.search(r"\b_run\b", result.stderr)
    return result.stderr


def broken(lines: list[str], **changes: object) -> str:
    row = {**json.loads(lines[1]), **changes}
    return "\n".join([lines[0], json.dumps(row)])


@pytest.mark.parametrize("command", ["report", "validate", "vote", "curve"])
def test_a_missing_file(ttsframe: Run, command: str) -> None:
    Path("here.jsonl").touch()
    fails(ttsframe(command, "gone.jsonl"), "gone.jsonl: no such file", "holds here.jsonl")


def test_an_empty_file_and_an_empty_folder(ttsframe: Run) -> None:
    Path("empty.jsonl").touch()
    Path("folder").mkdir()
    fails(ttsframe("curve", "empty.jsonl"), "empty.jsonl: is empty (0 bytes)", "Hint: ")
    fails(ttsframe("curve", "folder"), "folder: holds no files")
    fails(ttsframe("curve", "*.parquet"), "*.parquet: matches no file")


def test_a_folder_with_mixed_formats(ttsframe: Run, lines: list[str]) -> None:
    Path("runs").mkdir()
    Path("runs/a.jsonl").write_text(lines[0])
    tts.simulate_trajectories(2, 2, seed=1).write_parquet("runs/b.parquet")
    fails(
        ttsframe("curve", "runs"),
        "search_and_learn: 1 (for example runs/a.jsonl)",
        "long_form: 1 (for example runs/b.parquet)",
        "ttsframe score",
        "--by source_file",
    )


def test_columns_that_only_one_file_has_are_never_taken_for_missing_values(
    ttsframe: Run, sample: Path
) -> None:
    ttsframe("convert", sample, "-o", "raw.parquet")
    ttsframe("score", sample, "-o", "scored.parquet", "--texts")
    both = ("raw.parquet", "scored.parquet", "--by", "source_file")
    fails(
        ttsframe("curve", *both),
        "raw.parquet: has no column 'answer', but scored.parquet has one",
        "derived from ['completion']",
        "ttsframe score",
    )
    ttsframe("score", "raw.parquet", "-o", "raw_scored.parquet")
    curve = ttsframe("curve", "raw_scored.parquet", *both[1:], "--json")
    points = pl.DataFrame(json.loads(curve.stdout)["curve"]).partition_by("source_file")
    assert len(points) == 2
    assert points[0]["accuracy"].equals(points[1]["accuracy"])


def test_a_truncated_last_line(ttsframe: Run, lines: list[str]) -> None:
    Path("cut.jsonl").write_text(f"{lines[0]}\n{lines[1][:300]}")
    fails(ttsframe("curve", "cut.jsonl"), "cut.jsonl, line 2: is cut off", "--on-error skip")


def test_a_line_that_is_not_json(ttsframe: Run, lines: list[str]) -> None:
    Path("run.jsonl").write_text("\n".join([lines[0], "loss=0.3", lines[1]]))
    fails(ttsframe("curve", "run.jsonl"), "run.jsonl, line 2: not JSON", "loss=0.3")


def test_lists_of_unequal_lengths(ttsframe: Run, lines: list[str]) -> None:
    scores = json.loads(lines[1])["scores"][:-1]
    Path("run.jsonl").write_text(broken(lines, scores=scores))
    fails(ttsframe("vote", "run.jsonl"), "run.jsonl, line 2", "16 'completions' but 15 'scores'")


@pytest.mark.parametrize("scores", ["high", [["high"]] * 16])
def test_strings_where_scores_belong(ttsframe: Run, lines: list[str], scores: object) -> None:
    Path("run.jsonl").write_text(broken(lines, scores=scores))
    fails(ttsframe("curve", "run.jsonl"), "run.jsonl, line 2: scores", "'high'", "must be a")


@pytest.mark.parametrize(("name", "value"), [("score", "hi"), ("step_scores", ["hi"])])
def test_a_table_with_strings_where_scores_belong(ttsframe: Run, name: str, value: object) -> None:
    row = {"problem_id": "a", "attempt": 0, "completion": "so 1", name: value}
    pl.DataFrame([row]).write_parquet("run.parquet")
    fails(ttsframe("curve", "run.parquet"), f"run.parquet: column '{name}' is", "Float64")


def test_a_parquet_file_without_the_columns(ttsframe: Run) -> None:
    pl.DataFrame({"x": [1], "y": ["a"]}).write_parquet("other.parquet")
    fails(
        ttsframe("curve", "other.parquet"),
        "other.parquet: in no known format; found columns: ['x', 'y']",
        "--rename yours=expected",
    )
    pl.DataFrame({"problem_id": ["a"], "attempt": [0]}).write_parquet("bare.parquet")
    fails(ttsframe("curve", "bare.parquet"), "1 missing column", "'completion'", "--rename")


def test_a_cut_parquet_file(ttsframe: Run) -> None:
    tts.simulate_trajectories(50, 4, seed=1).write_parquet("run.parquet")
    data = Path("run.parquet").read_bytes()
    Path("run.parquet").write_bytes(data[: len(data) // 2])
    fails(ttsframe("curve", "run.parquet"), "run.parquet: cannot be read as Parquet", "cut off")


@pytest.mark.parametrize("command", ["curve", "vote", "report"])
def test_a_forgotten_by(ttsframe: Run, command: str) -> None:
    run = tts.simulate_trajectories(3, 8, seed=1)
    models = [run.with_columns(model=pl.lit(name)) for name in "ab"]
    pl.concat(models).write_parquet("run.parquet")
    fails(ttsframe(command, "run.parquet", "--budgets", "4"), "expected", "--by source_file")
    assert ttsframe(command, "run.parquet", "--budgets", "4", "--by", "model").exit_code == 0
    Path("report.html").unlink(missing_ok=True)
    fails(ttsframe(command, "run.parquet", "--budgets", "4"), "expected")
    assert not Path("report.html").exists()


def test_a_by_that_is_no_column(ttsframe: Run, sample: Path) -> None:
    fails(ttsframe("curve", sample, "--by", "model"), "'model'", "'problem_id'")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--selectors", "weighted_vote"], "weighted_vote and best_of_n need 'score'"),
        (["--reductions", "min"], "reductions need step scores"),
    ],
)
def test_scores_that_are_asked_for_and_not_there(
    ttsframe: Run, options: list[str], words: str
) -> None:
    tts.simulate_trajectories(5, 2, seed=1).drop("step_scores").write_parquet("run.parquet")
    fails(ttsframe("curve", "run.parquet", *options), words)


@pytest.mark.parametrize("command", ["report", "convert", "score", "vote", "curve", "simulate"])
@pytest.mark.parametrize("target", ["folder", "nowhere/out", "out.txt"])
def test_an_output_that_cannot_be_written(
    ttsframe: Run, sample: Path, command: str, target: str
) -> None:
    suffix = ".html" if command == "report" else ".parquet"
    if target in {"folder", "nowhere/out"}:
        target += suffix
    Path(f"folder{suffix}").mkdir()
    source = [] if command == "simulate" else [sample]
    fails(ttsframe(command, *source, "-o", target), Path(target).name)
    assert [path.name for path in Path().iterdir()] == [f"folder{suffix}"]


def test_a_folder_without_permission(
    ttsframe: Run, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root, who runs the tests in containers, may write anywhere
    monkeypatch.setattr(os, "access", lambda *_: False)
    fails(ttsframe("curve", sample, "-o", "curve.csv"), "cannot be written to", "curve.csv")


def test_a_source_is_never_replaced(ttsframe: Run, lines: list[str]) -> None:
    Path("run.jsonl").write_text(lines[0])
    tts.simulate_trajectories(2, 2, seed=1).write_parquet("table.parquet")
    for source in ("run.jsonl", "run.*"):
        fails(ttsframe("score", source, "-o", "run.jsonl"), "is one of the sources")
    fails(ttsframe("score", "table.parquet", "-o", "table.parquet"), "is one of the sources")
    fails(ttsframe("score", "table.parquet", "-o", "."), "table.parquet is one of the sources")
    assert Path("run.jsonl").read_text() == lines[0]


def test_a_failure_while_writing_leaves_the_old_file(ttsframe: Run, lines: list[str]) -> None:
    scores = json.loads(lines[1])["scores"][:-1]
    Path("run.jsonl").write_text(broken(lines, scores=scores))
    for name, option in ("out.arrow", "--quiet"), ("out.parquet", "--replace"):
        Path(name).write_text("old")
        fails(ttsframe("convert", "run.jsonl", "-o", name, option), "run.jsonl, line 2")
        assert Path(name).read_text() == "old"
    names = ["out.arrow", "out.parquet", "run.jsonl"]
    assert sorted(path.name for path in Path().glob("[!.]*")) == names


def test_lists_do_not_fit_into_csv(ttsframe: Run, sample: Path) -> None:
    fails(ttsframe("convert", sample, "-o", "a.csv"), "CSV cannot hold lists", "a.parquet")
    assert not Path("a.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budgets", "0"], "'0' is not a number of attempts"),
        (["--budgets", "1,x"], "'x' is not a number of attempts"),
        (["--budgets", "1,,2"], "'' is not a number of attempts"),
        (["--budgets", "9" * 30], "is not a number of attempts"),
        (["--selectors", "majority"], "'majority_vote', 'weighted_vote'"),
        (["--reductions", "median"], "'geometric_mean'"),
        (["--weights", "exp"], "'sigmoid'"),
        (["--style", "bold"], "'boxed'"),
        (["--answer-policy", "percentage=kept"], "'percentage' is no option"),
        (["--answer-policy", "percentage=kept"], "units (dropped, kept)"),
        (
            ["--answer-policy", "percent=half"],
            "'half' is no choice of percent; expected one of ignored",
        ),
        (["--answer-policy", "percent"], "'' is no choice of percent"),
        (["--answer-policy", "percent=kept,percent=ignored"], "'percent' is given twice"),
        (["--format", "csv"], "'search_and_learn'"),
        (["--on-error", "ignore"], "'skip'"),
        (["--rename", "a"], "'a' must be YOURS=OURS"),
        (["--rename", "a=b", "--rename", "a=c"], "'a' is given twice"),
        (["--confidence-level", "1"], "0.0<x<1.0"),
        (["--confidence-level", "95"], "range 0.0<x<1.0. 95 % is 0.95."),
        (["--by", ""], "is no name of a column"),
        (["--rename", "a=c", "--rename", "b=c"], "'a' and 'b' cannot both be read as 'c'"),
    ],
)
def test_a_bad_option_is_named(ttsframe: Run, sample: Path, options: list[str], words: str) -> None:
    result = ttsframe("curve", sample, *options)
    assert result.exit_code == 2
    assert not result.stdout
    assert f"Invalid value for '{options[0]}'" in result.stderr
    assert words in result.stderr


def test_a_page_needs_numbers_of_attempts(ttsframe: Run, sample: Path) -> None:
    result = ttsframe("report", sample, "--budgets", "all")
    assert result.exit_code == 2
    assert "Invalid value for '--budgets': 'all'" in result.stderr
    assert not Path("report.html").exists()
    assert "\nall  " in ttsframe("curve", sample, "--budgets", "all").stdout


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("greedy", "must be NAME=ACCURACY"),
        ("greedy=x", "'x' is not a number"),
        ("greedy=42", "0.42"),
    ],
)
def test_a_bad_reference(ttsframe: Run, sample: Path, value: str, words: str) -> None:
    result = ttsframe("report", sample, "--reference", value)
    assert result.exit_code == 2
    assert "--reference" in result.stderr
    assert words in result.stderr
    assert not Path("report.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seed", "-1"], "--seed == -1"),
        (["--missing-share", "2"], "--missing-share == 2.0"),
        (["--n-steps", "5", "2"], "--n-steps == (5, 2)"),
    ],
)
def test_a_simulation_that_cannot_be(ttsframe: Run, options: list[str], words: str) -> None:
    fails(ttsframe("simulate", *options, "-o", "run.parquet"), words)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (OSError(28, "No space left on device", "out.parquet"), "out.parquet: No space left"),
        (pl.exceptions.ComputeError("cannot parse\nat 3"), "cannot parse. Hint"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "not UTF-8"),
    ],
)
def test_what_libraries_raise_becomes_a_message(
    ttsframe: Run, sample: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr("ttsframe.cli._options.plan_reading", refuse)
    fails(ttsframe("score", sample, "-o", "out.jsonl"), words)


def test_a_fault_of_ours_is_named_without_a_traceback(
    ttsframe: Run, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise KeyError("lost")

    monkeypatch.setattr("ttsframe.cli._options.plan_reading", fail)
    result = ttsframe("curve", sample)
    assert result.exit_code == 70
    assert "Error: a fault of ttsframe, not of the input: KeyError in " in result.stderr
    assert "'lost'. Hint: please report it" in result.stderr
    assert result.stderr.count("\n") == 1
    monkeypatch.setenv("TTSFRAME_DEBUG", "1")
    with pytest.raises(KeyError):
        ttsframe("curve", sample)


def test_a_baseline_that_is_not_there(ttsframe: Run, sample: Path) -> None:
    fails(
        ttsframe("compare", sample, "--baseline", "majority"),
        "found: ['best_of_n', 'majority_vote', 'weighted_vote']",
        "did you mean 'majority_vote'? Else, --baseline VALUE names another.",
    )
    fails(ttsframe("compare", sample, "--column", "problem"), "--column names what tells attempts")


def test_a_column_of_the_result_is_renamed_by_an_option(ttsframe: Run, sample: Path) -> None:
    ttsframe("convert", sample, "-o", "run.parquet")
    fails(
        ttsframe("curve", "run.parquet", "--by", "problem_id"),
        "Hint: rename yours with --rename problem_id=my_problem_id.",
    )


def test_what_a_model_wrote_cannot_steer_the_terminal(ttsframe: Run, lines: list[str]) -> None:
    row = json.loads(lines[0])
    row["completions"] = ["so \\boxed{\x1b[31mred\x07}"] * 16
    Path("run.jsonl").write_text(json.dumps(row))
    result = ttsframe("vote", "run.jsonl")
    assert "\\x1b[31mred\\x07" in result.stdout
    assert "\x1b" not in result.stdout
    row["scores"] = ["\x1b[31m"]
    Path("run.jsonl").write_text(json.dumps(row))
    assert "\x1b" not in fails(ttsframe("vote", "run.jsonl"), "run.jsonl")


def test_a_spelling_inside_another_is_reworded_once() -> None:
    for value in (1, 12):
        with pytest.raises(ParameterError) as caught:
            check_between(value, "k", 20, 30)
    assert in_options(str(caught.value)) == "--k == 12, must be from 20 to 30."
