"""Paired differences against scipy, textbook tables and a plain loop over problems."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars._typing import EngineType
from polars.testing import assert_frame_equal
from scipy import stats

import ttsframe as tts
from ttsframe._typing import ClusterTest
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")


def pairs(ours: Sequence[float | None], theirs: Sequence[float | None]) -> pl.DataFrame:
    """Return a table of two models, "new" and "old", with a value for each problem."""
    sides = {"new": ours, "old": theirs}
    return pl.concat(
        pl.DataFrame({"problem_id": range(len(values)), "value": values}).select(
            "problem_id", pl.lit(model).alias("model"), pl.col("value").cast(pl.Float64)
        )
        for model, values in sides.items()
    )


def compared(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    """Return the one row of a comparison of "new" with "old"."""
    options = {"column": "model", "baseline": "old", "by": ()} | options
    return tts.compare(frame, **options).row(0, named=True)


def from_table(both: int, wins: int, losses: int, neither: int) -> pl.DataFrame:
    """Return pairs of 0 and 1 with the counts of a fourfold table."""
    cells = [(1, 1)] * both + [(1, 0)] * wins + [(0, 1)] * losses + [(0, 0)] * neither
    ours, theirs = zip(*cells, strict=True)
    return pairs(ours, theirs)


@pytest.mark.parametrize(
    ("table", "p_value"),
    [
        # Bland (2000), An Introduction to Medical Statistics, 13.9: severe colds of 1,319 children at
        # 12 and at 14 years; 256 and 144 changed. Exact from the binomial distribution.
        ((212, 256, 144, 707), 2.0 * stats.binom.cdf(144, 400, 0.5)),
        # Agresti (2002), Categorical Data Analysis, table 10.1: approval of a prime minister, 150
        # and 86 changed; z squared is 17.36, p below 0.0001.
        ((794, 150, 86, 570), 2.0 * stats.binom.cdf(86, 236, 0.5)),
        # R's exact2x2 vignette: 9 and 2 changed of 80; p = 0.06543.
        ((21, 9, 2, 12), 0.0654296875),
        # One changed each way, none at all, all one way.
        ((5, 1, 1, 5), 1.0),
        ((5, 0, 0, 5), 1.0),
        ((0, 6, 0, 4), 0.03125),
    ],
)
def test_mcnemar_is_the_binomial_test_of_those_that_differ(
    table: tuple[int, int, int, int], p_value: float
) -> None:
    both, wins, losses, neither = table
    row = compared(from_table(*table), mcnemar="exact")
    assert (row["test"], row["interval"]) == ("mcnemar_exact", "bonett_price")
    assert row["p_value"] == pytest.approx(p_value, rel=1e-12)
    mid = compared(from_table(*table))
    assert mid["test"] == "mcnemar_mid_p"
    # The exact one less the chance of what was seen, as Fagerland et al. (2013) write it.
    halved = p_value - stats.binom.pmf(wins, wins + losses, 0.5) if wins != losses else 1.0
    assert mid["p_value"] == pytest.approx(halved, rel=1e-9)
    assert (mid["ci_low"], mid["ci_high"]) == (row["ci_low"], row["ci_high"])
    if wins + losses:
        assert row["p_value"] == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)
    assert (row["n_wins"], row["n_ties"], row["n_losses"]) == (wins, both + neither, losses)
    assert row["difference"] == pytest.approx((wins - losses) / sum(table))


def test_the_interval_of_zeros_and_ones_is_bonett_and_prices() -> None:
    # By hand: n = 24, 10 wins, 2 losses: p = 11/26, p' = 3/26, and the variance as they give it.
    row = compared(from_table(7, 10, 2, 5))
    p, q = 11 / 26, 3 / 26
    half = 1.959963984540054 * math.sqrt((p + q - (p - q) ** 2) / 26)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((p - q - half, p - q + half))
    same = compared(from_table(50, 0, 0, 50))
    assert same["standard_error"] == 0.0
    assert same["ci_high"] == pytest.approx(-same["ci_low"])
    assert same["ci_high"] == pytest.approx(1.959963984540054 * math.sqrt(2 / 102 / 102))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_fractions_are_compared_by_the_paired_t(level: float) -> None:
    draws = random.Random(5)
    ours = [draws.randint(0, 4) / 4 for _ in range(60)]
    theirs = [draws.randint(0, 4) / 4 for _ in range(60)]
    row = compared(pairs(ours, theirs), confidence_level=level)
    test = stats.ttest_rel(ours, theirs)
    interval = test.confidence_interval(level)
    assert row["test"] == "paired_t"
    assert row["p_value"] == pytest.approx(test.pvalue, rel=1e-10)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high))
    assert row["accuracy"] == pytest.approx(statistics.fmean(ours))
    assert row["baseline_accuracy"] == pytest.approx(statistics.fmean(theirs))
    assert row["difference"] == pytest.approx(row["accuracy"] - row["baseline_accuracy"])


def test_a_published_paired_t() -> None:
    """Student (1908), Biometrika 6, table of ten patients' sleep: t = 4.0621, p = 0.002833."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    # Ten differences, nine of one sign: values are scaled, since accuracies are at most 1.
    row = compared(pairs([x / 100 for x in second], [x / 100 for x in first]))
    assert row["difference"] / row["standard_error"] == pytest.approx(4.0621, abs=1e-4)
    # A test by signs of nine that differ cannot be below 2 ** -8 = 0.0039.
    assert row["p_value"] == pytest.approx(2.0**-8)
    longer = compared(pairs([x / 100 for x in second * 2], [x / 100 for x in first * 2]))
    assert longer["p_value"] == pytest.approx(stats.ttest_rel(second * 2, first * 2).pvalue)


