"""Engines run tasks; this one runs them on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Final, Protocol

import polars as pl

from ttsframe.batch._child import Child
from ttsframe.batch.failures import run_task
from ttsframe.batch.tasks import Task

__all__ = ["Engine", "LocalEngine"]


_N_AT_ONCE: Final = 2


def _run(task: Task) -> Task:
    """Run a task and return it."""
    run_task(task)
    return task


class Engine(Protocol):
    """Runs the tasks of a phase, in any order and in any process.

    A task may be run more than once, even at once: its output appears whole. So an engine may give a
    task that a lost worker had to another one. An engine that is a context manager too is entered
    before the first task of a job, and left after the last.
    """

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks, none of which depends on another.

        Parameters
        ----------
        tasks
            What is to be done. Each is run by `ttsframe.batch.failures.run_task`, in any process
            that has the files under the same paths.
        on_done
            To be called in the thread of the caller as each task ends. When a task fails, its error
            is raised, at the latest when those that run at the same time have ended.
        """


class LocalEngine:
    """Runs two tasks at a time, Polars using all cores; those in Python run on a core each.

    A task begins and ends on fewer cores than there are: two keep each other's cores busy, at the
    price of a second slice or part in memory.
    """

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks, none of which depends on another.

        Parameters
        ----------
        tasks
            What is to be done.
        on_done
            Called as each task ends.
        """
        beside = [task for task in tasks if task.keeps_one_core]
        if len(beside) > 1:
            self._run_beside(beside, on_done)
        else:
            beside = []
        with ThreadPoolExecutor(_N_AT_ONCE) as pool:
            running = [pool.submit(_run, task) for task in tasks if task not in beside]
            try:
                for future in as_completed(running):
                    on_done(future.result())
            finally:
                for future in running:
                    future.cancel()

    @staticmethod
    def _run_beside(tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks in processes of their own, as many as there are cores."""
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

            with ThreadPoolExecutor(n_children) as pool:
                for task in pool.map(run, tasks):
                    on_done(task)
