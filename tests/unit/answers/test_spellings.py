"""Spellings that models use for one answer, and what must not merge with them."""

from __future__ import annotations

import itertools
import time
from fractions import Fraction

import pytest

from ttsframe.answers.engine import canonicalize
from ttsframe.answers.latex.exact import exact_power, exact_root, value_in_base
from ttsframe.answers.latex.parser import parse
from ttsframe.answers.normalize import normalize_text
from ttsframe.answers.policy import AnswerPolicy

DEFAULT = AnswerPolicy()


def key(answer: str, policy: AnswerPolicy = DEFAULT) -> str:
    return canonicalize(answer, policy).key


SAME = [
    # styles
    ["5", "\\mathbf{5}", "**5**", "***5***", "*5*", "__5__", "`5`", "```\n5\n```", '"5"', "'5'", "“5”", "``5''", "«5»", "= 5", "=5", "\\Rightarrow 5", "\\therefore 5", ": 5"],
    ["5", "\\color{red}{5}", "\\color{red} 5", "{\\color{red}5}", "\\textcolor{blue}{5}", "\\textcolor[rgb]{0,0,1}{5}", "\\colorbox{yellow}{5}", "\\fcolorbox{red}{white}{$5$}", "\\underline{5}", "\\underline{\\textbf{5}}", "\\boldsymbol{5}", "\\bm{5}", "\\fbox{5}", "\\framebox{5}"],
    ["5", "x=\\boxed{5}", "x=\\mathbf{5}", "\\boxed{\\color{red}{5}}", "5\\tag{1}", "\\phantom{0}5", "<b>5</b>", "\\mathop{5}", "\\text{5}\\text{ cm}", "**5** cm", "\\textbf{5} cm", "**5 cm**", "x = **5**"],
    ["A", "**A**", "\\mathbf{A}", "\\boldsymbol{(A)}", "**(A)**"],
    ["yes", "**Yes**", '"yes"', "`yes`", "\\textcolor{red}{\\text{yes}}"],
    ["1/2", "\\mathbf{\\frac{1}{2}}", "\\color{blue}{\\frac{1}{2}}", "\\nicefrac{1}{2}", "{1 \\over 2}", "1 \\over 2", "\\underline{\\frac12}"],
    ["x+1", "\\textcolor{red}{x+1}", "**x+1**", "= x+1", "\\mathbf{x+1}"],
    ["(3,4)", "x=\\color{red}{3}, y=\\color{red}{4}", "\\left(\\mathbf{3},\\mathbf{4}\\right)", "\\boldsymbol{(3,4)}"],
    ["10", "2\\times\\mathbf{3}+4", "2\\times\\color{red}{3+4}"],
    ["x^2", "x^\\mathbf{2}", "x^{\\color{red}{2}}", "x^\\text{2}"],
    ["42", "٤٢", "४२", "๔๒", "４２"],
    ["1234", "１，２３４", "१,२३४", "١٬٢٣٤"],
    ["3.5", "٣٫٥"],
    ["3/4", "³⁄₄", "³/₄", "¾"],
    ["7/4", "1³⁄₄", "1 ³⁄₄", "1¾"],
    ["1/7", "⅐"],
    ["e^x", "eˣ", "e^{x}"],
    ["x^{2n+1}", "x²ⁿ⁺¹"],
    ["x_n", "xₙ"],
    ["x^{10}", "x¹⁰"],
    ["\\eta", "η"],
    ["\\Sigma+1", "Σ+1"],
    ["A\\subseteq B", "A ⊆ B"],
    ["Option A base case", "option A base case"],
    ["A, C", "A and C", "A\\text{ and }C", "C, A", "(A) and (C)"],
    ["The mode is 3", "the mode is 3", "The  mode is $3$"],
    # signs
    ["3:4", "3{:}4", "3\\colon4", "3\\mathbin{:}4", "3∶4", "3\\text{ : }4", "3 to 4", "3\\text{ to }4", "3-to-4", "6:8"],
    ["12:30", "12{:}30", "12\\!:\\!30"],
    ["5:2", "10 to 4"],
    ["5000", "5\\text{,}000", "5{,}000"],
    ["x=y+1", "x{=}y{+}1", "x\\mathrel{=}y+1"],
    ["5", "5^{\\text{th}}", "5th", "5^{th}", "5\\text{th}", "5^\\text{th}", "5^{\\mathrm{th}}", "5\\textsuperscript{th}"],
    ["21", "21^{st}", "21^{\\text{st}}"],
    # bases
    ["5", "101_2", "101_{\\text{two}}", "101_{two}", "101_\\text{two}", "(101)_2", "(101)_{2}", "101_{(2)}", "\\text{101}_2", "101\\text{ base }2", "101 base 2", "101 (base two)", "101\\text{ (base 2)}", "101_{\\text{base 2}}", "101₂"],
    ["26", "\\text{1A}_{16}", "1A_{16}", "1a_{16}", "(1A)_{16}", "1A_{\\text{sixteen}}", "(\\text{1A})_{16}", "\\mathrm{1A}_{16}"],
    ["255", "\\text{FF}_{16}", "FF_{16}"],
    ["5/2", "10.1_2"],
    ["-5", "-101_2", "-(101)_2"],
    # fractions
    ["7/4", "1{3\\over4}", "1\\frac34"],
    ["\\sqrt{\\frac12}", "\\sqrt{1 \\over 2}"],
    ["1/6", "{{1 \\over 2} \\over 3}"],
    ["\\binom{n}{k+1}", "{n \\choose k+1}", "{n \\choose {k+1}}"],
    # intervals
    ["(0,1)", "]0,1[", "]0;1[", "\\left]0,1\\right[", "x\\in]0,1["],
    ["(0,1]", "]0,1]"],
    ["[0,1)", "[0,1["],
    ["(0,1)\\cup(2,3)", "]0,1[\\cup]2,3["],
    ["[0,1)\\cup(2,3]", "[0,1[\\cup]2,3]"],
    ["(-\\infty,\\sqrt[3]{2})", "]-\\infty,\\sqrt[3]{2}["],
    ["(-1,1)", "|x|<1", "\\left|x\\right|<1", "1>|x|", "2|x|<2", "\\lvert x\\rvert<1", "\\abs{x}<1"],
    ["[-1,5]", "|x-2|\\le3", "|2-x|\\le 3"],
    ["(-\\infty,-2]\\cup[1,\\infty)", "|2x+1|\\ge3"],
    ["(-\\infty,-\\sqrt2)\\cup(\\sqrt2,\\infty)", "|x|>\\sqrt2"],
    ["(-1,1)\\cup(1,3)", "0<|x-1|<2"],
    ["x\\ne0", "|x|>0"],
    ["(0,1)\\cup(1,\\infty)", "x>0, x\\ne1", "x>0\\text{ and }x\\neq1", "x\\neq 1, x>0"],
    ["(-1,0)\\cup(0,1)", "|x|<1, x\\ne0"],
    ["x<1\\text{ or }x>3", "x<1, x>3"],
    # functions
    ["6", "\\gcd(12,18)", "\\operatorname{gcd}(12,18)", "gcd(12, 18)", "\\gcd(12,18)=6", "\\gcd\\{12,18\\}"],
    ["12", "\\operatorname{lcm}(4,6)", "\\text{lcm}(4,6)", "\\mathrm{lcm}(4,6)", "lcm(4,6)", "\\lcm(4,6)", "\\max(3,12)", "\\min\\{12,13\\}"],
    ["1+i\\sqrt3", "2\\operatorname{cis}\\frac{\\pi}{3}", "2\\operatorname{cis}60^\\circ", "2\\text{cis}(\\pi/3)", "2\\left(\\cos\\frac{\\pi}{3}+i\\sin\\frac{\\pi}{3}\\right)", "2e^{i\\pi/3}"],
    ["\\operatorname{cis}\\theta", "\\cos\\theta+i\\sin\\theta", "e^{i\\theta}"],
    # products
    ["n2^{n-1}", "n\\cdot2^{n-1}"],
    ["\\binom{n}{2}2^{n-2}", "\\frac{n(n-1)}{2}\\cdot2^{n-2}"],
    ["\\frac{n}{2}3^n", "\\frac{n3^n}{2}"],
    ["(n-2)2^n+1", "(n-2)\\cdot 2^n+1"],
    ["(x+1)2", "2x+2"],
    ["x^n2^n", "x^n\\cdot2^n"],
    ["72", "2^{3}3^{2}"],
    ["\\sum_{k=1}^{4} k2^k", "98"],
    ["x+2", "x+\\sqrt{4}", "x+4^{1/2}", "x+\\sqrt[3]{8}", "x+\\frac{\\sqrt{36}}{3}", "x+|{-2}|", "x+\\lfloor 2.5\\rfloor", "x+\\binom{2}{1}", "x+(-8)^{2/3}/2"],
    ["\\frac{y}{2}", "\\sqrt{0.25}y", "8^{-\\frac13}y"],
    # names in lists
    ["\\cos\\pi=-1, \\sin\\pi=0", "\\sin\\pi=0,\\cos\\pi=-1", "\\cos(\\pi)=-1, \\sin \\left( \\pi \\right) = 0", "\\cos\\pi = -1\\text{ and }\\sin\\pi = 0"],
    ["x=y=4, z=2", "x=4,y=4,z=2", "z=2, x=y=4"],
    ["x=2+3=5, y=1", "(5,1)"],
    ["B=C", "C=B"],
    ["f(x)=C", "C"],
    ["p=5,q=2;p=7,q=2", "p = 5, q = 2 \\text{ and } p = 7, q = 2", "p=5,q=2 or p=7,q=2", "(5,2),(7,2)", "(p,q)=(7,2),(5,2)", "p = 5 \\text{ and } q = 2, p = 7 \\text{ and } q = 2", "p=7,q=2,p=5,q=2"],
    ["1,2", "x=1,x=2", "x=1 or x=2", "x=1,2"],
    ["AB=4,AB=5", "AB=4,5", "AB=4 or AB=5"],
    ["x+1, x>0", "f(x)=x+1, x>0"],
    # texts
    ["x\\equiv1\\pmod{3}", "x \\equiv 1 \\pmod 3", "x \\equiv 1 (mod 3)", "x\\equiv 1\\ (\\bmod\\ 3)", "x \\equiv 1 \\text{ (mod } 3)", "x ≡ 1 (mod 3)"],
    ["3+\\frac{5}{2}+3 = \\frac{29}{2}", "3+\\frac52+3=\\frac{29}2", "{3}+\\frac{5}{2}+3 = \\frac{29}{2}"],
    ["\\text{8th grade}", "8th grade"],
    ["f(x)=\\begin{cases}x & x>0\\\\ 1 & x<0\\end{cases}", "f(x)=\\begin{cases}x, & \\text{if } x>0\\\\ 1, & \\text{for } x<0\\end{cases}"],
    ["no solution", "No solutions", "There are no solutions.", "\\text{there is no solution}"],
    ["DNE", "does not exist", "\\text{The limit does not exist}", "It doesn't exist."],
    ["infinitely many", "Infinitely many solutions", "There are infinitely many solutions", "an infinite number of solutions", "infinite solutions"],
    ["7/2", "three and a half", "three and one half", "\\text{Three and a half}"],
    ["11/4", "two and three quarters", "two and three-fourths"],
    # selections
    ["120", "10 choose 3", "10\\text{ choose }3", "$10$ choose $3$", "{}_{10}C_3", "_{10}C_{3}", "^{10}C_3", "{}^{10}C_{3}", "{}_{10}\\mathrm{C}_{3}", "x=10 choose 3"],
    ["\\frac{n(n-1)}{2}", "n choose 2", "{}_nC_2", "^nC_2", "(n) choose (2)"],
    ["\\binom{n+1}{2}", "(n+1) choose 2", "{}_{n+1}C_2"],
    ["1200", "{}^{10}C_3 \\cdot {}^{5}C_2", "^{10}C_3\\times{}^{5}C_3"],
    ["60", "{}_5P_3", "{}^{5}P_{3}"],
    ["105", "7!!", "-(-7!!)"],
    ["|x|\\sqrt{|x+1|}", "\\sqrt{|x+1|}|x|", "|x|\\cdot\\sqrt{|x+1|}"],
    ["\\frac{dy}{dx}", "dy/dx", "dy / dx", "d y/d x"],
    ["\\frac{dy}{dx}=2x", "dy/dx=2x", "d y / d x=2 x"],
    # matrices, formulas, letters, times
    ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1,2],[3,4]]", "[ [1, 2], [3, 4] ]", "A=[[1,2],[3,4]]"],
    ["H2O", "H_2O", "H_{2}O", "\\text{H}_2\\text{O}", "\\mathrm{H_2O}", "H₂O"],
    ["Ca(OH)2", "Ca(OH)_2", "\\text{Ca(OH)}_2"],
    ["A,B,C", "\\text{A, B, and C}", "\\text{A, B, C}", "\\text{A, B and C}", "A, B, and C", "\\text{(A), (B) and (C)}"],
    ["1, 2,\\ldots,10", "1, 2, ..., 10", "1, 2, …, 10"], ["1, 2, 3, \\ldots", "1, 2, 3, ..."], ["5", "5..."], ["(7,2)", "(p,q)=(7,2)", "(x,y)=(7,2)", "(x_1,y_1)=(7,2)"],
    ["5", "\\{5\\}"], ["\\{\\{1\\},\\{2\\},\\{1,2\\}\\}", "\\{\\{2\\},\\{1\\},\\{2,1\\}\\}"],
    ["1", "AA^{-1}"], ["\\frac{1}{R}", "R^{-1}"], ["NaCl", "\\mathrm{NaCl}"], ["Don't know", "don't know"],
    ["15:45", "3: 45 pm", "3 : 45$ PM"],
]  # fmt: skip

