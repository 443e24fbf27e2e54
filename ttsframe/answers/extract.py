"""Final answers in completions.

Polars string functions search the long texts. The few hundred characters that they leave, in which an
answer is announced, are read once per distinct text by `statements`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, get_args

import polars as pl

from ttsframe._checks import check_choice
from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import AnswerStyle, IntoExprColumn
from ttsframe.answers import spans as _spans
from ttsframe.answers import statements as _statements
from ttsframe.answers.columns import as_strings, per_distinct

__all__ = ["extract_answer"]

_NESTING: Final = 12
_REACH: Final = 400
"""Number of characters, after a phrase or before the end of a text, that are searched for an answer."""


def _balanced(depth: int) -> str:
    """Return a pattern for text with balanced braces, nested up to `depth` levels."""
    plain = r"[^{}\\]|\\."
    pattern = rf"(?:{plain})*"
    for _ in range(depth):
        pattern = rf"(?:{plain}|\{{{pattern}\}})*"
    return pattern


_BOX_CONTENT: Final = rf"(?s)^\s*\{{({_balanced(_NESTING)})\}}"
_JOINS_NEXT_BOX: Final = r"(?:,|;|&|、|和|或|及|\b(?:and|or)\b|\\cup|\\quad)[^.!?\n]{0,40}$"
_LONGEST_JOIN: Final = 200
_TURN: Final = r"(?s)(\S.*?)<\|(?:im_start|start_header_id)\|>\s*user\b.*"
_CHAT_MARK: Final = (
    r"<\|start_header_id\|>\s*\w+\s*<\|end_header_id\|>|<\|im_start\|>\s*\w*|<\|[a-z_0-9]+\|>"
)
# Every alternative begins with literal text, which makes this search ten times faster.
_PHRASE: Final = (
    r"(?:answer|Answer|ANSWER)[sS]?[\s\"*:'”)]{0,3}"
    r"(?i:is|are|was|should\s+be|must\s+be|would\s+be|will\s+be|equals|=|:|：|\$|\\\(|\\\[)"
    r"|(?:Final (?:Answer|answer)|FINAL ANSWER|\n\W{0,4}Answer)[\s*]*\n"
    r"|\nA\s*:|^A\s*:"
    r"|答案\s*(?:应该是|应为|应是|等于|选|就是|是|为|為|:|：)|答\s*[:：]|故选\s*[:：]?"
    r"|정답[은:]|답[은:]"
    r"|(?:[Rr]espuesta|[Rr]éponse|[Rr]esposta|[Rr]isposta|[Aa]ntwort|твет)\b[^\n.:]{0,20}?"
    r"(?:\bes|\best|\bé|\bè|\bist|:|—)\s"
)
_OPENING: Final = r"(\$|\\\(|\\\[)$"
_HASH_NUMBER: Final = rf"^\s*:?\s*\**({_spans.NUMBER})"
_LAST_NUMBER: Final = rf"(?:^|[^\w.)\]}}\\])({_spans.NUMBER})\D*$|({_spans.NUMBER})\D*$"


def extract_answer(completion: IntoExprColumn, *, style: AnswerStyle = "auto") -> pl.Expr:
    r"""Find the final answer in each completion.

    The answer is returned as the model wrote it, without its box, delimiters or sentence; `answer_key` tells
    which answers are equivalent. A text without an answer, or one that ends before its answer, gives null:
    such attempts abstain from votes.

    Parameters
    ----------
    completion
        String column, the texts that a model wrote.
    style
        Where to look for the answer.

        - `"boxed"`: in the last `\boxed{...}` or `\fbox{...}`. Boxes joined by a comma, "and" or "or" are one
          answer. An empty box, or one cut off by the end of the text, gives null, even if there is an
          earlier box.
        - `"final_answer"`: after the last "the answer is", "Final Answer:" or the like, in English,
          Chinese and other languages.
        - `"hash"`: after the last `####`, as in GSM8K.
        - `"last_number"`: the last number of the text. `"auto"` never uses it, because it lets an
          unfinished attempt vote.
        - `"auto"`: the last box if there is one; else a number after `####`, else the announced answer,
          else the conclusion of the last line ("Therefore, the sum is $7$.").

    Returns
    -------
    pl.Expr
        String, named as the input; null where no answer is found and for a null text.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({
    ...     "completion": [r"so $x = \boxed{\frac{1}{2}}$.", "#### 1,234", "Let me think about 3"]
    ... })
    >>> frame.select(tts.extract_answer("completion"))["completion"].to_list()
    ['\\frac{1}{2}', '1,234', None]
    """
    check_choice(style, "style", get_args(AnswerStyle))
    source = into_expr(completion, "completion")
    find = _FINDERS[style]

    def extract(values: pl.Series) -> pl.Series:
        return find(_without_chat_marks(as_strings(values, "completion"))).alias(values.name)

    # One function, because Polars would repeat the search for each use of an intermediate result.
    found = source.map_batches(extract, return_dtype=pl.String, is_elementwise=True)
    return keep_name(found, source)


def _find_anywhere(texts: pl.Series) -> pl.Series:
    """Try one style after another, each on the texts in which no earlier style found its marks."""
    unboxed = _keep_where(texts, ~_has_box(texts))
    found = _find_boxed(texts)
    if unboxed.null_count() == len(texts):
        return found
    hashed = _after_hash(unboxed)
    hashed = _keep_where(hashed, hashed.str.contains(_HASH_NUMBER))
    announcement = _coalesce(hashed, _after_phrase(_keep_where(unboxed, hashed.is_null())))
    announced = per_distinct(announcement, _statements.answer_announced)
    ending = _keep_where(unboxed, announced.is_null()).str.tail(_REACH)
    concluded = per_distinct(ending, _from_ending)
    return _coalesce(found, _coalesce(announced, concluded))


def _find_boxed(texts: pl.Series) -> pl.Series:
    """Return the content of the last box, null where there is none or it is empty."""
    pieces = texts.str.split("\\boxed")
    is_boxed = pieces.list.len() > 1
    content = _keep_where(pieces.list.get(-1), is_boxed).str.extract(_BOX_CONTENT, 1)
    before = pieces.list.get(-2, null_on_oob=True)
    is_joined = _keep_where(before, before.str.len_bytes() <= _LONGEST_JOIN).str.contains(
        _JOINS_NEXT_BOX
    )
    is_hard = (
        (is_boxed & (content.is_null() | before.str.ends_with("\\")))
        | is_joined.fill_null(value=False)
        | texts.str.contains("\\fbox", literal=True)
    )
    hard = per_distinct(_keep_where(texts, is_hard), _last_boxes)
    answers = _coalesce(hard, _keep_where(content, ~is_hard)).str.strip_chars()
    return _keep_where(answers, answers != "")


def _find_announced(texts: pl.Series) -> pl.Series:
    """Return what follows the last phrase that announces an answer."""
    return per_distinct(_after_phrase(texts), _statements.answer_announced)


def _find_hashed(texts: pl.Series) -> pl.Series:
    """Return the answer after the last `####`."""
    return per_distinct(_after_hash(texts), _statements.answer_announced)


def _find_last_number(texts: pl.Series) -> pl.Series:
    """Return the last number of each text."""
    numbers = texts.str.extract(_LAST_NUMBER, 1)
    return _coalesce(numbers, _keep_where(texts, numbers.is_null()).str.extract(_LAST_NUMBER, 2))


_FINDERS: Final[dict[str, Callable[[pl.Series], pl.Series]]] = {
    "auto": _find_anywhere,
    "boxed": _find_boxed,
    "final_answer": _find_announced,
    "hash": _find_hashed,
    "last_number": _find_last_number,
}


def _without_chat_marks(texts: pl.Series) -> pl.Series:
    """Drop chat tokens, and whatever the model wrote for the user after its own turn."""
    marked = _keep_where(texts, texts.str.contains("<|", literal=True))
    if marked.null_count() == len(texts):
        return texts
    cleaned = marked.str.replace(_TURN, "${1}").str.replace_all(_CHAT_MARK, "\n")
    return _coalesce(cleaned, texts)


def _has_box(texts: pl.Series) -> pl.Series:
    """Tell which texts hold a box of any kind."""
    boxed = texts.str.contains("\\boxed", literal=True)
    return boxed | texts.str.contains("\\fbox", literal=True)


def _after_phrase(texts: pl.Series) -> pl.Series:
    """Return the beginning of what follows the last phrase that announces an answer."""
    pieces = texts.to_frame("text").select(
        pl.col("text").str.split(_PHRASE, literal=False, inclusive=True)
    )["text"]
    before = pieces.list.get(-2, null_on_oob=True)
    # the phrase may end on the delimiter that opens the answer
    opening = before.str.extract(_OPENING, 1).fill_null("")
    return _keep_where(opening + pieces.list.get(-1).str.head(_REACH), before.is_not_null())


def _after_hash(texts: pl.Series) -> pl.Series:
    """Return the beginning of what follows the last `####`."""
    pieces = texts.str.split("####")
    return _keep_where(pieces.list.get(-1).str.head(_REACH), pieces.list.len() > 1)


def _keep_where(values: pl.Series, mask: pl.Series) -> pl.Series:
    """Set the values outside the mask to null."""
    return values.zip_with(mask.fill_null(value=False), pl.Series([None], dtype=values.dtype))


def _coalesce(values: pl.Series, otherwise: pl.Series) -> pl.Series:
    """Fill the nulls of one series from another."""
    return values.zip_with(values.is_not_null(), otherwise)


def _from_ending(ending: str) -> str | None:
    """Read the last line; a text shorter than the reach may be an answer by itself."""
    itself = _statements.answer_itself(ending) if len(ending) < _REACH else None
    return itself or _statements.answer_concluded(ending)


_BOX_START: Final = re.compile(r"\\(?:boxed|fbox)")
_SPACE: Final = re.compile(r"\s*")
_BRACES: Final = re.compile(r"\\.|[{}]", re.DOTALL)
_BARE_CONTENT: Final = re.compile(r"\\[a-zA-Z]+\s*(?=\{)|[^\s{}$\\]+")
_BOX_BREAKS_OFF: Final = re.compile(r"(?<!\\)\$|\\\)|\\\]|\n")
_JOINS_BOXES: Final = re.compile(
    r"[\s$]*(?:\\[)\]]|\\[ ,;]|\\text\{|\}|[^\W\d_]+\b|\([a-z]\)|\s)*?"
    r"(?:,|;|&|、|和|或|及|\b(?:and|or)\b|\\cup|\\quad)[^.!?\n]{0,40}$"
)
_WORD: Final = re.compile(r"(?<![\\\w])[^\W\d_]{2,}")
_NAME: Final = re.compile(r"(?<![\\\w])[a-zA-Z](?:_(?:\w|\{\w+\}))?\s*=\s*$")
_SUBSCRIPT: Final = re.compile(r"_(\w)")
_LONGEST_NAME: Final = 20
_MOST_BOXES: Final = 50
_MOST_WORDS_BETWEEN: Final = 4
_NEW_THOUGHT: Final = frozenset({
    "thus",
    "but",
    "so",
    "therefore",
    "hence",
    "wait",
    "not",
    "then",
    "is",
})


def _last_boxes(text: str) -> str | None:
    """Read the last box of a text, with any nesting, and the boxes joined to it."""
    starts = [match.end() for match in _BOX_START.finditer(text)]
    contents: list[str] = []
    names: list[str] = []
    is_choice = True
    following = len(text)
    for start in reversed(starts[-_MOST_BOXES:]):
        content, end = _box_content(text, start)
        if contents:
            between = text[end:following]
            words = {word.lower() for word in _WORD.findall(between)}
            if len(words) > _MOST_WORDS_BETWEEN or words & _NEW_THOUGHT:
                break
            if not _JOINS_BOXES.match(between):
                break
            is_choice &= "or" in words or "或" in between
        if content is None or not content.strip():
            break
        contents.append(content.strip())
        following = text.rfind("\\", 0, start)
        name = _NAME.search(text, max(0, following - _LONGEST_NAME), following)
        names.append(_SUBSCRIPT.sub(r"_{\1}", name[0]) if name else "")
    if len(set(names)) == len(contents) > 1 and all(names):
        contents = [name + content for name, content in zip(names, contents, strict=True)]
    # "A or B" may be one value in two forms; a list of two values may not.
    answer = (" or " if is_choice else ", ").join(reversed(contents))
    is_escaped_twice = text[following - 1 : following] == "\\"
    return (answer.replace("\\\\", "\\") if is_escaped_twice else answer) or None


def _box_content(text: str, start: int) -> tuple[str | None, int]:
    """Return the content of the box that opens at `start`, and the position after it."""
    opening = _SPACE.match(text, start).end()  # type: ignore[union-attr] # it matches anything
    if text.startswith("{", opening):
        end = _closing_brace(text, opening)
        if end is not None:
            return text[opening + 1 : end], end + 1
        broken = _BOX_BREAKS_OFF.search(text, opening + 1)
        return (text[opening + 1 : broken.start()], broken.end()) if broken else (None, len(text))
    bare = _BARE_CONTENT.match(text, opening)
    if bare is None:
        return None, opening
    end = bare.end()
    while text.startswith("{", end):
        closing = _closing_brace(text, end)
        if closing is None:
            return None, len(text)
        end = closing + 1
    return text[opening:end].rstrip(".,;:"), end


def _closing_brace(text: str, opening: int) -> int | None:
    """Return the position of the brace that closes the one at `opening`."""
    depth = 0
    for match in _BRACES.finditer(text, opening):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return None
