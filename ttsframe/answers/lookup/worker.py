"""sympy in worker processes, which have limits and can be killed and replaced at any time.

Workers start on the first answer that needs one and are shared by all threads. They are plain child
processes on pipes: forking a process that has used Polars hangs, and the start methods of
multiprocessing rerun a script that has no main guard. A forked child starts workers of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Hashable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

from ttsframe.errors import EngineError, MissingExtraError

__all__ = ["Outcome", "Task", "WorkerCounts", "WorkerStatus", "run_tasks", "worker_counts"]

Task: TypeAlias = Literal["evaluate", "published"]
WorkerStatus: TypeAlias = Literal["done", "limit", "died"]

_ItemT = TypeVar("_ItemT", bound=Hashable)

CPU_SECONDS: Final = 4.0
"""Processor time for one item; not wall-clock time, which depends on the load of the machine."""
_WALL_SECONDS: Final = 120.0
_START_SECONDS: Final = 180.0
_SECONDS_BETWEEN_CHECKS: Final = 0.5
"""How often a call looks for workers that are late: a timer for each item would cost more than many items."""
_ITEMS_PER_WORKER: Final = 8
_MOST_FAILED_STARTS: Final = 3
_CHILD: Final = Path(__file__).with_name("sympy_child.py")
_HINTS: Final[dict[Task, str]] = {
    "evaluate": "python -m pip install --force-reinstall sympy",
    "published": (
        "python -m pip install 'ttsframe[latex2sympy]', in an environment without packages that need "
        "another antlr4-python3-runtime than 4.7.2; the default method needs neither"
    ),
}


class Outcome(NamedTuple):
    """The result of one item: a JSON value, None where sympy has none, and how the work ended."""

    value: Any
    status: WorkerStatus


class WorkerCounts(NamedTuple):
    """What the workers of this process have done; limited and died count after a second try."""

    n_started: int
    n_items: int
    n_limited: int
    n_died: int


def run_tasks(
    task: Task, items: Sequence[_ItemT], *, cpu_seconds: float = CPU_SECONDS
) -> dict[_ItemT, Outcome]:
    """Return the outcome of each distinct item, a bounded tree or text; thread-safe."""
    # Libraries that cannot be imported and workers that cannot start are errors, not outcomes: the key
    # of an answer must not depend on what is installed.
    return _pool.run(task, list(dict.fromkeys(items)), cpu_seconds)


def worker_counts() -> WorkerCounts:
    """Return what the workers of this process have done since it started."""
    return WorkerCounts(**_pool.counts)


class _Worker:
    """One child process for one task, and its two pipes."""

    def __init__(self, task: Task) -> None:
        # As python -I, but with a fixed hash seed: sympy's results may follow the order of sets.
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "SYMPY_"))
        }
        environment |= {"PYTHONHASHSEED": "0", "SYMPY_GROUND_TYPES": "python"}
        self.process = subprocess.Popen(  # noqa: S603 - this interpreter and a script of this package
            [sys.executable, "-P", "-s", str(_CHILD), task, *_library_folders()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        self.task = task
        self.requests = cast("IO[bytes]", self.process.stdin)
        self.replies = cast("IO[bytes]", self.process.stdout)
        self.is_ready = False
        self.deadline = time.monotonic() + _START_SECONDS
        self.was_late = False

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """Send a request and return the reply; None where the process ends, or is killed as late."""
        if not self.is_ready:
            ready = self._reply()
            if ready is None or ready["status"] != "ready":
                return ready
            self.is_ready = True
        self.deadline = time.monotonic() + seconds
        try:
            self.requests.write(json.dumps(request).encode() + b"\n")
        except OSError:
            return None
        return self._reply()

    def _reply(self) -> dict[str, Any] | None:
        """Wait for one line; each request has exactly one."""
        line = b""
        try:
            while not line.endswith(b"\n") and (chunk := os.read(self.replies.fileno(), 1 << 16)):
                line += chunk
        except OSError:
            return None
        return cast("dict[str, Any]", json.loads(line)) if line.endswith(b"\n") else None

    def kill(self) -> None:
        """Kill the process, for which a thread may be waiting."""
        self.was_late = True
        with contextlib.suppress(OSError):
            self.process.kill()

    def end(self) -> None:
        """End the process and wait for it."""
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Close this end of the pipes."""
        for pipe in (self.requests, self.replies):
            with contextlib.suppress(OSError):
                pipe.close()


