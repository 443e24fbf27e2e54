"""Extraction from the styles of today's models: tags, fields, labels, languages, questions, non-answers."""

from __future__ import annotations

import polars as pl
import pytest

import ttsframe as tts


def extract(text: str, **options: object) -> str | None:
    frame = pl.DataFrame({"text": [text]})
    answer: str | None = frame.select(tts.extract_answer("text", **options)).item()  # type: ignore[arg-type]
    return answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>7</think><answer>42</answer>", "42"),
        ("<final_answer> x = 5 </final_answer>", "x = 5"),
        ("<solution>So it is \\boxed{3}.</solution> I hope that \\boxed{4} is wrong.", "3"),
        ("<answer>42", "42"),
        ("<think>so \\boxed{3}</think>\nThe answer is 42.", "42"),
        ("No tag opens it: \\boxed{3}</think>\nThe answer is 42.", "42"),
        ("<think>so \\boxed{3}", None),
        ("We compute.\n\n42", "42"),
        ("We compute.\n\n$$42$$", "42"),
        ("Here it is:\n```\n42\n```", "42"),
        ("So I choose Option B", "B"),
        ("All agree.\n\nOption B", "B"),
        ("The correct option is (B)", "B"),
        ("The answer is B, C", "B, C"),
        ("The answer is (A) and (C).", "A, C"),
        ("The answer is (B) 12.", "(B) 12"),
        ('{"reasoning": "1 + 1", "answer": "\\\\frac{1}{2}"}', r"\frac{1}{2}"),
        ('{"answer": "\\frac{1}{2}", "sure": true}', r"\frac{1}{2}"),
        ('```json\n{"final_answer": 42}\n```', "42"),
        (r"\text{Answer: } 42", "42"),
        (r"\textbf{Answer: } 42", "42"),
        ("Answer:\n- 42", "42"),
        ("Answer:\n- 42\n- 43", "42, 43"),
        ("We add.\n## Step 8: Therefore, the sum is $28$.", "28"),
        ("The answer is Mr. Smith.", "Mr. Smith"),
        ("We try every case.\nThere is no solution.", "no solution"),
        ("The date today is 06/19/2019.", "06/19/2019"),
        ("We subtract a day.\nThe date today is 06/19/2019.", "06/19/2019"),
        (
            "Final Answer: The final answer is $5$. I hope it is correct.\n\nProblem: \\boxed{7}",
            "5",
        ),
    ],
)
def test_styles(text: str, answer: str | None) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "La respuesta es 42.", "La réponse est 42.", "Réponse : 42", "Die Antwort lautet 42.", "Antwort: 42",
        "Ответ: 42", "Ответ — 42.", "答案是 42。", "答え：42", "答えは42です。", "คำตอบคือ 42", "Jibu ni 42.",
        "উত্তর হল 42।", "సమాధానం 42.", "الإجابة هي 42.", "الجواب: 42", "उत्तर: 42", "उत्तर है 42।",
        "अंतिम उत्तर 42 है।", "A resposta é 42.", "La risposta è 42.", "정답은 42입니다.",
    ],
)  # fmt: skip
def test_languages(text: str) -> None:
    assert extract(f"3 * 14 = 42\n{text}") == "42"


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{answer}",
        r"\boxed{\text{final answer}}",
        r"Put it in $\boxed{\text{your answer}}$.",
        "\\boxed{...}",
        "<answer>your answer here</answer>",
        "So the answer must be incorrect.",
        "The answer is not 12.",
        "Thus the answer isn't 45.",
        "Therefore, $x$ is not equal to 6.",
        "So the answer is $\\frac{3}{",
        "The answer choices are A, B, C and D.",
    ],
)
def test_non_answers(text: str) -> None:
    assert extract(text) is None


@pytest.mark.parametrize(
    ("text", "cut", "whole"),
    [
        ("The answer is 5.\n\nQ: And then?\nThe answer is 7.", "5", "7"),
        ("#### 5\n\nQuestion: And then?\n#### 7", "5", "7"),
        ("So \\boxed{5}.\n\n**Problem:** And then? \\boxed{7}", "5", "7"),
        ("A: 12\n\nQ: What is 2+2?\nA: 4", "12", "4"),
        ("Q: What is 2+2?\nThe answer is 4.\n\nQ: And 1+1?\nThe answer is 2.", "4", "2"),
        ("Let us read it again.\nProblem: What is 1+1?\nThe answer is 2.", "2", "2"),
        ("The answer is 2.\nThe question: why?\nThe answer is 3.", "3", "3"),
    ],
)
def test_a_text_ends_at_a_question_after_its_answer(text: str, cut: str, whole: str) -> None:
    assert extract(text) == cut
    assert extract(text, cut_at_next_question=False) == whole


def test_rules_are_named_row_by_row() -> None:
    texts = {
        "The final answer is 5. I hope it is correct.": "final_sentence",
        "<answer>5</answer>": "tag",
        "\\boxed{5}": "box",
        "\\boxed{}": "box",
        "#### 5": "hash",
        '{"answer": 5}': "field",
        "The answer is 5 because it fits.": "phrase",
        "We add.\nTherefore, it is 5.": "conclusion",
        "We add.\n5": "last_line",
        "5": "whole_text",
        "I cannot say": None,
    }
    frame = pl.DataFrame({"text": list(texts)})
    rules = frame.select(tts.answers.extraction_rule("text"))["text"]
    assert dict(zip(texts, rules.to_list(), strict=True)) == texts
    for text, rule in texts.items():
        explanation = tts.answers.explain_extraction(text)
        assert explanation.rule == rule
        assert explanation.answer == extract(text)
        if explanation.start is not None:
            assert text[explanation.start : explanation.end] == explanation.answer


def test_a_column_has_to_be_explained_by_rules() -> None:
    with pytest.raises(tts.TtsframeError, match="text must be one string, got Series"):
        tts.answers.explain_extraction(pl.Series(["5"]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "piece",
    [
        "answer is ", "\\boxed{", "$", "\nQ:", "<think>", "</think>", "<answer>", "<answer>5", "####",
        "the answer is 5. I hope it is correct", "The answer is (", "9,", " 9", "**", "1 ", "answer to ",
        "<|im_start|>user ", "- 4\n", "^{2", "答", '"answer": "', ", ...", "=1", "\\left(", "|",
    ],
)  # fmt: skip
def test_hostile_texts_are_read(piece: str) -> None:
    for start in ("", "The answer is ", "So "):
        answer = extract(start + piece * (200_000 // len(piece)))
        assert answer is None or len(answer) <= 400