def test_pairing_finds_what_two_intervals_hide() -> None:
    """Miller (2024), section 4: the pairs share their difficulty, and the difference loses it."""
    draws = random.Random(1)
    easy = [draws.random() for _ in range(200)]
    ours = [min(1.0, p + 0.03 + draws.gauss(0, 0.02)) for p in easy]
    row = compared(pairs(ours, easy))
    unpaired = stats.ttest_ind(ours, easy).pvalue
    assert row["p_value"] < 1e-10
    assert unpaired > 0.2
    # SE^2 = SE_A^2 + SE_B^2 - 2 Cov(A, B) / n
    errors = [statistics.stdev(side) / math.sqrt(200) for side in (ours, easy)]
    covariance = statistics.covariance(ours, easy)
    expected = errors[0] ** 2 + errors[1] ** 2 - 2 * covariance / 200
    assert row["standard_error"] ** 2 == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_equal_differences_are_as_significant_as_their_signs(n: int) -> None:
    row = compared(pairs([0.75] * n, [0.5] * n))
    assert row["standard_error"] == 0.0
    assert row["p_value"] == 2.0 ** (1 - n)
    assert row["ci_low"] <= 0.25 <= row["ci_high"]
    # The sums of differences take the place of wins: p = (n / 4 + 1) / (n + 2), p' = 1 / (n + 2).
    p, q = (n / 4 + 1) / (n + 2), 1 / (n + 2)
    half = 1.959963984540054 * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    expected = max(p - q - half, -1.0), min(p - q + half, 1.0)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(expected)
    if n < 6:
        assert row["ci_low"] <= 0.0


def test_few_differences_are_no_finding() -> None:
    # Four of two hundred differ, alike: Student's t alone says p = 0.045.
    ours = [0.5] * 196 + [0.75] * 4
    row = compared(pairs(ours, [0.5] * 200))
    assert stats.ttest_rel(ours, [0.5] * 200).pvalue < 0.05
    assert row["p_value"] == 0.125
    assert row["ci_low"] < 0.0 < row["ci_high"]


