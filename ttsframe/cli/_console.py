"""What a command says: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click


def shown(text: str) -> str:
    """Write control characters out, so that what a model wrote cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if not unicodedata.category(char).startswith("C") else repr(char)[1:-1]
        for char in text
    )


@dataclass
class Console:
    """Where the words of one command go.

    Parameters
    ----------
    is_quiet
        No progress, and no tables for people.
    is_json
        One JSON document on stdout, and nothing else there.
    is_log_json
        A JSON object per line on stderr, and nothing else there.
    before_remarks
        Called before anything is said on stderr; it clears what is being shown there.
    """

    is_quiet: bool = False
    is_json: bool = False
    is_log_json: bool = False
    before_remarks: Callable[[], None] | None = None
    _open_line: bool = field(default=False, init=False)
    _warned: set[str] = field(default_factory=set, init=False)

    def say(self, text: str) -> None:
        """Print a result for people.

        Parameters
        ----------
        text
            Lines to print.
        """
        if not (self.is_quiet or self.is_json):
            click.echo(text)

    def result(self, document: Mapping[str, object]) -> None:
        """Print a result for programs, where one was asked for.

        Parameters
        ----------
        document
            What JSON can hold, and numbers that are not finite, which become null.
        """
        if self.is_json:
            text = json.dumps(_finite(document), ensure_ascii=False, allow_nan=False, default=str)
            click.echo(text)

    def log(self, event: str, /, **fields: object) -> None:
        """Print what happened, for programs, where that was asked for.

        Parameters
        ----------
        event
            What.
        fields
            More of it, as JSON can hold it.
        """
        if self.is_log_json:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            document = _finite({"time": now, "event": event, **fields})
            click.echo(json.dumps(document, ensure_ascii=False, default=str), err=True)

    def error(self, text: str) -> None:
        """Print why a command ends before it is done.

        Parameters
        ----------
        text
            The message.
        """
        self._remark("error", f"Error: {text}", text)

    def stopped(self, text: str) -> None:
        """Print that a command was stopped.

        Parameters
        ----------
        text
            The message.
        """
        self._remark("stopped", text, text)

    def warning(self, text: str) -> None:
        """Print a warning, once.

        Parameters
        ----------
        text
            The message.
        """
        if text not in self._warned:
            self._warned.add(text)
            self._remark("warning", f"Warning: {text}", text)

    def _remark(self, event: str, line: str, message: str) -> None:
        if self.before_remarks is not None and event != "warning":
            self.before_remarks()
        if self.is_log_json:
            self.log(event, message=message)
            return
        if self._open_line:
            click.echo(err=True)
            self._open_line = False
        start = "\r\x1b[K" if self.before_remarks is not None and sys.stderr.isatty() else ""
        click.echo(start + "\n".join(shown(part) for part in line.split("\n")), err=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[Stage]:
        """Show a part of the work on a terminal while it lasts, and its time when it is done.

        Parameters
        ----------
        title
            What is being done.

        Yields
        ------
        Stage
            Takes a note on what came out.
        """
        stage = Stage()
        if self.is_quiet or self.is_log_json or not sys.stderr.isatty():
            yield stage
            return
        started = time.perf_counter()
        click.echo(f"{title} ...", err=True, nl=False)
        self._open_line = True
        try:
            yield stage
        except BaseException:
            if self._open_line:
                click.echo(err=True)
                self._open_line = False
            raise
        words = [stage.note] if stage.note else []
        words.append(f"{time.perf_counter() - started:.1f} s")
        again = "" if self._open_line else f"{title} ..."
        click.echo(f"{again} {', '.join(words)}", err=True)
        self._open_line = False

    @contextmanager
    def own_warnings(self) -> Iterator[None]:
        """Show warnings meant for users as lines of text, and no others.

        Yields
        ------
        None
            Nothing.
        """

        def show(message: Warning | str, *_: object, **__: object) -> None:
            self.warning(str(message))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield


@dataclass
class Stage:
    """A part of the work.

    Parameters
    ----------
    note
        What came out, shown beside the time that it took.
    """

    note: str = ""


def _finite(value: object) -> object:
    """Replace numbers that JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
