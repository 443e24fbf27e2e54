"""One spelling for the many ways of writing the same answer."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["LONGEST_TEXT", "balanced_end", "normalize_text"]

LONGEST_TEXT: Final = 4_000
"""Longer strings are only stripped: they are not answers, and work on them must be bounded."""

_UNICODE: Final = str.maketrans({
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "＋": "+",
    "×": r"\times ", "✕": r"\times ", "⋅": r"\cdot ", "·": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ",
    "÷": r"\div ", "∕": "/", "⁄": "/", "±": r"\pm ", "∓": r"\mp ", "√": r"\sqrt ", "∛": r"\sqrt[3] ",
    "∜": r"\sqrt[4] ", "∞": r"\infty ", "≤": r"\leq ", "≥": r"\geq ", "⩽": r"\leq ", "⩾": r"\geq ",
    "≠": r"\neq ", "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
    "°": r"^{\circ}", "º": r"^{\circ}", "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"', "„": '"',
    "²": "^{2}", "³": "^{3}", "¹": "^{1}", "⁰": "^{0}", "⁴": "^{4}", "⁵": "^{5}", "⁶": "^{6}",
    "⁷": "^{7}", "⁸": "^{8}", "⁹": "^{9}", "⁻": "^{-}", "ⁿ": "^{n}",
    "₀": "_{0}", "₁": "_{1}", "₂": "_{2}", "₃": "_{3}", "₄": "_{4}", "₅": "_{5}", "₆": "_{6}",
    "₇": "_{7}", "₈": "_{8}", "₉": "_{9}",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}", "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}",
    "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}", "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}",
    "⅐": r"\frac{1}{7}", "⅑": r"\frac{1}{9}", "⅒": r"\frac{1}{10}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "π": r"\pi ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "ε": r"\epsilon ",
    "θ": r"\theta ", "λ": r"\lambda ", "μ": r"\mu ", "ρ": r"\rho ", "σ": r"\sigma ", "τ": r"\tau ",
    "ζ": r"\zeta ", "η": r"\eta ", "ι": r"\iota ", "κ": r"\kappa ", "ν": r"\nu ", "ξ": r"\xi ", "χ": r"\chi ",
    "υ": r"\upsilon ", "Γ": r"\Gamma ", "Θ": r"\Theta ", "Λ": r"\Lambda ", "Ξ": r"\Xi ", "Π": r"\Pi ",
    "Σ": r"\Sigma ", "Φ": r"\Phi ", "Ψ": r"\Psi ", "ϵ": r"\epsilon ", "ϑ": r"\theta ", "⊆": r"\subseteq ",
    "⊂": r"\subset ", "∉": r"\notin ", "∀": r"\forall ", "∃": r"\exists ", "⇔": r"\Leftrightarrow ", "≅": r"\cong ",
    "⊥": r"\perp ", "∥": r"\parallel ", "∝": r"\propto ", "△": r"\triangle ", "∂": r"\partial ", "φ": r"\phi ", "ϕ": r"\phi ", "ψ": r"\psi ", "ω": r"\omega ", "Δ": r"\Delta ", "Ω": r"\Omega ",
    "∠": r"\angle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "⟨": r"\langle ", "⟩": r"\rangle ", "∑": r"\sum ", "∫": r"\int ", "∏": r"\prod ",
    "，": ", ", "；": "; ", "：": ":", "∶": ":", "≡": r"\equiv ", "→": r"\to ", "⇒": r"\Rightarrow ", "∴": r"\therefore ", "⟹": r"\implies ", "（": "(", "）": ")", "、": ", ", "。": ".", "٫": ".", "٬": ",", "٪": "%", "،": ", ", "…": r"\ldots ",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u200b": "", "\ufeff": "", "\u2061": "",
    "\u2062": "", "\u2063": "",
})  # fmt: skip
_WIDE_THOUSANDS: Final = re.compile(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))")
_RAISED: Final = re.compile(r"(?:\^\{[-+()A-Za-z\d]{1,2}\}){2,}")
_LOWERED: Final = re.compile(r"(?:_\{[-+()A-Za-z\d]{1,2}\}){2,}")
_SLANTED: Final = re.compile(r"(?<![A-Za-z)\]}⁰¹²³⁴-⁹])\s*([⁰¹²³⁴-⁹]+)[⁄/]([₀-₉]+)")
"""A fraction in small digits; after a letter or bracket it is an exponent."""
_VULGAR: Final = re.compile(r"(?<=\d)\s*([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅑⅒⅛⅜⅝⅞])")

_SPACES: Final = dict.fromkeys(("\\,", "\\!", "\\;", "\\:", "\\ ", "\\>", "~", "\\quad", "\\qquad", "\\enspace", "\\thinspace", "\\displaystyle", "\\textstyle", "\\limits", "\\nolimits", "\\hfill", "\\par", "\\newline", "\\left", "\\right", "\\middle", "\\big", "\\Big", "\\bigg", "\\Bigg", "\\bigl", "\\bigr", "\\Bigl", "\\Bigr", "\\biggl", "\\biggr", "\\Biggl", "\\Biggr", "\\mathstrut", "\\strut", "\\left.", "\\right.", "\\rm", "\\bf", "\\it", "\\boldmath", "\\noindent", "\\scriptstyle", "\\scriptscriptstyle", "\\bfseries", "\\itshape", "\\large", "\\Large", "\\LARGE", "\\huge", "\\Huge", "\\small", "\\normalsize"), " ")  # fmt: skip
_SPELLINGS: Final = _SPACES | {
    "\\dfrac": "\\frac ", "\\tfrac": "\\frac ", "\\cfrac": "\\frac ", "\\nicefrac": "\\frac ", "\\sfrac": "\\frac ", "\\textsuperscript": "^", "\\dbinom": "\\binom ",
    "\\tbinom": "\\binom ", "\\leqslant": "\\leq ", "\\le": "\\leq ", "\\geqslant": "\\geq ",
    "\\leqq": "\\leq ", "\\geqq": "\\geq ", "\\ge": "\\geq ", "\\ne": "\\neq ", "\\lt": "<", "\\gt": ">",
    "\\lbrace": "\\{", "\\rbrace": "\\}", "\\lbrack": "[", "\\rbrack": "]", "\\lvert": "|",
    "\\rvert": "|", "\\vert": "|", "\\colon": ":", "\\bullet": "\\cdot ", "\\ast": "*", "\\star": "*",
    "\\cdotp": "\\cdot ", "\\varnothing": "\\emptyset ", "\\oslash": "\\emptyset ", "\\infin": "\\infty ",
    "\\dots": "\\ldots ", "\\cdots": "\\ldots ", "\\varphi": "\\phi ",
    "\\varepsilon": "\\epsilon ", "\\vartheta": "\\theta ", "\\tg": "\\tan ", "\\ctg": "\\cot ",
    "\\arctg": "\\arctan ", "\\cosec": "\\csc ", "\\prime": "'", "\\land": "\\wedge ", "\\dotsc": "\\ldots ",
    "\\degree": "^{\\circ}", "\\degrees": "^{\\circ}", "\\textdegree": "^{\\circ}", "\\thicksim": "\\sim ",
    "\\bigcup": "\\cup ", "\\bigcap": "\\cap ", "\\percent": "\\%", "\\hbox": "\\text",
    "\\mbox": "\\text", "\\textrm": "\\text", "\\textbf": "\\text", "\\textit": "\\text",
    "\\texttt": "\\text", "\\textsf": "\\text", "\\textnormal": "\\text", "\\textup": "\\text", "\\textsc": "\\text", "\\textsl": "\\text", "\\textmd": "\\text",
    "\\emph": "\\text", "\\mathrm": "\\text", "\\mathsf": "\\text", "\\mathtt": "\\text",
    "\\mathit": "\\text", "\\operatorname": "\\text", "\\operatorname*": "\\text",
    "\\mathnormal": "\\text", "\\pounds": "£", "\\euro": "€", "\\textdollar": "\\$", "\\lg": "\\log_{10}",
    "\\approxeq": "\\approx ", "\\simeq": "\\approx ", "\\doteq": "\\approx ", "\\setminus": "\\backslash ",
    "\\lor": "\\text{or}", "\\vee": "\\text{or}", "\\complement": "\\complement ",
}  # fmt: skip
_COMMAND: Final = re.compile(
    r"\\\\|\\(?:left|right)\s*\.|\\operatorname\*|\\[A-Za-z]+|\\[,!;: >]|~", re.DOTALL
)
_THOUSANDS: Final = re.compile(
    r"(?<![\d.])(\d{1,3})((?:\s*(?:\{,\}|\\,|\\!|\\ |,\\!|,\\,|\\;|\\:|~)+\s*\d{3})+)(?!\d)"
)
# every match of the pattern before this one holds a match of it
_SEPARATOR: Final = re.compile(r"\{\s*,|\\[,! ;:]|~")
_BRACED_SIGN: Final = re.compile(
    r"(?P<before>\\[A-Za-z]+\s*|[\^_]\s*)?\{\s*(?P<sign>[-,.;:=<>+*/])\s*\}"
)
_SIGN_IN_BRACES: Final = re.compile(r"\{\s*[-,.;:=<>+*/]\s*\}")
_TIGHT_COLON: Final = re.compile(r"\\!\s*:\s*\\!|\\!:|:\\!")
_NOT_DIGIT: Final = re.compile(r"\D+")
_DIFFERENTIAL: Final = re.compile(r"\\text\s*\{\s*d\s*\}(?=\s*[a-z\\^}])")
_DERIVATIVE: Final = re.compile(
    r"(?<![A-Za-z\\])d ?(?P<top>[a-z])\s*/\s*d ?(?P<low>[a-z])(?![A-Za-z])"
)
_CHOOSE: Final = re.compile(
    r"(?:^|(?<=[=,;]))\s*(?:\((?P<inside>(?:[-+0-9 ]|[a-z](?![a-z]))+)\)|(?P<top>[0-9]*[b-hj-z]|[0-9]+))"
    r"(?:\s+choose\s+|\s*\\text\s*\{\s*choose\s*\}\s*)"
    r"(?:\((?P<part>(?:[-+0-9 ]|[a-z](?![a-z]))+)\)|(?P<low>[0-9]*[a-z]|[0-9]+))\s*(?=$|[=,;.])"
)
"""A binomial coefficient in words: as an entire answer or side, where it has one reading."""
_PARTS: Final = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10,
}  # fmt: skip
_PLAIN_LOGARITHM: Final = re.compile(r"(?<![\\A-Za-z])log(2|10)\s?\(")
_MIXED_IN_WORDS: Final = re.compile(
    rf"(?<![0-9.,/])([0-9]{{1,2}}) and (?:a|one)[ -]({'|'.join(_PARTS)})(?![a-z])"
)
_DOUBLE_BRACKETS: Final = re.compile(r"\[\[\s*([^\[\],;&]+?)\s*\]\]")
"""A verdict, as judges are asked to write it; a matrix of one element is that element."""
_AND_SO_ON: Final = re.compile(r",\s*\.{3}")
"""Dots that continue a list; others at the end of an answer are punctuation."""
_EMPTY_GROUP: Final = re.compile(r"(?<=[A-Za-z])\{\s*\}")
_STYLE: Final = re.compile(
    r"\\(?:(?P<font>mathbf|boldsymbol|bm|bold|pmb|underline|uline)|(?P<colors>(?:text)?color(?:box)?|fcolorbox)"
    r"|(?P<frame>boxed|fbox|framebox|bbox|math(?:bin|rel|ord|open|close|punct|inner|op)|ensuremath|num)"
    r"|(?P<unseen>[hv]?phantom|[hv]space\*?|label|tag\*?))(?![A-Za-z])\s*"
)
"""Commands that change how their last argument looks, not what it means."""
MOST_STYLES: Final = 16
_COLOR: Final = re.compile(r"(?:\[[^\[\]{}]*\])?\s*\{[^{}]*\}\s*")
_SIZE: Final = re.compile(r"\[[^\[\]{}]*\]\s*")
_COMMAND_NAME: Final = re.compile(r"\\[A-Za-z]+")
_TAKES_ARGUMENT: Final = re.compile(
    r"(?:[\^_]|\\(?:[dtc]?frac|[dt]?binom|sqrt(?:\s*\[[^\]]*\])?))\s*$"
)
_LETTER_OF_SET: Final = frozenset("NZQR")
"""Bold letters that name number sets."""
_RAISED_ORDINAL: Final = re.compile(
    r"(?<![0-9])(?P<number>[0-9]+)\s*\^\s*(?:\{\s*\\text\s*\{\s*(?P<inner>st|nd|rd|th)\s*\}\s*\}|\\text\s*\{\s*(?P<upright>st|nd|rd|th)\s*\}"
    r"|\{\s*(?P<bare>st|nd|rd|th)\s*\})"
)
_ORDINAL_ENDING: Final = re.compile(r"(?:st|nd|rd|th)\s*\}")
_BASES: Final = {
    "binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16, "hex": 16, "two": 2, "three": 3, "four": 4,
    "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "twenty": 20,
}  # fmt: skip
_NAME_OF_BASE: Final = rf"{'|'.join(_BASES)}|[0-9]{{1,2}}"
_BASE: Final = rf"(?:base[\s-]*)?(?P<%s>{_NAME_OF_BASE})"
_NAMED_BASE: Final = re.compile(
    r"_(?:(?<=[0-9)}]_)|(?<=[0-9][A-F]_))\s*(?:\{\s*(?:\\text\s*\{\s*"
    + _BASE % "inner"
    + r"\s*\}|"
    + _BASE % "bare"
    + r")\s*\}|\\text\s*\{\s*"
    + _BASE % "upright"
    + r"\s*\})"
)
_SPOKEN_BASE: Final = re.compile(
    r"(?<=[0-9A-Z)])\s*(?:\\text\s*\{\s*\(?\s*(?:in\s+)?base[\s-]*"
    rf"(?:\}}\s*(?P<outer>[0-9]{{1,2}})|(?P<inner>{_NAME_OF_BASE})\s*\)?\s*\}})"
    rf"|\(?\s*(?:in\s+)?base[\s-]*(?P<plain>{_NAME_OF_BASE})\s*\)?)$"
)
_LEADING_SIGN: Final = re.compile(
    r"(?:(?:&|=(?![=<>])|\\(?:implies|Rightarrow|Longrightarrow|therefore|to|rightarrow)(?![A-Za-z])|:(?!=))\s*)+(?=[^\s=:&])"
)
_QUOTES: Final = (("***", "***"), ("**", "**"), ("*", "*"), ("__", "__"), ("```", "```"), ("``", "''"), ("`", "`"), ('"', '"'), ("''", "''"), ("'", "'"), ("«", "»"), ("「", "」"))  # fmt: skip
"""Marks of Markdown and of quotations around an entire answer, longest first."""
_MARKS: Final = frozenset("*_`\"'«「")
_LEADING: Final = frozenset("=&:\\")
_FENCE: Final = re.compile(r"```[a-z]*\n([^`]*)```")
_TAG: Final = re.compile(r"<(b|i|u|em|strong|code|mark)>([^<>]*)</\1>")
_UPRIGHT_NUMBER: Final = re.compile(r"\\text\s*\{\s*(-?[0-9][0-9.,]*)\s*\}")
_BOLD: Final = re.compile(r"(?<![\w)\]}*])\*\*(?!\s)([^*]+)(?<!\s)\*\*(?![\w(\[{\\*])")
_ANNOUNCED: Final = re.compile(
    r"(?:the )?(?:final )?(?:solution|answer)s?(?: set)?(?: is| are)?\s*:\s*(?=\S)|(?:the )?(?:final )?answer is\s+(?=\S)"
    r"|(?:about|approximately|approx\.|roughly)\s+(?=[-+]?\\?\$?[0-9.])|both\s+(?=\S+ and \S+$)",
    re.IGNORECASE,
)
_ANNOUNCING: Final = frozenset({
    "the an",
    "answer",
    "the fi",
    "final ",
    "about ",
    "approx",
    "roughl",
})
"""First six characters of most texts that `_ANNOUNCED` matches."""
# JSON that was encoded twice: every command has two backslashes
_ESCAPED_TWICE: Final = re.compile(
    r"(?<!\\)\\\\(?:[dt]?frac|sqrt|left|text|pi|infty|cdot|times)(?![a-zA-Z])"
)
_ESCAPED_ONCE: Final = re.compile(r"(?<!\\)\\(?:\\\\)*(?!\\)[a-zA-Z]")
_DELIMITED: Final = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
_SPACED_LETTER: Final = re.compile(r"(?<=[0-9}]) +(?=[mgshLNJWV]\s*$)")
_LONE_DOLLAR: Final = re.compile(r"([-+]?)\s*\$(?=\s*[0-9.])[^$]*")
_DOLLAR: Final = re.compile(r"\$(?<!\\\$)")
_MATH_SHIFT: Final = re.compile(r"(?<!\\)\\[()\[\]]")


# A text that no rule changes, also not in dollar signs: letters one by one, single spaces, and commands
# that have one spelling. A rule that changes such a text must change this pattern; a test says where.
_CURRENCY_FIRST: Final = re.compile(
    r"(?P<sign>-?)(?P<name>(?:US|CA|AU|C|A)(?=\\?\$)|₹|(?i:Rs\.?(?=[ .\d])|INR|USD|EUR|GBP|JPY|CNY|RMB|CAD|AUD|CHF))"
    r"(?:\\?\$)?\s?(?P<number>\d[\d,]*(?:\.\d+)?)"
)
_CURRENCY_NAMES: Final = {
    "US": "usd", "CA": "cad", "C": "cad", "AU": "aud", "A": "aud", "₹": "rs", "RS.": "rs", "RS": "rs", "INR": "rs",
}  # fmt: skip
_NORMAL: Final = re.compile(
    r"(?!\[\[)(?![ =&])(?:[-+^()\[\]|>=!0-9,}&]++|\.(?!\.)|/(?! ?d ?[a-z])|<(?!/)|[A-Za-z](?![A-Za-z])| (?! )"
    r"|\\?\{(?!\s*(?:\}|[-,.;:=<>+*/]\s*\}))|\\\}|_(?=[0-9A-Za-z]|\{(?! |[0-9]+ ))|\\\\(?=[ A-Za-z0-9&{-])"
    r"|\\(?:frac|sqrt|pi|infty|cdot|times|pm|cup|sin|cos|tan|ln|log|theta|alpha|leq|geq|sum|int|arctan|arcsin|sec"
    r"|csc|cot|in|neq|approx|mid|circ|omega|lambda|beta|mu|phi|gamma|sigma|binom|cap|emptyset|lim|prod|ldots)(?![A-Za-z])"
    r"|\\(?:begin|end)\{(?:array|[bp]?matrix|cases)\}(?:\{[lcr]+\})?"
    r")*+(?<![ ,.])(?<![0-9}] [mgshLNJWV])"
)


def balanced_end(text: str, start: int) -> int:
    """Return the index after the brace that closes the one at `start`, or -1."""
    depth = 0
    index = start
    size = len(text)
    while index < size:
        char = text[index]
        if char == "\\":
            index += 2
            continue
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return index + 1
        index += 1
    return -1


def normalize_text(text: str) -> str:
    """Remove wrappers and give LaTeX, Unicode and spaces one spelling; the meaning is kept."""
    text = text.strip()
    if len(text) > LONGEST_TEXT:
        return text
    inner = text[1:-1] if len(text) > 2 and text[0] == text[-1] == "$" else text
    if _NORMAL.fullmatch(inner):
        return inner
    if "\\\\" in text and _ESCAPED_TWICE.search(text) and not _ESCAPED_ONCE.search(text):
        text = text.replace("\\\\", "\\")
    for _ in range(4):
        changed = _normalize_once(text)
        is_normal = changed == text or _NORMAL.fullmatch(changed) is not None
        text = changed
        if is_normal:
            break
    return text


def _normalize_once(text: str) -> str:
    if not text.isascii():
        text = _from_unicode(text)
    if ("{" in text or "\\" in text) and _SEPARATOR.search(text):
        text = _THOUSANDS.sub(lambda match: match[1] + _NOT_DIGIT.sub("", match[2]), text)
    if "{" in text and _SIGN_IN_BRACES.search(text):
        text = _BRACED_SIGN.sub(_unbrace_sign, text)
    if "\\" in text or "~" in text:
        if "\\!" in text:
            text = _TIGHT_COLON.sub(":", text)
        text = _without_styles(text)
        if (
            "\\left" in text
            or "\\right" in text
            or not _SPELLINGS.keys().isdisjoint(_COMMAND.findall(text))
        ):
            text = _COMMAND.sub(_respell, text)
        if "d}" in text:
            text = _DIFFERENTIAL.sub("d", text)
        if "{}" in text and "\\text" not in text:
            text = _EMPTY_GROUP.sub(" ", text)
    if "^" in text and _ORDINAL_ENDING.search(text):
        text = _RAISED_ORDINAL.sub(_write_ordinal, text)
    if "\\text" in text:
        text = _UPRIGHT_NUMBER.sub(_write_number, text)
    if "</" in text:
        text = _TAG.sub(r"\2", text)
    text = _from_plain_words(text)
    if "/" in text and "d" in text:
        text = _DERIVATIVE.sub(r"\\frac{d\g<top>}{d\g<low>}", text)
    if "_" in text:
        text = _NAMED_BASE.sub(_write_base, text)
    if "base" in text:
        text = _SPOKEN_BASE.sub(_write_base, " ".join(text.split()), count=1)
    if text[:2] == "[[" and (held := _DOUBLE_BRACKETS.fullmatch(text)):
        text = held[1]
    if text[-1:].isdigit() and (first := _CURRENCY_FIRST.fullmatch(text)):
        name = first["name"].upper()
        return f"{first['sign']}{first['number']} {_CURRENCY_NAMES.get(name, name.lower())}"
    if "$" in text or "\\" in text:
        text = _undelimit(text)
    if text[:1] in _MARKS or "**" in text:
        text = _unquote(text)
    if "..." in text:
        text = _AND_SO_ON.sub(r",\\ldots ", text)
    text = " ".join(text.split())
    if text[:1] in _LEADING:
        text = _LEADING_SIGN.sub("", text, count=1) if _LEADING_SIGN.match(text) else text
    if ":" in text or text[:5] in {"both ", "Both "} or text[:6].casefold() in _ANNOUNCING:
        text = _ANNOUNCED.sub("", text, count=1) if _ANNOUNCED.match(text) else text
    while text and (text[-1] in ".,;:" or text.endswith("\\")) and not text.endswith("\\,"):
        text = text[:-1].rstrip()
    return text


def _from_plain_words(text: str) -> str:
    """Write what plain text spells in words as symbols."""
    if "choose" in text:
        text = _CHOOSE.sub(_write_binomial, text)
    if "log" in text:
        text = _PLAIN_LOGARITHM.sub(r"\\log_{\1}(", text)
    if " and " in text:
        text = _MIXED_IN_WORDS.sub(_write_mixed, text)
    return text


def _write_mixed(match: re.Match[str]) -> str:
    """Write a mixed number whose part is in words as digits: 3 and a half."""
    return f"{match[1]} 1/{_PARTS[match[2]]}"


def _respell(match: re.Match[str]) -> str:
    command = match[0]
    if command[-1] == "." and command[1] in "lr":
        return " "
    return _SPELLINGS.get(command, command)


def _from_unicode(text: str) -> str:
    text = _VULGAR.sub(r" \1", text)
    if max(text) >= "₀" and _SLANTED.search(text):
        text = _SLANTED.sub(_write_slanted, text)
    text = _WIDE_THOUSANDS.sub(",", text).translate(_UNICODE)
    if not text.isascii():
        text = "".join(map(_fold_letter, text))
    text = _RAISED.sub(lambda match: f"^{{{match[0].replace('^{', '').replace('}', '')}}}", text)
    return _LOWERED.sub(lambda match: f"_{{{match[0].replace('_{', '').replace('}', '')}}}", text)


def _write_slanted(match: re.Match[str]) -> str:
    """Write a fraction in raised and lowered digits as a fraction."""
    top, low = (unicodedata.normalize("NFKC", group) for group in match.groups())
    return f" \\frac{{{top}}}{{{low}}}"


def _fold_letter(char: str) -> str:
    """Fold digits of all scripts, wide, styled, raised and lowered letters; circled digits number statements."""
    if char.isascii():
        return char
    kind = unicodedata.decomposition(char).partition(">")[0]
    if kind in {"<circle", "<square"}:
        return char
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    plain = unicodedata.normalize("NFKC", char)
    if kind == "<super":
        return f"^{{{plain}}}"
    return f"_{{{plain}}}" if kind == "<sub" else plain


def _unbrace_sign(match: re.Match[str]) -> str:
    """Remove braces around a sign, as in 3{:}4; those of an exponent or an argument stay."""
    before = match["before"] or ""
    if not before or before.startswith("\\text"):
        return match["sign"]
    return match[0]


def _without_styles(text: str) -> str:
    r"""Remove boxes, colors, and bold type and lines that only emphasize."""
    matches = list(_STYLE.finditer(text))
    if len(matches) > MOST_STYLES:
        return text
    # from the right, so that the inner of two is first and positions stay valid
    for match in reversed(matches):
        start, end = match.span()
        for _ in range(1 + match[0].startswith("\\fcolorbox") if match["colors"] else 0):
            color = _COLOR.match(text, end)
            if color is None:
                return text
            end = color.end()
        if match["frame"] and text[end : end + 1] == "[":
            size = _SIZE.match(text, end)
            end = size.end() if size else end
        if text[end : end + 1] != "{":
            is_switch = match[0].startswith("\\color") and not match[0].startswith("\\colorbox")
            if is_switch or (match["frame"] and text[end:]) or text[end : end + 1].isdigit():
                text = text[:start] + " " + text[end:]
            continue
        close = balanced_end(text, end)
        if close < 0:
            continue
        inside = text[end + 1 : close - 1].strip()
        is_whole = not text[:start].strip() and not text[close:].strip()
        if match["unseen"] or (match["frame"] and is_whole and not inside):
            inside = ""
        elif not inside or (match["font"] and not _is_emphasized(inside, is_whole=is_whole)):
            continue
        inside = f"{{{inside}}}" if _TAKES_ARGUMENT.search(text[:start]) else f" {inside} "
        text = text[:start] + inside + text[close:]
    return text


def _is_emphasized(inside: str, *, is_whole: bool) -> bool:
    """Tell whether bold type or a line is no part of a name, as it is in a vector's."""
    if is_whole and inside not in _LETTER_OF_SET:
        return True
    if inside in {"\\pi", "\\infty"}:
        return True
    signs = _COMMAND_NAME.sub("", inside)
    return any(map(str.isdigit, signs)) and not any(map(str.isalpha, signs))


