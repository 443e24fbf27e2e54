"""What a Ray worker does with a task: checks that it sees the same files, and runs it."""

from __future__ import annotations

import os
import pickle
import socket
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from ttsframe.batch.failures import run_task
from ttsframe.batch.sources import Slice
from ttsframe.batch.tasks import Task
from ttsframe.errors import EngineError, SourceError, TtsframeError

__all__ = [
    "Order",
    "decisive_versions",
    "folders_seen",
    "inputs_of",
    "run_order",
    "wait_until_seen",
]

_DECISIVE: Final = ("ttsframe", "polars", "python-flint", "sympy")
_PAUSE: Final = 0.05


@dataclass(frozen=True)
class Order:
    """A task, and what must be the same where it is run.

    Parameters
    ----------
    task
        What to run.
    seen
        Paths that it needs, each with the number of entries if it is a folder.
    versions
        Of the packages that decide how rows are divided and what keys answers get.
    patience
        Seconds for a file of another node to become visible on a network's file system.
    """

    task: Task
    seen: Mapping[Path, int]
    versions: Mapping[str, str]
    patience: float


def run_order(order: Order) -> Exception | None:
    """Run a task; return its error, which Ray would wrap in one of its own.

    Parameters
    ----------
    order
        What to run.

    Returns
    -------
    Exception or None
        What stopped it, of the same class and message as it was raised, with a note on where.
    """
    try:
        _check_versions(order.versions)
        missing = wait_until_seen(order.seen, order.patience)
        if missing is not None:
            return SourceError(
                f"{missing}: is not there, or not complete, on node {socket.gethostname()}, which was "
                f"to make {order.task.name}. Hint: every node must see the source and the folder of "
                "the output under the same paths, on a file system that they share."
            )
        run_task(order.task)
    except Exception as error:  # noqa: BLE001 - raised again in the process of the caller
        return _portable(error, order.task)
    return None


def inputs_of(task: Task) -> Iterator[Path]:
    """Yield the files and folders that a task reads.

    Parameters
    ----------
    task
        The task: a dataclass whose paths and slices are fields.

    Yields
    ------
    Path
        Files of the source, or folders that earlier tasks have filled.
    """
    for name, value in vars(task).items():
        if isinstance(value, Slice):
            yield from (one.file.path for one in value.survey.files)
        elif isinstance(value, Path) and name != "output":
            yield value


def wait_until_seen(seen: Mapping[Path, int], patience: float) -> Path | None:
    """Wait until files are there, as a network's file system may take a while to show them.

    Parameters
    ----------
    seen
        Paths, each with the least number of entries of a folder.
    patience
        Seconds.

    Returns
    -------
    Path or None
        The first that did not appear, or whose entries did not.
    """
    deadline = time.monotonic() + patience
    for path, n_entries in seen.items():
        while count_entries(path) < n_entries:
            if time.monotonic() >= deadline:
                return path
            time.sleep(_PAUSE)
    return None


def count_entries(path: Path) -> int:
    """Count what is in a folder, but for what is being made.

    Parameters
    ----------
    path
        Folder or file.

    Returns
    -------
    int
        Number of entries; 0 for a file or an empty folder, -1 where there is nothing.
    """
    try:
        return sum(not entry.name.startswith(".") for entry in os.scandir(path))
    except NotADirectoryError:
        return 0
    except OSError:
        return -1


@lru_cache(maxsize=1)
def decisive_versions() -> Mapping[str, str]:
    """Return the versions of the packages that decide how rows are divided and keyed.

    Returns
    -------
    Mapping[str, str]
        By name; "none" for one that is not installed.
    """
    return {name: _version(name) for name in _DECISIVE}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _check_versions(expected: Mapping[str, str]) -> None:
    """Raise where a hash could send rows of a problem to another part, or an answer to another key."""
    found = decisive_versions()
    differing = [
        f"{name} {found[name]}, not {wanted}"
        for name, wanted in expected.items()
        if found[name] != wanted
    ]
    if differing:
        raise EngineError(
            f"node {socket.gethostname()} has {'; '.join(differing)}, so rows could be divided and "
            "answers be keyed otherwise there. Hint: install the same versions on every node."
        )


def _portable(error: Exception, task: Task) -> Exception:
    """Add where an error comes from; one that cannot be sent is described."""
    where = f"at {task.name}, on node {socket.gethostname()}, process {os.getpid()}"
    trace = "".join(traceback.format_exception(error))
    try:
        sent: Exception = pickle.loads(pickle.dumps(error))  # noqa: S301 - just made
    except Exception:  # noqa: BLE001 - whatever a foreign class does
        sent = RuntimeError(f"{type(error).__qualname__}: {error}")
    sent.add_note(where if isinstance(error, TtsframeError) else f"{where}\n{trace}")
    return sent


def folders_seen(tasks: Sequence[Task]) -> dict[Path, int]:
    """Count what is in the folders and where the files are that tasks read, as seen from here.

    Parameters
    ----------
    tasks
        The tasks.

    Returns
    -------
    dict[Path, int]
        By path; those that are not there are left out.
    """
    paths = {path for task in tasks for path in inputs_of(task)}
    counted = {path: count_entries(path) for path in sorted(paths)}
    return {path: n_entries for path, n_entries in counted.items() if n_entries >= 0}
