"""Answers that Math-Verify took for each other, by the number of its issue."""

from __future__ import annotations

import polars as pl
import pytest

import ttsframe as tts


def extract(text: str) -> str | None:
    found: str | None = pl.select(tts.extract_answer(pl.lit(text))).item()
    return found


def keys(*answers: str) -> list[str]:
    return pl.DataFrame({"a": answers}).select(tts.answer_key("a"))["a"].to_list()


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
        (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}"),
        ("n=2, 3, 4", "n=1, 2, 3"),
        ("D = (0, 1)", "D = (0, 1.5)"),
        (r"F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}", r"F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2}"),
        (r"19, 46, \text{ and } 82", "21, 36, and 82"),
        (r"\frac{2^{2005}+1}{3 \cdot 2^{2006}}", r"\frac{1}{3 \cdot 2^{2006}}"),
        (r"1 - \frac{1}{\mathrm{e}}", r"1 + \frac{1}{\mathrm{e}}"),
        (r"\pm 2021", "2021"),
        ("12:00", "1:00"),
        (r"1, 2, \ldots, n", r"1, 3, 5, \ldots, 2n-1"),
        (r"1:2:3:\ldots", r"1:4:9:\ldots"),
        # 41
        ("4", r"4\sqrt(2)"),
        ("4", r"4\sqrt{2}"),
        # 47: a part of a list is not the list
        ("1331 and 1728", "1728"),
        ("1331 and 1728", "1331"),
        ("1331, 1728", "1331, 1728, 2197"),
    ],
)
def test_different_answers_stay_apart(gold: str, answer: str) -> None:
    frame = pl.DataFrame({"answer": [answer, gold], "gold": [gold, answer]})
    assert frame.select(tts.is_equivalent("answer", "gold"))["answer"].to_list() == [False, False]
    assert len(set(keys(gold, answer))) == 2


def test_a_whole_list_is_right_in_any_order() -> None:
    frame = pl.DataFrame({"answer": ["1728, 1331"], "gold": ["1331 and 1728"]})
    assert frame.select(tts.is_equivalent("answer", "gold")).item() is True


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "So the sum could be \\boxed{840}., but let me explain.\n\n**Final Answer**\n\\boxed{840}",
            "840",
        ),
        (
            (
                "It should be \\boxed{004}.\n\nChecking: the sum is 2,552,004, which ends in 004. "
                "So, \\boxed{004} is correct.\n\n**Final Answer**\n\\boxed{004}"
            ),
            "4",
        ),
    ],
)
def test_44_boxes_with_prose_between_are_not_one_number(text: str, answer: str) -> None:
    found = extract(text)
    assert found is not None
    assert len(set(keys(found, answer))) == 1
    assert len(set(keys(found, "840,840", "4.004"))) == 3


def test_76_bold_marks_are_no_part_of_the_answer() -> None:
    text = (
        "Now sum them: 437 + 2*234 = 437 + 468 = 905\n\nThus, the number of residents who own all "
        "four is **73**.\n\n---\n\n✅ Final Answer: **73**"
    )
    assert extract(text) == "73"
    assert len(set(keys("**73**", "73"))) == 1
    assert len(set(keys("**73**", "234"))) == 2
