"""What holds for every chart: it becomes a file without a network, and a large table fits a page.

A new chart needs a row in `CHARTS`, one in `DRAWN`, and, if it has a limit, one in `REFUSED`.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import altair as alt
import numpy as np
import polars as pl
import pytest

import ttsframe as tts
from ttsframe import charts
from ttsframe.errors import DataError, ParameterError

CHARTS: Final = {
    "scaling_curve": "curve",
    "optimal_curve": "curve choices",
    "level_bars": "leveled",
    "complexity_curve": "complexities",
    "pareto_frontier": "frontier",
    "level_curves": "leveled",
    "difficulty_histogram": "levels",
    "selection_gap": "gap",
    "step_profile": "profile",
    "answer_votes": "votes",
    "over_optimization": "turns",
    "ranking": "ranks",
    "reduction_comparison": "metrics",
    "reliability": "reliability_curve",
    "score_distribution": "distribution",
    "step_values": "steps",
    "label_agreement": "label_rollouts",
    "search_tree": "nodes",
    "search_width": "mean_widths",
    "pruning_regret": "mean_regrets",
}
"""Every chart, with the fixtures of its tables."""

N: Final = 100_000
N_BYTES_MAX: Final = 1_500_000
RNG: Final = np.random.default_rng(6)


def lines(n_lines: int, n_budgets: int, *, cost: float = 1.0, **more: object) -> pl.DataFrame:
    """Return a curve of many lines; each has costs of its own where an attempt costs anything."""
    n = n_lines * n_budgets
    accuracy = RNG.uniform(0.1, 0.9, n)
    nominal = np.tile(np.arange(1, n_budgets + 1), n_lines)
    scale = RNG.uniform(1.0, 2.0, n) if cost != 1.0 else 1.0
    return pl.DataFrame({
        "selector": np.repeat([f"selector {i}" for i in range(n_lines)], n_budgets),
        "reduction": pl.Series([None] * n, dtype=pl.String),
        "budget": nominal * cost * scale,
        "budget_unit": "attempts" if cost == 1.0 else "tokens",
        "accuracy": accuracy,
        "standard_error": 0.02,
        "ci_low": accuracy - 0.05,
        "ci_high": accuracy + 0.05,
        "n_problems": 500,
        **{f"n_{status}": 1 for status in ("short", "unscored", "undefined", "ungraded")},
    }).with_columns(**{name: pl.lit(value) for name, value in more.items()})


def at_levels(curve: pl.DataFrame, n_levels: int) -> pl.DataFrame:
    return pl.concat([curve.with_columns(level=level) for level in range(1, n_levels + 1)])


def of_models(curve: pl.DataFrame, n_models: int) -> pl.DataFrame:
    return pl.concat([
        curve.with_columns(model=pl.lit(f"m{i} " + "x" * 300)) for i in range(n_models)
    ])


def gaps(curve: pl.DataFrame) -> pl.DataFrame:
    rest = 1.0 - pl.col("accuracy")
    return curve.with_columns(
        selection_gap=rest / 2, generation_gap=rest / 2, ci_low=0, ci_high=0.1
    )


def turns(curve: pl.DataFrame) -> pl.DataFrame:
    return curve.with_columns(
        reduction=pl.col("selector"),
        selector=pl.lit("best_of_n"),
        peak_budget=pl.lit(7),
        drop=0.1,
        is_turned_down=pl.col("budget") > 9,
    )


def choices(n_levels: int, n_budgets: int) -> pl.DataFrame:
    cells = pl.select(level=pl.int_range(1, n_levels + 1)).join(
        pl.select(budget=pl.int_range(1, n_budgets + 1)), how="cross"
    )
    fold = pl.select(problem_fold=pl.Series([0, 1, None]))
    return cells.join(fold, how="cross").with_columns(
        selector=pl.format("selector {}", (pl.col("level") + pl.col("budget")) % 5),
        reduction=pl.lit(None, pl.String),
        accuracy=0.5,
        n_problems=100,
    )


def metrics(n: int) -> pl.DataFrame:
    within = RNG.uniform(0.4, 0.9, n)
    return pl.DataFrame({
        "reduction": [f"reduction {i}" for i in range(n)],
        "auroc": within,
        "auroc_within": within,
        "ci_low": within - 0.02,
        "ci_high": within + 0.02,
        "n_judged": 100,
    })


def ranks_of(n: int) -> pl.DataFrame:
    return pl.DataFrame({
        "name": [f"run {i}" for i in range(n)],
        "rank": range(1, n + 1),
        "rank_low": 1,
        "rank_high": n,
        "accuracy": 0.5,
        "n_ranked": n,
        "n_problems": 100,
    })


def profile(n_positions: int) -> pl.DataFrame:
    return pl.concat([
        pl.DataFrame({
            "is_correct": is_correct,
            "position": (np.arange(n_positions) + 0.5) / n_positions,
            "mean_score": 0.5,
            "ci_low": 0.4,
            "ci_high": 0.6,
            "n_attempts": 10,
            "n_problems": 5,
        })
        for is_correct in (True, False)
    ])


def votes(*, is_correct: bool) -> pl.DataFrame:
    return pl.DataFrame({
        "problem_id": "p",
        "answer_key": [f"{i} " + "9" * 300 for i in range(N)],
        "n_votes": 1,
        "weight": 1.0,
        "first_attempt": np.arange(N),
        "is_correct": is_correct,
    })


def levels() -> pl.DataFrame:
    return pl.DataFrame({
        "problem_id": np.arange(N),
        "difficulty": RNG.random(N),
        "level": RNG.integers(1, 6, N),
    })


def calibration(n_bins: int) -> pl.DataFrame:
    return pl.DataFrame({
        "reduction": "last",
        "mean_score": RNG.random(n_bins),
        "accuracy": 0.5,
        "ci_low": 0.4,
        "ci_high": 0.6,
        "n_attempts": 10,
        "n_problems": 5,
    })


def spread(n_bins: int) -> pl.DataFrame:
    low = np.arange(n_bins) / n_bins
    return pl.concat([
        pl.DataFrame({
            "reduction": "last",
            "is_correct": is_correct,
            "bin_low": low,
            "bin_high": low + 1 / n_bins,
            "n_attempts": 10,
            "share": 1 / n_bins,
        })
        for is_correct in (True, False)
    ])


def frontier(curve: pl.DataFrame) -> pl.DataFrame:
    by = ["model"] if "model" in curve.columns else []
    return tts.pareto_frontier(curve, by=by)


def steps(n_solutions: int, n_steps: int) -> pl.DataFrame:
    n = n_solutions * n_steps
    return pl.DataFrame({
        "problem_id": np.repeat([f"p{i} " + "x" * 300 for i in range(n_solutions)], n_steps),
        "solution_id": 0,
        "step": np.tile(np.arange(n_steps), n_solutions),
        "n_rollouts": 8,
        "n_correct": 4,
        "n_ungraded": 0,
        "hard": True,
        "soft": RNG.random(n),
        "ci_low": 0.2,
        "ci_high": 0.8,
        "is_correct": True,
        "is_first_error": False,
        "text": "a step " * 100,
    })


def complexities(n_levels: int) -> pl.DataFrame:
    cells = pl.select(complexity=pl.int_range(1, n_levels + 1)).join(
        pl.select(k=pl.int_range(1, 13, dtype=pl.UInt32)), how="cross"
    )
    return cells.with_columns(
        task=pl.lit("task"),
        selector=pl.lit("majority_vote"),
        accuracy=0.5,
        ci_low=0.4,
        ci_high=0.6,
        oracle_accuracy=0.7,
        n_instances=10,
    )


def agreement(n_sizes: int) -> pl.DataFrame:
    run = steps(2, 2).with_columns(n_rollouts=8, n_correct=4)
    one = tts.process.step_agreement(run, n_rollouts=[8]).rollouts.drop("n_rollouts")
    return one.join(pl.select(n_rollouts=pl.int_range(1, n_sizes + 1)), how="cross")


def tree(n_steps: int) -> pl.DataFrame:
    """Return a tree in which every third step is continued three times."""
    parent = pl.int_range(n_steps) // 3
    return pl.select(
        problem_id=pl.lit("p"),
        node_id=pl.int_range(1, n_steps + 1, dtype=pl.UInt64),
        parent_id=pl.when(parent > 0).then(parent).cast(pl.UInt64),
        round=pl.int_range(n_steps, dtype=pl.Int64).clip(1).log(3).floor().cast(pl.UInt16),
        step_score=0.5,
        text=pl.lit("a step " * 100),
        is_kept=True,
    ).with_columns(depth=_depths(n_steps))


def _depths(n_steps: int) -> pl.Series:
    depths = np.ones(n_steps + 1, dtype=np.uint16)
    for i in range(1, n_steps + 1):
        depths[i] = depths[(i - 1) // 3] + 1 if (i - 1) // 3 else 1
    return pl.Series(depths[1:])


def means(place: str, n: int, names: tuple[str, ...]) -> pl.DataFrame:
    places = pl.select(pl.int_range(n).alias(place))
    return places.join(pl.DataFrame({"measure": names}), how="cross").with_columns(
        mean=0.5, ci_low=0.4, ci_high=0.6, n_problems=100
    )


DRAWN: Final[dict[str, Callable[[], alt.TopLevelMixin]]] = {
    "step_values": lambda: charts.step_values(steps(12, 200)),
    "search_tree": lambda: charts.search_tree(tree(1000)),
    "search_width": lambda: charts.search_width(
        of_models(means("depth", 200, ("n_nodes", "n_kept", "n_distinct", "n_origins")), 12)
    ),
    "pruning_regret": lambda: charts.pruning_regret(
        of_models(means("round", 200, ("regret", "is_lost")), 9)
    ),
    "complexity_curve": lambda: charts.complexity_curve(complexities(200)),
    "label_agreement": lambda: charts.label_agreement(agreement(200)),
    "scaling_curve, budgets": lambda: charts.scaling_curve(lines(2, N // 2)),
    "scaling_curve, panels": lambda: charts.scaling_curve(of_models(lines(20, 400), 12)),
    "scaling_curve, costs": lambda: charts.scaling_curve(lines(20, 5_000, cost=300)),
    "selection_gap": lambda: charts.selection_gap(gaps(lines(12, N // 12))),
    "selection_gap, costs": lambda: charts.selection_gap(gaps(lines(2, N // 2, cost=300))),
    "level_curves": lambda: charts.level_curves(at_levels(lines(4, N // 40), 10)),
    "level_curves, panels": lambda: charts.level_curves(
        of_models(at_levels(lines(5, 200), 10), 7).with_columns(basis=pl.lit("reference"))
    ),
    "level_bars": lambda: charts.level_bars(of_models(at_levels(lines(6, 4), 5), 12)),
    "optimal_curve": lambda: charts.optimal_curve(lines(5, 20_000), choices(20, 1_700)),
    "pareto_frontier": lambda: charts.pareto_frontier(
        frontier(of_models(lines(20, 400, cost=300), 12))
    ),
    "pareto_frontier, rising": lambda: charts.pareto_frontier(
        frontier(lines(1, N).with_columns(accuracy=pl.col("budget") / N))
    ),
    "difficulty_histogram": lambda: charts.difficulty_histogram(levels(), n_bins=100),
    "over_optimization": lambda: charts.over_optimization(turns(lines(20, N // 20))),
    "step_profile": lambda: charts.step_profile(of_models(profile(200), 12)),
    "reduction_comparison": lambda: charts.reduction_comparison(of_models(metrics(30), 12)),
    "ranking": lambda: charts.ranking(of_models(ranks_of(40), 12)),
    "reliability": lambda: charts.reliability(of_models(calibration(N // 12), 12)),
    "score_distribution": lambda: charts.score_distribution(of_models(spread(N // 12), 12)),
    "answer_votes": lambda: charts.answer_votes(votes(is_correct=False), n_answers=50),
    "answer_votes, all right": lambda: charts.answer_votes(votes(is_correct=True), n_answers=50),
}

REFUSED: Final[dict[str, Callable[[], alt.TopLevelMixin]]] = {
    "1,000 lines in a panel.*at most 20.*Hint: filter": lambda: charts.scaling_curve(
        lines(1000, 100)
    ),
    "lines, this chart holds at most 375": lambda: charts.level_curves(
        of_models(at_levels(lines(10, 9), 10), 12)
    ),
    "1,000 selectors.*at most 20.*Hint: filter": lambda: charts.pareto_frontier(
        frontier(lines(1000, 100))
    ),
    "2,000 levels.*at most 20.*Hint: filter": lambda: charts.optimal_curve(
        lines(2, 8), choices(2000, 16)
    ),
    "turns has 1,000 lines": lambda: charts.over_optimization(turns(lines(1000, 100))),
    "100,000 reductions.*at most 30.*Hint": lambda: charts.reduction_comparison(metrics(N)),
    "100,000 ranked values in a panel.*at most 40": lambda: charts.ranking(ranks_of(N)),
    "50,000 positions.*at most 200.*n_bins=20": lambda: charts.step_profile(profile(N // 2)),
    "100,000 levels.*at most 20.*n_levels=5": lambda: charts.difficulty_histogram(
        levels().with_columns(level=pl.int_range(1, N + 1))
    ),
    "100,000 steps of a solution.*at most 200": lambda: charts.step_values(steps(1, N)),
    "1,001 steps.*at most 1,000.*filter": lambda: charts.search_tree(tree(1001)),
    "300 rounds.*at most 200": lambda: charts.pruning_regret(
        means("round", 300, ("regret", "is_lost"))
    ),
    "10 searches.*at most 9": lambda: charts.pruning_regret(
        of_models(means("round", 3, ("regret",)), 10)
    ),
    "8,000 levels of complexity.*at most 200": lambda: charts.complexity_curve(complexities(8000)),
    "300 numbers of rollouts.*at most 200": lambda: charts.label_agreement(agreement(300)),
    "n_bins == 100000, must be at most 100": lambda: charts.difficulty_histogram(
        levels(), n_bins=N
    ),
    "n_answers == 100000, must be at most 50": lambda: charts.answer_votes(
        votes(is_correct=False), n_answers=N
    ),
    "references holds 300 lines.*at most 12": lambda: charts.scaling_curve(
        lines(1, 4), references={f"model {i}": 0.5 for i in range(300)}
    ),
}


def rows_of(chart: alt.TopLevelMixin, field: str) -> list[dict[str, Any]]:
    tables = chart.to_dict(validate=False)["datasets"].values()
    return [row for table in tables for row in table if field in row]


@pytest.mark.slow
@pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN)
def test_a_large_table_fits_on_a_page(
    make: Callable[[], alt.TopLevelMixin],
) -> None:
    # The schema of each is validated below, on a small table.
    assert len(json.dumps(make().to_dict(validate=False))) < N_BYTES_MAX


def test_every_chart_has_its_rows() -> None:
    assert sorted(CHARTS) == charts.__all__
    assert {name.split(",")[0] for name in DRAWN} == set(charts.__all__)


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_more_than_can_be_told_apart_is_refused_with_a_way_out(
    message: str, make: Callable[[], alt.TopLevelMixin]
) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        make()


def test_a_thinned_line_keeps_its_ends_and_true_points_evenly_on_the_log_scale() -> None:
    table = lines(3, 30_000, cost=300)
    drawn = rows_of(charts.scaling_curve(table), "of_budget")
    values = dict(zip(table["budget"].round_sig_figs(12), table["accuracy"], strict=True))
    assert all(values[row["x"]] == pytest.approx(row["accuracy"]) for row in drawn)
    for selector in table["selector"].unique():
        costs = table.filter(selector=selector)["budget"].sort()
        kept = sorted(row["x"] for row in drawn if row["selector"] == selector)
        assert kept[0] == pytest.approx(costs[0])
        assert kept[-1] == pytest.approx(costs[-1])
        assert 48 <= len(kept) <= 64
        widest = max(b / a for a, b in itertools.pairwise(kept) if a > 30 * kept[0])
        assert widest < 2 * (kept[-1] / kept[0]) ** (1 / 63)


def test_no_line_loses_points_because_others_have_costs_of_their_own() -> None:
    table = lines(12, 9, cost=300)
    assert table["budget"].n_unique() == 108
    assert len(rows_of(charts.scaling_curve(table), "of_budget")) == 108
    leveled = at_levels(lines(3, 6, cost=300), 4).with_columns(
        budget=pl.col("budget") * (1 + pl.col("level") / 7)
    )
    assert leveled["budget"].n_unique() == 72
    assert len(rows_of(charts.level_curves(leveled), "of_budget")) == 72


def test_a_budget_that_costs_nothing_has_no_place_on_a_log_scale() -> None:
    table = lines(1, 4).with_columns(budget=pl.col("budget") - 1)
    for chart in (charts.scaling_curve, charts.pareto_frontier):
        with pytest.raises(DataError, match=r"budgets down to 0\.0, must be above 0"):
            chart(table.with_columns(is_efficient=True))
    with pytest.raises(DataError, match="turns has budgets down to"):
        charts.over_optimization(turns(table))


def test_long_names_that_begin_alike_stay_apart() -> None:
    name = (
        "a method with a very long name that goes on and on, variant number {} of the last series"
    )
    table = lines(4, 5)
    selector = pl.col("selector").str.slice(9)
    drawn = rows_of(
        charts.scaling_curve(table.with_columns(selector=pl.format(name, selector))), "of_budget"
    )
    names = {row["line"] for row in drawn}
    assert len(names) == 4
    assert max(map(len, names)) <= 50


def test_squares_of_what_was_chosen_do_not_overlap() -> None:
    drawn = rows_of(charts.optimal_curve(lines(5, 64), choices(3, 64)), "letter")
    budgets = sorted({row["budget"] for row in drawn})
    assert (budgets[0], budgets[-1]) == (1, 64)
    pixels = [480 * math.log(budget, 64) for budget in budgets]
    assert min(b - a for a, b in itertools.pairwise(pixels)) >= 24


@pytest.mark.parametrize(("name", "table"), CHARTS.items())
def test_charts_carry_their_data_and_become_files(
    name: str, table: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    chart = getattr(charts, name)(*map(request.getfixturevalue, table.split()))
    chart.save(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (tmp_path / "chart.png").stat().st_size > 10_000
    if name == "scaling_curve":  # a PNG is drawn from the SVG
        chart.save(tmp_path / "chart.svg")
        assert (tmp_path / "chart.svg").read_text().startswith("<svg")
    spec = chart.to_dict(validate=True)
    assert '"url"' not in json.dumps(spec)
    assert sum(len(rows) for rows in spec["datasets"].values()) > 0


def test_charts_need_no_network(curve: pl.DataFrame, tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], check=False).returncode:
        pytest.skip("no way here to take the network away from a process")
    curve.write_parquet(tmp_path / "curve.parquet")
    script = (
        "import polars as pl; from ttsframe import charts; "
        "chart = charts.scaling_curve(pl.read_parquet('curve.parquet')); "
        "chart.save('curve.png'); chart.save('curve.svg')"
    )
    command = [unshare, "-rn", sys.executable, "-c", script]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_importing_the_package_does_not_load_altair() -> None:
    script = "import sys, ttsframe; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
