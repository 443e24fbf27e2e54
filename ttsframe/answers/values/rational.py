"""Exact rational numbers, read without the parser: most answers are one."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from typing import Final

from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.words import MULTIPLIERS, is_unit_phrase

__all__ = [
    "LARGEST_EXPONENT",
    "percent_value",
    "rational_key",
    "read_plain",
    "read_rational",
    "unit_after_number",
]

LARGEST_EXPONENT: Final = 5_000
"""Largest exponent of ten in scientific notation; the parser reads larger ones."""

LONGEST_NUMBER: Final = 3_000
"""Longer texts are not read as numbers; Python reads at most 4,300 digits."""

_PLAIN: Final = re.compile(r"-?(?:[1-9][0-9]{0,17}|0)")
_UNSIGNED: Final = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+"
_ARGUMENT: Final = (
    r"(?:\{\s*(?P<%s>[+-]?\s*(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))\s*\}|\s*(?P<%s>[0-9]))"
)
_FRACTION: Final = (
    r"\\frac\s*" + _ARGUMENT % ("top", "top_digit") + r"\s*" + _ARGUMENT % ("low", "low_digit")
)
_NUMBER: Final = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<currency>(?:\\?\$|[£€¥])?)\s*(?P<inner_sign>-?)\s*"
    rf"(?:(?:(?P<whole>[0-9]+)\s*)?{_FRACTION}"
    rf"|(?P<whole_slash>[0-9]+)(?:\s+|-)(?P<top_slash>[0-9]+)\s*/\s*(?P<low_slash>[0-9]+)"
    rf"|(?P<repeat>[0-9]*\.[0-9]*)(?:\\(?:overline|bar|dot)\s*\{{\s*(?P<cycle>[0-9]+)\s*\}}|\((?P<cycle_round>[0-9]+)\)"
    rf"|\\(?:overline|bar|dot)\s*(?P<cycle_digit>[0-9]))"
    rf"|(?P<number>{_UNSIGNED})"
    rf"(?:\s*/\s*(?P<over>{_UNSIGNED})"
    rf"|[eE](?P<e>[+-]?[0-9]{{1,6}})"
    rf"|\s*(?:\\times|\\cdot|\*|x|X)\s*10\s*\^\s*(?:\{{\s*(?P<ten>[+-]?\s*[0-9]{{1,6}})\s*\}}|(?P<ten_bare>[+-]?[0-9]{{1,6}})))?)"
    rf"\s*(?P<rest>.*)",
    re.DOTALL,
)
_STARTS: Final = frozenset("0123456789.+-\\ $£€¥\t\n\r\f\v")
"""First characters of a number; a backslash begins a fraction or a dollar sign."""
_STARTS_OF_REST: Final = frozenset("%^$£€¥")
"""First characters of what may follow a number: percent sign, degree sign, currency; and letters and commands."""
_COMMANDS_OF_REST: Final = ("\\text", "\\%", "\\$")
_NOT_IN_UNITS: Final = re.compile(r"[\\+=<>(*,]")
_PERCENT: Final = re.compile(
    r"(?:\\?%|\\text\s*\{\s*\\?%\s*\}|(?:\\text\s*\{)?\s*(?:percentage(?: points?)?|percents?|per cent|pct)\.?\s*\}?)",
    re.IGNORECASE,
)
_DEGREE: Final = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\}|o\b)\s*(?P<rest>.*)", re.DOTALL)
_TEXT: Final = re.compile(
    r"\\text\s*\{(?P<text>[^{}]*)\}\s*(?:\^\s*(?:\{\s*[234]\s*\}|[234]))?(?P<rest>.*)", re.DOTALL
)
_PER_TEXT: Final = re.compile(
    r"(?:/|-|\\cdot)?\s*\\text\s*\{(?P<text>[^{}]*)\}\s*(?:\^\s*(?:\{\s*-?[1234]\s*\}|[1234]))?(?P<rest>.*)",
    re.DOTALL,
)
_MULTIPLIER: Final = re.compile(rf"\b(?:{'|'.join(MULTIPLIERS)})\b", re.IGNORECASE)
_NO_UNIT: Final = re.compile(
    rf"(?:{_PERCENT.pattern}|st|nd|rd|th|\s*(?:\\text\s*\{{)?\s*(?:{'|'.join(MULTIPLIERS)})\s*\}}?)?",
    re.IGNORECASE,
)
_BARE_UNITS: Final = frozenset("mgshLNJWV")
"""Letters that are units after a plain number and a space; in `5m` and in math mode they are factors."""
_CURRENCY: Final = re.compile(r"\\?\$|[£€¥]")
_ORDINAL: Final = re.compile(r"(?:st|nd|rd|th)")
_DECIMAL_COMMA: Final = {
    "accepted": re.compile(r"[+-]?\s*(?:[0-9]+,[0-9]{1,2}|[0-9]+,[0-9]{4,}|0,[0-9]+)"),
    # These commas separate neither thousands nor a list as people write it.
    "plain": re.compile(r"[+-]?\s*(?:0,[0-9]{3,}|[0-9]{4,},[0-9]{2})"),
}
_SPACED_THOUSANDS: Final = re.compile(r"(?<![0-9.])([0-9]{1,3})((?: [0-9]{3})+)(?![0-9])")


def read_plain(text: str) -> str | None:
    """Return the key of a plain integer without leading zeros, else None."""
    return text if _PLAIN.fullmatch(text) and text != "-0" else None


def rational_key(numerator: int, denominator: int) -> str:
    """Return the key of a reduced fraction: the fraction if it is short, else a digest."""
    if numerator.bit_length() + denominator.bit_length() < 150:
        return str(numerator) if denominator == 1 else f"{numerator}/{denominator}"
    digest = blake2b(f"{numerator:x}/{denominator:x}".encode(), digest_size=16).hexdigest()
    return f"#{digest}"


def percent_value(value: Fraction, policy: AnswerPolicy) -> Fraction:
    """Convert a percentage as the policy says; the caller handles `kept`."""
    return value / 100 if policy.percent == "fraction" else value


def read_rational(text: str, policy: AnswerPolicy) -> tuple[Fraction, bool] | None:
    """Return a rational number, perhaps with a unit, and whether it is a percentage kept apart."""
    first = text[:1]
    if first not in _STARTS or len(text) > LONGEST_NUMBER:
        return None
    if first == "\\" and not text.startswith(("\\frac", "\\$")):
        return None
    if _PLAIN.fullmatch(text):
        return Fraction(int(text)), False
    commas = _DECIMAL_COMMA.get(policy.decimal_comma) if "," in text else None
    if commas is not None and commas.fullmatch(text):
        text = text.replace(",", ".")
    if " " in text:
        text = _SPACED_THOUSANDS.sub(_join_thousands, text)
    match = _NUMBER.match(text)
    if match is None:
        return None
    rest = match["rest"]
    if rest and not _may_follow(rest, text[match.start("rest") - 1]):
        return None
    value = _matched_value(match)
    if value is None:
        return None
    if match["inner_sign"] and (match["sign"] or not match["currency"]):
        return None
    if match["sign"] == "-" or match["inner_sign"]:
        value = -value
    if policy.units == "kept" and (match["currency"] or (rest and not _NO_UNIT.fullmatch(rest))):
        return None
    if rest in _BARE_UNITS and text[match.start("rest") - 1] == " " and "\\" not in text:
        return value, False
    return _with_rest(value, rest, policy) if rest else (value, False)


def unit_after_number(text: str, policy: AnswerPolicy) -> tuple[str, str] | None:
    """Split a rational number from the currency before it and the unit after it, or return None."""
    if read_rational(text, replace(policy, units="dropped")) is None:
        return None
    text = _SPACED_THOUSANDS.sub(_join_thousands, text)
    match = _NUMBER.match(text)
    if match is None:
        return None
    currency, rest = match["currency"], match["rest"]
    if _NO_UNIT.fullmatch(rest):
        unit, end, scale = currency, len(text), None
    else:
        unit, end, scale = f"{currency} {rest}", match.start("rest"), _MULTIPLIER.search(rest)
    number = match["sign"] + match["inner_sign"] + text[match.end("inner_sign") : end].strip()
    return (f"{number} {scale[0]}" if scale else number), unit


def _may_follow(rest: str, before: str) -> bool:
    """Tell at a glance whether a text after a number may be its unit."""
    if rest[0].isalpha():
        return before != "." and _NOT_IN_UNITS.search(rest) is None
    if rest[0] == "\\":
        return rest.startswith(_COMMANDS_OF_REST)
    return rest[0] in _STARTS_OF_REST


def _join_thousands(match: re.Match[str]) -> str:
    return match[1] + match[2].replace(" ", "")


def _matched_value(match: re.Match[str]) -> Fraction | None:
    top = match["top"] or match["top_digit"]
    if top is not None:
        low = match["low"] or match["low_digit"]
        return _mixed(match["whole"], top.replace(" ", ""), low.replace(" ", ""))
    if match["top_slash"] is not None:
        return _mixed(match["whole_slash"], match["top_slash"], match["low_slash"])
    if match["repeat"] is not None:
        cycle = match["cycle"] or match["cycle_round"] or match["cycle_digit"]
        head, _, tail = match["repeat"].partition(".")
        whole = Fraction(int(head + tail or "0"), 10 ** len(tail))
        return whole + Fraction(int(cycle), (10 ** len(cycle) - 1) * 10 ** len(tail))
    number = match["number"].replace(",", "")
    if number == ".":
        return None
    if match["over"] is not None:
        low_value = Fraction(match["over"].replace(",", ""))
        return Fraction(number) / low_value if low_value else None
    power = match["e"] or match["ten"] or match["ten_bare"]
    if power is not None:
        exponent = int(power.replace(" ", ""))
        if abs(exponent) > LARGEST_EXPONENT:
            return None
        return Fraction(number) * Fraction(10) ** exponent
    return Fraction(int(number)) if number.isdigit() else Fraction(number)


def _mixed(whole: str | None, top: str, low: str) -> Fraction | None:
    if top.isdigit() and low.isdigit():
        value = Fraction(int(top), int(low)) if int(low) else None
    else:
        value = Fraction(top) / Fraction(low) if Fraction(low) else None
    if value is None:
        return None
    if whole is None:
        return value
    # 2\frac{3}{2} may be a product or a mixed number.
    if not (0 <= value < 1 and value.denominator > 0 and top.isdigit() and low.isdigit()):
        return None
    return int(whole) + value


def _with_rest(value: Fraction, rest: str, policy: AnswerPolicy) -> tuple[Fraction, bool] | None:
    """Apply or drop the text after the number."""
    if _PERCENT.fullmatch(rest):
        return percent_value(value, policy), policy.percent == "kept"
    degree = _DEGREE.fullmatch(rest)
    if degree:
        rest = degree["rest"].strip()
        if not rest or rest in {"C", "F"}:
            return value, False
    if _CURRENCY.fullmatch(rest) or (value.denominator == 1 and _ORDINAL.fullmatch(rest)):
        return value, False
    folded = rest.casefold()
    if folded in MULTIPLIERS:
        return value * MULTIPLIERS[folded], False
    first, _, more = folded.partition(" ")
    if first in MULTIPLIERS and is_unit_phrase(more, as_text=False):
        return value * MULTIPLIERS[first], False
    text = _TEXT.fullmatch(rest)
    if text is None:
        return (value, False) if is_unit_phrase(rest, as_text=False) else None
    word = text["text"].strip().casefold()
    first, _, more = word.partition(" ")
    if first in MULTIPLIERS:
        value *= MULTIPLIERS[first]
        word = more.strip()
    if word and not (is_unit_phrase(word, as_text=True) or _CURRENCY.fullmatch(word)):
        return None
    rest = text["rest"].strip()
    while rest:
        text = _PER_TEXT.fullmatch(rest)
        if text is None:
            return None
        if text["text"].strip() and not is_unit_phrase(text["text"].strip(), as_text=True):
            return None
        rest = text["rest"].strip()
    return value, False
