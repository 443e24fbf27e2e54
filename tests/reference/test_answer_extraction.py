"""Extraction against the labelled texts of public graders (their development half)."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

REASONS = {
    "A Peter\nCelina bum": "an option without punctuation, where A may be an article",
    "20 percent": "the box holds 20; that the prose goes on with percent is no part of it",
    "28 pct": "the same",
    "quadx": "the label's own text has lost the blank after \\quad",
    "product": "a product of matrices, which is not multiplied out",
    "delimiters": "the label wants $...$ over several lines not to be mathematics",
    "backslashes": "the label's own text has every backslash doubled",
}


def reason(gold: str, pred: str) -> str | None:
    """Classify a miss by what the texts hold."""
    found = {
        "A Peter\nCelina bum": gold.startswith("A Peter"),
        "20 percent": gold.endswith("\\boxed{20}$ percent."),
        "28 pct": pred.endswith("$ pct"),
        "quadx": "\\quadx" in gold,
        "product": "pmatrix} \\begin{pmatrix" in pred,
        "delimiters": pred in {"Answer $ \n 9 \n $", "Answer \\( \n 9 \n \\)"},
        "backslashes": gold.startswith("\\\\left"),
    }
    return next((name for name, holds in found.items() if holds), None)


@pytest.fixture(scope="module")
def graded(shared_data: Path) -> pl.DataFrame:
    lines = (shared_data / "answers" / "dev.jsonl").read_text().splitlines()
    cases = [case for case in map(json.loads, lines) if case["kind"] == "extract"]
    disputed = ("wrong_label", "conflict", "artifact", "debatable")
    frame = pl.DataFrame({
        "gold": [case["gold"] for case in cases],
        "pred": [case["pred"] for case in cases],
        "expected": [bool(case["expected"]) for case in cases],
        "is_clean": [not any(f.startswith(disputed) for f in case["flags"]) for case in cases],
    })
    answer = tts.extract_answer("pred")
    # some golds are texts out of which the answer must be taken, too
    same = tts.is_equivalent(answer, "gold") | tts.is_equivalent(
        answer, pl.coalesce(tts.extract_answer("gold"), "gold")
    )
    return frame.with_columns(is_hit=same.alias("is_hit") == pl.col("expected"))


def test_at_least_95_percent_of_the_undisputed_texts(graded: pl.DataFrame) -> None:
    clean = graded.filter("is_clean")
    assert clean.height > 100
    assert clean["is_hit"].mean() >= 0.95  # type: ignore[operator]


def test_each_miss_has_its_reason(graded: pl.DataFrame) -> None:
    misses = graded.filter(~pl.col("is_hit")).select("gold", "pred").rows()
    unexplained = [miss for miss in misses if reason(*miss) not in REASONS]
    assert unexplained == []
