"""An order of named objects, read from any response."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NAMES", "find_order"]

NAMES: Final = (
    "dove", "eagle", "falcon", "finch", "goose", "hawk", "heron", "lark", "magpie", "owl", "pigeon", "quail",
    "raven", "robin", "sparrow", "swan",
)  # fmt: skip

_REACH: Final = 60
"""Most characters between two names of one list."""

_MOST_PLACES: Final = 4
_PLACES: Final = {
    word: place
    for place, words in enumerate(
        (
            ("first", "1st"), ("second", "2nd"), ("third", "3rd"), ("fourth", "4th"), ("fifth", "5th"),
            ("sixth", "6th"), ("seventh", "7th"), ("eighth", "8th"), ("ninth", "9th"), ("tenth", "10th"),
            ("eleventh", "11th"), ("twelfth", "12th"), ("thirteenth", "13th"), ("fourteenth", "14th"),
            ("fifteenth", "15th"), ("sixteenth", "16th"),
        ),
        start=1,
    )
    for word in words
}  # fmt: skip
_TOKEN: Final = re.compile(
    r"(?P<marker>\\boxed|\#{4}|</think>|(?<![a-z0-9])(?:final\s{1,4}(?:answer|order)|"
    r"(?:answer|solution|order)[\s*_`]{0,6}+(?:[:=]|is(?![a-z])))(?![a-z]))"
    r"|(?<![a-z0-9])(?:"
    rf"(?P<name>{'|'.join(NAMES)})|(?P<place>{'|'.join(_PLACES)}|[0-9]{{1,2}})"
    r"|(?P<direction>right\s{1,4}to\s{1,4}left|left\s{1,4}to\s{1,4}right))(?![a-z0-9])",
    re.IGNORECASE | re.ASCII,
)


@dataclass
class _Run:
    """Neighboring distinct names, with the places written beside them."""

    is_reversed: bool = False
    end: int = 0
    names: list[str] = field(default_factory=list)
    tokens: list[str | int] = field(default_factory=list)

    def add(self, name: str, places: list[int], end: int) -> None:
        """Add a name and the places written since the previous name."""
        self.names.append(name)
        self.tokens += [*places, name]
        self.end = end

    def order(self, places: list[int]) -> list[str]:
        """Return the names by their places if each has one, else in the order of writing."""
        wanted = set(range(1, len(self.names) + 1))
        for tokens in (self.tokens, [*self.tokens, *places[:1]]):
            for numbers, names in ((tokens[::2], tokens[1::2]), (tokens[1::2], tokens[::2])):
                if len(numbers) == len(names) and names == self.names and wanted == set(numbers):
                    return [self.names[numbers.index(place)] for place in sorted(wanted)]
        return self.names[::-1] if self.is_reversed else self.names


def find_order(text: str) -> list[str]:
    """Return the names of the answer from left to right, as `LogicalDeduction` says."""
    best: list[str] = []
    run = _Run()
    places: list[int] = []
    is_pending = is_marked = is_reversed = False
    turned = 0
    for match in _TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match[0].lower()
        if kind == "marker":
            is_pending = True
        elif kind == "direction":
            is_reversed, turned = token.startswith("right"), match.end()
        elif kind == "place":
            if len(places) < _MOST_PLACES:
                places.append(_PLACES.get(token) or int(token))
        else:
            is_far = match.start() - run.end > _REACH
            if is_pending or is_far or token in run.names or not run.names:
                if is_pending or not is_marked:
                    best = []
                elif len(run.names) > len(best):
                    best = run.order(places)
                is_marked |= is_pending
                is_pending = False
                run = _Run(is_reversed and match.start() - turned <= _REACH)
                places = places[-1:]
            run.add(token, places, match.end())
            places = []
    if is_marked:
        return run.order(places) if len(run.names) > len(best) else best
    return run.order(places) if len(text.rstrip()) - run.end <= _REACH else []
