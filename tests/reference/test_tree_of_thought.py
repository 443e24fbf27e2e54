"""pass@k against published figures: chain of thought on the Game of 24.

Yao et al., "Tree of Thoughts", arXiv:2305.10601, table 2: GPT-4 with chain-of-thought prompting
solves 4.0 % of 100 games; the best of 100 samples solves 49 %. The samples are those of the paper's
repository.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

FILE = "game24_gpt-4_0.7_naive_cot_sample_100_start900_end1000.json"


@pytest.fixture(scope="module")
def samples(shared_data: Path) -> pl.DataFrame:
    games = json.loads((shared_data / "tree_of_thought" / FILE).read_text(encoding="utf-8"))
    return pl.DataFrame(
        [
            (game["idx"], attempt, bool(info["r"]))
            for game in games
            for attempt, info in enumerate(game["infos"])
        ],
        schema={"problem_id": pl.Int64, "attempt": pl.UInt32, "is_correct": pl.Boolean},
        orient="row",
    )


def test_pass_at_k_gives_the_published_figures(samples: pl.DataFrame) -> None:
    per_game = (
        samples
        .group_by("problem_id")
        .agg(tts.pass_at_k("is_correct", k=[1, 10, 100]).alias("estimates"))
        .unnest("estimates")
    )

    assert samples.height == 10_000
    assert round(100 * per_game["pass@1"].mean(), 1) == 4.0
    assert per_game["pass@1"].mean() == pytest.approx(403 / 10_000, abs=1e-12)
    assert per_game["pass@100"].mean() == pytest.approx(0.49, abs=1e-12)
    assert per_game["pass@1"].mean() < per_game["pass@10"].mean() < per_game["pass@100"].mean()


def test_a_verifier_that_is_never_wrong_gives_the_published_best_of_100(
    samples: pl.DataFrame,
) -> None:
    # "CoT (best of 100)" is chosen by the gold answer, as the paper says: an oracle.
    perfect = pl.col("is_correct").cast(pl.Float64)
    per_game = (
        samples
        .group_by("problem_id")
        .agg(tts.best_of_k("is_correct", perfect, k=[1, 100]).alias("estimates"))
        .unnest("estimates")
    )

    assert round(100 * per_game["best_of@1"].mean(), 1) == 4.0
    assert per_game["best_of@100"].mean() == pytest.approx(0.49, abs=1e-12)


def test_other_estimators_lie_where_the_published_ones_put_them(samples: pl.DataFrame) -> None:
    ks = [1, 2, 10, 100]
    per_game = (
        samples
        .group_by("problem_id")
        .agg(
            tts.pass_at_k("is_correct", ks).alias("some"),
            tts.pass_hat_k("is_correct", ks).alias("every"),
            tts.g_pass_at_k("is_correct", ks, tau=0.5).alias("half"),
        )
        .unnest("some", "every", "half")
        .mean()
        .row(0, named=True)
    )

    assert per_game["pass^1"] == pytest.approx(0.0403, abs=1e-12)
    for k in ks:
        assert per_game[f"pass^{k}"] <= per_game[f"g_pass@{k}"] + 1e-12
        assert per_game[f"g_pass@{k}"] <= per_game[f"pass@{k}"] + 1e-12
    # Of two attempts one is half of them; no game was solved by all hundred.
    assert per_game["g_pass@2"] == pytest.approx(per_game["pass@2"], abs=1e-12)
    assert per_game["pass^100"] == 0.0


def test_aggregators_give_the_published_figures(samples: pl.DataFrame) -> None:
    values = samples.with_columns(value=pl.col("is_correct").cast(pl.Float64))

    mean = tts.IdentifierMean()(values, ["problem_id"])
    at_100 = tts.PassAtK(k=100)(values, ["problem_id"])
    best = tts.aggregators.Max()(values, ["problem_id"])

    assert mean["value"].mean() == pytest.approx(0.0403, abs=1e-12)
    assert at_100["value"].mean() == pytest.approx(0.49, abs=1e-12)
    assert best["value"].mean() == pytest.approx(0.49, abs=1e-12)


def test_oracle_at_all_samples_is_pass_at_n(samples: pl.DataFrame) -> None:
    # No answer is recorded: each sample is an answer of its own.
    attempts = samples.with_columns(answer_key=pl.col("attempt").cast(pl.String))

    curve = tts.scaling_curve(tts.oracle(attempts, budgets=[1, 100]))

    by_hand = samples.group_by("problem_id").agg(pl.col("is_correct").sort_by("attempt").first())
    assert curve["accuracy"].to_list() == pytest.approx([by_hand["is_correct"].mean(), 0.49])
