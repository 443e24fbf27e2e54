"""The answer inside a statement such as "so the total is **42** cm".

These functions read the few hundred characters in which an answer is announced, once per distinct text. A
statement is a sequence of candidates (mathematics between delimiters, bold text, numbers), of which rules
choose one.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["answer_announced", "answer_concluded", "answer_itself"]

NUMBER: Final = (
    r"[-+−]?(?:[$€£¥]|\\\$)?[-−]?"
    r"(?:\\[dt]?frac\{-?[\d.]+\}\{[\d.]+\}"
    r"|(?:\d{1,3}(?:(?:,|\{,\}|,\\!)\d{3})+\b|\d+,\d{1,2}\b|\d+)(?:\.\d+)?(?:/\d+)?)"
    r"(?:\s?\\?%|\s?\^\{?\\circ\}?|[°€£¥])?"
)
"""A number in prose: sign, currency, thousands, decimals or fraction, percent.

Written in the syntax that Python's and Rust's regular expressions share.
"""

_SPACED: Final = r"[-+−]?\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?(?!\d)|[-+−]?\d+ \d+/\d+"
"""Thousands separated by spaces, and mixed numbers."""

_WHOLE: Final = r"(?![a-zA-Z0-9_^{]|[.:]\d|[¹²³⁰⁴-⁹½¼¾⅐-⅞])"
"""The end of a number: not in "6.02e23", "1.000.000", "12:30", "4²" or "3½"."""

_CANDIDATE: Final = re.compile(
    r"\*\*(?P<bold>[^*\n]*[^*\s:：])\s*\*\*(?!\s*[:：])"
    r"|\$\$(?P<display>.+?)\$\$"
    r"|\$(?P<dollars>(?:\\.|[^$\\])+)\$(?!\d)"
    r"|\\\((?P<round>.+?)\\\)"
    r"|\\\[(?P<square>.+?)\\\]"
    rf"|(?<![a-zA-Z0-9_.^{{\\])(?<!\d:)(?P<number>{_SPACED}|{NUMBER}){_WHOLE}",
    re.DOTALL,
)
# "30\pi", "2+3i", "7 - 2\sqrt{2}": a number that is only the beginning of the answer
_CONTINUES: Final = re.compile(
    r"\s?(?:\\(?:pi|sqrt|cdot|times|[dt]?frac|sin|cos|tan|ln|log|e|i)(?![a-zA-Z])|\+\s?(?:[\d\\(]|[a-z]\b)|[-−*/]\s?[\d\\(])"
)
_JOINER: Final = re.compile(
    r"(?:\s|\\\s|\\quad|\\text\s*\{|\}|,|;|、|&|和|或|及|\\cup|\b(?:and|or|et|und|y|ou|oder)\b)+"
)
_FILLER: Final = re.compile(
    r"(?:[\s:：=*_#>\"“”'`]|\\\"|\b(?:is|are|was|be|of|therefore|thus|hence|so|simply|just|for sure|"
    r"exactly|about|approximately|equal to|given by|option|choice|clearly|indeed|donc|also|pues)\b)+",
    re.IGNORECASE,
)
_CHOICE: Final = re.compile(r"[(（]?([A-J])(?:[)）]|(?=\s*(?:$|[.,;:!。，、])))")
# "C Cecile" is an option with its text; "A Triangle" and "I" may be words
_LABELLED: Final = re.compile(r"([B-HJ]) [A-Z][a-z]+$")
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|be|it's(?: for sure)?|equals?|gives?|get|becomes?|yields?|makes?|to|by)\b|[:：]\s|[：为是]"
)
_EQUALS: Final = re.compile(r"[=≈]|\\approx")
_HEADING: Final = re.compile(r"\s*#|\W*(?:step|case|part)\s*\d", re.IGNORECASE)
_CHOSEN: Final = re.compile(r"\b([A-J])\)? is (?:the )?(?:correct|right|answer|best|true)\b")
_REASON: Final = re.compile(
    r"\s+(?:because|since|as|for|which|where|when|if|so|but|due|rather|not)\b", re.IGNORECASE
)
_CONCLUSION: Final = re.compile(
    r"\b(?:therefore|thus|hence|consequently|in conclusion|final answer|donc|por (?:lo )?tanto|entonces|"
    r"daher|somit|quindi|portanto|следовательно|итак|ответ)\b"
    r"|所以|因此|故|综上|故选|结论|总共|最终|共有|答|لذا|इसलिए|したがって|따라서",
    re.IGNORECASE,
)
_WEAK_CONCLUSION: Final = re.compile(
    r"\b(?:so|finally|answer|result|solution|we (?:find|get|have)|i think)\b", re.IGNORECASE
)
_NOTE: Final = re.compile(r"\s*ки\b.*|<\|.*|\bI hope (?:it|this|that) is correct.*", re.DOTALL)
# Math-Shepherd ends each step with this tag, so it ends an announced answer but not a text of steps
_STEP_TAG: Final = re.compile(r"[ \t]*ки\b")
_SENTENCE_END: Final = re.compile(
    r"(?<=[^\s\d][.!?])\s+(?=\S)|(?<=\d[.!?])\s+(?=[^\W\d_])|(?<=[。！？])|(?<=[.!?]\$)\s+(?=[A-Z])"
    r"|(?<=[.!?]\$\$)\s*(?=[A-Z])"
    r"|(?<=[.!?]\\[\])])\s*(?=[A-Z])"
)
_CLOSED: Final = ".!?。！？$)]}*।"
_FINISHED: Final = re.compile(r"(?:[.!?。！？$)\]}*€£%°।]|\d|\b[A-J])$")
_LETTER: Final = re.compile(r"[a-zA-Z]")
_COMMAND: Final = re.compile(r"\\[a-zA-Z]+")
_PRICE_AT_END: Final = re.compile(r"(?<=\s)\$\d[\d,]*(?:\.\d+)?\W?$")
# in prose, and beside a currency, a comma before one or two digits is a decimal comma
_PRICE_COMMA: Final = re.compile(r"[-−]?(?:[$€£¥]\s?\d+,\d{1,2}(?!\d)|\d+,\d{1,2}\s?[$€£¥])")
_DANGLING: Final = re.compile(
    r"(?:[-+=,(\[{]|\b(?:and|or|but|the|an?|of|with|to|by|is|are|in|for|that|we))$", re.IGNORECASE
)
_CJK: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_WORD: Final = re.compile(r"(?<![\\\w])[^\W\d_]{2,}")
_EDGES: Final = " \t\n\r.,;:!。，；：！？*\"“”'`"
_MEASURED: Final = re.compile(
    r"\s[ap]\.?m\b|\spercent\b|^[-\d.,/]+ [a-z]+\.?,? (?:and )?\d", re.IGNORECASE
)
"""Words that belong to a number: "10 a.m.", "20 percent", "3 hours 20 minutes"."""
_LONGEST_MEASURE: Final = 40
_LONGEST_TEXT: Final = 80
_MOST_WORDS: Final = 5


def answer_announced(text: str) -> str | None:
    """Read the text after "the answer is": its first line, or the beginning of it."""
    statement = _first_line(_NOTE.sub("", text))
    statement = statement[_match_length(_FILLER, statement) :]
    if not statement:
        return None
    choice = _CHOICE.match(statement)
    if choice:
        return choice[1]
    candidate = _CANDIDATE.match(statement)
    if candidate and not (candidate["number"] and _CONTINUES.match(statement, candidate.end())):
        return _joined_candidates(statement, candidate)
    sentence = _SENTENCE_END.split(statement, maxsplit=1)[0]
    short = _REASON.split(sentence, maxsplit=1)[0].strip(_EDGES)
    is_prose = len(_WORD.findall(short)) > _MOST_WORDS or _CJK.search(short)
    states = is_prose or "**" in short or _VERB.search(short)
    stated = _last_stated(sentence) if states else None
    return stated or (short if 0 < len(short) <= _LONGEST_TEXT and not is_prose else None)


def answer_concluded(text: str) -> str | None:
    """Read the last line of a finished text, if it states a result."""
    steps = _STEP_TAG.sub("", text)
    lines = [line for raw in _NOTE.sub("", steps).splitlines() if (line := raw.strip())]
    if not lines or _HEADING.match(lines[-1]):
        return None
    sentence = [part for part in _SENTENCE_END.split(lines[-1]) if part.strip()][-1].strip()
    chosen = _CHOSEN.search(sentence)
    if chosen:
        return chosen[1]
    if _is_cut_off(sentence):
        return None
    conclusions = list(_CONCLUSION.finditer(sentence))
    if conclusions and _FINISHED.search(sentence):
        conclusion = sentence[conclusions[-1].end() :]
        return _last_stated(conclusion) or _last_stated(sentence)
    if sentence[-1] not in _CLOSED or not ("**" in sentence or _WEAK_CONCLUSION.search(sentence)):
        return None
    return _last_stated(sentence)


def answer_itself(text: str) -> str | None:
    """Read a short text that is an answer: `42`, `odd $n$`, `D.`, `It costs 7 dollars.`."""
    statement = _NOTE.sub("", _STEP_TAG.sub("", text)).strip()
    prose = _CANDIDATE.sub(" ", statement)
    if not statement or "\n" in prose or len(prose) > _LONGEST_TEXT:
        return None
    choice = _CHOICE.match(statement) or _LABELLED.match(statement)
    if choice:
        return choice[1]
    if _HEADING.match(statement) or _DANGLING.search(statement):
        return None
    candidate = _CANDIDATE.match(statement)
    if candidate and _REASON.match(statement, candidate.end()):
        return _content_of(candidate)
    is_statement = _VERB.search(prose) or statement.endswith((".", "。"))
    words = _WORD.findall(_JOINER.sub(" ", prose))
    if not words or (len(words) == 1 and not is_statement):
        return statement if re.search(r"[\d$\\]", statement) else None
    return _last_stated(statement) if is_statement else None


def _is_cut_off(sentence: str) -> bool:
    """Tell whether a delimiter of mathematics is not closed."""
    dollars = sentence.count("$") - sentence.count("\\$") - len(_PRICE_AT_END.findall(sentence))
    return dollars % 2 == 1 or any(
        sentence.count(opening) > sentence.count(closing)
        for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("{", "}"), ("(", ")"))
    )


def _first_line(text: str) -> str:
    """Return the first line that is not empty; display mathematics counts as one line."""
    rest = text[_match_length(_FILLER, text) :]
    while rest:
        candidate = _CANDIDATE.match(rest)
        end = rest.find("\n", candidate.end() if candidate else 0)
        if end < 0:
            break
        if not rest[:end].rstrip(" *").endswith((":", "：")):
            return rest[:end]
        rest = rest[end:].lstrip()
    return rest


def _match_length(pattern: re.Pattern[str], text: str) -> int:
    """Return the length of the match at the start of the text."""
    match = pattern.match(text)
    return match.end() if match else 0


def _content_of(candidate: re.Match[str]) -> str | None:
    """Return the candidate without its delimiters."""
    content = next(group for group in candidate.groups() if group is not None).strip(_EDGES)
    if candidate["number"] and _PRICE_COMMA.match(candidate.string, candidate.start()):
        content = content.replace(",", ".")
    return _result_of_chain(content) or None


def _result_of_chain(content: str) -> str:
    """Return the last part of "11 * 11 = 121", and an equation that states no result unchanged."""
    parts = [part.strip() for part in _split_at_equals(content)]
    if len(parts) == 1 or "," in content:
        return content
    is_calculation = not _LETTER.search(_COMMAND.sub("", parts[0] + parts[-1]))
    return parts[-1] if len(parts) > 2 or is_calculation else content


def _split_at_equals(content: str) -> list[str]:
    """Split at the equals signs outside brackets and other relations."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(content):
        depth += (character in "([{") - (character in ")]}")
        if (
            character == "="
            and depth == 0
            and content[position - 1 : position] not in {"<", ">", "!", ":"}
        ):
            parts.append(content[start:position])
            start = position + 1
    return [*parts, content[start:]]


