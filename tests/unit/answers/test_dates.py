"""Dates and times of day."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.answers import grade_one, key_of

SAME = [
    ["2019-05-18", "2019-5-18", "2019/05/18", "05/18/2019", "5/18/2019", "18/05/2019", "18.05.2019", "18-5-2019",
     "May 18, 2019", "may 18 2019", "18 May 2019", "18th of May, 2019", "the 18th of May 2019", "Saturday, May 18, 2019",
     "May 18th, 2019", r"\text{May 18, 2019}", r"18 \text{ May } 2019", "2019-05-18 00:00:00", "18-May-2019"],
    ["06/07/2019", "6/7/2019", "06/7/2019"],
    ["06/06/2019", "2019-06-06", "6 June 2019"],
    ["June 7", "7 June", "7th of June", "Jun. 7", r"\text{June 7}"],
    ["5/6/19", "05/06/19"],
    ["2019-05-18, 2019-05-19", "18 May 2019 and 19 May 2019"],
    ["5:30 pm", "17:30", "5:30 p.m.", "5:30 PM", r"5:30\text{ p.m.}", "05:30pm"],
    ["5 pm", "17:00", "5:00 p.m."],
    ["12:30 am", "0:30", "00:30"],
]  # fmt: skip
DIFFERENT = [
    ["06/07/2019", "07/06/2019", "7 June 2019", "6 July 2019", "06-07-2019"],
    ["2019-05-18", "2019-05-19", "2018-05-18", "1996", "May 18"],
    ["05/18/2019", "5/36342"],
    ["10-12-2019", "-2021"],
    ["31-12-2019", "13-13-2019", "-2019"],
    ["5/18/19", "5/18/2019", "5/342"],
    ["1/2/3", "1/6", "2/3"],
    ["a/b/c", r"\frac{a}{bc}"],
    ["Sunday, May 18, 2019", "Saturday, May 18, 2019"],
    ["31/02/2019", "2019-02-31", "2019-03-03", "1986"],
    ["2019-05-18 03:04:05", "2019-05-18"],
    ["5:30", "5:30 am", "5:30 pm", "11/2"],
    ["12:30 pm", "12:30 am"],
    ["6 June", "6", "June"],
    ["May 18, 2019 and May 19, 2020", "May 18, 2020 and May 19, 2019"],
]


@pytest.mark.parametrize("answers", SAME, ids=lambda answers: answers[0])
def test_spellings_of_one_date_share_a_key(answers: list[str]) -> None:
    assert {answer: key_of(answer) for answer in answers} == dict.fromkeys(
        answers, key_of(answers[0])
    )


@pytest.mark.parametrize("answers", DIFFERENT, ids=lambda answers: answers[0])
def test_other_dates_have_other_keys(answers: list[str]) -> None:
    assert len({key_of(answer) for answer in answers}) == len(answers)


def test_a_chain_of_slashes_is_a_fraction_in_latex_only() -> None:
    assert key_of(r"\frac{1}{2}/3") == key_of("1/6")
    assert key_of(r"\frac{a/b}{c}") == key_of(r"\frac{a}{bc}")


def test_every_day_has_one_key_in_certain_spellings() -> None:
    day = dt.date(2023, 12, 25)
    keys = set()
    for _ in range(500):
        spellings = [f"{day:%Y-%m-%d}", f"{day:%B} {day.day}, {day.year}", f"{day:%A, %d %b %Y}"]
        if day.day > 12 or day.day == day.month:
            spellings += [f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}"]
        found = {key_of(spelling) for spelling in spellings}
        assert len(found) == 1, spellings
        keys |= found
        day += dt.timedelta(days=1)
    assert len(keys) == 500


@pytest.mark.parametrize(
    "dtype", [pl.Date, pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ns", "UTC")]
)
def test_a_column_of_dates_is_a_reference_answer(dtype: pl.DataType) -> None:
    frame = pl.DataFrame({
        "problem_id": ["p", "p", "p"],
        "attempt": [0, 1, 2],
        "answer": ["05/18/2019", "18 May 2019", "5/19/2019"],
        "gold": pl.Series([dt.date(2019, 5, 18)] * 3).cast(dtype),
    })
    assert frame.select(tts.gold_key("gold"))["gold"].to_list() == ["3:D2019-05-18"] * 3
    assert frame.select(tts.is_equivalent("answer", "gold"))["answer"].to_list() == [
        True,
        True,
        False,
    ]
    scored = tts.score_trajectories(frame)
    assert scored["is_correct"].to_list() == [True, True, False]
    assert tts.validate_trajectories(frame).findings == ()
    assert (
        tts.build_report(frame).curve.filter(selector="oracle", budget=1)["accuracy"].item() == 1.0
    )


def test_a_time_of_another_hour_is_no_date() -> None:
    assert grade_one("2019-05-18", "2019-05-18 03:00:00") is False
