r"""Marks of a final answer in long texts: tags, `####`, phrases such as "the answer is", question lines.

These patterns are searched in whole texts by Polars, so each begins with literal text, which makes the
search ten times faster, and each is linear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from ttsframe.answers.columns import change_where, computed, only_where, true_where
from ttsframe.answers.statements import REACH

__all__ = [
    "HAS_HASHES",
    "HAS_HOPE",
    "HAS_PHRASE",
    "HAS_TAG",
    "after_hashes",
    "after_phrase",
    "finished_endings",
    "has_field",
    "in_final_sentence",
    "number_at_end",
    "phrase_pieces",
    "question_pieces",
    "tagged",
    "up_to_final_sentence",
    "up_to_next_question",
    "without_marks_of_chats",
    "without_question",
]

_VERB: Final = (
    r"(?i:is|are|was|should\s+be|must\s+be|would\s+be|will\s+be|comes\s+(?:out\s+)?to(?:\s+be)?|becomes|equals"
    r"|=|≈|:|：)"
)
_ENGLISH: Final = (
    r"(?:answer|Answer|ANSWER)[sS]?(?:_text|_value)?"
    r"(?:[\s*:]{1,3}(?:\$|\\\(|\\\[)|[\s\"*:'”)}]{0,4}"
    rf"(?:(?:,? (?:to|in|for|of|as|rounded|expressed|therefore|thus|then|choice|option)\b)[^.\n:=$]{{0,60}}?\s)?{_VERB})"
    r"|(?:Answer|ANSWER|inal answer)[\s*#]*\n"
    r"|(?:Answer|ANSWER)[*_]{0,2} ?[—–] ?"
    r"|\nA ?:"
    r"|(?:ption|hoice|PTION)s?[\s*]{0,3}(?:(?i:is|are):?\s|[:：])"
)
_OTHER_LANGUAGES: Final = (
    r"答案\s*(?:应该是|应为|应是|等于|选|就是|是|为|為|:|：)|答え?\s*[:：]|答えは|正解は|(?:故|所以|因此)选\s*[:：]?"
    r"|정답[은:]|답[은:]"
    r"|(?:espuesta|éponse|esposta|isposta|ntwort|твет|antwoord|dpowiedź|svaret|ndergebnis)\b[^\n.:]{0,24}?"
    r"(?:\b(?:es|est|é|è|ist|lautet|to|is|är)\s|[:：—–=][*_]*\s)"
    r"|ibu\b[^\n.:]{0,24}?(?:\bni\s|:\s)"
    r"|คำตอบ[^\n.:]{0,20}?(?:คือ|:)"
    r"|উত্তর\s*(?:হল|হলো|হচ্ছে|হবে|:|=)"
    r"|సమాధానం\s*(?::|=|అనేది|)\s|జవాబు\s*:?\s"
    r"|(?:الإجابة|الاجابة|الجواب|إجابة|جواب)[^\n.:]{0,24}?(?:هي|هو|:)\s"
    r"|उत्तर\s*(?:है|होगा|:|=|-)?\s"
    r"|(?:cevap|Cevap)\s*[:=]?\s|(?:áp án|áp số)\s*(?:là|:)|(?:awaban|awabannya)\s*(?:adalah|:)"
)
_ANNOUNCEMENT: Final = f"{_ENGLISH}|{_OTHER_LANGUAGES}"
_NUMBER_AT_END: Final = (
    r"(?:nswer is:?|nswer:|\nA:) ?(-?(?:\$|\\\$)?\d{1,15}(?:,\d{3})*(?:\.\d+)?%?) ?\.?(?: ки)?\s*$"
)
_OPENING: Final = r"(\$|\\\(|\\\[)$"
_CONTEXT: Final = (
    r"(?i)((?:nswer\w*\\?[\"']|(?:option|choice)s?[\s*]{0,3})\s*(?:(?:is|are):?|[:：=])\s*)$"
)
_FIELD: Final = r"(?i)nswer\w*\\?[\"']\s*[:=]\s*\x00"
_LONGEST_HOPE: Final = 32
_LONGEST_BOX_AT_END: Final = 160
_BOX_AT_END: Final = r"boxed\{[^\n]*I hope it is correct\W*$"
_LONGEST_CONTEXT: Final = 32
_LONGEST_NUMBER_AT_END: Final = 48
_FINISHED: Final = r"(?:[.!?。！？$)\]}*€£%°।`\"'”>|A-J]|\d|ки)\s*$"
_TURN: Final = r"(?s)(\S.*?)<\|(?:im_start|start_header_id)\|>\s*user\b.*"
_NEXT_TURN: Final = r"<\|(?:im_start|start_header_id)\|>\s*user\b"
_CHAT_MARK: Final = (
    r"<\|start_header_id\|>\s*\w+\s*<\|end_header_id\|>|<\|im_start\|>\s*\w*|<\|[a-z_0-9]+\|>"
)
_THOUGHT_MARK: Final = r"</?(?:think|thinking|thought|thoughts|reasoning|scratchpad)>"
_MARK_OF_CHATS: Final = rf"<\||{_THOUGHT_MARK}"
_THOUGHT: Final = (
    r"(?s)<(?:think|thinking|thought|thoughts|reasoning|scratchpad)>.*?"
    r"</(?:think|thinking|thought|thoughts|reasoning|scratchpad)>"
)
_END_OF_THOUGHT: Final = r"(?s)^.*</(?:think|thinking|thought|thoughts|reasoning|scratchpad)>"
_OPEN_THOUGHT: Final = r"(?s)<(?:think|thinking|thought|thoughts|reasoning|scratchpad)>.*$"
_TAG: Final = r"<(?:answer|final_answer|solution|ANSWER|Answer|finalanswer|final-answer)>"
_END_OF_TAG: Final = r"</(?:answer|final_answer|solution|ANSWER|Answer|finalanswer|final-answer)>"
_HOPE: Final = "I hope it is correct"
_INSTRUCTION: Final = (
    r"answer is[:\s]*[$(\\\[]{0,3}(?:boxed\{)?[$\\{\[( ]*(?:text\{)?(?:the |your |final |my )*"
    r"(?:answer|Answer|X|\.\.\.|ans)\b[^\n]{0,20}?I hope it is correct"
)
_FINAL_SENTENCE: Final = r"nswer is"
_SENTENCE_BEFORE_HOPE: Final = r"(?:final answer|Final Answer|Final answer|he answer) is[^\n]*$"
_QUESTION: Final = (
    r"\n[ \t]*(?:#{1,6} |\*\*|> )?(?:\*\*)?(?:Q|Question|Problem)(?:\*\*)?[ \t]?[:：]"
)
# quick to search, because it begins with letters
_QUESTION_WORD: Final = r"(?:Q|Question|Problem)(?:\*\*)?[ \t]?[:：]"
_TEXT: Final = pl.col("text")
_PIECES: Final = pl.col("pieces")
_FIRST: Final = pl.col("first")
_PHRASE: Final = pl.col("phrase")
_ENDING: Final = pl.col("ending")

HAS_HOPE: Final = _TEXT.str.contains(_HOPE, literal=True)
HAS_TAG: Final = _TEXT.str.contains(_TAG)
HAS_HASHES: Final = _TEXT.str.contains("####", literal=True)
HAS_PHRASE: Final = _TEXT.str.contains(_ANNOUNCEMENT)

_BOX_IN_FINAL_SENTENCE: Final = (
    _TEXT.str.find(_HOPE, literal=True) + _LONGEST_HOPE >= _TEXT.str.len_bytes()
) & _TEXT.str.tail(_LONGEST_BOX_AT_END).str.contains(_BOX_AT_END)
_UP_TO_HOPE: Final = pl.when(
    (_PIECES.list.len() > 1) & _FIRST.str.tail(REACH).str.contains(_SENTENCE_BEFORE_HOPE)
).then(_FIRST)


def _pieces(pattern: str, text: pl.Expr = _TEXT, *, inclusive: bool = True) -> pl.Expr:
    """Split texts at, or after, each match of a pattern."""
    return text.str.split(pattern, literal=False, inclusive=inclusive)


_LAST_TAGGED: Final = _pieces(
    _END_OF_TAG, _pieces(_TAG, inclusive=False).list.get(-1), inclusive=False
).list.get(0)
_AFTER_HASHES: Final = _TEXT.str.split("####").list.get(-1).str.head(REACH)
_IN_FINAL_SENTENCE: Final = _pieces(_FINAL_SENTENCE, _TEXT.str.tail(REACH)).list.get(-1)
_NUMBER: Final = _TEXT.str.tail(_LONGEST_NUMBER_AT_END).str.extract(_NUMBER_AT_END, 1)
_FINISHED_ENDING: Final = pl.when(
    _ENDING.str.contains(_FINISHED) | (_ENDING.str.len_chars() < REACH)
).then(_ENDING)
# the phrase may end on the delimiter that opens the answer
_STATED: Final = (
    pl
    .when(_PHRASE.is_not_null())
    .then(
        _PHRASE.str.extract(_CONTEXT, 1).fill_null("")
        + "\0"
        + _PHRASE.str.extract(_OPENING, 1).fill_null("")
        + pl.col("following")
    )
    .alias("statement")
)


def without_marks_of_chats(texts: pl.Series) -> pl.Series:
    """Drop chat tokens, what the model wrote for the user after its own turn, and its thoughts."""
    is_marked = computed(texts, _TEXT.str.contains(_MARK_OF_CHATS)).to_series()
    return change_where(texts, is_marked, _without_marks)


def _without_marks(texts: pl.Series) -> pl.Series:
    """Clean texts that hold marks of chats."""
    has_turn = texts.str.contains(_NEXT_TURN)
    own = change_where(texts, has_turn, lambda turns: turns.str.replace(_TURN, "${1}"))
    plain = own.str.replace_all(_CHAT_MARK, "\n")
    return change_where(plain, plain.str.contains(_THOUGHT_MARK), _without_thoughts)


def _without_thoughts(texts: pl.Series) -> pl.Series:
    """Drop blocks between `<think>` and `</think>`, also where one of the tags is missing."""
    closed = texts.str.replace_all(_THOUGHT, "\n")
    return closed.str.replace(_END_OF_THOUGHT, "").str.replace(_OPEN_THOUGHT, "")


def up_to_next_question(texts: pl.Series, cut: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Cut the texts that hold a line that begins a question."""
    may_ask = computed(texts, _TEXT.str.contains(_QUESTION_WORD)).to_series()
    return change_where(texts, true_where(texts, may_ask, _has_question), cut)


