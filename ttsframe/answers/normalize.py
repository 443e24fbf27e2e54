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
    "°": r"^{\circ}", "º": r"^{\circ}", "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"',
    "²": "^{2}", "³": "^{3}", "¹": "^{1}", "⁰": "^{0}", "⁴": "^{4}", "⁵": "^{5}", "⁶": "^{6}",
    "⁷": "^{7}", "⁸": "^{8}", "⁹": "^{9}", "⁻": "^{-}", "ⁿ": "^{n}",
    "₀": "_{0}", "₁": "_{1}", "₂": "_{2}", "₃": "_{3}", "₄": "_{4}", "₅": "_{5}", "₆": "_{6}",
    "₇": "_{7}", "₈": "_{8}", "₉": "_{9}",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}", "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}",
    "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}", "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}",
    "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "π": r"\pi ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "ε": r"\epsilon ",
    "θ": r"\theta ", "λ": r"\lambda ", "μ": r"\mu ", "ρ": r"\rho ", "σ": r"\sigma ", "τ": r"\tau ",
    "φ": r"\phi ", "ϕ": r"\phi ", "ψ": r"\psi ", "ω": r"\omega ", "Δ": r"\Delta ", "Ω": r"\Omega ",
    "∠": r"\angle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "⟨": r"\langle ", "⟩": r"\rangle ", "∑": r"\sum ", "∫": r"\int ", "∏": r"\prod ",
    "，": ", ", "；": "; ", "：": ":", "（": "(", "）": ")", "、": ", ", "。": ".", "…": r"\ldots ",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u200b": "", "\ufeff": "", "\u2061": "",
    "\u2062": "", "\u2063": "",
})  # fmt: skip
_RAISED: Final = re.compile(r"((?:\^\{[-\dn]\}){2,})")
_LOWERED: Final = re.compile(r"((?:_\{\d\}){2,})")
_VULGAR: Final = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"

