"""A process of its own for tasks that are Python code: they keep one core busy, and several run at once.

The process is a plain child on pipes. A fork of a process that has used Polars hangs, and the start
methods of multiprocessing run the user's script again.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Final, Self

from ttsframe.batch.failures import run_task
from ttsframe.batch.tasks import Task

__all__ = ["Child", "serve"]

_LOOK_EVERY: Final = 0.5
"""Seconds between two looks whether the parent is there."""
_PROGRAM: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from ttsframe.batch._child import serve; serve()"
)


class Child:
    """A process that runs tasks, one at a time; it ends with the block, or with this process."""

    def __enter__(self) -> Self:
        """Start it, without waiting for it.

        Returns
        -------
        Self
            The child.
        """
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        self._process = subprocess.Popen(  # noqa: S603 - the own program
            [sys.executable, "-c", _PROGRAM],
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
        """End it."""
        self._process.kill()
        self._process.communicate()

    def run(self, task: Task) -> None:
        """Run a task there, or here if the child has died.

        Parameters
        ----------
        task
            What to run.
        """
        try:
            self._send(task)
            failure = pickle.load(self._process.stdout)  # type: ignore[arg-type]  # noqa: S301 - own child
        except (OSError, EOFError):
            run_task(task)
            return
        if failure is not None:
            raise failure

    def _send(self, value: object) -> None:
        """Hand a value over; a child that has died shows when it is asked for its answer."""
        pickle.dump(value, self._process.stdin)  # type: ignore[arg-type]
        self._process.stdin.flush()  # type: ignore[union-attr]


def serve() -> None:
    """Run what comes on standard input until it ends; answer with None or with the error."""
    # An interrupt from the terminal reaches this process too; it has nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a task may print must not come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the parent
        except EOFError:
            return
        failure: Exception | None = None
        try:
            run_task(task)
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            failure = error
        pickle.dump(failure, answers)
        answers.flush()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, in the middle of a task as well."""
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(1)
