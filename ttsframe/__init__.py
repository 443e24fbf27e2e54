"""Test-time-compute scaling runs as Polars frames."""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ttsframe import _namespace as _namespace
from ttsframe.answers import (
    AnswerExplanation,
    AnswerPolicy,
    AnswerStatistics,
    answer_key,
    answer_kind,
    answer_statistics,
    explain_answer,
    extract_answer,
    gold_key,
    is_equivalent,
    is_same_key,
    normalize_answer,
)
from ttsframe.curves.adaptive import allocate_attempts, select_allocated, stopping_points
from ttsframe.curves.cost import cost_curve, efficiency_gain, pareto_frontier, with_costs
from ttsframe.curves.gaps import selection_gap
from ttsframe.curves.levels import difficulty_levels, halve_attempts, level_curve
from ttsframe.curves.optimal import (
    compute_optimal_choices,
    compute_optimal_curve,
    select_compute_optimal,
)
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import TtsframeError
from ttsframe.estimators.aggregators import Aggregator, IdentifierMean, Identity, PassAtK
from ttsframe.estimators.bestofk import best_of_k
from ttsframe.estimators.gpassk import g_pass_at_k, mean_g_pass_at_k
from ttsframe.estimators.passk import closed_form_passatk, pass_at_k, pass_hat_k
from ttsframe.process import (
    Completer,
    Prefix,
    StepAgreement,
    annotate,
    estimate_steps,
    openai_completer,
    rank_answers,
    step_agreement,
)
from ttsframe.readers import (
    READERS,
    SkippedRowsWarning,
    UnmatchedGoldWarning,
    read_trajectories,
    scan_trajectories,
)
from ttsframe.readers.steps import (
    STEP_FORMATS,
    read_steps,
    scan_steps,
    step_paths,
    write_steps,
)
from ttsframe.report import Report, build_report
from ttsframe.schema import drop_duplicate_completions, renumber_attempts
from ttsframe.scoring import score_trajectories
from ttsframe.simulation.trajectories import simulate_trajectories
from ttsframe.statistics.comparison import compare
from ttsframe.statistics.extrapolation import (
    PassAtKFit,
    beta_binomial_passatk,
    check_extrapolation,
    fit_pass_at_k,
)
from ttsframe.statistics.intervals import normal_interval, student_t_interval, wilson_interval
from ttsframe.statistics.power import PairedDesign
from ttsframe.statistics.uncertainty import bootstrap_interval, standard_error
from ttsframe.statistics.variance import variance_components
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
from ttsframe.verifier import (
    VerifierReport,
    best_threshold,
    first_error,
    length_bias,
    over_optimization,
    processbench_f1,
    reliability_curve,
    score_distribution,
    step_profile,
    verifier_metrics,
    verifier_report,
)
from ttsframe.votes.curation import best_trajectories
from ttsframe.votes.expectation import expected_accuracy
from ttsframe.votes.selectors import (
    SELECTORS,
    best_of_n,
    borda_vote,
    confidence_vote,
    first_valid,
    majority_of_the_bests,
    majority_vote,
    minimum_bayes_risk,
    oracle,
    select_answers,
    top_fraction_vote,
    weighted_vote,
)
from ttsframe.votes.tally import tally_votes

if _TYPE_CHECKING:
    from ttsframe import batch as batch
    from ttsframe import evaluator as evaluator

    __version__: str

__all__ = [
    "READERS",
    "SELECTORS",
    "STEP_FORMATS",
    "STEP_REDUCTIONS",
    "Aggregator",
    "AnswerExplanation",
    "AnswerPolicy",
    "AnswerStatistics",
    "Completer",
    "IdentifierMean",
    "Identity",
    "PairedDesign",
    "PassAtK",
    "PassAtKFit",
    "Prefix",
    "Report",
    "SkippedRowsWarning",
    "StepAgreement",
    "TtsframeError",
    "UnmatchedGoldWarning",
    "ValidationReport",
    "VerifierReport",
    "allocate_attempts",
    "annotate",
    "answer_key",
    "answer_kind",
    "answer_statistics",
    "best_of_k",
    "best_of_n",
    "best_threshold",
    "best_trajectories",
    "beta_binomial_passatk",
    "bootstrap_interval",
    "borda_vote",
    "build_report",
    "check_extrapolation",
    "closed_form_passatk",
    "compare",
    "compute_optimal_choices",
    "compute_optimal_curve",
    "confidence_vote",
    "cost_curve",
    "difficulty_levels",
    "drop_duplicate_completions",
    "efficiency_gain",
    "estimate_steps",
    "expected_accuracy",
    "explain_answer",
    "extract_answer",
    "first_error",
    "first_valid",
    "fit_pass_at_k",
    "g_pass_at_k",
    "gold_key",
    "halve_attempts",
    "is_equivalent",
    "is_same_key",
    "length_bias",
    "level_curve",
    "majority_of_the_bests",
    "majority_vote",
    "mean_g_pass_at_k",
    "minimum_bayes_risk",
    "normal_interval",
    "normalize_answer",
    "openai_completer",
    "oracle",
    "over_optimization",
    "pareto_frontier",
    "pass_at_k",
    "pass_hat_k",
    "processbench_f1",
    "rank_answers",
    "read_steps",
    "read_trajectories",
    "reliability_curve",
    "renumber_attempts",
    "scaling_curve",
    "scan_steps",
    "scan_trajectories",
    "score_distribution",
    "score_trajectories",
    "select_allocated",
    "select_answers",
    "select_compute_optimal",
    "selection_gap",
    "simulate_trajectories",
    "standard_error",
    "step_agreement",
    "step_first",
    "step_geometric_mean",
    "step_last",
    "step_max",
    "step_mean",
    "step_min",
    "step_paths",
    "step_prod",
    "step_profile",
    "step_sum",
    "stopping_points",
    "student_t_interval",
    "tally_votes",
    "top_fraction_vote",
    "validate_trajectories",
    "variance_components",
    "verifier_metrics",
    "verifier_report",
    "weighted_vote",
    "wilson_interval",
    "with_costs",
    "write_steps",
]


def __getattr__(name: str) -> str | _ModuleType:
    """Load on first use what takes long to load."""
    if name == "__version__":
        from importlib.metadata import version

        return version("ttsframe")
    if name in {"batch", "evaluator"}:
        from importlib import import_module

        return import_module(f"ttsframe.{name}")
    raise AttributeError(f"module 'ttsframe' has no attribute {name!r}")
