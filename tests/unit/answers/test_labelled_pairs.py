"""Keys against labelled pairs of answers, and what only grading may accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts

CASES = Path(__file__).resolve().parents[2] / "data" / "answer_pairs.jsonl"
MOST_SPLITS = 0.02


@pytest.fixture(scope="module")
def compared() -> pl.DataFrame:
    cases: list[dict[str, Any]] = [
        json.loads(line) for line in CASES.read_text("utf-8").splitlines()
    ]
    frame = pl.DataFrame({
        name: [case[name] for case in cases] for name in ("a", "b", "same", "kind", "source")
    })
    return frame.with_columns(is_merged=tts.answer_key("a") == tts.answer_key("b"))


def listed(cases: pl.DataFrame) -> str:
    lines = [f"{kind}: {a!r} and {b!r}" for kind, a, b in cases.select("kind", "a", "b").rows()]
    return "\n".join([f"{len(lines)} of them", *lines])


def test_the_cases_are_many_and_of_both_labels(compared: pl.DataFrame) -> None:
    own = compared.filter(source="own")
    assert own.height >= 360
    assert 0.4 <= 1 - own["same"].mean() <= 0.55  # type: ignore[operator]
    pairs = {frozenset(pair) for pair in compared.select("a", "b").rows()}
    assert len(pairs) == compared.height


def test_no_two_different_answers_share_a_key(compared: pl.DataFrame) -> None:
    merged = compared.filter(pl.col("is_merged") & ~pl.col("same"))
    assert merged.is_empty(), listed(merged)


def test_few_spellings_of_one_answer_are_split(compared: pl.DataFrame) -> None:
    same = compared.filter("same")
    split = same.filter(~pl.col("is_merged"))
    assert split.height <= MOST_SPLITS * same.height, listed(split)


@pytest.mark.parametrize(
    ("answer", "gold", "is_right"),
    [
        ("25%", "0.25", True),
        ("25%", r"\frac{1}{4}", True),
        ("25%", "25", True),
        ("25%", r"25\%", True),
        ("12.5%", "0.125", True),
        ("150%", "1.5", True),
        (r"50\%", "1/2", True),
        ("25%", "2.5", False),
        ("25%", "0.5", False),
        ("25%", "0.0025", False),
        ("0.25", "25%", False),
        ("0.25", "25", False),
        ("25", "0.25", False),
        ("(B) 12", "B", True),
        ("(B) 12", "12", True),
        ("(B) 12", "(B)", True),
        (r"\textbf{(C)}\ 30", "C", True),
        (r"\textbf{(C)}\ 30", "30", True),
        ("(B) 12", "C", False),
        ("(B) 12", "13", False),
        ("(B) 12", "2", False),
        ("B", "12", False),
        ("12", "B", False),
    ],
)
def test_what_only_grading_accepts(answer: str, gold: str, is_right: bool) -> None:
    frame = pl.DataFrame({"answer": [answer], "gold": [gold]})
    assert frame.select(tts.is_equivalent("answer", "gold")).item() is is_right


@pytest.mark.parametrize(
    ("options", "one", "other", "is_same"),
    [
        ({"percent": "fraction"}, "25%", r"\frac{1}{4}", True),
        ({"percent": "fraction"}, "25%", "25", False),
        ({"units": "kept"}, "5 cents", "5 dollars", False),
        ({"units": "kept"}, r"50^\circ C", r"50^\circ F", False),
        ({"units": "kept"}, "€5", "£5", False),
        ({"units": "kept"}, "5 cm", r"5\text{ cm}", True),
        ({"units": "kept"}, "5 cm", "5 m", False),
        ({"units": "kept"}, "5", "5.0", True),
        ({"units": "dropped"}, "5 cents", "5 dollars", True),
        ({"units": "dropped"}, "€5", "£5", True),
    ],
)
def test_policies_decide(options: dict[str, str], one: str, other: str, is_same: bool) -> None:
    policy = tts.answers.AnswerPolicy(**options)  # type: ignore[arg-type]
    frame = pl.DataFrame({"a": [one], "b": [other]})
    keyed = frame.select(tts.answer_key("a", policy=policy) == tts.answer_key("b", policy=policy))
    assert keyed.item() is is_same