def _has_question(texts: pl.Series) -> pl.Series:
    return texts.str.contains(_QUESTION)


def question_pieces(texts: pl.Series) -> pl.Series:
    """Split texts after each mark of a question."""
    return computed(texts, _pieces(_QUESTION)).to_series()


def without_question(texts: pl.Series) -> pl.Series:
    """Drop a question line at the end of each text."""
    return texts.str.replace(f"(?:{_QUESTION})$", "")


def up_to_final_sentence(texts: pl.Series) -> pl.Series:
    """Return the text up to "The final answer is X. I hope it is correct.", null where it is not there."""
    # a box in the sentence that ends a text is found without
    is_found = computed(texts, _BOX_IN_FINAL_SENTENCE).to_series()
    return only_where(texts, ~is_found, _up_to_hope)


def _up_to_hope(texts: pl.Series) -> pl.Series:
    """Return texts up to "I hope it is correct", if that follows an answer."""
    # an instruction that is repeated is no answer
    instructed = texts.str.contains(r"\[?(?:answer|Answer|X)\]?\}?[$)\\\].]{0,4} I hope")
    own = change_where(texts, instructed, lambda some: some.str.replace_all(_INSTRUCTION, ""))
    pieces = computed(own, _TEXT.str.split(_HOPE).alias("pieces"))
    return (
        pieces
        .with_columns_seq(_PIECES.list.get(0).alias("first"))
        .select_seq(_UP_TO_HOPE)
        .to_series()
    )


