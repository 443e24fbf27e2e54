r"""How far an answer in prose reaches: "3 million", "2√3", "5 × 10^3", "B, C", "10 to 15", "$2$ and $3$".

A span is one or more runs, joined as a list. A run is operands (numbers, dates, mathematics between
delimiters, commands, brackets, single letters) joined by operators. A span is read as far as it goes; where
the text around it still goes on with the same number, product or list, there is no span. So no answer that
is read here is a part of a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ttsframe.answers.latex.tokens import GREEK

__all__ = ["NUMBER", "Span", "find_spans", "is_cut_out", "span_at"]

NUMBER: Final = (
    r"[-+−]?(?:[$€£¥]|\\\$)?[-−]?"
    r"(?:\\[dt]?frac\{-?[\d.]+\}\{[\d.]+\}"
    r"|(?:\d{1,3}(?:(?:,|\{,\}|,\\!)\d{3})+\b|\d+,\d{1,2}\b|\d+)(?:\.\d+)?(?:/\d+)?)"
    r"(?:\s?\\?%|\s?\^\{?\\circ\}?|[°€£¥])?"
)
"""A number in prose: sign, currency, thousands, decimals or fraction, percent.

Written in the syntax that Python's and Rust's regular expressions share.
"""


class Span(NamedTuple):
    """An answer in a statement, whole, and where it is."""

    start: int
    end: int
    answer: str
    """The text of the span without delimiters of mathematics."""
    is_delimited: bool
    """Whether it stands between delimiters of mathematics or is bold."""
    last: str = ""
    """The last element of a list between delimiters."""


class _Piece(NamedTuple):
    end: int
    text: str
    kind: str
    """One of: number, delimited, command, bracket, letter, date, operator, joiner."""


_LETTERS: Final = "A-Za-zÀ-ÖØ-öø-ÿµμΩα-ωΑ-Ω"
_SUPERSCRIPTS: Final = "¹²³⁰⁴-⁹⁺⁻⁽⁾ⁿ₀-₉₊₋"
_VULGAR: Final = "½⅓⅔¼¾⅐-⅞"
_SYMBOLS: Final = "√∛∜π∞∅ℝℤℕℚℂθφα-ωΑ-ΡΣ-Ω"
_BLANK: Final = r"[ \t\u00a0\u2009\u202f]"

_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|"
    r"Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b(?:\.(?=,? \d))?"
)
_DATE: Final = re.compile(
    rf"{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?|{_MONTH},? \d{{4}}\b"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}}\b)?"
    r"|\d+年(?:\d+月(?:\d+[日号])?)?|\d+月\d+[日号]"
)
_PREFIX: Final = re.compile(
    r"(?:(?:[-+−–±∓~≈≤≥√∛∜¬]|\\(?:pm|mp|neg|approx)(?![a-zA-Z])"
    r"|(?:US|CA|A|C|HK|NZ|S)?\\?\$(?=\s?[-−]?\s?\.?\d)|[€£¥₹₽₩₦₫](?=\s?[-−]?\.?\d)"
    rf"|(?:Rs\.?|USD|EUR|GBP|INR|CAD|AUD|CNY|JPY)(?=\s?\.?\d)){_BLANK}?){{0,4}}"
)
_DIGITS: Final = re.compile(
    r"(?:\d{1,3}(?:(?:,|\{,\}|,\\!|\\,|\\!,)\d{3})+(?!\d)"
    r"|\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?!\d)"
    r"|\d+)(?:[.,٫]\d+)*|\.\d+"
)
_DECIMALS_GO_ON: Final = re.compile(r"\.(?=\\(?:overline|bar|dot)\b|[/*]\d)|(?<=\d)(?:\.\.\.|…)")
_EXPONENT: Final = re.compile(r"[eE][-+−]?\d+")
_DELIMITED: Final = re.compile(
    r"\*\*(?P<bold>[^*\n]*[^*\s:：])\s*\*\*(?!\s*[:：])"
    r"|\$\$(?P<display>.+?)\$\$"
    r"|\$(?P<dollars>(?:\\.|[^$\\])+)\$(?!\d)"
    r"|\\\((?P<round>.+?)\\\)"
    r"|\\\[(?P<square>.+?)\\\]"
    r"|\{eq\}(?P<equation>.+?)\{/eq\}"
    r"|`(?P<code>[^`\n]+)`",
    re.DOTALL,
)
_PROSE_IN_DOLLARS: Final = re.compile(
    r"(?<![\\{a-zA-Z])[a-zA-Z]{2,} +[a-zA-Z]{2,}(?![}a-zA-Z])|\n\n"
)
_TEXT_COMMAND: Final = re.compile(
    r"\\(?:text\w*|mathrm|mathbf|mathit|mbox|hbox|textrm|quad|qquad|hspace|vspace|newline|par"
    r"|[,;:!>\s\\)\]&]|end|item|right|big\w*r|label|tag|hline|because|therefore|boxed|fbox)(?![a-zA-Z])"
    r"|\\$"
)
_INFIX_COMMAND: Final = re.compile(
    r"\\(?:times|cdot|div|pm|mp|leq?|geq?|lt|gt|neq?|approx|equiv|in|notin|to|rightarrow|cup|cap|mid|setminus"
    r"|land|lor|wedge|vee|circ(?=\s*[a-z(\\])|bmod|mod|ast|star|over|choose|sim|cong|parallel|perp"
    r"|subset|subseteq|supset|propto|oplus|otimes|implies|Rightarrow|iff|colon)(?![a-zA-Z])"
)
_COMMAND: Final = re.compile(r"\\(?:[a-zA-Z]+|[{|])")
# a chemical symbol or the C of combinations: \text{H}_2\text{O}, {}_{10}\mathrm{C}_3
_FORMULA: Final = re.compile(r"\\(?:text|mathrm)\{\(?[A-Z][a-z]?\)?\}")
_BEGIN: Final = re.compile(r"\\begin\{(\w+\*?)\}")
_ARGUMENT: Final = re.compile(r"\s*(?=[{\[])")
_BARE_ARGUMENT: Final = re.compile(r" ?(?:\d|[a-zA-Z])")
_BARE_ROOT: Final = re.compile(r" ?\d+| ?[a-zA-Z](?![a-zA-Z])")
_FUNCTION: Final = re.compile(
    r"(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?\b|(?:ln|log|lg|exp|sqrt|cbrt|gcd|lcm|GCD|LCM|max|min|det|floor|"
    r"ceil|binom|abs|pi|infinity|inf)(?![a-zA-Z])"
)
_GREEK_WORD: Final = re.compile(rf"(?:{'|'.join(sorted(GREEK))})(?![A-Za-z])")
_LETTER: Final = re.compile(rf"[A-Za-z](?![{_LETTERS}'’]|\.[a-zA-Z])")
# letters that are words: articles, "I", and the conjunctions of French, Spanish, Italian, Portuguese, Polish
_WORD_LETTER: Final = re.compile(
    r"[aAI][ \t]+(?![-+*/=^<>≤≥×·,.;)\\!])(?=\S)|[eoyuàézwi][ \t]+[^\W\d_]{2,}"
)
_FACTOR_LETTER: Final = re.compile(
    r"[A-Za-z](?:\d|_\w|_\{[^{}]*\})?(?:\s*[\^+*/=(<>\\]|\s*-\s*[\dA-Za-z]|\s+[A-Za-z](?![A-Za-z'’])|[.,;。，；、]?\s*$)"
)
_INDEXED: Final = re.compile(r"[A-Za-z]\d+(?![A-Za-z])")

_ATTACHED: Final = re.compile(
    rf"{_BLANK}?\^(?:{_BLANK}?(?=[{{(\\])|{_BLANK}?[-+−]?(?:[A-Za-z\d]+(?:\.\d+)?|°))"
    rf"|_(?=[{{(\\])|_[A-Za-z\d]+"
    rf"|[{_SUPERSCRIPTS}{_VULGAR}′″\u0300-\u036f]+|{_BLANK}[{_VULGAR}]"
    rf"|!+(?!=)|{_BLANK}?\\?%|‰|{_BLANK}?[°º](?:{_BLANK}?[CFK]\b"
    rf"|{_BLANK}?\d+(?:\.\d+)?['′](?:{_BLANK}?\d+(?:\.\d+)?[\"″])?)?"
    rf"|[{_LETTERS}][{_LETTERS}\d]*(?:[²³])?"
    r"|(?:-[A-Za-z]{2,})+|/[A-Za-z]{2,}"
    r"|(?<=\d) and (?:a|one)[ -](?:half|third|quarter|fourth|fifth|sixth|eighth|tenth)\b"
    rf"|[ -](?:(?:hundred|thousand|million|billion|trillion|quadrillion|dozen|score|lakh|crore|mn|bn)s?"
    rf"|million(?:en|es|i)|Milliard(?:en)?|Millione?n?|millones|milhões|mil|milliards?|тыс\.?|млн|млрд"
    rf"|percent|per cent|pct\.?|[ap]m\b|[ap]\.m\b\.?|[AP]M\b|[AP]\.M\b\.?|o['’]clock|factorial|squared|cubed)(?![A-Za-z])"
    r"|(?:[十百万萬亿億兆만억조]|千(?![米克瓦卡焦]))+|分之\d+|又(?=\d)"
    r"|(?:小时|分钟|時間|时间|[年月日号时時點点分秒元角天周岁度])(?=\d)(?:\d+(?:小时|分钟|時間|时间|[年月日号时時點点分秒元角天周岁度])?)+"
    r"|['′]\d+[\"″]?"
    r"| ?\((?:mod|base) [^()]{1,20}\)"
    r"|\s?\\(?:text|mathrm|mbox)\{[~\s]*(?:percent|thousand|million|billion|dozen|[ap]\.?m\.?)\s*\}"
)
_OPERATOR: Final = re.compile(
    rf"{_BLANK}*(?:(?<=[\d)}}A-Za-z])\*\*(?=[\d(])|(?<=\d)(?:\{{:\}}|\\!:\\!)(?=\d)|[+−×⋅·∙÷≠≤≥≈≡±∓∪∩∈∖→]|[-/^](?!>)|\*(?!\*)|[=<>!]=?(?<!!)(?!>)|–|{_INFIX_COMMAND.pattern}"
    rf"|:(?={_BLANK}*[-−]?[\dA-Za-z]))[ \t\u00a0]*"
)
_WORD_OPERATOR: Final = re.compile(
    r" (?:x|X|plus|minus|times|multiplied by|divided by|over|mod|modulo|choose|out of|in|per|to|through|"
    r"until|till|bis|hasta|до|à|по)"
    r" (?=[-−]?[$€£¥]?\.?\d|\\\(|\$|\\[dt]?frac|\\sqrt|√|\*\*\d)"
)
_TAG: Final = re.compile(r"[ \t]*<(?:/?[a-zA-Z][\w-]*\s*/?>|/[a-zA-Z]|\|)")
_JOINER: Final = re.compile(
    r"(?:[\s]|\\[ ,;]|\\q?quad)*"
    r"(?:[,，;；、](?:\s|\\[ ,;]|\\q?quad)*(?:\\text\s*\{\s*)?(?:(?:and|or|et|und|ou|oder|или)\b(?=\s+(?:[\d$\\(√*.]|[-−]\.?\d|[A-Za-z]\b))|[yeoи]\b(?=\s+[\d$(√]))?"
    r"|&|和|或|及|以及|と|및|과|와|\\cup|\\q?quad(?=\s*[a-zA-Z]\b)|\\text\s*\{\s*(?:,\s*)?(?:and|or|to)\b"
    r"|\b(?:and|or|et|und|ou|oder|или)\b|\b[yeoи]\b(?=\s+[\d$(√]))(?:\s|\})*(?:\\q?quad|\\[ ,;]|\s)*"
)
_DOTS: Final = re.compile(r"\.\.\.|…|\\[lc]?dots(?![a-zA-Z])")
# an element that begins another statement: "The answer is 5, 3 of which are red"
_OTHER_STATEMENT: Final = re.compile(
    r"\s+(?:of|more|less|fewer|are|is|was|were|have|has|had|will|do|does|which|times|can|would|must|should|may|might|equals?)\b"
)
_WORD_AFTER: Final = re.compile(r" +[a-z]{2,}")
_UNIT_THEN_NUMBER: Final = re.compile(
    r"(?:(?: [A-Za-zµ²³./°]{1,20}){1,2}|\s?\\(?:text|mathrm|mbox)\s*\{[^{}]*\}(?:\^\{?\d\}?)?)(?: ?;|,? and|,| y| et| und| e| x| \\times)? (?=[-−]?(?:[$€£¥]|\\\$)?\.?\d)"
)
_LAST_UNIT: Final = re.compile(
    r" [A-Za-z]{1,20}\b|\s?\\(?:text|mathrm|mbox)\s*\{[^{}]*\}(?:\^\{?\d\}?)?"
)
_MEASURE_WORD: Final = re.compile(
    r" (?:because|since|as|for|is|are|was|were|in|of|so|and|or|when|where|which|who|with|at|on|by|from|but|"
    r"then|until|after|before|if|do|does|divide|divides|that|than|to|using|out|into|under|over|not|per|this|these|we|he|she|they|it|its)\b"
)
_OPEN_ENDED: Final = re.compile(
    r",? (?:or|and) (?:more|less|fewer|above|below|greater|higher|lower|over|under|older|younger|up|beyond)\b"
)
_GOES_ON: Final = re.compile(
    rf"[{_LETTERS}\d^{{{_SUPERSCRIPTS}{_VULGAR}{_SYMBOLS}%°]|_[A-Za-z\d{{(\\]|[.,:/]\d|\\[a-zA-Z{{]|\(\w"
    rf"|{_BLANK}*(?:[+−×⋅·÷^=±]|\\(?:times|cdot|div|pm|pi|sqrt|[dt]?frac)(?![a-zA-Z]))"
    r"|(?:[一-鿿]{1,3})\d|[十百万萬亿億兆만억조]|千(?![米克瓦卡焦])"
    rf"|{_BLANK}*[-*/:<>]{_BLANK}*[\d(\[\\]|{_BLANK}!"
    r"|\)\s?[-*/+^=]|,\s?[-−]?\s?\\(?!text|quad|qquad)[a-zA-Z]"
    r"| \((?![^()]*[A-Za-z]{2,})[^()]*[-+*/^][^()]*\)"
    rf"|{_BLANK}*(?:\$|\\\()\s*(?:[-+×·/^=]|\\(?:times|cdot|div|pm|pi)(?![a-zA-Z]))"
    r"|,? (?:hundred|thousand|million|billion|trillion|dozen|percent|repeating|recurring)\b"
    # "18 eggs ÷ 6", "25% of 80 = 20"
    r"| [A-Za-z]+ (?:[÷×+=]|[-−*/] )\s?[$€£]?\d| of [$€£]?\d[\d,.]* ="
    # a quotient that breaks off, a product of absolute values, "C#"
    rf"|{_BLANK}*/\s*\Z|{_BLANK}+\|{_BLANK}+\d|(?<=[\w)}}|])\|[\w\\(|]|[‖⌊⌈]|(?<=[A-Z])#(?!#)"
)
_VECTOR: Final = re.compile(r"\\mathbf\s*(?:\{\s*[A-Za-z]\s*\}|[A-Za-z](?![a-z]))")

_GOES_ON_BEFORE: Final = re.compile(
    rf"(?:[{_LETTERS}\d_^{{)}}\]\\{_SUPERSCRIPTS}{_SYMBOLS}]|[\^_{{]{_BLANK}+|\d[.,:/]|\d{_BLANK}*[-+−–×⋅·*÷^/]|\d{_BLANK}+\|{_BLANK}+|[+−×⋅·÷^√±]{_BLANK}*|[\d)}}a-z]{_BLANK}+[-*/]{_BLANK}+"
    r"|\\(?:times|cdot|div|pm|sqrt|[dt]?frac)\s*)$"
)
_OPEN_INTERVAL: Final = re.compile(
    r"\][^\[\](){}]{1,40}[,;][^\[\](){}]{1,40}[\[\]]|\[[^\[\](){}]{1,40}[,;][^\[\](){}]{1,40}\["
)
_GLUED: Final = re.compile(r"[^\s$,;。，]*")
_START: Final = re.compile(
    rf"(?<![{_LETTERS}\d_^\\{{)}}\](\[+−*/×·-])(?:"
    r"\*\*(?=[^*\s])|\$|\\[(\[](?!\d*pt)|`(?=\S)|\{eq\}|\\[a-zA-Z]+"
    rf"|(?:[-+−]|(?:US|CA)?\\?\$|[€£¥₹₽₩]|Rs\.? ?)*\.?\d|[√π∞±]|{_MONTH} \d"
    r"|[A-Za-z](?:_\w+|_\{\w+\}|\([a-z]\))?\s*[=<>≤≥]\s*[-−\d$\\(√.]"
    r"|(?:ln|log|sin|cos|tan|sqrt|exp)[ (]|[(\[](?=[-−]?[\d.]+\s*,)|\{(?=[^{}\n]{1,200}\}))"
)
_PRICE_IN_TIME: Final = re.compile(
    r"((?:\\?\$|[€£¥₹])\s?\d[\d,.]*) in \d+ (?:second|minute|hour|day|week|month|year)s?\b"
)
_DECIMAL_COMMA: Final = re.compile(r"[-−]?(?:[$€£¥]\s?\d+,\d{1,2}(?![\d,])|\d+,\d{1,2}\s?[$€£¥])")
_BEFORE: Final = " \t\n\r,;:!。，；：！？*\"“”'`"
_AFTER: Final = " \t\n\r.,;:。，；：！？*\"“”'`"
_MOST_OPERANDS: Final = 60
_LONGEST_GROUP: Final = 300
_LONGEST_CLAUSE: Final = 60
_COUNTED: Final = re.compile(r"\d+-[A-Za-z]{2,}")
"""An adjective of measure, "30-minute", which is no part of the number before it."""


def span_at(text: str, start: int) -> Span | None:
    """Return the answer that begins at `start`, or None where there is none or it does not end cleanly."""
    if is_cut_out(text[max(0, start - 12) : start]):
        return None
    pieces = _list_at(text, start)
    if not pieces:
        return None
    end = pieces[-1].end
    is_delimited = all(piece.kind in {"delimited", "joiner"} for piece in pieces)
    if any(piece.kind == "number" for piece in pieces):
        compound = _compound(text, start, end)
        if compound is not None:
            return compound
    if _goes_on(text, end):
        return None
    price = _PRICE_IN_TIME.match(text, start)
    if price is not None and price.end() > end:
        return Span(start, price.end(), price[1], is_delimited=False)
    if len(pieces) == 1 and pieces[0].kind == "number" and _DECIMAL_COMMA.match(text, start):
        return Span(start, end, pieces[0].text.replace(",", "."), is_delimited=False)
    last = pieces[-1].text if is_delimited and len(pieces) > 1 else ""
    return Span(start, end, _written(pieces, is_delimited=is_delimited), is_delimited, last)


def _goes_on(text: str, end: int) -> bool:
    """Tell whether the text after a position goes on with the number, product or list that ends there."""
    if _TAG.match(text, end):
        return False
    is_vector = _VECTOR.match(text, end) is not None
    if _TEXT_COMMAND.match(text, end) and not is_vector:
        return False
    if is_vector or _GOES_ON.match(text, end):
        return True
    blank = end
    while text[blank : blank + 1] in {" ", "\u00a0"}:
        blank += 1
    if blank == end:
        return False
    if text[blank : blank + 1] == "\\":
        return not _TEXT_COMMAND.match(text, blank)
    if text[blank : blank + 1].isdigit():
        return text[end - 1].isalpha() or text[end - 1] in ")}]"
    return text[blank : blank + 1] == "{" or _FACTOR_LETTER.match(text, blank) is not None


def find_spans(text: str) -> Iterator[Span]:
    """Yield the answers in a sentence from left to right; none overlaps another."""
    position = 0
    while start := _START.search(text, position):
        span = span_at(text, start.start())
        if span is not None and span.end > start.start():
            yield span
            position = span.end
        else:
            # what is glued to a part that was not whole is not whole either
            pieces = _run_at(text, start.start())
            position = max(pieces[-1].end if pieces else start.end(), start.start() + 1)
            if pieces:
                position = _GLUED.match(text, position).end()  # type: ignore[union-attr]


def is_cut_out(before: str) -> bool:
    """Tell whether the text before a position goes on with a number or product there."""
    return _GOES_ON_BEFORE.search(before) is not None


def _list_at(text: str, start: int) -> list[_Piece]:
    """Return the runs that begin at `start`, with what joins them."""
    pieces = _run_at(text, start)
    while pieces and len(pieces) < _MOST_OPERANDS:
        joiner = _JOINER.match(text, pieces[-1].end)
        if not joiner or not joiner[0].strip() or "\n\n" in joiner[0]:
            break
        dots = _DOTS.match(text, joiner.end())
        if dots:
            pieces += [
                _Piece(joiner.end(), joiner[0], "joiner"),
                _Piece(dots.end(), dots[0], "dots"),
            ]
            continue
        following = _run_at(text, joiner.end())
        if not following or following[0].kind == "sign":
            break
        if _OTHER_STATEMENT.match(text, following[-1].end):
            break
        if [piece.kind for piece in following] == ["letter"] and _WORD_AFTER.match(
            text, following[-1].end
        ):
            break
        pieces += [_Piece(joiner.end(), joiner[0], "joiner"), *following]
    return pieces


def _run_at(text: str, start: int) -> list[_Piece]:
    """Return operands and the operators between them, from `start` on."""
    operand = _operand_at(text, start)
    pieces = [operand] if operand else []
    while pieces and len(pieces) < _MOST_OPERANDS:
        end = pieces[-1].end
        if _TAG.match(text, end):
            break
        operator = _OPERATOR.match(text, end) or _WORD_OPERATOR.match(text, end)
        if operator:
            following = _operand_at(text, operator.end())
            if following is None:
                break
            pieces += [_Piece(operator.end(), operator[0], "operator"), following]
            continue
        following = _factor_at(text, end, pieces[-1].kind)
        if following is None:
            break
        pieces.append(following)
    return pieces


def _factor_at(text: str, position: int, kind: str) -> _Piece | None:
    r"""Return an operand that multiplies the one before it without a sign: `2 \pi`, `2(x+1)`, `1 1/2`."""
    character = text[position : position + 1]
    if character and character in "([" and kind != "delimited":
        return _operand_at(text, position)
    blank = position
    while text[blank : blank + 1] in {" ", "\u00a0"} or text.startswith(
        ("\\,", "\\;", "\\!"), blank
    ):
        blank += 1 if text[blank] != "\\" else 2
    following = text[blank : blank + 1]
    if not following:
        return None
    if following == "|" and (text[position] == "\\" or text[position - 1] in "})"):
        return _operand_at(text, blank, before=position)
    if kind in {"text", "bracket"} and _FORMULA.match(text, position):
        return _operand_at(text, position)
    if following == "\\":
        is_operand = not _TEXT_COMMAND.match(text, blank) and not _INFIX_COMMAND.match(text, blank)
        return _operand_at(text, blank, before=position) if is_operand else None
    if following in _SYMBOLS_SET:
        return _operand_at(text, blank, before=position)
    if blank == position or text[position] == "\\":
        return None
    if kind in {"number", "command"} and following.isdigit():
        if _COUNTED.match(text, blank):
            return None
        return _operand_at(text, blank, before=position)
    if following == "{" and kind != "delimited":
        return _operand_at(text, blank, before=position)
    if kind in {"number", "command", "bracket", "letter"} and _LETTER.match(text, blank):
        is_factor = _FACTOR_LETTER.match(text, blank)
        if not is_factor and (
            _WORD_LETTER.match(text, blank) or following in "aAI" or kind == "letter"
        ):
            return None
        if is_factor and following in "aAI" and is_factor[0].rstrip(" .,;。，；、") == following:
            return None
        return _operand_at(text, blank, before=position)
    if kind in {"number", "letter", "bracket"} and (
        _FUNCTION.match(text, blank) or _GREEK_WORD.match(text, blank)
    ):
        return _operand_at(text, blank, before=position)
    return None


_SYMBOLS_SET: Final = frozenset("√∛∜π∞∅ℝℤℕℚℂθφαβγδελμσω")


def _operand_at(text: str, start: int, before: int | None = None) -> _Piece | None:
    """Return a number, date, command, bracket or letter with its sign and all that is attached to it."""
    origin = start if before is None else before
    date = _DATE.match(text, start)
    if date:
        return _Piece(date.end(), text[origin : date.end()], "date")
    delimited = _delimited_at(text, start)
    position = start
    if delimited is None:
        position = _PREFIX.match(text, start).end()  # type: ignore[union-attr] # it matches anything
        if position > start:
            delimited = _delimited_at(text, position)
    if delimited is not None:
        content, end = delimited
        kind = "delimited"
        attached = _attached_end(text, end)
        if attached > end or position > start:
            content = f"{text[start:position]}{content}{text[end:attached]}"
            kind = "mixed" if attached > end else kind
        return _Piece(attached, content, kind)
    found = _atom_at(text, position)
    if found is None:
        return None
    end, kind = found
    if kind == "function":
        argument = _function_argument_end(text, end)
        if argument is None:
            return None
        end, kind = argument, "letter"
    end = _attached_end(text, end)
    return _Piece(end, text[origin:end], kind)


def _function_argument_end(text: str, position: int) -> int | None:
    """Return the end of the argument of a function that is written as a word."""
    powered = _ATTACHED.match(text, position) if text[position : position + 1] in "^_²" else None
    start = powered.end() if powered else position
    while text[start : start + 1] == " ":
        start += 1
    argument = _operand_at(text, start)
    if argument is not None and argument.kind != "delimited":
        return argument.end
    return (
        position
        if text[position - 2 : position] == "pi" or text[position - 3 : position] == "inf"
        else None
    )


def _atom_at(text: str, position: int) -> tuple[int, str] | None:
    """Return the end and the kind of the smallest operand at a position."""
    digits = _DIGITS.match(text, position)
    if digits:
        end = digits.end()
        goes_on = _DECIMALS_GO_ON.match(text, end)
        if goes_on:
            end = goes_on.end()
        exponent = _EXPONENT.match(text, end)
        return (exponent.end() if exponent else end), "number"
    character = text[position : position + 1]
    if not character:
        return None
    if character == "\\":
        return _command_at(text, position)
    if character in "([{" or _OPEN_INTERVAL.match(text, position):
        end_of_group = _group_end(text, position)
        return (end_of_group, "bracket") if end_of_group else None
    if character == "|":
        end_of_bars = _bars_end(text, position)
        return (end_of_bars, "bracket") if end_of_bars else None
    greek = _GREEK_WORD.match(text, position)
    if greek:
        return greek.end(), "letter"
    function = _FUNCTION.match(text, position)
    if function:
        return function.end(), "function"
    if character in _SYMBOLS_SET:
        return position + 1, "letter"
    if _LETTER.match(text, position) and (
        not _WORD_LETTER.match(text, position) or _FACTOR_LETTER.match(text, position)
    ):
        return position + 1, "letter"
    indexed = _INDEXED.match(text, position)
    if indexed:
        return indexed.end(), "letter"
    return None


def _command_at(text: str, position: int) -> tuple[int, str] | None:
    """Return the end of a command of LaTeX with its arguments, or of an environment."""
    begin = _BEGIN.match(text, position)
    if begin:
        ending = f"\\end{{{begin[1]}}}"
        closing = text.find(ending, begin.end())
        return (closing + len(ending), "command") if closing >= 0 else None
    if text.startswith(("\\text{", "\\mathrm{"), position):
        group = _group_end(text, text.index("{", position))
        return (group, "text") if group else None
    if _TEXT_COMMAND.match(text, position) or _INFIX_COMMAND.match(text, position):
        return None
    if text.startswith("\\left", position) and not text.startswith("\\leftarrow", position):
        group = _matching_right(text, position)
        return (group, "bracket") if group else None
    if text.startswith("\\{", position):
        closing = text.find("\\}", position)
        return (closing + 2, "bracket") if closing >= 0 else None
    command = _COMMAND.match(text, position)
    if not command:
        return None
    end = _arguments_end(text, command)
    if command[0] in _FUNCTION_COMMANDS and end == command.end():
        argument_end = _function_argument_end(text, end)
        return (argument_end, "command") if argument_end else None
    return end, "command"


def _arguments_end(text: str, command: re.Match[str]) -> int:
    r"""Return the end of the arguments of a command, which may be bare digits: `\frac12`."""
    end, count = command.end(), 0
    while argument := _ARGUMENT.match(text, end):
        opening = argument.end()
        is_option = text[opening] == "["
        closing = _group_end(text, opening)
        if closing is None or (is_option and (count or command[0] not in {"\\sqrt", "\\log"})):
            break
        end, count = closing, count + 1
    if command[0] == "\\sqrt" and not count and (root := _BARE_ROOT.match(text, end)):
        return root.end()
    while count < _BARE_ARGUMENTS.get(command[0], 0) and (bare := _BARE_ARGUMENT.match(text, end)):
        end, count = bare.end(), count + 1
    return end


_BARE_ARGUMENTS: Final = {"\\frac": 2, "\\dfrac": 2, "\\tfrac": 2, "\\binom": 2}
_FUNCTION_COMMANDS: Final = frozenset({
    "\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc", "\\ln", "\\log", "\\exp", "\\arcsin", "\\arccos",
    "\\arctan", "\\gcd", "\\max", "\\min", "\\det", "\\lg", "\\sinh", "\\cosh", "\\tanh",
})  # fmt: skip


def _matching_right(text: str, position: int) -> int | None:
    r"""Return the end of the `\right` that closes the `\left` at a position."""
    depth = 0
    for match in re.finditer(r"\\(left|right)(?![a-z])\s*(?:\\[{}|]|\\[a-z]+|.)?", text[position:]):
        depth += 1 if match[1] == "left" else -1
        if depth == 0:
            return position + match.end()
    return None


def _group_end(text: str, opening: int) -> int | None:
    """Return the end of a bracket; the other kind may close it, as in "[0, 1)"."""
    half_open = _OPEN_INTERVAL.match(text, opening)
    if half_open:
        return half_open.end()
    depth = 0
    is_brace = text[opening] == "{"
    limit = min(len(text), opening + _LONGEST_GROUP)
    position = opening
    while position < limit:
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character in ("{" if is_brace else "(["):
            depth += 1
        elif character in ("}" if is_brace else ")]"):
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return None


def _bars_end(text: str, opening: int) -> int | None:
    """Return the end of an absolute value, whose brackets may hold others."""
    position, limit = opening + 1, min(len(text), opening + _LONGEST_GROUP)
    while position < limit:
        if text[position] == "|":
            return position + 1 if position > opening + 1 else None
        if text[position] in "{(":
            closing = _group_end(text, position)
            if closing is None:
                return None
            position = closing
        else:
            position += 2 if text[position] == "\\" else 1
    return None


def _attached_end(text: str, position: int) -> int:
    """Return the end of what is attached to an operand: powers, units, scales, percent."""
    while True:
        match = _ATTACHED.match(text, position)
        if match is None:
            return position
        position = match.end()
        if text[position - 1 : position] in {"^", "_"}:
            if text[position : position + 1] == "\\":
                command = _COMMAND.match(text, position)
                position = command.end() if command else position
            else:
                closing = _group_end(text, position)
                if closing is None:
                    return position
                position = closing


def _delimited_at(text: str, position: int) -> tuple[str, int] | None:
    """Return the content and the end of mathematics or bold text that opens at a position."""
    match = _DELIMITED.match(text, position)
    if match is None:
        return None
    if match["dollars"] is not None and _PROSE_IN_DOLLARS.search(
        re.sub(r"\\(?:text\w*|mathrm|mbox)\s*\{[^{}]*\}", "", match["dollars"])
    ):
        return None
    content = next(group for group in match.groups() if group is not None)
    content = content.lstrip(_BEFORE).rstrip(_AFTER)
    return (content, match.end()) if content else None


def _compound(text: str, start: int, end: int) -> Span | None:
    """Return "3 hours 20 minutes" or "5 or more", which begin with a number and go on with words."""
    if open_ended := _OPEN_ENDED.match(text, end):
        return Span(start, open_ended.end(), text[start : open_ended.end()], is_delimited=False)
    position = end
    while unit := _UNIT_THEN_NUMBER.match(text, position):
        if _MEASURE_WORD.search(unit[0].removesuffix(" ").removesuffix(" and") + " "):
            break
        following = _run_at(text, unit.end())
        if not following or _OTHER_STATEMENT.match(text, following[-1].end):
            break
        position = following[-1].end
    if position == end:
        return None
    unit = _LAST_UNIT.match(text, position)
    if unit and (not _MEASURE_WORD.match(unit[0] + " ") or not text[unit.end() :].strip(" .")):
        position = unit.end()
    if position - start > _LONGEST_CLAUSE:
        return None
    return Span(start, position, text[start:position], is_delimited=False)


def _written(pieces: list[_Piece], *, is_delimited: bool) -> str:
    """Return the text of a span without delimiters."""
    if not is_delimited:
        return "".join(piece.text for piece in pieces).strip(" ")
    parts: list[str] = []
    for piece in pieces:
        if piece.kind == "joiner":
            parts.append(" or " if re.search(r"\b(?:or|ou|oder|o|или)\b|或", piece.text) else ", ")
        else:
            parts.append(piece.text)
    return "".join(parts)
