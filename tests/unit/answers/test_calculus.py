"""Sums, products, integrals, limits and derivatives: read by the grammar, evaluated by sympy."""

from __future__ import annotations

import math
from collections.abc import Callable

import polars as pl
import pytest
from mpmath import mp
from scipy.integrate import dblquad, quad

import ttsframe as tts
from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.latex.tree import closed_calculus, replace_nodes
from ttsframe.answers.lookup import table
from ttsframe.answers.lookup.worker import run_tasks
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values.fingerprint import value_of


def keys(*answers: str) -> list[str]:
    return pl.DataFrame({"a": answers}).select(tts.answer_key("a"))["a"].to_list()


def kinds(*answers: str) -> list[str]:
    return pl.DataFrame({"a": answers}).select(tts.answers.answer_kind("a"))["a"].to_list()


def number(text: str) -> float:
    """Return the value of a text through the grammar, sympy and the own arithmetic."""
    node = parse(normalize_text(text))
    outcomes = run_tasks("evaluate", closed_calculus(node))
    values = {part: table._as_node(outcome.value) for part, outcome in outcomes.items()}
    assert None not in values.values(), text
    return float(value_of(replace_nodes(node, values.get), AnswerPolicy()))


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        # integrals
        (r"\int_0^1 x dx", r"\frac12"),
        (r"\int_{0}^{1} x\,\mathrm{d}x", r"\frac12"),
        (r"\int_0^1 xdx", r"\frac12"),
        (r"\int\limits_0^1 2x \, d x", "1"),
        (r"\int_1^2 \frac{1}{x} dx", r"\ln 2"),
        (r"\int_1^2 \frac{dx}{x}", r"\ln 2"),
        (r"\int_1^e \frac{dx}{x} + 1", "2"),
        (r"\int_0^1 \frac{x\,dx}{1+x^2}", r"\frac{\ln 2}{2}"),
        (r"3\int_0^1 2\frac{dx}{1+x}", r"6 \ln 2"),
        (r"\int_0^1\frac{4}{1+x^2}dx", r"\pi"),
        (r"\int_0^{2\pi} d\theta", r"2\pi"),
        (r"\int_0^\pi \sin\theta\,d\theta", "2"),
        (r"\int_0^{\pi/2} \sin^2 x \cos x \, dx", r"\frac13"),
        (r"\int_{-\infty}^{\infty} e^{-x^2} dx", r"\sqrt{\pi}"),
        (r"\int_0^\infty x^3 e^{-x}\,dx", "6"),
        (r"\int_0^\infty \frac{\sin x}{x}\,dx", r"\frac{\pi}{2}"),
        (r"\int_0^1 \ln x \, dx", "-1"),
        (r"\int_{-1}^{1} |x| dx", "1"),
        (r"\int_{-8}^{-1} \sqrt[3]{x} dx", r"-\frac{45}{4}"),
        (r"\int_{-1}^{1} x^{1/3} dx", "0"),
        (r"\int_0^{2\pi} \frac{1}{2+\cos x} dx", r"\frac{2\pi}{\sqrt 3}"),
        (r"\int_0^1 x dx \cdot \int_0^1 x dx", r"\frac14"),
        (r"\int_0^1 x dx / 2", r"\frac14"),
        (r"\int_0^1 (x + 1) dx - 1", r"\frac12"),
        (r"\int_0^1 x + 1 dx", r"\frac32"),
        (r"\int_0^1\int_0^1 x y\,dx\,dy", r"\frac14"),
        (r"\int_0^1 \int_0^x y \,dy\,dx", r"\frac16"),
        (r"\int_0^1 \int_0^1 xydxdy", r"\frac14"),
        (r"\int_0^1\int_0^1\int_0^1 x y z dx dy dz", r"\frac18"),
        (r"\int_0^{2\pi}\int_0^1 r \,dr\,d\theta", r"\pi"),
        (r"\left(\int_0^1 t dt\right)^2", r"\frac14"),
        (r"x = \int_0^1 t dt", r"\frac12"),
        (r"\frac{\int_0^2 x dx}{4}", r"\frac12"),
        (r"\sqrt{\int_0^2 2x dx}", "2"),
        # sums and products
        (r"\sum_{n=1}^{\infty} \frac{1}{n^2}", r"\frac{\pi^2}{6}"),
        (r"\sum_{n=0}^{\infty} \frac{1}{2^n}", "2"),
        (r"\sum_{n=1}^{\infty} \frac{n}{3^n}", r"\frac34"),
        (r"\sum_{k=1}^{\infty} \frac{(-1)^{k+1}}{k}", r"\ln 2"),
        (r"\sum_{n=0}^{\infty} \frac{1}{n!}", "e"),
        (r"\sum_{n=1}^\infty\frac{1}{n(n+1)}", "1"),
        (r"\sum_{k=1}^{1000} k", "500500"),
        (r"\sum_{k=1}^{10^9} k", "500000000500000000"),
        (r"\sum_{i=1}^{10} i", "55"),
        (r"\sum_{i=1}^{3}\sum_{e=1}^{i} e", "10"),
        (r"\sum_{k=1}^5\frac{1}{k}", r"\frac{137}{60}"),
        (r"\sum_{k=1}^5 2k", "30"),
        (r"\prod_{k=2}^{\infty} (1-\frac{1}{k^2})", r"\frac12"),
        (r"\prod_{k=1}^{4} k", "24"),
        # limits
        (r"\lim_{x\to 0} \frac{\sin x}{x}", "1"),
        (r"\lim_{x\rightarrow 0^+} x\ln x", "0"),
        (r"\lim_{x \to 0^{-}} \frac{|x|}{x}", "-1"),
        (r"\lim_{x \to 0^{+}} \frac{1}{x}", r"\infty"),
        (r"\lim_{x \to 0^-} \frac1x", r"-\infty"),
        (r"\lim_{n\to\infty} \left(1+\frac1n\right)^n", "e"),
        (r"\lim_{n\to\infty} \frac{2n^2+1}{n^2}", "2"),
        (r"\lim_{x\to -\infty} e^x", "0"),
        (r"\lim_{h\to 0} \frac{(2+h)^3-8}{h}", "12"),
        (r"\lim_{x\to\frac{\pi}{2}} \sin x", "1"),
        # derivatives
        (r"\frac{d}{dx} x^2", "2x"),
        (r"\frac{d}{dx}\left(x^3 + a x\right)", "3x^2 + a"),
        (r"\frac{d^2}{dx^2} \sin x", r"-\sin x"),
        (r"\frac{d^{2}}{dt^{2}} t^3", "6t"),
        (r"\frac{\partial}{\partial x} (x^2 y)", "2xy"),
        (r"\dfrac{d}{dx} e^{2x}", "2e^{2x}"),
        (r"\int_0^1 \frac{d}{dx} x^2 dx", "1"),
    ],
)
def test_calculus_has_the_key_of_its_value(answer: str, value: str) -> None:
    first, second = keys(answer, value)
    assert first == second


