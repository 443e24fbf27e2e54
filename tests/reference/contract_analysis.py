"""Print a digest of a whole analysis: run by the contract tests in processes of their own."""

from __future__ import annotations

import sys

import polars as pl

import ttsframe as tts


def analyse(run: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """Return the tables of an analysis under every selector, reduction and kind of weight."""
    options = {"selectors": list(tts.SELECTORS), "budgets": [1, 3, 8]}
    problems = tts.select_answers(run, **options)
    reduced = tts.select_answers(run, **options, reductions=list(tts.STEP_REDUCTIONS))
    softmax = tts.select_answers(run, **options, weights="softmax")
    return {
        "votes": tts.tally_votes(run, budgets=[1, 3, 8], reductions=list(tts.STEP_REDUCTIONS)),
        "ranked": tts.process.rank_answers(
            run, budgets=[1, 3, 8], reductions=list(tts.STEP_REDUCTIONS)
        ),
        "all": tts.select_answers(run, selectors=list(tts.SELECTORS)),
        "problems": problems,
        "reduced": reduced,
        "softmax": softmax,
        "curve": tts.scaling_curve(problems),
        "available": tts.scaling_curve(reduced, include="available"),
        "gap": tts.selection_gap(problems),
        "optimal": tts.optimal_curve(problems, levels=_parity(run)),
        "optimal problems": tts.curves.select_optimal(reduced, levels=_parity(run)),
        "choices": tts.curves.optimal_choices(reduced, levels=_parity(run), include="available"),
        "best": tts.votes.best_trajectories(run, n_per_problem=3, distinct="answer_key"),
        "comparison": tts.compare(problems),
        "budgets": tts.compare(reduced, column="budget", baseline=1, by=()),
        "components": tts.statistics.variance_components(run),
        "profile": tts.verifier.step_profile(run, n_bins=4),
        "metrics": tts.verifier_metrics(run, reductions=list(tts.STEP_REDUCTIONS)),
        "reliability": tts.verifier.reliability_curve(run, binning=["equal_width", "equal_mass"]),
        "distribution": tts.verifier.score_distribution(run),
        "thresholds": tts.verifier.best_threshold(run),
        "turns": tts.verifier.over_optimization(problems),
        **_levels_and_costs(run, problems),
        "pass_at_k": run
        .group_by("problem_id")
        .agg(
            tts.pass_at_k("is_correct", [1, 4]),
            tts.g_pass_at_k("is_correct", 4).alias("half"),
            tts.best_of_k("is_correct", "score", [1, 4]).alias("best"),
        )
        .unnest("is_correct", "best")
        .sort("problem_id"),
        "majority": tts.aggregators.Majority()(
            run.select("problem_id", value=pl.col("score").round(1)), ["problem_id"]
        ).sort("problem_id"),
        "mean": tts.IdentifierMean()(
            run.select("problem_id", value="is_correct"), ["problem_id"]
        ).sort("problem_id"),
    }


def _levels_and_costs(run: pl.LazyFrame, problems: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """Return the tables of difficulty, costs and adaptive budgets."""
    levels = tts.difficulty_levels(run, n_levels=3)
    halves = tts.curves.halve_attempts(run)
    halved = tts.select_answers(halves, budgets=[1, 3], by="fold")
    points = tts.curves.stopping_points(run, budgets=[3, 8])
    used = tts.curves.select_allocated(
        run, allocation=points, selectors=["majority_vote", "best_of_n"]
    )
    spent = tts.cost_curve(tts.curves.add_costs(used, budget_unit="attempts"), include="available")
    return {
        "levels": levels,
        "predicted levels": tts.difficulty_levels(run, metric="mean_score", n_levels=3),
        "by level": tts.level_curve(halved, levels=levels, include="available"),
        "allocation": tts.curves.allocate_attempts(levels, budgets=[1, 2], max_attempts=4),
        "points": points,
        "used": used,
        "spent": spent,
        "frontier": tts.pareto_frontier(spent),
        "gains": tts.curves.efficiency_gain(problems, n_resamples=20),
    }


def _parity(run: pl.LazyFrame) -> pl.LazyFrame:
    """Return two levels that say nothing."""
    parity = pl.col("problem_id").cast(pl.String).str.len_bytes() % 2
    return run.select("problem_id", level=parity).unique()


def main(source: str, target: str, *engines: pl.Engine) -> None:
    """Write each table of the analysis of a Parquet file to a folder, as each engine makes it."""
    for engine in engines:
        for name, plan in analyse(pl.scan_parquet(source)).items():
            plan.collect(engine=engine).write_parquet(f"{target}/{engine} {name}.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
