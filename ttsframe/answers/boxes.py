r"""Answers in boxes: the content of the last `\boxed{...}` or `\fbox{...}`, and the boxes joined to it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import polars as pl

from ttsframe.answers.columns import (
    change_where,
    keep_where,
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
    pieces = _pieces(texts.str.tail(_LONGEST_END))
    is_certain = (pieces["n"] > 2) | ((pieces["n"] == 2) & (pieces["n_before"] > _LONGEST_JOIN))
    far = (~is_certain).to_numpy().nonzero()[0]
    if len(far):
        near = is_certain.to_numpy().nonzero()[0]
        parts = [pieces[near], _pieces(texts.gather(far))]
        pieces = scattered(parts, [near, far], pieces)
    after, before = pieces["after"], pieces["before"]
    nested = only_where(
        after,
        pieces["flat"].is_null() & (pieces["n"] > 1),
        lambda some: some.str.extract(_BOX_CONTENT, 1),
    )
    content = prefer(pieces["flat"], nested)
    is_near = (pieces["n"] > 2) & (pieces["n_before"] <= _LONGEST_JOIN)
    is_framed = texts.str.contains("\\fbox", literal=True)
    is_hard = (
        ((pieces["n"] > 1) & (content.is_null() | pieces["is_escaped"]))
        | true_where(before, is_near, _joins_next_box)
        | is_framed
    )
    hard = only_where(texts, is_hard, lambda some: per_distinct(some, last_boxes))
    trimmed = pl.col("answer").str.strip_chars()
    answers = (
        prefer(hard, keep_where(content, ~is_hard))
        .to_frame("answer")
        .select(
            pl.when(trimmed != "").then(trimmed).alias("answer"),
            is_suspect=trimmed.str.contains(_MAY_BE_PLACEHOLDER),
        )
    )
    real = change_where(
        answers["answer"], answers["is_suspect"], lambda some: per_distinct(some, _real)
    )
    return Boxes(real, (pieces["n"] > 1) | is_framed)


def boxed_answers(texts: pl.Series) -> pl.Series:
    """Return the content of the last box, null where there is none or it holds no answer."""
    return find_boxes(texts).answers


def _pieces(texts: pl.Series) -> pl.DataFrame:
    """Split texts at their boxes: the parts before and after the last one, and the number of parts."""
    pieces, after, before = pl.col("pieces"), pl.col("after"), pl.col("before")
    return (
        texts.str
        .split("\\boxed")
        .to_frame("pieces")
        .select(
            n=pieces.list.len(),
            after=pl.when(pieces.list.len() > 1).then(pieces.list.get(-1)),
            before=pieces.list.get(-2, null_on_oob=True),
        )
        .with_columns(
            flat=after.str.extract(_FLAT_CONTENT, 1),
            n_before=before.str.len_bytes(),
            is_escaped=before.str.ends_with("\\"),
        )
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
