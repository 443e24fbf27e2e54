r"""Answers in boxes: the content of the last `\boxed{...}` or `\fbox{...}`, and the boxes joined to it."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from ttsframe.answers.columns import change_where, computed, only_where, per_distinct, true_where
from ttsframe.answers.statements import is_placeholder

__all__ = ["HAS_BOX", "boxed_answers", "has_box", "last_box", "last_boxes"]

_NESTING: Final = 4
"""Number of levels of braces that are read in all texts at once; `last_boxes` reads any number."""
_LONGEST_JOIN: Final = 200
_LONGEST_END: Final = 600
"""Number of characters at the end of a text that hold the last box of most texts, and what is joined to it."""


# twice as fast as one pattern for both
HAS_BOX: Final = pl.col("text").str.contains("\\boxed", literal=True) | pl.col("text").str.contains(
    "\\fbox", literal=True
)


def _balanced(depth: int) -> str:
    """Return a pattern for text with balanced braces, nested up to `depth` levels."""
    plain = r"[^{}\\]|\\."
    pattern = rf"(?:{plain})*"
    for _ in range(depth):
        pattern = rf"(?:{plain}|\{{{pattern}\}})*"
    return pattern


_BOX_CONTENT: Final = rf"(?s)^\s*\{{({_balanced(_NESTING)})\}}"
_JOINS_NEXT_BOX: Final = r"(?:,|;|&|、|和|或|及|\b(?:and|or)\b|\\cup|\\quad)[^.!?\n]{0,40}$"
# as in `last_boxes`, which need not be asked then
_BEGINS_ANEW: Final = (
    r"\b(?:is|[Tt]hus|[Bb]ut|[Ss]o|[Tt]herefore|[Hh]ence|[Ww]ait|not|then)\b[^{}\\]*$"
)
_MAY_BE_PLACEHOLDER: Final = r"(?i)answer|result|value|solution|expression|\.\.|…|dots|\?|__"


def has_box(texts: pl.Series) -> pl.Series:
    """Tell which texts hold a box of any kind."""
    return computed(texts, HAS_BOX).to_series()


def boxed_answers(texts: pl.Series) -> pl.Series:
    """Return the content of the last box, null where there is none or it holds no answer."""
    return only_where(texts, has_box(texts), last_box)


def last_box(texts: pl.Series) -> pl.Series:
    """Return the content of the last box of texts that hold one, null where it holds no answer."""
    searched = computed(texts, _TEXT, _END).select_seq(_SEARCHED).select_seq(*_PIECES)
    found = searched.with_columns_seq(*_LAST_PIECES).with_columns_seq(*_CONTENT)
    is_hard = found["is_hard"] | true_where(found["before"], found["may_join"], _joins_next_box)
    content = change_where(
        found["content"], is_hard, lambda _: per_distinct(texts.filter(is_hard), last_boxes)
    )
    trimmed = content.to_frame("answer").select_seq(_TRIMMED)
    return change_where(
        trimmed["answer"], trimmed["is_suspect"], lambda some: per_distinct(some, _real)
    )


_TEXT: Final = pl.col("text")
_BEFORE: Final = pl.col("before")
_END: Final = _TEXT.str.tail(_LONGEST_END).alias("end")
# most boxes stand at the end, so that few texts are searched from their beginning
_SEARCHED: Final = (
    pl
    .when(pl.col("end").str.find("\\boxed", literal=True) > _LONGEST_JOIN)
    .then(pl.col("end"))
    .otherwise(_TEXT)
    .alias("text")
)
_PIECES: Final = (
    _TEXT.str.split("\\boxed").alias("pieces"),
    _TEXT.str.contains("\\fbox", literal=True).alias("is_framed"),
)
_LAST_PIECES: Final = (
    pl.col("pieces").list.len().alias("n"),
    pl.col("pieces").list.get(-2, null_on_oob=True).fill_null("").alias("before"),
    pl.col("pieces").list.get(-1).str.extract(_BOX_CONTENT, 1).alias("content"),
)
_CONTENT: Final = (
    (pl.col("content").is_null() | pl.col("is_framed") | _BEFORE.str.ends_with("\\")).alias(
        "is_hard"
    ),
    ((pl.col("n") > 2) & (_BEFORE.str.len_bytes() <= _LONGEST_JOIN)).alias("may_join"),
)
_ANSWER: Final = pl.col("answer").str.strip_chars()
_TRIMMED: Final = (
    pl.when(_ANSWER != "").then(_ANSWER).alias("answer"),
    _ANSWER.str.contains(_MAY_BE_PLACEHOLDER).fill_null(value=False).alias("is_suspect"),
)


_JOINS: Final = _TEXT.str.contains(_JOINS_NEXT_BOX) & ~_TEXT.str.contains(_BEGINS_ANEW)


def _joins_next_box(before: pl.Series) -> pl.Series:
    """Tell which texts before a box join it to the box before."""
    return computed(before, _JOINS).to_series()


def _real(content: str) -> str | None:
    """Return the content of a box unless it is the word "answer" or dots."""
    return None if is_placeholder(content) else content


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


def last_boxes(text: str) -> str | None:
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