def test_no_difference_at_all_is_a_p_value_of_one() -> None:
    row = compared(pairs([0.5] * 9, [0.5] * 9))
    assert (row["test"], row["p_value"], row["difference"]) == ("paired_t", 1.0, 0.0)
    assert row["ci_low"] < 0.0 < row["ci_high"]


@pytest.mark.parametrize("n", [0, 1])
def test_below_two_pairs_nothing_is_known_of_spread(n: int) -> None:
    frame = pairs([1.0] * n + [None], [0.0] * n + [1.0])
    row = compared(frame)
    assert row["n_pairs"] == n
    assert row["difference"] == (1.0 if n else None)
    for name in ("standard_error", "ci_low", "ci_high", "test", "p_value", "p_adjusted"):
        assert row[name] is None
    assert row["n_ungraded"] == 1


def plain(
    frame: pl.DataFrame, ours: str, theirs: str, clusters: dict[Any, Any] | None = None
) -> dict[str, Any]:
    """Compare two models problem by problem, as loops."""
    order = ["ok", "ungraded", "undefined", "unscored", "short"]
    sides: dict[str, dict[Any, list[Any]]] = {ours: defaultdict(list), theirs: defaultdict(list)}
    for row in frame.iter_rows(named=True):
        value = row["value"]
        missing = value is None or math.isnan(value)
        status = "ungraded" if row["status"] == "ok" and missing else row["status"]
        if row["model"] in sides:
            sides[row["model"]][row["problem_id"]].append((value, status))
    counts: Counter[str] = Counter()
    kept: dict[Any, tuple[float, float]] = {}
    for problem in {*sides[ours], *sides[theirs]}:
        rows = [sides[ours].get(problem), sides[theirs].get(problem)]
        if None in rows:
            counts["unpaired"] += 1
            continue
        worst = max((s for side in rows for _, s in side or []), key=order.index)
        if worst != "ok":
            counts[worst] += 1
            continue
        a, b = (statistics.fmean(value for value, _ in side or []) for side in rows)
        kept[problem] = (a, b)
    differences = [a - b for a, b in kept.values()]
    n = len(differences)
    mean = statistics.fmean(differences)
    sums: dict[Any, float] = defaultdict(float)
    sizes: dict[Any, int] = defaultdict(int)
    for problem, (a, b) in kept.items():
        sums[clusters[problem] if clusters else problem] += a - b - mean
        sizes[clusters[problem] if clusters else problem] += 1
    squares = math.fsum(s * s / (1 - sizes[cluster] / n) for cluster, s in sums.items())
    return {
        "n_pairs": n,
        "accuracy": statistics.fmean(a for a, _ in kept.values()),
        "baseline_accuracy": statistics.fmean(b for _, b in kept.values()),
        "difference": mean,
        "standard_error": math.sqrt(squares) / n,
        "n_wins": sum(d > 1e-9 for d in differences),
        "n_losses": sum(d < -1e-9 for d in differences),
        "n_ties": sum(abs(d) <= 1e-9 for d in differences),
        **{f"n_{status}": counts[status] for status in [*order[1:], "unpaired"]},
    }


STATUS = st.sampled_from(["ok"] * 6 + ["short", "unscored", "undefined", "ungraded"])
VALUE = st.sampled_from([0.0, 1.0, 0.5, 0.25, None, math.nan])


@given(st.lists(st.tuples(VALUE, STATUS, VALUE, STATUS), min_size=1, max_size=25), st.data())
def test_every_problem_is_counted_once_as_in_a_plain_loop(
    rows: list[tuple[Any, str, Any, str]], data: st.DataObject
) -> None:
    rows += [(1.0, "ok", 0.5, "ok"), (0.0, "ok", 0.5, "ok")]
    listed = [
        {"problem_id": i, "model": model, "value": value, "status": status}
        for i, (a, s, b, t) in enumerate(rows)
        for model, value, status in (("new", a, s), ("old", b, t))
    ]
    gone = data.draw(st.sets(st.integers(0, 2 * len(rows) - 5)))
    frame = pl.DataFrame([row for i, row in enumerate(listed) if i not in gone])
    engine = data.draw(st.sampled_from(ENGINES))
    found = tts.compare(
        frame.lazy().with_columns(pl.col("value").cast(pl.Float64)),
        column="model",
        baseline="old",
        by=(),
    ).collect(engine=engine)
    row = found.row(0, named=True)
    for name, value in plain(frame, "new", "old").items():
        assert row[name] == pytest.approx(value, abs=1e-12), name
    total = sum(row[name] for name in row if name.startswith("n_") and name != "n_pairs")
    assert total == len({r["problem_id"] for r in frame.iter_rows(named=True)})


