"""The program `ttsframe`, stopped while it loads, ends without a traceback; a library is never touched."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import PurePath
from types import FrameType

_is_loading = False


def begin() -> None:
    """Listen for signals if this process is the program; called before anything large is imported."""
    global _is_loading  # noqa: PLW0603 - one program per process
    if not _is_program() or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Not replaced later: Polars, when it is imported, remembers this handler and calls it.
        signal.signal(signal.SIGINT, _stop)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _stop)
    _is_loading = True


def end() -> None:
    """Handle signals as usual from now on."""
    global _is_loading  # noqa: PLW0603
    _is_loading = False
    if signal.getsignal(signal.SIGTERM) is _stop:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    if _is_loading:
        os._exit(128 + number)
    signal.default_int_handler(number, frame)


def _is_program() -> bool:
    """Return whether the package is imported by `python -m ttsframe` or by the installed script."""
    script = (sys.argv or [""])[0]
    if script == "-m":
        return sys.orig_argv[1:3] == ["-m", "ttsframe"]
    return PurePath(script).stem == "ttsframe"
