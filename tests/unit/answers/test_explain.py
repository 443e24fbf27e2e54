"""What `explain_answer` says about one answer, and about two."""

from __future__ import annotations

import pytest

import ttsframe as tts


def test_it_shows_the_answer_layer_by_layer() -> None:
    explanation = tts.explain_answer("$x=[0,\\frac{\\pi}{2})$")
    assert explanation.normalized == "x=[0,\\frac{\\pi}{2})"
    assert explanation.layers == (
        ("relation", "x=[0,\\frac{\\pi}{2})"),
        ("brackets", "[0,\\frac{\\pi}{2})"),
        ("number", "0"),
        ("scalar", "\\frac{\\pi}{2}"),
    )
    assert explanation.kind == "structure"
    assert explanation.other is None
    assert not explanation.reason
    assert "brackets" in str(explanation)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("\\frac12", "0.5", "Equivalent"),
        ("\\frac13", "0.333", "they differ by 1/3000"),
        ("\\sqrt2", "1.4142", "an exact number"),
        ("\\sqrt2", "\\sqrt3", "they differ by about 0.318"),
        ("2^{41009}", "5", "more than 1e300"),
        ("5", "odd", "an exact number against text"),
        ("[0,1)", "(0,1)", "around the same parts"),
        ("(1,2)", "(2,1)", "the same parts in another order"),
        ("1,2,3", "1,2,4", "3 only in the first, 4 only in the second"),
        ("x+1", "x+2", "hidden points"),
        ("even", "odd", "compared as text"),
        ("\\int_0^1 x dx", "0.5", "unresolved"),
        ("2i", "3i", "Different values"),
    ],
)
def test_it_says_why_two_answers_differ(first: str, second: str, reason: str) -> None:
    explanation = tts.explain_answer(first, second)
    assert reason in explanation.reason
    assert explanation.reason in str(explanation)
    assert explanation.other is not None
    assert explanation.other.answer == second


def test_it_follows_the_policy() -> None:
    assert tts.explain_answer("25\\%", "25").reason == "Equivalent: both have the same key."
    policy = tts.answers.AnswerPolicy(percent="fraction")
    assert (
        tts.explain_answer("25\\%", "25", policy=policy).reason
        == "Different numbers: they differ by 99/4."
    )


def test_it_is_short_and_calm_about_hostile_text() -> None:
    assert len(str(tts.explain_answer("{" * 1_000_000, "9^{9^9}"))) < 1_000