@pytest.mark.parametrize("engine", ENGINES)
def test_replicates_are_averaged_before_they_are_compared(engine: EngineType) -> None:
    draws = random.Random(8)
    rows = [
        {"problem_id": p, "model": model, "seed": seed, "value": float(draws.random() < 0.6)}
        for p in range(30)
        for model, n_seeds in (("new", 3), ("old", 5))
        for seed in range(n_seeds)
    ]
    frame = pl.DataFrame(rows)
    plan = tts.compare(frame.lazy(), column="model", baseline="old", by=(), replicates="seed")
    row = plan.collect(engine=engine).row(0, named=True)
    expected = plain(frame.with_columns(status=pl.lit("ok")), "new", "old")
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, abs=1e-12), name
    assert row["test"] == "paired_t"


def test_averages_that_differ_by_rounding_are_ties() -> None:
    thirds = [0.1, 0.2, 0.6]
    rows = [
        {"problem_id": p, "model": model, "seed": seed, "value": value}
        for p in range(4)
        for model, values in (("new", thirds), ("old", thirds[::-1]))
        for seed, value in enumerate(values)
    ]
    row = compared(pl.DataFrame(rows), replicates=("seed",))
    assert (row["n_wins"], row["n_ties"], row["n_losses"]) == (0, 4, 0)
    assert row["p_value"] == 1.0


@pytest.mark.parametrize("engine", ENGINES)
def test_clusters_are_the_units_where_they_are_named(engine: EngineType) -> None:
    draws = random.Random(2)
    texts = {p: f"text {p % 11}" for p in range(80)}
    ours = [float(draws.random() < 0.4 + (p % 11) / 20) for p in range(80)]
    theirs = [float(draws.random() < 0.5) for _ in range(80)]
    frame = pairs(ours, theirs).with_columns(
        pl.col("problem_id").replace_strict(texts).alias("text"), status=pl.lit("ok")
    )
    plan = tts.compare(frame.lazy(), column="model", baseline="old", by=(), cluster="text")
    row = plan.collect(engine=engine).row(0, named=True)
    for name, value in plain(frame, "new", "old", texts).items():
        assert row[name] == pytest.approx(value, abs=1e-12), name
    assert (row["test"], row["n_clusters"]) == ("clustered_t", 11)
    # Clusters of 7 or 8 problems, so hardly fewer than 10.
    assert row["df"] == pytest.approx(9.9594, abs=1e-4)
    p_value = 2 * stats.t.sf(abs(row["difference"] / row["standard_error"]), row["df"])
    assert row["p_value"] == pytest.approx(p_value)
    half = stats.t.ppf(0.975, row["df"]) * row["standard_error"]
    assert row["ci_high"] - row["ci_low"] == pytest.approx(2 * half)


def test_clusters_of_one_problem_change_nothing_but_the_test() -> None:
    frame = pairs([0.5, 1.0, 0.25, 0.5] * 9, [0.5, 0.5, 0.5, 0.0] * 9)
    alone = compared(frame)
    clustered = compared(frame.with_columns(own=pl.col("problem_id")), cluster="own")
    assert (clustered.pop("n_clusters"), clustered.pop("df")) == (36, pytest.approx(35.0))
    assert (alone.pop("test"), clustered.pop("test")) == ("paired_t", "clustered_t")
    assert (alone.pop("interval"), clustered.pop("interval")) == ("student_t", "clustered_t")
    assert clustered == pytest.approx(alone)


