"""Grading answers against gold answers."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts


def grade(pairs: list[tuple[str | None, str | None]], **options: object) -> list[bool | None]:
    schema = {"answer": pl.String, "gold": pl.String}
    frame = pl.DataFrame(pairs, schema=schema, orient="row")
    return frame.select(tts.is_equivalent("answer", "gold", **options))["answer"].to_list()  # type: ignore[arg-type]


def test_missing_values() -> None:
    assert grade([(None, "1"), ("1", None), (None, None), ("", "1"), ("1", "")]) == [
        False,
        None,
        None,
        False,
        None,
    ]


def test_equivalence_is_equality_of_keys() -> None:
    pairs = [
        ("0.5", r"\frac{1}{2}"),
        ("x+1", "1+x"),
        ("[0,1)", "(0,1)"),
        ("3", "4"),
        ("Evelyn", r"\text{Evelyn}"),
    ]
    assert grade(pairs) == [True, True, False, False, True]


def test_references_may_hide_their_answers() -> None:
    gold = r"Adding up, we get $\boxed{\frac{3}{4}}$ of the cake."
    assert grade([("0.75", gold), ("18", "16 - 3 - 4 = 9\n#### 18")]) == [True, True]


def test_a_tolerance_counts_against_the_reference_only() -> None:
    pairs = [
        ("1.0001", "1"),
        ("1.01", "1"),
        ("-1", "1"),
        ("Evelyn", "1"),
        ("0", "0"),
        ("1e-9", "0"),
    ]
    assert grade(pairs, rel_tol=1e-3) == [True, False, False, False, True, False]
    assert grade(pairs, abs_tol=1e-3) == [True, False, False, False, True, True]
    assert grade(pairs, rel_tol=0.0) == [False, False, False, False, True, False]
    # 10 % of the reference, not of the answer
    assert grade([("110", "100"), ("100", "110"), ("111", "100")], rel_tol=0.1) == [
        True,
        True,
        False,
    ]


def test_a_tolerance_reads_numbers_as_keys_do() -> None:
    pairs = [
        ("3.14159", r"\pi"),
        ("1.4142", r"\sqrt{2}"),
        ("0.3333", r"\frac{1}{3}"),
        ("3.2", r"\pi"),
    ]
    assert grade(pairs, rel_tol=1e-4) == [True, True, True, False]


def test_huge_numbers_are_compared_exactly() -> None:
    huge, other = "1" + "0" * 400, "1" + "0" * 399 + "1"
    assert grade([(huge, other)]) == [False]
    assert grade([(huge, other)], abs_tol=1.0) == [True]
    assert grade([(huge, other)], abs_tol=0.5) == [False]


def test_tolerance_agrees_with_exact_arithmetic() -> None:
    rng = random.Random(11)
    numbers = [Fraction(rng.randint(-50, 50), rng.randint(1, 20)) for _ in range(400)]
    golds = [
        number + Fraction(rng.randint(-9, 9), rng.choice([7, 100, 1000])) for number in numbers
    ]
    pairs = [
        (f"{n.numerator}/{n.denominator}", str(g)) for n, g in zip(numbers, golds, strict=True)
    ]
    bound = 2.0**-6
    expected = [abs(n - g) <= Fraction(bound) * abs(g) for n, g in zip(numbers, golds, strict=True)]
    assert 20 < sum(expected) < 380
    assert grade(pairs, rel_tol=bound) == expected


def test_bad_tolerances_are_refused_at_once() -> None:
    with pytest.raises(tts.TtsframeError, match="rel_tol == -1, must be finite and at least 0"):
        tts.is_equivalent("answer", "gold", rel_tol=-1)
    with pytest.raises(tts.TtsframeError, match="abs_tol == inf"):
        tts.is_equivalent("answer", "gold", abs_tol=float("inf"))
    with pytest.raises(tts.TtsframeError, match="abs_tol == nan"):
        tts.is_equivalent("answer", "gold", abs_tol=float("nan"))


def test_options_are_named_by_letter_by_text_or_by_both() -> None:
    options = ["Alina", "Bolek", r"\frac{1}{2}", "12"]
    pairs = [
        ("C", "0.5"),
        ("0.5", "(C)"),
        ("Bolek", "B"),
        (r"\text{(B)}", "Bolek"),
        ("B. Bolek", "B"),
        ("A", "B"),
        ("Alina", "B"),
        ("E", "B"),
        ("13", "D"),
        (None, "B"),
        ("B", None),
    ]
    frame = pl.DataFrame(pairs, schema={"answer": pl.String, "gold": pl.String}, orient="row")
    frame = frame.with_columns(options=pl.lit(pl.Series([options])).first())
    grades = frame.select(tts.is_equivalent("answer", "gold", options="options"))[
        "answer"
    ].to_list()
    assert grades == [True, True, True, True, True, False, False, False, False, False, None]
    nulls = frame.with_columns(options=pl.lit(None, dtype=pl.List(pl.String)))
    plain = nulls.select(tts.is_equivalent("answer", "gold", options="options"))["answer"].to_list()
    assert plain == grade(pairs)


def test_two_options_of_one_text_are_told_apart_by_letter_only() -> None:
    frame = pl.DataFrame({
        "answer": ["1/2", "A"],
        "gold": ["A", "0.5"],
        "options": [["0.5", "1/2"]] * 2,
    })
    assert frame.select(tts.is_equivalent("answer", "gold", options="options"))[
        "answer"
    ].to_list() == [False, False]


def test_options_of_another_dtype_are_refused() -> None:
    frame = pl.DataFrame({"answer": ["A"], "gold": ["B"], "options": ["A, B"]})
    with pytest.raises(
        tts.TtsframeError, match=r"options is of dtype String, must be List\(String\)"
    ):
        frame.select(tts.is_equivalent("answer", "gold", options="options"))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_grades_follow_their_rows(engine: str) -> None:
    rng = random.Random(2)
    values = ["1", "0.5", "1/2", "2", "2.001", None, "x", "Evelyn"]
    pairs = [(rng.choice(values), rng.choice(values)) for _ in range(50_000)]
    single = {pair: grade([pair], rel_tol=0.01)[0] for pair in set(pairs)}
    frame = pl.LazyFrame(pairs, schema={"answer": pl.String, "gold": pl.String}, orient="row")
    grades = frame.select(tts.is_equivalent("answer", "gold", rel_tol=0.01)).collect(engine=engine)
    assert grades["answer"].to_list() == [single[pair] for pair in pairs]


def test_the_name_is_that_of_the_answer() -> None:
    frame = pl.DataFrame({"a": ["1"], "g": ["1"]})
    assert frame.select(tts.is_equivalent("a", "g")).columns == ["a"]
    assert frame.select(tts.is_equivalent(pl.col("a"), pl.lit("1")).alias("ok")).columns == ["ok"]


def test_keys_of_different_versions_are_not_compared() -> None:
    frame = pl.DataFrame({"k": ["1:3", "1p1:4"], "g": ["1:3", "1:4"]})
    with pytest.raises(
        tts.TtsframeError, match=r"'1p1:4' and gold_key '1:4' were made under different"
    ):
        frame.select(tts.answers.is_same_key("k", "g"))
    assert frame.head(1).select(tts.answers.is_same_key("k", "g")).item() is True
    own = pl.DataFrame({"k": ["seven", None, "x"], "g": ["seven", "x", None]})
    assert own.select(tts.answers.is_same_key("k", "g"))["k"].to_list() == [True, False, None]


def test_recorded_grades_of_real_answers(shared_data: Path) -> None:
    path = shared_data / "qwen_math" / "math_cot_50.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    pairs = [(p, row["gt"]) for row in rows for p in row["pred"]]
    recorded = [score for row in rows for score in row["score"]]
    grades = grade(pairs)
    differ = [(pair, g, s) for pair, g, s in zip(pairs, grades, recorded, strict=True) if g != s]
    assert len(pairs) == 400
    # the recorded grade of this pair is wrong
    assert differ == [(("10000", "10{,}000"), True, False)]
