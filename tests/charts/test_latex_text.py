"""LaTeX answers as plain text: what is written, and that nothing else is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttsframe.charts.latex_text import plain_text


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\frac{130}{63}", "130/63"),
        (r"-\frac17", "-1/7"),
        (r"\dfrac{\sqrt{3}+1}{2}", "(√3+1)/2"),
        (r"-\frac{\sqrt{2}}{3}", "-√2/3"),
        (r"2\sqrt[3]{5}", "2³√5"),
        (r"\sqrt{x+1}", "√(x+1)"),
        (r"90^\circ", "90°"),
        (r"x^{2}+y^{n+1}", "x²+yⁿ⁺¹"),
        (r"x^{a b}", "x^(a b)"),
        (r"4210_{5}", "4210₅"),
        (r"\left( 3, \frac{\pi}{2} \right)", "( 3, π/2 )"),
        (r"(-\infty, 2) \cup (3, \infty)", "(-∞, 2) ∪ (3, ∞)"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "(1, 2; 3, 4)"),
        (r"\text{Evelyn}", "Evelyn"),
        (r"\$32,\!348", "$32,348"),
        (r"12\%", "12%"),
        (r"\unknown{x}", r"\unknownx"),
    ],
)
def test_latex_is_written_plainly(latex: str, plain: str) -> None:
    assert plain_text(latex) == plain


@pytest.mark.parametrize(
    "text",
    [
        *("42", "a_1 + b", "{1, 2}", "print(f'{x}')", "$5", "x^2"),
        *(r"\frac{1", r"\frac", r"{\pi", r"\pi}", r"\begin{a}", "\\", r"\sqrt[3"),
    ],
)
def test_what_is_no_latex_or_is_broken_stays(text: str) -> None:
    assert plain_text(text) == text


@pytest.mark.parametrize(
    "piece", ["{", "\\frac", "\\frac{", "\\sqrt[", "\\^", "^{", "\\begin{a}", "\\text", "}", "\\"]
)
@pytest.mark.parametrize("n", [10, 500, 100_000])
def test_hostile_texts_stay_as_they_are_and_end(piece: str, n: int) -> None:
    text = "\\pi" + piece * n
    assert len(plain_text(text)) <= len(text)


@given(st.text(alphabet="\\{}[]^_$&frac sqrt12xπ", max_size=60))
def test_any_text_is_written(text: str) -> None:
    assert isinstance(plain_text(text), str)


def test_real_answers_lose_their_commands(shared_data: Path) -> None:
    lines = (shared_data / "answers" / "real_strings.jsonl").read_text().splitlines()
    texts = [json.loads(line) for line in lines]
    latex = [text for text in texts if "\\frac" in text and len(text) < 60]
    assert len(latex) > 100
    written = [plain_text(text) for text in latex]
    assert sum("\\frac" in text for text in written) < 0.05 * len(latex)
