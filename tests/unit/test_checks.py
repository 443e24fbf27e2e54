from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest

from ttsframe import _checks
from ttsframe.errors import ParameterError, ParameterTypeError


def test_a_choice_is_one_of_the_choices() -> None:
    _checks.check_choice("a", "mode", ["a", "b"])
    with pytest.raises(ParameterError, match=r"^mode == 'c', must be one of 'a', 'b'\.$"):
        _checks.check_choice("c", "mode", ["a", "b"])


def test_choices_come_out_once_in_the_order_given() -> None:
    assert _checks.check_choices("b", "modes", "abc") == ("b",)
    assert _checks.check_choices(["c", "a", "c"], "modes", "abc") == ("c", "a")
    with pytest.raises(ParameterError, match="modes == 'x', must be one of"):
        _checks.check_choices(["a", "x"], "modes", "abc")
    with pytest.raises(ParameterError, match="modes is empty, must name at least one of"):
        _checks.check_choices([], "modes", "abc")


@pytest.mark.parametrize("value", [1, 7, 10**30])
def test_a_positive_int_passes(value: int) -> None:
    assert _checks.check_positive(value, "k") == value


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0, ParameterError, "k == 0, must be at least 1."),
        (-3, ParameterError, "k == -3, must be at least 1."),
        (True, ParameterTypeError, "k must be an int, got bool."),
        (2.0, ParameterTypeError, "k must be an int, got float."),
        ("2", ParameterTypeError, "k must be an int, got str."),
    ],
)
def test_any_other_number_is_refused(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        _checks.check_positive(value, "k")
    assert str(caught.value) == words


def test_an_index_is_an_integer_from_0() -> None:
    assert _checks.check_not_negative(0, "index") == 0
    with pytest.raises(ParameterError, match=r"^index == -1, must be at least 0\.$"):
        _checks.check_not_negative(-1, "index")


def test_numbers_come_out_once_in_ascending_order() -> None:
    assert _checks.check_numbers([0.5, 0, 0.5, math.inf], "limits") == [0.0, 0.5, math.inf]
    assert _checks.check_numbers(1, "limits") == [1.0]
    for wrong, words in (
        (math.nan, "is NaN"),
        ([], "is empty"),
        ([True], "got bool"),
        ("x", "got str"),
    ):
        with pytest.raises((ParameterError, ParameterTypeError), match=f"limits .*{words}"):
            _checks.check_numbers(wrong, "limits")  # type: ignore[arg-type]


def test_references_are_accuracies() -> None:
    assert _checks.check_references(None) == {}
    assert _checks.check_references({"greedy": 1}) == {"greedy": 1.0}
    with pytest.raises(
        ParameterError, match=r"references\['greedy'\] == 42.0, must be an accuracy"
    ):
        _checks.check_references({"greedy": 42})


@pytest.mark.parametrize(
    ("budgets", "checked"),
    [
        (None, None),
        (4, (4,)),
        ([4, 1, 4], (1, 4)),
        ((2,), (2,)),
        (range(1, 4), (1, 2, 3)),
        ({8, 2}, (2, 8)),
    ],
)
def test_budgets_are_sorted_and_once(budgets: Any, checked: tuple[int, ...] | None) -> None:
    assert _checks.check_budgets(budgets) == checked


@pytest.mark.parametrize("budgets", [[], [0], -1, [1, True]])
def test_impossible_budgets_are_refused(budgets: Any) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match="budgets"):
        _checks.check_budgets(budgets)


@pytest.mark.parametrize("budgets", [2.5, "4", [1.0], object()])
def test_budgets_of_another_type_are_refused(budgets: Any) -> None:
    with pytest.raises(
        ParameterTypeError, match=r"budgets must be an int(?: or a list of ints)?, got"
    ):
        _checks.check_budgets(budgets)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.1, math.nan, math.inf])
def test_a_fraction_lies_strictly_between(value: float) -> None:
    assert _checks.check_fraction(0.5, "level") == 0.5
    with pytest.raises(ParameterError, match=r"level == .*, must be between 0 and 1"):
        _checks.check_fraction(value, "level")


@pytest.mark.parametrize("value", [-1.1, 2.1, math.nan])
def test_a_range_is_closed(value: float) -> None:
    assert _checks.check_between(-1, "x", -1, 2) == -1.0
    assert _checks.check_between(2, "x", -1, 2) == 2.0
    with pytest.raises(ParameterError, match=r"x == .*, must be from -1 to 2\."):
        _checks.check_between(value, "x", -1, 2)


def test_a_seed_has_64_bits() -> None:
    assert _checks.check_seed(2**64 - 1) == 2**64 - 1
    for value in (-1, 2**64):
        with pytest.raises(ParameterError, match=r"seed == -?\d+, must be from 0 to 2\*\*64 - 1"):
            _checks.check_seed(value)
    for other in (True, 1.0, np.int64(3), None):
        with pytest.raises(ParameterTypeError, match=r"seed must be an int, got"):
            _checks.check_seed(other)  # type: ignore[arg-type]


def test_names_are_strings_once_each() -> None:
    assert _checks.check_names("ab", "by") == ("ab",)
    assert _checks.check_names(["a", "b"], "by") == ("a", "b")
    assert _checks.check_names((), "by") == ()
    with pytest.raises(ParameterError, match=r"by == \['a', 'a'\] names a column twice"):
        _checks.check_names(["a", "a"], "by")
    with pytest.raises(ParameterTypeError, match="by must hold column names, got int"):
        _checks.check_names(["a", 3], "by")  # type: ignore[list-item]


def test_names_that_are_taken_are_refused() -> None:
    assert _checks.check_names("a", "by", taken=["b"]) == ("a",)
    with pytest.raises(
        ParameterError, match=r"by names \['b'\], which are columns of the result\. Hint: "
    ):
        _checks.check_names(["a", "b"], "by", taken=("b", "c"))


def test_a_frame_is_of_polars() -> None:
    _checks.check_frame(pl.DataFrame(), "frame")
    _checks.check_frame(pl.LazyFrame(), "frame")
    for value in (pl.Series([1]), pl.col("a"), {}, None):
        with pytest.raises(
            ParameterTypeError, match=r"frame must be a polars DataFrame or LazyFrame, got"
        ):
            _checks.check_frame(value, "frame")


def test_a_mapping_is_of_strings() -> None:
    assert _checks.check_mapping(None, "rename") == {}
    assert _checks.check_mapping(MappingProxyType({"a": "b"}), "rename") == {"a": "b"}
    for value in ([("a", "b")], {"a": 1}, {1: "a"}, "ab"):
        with pytest.raises(ParameterTypeError, match="rename must be a mapping"):
            _checks.check_mapping(value, "rename")
