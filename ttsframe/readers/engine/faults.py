"""Faults of tables, which Polars reports without the name of the file, and at times as a panic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import polars as pl

from ttsframe.errors import SourceError, TtsframeError
from ttsframe.readers.engine.damage import find_damage
from ttsframe.readers.engine.sniff import DataFile

_PANIC: Final = pl.exceptions.PanicException
_LONGEST: Final = 200

DAMAGED: Final = "if a file is damaged, repair or restore it."


def first_line(error: BaseException) -> str:
    """Return the first line of an error from Polars, which holds the reason, if need be cut."""
    if isinstance(error, _PANIC):
        return "Polars stopped with an internal error"
    line = str(error).partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


@contextmanager
def naming(
    names: Sequence[str], hint: str, files: Callable[[], Sequence[str]] | None = None
) -> Iterator[None]:
    """Name the sources in errors of Polars and of the operating system, and what is damaged in `files`."""
    try:
        yield
    except TtsframeError:
        raise
    except (OSError, pl.exceptions.PolarsError, _PANIC) as error:
        more = ", ..." if len(names) > 3 else ""
        damaged = find_damage(names if files is None else files())
        raise SourceError(
            f"{damaged or ', '.join(names[:3]) + more}: cannot be read ({first_line(error)}). Hint: {hint}"
        ) from error


def unreadable(file: DataFile, error: BaseException) -> SourceError:
    """Build the error for a table that cannot be opened."""
    column = next(unreadable_columns(_read_with_pyarrow(file)), None)
    if column is not None:
        return unreadable_column(file.name, column)
    kind = {"frame": "a table", "arrow": "Arrow IPC", "arrow_stream": "an Arrow IPC stream"}.get(
        file.container, file.container.capitalize()
    )
    hint = (
        "Hint: collect it to see where its query fails."
        if file.container == "frame"
        else "Hint: the file may be cut off or damaged."
    )
    return SourceError(f"{file.name}: cannot be read as {kind} ({first_line(error)}). {hint}")


def unreadable_column(name: str, column: str) -> SourceError:
    """Build the error for a column of a type that Polars does not have."""
    return SourceError(
        f"{name}: column {column} has a type that Polars does not read. Hint: cast the column to text, "
        "numbers or lists of these, or drop it."
    )


def unreadable_columns(table: Any) -> Iterator[str]:  # noqa: ANN401 - a table of pyarrow, or nothing
    """Yield the columns of a pyarrow table that Polars cannot read, with their types."""
    for field in getattr(table, "schema", ()):
        try:
            pl.DataFrame(table.select([field.name]))
        except (TypeError, ValueError, OSError, pl.exceptions.PolarsError, _PANIC):
            yield f"{field.name!r} ({field.type})"


def _read_with_pyarrow(file: DataFile) -> Any:  # noqa: ANN401 - a table of pyarrow, or nothing
    """Read a table once more with pyarrow, which knows all types of Arrow; None if it fails too."""
    import pyarrow as pa  # slow to import, and only needed where reading has failed
    from pyarrow import parquet

    if file.url is not None or file.held is not None:
        return None
    readers = {
        "arrow": lambda: pa.ipc.open_file(str(file.path)).read_all(),
        "arrow_stream": lambda: pa.ipc.open_stream(str(file.path)).read_all(),
        "parquet": lambda: parquet.read_table(file.path),
    }
    try:
        read = readers.get(file.container)
        return None if read is None else read()
    except (OSError, ValueError, pa.ArrowException):
        return None
