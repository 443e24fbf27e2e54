"""A place in the tokens of one string, and the names of symbols that are read there."""

from __future__ import annotations

from ttsframe.answers.latex.tokens import Unreadable, scan

__all__ = ["Cursor"]


class Cursor:
    """A place in the tokens of one string.

    Parameters
    ----------
    text
        Normalised LaTeX of one scalar.
    """

    __slots__ = ("at", "kinds", "values")

    def __init__(self, text: str) -> None:
        self.kinds, self.values = scan(text)
        self.at = 0

    def refuse(self) -> Unreadable:
        """Make the exception that names the token here."""
        return Unreadable(self.values[self.at])

    def expect(self, kind: str) -> None:
        """Pass a token of one kind."""
        if self.kinds[self.at] != kind:
            raise self.refuse()
        self.at += 1

    def decorated(self, name: str) -> str:
        """Read the subscripts and primes after a name."""
        while True:
            kind = self.kinds[self.at]
            if kind == "_":
                self.at += 1
                name += "_" + self.raw()
            elif kind == "'":
                self.at += 1
                name += "'"
            elif kind == "^" and self.kinds[self.at + 1] in {"'", "{"} and self._primes():
                name += "'"
            else:
                return name

    def _primes(self) -> bool:
        kinds, at = self.kinds, self.at + 1
        if kinds[at] == "'":
            self.at += 2
            return True
        if kinds[at] == "{" and kinds[at + 1] == "'" and kinds[at + 2] == "}":
            self.at += 4
            return True
        return False

    def raw(self) -> str:
        """Join the tokens of a subscript."""
        kinds, values = self.kinds, self.values
        if kinds[self.at] != "{":
            if kinds[self.at] not in {"N", "L", "C"}:
                raise self.refuse()
            self.at += 1
            return values[self.at - 1]
        depth = 0
        parts: list[str] = []
        while True:
            kind = kinds[self.at]
            if kind == "end":
                raise self.refuse()
            self.at += 1
            if kind == "{":
                depth += 1
            elif kind == "}":
                depth -= 1
                if not depth:
                    break
            elif not (kind == "C" and values[self.at - 1] == "text"):
                parts.append(values[self.at - 1])
        return "".join(parts)
