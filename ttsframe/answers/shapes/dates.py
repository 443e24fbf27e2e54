"""Dates and times of day: never divided, subtracted or reduced like ratios."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date
from typing import Final

__all__ = ["looks_like_date", "read_date", "read_time"]

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_BEGINNINGS: Final = frozenset(name[:3] for name in (*_MONTHS, *_DAYS, "the"))
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY: Final = (
    r"(?:(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b\.?,?\s+)?"
)
_DAY: Final = r"(?P<day>[0-9]{1,2})(?:\s*(?:st|nd|rd|th|\^\s*\{\s*(?:st|nd|rd|th)\s*\}))?"
_YEAR: Final = r"(?P<year>[12][0-9]{3})"
_CLOCK: Final = (
    r"(?:(?:\s+|T)(?P<clock>[0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?)"
    r"\s*(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_YEAR_FIRST: Final = re.compile(
    rf"{_YEAR}(?P<sign>[-/.])(?P<month>[0-9]{{1,2}})(?P=sign)(?P<day>[0-9]{{1,2}}){_CLOCK}"
)
_YEAR_LAST: Final = re.compile(
    r"(?P<first>[0-9]{1,2})(?P<sign>\s?/\s?|[-.])(?P<second>[0-9]{1,2})(?P=sign)(?P<year>[0-9]{4}|[0-9]{2})"
)
_MONTH_FIRST: Final = re.compile(
    rf"{_WEEKDAY}{_MONTH}[\s-]*(?:the\s+)?{_DAY}(?:\s*[,\s-]\s*(?:of\s+)?{_YEAR})?", re.IGNORECASE
)
_DAY_FIRST: Final = re.compile(
    rf"{_WEEKDAY}(?:the\s+)?{_DAY}[\s/-]*(?:(?:day\s+)?of\s+)?{_MONTH}(?:\s*[,\s/-]\s*{_YEAR})?", re.IGNORECASE
)  # fmt: skip
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_WITH_YEAR: Final = re.compile(r"[0-9]{1,2}([-.])[0-9]{1,2}\1[0-9]{4}")
_CHAIN: Final = re.compile(r"-?\s*\w+(?:\.\w+)?(?:\s*/\s*\w+(?:\.\w+)?){2,}")
_LONGEST: Final = 60


def read_date(text: str, *, needs_year: bool) -> str | None:
    """Return the body of the key of a date, or None."""
    if len(text) > _LONGEST:
        return None
    if "\\text" in text:
        text = " ".join(_TEXT.sub(r" \1 ", text).split())
    is_number_first = text[:1].isdigit()
    if not is_number_first and text[:3].casefold() not in _BEGINNINGS:
        return None
    if is_number_first:
        match = _YEAR_FIRST.fullmatch(text)
        if match is not None:
            return _with_clock(_known(match["year"], int(match["month"]), match["day"]), match)
        match = _YEAR_LAST.fullmatch(text)
        if match is not None:
            return _numbers(match)
    match = _MONTH_FIRST.fullmatch(text) or _DAY_FIRST.fullmatch(text)
    if match is None or (match["year"] is None and (needs_year or match["weekday"])):
        return None
    name = match["month"][:3].casefold()
    month = 1 + next(at for at, full in enumerate(_MONTHS) if full.startswith(name))
    body = _known(match["year"], month, match["day"])
    if body is None or match["weekday"] is None:
        return body
    day = date(int(match["year"]), month, int(match["day"]))
    is_right = _DAYS[day.weekday()].startswith(match["weekday"][:3].casefold())
    return body if is_right else None


def _known(year: str | None, month: int, day: str) -> str | None:
    """Return the body of a date whose day and month are certain, or None where there is no such day."""
    number = int(day)
    if not 1 <= month <= 12 or not 1 <= number <= monthrange(int(year or "2000"), month)[1]:
        return None
    return f"D{year or ''}-{month:02}-{number:02}"


def _numbers(match: re.Match[str]) -> str | None:
    """Read 5/18/2019; where day and month are not certain, the numbers stay in their order."""
    first, second = int(match["first"]), int(match["second"])
    year, sign = match["year"], match["sign"].strip()
    if len(year) == 4:
        if second > 12 or first == second:
            return _known(year, first, match["second"])
        if first > 12:
            return _known(year, second, match["first"])
    elif sign != "/":
        # 10-5-20 is a difference, and 1.2.03 a version.
        return None
    if not (1 <= first <= 31 and 1 <= second <= 31 and min(first, second) <= 12):
        return None
    return f"D{first}{sign}{second}{sign}{year}"


def _with_clock(body: str | None, match: re.Match[str]) -> str | None:
    """Add the time of day, unless it is midnight, at which columns of times hold dates."""
    clock = match["clock"]
    if body is None or clock is None or not clock.strip("0:."):
        return body
    if "." in clock:
        clock = clock.rstrip("0").removesuffix(".")
    return f"{body}T{clock.removesuffix(':00') if clock.count(':') == 2 else clock}{match['zone'] or ''}"


def looks_like_date(text: str) -> bool:
    r"""Tell whether a text such as 1/2/3 or 2019-02-31 is no fraction or difference, unlike \frac{1}{2}/3."""
    if text.count("/") > 1 and _CHAIN.fullmatch(text):
        return True
    return _YEAR_FIRST.fullmatch(text) is not None or _WITH_YEAR.fullmatch(text) is not None


_TIME: Final = re.compile(
    r"(?P<hour>[0-9]{1,2})(?:\s*:\s*(?P<minute>[0-5][0-9]))?(?::(?P<second>[0-5][0-9]))?\s*"
    r"(?:\\text\s*\{\s*)?(?P<half>[aApP]\.?\s?[mM]\.?)?\s*\}?"
)


def read_time(text: str) -> str | None:
    """Return the body of the key of a time of day, or None."""
    # Hours from 1 to 12 without am or pm may be either, so they are a time of their own.
    if not text[0].isdigit():
        return None
    match = _TIME.fullmatch(text)
    if match is None or (match["minute"] is None and match["half"] is None):
        return None
    hour, half = int(match["hour"]), (match["half"] or "")[:1].casefold()
    if hour > (12 if half else 24) or (half and not hour):
        return None
    if half == "p" and hour < 12:
        hour, half = hour + 12, ""
    elif half == "a" and hour == 12:
        hour, half = 0, ""
    second = f":{match['second']}" if match["second"] else ""
    return f"T{hour}:{match['minute'] or '00'}{second}{half and half + 'm'}"
