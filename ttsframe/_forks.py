"""A process forked from one that has used Polars: its queries wait for threads that it does not have."""

from __future__ import annotations

import os
from pathlib import Path

from ttsframe.errors import EngineError

_has_threads = False
_is_stuck = False


def check_not_stuck() -> None:
    """Raise in a process in which a query of Polars would wait forever."""
    if _is_stuck:
        raise EngineError(
            "this process was forked from one that has used Polars, so a query would wait forever for threads "
            "that only the other one has. Hint: start processes by multiprocessing.get_context('spawn') or "
            "'forkserver', or fork before Polars is used."
        )


def _look() -> None:
    """See whether Polars has started its threads; only Linux tells."""
    global _has_threads  # noqa: PLW0603 - one per process
    try:
        names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:
        return
    _has_threads = any(name.removeprefix("polars-").strip().isdigit() for name in names)


def _note() -> None:
    global _is_stuck  # noqa: PLW0603
    _is_stuck = _is_stuck or _has_threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look, after_in_child=_note)
