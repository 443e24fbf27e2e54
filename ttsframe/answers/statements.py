"""The answer inside a statement such as "so the total is **42** cm".

These functions read the few hundred characters in which an answer is stated, once per distinct text. What
they return is whole: `spans` decides how far an answer goes, and a statement that goes on otherwise has none.
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import Final

from ttsframe.answers.shapes.words import STATED
from ttsframe.answers.spans import Span, find_spans, span_at

__all__ = [
    "REACH",
    "answer_after_hash",
    "answer_announced",
    "answer_concluded",
    "answer_itself",
    "answer_on_last_line",
    "answer_tagged",
    "is_placeholder",
    "plain_value",
]

REACH: Final = 400
"""Number of characters, after a phrase or before the end of a text, that are searched for an answer."""

_PLAIN_NUMBER: Final = re.compile(
    r"^(?:[^\x00]*\x00)?[ :]{0,3}(-?(?:\$|\\\$)?\d{1,15}(?:,\d{3})*(?:\.\d+)?%?)[ \t]*\.?[ \t]*(?:ки\s*)?(?:\n|\Z)"
)
# no words, no equation, no box: nothing that `answer_announced` would read otherwise than as it is
_PLAIN_MATHEMATICS: Final = re.compile(
    r"^\x00[ :]{0,3}\$([0-9A-Za-z]|(?:[-+0-9a-zA-Z(\[{|]|\\[ac-zA-Z{},;!%])"
    r"(?:[!-#%-;>-\[\]-~]|\\[ac-zA-Z{},;!%]| \\[ac-ln-su-zA-Z{},;!%]| [!-#%-;>-@\[\]-`{-~]){0,150}"
    r"[0-9A-Za-z)}\]|])\$\.(?:(?:[ \t][^\n:：]*)?(?:\n|\Z)|[ \t]+I hope it is correct)"
)
_JOINER: Final = re.compile(
    r"(?:\s|\\\s|\\quad|\\text\s*\{|\}|,|;|、|&|和|或|及|\\cup|\b(?:and|or|et|und|y|ou|oder)\b)+"
)
_FILLER: Final = re.compile(
    r"(?:[\s:：=*#>\"“”'`}—]|_(?!\{|\w+[CP]_)|\\[\"\s,;]|\\q?quad\b|(?<=\n)[-•]\s+(?=\S)|"
    r"\b(?:is|are|was|be|of|therefore|thus|hence|so|simply|just|for sure|now|then|indeed|"
    r"exactly|about|approximately|roughly|equal to|given by|clearly|donc|also|pues|lautet|ist|es|est)\b[,:]?"
    r"|は|です|、(?=\d)|है(?=\s)|হল|হলো)+",
    re.IGNORECASE,
)
_LETTER: Final = r"(?:[(（\[]\s?\**[A-J]\**\s?[)）\]]|\**\b[A-J]\b\**\)?)"
_CHOICES: Final = re.compile(
    r"(?P<label>(?i:both|options?|choices?|statements?|选项)\s*:?\s*)?"
    rf"(?P<letters>{_LETTER}(?:\s*+(?:,\s*+(?:(?:and|or)\b)?|(?:and|or)\b|[&、和或])\s*+{_LETTER})*)"
    r"(?!['’\w]|#(?!#))"
)
_AFTER_CHOICE: Final = re.compile(
    r"\s*(?:$|[.,;:!?。，、\n)\]]|\*\*|<|—|[-–]\s)|\s+(?:because|since|as|for|is|are|which|where|and|but|so|due|"
    r"rather|not|ки|when|if|only|out of)\b|(?:이|입|が|で|です|。)"
)
_NUMERALS: Final = re.compile(
    r"(?:I{1,3}|IV|V)(?:(?:,|,? (?:and|or)) (?:I{1,3}|IV|V)\b)+(?: only\b)?(?!['’\w])"
)
_CHOICE_LETTER: Final = re.compile(r"[A-J]")
# "C Cecile" is an option with its text; "A Triangle" and "I" may be words
_LABELLED: Final = re.compile(r"([B-HJ]) [A-Z][a-z]+$")
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|be|it's(?: for sure)?|equals?|gives?|get|becomes?|yields?|makes?|to|by|written as|expressed as|"
    r"ist|est|es|son|sont|é|è|bằng|là|ni)\b|[:：]\s|[：为是]"
)
_DEED: Final = re.compile(
    r"\b(?:has|have|had|needs?|needed|takes?|took|costs?|pays?|paid|earns?|earned|saves?|saved|spends?|spent|sells?|sold|"
    r"buys?|bought|owes?|owed|got|receives?|received|uses?|used|made|collects?|collected|bakes?|baked|eats?|ate|drinks?|"
    r"drank|reads?|runs?|ran|walks?|walked|drives?|drove|travels?|travell?ed|scored?|scores|works?|worked|will|can|must|should)\b(?!.*\b(?:than|least|most|not)\s*$)"
)
"""Verbs before the one number of a sentence: "Alice has 15 marbles"."""
_EQUALS: Final = re.compile(r"[=≈]|\\approx")
_HEADING: Final = re.compile(r"\s*#|\W*(?:step|case|part)\s*\d", re.IGNORECASE)
_CHOSEN: Final = re.compile(
    r"\b([A-J])\)? is (?:the )?(?:correct|right|answer|best|true)\b"
    r"|\b(?:choose|choosing|select|pick|chose|go with)(?: (?:option|choice|answer))?:? \**\(?([A-J])\)?\W*$",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"\s+(?:because|since|as|for|which|where|when|if|so|but|due|rather|not|who|ки)\b(?!\s+(?:exist|possible|defined|an?|enough)\b)",
    re.IGNORECASE,
)
_CONCLUSION: Final = re.compile(
    r"\b(?:therefore|thus|hence|consequently|in conclusion|final answer|donc|por (?:lo )?tanto|entonces|"
    r"daher|somit|also (?:ist|beträgt|kostet|sind)|quindi|portanto|следовательно|итак|ответ|kwa hiyo)\b"
    r"|所以|因此|故|综上|故选|结论|总共|最终|共有|答|لذا|लذا|وبالتالي|لذلك|إذن|इसलिए|अतः|したがって|よって|따라서|그러므로"
    r"|ดังนั้น|সুতরাং|অতএব|కాబట్టి|∴",
    re.IGNORECASE,
)
_WEAK_CONCLUSION: Final = re.compile(
    r"\b(?:so|finally|answer|result|solution|we (?:find|get|have)|i think|altogether|in total)\b",
    re.IGNORECASE,
)
_NOTE: Final = re.compile(r"\s*ки\b.*|<\|.*|\bI hope (?:it|this|that) is correct.*", re.DOTALL)
# struck out, and what a calculator has computed: "5+5=<<5+5=10>>10"
_ASIDE: Final = re.compile(r"~~[^~\n]+~~ ?|<<[^<>\n]*>>")
_PICTURES: Final = re.compile(
    r"\s*[\u2705\u2713\u2714\u2728\U0001f300-\U0001faff][\ufe0f\u200d\U0001f300-\U0001faff\s]*\Z"
)
"""Check marks and emoji at the end, which are no part of an answer."""
_NOTE_WORDS: Final = ("<|", "hope", "ки")
# Math-Shepherd ends each step with this tag, so it ends an announced answer but not a text of steps
_STEP_TAG: Final = re.compile(r"[ \t]*ки\b")
_SENTENCE_END: Final = re.compile(
    r"(?<=[^\s\d][.!?])(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bProf\.)(?<!\bJr\.)"
    r"(?<!\bSr\.)(?<!\bvs\.)(?<!\bRs\.)(?<!\bNo\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bapprox\.)(?<!\bFig\.)"
    r"(?<!\bEq\.)(?<!\bft\.)(?<!\bin\.)(?<!\b[A-Z]\.)(?<!\b[ap]\.m\.)(?<!\betc\.)\s+(?=\S)"
    r"|(?<=\b[A-J]\.)\s+(?=[A-Z][a-z])"
    r"|(?<=\d[.!?])\s+(?=[^\W\d_])|(?<=[。！？।])|(?<=[.!?]\$)\s+(?=[A-Z])"
    r"|(?<=[.!?]\$\$)\s*(?=[A-Z])"
    r"|(?<=[.!?]\\[\])])\s*(?=[A-Z])"
)
# the only places where a sentence may end: the pattern above is slow to search, and quick to test
_MAY_END: Final = re.compile(r"[.!?](?:\$\$?|\\[\])])?|[。！？।]")
_CLOSED: Final = ".!?。！？$)]}*।`"
_FINISHED: Final = re.compile(r"(?:[.!?。！？$)\]}*€£%°।`\"]|\d|\b[A-J])$")
_ASCII_LETTER: Final = re.compile(r"[a-zA-Z]")
_COMMAND: Final = re.compile(r"\\[a-zA-Z]+")
_LAST_PRICE: Final = re.compile(
    r"(?<=\s)\$\d[\d,]*(?:\.\d+)?(?![\w\\^_{])(?!\s*[-+*/=^<>\\])[^$]*$"
)
_DANGLING: Final = re.compile(
    r"(?:[-+=,(\[{]|\b(?:and|or|but|the|an?|of|with|to|by|is|are|in|for|that|we|then|than|which|so),?)$",
    re.IGNORECASE,
)
_CJK: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# no span goes on over such a break without one of the other characters before it
_LINE_BREAK: Final = re.compile(r"\.\n[A-Z]")
_MAY_SPAN_LINES: Final = re.compile(r"[$\\({\[\]|`*]")
_WORD: Final = re.compile(r"(?<![\\\w])[^\W\d_]{2,}")
_EDGES: Final = " \t\n\r.,;:!。，；：！？*\"“”'`।"
_LONGEST_TEXT: Final = 80
_MOST_WORDS: Final = 5

_NO_ANSWER: Final = re.compile(
    r"(?:not(?! (?:possible|defined|real|an?|enough|solvable|exist|continuous|differentiable|invertible|unique)\b)|never|as|below|above|given|"
    r"found|shown|supposed|likely|probably|that|what|which|how|why|whether|here|there|this|these|it|we|you|your|"
    r"he|she|they|i|to|based|expected|needed|required|already|still|easy|simple|straightforward|"
    r"consistent|verified|checked|in|by|from|then|written|expressed|rounded|different|"
    r"please|let|let's|because|since|if|when|first|next|also|too|must|should|could|would|will|may|might|can|"
    r"cannot|can't|isn't|provided|obtained|displayed|stated|ready|done|step|explanation|solution|the following|"
    r"the same|the answer|the final|the correct|the solution|unfinished|missing|boxed|n/?a|unable|supported)\b"
    r"|n['’]t\b|no longer\b|(?:incorrect|wrong|correct|right|clear|obvious|obviously|unclear|unknown|reasonable|valid)\W*$"
    r"|(?:the |your |my )?(?:final |correct )?answer\b|\.\.\.|…|_{2,}|\?|\[|<",
    re.IGNORECASE,
)
_CHOOSING_WORDS: Final = (
    "s are", "choos", "chose", "select", "pick", "go with", "correct", "right", "answer", "best", "true",
)  # fmt: skip
"""One of these is in every ASCII text in lower case that `_LISTING` or `_CHOSEN` matches."""
_NO_SOLUTION_WORDS: Final = ("exist", "infinitely", "no ")
"""One of these is in every ASCII text in lower case that `_NO_SOLUTION` matches."""
_CONCLUDING_WORDS: Final = (
    "therefore", "thus", "hence", "consequently", "conclusion", "final answer", "donc", "por", "entonces",
    "daher", "somit", "also", "quindi", "portanto", "kwa hiyo",
)  # fmt: skip
"""One of these is in every ASCII text in lower case that `_CONCLUSION` matches."""
_DENYING_WORDS: Final = ("not", "never", "no longer", "n't", "n’t")
# "Thus, the sum of 3 and $x$ is", after which no span, verb or choice can have begun before
_PLAIN_CONCLUSION: Final = re.compile(
    r"(?:#+ Step \d+: +)?(?:Therefore|Thus|Hence|So|Finally),?"
    r"(?: (?:[A-Za-z][a-z]*(?:['-][a-z]+)*|\d+|\$(?:[^$ ]| (?![a-zA-Z]{2}))*[A-Za-z0-9)}\]]\$"
    r"|\\\( ?(?:[^$\s()]|[^\S\n](?![a-zA-Z]{2}))*[A-Za-z0-9}\]] ?\\\)),?)*"
)
_PLAIN_START: Final = re.compile(
    r"(?:(?:approximately|about|exactly|simply) )?(?=-?(?:\d|\$\S|\\\(|\\[dt]?frac\{|\\sqrt\{))"
)
_PLAIN_REST: Final = re.compile(
    r"(?! (?:not|never|cannot|no|choos\w+|chose|select|pick|go)\b)(?: [a-z]+){0,2}\.?"
)
_DENIED: Final = re.compile(
    r"\banswers?\b.{0,40}\b(?:incorrect|wrong|not|unclear)\b", re.IGNORECASE
)
_NO_SOLUTION: Final = re.compile(
    r"(?:\b(?:there (?:is|are)|has|have|with) |^)(?P<none>no (?:real |integer |possible |such |valid )*(?:solutions?|roots?|values?))\b"
    r"|\b(?P<nothing>does not exist|do not exist|doesn't exist)\b"
    r"|\b(?:there (?:is|are)|has|have) (?P<many>infinitely many solutions?)\b",
    re.IGNORECASE,
)
_WHOLE_WORD: Final = frozenset({
    "yes",
    "no",
    "true",
    "false",
    "none",
    "undefined",
    "impossible",
    "dne",
})
_PLACEHOLDER: Final = re.compile(
    r"[\s$\\{(\[<*_]*(?:(?:text|mathrm|textbf|mathbf|boldsymbol)\s*\{\s*)?[\[<(]?\s*"
    r"(?:(?:(?:insert|put|write|enter|place|your|the|my|our|a|this is the)\s+)*(?:final|correct|numerical|numeric)?\s*"
    r"answers?(?:\s+(?:here|goes here|in the box))?"
    r"|result|value|final result|solution|your solution|expression|answer_here|final_answer|\.\.\.|…|\\[lcd]?dots|\?+|_+)"
    r"\s*[.:]?[\s}\])>$*_]*",
    re.IGNORECASE,
)
_JSON_KEY: Final = re.compile(r"nswer\w*\\?[\"']\s*[:=]\s*$", re.IGNORECASE)
_JSON_STRING: Final = re.compile(
    r"\\?\"((?:[^\"\\]|\\.)*?)\\?\"\s*(?=[,}\n\]]|$)|'((?:[^'\\]|\\.)*)'"
)
_JSON_LIST: Final = re.compile(r"\[([^\[\]]*)\]")
_JSON_VALUE: Final = re.compile(r"[^,}\s]+")
_OPTION_KEY: Final = re.compile(
    r"(?:option|choice)s?[\s*]*(?:(?:is|are):?|:|：)\s*$", re.IGNORECASE
)
_NAMED_LINE: Final = re.compile(r"\W{0,4}([A-Za-z](?:_\{?\w\}?)?)\W{0,3}?\s*=(?!=)")
_PARTS: Final = re.compile(r"\(?[a-d]\)[\s:]*[-$\\(]*\d|\(i+\)|[*:\s]*\n\s*1[.)]\s")
_UNDERSCORED: Final = re.compile(r"(?<![\w\\^{}])(__?)(?=[^\s_])([^_\n]+)(?<=\S)\1(?!\w)")
_MAY_BE_UNDERSCORED: Final = re.compile(r"_(?<![\w\\^{}]_)")
_BOLD: Final = re.compile(r"\*\*([^*\n]+?)\s*\*\*")
_NAME: Final = re.compile(r"[A-Za-z](?:_\{?[A-Za-z0-9]+\}?)?")
_IS: Final = re.compile(r"[$*\s]*\sis\s")
_BOLD_LABEL: Final = re.compile(
    r"(?:the )?(?:final |correct )?(?:answer|result)\s*(?:is\b)?\s*[:：=]?\s*", re.IGNORECASE
)
_RESULT_LABEL: Final = re.compile(
    r"(?:final )?(?:conclusion|result|answer|solution)\s*[:：]?\s*\Z", re.IGNORECASE
)
_UNITS_ONLY: Final = re.compile(
    r"(?:\s*+(?:\\[,; ]|\\text\{[^{}]*\}|[^\W\d_]++|[.,;:!?°²³/。]|\\?\$|\}|\)))*+$"
)
# bold text is an item where it is the whole of it
_BULLET: Final = re.compile(r"\s*[-•*]\s+(?!\*(?!\*[^*]+\*\*\s*$))")
_ONLY_ITEM: Final = re.compile(r"^[*:\s]*\n\s*1[.)]\s+(?=\S)")
_SECOND_ITEM: Final = re.compile(r"\n\s*2[.)]\s")
_ITEM: Final = re.compile(r"\d{1,2}[.)]\s+\S|[-•]\s")
_LAST_LABEL: Final = re.compile(
    r"[\W_]*(?:final )?(?:result|ans|answer|total|conclusion)\b[.]?[*_]*\s*[.:：=]?[*_]*\s+",
    re.IGNORECASE,
)
_LISTING: Final = re.compile(r"\b(?:choices|options) are\b", re.IGNORECASE)
_LONGEST_CHOICE: Final = 4
_DENIAL: Final = re.compile(
    r"(?:\b(?:not|cannot|never|no longer)|n['’]t)\b(?! only)(?:(?!\b(?:is|are|was|were|equals)\b)[^,;])*$",
    re.IGNORECASE,
)
_BREAKS_OFF: Final = re.compile(r"[=+*/^({<>-]$")
_DATED: Final = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|.*\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?,? \d+"
)
# delimiters of mathematics may stand between the numbers
_MAY_BE_DATED: Final = re.compile(
    r"\d(?:\W|eq)*?[-/.](?:\W|eq)*?\d\d?(?:\W|eq)*?[-/.](?:\W|eq)*?\d|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
)
_CONCLUDING_HEADING: Final = re.compile(
    r"\W*(?:step \d+\W*)?(?:conclusion|final answer|answer|result|summary)\W*", re.IGNORECASE
)
_ENUMERATION: Final = re.compile(r"\d{1,2}[.)]$")
_CODE_BLOCK: Final = re.compile(r"```[a-zA-Z]*[ \t]*\n([^`]*?)\n?```\s*$")
_DISPLAY_AT_END: Final = re.compile(
    r"(?:\$\$([^$]{1,300})\$\$|\\\[((?:(?!\\\[|\\\]).){1,300})\\\])\s*\.?\s*$", re.DOTALL
)
_RELATION: Final = re.compile(
    r"[<>≤≥≈≠]|\\(?:[lg]eq?|[lg]t|approx|neq?|equiv|sim|in|implies|Rightarrow|to)(?![a-zA-Z])"
)
_CALCULATION: Final = re.compile(r"\S\s*[+*×·]|\S\s+-|\\(?:cdot|times|div|frac\{[^{}]*[-+])")
_TWO_NAMED: Final = re.compile(
    r"(?<![\w'])[A-Za-z](?:_\w{1,9})? (?:is|equals) [^\s,;]{1,40}[,;]? (?:and )?[A-Za-z](?:_\w{1,9})? (?:is|equals) "
)
"""Two values in words: neither is the answer alone."""
_ASSIGNMENT: Final = re.compile(r"\s*([A-Za-z](?:_\w|_\{\w+\})?)\s*=[^=]+")
_NAME_EQUALS: Final = re.compile(r"(?:[a-zA-Z]|\\[a-z]+)(?:_\w|_\{\w+\})?\s*=\s*")
_LIST_WORD: Final = re.compile(r"\b(?:and|or)\b|\\begin|;|\\quad\s*[a-z]\b")
# what begins as mathematics and is no span: "\\neq 5", "y'+ry=0"
_UNREAD_MATH: Final = re.compile(
    r"[-+−]?\s*(?:[\\\d(\[|√{]|[A-Za-z]{2,4}\s?=|[a-zA-Z](?:[_^({'=+*/\d]|\s*[=<>≤≥+]))"
)
# "18 eggs ÷ 6", a calculation that no span holds
_SUM_OF_UNITS: Final = re.compile(r"\d [A-Za-z]+ (?:[÷×+=]|[-−*/] )|<<")
_VALUE_AND_UNITS: Final = 3


def plain_value(statement: str) -> str | None:
    """Read a statement that is a number or mathematics between dollar signs, behind a null character."""
    plain = _PLAIN_NUMBER.match(statement) or _PLAIN_MATHEMATICS.match(statement)
    return plain[1] if plain else None


def answer_announced(text: str, before: str = "") -> str | None:
    """Read the text after "the answer is"; the end of the phrase tells a field of JSON and an option."""
    if _JSON_KEY.search(before):
        return _json_value(text)
    is_cut = len(text) >= REACH
    text = _without_notes(text)
    listed = _bulleted(text) or _equations(text)
    if listed is not None:
        return listed
    text = _ONLY_ITEM.sub("\n", text, count=1) if _SECOND_ITEM.search(text) is None else text
    if _PARTS.match(text):
        return None
    statement, rest = _first_line(text)
    if not statement or _PARTS.match(statement):
        return None
    choice = _choice(statement)
    if choice or _OPTION_KEY.search(before):
        return None if choice == "A, B, C, D" else choice
    nothing = _NO_SOLUTION.match(statement)
    if nothing:
        return _nothing(nothing)
    bold = _BOLD.match(statement)
    span = span_at(statement, 0)
    if span is not None and _NAME.fullmatch(span.answer) and _IS.match(statement, span.end):
        return _named_values(statement)
    if span is not None and not (bold and span.end == bold.end()):
        if (is_cut and not rest and span.end >= len(statement)) or _is_template(span.answer):
            return None
        return _result(span) if span.is_delimited else span.answer
    if bold:
        return _in_bold(bold[1]) if span is not None else None
    return _in_words(statement, rest=rest, is_cut=is_cut)


def _named_values(statement: str) -> str | None:
    """Read `x is 6 and y is 5`, whole or not at all."""
    plain = statement.replace("$", "").strip(" :*").rstrip(".。")
    return plain if STATED.fullmatch(plain) else None


def answer_after_hash(text: str) -> str | None:
    """Read a line after `####`, if it is an answer and no heading."""
    number = _PLAIN_NUMBER.match(text)
    if number:
        return number[1]
    line = text.lstrip(" :\t*").split("\n", 1)[0].strip()
    if not line or len(line) > _LONGEST_TEXT:
        return None
    return _whole_line(line)


def answer_tagged(text: str) -> str | None:
    """Read the content of a tag such as `<answer>`, which holds an answer and little else."""
    content = _without_notes(text).strip()
    if not content or is_placeholder(content):
        return None
    itself = (
        _whole_line(content)
        if "\n" not in content or content.startswith(("$", "\\[", "```"))
        else None
    )
    if itself:
        return itself
    label = _BOLD_LABEL.match(content)
    if label and label.end():
        return answer_announced(content[label.end() :])
    if (
        "\n" not in content
        and len(content) <= _LONGEST_TEXT
        and len(_WORD.findall(content)) <= _MOST_WORDS
    ):
        stated = _last_stated(content) if _VERB.search(content) else None
        return stated or _trimmed(content) or None
    return None


def answer_concluded(text: str) -> str | None:
    """Read the last line of a finished text, if it states a result."""
    text = _without_marks(text).rstrip()
    if _MAY_BE_UNDERSCORED.search(text):
        text = _UNDERSCORED.sub(r"**\2**", text)
    lines = [line for raw in text.splitlines() if (line := raw.strip())]
    if not lines:
        return None
    concludes = len(lines) > 1 and _CONCLUDING_HEADING.fullmatch(lines[-2])
    if _HEADING.match(lines[-1]) and not (
        _CONCLUSION.search(lines[-1]) or _WEAK_CONCLUSION.search(lines[-1])
    ):
        return None
    sentence = _last_sentence(lines[-1])
    lowered = sentence.lower()
    # case may be folded otherwise outside ASCII, so that only the pattern can tell
    is_ascii = sentence.replace("°", "").isascii()
    may_choose = not is_ascii or _holds_any(lowered, _CHOOSING_WORDS)
    if may_choose and _LISTING.search(sentence):
        return None
    chosen = _CHOSEN.search(sentence) if may_choose else None
    if chosen:
        return (chosen[1] or chosen[2]).upper()
    if _is_cut_off(sentence):
        return None
    may_be_none = not is_ascii or _holds_any(lowered, _NO_SOLUTION_WORDS)
    nothing = _NO_SOLUTION.search(sentence) if may_be_none else None
    if nothing and sentence[-1] in _CLOSED:
        return _nothing(nothing)
    if not (may_choose or may_be_none) and (plain := _plainly_concluded(sentence)):
        return plain
    may_conclude = not is_ascii or _holds_any(lowered, _CONCLUDING_WORDS)
    conclusions = list(_CONCLUSION.finditer(sentence)) if may_conclude else []
    if conclusions and _FINISHED.search(sentence, len(sentence) - 1):
        conclusion = sentence[conclusions[-1].end() :]
        return _last_stated(conclusion) or _last_stated(sentence)
    if sentence[-1] not in _CLOSED:
        return None
    if concludes or "**" in sentence or _WEAK_CONCLUSION.search(sentence):
        return _last_stated(sentence)
    may_be_dated = _MAY_BE_DATED.search(sentence) and _VERB.search(sentence)
    stated = _last_stated(sentence) if may_be_dated else None
    return stated if stated and _DATED.fullmatch(stated) else None


def _plainly_concluded(sentence: str) -> str | None:
    """Read "Thus, the sum is 7 cm." as `_last_stated` does, without looking for all values in it."""
    before, _, after = sentence.rpartition(" is ")
    start = _PLAIN_START.match(after)
    if (
        start is None
        or after[-1] not in _CLOSED
        or "*" in after
        or not _PLAIN_CONCLUSION.fullmatch(before)
        or _VERB.search(after)
        or (_holds_any(after.lower(), _CONCLUDING_WORDS) and _CONCLUSION.search(after))
        or _TWO_NAMED.search(sentence)
    ):
        return None
    span = span_at(sentence, len(sentence) - len(after) + start.end())
    is_last = span is not None and _PLAIN_REST.fullmatch(sentence, span.end)
    return _result(span) if span is not None and is_last else None


def answer_itself(text: str) -> str | None:
    """Read a short text that is an answer: `42`, `odd $n$`, `D.`, `It costs 7 dollars.`."""
    statement = _without_marks(text).strip()
    statement = re.sub(r"^A\s*:\s*", "", statement)
    if statement.strip(_EDGES).lower() in _WHOLE_WORD:
        return statement.strip(_EDGES)
    label = _LAST_LABEL.match(statement)
    if label and _is_value(value := statement[label.end() :]):
        return _whole_line(value)
    if not statement or _HEADING.match(statement):
        return None
    line_break = _LINE_BREAK.search(statement)
    if line_break and not _MAY_SPAN_LINES.search(statement, 0, line_break.start()):
        return None
    spans = _spans_of_line(statement)
    if spans is None:
        return None
    choice = _choice(statement) or (match[1] if (match := _LABELLED.match(statement)) else None)
    if choice:
        return choice
    if any(mark.search(statement) for mark in (_DANGLING, _DENIED, _LISTING)):
        return None
    nothing = _NO_SOLUTION.search(statement)
    if nothing:
        return _nothing(nothing)
    if spans and spans[0].start == 0 and _REASON.match(statement, spans[0].end):
        return _result(spans[0])
    prose = _without(statement, spans)
    is_statement = _VERB.search(prose) or statement.endswith((".", "。"))
    words = _WORD.findall(_JOINER.sub(" ", prose))
    if not words or (len(words) == 1 and not is_statement):
        return statement if re.search(r"[\d$\\]", statement) else None
    return _last_stated(statement) if is_statement else None


def _spans_of_line(text: str) -> list[Span] | None:
    """Return the answers in one line with few words beside them; None where a text is longer."""
    spans: list[Span] = []
    position = length = 0
    for span in find_spans(text):
        between = text[position : span.start]
        length += len(between) + 1
        if "\n" in between or length > _LONGEST_TEXT:
            return None
        spans.append(span)
        position = span.end
    rest = text[position:]
    return None if "\n" in rest or length + len(rest) > _LONGEST_TEXT else spans


def answer_on_last_line(text: str) -> str | None:
    """Read a last line that is a value and nothing else: `42`, `$$42$$`, a block of code with one line."""
    text = _without_marks(text).rstrip()
    block = _CODE_BLOCK.search(text) if text.endswith("```") else None
    if block:
        content = block[1].strip()
        return _whole_line(content) if content and "\n" not in content else None
    ends_on_display = text.removesuffix(".").rstrip().endswith(("$$", "\\]"))
    display = _DISPLAY_AT_END.search(text) if ends_on_display else None
    before, _, line = (
        (text[: display.start()], "", display[0]) if display else text.rpartition("\n")
    )
    line, before = line.strip(), before.rstrip()
    if not before or not line or _ENUMERATION.match(line) or len(line) > _LONGEST_TEXT:
        return None
    previous = before.rpartition("\n")[2].strip()
    if previous.endswith((",", "+", "-", "=", "\\", "and", "or")) or _is_value(previous):
        return None
    if line.startswith("|") and previous.startswith("|"):  # rows of a table
        return None
    label = _LAST_LABEL.match(line)
    line = line[label.end() :] if label else line
    options = _CHOICES.fullmatch(line.rstrip(_EDGES))
    if options and (options["label"] or label or len(line) <= _LONGEST_CHOICE):
        return _choice(line)
    answer = _whole_line(line)
    return answer if answer is not None and _is_value(answer) else None


def is_placeholder(content: str) -> bool:
    """Tell whether a box or tag holds no answer but its name, as in a repeated instruction."""
    return len(content) <= _LONGEST_TEXT and _PLACEHOLDER.fullmatch(content) is not None


def _is_template(answer: str) -> bool:
    """Tell whether what is read as brackets or a quotient is "[your answer]" or "N/A"."""
    return (answer.startswith("[") and is_placeholder(answer)) or answer.lower() == "n/a"


def _holds_any(text: str, words: tuple[str, ...]) -> bool:
    """Tell whether a text holds one of the words."""
    for word in words:  # noqa: SIM110 # a generator takes twice as long
        if word in text:
            return True
    return False


def _without_notes(text: str) -> str:
    """Cut a text at the first note that follows an answer, and drop what is no part of its sentences."""
    text = _ASIDE.sub("", text) if "~~" in text or "<<" in text else text
    text = text if text.isascii() else _PICTURES.sub("", text)
    return _NOTE.sub("", text) if _holds_any(text.lower(), _NOTE_WORDS) else text


def _without_marks(text: str) -> str:
    """Drop the tags of steps, and what follows a note."""
    return _without_notes(_STEP_TAG.sub("", text) if "ки" in text else text)


def _last_sentence(line: str) -> str:
    """Return the last sentence of a line, which is not empty."""
    end = len(line)
    for mark in reversed([*_MAY_END.finditer(line)]):
        between = _SENTENCE_END.match(line, mark.end())
        if between is None:
            continue
        if sentence := line[between.end() : end].strip():
            return sentence
        end = between.start()
    return line[:end].strip()


def _is_value(text: str) -> bool:
    """Tell whether a text is one value, not an equation or relation in the middle of a derivation."""
    stripped = text.strip(_EDGES)
    name = _NAME_EQUALS.match(stripped)
    value = stripped[name.end() :] if name else stripped
    if (
        not value
        or "=" in value
        or _RELATION.search(value)
        or not re.search(r"\d|\\infty|∞", value)
    ):
        return False
    if name and (_ASCII_LETTER.search(_COMMAND.sub("", value)) or _CALCULATION.search(value)):
        return False
    span = span_at(stripped, 0)
    return span is not None and not stripped[span.end :].strip(_EDGES)


def _whole_line(line: str) -> str | None:
    """Return the answer that a line is, but for units and punctuation after it."""
    if _ITEM.match(line):
        return None
    choice = _choice(line)
    options = _CHOICES.match(line)
    if choice and options and not line[options.end() :].strip(_EDGES):
        return choice
    words = line.strip(_EDGES)
    nothing = _NO_SOLUTION.search(words)
    if words.lower() in _WHOLE_WORD or (nothing and nothing.end() == len(words)):
        return words
    bold = _BOLD.fullmatch(line.rstrip(".。"))
    if bold:
        return _in_bold(bold[1])
    start = len(line) - len(line.lstrip("*_`\"' "))
    span = span_at(line, start)
    if span is None:
        return None
    after = line[span.end :]
    if len(_WORD.findall(after)) > _VALUE_AND_UNITS or not _UNITS_ONLY.match(
        after.rstrip("*_`\"' ")
    ):
        return None
    return _result(span)


def _in_words(statement: str, *, rest: str, is_cut: bool) -> str | None:
    """Read a statement that does not begin with a value: "Evelyn", "does not exist", a whole sentence."""
    sentence, *others = _SENTENCE_END.split(statement, maxsplit=1)
    short = _REASON.split(sentence, maxsplit=1)[0]
    short = _trimmed(short)
    if short.endswith("}") and short.count("{") < short.count("}"):
        short = _trimmed(short[:-1])
    is_prose = len(_WORD.findall(short)) > _MOST_WORDS or _CJK.search(short)
    is_last = not others and not rest and not is_cut
    numbers = [*find_spans(short)]
    is_deed = len(numbers) == 1 and _DEED.search(short[: numbers[0].start]) is not None
    if is_prose or is_deed or "**" in short or _VERB.search(short):
        stated = _last_stated(short if is_deed else sentence)
        # "Answer: There are 15 trees. ... " may begin an explanation
        if (
            stated
            and not _is_cut_off(sentence)
            and (is_last or not _NO_ANSWER.match(sentence) or "**" in sentence)
        ):
            return stated
    if (
        is_prose
        or not re.search(r"\w", short)
        or len(short) > _LONGEST_TEXT
        or _NO_ANSWER.match(short)
    ):
        return None
    return None if (is_cut and not rest and not others) or _is_cut_off(short) else short


def _nothing(match: re.Match[str]) -> str:
    """Return the words that say that there is no answer, or that all are."""
    return match["none"] or match["nothing"] or match["many"]


def _choice(statement: str) -> str | None:
    """Return the option at the start: "B", "(B) because", "B, C", and "(B) 12" with its value."""
    numerals = _NUMERALS.match(statement)
    if numerals:
        return numerals[0]
    match = _CHOICES.match(statement)
    if match is None:
        return None
    letters = match["letters"]
    found = _CHOICE_LETTER.findall(letters)
    end = match.end()
    is_bracketed = letters.rstrip("* ")[-1] in ")）]" and letters[-1] != "*"
    if is_bracketed and len(found) == 1:
        start = len(statement) - len(statement[end:].lstrip(" :"))
        span = span_at(statement, start) if start > end else None
        if span is not None and not statement[span.end :].split("\n", 1)[0].strip(_EDGES):
            return f"({found[0]}) {span.answer}"
        follows = statement[end : end + 2]
        if re.match(r"\s*(?:[-+*/^=]|\\|\d)", follows) and span is None:
            return None
        return str(found[0])
    if not (is_bracketed or match["label"]) and not _AFTER_CHOICE.match(statement, end):
        return None
    if len(found) > 1 and re.search(r"\bor\b|或", letters):
        is_mixed = re.search(r"\band\b|和", letters)
        return letters.strip(" *") if is_mixed else " or ".join(found)
    return ", ".join(found)


def _json_value(text: str) -> str | None:
    """Return the value of a field of a JSON object, without its escapes."""
    text = text.lstrip()
    string = _JSON_STRING.match(text)
    if string:
        content = string[1] if string[1] is not None else string[2]
        content = _unescaped(content).strip()
        return None if not content or is_placeholder(content) else content
    listed = _JSON_LIST.match(text)
    if listed:
        parts = [_unescaped(part.strip().strip("\"'")) for part in listed[1].split(",")]
        return ", ".join(part for part in parts if part) or None
    value = _JSON_VALUE.match(text)
    if value is None or value[0] in {"null", "None", '""', "{", "["} or value[0][0] in "\"'{[":
        return None
    return value[0]


def _unescaped(content: str) -> str:
    r"""Decode a JSON string; backslashes that are not doubled are LaTeX that was not escaped."""
    if "\\" not in content:
        return content
    try:
        decoded = json.loads(f'"{content}"', strict=False)
    except ValueError:
        decoded = None
    if isinstance(decoded, str) and not re.search(
        r"(?<!\\)(?:\\\\)*\\[bfnrtu](?=[a-z]{2})", content
    ):
        return decoded
    return content.replace("\\\\", "\\").replace('\\"', '"')


def _bulleted(text: str) -> str | None:
    """Return the answers of a bulleted list after "Answer:", if each line holds one."""
    if not text.startswith("\n") and not text.lstrip(" *:").startswith("\n"):
        return None
    lines = [line for line in text.lstrip(" *:\n").splitlines() if line.strip()]
    bulleted = []
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet is None:
            break
        bulleted.append(line[bullet.end() :].strip())
    if len(bulleted) < 2 or len(text) >= REACH:
        return None
    answers = [_whole_line(line) for line in bulleted]
    return ", ".join(answer for answer in answers if answer) if all(answers) else None


def _equations(text: str) -> str | None:
    """Return the values of several names, each on a line of its own."""
    if "=" not in text or len(text) >= REACH:
        return None
    lines = [line.strip() for line in text.strip(" *:\n").splitlines() if line.strip()]
    named = [match for match in takewhile(bool, map(_NAMED_LINE.match, lines)) if match]
    if len(named) < 2 or len({match[1] for match in named}) < len(named):
        return None
    values = [_whole_line(match.string) for match in named]
    return ", ".join(value for value in values if value) if all(values) else None


def _is_cut_off(sentence: str) -> bool:
    """Tell whether a delimiter of mathematics is not closed, or an operator has nothing after it."""
    dollars = sentence.count("$")
    if dollars:
        dollars -= sentence.count("\\$") + len(_LAST_PRICE.findall(sentence))
    return (
        dollars % 2 == 1
        or any(
            sentence.count(opening) > sentence.count(closing)
            for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("{", "}"))
        )
        or sum(map(sentence.count, "([")) > sum(map(sentence.count, ")]"))
        or sentence.endswith(("=", "/", "^", " +", " -", " *"))
    )


def _first_line(text: str) -> tuple[str, str]:
    """Return the first line that is not empty, and the rest; display mathematics counts as one line."""
    rest = text[_match_length(_FILLER, text) :]
    while rest:
        span = span_at(rest, 0) if rest.startswith(("$", "\\[", "\\(", "\\begin")) else None
        end = rest.find("\n", span.end if span else 0)
        if end < 0:
            break
        if not rest[:end].rstrip(" *").endswith((":", "：")):
            return rest[:end], rest[end:].strip()
        rest = rest[end:]
        rest = rest[_match_length(_FILLER, rest) :]
    return rest, ""


def _match_length(pattern: re.Pattern[str], text: str) -> int:
    """Return the length of the match at the start of the text."""
    match = pattern.match(text)
    return match.end() if match else 0


def _without(text: str, spans: list[Span]) -> str:
    """Blank out the spans of a text."""
    for span in spans:
        text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    return text


def _result(span: Span) -> str | None:
    """Return the answer of a span: of a calculation, its result."""
    answer = _result_of_chain(span.answer)
    return None if not answer or _BREAKS_OFF.search(answer) or _is_template(answer) else answer


def _result_of_chain(content: str) -> str:
    """Return the last part of "11 * 11 = 121", and an equation that states no result unchanged."""
    parts = [part.strip() for part in _split_at_equals(content)]
    if len(parts) == 1 or "," in content or _LIST_WORD.search(content):
        return content
    is_calculation = not _ASCII_LETTER.search(_COMMAND.sub("", parts[0] + parts[-1]))
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


def _in_bold(content: str) -> str | None:
    """Return the answer in bold text, without its label."""
    label = _BOLD_LABEL.match(content)
    inner = content[label.end() :] if label else content
    inner = inner.strip(_EDGES) if not inner.startswith("$") else inner.strip()
    if not inner:
        return None
    choice = _choice(inner)
    if choice:
        return choice
    span = span_at(inner, 0)
    if span is not None and _UNITS_ONLY.match(inner[span.end :]):
        return _result(span)
    spans = list(find_spans(inner))
    if spans and _VERB.search(_without(inner, spans)):
        return _last_stated(inner)
    if len(spans) == 1 and not _without(inner, spans).strip(" " + _EDGES):
        return _result(spans[0])
    return inner if len(inner) <= _LONGEST_TEXT and not _NO_ANSWER.match(inner) else None


def _last_stated(sentence: str) -> str | None:
    """Return the last value of a sentence, preferring bold text and what follows "is"."""
    bold = [match for match in _BOLD.finditer(sentence) if not _RESULT_LABEL.match(match[1])]
    if bold:
        span = span_at(sentence, bold[-1].start())
        if span is not None and span.end > bold[-1].end():
            return _result(span)
        return _in_bold(bold[-1][1]) if span is not None else None
    lowered = sentence.lower()
    if _holds_any(lowered, _DENYING_WORDS) and _DENIAL.search(sentence.rstrip(_EDGES)):
        return None
    if _TWO_NAMED.search(sentence):
        return None
    spans = list(find_spans(sentence))
    outside = _without(sentence, spans)
    for stated in (_VERB, _EQUALS):
        for verb in reversed(list(stated.finditer(outside))):
            answer = _stated_after(sentence, verb.end(), spans)
            if answer:
                return answer
            unread = sentence[verb.end() + _match_length(_FILLER, sentence[verb.end() :]) :]
            if _UNREAD_MATH.match(unread):
                return _short_mathematics(unread)
    if spans and spans[-1].last and _are_assignments(spans[-1].answer):
        return spans[-1].answer
    if spans and spans[-1].last and ("=" in spans[-1].last or _RELATION.search(spans[-1].last)):
        return _result_of_chain(spans[-1].last)
    return _result(spans[-1]) if spans else None


def _are_assignments(answer: str) -> bool:
    """Tell whether a list gives a value to each of several names: x = 5, y = 6."""
    names = [match[1] for part in answer.split(",") if (match := _ASSIGNMENT.fullmatch(part))]
    return len(names) > 1 and len({*names}) == answer.count(",") + 1


def _stated_after(sentence: str, position: int, spans: list[Span]) -> str | None:
    """Return the answer directly after a verb or an equals sign."""
    start = position + _match_length(_FILLER, sentence[position:])
    choice = _choice(sentence[start:])
    if choice:
        return choice
    around = next((span for span in spans if span.start <= start < span.end), None)
    stated = around or span_at(sentence, start)
    return _result(stated) if stated is not None else None


def _short_mathematics(text: str) -> str | None:
    """Return mathematics that could not be read as a span, if nothing else is left of the sentence."""
    short = _trimmed(text)
    is_prose = len(_WORD.findall(_COMMAND.sub("", short))) > _VALUE_AND_UNITS or _CJK.search(short)
    is_answer = short and len(short) <= _LONGEST_TEXT and not (is_prose or _is_cut_off(short))
    return short if is_answer and not (_is_template(short) or _SUM_OF_UNITS.search(short)) else None


def _trimmed(text: str) -> str:
    """Drop punctuation around an answer, but not the point of ".5"."""
    return text.rstrip(_EDGES).lstrip(_EDGES.replace(".", ""))
