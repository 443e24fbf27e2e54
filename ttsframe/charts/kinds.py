"""What a table is, recognized by its columns, and how to get from it to the table that a chart draws."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of table of this package."""

    text: str
    """What messages call it."""
    marks: tuple[frozenset[str], ...]
    """Columns that only such a table has; any one of these sets will do."""
    makers: Mapping[str, str]
    """The call that makes it, by the kind of table that is passed to it."""
    chart: str = ""
    """The chart that draws it."""


def _mark(*columns: str) -> frozenset[str]:
    return frozenset(columns)


_CURVE: Final = ("selector", "budget")

# The first that fits: a table with more columns stands before the one that it extends.
KINDS: Final[Mapping[str, Kind]] = {
    "comparison": Kind(
        "a table of comparisons (one row per paired difference)",
        (_mark("difference", "n_pairs"),),
        {"problems": "tts.compare(problems)"},
    ),
    "ranking": Kind(
        "a table of ranks (one row per model, run or selector)",
        (_mark("rank_low", "rank_high"),),
        {"problems": "tts.rank(problems)"},
        "ranking",
    ),
    "choices": Kind(
        "a table of chosen strategies (one row per level, budget and fold)",
        (_mark("problem_fold", "level", "budget"),),
        {"problems": "tts.curves.optimal_choices(problems, levels=levels)"},
        "optimal_curve",
    ),
    "complexity": Kind(
        "a table of accuracies by complexity (one row per task, K and level of complexity)",
        (_mark("complexity", "k"), _mark("complexity", "oracle_accuracy")),
        {},
        "complexity_curve",
    ),
    "levels": Kind(
        "a table of levels of difficulty (one row per problem)",
        (_mark("problem_id", "level", "difficulty"), _mark("problem_id", "level", "n_levels")),
        {"trajectories": "tts.difficulty_levels(trajectories)"},
        "difficulty_histogram",
    ),
    "rollouts": Kind(
        "a table of rollouts (one row per completion from a step)",
        (_mark("problem_id", "solution_id", "step", "rollout"),),
        {},
    ),
    "steps": Kind(
        "a table of steps (one row per step of a solution)",
        (_mark("problem_id", "solution_id", "step"),),
        {"rollouts": "tts.process.estimate_steps(rollouts)"},
        "step_values",
    ),
    "problems": Kind(
        "a table of problems (one row per problem, budget and selector)",
        (
            _mark("problem_id", "selector", "budget"),
            _mark("problem_id", "selector", "value"),
            _mark("problem_id", "value", "status"),
        ),
        {
            "trajectories": "tts.select_answers(trajectories, selectors=[...], budgets=[...])",
        },
    ),
    "votes": Kind(
        "a table of votes (one row per problem and distinct answer)",
        (_mark("problem_id", "answer_key", "n_votes"),),
        {"trajectories": "tts.tally_votes(trajectories)"},
        "answer_votes",
    ),
    "trajectories": Kind(
        "a table of trajectories (one row per attempt)",
        (
            _mark("problem_id", "attempt"),
            _mark("problem_id", "completion"),
            _mark("problem_id", "step_scores"),
            _mark("problem_id", "is_correct", "score"),
        ),
        {},
    ),
    "turns": Kind(
        "a table of declines (one row per budget and line, with the best budget so far)",
        (_mark("peak_budget"), _mark("is_turned_down")),
        {"problems": "tts.verifier.over_optimization(problems)"},
        "over_optimization",
    ),
    "gap": Kind(
        "the selection gap (one row per budget and line)",
        (_mark("selection_gap"), _mark("generation_gap")),
        {"problems": "tts.selection_gap(problems)"},
        "selection_gap",
    ),
    "frontier": Kind(
        "a Pareto frontier (one row per cost and line)",
        (_mark("is_efficient"),),
        {"curve": "tts.pareto_frontier(curve)"},
        "pareto_frontier",
    ),
    "leveled": Kind(
        "a curve by level (one row per level, budget and line)",
        (_mark("level", *_CURVE),),
        {"problems": "tts.level_curve(problems, levels=levels)"},
        "level_curves",
    ),
    "agreement": Kind(
        "a table of labels by number of rollouts (one row per number of rollouts)",
        (_mark("n_rollouts", "first_error_agreement"), _mark("n_rollouts", "repeat_agreement")),
        {"steps": "tts.process.step_agreement(steps).rollouts"},
        "label_agreement",
    ),
    "metrics": Kind(
        "a table of metrics of a verifier (one row per reduction)",
        (_mark("auroc"), _mark("auroc_within")),
        {"trajectories": "tts.verifier_metrics(trajectories)"},
        "reduction_comparison",
    ),
    "profile": Kind(
        "a table of mean step scores by position (one row per position and outcome)",
        (_mark("position", "mean_score"),),
        {"trajectories": "tts.verifier.step_profile(trajectories)"},
        "step_profile",
    ),
    "distribution": Kind(
        "a distribution of scores (one row per bin and outcome)",
        (_mark("bin_low", "bin_high", "share"),),
        {"trajectories": "tts.verifier.score_distribution(trajectories)"},
        "score_distribution",
    ),
    "reliability": Kind(
        "a reliability curve (one row per bin of scores)",
        (_mark("bin_low", "mean_score"), _mark("mean_score", "accuracy")),
        {"trajectories": "tts.verifier.reliability_curve(trajectories)"},
        "reliability",
    ),
    "thresholds": Kind(
        "a table of thresholds of a verifier (one row per reduction and metric)",
        (_mark("threshold", "metric"),),
        {},
    ),
    "length_bias": Kind(
        "a table of correlations of scores with lengths (one row per reduction and unit)",
        (_mark("correlation", "unit"),),
        {},
    ),
    "curve": Kind(
        "a curve (one row per budget and line)",
        (_mark("selector", "budget", "accuracy"), _mark("selector", "budget", "agreement")),
        {"problems": "tts.scaling_curve(problems)"},
        "scaling_curve",
    ),
}
"""Every kind of table that a chart draws, or that a user may take for one."""


def recognize_table(columns: Collection[str]) -> str | None:
    """Return the name in `KINDS` of the table that has these columns, None if it is none of them."""
    names = frozenset(columns)
    return next(
        (name for name, kind in KINDS.items() if any(mark <= names for mark in kind.marks)), None
    )


def explain_way(given: str, wanted: str) -> str:
    """Say by which calls a table becomes one that is wanted; empty where no call leads there."""
    ways: deque[tuple[str, tuple[str, ...]]] = deque([(given, ())])
    seen = {given}
    while ways:
        name, calls = ways.popleft()
        if name == wanted:
            return f"pass it to {' and its result to '.join(calls)} first"
        for after, kind in KINDS.items():
            if name in kind.makers and after not in seen:
                seen.add(after)
                ways.append((after, (*calls, kind.makers[name])))
    return ""
