"""Values of trees: at several points at once, shared between trees, and rational or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flint import ctx

from ttsframe.answers.engine import canonicalize
from ttsframe.answers.latex.parser import parse
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.values import fingerprint
from ttsframe.answers.values.balls import OutsideDomain, part_key
from ttsframe.answers.values.evaluation import Evaluation, KnownValues
from ttsframe.answers.values.fingerprint import scalar_key

POLICY = AnswerPolicy()
POINTS = (0, 1, 2)
TREES = [
    "x+1", "-x", "2x-3y", "x^2y^{-3}", r"\frac{x+1}{x-1}", r"\frac{1}{x}", r"e^{-2x}\sin 3x", r"\sqrt{2}x+\pi", r"\ln x", r"\sqrt{x+y}",
    r"\sqrt[3]{x}", "x^x", "x^{2/3}", r"|x|", r"\lfloor x \rfloor+y", "(x+i)(x-i)", "ix+y", "n!", r"\binom{n}{2}", r"\binom{x}{y}",
    "f(x)+f(2)", r"\sum_{k=1}^{3} kx", r"\sum_{k=1}^{n} k", r"\arcsin x", r"\tan x", r"\log x", r"x\ln x+y\ln y", "x^0", "0x+3", "2^{x}",
]  # fmt: skip


def at_each_point(text: str) -> list[str]:
    """Evaluate a tree point by point."""
    parts = []
    for point in POINTS:
        try:
            value = Evaluation(POLICY, (point,), is_final=False, is_real=True).value(parse(text))
        except OutsideDomain:
            parts.append("u")
        else:
            parts.append(part_key(value))
    return parts


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    before = ctx.prec
    ctx.prec = 576
    yield
    ctx.prec = before


@pytest.mark.parametrize("text", TREES)
def test_several_points_at_once_are_each_point(text: str) -> None:
    values = fingerprint._values_at((parse(text),), POLICY, POINTS, KnownValues(), is_final=False)
    together = ["u" if value is None else part_key(value) for value in values]
    assert together == at_each_point(text)


@pytest.mark.parametrize("text", TREES)
def test_what_other_trees_left_behind_changes_no_key(text: str) -> None:
    known = KnownValues()
    for other in TREES:
        scalar_key(parse(other), POLICY, known)
    assert scalar_key(parse(text), POLICY, known) == scalar_key(parse(text), POLICY)


@pytest.mark.parametrize(
    ("left", "right"),
    [("|x|-x", "0"), ("|x|", "x"), ("|xy|", "xy"), (r"\sqrt{x^2}", "x"), ("|x|y", "x|y|"), (r"\ln x^2", r"2\ln x"),
     ("|x+1|", "x+1"), ("|x-5|", "5-x"), ("|x-5|+x", "5"), ("|x|+|x+1|", "|x|+x+1"), ("y=|x-5|", "y=5-x"), ("|x-100|", "100-x"),
     (r"\ln|x+1|", r"\ln(x+1)"), ("|x-5|^3", "(5-x)^3"), ("||x|-5|", "5-|x|"),
     ("|x|^2|x+1|", "x^2(x+1)"), ("|x||x+1|", "x|x+1|"), ("x^2|x-1|", "x|x-1|"),
     (r"(\mathbf{A}+\mathbf{B})\mathbf{C}", r"\mathbf{C}(\mathbf{A}+\mathbf{B})")],
)  # fmt: skip
def test_functions_that_differ_at_some_points_only_stay_apart(left: str, right: str) -> None:
    assert canonicalize(left, POLICY).key != canonicalize(right, POLICY).key


@pytest.mark.parametrize(
    ("text", "is_irrational"),
    [
        (r"\sqrt{2}", True), (r"3-\frac{2\pi}{5}", True), (r"\frac{3}{2\sqrt{5}}", True), (r"\sqrt[3]{7}+1", True), ("e", True),
        (r"\sqrt{2}+\sqrt{3}", False), (r"\sqrt{2}\sqrt{8}", False), (r"\sqrt{4}", False), (r"0\sqrt{2}", False), ("i", False),
        (r"\sqrt[3]{8}", False), (r"\frac{\sqrt{2}}{\sqrt{8}}", False), (r"\sqrt{-2}", False), ("3", False), (r"\frac{0}{\pi}", False),
    ],
)  # fmt: skip
def test_only_what_is_proven_counts_as_irrational(text: str, is_irrational: bool) -> None:
    assert fingerprint._is_irrational(parse(text)) is is_irrational


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x+\\sqrt{4}", "x+2"), (r"\frac{\sqrt{2}}{\sqrt{8}}", r"\frac{1}{2}"), (r"x\sin^2 t+x\cos^2 t", "x"), ("(x+\\sqrt{2})(x-\\sqrt{2})", "x^2-2"),
        (r"\tan(30^\circ) h", r"\frac{h}{\sqrt{3}}"), (r"\frac{n!}{(n-2)!}", "n(n-1)"), (r"\sqrt[3]{8x^3}", "2x"), ("y=x^2-x^2+3", "3"),
        ("y=2x+1", "4x-2y+2=0"), ("x=x+1-1", "x"), (r"y=\ln x+1", r"\ln x-y+1=0"), ("y=e^x", "2e^x-2y=0"),
        ("|x+1|", "|1+x|"), ("|2x+6|", "2|x+3|"), ("|x+1|^2", "x^2+2x+1"), ("|x|", r"\sqrt{x^2}"), ("2|x|", r"\sqrt{4x^2}"), ("|x^2+1|", "x^2+1"),
        (r"\frac{|x+1|}{|x+1|}", "1"), ("y=|x+3|", "y=|3+x|"),
        ("|x|^2|x+1|", "x^2|x+1|"), ("|x+1||x|^2", "x^2 |x+1|"), ("|x|^3", "x^2|x|"), ("|x||y|", "|xy|"), ("|2x|", "2|x|"),
        (r"\frac{|x|}{2}", r"\frac12|x|"), (r"2\mathbf{A}", r"\mathbf{A}\cdot 2"),
    ],
)  # fmt: skip
def test_one_value_has_one_key(one: str, other: str) -> None:
    assert canonicalize(one, POLICY).key == canonicalize(other, POLICY).key
