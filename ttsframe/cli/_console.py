"""What a command says: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
import time
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

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
    """

    is_quiet: bool = False
    is_json: bool = False
    _open_line: bool = field(default=False, init=False)

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

    def remark(self, text: str) -> None:
        """Print a line that is not part of the result.

        Parameters
        ----------
        text
            The line.
        """
        if self._open_line:
            click.echo(err=True)
            self._open_line = False
        click.echo("\n".join(shown(line) for line in text.split("\n")), err=True)

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
        if self.is_quiet or not sys.stderr.isatty():
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
            self.remark(f"Warning: {message}")

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
