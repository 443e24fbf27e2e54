"""Labels of steps: made by completing them, held against scores, read and written."""

from __future__ import annotations

from ttsframe.process.agreement import StepAgreement, step_agreement
from ttsframe.process.annotation import Completer, Prefix, annotate, openai_completer
from ttsframe.process.estimate import estimate_steps
from ttsframe.process.ranking import rank_answers

__all__ = [
    "Completer",
    "Prefix",
    "StepAgreement",
    "annotate",
    "estimate_steps",
    "openai_completer",
    "rank_answers",
    "step_agreement",
]
