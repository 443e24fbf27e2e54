"""End a job at once when it is interrupted, even during a long query."""

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
    """On SIGINT and SIGTERM in this block, call `leave` and end with 128 + the number of the signal."""
    # Python runs signal handlers in the main thread, which may be in a query for minutes. So a thread
    # waits for the signal and ends the process. A job loses nothing: its files are complete or absent.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)

    def wait() -> None:
        number = receiver.recv(1)
        if number and number[0] in _SIGNALS:
            try:
                leave()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(128 + number[0])

    handlers = {number: signal.signal(number, _ignore) for number in _SIGNALS}
    descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        yield
    except KeyboardInterrupt:
        # Polars has seen the signal first; the thread has it too and ends the process.
        waiting.join()
        raise
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sender.close()
        waiting.join()
        receiver.close()


def _ignore(*_: object) -> None:
    """Leave the signal to the waiting thread."""