_SPACES: Final = dict.fromkeys(("\\,", "\\!", "\\;", "\\:", "\\ ", "\\>", "~", "\\quad", "\\qquad", "\\enspace", "\\thinspace", "\\displaystyle", "\\textstyle", "\\limits", "\\nolimits", "\\hfill", "\\par", "\\newline", "\\left", "\\right", "\\middle", "\\big", "\\Big", "\\bigg", "\\Bigg", "\\bigl", "\\bigr", "\\Bigl", "\\Bigr", "\\biggl", "\\biggr", "\\Biggl", "\\Biggr", "\\mathstrut", "\\strut", "\\left.", "\\right.", "\\rm", "\\bf", "\\it", "\\mathop", "\\boldmath", "\\noindent"), " ")  # fmt: skip
_SPELLINGS: Final = _SPACES | {
    "\\dfrac": "\\frac ", "\\tfrac": "\\frac ", "\\cfrac": "\\frac ", "\\dbinom": "\\binom ",
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
    "\\texttt": "\\text", "\\textsf": "\\text", "\\textnormal": "\\text", "\\textup": "\\text",
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
# every match of the two patterns beside this one holds a match of it
_SEPARATOR: Final = re.compile(r"\{[\s,.;]|\\[,! ;:]|~")
_BRACED_COMMA: Final = re.compile(r"\{\s*([,.;])\s*\}")
_NOT_DIGIT: Final = re.compile(r"\D+")
_CHOOSE: Final = re.compile(r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}")
_DIFFERENTIAL: Final = re.compile(r"\\text\s*\{\s*d\s*\}(?=\s*[a-z\\^}])")
_EMPTY_GROUP: Final = re.compile(r"(?<=[A-Za-z])\{\s*\}")
_BOX: Final = re.compile(r"\\(?:boxed|fbox|framebox)\s*")
_ANNOUNCED: Final = re.compile(
    r"(?:the )?(?:final )?(?:solution|answer)s?(?: set)?(?: is| are)?\s*:\s*(?=\S)|(?:the )?(?:final )?answer is\s+(?=\S)",
    re.IGNORECASE,
)
# JSON that was encoded twice: every command has two backslashes
_ESCAPED_TWICE: Final = re.compile(
    r"(?<!\\)\\\\(?:[dt]?frac|sqrt|left|text|pi|infty|cdot|times)(?![a-zA-Z])"
)
_ESCAPED_ONCE: Final = re.compile(r"(?<!\\)\\(?:\\\\)*(?!\\)[a-zA-Z]")
_DELIMITED: Final = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
_DOLLAR: Final = re.compile(r"(?<!\\)\$")
_MATH_SHIFT: Final = re.compile(r"(?<!\\)\\[()\[\]]")


# A text that no rule changes, also not in dollar signs: letters one by one, single spaces, and commands
# that have one spelling. A rule that changes such a text must change this pattern; a test says where.
_NORMAL: Final = re.compile(
    r"(?![ =])(?:[-+/^()\[\]|>=!0-9,.}]++|<(?!/)|[A-Za-z](?![A-Za-z])| (?! )"
    r"|\\?\{(?!\s*(?:\}|[-,.;:=<>+*/]\s*\}))|\\\}"
    r"|\\(?:frac|sqrt|pi|infty|cdot|times|pm|cup|sin|cos|tan|ln|log|theta|alpha|leq|geq)(?![A-Za-z])"
    r")*+(?<![ ,.])(?<![0-9}] [A-Za-z])"
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
        text = _BRACED_COMMA.sub(r"\1", text)
    if "\\" in text or "~" in text:
        text = _unbox(text)
        if (
            "\\left" in text
            or "\\right" in text
            or not _SPELLINGS.keys().isdisjoint(_COMMAND.findall(text))
        ):
            text = _COMMAND.sub(_respell, text)
        if "\\choose" in text:
            text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
        if "d}" in text:
            text = _DIFFERENTIAL.sub("d", text)
        if "{}" in text and "\\text" not in text:
            text = _EMPTY_GROUP.sub(" ", text)
    if "$" in text or "\\" in text:
        text = _undelimit(text)
    text = " ".join(text.split())
    if ":" in text or text[:6].casefold() in {"the an", "answer", "the fi", "final "}:
        text = _ANNOUNCED.sub("", text, count=1) if _ANNOUNCED.match(text) else text
    while text and (text[-1] in ".,;:" or text.endswith("\\")) and not text.endswith("\\,"):
        text = text[:-1].rstrip()
    return text


def _respell(match: re.Match[str]) -> str:
    command = match[0]
    if command[-1] == "." and command[1] in "lr":
        return " "
    return _SPELLINGS.get(command, command)


def _from_unicode(text: str) -> str:
    for char in _VULGAR:
        if char in text:
            text = re.sub(rf"(?<=\d)\s*{char}", f" {char}", text)
    text = text.translate(_UNICODE)
    text = _RAISED.sub(lambda match: "^{" + match[1].replace("^{", "").replace("}", "") + "}", text)
    text = _LOWERED.sub(
        lambda match: "_{" + match[1].replace("_{", "").replace("}", "") + "}", text
    )
    return text if text.isascii() else "".join(map(_fold_letter, text))


def _fold_letter(char: str) -> str:
    """Fold wide and styled letters, but not circled digits, which number statements."""
    if char.isascii() or unicodedata.decomposition(char).startswith(("<circle>", "<square>")):
        return char
    return unicodedata.normalize("NFKC", char)


def _unbox(text: str) -> str:
    """Return the content of a box that is the entire text."""
    match = _BOX.match(text)
    if not match:
        return text
    start = match.end()
    if start < len(text) and text[start] == "{":
        return text[start + 1 : -1] if balanced_end(text, start) == len(text) else text
    return text[start:]


def _undelimit(text: str) -> str:
    for opening, closing in _DELIMITED if text[:1] in {"$", "\\"} else ():
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) * 2 - 1:
            inner = text[len(opening) : -len(closing)]
            if opening not in inner and closing not in inner:
                return inner
    if "$" in text:
        text = _DOLLAR.sub(" ", text)
    if "\\(" in text or "\\)" in text or "\\[" in text or "\\]" in text:
        text = _MATH_SHIFT.sub(" ", text)
    return text
