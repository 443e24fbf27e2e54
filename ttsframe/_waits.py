"""Waits that an interrupt ends at once.

Once Polars is imported, an interrupt no longer wakes a thread that waits for a lock, a thread or a
future: Python only sees it when the wait is over. So the main thread waits in short steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ItemT = TypeVar("_ItemT")

_SECONDS: Final = 0.05


def result_of(future: Future[_T]) -> _T:
    """Wait for a future and return its result."""
    while not future.done():
        wait([future], _SECONDS)
    return future.result()


def join(thread: threading.Thread) -> None:
    """Wait for a thread to end."""
    while thread.is_alive():
        thread.join(_SECONDS)


def wait_for(event: threading.Event) -> None:
    """Wait for an event."""
    while not event.wait(_SECONDS):
        pass


class Threads(ThreadPoolExecutor):
    """Threads of a block, which waits for them, but not once it is interrupted."""

    def __init__(self, n_threads: int) -> None:
        super().__init__(n_threads)
        self._submitted: list[Future[Any]] = []

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Begin a call."""
        future = super().submit(fn, *args, **kwargs)
        self._submitted.append(future)
        return future

    def each(self, work: Callable[[_ItemT], _T], items: Iterable[_ItemT]) -> list[_T]:
        """Call a function with each item, and return the results in order."""
        return [result_of(future) for future in [self.submit(work, item) for item in items]]

    def as_they_end(self, work: Callable[[_ItemT], _T], items: Iterable[_ItemT]) -> Iterator[_T]:
        """Call a function with each item, and yield the results as they come."""
        left = {self.submit(work, item) for item in items}
        while left:
            done, left = wait(left, _SECONDS, FIRST_COMPLETED)
            for future in done:
                yield future.result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for what has begun; after an error, nothing else begins."""
        self.shutdown(wait=False, cancel_futures=error is not None)
        if error is None or isinstance(error, Exception):
            for future in self._submitted:
                while not future.done():
                    wait([future], _SECONDS)
