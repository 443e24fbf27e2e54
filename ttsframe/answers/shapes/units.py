"""Words that follow a number: units to drop, multipliers to apply, words that change the meaning."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MULTIPLIERS", "UNITS", "is_unit_phrase"]

UNITS: Final = frozenset(
    """
    mm cm dm km m2 m3 cm2 cm3 km2 mi ft yd in sq cu ml cl dl kl mg cg dg kg gm gms lb lbs oz pt
    qt gal hr hrs h min mins sec secs ms yr yrs day days wk wks mo mph kph kmh kmph rpm mps fps
    hz khz mhz ghz pa kpa atm ev kev mev gev kj kw mw kwh mol rad rads deg degs mile miles ton
    tons usd rmb yuan dollar dollars cent cents euro euros pound pounds rs inr ppm db cal kcal
    year years month months week weeks hour hours minute minutes second seconds man men car cars
    cat cats dog dogs cup cups egg eggs box boxes pen pens toy toys hen hens cow cows ant ants
    bag bags ball boy boys girl girls way ways unit units inch inches foot feet yard yards meter
    meters metre metres square cubic degree degrees people person students ohm ohms volt volts
    watt watts newton newtons joule joules kelvin celsius fahrenheit
    """.split()  # noqa: SIM905 (a word list reads best as one)
)
"""Abbreviations and short words that are units even when they are not set as text."""

MULTIPLIERS: Final = {
    "dozen": 12,
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}

_CHANGES: Final = frozenset(
    """
    and or to times plus minus divided over am pm noon midnight percent percentage pct percents
    mod modulo base ratio squared cubed bc ad bce ce o'clock clock is are not no if when where
    with remainder infinity positive negative half halves third thirds quarter quarters fourth
    fourths fifth fifths sixth sixths tenth tenths hundredth hundredths except but than both
    each through between until from versus vs i e pi none undefined more less greater fewer
    least most at about approximately or/and factorial choose root sin cos tan log ln exp left
    right up down north south east west northeast northwest southeast southwest ago later before
    after early late increase decrease gain loss debt deficit above below under clockwise
    counterclockwise shorter longer ahead behind deep overdue
    """.split()  # noqa: SIM905 (a word list reads best as one)
) | frozenset(MULTIPLIERS)
_BRIEF: Final = UNITS | frozenset("msghNJWVAKL")
_PHRASE: Final = re.compile(r"[A-Za-z][A-Za-z.'/\- ]*(?:\^?\{?[23]\}?)?(?:/[A-Za-z]+)?")
_WORD: Final = re.compile(r"[A-Za-z']+")


def is_unit_phrase(phrase: str, *, as_text: bool) -> bool:
    """Tell whether words after a number only name what was counted.

    Parameters
    ----------
    phrase
        The words.
    as_text
        Whether they were set as text: then any word is one, also a single letter; bare letters in
        mathematics are symbols unless they are long enough, or known, as words.

    Returns
    -------
    bool
        Whether dropping them keeps the value.
    """
    if len(phrase) > 80 or not _PHRASE.fullmatch(phrase):
        return False
    folded = phrase.casefold()
    if folded.replace(".", "").replace(" ", "") in {"am", "pm"}:
        return False
    words = _WORD.findall(folded)
    if not words or any(word in _CHANGES for word in words):
        return False
    if as_text:
        return True
    if "/" in phrase:
        return all(word in _BRIEF for word in _WORD.findall(phrase))
    return (len(words[0]) > 3 or words[0] in UNITS) and all(
        len(word) > 1 or word in {"a", "s", "h", "m"} for word in words
    )
