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

TEMPORARY: Final = ".tmp"
"""What the names of temporary folders end in; they begin with a dot."""

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
    try:
        with appearing(path) as temporary:
            yield temporary
    except OSError as error:
        raise SourceError(f"{path}: could not be written ({error.strerror or error}).") from error


@contextmanager
def appearing(target: Path, *, is_lasting: bool = True) -> Iterator[Path]:
    """Give a temporary path beside ``target`` for a file or a folder that appears there whole.

    Parameters
    ----------
    target
        What is to appear; an existing file is replaced, an existing folder must be empty.
    is_lasting
        Whether it must be whole even if the machine loses its power; that takes time.

    Yields
    ------
    Path
        Where to write a file or make a folder.
    """
    # A query that failed may create its file only after that: in a folder that is gone it cannot.
    folder = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    temporary = folder / target.name
    try:
        folder.mkdir()
        yield temporary
        inside = [path for path in temporary.rglob("*") if path.is_file()]
        for path in (inside or [temporary]) if is_lasting else ():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
        temporary.replace(target)
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder and all in it, as far as that is possible.

    Parameters
    ----------
    folder
        The folder; it need not exist.
    """
    for _ in range(_N_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
