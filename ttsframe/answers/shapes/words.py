"""Answers in words, and the words after a number: units and multipliers."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from ttsframe.answers.latex.tokens import GREEK, LETTER_RUNS
from ttsframe.answers.policy import AnswerPolicy

_STATED_ONE: Final = r"[A-Za-z](?:_\{?[A-Za-z0-9]+\}?)? is (?:[-+*/^(){}0-9. ]|\\(?:frac|sqrt|pi)(?![A-Za-z]))*[0-9)}]"
STATED: Final = re.compile(rf"{_STATED_ONE}(?:(?:,| and|, and) {_STATED_ONE})*")
"""Values in words, such as x is 5 and y is 6."""

__all__ = [
    "MULTIPLIERS",
    "chemical_formula",
    "is_unit_phrase",
    "read_words",
    "strip_units",
    "text_key",
    "unwrap_text",
]

_LONGEST_KEY: Final = 60
LONGEST_TEXT: Final = 4_000
"""Longer texts keep their spaces: work on them must be bounded."""
# Patterns that begin with a fixed character are found faster than those that look behind first.
_MODULUS: Final = re.compile(
    r"\(?\s*(?:\\(?:pmod|bmod|mod)(?![A-Za-z])|\\text\s*\{\s*\(?\s*mod\s*\}|(?<![A-Za-z\\])mod(?![A-Za-z]))"
    r"\s*(?:\{\s*([0-9A-Za-z]+)\s*\}|([0-9A-Za-z]+))\s*\)?"
)
_CAPITALIZED: Final = re.compile(r"(?<![A-Za-z\\])[A-Z][a-z]{2,}(?![A-Za-z])")
_NEEDLESS_SPACE: Final = re.compile(
    r" (?:(?![0-9A-Za-z])|(?<![0-9A-Za-z.,:] )|(?<=[.,:] )(?:(?![0-9])|(?<![0-9][.,:] )))"
)
"""A space that separates neither two words nor two numbers."""
_SPACE_AFTER_COMMAND: Final = re.compile(r"(\\[A-Za-z]+) (?=[0-9])")
_FRACTION: Final = re.compile(r"\\frac(?:(\{[^{}]*\})|([0-9])) ?(?:([0-9])|(?=\{))")
_CONDITION: Final = re.compile(r",?\s*&\s*(?:\\text\s*\{\s*(?:if|for|when)\s*\})?")
_BARE_ARGUMENT: Final = re.compile(
    r"(\\(?:sqrt|pmod|mathbb)(?![A-Za-z])|\^(?<!\\\^)|_(?<!\\_)) ?([0-9]+|[A-Za-z](?![A-Za-z])|\\[A-Za-z]+)"
)
_NEEDLESS_BRACES: Final = re.compile(
    r"\{(?<![0-9A-Za-z}\]\\^_]\{) ?([0-9]+|[A-Za-z]) ?\}(?![0-9A-Za-z])"
)
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_WHOLE_TEXT: Final = re.compile(r"\\text\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_MINUS: Final = re.compile(r" - |[\s(]-(?=[^\W\d_])")
_CASED: Final = re.compile(r"[a-z][A-Z]|^(?:([A-HJ-Za-hj-z])(?i:\1))+$")
"""Words in which case counts: AaBb, NaCl, aa."""
_ONLY_WORDS: Final = re.compile(r"(?:[^\W\d_]|[\s,;:.!?&\"'()/-])*")
_SHORT_WORDS: Final = frozenset(
    """
    am an as at be by do go he hi if in is it me my no of oh ok on or so to up us we pm dx dy dt
    iv vi ii xi ix ab
    """.split()  # noqa: SIM905 (a word list reads best as one)
) - {"ab"}
_SYMBOL_RUN: Final = re.compile(r"[a-z]{2}|[bcdfghjklmnpqrstvwxyz]*[xyz][bcdfghjklmnpqrstvwxyz]*")
_TRAILING_UNIT: Final = re.compile(
    r"\s*(?:/|\\cdot|(?<=\})\s*-)?\s*\\text\s*\{(?P<text>[^{}]*)\}\s*(?:\^\s*(?:\{\s*-?[1234]\s*\}|[1234]))?\s*$"
)
_TRAILING_WORD: Final = re.compile(
    r"(?<=[\s})\]0-9])\s*(?P<word>[a-z]{2,}(?: [a-z]{2,})*)\.?(?:\s*\^\s*(?:\{\s*[23]\s*\}|[23]))?$"
)
_WORDS_FOR: Final = {
    "all real numbers": "(-oo;oo)",
    "all reals": "(-oo;oo)",
    "the set of all real numbers": "(-oo;oo)",
    "empty set": "{}",
    "the empty set": "{}",
    "infinity": "oo",
    "inf": "oo",
    "positive infinity": "oo",
    "negative infinity": "-oo",
    "minus infinity": "-oo",
}
_SAME_WORDS: Final = (
    (re.compile(r"(?:there (?:is|are) )?no (?P<kind>(?:real |integer )?)solutions?"), r"no \g<kind>solution"),
    (re.compile(r"(?:(?:the )?limit |it )?(?:does not exist|doesn't exist|dne)"), "does not exist"),
    (re.compile(r"(?:there are )?(?:infinitely many|(?:an )?infinite number of|infinite)(?: solutions)?(?<!infinite)"), "infinitely many solutions"),
)  # fmt: skip
"""Sentences that say the same, and how their key says it."""
_ELEMENTS: Final = "H|He|Li|Be|B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|Ar|K|Ca|Ti|Cr|Mn|Fe|Co|Ni|Cu|Zn|As|Br|Ag|Sn|I|Ba|Pt|Au|Hg|Pb"
_ATOMS: Final = (
    rf"(?:{'|'.join(sorted(_ELEMENTS.split('|'), key=len, reverse=True))})(?:[2-9]|[1-9][0-9])?"
)
_FORMULA: Final = re.compile(rf"(?:{_ATOMS}|\((?:{_ATOMS})+\)[2-9])+")
_LETTERS_OF_FORMULA: Final = re.compile(r"[HO]|[A-Z][a-z]")
"""Formulas without these, such as P_2V_2, may be products."""
_SUBSCRIPT: Final = re.compile(r"_\s*(?:\{\s*([0-9]+)\s*\}|([0-9]+))\s*")
_UPRIGHT: Final = re.compile(r"\\text\s*\{([A-Za-z()0-9 _]*)\}\s*")
_UPRIGHT_SYMBOLS: Final = frozenset({
    "e",
    "i",
    "d",
    "x",
    "y",
    "z",
    "a",
    "b",
    "c",
    "n",
    "k",
    "p",
    "q",
    "r",
    "t",
})
_NOT_UNITS: Final = frozenset({"sec", "min", "if", "in"})


def text_key(text: str, policy: AnswerPolicy | None = None) -> str:
    """Return the key of a text that could not be read; case counts in symbols, not in capitalized words."""
    text = unwrap_text(text) or " ".join(text.split())
    if len(text) <= LONGEST_TEXT and ("\\" in text or "^" in text or "_" in text or " " in text):
        text = _as_typeset(text)
        if policy is not None and policy.case == "folded":
            text = _CAPITALIZED.sub(lambda match: match[0].casefold(), text)
    return "r" + _text_key(text)[1:]


def _as_typeset(text: str) -> str:
    """Remove spaces and braces that LaTeX ignores, or that separate neither words nor numbers."""
    if "\\equiv" in text:
        text = _MODULUS.sub(lambda match: f"\\pmod{{{match[1] or match[2]}}}", text)
    if "{cases}" in text:
        text = _CONDITION.sub("&", text)
    if " " in text:
        if "\\" in text:
            text = _SPACE_AFTER_COMMAND.sub(r"\1", text)
        text = _NEEDLESS_SPACE.sub("", text)
    if "\\frac" in text:
        text = _FRACTION.sub(_brace_arguments, text)
    if "^" in text or "_" in text or "\\" in text:
        text = _BARE_ARGUMENT.sub(r"\1{\2}", text)
    return _NEEDLESS_BRACES.sub(r"\1", text) if "{" in text else text


def _brace_arguments(match: re.Match[str]) -> str:
    r"""Write \frac12 as \frac{1}{2}."""
    low = "" if match[3] is None else f"{{{match[3]}}}"
    return "\\frac" + (match[1] or f"{{{match[2]}}}") + low


def _text_key(text: str) -> str:
    if len(text) > _LONGEST_KEY:
        text = "#" + blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return "t" + text


def unwrap_text(text: str) -> str | None:
    r"""Return the content of a text that is one `\text{...}`, else None."""
    match = _WHOLE_TEXT.fullmatch(text)
    return match[1].strip() if match else None


def read_words(text: str, policy: AnswerPolicy, *, as_text: bool) -> str | None:
    """Return the key of an answer in words, else None; set as text, short runs of letters are words."""
    if text[0] == "-" and (text[1:2].isalpha() or text[1:2] == "\\"):
        return "-oo" if read_words(text[1:], policy, as_text=as_text) == "oo" else None
    if "\\" in text:
        text = _TEXT.sub(r" \1 ", text) if "\\text" in text else text
        if "\\" in text:
            return None
    if _ONLY_WORDS.fullmatch(text) is None:
        return None
    words = _WORD.findall(text)
    if not words:
        return None
    if "/" in text or ("-" in text and _MINUS.search(text)):
        return None
    if len(words) == 1 and len(words[0]) == 1:
        return None
    if not LETTER_RUNS.keys().isdisjoint(words) and _is_formula(words):
        return None
    if len(words) == 1 and text.isalpha():
        word = words[0]
        if not as_text and word not in _SHORT_WORDS and _SYMBOL_RUN.fullmatch(word):
            return None
    elif not as_text and not any(
        max(map(len, re.split("['-]", word))) > 2 or word.casefold() in _SHORT_WORDS
        for word in words
    ):
        return None
    joined = " ".join(words)
    folded = joined.casefold()
    for pattern, same in _SAME_WORDS:
        match = pattern.fullmatch(folded)
        if match is not None:
            return _text_key(match.expand(same))
    if folded in _WORDS_FOR:
        return _WORDS_FOR[folded]
    if policy.case == "folded":
        joined = " ".join(word if _CASED.search(word) else word.casefold() for word in words)
    return _text_key(joined)


def _is_formula(words: list[str]) -> bool:
    """Tell whether words are functions and symbols, as in sin x cos x or alpha."""
    if len(words) == 1:
        return words[0] in GREEK
    return all(len(word) == 1 or word in LETTER_RUNS for word in words)


def chemical_formula(text: str) -> str | None:
    """Return a formula such as H_2O without its subscripts, as plain text writes it, else None."""
    if not text[0].isupper() and text[0] not in "(\\":
        return None
    text = _UPRIGHT.sub(r"\1", text)
    if len(text) > _LONGEST_KEY or any(map(str.isdigit, _SUBSCRIPT.sub("", text))):
        return None
    text = _SUBSCRIPT.sub(r"\1\2", text)
    if _FORMULA.fullmatch(text) is None or _LETTERS_OF_FORMULA.search(text) is None:
        return None
    return text if sum(map(str.isupper, text)) > 1 else None


def strip_units(text: str) -> str:
    """Remove units from the end of an expression."""
    for _ in range(4 if "\\text" in text else 0):
        match = _TRAILING_UNIT.search(text)
        if match is None or match.start() == 0:
            break
        unit = match["text"]
        word = unit.strip()
        if word and (not is_unit_phrase(word, as_text=True) or (unit in _UPRIGHT_SYMBOLS)):
            break
        text = text[: match.start()].rstrip()
    may_be_word = text[-2:].isalpha() or text[-1:] == "." or "^" in text[-8:]
    match = _TRAILING_WORD.search(text) if may_be_word else None
    if match is not None and match.start() and match["word"] not in _NOT_UNITS:
        head = text[: match.start()].rstrip()
        if head and is_unit_phrase(match["word"], as_text=False) and head[-1] not in "+-*/^_=({[,":
            return head
    return text


# ---- units ---------------------------------------------------------------------------------------

UNITS: Final = frozenset(
    """
    mm cm dm km m2 m3 cm2 cm3 km2 mi ft yd in sq cu ml cl dl kl mg cg dg kg gm gms lb lbs oz pt
    qt gal hr hrs min mins sec secs ms yr yrs day days wk wks mo mph kph kmh kmph rpm mps fps
    hz khz mhz ghz pa kpa atm ev kev mev gev kj kw mw kwh mol rad rads deg degs mile miles ton
    tons usd rmb yuan dollar dollars cent cents euro euros pound pounds rs inr rupee rupees eur
    gbp jpy yen cny cad aud chf ppm db cal kcal
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

