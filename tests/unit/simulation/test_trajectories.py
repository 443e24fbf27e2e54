from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import ttsframe as tts
from ttsframe._draws import bells, bits_at, integers_below, uniforms
from ttsframe.schema import TRAJECTORY_COLUMNS
from ttsframe.simulation import trajectories as datasets

TRUTH = {"true_accuracy": pl.Float64, "true_is_correct": pl.Boolean, "true_key": pl.String}


def read_value(answer: str) -> Fraction:
    """Read a spelled answer, knowing nothing of how it was made."""
    text = re.sub(r"\\\$|^\$|\^\\circ|\^\{\\circ\}|\\text\{ cm\}| cm$|\{,\}|\\,|,", "", answer)
    if match := re.fullmatch(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}", text):
        sign, numerator, denominator = match.groups()
        return Fraction(f"{sign}{numerator}/{denominator}")
    return Fraction(text)


def auroc(frame: pl.DataFrame, score: pl.Expr) -> float:
    """Return the probability that a right attempt outscores a wrong one, by pairs."""
    right, wrong = (
        np.sort(
            frame.filter(pl.col("true_is_correct") == flag).select(score).to_series().to_numpy()
        )
        for flag in (True, False)
    )
    below = np.searchsorted(wrong, right, side="left") + np.searchsorted(wrong, right, side="right")
    return float(below.sum() / (2 * len(right) * len(wrong)))


def splitmix64(seed: int, n: int) -> list[int]:
    """Return the first n outputs of the published generator, in Python integers."""
    word, outputs = (1 << 64) - 1, []
    for _ in range(n):
        seed = (seed + 0x9E3779B97F4A7C15) & word
        x = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        outputs.append(x ^ (x >> 31))
    return outputs


def test_bits_are_those_of_splitmix64() -> None:
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]  # as published
    for seed in (0, 1234567, 2**64 - 1):
        drawn = bits_at(np.array([seed], dtype=np.uint64), np.arange(20))
        assert drawn.tolist() == splitmix64(seed, 20)


def test_draws_have_the_promised_distributions() -> None:
    bits = bits_at(np.array([99], dtype=np.uint64), np.arange(400_000))
    assert stats.kstest(uniforms(bits), "uniform").pvalue > 0.01
    bell = bells(bits)
    assert abs(bell.mean()) < 0.005
    assert abs(bell.var() - 1.0) < 0.005
    assert stats.kstest(bell, "norm").statistic < 0.01
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert uniforms(extremes).tolist() == [0.0, 1.0 - 2.0**-53]
    np.testing.assert_allclose(bells(extremes), [-np.sqrt(12.0), np.sqrt(12.0)], rtol=1e-4)
    assert set(integers_below(bits, 5).tolist()) == {0, 1, 2, 3, 4}
    assert stats.chisquare(np.bincount(integers_below(bits, 5))).pvalue > 0.01


@pytest.mark.parametrize("options", [{}, {"keys": True}, {"texts": True}])
def test_columns_and_dtypes_are_those_of_trajectories(options: dict[str, bool]) -> None:
    run = tts.simulate_trajectories(3, 4, seed=1, **options)
    assert run.height == 12
    known = [name for name in run.columns if name in TRAJECTORY_COLUMNS]
    assert known == [name for name in TRAJECTORY_COLUMNS if name in run.columns]
    for name in known:
        assert run.schema[name] == TRAJECTORY_COLUMNS[name].dtype, name
    assert dict(run.schema).items() >= TRUTH.items()
    assert (
        run
        .drop("answer", "true_key", "true_answer", "answer_key", strict=False)
        .null_count()
        .sum_horizontal()
        .item()
        == 0
    )


def test_same_seed_same_rows_and_another_seed_others() -> None:
    first = tts.simulate_trajectories(20, 8, seed=5, texts=True, keys=True)
    assert_frame_equal(first, tts.simulate_trajectories(20, 8, seed=5, texts=True, keys=True))
    other = tts.simulate_trajectories(20, 8, seed=6)
    assert first["true_accuracy"].unique().len() == 20
    assert not set(first["true_accuracy"]) & set(other["true_accuracy"])


@pytest.mark.parametrize("n_attempts", [3, 200])
def test_a_longer_run_keeps_the_rows_of_a_shorter_one(n_attempts: int) -> None:
    short = tts.simulate_trajectories(6, n_attempts, seed=5, texts=True)
    long = tts.simulate_trajectories(11, n_attempts + 37, seed=5, texts=True)
    kept = long.filter(pl.col("problem_id") < "sim-000006", pl.col("attempt") < n_attempts)
    assert_frame_equal(short, kept)


