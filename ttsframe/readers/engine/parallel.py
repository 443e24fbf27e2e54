"""Work on several cores, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import polars as pl

_S = TypeVar("_S")
_T = TypeVar("_T")


def on_all_cores(function: Callable[[_S], _T], items: Iterable[_S]) -> Generator[_T, None, None]:
    """Apply a function to items in order, a few ahead, since Polars parses a chunk on one core."""
    workers = pl.thread_pool_size()
    pool = ThreadPoolExecutor(workers)
    ahead: deque[Future[_T]] = deque()
    try:
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # A scan that is dropped before its end may be dropped by a thread of this pool.
        pool.shutdown(wait=False, cancel_futures=True)
