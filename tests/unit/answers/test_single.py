"""Keys and grades of one string, and what only grading knows."""

from __future__ import annotations

import random

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.answers import AnswerPolicy, grade_one, key_of

TEXTS = ["0.5", r"\frac{1}{2}", "25%", "0.25", "25", "(B) 12", "B", "12", "Evelyn", "", "answer", None]  # fmt: skip
POLICIES = [None, AnswerPolicy(percent="kept"), AnswerPolicy(percent="fraction", units="kept")]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_key_of_one_string_is_that_of_a_column(policy: AnswerPolicy | None) -> None:
    frame = pl.DataFrame({"answer": TEXTS})
    column = frame.select(tts.answer_key("answer", policy=policy))["answer"].to_list()
    assert [key_of(text, policy=policy) for text in TEXTS] == column


@pytest.mark.parametrize("policy", POLICIES)
def test_a_grade_of_one_pair_is_that_of_columns(policy: AnswerPolicy | None) -> None:
    pairs = [(answer, gold) for answer in TEXTS for gold in TEXTS]
    frame = pl.DataFrame(pairs, schema={"answer": pl.String, "gold": pl.String}, orient="row")
    column = frame.select(tts.is_equivalent("answer", "gold", policy=policy))["answer"].to_list()
    assert [grade_one(*pair, policy=policy) for pair in pairs] == column
    attempts = frame.with_columns(problem_id=pl.lit("p")).with_row_index("attempt")
    scored = tts.score_trajectories(attempts, policy=policy)
    assert scored["is_correct"].to_list() == column


def test_grades_take_the_options_of_the_expression() -> None:
    assert grade_one("3.14", r"\pi", rel_tol=1e-3) is True
    assert grade_one("3.14", r"\pi", abs_tol=1e-6) is False
    assert grade_one("Bolek", "B", options=["Alina", "Bolek"]) is True
    assert grade_one("18", "16 - 3 - 4 = 9\n#### 18") is True
    assert key_of("25%", method="sympy") == "s1:25"


def test_what_is_no_string_is_refused() -> None:
    with pytest.raises(tts.TtsframeError, match=r"answer is a int, must be a string.*answer_key"):
        key_of(5)  # type: ignore[arg-type]
    with pytest.raises(tts.TtsframeError, match="gold is a float, must be a string"):
        grade_one("5", 5.0)  # type: ignore[arg-type]
    with pytest.raises(tts.TtsframeError, match="policy is a str, must be an AnswerPolicy"):
        key_of("5", policy="percent")  # type: ignore[arg-type]


def test_an_answer_in_place_of_a_column_gets_a_hint() -> None:
    frame = pl.DataFrame({"problem_id": ["p"], "attempt": [0], "answer_key": ["3:1"]})
    with pytest.raises(tts.TtsframeError, match=r"tts\.answers\.key_of\('1/2'\)"):
        tts.majority_vote(frame, by="1/2")


@pytest.mark.parametrize(
    ("answer", "gold", "is_right"),
    [
        ("25%", "25", True), ("25%", "0.25", True), ("25%", "1/4", True), (r"25\%", r"\frac{1}{4}", True),
        ("25 percent", "0.25", True), ("0.25", "25%", False), ("25", "25%", True), ("25%", "25%", True),
        ("25%", "0.26", False), ("25%, 75%", "0.75, 0.25", True), ("0.25", "25", False), ("25%", r"\$0.25", True),
    ],
)  # fmt: skip
def test_a_percentage_is_right_as_a_number_and_as_a_fraction(
    answer: str, gold: str, is_right: bool
) -> None:
    assert grade_one(answer, gold) is is_right


def test_other_policies_of_percent_grade_by_their_keys() -> None:
    assert grade_one("25%", "0.25", policy=AnswerPolicy(percent="kept")) is False
    assert grade_one("25%", "0.25", policy=AnswerPolicy(percent="fraction")) is True
    assert grade_one("25%", "25", policy=AnswerPolicy(percent="fraction")) is False


@pytest.mark.parametrize(
    "answer",
    ["(B) 12", r"\textbf{(B)}\ 12", r"\text{(B) } 12", "B) 12", "B. 12", r"(\text{B}) 12", "(B): 12",
     r"\text{(B) 12}", r"\mathrm{(B)}~12", "Option (B) 12", "Option B: 12", r"$\textbf{(B)}\ 12$", r"(B) $12$"],
)  # fmt: skip
def test_an_option_is_right_by_its_letter_and_by_its_content(answer: str) -> None:
    assert key_of(answer) == key_of("B")
    assert key_of(answer) != key_of("12")
    assert [grade_one(answer, gold) for gold in ("B", "12", "(B)", "C", "13")] == [True, True, True, False, False]  # fmt: skip
    assert [grade_one(other, answer) for other in ("B", "12", "C", "13", "(C) 12")] == [True, True, False, False, False]  # fmt: skip


def test_the_letter_of_an_option_in_words_counts_in_grading() -> None:
    assert grade_one("D. None of the above", "D") is True
    assert grade_one("D. None of the above", "None of the above") is True
    assert grade_one("D. None of the above", "(D) none") is True
    assert grade_one("D. None of the above", "C") is False
    assert key_of("E. coli") != key_of("E")


@pytest.mark.parametrize(
    "answer", ["Option B", "option (B)", r"\text{Option B}", "Choice B.", "Option B: 12"]
)
def test_an_option_may_be_named(answer: str) -> None:
    assert key_of(answer) == key_of("B")


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("(A) 3, (B) 5", "A"), ("(A)(B)", "A"), (r"(A) \cup (B)", "A"), ("(A) + 5", "A"), ("A. Smith", "A"),
        ("(A) and (B)", "A"), ("E. coli", "E"), ("(B) = 12", "B"), ("B 12", "B"), ("(b) 12", "B"), ("(B+1) 2", "B"),
        ("f(A) 2", "A"), ("(12) B", "B"), ("(I) only", "I"), ("(A) is correct", "A"),
    ],
)  # fmt: skip
def test_what_only_looks_like_an_option_has_no_key_of_a_letter(answer: str, other: str) -> None:
    assert key_of(answer) != key_of(other)


def test_a_letter_with_one_bracket_is_the_letter() -> None:
    assert key_of("E)") == key_of("E") == key_of("(E)") == key_of(r"\text{E)}")
    assert key_of("e)") != key_of("E)")
    assert key_of("A and C") == key_of("A, C") == key_of("(C), (A)")


@pytest.mark.parametrize(
    "text",
    ["answer", r"\text{final answer}", "must be incorrect", r"\boxed{\text{Final Answer}}", "Your answer here",
     "[answer]", r"\text{the answer}", "ANSWER"],
)  # fmt: skip
def test_a_placeholder_is_no_answer(text: str) -> None:
    assert key_of(text) is None
    assert grade_one(text, "5") is False


@pytest.mark.parametrize(
    "text", ["no answer", "incorrect", "Answer 9", "the answer key", r"\text{answer } 5"]
)
def test_words_about_answers_may_be_one(text: str) -> None:
    assert key_of(text) is not None


def test_grading_is_linear_in_hostile_texts() -> None:
    rng = random.Random(3)
    for piece in ("(A) ", "A) ", "%", r"\text{(A", "1/", "12/", "jan ", "5 m ", "- "):
        text = piece * (1_000_000 // len(piece))
        assert grade_one(text, rng.choice(["B", "12", "0.25"])) in {True, False}