def test_blocks_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tts.simulate_trajectories(40, 25, seed=3, texts=True)
    monkeypatch.setattr(datasets, "_BLOCK_ATTEMPTS", 70)
    assert_frame_equal(whole, tts.simulate_trajectories(40, 25, seed=3, texts=True))


def test_a_parameter_changes_only_what_it_is_about() -> None:
    base = tts.simulate_trajectories(30, 20, seed=8)
    strong = tts.simulate_trajectories(30, 20, seed=8, score_strength=3.0)
    assert_frame_equal(base.drop("step_scores"), strong.drop("step_scores"))
    spelled = tts.simulate_trajectories(30, 20, seed=8, respelled_share=0.0)
    assert_frame_equal(base.drop("answer"), spelled.drop("answer"))


def test_each_problem_is_solved_as_often_as_its_accuracy_says() -> None:
    run = tts.simulate_trajectories(400, 1_000, seed=11, accuracy=(2.0, 2.0))
    problems = run.group_by("problem_id").agg(
        pl.col("true_accuracy").n_unique().alias("n_values"),
        pl.col("true_accuracy").first().alias("p"),
        pl.col("true_is_correct").mean().alias("observed"),
    )
    assert problems["n_values"].unique().to_list() == [1]
    z = problems.select(
        (pl.col("observed") - pl.col("p")) / (pl.col("p") * (1 - pl.col("p")) / 1_000).sqrt()
    )
    # Independent binomials: the sum of squares is chi-squared, neither too large nor too small.
    assert 0.001 < stats.chi2.cdf(z.to_series().pow(2).sum(), 400) < 0.999


@pytest.mark.parametrize("parameters", [(1.0, 1.0), (0.4, 0.7), (6.0, 2.0)])
def test_accuracies_are_beta_distributed(parameters: tuple[float, float]) -> None:
    run = tts.simulate_trajectories(4_000, 1, seed=2, accuracy=parameters, missing_share=0.1)
    accuracy = run["true_accuracy"].to_numpy() / 0.9
    assert stats.kstest(accuracy, stats.beta(*parameters).cdf).pvalue > 0.01


@pytest.mark.parametrize(("exponent", "n_wrong"), [(0.0, 5), (1.0, 20), (1.5, 50)])
def test_wrong_answers_follow_zipf(exponent: float, n_wrong: int) -> None:
    run = tts.simulate_trajectories(
        2, 100_000, seed=4, zipf_exponent=exponent, n_wrong_answers=n_wrong, accuracy=(1.0, 5.0)
    )
    expected = np.arange(1, n_wrong + 1) ** -exponent
    for problem in run.partition_by("problem_id"):
        wrong = problem.filter(~pl.col("true_is_correct"), pl.col("true_key").is_not_null())
        counts = np.sort(wrong["true_key"].value_counts()["count"].to_numpy())[::-1]
        assert len(counts) == n_wrong
        np.testing.assert_allclose(
            counts / counts.sum(), expected / expected.sum(), rtol=0.05, atol=0.001
        )


@pytest.mark.parametrize("share", [0.0, 0.03, 0.4, 1.0])
def test_missing_answers_have_their_share_and_are_wrong(share: float) -> None:
    run = tts.simulate_trajectories(100, 500, seed=9, missing_share=share)
    missing = run.filter(pl.col("answer").is_null())
    assert (
        abs(missing.height / run.height - share)
        < 4 * math.sqrt(share * (1 - share) / 50_000) + 1e-9
    )
    assert missing["true_key"].null_count() == missing.height
    assert run["true_key"].null_count() == missing.height
    assert not missing["true_is_correct"].any()


@pytest.mark.parametrize("n_attempts", [2, 300])
def test_spellings_say_what_the_key_says(n_attempts: int) -> None:
    run = tts.simulate_trajectories(
        600, n_attempts, seed=12, n_wrong_answers=100, zipf_exponent=0.5
    )
    spelled = run.select("problem_id", "answer", "true_key", "true_is_correct", "gold").unique()
    spelled = spelled.drop_nulls()
    for _, answer, key, is_correct, gold in spelled.iter_rows():
        assert read_value(answer) == Fraction(key), (answer, key)
        assert is_correct == (read_value(answer) == read_value(gold)), (answer, gold)
    values = pl.Series([str(Fraction(key)) for key in spelled["true_key"]])
    assert values.to_list() == spelled["true_key"].to_list()  # lowest terms: one key per value


