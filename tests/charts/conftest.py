"""Tables that charts draw, written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree as ET

import altair as alt
import polars as pl
import pytest
import vl_convert

_SVG = "{http://www.w3.org/2000/svg}"


class Drawing(NamedTuple):
    """What a chart shows, read from its SVG."""

    texts: list[str]
    colors: dict[str, list[str]]


@pytest.fixture
def draw() -> Callable[[alt.TopLevelMixin], Drawing]:
    return _draw


def _draw(chart: alt.TopLevelMixin) -> Drawing:
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    svg = vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=version, allowed_base_urls=[])
    root = ET.fromstring(svg)  # noqa: S314  (drawn here)
    texts = ["".join(node.itertext()) for node in root.iter(f"{_SVG}text")]
    colors: dict[str, list[str]] = {}
    for group in root.iter(f"{_SVG}g"):
        kind = re.search(r"\bmark-(\w+) role-mark\b", group.get("class", ""))
        if kind:
            marks = [*group.iter(f"{_SVG}path"), *group.iter(f"{_SVG}line")]
            seen = [_color(mark) for mark in marks if mark.get("class") != "background"]
            colors.setdefault(kind[1], []).extend(seen)
    return Drawing(texts, colors)


def _color(mark: ET.Element) -> str:
    fill = mark.get("fill", "none")
    return fill if fill not in {"none", "transparent"} else mark.get("stroke", "")


def _line(
    selector: str, reduction: str | None, accuracies: list[float], **more: object
) -> pl.DataFrame:
    return pl.DataFrame({
        "selector": selector,
        "reduction": pl.Series([reduction] * len(accuracies), dtype=pl.String),
        "budget": pl.Series([2**i for i in range(len(accuracies))], dtype=pl.UInt32),
        "budget_unit": "attempts",
        "subsets": "prefix",
        "accuracy": accuracies,
        "standard_error": [0.05] * len(accuracies),
        "ci_low": [value - 0.1 for value in accuracies],
        "ci_high": [value + 0.1 for value in accuracies],
        "n_problems": pl.Series([97] * len(accuracies), dtype=pl.UInt32),
        "n_short": pl.Series([3] * len(accuracies), dtype=pl.UInt32),
        "n_unscored": pl.Series([0] * len(accuracies), dtype=pl.UInt32),
        "n_undefined": pl.Series([0] * len(accuracies), dtype=pl.UInt32),
        "n_ungraded": pl.Series([0] * len(accuracies), dtype=pl.UInt32),
    }).with_columns(**{name: pl.lit(value) for name, value in more.items()})


@pytest.fixture
def curve() -> pl.DataFrame:
    return pl.concat([
        _line("majority_vote", None, [0.40, 0.42, 0.48, 0.50]),
        _line("weighted_vote", "last", [0.40, 0.44, 0.51, 0.55]),
        _line("best_of_n", "last", [0.40, 0.45, 0.46, 0.49]),
        _line("oracle", None, [0.40, 0.52, 0.61, 0.70]),
    ])


@pytest.fixture
def gap() -> pl.DataFrame:
    lines = {
        ("majority_vote", None): ([0.40, 0.42, 0.48, 0.50], [0.0, 0.10, 0.13, 0.20]),
        ("best_of_n", "last"): ([0.40, 0.45, 0.46, 0.49], [0.0, 0.07, 0.15, 0.21]),
    }
    return pl.concat([
        _line(selector, reduction, chosen).with_columns(
            pl.Series("selection_gap", lost),
            pl.Series("generation_gap", [1.0 - a - b for a, b in zip(chosen, lost, strict=True)]),
            pl.Series("ci_low", [max(value - 0.02, 0.0) for value in lost]),
            pl.Series("ci_high", [value + 0.02 for value in lost]),
        )
        for (selector, reduction), (chosen, lost) in lines.items()
    ])


@pytest.fixture
def profile() -> pl.DataFrame:
    return pl.DataFrame({
        "is_correct": [False] * 4 + [True] * 4,
        "position": [0.125, 0.375, 0.625, 0.875] * 2,
        "mean_score": [0.7, 0.6, 0.5, 0.4, 0.7, 0.75, 0.8, 0.85],
        "standard_error": [0.02] * 8,
        "ci_low": [0.66, 0.56, 0.46, 0.36, 0.66, 0.71, 0.76, 0.81],
        "ci_high": [0.74, 0.64, 0.54, 0.44, 0.74, 0.79, 0.84, 0.89],
        "n_attempts": pl.Series([30, 31, 31, 32, 60, 60, 60, 64], dtype=pl.UInt32),
        "n_problems": pl.Series([9, 9, 9, 9, 12, 12, 12, 12], dtype=pl.UInt32),
        "n_unscored_steps": pl.Series([1, 0, 0, 0, 0, 0, 0, 2], dtype=pl.UInt32),
    })


@pytest.fixture
def steps() -> pl.DataFrame:
    return pl.DataFrame({
        "problem_id": ["p"] * 6,
        "solution_id": [0, 0, 0, 0, 1, 1],
        "step": [-1, 0, 1, 2, 0, 1],
        "n_rollouts": pl.Series([8, 8, 8, 2, 8, 0], dtype=pl.UInt32),
        "n_correct": pl.Series([4, 6, 0, 0, 8, 0], dtype=pl.UInt32),
        "n_ungraded": pl.Series([0, 0, 0, 6, 0, 8], dtype=pl.UInt32),
        "hard": [True, True, False, False, True, None],
        "soft": [0.5, 0.75, 0.0, 0.0, 1.0, None],
        "ci_low": [0.22, 0.41, 0.0, 0.0, 0.68, None],
        "ci_high": [0.78, 0.93, 0.32, 0.66, 1.0, None],
        "hard@2": [0.79, 0.96, 0.0, 0.0, 1.0, None],
        "advantage": [None, 0.25, -0.75, 0.0, None, None],
        "advantage_ci_low": [None, -0.19, -0.93, -0.32, None, None],
        "advantage_ci_high": [None, 0.59, -0.28, 0.66, None, None],
        "is_correct": [None, True, False, False, True, None],
        "is_first_error": [False, False, True, False, False, False],
    })


@pytest.fixture
def label_rollouts() -> pl.DataFrame:
    ends = {"standard_error": [0.02, 0.02, None]}
    return pl.DataFrame({
        "n_rollouts": pl.Series([1, 4, 8], dtype=pl.UInt32),
        "hard": [0.3, 0.5, 0.6],
        "agreement": [0.7, 0.9, 1.0],
        **ends,
        "ci_low": [0.66, 0.86, None],
        "ci_high": [0.74, 0.94, None],
        "kappa": [0.4, 0.8, 1.0],
        "repeat_agreement": [0.75, 0.85, None],
        **{f"repeat_{name}": values for name, values in ends.items()},
        "repeat_ci_low": [0.71, 0.81, None],
        "repeat_ci_high": [0.79, 0.89, None],
        "repeat_kappa": [0.4, 0.7, None],
        "first_error_agreement": [0.4, 0.8, 1.0],
        **{f"first_error_{name}": values for name, values in ends.items()},
        "first_error_ci_low": [0.36, 0.76, None],
        "first_error_ci_high": [0.44, 0.84, None],
        "soft_error": [0.3, 0.15, 0.11],
        "n_steps": pl.Series([90] * 3, dtype=pl.UInt32),
        "n_short": pl.Series([7] * 3, dtype=pl.UInt32),
        "n_solutions": pl.Series([40] * 3, dtype=pl.UInt32),
        "n_problems": pl.Series([30] * 3, dtype=pl.UInt32),
    })


@pytest.fixture
def votes() -> pl.DataFrame:
    return pl.DataFrame({
        "problem_id": ["p"] * 5,
        "budget": pl.Series([16] * 5, dtype=pl.UInt32),
        "reduction": ["last"] * 5,
        "answer_key": ["47", "42", "\\frac{1}{2}", "7", None],
        "answer": ["47", "42.0", "\\frac12", "7", None],
        "n_votes": pl.Series([6, 4, 3, 1, 2], dtype=pl.UInt32),
        "weight": [2.5, 3.0, 1.0, 0.25, 0.5],
        "top_score": [0.8, 0.9, 0.5, 0.25, 0.3],
        "first_attempt": pl.Series([0, 1, 2, 9, 4], dtype=pl.UInt32),
        "is_correct": [False, True, False, False, False],
    })


@pytest.fixture
def reliability_curve() -> pl.DataFrame:
    accuracy = [0.02, 0.2, 0.4, 0.55, 0.9]
    return pl.DataFrame({
        "reduction": ["last"] * 5,
        "binning": ["equal_width"] * 5,
        "bin_low": [0.0, 0.2, 0.4, 0.6, 0.8],
        "bin_high": [0.2, 0.4, 0.6, 0.8, 1.0],
        "mean_score": [0.1, 0.3, 0.52, 0.7, 0.93],
        "accuracy": accuracy,
        "standard_error": [0.02] * 5,
        "ci_low": [max(each - 0.04, 0.0) for each in accuracy],
        "ci_high": [each + 0.04 for each in accuracy],
        "n_attempts": pl.Series([40, 90, 120, 300, 650], dtype=pl.UInt32),
        "n_problems": pl.Series([12, 30, 40, 44, 50], dtype=pl.UInt32),
    })


@pytest.fixture
def distribution() -> pl.DataFrame:
    counts = {False: [10, 20, 40, 30], True: [0, 10, 60, 130]}
    return pl.concat([
        pl.DataFrame({
            "reduction": ["last"] * 4,
            "is_correct": [is_correct] * 4,
            "bin_low": [0.0, 0.25, 0.5, 0.75],
            "bin_high": [0.25, 0.5, 0.75, 1.0],
            "n_attempts": pl.Series(of, dtype=pl.UInt32),
            "share": [each / sum(of) for each in of],
        })
        for is_correct, of in counts.items()
    ])


@pytest.fixture
def ranks() -> pl.DataFrame:
    return pl.DataFrame({
        "budget": pl.Series([8] * 3, dtype=pl.UInt32),
        "model": ["a", "b", "c"],
        "rank": pl.Series([1, 2, 3], dtype=pl.UInt32),
        "rank_low": pl.Series([1, 1, 3], dtype=pl.UInt32),
        "rank_high": pl.Series([2, 2, 3], dtype=pl.UInt32),
        "accuracy": [0.8, 0.75, 0.3],
        "sets": [[1], [1], [2]],
        "share_of_resamples_best": [0.9, 0.1, 0.0],
        "n_ranked": pl.Series([3] * 3, dtype=pl.UInt32),
        "n_problems": pl.Series([80] * 3, dtype=pl.UInt32),
    })


@pytest.fixture
def metrics() -> pl.DataFrame:
    within = [0.71, 0.62, 0.55]
    return pl.DataFrame({
        "reduction": ["last", "min", "prod"],
        "auroc": [0.8, 0.66, 0.6],
        "auroc_within": within,
        "standard_error": [0.01] * 3,
        "ci_low": [each - 0.02 for each in within],
        "ci_high": [each + 0.02 for each in within],
        "average_precision": [0.7, 0.6, 0.5],
        "brier": [0.2, 0.22, 0.3],
        "calibration_status": ["ok"] * 3,
        "n_attempts": pl.Series([1200] * 3, dtype=pl.UInt32),
        "n_judged": pl.Series([80] * 3, dtype=pl.UInt32),
    })


@pytest.fixture
def turns() -> pl.DataFrame:
    lines = {"last": [0.4, 0.5, 0.62, 0.3], "min": [0.4, 0.45, 0.5, 0.55]}
    return pl.concat([
        _line("best_of_n", reduction, accuracies).with_columns(
            peak_budget=pl.Series(
                [1, 2, 4, 4] if reduction == "last" else [1, 2, 4, 8], dtype=pl.UInt32
            ),
            drop=pl.Series([0.0, 0.0, 0.0, 0.32 if reduction == "last" else 0.0]),
            drop_standard_error=pl.lit(0.05),
            drop_ci_low=pl.lit(0.2),
            drop_ci_high=pl.lit(0.4),
            drop_p_value=pl.lit(0.001),
            is_turned_down=pl.Series([False, False, False, reduction == "last"]),
        )
        for reduction, accuracies in lines.items()
    ])


@pytest.fixture
def leveled() -> pl.DataFrame:
    shares = {1: 0.9, 2: 0.6, 3: None}
    return pl.concat([
        _line(selector, reduction, [0.0, 0.1, 0.2], level=level, basis="cross_fitted").with_columns(
            pl.col("accuracy", "ci_low", "ci_high").add(share or 0.0)
            if share
            else pl.lit(None, pl.Float64).alias("accuracy"),
            n_problems=pl.lit(40 if share else 0, pl.UInt32),
        )
        for level, share in shares.items()
        for selector, reduction in (("majority_vote", None), ("best_of_n", "last"))
    ])


@pytest.fixture
def levels() -> pl.DataFrame:
    n = 40
    return pl.DataFrame({
        "problem_id": [f"p{i}" for i in range(n)] * 2,
        "fold": pl.Series([0] * n + [1] * n, dtype=pl.UInt32),
        "level": pl.Series([i // 10 + 1 for i in range(n)] * 2, dtype=pl.UInt32),
        "difficulty": [i / n for i in range(n)] * 2,
        "n_used": pl.Series([8] * (2 * n), dtype=pl.UInt32),
        "basis": ["cross_fitted"] * (2 * n),
        "caveat": ["few_attempts"] * (2 * n),
        "n_levels": pl.Series([5] * (2 * n), dtype=pl.UInt32),
        "n_empty_levels": pl.Series([1] * (2 * n), dtype=pl.UInt32),
    })


@pytest.fixture
def frontier() -> pl.DataFrame:
    points = pl.concat([
        _line("majority_vote", None, [0.40, 0.42, 0.48, 0.50]),
        _line("best_of_n", "last", [0.40, 0.45, 0.46, 0.60]),
    ])
    return points.with_columns(
        nominal_budget=pl.col("budget"),
        budget=pl.col("budget")
        * pl.when(pl.col("selector") == "best_of_n").then(2e12).otherwise(1e12),
        budget_unit=pl.lit("flops"),
        is_efficient=pl.Series([True, True, True, True, False, False, False, True]),
    )


@pytest.fixture
def choices() -> pl.DataFrame:
    cells = [
        (level, budget, fold) for level in (1, 2) for budget in (1, 8) for fold in (0, 1, None)
    ]
    n_problems = [19 if fold is None else 9 + fold for *_, fold in cells]
    return pl.DataFrame(cells, ["level", "budget", "problem_fold"], orient="row").with_columns(
        budget_unit=pl.lit("attempts"),
        subsets=pl.lit("prefix"),
        selector=pl.Series(["majority_vote"] * 6 + ["best_of_n"] * 5 + ["majority_vote"]),
        reduction=pl.lit(None, pl.String),
        accuracy_seen=0.75,
        accuracy=0.5,
        n_seen=pl.Series(n_problems),
        n_problems=pl.Series(n_problems),
        n_strategies=2,
        n_tied=1,
    )


@pytest.fixture
def complexities() -> pl.DataFrame:
    accuracies = {1: [1.0, 0.6, 0.2, 0.0], 5: [1.0, 0.9, 0.5, 0.1]}
    return pl.concat([
        pl.DataFrame({
            "task": "tower_of_hanoi",
            "k": pl.Series([k] * 4, dtype=pl.UInt32),
            "selector": "majority_vote",
            "complexity": [1, 2, 3, 4],
            "accuracy": of_k,
            "ci_low": [max(value - 0.25, 0.0) for value in of_k],
            "ci_high": [min(value + 0.25, 1.0) for value in of_k],
            "oracle_accuracy": of_k if k == 1 else [1.0, 1.0, 0.7, 0.3],
            "n_instances": pl.Series([10] * 4, dtype=pl.UInt32),
        })
        for k, of_k in accuracies.items()
    ])
