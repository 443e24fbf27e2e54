"""Units as part of an answer, for the policy that keeps them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.words import MULTIPLIERS, strip_units
from ttsframe.answers.values.rational import unit_after_number

__all__ = ["Quantity", "split_quantity"]

_SYNONYMS: Final = {
    synonym: name
    for name, synonyms in {
        "m": "meter meters metre metres", "cm": "centimeter centimeters centimetre centimetres",
        "mm": "millimeter millimeters millimetre millimetres", "km": "kilometer kilometers kilometre kilometres",
        "in": "inch inches", "ft": "foot feet", "yd": "yard yards yds", "mi": "mile miles",
        "g": "gram grams gm gms", "kg": "kilogram kilograms kgs kilo kilos", "mg": "milligram milligrams",
        "lb": "pound-mass lbs", "oz": "ounce ounces", "t": "ton tons tonne tonnes",
        "L": "liter liters litre litres l", "mL": "milliliter milliliters millilitre millilitres ml",
        "s": "second seconds sec secs", "min": "minute minutes mins", "h": "hour hours hr hrs",
        "d": "day days", "wk": "week weeks wks", "mo": "month months", "yr": "year years yrs",
        "USD": "dollar dollars usd $", "cent": "cents ¢", "EUR": "euro euros eur €", "GBP": "£ gbp",
        "JPY": "¥ yen jpy", "INR": "rs inr rupee rupees", "N": "newton newtons", "J": "joule joules",
        "W": "watt watts", "kW": "kilowatt kilowatts kw", "V": "volt volts", "K": "kelvin kelvins",
        "A": "ampere amperes amp amps", "Hz": "hertz hz", "ohm": "ohms Ω", "person": "people persons",
        "man": "men", "degree": "degrees deg degs", "radian": "radians rad rads",
    }.items()
    for synonym in synonyms.split()
}  # fmt: skip
_RATES: Final = {"mph": ["mi", "/", "h"], "kph": ["km", "/", "h"], "kmh": ["km", "/", "h"],
                 "kmph": ["km", "/", "h"], "mps": ["m", "/", "s"], "fps": ["ft", "/", "s"]}  # fmt: skip
_SCALES: Final = {"c": "C", "celsius": "C", "f": "F", "fahrenheit": "F"}
_POWERS: Final = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_CURRENCY: Final = re.compile(r"(?P<sign>-?)\s*(?P<currency>\\?\$|[£€¥])\s*")
_DEGREES: Final = re.compile(
    r"\s*\^\s*(?:\\circ|\{\s*\\circ\s*\})\s*(?:[CFK]|\\text\s*\{\s*[CFK]\s*\})?$"
)
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_TOKEN: Final = re.compile(r"[^\W\d_]+|[$£€¥¢/]|-?[0-9]+")


class Quantity(NamedTuple):
    """An answer without its unit, and the one spelling of the unit."""

    number: str
    unit: str


def split_quantity(text: str, policy: AnswerPolicy) -> Quantity | None:
    """Split a number or an expression from its unit, or return None where it has none."""
    found = unit_after_number(text, policy)
    if found is not None:
        number, raw = found
    else:
        currency = _CURRENCY.match(text)
        number = text if currency is None else currency["sign"] + text[currency.end() :]
        degrees = _DEGREES.search(number)
        head = number[: degrees.start()] if degrees else strip_units(number)
        raw = (currency["currency"] if currency else "") + " " + number[len(head) :]
        number = head.strip()
    unit = _spell(raw)
    return Quantity(number, unit) if unit and number and number != text else None


def _spell(raw: str) -> str:
    """Return the one spelling of a unit; names that are not known lose their plural."""
    text = _TEXT.sub(r" \1 ", raw).replace("\\circ", " degree ").replace(".", "")
    parts: list[str] = []
    power = ""
    for token in _TOKEN.findall(text):
        word = token.casefold()
        if word in MULTIPLIERS or word in {"of", "a", "an"}:
            continue
        if word in _POWERS:
            power = _POWERS[word]
        elif word in {"per", "/"}:
            parts.append("/")
        elif word in _RATES:
            parts += _RATES[word]
        elif word in _SCALES and (parts[-1:] == ["degree"] or len(word) > 1):
            parts[-1:] = [*(part for part in parts[-1:] if part != "degree"), "deg" + _SCALES[word]]
        elif token.lstrip("-").isdigit():
            parts.append("^" + token)
        else:
            parts.append(_SYNONYMS.get(token) or _SYNONYMS.get(word) or _singular(token))
            if power:
                parts.append("^" + power)
                power = ""
    return "".join(
        part if index == 0 or part[0] in "/^" or parts[index - 1] == "/" else " " + part
        for index, part in enumerate(parts)
    )


def _singular(word: str) -> str:
    """Return a name without its plural; short names are symbols, whose case counts."""
    if len(word) <= 3:
        return word
    word = word.casefold()
    for ending, singular in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):  # fmt: skip
        if word.endswith(ending):
            return word.removesuffix(ending) + singular
    return word if word.endswith("ss") else word.removesuffix("s")
