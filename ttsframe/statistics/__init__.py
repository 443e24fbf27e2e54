"""Statistics over problems: intervals, comparisons, power, variance, extrapolation."""

from __future__ import annotations

from ttsframe.statistics.bayes import bayes_at_n
from ttsframe.statistics.comparison import compare
from ttsframe.statistics.extrapolation import (
    PassAtKFit,
    check_extrapolation,
    fit_pass_at_k,
)
from ttsframe.statistics.intervals import normal_interval, student_t_interval, wilson_interval
from ttsframe.statistics.power import PairedDesign
from ttsframe.statistics.ranking import rank
from ttsframe.statistics.uncertainty import (
    bootstrap_interval,
    degrees_of_freedom,
    standard_error,
)
from ttsframe.statistics.variance import variance_components

__all__ = [
    "PairedDesign",
    "PassAtKFit",
    "bayes_at_n",
    "bootstrap_interval",
    "check_extrapolation",
    "compare",
    "degrees_of_freedom",
    "fit_pass_at_k",
    "normal_interval",
    "rank",
    "standard_error",
    "student_t_interval",
    "variance_components",
    "wilson_interval",
]