def test_every_spelling_of_a_value_occurs_and_plain_equality_splits_it() -> None:
    run = tts.simulate_trajectories(2_000, 60, seed=13, respelled_share=0.6)
    spellings = (
        run
        .drop_nulls("answer")
        .group_by("problem_id", "true_key")
        .agg(pl.col("answer").n_unique().alias("n"), pl.len().alias("n_votes"))
    )
    often = spellings.filter(pl.col("n_votes") >= 40)
    assert often["n"].min() >= 2
    assert set(often["n"]) == {3, 4, 5}
    shapes = {re.sub(r"\d+", "7", answer) for answer in run["answer"].drop_nulls().unique()}
    assert shapes >= {
        "7",
        "-7",
        "7.7",
        "7,7",
        "7{,}7",
        r"7\,7",
        r"\frac{7}{7}",
        r"\dfrac{7}{7}",
        r"\tfrac{7}{7}",
        "7/7",
        r"-\frac{7}{7}",
        r"\$7",
        r"\$7.7",
        r"7^\circ",
        r"7^{\circ}",
        r"7\text{ cm}",
        "7 cm",
    }


def test_usual_spelling_alone_never_splits() -> None:
    run = tts.simulate_trajectories(300, 40, seed=13, respelled_share=0.0).drop_nulls("answer")
    pairs = run.select("problem_id", "answer", "true_key").unique()
    assert pairs.height == run.select("problem_id", "true_key").unique().height
    right = run.filter("true_is_correct")
    assert right["answer"].to_list() == right["gold"].to_list()


@pytest.mark.parametrize("strength", [-1.0, 0.0, 1.0, 2.5])
def test_scores_separate_as_their_strength_says(strength: float) -> None:
    run = tts.simulate_trajectories(500, 100, seed=14, score_strength=strength)
    expected = stats.norm.cdf(strength / math.sqrt(2))
    assert auroc(run, pl.col("step_scores").list.last()) == pytest.approx(expected, abs=0.01)


def test_scores_lie_in_the_unit_interval_and_drift_apart() -> None:
    run = tts.simulate_trajectories(500, 40, seed=15, n_steps=(6, 6), score_strength=3.0)
    steps = run.select(
        "true_is_correct", pl.col("step_scores").list.to_struct(fields=list("abcdef"))
    )
    steps = steps.unnest("step_scores")
    scores = run["step_scores"].explode()
    assert 0.0 < scores.min() < 0.5 < scores.max() < 1.0
    gap = [auroc(steps, pl.col(name)) for name in "abcdef"]
    assert gap == sorted(gap)
    means = steps.group_by("true_is_correct").mean()
    wrong = means.filter(~pl.col("true_is_correct")).select(list("abcdef")).row(0)
    assert list(wrong) == sorted(wrong, reverse=True)


def test_steps_are_ragged_and_tokens_follow_them() -> None:
    run = tts.simulate_trajectories(300, 100, seed=16, n_steps=(2, 6))
    lengths = run["step_scores"].list.len()
    counts = lengths.value_counts(sort=True).sort("step_scores")
    assert counts["step_scores"].to_list() == [2, 3, 4, 5, 6]
    assert stats.chisquare(counts["count"]).pvalue > 0.01
    per_step = run["n_tokens"] / lengths
    assert per_step.is_between(20, 59).all()
    assert (
        tts.simulate_trajectories(2, 2, seed=0, n_steps=(1, 1))["step_scores"].list.len().to_list()
        == [1] * 4
    )


def test_keys_are_what_scoring_would_add() -> None:
    run = tts.simulate_trajectories(100, 30, seed=17, keys=True)
    assert_frame_equal(
        run.select(tts.simulate_trajectories(2, 2, seed=0).columns),
        tts.simulate_trajectories(100, 30, seed=17),
    )
    equal = (run["answer_key"] == run["gold_key"]).fill_null(value=False)
    assert run["is_correct"].to_list() == equal.to_list()
    assert run["score"].to_list() == run["step_scores"].list.last().to_list()
    plain = run.drop("answer_key", "gold_key", "is_correct", "score")
    scored = tts.score_trajectories(plain).select(run.columns)
    assert_frame_equal(scored, run)


