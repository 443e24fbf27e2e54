"""The normalization of answers, and the shortcut for texts that are already normal."""

from __future__ import annotations

import time
from random import Random

import pytest

from ttsframe.answers import normalize
from ttsframe.answers.normalize import normalize_text

PIECES = [
    *"0123456789xyzabABCe+-*/^()[]{}|<>=!,.:;_'\"`~$%#&\\ ",
    "  ", "{,}", "{-}", "{ ,", "\\{", "\\}", "^{2}", "{-1}", "_{2}", "\\frac{1}{2}", "\\frac12", "\\dfrac", "\\sqrt{3}",
    "\\pi", " \\pi ", "\\cdot ", "\\times ", "\\left(", "\\right)", "\\text{ cm}", "\\mathrm{d}", "\\boxed{5}", "\\,", "\\!",
    "\\ ", "\\sin x", "\\leq ", "\\le", "\\infty", "\\log_2", "\\cup", "**", "<b>", "</b>", "\\textbf{a}", "^{th}", "5 m", "5 g",
    "1,234", "1{,}234", "answer is ", "or", " and ", "é", "²",
]  # fmt: skip


def by_all_rules(text: str) -> str:
    """Normalize a text without the shortcut."""
    text = text.strip()
    for _ in range(4):
        changed = normalize._normalize_once(text)
        if changed == text:
            break
        text = changed
    return text


def test_a_text_that_counts_as_normal_is_changed_by_no_rule() -> None:
    rng = Random(5)
    n_normal = 0
    for _ in range(40_000):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 7))).strip()
        if text and normalize._NORMAL.fullmatch(text):
            n_normal += 1
            assert by_all_rules(text) == text
            assert by_all_rules(f"${text}$") == text
    assert n_normal > 1_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$-4$", "-4"), (r"$(-3,0) \cup(0,2)$", r"(-3,0) \cup(0,2)"), ("$ x $", "x"), ("$5.$", "5"), ("$x=5$, $y=6$", "x=5 , y=6"),
        ("3{,}000", "3000"), (r"\dfrac12", r"\frac 12"), ("$$5$$", "5"), ("$", ""),
    ],
)  # fmt: skip
def test_normal_form(text: str, expected: str) -> None:
    assert normalize_text(text) == expected


@pytest.mark.parametrize(
    "piece", ["{", "{ ", "a", "ab ", " ", "\\{", "\\frac", "1,", "$", "((", "\\\\"]
)
def test_the_shortcut_is_linear(piece: str) -> None:
    start = time.process_time()
    normalize._NORMAL.fullmatch(piece * 200_000 + "§")
    assert time.process_time() - start < 5