_NOT_UNIT_WORDS: Final = (
    frozenset(
        """
    and or to times plus minus divided over am pm noon midnight percent percentage pct percents
    mod modulo base ratio squared cubed bc ad bce ce o'clock clock is are not no if when where
    with remainder infinity positive negative half halves third thirds quarter quarters fourth
    repeating recurring fourths fifth fifths sixth sixths tenth tenths hundredth hundredths except but than both
    each through between until from versus vs i e pi none undefined more less greater fewer
    least most at about approximately or/and factorial choose root sin cos tan log ln exp left
    right up down north south east west northeast northwest southeast southwest ago later before
    after early late increase decrease gain loss debt deficit above below under clockwise
    counterclockwise shorter longer ahead behind deep overdue january february march april may june
    july august september october november december
    """.split()  # noqa: SIM905 (a word list reads best as one)
    )
    | frozenset(MULTIPLIERS)
    | GREEK
)
_UNIT_SYMBOLS: Final = UNITS | frozenset("msghNJWVAKL")
_UNIT_PHRASE: Final = re.compile(r"[A-Za-z][A-Za-z.'/\- ]*(?:\^?\{?[23]\}?)?(?:/[A-Za-z]+)?")
_UNIT_WORD: Final = re.compile(r"[A-Za-z']+")


def is_unit_phrase(phrase: str, *, as_text: bool) -> bool:
    """Tell whether words after a number are only a unit; set as text, single letters count too."""
    if len(phrase) > 80 or not _UNIT_PHRASE.fullmatch(phrase):
        return False
    folded = phrase.casefold()
    if folded.replace(".", "").replace(" ", "") in {"am", "pm"}:
        return False
    words = _UNIT_WORD.findall(folded)
    if not words or any(word in _NOT_UNIT_WORDS for word in words):
        return False
    if as_text:
        return True
    if "/" in phrase:
        return all(word in _UNIT_SYMBOLS for word in _UNIT_WORD.findall(phrase))
    return (len(words[0]) > 3 or words[0] in UNITS) and all(
        len(word) > 1 or word in {"a", "s", "h", "m"} for word in words
    )
