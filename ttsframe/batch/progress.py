"""Measure the progress of a job: what is done, the rate, and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

__all__ = ["OnProgress", "Progress"]


class Progress(NamedTuple):
    """Progress of a job.

    Parameters
    ----------
    phase
        "scan", "answers", "keys", "parts" or "result".
    n_tasks_done
        Finished tasks of this phase, including those of an earlier run of the job.
    n_tasks
        Tasks of this phase.
    n_rows_done
        Rows of the source that the finished tasks have read; problems, for formats with one row per
        problem.
    n_rows
        Rows of the source that the phase reads; None if unknown beforehand.
    n_bytes_done
        Bytes of the source that the finished tasks have read.
    n_bytes
        Bytes of the source that the phase reads.
    seconds
        Time since the phase began.
    rows_per_second
        Rate of this run; None before its first task has finished.
    bytes_per_second
        The same for bytes.
    seconds_left
        Time that the rest of the phase takes at this rate; None if unknown.

    Examples
    --------
    >>> import ttsframe as tts
    >>> seen = []
    >>> show = seen.append  # called with a tts.batch.Progress as each task ends
    """

    phase: str
    n_tasks_done: int
    n_tasks: int
    n_rows_done: int
    n_rows: int | None
    n_bytes_done: int
    n_bytes: int
    seconds: float
    rows_per_second: float | None
    bytes_per_second: float | None
    seconds_left: float | None


OnProgress: TypeAlias = Callable[[Progress], None]


class Amount(NamedTuple):
    """How much of the source a task reads."""

    n_rows: int | None
    n_bytes: int


class HasAmount(Protocol):
    """A task, which reads a known amount of the source."""

    @property
    def amount(self) -> Amount:
        """How much of the source it reads."""


class Meter:
    """Adds up what the tasks of a phase have read, and measures the rate.

    Tasks of an earlier run of the job count as done, but not towards the rate.
    """

    def __init__(
        self,
        phase: str,
        amounts: Sequence[Amount],
        *,
        n_tasks_before: int,
        before: Sequence[Amount],
        on_progress: OnProgress | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._phase = phase
        self._total = total(amounts)
        self._n_tasks = len(amounts)
        self._n_done = n_tasks_before
        self._before = total(before)
        self._now = Amount(0, 0)
        self._on_progress = on_progress
        self._clock = clock
        self._started = clock()
        self._report()

    def add(self, task: HasAmount) -> None:
        """Count a finished task."""
        amount = task.amount
        self._n_done += 1
        self._now = Amount(
            (self._now.n_rows or 0) + (amount.n_rows or 0), self._now.n_bytes + amount.n_bytes
        )
        self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.progress())

    def progress(self) -> Progress:
        """Return the progress of the phase."""
        seconds = self._clock() - self._started
        n_bytes_done = self._before.n_bytes + self._now.n_bytes
        is_measured = seconds > 0 and self._now.n_bytes > 0
        bytes_per_second = self._now.n_bytes / seconds if is_measured else None
        rows_per_second = (self._now.n_rows or 0) / seconds if is_measured else None
        left = self._total.n_bytes - n_bytes_done
        return Progress(
            phase=self._phase,
            n_tasks_done=self._n_done,
            n_tasks=self._n_tasks,
            n_rows_done=(self._before.n_rows or 0) + (self._now.n_rows or 0),
            n_rows=self._total.n_rows,
            n_bytes_done=n_bytes_done,
            n_bytes=self._total.n_bytes,
            seconds=seconds,
            rows_per_second=rows_per_second if self._total.n_rows is not None else None,
            bytes_per_second=bytes_per_second,
            seconds_left=left / bytes_per_second if bytes_per_second else None,
        )


def total(amounts: Sequence[Amount]) -> Amount:
    """Return the sum of amounts; it is unknown if one of them is."""
    n_rows: int | None = 0
    n_bytes = 0
    for amount in amounts:
        known = n_rows is not None and amount.n_rows is not None
        n_rows = (n_rows or 0) + (amount.n_rows or 0) if known else None
        n_bytes += amount.n_bytes
    return Amount(n_rows, n_bytes)
