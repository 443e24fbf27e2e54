"""Units: dropped by default, part of the answer by policy."""

from __future__ import annotations

import itertools

import pytest

from ttsframe.answers import AnswerPolicy, key_of

KEPT = AnswerPolicy(units="kept")
SAME = [
    ["5 cents", r"5\text{ cents}", "5 cent"],
    ["5 dollars", r"\$5", "$5", "5 USD", r"\$ 5.00", r"5\text{ dollars}"],
    [r"50^\circ C", "50°C", "50 degrees Celsius", r"50^{\circ}\text{C}"],
    [r"50^\circ F", "50°F", "50 degrees Fahrenheit"],
    ["€5", "5€", "5 euros"],
    ["60 mph", "60 miles per hour", r"60 \text{ miles}/\text{hour}", "60 mi/h"],
    ["5 cm", "5 centimeters", r"5\,\mathrm{cm}", "5 cm.", "x = 5 cm"],
    [r"25\pi\text{ cm}^2", "25\\pi cm^2", r"25\pi\text{ square centimeters}"],
    ["5 million dollars", r"\$5 million", r"\$5{,}000{,}000"],
    ["1,000 cm", "1000 cm", "1 000 cm", r"10^3\text{ cm}"],
    ["3 cm, 4 cm", "4 cm and 3 cm"],
    ["5 m", "5 meters", r"5\text{ m}"],
    ["5", "5.0", "x = 5", "5th"],
    ["25%", "25"],
]
DIFFERENT = [
    ["5 cents", "5 dollars", "5", "€5", "£5", "¥5"],
    [r"50^\circ C", r"50^\circ F", "50", r"50^\circ"],
    ["5 m", "5 cm", "5 km", "5 m^2", "5 m/s"],
    ["5 square feet", "5 cubic feet", "5 feet"],
    ["3 cm, 4 m", "3 m, 4 cm", "3, 4"],
    [r"25\pi\text{ cm}^2", r"25\pi", r"25\pi\text{ cm}"],
    ["5 mW", "5 MW"],
    ["2 hours", "2 minutes"],
]


@pytest.mark.parametrize("answers", SAME, ids=lambda answers: answers[0])
def test_spellings_of_one_quantity_share_a_key(answers: list[str]) -> None:
    keys = {answer: key_of(answer, policy=KEPT) for answer in answers}
    assert keys == dict.fromkeys(answers, keys[answers[0]])


@pytest.mark.parametrize("answers", DIFFERENT, ids=lambda answers: answers[0])
def test_other_units_have_other_keys(answers: list[str]) -> None:
    merged = [
        pair
        for pair in itertools.combinations(answers, 2)
        if key_of(pair[0], policy=KEPT) == key_of(pair[1], policy=KEPT)
    ]
    assert merged == []


def test_units_are_dropped_by_default() -> None:
    quantities = ["5 cents", "5 dollars", r"\$5", "€5", "£5", r"5^\circ C", "5 cm", r"5\text{ m/s}"]
    assert {key_of(quantity) for quantity in quantities} == {"3:5"}


@pytest.mark.parametrize("unit", "mgshLNJWV")
def test_a_letter_is_a_unit_after_a_space_and_a_factor_in_math(unit: str) -> None:
    assert key_of(f"5 {unit}") == key_of(f"5.0 {unit}") == key_of(f"$5$ {unit}") == "3:5"
    product = key_of(f"{unit} \\cdot 5")
    delimited = [f"5{unit}", f"$5 {unit}$", rf"\(5 {unit}\)", rf"\[5 {unit}\]", f"$$5 {unit}$$"]
    assert {key_of(text) for text in delimited} == {product}
    assert product != "3:5"
    assert key_of(rf"\frac{{1}}{{2}} {unit}") == key_of(rf"\frac{{1}}{{2}}{unit}")


@pytest.mark.parametrize("letter", "xnkabcKA")
def test_other_letters_are_factors(letter: str) -> None:
    assert key_of(f"5 {letter}") == key_of(f"5{letter}") != "3:5"
