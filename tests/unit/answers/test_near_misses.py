"""An answer in which one digit is changed has another key."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

PAIRS = Path(__file__).resolve().parents[2] / "data" / "answer_pairs.jsonl"
HIDES_DIGITS = re.compile(
    r"=|≈|\\approx|\\l?floor|\\lceil|\\min|\\max|\\gcd|lcm|binom|choose|C_|!!|\|\d-\d|\^\{?0|i\^"
    r"|(?:mathrm|mbox|text)\{[^}]*\}[\s)}]*\^|\(?\\?[A-Za-z{}]*[(\s]?[A-E]\)|\{-1\}|\(-1\)\^|\\pmod|\\equiv|\(-\\infty,3\)\\cup\(2|\\\{2,2,3"
)
"""What holds digits that do not change the value: the steps of a chain, rounding, distances, binomial coefficients, powers of units, choices, the ends of
intervals that overlap and are the whole line, and elements that a set has twice."""
N_CHANGES = 3


def changed(answers: list[str], rng: random.Random) -> list[tuple[str, str]]:
    """Change digits of each answer, one at a time."""
    pairs = []
    for answer in answers:
        places = [place.start() for place in re.finditer("[0-9]", answer)]
        for place in rng.sample(places, min(N_CHANGES, len(places))):
            digit = rng.choice([digit for digit in "123456789" if digit != answer[place]])
            pairs.append((answer, answer[:place] + digit + answer[place + 1 :]))
    return pairs


def merged(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    frame = pl.DataFrame(pairs, schema={"a": pl.String, "b": pl.String}, orient="row")
    return frame.filter(tts.answer_key("a") == tts.answer_key("b")).rows()


def visible(answers: list[str]) -> list[str]:
    return [answer for answer in answers if not HIDES_DIGITS.search(answer)]


def labelled_answers() -> list[str]:
    cases = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    return visible(sorted({case[side] for case in cases for side in ("a", "b")}))


def real_answers(shared_data: Path) -> list[str]:
    lines = (shared_data / "answers" / "real_strings.jsonl").read_text("utf-8").splitlines()
    return visible([json.loads(line) for line in lines])


def test_a_changed_digit_of_a_labelled_answer_changes_its_key() -> None:
    pairs = changed(labelled_answers(), random.Random(3))
    assert len(pairs) > 1_000
    assert merged(pairs) == []


def test_a_changed_digit_of_a_real_answer_changes_its_key(shared_data: Path) -> None:
    rng = random.Random(5)
    pairs = changed(rng.sample(real_answers(shared_data), 500), rng)
    assert len(pairs) > 700
    assert merged(pairs) == []


@pytest.mark.slow
def test_no_changed_digit_of_a_real_answer_goes_unseen(shared_data: Path) -> None:
    pairs = changed(real_answers(shared_data), random.Random(17))
    assert merged(pairs) == []
