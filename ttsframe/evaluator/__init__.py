"""Accuracy by complexity and number of trajectories: tasks, aggregation, evaluation."""

from __future__ import annotations

from ttsframe.evaluator.tasks import (
    ArithmeticSequence,
    LogicalDeduction,
    Task,
    TaskInstance,
    TaskResult,
    TowerOfHanoi,
)

__all__ = [
    "ArithmeticSequence",
    "LogicalDeduction",
    "Task",
    "TaskInstance",
    "TaskResult",
    "TowerOfHanoi",
]