class _Pool:
    """The workers of one process; at most one for each core is at work."""

    def __init__(self) -> None:
        self.size = _available_cores()
        self.free = threading.BoundedSemaphore(self.size)
        self.lock = threading.Lock()
        self.idle: dict[Task, list[_Worker]] = {"evaluate": [], "published": []}
        self.workers: set[_Worker] = set()
        self.n_failed_starts = 0
        self.counts = {"n_started": 0, "n_items": 0, "n_limited": 0, "n_died": 0}

    def run(self, task: Task, items: list[_ItemT], cpu_seconds: float) -> dict[_ItemT, Outcome]:
        """Run all items, then those that failed once more, one at a time."""
        outcomes = self._run_once(task, items, cpu_seconds)
        failed = [item for item, found in outcomes.items() if found.status != "done"]
        for item in failed:
            outcomes |= self._run_once(task, [item], cpu_seconds)
        with self.lock:
            self.counts["n_items"] += len(items)
            for item in failed:
                self.counts["n_limited"] += outcomes[item].status == "limit"
                self.counts["n_died"] += outcomes[item].status == "died"
        return outcomes

    def _run_once(
        self, task: Task, items: list[_ItemT], cpu_seconds: float
    ) -> dict[_ItemT, Outcome]:
        """Run all items in as many threads as they need, and kill workers that are late."""
        waiting = deque(items)
        outcomes: dict[_ItemT, Outcome] = {}
        busy: set[_Worker] = set()

        def serve() -> None:
            while True:
                try:
                    item = waiting.popleft()
                except IndexError:
                    return
                outcomes[item] = self._outcome(task, item, cpu_seconds, busy)

        n_threads = min(self.size, -(-len(items) // _ITEMS_PER_WORKER))
        failure: BaseException | None = None
        with ThreadPoolExecutor(max(1, n_threads)) as threads:
            pending = {threads.submit(serve) for _ in range(n_threads)}
            while pending:
                try:
                    done, pending = wait(pending, _SECONDS_BETWEEN_CHECKS, FIRST_EXCEPTION)
                    for thread in done:
                        thread.result()
                except BaseException as error:  # noqa: BLE001 - raised when the threads have ended
                    failure = failure or error
                    waiting.clear()
                now = time.monotonic()
                with self.lock:
                    late = [each for each in busy if failure or each.deadline < now]
                for worker in late:
                    worker.kill()
        if failure is not None:
            raise failure
        return {item: outcomes[item] for item in items}

    def _outcome(
        self, task: Task, item: Hashable, cpu_seconds: float, busy: set[_Worker]
    ) -> Outcome:
        """Give one item to the first worker that is free."""
        request = {"item": item, "cpu_seconds": cpu_seconds}
        with self.free:
            while True:
                worker = self._take(task, busy)
                try:
                    reply = worker.ask(request, cpu_seconds + _WALL_SECONDS)
                except BaseException:
                    self._drop(worker)
                    raise
                finally:
                    with self.lock:
                        busy.discard(worker)
                if reply is None or reply["status"] != "done":
                    self._drop(worker)
                if reply is None and not worker.is_ready:
                    self._note_failed_start()
                    continue
                break
            if reply is None:
                return Outcome(None, "limit" if worker.was_late else "died")
            if reply["status"] == "unavailable":
                libraries = "latex2sympy2" if task == "published" else "sympy"
                raise MissingExtraError(
                    f"{libraries} cannot be imported in a worker process: {reply['value']}. "
                    f"Hint: {_HINTS[task]}."
                )
            if reply["status"] == "done":
                with self.lock:
                    self.n_failed_starts = 0
                    self.idle[task].append(worker)
            return Outcome(reply["value"], cast("WorkerStatus", reply["status"]))

    def _take(self, task: Task, busy: set[_Worker]) -> _Worker:
        """Return a worker that is idle, or a new one, as one of the busy workers of a call."""
        with self.lock:
            if self.idle[task]:
                worker = self.idle[task].pop()
                worker.deadline = math.inf
            else:
                worker = _Worker(task)
                self.workers.add(worker)
                self.counts["n_started"] += 1
            busy.add(worker)
            return worker

    def _drop(self, worker: _Worker) -> None:
        worker.end()
        with self.lock:
            self.workers.discard(worker)

    def _note_failed_start(self) -> None:
        with self.lock:
            self.n_failed_starts += 1
            if self.n_failed_starts < _MOST_FAILED_STARTS:
                return
            self.n_failed_starts = 0
        raise EngineError(
            "the worker processes in which sympy evaluates answers ended before they were ready. Hint: "
            "the system may forbid child processes, or leave them less than 1 GB of memory."
        )

    def close(self) -> None:
        """End all workers."""
        with self.lock:
            workers, self.workers = self.workers, set()
            self.idle = {"evaluate": [], "published": []}
        for worker in workers:
            worker.end()

    def abandon(self) -> None:
        """Leave the workers to the process that this one was forked from."""
        for worker in self.workers:
            worker.close()
            # There is nothing to wait for: they are not children of this process.
            worker.process.returncode = 0


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _library_folders() -> list[str]:
    """Return where the libraries are installed, for a child that ignores PYTHONPATH."""
    folders: dict[str, None] = {}
    for name in ("sympy", "mpmath", "latex2sympy2", "antlr4"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            package = Path(spec.origin)
            folder = package.parent if package.name != "__init__.py" else package.parent.parent
            folders[str(folder)] = None
    return list(folders)


_pool = _Pool()


def _replace_pool() -> None:
    """Give a forked child a pool of its own, with locks that no thread holds."""
    global _pool  # noqa: PLW0603 - one pool per process
    _pool.abandon()
    _pool = _Pool()


@atexit.register
def _close_pool() -> None:
    _pool.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_pool)