@pytest.mark.parametrize(
    ("answer", "integrand", "low", "high"),
    [
        (r"\int_0^1 \sqrt{1-x^2} dx", lambda x: math.sqrt(1 - x * x), 0, 1),
        (r"\int_0^2 x e^{-x} dx", lambda x: x * math.exp(-x), 0, 2),
        (r"\int_1^3 \frac{x^2+1}{x} dx", lambda x: (x * x + 1) / x, 1, 3),
        (r"\int_0^\pi x \sin x dx", lambda x: x * math.sin(x), 0, math.pi),
        (r"\int_{-1}^2 |x^3 - x| dx", lambda x: abs(x**3 - x), -1, 2),
        (r"\int_0^1 \arctan x dx", math.atan, 0, 1),
        (r"\int_0^1 \frac{1}{\sqrt{x}} dx", lambda x: 1 / math.sqrt(x), 0, 1),
        (r"\int_0^\infty \frac{1}{1+x^4} dx", lambda x: 1 / (1 + x**4), 0, math.inf),
        (r"\int_0^{\pi/4} \tan x dx", math.tan, 0, math.pi / 4),
        (r"\int_0^1 \ln(1+x^2) dx", lambda x: math.log(1 + x * x), 0, 1),
        (r"\int_0^4 \frac{1}{1+\sqrt{x}} dx", lambda x: 1 / (1 + math.sqrt(x)), 0, 4),
        (r"\int_2^3 \frac{dx}{x^2-1}", lambda x: 1 / (x * x - 1), 2, 3),
        (r"\int_0^{\ln 2} \sinh x dx", math.sinh, 0, math.log(2)),
        (r"\int_0^{4\pi} \frac{dx}{3+2\sin x}", lambda x: 1 / (3 + 2 * math.sin(x)), 0, 4 * math.pi),
    ],
)  # fmt: skip
def test_integrals_agree_with_numeric_quadrature(
    answer: str, integrand: Callable[[float], float], low: float, high: float
) -> None:
    expected, error = quad(integrand, low, high, limit=200)
    assert number(answer) == pytest.approx(expected, abs=max(1e-8, 10 * error))


def test_a_double_integral_agrees_with_numeric_quadrature() -> None:
    expected, _ = dblquad(lambda y, x: x * y * y + 1, 0, 2, 0, lambda x: x)
    answer = r"\int_0^2 \int_0^x (x y^2 + 1) dy dx"
    assert number(answer) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("answer", "term", "first"),
    [
        (r"\sum_{n=0}^{\infty} \frac{(-1)^n}{2n+1}", lambda n: mp.mpf(-1) ** n / (2 * n + 1), 0),
        (r"\sum_{n=1}^{\infty} \frac{1}{n^4}", lambda n: 1 / mp.mpf(n) ** 4, 1),
        (r"\sum_{n=2}^{\infty} \frac{1}{n^2-1}", lambda n: 1 / (mp.mpf(n) ** 2 - 1), 2),
        (r"\sum_{n=0}^{\infty} \frac{2^n}{n!}", lambda n: mp.mpf(2) ** n / mp.factorial(n), 0),
        (r"\sum_{n=1}^{\infty} \frac{n^2}{2^n}", lambda n: mp.mpf(n) ** 2 / mp.mpf(2) ** n, 1),
    ],
)
def test_series_agree_with_numeric_summation(
    answer: str, term: Callable[[int], object], first: int
) -> None:
    assert number(answer) == pytest.approx(float(mp.nsum(term, [first, mp.inf])), abs=1e-10)