def test_texts_hold_the_answer_in_a_box_or_break_off() -> None:
    run = tts.simulate_trajectories(60, 16, seed=18, texts=True, missing_share=0.2)
    assert "answer" not in run.columns
    for completion, answer, scores in run.select(
        "completion", "true_answer", "step_scores"
    ).iter_rows():
        assert len(re.findall(r"^## Step (\d+): ", completion, flags=re.MULTILINE)) == len(scores)
        if answer is None:
            assert "boxed" not in completion
        else:
            assert completion.endswith(rf"\boxed{{{answer}}}$.")
    assert run.select("problem_id", "completion").is_unique().all()
    assert run["solution"].to_list() == [
        rf"The answer is $\boxed{{{gold}}}$." for gold in run["gold"]
    ]
    assert run.select("problem_id", "problem").unique().height == 60
    answers = tts.simulate_trajectories(60, 16, seed=18, missing_share=0.2)["answer"]
    assert run["true_answer"].to_list() == answers.to_list()


@pytest.mark.parametrize("characters", [1, 80, 1_000])
def test_texts_have_about_the_length_asked_for(characters: int) -> None:
    run = tts.simulate_trajectories(20, 10, seed=19, texts=True, step_characters=characters)
    per_step = (run["completion"].str.len_chars() / run["step_scores"].list.len()).mean()
    assert characters <= per_step < characters + 90


def test_members_of_a_beam_share_their_outcome() -> None:
    run = tts.simulate_trajectories(200, 12, seed=20, beam_width=4)
    assert not run["is_exchangeable"].any()
    beams = run.group_by("problem_id", pl.col("attempt") // 4).agg(
        pl.col("true_key").n_unique(), pl.col("step_scores").n_unique()
    )
    assert beams["true_key"].to_list() == [1] * 600
    assert beams["step_scores"].to_list() == [4] * 600
    problems = run.group_by("problem_id").agg(pl.col("true_key").n_unique())
    assert problems["true_key"].max() == 3
    assert tts.simulate_trajectories(1, 1, seed=0)["is_exchangeable"].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_problems": 0}, "n_problems == 0, must be at least 1."),
        ({"n_attempts": -3}, "n_attempts == -3, must be at least 1."),
        ({"seed": -1}, "seed == -1, must be from 0 to 2**64 - 1."),
        ({"accuracy": (0.0, 1.0)}, "accuracy == (0.0, 1.0), must be two positive, finite numbers."),
        ({"accuracy": (1.0, math.nan)}, "accuracy == (1.0, nan), must be two positive"),
        ({"n_wrong_answers": 101}, "n_wrong_answers == 101, must be from 1 to 100."),
        ({"zipf_exponent": -1.0}, "zipf_exponent == -1.0, must be from 0 to 100."),
        ({"missing_share": 1.1}, "missing_share == 1.1, must be from 0 to 1."),
        ({"respelled_share": math.nan}, "respelled_share == nan, must be from 0 to 1."),
        ({"n_steps": (0, 3)}, "n_steps == 0, must be at least 1."),
        ({"n_steps": (4, 3)}, "n_steps == (4, 3), must be (fewest, most)."),
        ({"score_strength": math.inf}, "score_strength == inf, must be from -100 to 100."),
        ({"beam_width": 0}, "beam_width == 0, must be at least 1."),
        ({"step_characters": 0}, "step_characters == 0, must be at least 1."),
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tts.TtsframeError, match="must be") as caught:
        tts.simulate_trajectories(**{"n_problems": 2, "n_attempts": 2, "seed": 0, **options})
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["n_problems", "n_attempts", "seed", "beam_width"])
def test_numbers_that_count_must_be_ints(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be an int, got float"):
        tts.simulate_trajectories(**{"n_problems": 2, "n_attempts": 2, "seed": 0, name: 2.0})


def test_the_shipped_sample_is_what_its_script_writes(tmp_path: Path) -> None:
    data = Path(__file__).resolve().parents[3] / "data"
    target = tmp_path / "sample.jsonl"
    subprocess.run([sys.executable, data / "make_sample.py", target], check=True)
    assert target.read_bytes() == (data / "sample.jsonl").read_bytes()


def test_the_shipped_models_are_what_their_script_writes() -> None:
    data = Path(__file__).resolve().parents[3] / "data"
    lines = runpy.run_path(str(data / "make_two_models.py"))["rows"]()
    assert (data / "two_models.csv").read_text(encoding="utf-8").splitlines() == lines


def test_the_shipped_sample_can_show_curves() -> None:
    run = tts.read_trajectories(Path(__file__).resolve().parents[3] / "data" / "sample.jsonl")
    assert tts.validate_trajectories(run).findings == ()
    assert run.height == 60 * 16
    boxed = run["completion"].str.contains(r"\\boxed\{")
    assert 0.02 < 1 - boxed.mean() < 0.08
