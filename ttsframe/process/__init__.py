"""Process supervision: label steps by rollouts, compare labels with scores, rank answers."""

from __future__ import annotations

from ttsframe.process.agreement import StepAgreement, step_agreement
from ttsframe.process.annotation import (
    Completer,
    Failed,
    Prefix,
    RolloutProgress,
    annotate,
    openai_completer,
)
from ttsframe.process.estimate import estimate_steps
from ttsframe.process.ranking import rank_answers
from ttsframe.readers.step_formats.nodes import step_paths

__all__ = [
    "Completer",
    "Failed",
    "Prefix",
    "RolloutProgress",
    "StepAgreement",
    "annotate",
    "estimate_steps",
    "openai_completer",
    "rank_answers",
    "step_agreement",
    "step_paths",
]