@pytest.mark.parametrize(
    "answer",
    [
        r"\int_{-1}^{1} \frac{1}{x} dx",
        r"\int_0^2 \frac{dx}{x-1}",
        r"\int_0^\pi \tan x dx",
        r"\int_0^\infty \sin x dx",
        r"\int_0^4 \frac{\cos x}{x} dx",
        r"\int_{-\infty}^\infty x dx",
        r"\sum_{n=0}^\infty (-1)^n",
        r"\sum_{n=1}^\infty \sin n",
        r"\sum_{n=0}^\infty (-2)^n",
        r"\lim_{x\to\infty} \sin x",
        r"\lim_{x\to 0}\frac{1}{x}",
        r"\lim_{x\to 0}\frac{|x|}{x}",
    ],
)
def test_what_has_no_value_is_text(answer: str) -> None:
    assert kinds(answer) == ["text"]


@pytest.mark.parametrize(
    "answer",
    [
        r"\int_0^1 \frac{1}{x} dx",
        r"\int_1^\infty \frac{dx}{x}",
        r"\int_{-1}^1 \frac{1}{x^2} dx",
        r"\int_0^\infty x dx",
        r"\sum_{n=1}^\infty \frac1n",
        r"\sum_{n=0}^\infty 2^n",
        r"\prod_{k=1}^\infty 2",
    ],
)
def test_what_grows_without_bound_is_infinity(answer: str) -> None:
    assert keys(answer) == keys(r"\infty")


@pytest.mark.parametrize(
    "answer",
    [
        r"\int x dx",
        r"\int_0^1 x",
        r"\int_0^1 x dx x",
        r"\int_0^1 x dx (2)",
        r"\int_0^1 x dx^2",
        r"\int_0^1 dx\, x^2",
        r"\int_0^12 x dx",
        r"\int_0^1 x de",
        r"\int_0^1 \sin \frac{dx}{x}",
        r"\int_0^1 x + \frac{dx}{x}",
        r"\int_0^1 \frac{dx}{x}^2",
        r"\iint_0^1 x dx",
        r"\frac{d}{dx} x + 1",
        r"\frac{d^2}{dx} x",
        r"\frac{dy}{dx}",
        r"\frac{d y}{d x}",
        r"\frac{\partial f}{\partial x}",
        r"\lim_{x} x",
        r"\lim_{x = 0} x",
        r"\lim x",
        r"\sum_{k} k",
        r"\sum_{k=1} k",
    ],
)
def test_what_has_two_readings_or_none_is_refused(answer: str) -> None:
    with pytest.raises(Unreadable):
        parse(normalize_text(answer))


def test_letters_of_a_differential_stay_letters_elsewhere() -> None:
    assert kinds("dx") == ["text"]
    assert len(set(keys(r"\frac{d}{2}", "d/2"))) == 1
    assert len(set(keys(r"\frac{d^2}{4}", "d^2/4"))) == 1
    assert len(set(keys(r"\frac{def}{de+df+ef}", r"\frac{e d f}{ed+fd+fe}"))) == 1


@pytest.mark.parametrize("word", ["side", "body", "lady", "node", "undo", "odd", "and", "do"])
def test_words_beside_calculus_stay_words(word: str) -> None:
    with pytest.raises(Unreadable):
        parse(rf"\int_0^1 x {word} dx")


@pytest.mark.parametrize(
    "answer",
    [
        r"\int_0^1 " * 60 + "x" + " dx" * 60,
        r"\sum_{k=1}^{\infty} " * 60 + "k",
        r"\lim_{x\to 0} " * 60 + "x",
        r"\frac{d}{dx} " * 60 + "x",
        r"\int_0^{\int_0^{\int_0^{\int_0^1 x dx} x dx} x dx} x dx",
        r"\int_0^1 \frac{d^{99}}{dx^{99}} x^{99} dx",
        r"\int_0^1 x^{x^{x^{x}}} dx",
        r"\int_0^{9^{9^{9}}} x dx",
        r"\sum_{k=1}^{\infty} (9^{9})!^{k}",
        r"\int_0^{10^{99}} x^{x^x} dx",
        r"\prod_{k=1}^{99999} k",
        r"\lim_{x\to\infty} x^{x^{x}}",
        r"\int_0^1 " + "(" * 35 + "x" + ")" * 35 + " dx",
        r"\int_0^1 \frac{1}{" * 20 + "x" + "} dx" * 20,
    ],
)
def test_hostile_calculus_is_bounded(answer: str) -> None:
    before = tts.answers.answer_statistics()
    assert kinds(answer) != ["missing"]
    after = tts.answers.answer_statistics()
    assert after.n_failed == before.n_failed
    assert after.n_died == before.n_died
