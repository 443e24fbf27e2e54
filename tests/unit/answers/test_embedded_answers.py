"""Answers put into sentences come out whole or not at all."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

PAIRS = Path(__file__).resolve().parents[2] / "data" / "answer_pairs.jsonl"
LONGEST = 60
MOST_LISTED = 200
TEMPLATES = (
    "The answer is {}.",
    "The answer is: {}",
    "Answer: {}",
    "**Answer:** {}",
    "**Final Answer**\n\n{}",
    "We check both cases.\n\nSo the final answer is {}.",
    "Hence the answer is ${}$.",
    "Therefore, the answer is \\({}\\).",
    "Adding up, we get $\\boxed{{{}}}$, as was to be shown.",
    "Final Answer: The final answer is ${}$. I hope it is correct.",
    "There are two steps.\n#### {}",
    "<think>\nIt may be 17 or 19.\n</think>\n\n<answer>{}</answer>",
    "The correct answer is {}.",
    "Hence, the result is {}.",
    "Por lo tanto, la respuesta es {}.",
    "Donc la réponse est {}.",
    "Die Antwort ist {}.",
    "Ответ: {}",
    "所以答案是{}。",
    "答え: {}",
    "الجواب: {}",
    "इसलिए, उत्तर: {}",
    "The answer is {}.\n\nQ: How many are 2 and 3?\nA: The answer is 5.",
    "The answer is {}.<|im_end|>",
)
IS_PROSE = re.compile(
    r"[.?!:]\s|^(?:There|This|Yes|No|I)\b|[A-Za-z]{3,} [A-Za-z]{3,}|^\W*=|\n|\\boxed|\\fbox"
)
DELIMITERS = re.compile(r"\\[()\[\]]|[$*`'\"“”\s]|\\[,;! ]|\\(?:left|right|quad)\b")


def bare(answer: str) -> str:
    """Drop what does not tell a part from the whole: delimiters, blanks, the end of the sentence."""
    return DELIMITERS.sub("", answer).rstrip(".。,;")


def statements(answers: list[str]) -> list[tuple[str, str]]:
    """Put each answer into each template; one with dollars in it goes into none that has its own."""
    return [
        (answer, template.format(answer))
        for answer in answers
        for template in TEMPLATES
        if not ("$" in answer and ("$" in template or "\\(" in template))
    ]


def not_whole(cases: list[tuple[str, str]]) -> list[str]:
    """Name the statements out of which something else than their answer came."""
    frame = pl.DataFrame(cases, schema={"answer": pl.String, "text": pl.String}, orient="row")
    frame = frame.with_columns(found=tts.extract_answer("text")).filter(
        pl.col("found").is_not_null(),
        tts.answer_key("found").ne_missing(tts.answer_key("answer")),
    )
    return [
        f"{found!r} from {text!r}"
        for answer, text, found in frame.select("answer", "text", "found").rows()
        if bare(found) != bare(answer) and not is_value_of_sum(found, answer)
    ]


def is_value_of_sum(found: str, answer: str) -> bool:
    """Tell whether `3+4=7` came out as the 7 that it is worked out to be."""
    worked_out, sign, value = answer.rpartition("=")
    is_number = not re.search("[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", worked_out))
    return bool(sign) and is_number and bare(found) == bare(value)


def listed(failures: list[str]) -> str:
    return "\n".join([f"{len(failures)} of them", *failures[:MOST_LISTED]])


def labelled_answers() -> list[str]:
    cases = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    return sorted({case[side] for case in cases for side in ("a", "b")})


def real_answers(shared_data: Path) -> list[str]:
    lines = (shared_data / "answers" / "real_strings.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def embeddable(answers: list[str]) -> list[str]:
    """Keep short answers without sentences of their own, without the delimiters around them."""
    plain = [undelimited(answer) for answer in answers]
    return [
        answer
        for answer in plain
        if 0 < len(answer) <= LONGEST and not IS_PROSE.search(answer) and answer.count("$") < 2
    ]


def undelimited(answer: str) -> str:
    answer = answer.strip()
    if answer.startswith("$") and answer.endswith("$") and answer.count("$") == 2:
        return answer[1:-1].strip()
    return answer


def test_most_answers_come_out() -> None:
    cases = statements(random.Random(13).sample(embeddable(labelled_answers()), 60))
    frame = pl.DataFrame(cases, schema={"answer": pl.String, "text": pl.String}, orient="row")
    found = frame.select(tts.extract_answer("text"))["text"]
    assert found.null_count() <= 0.25 * len(found)


def test_labelled_answers_are_never_cut() -> None:
    answers = random.Random(7).sample(embeddable(labelled_answers()), 150)
    failures = not_whole(statements(answers))
    assert not failures, listed(failures)


def test_real_answers_are_never_cut(shared_data: Path) -> None:
    answers = random.Random(11).sample(embeddable(real_answers(shared_data)), 150)
    failures = not_whole(statements(answers))
    assert not failures, listed(failures)


@pytest.mark.slow
def test_no_answer_at_all_is_cut(shared_data: Path) -> None:
    answers = embeddable([*labelled_answers(), *real_answers(shared_data)])
    failures = not_whole(statements(answers))
    assert not failures, listed(failures)
