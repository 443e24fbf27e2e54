"""Names that are typed: the nearest ones in an error, and all of them in shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from ttsframe._checks import near_names

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class Name(click.Choice[str]):
    """One of some names; an error names the nearest."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return the message for a name that is none of them."""
        message = super().get_invalid_choice_message(value, ctx)
        return f"{message}{did_you_mean(str(value), self.choices)}"


def did_you_mean(value: str, known: Iterable[str]) -> str:
    """Ask for the names like a value; empty if none are."""
    near = " or ".join(map(repr, near_names(value, known)))
    return f" Did you mean {near}?" if near else ""


def completes(names: Iterable[str], *, separator: str = ",") -> Completer:
    """Make the completion of names separated by commas: of the last one, without those before it."""
    known = list(names)

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(separator)
        typed = before.split(separator)
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in known
            if name.startswith(begun.strip()) and name not in typed
        ]

    return complete
