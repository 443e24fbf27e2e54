r"""search-and-learn's choice of answers, replayed in plain Python with its own rules.

What its modules `qwen_math_parser` and `math` do to a string and to a vote, written out again from
a reading of them (huggingface/search-and-learn, `src/sal/utils`), faults included: an empty answer
votes, a text without a box gives its last number, units are cut out by name, and answers are
grouped by ``latex(simplify(latex2sympy(answer)))`` or, where that fails, by the cut string. The
groups are the caller's, so that a vote can also be replayed with somebody else's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Sequence

# Cut out in this order; a point stands for any character, as it does there.
_UNITS = re.split(
    r",\s*",
    """east, degree, mph, kmph, ft, m sqaure, m east, sq m, deg, mile, q ., monkey, prime, ratio,
    profit of rs, rd, o, gm, p . m, lb, tile, per, dm, lt, gain, ab, way, west, a ., b ., c ., d .,
    e ., f ., g ., h ., t, a, h, no change, men, soldier, pie, bc, excess, st, inches, noon, percent,
    by, gal, kmh, c, acre, rise, a . m, th, sq, mark, l, toy, coin, sq . m, gallon, ° f, profit, minw,
    yr, women, feet, am, pm, hr, cu cm, square, are, rupee, rounds, cubic, cc, mtr, s, ohm, number,
    day, hour, minute, min, second, man, woman, sec, cube, mt, sq inch, mp, hectare, more, unit,
    cu . m, cm 2, rs ., rs, kg, g, month, km, m, cm, mm, apple, liter, loss, yard, pure, year,
    increase, decrease, d, less, Surface, litre, pi sq m, s ., metre, meter, inch""",
)
_UNIT_PATTERNS = [
    re.compile(rf"(^|\W){unit}($|\W)") for unit in [*_UNITS, *(unit + "s" for unit in _UNITS)]
]
_NUMBERS = "zero,one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve"
_DIGITS_OF_WORDS = {
    "point": "0",
    **{word: str(number) for number, word in enumerate(_NUMBERS.split(","))},
}
_DROPPED = ("x=", "y=", "z=", *(rf"{name}\{mark}" for mark in ("in", "to") for name in "xyz"))


@functools.cache
def extract(completion: str) -> str:
    """Return the answer of a text as search-and-learn reads it; "" where it finds none."""
    text = completion.replace("ки", "")
    if "final answer is $" in text and "$. I hope" in text:
        found = text.split("final answer is $", 1)[1].split("$. I hope", 1)[0].strip()
    elif "boxed" in text:
        found = _boxed(text.rsplit("boxed", 1)[1])
        if found is None:
            return ""
    elif "he answer is" in text:
        found = text.rsplit("he answer is", 1)[1].strip()
    elif "final answer is" in text:
        found = text.rsplit("final answer is", 1)[1].strip()
    else:
        numbers = re.findall(r"-?\d*\.?\d+", text.replace(",", ""))
        found = numbers[-1] if numbers else ""
    found = re.sub(r"\n\s*", "", found).removeprefix(":").removesuffix(".").removesuffix("/")
    return strip(found)


def _boxed(rest: str) -> str | None:
    """Return what stands in the box that opens here, up to the end where it never closes."""
    if not rest:
        return None
    if not rest.startswith("{"):
        return rest.split("$", maxsplit=1)[0].strip()
    depth = 0
    for position, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:position]
    return rest[1:]


@functools.cache
def strip(answer: str) -> str:
    """Return an answer cut down as search-and-learn cuts it before it compares."""
    text = answer.strip().replace("\n", "").rstrip(".").replace("\\!", "")
    text = re.sub(r"\\begin\{array\}\{.*?\}", r"\\begin{pmatrix}", text)
    for old, new in (
        (r"\end{array}", r"\end{pmatrix}"),
        ("bmatrix", "pmatrix"),
        ("tfrac", "frac"),
        ("dfrac", "frac"),
        (r"\neq", r"\ne"),
        (r"\leq", r"\le"),
        (r"\geq", r"\ge"),
        (r"\left", ""),
        (r"\right", ""),
        (r"\{", "{"),
        (r"\}", "}"),
    ):
        text = text.replace(old, new)
    text = re.sub(r"\\text{.*?}$", "", text).strip() or text
    for pattern in _UNIT_PATTERNS * 2:
        text = pattern.sub(r"\1\2", text) or text
    for mark in (r"^{\circ}", r"^\circ", r"\$", "$", r"\(", r"\)"):
        text = text.replace(mark, "")
    text = str(int(text)) if text.isdecimal() else _DIGITS_OF_WORDS.get(text.strip().lower(), text)
    text = re.sub(r"\\text\{(.*?)\}", r"\1", text)
    for mark in _DROPPED:
        text = text.replace(mark, "")
    for old, new in (
        (r"\emptyset", "{}"),
        (r"(-\infty,\infty)", r"\mathbb{R}"),
        (r"\%", ""),
        ("%", ""),
        (" .", " 0."),
        ("{.", "{0."),
        ("infinity", r"\infty"),
    ):
        text = text.replace(old, new)
    if r"\infty" not in text:
        text = text.replace("inf", r"\infty")
    text = re.sub(r"\\mbox{.*?}", "", text.replace("and", "").replace(r"\mathbf", ""))
    if "i" not in text:
        text = text.replace("j", "i")
    text = re.sub(r"(\d+)\.0*(?=\D|$)", r"\1", text)
    if text.startswith("."):
        text = "0" + text
    name, *values = text.split("=")
    if len(values) == 1 and len(name) <= 2:
        text = values[0]
    text = re.sub(r"\\sqrt(\w+)", r"\\sqrt{\1}", text).replace(" ", "")
    return _with_fraction(_with_braces(text))


def _with_braces(text: str) -> str:
    r"""Write ``\frac12`` and ``\frac1{2}`` with both pairs of braces."""
    first, *others = text.split(r"\frac")
    pieces = [first]
    for piece in others:
        if piece.startswith("{"):
            pieces.append(piece)
        elif len(piece) < 2:
            return text
        else:
            below = piece[1:] if piece[1] == "{" else f"{{{piece[1]}}}{piece[2:]}"
            pieces.append(f"{{{piece[0]}}}{below}")
    return r"\frac".join(pieces)


def _with_fraction(text: str) -> str:
    r"""Write ``a/b`` of two integers or roots as ``\frac{a}{b}``."""
    above, *below = text.split("/")
    is_simple = len(below) == 1 and all(
        "sqrt" in part or re.fullmatch(r"0|-?[1-9]\d*", part) for part in (above, *below)
    )
    return rf"\frac{{{above}}}{{{below[0]}}}" if is_simple else text


def picks(
    groups: Sequence[Hashable], scores: Sequence[float], budget: int
) -> dict[str, int | None]:
    """Return which of the first `budget` attempts stands for each method's pick.

    An attempt of group None casts no vote, which never happens in search-and-learn itself, where
    "" is an answer like others.
    """
    within = groups[:budget]
    # Lists of unequal length are cut to the shorter one; of equal scores the first one wins.
    pairs = list(zip(range(len(within)), scores, strict=False))
    votes: dict[Hashable, int] = {}
    weights: dict[Hashable, float] = {}
    first: dict[Hashable, int] = {}
    for attempt, group in enumerate(within):
        if group is not None:
            votes[group] = votes.get(group, 0) + 1
            first.setdefault(group, attempt)
    for attempt, score in pairs:
        if (group := within[attempt]) is not None:
            weights[group] = weights.get(group, 0.0) + score
    return {
        "naive": max(pairs, key=lambda pair: pair[1])[0],
        "weighted": first[max(weights, key=lambda group: weights[group])] if weights else None,
        "maj": first[max(votes, key=lambda group: votes[group])] if votes else None,
    }
