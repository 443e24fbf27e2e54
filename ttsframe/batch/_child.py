"""A child process for tasks in Python code, each of which keeps one core busy.

The child is a plain process on pipes: a fork of a process that has used Polars hangs, and the start
methods of multiprocessing rerun the user's script.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Final, Self

from ttsframe.batch.failures import run_task
from ttsframe.batch.tasks import Task

__all__ = ["Child", "serve"]

_SECONDS_BETWEEN_CHECKS: Final = 0.5
"""How often the child checks that its parent is still running."""
_PROGRAM: Final = """
import pickle, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    sys.path[:] = pickle.load(sys.stdin.buffer)
except (EOFError, pickle.UnpicklingError):
    sys.exit(1)
from ttsframe.batch._child import serve
serve(int(sys.argv[1]))
"""
"""An interrupt from the terminal reaches this process too: it ends without a traceback, as with its parent."""


class Child:
    """A child process that runs one task at a time; it ends with the block or with this process."""

    def __enter__(self) -> Self:
        """Start the process, without waiting for it."""
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        self._process = subprocess.Popen(  # noqa: S603 - the own program
            # Not from the working directory, which may hold a pickle.py.
            [sys.executable, "-P", "-c", _PROGRAM, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._send(sys.path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def run(self, task: Task) -> None:
        """Run a task in the child, or here if the child has died."""
        try:
            self._send(task)
            failure = pickle.load(self._process.stdout)  # type: ignore[arg-type]  # noqa: S301 - own child
        except (OSError, EOFError):
            run_task(task)
            return
        if failure is not None:
            raise failure

    def _send(self, value: object) -> None:
        """Send a value; whether the child has died shows when its answer is read."""
        pickle.dump(value, self._process.stdin)  # type: ignore[arg-type]
        self._process.stdin.flush()  # type: ignore[union-attr]


def serve(parent: int) -> None:
    """Run the tasks from standard input, and answer each with None or its error, until the parent ends."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a task prints must not mix with the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the parent
        except (EOFError, pickle.UnpicklingError):
            return
        failure: Exception | None = None
        try:
            run_task(task)
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            failure = error
        try:
            pickle.dump(failure, answers)
            answers.flush()
        except BrokenPipeError:
            os._exit(1)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even during a task."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    os._exit(1)
