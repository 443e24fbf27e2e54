"""Accuracy by complexity and number of trajectories: tasks, aggregation, evaluation.

The names are those of a fixed interface (`method`, `k_trajectories`, `num_correct`, a positional
`verbose`), not those of the rest of the package. `tts.evaluator` loads on first use.
"""

from __future__ import annotations

from ttsframe.evaluator.aggregator import TrajectoryAggregator
from ttsframe.evaluator.evaluator import Evaluator
from ttsframe.evaluator.k_report import AccuracyDifference, Area, KComparison, KRow, KScaling, Rise
from ttsframe.evaluator.reasoner import SimulatedReasoner
from ttsframe.evaluator.results import AggregatedResult, EvaluationResult
from ttsframe.evaluator.tasks import (
    ArithmeticSequence,
    LogicalDeduction,
    Task,
    TaskInstance,
    TaskResult,
    TowerOfHanoi,
)

__all__ = [
    "AccuracyDifference",
    "AggregatedResult",
    "Area",
    "ArithmeticSequence",
    "EvaluationResult",
    "Evaluator",
    "KComparison",
    "KRow",
    "KScaling",
    "LogicalDeduction",
    "Rise",
    "SimulatedReasoner",
    "Task",
    "TaskInstance",
    "TaskResult",
    "TowerOfHanoi",
    "TrajectoryAggregator",
]
