"""An interrupt ends a wait at once, although Polars is imported."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import polars as pl
import pytest

from ttsframe._waits import Threads, join, result_of, wait_for


def endless_thread(end: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=end.wait, args=(60,), daemon=True)
    thread.start()
    return thread


def in_threads(end: threading.Event) -> None:
    with Threads(1) as threads:
        threads.each(lambda _: end.wait(60), [1, 2])


def as_they_end(end: threading.Event) -> None:
    with Threads(1) as threads:
        for _ in threads.as_they_end(lambda _: end.wait(60), [1, 2]):
            pass


def after_the_block(end: threading.Event) -> None:
    with Threads(1) as threads:
        threads.submit(end.wait, 60)


@pytest.mark.parametrize(
    "wait",
    [
        lambda _: result_of(Future[None]()),
        lambda end: join(endless_thread(end)),
        lambda _: wait_for(threading.Event()),
        in_threads,
        as_they_end,
        after_the_block,
    ],
)
def test_an_interrupt_ends_a_wait(wait: Callable[[threading.Event], None]) -> None:
    # As `import polars` leaves it, also where an earlier test has set another handler.
    assert pl.DataFrame().is_empty()
    end, sent = threading.Event(), []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.2, interrupt)

    def begin_and_wait() -> None:
        timer.start()
        wait(end)

    try:
        with pytest.raises(KeyboardInterrupt):
            begin_and_wait()
        assert time.monotonic() - sent[0] < 30
    finally:
        timer.cancel()
        end.set()


def test_what_has_begun_is_waited_for_after_an_error() -> None:
    begun, done = threading.Event(), []

    def first() -> None:
        begun.set()
        time.sleep(0.1)
        done.append(1)

    def fail() -> None:
        with Threads(1) as threads:
            threads.submit(first)
            threads.submit(done.append, 2)
            begun.wait()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert done == [1]