DIFFERENT = [
    ["x2", "2x", "x^2", "x_2"], ["A1", "A", "1"], ["(1)3", "3", "13"], ["(2)3", "6", "23"], ["(a)2", "2a"], ["(B)12", "12B", "12"],
    ["\\sin x2^n", "2^n\\sin x", "\\sin(2^nx)"], ["2\\frac12", "1"], ["x30^\\circ", "30x"],
    ["2\\mathbf{5}", "10"], ["2\\color{red}{5}", "10"], ["\\overline{5}", "5"], ["\\overline{AB}", "AB"], ["\\cancel{5}", "5"],
    ["\\mathbf{a}+a", "2a"], ["\\mathbf{R}", "\\mathbb{R}"], ["2\\mathbf{v}", "2v"], ["5'", "5"], ["=<5", "<5", "5"], ['5"6', "56"], ["x**2", "2x"], ["2**3**2", "2 3 2", "64"],
    ["{3 \\atop 4}", "3/4", "\\binom{3}{4}"], ["{1 \\over 2 \\over 3}", "1/6", "3/2"],
    ["2^{th}", "2"], ["6 to 8", "3 to 4"], ["10 to 15", "2 to 3"], ["4 to 1", "1 to 4"], ["3 to 4 hours", "3:4"],
    ["101_2", "101", "101_3"], ["A_{16}", "10"], ["2a_{16}", "42"], ["x_{\\text{two}}", "x_2"], ["(3)_2", "3", "12"], ["\\text{1G}_{16}", "32"],
    ["]0,1[", "[0,1]", "]0,1]", "[0,1[", "0,1"], ["[[1,2],[3,4]]", "(1,2),(3,4)"],
    ["\\begin{cases}x & x>0\\\\ 1 & x<0\\end{cases}", "x^2>0, x<0"], ["\\begin{cases}x & -1<x\\\\ 2 & -3<x\\end{cases}", "x-1<x, 2-3<x"],
    ["(x,y)=(3,4)", "(y,x)=(3,4)"], ["(q,p)=(7,2)", "(7,2)"], ["1, 2, 3, ...", "1,2,3"], ["0.3, ...", "0.3"],
    ["\\{\\{1\\},\\{2\\}\\}", "\\{1,2\\}", "\\{\\{1,2\\}\\}"], ["\\{\\emptyset\\}", "\\emptyset", "\\{\\{\\emptyset\\}\\}"], ["\\nabla\\cdot F", "\\nabla\\times F", "\\nabla F"],
    ["P^{-1}AP", "PAP^{-1}", "A"], ["AB^{-1}", "B^{-1}A"], ["A^TB", "BA^T"], ["T, F, T", "F, T, T", "T, F"], ["AaBb", "AABB", "aabb"], ["Ab", "aB"],
    ["2^3!", "(2^3)!", "2^{3!}"], ["7!!", "(7!)!", "7!", "7!!!"], ["2^7!!", "2^{105}", "128"], ["(3!)!", "3!!"],
    ["{}_{10}C_3", "{}_{10}P_3", "{}_{3}C_{10}", "0"], ["x^{2}C_3", "x_2C_3", "\\binom{2}{3}x"], ["^{13}C_6H_{12}O_6", "\\binom{13}{6}H_{12}O_6"], ["2^{10}C_3", "240"],
    ["2 \\cdot 10 choose 3", "240"], ["I choose 2", "\\binom{i}{2}"], ["d y / d x", "y/x"], ["[[1,2],[3,4]]", "[[1,3],[2,4]]", "[[1,2,3,4]]", "[1,2],[3,4]", "[[1,2],[3]]"],
    ["NH_4OCN", "NH_4CNO"], ["CO_2", "C_2O"], ["H_2O", "H_2O_2", "HO_2"], ["A and B or C", "A, B, C", "A and (B or C)"], ["\\text{A or B}", "\\text{A and B}"],
    ["two million and a half", "2500000"], ["two hundred and a third", "200"], ["no solution", "no real solution", "infinitely many", "DNE", "one solution"],
    ["|x|\\frac{|y|}{2}", "|x\\frac{|y|}{2}"], ["|2|x|-1|", "2|x-1|"],
    ["|x|<1", "|x|\\le1", "|x|>1", "|z|<1", "|x|<-1", "(0,1)", "|x|<|y|"],
    ["|x|<1, x\\ne0", "|x|<1\\text{ or }x\\ne0"], ["x>\\sqrt2, x\\ne 2", "x>\\sqrt2\\text{ or }x\\ne 2"], ["x>0, x\\ne1", "x>0", "x\\ne1"],
    ["\\gcd(12,18)", "\\operatorname{lcm}(12,18)"], ["\\gcd(a,b)", "\\operatorname{lcm}(a,b)"], ["\\min(a,b)", "\\max(a,b)"],
    ["x+\\sqrt{4}", "x-2", "x+\\sqrt{5}", "x+\\sqrt{-4}"], ["x+\\sqrt{10^{60}}", "x+\\sqrt{10^{60}+1}"],
    ["\\cos\\pi=-1, \\sin\\pi=0", "\\cos\\pi=0,\\sin\\pi=-1", "-1,0"], ["x=y=4, z=2", "x=y=2, z=4", "4,2"], ["B=C", "C", "B"], ["AB=C", "C"],
    ["x=2+3=5, y=1", "y=5,x=1", "5,1"], ["2+3=5, 1+1=2", "5,2"], ["5,y=3", "3,y=5", "5,3"], ["x>0,y=2", "x>0,z=2", "y>0,x=2"], ["x=5,y>3", "y=5,x>3"],
    ["x=1,2y=4", "y=1,2y=4"], ["(a,b)=(1,2),(c,d)=(3,4)", "(a,b)=(3,4),(c,d)=(1,2)"], ["AB=4,AB=5", "CD=4,CD=5", "4,5"],
    ["x=1,y=2 or x=3,y=4", "x=1,y=4 or x=3,y=2", "x=1,x=3,y=2,y=4"],
    ["x\\equiv1\\pmod{3}", "x\\equiv1\\pmod{4}", "x\\equiv2\\pmod{3}", "x\\equiv1\\pmod{13}"],
    ["x>0\\text{ or }y>0", "x>0, y>0"], ["eˣ", "ex"], ["xₙ", "xn", "x^n"], ["x³⁄₄", "\\frac{3x}{4}"], ["1，234", "1234"], ["①②", "12"], ["f is 3?", "F is 3?"], ["\\Delta?", "\\delta?"], ["A and C", "A or B", "AC"],
    ["is 1. 5", "is 1.5"], ["is 1, 234", "is 1,234"], ["x1 y2", "x1y2"], ["5 6", "56"], ["a bc 5?", "ab c 5?"],
    ["\\frac{1}{2}3 = 5 = 4", "\\frac{1}{23}=5=4", "\\frac{12}{3}=5=4"], ["x^{2}3=4=5", "x^{23}=4=5"],
]  # fmt: skip


