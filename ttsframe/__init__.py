"""Test-time-compute scaling runs as Polars frames."""

from __future__ import annotations

from importlib.metadata import version as _version

from ttsframe.aggregators import Aggregator, IdentifierMean, Identity, PassAtK
from ttsframe.answers import (
    extract_answer,
)
from ttsframe.datasets import simulate_trajectories
from ttsframe.errors import TtsframeError
from ttsframe.intervals import student_t_interval, wilson_interval
from ttsframe.passk import closed_form_passatk, pass_at_k
from ttsframe.readers import (
    READERS,
    SkippedRowsWarning,
    UnmatchedGoldWarning,
    read_trajectories,
    scan_trajectories,
)
from ttsframe.schema import drop_duplicate_completions, renumber_attempts
from ttsframe.steps import (
    STEP_REDUCTIONS,
    step_first,
    step_geometric_mean,
    step_last,
    step_max,
    step_mean,
    step_min,
    step_prod,
    step_sum,
)
from ttsframe.validation import ValidationReport, validate_trajectories

__version__ = _version("ttsframe")

__all__ = [
    "READERS",
    "STEP_REDUCTIONS",
    "Aggregator",
    "IdentifierMean",
    "Identity",
    "PassAtK",
    "SkippedRowsWarning",
    "TtsframeError",
    "UnmatchedGoldWarning",
    "ValidationReport",
    "closed_form_passatk",
    "drop_duplicate_completions",
    "extract_answer",
    "pass_at_k",
    "read_trajectories",
    "renumber_attempts",
    "scan_trajectories",
    "simulate_trajectories",
    "step_first",
    "step_geometric_mean",
    "step_last",
    "step_max",
    "step_mean",
    "step_min",
    "step_prod",
    "step_sum",
    "student_t_interval",
    "validate_trajectories",
    "wilson_interval",
]
