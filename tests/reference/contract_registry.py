"""One row per public function: what the contract tests are run over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple, get_args

import polars as pl

import ttsframe as tts
from ttsframe._typing import ExtractionRule
from ttsframe.validation.health import HEALTH_SCHEMA

ENGINES: Final = ("in-memory", "streaming")

BUDGETS: Final = (1, 3, 8)

PROBLEMS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "problem_id": pl.String(),
    "budget": pl.UInt32(),
    "subsets": pl.String(),
    "selector": pl.String(),
    "reduction": pl.String(),
    "attempt": pl.UInt32(),
    "answer": pl.String(),
    "answer_key": pl.String(),
    "is_correct": pl.Boolean(),
    "value": pl.Float64(),
    "status": pl.String(),
    "n_attempts": pl.UInt32(),
    "n_valid": pl.UInt32(),
    "n_votes": pl.UInt32(),
    "weight": pl.Float64(),
    "agreement": pl.Float64(),
}
"""The columns of `problems` behind those of `by`."""

VOTES_SCHEMA: Final[dict[str, pl.DataType]] = {
    "problem_id": pl.String(),
    "budget": pl.UInt32(),
    "reduction": pl.String(),
    "answer_key": pl.String(),
    "answer": pl.String(),
    "n_votes": pl.UInt32(),
    "weight": pl.Float64(),
    "top_score": pl.Float64(),
    "first_attempt": pl.UInt32(),
    "is_correct": pl.Boolean(),
}

CURVE_SCHEMA: Final[dict[str, pl.DataType]] = {
    "selector": pl.String(),
    "reduction": pl.String(),
    "budget": pl.UInt32(),
    "budget_unit": pl.String(),
    "subsets": pl.String(),
    "accuracy": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_short": pl.UInt32(),
    "n_unscored": pl.UInt32(),
    "n_undefined": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
}

STRATIFIED_SCHEMA: Final[dict[str, pl.DataType]] = {
    "average": pl.String(),
    **CURVE_SCHEMA,
    "n_strata": pl.UInt32(),
    "df": pl.Float64(),
}

NARROW_SCHEMA: Final[dict[str, pl.DataType]] = {
    "width": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "is_narrow": pl.Boolean(),
    "accuracy": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_available": pl.UInt32(),
    "tokens_per_problem": pl.Float64(),
}

LIMIT_SCHEMA: Final[dict[str, pl.DataType]] = {
    "accuracy": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
    "n_tied": pl.UInt32(),
    "n_undecided": pl.UInt32(),
    "accuracy_if_undecided_wrong": pl.Float64(),
    "accuracy_if_undecided_right": pl.Float64(),
}

BAYES_SCHEMA: Final[dict[str, pl.DataType]] = {
    "posterior_mean": pl.Float64(),
    "posterior_deviation": pl.Float64(),
    "credible_low": pl.Float64(),
    "credible_high": pl.Float64(),
    "mean": pl.Float64(),
    "n_attempts": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
}

RANKS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "budget": pl.UInt32(),
    "subsets": pl.String(),
    "selector": pl.String(),
    "reduction": pl.String(),
    "rank": pl.UInt32(),
    "rank_low": pl.UInt32(),
    "rank_high": pl.UInt32(),
    "accuracy": pl.Float64(),
    "n_better": pl.UInt32(),
    "n_worse": pl.UInt32(),
    "sets": pl.List(pl.UInt32()),
    "share_of_resamples_best": pl.Float64(),
    "n_ranked": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
}

PROFILE_SCHEMA: Final[dict[str, pl.DataType]] = {
    "is_correct": pl.Boolean(),
    "position": pl.Float64(),
    "mean_score": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "n_unscored_steps": pl.UInt32(),
}


GAP_SCHEMA: Final[dict[str, pl.DataType]] = {
    "selector": pl.String(),
    "reduction": pl.String(),
    "budget": pl.UInt32(),
    "budget_unit": pl.String(),
    "subsets": pl.String(),
    "accuracy": pl.Float64(),
    "selection_gap": pl.Float64(),
    "generation_gap": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_short": pl.UInt32(),
    "n_unscored": pl.UInt32(),
    "n_undefined": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
}


CHOICES_SCHEMA: Final[dict[str, pl.DataType]] = {
    "level": pl.UInt32(),
    "budget": pl.UInt32(),
    "budget_unit": pl.String(),
    "subsets": pl.String(),
    "problem_fold": pl.UInt32(),
    "selector": pl.String(),
    "reduction": pl.String(),
    "accuracy_seen": pl.Float64(),
    "accuracy": pl.Float64(),
    "n_seen": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "n_strategies": pl.UInt32(),
    "n_tied": pl.UInt32(),
}


COMPARISON_SCHEMA: Final[dict[str, pl.DataType]] = {
    "budget": pl.UInt32(),
    "selector": pl.String(),
    "reduction": pl.String(),
    "baseline": pl.String(),
    "baseline_reduction": pl.String(),
    "subsets": pl.String(),
    "n_pairs": pl.UInt32(),
    "accuracy": pl.Float64(),
    "baseline_accuracy": pl.Float64(),
    "difference": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "interval": pl.String(),
    "test": pl.String(),
    "p_value": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "n_wins": pl.UInt32(),
    "n_ties": pl.UInt32(),
    "n_losses": pl.UInt32(),
    "n_short": pl.UInt32(),
    "n_unscored": pl.UInt32(),
    "n_undefined": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
    "n_unpaired": pl.UInt32(),
}

METRICS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "reduction": pl.String(),
    "auroc": pl.Float64(),
    "auroc_within": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "average_precision": pl.Float64(),
    "brier": pl.Float64(),
    "ece_equal_width": pl.Float64(),
    "ece_equal_mass": pl.Float64(),
    "calibration_status": pl.String(),
    "n_attempts": pl.UInt32(),
    "n_right": pl.UInt32(),
    "n_out_of_range": pl.UInt32(),
    "n_unscored": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "n_judged": pl.UInt32(),
    "n_all_right": pl.UInt32(),
    "n_all_wrong": pl.UInt32(),
}

RELIABILITY_SCHEMA: Final[dict[str, pl.DataType]] = {
    "reduction": pl.String(),
    "binning": pl.String(),
    "bin_low": pl.Float64(),
    "bin_high": pl.Float64(),
    "mean_score": pl.Float64(),
    "accuracy": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "df": pl.Float64(),
}

DISTRIBUTION_SCHEMA: Final[dict[str, pl.DataType]] = {
    "reduction": pl.String(),
    "is_correct": pl.Boolean(),
    "bin_low": pl.Float64(),
    "bin_high": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "share": pl.Float64(),
}

THRESHOLD_SCHEMA: Final[dict[str, pl.DataType]] = {
    "reduction": pl.String(),
    "metric": pl.String(),
    "threshold": pl.Float64(),
    "value": pl.Float64(),
    "accept_all": pl.Float64(),
    "accept_none": pl.Float64(),
    "fitted_value": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "n_fitted_attempts": pl.UInt32(),
    "n_fitted_problems": pl.UInt32(),
}

BIAS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "reduction": pl.String(),
    "unit": pl.String(),
    "outcome": pl.String(),
    "correlation": pl.Float64(),
    "n_attempts": pl.UInt32(),
    "n_unmeasured": pl.UInt32(),
}

TURNS_SCHEMA: Final[dict[str, pl.DataType]] = {
    **CURVE_SCHEMA,
    "peak_budget": pl.UInt32(),
    "drop": pl.Float64(),
    "drop_standard_error": pl.Float64(),
    "drop_ci_low": pl.Float64(),
    "drop_ci_high": pl.Float64(),
    "drop_p_value": pl.Float64(),
    "is_turned_down": pl.Boolean(),
}

ERRORS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "threshold": pl.Float64(),
    "first_error_accuracy": pl.Float64(),
    "no_error_accuracy": pl.Float64(),
    "f1": pl.Float64(),
    "n_wrong": pl.UInt32(),
    "n_right": pl.UInt32(),
    "n_unscored": pl.UInt32(),
    "n_unlabelled": pl.UInt32(),
}

RANKED_SCHEMA: Final[dict[str, pl.DataType]] = {
    "problem_id": pl.String(),
    "budget": pl.UInt32(),
    "reduction": pl.String(),
    "answer_key": pl.String(),
    "answer": pl.String(),
    "is_correct": pl.Boolean(),
    "n_votes": pl.UInt32(),
    "weight": pl.Float64(),
    "top_score": pl.Float64(),
    "first_attempt": pl.UInt32(),
    "rank_majority_vote": pl.UInt32(),
    "rank_weighted_vote": pl.UInt32(),
    "rank_best_of_n": pl.UInt32(),
}

STEPS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "problem_id": pl.String(),
    "solution_id": pl.UInt32(),
    "step": pl.Int64(),
    "n_rollouts": pl.UInt32(),
    "n_correct": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
    "hard": pl.Boolean(),
    "soft": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "hard@1": pl.Float64(),
    "hard@2": pl.Float64(),
    "advantage": pl.Float64(),
    "advantage_ci_low": pl.Float64(),
    "advantage_ci_high": pl.Float64(),
    "is_correct": pl.Boolean(),
    "is_first_error": pl.Boolean(),
    "first_error_chance": pl.Float64(),
}

COMPONENTS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
    "n_attempts": pl.Float64(),
    "mean": pl.Float64(),
    "variance_between": pl.Float64(),
    "variance_within": pl.Float64(),
    "standard_error": pl.Float64(),
    "standard_error_double_attempts": pl.Float64(),
    "standard_error_double_problems": pl.Float64(),
    "standard_error_all_attempts": pl.Float64(),
}


LEVELS_SCHEMA: Final[dict[str, pl.DataType]] = {
    "problem_id": pl.String(),
    "fold": pl.UInt32(),
    "level": pl.UInt32(),
    "difficulty": pl.Float64(),
    "n_used": pl.UInt32(),
    "metric": pl.String(),
    "basis": pl.String(),
    "caveat": pl.String(),
    "n_levels": pl.UInt32(),
    "n_empty_levels": pl.UInt32(),
}

COSTS: Final[dict[str, pl.DataType]] = {
    "cost": pl.Float64(),
    "verifier_cost": pl.Float64(),
    "cost_unit": pl.String(),
}

GAIN_SCHEMA: Final[dict[str, pl.DataType]] = {
    "selector": pl.String(),
    "reduction": pl.String(),
    "subsets": pl.String(),
    "budget_unit": pl.String(),
    "accuracy": pl.Float64(),
    "baseline_budget": pl.Float64(),
    "budget": pl.Float64(),
    "gain": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "status": pl.String(),
    "bound": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
}

ALLOCATION_SCHEMA: Final[dict[str, pl.DataType]] = {
    "problem_id": pl.String(),
    "budget": pl.UInt32(),
    "policy": pl.String(),
    "n_attempts": pl.UInt32(),
}


@cache
def run() -> pl.DataFrame:
    """Return a keyed run with what real runs have: gaps in answers, scores, steps and grades."""
    every = pl.int_range(pl.len())
    return tts.simulate_trajectories(
        12, 8, seed=11, keys=True, missing_share=0.2, n_wrong_answers=3
    ).with_columns(
        # Scores of two decimals tie; the last problem has none, the one before has no grades.
        score=pl.when((every % 7 != 3) & (pl.col("problem_id") != "sim-000011")).then(
            pl.col("score").round(1)
        ),
        is_correct=pl.when(pl.col("problem_id") != "sim-000010").then("is_correct"),
    )


@cache
def problems() -> pl.DataFrame:
    """Return what every selector picks from `run`, with budgets that leave problems short."""
    ragged = run().filter((pl.col("problem_id") != "sim-000003") | (pl.col("attempt") < 5))
    return tts.select_answers(ragged, selectors=list(tts.SELECTORS), budgets=BUDGETS)


@cache
def levels() -> pl.DataFrame:
    """Return three levels of the problems of `run`, one unknown and one of a single problem."""
    number = pl.col("problem_id").str.slice(4).cast(pl.UInt32)
    level = pl.when(number == 0).then(pl.lit(3)).when(number != 4).then(number % 2 + 1)
    return run().select("problem_id").unique().select("problem_id", level=level.cast(pl.UInt32))


@cache
def run_levels() -> pl.DataFrame:
    """Return levels of `run` that are for all attempts."""
    return tts.difficulty_levels(run(), estimate="same_sample", n_levels=3)


@cache
def allocation() -> pl.DataFrame:
    """Return how many attempts decide each problem of `run`."""
    return tts.curves.stopping_points(run(), budgets=BUDGETS)


@cache
def models() -> pl.DataFrame:
    """Return the attempts of `run` as those of two models."""
    return pl.concat([run().with_columns(seed=pl.lit(number, pl.Int32)) for number in (0, 1)])


@cache
def costs() -> pl.DataFrame:
    """Return `problems` with what they cost."""
    return tts.curves.add_costs(problems(), trajectories=run())


@cache
def texts() -> pl.DataFrame:
    """Return a small run of completions, as a reader gives it."""
    return pl.DataFrame({
        "problem_id": ["a"] * 4 + ["b"] * 2,
        "attempt": pl.Series([0, 1, 2, 3, 0, 1], dtype=pl.UInt32),
        "completion": [
            r"So $\boxed{\frac{1}{2}}$.",
            r"Thus \boxed{0.5}",
            "I give up.",
            r"So $\boxed{\frac{1}{2}}$.",
            r"\boxed{}",
            r"\boxed{7}",
        ],
        "gold": ["1/2"] * 4 + ["8"] * 2,
        "step_scores": [[0.5, 0.25], [0.75], [], None, [0.5, None], [1.0]],
    })


@cache
def labelled() -> pl.DataFrame:
    """Return solutions with step scores and step labels, some of them missing."""
    return run().with_columns(
        first_bad=pl.when(pl.col("is_correct")).then(-1).otherwise(pl.col("attempt") % 3)
    )


@cache
def values() -> pl.DataFrame:
    """Return what an aggregator reads."""
    return run().select("problem_id", value=pl.col("is_correct").cast(pl.Float64))


def after(
    table: Callable[[], pl.DataFrame], make_frame: Callable[[], pl.DataFrame]
) -> Callable[[], pl.DataFrame]:
    """Make a frame once a table is there that `call` needs, so that it need not collect it."""

    def make() -> pl.DataFrame:
        table()
        return make_frame()

    return make


@cache
def rollouts() -> pl.DataFrame:
    """Return completions of the steps of two solutions of a problem, some of them not graded."""
    every = pl.int_range(pl.len())
    return run().select(
        "problem_id",
        solution_id=pl.col("attempt") // 4,
        step=pl.col("attempt").cast(pl.Int64) % 4 // 2 - 1,
        rollout=pl.col("attempt") % 2,
        is_correct=pl.when(every % 5 != 0).then("is_correct"),
    )


def tree_of_steps() -> pl.DataFrame:
    """Return three trees with a node for each of the first four numbers, and branches."""
    parents = [None, 0, 0, 2]
    return pl.DataFrame(
        [
            {
                "problem_id": f"p{tree}",
                "solution_id": "s",
                "node": node,
                "parent": parent,
                "step": [-1, 0, 0, 1][node],
                "problem": "6 x 7?",
                "text": None if node == 0 else f"text {node}",
                "soft": node / 4,
            }
            for tree in range(3)
            for node, parent in enumerate(parents)
        ],
        schema_overrides={"parent": pl.Int64},
    )


class FrameFunction(NamedTuple):
    """A function of the third shape, on a frame that it can be called with."""

    name: str
    call: Callable[[Any], Any]
    make_frame: Callable[[], pl.DataFrame]
    schema: Mapping[str, pl.DataType] | None
    """Columns and dtypes of the result; None: those of the frame, and `added`."""
    added: Mapping[str, pl.DataType] = {}
    takes_by: bool = False
    """Whether `call` can be given `by`, whose columns then come first."""
    is_by_row_order: bool = False
    """Whether the order of rows decides, as the function promises to its callers."""


def _on_problems(aggregator: Any) -> Callable[[Any], Any]:
    return lambda frame: aggregator(frame, ["problem_id"])


AGGREGATORS: Final[tuple[tts.Aggregator, ...]] = (
    tts.Identity(),
    tts.IdentifierMean(),
    tts.PassAtK(k=2),
    tts.aggregators.PassHatK(k=2),
    tts.aggregators.GPassAtK(k=3, tau=0.5),
    tts.aggregators.AtLeastK(k=2),
    tts.aggregators.Majority(),
    tts.aggregators.Max(),
    tts.aggregators.Median(),
)

_selects = partial(FrameFunction, make_frame=run, schema=PROBLEMS_SCHEMA, takes_by=True)

FRAME_FUNCTIONS: Final[tuple[FrameFunction, ...]] = (
    FrameFunction(
        "renumber_attempts",
        tts.renumber_attempts,
        lambda: run().filter(pl.col("attempt") % 3 != 1),
        None,
    ),
    FrameFunction(
        "drop_duplicate_completions",
        tts.drop_duplicate_completions,
        texts,
        None,
    ),
    FrameFunction(
        "score_trajectories",
        tts.score_trajectories,
        texts,
        None,
        {
            "answer": pl.String(),
            "answer_key": pl.String(),
            "gold_key": pl.String(),
            "is_correct": pl.Boolean(),
            "score": pl.Float64(),
        },
    ),
    FrameFunction(
        "tally_votes",
        partial(tts.tally_votes, budgets=BUDGETS),
        run,
        VOTES_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "run_health",
        tts.run_health,
        lambda: run().with_columns(
            completion=pl.format("the answer is {}.", "attempt"), extraction_rule=pl.lit("phrase")
        ),
        HEALTH_SCHEMA,
        takes_by=True,
    ),
    _selects(
        "select_answers",
        partial(tts.select_answers, selectors=list(tts.SELECTORS), budgets=BUDGETS),
    ),
    FrameFunction(
        "expected_accuracy",
        partial(tts.expected_accuracy, selectors=list(tts.SELECTORS), budgets=BUDGETS),
        run,
        {**PROBLEMS_SCHEMA, "monte_carlo_error": pl.Float64()},
        takes_by=True,
    ),
    *[_selects(name, partial(getattr(tts.votes, name), budgets=BUDGETS)) for name in tts.SELECTORS],
    FrameFunction(
        "scaling_curve",
        partial(tts.scaling_curve, include="available"),
        problems,
        CURVE_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "simultaneous_curve",
        partial(tts.curves.simultaneous_curve, n_draws=20),
        lambda: problems().filter(pl.col("problem_id") != "sim-000003"),
        {**CURVE_SCHEMA, "quantile": pl.Float64()},
        takes_by=True,
    ),
    FrameFunction(
        "stratified_curve",
        partial(tts.curves.stratified_curve, strata="subject", include="available"),
        lambda: problems().with_columns(subject=pl.col("problem_id").str.slice(-1)),
        STRATIFIED_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "rank",
        partial(tts.rank, n_draws=20),
        problems,
        RANKS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "selection_gap",
        partial(tts.selection_gap, include="available"),
        problems,
        GAP_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "optimal_curve",
        lambda frame, by=(): tts.optimal_curve(frame, levels=levels(), by=by, include="available"),
        problems,
        {**CURVE_SCHEMA, "basis": pl.String(), "caveat": pl.String()},
        takes_by=True,
    ),
    FrameFunction(
        "select_optimal",
        lambda frame, by=(): tts.curves.select_optimal(
            frame, levels=levels(), by=by, include="available"
        ),
        problems,
        {
            "problem_id": pl.String(),
            "budget": pl.UInt32(),
            "subsets": pl.String(),
            "selector": pl.String(),
            "reduction": pl.String(),
            "level": pl.UInt32(),
            "value": pl.Float64(),
            "status": pl.String(),
        },
        takes_by=True,
    ),
    FrameFunction(
        "optimal_choices",
        lambda frame, by=(): tts.curves.optimal_choices(
            frame, levels=levels(), by=by, include="available"
        ),
        problems,
        CHOICES_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "best_trajectories",
        partial(tts.votes.best_trajectories, n_per_problem=2),
        run,
        None,
    ),
    FrameFunction("halve_attempts", tts.curves.halve_attempts, run, None, {"fold": pl.UInt32()}),
    FrameFunction(
        "difficulty_levels",
        tts.difficulty_levels,
        run,
        LEVELS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "level_curve",
        lambda frame, by=(): tts.level_curve(
            frame, levels=run_levels(), include="available", by=by
        ),
        after(run_levels, problems),
        {"level": pl.UInt32(), **CURVE_SCHEMA, "basis": pl.String(), "caveat": pl.String()},
        takes_by=True,
    ),
    FrameFunction(
        "add_costs",
        lambda frame: tts.curves.add_costs(frame, trajectories=run()),
        after(run, problems),
        None,
        COSTS,
    ),
    FrameFunction(
        "cost_curve",
        partial(tts.cost_curve, include="available"),
        costs,
        {**CURVE_SCHEMA, "budget": pl.Float64(), "nominal_budget": pl.UInt32()},
        takes_by=True,
    ),
    FrameFunction(
        "pareto_frontier",
        tts.pareto_frontier,
        lambda: tts.cost_curve(costs(), include="available"),
        None,
        {"is_efficient": pl.Boolean()},
    ),
    FrameFunction(
        "efficiency_gain",
        partial(tts.curves.efficiency_gain, n_resamples=50),
        problems,
        GAIN_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "stopping_points",
        partial(tts.curves.stopping_points, budgets=BUDGETS),
        run,
        {**ALLOCATION_SCHEMA, "is_decided": pl.Boolean()},
        takes_by=True,
    ),
    FrameFunction(
        "tune_stopping",
        partial(tts.curves.tune_stopping, budget=8, rule="early_stopping"),
        run,
        {
            **ALLOCATION_SCHEMA,
            "is_decided": pl.Boolean(),
            "problem_fold": pl.UInt32(),
            "threshold": pl.Float64(),
        },
        takes_by=True,
    ),
    FrameFunction(
        "stop_when_narrow",
        partial(tts.curves.stop_when_narrow, width=[0.1, 0.9], min_attempts=2),
        run,
        NARROW_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "estimator_curve",
        partial(tts.curves.estimator_curve, k=[1, 2]),
        run,
        CURVE_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "majority_limit",
        tts.curves.majority_limit,
        run,
        LIMIT_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "ensemble_vote",
        partial(tts.curves.ensemble_vote, budget=2, column="seed"),
        models,
        {
            **PROBLEMS_SCHEMA,
            "problem_fold": pl.UInt32(),
            "models": pl.List(pl.Struct({"model": pl.Int32(), "n_attempts": pl.UInt32()})),
        },
    ),
    FrameFunction(
        "bayes_at_n",
        tts.statistics.bayes_at_n,
        run,
        BAYES_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "allocate_attempts",
        partial(tts.curves.allocate_attempts, budgets=2, max_attempts=4),
        lambda: tts.difficulty_levels(run()),
        {"problem_id": pl.String(), "fold": pl.UInt32()}
        | ALLOCATION_SCHEMA
        | {"basis": pl.String(), "caveat": pl.String()},
        takes_by=True,
    ),
    FrameFunction(
        "select_allocated",
        lambda frame: tts.curves.select_allocated(frame, allocation=allocation()),
        after(allocation, run),
        PROBLEMS_SCHEMA,
    ),
    FrameFunction(
        "compare",
        lambda frame, by=(): tts.compare(frame, by=by),
        problems,
        COMPARISON_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "variance_components",
        tts.statistics.variance_components,
        run,
        COMPONENTS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "step_profile",
        partial(tts.verifier.step_profile, n_bins=4),
        run,
        PROFILE_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "verifier_metrics",
        partial(tts.verifier_metrics, reductions=list(tts.STEP_REDUCTIONS)),
        run,
        METRICS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "reliability_curve",
        partial(tts.verifier.reliability_curve, binning=["equal_width", "equal_mass"]),
        run,
        RELIABILITY_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "score_distribution",
        tts.verifier.score_distribution,
        run,
        DISTRIBUTION_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "best_threshold",
        partial(tts.verifier.best_threshold, reductions=["last", "mean"]),
        run,
        THRESHOLD_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "length_bias",
        partial(tts.verifier.length_bias, reductions=["last", "prod"]),
        run,
        BIAS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "over_optimization",
        tts.verifier.over_optimization,
        problems,
        TURNS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "processbench_f1",
        partial(tts.verifier.processbench_f1, error_threshold=[0.4, 0.5], labels="first_bad"),
        labelled,
        ERRORS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "rank_answers",
        partial(tts.process.rank_answers, budgets=BUDGETS),
        run,
        RANKED_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "estimate_steps",
        partial(tts.process.estimate_steps, n_rollouts=[1, 2]),
        rollouts,
        STEPS_SCHEMA,
        takes_by=True,
    ),
    FrameFunction(
        "step_paths",
        tts.process.step_paths,
        tree_of_steps,
        {
            "problem_id": pl.String(),
            "solution_id": pl.String(),
            "step": pl.Int64(),
            "problem": pl.String(),
            "text": pl.String(),
            "soft": pl.Float64(),
        },
    ),
    *[
        FrameFunction(
            type(aggregator).__name__,
            _on_problems(aggregator),
            values,
            {"problem_id": pl.String(), "value": pl.Float64()},
        )
        for aggregator in AGGREGATORS
    ],
)


class ExprFunction(NamedTuple):
    """A function of the first or second shape, by its first column."""

    name: str
    call: Callable[[Any], pl.Expr]
    column: pl.Series
    dtype: pl.DataType
    others: Mapping[str, pl.Series] = {}
    """Columns that `call` reads besides."""
    is_aggregate: bool = False
    reads_group: bool = False
    """The value of a row depends on the other rows of its group."""


_STEPS: Final = pl.Series(
    "steps", [[0.5, 0.25], [None, 0.75], [], None, [None]], dtype=pl.List(pl.Float64)
)
_ANSWERS: Final = pl.Series("written", [r"\frac{1}{2}", "0.5", None, "", "x^2"])
_GRADES: Final = pl.Series("graded", [True, False, None, True, False])
_INTERVAL: Final = pl.Struct({"ci_low": pl.Float64(), "ci_high": pl.Float64()})

EXPR_FUNCTIONS: Final[tuple[ExprFunction, ...]] = (
    *[
        ExprFunction(function.__name__, function, _STEPS, pl.Float64())
        for function in tts.STEP_REDUCTIONS.values()
    ],
    ExprFunction("first_error", tts.verifier.first_error, _STEPS, pl.Int64()),
    ExprFunction(
        "extract_answer",
        tts.extract_answer,
        pl.Series("text", [r"\boxed{1}", "no", None, r"\boxed{}", "#### 5"]),
        pl.String(),
    ),
    ExprFunction(
        "extraction_rule",
        tts.answers.extraction_rule,
        pl.Series("text", [r"\boxed{1}", "no", None, r"\boxed{}", "#### 5"]),
        pl.Enum(get_args(ExtractionRule)),
    ),
    ExprFunction("normalize_answer", tts.normalize_answer, _ANSWERS, pl.String()),
    ExprFunction("answer_key", tts.answer_key, _ANSWERS, pl.String()),
    ExprFunction("gold_key", tts.gold_key, _ANSWERS, pl.String()),
    ExprFunction(
        "answer_kind",
        tts.answers.answer_kind,
        _ANSWERS,
        pl.Enum(["exact", "numeric", "symbolic", "structure", "text", "missing"]),
    ),
    ExprFunction(
        "is_equivalent",
        lambda column: tts.is_equivalent(column, "gold"),
        _ANSWERS,
        pl.Boolean(),
        {"gold": pl.Series(["0.5", "1/2", "1", "1", None])},
    ),
    ExprFunction(
        "is_same_key",
        lambda column: tts.answers.is_same_key(column, "gold"),
        pl.Series("keys", ["1/2", "3", None, "4", "5"]),
        pl.Boolean(),
        {"gold": pl.Series(["1/2", "2", "1", None, "5"])},
    ),
    ExprFunction(
        "pass_at_k", partial(tts.pass_at_k, k=2), _GRADES, pl.Float64(), is_aggregate=True
    ),
    ExprFunction(
        "pass_hat_k", partial(tts.pass_hat_k, k=2), _GRADES, pl.Float64(), is_aggregate=True
    ),
    ExprFunction(
        "g_pass_at_k",
        partial(tts.g_pass_at_k, k=3, tau=0.5),
        _GRADES,
        pl.Float64(),
        is_aggregate=True,
    ),
    ExprFunction(
        "mean_g_pass_at_k",
        partial(tts.mean_g_pass_at_k, k=3),
        _GRADES,
        pl.Float64(),
        is_aggregate=True,
    ),
    ExprFunction(
        "best_of_k",
        lambda column: tts.best_of_k(column, "marks", 2),
        _GRADES,
        pl.Float64(),
        {"marks": pl.Series([0.5, 0.25, 0.75, None, 0.5])},
        is_aggregate=True,
    ),
    ExprFunction(
        "grade_failures",
        lambda column: tts.grade_failures(column, "keys"),
        _GRADES,
        pl.Boolean(),
        {"keys": pl.Series(["1", None, None, "1", None])},
        reads_group=True,
    ),
    ExprFunction(
        "wilson_interval",
        lambda column: tts.wilson_interval(column, "n"),
        pl.Series("right", [0, 3, None, 5, 1]),
        _INTERVAL,
        {"n": pl.Series([5, 5, 5, 5, 0])},
    ),
    ExprFunction(
        "student_t_interval",
        lambda column: tts.student_t_interval(column, "error", "n"),
        pl.Series("centre", [0.5, 0.9, None, 0.1, 0.2]),
        _INTERVAL,
        {"error": pl.Series([0.1] * 5), "n": pl.Series([5, 3, 2, 2, 1])},
    ),
    ExprFunction(
        "normal_interval",
        lambda column: tts.normal_interval(column, "error"),
        pl.Series("centre", [0.5, 0.9, None, 0.1, 0.2]),
        _INTERVAL,
        {"error": pl.Series([0.1, 0.2, 0.1, 0.0, None])},
    ),
    ExprFunction(
        "degrees_of_freedom",
        tts.statistics.degrees_of_freedom,
        _GRADES,
        pl.Float64(),
        is_aggregate=True,
    ),
    ExprFunction("standard_error", tts.standard_error, _GRADES, pl.Float64(), is_aggregate=True),
    ExprFunction(
        "bootstrap_interval",
        partial(tts.bootstrap_interval, n_resamples=99),
        _GRADES,
        _INTERVAL,
        is_aggregate=True,
    ),
)


def ids(rows: tuple[Any, ...]) -> list[str]:
    """Return the names of registry rows, for pytest."""
    return [row.name for row in rows]