@pytest.mark.parametrize("answers", SAME, ids=lambda answers: answers[1])
def test_spellings_share_a_key(answers: list[str]) -> None:
    assert {answer: key(answer) for answer in answers} == dict.fromkeys(answers, key(answers[0]))


@pytest.mark.parametrize("answers", DIFFERENT, ids=lambda answers: answers[0])
def test_what_differs_is_not_merged(answers: list[str]) -> None:
    merged = [pair for pair in itertools.combinations(answers, 2) if key(pair[0]) == key(pair[1])]
    assert merged == []


@pytest.mark.parametrize("answer", ["x2", "A1", "(1)3", "(2)3", "\\gcd(a,b)", "|"])
def test_what_has_two_readings_stays_text(answer: str) -> None:
    assert canonicalize(answer, DEFAULT).kind == "text"


def test_normalising_twice_changes_nothing() -> None:
    for answer in itertools.chain(*SAME, *DIFFERENT):
        assert normalize_text(normalize_text(answer)) == normalize_text(answer)


@pytest.mark.parametrize("answer", ["\\boxed{}", "\\fbox{ }", "\\phantom{5}"])
def test_what_shows_nothing_is_no_answer(answer: str) -> None:
    assert canonicalize(answer, DEFAULT).kind == "missing"


def test_policies_say_what_becomes_of_names_in_lists() -> None:
    dropped, kept = AnswerPolicy(assignment="dropped"), AnswerPolicy(assignment="kept")
    assert key("\\cos\\pi=-1, \\sin\\pi=0", dropped) == key("-1, 0", dropped)
    assert key("AB=4, AB=5", dropped) == key("4, 5", dropped)
    assert key("x=1, x=2", kept) != key("y=1, y=2", kept)
    assert key("B=C", dropped) == key("C", dropped)