def test_the_wild_bootstrap_draws_from_all_products_of_webbs_weights() -> None:
    """Four clusters have 1,296 combinations, each as likely as the others."""
    sizes, totals = [1, 3, 2, 6], [1.0, 1.5, -0.5, 4.0]
    cluster = [g for g, size in enumerate(sizes) for _ in range(size)]
    differences = [totals[g] / sizes[g] for g in cluster]
    frame = pairs([max(d, 0.0) for d in differences], [max(-d, 0.0) for d in differences])
    frame = frame.with_columns(text=pl.col("problem_id").replace_strict(dict(enumerate(cluster))))
    row = compared(frame, cluster="text", cluster_test="wild_bootstrap")

    def statistic(of: Sequence[float]) -> float:
        mean = sum(of) / 12
        terms = zip(of, sizes, strict=True)
        return abs(mean) / math.sqrt(sum((t - mean * n) ** 2 / (1 - n / 12) for t, n in terms))

    def p_value(mean: float) -> float:
        centered = [t - mean * n for t, n in zip(totals, sizes, strict=True)]
        weights = [sign * math.sqrt(w) for sign in (-1, 1) for w in (0.5, 1.0, 1.5)]
        drawn = [
            statistic([w * t for w, t in zip(choice, centered, strict=True)])
            for choice in itertools.product(weights, repeat=4)
        ]
        return sum(one >= statistic(centered) - 1e-9 for one in drawn) / len(drawn)

    assert row["test"] == row["interval"] == "clustered_wild"
    assert row["p_value"] == pytest.approx(p_value(0.0), abs=0.015)
    for end in (row["ci_low"], row["ci_high"]):
        assert end in {-1.0, 1.0} or p_value(end) == pytest.approx(0.05, abs=0.01)
    with pytest.raises(ParameterError, match="names their column"):
        compared(frame, cluster_test="wild_bootstrap")


def test_a_problem_in_two_clusters_is_an_error() -> None:
    frame = pairs([1.0, 0.0], [0.0, 1.0]).with_columns(text=pl.int_range(pl.len()))
    with pytest.raises(DataError, match=r"problem_id 0: in 2 values of 'text', expected one"):
        compared(frame, cluster="text")


CORRECTED = {
    "none": lambda p: p,
    "bonferroni": lambda p: [min(1.0, len(p) * x) for x in p],
    "benjamini_hochberg": lambda p: stats.false_discovery_control(p).tolist(),
    "holm": lambda p: [
        max(min(1.0, (len(p) - rank) * y) for rank, y in enumerate(sorted(p)) if y <= x) for x in p
    ],
}


@pytest.mark.parametrize("correction", CORRECTED)
def test_corrections_are_over_the_whole_table(correction: Any) -> None:
    draws = random.Random(3)
    frames = [
        pairs(
            [float(draws.random() < 0.5 + budget / 20) for _ in range(60)],
            [float(draws.random() < 0.5) for _ in range(60)],
        ).with_columns(budget=pl.lit(budget, pl.UInt32))
        for budget in range(8)
    ]
    # One without a test, which is not counted among them.
    frames.append(pairs([1.0], [None]).with_columns(budget=pl.lit(99, pl.UInt32)))
    table = tts.compare(pl.concat(frames), column="model", baseline="old", correction=correction)
    assert table["budget"].to_list() == [*range(8), 99]
    assert table["p_adjusted"][-1] is None
    expected = CORRECTED[correction](table["p_value"].drop_nulls().to_list())
    assert table["p_adjusted"].drop_nulls().to_list() == pytest.approx(expected)