def in_final_sentence(texts: pl.Series) -> pl.Series:
    """Return X in the sentence with which such a text ends."""
    return computed(texts, _IN_FINAL_SENTENCE).to_series()


def tagged(texts: pl.Series) -> pl.Series:
    """Return the content of the last tag such as `<answer>`, to the end of the text where it is not closed."""
    return computed(texts, _LAST_TAGGED).to_series()


def after_hashes(texts: pl.Series) -> pl.Series:
    """Return the beginning of what follows the last `####`."""
    return computed(texts, _AFTER_HASHES).to_series()


def phrase_pieces(texts: pl.Series) -> pl.Series:
    """Split the texts after each phrase that announces an answer."""
    return computed(texts, _pieces(_ANNOUNCEMENT)).to_series()


def number_at_end(texts: pl.Series) -> pl.Series:
    """Return the number with which a text ends, directly after a phrase that announces it."""
    return computed(texts, _NUMBER).to_series()


def after_phrase(pieces: pl.Series, place: int = 1) -> pl.Series:
    """Return a phrase that is a special one, a null character, and what follows, counted from the end."""
    parts = pieces.to_frame("pieces").select_seq(
        _PIECES.list.get(-1 - place, null_on_oob=True).str.tail(_LONGEST_CONTEXT).alias("phrase"),
        _PIECES.list.get(-place, null_on_oob=True).str.head(REACH).alias("following"),
    )
    return parts.select_seq(_STATED).to_series()


def finished_endings(texts: pl.Series) -> pl.Series:
    """Return the ends of the texts that do not break off in a word."""
    endings = computed(texts, _TEXT.str.tail(REACH).alias("ending"))
    return endings.select_seq(_FINISHED_ENDING).to_series()


def has_field(statements: pl.Series) -> pl.Series:
    """Tell which statements follow a field of JSON rather than a phrase."""
    return statements.str.contains(_FIELD)