def _write_ordinal(match: re.Match[str]) -> str:
    """Write a raised ending of an ordinal beside its number; 2^{th} is a power."""
    number, bare = match["number"], match["bare"]
    if bare is not None:
        regular = {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
        if bare != ("th" if number[-2:-1] == "1" else regular):
            return match[0]
    return f"{number}\\text{{{match['inner'] or match['upright'] or bare}}}"


def _write_number(match: re.Match[str]) -> str:
    """Write digits that are set as text without the command."""
    is_argument = match.string[: match.start()].endswith(("^", "_"))
    return f"{{{match[1]}}}" if is_argument else f" {match[1]} "


def _write_binomial(match: re.Match[str]) -> str:
    top, low = match["inside"] or match["top"], match["part"] or match["low"]
    return f"\\binom{{{top}}}{{{low}}}"


def _write_base(match: re.Match[str]) -> str:
    """Write the base of a number as a subscript in digits."""
    base = next(group for group in match.groups() if group)
    return f"_{{{_BASES.get(base, base)}}}"


def _unquote(text: str) -> str:
    """Remove the marks of Markdown and the quotation marks around a text."""
    fence = _FENCE.fullmatch(text)
    if fence is not None:
        return fence[1].strip()
    for opening, closing in _QUOTES:
        if (
            text.startswith(opening)
            and text.endswith(closing)
            and len(text) > len(opening + closing)
        ):
            inside = text[len(opening) : -len(closing)]
            if opening[0] not in inside and closing[0] not in inside:
                return inside.strip()
    return _BOLD.sub(r"\1", text) if "**" in text else text


def _undelimit(text: str) -> str:
    for opening, closing in _DELIMITED if text[:1] in {"$", "\\"} else ():
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) * 2 - 1:
            inner = text[len(opening) : -len(closing)]
            if opening not in inner and closing not in inner:
                # in math mode 5 m is a product, outside of it a length
                return _SPACED_LETTER.sub("", inner)
    if _LONE_DOLLAR.fullmatch(text):
        return text.replace("$", "\\$")
    if "$" in text:
        text = _DOLLAR.sub(" ", text)
    if "\\(" in text or "\\)" in text or "\\[" in text or "\\]" in text:
        text = _MATH_SHIFT.sub(" ", text)
    return text
