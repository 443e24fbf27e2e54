"""What the commands make, against files read back and counts by plain loops."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from polars.testing import assert_frame_equal

import ttsframe as tts

Run = Callable[..., Result]

READ_BACK = {
    ".parquet": pl.read_parquet,
    ".jsonl": tts.read_trajectories,
    ".ndjson": tts.read_trajectories,
    ".arrow": pl.read_ipc,
    ".ipc": pl.read_ipc,
    ".feather": pl.read_ipc,
}


@pytest.mark.parametrize("suffix", READ_BACK)
def test_convert_keeps_every_row_and_column(
    ttsframe: Run, sample: Path, tmp_path: Path, suffix: str
) -> None:
    target = tmp_path / f"run{suffix}"
    result = ttsframe("convert", sample, "-o", target)
    assert result.exit_code == 0, result.stderr
    expected = tts.read_trajectories(sample)
    assert_frame_equal(READ_BACK[suffix](target), expected, check_column_order=False)
    assert "960 rows for 60 problems" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_score_leaves_texts_out_unless_asked(ttsframe: Run, sample: Path, tmp_path: Path) -> None:
    for flags, has_texts in ([], False), (["--texts", "--replace"], True):
        target = tmp_path / "scored.parquet"
        assert ttsframe("score", sample, "-o", target, *flags).exit_code == 0
        columns = pl.read_parquet_schema(target).keys()
        assert {"answer", "answer_key", "gold_key", "is_correct", "score"} <= columns
        assert ("completion" in columns) is has_texts


@pytest.fixture
def percentages(tmp_path: Path) -> Path:
    """Return a run in which the policy decides every grade."""
    path = tmp_path / "percentages.parquet"
    pl.DataFrame({
        "problem_id": [f"p{i % 5}" for i in range(20)],
        "attempt": [i // 5 for i in range(20)],
        "completion": [r"So it is \boxed{50\%}."] * 20,
        "gold": ["0.5", "50", "5 dollars", "50", "0.5"] * 4,
    }).write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("flags", "accuracy"),
    [
        ([], 0.8),
        (["--answer-policy", "percent=fraction"], 0.4),
        (["--answer-policy", "units=kept,percent=fraction"], 0.4),
        (["--answer-policy", "percent=kept", "--answer-policy", "units=kept"], 0.0),
    ],
)
def test_every_command_follows_the_policy(
    ttsframe: Run, percentages: Path, tmp_path: Path, flags: list[str], accuracy: float
) -> None:
    source = ["--quiet", *flags, percentages]
    for target in ("scored.jsonl", "scored.parquet"):
        assert ttsframe("score", *source, "-o", target).exit_code == 0
    graded = tts.read_trajectories(tmp_path / "scored.jsonl")["is_correct"]
    assert graded.mean() == pl.read_parquet("scored.parquet")["is_correct"].mean() == accuracy
    assert ttsframe("vote", *source, "-o", "picks.parquet").exit_code == 0
    assert ttsframe("vote", *source, "-o", "picks.csv").exit_code == 0
    for picks in (pl.read_parquet("picks.parquet"), pl.read_csv("picks.csv")):
        assert picks.filter(selector="oracle")["is_correct"].mean() == accuracy
    for command in (["curve"], ["curve", "-o", "curve.parquet"], ["report", "-o", "page.html"]):
        made = json.loads(ttsframe(*command, "--json", *flags, percentages).stdout)
        assert {row["accuracy"] for row in made["curve"]} == {accuracy}
    assert ttsframe("validate", "--json", *flags, percentages).exit_code in {0, 1}


def test_a_job_of_another_policy_is_not_resumed(
    ttsframe: Run, percentages: Path, tmp_path: Path
) -> None:
    flags = ["--quiet", "-o", "scored.parquet", percentages]
    assert ttsframe("score", *flags).exit_code == 0
    other = ttsframe("score", "--answer-policy", "percent=kept", *flags)
    assert other.exit_code == 2
    assert "policy" in other.stderr
    manifest = tts.batch.read_manifest(tmp_path / "scored.parquet")
    assert manifest.stages[0]["policy"] is None
    again = ttsframe("score", "--replace", "--answer-policy", "percent=kept", *flags)
    assert again.exit_code == 0, again.stderr
    policy = tts.batch.read_manifest(tmp_path / "scored.parquet").stages[0]["policy"]
    assert isinstance(policy, dict)
    assert (policy["percent"], policy["units"]) == ("kept", "dropped")


def test_score_reduces_as_told(ttsframe: Run, sample: Path, tmp_path: Path) -> None:
    target = tmp_path / "scored.jsonl"
    assert ttsframe("score", sample, "-o", target, "--reduction", "min").exit_code == 0
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert len(rows) == 960
    assert all(row["score"] == min(row["step_scores"]) for row in rows)


def test_the_curve_of_a_simulated_run_is_the_truth_counted(ttsframe: Run, tmp_path: Path) -> None:
    run = tmp_path / "run.parquet"
    size = ("-n", 40, "-k", 12, "--seed", 5)
    assert ttsframe("simulate", *size, "-o", run).exit_code == 0
    document = json.loads(ttsframe("curve", run, "--json").stdout)

    problems: dict[str, list[tuple[int, str | None, bool]]] = {}
    for row in pl.read_parquet(run).iter_rows(named=True):
        attempt = (row["attempt"], row["true_key"], row["true_is_correct"])
        problems.setdefault(row["problem_id"], []).append(attempt)
    points = {(row["selector"], row["budget"]): row["accuracy"] for row in document["curve"]}
    assert {budget for _, budget in points} == {1, 2, 4, 8, 12}
    for budget in (1, 2, 4, 8, 12):
        majority, oracle = 0, 0
        for attempts in problems.values():
            first = sorted(attempts)[:budget]
            keys = [key for _, key, _ in first if key is not None]
            # Counter keeps the order of first sight, so a tie goes to the earliest answer
            winner = Counter(keys).most_common(1)[0][0] if keys else None
            majority += any(right for _, key, right in first if key == winner and key is not None)
            oracle += any(right for _, _, right in first)
        assert points["majority_vote", budget] == pytest.approx(majority / 40)
        assert points["oracle", budget] == pytest.approx(oracle / 40)


def test_the_curve_in_the_terminal_says_what_json_says(ttsframe: Run, sample: Path) -> None:
    text = ttsframe("curve", sample).stdout
    rows = json.loads(ttsframe("curve", sample, "--json").stdout)["curve"]
    assert len(rows) == 20
    for row in rows:
        ends = f"[{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]"
        assert f"{100 * row['accuracy']:.1f}% {ends}" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_curve_is_written_as_a_table(ttsframe: Run, sample: Path, tmp_path: Path) -> None:
    target = tmp_path / "curve.csv"
    result = ttsframe("curve", sample, "--budgets", "1,16", "-o", target, "--json")
    document = json.loads(result.stdout)
    assert document["output"] == str(target)
    table = pl.read_csv(target)
    assert table["accuracy"].to_list() == [row["accuracy"] for row in document["curve"]]
    assert sorted(set(table["budget"])) == [1, 16]


def test_options_reach_the_library(ttsframe: Run, sample: Path) -> None:
    chosen = ("--selectors", "best_of_n,weighted_vote", "--reductions", "min,prod")
    args = (*chosen, "--budgets", "4", "--weights", "softmax", "--confidence-level", "0.8")
    got = pl.DataFrame(json.loads(ttsframe("curve", sample, *args, "--json").stdout)["curve"])
    problems = tts.select_answers(
        tts.score_trajectories(tts.read_trajectories(sample)),
        selectors=["best_of_n", "weighted_vote"],
        reductions=["min", "prod"],
        budgets=[4],
        weights="softmax",
    )
    expected = tts.scaling_curve(problems, confidence_level=0.8)
    key = ["selector", "reduction"]
    assert_frame_equal(got.sort(key), expected.sort(key), check_dtypes=False)


def test_estimators_take_the_place_of_selectors(
    ttsframe: Run, sample: Path, tmp_path: Path
) -> None:
    named = ("--estimators", "pass^k,g_pass@k,maj@k", "--tau", "0.75", "--budgets", "2,8")
    target = tmp_path / "curve.parquet"
    document = json.loads(ttsframe("curve", sample, *named, "-o", target, "--json").stdout)
    scored = tts.score_trajectories(tts.read_trajectories(sample))
    expected = tts.curves.estimator_curve(
        scored, estimators=["pass^k", "g_pass@k", "maj@k"], k=[2, 8], tau=0.75
    )
    assert_frame_equal(pl.read_parquet(target), expected)
    assert_frame_equal(pl.DataFrame(document["curve"]), expected, check_dtypes=False)
    for wrong in (("--selectors", "oracle"), ("--budgets", "all"), ("-o", f"{tmp_path}/out/")):
        assert ttsframe("curve", sample, *named[:2], *wrong).exit_code == 2


def test_vote_gives_one_answer_per_problem_and_selector(ttsframe: Run, sample: Path) -> None:
    rows = json.loads(ttsframe("vote", sample, "--json").stdout)["problems"]
    assert Counter(row["selector"] for row in rows) == dict.fromkeys(
        ("majority_vote", "weighted_vote", "best_of_n", "oracle"), 60
    )
    assert {row["n_attempts"] for row in rows} == {16}


def test_votes_add_up_to_the_attempts(ttsframe: Run, sample: Path, tmp_path: Path) -> None:
    target = tmp_path / "votes.parquet"
    args = ("--table", "votes", "--budgets", "4,16", "-o", target)
    assert ttsframe("vote", sample, *args).exit_code == 0
    votes = pl.read_parquet(target).group_by("problem_id", "budget").agg(pl.col("n_votes").sum())
    assert votes.height == 120
    assert (votes["n_votes"] == votes["budget"]).all()


def test_a_long_table_says_how_many_rows_it_hides(ttsframe: Run, sample: Path) -> None:
    assert "220 more rows; -o writes all." in ttsframe("vote", sample).stdout


def test_report_prints_the_curve_and_writes_one_page(
    ttsframe: Run, sample: Path, tmp_path: Path
) -> None:
    result = ttsframe("report", sample, "--reference", "greedy=0.3")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("960 attempts at 60 problems (16 each)")
    assert ttsframe("curve", sample).stdout.strip() in result.stdout
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "greedy" in page
    assert page.rstrip().endswith("</html>")


def test_report_says_what_levels_and_scores_show(
    ttsframe: Run, sample: Path, tmp_path: Path
) -> None:
    text = ttsframe("report", sample).stdout
    assert "Majority vote gains most at level " in text
    assert "a right attempt outscores a wrong one " in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    alone = ttsframe("report", sample, "--sections", "cost", "--json")
    document = json.loads(alone.stdout)
    assert list(document["answers"]) == ["loaded", "accuracy", "cost"]
    assert document["verifier"] is None
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<section id='cost'" in page
    assert "<section id='verifier'" not in page
    assert ttsframe("report", sample, "--sections", "price").exit_code == 2


def test_two_runs_side_by_side(ttsframe: Run, lines: list[str]) -> None:
    Path("a.jsonl").write_text("\n".join(lines[:40]))
    Path("b.jsonl").write_text("\n".join(lines[20:]))
    result = ttsframe("report", "a.jsonl", "b.jsonl", "--by", "source_file", "--json")
    curve = json.loads(result.stdout)["curve"]
    assert {row["source_file"] for row in curve} == {"a.jsonl", "b.jsonl"}
    text = ttsframe("curve", "[ab].jsonl", "--by", "source_file").stdout
    assert text.index("source_file: a.jsonl") < text.index("source_file: b.jsonl")


def test_without_gold_answers_there_is_agreement(ttsframe: Run, lines: list[str]) -> None:
    rows = [json.loads(line) for line in lines]
    golds = [{"unique_id": row["unique_id"], "answer": row.pop("answer")} for row in rows]
    for row in rows:
        del row["solution"]
    Path("run.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, golds[:50])))
    without = ttsframe("report", "run.jsonl", "--json")
    document = json.loads(without.stdout)
    assert document["curve"] is None
    assert {row["selector"] for row in document["agreement"]} == {
        "majority_vote",
        "weighted_vote",
        "best_of_n",
    }
    assert "the run has no gold answers" in ttsframe("curve", "run.jsonl").stdout

    graded = ttsframe("curve", "run.jsonl", "--gold", "gold.jsonl")
    assert graded.stderr.startswith("Warning: gold.jsonl: no gold answer for 10 of 60")
    assert "ungraded: no gold answer; --gold" in graded.stdout


def test_renamed_columns_are_read(ttsframe: Run, lines: list[str]) -> None:
    rows = [json.loads(line) for line in lines[:5]]
    for row in rows:
        row["responses"] = row.pop("completions")
    Path("run.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert ttsframe("curve", "run.jsonl", "--rename", "responses=completions").exit_code == 0


def test_logits_are_explained_where_they_leave_problems_out(ttsframe: Run) -> None:
    run = tts.simulate_trajectories(20, 4, seed=1, missing_share=0.0)
    logits = pl.col("step_scores").list.eval((pl.element() / (1 - pl.element())).log())
    run.with_columns(logits).write_parquet("logits.parquet")
    text = ttsframe("report", "logits.parquet").stdout
    assert re.search(r"Weighted vote \(last\) has results for only \d+ of 20 problems", text)
    assert re.search(r"left out: \d+ undefined", text)
    assert "A negative score is no weight: --weights sigmoid" in text
    assert "Warning: " in text
    assert "--weights sigmoid" in text.partition("Warning: ")[2]
    assert "undefined" not in ttsframe("curve", "logits.parquet", "--weights", "sigmoid").stdout


def test_a_run_without_scores_says_what_is_left_out(ttsframe: Run) -> None:
    tts.simulate_trajectories(20, 4, seed=1).drop("step_scores").write_parquet("run.parquet")
    text = ttsframe("curve", "run.parquet").stdout
    assert "majority_vote" in text.splitlines()[2]
    assert "No weighted_vote or best_of_n: the run has no scores." in text


def test_validate_tells_findings_by_its_status(ttsframe: Run) -> None:
    run = tts.simulate_trajectories(20, 4, seed=1)
    run.write_parquet("noted.parquet")
    noted = ttsframe("validate", "noted.parquet")
    assert noted.exit_code == 0
    assert "1 note" in noted.stdout
    run.filter(attempt=0).vstack(run).write_parquet("repeated.parquet")
    repeated = ttsframe("validate", "repeated.parquet", "--json")
    assert repeated.exit_code == 1
    document = json.loads(repeated.stdout)
    assert document["is_valid"] is False
    assert document["findings"][0]["code"] == "duplicate_attempts"
    run.filter((pl.col("attempt") != 3) | (pl.col("problem_id") == "sim-000000")).write_parquet(
        "ragged.parquet"
    )
    ragged = ttsframe("validate", "ragged.parquet")
    assert ragged.exit_code == 1
    assert "[ragged_attempts]" in ragged.stdout


def test_validate_looks_into_completions(ttsframe: Run, sample: Path) -> None:
    assert "39 of 960 attempts have no answer" in ttsframe("validate", sample).stdout
    health = json.loads(ttsframe("validate", sample, "--json").stdout)["health"]
    assert [(row["issue"], row["rule"], row["n_attempts"]) for row in health] == [
        ("no_answer", None, 39),
        ("extracted", "box", 921),
    ]
    assert "extracted by box" in ttsframe("validate", sample).stdout


def test_skipped_rows_are_counted_on_stderr(ttsframe: Run, lines: list[str]) -> None:
    Path("run.jsonl").write_text("\n".join([lines[0], "no json", lines[2]]))
    result = ttsframe("curve", "run.jsonl", "--on-error", "skip", "--json")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: 1 row skipped: run.jsonl, line 2")
    assert {row["n_problems"] for row in json.loads(result.stdout)["curve"]} == {2}


def test_simulate_is_seeded(ttsframe: Run) -> None:
    for name, seed in ("a", 3), ("b", 3), ("c", 4):
        size = ("-n", 5, "-k", 4, "--seed", seed, "--texts")
        assert ttsframe("simulate", *size, "-o", f"{name}.parquet").exit_code == 0
    a, b, c = (pl.read_parquet(f"{name}.parquet") for name in "abc")
    assert_frame_equal(a, b)
    assert not a.equals(c)
    assert_frame_equal(a, tts.simulate_trajectories(5, 4, seed=3, texts=True))


@pytest.mark.parametrize("flag", ["--quiet", "--json"])
def test_nothing_else_is_on_stdout(ttsframe: Run, sample: Path, flag: str) -> None:
    commands = [
        ["report", sample, "-o", "r.html"],
        ["validate", sample],
        ["convert", sample, "-o", "a.parquet"],
        ["score", sample, "-o", "s.parquet"],
        ["vote", sample],
        ["curve", sample],
        ["simulate", "-n", 2, "-k", 2, "-o", "m.parquet"],
    ]
    for command in commands:
        result = ttsframe(*command, flag)
        assert result.exit_code == 0
        assert not result.stderr
        if flag == "--quiet":
            assert not result.stdout
        else:
            assert json.loads(result.stdout)
            assert result.stdout.count("\n") == 1