def test_holm_by_hand() -> None:
    """Four tests: 4 p1, 3 p2, 2 p3, p4, each at least the one before."""
    tables = [(0, 9, 0, 1), (0, 8, 1, 1), (0, 7, 1, 2), (0, 5, 5, 0)]
    frames = [from_table(*table).with_columns(budget=pl.lit(i)) for i, table in enumerate(tables)]
    table = tts.compare(pl.concat(frames), column="model", baseline="old", mcnemar="exact")
    p = table["p_value"].to_list()
    assert p == pytest.approx([2 / 512, 20 / 512, 18 / 256, 1.0])
    assert table["p_adjusted"].to_list() == pytest.approx([4 * p[0], 3 * p[1], 2 * p[2], 1.0])


@pytest.fixture(scope="module")
def problems() -> pl.DataFrame:
    run = tts.simulate_trajectories(40, 8, seed=3, keys=True)
    return tts.select_answers(run, budgets=[2, 8], reductions=["last", "min"])


def test_a_selector_without_reduction_meets_every_reduction(problems: pl.DataFrame) -> None:
    table = tts.compare(problems)
    lines = table.select("budget", "selector", "reduction", "baseline", "baseline_reduction")
    expected = [
        (budget, selector, reduction, "majority_vote", None)
        for budget in (2, 8)
        for selector in ("best_of_n", "weighted_vote")
        for reduction in ("last", "min")
    ]
    assert lines.rows() == expected
    against = tts.compare(problems, baseline="best_of_n")
    lines = against.select("budget", "selector", "reduction", "baseline_reduction")
    assert lines.rows() == [
        (budget, *line)
        for budget in (2, 8)
        for line in (
            ("majority_vote", None, "last"),
            ("majority_vote", None, "min"),
            ("weighted_vote", "last", "last"),
            ("weighted_vote", "min", "min"),
        )
    ]


def test_a_pair_agrees_in_all_but_what_is_compared(problems: pl.DataFrame) -> None:
    by_budget = tts.compare(problems, column="budget", baseline=2, by=())
    assert by_budget.select("budget", "baseline", "selector", "reduction").rows() == [
        (8, 2, selector, reduction)
        for selector, reduction in (
            ("best_of_n", "last"),
            ("best_of_n", "min"),
            ("majority_vote", None),
            ("weighted_vote", "last"),
            ("weighted_vote", "min"),
        )
    ]
    by_reduction = tts.compare(problems, column="reduction", baseline="last")
    assert by_reduction.select("budget", "reduction", "baseline", "selector").rows() == [
        (budget, "min", "last", selector)
        for budget in (2, 8)
        for selector in ("best_of_n", "weighted_vote")
    ]


def test_each_row_is_what_its_pair_gives_alone(problems: pl.DataFrame) -> None:
    table = tts.compare(problems, correction="none")
    for row in table.iter_rows(named=True):
        kept = (pl.col("selector") == "majority_vote") | (
            (pl.col("selector") == row["selector"]) & (pl.col("reduction") == row["reduction"])
        )
        alone = tts.compare(problems.filter(kept, pl.col("budget") == row["budget"]))
        assert alone.drop("p_adjusted").row(0, named=True) == pytest.approx({
            name: value for name, value in row.items() if name != "p_adjusted"
        })


def test_turning_a_pair_around_turns_its_signs(problems: pl.DataFrame) -> None:
    two = problems.filter(pl.col("selector").is_in(["majority_vote", "weighted_vote"]))
    there = tts.compare(two, baseline="majority_vote").sort("budget", "reduction")
    back = tts.compare(two, baseline="weighted_vote").sort("budget", "baseline_reduction")
    for name, other, sign in (
        ("difference", "difference", -1),
        ("ci_low", "ci_high", -1),
        ("p_value", "p_value", 1),
        ("n_wins", "n_losses", 1),
        ("accuracy", "baseline_accuracy", 1),
        ("standard_error", "standard_error", 1),
    ):
        expected = [sign * value for value in back[other].to_list()]
        assert there[name].to_list() == pytest.approx(expected), name