MET = [
    ["x+2", "x+\\sqrt{4}", "x+\\frac{\\sqrt8}{\\sqrt2}", "x+\\sqrt2\\sqrt2", "x+\\log_2 4", "x+4\\sin\\frac{\\pi}{6}", "x+2e^0", "x+2!", "x-2i^2"],
    ["x^2-2", "(x+\\sqrt2)(x-\\sqrt2)", "x^2-\\sqrt4", "x^2-2\\sin^2 y-2\\cos^2 y"],
    ["y=2x", "y=\\sqrt4x", "y-\\sqrt2\\sqrt2x=0", "\\frac{y}{\\sqrt[3]{8}}=x"],
    ["xy<2", "xy<\\sqrt4", "\\sqrt2xy<\\sqrt8"],
    ["\\frac{x}{2}", "\\frac{x}{\\sqrt4}", "0.5x", "\\cos(60^\\circ)x", "4^{-1/2}x"],
    ["x^{2000}+2", "x^{2000}+\\sqrt4", "2+x^{1000}x^{1000}"],
    ["\\frac{1}{x-1}-\\frac{1}{x+1}", "\\frac{2}{x^2-1}", "\\frac{\\sqrt4}{(x-1)(x+1)}", "\\frac{\\sqrt8}{\\sqrt2(x^2-1)}"],
]  # fmt: skip
"""Expressions that are rational, and the same written with roots and functions."""


