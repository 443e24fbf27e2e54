"""The namespace offers each function on one column, with the same parameters and result."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

import ttsframe as tts
from ttsframe._namespace import TtsExpressions

METHODS = [name for name, _ in inspect.getmembers(TtsExpressions, inspect.isfunction)]
NAMES = [name for name in METHODS if not name.startswith("_")]
PUBLIC = {
    name: getattr(package, name)
    for package in (tts.verifier, tts.answers, tts)
    for name in package.__all__
}
FRAME = pl.DataFrame({
    "step_scores": [[0.5, 0.25], [1.0], None],
    "completion": [r"\boxed{1/2}", "#### 3", None],
    "answer": ["0.50", "x", None],
    "gold": ["1/2", "y", "2"],
    "answer_key": ["3:3", "3:4", None],
    "gold_key": ["3:3", "3:3", "3:3"],
    "is_correct": [True, False, False],
    "score": [0.5, 0.25, 0.5],
})
COLUMNS = {
    "first_error": "step_scores",
    "standard_error": "is_correct",
    "bootstrap_interval": "is_correct",
    "extract_answer": "completion",
    "is_same_key": "answer_key",
    "pass_at_k": "is_correct",
    "pass_hat_k": "is_correct",
    "g_pass_at_k": "is_correct",
    "mean_g_pass_at_k": "is_correct",
    "best_of_k": "is_correct",
}
ARGUMENTS = {
    "is_equivalent": ["gold"],
    "is_same_key": ["gold_key"],
    "pass_at_k": [2],
    "pass_hat_k": [2],
    "g_pass_at_k": [2],
    "mean_g_pass_at_k": [2],
    "best_of_k": ["score", 2],
}


def test_every_step_reduction_is_a_method() -> None:
    assert {f"step_{name}" for name in tts.STEP_REDUCTIONS} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_method_equals_function(name: str) -> None:
    column = COLUMNS.get(name, "step_scores" if name.startswith("step_") else "answer")
    arguments = ARGUMENTS.get(name, [])
    method = getattr(pl.col(column).tts, name)(*arguments)
    assert FRAME.select(method).equals(FRAME.select(PUBLIC[name](column, *arguments)))


@pytest.mark.parametrize("name", NAMES)
def test_method_takes_the_parameters_of_the_function(name: str) -> None:
    method = list(inspect.signature(getattr(TtsExpressions, name)).parameters.values())[1:]
    function = list(inspect.signature(PUBLIC[name]).parameters.values())[1:]
    assert method == function