@pytest.mark.parametrize("engine", ENGINES)
def test_order_and_engine_change_nothing(problems: pl.DataFrame, engine: EngineType) -> None:
    expected = tts.compare(problems, correction="holm")
    for seed in range(2):
        shuffled = problems.sample(fraction=1, shuffle=True, seed=seed).lazy()
        found = tts.compare(shuffled).collect(engine=engine)
        assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-13)


def test_a_budget_that_the_baseline_lacks_is_shown_without_pairs(problems: pl.DataFrame) -> None:
    partial = problems.filter((pl.col("selector") != "majority_vote") | (pl.col("budget") == 2))
    table = tts.compare(partial)
    rows = table.filter(pl.col("budget") == 8)
    assert rows["n_pairs"].to_list() == [0] * 4
    assert rows["n_unpaired"].to_list() == [40] * 4
    assert rows["p_value"].null_count() == 4
    assert table.filter(pl.col("budget") == 2)["n_pairs"].to_list() == [40] * 4


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Boolean, pl.Categorical, pl.Enum(["0", "1"])])
def test_what_is_compared_may_have_any_dtype(dtype: Any) -> None:
    frame = pairs([1.0, 0.5, 0.0] * 5, [0.5, 0.5, 0.5] * 5)
    numbers = (pl.col("model") == "new").cast(pl.Int8)
    text = dtype not in {pl.Int8, pl.Boolean}
    frame = frame.with_columns(model=(numbers.cast(pl.String) if text else numbers).cast(dtype))
    baseline: Any = {pl.Int8: 0, pl.Boolean: False}.get(dtype, "0")
    table = tts.compare(frame, column="model", baseline=baseline, by=())
    assert table.schema["model"] == table.schema["baseline"] == dtype
    assert table["n_pairs"].to_list() == [15]


def test_a_null_is_none_of_the_values_compared() -> None:
    frame = pairs([1.0, 0.0], [0.0, 1.0])
    nulls = frame.filter(model="new").with_columns(model=pl.lit(None, pl.String))
    table = tts.compare(pl.concat([frame, nulls]), column="model", baseline="old", by=())
    assert table["model"].to_list() == ["new"]


def test_by_columns_may_hold_nulls_and_any_name() -> None:
    frame = pairs([1.0, 0.5, 0.0], [0.0, 0.5, 0.5])
    names = ["level", "key0", "reduction_", "value_", "severity", "cluster", "is_baseline", "all"]
    for name in names:
        parts = [frame.with_columns(pl.lit(v, pl.String).alias(name)) for v in (None, "x")]
        table = tts.compare(pl.concat(parts), column="model", baseline="old", by=name)
        assert table[name].to_list() == [None, "x"]
        assert table["n_pairs"].to_list() == [3, 3]


def test_budgets_are_kept_apart_whatever_by_names() -> None:
    run = tts.simulate_trajectories(30, 8, seed=1, keys=True).with_columns(
        tts.step_last("step_scores").alias("score")
    )
    problems = pl.concat(
        tts.select_answers(run, budgets=[2, 8]).with_columns(model=pl.lit(model))
        for model in ("a", "b")
    )
    by_model = tts.compare(problems, by="model")
    assert by_model.columns[:3] == ["model", "budget", "selector"]
    assert_frame_equal(by_model, tts.compare(problems, by=("model", "budget")))
    across = tts.compare(problems, column="model", baseline="a", correction="none")
    for budget in (2, 8):
        alone = tts.compare(
            problems.filter(budget=budget), column="model", baseline="a", correction="none"
        )
        assert_frame_equal(across.filter(budget=budget), alone)


def test_no_baseline_is_an_error_that_lists_what_there_is() -> None:
    frame = pairs([1.0, 0.0], [0.0, 1.0])
    words = r"no row of problems has model == 'base', the baseline; found: \['new', 'old'\]"
    with pytest.raises(DataError, match=words):
        compared(frame, baseline="base")
    plan = tts.compare(frame.lazy(), column="model", baseline="base", by=())
    with pytest.raises(DataError, match=words):
        plan.collect()


