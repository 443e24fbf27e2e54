"""The interface of engines, and the engine that runs tasks on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Final, Protocol

import polars as pl

from ttsframe._waits import Threads
from ttsframe.batch._child import Child
from ttsframe.batch.failures import run_task
from ttsframe.batch.tasks import Task

__all__ = ["Engine", "LocalEngine"]


_N_AT_ONCE: Final = 2


def _run(task: Task) -> Task:
    run_task(task)
    return task


class Engine(Protocol):
    """Runs the tasks of a phase, in any order and in any process.

    A task may run more than once, even at the same time, because its output is written completely or
    not at all. So an engine may rerun the task of a lost worker. An engine that is a context manager
    is entered before the first task of a job and left after the last.
    """

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run independent tasks.

        Parameters
        ----------
        tasks
            The tasks. Each is run by `ttsframe.batch.failures.run_task`, in any process that sees
            the files under the same paths.
        on_done
            Called in the caller's thread after each task. If a task fails, its error is raised, at
            the latest when the tasks that run at the same time have ended.
        """


class LocalEngine:
    """Runs two tasks at a time, with Polars on all cores; tasks in Python run on one core each.

    A task does not use all cores at its beginning and end, so two tasks use them better, at the price
    of a second slice or part in memory.
    """

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run independent tasks, as `Engine.run` documents."""
        in_python = [task for task in tasks if task.keeps_one_core]
        if len(in_python) > 1:
            self._run_in_children(in_python, on_done)
        else:
            in_python = []
        with Threads(_N_AT_ONCE) as pool:
            for task in pool.as_they_end(_run, [task for task in tasks if task not in in_python]):
                on_done(task)

    @staticmethod
    def _run_in_children(tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks in child processes, one per core."""
        n_children = min(len(tasks), pl.thread_pool_size())
        with ExitStack() as stack:
            idle: SimpleQueue[Child] = SimpleQueue()
            for _ in range(n_children):
                idle.put(stack.enter_context(Child()))

            def run(task: Task) -> Task:
                child = idle.get()
                try:
                    child.run(task)
                finally:
                    idle.put(child)
                return task

            with Threads(n_children) as pool:
                for task in pool.as_they_end(run, tasks):
                    on_done(task)
