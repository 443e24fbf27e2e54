"""Tasks of graded complexity whose answers are verified exactly."""

from __future__ import annotations

from ttsframe.evaluator.tasks.deduction import LogicalDeduction
from ttsframe.evaluator.tasks.hanoi import TowerOfHanoi
from ttsframe.evaluator.tasks.sequences import ArithmeticSequence
from ttsframe.evaluator.tasks.task import SeededTask, Task, TaskInstance, TaskResult

__all__ = [
    "ArithmeticSequence",
    "LogicalDeduction",
    "SeededTask",
    "Task",
    "TaskInstance",
    "TaskResult",
    "TowerOfHanoi",
]
