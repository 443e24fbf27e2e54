"""The canonical form of search-and-learn, against what search-and-learn computed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.answers.lookup.published import clean_as_published, published_forms


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> list[dict[str, list[str]]]:
    path = shared_data / "search_and_learn" / "synthetic_100x64_expected.json"
    problems: list[dict[str, list[str]]] = json.loads(path.read_text())["problems"]
    return problems


def test_forms_are_those_that_search_and_learn_recorded(
    recorded: list[dict[str, list[str]]], shared_data: Path
) -> None:
    frame = pl.read_parquet(shared_data / "search_and_learn" / "synthetic_100x64.parquet")
    answers = (
        frame
        .select(pl.col("completions").explode())
        .select(tts.extract_answer("completions", style="boxed"))["completions"]
        .to_list()
    )
    predictions = [text for problem in recorded for text in problem["preds"]]
    canonical = [text for problem in recorded for text in problem["canonical"]]
    boxed = [
        (answer, prediction, form)
        for answer, prediction, form in zip(answers, predictions, canonical, strict=True)
        if answer is not None
    ]
    assert len(boxed) > 5_000
    assert {a: p for a, p, _ in boxed} == {a: clean_as_published(a) for a, _, _ in boxed}
    forms = published_forms([answer for answer, _, _ in boxed])
    assert {a: f for a, _, f in boxed} == {a: form.form for a, form in forms.items()}


def test_reference_answers_are_cleaned_alike(recorded: list[dict[str, str]]) -> None:
    assert len(recorded) == 100
    for problem in recorded:
        assert clean_as_published(problem["answer"]) == problem["gold_stripped"]


@pytest.mark.parametrize(
    ("answer", "cleaned"),
    [
        ("", ""),
        (r"\text{square}", ""),
        (r"88\text{ meters}", "88"),
        ("249 miles", "249"),
        (r"\$1.50.", "1.50"),
        (r"\dfrac12", r"\frac{1}{2}"),
        (r"\frac1{x}", r"\frac{1}{x}"),
        ("3/4", r"\frac{3}{4}"),
        ("a/b", "a/b"),
        (".5", "0.5"),
        ("x=3", "3"),
        (r"\sqrt5", r"\sqrt{5}"),
        ("two", "2"),
        (r"\text{Monday and Tuesday}", "MondayTuesday"),
        ("90^\\circ", "90"),
        ("2.000", "2"),
    ],
)
def test_cleaning(answer: str, cleaned: str) -> None:
    assert clean_as_published(answer) == cleaned


def test_what_is_too_large_for_the_libraries_is_cleaned_text() -> None:
    forms = published_forms(["9^{9^9}", "x^2 - x^2"])
    assert forms["9^{9^9}"] == ("9^{9^9}", False, "done")
    assert forms["x^2 - x^2"] == ("0", True, "done")
