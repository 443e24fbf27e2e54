"""Test-time-compute scaling runs as Polars frames.

Data flows one way: files become `trajectories` (one row per attempt), attempts vote, votes become
`problems` (one row per problem and budget), problems become a `curve` (one row per budget), and
curves become charts and reports. The most used names are here; each subpackage holds the rest.

- ``tts.readers``: read trajectories and labeled steps from the files of other tools.
- ``tts.answers``: extract final answers, give equal answers one key, grade them.
- ``tts.votes``: tallies, selectors, expected accuracy over subsets.
- ``tts.estimators``: pass@k and its relatives, aggregators.
- ``tts.statistics``: intervals, paired comparisons, power, variance, extrapolation.
- ``tts.curves``: accuracy against budget, by difficulty, by cost; compute-optimal choices.
- ``tts.verifier``: how good the scores of a verifier are.
- ``tts.process``: labels of steps from rollouts.
- ``tts.search``: search against a verifier, with the tree kept as a table.
- ``tts.charts``: Altair charts, one function per question.
- ``tts.batch``: Parquet-to-Parquet jobs of any size.
- ``tts.evaluator``: accuracy by task complexity.
- ``tts.testing``: contract tests for selectors, reductions and graders of your own.
- ``tts.errors``: all errors and warnings.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ttsframe import _program

_program.begin()

from ttsframe import _forks as _forks  # noqa: E402 - listens for forks
from ttsframe import _namespace as _namespace  # noqa: E402 - loads Polars

if _TYPE_CHECKING:
    from ttsframe import answers as answers
    from ttsframe import batch as batch
    from ttsframe import charts as charts
    from ttsframe import curves as curves
    from ttsframe import errors as errors
    from ttsframe import estimators as estimators
    from ttsframe import evaluator as evaluator
    from ttsframe import process as process
    from ttsframe import readers as readers
    from ttsframe import search as search
    from ttsframe import statistics as statistics
    from ttsframe import testing as testing
    from ttsframe import verifier as verifier
    from ttsframe import votes as votes
    from ttsframe.answers import (
        answer_key,
        explain_answer,
        extract_answer,
        gold_key,
        is_equivalent,
        normalize_answer,
    )
    from ttsframe.curves import (
        cost_curve,
        difficulty_levels,
        level_curve,
        optimal_curve,
        pareto_frontier,
        scaling_curve,
        selection_gap,
    )
    from ttsframe.errors import TtsframeError
    from ttsframe.estimators import (
        Aggregator,
        IdentifierMean,
        Identity,
        PassAtK,
        best_of_k,
        closed_form_passatk,
        g_pass_at_k,
        grade_failures,
        mean_g_pass_at_k,
        pass_at_k,
        pass_hat_k,
    )
    from ttsframe.estimators import aggregators as aggregators
    from ttsframe.readers import (
        READERS,
        STEP_FORMATS,
        WRITERS,
        read_steps,
        read_trajectories,
        scan_steps,
        scan_trajectories,
        write_steps,
        write_trajectories,
    )
    from ttsframe.report import Report, build_report
    from ttsframe.schema import drop_duplicate_completions, renumber_attempts
    from ttsframe.scoring import score_trajectories
    from ttsframe.simulation import simulate_trajectories
    from ttsframe.statistics import (
        bootstrap_interval,
        compare,
        fit_pass_at_k,
        normal_interval,
        rank,
        standard_error,
        student_t_interval,
        wilson_interval,
    )
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
    from ttsframe.validation import ValidationReport, run_health, validate_trajectories
    from ttsframe.verifier import VerifierReport, verifier_metrics, verifier_report
    from ttsframe.votes import (
        SELECTORS,
        best_of_majority,
        best_of_n,
        borda_vote,
        confidence_vote,
        expected_accuracy,
        first_valid,
        majority_of_the_bests,
        majority_vote,
        minimum_bayes_risk,
        oracle,
        select_answers,
        tally_votes,
        top_fraction_vote,
        weighted_vote,
    )

    __version__: str

__all__ = [
    "READERS",
    "SELECTORS",
    "STEP_FORMATS",
    "STEP_REDUCTIONS",
    "WRITERS",
    "Aggregator",
    "IdentifierMean",
    "Identity",
    "PassAtK",
    "Report",
    "TtsframeError",
    "ValidationReport",
    "VerifierReport",
    "answer_key",
    "best_of_k",
    "best_of_majority",
    "best_of_n",
    "bootstrap_interval",
    "borda_vote",
    "build_report",
    "closed_form_passatk",
    "compare",
    "confidence_vote",
    "cost_curve",
    "difficulty_levels",
    "drop_duplicate_completions",
    "expected_accuracy",
    "explain_answer",
    "extract_answer",
    "first_valid",
    "fit_pass_at_k",
    "g_pass_at_k",
    "gold_key",
    "grade_failures",
    "is_equivalent",
    "level_curve",
    "majority_of_the_bests",
    "majority_vote",
    "mean_g_pass_at_k",
    "minimum_bayes_risk",
    "normal_interval",
    "normalize_answer",
    "optimal_curve",
    "oracle",
    "pareto_frontier",
    "pass_at_k",
    "pass_hat_k",
    "rank",
    "read_steps",
    "read_trajectories",
    "renumber_attempts",
    "run_health",
    "scaling_curve",
    "scan_steps",
    "scan_trajectories",
    "score_trajectories",
    "select_answers",
    "selection_gap",
    "simulate_trajectories",
    "standard_error",
    "step_first",
    "step_geometric_mean",
    "step_last",
    "step_max",
    "step_mean",
    "step_min",
    "step_prod",
    "step_sum",
    "student_t_interval",
    "tally_votes",
    "top_fraction_vote",
    "validate_trajectories",
    "verifier_metrics",
    "verifier_report",
    "weighted_vote",
    "wilson_interval",
    "write_steps",
    "write_trajectories",
]

# Loading every subpackage takes longer than loading Polars, and few programs use them all: one loads when
# it, or one of its names here, is first used. Type checkers read the imports above instead.
_SUBPACKAGES = frozenset({
    "answers",
    "batch",
    "charts",
    "curves",
    "errors",
    "estimators",
    "evaluator",
    "process",
    "readers",
    "search",
    "statistics",
    "testing",
    "verifier",
    "votes",
})
_HOMES = {
    "answers": "answer_key explain_answer extract_answer gold_key is_equivalent normalize_answer",
    "curves": (
        "cost_curve difficulty_levels level_curve optimal_curve pareto_frontier scaling_curve "
        "selection_gap"
    ),
    "errors": "TtsframeError",
    "estimators": (
        "Aggregator IdentifierMean Identity PassAtK aggregators best_of_k closed_form_passatk "
        "g_pass_at_k grade_failures mean_g_pass_at_k pass_at_k pass_hat_k"
    ),
    "readers": (
        "READERS STEP_FORMATS WRITERS read_steps read_trajectories scan_steps scan_trajectories write_steps "
        "write_trajectories"
    ),
    "report": "Report build_report",
    "schema": "drop_duplicate_completions renumber_attempts",
    "scoring": "score_trajectories",
    "simulation": "simulate_trajectories",
    "statistics": (
        "bootstrap_interval compare fit_pass_at_k normal_interval rank standard_error "
        "student_t_interval wilson_interval"
    ),
    "steps": (
        "STEP_REDUCTIONS step_first step_geometric_mean step_last step_max step_mean step_min "
        "step_prod step_sum"
    ),
    "validation": "ValidationReport run_health validate_trajectories",
    "verifier": "VerifierReport verifier_metrics verifier_report",
    "votes": (
        "SELECTORS best_of_majority best_of_n borda_vote confidence_vote expected_accuracy first_valid "
        "majority_of_the_bests majority_vote minimum_bayes_risk oracle select_answers tally_votes "
        "top_fraction_vote weighted_vote"
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

if not _TYPE_CHECKING:
    # Hidden from type checkers, which then report a name that does not exist.

    def __getattr__(name: str) -> object:
        """Load a subpackage, or that of a name, on first use."""
        if name == "__version__":
            from importlib.metadata import version

            return version("ttsframe")
        if name in _SUBPACKAGES:
            return _import_module(f"ttsframe.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'ttsframe' has no attribute {name!r}")
        value = getattr(_import_module(f"ttsframe.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names only."""
    return sorted({*__all__, *_SUBPACKAGES, "aggregators", "__version__", "__doc__", "__all__"})
