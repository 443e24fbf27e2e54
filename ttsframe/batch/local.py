"""Engines run tasks; this one runs them in this process, one after the other, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ttsframe.batch.failures import run_task
from ttsframe.batch.tasks import Task

__all__ = ["Engine", "LocalEngine"]


class Engine(Protocol):
    """Runs the tasks of a phase, in any order and in any process.

    A task may be run more than once, even at once: its output appears whole. So an engine may give a
    task that a lost worker had to another one.
    """

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks, none of which depends on another.

        Parameters
        ----------
        tasks
            What is to be done. Each is run by `run_task`, which any process can import that has the
            files under the same paths.
        on_done
            To be called in the thread of the caller as each task ends. When a task fails, its error
            is raised, at the latest when those that run at the same time have ended.
        """


class LocalEngine:
    """Runs one task after the other; Polars uses all cores within each."""

    def run(self, tasks: Sequence[Task], on_done: Callable[[Task], None]) -> None:
        """Run tasks, none of which depends on another.

        Parameters
        ----------
        tasks
            What is to be done.
        on_done
            Called as each task ends.
        """
        for task in tasks:
            run_task(task)
            on_done(task)
