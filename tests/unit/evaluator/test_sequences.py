"""Arithmetic sequences of higher order: terms, notations of an integer, verdicts."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import ttsframe as tts
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.evaluator import ArithmeticSequence, TaskInstance

TASK = ArithmeticSequence(seed=2)


def differences(terms: list[int], times: int) -> list[int]:
    for _ in range(times):
        terms = [after - before for before, after in pairwise(terms)]
    return terms


@pytest.mark.parametrize("order", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("n_ahead", [1, 3, 100])
def test_differences_of_the_order_are_constant_and_not_zero(order: int, n_ahead: int) -> None:
    task = ArithmeticSequence(seed=2, n_ahead=n_ahead)
    for instance in task.generate_batch((order, order), 5):
        terms = instance.metadata["terms"]
        assert isinstance(terms, list)
        assert len(terms) == order + 3
        constant = differences(terms, order)
        assert len(set(constant)) == 1
        assert constant[0] != 0
        assert ", ".join(map(str, terms)) + "." in instance.prompt


@pytest.mark.parametrize("order", [1, 2, 4, 9])
@pytest.mark.parametrize("n_ahead", [1, 7])
def test_the_answer_is_the_value_of_the_interpolating_polynomial(order: int, n_ahead: int) -> None:
    x = sympy.symbols("x")
    for instance in ArithmeticSequence(seed=6, n_ahead=n_ahead).generate_batch((order, order), 4):
        terms = instance.metadata["terms"]
        assert isinstance(terms, list)
        polynomial = sympy.interpolate(list(enumerate(terms)), x)
        assert sympy.degree(polynomial, x) == order
        assert str(polynomial.subs(x, len(terms) - 1 + n_ahead)) == instance.ground_truth


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Final answer: 42", "42"),
        ("final answer: -42.", "-42"),
        ("so ...\n**Final answer:** 42", "42"),
        ("Final answer: **1,234**", "1234"),
        ("Final answer: $1{,}234$", "1234"),
        ("Final answer: 1 234 567", "1234567"),
        (r"Final answer: $\boxed{42}$", "42"),
        (r"\boxed{7} was wrong. Final answer: 42", "42"),
        ("Final answer: −42", "-42"),
        ("Final answer: a_7 = 42", "42"),
        ("Final answer: 17 + 25 = 42", "42"),
        ("Final answer: 007", "7"),
        ("Final answer: -0", "0"),
        ("Final answer: +42", "42"),
        ("Final answer: 42.0", "42"),
        ("Final answer: 84/2", "42"),
        ("Final answer: 1e3", "1000"),
        ("Final answer: the next term is 42.", "42"),
        ("Final answer: 42\n\n", "42"),
        ("Final answer: 42 (since 17 + 25 = 42)", "42"),
        ("Final answer: 4\nNo. Final answer: 42", "42"),
        ("The next term is 1,234.", "1234"),
        (r"so $\boxed{42}$, as was to be shown", "42"),
        ("#### 42", "42"),
        ("The answer is $a_7 = 31$.", "31"),
        ("<think>Final answer: 5</think>The answer is 42", "42"),
        ("\ud800 the answer is 42", "42"),
        ("the answer is 42\x00", "42"),
        ("The answer is 1 234.", "1234"),
        ("The answer is -1 234 or so", "-1234"),
        ("The answer is 3.e5 or so", "300000"),
        ("The answer is ４32.", "432"),
        ("٤٢", "42"),
        ("Final answer: " + "9" * 40, "9" * 40),
    ],
)
def test_an_integer_is_read(response: str, answer: str) -> None:
    assert TASK.parse(response) == answer


@pytest.mark.parametrize(
    "response",
    [
        "", "I do not know.", "Final answer:", "Final answer: none", "Final answer: 17 + 25", "Final answer: 3.5", "Final answer: 1/3",
        "Final answer: 1.000.000", "Final answer: 3, 5", "The next terms are 3, 5, 7.", "Final answer: x + 1", "Final answer: 50%",
        "Final answer: " + "9" * 41, "Final answer: " + "9" * 5_000, "Final answer: 1e40", "Final answer: 1e999999", "Final answer: 4²", "Final answer: 4 + x", "Final answer: 4 or 5", "Final answer: (4, 5)",
        "The answer is 1.000.000, I think", "The answer is 4² or so", "The answer is 4.e50", "The answer is **4½**", r"The answer is 4\frac12 or so", "\x00", "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_single_integer_is_none(response: str) -> None:
    assert TASK.parse(response) is None
    result = TASK.verify_solution(TaskInstance("", 1, "42"), response)
    assert not result.is_correct


def test_messages_say_what_was_read() -> None:
    instance = TaskInstance("", 1, "42")
    expected = {
        "no idea": "no answer found.",
        "Final answer: 41": "the answer is 41, must be 42.",
        "Final answer: 40 + 2": "the answer '40 + 2' is not a single integer of at most 40 digits.",
        "Final answer: " + "7" * 100: f"the answer '{'7' * 60}...' is not a single integer of at most 40 digits.",
    }  # fmt: skip
    found = {text: TASK.verify_solution(instance, text).error_message for text in expected}
    assert found == expected
    assert TASK.verify_solution(instance, "Final answer: 42").error_message is None


@given(
    value=st.integers(-(10**39), 10**39),
    template=st.sampled_from([
        "The answer is {}.", "Answer: {}", "#### {}", r"\boxed{{{}}}", "So the next term is **{}**.", "thus, the result is ${}$.",
    ]),
)  # fmt: skip
def test_without_the_last_line_the_answer_is_that_of_the_column_expression(
    value: int, template: str
) -> None:
    response = template.format(value)
    frame = pl.DataFrame({"response": [response]})
    assert frame.select(tts.extract_answer("response")).item() == str(value)
    assert TASK.parse(response) == str(value)


@given(value=st.integers(-(10**9), 10**9), truth=st.integers(-(10**9), 10**9))
def test_only_the_right_number_is_right(value: int, truth: int) -> None:
    instance = TaskInstance("", 1, str(truth))
    result = TASK.verify_solution(instance, f"Final answer: {value:,}")
    assert result.is_correct == (value == truth)
    assert TASK.verify_solution(instance, f"Final answer: {truth:,}").is_correct


def test_the_distance_is_checked_and_said() -> None:
    with pytest.raises(ParameterError, match="n_ahead == 101"):
        ArithmeticSequence(n_ahead=101)
    with pytest.raises(ParameterError, match="n_ahead == 0"):
        ArithmeticSequence(n_ahead=0)
    with pytest.raises(ParameterTypeError, match="n_ahead must be an int, got float"):
        ArithmeticSequence(n_ahead=1.0)  # type: ignore[arg-type]
    prompt = ArithmeticSequence(n_ahead=5).generate_instance(2).prompt
    assert "the term 5 places after the last one" in prompt
    assert "the next term" in TASK.generate_instance(2).prompt
