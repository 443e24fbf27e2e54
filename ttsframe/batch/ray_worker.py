"""Run a task on a Ray worker, after checking that it sees the same files and versions."""

from __future__ import annotations

import os
import pickle
import socket
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ttsframe.batch.failures import run_task
from ttsframe.batch.manifest import package_version
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
    """A task, and what must hold where it runs."""

    task: Task
    seen: Mapping[Path, int]
    """Paths that the task needs, each with its number of entries if it is a folder."""
    versions: Mapping[str, str]
    """Of the packages that decide how rows are divided and answers keyed."""
    patience: float
    """Seconds to wait until files of other nodes become visible on a network file system."""


def run_order(order: Order) -> Exception | None:
    """Run a task, and return its error, which Ray would otherwise wrap."""
    try:
        _check_versions(order.versions)
        missing = wait_until_seen(order.seen, order.patience)
        if missing is not None:
            return SourceError(
                f"{missing}: is missing or incomplete on node {socket.gethostname()}, which should make "
                f"{order.task.name}. Hint: every node must see the source and the folder of the output "
                "under the same paths, on a shared file system."
            )
        run_task(order.task)
    except Exception as error:  # noqa: BLE001 - raised again in the process of the caller
        return _portable(error, order.task)
    return None


def inputs_of(task: Task) -> Iterator[Path]:
    """Yield the files and folders that a task reads: its paths and slices."""
    for name, value in vars(task).items():
        if isinstance(value, Slice):
            yield from (surveyed.file.path for surveyed in value.survey.files)
        elif isinstance(value, Path) and name != "output":
            yield value


def wait_until_seen(seen: Mapping[Path, int], patience: float) -> Path | None:
    """Wait for files on a network file system; return the first that is missing or incomplete."""
    deadline = time.monotonic() + patience
    for path, n_entries in seen.items():
        while count_entries(path) < n_entries:
            if time.monotonic() >= deadline:
                return path
            time.sleep(_PAUSE)
    return None


def count_entries(path: Path) -> int:
    """Count the visible entries of a folder: 0 for a file, -1 if nothing exists."""
    try:
        return sum(not entry.name.startswith(".") for entry in os.scandir(path))
    except NotADirectoryError:
        return 0
    except OSError:
        return -1


@lru_cache(maxsize=1)
def decisive_versions() -> Mapping[str, str]:
    """Return the versions of the packages that decide how rows are divided and answers keyed."""
    return {name: package_version(name) for name in _DECISIVE}


def _check_versions(expected: Mapping[str, str]) -> None:
    """Raise if rows could be divided or answers keyed differently here."""
    found = decisive_versions()
    differing = [
        f"{name} {found[name]}, not {wanted}"
        for name, wanted in expected.items()
        if found[name] != wanted
    ]
    if differing:
        raise EngineError(
            f"node {socket.gethostname()} has {'; '.join(differing)}, so rows could be divided and "
            "answer keys could differ on that node. Hint: install the same versions on every node."
        )


def _portable(error: Exception, task: Task) -> Exception:
    """Add a note on where an error occurred; describe it if it cannot be pickled."""
    where = f"at {task.name}, on node {socket.gethostname()}, process {os.getpid()}"
    trace = "".join(traceback.format_exception(error))
    try:
        sent: Exception = pickle.loads(pickle.dumps(error))  # noqa: S301 - just made
    except Exception:  # noqa: BLE001 - whatever a foreign class does
        sent = RuntimeError(f"{type(error).__qualname__}: {error}")
    sent.add_note(where if isinstance(error, TtsframeError) else f"{where}\n{trace}")
    return sent


def folders_seen(tasks: Sequence[Task]) -> dict[Path, int]:
    """Count the entries of the files and folders that tasks read, as seen from here."""
    paths = {path for task in tasks for path in inputs_of(task)}
    counted = {path: count_entries(path) for path in sorted(paths)}
    return {path: n_entries for path, n_entries in counted.items() if n_entries >= 0}
