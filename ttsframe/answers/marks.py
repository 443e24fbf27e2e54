r"""Marks of a final answer in long texts: tags, `####`, phrases such as "the answer is", question lines.

These patterns are searched in whole texts by Polars, so each begins with literal text, which makes the
search ten times faster, and each is linear.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe.answers.columns import change_where, keep_where, only_where, true_where
from ttsframe.answers.statements import REACH

__all__ = [
    "after_hash",
    "after_phrase",
    "has_field",
    "has_phrase",
    "has_question",
    "in_final_sentence",
    "is_finished",
    "number_at_end",
    "phrase_pieces",
    "plain_mathematics",
    "plain_numbers",
    "question_pieces",
    "tagged",
    "up_to_final_sentence",
    "without_marks_of_chats",
    "without_question",
]

_VERB: Final = (
    r"(?i:is|are|was|should\s+be|must\s+be|would\s+be|will\s+be|comes\s+(?:out\s+)?to(?:\s+be)?|becomes|equals"
    r"|=|:|：)"
)
_ENGLISH: Final = (
    r"(?:answer|Answer|ANSWER)[sS]?(?:_text|_value)?"
    r"(?:[\s*:]{1,3}(?:\$|\\\(|\\\[)|[\s\"*:'”)}]{0,4}"
    rf"(?:(?:,? (?:to|in|for|of|as|rounded|expressed|therefore|thus|then|choice|option)\b)[^.\n:=$]{{0,60}}?\s)?{_VERB})"
    r"|(?:Answer|ANSWER|inal answer)[\s*#]*\n"
    r"|\nA ?:"
    r"|(?:ption|hoice|PTION)s?[\s*]{0,3}(?:(?i:is|are):?\s|[:：])"
)
_OTHER_LANGUAGES: Final = (
    r"答案\s*(?:应该是|应为|应是|等于|选|就是|是|为|為|:|：)|答え?\s*[:：]|答えは|正解は|故选\s*[:：]?"
    r"|정답[은:]|답[은:]"
    r"|(?:espuesta|éponse|esposta|isposta|ntwort|твет|antwoord|dpowiedź|svaret)\b[^\n.:]{0,24}?"
    r"(?:\b(?:es|est|é|è|ist|lautet|to|is|är)\s|[:：—–=]\s)"
    r"|ibu\b[^\n.:]{0,24}?(?:\bni\s|:\s)"
    r"|คำตอบ[^\n.:]{0,20}?(?:คือ|:)"
    r"|উত্তর\s*(?:হল|হলো|হচ্ছে|হবে|:|=)"
    r"|సమాధానం\s*(?::|=|అనేది|)\s|జవాబు\s*:?\s"
    r"|(?:الإجابة|الاجابة|الجواب|إجابة|جواب)[^\n.:]{0,24}?(?:هي|هو|:)\s"
    r"|उत्तर\s*(?:है|होगा|:|=|-)?\s"
    r"|(?:cevap|Cevap)\s*[:=]?\s|(?:áp án|áp số)\s*(?:là|:)|(?:awaban|awabannya)\s*(?:adalah|:)"
)
_NUMBER_AT_END: Final = (
    r"(?:nswer is:?|nswer:|\nA:) ?(-?(?:\$|\\\$)?\d{1,15}(?:,\d{3})*(?:\.\d+)?%?) ?\.?(?: ки)?\s*$"
)
_OPENING: Final = r"(\$|\\\(|\\\[)$"
_CONTEXT: Final = (
    r"(?i)((?:nswer\w*\\?[\"']|(?:option|choice)s?[\s*]{0,3})\s*(?:(?:is|are):?|[:：=])\s*)$"
)
_FIELD: Final = r"(?i)nswer\w*\\?[\"']\s*[:=]\s*\x00"
_PLAIN_NUMBER: Final = r"^(?:[^\x00]*\x00)?[ :]{0,3}(-?(?:\$|\\\$)?\d{1,15}(?:,\d{3})*(?:\.\d+)?%?)[ \t]*\.?[ \t]*(?:ки\s*)?(?:\n|$)"
# no words, no equation, no box: nothing that `statements.answer_announced` would read otherwise than as it is
_PLAIN_MATHEMATICS: Final = (
    r"^\x00[ :]{0,3}\$([0-9A-Za-z]|(?:[-+0-9a-zA-Z(\[{|]|\\[ac-zA-Z{},;!%])"
    r"(?:[!-#%-;>-\[\]-~]|\\[ac-zA-Z{},;!%]| \\[ac-ln-su-zA-Z{},;!%]| [!-#%-;>-@\[\]-`{-~]){0,150}"
    r"[0-9A-Za-z)}\]|])\$\.(?:(?:[ \t][^\n:：]*)?(?:\n|$)|[ \t]+I hope it is correct)"
)
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
_IS_READ: Final = ~(
    (_TEXT.str.find(_HOPE, literal=True) + _LONGEST_HOPE >= _TEXT.str.len_bytes())
    & _TEXT.str.tail(_LONGEST_BOX_AT_END).str.contains(_BOX_AT_END)
)
_PHRASE: Final = pl.col("phrase")
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
    return change_where(
        texts,
        texts.str.contains(_MARK_OF_CHATS),
        lambda some: _without_thoughts(_without_chat_marks(some)),
    )


def _without_chat_marks(texts: pl.Series) -> pl.Series:
    """Drop chat tokens, and whatever the model wrote for the user after its own turn."""
    return change_where(texts, texts.str.contains("<|", literal=True), _clean_chat)


def _clean_chat(texts: pl.Series) -> pl.Series:
    """Drop chat tokens of texts that hold some."""
    own = change_where(
        texts, texts.str.contains(_NEXT_TURN), lambda turns: turns.str.replace(_TURN, "${1}")
    )
    return own.str.replace_all(_CHAT_MARK, "\n")


def _without_thoughts(texts: pl.Series) -> pl.Series:
    """Drop blocks between `<think>` and `</think>`, also where one of the tags is missing."""
    return change_where(texts, texts.str.contains(_THOUGHT_MARK), _clean_thoughts)


def _clean_thoughts(texts: pl.Series) -> pl.Series:
    """Drop thoughts of texts that hold some."""
    closed = texts.str.replace_all(_THOUGHT, "\n")
    return closed.str.replace(_END_OF_THOUGHT, "").str.replace(_OPEN_THOUGHT, "")


def has_question(texts: pl.Series) -> pl.Series:
    """Tell which texts hold a line that begins a question."""
    return true_where(
        texts, texts.str.contains(_QUESTION_WORD), lambda some: some.str.contains(_QUESTION)
    )


def question_pieces(texts: pl.Series) -> pl.Series:
    """Split texts after each mark of a question."""
    return _split(texts, _QUESTION)


def without_question(texts: pl.Series) -> pl.Series:
    """Drop a question line at the end of each text."""
    return texts.str.replace(f"(?:{_QUESTION})$", "")


def up_to_final_sentence(texts: pl.Series) -> pl.Series:
    """Return the text up to "The final answer is X. I hope it is correct.", null where it is not there."""
    return only_where(texts, texts.str.contains(_HOPE, literal=True), _up_to_hope_unless_boxed)


def _up_to_hope_unless_boxed(texts: pl.Series) -> pl.Series:
    """Return texts up to "I hope it is correct", unless this is found without: a box is in the last one."""
    return only_where(texts, texts.to_frame("text").select_seq(_IS_READ).to_series(), _up_to_hope)


def _up_to_hope(texts: pl.Series) -> pl.Series:
    """Return texts up to "I hope it is correct", if that follows an answer."""
    # an instruction that is repeated is no answer
    instructed = texts.str.contains(r"\[?(?:answer|Answer|X)\]?\}?[$)\\\].]{0,4} I hope")
    own = change_where(texts, instructed, lambda some: some.str.replace_all(_INSTRUCTION, ""))
    first = own.str.split(_HOPE).list.get(0)
    said = own.str.contains(_HOPE, literal=True) & first.str.tail(REACH).str.contains(
        _SENTENCE_BEFORE_HOPE
    )
    return keep_where(first, said)


def in_final_sentence(texts: pl.Series) -> pl.Series:
    """Return X in the sentence with which such a text ends."""
    return _split(texts.str.tail(REACH), _FINAL_SENTENCE).list.get(-1)


def tagged(texts: pl.Series) -> pl.Series:
    """Return the content of the last tag such as `<answer>`, to the end of the text where it is not closed."""
    return only_where(
        texts,
        texts.str.contains(_TAG),
        lambda some: _split(
            _split(some, _TAG, inclusive=False).list.get(-1), _END_OF_TAG, inclusive=False
        ).list.get(0),
    )


def after_hash(texts: pl.Series) -> pl.Series:
    """Return the beginning of what follows the last `####`."""
    return only_where(
        texts,
        texts.str.contains("####", literal=True),
        lambda some: some.str.split("####").list.get(-1).str.head(REACH),
    )


def has_phrase(texts: pl.Series) -> pl.Series:
    """Tell which texts hold a phrase that announces an answer."""
    return texts.str.contains(f"{_ENGLISH}|{_OTHER_LANGUAGES}")


def phrase_pieces(texts: pl.Series) -> pl.Series:
    """Split the texts after each phrase that announces an answer."""
    is_ascii = texts.str.len_bytes() == texts.str.len_chars()
    pieces = _split(texts, _ENGLISH)
    others = (~is_ascii | (pieces.list.len() == 1)).fill_null(value=False)
    if not others.any():
        return pieces
    everywhere = _split(texts.filter(others), f"{_ENGLISH}|{_OTHER_LANGUAGES}")
    return change_where(pieces, others, lambda _: everywhere)


def _split(texts: pl.Series, pattern: str, *, inclusive: bool = True) -> pl.Series:
    """Split texts at, or after, each match of a pattern."""
    return texts.to_frame("text").select(
        pl.col("text").str.split(pattern, literal=False, inclusive=inclusive)
    )["text"]


def number_at_end(texts: pl.Series) -> pl.Series:
    """Return the number with which a text ends, directly after a phrase that announces it."""
    return texts.str.tail(_LONGEST_NUMBER_AT_END).str.extract(_NUMBER_AT_END, 1)


def after_phrase(pieces: pl.Series, place: int = 1) -> pl.Series:
    """Return a phrase that is a special one, a null character, and what follows, counted from the end."""
    before = pieces.list.get(-1 - place, null_on_oob=True).str.tail(_LONGEST_CONTEXT)
    following = pieces.list.get(-place, null_on_oob=True).str.head(REACH)
    return pl.DataFrame({"phrase": before, "following": following}).select_seq(_STATED).to_series()


def plain_numbers(statements: pl.Series) -> pl.Series:
    """Return the numbers that are all that the first line of a statement holds."""
    return statements.str.extract(_PLAIN_NUMBER, 1)


def plain_mathematics(statements: pl.Series) -> pl.Series:
    """Return the mathematics between dollar signs that ends the first sentence of a statement, and is all of it."""
    return statements.str.extract(_PLAIN_MATHEMATICS, 1)


def is_finished(endings: pl.Series) -> pl.Series:
    """Tell which texts do not break off in a word."""
    return endings.str.contains(_FINISHED)


def has_field(statements: pl.Series) -> pl.Series:
    """Tell which statements follow a field of JSON rather than a phrase."""
    return statements.str.contains(_FIELD)
