"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ttsframe.errors import SourceError

TEMPORARY: Final = ".tmp"
"""Suffix of temporary folders, whose names begin with a dot."""

_N_REMOVALS: Final = 10
"""Removing a folder fails if a late write puts a file into it."""


def check_parent_folder(target: Path) -> None:
    """Check that the folder to write a file or folder into exists and can be written to."""
    folder = target.parent
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder, so {target.name} cannot be written there.")
    if not os.access(folder, os.W_OK):
        raise SourceError(f"{folder}: cannot be written to, so {target.name} cannot be created.")


def check_no_link(path: Path) -> None:
    """Raise if a file or folder that ttsframe makes for itself is a link, which may lead anywhere."""
    if os.path.islink(path):  # noqa: PTH114 - of a name that is too long, False
        raise _linked(path)


def open_own(path: Path, flags: int) -> int:
    """Open or create a file that ttsframe makes for itself; links are never followed."""
    # Windows lacks O_NOFOLLOW; links need special rights there.
    nofollow = getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags | os.O_CREAT | nofollow, 0o644)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            raise _linked(path) from error
        raise
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(handle)
        raise _linked(path)
    return handle


def _linked(path: Path) -> SourceError:
    return SourceError(
        f"{path}: is a link or no plain file, must be a file or folder that ttsframe has made. Hint: remove it."
    )


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `target` once the block has succeeded."""
    path = Path(target)
    if path.is_dir():
        raise SourceError(f"{path}: is a folder, must be a file. Hint: name the file to write.")
    check_parent_folder(path)
    try:
        with appearing(path) as temporary:
            yield temporary
    except OSError as error:
        raise SourceError(f"{path}: could not be written ({error.strerror or error}).") from error


@contextmanager
def appearing(target: Path, *, is_lasting: bool = True) -> Iterator[Path]:
    """Yield a temporary path for a file or folder that is renamed to `target` when complete.

    An existing file is replaced; an existing folder must be empty. `is_lasting` flushes the files
    to disk first, so that they survive a power failure.
    """
    # A failed query may still create its file later: in a removed folder it cannot.
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
    """Remove a folder with its content as far as possible; it need not exist."""
    for _ in range(_N_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
