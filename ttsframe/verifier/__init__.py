"""How good the scores of a verifier are: discrimination, calibration, bias and over-optimization."""

from __future__ import annotations

from ttsframe.verifier.labels import first_error, processbench_f1
from ttsframe.verifier.lengths import length_bias
from ttsframe.verifier.metrics import verifier_metrics
from ttsframe.verifier.overoptimization import over_optimization
from ttsframe.verifier.profile import step_profile
from ttsframe.verifier.reliability import reliability_curve, score_distribution
from ttsframe.verifier.report import VerifierReport, verifier_report
from ttsframe.verifier.threshold import best_threshold

__all__ = [
    "VerifierReport",
    "best_threshold",
    "first_error",
    "length_bias",
    "over_optimization",
    "processbench_f1",
    "reliability_curve",
    "score_distribution",
    "step_profile",
    "verifier_metrics",
    "verifier_report",
]
