"""Clues about the order of objects in a row, and an exact solver for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

__all__ = ["Clue", "ClueKind", "as_clue", "holds", "is_unique", "sentence", "true_clues"]

ClueKind: TypeAlias = Literal["left_of", "next_left_of", "adjacent", "apart", "not_at"]

_Pair: TypeAlias = tuple[ClueKind, int, int, int]
"""Kind, two objects, and their distance."""


class Clue(NamedTuple):
    """A statement about one object or two (`second` is empty for one).

    `number` is the number of objects between the two ("apart"), or the place from 1 ("not_at").
    """

    kind: ClueKind
    first: str
    second: str
    number: int


_SENTENCES: Final[Mapping[str, str]] = {
    "left_of": "The {first} is somewhere to the left of the {second}.",
    "next_left_of": "The {first} is immediately to the left of the {second}.",
    "adjacent": "The {first} and the {second} are next to each other.",
    "apart": "Exactly {number} stand{s} between the {first} and the {second}.",
    "not_at": "The {first} is not in place {number}.",
}


def sentence(clue: Clue) -> str:
    """Write a clue as a sentence."""
    number = f"{clue.number} birds" if clue.kind == "apart" and clue.number > 1 else clue.number
    if clue.kind == "apart" and clue.number == 1:
        number = "1 bird"
    return _SENTENCES[clue.kind].format(
        first=clue.first, second=clue.second, number=number, s="s" if clue.number == 1 else ""
    )


def as_clue(value: object) -> Clue | None:
    """Return the clue of an entry in an instance's metadata; None if it is invalid."""
    if not isinstance(value, Sequence) or len(value) != 4 or value[0] not in get_args(ClueKind):
        return None
    kind, first, second, number = value
    if not (isinstance(first, str) and isinstance(second, str) and isinstance(number, int)):
        return None
    return Clue(cast(ClueKind, kind), first, second, number)


def holds(clue: Clue, places: Mapping[str, int]) -> bool:
    """Return whether an order, as places from 0, satisfies a clue."""
    first = places[clue.first]
    if clue.kind == "not_at":
        return first != clue.number - 1
    second = places[clue.second]
    if clue.kind == "left_of":
        return first < second
    if clue.kind == "next_left_of":
        return first + 1 == second
    return abs(first - second) == (1 if clue.kind == "adjacent" else clue.number + 1)


def true_clues(order: Sequence[str]) -> list[Clue]:
    """Return every clue that an order satisfies."""
    clues = []
    for i, left in enumerate(order):
        clues += [Clue("not_at", left, "", place + 1) for place in range(len(order)) if place != i]
        for j in range(i + 1, len(order)):
            right = order[j]
            clues.append(Clue("left_of", left, right, 0))
            low, high = sorted((left, right))
            if j == i + 1:
                clues += [Clue("next_left_of", left, right, 0), Clue("adjacent", low, high, 0)]
            else:
                clues.append(Clue("apart", low, high, j - i - 1))
    return clues


def is_unique(objects: Sequence[str], clues: Iterable[Clue]) -> bool:
    """Return whether exactly one order satisfies all clues."""
    # The places that each object may still have are sets of bits.
    index = {name: i for i, name in enumerate(objects)}
    n = len(objects)
    domains = [(1 << n) - 1] * n
    pairs: list[_Pair] = []
    for clue in clues:
        first = index[clue.first]
        if clue.kind == "not_at":
            domains[first] &= ~(1 << (clue.number - 1))
        else:
            gap = clue.number + 1 if clue.kind == "apart" else 1
            pairs.append((clue.kind, first, index[clue.second], gap))
    return _count(domains, pairs, 2) == 1


def _count(domains: list[int], pairs: list[_Pair], most: int) -> int:
    """Count solutions up to `most`, trying the object with the fewest places first."""
    narrowed = _narrowed(domains, pairs)
    if narrowed is None:
        return 0
    open_ones = [i for i, domain in enumerate(narrowed) if domain & (domain - 1)]
    if not open_ones:
        return 1
    chosen = min(open_ones, key=lambda i: narrowed[i].bit_count())
    total = 0
    domain = narrowed[chosen]
    while domain and total < most:
        place = domain & -domain
        domain ^= place
        total += _count([*narrowed[:chosen], place, *narrowed[chosen + 1 :]], pairs, most - total)
    return total


def _narrowed(domains: list[int], pairs: list[_Pair]) -> list[int] | None:
    """Remove places that a clue or another object excludes; None if an object has no place left."""
    domains = list(domains)
    before: list[int] = []
    while domains != before:
        before = list(domains)
        for pair in pairs:
            _keep_clue(domains, pair)
        for i, domain in enumerate(domains):
            if not domain & (domain - 1):
                domains = [d if k == i else d & ~domain for k, d in enumerate(domains)]
        _place_the_only(domains)
        if not all(domains):
            return None
    return domains


def _keep_clue(domains: list[int], pair: _Pair) -> None:
    """Remove the places of two objects that contradict a clue."""
    kind, i, j, gap = pair
    first, second = domains[i], domains[j]
    if kind == "left_of":
        # Right of the leftmost place of the one, left of the rightmost place of the other.
        domains[j] &= -((first & -first) << 1)
        domains[i] &= (1 << second.bit_length() >> 1) - 1
    elif kind == "next_left_of":
        domains[j] &= first << 1
        domains[i] &= second >> 1
    else:
        domains[j] &= first << gap | first >> gap
        domains[i] &= second << gap | second >> gap


def _place_the_only(domains: list[int]) -> None:
    """Place objects that are the only candidate for a place."""
    seen = seen_twice = 0
    for domain in domains:
        seen_twice |= seen & domain
        seen |= domain
    only = seen & ~seen_twice
    for i, domain in enumerate(domains):
        if domain & only and domain & (domain - 1):
            domains[i] = domain & only
