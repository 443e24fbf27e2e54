"""Structure: lists, sets, tuples, intervals, unions, matrices, relations, ratios, times, words.

A text is taken apart from the outside in, with brackets respected, until scalars are left. A part
that cannot be read leaves the whole text unread: half a reading would merge what differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from typing import Final, TypeAlias

from ttsframe.answers import relations
from ttsframe.answers.fingerprint import Lost, real_number, scalar_key
from ttsframe.answers.intervals import intersection_key, union_key
from ttsframe.answers.latex import Node, Unreadable, parse, symbols_of
from ttsframe.answers.marks import (
    Mark,
    expand_signs,
    is_thousands,
    split_at,
    top_marks,
    wrapping,
)
from ttsframe.answers.matrices import read_matrix
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.rational import rational_key, read_rational
from ttsframe.answers.words import choice_letter, read_words, strip_units, unwrap_text

__all__ = ["Reader", "Reading"]

Reading: TypeAlias = tuple[str, str]
"""Body of a key and its kind."""

DEEPEST: Final = 8
MOST_PARTS: Final = 64
LONGEST_BODY: Final = 160
LONGEST_UNRESOLVED: Final = 200

_RELATIONS: Final = frozenset({"=", "<", "<=", ">", ">=", "!=", "in"})
_INEQUALITIES: Final = frozenset({"<", "<=", ">", ">="})
_JOINERS: Final = frozenset({",", ";", "and", "or"})
_TIME: Final = re.compile(
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9]))?(?::(?P<second>[0-5][0-9]))?\s*"
    r"(?:\\text\s*\{\s*)?(?P<half>[aApP]\.?\s?[mM]\.?)?\s*\}?"
)
_LEADING_COMMA: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_DECIMAL: Final = re.compile(r"-?[0-9]+\.[0-9]+")
_SYSTEM: Final = re.compile(
    r"(?:\\\{\s*)?\\begin\s*\{(?P<name>cases|array|aligned|align\*?)\}\s*(?:\{[lcr| ]*\})?"
    r"(?P<rows>(?:(?!\\begin|\\text|\\\\).)*[=<>](?:(?!\\begin|\\text).)*)\\end\s*\{(?P=name)\}",
    re.DOTALL,
)
_UNIT: Final = re.compile(r"(?<![\\A-Za-z])([A-Za-z]{2,})\s*\}?$")
_NAMED_SET: Final = re.compile(r"N\{(.+?)in(.+)\}")
_NUMBER_SET: Final = re.compile(r"\\mathbb\s*\{?\s*([RZNQC])\s*\}?(\^\{?[+*]\}?|_\{?[+>0-9]+\}?)?")
_INTEGER_PARAMETER: Final = re.compile(
    r"\s*(?:[,;]|\\text\s*\{\s*,?\s*(?:where|for|with)?\s*\})?\s*(?P<open>\()?\s*[a-z]\s*\\in\s*"
    r"(?:\\mathbb\s*\{?\s*Z\s*\}?|\\mathbf\s*\{\s*Z\s*\}|Z)\s*(?(open)\))$"
)
"""A remark that a parameter of the solutions runs through the integers: without it they mean the same."""
_SPECIAL: Final = re.compile(r"\\(?:sum|prod|int|lim)(?![A-Za-z])")
_BOUND_NAME: Final = re.compile(
    r"\\(?:sum|prod)\s*_\s*\{\s*([a-zA-Z])\s*=|d\s*([a-zA-Z])\s*$|\\lim\s*_\s*\{\s*([a-zA-Z])\s*\\(?:to|rightarrow)"
)
_LETTERS: Final = re.compile(r"\\[A-Za-z]+|[A-Za-z]")
_HELPERS: Final = frozenset(
    {"\\infty", "\\pi", "\\frac", "\\sqrt", "\\to", "\\rightarrow", "\\sin", "\\cos", "\\tan", "\\ln", "\\log", "\\sum",
     "\\prod", "\\int", "\\lim", "\\cdot", "\\exp", "\\arctan", "\\binom", "\\times", "d", "e", "i", "\\limits"}
)  # fmt: skip
_UNIT_ENDS: Final = frozenset(".23}")
_EMPTY: Final = "{}"


class Reader:
    """Reads the texts of one answer under one policy.

    Parameters
    ----------
    policy
        The conventions.
    resolved
        What a computer algebra system made of scalars that an earlier reading left unresolved.
    trace
        Called with a layer's name and what it saw, by `explain_answer`.
    """

    __slots__ = ("last", "policy", "resolved", "trace", "unresolved")

    def __init__(
        self,
        policy: AnswerPolicy,
        resolved: Mapping[str, str | None],
        trace: Callable[[str, str], None] | None = None,
    ) -> None:
        self.policy = policy
        self.resolved = resolved
        self.unresolved: list[str] = []
        self.trace = trace
        self.last: Node | None = None

    def number(self, text: str) -> Fraction | float | None:
        """Return the value of a text that is one real number, else None."""
        reading = self._read(text, 0)
        if reading is None or reading[1] not in {"exact", "numeric"} or self.last is None:
            return None
        try:
            return real_number(self.last, self.policy)
        except Lost:
            return None

    def read(self, text: str) -> Reading | None:
        """Return the reading of a whole normalised text, or None."""
        reading = self._read(text, 0)
        if reading is not None and len(reading[0]) > LONGEST_BODY:
            body = reading[0]
            return body[0] + "#" + blake2b(body.encode(), digest_size=16).hexdigest(), reading[1]
        return reading

    def _see(self, layer: str, what: str) -> None:
        if self.trace is not None:
            self.trace(layer, what)

    def _read(self, text: str, depth: int) -> Reading | None:
        if depth > DEEPEST or not text:
            return None
        rational = read_rational(text, self.policy)
        if rational is not None:
            return self._rational(text, rational)
        if "\\begin" in text:
            system = _SYSTEM.fullmatch(text)
            if system is not None:
                rows = [row.replace("&", " ").strip(" ,;") for row in system["rows"].split("\\\\")]
                return self._read(", ".join(row for row in rows if row), depth + 1)
        marks = top_marks(text)
        if marks is None:
            return None
        signs = {mark.sign for mark in marks}
        if signs & {"?", "...", "if", "when", "where", "for"}:
            return None
        if not signs:
            if text[-1] == ")" and "\\in" in text:
                found = _INTEGER_PARAMETER.search(text)
                if found is not None and found.start():
                    return self._read(text[: found.start()].rstrip(), depth + 1)
            return self._plain(text, depth)
        if "in" in signs:
            found = _INTEGER_PARAMETER.search(text)
            if found is not None and found.start():
                return self._read(text[: found.start()].rstrip(), depth + 1)
        if signs & _JOINERS:
            separators = [
                mark for mark in marks if mark.sign != "," or not is_thousands(text, mark)
            ]
            if any(mark.sign in _JOINERS for mark in separators):
                return self._list(text, separators, depth)
        if signs & _RELATIONS or "~" in signs:
            return self._relation(text, marks, depth)
        if "cup" in signs or "minus" in signs or "cap" in signs:
            return self._union(text, marks, signs, depth)
        if ":" in signs:
            return self._ratio(text, marks)
        return self._plain(text, depth)

    def _rational(self, text: str, rational: tuple[Fraction, bool]) -> Reading:
        value, is_percent = rational
        self._see("number", text)
        self.last = None if is_percent else ("q", value.numerator, value.denominator)
        key = rational_key(value.numerator, value.denominator)
        return ("%" + key if is_percent else key), "exact"

    def _plain(self, text: str, depth: int) -> Reading | None:
        """Read a text without separators or relations at its top level."""
        if "\\pm" in text or "\\mp" in text:
            texts = expand_signs(text)
            if texts is None or len(texts) < 2:
                return None
            self._see("plus-minus", text)
            return self._alternatives(texts, depth)
        if "\\begin" in text:
            return self._matrix(text)
        wrapped = wrapping(text) if text[0] in "([{\\" else None
        if wrapped is not None:
            return self._bracketed(wrapped, depth)
        content = unwrap_text(text)
        if content is not None:
            return self._text(content, depth)
        words = read_words(text, self.policy, as_text=False)
        if words is not None:
            return self._words(text, words)
        if text.startswith(("\\text", "(")) or len(text) < 3:
            letter = choice_letter(text)
            if letter is not None:
                self._see("choice", letter)
                return self._scalar(letter)
        time = self._time(text)
        if time is not None:
            return time
        if "\\mathbb" in text:
            found = _NUMBER_SET.fullmatch(text)
            if found:
                self._see("number set", text)
                if found[1] == "R" and not found[2]:
                    return "(-oo;oo)", "structure"
                return f"B{found[1]}{found[2] or ''}", "structure"
            return None
        if text == "\\emptyset":
            return _EMPTY, "structure"
        return self._scalar(text)

    def _words(self, text: str, body: str) -> Reading:
        self._see("words", text)
        if body[0] == "t":
            return body, "text"
        return body, "exact" if body.endswith("oo") else "structure"

    def _text(self, content: str, depth: int) -> Reading | None:
        r"""Read what stands in \text{...}: a number, a letter, or words."""
        rational = read_rational(content, self.policy)
        if rational is not None:
            return self._rational(content, rational)
        words = read_words(content, self.policy, as_text=True)
        if words is not None:
            return self._words(content, words)
        return self._read(content, depth + 1)

    # ---- brackets -------------------------------------------------------------------------------

    def _bracketed(self, wrapped: tuple[str, str, str], depth: int) -> Reading | None:
        opening, inside, closing = wrapped
        marks = top_marks(inside)
        if marks is None:
            return None
        if opening == "\\{" or (opening == "{" and any(mark.sign == "," for mark in marks)):
            return self._set(inside, marks, depth)
        separators = {mark.sign for mark in marks} & {",", ";"}
        if not separators:
            if opening == "[" and closing == "]" and "\\begin" not in inside:
                reading = self._read(inside, depth + 1)
                return None if reading is None else (f"[{reading[0]}]", "structure")
            if opening == "\\langle" or (opening in "([" and opening + closing not in {"()", "[]"}):
                return None
            return self._read(inside, depth + 1) if inside else None
        if any(mark.sign == "=" for mark in marks):
            return self._read(inside, depth + 1)
        separator = ";" if ";" in separators else ","
        parts = split_at(inside, marks, frozenset({separator}))
        if len(parts) != sum(mark.sign == separator for mark in marks) + 1:
            return None
        self._see("brackets", opening + inside + closing)
        readings = self.read_each(parts, depth)
        if readings is None:
            return None
        if opening == "\\langle":
            opening, closing = "(", ")"
        return opening + ";".join(body for body, _ in readings) + closing, "structure"

    def _set(self, inside: str, marks: list[Mark], depth: int) -> Reading | None:
        if not inside:
            return _EMPTY, "structure"
        builder = re.split(r"\\mid(?![A-Za-z])|(?<!\\)\||(?<![A-Z0-9]):", inside, maxsplit=1)
        if len(builder) == 2 and relations.is_name(builder[0].strip().split("\\in")[0].strip()):
            self._see("set by condition", inside)
            return self._read(builder[1].strip(), depth + 1)
        if any(mark.sign == "=" for mark in marks):
            return self._read(inside, depth + 1)
        parts = split_at(inside, marks, frozenset({",", ";"}))
        self._see("set", inside)
        readings = self.read_each(parts, depth)
        return None if readings is None else self._bag(readings, is_set=True)

    def read_each(self, parts: list[str], depth: int) -> list[Reading] | None:
        """Return the readings of several texts, or None where one has none."""
        if len(parts) > MOST_PARTS:
            return None
        readings: list[Reading] = []
        for part in parts:
            reading = self._read(part, depth + 1)
            if reading is None:
                return None
            readings.append(reading)
        return readings

    def _alternatives(self, texts: list[str], depth: int) -> Reading | None:
        readings = self.read_each(texts, depth)
        return None if readings is None else self._bag(readings, is_set=True)

    @staticmethod
    def _bag(readings: list[Reading], *, is_set: bool, spread: list[bool] | None = None) -> Reading:
        """Join readings without order; those that are spread are several answers, not a set."""
        bodies: list[str] = []
        for index, (body, _) in enumerate(readings):
            if spread is not None and spread[index] and body[0] == "{" and body != _EMPTY:
                bodies.extend(_elements(body))
            else:
                bodies.append(body)
        bodies = sorted(set(bodies) if is_set else bodies)
        if len(bodies) == 1:
            return bodies[0], readings[0][1] if len(readings) == 1 or is_set else "structure"
        return "{" + ";".join(bodies) + "}", "structure"

    # ---- lists ----------------------------------------------------------------------------------

    def _list(self, text: str, marks: list[Mark], depth: int) -> Reading | None:
        """Read several answers."""
        signs = {mark.sign for mark in marks}
        joiners = signs & _JOINERS
        if not signs & (_RELATIONS | {"~"}):
            words = read_words(text, self.policy, as_text=False)
            if words is not None:
                return self._words(text, words)
        separators = frozenset({";", "and", "or"} if ";" in joiners else joiners)
        parts = split_at(text, marks, separators)
        if len(parts) > MOST_PARTS or not parts:
            return None
        if len(parts) == 1:
            return self._read(parts[0], depth + 1) if parts[0] != text else None
        if len({unit[1] for unit in map(_UNIT.search, parts) if unit}) > 1 and any(
            map(_has_digit, parts)
        ):
            # 2 hours and 30 minutes is one quantity, not two answers.
            return None
        self._see("list", text)
        named = [self._named(part) for part in parts]
        names = {pair[0] for pair in named if pair is not None}
        if named[0] is not None and ("or" not in joiners or len(names) > 1):
            if "or" in joiners and None not in named and 1 < len(names) < len(named):
                # x = 1, y = 2 or x = 3, y = 4: the word separates the solutions.
                readings = self.read_each(split_at(text, marks, frozenset({"or", ";"})), depth)
                return None if readings is None else self._bag(readings, is_set=True)
            return self._assignments(parts, named, depth, is_choice="or" in joiners)
        if signs & _INEQUALITIES:
            return self._conditions(parts, signs, depth)
        if "!=" in signs:
            return self._exceptions(parts, depth)
        readings = self.read_each(parts, depth)
        if readings is None:
            return None
        if self.policy.list_order == "kept" and "or" not in joiners:
            return "<" + ";".join(body for body, _ in readings) + ">", "structure"
        spread = [not part.startswith("\\{") for part in parts]
        if ";" in joiners and any(
            is_spread and body[0] == "{" and "," in part
            for part, is_spread, (body, _) in zip(parts, spread, readings, strict=True)
        ):
            # Semicolons between lists: the lists stay apart.
            return "L{" + "|".join(sorted(body for body, _ in readings)) + "}", "structure"
        return self._bag(readings, is_set="or" in joiners, spread=spread)

    def _conditions(self, parts: list[str], signs: set[str], depth: int) -> Reading | None:
        """Read several inequalities: of one variable as one set, of several by their names."""
        policy = replace(self.policy, inequality="kept")
        readings = Reader(policy, self.resolved, self.trace).read_each(parts, depth)
        if readings is None:
            return None
        found = [_NAMED_SET.fullmatch(body) for body, _ in readings]
        names = {match[1] if match else None for match in found}
        if len(names) != 1 or None in names:
            return "&{" + ";".join(sorted({body for body, _ in readings})) + "}", "structure"
        bodies = {match[2] for match in found if match}
        body = (None if "or" in signs else intersection_key(bodies)) or union_key(bodies)
        if self.policy.inequality == "kept":
            body = f"N{{{names.pop()}in{body}}}"
        return body, "structure"

    def _exceptions(self, parts: list[str], depth: int) -> Reading | None:
        """Read what one name is not, as in x != 1, 2 or x != 1, x != 2."""
        name = ""
        points: list[str] = []
        for part in parts:
            left, sign, right = part.replace("!=", "\\neq").partition("\\neq")
            if sign and (not name or left.strip() == name):
                name = left.strip()
                points.append(right.strip())
            elif sign or not name:
                return None
            else:
                points.append(part)
        try:
            return self._unequal([name, ",".join(points)], depth)
        except (Lost, Unreadable):
            return None

    def _named(self, part: str) -> tuple[str, str] | None:
        """Take a part ``name = value`` apart."""
        left, equals, right = part.partition("=")
        left = left.strip()
        if not equals or "=" in right or left[-1:] in "<>!" or not relations.is_name(left):
            return None
        if any(mark.sign in _RELATIONS for mark in top_marks(right) or []):
            return None
        return _spaceless(left), right.strip()

    def _assignments(
        self,
        parts: list[str],
        named: list[tuple[str, str] | None],
        depth: int,
        *,
        is_choice: bool,
    ) -> Reading | None:
        """Read ``x = 1, 2`` as values of one name, ``x = 1, y = 2`` as values of several."""
        pairs: list[tuple[str, str]] = []
        for part, pair in zip(parts, named, strict=True):
            if pair is not None:
                pairs.append(pair)
            elif "=" in part or not pairs or any(char in part for char in "<>"):
                pairs.clear()
                break
            else:
                pairs.append((pairs[-1][0], part))
        if not pairs:
            readings = self.read_each(parts, depth)
            return None if readings is None else self._bag(readings, is_set=False)
        names = [name for name, _ in pairs]
        if len(set(names)) == 1:
            readings = self.read_each([f"{name}={value}" for name, value in pairs], depth)
            spread = [True] * len(pairs)
            return None if readings is None else self._bag(readings, is_set=True, spread=spread)
        if len(set(names)) < len(names):
            return None
        values = self.read_each([value for _, value in pairs], depth)
        if values is None:
            return None
        ordered = sorted(zip(names, (body for body, _ in values), strict=True))
        if self.policy.assignment == "dropped":
            return self._bag(values, is_set=False)
        if is_choice:
            return "O{" + ";".join(f"{name}={body}" for name, body in ordered) + "}", "structure"
        if (
            self.policy.assignment == "value"
            and tuple(name for name, _ in ordered) in relations.COORDINATES
        ):
            return "(" + ";".join(body for _, body in ordered) + ")", "structure"
        return "N{" + ";".join(f"{name}={body}" for name, body in ordered) + "}", "structure"

    # ---- relations ------------------------------------------------------------------------------

    def _relation(self, text: str, marks: list[Mark], depth: int) -> Reading | None:
        relation = [mark for mark in marks if mark.sign in _RELATIONS or mark.sign == "~"]
        near = next((mark for mark in relation if mark.sign == "~"), None)
        if near is not None:
            left, right = text[: near.start].strip(), text[near.end :].strip()
            if not left or relations.is_name(left):
                return self._read(right if not left else f"{left}={right}", depth + 1)
            # The value before the sign is exact, what follows only rounds it.
            return self._read(left, depth + 1)
        operators = [mark.sign for mark in relation]
        parts = split_at(text, relation, _RELATIONS)
        if len(parts) != len(operators) + 1:
            return None
        self._see("relation", text)
        try:
            if operators == ["in"]:
                return self._membership(parts, depth)
            if operators == ["!="]:
                return self._unequal(parts, depth)
            if set(operators) == {"="}:
                return self._equation(parts, depth)
            if set(operators) <= _INEQUALITIES:
                return self._inequality(parts, operators)
        except (Lost, Unreadable):
            return None
        return None

    def _membership(self, parts: list[str], depth: int) -> Reading | None:
        if not (relations.is_name(parts[0]) or wrapping(parts[0])):
            return None
        reading = self._read(parts[1], depth + 1)
        if reading is None or self.policy.assignment != "kept":
            return reading
        return f"N{{{parts[0]}in{reading[0]}}}", "structure"

    def _unequal(self, parts: list[str], depth: int) -> Reading | None:
        name, text = parts
        if not relations.is_name(name):
            return None
        texts = [one for part in text.split(",") for one in expand_signs(part) or []]
        body = relations.punctured_line([parse(self._spelled(one)) for one in texts], self.policy)
        if body is None:
            reading = self._read(text, depth + 1)
            return None if reading is None else (f"N{{{name}!={reading[0]}}}", "structure")
        return (
            body if self.policy.inequality == "interval" else f"N{{{name}in{body}}}"
        ), "structure"

    def _equation(self, parts: list[str], depth: int) -> Reading | None:
        while len(parts) > 1 and self._rounds(parts[-1], parts[-2]):
            parts = parts[:-1]
        if len(parts) == 1:
            return self._read(parts[0], depth + 1)
        left, right = parts[0], parts[-1]
        if relations.is_name(left) or self._is_tuple_of_names(left):
            reading = self._read(right, depth + 1)
            if reading is not None and reading[1] == "text" and right.isupper():
                # AB = CD says that two segments are equal: CD is no answer in words.
                return None
            if reading is not None and reading[1] == "symbolic" and len(parts) > 2:
                middle = {self._read(part, depth + 1) for part in parts[1:-1]}
                if middle != {reading}:
                    reading = None
            if reading is not None and self._names_value(left, reading):
                if self.policy.assignment != "kept":
                    return reading
                return f"N{{{_spaceless(left)}={reading[0]}}}", reading[1]
            if reading is not None and reading[1] != "symbolic":
                return None
        elif len(parts) == 2 and relations.is_name(right):
            reading = self._read(left, depth + 1)
            if reading is not None and reading[1] in {"exact", "numeric", "structure"}:
                if self.policy.assignment != "kept":
                    return reading
                return f"N{{{_spaceless(right)}={reading[0]}}}", reading[1]
        if any("\\pm" in part or "\\mp" in part for part in parts):
            texts = expand_signs("=".join(parts))
            return None if texts is None else self._alternatives(texts, depth)
        if any("\\begin" in part for part in parts):
            readings = {self._read(part, depth + 1) for part in parts}
            return readings.pop() if len(readings) == 1 else None
        nodes = [parse(self._spelled(part)) for part in parts]
        if len(nodes) > 2:
            return self._chain(nodes)
        if not symbols_of(nodes[0]) and not symbols_of(nodes[-1]):
            return self._agreed(nodes)
        body = relations.equation_key(nodes[0], nodes[-1], self.policy)
        return scalar_key(nodes[0], self.policy) if body is None else (body, "structure")

    def _chain(self, nodes: list[Node]) -> Reading | None:
        """Read a = b = c: the value where all agree, else every equation in it that says something."""
        keys = {scalar_key(node, self.policy) for node in nodes}
        if len(keys) == 1:
            return keys.pop()
        bodies: set[str] = set()
        for left, right in pairwise(nodes):
            if not symbols_of(left) and not symbols_of(right):
                return None
            body = relations.equation_key(left, right, self.policy)
            if body is not None:
                bodies.add(body)
        return (
            bodies.pop() if len(bodies) == 1 else "&{" + ";".join(sorted(bodies)) + "}"
        ), "structure"

    def _rounds(self, right: str, left: str) -> bool:
        """Tell whether a decimal only rounds what stands before it, as in 1/3 = 0.333."""
        if not _DECIMAL.fullmatch(right) or _DECIMAL.fullmatch(left):
            return False
        try:
            exact = real_number(parse(self._spelled(left)), self.policy)
        except (Lost, Unreadable):
            return False
        if exact is None:
            return False
        unit = Fraction(1, 10 ** len(right.partition(".")[2]))
        return 0 < abs(Fraction(exact) - Fraction(right)) <= unit * Fraction(51, 100)

    def _agreed(self, nodes: list[Node]) -> Reading | None:
        r"""Return the one value of both sides; \log has here whichever base makes them agree."""
        policies = [self.policy]
        if self.policy.log_base == "unknown":
            policies += [replace(self.policy, log_base=base) for base in ("10", "e")]
        for policy in policies:
            keys = {scalar_key(node, policy) for node in nodes}
            if len(keys) == 1:
                self.last = nodes[-1] if policy is self.policy else None
                return keys.pop()
        return None

    def _names_value(self, left: str, reading: Reading) -> bool:
        """Tell whether an equation only names its right side, unlike that of a line or curve."""
        if reading[1] == "symbolic":
            return self.policy.assignment == "dropped" or relations.is_function_name(left)
        return True

    @staticmethod
    def _is_tuple_of_names(text: str) -> bool:
        wrapped = wrapping(text) if text[:1] == "(" else None
        return wrapped is not None and all(
            relations.is_name(part.strip()) for part in wrapped[1].split(",")
        )

    def _inequality(self, parts: list[str], operators: list[str]) -> Reading | None:
        found = relations.bounds_of([self._spelled(part) for part in parts], operators, self.policy)
        if found is None:
            return None
        if isinstance(found, str):
            return found, "structure"
        name, low, high = found
        body = (
            ("(-oo" if low is None or low.key == "-oo" else ("(" if low.is_open else "[") + low.key)
            + ";"
            + (
                "oo)"
                if high is None or high.key == "oo"
                else high.key + (")" if high.is_open else "]")
            )
        )
        return (
            body if self.policy.inequality == "interval" else f"N{{{name}in{body}}}"
        ), "structure"

    # ---- unions, ratios, times, matrices --------------------------------------------------------

    def _union(self, text: str, marks: list[Mark], signs: set[str], depth: int) -> Reading | None:
        if "cap" in signs or ("minus" in signs and "cup" in signs):
            return None
        parts = split_at(text, marks, frozenset({"cup", "minus", ","}))
        self._see("union", text)
        if "minus" in signs:
            if len(parts) != 2:
                return None
            whole = self._read(parts[0], depth + 1)
            points = wrapping(parts[1])
            if whole is None or points is None or points[0] != "\\{" or whole[0] != "(-oo;oo)":
                return None
            try:
                nodes = [parse(self._spelled(point)) for point in points[1].split(",")]
                body = relations.punctured_line(nodes, self.policy)
            except (Lost, Unreadable):
                return None
            return None if body is None else (body, "structure")
        readings = self.read_each(parts, depth)
        if readings is None:
            return None
        bodies = {body for body, _ in readings}
        if all(body[0] == "{" or kind != "structure" for body, kind in readings):
            return self._bag(readings, is_set=True, spread=[True] * len(readings))
        return union_key(bodies), "structure"

    def _ratio(self, text: str, marks: list[Mark]) -> Reading | None:
        time = self._time(text)
        if time is not None:
            return time
        parts = split_at(text, marks, frozenset({":"}))
        if len(parts) != sum(mark.sign == ":" for mark in marks) + 1 or len(parts) > 8:
            return None
        self._see("ratio", text)
        try:
            nodes = [parse(self._spelled(part)) for part in parts]
            first = nodes[0]
            bodies = [scalar_key(("/", node, first), self.policy)[0] for node in nodes[1:]]
        except (Lost, Unreadable):
            return None
        return "R" + ":".join(bodies), "structure"

    def _time(self, text: str) -> Reading | None:
        if not text[0].isdigit():
            return None
        found = _TIME.fullmatch(text)
        if found is None or (found["minute"] is None and found["half"] is None):
            return None
        hour = int(found["hour"])
        half = (found["half"] or "").casefold().replace(".", "").replace(" ", "")
        if hour > (12 if half else 24):
            return None
        self._see("time", text)
        second = f":{found['second']}" if found["second"] else ""
        return f"T{hour}:{found['minute'] or '00'}{second}{half}", "structure"

    def _matrix(self, text: str) -> Reading | None:
        rows = read_matrix(text, self._spelled)
        if rows is None:
            return None
        self._see("matrix", text)
        try:
            bodies = [";".join(scalar_key(cell, self.policy)[0] for cell in row) for row in rows]
        except Lost:
            return None
        return "M(" + "|".join(bodies) + ")", "structure"

    # ---- scalars --------------------------------------------------------------------------------

    def _spelled(self, text: str) -> str:
        """Prepare the text of a scalar for the parser."""
        if "\\text" in text or text[-1:].isalpha() or text[-1:] in _UNIT_ENDS:
            text = strip_units(text)
        if "," in text:
            text = _LEADING_COMMA.sub("", text)
        if text.startswith(("\\$", "£", "€", "¥")):
            text = text.lstrip("\\$£€¥ ")
        return text

    def _scalar(self, text: str) -> Reading | None:
        if _SPECIAL.search(text):
            return self._special(text)
        return self._parsed(text)

    def _parsed(self, text: str) -> Reading | None:
        try:
            node = parse(self._spelled(text))
            sign = relations.infinity_sign(node)
            if sign:
                self.last = None
                return ("oo" if sign > 0 else "-oo"), "exact"
            reading = scalar_key(node, self.policy)
        except (Lost, Unreadable):
            return None
        self._see("scalar", text)
        self.last = node
        return reading

    def _special(self, text: str) -> Reading | None:
        """Read a sum, product, integral or limit: here if it is finite, else by what was resolved."""
        if text in self.resolved:
            answer = self.resolved[text]
            return None if answer is None else self._parsed(answer)
        reading = self._parsed(text)
        if reading is None and _is_closed(text):
            self._see("unresolved", text)
            self.unresolved.append(text)
        return reading


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _is_closed(text: str) -> bool:
    """Tell whether a special scalar is short and has no symbols but its own bound ones."""
    if len(text) > LONGEST_UNRESOLVED or text.count("{") > 30:
        return False
    bound = {name for names in _BOUND_NAME.findall(text) for name in names if name}
    return bool(bound) and ("^" in text or "\\lim" in text) and all(
        letters in bound or letters in _HELPERS for letters in _LETTERS.findall(text)
    )  # fmt: skip


def _elements(body: str) -> list[str]:
    """Take the key of a set apart."""
    parts: list[str] = []
    depth = start = 0
    inside = body[1:-1]
    for index, char in enumerate(inside):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == ";" and not depth:
            parts.append(inside[start:index])
            start = index + 1
    return [*parts, inside[start:]]
