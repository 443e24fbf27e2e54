"""How far a job is: one line on a terminal that is cleared at the end, or JSON lines for a cluster."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import click

from ttsframe.batch import Progress
from ttsframe.cli._console import Console

_SHORTEST: Final = 0.5
"""Seconds; work that is done sooner shows nothing."""
_TICK: Final = 0.1
_LOG_EVERY: Final = 1.0
_BAR: Final = 20
_WORDS: Final = {
    "scan": "reading",
    "answers": "distinct answers",
    "keys": "keys of answers",
    "parts": "parts",
    "result": "result",
}


class _View(Protocol):
    """Shows how far a job is, in whatever form."""

    def show(self, progress: Progress | None, age: float) -> None:
        """Show it, or not, if it is too soon; it was reported some seconds ago."""

    def close(self) -> None:
        """Leave nothing open."""


class Follower:
    """Shows the latest progress a few times a second, in a thread of its own.

    A task may take long, and what is shown goes on meanwhile.

    Parameters
    ----------
    console
        Where to show it: as JSON lines if it logs, on a terminal unless it is quiet, else nowhere.
    """

    def __init__(self, console: Console) -> None:
        self._latest: Progress | None = None
        self._at = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._view: _View | None = None
        if console.is_log_json:
            self._view = _Log(console)
        elif not console.is_quiet and sys.stderr.isatty():
            self._view = _Line()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        if self._view is not None:
            self._thread.start()

    def __call__(self, progress: Progress) -> None:
        """Take a report.

        Parameters
        ----------
        progress
            What a job reports.
        """
        with self._lock:
            self._latest, self._at = progress, time.monotonic()

    def close(self) -> None:
        """End, and leave nothing on the terminal."""
        if self._view is not None and not self._ended.is_set():
            self._ended.set()
            if threading.current_thread() is not self._thread:
                self._thread.join()
            with self._lock:
                self._view.close()

    def _follow(self) -> None:
        while not self._ended.wait(_TICK):
            with self._lock:
                if self._view is not None:
                    self._view.show(self._latest, time.monotonic() - self._at)


@contextmanager
def following(console: Console) -> Iterator[Follower]:
    """Show how far a job is while the block lasts, and warnings and errors between.

    Parameters
    ----------
    console
        Where to show it.

    Yields
    ------
    Follower
        To be called with each report.
    """
    follower = Follower(console)
    console.before_remarks = follower.close
    try:
        yield follower
    finally:
        follower.close()
        console.before_remarks = None


class _Line:
    """One line of a terminal, written over and over."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._is_there = False

    def show(self, progress: Progress | None, age: float) -> None:
        if time.monotonic() - self._started < _SHORTEST:
            return
        room = shutil.get_terminal_size((80, 24)).columns - 1
        click.echo(f"\r{progress_line(progress, age, room)}\x1b[K", err=True, nl=False)
        self._is_there = True

    def close(self) -> None:
        if self._is_there:
            click.echo("\r\x1b[K", err=True, nl=False)


class _Log:
    """A JSON object per line, at most one each second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: Progress | None = None
        self._at = -_LOG_EVERY

    def show(self, progress: Progress | None, age: float) -> None:
        del age
        if time.monotonic() - self._at >= _LOG_EVERY:
            self._write(progress)

    def close(self) -> None:
        """Nothing is open; what was reported since the last line is in the line of the end."""

    def _write(self, progress: Progress | None) -> None:
        if progress is None or progress is self._last:
            return
        self._last, self._at = progress, time.monotonic()
        fields = {
            name.removeprefix("n_").replace("tasks", "parts"): value
            for name, value in progress._asdict().items()
        }
        self._console.log("progress", **fields)


def progress_line(progress: Progress | None, age: float, room: int) -> str:
    """Write how far a job is in one line: what is too much for the room is left out, the least first.

    Parameters
    ----------
    progress
        What was reported last; None: nothing yet.
    age
        Seconds since then.
    room
        Most characters.

    Returns
    -------
    str
        Phase, bar, share, rows, bytes, rate and time left.
    """
    if progress is None:
        return f"looking at the source  {_time(age)}"[:room]
    share = progress.n_bytes_done / progress.n_bytes if progress.n_bytes else 0.0
    filled = int(share * _BAR)
    phase = _WORDS.get(progress.phase, progress.phase)
    bar = f"[{'#' * filled}{'.' * (_BAR - filled)}]"
    percent = f"{100 * share:3.0f}%"
    rows = ""
    if progress.n_rows:
        rows = f"{_short(progress.n_rows_done)} of {_short(progress.n_rows)} rows"
    size = f"{_short(progress.n_bytes_done)}B of {_short(progress.n_bytes)}B"
    rate = ""
    if progress.rows_per_second:
        rate = f"{_short(progress.rows_per_second)} rows/s"
    elif progress.bytes_per_second:
        rate = f"{_short(progress.bytes_per_second)}B/s"
    left = f"{_time(progress.seconds + age)} so far"
    if progress.seconds_left is not None:
        left = f"{_time(max(0.0, progress.seconds_left - age))} left"
    parts = [phase, bar, percent, rows, size, rate, left]
    for least in (size, rate, rows, bar, left):
        line = "  ".join(part for part in parts if part)
        if len(line) <= room:
            return line
        parts = [part for part in parts if part != least]
    return f"{phase}  {percent}"[:room]


def _short(number: float) -> str:
    """Write a number in a few characters."""
    for unit in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.0f}{unit}" if not unit or number >= 99.5 else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:,.1f}T"


def _time(seconds: float) -> str:
    """Write a time as minutes and seconds, or hours before them."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
