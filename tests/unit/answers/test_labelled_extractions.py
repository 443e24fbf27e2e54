"""Extraction against labelled texts in the styles that models write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts

CASES = Path(__file__).resolve().parents[2] / "data" / "answer_extractions.jsonl"
LEAST_RIGHT = 0.97
MOST_INVENTED = 0.1


def bare(answer: str) -> str:
    """Drop delimiters and blanks, in which a part may differ from the whole."""
    for mark in ("$", "\\(", "\\)", "\\[", "\\]", " "):
        answer = answer.replace(mark, "")
    return answer


def is_part(found: str | None, whole: str | None) -> bool:
    """Tell whether what was found is a proper part of the labelled answer."""
    if found is None or whole is None:
        return False
    return bare(found) != bare(whole) and bare(found) in bare(whole)


@pytest.fixture(scope="module")
def extracted() -> pl.DataFrame:
    cases: list[dict[str, Any]] = [
        json.loads(line) for line in CASES.read_text("utf-8").splitlines()
    ]
    names = ("text", "answer", "accept", "style", "source")
    schema = {
        "text": pl.String,
        "answer": pl.String,
        "accept": pl.List(pl.String),
        "style": pl.String,
        "source": pl.String,
    }
    frame = pl.DataFrame({name: [case[name] for case in cases] for name in names}, schema=schema)
    frame = frame.with_columns(found=tts.extract_answer("text"))
    is_accepted = (
        pl.col("found").eq_missing(pl.col("answer"))
        | pl.col("found").is_in(pl.col("accept"))
        | (tts.answer_key("found") == tts.answer_key("answer"))
    )
    frame = frame.with_columns(is_right=is_accepted.fill_null(value=False))
    cut = [
        not is_right and is_part(found, answer)
        for is_right, found, answer in frame.select("is_right", "found", "answer").rows()
    ]
    return frame.with_columns(is_cut=pl.Series(cut, dtype=pl.Boolean))


def listed(cases: pl.DataFrame) -> str:
    lines = [
        f"{style}: {found!r} instead of {answer!r} from {text[-80:]!r}"
        for style, found, answer, text in cases.select("style", "found", "answer", "text").rows()
    ]
    return "\n".join([f"{len(lines)} of them", *lines])


def test_the_cases_are_many_and_of_many_styles(extracted: pl.DataFrame) -> None:
    assert extracted.filter(source="own").height >= 360
    assert extracted["style"].n_unique() >= 20
    assert extracted["answer"].null_count() >= 40


def test_no_part_of_an_answer_is_returned(extracted: pl.DataFrame) -> None:
    cut = extracted.filter("is_cut")
    assert cut.is_empty(), listed(cut)


def test_nearly_all_answers_are_found(extracted: pl.DataFrame) -> None:
    wrong = extracted.filter(~pl.col("is_right"))
    assert wrong.height <= (1 - LEAST_RIGHT) * extracted.height, listed(wrong)


def test_texts_without_an_answer_rarely_give_one(extracted: pl.DataFrame) -> None:
    without = extracted.filter(pl.col("answer").is_null())
    invented = without.filter(~pl.col("is_right"))
    assert invented.height <= MOST_INVENTED * without.height, listed(invented)
