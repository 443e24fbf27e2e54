"""Expressions on a column of the wrong dtype say which column and which dtype."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError

FRAME = pl.DataFrame({
    "problem_id": ["a", "a"],
    "grade": ["true", "false"],
    "right": [True, False],
    "points": ["0.5", "0.7"],
    "steps": ["[0.5]", "[0.7]"],
    "texts": [["0.5"], ["0.7"]],
})

IS_GRADE = r"is_correct is the column 'grade' of dtype String, .*== 'true'"


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda: tts.pass_at_k("grade", k=1), IS_GRADE),
        (lambda: tts.pass_at_k("grade", k=[1, 2]), IS_GRADE),
        (lambda: tts.pass_hat_k("grade", k=2), IS_GRADE),
        (lambda: tts.g_pass_at_k("grade", k=2, tau=0.5), IS_GRADE),
        (lambda: tts.best_of_k("grade", "points", k=1), IS_GRADE),
        (
            lambda: tts.best_of_k("right", "points", k=1),
            r"score is the column 'points' of dtype String",
        ),
        *[
            (
                lambda name=name: tts.STEP_REDUCTIONS[name]("steps"),
                r"'steps' of dtype String, .*json_decode",
            )
            for name in tts.STEP_REDUCTIONS
        ],
        (
            lambda: tts.step_last("texts"),
            r"'texts' of dtype List\(String\), must be a list of numbers",
        ),
        (lambda: tts.step_min("right"), r"'right' of dtype Boolean, .*a single score"),
    ],
)
def test_the_error_names_column_and_dtype(
    expression: Callable[[], pl.Expr], message: str, is_lazy: bool
) -> None:
    frame = FRAME.lazy() if is_lazy else FRAME
    with pytest.raises(ColumnsError, match=message):
        frame.group_by("problem_id").agg(expression()).lazy().collect()


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.Int8, pl.Float32, pl.Decimal(3, 1), pl.Null])
def test_grades_of_other_kinds_count(dtype: pl.DataType) -> None:
    grades = (
        pl.Series("grade", [1, 0, 1]).cast(dtype)
        if dtype != pl.Null
        else pl.Series("grade", [None] * 3)
    )
    made = grades.to_frame().select(tts.pass_at_k("grade", k=1)).item()
    assert made is None if dtype == pl.Null else made == pytest.approx(2 / 3)