@pytest.mark.parametrize("answers", MET, ids=lambda answers: answers[0])
def test_exact_and_certified_values_have_one_key(answers: list[str]) -> None:
    assert {answer: key(answer) for answer in answers} == dict.fromkeys(answers, key(answers[0]))


# ---- exact values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "degree", "root"),
    [
        ("4", 2, Fraction(2)), ("8/27", 3, Fraction(2, 3)), ("-8", 3, Fraction(-2)), ("-4", 2, None), ("2", 2, None),
        ("0", 2, Fraction(0)), ("0", 3, Fraction(0)), ("-1", 5, Fraction(-1)), ("10^{200}", 2, Fraction(10**100)), ("10^{200}+1", 2, None), ("3^{64}", 64, Fraction(3)),
        ("3^{65}", 65, None), ("x^2", 2, None), ("4/0", 2, None), ("2^{10^9}", 2, None), ("1.44", 2, Fraction(6, 5)),
    ],
)  # fmt: skip
def test_roots_are_exact_or_none(inner: str, degree: int, root: Fraction | None) -> None:
    node = exact_root(parse(inner), ("q", degree, 1))
    assert node == (None if root is None else ("q", root.numerator, root.denominator))


def test_every_root_of_a_power_is_found() -> None:
    for degree in (2, 3, 4, 5, 7, 12):
        for base in (*range(1, 40), 10**18 + 9):
            power = ("q", base**degree, 1)
            assert exact_root(power, ("q", degree, 1)) == ("q", base, 1)
            assert exact_root(("q", base**degree + 1, 1), ("q", degree, 1)) is None
            assert exact_power(power, ("q", -1, degree)) == ("q", 1, base)