def _joined_candidates(statement: str, first: re.Match[str]) -> str | None:
    """Return a candidate with the ones joined to it, as in "2 and 3" or "$a$, $b$"."""
    parts = [first]
    while joiner := _JOINER.match(statement, parts[-1].end()):
        following = _CANDIDATE.match(statement, joiner.end())
        if following is None or not joiner[0].strip():
            break
        parts.append(following)
    if len(parts) == 1 and first["number"]:
        sentence = _SENTENCE_END.split(statement[first.start() :], maxsplit=1)[0]
        clause = _REASON.split(sentence, maxsplit=1)[0].strip(_EDGES)
        if len(clause) <= _LONGEST_MEASURE and _MEASURED.search(clause):
            return clause
    if len(parts) > 1 and all(part["number"] for part in parts):
        return statement[first.start() : parts[-1].end()]
    return ", ".join(content for part in parts if (content := _content_of(part))) or None


def _last_stated(sentence: str) -> str | None:
    """Return the last candidate of a sentence, preferring bold text and what follows "is"."""
    candidates = list(_CANDIDATE.finditer(sentence))
    bold = [candidate for candidate in candidates if candidate["bold"]]
    if bold:
        inner = _CANDIDATE.search(bold[-1]["bold"])
        return _content_of(inner or bold[-1])
    outside = _CANDIDATE.sub(lambda match: " " * len(match[0]), sentence)
    for stated in (_VERB, _EQUALS):
        for verb in reversed(list(stated.finditer(outside))):
            answer = _stated_after(sentence, verb.end())
            if answer:
                return answer
    return _content_of(candidates[-1]) if candidates else None


def _stated_after(sentence: str, position: int) -> str | None:
    """Return the answer directly after a verb or an equals sign."""
    start = position + _match_length(_FILLER, sentence[position:])
    candidate = _CANDIDATE.match(sentence, start)
    if candidate:
        return _joined_candidates(sentence, candidate)
    choice = _CHOICE.match(sentence, start)
    if choice:
        return choice[1]
    rest = sentence[start:].strip(_EDGES)
    is_prose = _CJK.search(rest) or _WORD.search(_JOINER.sub(" ", rest))
    return rest if len(rest) <= _LONGEST_TEXT and re.search(r"\d", rest) and not is_prose else None
