"""Turn a failed task into an error that names the file or the disk at fault."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe._settings import RERUN
from ttsframe.batch.tasks import Task
from ttsframe.errors import SourceError, TtsframeError
from ttsframe.readers.engine import find_damage, first_line

__all__ = ["reading_error", "run_task"]

_DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def run_task(task: Task) -> None:
    """Run a task unless it is done."""
    if task.output.exists():
        return
    try:
        task.output.parent.mkdir(parents=True, exist_ok=True)
        task.run()
    except TtsframeError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        # Another process may have completed the same output meanwhile.
        if not task.output.exists():
            raise _explained(task, error) from error


def _explained(task: Task, error: Exception) -> SourceError:
    number = _disk_error(error)
    if number is not None:
        return SourceError(
            f"{task.output.parent}: {task.name} could not be written ({os.strerror(number)}). Hint: "
            f"make room and {RERUN}; completed parts are reused."
        )
    return reading_error(task.reads, task.paths, error)


def reading_error(what: str, paths: Iterable[Path], error: Exception) -> SourceError:
    """Build the error for files that cannot be read."""
    return SourceError(
        f"{find_damage(map(str, paths)) or what}: cannot be read ({first_line(error)}). Hint: repair or restore the file and {RERUN}; "
        "completed parts are reused if the inputs are unchanged."
    )


def _disk_error(error: Exception) -> int | None:
    """Return the number of the error if the disk refused a write; Polars writes the number as text."""
    for number in _DISK_ERRORS:
        if getattr(error, "errno", None) == number or f"(os error {number})" in str(error):
            return number
    return None
