"""The structure of an answer: list, relation, set, matrix, words, or one scalar.

A text is split from the outside in, respecting brackets, until only scalars remain. If one part cannot be
read, the text is not read at all: half a reading would merge different answers.
"""

from __future__ import annotations

import re
from fractions import Fraction
from hashlib import blake2b
from math import gcd
from typing import Final

from ttsframe.answers.latex.exact import value_in_base
from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tokens import Unreadable
from ttsframe.answers.shapes.choices import choice_letter, labeled_option
from ttsframe.answers.shapes.dates import looks_like_date, read_date, read_time
from ttsframe.answers.shapes.lists import read_list
from ttsframe.answers.shapes.marks import (
    JOINERS,
    RELATIONS,
    Mark,
    expand_signs,
    is_thousands,
    outer_brackets,
    split_at,
    top_marks,
    turn_brackets,
)
from ttsframe.answers.shapes.matrices import read_matrix
from ttsframe.answers.shapes.relations import read_relation
from ttsframe.answers.shapes.scalars import Reading, ScalarReader
from ttsframe.answers.shapes.sets import EMPTY, read_alternatives, read_bracketed, read_union
from ttsframe.answers.shapes.units import Quantity, split_quantity
from ttsframe.answers.shapes.words import STATED, chemical_formula, read_words, unwrap_text
from ttsframe.answers.values.fingerprint import Uncertified, real_number, scalar_key
from ttsframe.answers.values.rational import read_rational

__all__ = ["Reader"]

DEEPEST: Final = 8
LONGEST_BODY: Final = 160

_SYSTEM: Final = re.compile(
    r"(?:\\\{\s*)?\\begin\s*\{(?P<name>cases|array|aligned|align\*?)\}\s*(?:\{[lcr| ]*\})?"
    r"(?P<rows>(?:(?!\\begin|\\text|\\\\).)*[=<>](?:(?!\\begin|\\text).)*)\\end\s*\{(?P=name)\}",
    re.DOTALL,
)
_COMPARISON: Final = re.compile(r"\\(?:leq|geq|neq|approx|in)(?![A-Za-z])")
_PIECE: Final = re.compile(r"[^=<>&\s\\]\s*&(?!\s*(?:[=<>&]|\\\\|$))")
"""A value and its condition: pieces of a function, not a system."""
_RATIO_IN_WORDS: Final = re.compile(
    r"[1-9][0-9]{0,8}(?:(?:\s*\\text\s*\{[\s-]*to[\s-]*\}\s*|\s+to\s+|-to-)[1-9][0-9]{0,8}){1,3}"
)
_TO: Final = re.compile(r"[^0-9]+")
_LETTER_DIGITS: Final = re.compile(
    r"(?P<sign>-?)\s*(?:\(\s*(?:\\text\s*\{\s*)?(?P<round>[0-9A-Z]+)\s*\}?\s*\)"
    r"|\\text\s*\{\s*(?P<upright>[0-9A-Za-z]{2,})\s*\}|(?P<bare>(?=[A-Z]*[0-9])[0-9A-Z]+|1[a-z]|[0-9]+[a-z]+[0-9][0-9a-z]*|[A-F]{2,}(?=\s*_\s*\{?\s*1[1-6])))"
    r"\s*_\s*(?:\{\s*(?P<braced>[2-9]|[1-3][0-9])\s*\}|(?P<base>[2-9]|[1-3][0-9]))"
)
"""A number in a base, whose digits may be letters: only as an entire answer."""
_NUMBER_SET: Final = re.compile(r"\\mathbb\s*\{?\s*([RZNQC])\s*\}?(\^\{?[+*]\}?|_\{?[+>0-9]+\}?)?")
_MAY_BE_CHOICE: Final = re.compile(
    r"(?:\\text\s*\{\s*)?(?:(?i:option|choice)\s|\(|[A-Z](?:\s*[).]|,| and ))"
)
_NESTED_ROWS: Final = re.compile(r"\[\s*\[[^\[\]]+\](?:\s*,\s*\[[^\[\]]+\])+\s*\]")
"""Rows as programs write them: [[1, 2], [3, 4]]."""
_UNREAD: Final = frozenset({"?", "...", "if", "when", "where", "for"})
_LETTERS: Final = re.compile(r"\(?[A-J]\)?(?:, \(?[A-J]\)?)*,? and \(?[A-J]\)?")
_UPRIGHT_LETTERS: Final = re.compile(r"\(?[A-J]\)?(?:(?:, ?(?:and )?| and )\(?[A-J]\)?)+")
_INTEGER_PARAMETER: Final = re.compile(
    r"\s*(?:[,;]|\\text\s*\{\s*,?\s*(?:where|for|with)?\s*\})?\s*(?P<open>\()?\s*[a-z]\s*\\in\s*"
    r"(?:\\mathbb\s*\{?\s*Z\s*\}?|\\mathbf\s*\{\s*Z\s*\}|Z)\s*(?(open)\))$"
)
"""A remark that a parameter of the solutions is an integer; it does not change their meaning."""


