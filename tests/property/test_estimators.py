"""What must hold between the estimators over k draws, whatever the attempts."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttsframe as tts

GRADES = st.sampled_from([True, False, None])
SCORES = st.one_of(
    st.none(), st.sampled_from([0.0, -0.0, 0.5, math.nan, math.inf, -math.inf]), st.floats(-9, 9)
)
ATTEMPTS = st.lists(st.tuples(GRADES, SCORES), min_size=1, max_size=40)
CLOSE = {"rel": 0.0, "abs": 1e-12}


def frame_of(attempts: list[tuple[bool | None, float | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        attempts, schema={"is_correct": pl.Boolean, "score": pl.Float64}, orient="row"
    )


def values(frame: pl.DataFrame, estimate: pl.Expr) -> list[float]:
    """Return the estimates for every k up to n, which are the ones that are not null."""
    found = frame.select(estimate).item()
    return [value for value in found.values() if value is not None]


@given(attempts=ATTEMPTS)
def test_any_rises_and_all_falls_with_k_from_the_mean(attempts: list) -> None:
    frame = frame_of(attempts)
    n = frame["is_correct"].count()
    some = values(frame, tts.pass_at_k("is_correct", range(1, 42)))
    every = values(frame, tts.pass_hat_k("is_correct", range(1, 42)))
    assert len(some) == len(every) == n
    assert some == sorted(some)
    assert every == sorted(every, reverse=True)
    if n:
        mean = frame["is_correct"].mean()
        assert some[0] == pytest.approx(mean, **CLOSE)
        assert every[0] == pytest.approx(mean, **CLOSE)
        assert every[-1] == float(frame["is_correct"].all())


@given(attempts=ATTEMPTS)
def test_all_correct_is_none_wrong(attempts: list) -> None:
    frame = frame_of(attempts)
    wrong = frame.with_columns(~pl.col("is_correct"))
    every = values(frame, tts.pass_hat_k("is_correct", range(1, 42)))
    some_wrong = values(wrong, tts.pass_at_k("is_correct", range(1, 42)))
    assert every == pytest.approx([1.0 - value for value in some_wrong], **CLOSE)


@given(attempts=ATTEMPTS, tau=st.floats(0, 1))
def test_a_share_lies_between_any_and_all(attempts: list, tau: float) -> None:
    frame = frame_of(attempts)
    ks = range(1, 42)
    some = values(frame, tts.pass_at_k("is_correct", ks))
    every = values(frame, tts.pass_hat_k("is_correct", ks))
    share = values(frame, tts.g_pass_at_k("is_correct", ks, tau=tau))
    for low, middle, high in zip(every, share, some, strict=True):
        assert low - 1e-12 <= middle <= high + 1e-12
    assert values(frame, tts.g_pass_at_k("is_correct", ks, tau=0.0)) == pytest.approx(some, **CLOSE)
    assert values(frame, tts.g_pass_at_k("is_correct", ks, tau=1e-9)) == pytest.approx(
        some, **CLOSE
    )
    assert values(frame, tts.g_pass_at_k("is_correct", ks, tau=1.0)) == pytest.approx(
        every, **CLOSE
    )


@given(attempts=ATTEMPTS, first=st.floats(0, 1), second=st.floats(0, 1))
def test_a_larger_share_is_rarer(attempts: list, first: float, second: float) -> None:
    frame = frame_of(attempts)
    low, high = sorted((first, second))
    easy = values(frame, tts.g_pass_at_k("is_correct", range(1, 42), tau=low))
    hard = values(frame, tts.g_pass_at_k("is_correct", range(1, 42), tau=high))
    assert all(a >= b - 1e-12 for a, b in zip(easy, hard, strict=True))


@given(attempts=ATTEMPTS)
def test_the_mean_form_is_the_mean_of_shares(attempts: list) -> None:
    frame = frame_of(attempts)
    for k in range(2, frame["is_correct"].count() + 1, 3):
        shares = [i / k for i in range(math.ceil(k / 2) + 1, k + 1)]
        each = [
            frame.select(tts.g_pass_at_k("is_correct", k, tau=share)).item() for share in shares
        ]
        mean = frame.select(tts.mean_g_pass_at_k("is_correct", k)).item()
        assert mean == pytest.approx(2 / k * math.fsum(each), **CLOSE)
        assert 0.0 <= mean <= 2 * (k // 2) / k + 1e-12


@given(attempts=ATTEMPTS)
def test_a_perfect_scorer_gives_pass_at_k_and_the_worst_pass_hat_k(attempts: list) -> None:
    frame = frame_of(attempts)
    ks = range(1, 42)
    perfect = values(frame, tts.best_of_k("is_correct", pl.col("is_correct").cast(pl.Int8), ks))
    assert perfect == pytest.approx(values(frame, tts.pass_at_k("is_correct", ks)), **CLOSE)
    worst = values(frame, tts.best_of_k("is_correct", -pl.col("is_correct").cast(pl.Int8), ks))
    assert worst == pytest.approx(values(frame, tts.pass_hat_k("is_correct", ks)), **CLOSE)


@given(attempts=ATTEMPTS)
def test_best_of_k_lies_between_all_correct_and_any_correct(attempts: list) -> None:
    frame = frame_of(attempts).with_columns(pl.col("score").fill_nan(0.0).fill_null(0.0))
    ks = range(1, 42)
    best = values(frame, tts.best_of_k("is_correct", "score", ks))
    some = values(frame, tts.pass_at_k("is_correct", ks))
    every = values(frame, tts.pass_hat_k("is_correct", ks))
    for low, middle, high in zip(every, best, some, strict=True):
        assert low - 1e-12 <= middle <= high + 1e-12
    if best:
        assert best[0] == pytest.approx(frame["is_correct"].mean(), **CLOSE)
        graded = frame.filter(pl.col("is_correct").is_not_null())
        top = graded.filter(pl.col("score") == pl.col("score").max())
        assert best[-1] == pytest.approx(top["is_correct"].mean(), **CLOSE)


@given(attempts=ATTEMPTS)
def test_a_constant_score_picks_at_random(attempts: list) -> None:
    frame = frame_of(attempts)
    found = values(frame, tts.best_of_k("is_correct", pl.lit(0.5), range(1, 42)))
    assert found == pytest.approx([frame["is_correct"].mean()] * len(found), **CLOSE)


@given(attempts=ATTEMPTS, seed=st.integers(0, 9))
def test_only_the_order_of_scores_counts(attempts: list, seed: int) -> None:
    frame = frame_of(attempts)
    estimate = tts.best_of_k("is_correct", "score", range(1, 42))
    other_scale = frame.with_columns(pl.col("score").rank("dense").cast(pl.Float64) * 3.0 - 7.0)
    other_scale = other_scale.with_columns(
        score=pl.when(frame["score"].is_not_nan()).then(pl.col("score"))
    )
    shuffled = other_scale.sample(fraction=1.0, shuffle=True, seed=seed)
    assert values(shuffled, estimate) == pytest.approx(values(frame, estimate), **CLOSE)
