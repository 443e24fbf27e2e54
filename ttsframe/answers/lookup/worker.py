"""sympy and latex2sympy2 behind a wall: processes with limits, killed and replaced at will.

Workers are started on the first string that needs one, shared by all threads, and told nothing but
strings. They are plain child processes on pipes: forking a process that has used Polars hangs, and
the start methods of multiprocessing re-run a script that has no main guard. After a fork the child
process starts workers of its own; at exit they are killed, and one that outlives a killed parent
ends with its pipe or its limit of processor time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias, cast

__all__ = ["Outcome", "Task", "WorkerCounts", "resolve_strings", "worker_counts"]

Task: TypeAlias = Literal["evaluate", "published"]
WorkerStatus: TypeAlias = Literal["done", "limit", "died", "unavailable"]

CPU_SECONDS: Final = 4.0
"""Processor time for one string; not wall-clock time, which depends on the load of the machine."""
_WALL_SECONDS: Final = 30.0
_START_SECONDS: Final = 60.0
_STRINGS_PER_WORKER: Final = 8
_MOST_FAILED_STARTS: Final = 3
_CHILD: Final = Path(__file__).with_name("sympy_child.py")


class Outcome(NamedTuple):
    """What a worker made of a string.

    Parameters
    ----------
    value
        LaTeX, or None where the libraries reject the string or a limit was met.
    status
        ``"done"`` when the value depends on the string alone.
    """

    value: str | None
    status: WorkerStatus


class WorkerCounts(NamedTuple):
    """What the workers of this process have done since it started.

    Parameters
    ----------
    n_started
        Worker processes started, replacements included.
    n_strings
        Strings asked, each counted once.
    n_limited
        Strings that twice met a limit of time or memory.
    n_died
        Strings with which a worker died twice.
    """

    n_started: int
    n_strings: int
    n_limited: int
    n_died: int


def resolve_strings(
    task: Task, texts: Sequence[str], *, cpu_seconds: float = CPU_SECONDS
) -> dict[str, Outcome]:
    """Ask the workers about distinct strings; safe to call from any number of threads.

    A string that meets a limit, or whose worker dies, is tried once more alone and then given up;
    it costs the others nothing but time.

    Parameters
    ----------
    task
        ``"evaluate"``: the value in the language of the own parser. ``"published"``: latex of
        simplify of latex2sympy.
    texts
        The strings, bounded in length, depth and exponents by the caller.
    cpu_seconds
        Limit of processor time for one string.

    Returns
    -------
    dict[str, Outcome]
        One outcome for each string.
    """
    return _pool.resolve(task, list(dict.fromkeys(texts)), cpu_seconds)


def worker_counts() -> WorkerCounts:
    """Return what the workers of this process have done.

    Returns
    -------
    WorkerCounts
        Counts since the process started.
    """
    return WorkerCounts(**_pool.counts)


class _Worker:
    """One child process and its two pipes."""

    def __init__(self) -> None:
        """Start the process without waiting for it."""
        # as python -I, but with a fixed hash seed: sympy's results may follow the order of sets
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "SYMPY_"))
        }
        environment |= {"PYTHONHASHSEED": "0", "SYMPY_GROUND_TYPES": "python"}
        self.process = subprocess.Popen(  # noqa: S603 - this interpreter and a script of this package
            [sys.executable, "-P", "-s", str(_CHILD), *_library_folders()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        self.requests = cast("IO[bytes]", self.process.stdin)
        self.answers = cast("IO[bytes]", self.process.stdout)
        self.buffer = b""
        self.text: str | None = None
        self.deadline = time.monotonic() + _START_SECONDS
        self.is_ready = False

    def fileno(self) -> int:
        """Return the descriptor on which answers arrive."""
        return self.answers.fileno()

    def ask(self, task: Task, text: str, cpu_seconds: float) -> bool:
        """Send a string; false when the process is gone."""
        request = {"task": task, "text": text, "cpu_seconds": cpu_seconds}
        self.text = text
        self.deadline = time.monotonic() + cpu_seconds + _WALL_SECONDS
        try:
            self.requests.write(json.dumps(request).encode() + b"\n")
        except OSError:
            return False
        return True

    def read(self) -> list[dict[str, object]] | None:
        """Read what has arrived; None when the process has closed its pipe."""
        try:
            chunk = os.read(self.fileno(), 1 << 16)
        except OSError:
            return None
        if not chunk:
            return None
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """End the process and wait for it."""
        with contextlib.suppress(OSError):
            self.process.kill()
        self.close()
        self.process.wait()

    def close(self) -> None:
        """Close this end of the pipes."""
        for pipe in (self.requests, self.answers):
            with contextlib.suppress(OSError):
                pipe.close()


class _Pool:
    """The workers of one process."""

    def __init__(self) -> None:
        """Hold no worker yet."""
        self.free = threading.Condition()
        self.idle: list[_Worker] = []
        self.everyone: set[_Worker] = set()
        self.unavailable: str | None = None
        self.failed_starts = 0
        self.counts = {"n_started": 0, "n_strings": 0, "n_limited": 0, "n_died": 0}
        self.size = _available_cores()

    def resolve(self, task: Task, texts: list[str], cpu_seconds: float) -> dict[str, Outcome]:
        """Ask about all strings, then once more, one at a time, about those that failed."""
        if texts and sys.platform == "win32":
            self._give_up("Windows cannot wait for several pipes at once")
        outcomes = self._ask_all(task, texts, cpu_seconds)
        failed = [text for text, outcome in outcomes.items() if outcome.status in {"limit", "died"}]
        for text in failed:
            outcomes |= self._ask_all(task, [text], cpu_seconds)
        with self.free:
            self.counts["n_strings"] += len(texts)
            for text in failed:
                self.counts["n_limited"] += outcomes[text].status == "limit"
                self.counts["n_died"] += outcomes[text].status == "died"
        return outcomes

    def _ask_all(self, task: Task, texts: list[str], cpu_seconds: float) -> dict[str, Outcome]:
        """Spread the strings over as many workers as they deserve and are free."""
        waiting = deque(texts)
        outcomes: dict[str, Outcome] = {}
        mine: list[_Worker] = []
        try:
            while waiting or any(worker.text is not None for worker in mine):
                if self.unavailable is not None:
                    break
                wanted = min(self.size, -(-len(waiting) // _STRINGS_PER_WORKER)) - len(mine)
                mine += self._take(wanted, wait=not mine)
                for worker in mine:
                    if worker.is_ready and worker.text is None and waiting:
                        text = waiting.popleft()
                        if not worker.ask(task, text, cpu_seconds):
                            worker.deadline = 0.0
                self._listen(mine, outcomes)
        finally:
            self._give_back(mine)
        return {text: outcomes.get(text, Outcome(None, "unavailable")) for text in texts}

    def _take(self, wanted: int, *, wait: bool) -> list[_Worker]:
        """Take free workers and start missing ones; with ``wait``, return at least one."""
        with self.free:
            while True:
                taken = [self.idle.pop() for _ in range(min(wanted, len(self.idle)))]
                while len(taken) < wanted and len(self.everyone) < self.size:
                    worker = _Worker()
                    self.counts["n_started"] += 1
                    self.everyone.add(worker)
                    taken.append(worker)
                if taken or not wait or self.unavailable is not None:
                    return taken
                self.free.wait()

    def _listen(self, mine: list[_Worker], outcomes: dict[str, Outcome]) -> None:
        """Wait for the next answer, or for the first deadline, and act on it."""
        busy = [worker for worker in mine if worker.text is not None or not worker.is_ready]
        if not busy:
            return
        remaining = min(worker.deadline for worker in busy) - time.monotonic()
        # not select.select, which fails for descriptors above 1023
        with selectors.DefaultSelector() as selector:
            for worker in busy:
                selector.register(worker, selectors.EVENT_READ, worker)
            readable = [key.data for key, _ in selector.select(max(0.0, remaining))]
        for worker in readable:
            messages = worker.read()
            if messages is None:
                self._drop(worker, mine, outcomes, "died")
                continue
            for message in messages:
                self._receive(worker, message, mine, outcomes)
        now = time.monotonic()
        for worker in busy:
            if worker in mine and worker not in readable and worker.deadline <= now:
                self._drop(worker, mine, outcomes, "limit")

    def _receive(
        self,
        worker: _Worker,
        message: dict[str, object],
        mine: list[_Worker],
        outcomes: dict[str, Outcome],
    ) -> None:
        """Note one message: that the worker is ready, cannot work, or has an answer."""
        if "ready" in message:
            worker.is_ready = bool(message["ready"])
            self.failed_starts = 0
            if not worker.is_ready:
                self._give_up(str(message["reason"]))
                self._drop(worker, mine, outcomes, "unavailable")
        elif worker.text is not None:
            value = message["value"]
            if message["status"] == "limit":
                self._drop(worker, mine, outcomes, "limit")
            else:
                outcomes[worker.text] = Outcome(value if isinstance(value, str) else None, "done")
                worker.text = None

    def _drop(
        self,
        worker: _Worker,
        mine: list[_Worker],
        outcomes: dict[str, Outcome],
        status: WorkerStatus,
    ) -> None:
        """Kill a worker; the string it worked on gets a status and no value."""
        if worker.text is not None:
            outcomes[worker.text] = Outcome(None, status)
        elif not worker.is_ready and status != "unavailable":
            self.failed_starts += 1
            if self.failed_starts >= _MOST_FAILED_STARTS:
                self._give_up("worker processes ended before they were ready")
        mine.remove(worker)
        worker.kill()
        with self.free:
            self.everyone.discard(worker)
            self.free.notify_all()

    def _give_back(self, mine: list[_Worker]) -> None:
        """Return workers that are done; one that was interrupted is killed."""
        for worker in mine:
            if worker.text is not None:
                worker.kill()
        with self.free:
            for worker in mine:
                if worker.text is None:
                    self.idle.append(worker)
                else:
                    self.everyone.discard(worker)
            self.free.notify_all()

    def _give_up(self, reason: str) -> None:
        """Do without workers from now on, and say so once."""
        with self.free:
            if self.unavailable is not None:
                return
            self.unavailable = reason
            self.free.notify_all()
        warnings.warn(
            "sympy and latex2sympy2 cannot be used, so answers that only they know are compared as "
            f"text: {reason}. Hint: python -m pip install latex2sympy2 sympy",
            RuntimeWarning,
            stacklevel=2,
        )

    def close(self) -> None:
        """Kill all workers."""
        with self.free:
            workers, self.everyone, self.idle = self.everyone, set(), []
        for worker in workers:
            worker.kill()

    def forget(self) -> None:
        """Leave the workers to the process that this one was forked from."""
        for worker in self.everyone:
            worker.close()
            # nothing to wait for: they are no children of this process
            worker.process.returncode = 0


def _available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _library_folders() -> list[str]:
    """Return where the parser and sympy are installed, for a child that ignores PYTHONPATH."""
    folders: dict[str, None] = {}
    for name in ("latex2sympy2", "sympy", "antlr4"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            package = Path(spec.origin)
            folder = package.parent if package.name != "__init__.py" else package.parent.parent
            folders[str(folder)] = None
    return list(folders)


def _start_anew() -> None:
    """Give a forked child a pool of its own, with locks that nobody holds."""
    global _pool  # noqa: PLW0603 - one pool per process
    _pool.forget()
    _pool = _Pool()


_pool = _Pool()


def _close() -> None:
    """Kill the workers of this process."""
    _pool.close()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