class Reader(ScalarReader):
    """Reads one answer under one policy."""

    __slots__ = ()

    def number(self, text: str) -> Fraction | float | None:
        """Return the value of a text that is one real number, else None."""
        reading = self.read_part(text, 0)
        if reading is None or reading[1] not in {"exact", "numeric"} or self.last is None:
            return None
        try:
            return real_number(self.last, self.policy)
        except Uncertified:
            return None

    def read(self, text: str) -> Reading | None:
        """Return the reading of a normalized text, or None."""
        reading = self.read_part(text, 0)
        if reading is not None and len(reading[0]) > LONGEST_BODY:
            body = reading[0]
            return body[0] + "#" + blake2b(body.encode(), digest_size=16).hexdigest(), reading[1]
        return reading

    def read_part(self, text: str, depth: int) -> Reading | None:
        if depth > DEEPEST or not text:
            return None
        # the engine has found that the entire answer is no number
        rational = read_rational(text, self.policy) if depth else None
        if rational is not None:
            return self.rational(text, rational)
        is_word_first = text[0].isalnum() or text.startswith("\\text")
        date = read_date(text, needs_year=depth > 0) if is_word_first else None
        if date is not None:
            self.note("date", text)
            return date, "structure"
        if not depth and " is " in text and STATED.fullmatch(text):
            return self.read_part(text.replace(" is ", " = "), depth + 1)
        letter = self._read_choice(text, depth) if _MAY_BE_CHOICE.match(text) else None
        if letter is not None:
            return letter
        if "\\begin" in text:
            system = _SYSTEM.fullmatch(text)
            if system is not None:
                is_system = system["name"] not in {"cases", "array"}
                if not is_system and _PIECE.search(_COMPARISON.sub("<", system["rows"])):
                    return None
                rows = [row.replace("&", " ").strip(" ,;") for row in system["rows"].split("\\\\")]
                return self.read_part(", ".join(row for row in rows if row), depth + 1)
        if depth < 2 and ("]" in text or "[" in text):
            text = turn_brackets(text) or text
        marks = top_marks(text)
        if marks is None:
            return None
        signs = {mark.sign for mark in marks}
        if not signs:
            if text[-1] == ")" and "\\in" in text:
                match = _INTEGER_PARAMETER.search(text)
                if match is not None and match.start():
                    return self.read_part(text[: match.start()].rstrip(), depth + 1)
            return self._read_plain(text, depth)
        if not signs.isdisjoint(_UNREAD):
            return None
        if "in" in signs:
            match = _INTEGER_PARAMETER.search(text)
            if match is not None and match.start():
                return self.read_part(text[: match.start()].rstrip(), depth + 1)
        if signs & JOINERS:
            separators = [mark for mark in marks if not is_thousands(text, mark)]
            if any(mark.sign in JOINERS for mark in separators):
                return read_list(self, text, separators, depth)
        if signs & RELATIONS or "~" in signs:
            return read_relation(self, text, marks, depth)
        if "cup" in signs or "minus" in signs or "cap" in signs:
            return read_union(self, text, marks, signs, depth)
        if ":" in signs:
            return self._read_ratio(text, marks)
        return self._read_plain(text, depth)

    def _read_plain(self, text: str, depth: int) -> Reading | None:
        """Read a text without separators or relations at its top level."""
        if "\\pm" in text or "\\mp" in text:
            texts = expand_signs(text)
            if texts is None or len(texts) < 2:
                return None
            self.note("plus-minus", text)
            return read_alternatives(self, texts, depth)
        if "\\begin" in text:
            return self._read_matrix(text)
        if "_" in text:
            formula = chemical_formula(text)
            if formula is not None:
                self.note("formula", formula)
                return "r" + formula, "text"
            digits = _LETTER_DIGITS.fullmatch(text)
            if digits is not None:
                return self._read_digits(text, digits)
        if "to" in text and _RATIO_IN_WORDS.fullmatch(text):
            return self._read_ratio_in_words(text)
        if text[0] == "[" and _NESTED_ROWS.fullmatch(text):
            matrix = self._read_matrix(_write_matrix(text))
            if matrix is not None:
                return matrix
        wrapped = outer_brackets(text) if text[0] in "([{\\" else None
        if wrapped is not None:
            return read_bracketed(self, wrapped, depth)
        content = unwrap_text(text) if text[0] == "\\" else None
        if content is not None:
            return self._read_text(content, depth)
        quantity = split_quantity(text, self.policy) if self.policy.units == "kept" else None
        if quantity is not None:
            return self._read_quantity(quantity, depth)
        words = read_words(text, self.policy, as_text=False)
        if words is not None:
            return self.words(text, words)
        if text.startswith(("\\text", "(")) or len(text) < 3:
            letter = choice_letter(text)
            if letter is not None:
                self.note("choice", letter)
                return self.scalar(letter)
        if text[0].isdigit() or "/" in text:
            time = self._read_time(text)
            if time is not None:
                return time
            if looks_like_date(text):
                return None
        if "\\mathbb" in text:
            match = _NUMBER_SET.fullmatch(text)
            if match:
                self.note("number set", text)
                if match[1] == "R" and not match[2]:
                    return "(-oo;oo)", "structure"
                return f"B{match[1]}{match[2] or ''}", "structure"
            return None
        if text == "\\emptyset":
            return EMPTY, "structure"
        return self.scalar(text)

    def _read_quantity(self, quantity: Quantity, depth: int) -> Reading | None:
        """Read a number or an expression with its unit."""
        reading = self.read_part(quantity.number, depth + 1)
        if reading is None or reading[1] == "text":
            return None
        self.note("unit", quantity.unit)
        self.last = None
        return f"{reading[0]}@{quantity.unit}", reading[1]

    def _read_text(self, content: str, depth: int) -> Reading | None:
        r"""Read the content of \text{...}: a number, a letter, or words."""
        rational = read_rational(content, self.policy)
        if rational is not None:
            return self.rational(content, rational)
        are_letters = _UPRIGHT_LETTERS.fullmatch(content) is not None
        words = None if are_letters else read_words(content, self.policy, as_text=True)
        if words is not None:
            return self.words(content, words)
        return self.read_part(content, depth + 1)

    def _read_matrix(self, text: str) -> Reading | None:
        rows = read_matrix(text, self.parsed)
        if rows is None:
            return None
        self.note("matrix", text)
        try:
            bodies = [
                ";".join(scalar_key(cell, self.policy, self.known)[0] for cell in row)
                for row in rows
            ]
        except Uncertified:
            return None
        return "M(" + "|".join(bodies) + ")", "structure"

    def _read_ratio(self, text: str, marks: list[Mark]) -> Reading | None:
        """Read a time of day, or a ratio up to a common factor."""
        time = self._read_time(text)
        if time is not None:
            return time
        parts = split_at(text, marks, frozenset({":"}))
        if len(parts) != sum(mark.sign == ":" for mark in marks) + 1 or len(parts) > 8:
            return None
        self.note("ratio", text)
        try:
            nodes = [parse(self.prepare(part)) for part in parts]
            first = nodes[0]
            bodies = [scalar_key(("/", node, first), self.policy)[0] for node in nodes[1:]]
        except (Uncertified, Unreadable):
            return None
        return "R" + ":".join(bodies), "structure"

    def _read_ratio_in_words(self, text: str) -> Reading | None:
        """Read 3 to 4 as a ratio; 6 to 8, which can be reduced and increases, may be a range and is text."""
        numbers = _TO.sub(" ", text).split()
        values = [int(number) for number in numbers]
        if gcd(*values) == 1 or values != sorted(values):
            colons = ":".join(numbers)
            return self._read_ratio(colons, top_marks(colons) or [])
        self.note("words", text)
        return "t" + " to ".join(numbers), "text"

    def _read_digits(self, text: str, digits: re.Match[str]) -> Reading | None:
        """Read a number in a base whose digits are letters, such as 1A_{16}."""
        written = digits["round"] or digits["upright"] or digits["bare"]
        value = value_in_base(written, int(digits["braced"] or digits["base"]))
        if value is None:
            return self.scalar(text)
        return self.rational(text, (-value if digits["sign"] else value, False))

    def _read_time(self, text: str) -> Reading | None:
        """Read a time of day, or return None."""
        body = read_time(text)
        if body is None:
            return None
        self.note("time", text)
        return body, "structure"

    def _read_choice(self, text: str, depth: int) -> Reading | None:
        """Read the letter of `E)`, or of an option that also states its content, as in `(B) 12`."""
        if " and " in text and _LETTERS.fullmatch(text):
            return self.read_part(text.replace(" and ", ", "), depth + 1)
        letter = None
        beginning = text[:14].casefold()
        is_named = "option " in beginning or "choice " in beginning
        if text[1:] == ")" or is_named:
            letter = choice_letter(text)
        if letter is None and (is_named or ")" in text or "." in text):
            option = labeled_option(text)
            letter = None if option is None else option[0]
        if letter is None:
            return None
        self.note("choice", letter)
        return self.scalar(letter)


def _write_matrix(text: str) -> str:
    """Write nested rows as a matrix."""
    rows = text.strip("[] ").split("]")
    cells = " \\\\ ".join(row.lstrip(" ,[").replace(",", "&") for row in rows)
    return f"\\begin{{bmatrix}}{cells}\\end{{bmatrix}}"
