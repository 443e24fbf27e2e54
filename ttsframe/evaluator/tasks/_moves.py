"""Moves of discs between pegs, read from any response.

The text is read once with a pattern whose repetitions are all bounded, so time is linear in the
length of the text and memory is bounded by the longest list that is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["MOST_MOVES", "PEGS", "Move", "find_moves", "with_discs"]

PEGS: Final = "ABC"
MOST_MOVES: Final = 4 * (2**16 - 1)
"""Longest list that is read: four times the optimum of the tallest tower."""

_REACH: Final = 400
"""Most characters between two moves of one list."""

_BLANKED: Final = dict.fromkeys(map(ord, "*`\"'\u2018\u2019\u201c\u201d«»$_{}~"), " ")
"""Marks of Markdown, LaTeX, JSON and quotation that are no part of a move."""

_MARKER: Final = (
    r"(?<![a-z])(?:final\s{1,4}(?:answer|solution)|"
    r"(?:answer|solution|moves|(?:final|move)\s{1,4}(?:moves|list|sequence)|sequence\s{1,4}of\s{1,4}moves)"
    r"(?:\s{0,4}\([^()\n]{0,30}\))?\s{0,4}[:=])|\\boxed|</think>|"
    r"\#{4}(?!\#|\s{0,9}(?:step|move|phase|stage|part|[0-9]{1,3}[.)]))"
)
_SETTING: Final = r"(?:\\(?:text|math)[a-z]{0,6}\s{0,4})?+"
_WORD: Final = r"(?:(?:the\s{1,4})?(?:peg|rod|tower|pole|post|stack|needle)\s{0,4})?+"


def _peg(name: str, names: str = "a-c0-3") -> str:
    """Return a pattern for a peg: one of three letters, or a number."""
    return rf"{_SETTING}{_WORD}{_SETTING}(?<![a-z0-9])(?P<{name}>[{names}])(?![a-z0-9])"


_ARROW: Final = (
    r"(?:-{1,3}>|={1,2}>|>|[→⟶⇒➔➜⟹↦]|\\(?:long|x)?(?:rightarrow|to)(?![a-z])|(?P<to>to(?![a-z])))"
)
_MOVE: Final = re.compile(
    rf"(?P<marker>{_MARKER})"
    # "Move disk 1 (the smallest) from peg A to peg C", {"disk": 1, "from": "A", "to": "C"}
    r"|(?<![a-z])(?:(?:dis[ck]|ring|d)[\s:=\#.]{0,6}+(?P<disc1>[0-9]{1,4})(?![0-9])(?:\s{0,4}\([^()\n]{0,30}\))?"
    r"|move\s{1,4}(?P<disc2>[0-9]{1,4})|move\s{1,4}(?:(?:the|top|smallest|next|dis[ck])\s{1,4}){0,4})"
    rf"[\s:=,]{{0,9}}+from[\s:=]{{0,9}}+{_peg('from1')}[\s:=,]{{0,9}}+(?:over\s)?(?:on)?to(?![a-z])[\s:=]{{0,9}}+{_peg('to1')}"
    # "(1, A, C)", "| 1 | A | C |", "(A, C)"
    rf"|[\[(|]\s{{0,9}}+(?:(?:dis[ck]\s{{0,4}})?(?P<disc3>[0-9]{{1,4}})\s{{0,9}}+[,|]\s{{0,9}}+)?"
    rf"{_peg('from3', 'a-c')}\s{{0,9}}+[,|]\s{{0,9}}+{_peg('to3', 'a-c')}\s{{0,9}}+(?=[\])|])"
    # "[1, 0, 2]"
    r"|[\[(]\s{0,9}+(?P<disc4>[0-9]{1,4})\s{0,9}+,"
    r"\s{0,9}+(?P<from4>[0-3])\s{0,9}+,\s{0,9}+(?P<to4>[0-3])\s{0,9}+(?=[\])])"
    # "1: A -> C", "disk 1: A → C", "A \to C", "3. B => C"
    r"|(?:(?<![a-z])(?:dis[ck]|ring|d)[\s:=\#.]{0,6}+(?P<disc5>[0-9]{1,4})(?![0-9])(?:\s{0,4}\([^()\n]{0,30}\))?[\s:,.)-]{1,9}+"
    r"|(?<![a-z0-9.])(?P<number>[0-9]{1,6})[\s:.)-]{1,9}+)?"
    rf"(?<!disk )(?<!disc ){_peg('from5')}\s{{0,9}}+{_ARROW}\s{{0,9}}+{_peg('to5')}",
    re.IGNORECASE | re.ASCII,
)
_BETWEEN_NUMBERS: Final = re.compile(r"(?:[^a-z#]|\#[^\n]*+|move|step)*+", re.IGNORECASE | re.ASCII)


class Move(NamedTuple):
    """One move; the disc is None if only pegs are named, and pegs are indices."""

    disc: int | None
    source: int
    target: int


class _Written(NamedTuple):
    """A move as written: its number may be a disc or a line, and its pegs may count from 0 or 1."""

    number: int | None
    source: str
    target: str


@dataclass
class _List:
    """Neighboring moves of one notation."""

    end: int = 0
    is_closed: bool = False
    n_moves: int = 0
    moves: list[_Written] = field(default_factory=list)

    def add(self, move: _Written, end: int) -> None:
        """Add a move; moves beyond the longest list are only counted."""
        self.n_moves += 1
        self.end = end
        if self.n_moves <= MOST_MOVES:
            self.moves.append(move)


def find_moves(text: str) -> list[Move] | int:
    """Return the moves of the answer, as `TowerOfHanoi` says; more than `MOST_MOVES` are only counted."""
    lists: dict[str, _List] = {}
    is_pending = is_marked = False
    text = text.translate(_BLANKED)
    for match in _MOVE.finditer(text):
        if match["marker"]:
            is_pending = True
            continue
        read = _read(match)
        if read is None:
            continue
        notation, move = read
        if is_pending:
            lists, is_pending, is_marked = {}, False, True
        current = lists.setdefault(notation, _List(end=match.start()))
        if current.n_moves and _is_apart(text, current.end, match.start(), notation):
            if is_marked:
                current.is_closed = True
            else:
                current = lists[notation] = _List()
        if not current.is_closed:
            current.add(move, match.end())
    if not lists:
        return []
    longest = max(lists.values(), key=lambda listed: listed.n_moves)
    return longest.n_moves if longest.n_moves > MOST_MOVES else _numbered(longest.moves)


def _read(match: re.Match[str]) -> tuple[str, _Written] | None:
    """Return the notation and the move of a match."""
    forms: tuple[tuple[str, str | None, str, str], ...] = (
        ("words", match["disc1"] or match["disc2"], match["from1"], match["to1"]),
        ("tuple", match["disc3"], match["from3"], match["to3"]),
        ("numbers", match["disc4"], match["from4"], match["to4"]),
        ("arrow", match["disc5"] or match["number"], match["from5"], match["to5"]),
    )
    notation, disc, source, target = next(form for form in forms if form[2])
    if source.isdigit() != target.isdigit() or (match["to"] and disc is None):
        return None
    number = None if disc is None else int(disc)
    kind = "pair" if notation == "tuple" and disc is None else notation
    return kind, _Written(number, source.upper(), target.upper())


def _is_apart(text: str, end: int, start: int, notation: str) -> bool:
    """Return whether the text between two moves separates lists."""
    if start - end > _REACH:
        return True
    # A list of lists of numbers may also be a state of the pegs: words end it.
    return notation == "numbers" and not _BETWEEN_NUMBERS.fullmatch(text, end, start)


def _numbered(written: list[_Written]) -> list[Move]:
    """Decide what numbers mean; return no moves if pegs are numbered in two ways."""
    numbers = [move.number for move in written]
    # Moving the discs in the order 1, 2, 3 is never legal, so such numbers count the moves.
    if numbers in (list(range(len(written))), list(range(1, len(written) + 1))) and numbers != [1]:
        numbers = [None] * len(written)
    names = {move.source for move in written} | {move.target for move in written}
    if {"0", "3"} <= names:
        return []
    pegs = "123" if "3" in names else "012"
    places = {name: "ABC".find(name) if name in PEGS else pegs.find(name) for name in names}
    return [
        Move(number, places[move.source], places[move.target])
        for number, move in zip(numbers, written, strict=True)
    ]


def with_discs(moves: list[Move]) -> list[Move]:
    """Add the top disc to each move up to the first illegal one; the first move starts at the tower."""
    named: list[Move] = []
    if not moves:
        return named
    tower = moves[0].source
    pegs: list[list[int]] = [[], [], []]
    n_lifted = 0
    for i, move in enumerate(moves):
        source, target = pegs[move.source], pegs[move.target]
        if not source and move.source == tower:
            n_lifted += 1
            source.append(n_lifted)
        if (
            not source
            or move.disc not in {None, source[-1]}
            or move.source == move.target
            or (target and target[-1] < source[-1])
        ):
            return [*named, *moves[i:]]
        named.append(move._replace(disc=source[-1]))
        target.append(source.pop())
    return named
