"""What a command writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import click

_CONTROLS: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Escape control characters, so that a model's output cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(
        repr(char)[1:-1] if unicodedata.category(char).startswith("C") else char for char in text
    )


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


def _document(value: object, **options: Any) -> str:  # noqa: ANN401 - options of json
    """Write JSON in which characters that control a terminal are escaped, as those below 32 always are."""
    text = json.dumps(
        _finite(value), ensure_ascii=not is_unicode(sys.stdout), default=str, **options
    )
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def is_unicode(stream: TextIO | None) -> bool:
    """Return whether a stream takes any character."""
    name = getattr(stream, "encoding", None) or "utf-8"
    return str(name).lower().replace("-", "").startswith("utf")


@dataclass
class Console:
    """The output of one command."""

    is_quiet: bool = False
    """No progress and no tables."""
    is_json: bool = False
    """One JSON document on stdout, and nothing else."""
    is_log_json: bool = False
    """One JSON object per line on stderr, and nothing else."""
    guards_formulas: bool = False
    """In CSV, texts that a spreadsheet would run begin with an apostrophe."""
    clear_progress: Callable[[], None] | None = None
    """Called before an error; removes the progress from the terminal."""
    _warned: set[str] = field(default_factory=set, init=False)

    @property
    def shows_progress(self) -> bool:
        """Whether progress is drawn: only on a terminal."""
        return (
            sys.stderr is not None
            and sys.stderr.isatty()
            and not (self.is_quiet or self.is_log_json)
        )

    def say(self, text: str) -> None:
        """Print a result for people."""
        if not (self.is_quiet or self.is_json):
            click.echo(_lines(text))

    def result(self, document: Mapping[str, object]) -> None:
        """Print a result for programs if `--json` is given; numbers that are not finite become null."""
        if self.is_json:
            click.echo(_document(document, allow_nan=False))

    def log(self, event: str, /, **fields: object) -> None:
        """Print an event for programs if `--log-json` is given."""
        if self.is_log_json:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            click.echo(_document({"time": now, "event": event, **fields}), err=True)

    def error(self, text: str) -> None:
        """Print why the command failed."""
        self._end("error", f"Error: {text}", text)

    def stopped(self, text: str) -> None:
        """Print that the command was interrupted."""
        self._end("stopped", text, text)

    def warning(self, text: str) -> None:
        """Print a warning, once."""
        if text not in self._warned:
            self._warned.add(text)
            self._print("warning", f"Warning: {text}", text)

    def note(self, text: str) -> None:
        """Print what the command has chosen where nothing was said."""
        self._print("note", f"Note: {text}", text)

    def _end(self, event: str, line: str, message: str) -> None:
        if self.clear_progress is not None:
            self.clear_progress()
        self._print(event, line, message)

    def _print(self, event: str, line: str, message: str) -> None:
        if self.is_log_json:
            self.log(event, message=message)
        else:
            click.echo(_lines(line), err=True)

    def status(self, title: str) -> AbstractContextManager[object]:
        """Show on a terminal what is being done while the block lasts."""
        if not self.shows_progress:
            return nullcontext()
        from rich.console import Console as Terminal
        from rich.markup import escape

        return Terminal(stderr=True).status(f"{escape(printable(title))} ...")

    @contextmanager
    def own_warnings(self) -> Iterator[None]:
        """Print warnings for users as lines of text, and hide all others."""

        def show(message: Warning | str, *_: object, **__: object) -> None:
            self.warning(str(message))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield


def _finite(value: object) -> object:
    """Replace numbers that JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
