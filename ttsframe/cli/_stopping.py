"""Jobs that are told to stop do so at once, whatever their threads are in the middle of."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping(leave: Callable[[], None]) -> Iterator[None]:
    """End the process on SIGINT and SIGTERM with 128 + the number of the signal, in this block.

    Python runs its handlers between two steps of the main thread, which may be in a query for long.
    A thread that waits for the signal ends the process in the middle of that: a job loses nothing
    by it, as its files appear whole.

    Parameters
    ----------
    leave
        Called before the end, in that thread; it says what is to be said and removes what would
        stay.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    KeyboardInterrupt
        When a query sees the signal; the process ends before that goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    theirs, ours = socket.socketpair()
    ours.setblocking(False)

    def wait() -> None:
        number = theirs.recv(1)
        if number and number[0] in _SIGNALS:
            try:
                leave()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(128 + number[0])

    before = {number: signal.signal(number, _ignore) for number in _SIGNALS}
    descriptor = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        yield
    except KeyboardInterrupt:
        # A query has seen the signal first; the thread has it too.
        waiting.join()
        raise
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        ours.close()
        waiting.join()
        theirs.close()


def _ignore(*_: object) -> None:
    """Let the main thread go on; the thread that waits ends the process."""
