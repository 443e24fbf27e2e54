"""Checked by mypy, never run: columns in, one expression out, registries typed by their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_type

import polars as pl

import ttsframe as tts
from ttsframe._typing import IntoExprColumn, StepReduction
from ttsframe.votes.engine.registry import SelectorName


def columns_are_names_expressions_or_series(series: pl.Series) -> None:
    for column in ("step_scores", pl.col("step_scores"), series):
        assert_type(tts.step_last(column), pl.Expr)
    assert_type(tts.step_first("x"), pl.Expr)
    assert_type(tts.step_min("x"), pl.Expr)
    assert_type(tts.step_max("x"), pl.Expr)
    assert_type(tts.step_mean("x"), pl.Expr)
    assert_type(tts.step_sum("x"), pl.Expr)
    assert_type(tts.step_prod("x"), pl.Expr)
    assert_type(tts.step_geometric_mean("x"), pl.Expr)


def answers_are_expressions() -> None:
    assert_type(tts.extract_answer("completion", style="boxed"), pl.Expr)
    assert_type(tts.normalize_answer("answer"), pl.Expr)
    assert_type(tts.answer_key("answer", policy=tts.answers.AnswerPolicy()), pl.Expr)
    assert_type(tts.gold_key(pl.col("gold")), pl.Expr)
    assert_type(tts.answers.answer_kind("answer"), pl.Expr)
    assert_type(tts.is_equivalent("answer", "gold", rel_tol=1e-6), pl.Expr)
    assert_type(tts.answers.is_same_key("answer_key", pl.col("gold_key")), pl.Expr)


def estimators_are_expressions() -> None:
    assert_type(tts.pass_at_k("is_correct", k=8), pl.Expr)
    assert_type(tts.pass_at_k("is_correct", k=[1, 8]), pl.Expr)
    assert_type(tts.pass_hat_k("is_correct", k=8), pl.Expr)
    assert_type(tts.g_pass_at_k("is_correct", k=range(1, 9), tau=0.75), pl.Expr)
    assert_type(tts.mean_g_pass_at_k("is_correct", k=8), pl.Expr)
    assert_type(tts.best_of_k("is_correct", "score", k=(1, 8)), pl.Expr)
    assert_type(tts.wilson_interval("n_correct", "n"), pl.Expr)
    assert_type(tts.normal_interval("mean", "error", bounds=None), pl.Expr)
    assert_type(tts.standard_error("value", cluster="text"), pl.Expr)
    assert_type(tts.bootstrap_interval("value", method="percentile", seed=1), pl.Expr)
    assert_type(tts.student_t_interval("mean", "error", "n", confidence_level=0.9), pl.Expr)


def registries_are_typed_by_their_keys() -> None:
    assert_type(tts.STEP_REDUCTIONS, Mapping[StepReduction, Callable[[IntoExprColumn], pl.Expr]])
    assert_type(tts.STEP_REDUCTIONS["last"]("step_scores"), pl.Expr)
    assert_type(tts.SELECTORS["oracle"].reads_score, bool)
    names: list[SelectorName] = list(tts.SELECTORS)
    reductions: list[StepReduction] = list(tts.STEP_REDUCTIONS)
    assert_type(names, list[SelectorName])
    assert_type(reductions, list[StepReduction])


def wrong_use_is_an_error() -> None:
    tts.step_last(3)  # type: ignore[arg-type]
    tts.step_last(["a", "b"])  # type: ignore[arg-type]
    tts.step_last("x", "y")  # type: ignore[call-arg]
    tts.pass_at_k("is_correct")  # type: ignore[call-arg]
    tts.pass_at_k("is_correct", k="8")  # type: ignore[arg-type]
    tts.g_pass_at_k("is_correct", 8, 0.5)  # type: ignore[call-arg]
    tts.best_of_k("is_correct", k=8)  # type: ignore[call-arg]
    tts.answer_key("answer", policy="strict")  # type: ignore[arg-type]
    tts.STEP_REDUCTIONS["average"]  # type: ignore[index]
    tts.SELECTORS["majority"]  # type: ignore[index]
    tts.STEP_REDUCTIONS["last"] = tts.step_min  # type: ignore[index]
