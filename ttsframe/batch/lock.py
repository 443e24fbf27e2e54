"""Lock an output, so that only one job at a time writes it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ttsframe._files import open_own
from ttsframe.errors import SourceError


@contextmanager
def locked(path: Path, sink: Path) -> Iterator[None]:
    """Hold the lock of an output; the kernel releases it whenever the process ends."""
    try:
        handle = (_create if sys.platform == "win32" else _take)(path, sink)
    except OSError as error:
        raise SourceError(
            f"{sink}: cannot be written ({error.strerror or error}). Hint: give the output another place "
            "or a shorter name."
        ) from error
    try:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
        os.truncate(handle, 0)
        os.write(handle, json.dumps(holder).encode())
        yield
    finally:
        # Removed while it is held: a process that opened it before notices that the file is gone.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _take(path: Path, sink: Path) -> int:
    """Open and lock the file, making sure that it was not removed meanwhile."""
    import fcntl  # not on Windows

    while True:
        handle = open_own(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        except BlockingIOError:
            holder = os.read(handle, 4096)
            os.close(handle)
            raise _held(path, sink, holder, "Hint: wait for it, or end it.") from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        time.sleep(0.01)


def _create(path: Path, sink: Path) -> int:
    """Create the file, on systems without locks that end with their process."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        hint = f"Hint: wait for it; delete {path} if that process has ended."
        raise _held(path, sink, path.read_bytes(), hint) from None


def _held(path: Path, sink: Path, holder: bytes, hint: str) -> SourceError:
    """Build the error for the second job."""
    try:
        found = json.loads(holder)
        who = f"process {found['pid']} on {found['host']}, since {found['since']}"
    except (ValueError, KeyError, TypeError):
        who = f"see {path}"
    return SourceError(f"{sink}: another job is writing it ({who}). {hint}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