def test_two_rows_of_a_problem_on_one_side_are_an_error() -> None:
    frame = pairs([1.0, 0.0], [0.0, 1.0])
    twice = pl.concat([frame, frame.head(1)])
    with pytest.raises(
        DataError, match=r"model 'new', problem_id 0: 3 rows on one side of a pair, expected 2"
    ):
        compared(twice)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"by": ("budget",)}, ColumnsError, "1 missing column for problems: 'budget'"),
        ({"column": "selector"}, ColumnsError, "'selector'"),
        ({"column": "p_value"}, ParameterError, r"column names \['p_value'\]"),
        ({"by": "n_pairs"}, ParameterError, r"by names \['n_pairs'\]"),
        ({"by": "model"}, ParameterError, r"name \['model'\] twice"),
        ({"column": "budget", "by": "budget"}, ParameterError, r"name \['budget'\] twice"),
        ({"cluster": "model"}, ParameterError, "twice"),
        ({"confidence_level": 1.0}, ParameterError, "confidence_level == 1"),
        ({"correction": "sidak"}, ParameterError, "correction == 'sidak', must be one of"),
        ({"baseline": None}, ParameterTypeError, "baseline is a NoneType"),
    ],
)
def test_impossible_options_are_refused_at_once(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    frame = pairs([1.0], [0.0]).lazy()
    with pytest.raises(error, match=words):
        tts.compare(frame, **{"column": "model", "baseline": "old", "by": ()} | options)


def test_a_baseline_of_another_dtype_is_refused_at_once() -> None:
    frame = pairs([1.0], [0.0]).with_columns(model=pl.int_range(pl.len()))
    with pytest.raises(ParameterError, match="baseline == 'old', must be a value of the column"):
        tts.compare(frame.lazy(), column="model", baseline="old", by=())


def test_sizes_of_the_exact_test_are_never_above_the_level() -> None:
    """All fourfold tables of up to 14 differences: the chance to reject, summed exactly."""
    tables = list(itertools.chain.from_iterable([(m, w) for w in range(m + 1)] for m in range(15)))
    frames = [
        from_table(3, wins, m - wins, 3).with_columns(budget=pl.lit(i))
        for i, (m, wins) in enumerate(tables)
    ]
    options = {"column": "model", "baseline": "old", "correction": "none", "mcnemar": "exact"}
    found = tts.compare(pl.concat(frames), **options)
    size: dict[int, float] = defaultdict(float)
    for (m, wins), p_value in zip(tables, found["p_value"], strict=True):
        size[m] += stats.binom.pmf(wins, m, 0.5) * (p_value <= 0.05)
    assert max(size.values()) <= 0.05
    assert max(size.values()) > 0.03


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("cluster_test", [None, "t", "wild_bootstrap"])
def test_intervals_that_are_not_bonett_and_prices_agree_with_the_test(
    level: float, cluster_test: ClusterTest | None
) -> None:
    """Few differences, in few clusters: the bound of the sign test decides, for both."""
    draws = random.Random(7)
    tables = [
        pairs(
            [draws.choice([0.25, 0.5, 0.5, 0.5, 1.0]) for _ in range(n)],
            [draws.choice([0.25, 0.5, 0.5]) for _ in range(n)],
        ).with_columns(budget=pl.lit(i), text=pl.col("problem_id") % 9)
        for i, n in enumerate([6, 8, 12, 20, 40] * 12)
    ]
    found = tts.compare(
        pl.concat(tables),
        column="model",
        baseline="old",
        cluster="text" if cluster_test else None,
        cluster_test=cluster_test or "t",
        confidence_level=level,
        correction="none",
    ).filter(pl.col("interval") != "bonett_price")
    excludes = (found["ci_low"] > 0.0) | (found["ci_high"] < 0.0)
    assert found.height > 20
    assert 0 < excludes.sum() < found.height
    assert excludes.to_list() == (found["p_value"] <= 1.0 - level).to_list()