@pytest.mark.parametrize(
    ("digits", "base", "value"),
    [
        ("101", 2, 5), ("1A", 16, 26), ("zz", 36, 1295), ("102", 2, None), ("1", 1, None), ("1", 37, None),
        ("0.1", 2, Fraction(1, 2)), ("", 2, None), (".", 2, None), ("1" * 401, 2, None), ("²", 10, None),
    ],
)  # fmt: skip
def test_digits_in_a_base(digits: str, base: int, value: int | None) -> None:
    assert value_in_base(digits, base) == value


# ---- hostile strings --------------------------------------------------------------------------------

HOSTILE = [
    "\\color{red}{" * 80 + "5" + "}" * 80, "\\mathbf{" * 400, "\\textcolor{a}" * 300, "**a" * 1_300, "*" * 4_000, "`" * 4_000, '"' * 4_000,
    "{1 \\over " * 100 + "2" + "}" * 100, "1 \\over " * 100 + "2", "{a \\choose b}" * 60, "(x+1)2" * 160, "(" * 38 + "x+1" + ")2" * 38,
    "]0,1[" * 190, "[0,1[" * 190 + "[", "|x|<" * 200 + "1", "|" * 100 + "x" + "|" * 100 + "<1", "\\gcd(" + "9" * 290 + (",7" * 300) + ")",
    "\\operatorname{lcm}(" + ",".join(str(10**290 + n) for n in range(3)) + ")", "\\sqrt{" * 38 + "16" + "}" * 38, "\\sqrt[64]{" + "9" * 590 + "}",
    "n2^" * 300 + "n", "x=y=" * 240 + "4, z=2", "x=1,y=2," * 100, "a=" * 60 + "1," + "b=" * 60 + "2", "\\cos\\pi=-1," * 60, "1_{two}" * 140, "base " * 190,
    "\\text{base " * 90, "5^{\\text{th}}" * 70, "{:}" * 330, "=" * 999 + "5", "\\Rightarrow" * 90 + "5", "1 to " * 190 + "1", "\\equiv\\pmod" * 90,
    "\\equiv" + "(mod " * 190, "x^" * 490 + "{", "{1}" * 330, "\\frac1" * 160, ". 5" * 330, "<b>" * 1_300, "\\framebox{" * 16 + "5" + "}" * 16, "101_{" * 200,
    "9" * 990 + "^", "9" * 990 + "_", "1" + " " * 3_900 + "base !", "^" + " " * 3_900 + "x", "9" * 3_990 + "^",
]  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: ascii(answer[:20]))
def test_a_hostile_spelling_is_bounded(answer: str) -> None:
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        canonical = canonicalize(answer, DEFAULT)
        best = min(best, time.thread_time() - start)
    assert best < 0.5
    assert len(canonical.key) < 300
