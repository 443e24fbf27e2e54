r"""Answers in boxes: the content of the last `\boxed{...}` or `\fbox{...}`, and the boxes joined to it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe.answers.columns import (
    change_where,
    nothing_for,
    only_where,
    per_distinct,
    prefer,
    scattered,
    true_where,
)
from ttsframe.answers.statements import is_placeholder

__all__ = ["Boxes", "boxed_answers", "find_boxes", "has_box", "last_boxes"]

_NESTING: Final = 12
_LONGEST_JOIN: Final = 200
_LONGEST_END: Final = 600
"""Number of characters at the end of a text that hold the last box of most texts, and what is joined to it."""


def _balanced(depth: int) -> str:
    """Return a pattern for text with balanced braces, nested up to `depth` levels."""
    plain = r"[^{}\\]|\\."
    pattern = rf"(?:{plain})*"
    for _ in range(depth):
        pattern = rf"(?:{plain}|\{{{pattern}\}})*"
    return pattern


_FLAT_CONTENT: Final = r"^\{([^{}\\]*)\}"
_BOX_CONTENT: Final = rf"(?s)^\s*\{{({_balanced(_NESTING)})\}}"
_JOINS_NEXT_BOX: Final = r"(?:,|;|&|、|和|或|及|\b(?:and|or)\b|\\cup|\\quad)[^.!?\n]{0,40}$"
# as in `last_boxes`, which need not be asked then
_BEGINS_ANEW: Final = (
    r"\b(?:is|[Tt]hus|[Bb]ut|[Ss]o|[Tt]herefore|[Hh]ence|[Ww]ait|not|then)\b[^{}\\]*$"
)
_MAY_BE_PLACEHOLDER: Final = r"(?i)answer|result|value|solution|expression|\.\.|…|dots|\?|__"


def has_box(texts: pl.Series) -> pl.Series:
    """Tell which texts hold a box of any kind."""
    return texts.str.contains(r"\\(?:boxed|fbox)")


class Boxes(NamedTuple):
    """The content of the last box of each text, null where it holds no answer, and which texts hold a box."""

    answers: pl.Series
    are_there: pl.Series


def find_boxes(texts: pl.Series) -> Boxes:
    """Read the last box of each text."""
    # most boxes stand at the end, so that few texts are searched from their beginning
    ends = texts.str.tail(_LONGEST_END)
    is_near = ends.to_frame("text").select_seq(_IS_NEAR).to_series().to_numpy()
    is_there = is_near.copy()
    is_there[~is_near] = has_box(texts.filter(~is_near)).to_numpy()
    rows = np.concatenate([is_near.nonzero()[0], (is_there & ~is_near).nonzero()[0]])
    if not len(rows):
        return Boxes(nothing_for(texts), pl.Series(is_there))
    whole = texts.gather(rows)
    searched = pl.concat([ends.filter(is_near), whole.slice(int(is_near.sum()))])
    pieces = searched.str.split("\\boxed").to_frame("pieces").select_seq(_LAST_PIECES)
    pieces = pieces.with_columns_seq(_MARKS_OF_PIECES)
    content = pieces["flat"]
    content = prefer(
        content,
        only_where(
            pieces["after"], content.is_null(), lambda some: some.str.extract(_BOX_CONTENT, 1)
        ),
    )
    is_hard = (
        content.is_null()
        | pieces["is_escaped"]
        | true_where(pieces["before"], pieces["may_join"], _joins_next_box)
        | whole.str.contains("\\fbox", literal=True)
    )
    read = change_where(content, is_hard, lambda _: per_distinct(whole.filter(is_hard), last_boxes))
    trimmed = read.to_frame("answer").select_seq(_TRIMMED)
    real = change_where(
        trimmed["answer"], trimmed["is_suspect"], lambda some: per_distinct(some, _real)
    )
    found = scattered([real.to_frame()], [rows], nothing_for(texts).to_frame("answer"))
    return Boxes(found["answer"], pl.Series(is_there))


def boxed_answers(texts: pl.Series) -> pl.Series:
    """Return the content of the last box, null where there is none or it holds no answer."""
    return find_boxes(texts).answers


_IS_NEAR: Final = (pl.col("text").str.find("\\boxed", literal=True) > _LONGEST_JOIN).fill_null(
    value=False
)
_PIECES: Final = pl.col("pieces")
_BEFORE: Final = pl.col("before")
_LAST_PIECES: Final = (
    _PIECES.list.len().alias("n"),
    _PIECES.list.get(-2, null_on_oob=True).alias("before"),
    pl.when(_PIECES.list.len() > 1).then(_PIECES.list.get(-1)).alias("after"),
)
_MARKS_OF_PIECES: Final = (
    pl.col("after").str.extract(_FLAT_CONTENT, 1).alias("flat"),
    _BEFORE.str.ends_with("\\").fill_null(value=False).alias("is_escaped"),
    ((pl.col("n") > 2) & (_BEFORE.str.len_bytes() <= _LONGEST_JOIN)).alias("may_join"),
)
_ANSWER: Final = pl.col("answer").str.strip_chars()
_TRIMMED: Final = (
    pl.when(_ANSWER != "").then(_ANSWER).alias("answer"),
    _ANSWER.str.contains(_MAY_BE_PLACEHOLDER).alias("is_suspect"),
)


def _joins_next_box(before: pl.Series) -> pl.Series:
    """Tell which texts before a box join it to the box before."""
    return before.str.contains(_JOINS_NEXT_BOX) & ~before.str.contains(_BEGINS_ANEW)


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
