"""What stopped a task, said so that one knows which file to mend or which disk to clear."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from typing import Final

import polars as pl

from ttsframe.batch.tasks import PartTask, ScanTask, Task
from ttsframe.errors import SourceError, TtsframeError
from ttsframe.readers.engine import SurveyedFile, first_line, scan_table

__all__ = ["found_damage", "run_task"]

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_OS_ERROR: Final = re.compile(r"os error (\d+)")


def run_task(task: Task) -> None:
    """Run a task unless it is done; its failure says which file or disk is to blame."""
    if task.output.exists():
        return
    try:
        task.output.parent.mkdir(parents=True, exist_ok=True)
        task.run()
    except TtsframeError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        # Another process may have made the same output meanwhile, which is then whole.
        if not task.output.exists():
            raise _explained(task, error) from error


def _explained(task: Task, error: Exception) -> SourceError:
    """Say what stopped a task."""
    number = _errno(error)
    if number in _FULL:
        return SourceError(
            f"{task.output.parent}: could not be written ({os.strerror(number)}) at {task.name}. Hint: "
            "make room; what is finished is kept, and the same call goes on from there."
        )
    files: tuple[SurveyedFile, ...] = ()
    if isinstance(task, ScanTask):
        files = task.slice.survey.files
    elif isinstance(task, PartTask) and not isinstance(task.rows, os.PathLike):
        files = task.rows.survey.files
    return found_damage(files) or SourceError(
        f"{task.reads}: {task.name} failed ({first_line(error)})."
    )


def found_damage(files: Iterable[SurveyedFile]) -> SourceError | None:
    """Look for what made reading fail.

    Parameters
    ----------
    files
        What was read.

    Returns
    -------
    SourceError or None
        The error of the first file that is damaged or cannot be read; None if all can be.
    """
    for file in files:
        damage = _damage(file)
        if damage is not None:
            return SourceError(
                f"{damage}. Hint: mend or replace the file; what is finished is kept, and counts if the "
                "other files stay as they are and this one gets back what it was."
            )
    return None


def _errno(error: Exception) -> int:
    """Return the number of an operating system's error; Polars gives it in words."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = _OS_ERROR.search(str(error))
    return int(found[1]) if found else 0


def _damage(file: SurveyedFile) -> str | None:
    """Read a table again, row group by row group, and say where it cannot be read."""
    path = file.file.path
    try:
        with path.open("rb") as handle:
            handle.read(1)
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror or error})"
    if file.is_json:
        return None
    for first, n_rows in _row_groups(file):
        for name in file.schema:
            try:
                scan_table(file.file, (first, n_rows)).select(name).collect()
            except (OSError, pl.exceptions.PolarsError) as error:
                return (
                    f"{path}, rows {first + 1:,} to {first + n_rows:,}: column {name!r} cannot be read, "
                    f"the file is damaged ({first_line(error)})"
                )
    return None


def _row_groups(file: SurveyedFile) -> list[tuple[int, int]]:
    """Return first row and number of rows of the row groups that were to be read."""
    rows = file.rows or (0, 2**32 - 1)
    if file.file.container != "parquet":
        return [rows]
    from pyarrow import parquet

    footer = parquet.read_metadata(file.file.path)
    first, groups = 0, []
    for i in range(footer.num_row_groups):
        n_rows = footer.row_group(i).num_rows
        if first < sum(rows) and first + n_rows > rows[0]:
            groups.append((first, n_rows))
        first += n_rows
    return groups
