"""What is read by a short cut is what the general rule reads, on generated texts that are near the short cut."""

from __future__ import annotations

import random
import re

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.answers import boxes, normalize, statements
from ttsframe.answers.shapes.marks import _searched_marks, top_marks

SMALL = 4_000

SENTENCE_PARTS = [
    "Therefore, ", "Thus ", "So, ", "Finally, ", "Hence", "## Step 3: Therefore, ", "the", " value", " of", " $x$", " $f(x) = 3$,",
    " is ", " is ", " is ", " equals ", " are ", " not", " to", " no solutions", " 12", " 5 and ", "$y$", r" \(x_1\)", "$$", " it",
    "approximately ", "5", "3.5", "-7", r"$\frac{3}{4}$", r"\(2\)", r"$12\%$", "72°", " miles", " g", ".", ".", ".", " which", "x is 5, y is 6",
    " select B", " options are", "$4.", " (", ")", " per hour", " degrees", ":", "**9**", " exist", r"\sqrt{2}", ", ",
]  # fmt: skip
MATHEMATICS = [
    "5", "x", r"\frac{1}{2}", r"\pi", "12", " ", "-", "+", ",", "{", "}", "(", ")", "|", "ab", r"\text{cm}", r" \text{cm}", "^2",
    r"\sqrt{3}", r"\{", r"\}", r"\,", "!", "%", " cd", "/", "[", "]", ";", ":", "=", "<",
]  # fmt: skip
AFTER_MATHEMATICS = [
    ".", ". ", ".\n", ".\n\n", ". I hope it is correct.", ". ки", ".\n\\text{percent}", ".5 is", ". 5", ".\nand $5$",
    ". and $6$", ". Note: 5\n7", ".\n\n1. It is", " cm.", "",
]  # fmt: skip
LINE_PARTS = [
    ".", "!", "?", "$", "$$", "\\]", "\\)", " ", "  ", "\t", "A", "Mr.", "a", "I", "5", "。", "！", " No.", "p.m.", "x", "Bc",
]  # fmt: skip
BOX_PARTS = [
    r"\boxed{5}", r"\boxed{\frac{1}{2}}", r"\boxed{}", r"\boxed{answer}", r"\fbox{3}", r"\boxed{", r"\boxed 7", " and ", ", ", "or",
    " so ", "word " * 20, "word " * 60, "a" * 150, "}", "\\", "\n", "é" * 90,
]  # fmt: skip


def joined(rng: random.Random, parts: list[str], longest: int) -> str:
    return "".join(rng.choice(parts) for _ in range(rng.randint(1, longest)))


def test_a_plain_conclusion_is_read_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    values = [
        "5.",
        "-7 cm.",
        "$x$.",
        r"$\frac{3}{4}$.",
        r"\(2\).",
        "about 3.5 miles per hour.",
        "72°.",
        "5, $y$ is 6.",
        "5 and 6.",
    ]
    texts = [joined(rng, SENTENCE_PARTS, 9) for _ in range(SMALL)] + [
        f"{rng.choice(SENTENCE_PARTS[:6])}{joined(rng, SENTENCE_PARTS, 5)} is {rng.choice(values)}" for _ in range(SMALL)
    ]  # fmt: skip
    read = [statements.answer_concluded(text) for text in texts]
    n_plain = sum(map(bool, map(statements._plainly_concluded, texts)))
    monkeypatch.setattr(statements, "_plainly_concluded", lambda _: None)
    assert read == [statements.answer_concluded(text) for text in texts]
    assert n_plain > SMALL / 40


def test_plain_mathematics_is_read_as_any_other_statement() -> None:
    rng = random.Random(2)
    texts = [
        f"\0{rng.choice(['', ' ', ': '])}${joined(rng, MATHEMATICS, 6)}${rng.choice(AFTER_MATHEMATICS)}"
        for _ in range(4 * SMALL)
    ]
    plain = [(text, answer) for text in texts if (answer := statements.plain_value(text))]
    assert [answer for _, answer in plain] == [statements.answer_announced(t[1:]) for t, _ in plain]
    assert len(plain) > SMALL / 4


def test_the_last_sentence_is_the_last_part_of_a_line() -> None:
    rng = random.Random(3)
    lines = [line for _ in range(2 * SMALL) if (line := joined(rng, LINE_PARTS, 13).strip())]
    parts = ([p for p in statements._SENTENCE_END.split(line) if p.strip()] for line in lines)
    assert [statements._last_sentence(line) for line in lines] == [p[-1].strip() for p in parts]


@pytest.mark.parametrize(
    ("words", "patterns"),
    [
        (statements._CHOOSING_WORDS, ["_LISTING", "_CHOSEN"]),
        (statements._NO_SOLUTION_WORDS, ["_NO_SOLUTION"]),
        (statements._CONCLUDING_WORDS, ["_CONCLUSION"]),
        (statements._DENYING_WORDS, ["_DENIAL"]),
        (statements._NOTE_WORDS, ["_NOTE"]),
    ],
)
def test_a_text_without_the_words_matches_no_pattern(
    words: tuple[str, ...], patterns: list[str]
) -> None:
    rng = random.Random(4)
    pattern = "|".join(getattr(statements, name).pattern for name in patterns)
    # words of the patterns themselves, so that the others in them are met too
    parts = [*re.findall(r"[A-Za-zкиℓ’']{2,}", pattern), " ", " ", "B", "<|", ".", "is", "\n"]
    for _ in range(SMALL):
        text = joined(rng, parts, 6)
        text = text.upper() if rng.random() < 0.2 else text
        matches = any(getattr(statements, name).search(text) for name in patterns)
        if matches and text.isascii():
            assert statements._holds_any(text.lower(), words), text


def test_a_box_near_the_end_is_read_as_in_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    texts = pl.Series("text", [joined(rng, BOX_PARTS, 12) for _ in range(SMALL)])
    read = texts.to_frame().select(tts.extract_answer("text", style="boxed"))["text"]
    assert boxes.has_box(texts).to_list() == ["\\boxed" in t or "\\fbox" in t for t in texts]
    monkeypatch.setattr(boxes, "_SEARCHED", pl.col("text"))
    assert boxes.boxed_answers(texts).to_list() == read.to_list()


def test_boxes_near_the_end_and_far_from_it_keep_their_rows() -> None:
    texts = [f"\\boxed{{{i}}}." + " It is so." * (i % 3 * 100) for i in range(12)]
    frame = pl.DataFrame({"text": texts})
    for style in ("auto", "boxed"):
        answers = frame.select(tts.extract_answer("text", style=style))["text"]
        assert answers.to_list() == [str(i) for i in range(12)]


def test_texts_without_marks_are_those_in_which_none_is_found() -> None:
    rng = random.Random(6)
    texts = [joined(rng, MATHEMATICS, 6) for _ in range(SMALL)]
    marks_of = [top_marks(text) for text in texts]
    assert marks_of == [_searched_marks(text) for text in texts]
    assert marks_of.count([]) > SMALL // 10


def test_a_normal_text_is_one_that_no_rule_changes() -> None:
    rng = random.Random(7)
    parts = [
        *MATHEMATICS,
        "_",
        "_{2}",
        "_{ 2 }",
        r"\\",
        "&",
        r"\mathbf{y}",
        r"\begin{array}{l}",
        r"\end{array}",
        r"\sum",
        "5 m",
        "A",
    ]
    texts = [joined(rng, parts, 6) for _ in range(2 * SMALL)]
    normal = [text for text in texts if normalize._NORMAL.fullmatch(text)]
    assert [normalize._normalize_once(text) for text in normal] == normal
    assert len(normal) > SMALL // 10
