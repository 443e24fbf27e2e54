"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ttsframe.errors import SourceError

_N_REMOVALS: Final = 10
"""A late file may appear between the emptying of a folder and its removal, which then fails."""


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path near ``target`` whose file takes its place when the block ends well.

    Parameters
    ----------
    target
        File to be written; an existing one stays as it was until the new one is complete.

    Yields
    ------
    Path
        Where to write.

    Raises
    ------
    SourceError
        When the folder does not exist, the target is a folder, or the disk refuses the write.
    """
    path = Path(target)
    if path.is_dir():
        raise SourceError(f"{path}: is a folder, must be a file. Hint: name the file to write.")
    if not path.parent.is_dir():
        raise SourceError(f"{path.parent}: no such folder, so {path.name} cannot be written there.")
    # A query that failed may create its file only after that: in a folder that is gone it cannot.
    folder = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    temporary = folder / path.name
    try:
        folder.mkdir()
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise SourceError(f"{path}: could not be written ({error.strerror or error}).") from error
    finally:
        for _ in range(_N_REMOVALS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
