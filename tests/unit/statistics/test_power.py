"""Variance components and planned comparisons: closed forms, round trips, simulated power."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars._typing import EngineType
from polars.testing import assert_frame_equal
from scipy import stats

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError

ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")

UNIFORM = tts.statistics.PairedDesign(
    variance_between=1 / 9, variance_within=1 / 6, variance_within_baseline=1 / 6
)


def attempts(problems: Sequence[Sequence[float | None]]) -> pl.DataFrame:
    rows = [(name, value) for name, values in enumerate(problems) for value in values]
    schema = {"problem_id": pl.Int64, "is_correct": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def split(frame: pl.DataFrame) -> dict[str, float | None]:
    return tts.statistics.variance_components(frame).row(0, named=True)


def test_components_by_hand() -> None:
    # Means 1/2, 1, 0; variances 1/3 (of four), 0 (of two), 0 (of three).
    row = split(attempts([[1, 0, 1, 0], [1, 1], [0, 0, 0], [1], [], [None, 1.0]]))
    assert row["n_problems"] == 3
    assert row["n_left_out"] == 2
    assert row["n_attempts"] == pytest.approx(3.0)
    assert row["mean"] == pytest.approx(0.5)
    assert row["variance_within"] == pytest.approx(1 / 9)
    assert row["variance_between"] == pytest.approx(1 / 4 - 1 / 36)
    assert row["standard_error"] == pytest.approx(math.sqrt(1 / 12))
    assert row["standard_error_double_attempts"] == pytest.approx(math.sqrt((1 / 4 - 1 / 72) / 3))
    assert row["standard_error_double_problems"] == pytest.approx(math.sqrt(1 / 24))
    assert row["standard_error_all_attempts"] == pytest.approx(math.sqrt((1 / 4 - 1 / 36) / 3))


@given(st.lists(st.lists(st.floats(0, 1), max_size=5), min_size=1, max_size=12))
def test_components_are_those_of_a_plain_loop(problems: list[list[float]]) -> None:
    kept = [values for values in problems if len(values) > 1]
    frame = attempts(problems)
    if not frame.height:
        return
    row = split(frame)
    assert row["n_problems"] == len(kept)
    assert row["n_left_out"] == sum(len(values) == 1 for values in problems)
    if len(kept) < 2:
        assert row["variance_between"] is None
        assert row["standard_error"] is None
        return
    means = [statistics.fmean(values) for values in kept]
    within = [statistics.variance(values) for values in kept]
    sampling = statistics.fmean(v / len(x) for v, x in zip(within, kept, strict=True))
    assert row["variance_within"] == pytest.approx(statistics.fmean(within), abs=1e-12)
    between = statistics.variance(means) - sampling
    assert row["variance_between"] == pytest.approx(between, abs=1e-12)


def test_components_are_unbiased_with_any_numbers_of_attempts() -> None:
    """Mean over 4,000 runs within 4 standard errors of the truth, 1 to 6 attempts a problem."""
    rng = np.random.default_rng(4)
    a, b, n_runs, n_problems = 2.0, 1.0, 4_000, 12
    mean = a / (a + b)
    between = a * b / ((a + b) ** 2 * (a + b + 1))
    counts = rng.integers(2, 7, (n_runs, n_problems))
    chances = np.repeat(rng.beta(a, b, (n_runs, n_problems)).ravel(), counts.ravel())
    units = np.repeat(np.arange(n_runs * n_problems), counts.ravel())
    frame = pl.DataFrame({
        "run": units // n_problems,
        "problem_id": units % n_problems,
        "is_correct": rng.random(units.size) < chances,
    })
    table = tts.statistics.variance_components(frame, by="run")
    truth = {
        "mean": mean,
        "variance_between": between,
        "variance_within": mean * (1 - mean) - between,
    }
    for name, value in truth.items():
        found = table[name]
        error = statistics.stdev(found) / math.sqrt(n_runs)
        assert abs(statistics.fmean(found) - value) < 4 * error, name
    # Problems that do not differ at all: below 0 as often as not, since nothing is clipped.
    same = frame.with_columns(is_correct=pl.Series(rng.random(units.size) < 0.7))
    between_none = tts.statistics.variance_components(same, by="run")["variance_between"]
    assert abs(statistics.fmean(between_none)) < 4 * statistics.stdev(between_none) / n_runs**0.5
    assert 0.3 < (between_none < 0).mean() < 0.8


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_are_split_each_for_itself_in_any_order(engine: EngineType) -> None:
    draws = random.Random(0)
    frame = pl.DataFrame({
        "model": [draws.choice("ab") for _ in range(400)],
        "problem_id": [draws.randint(0, 30) for _ in range(400)],
        "score": [draws.random() for _ in range(400)],
    })
    expected = pl.concat(
        part.pipe(tts.statistics.variance_components, value="score").insert_column(
            0, pl.Series("model", [name])
        )
        for (name,), part in sorted(frame.partition_by("model", as_dict=True).items())
    )
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1).lazy()
    found = tts.statistics.variance_components(shuffled, value="score", by="model").collect(
        engine=engine
    )
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-14)


def test_a_value_that_is_missing_is_named() -> None:
    with pytest.raises(ColumnsError, match="'score'"):
        tts.statistics.variance_components(attempts([[1, 0]]), value="score")
    with pytest.raises(ParameterError, match=r"by names \['mean'\]"):
        tts.statistics.variance_components(attempts([[1, 0]]).with_columns(mean=1), by="mean")


def test_the_published_example() -> None:
    """Miller (2024), section 5: scores uniform on [0, 1], omega squared 1/9, effect 0.03: 969."""
    exact = tts.statistics.PairedDesign(
        variance_between=1 / 9, variance_within=0.0, variance_within_baseline=0.0
    )
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    published = z * z / 9 / 0.03**2
    assert round(published) == 969
    # Student's quantiles in place of the normal ones take two problems more.
    assert exact.n_problems_needed(0.03, test="paired_t") == 971
    # The mid-p test of single attempts, their default, is as powerful; the exact one is not.
    assert exact.n_problems_needed(0.03) == 967
    assert exact.n_problems_needed(0.03, test="mcnemar_exact") == 1027


def test_millers_formula_is_the_limit() -> None:
    """FORMULAS of the paper: MDE = 2.8 sqrt(omega^2 / Q + (sA^2 + sB^2) / (K Q))."""
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    for n_attempts in (1, 4, 16):
        expected = z * math.sqrt((1 / 9 + 2 / 6 / n_attempts) / 100_000)
        found = UNIFORM.minimum_detectable_effect(n_problems=100_000, n_attempts=n_attempts)
        assert found == pytest.approx(expected, rel=1e-4 if n_attempts > 1 else 2e-3)


@pytest.mark.parametrize("n_problems", [2, 3, 5, 10, 50, 1_000, 100_000])
@pytest.mark.parametrize("effect", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_power_is_that_of_the_noncentral_t(n_problems: int, effect: float) -> None:
    error = UNIFORM.standard_error(n_problems=n_problems, n_attempts=4)
    limit = stats.t.ppf(0.975, n_problems - 1)
    # By its definition: a normal over the root of a chi-squared, integrated over the latter.
    spread = np.sqrt(stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, n_problems - 1))
    scaled = limit * spread / math.sqrt(n_problems - 1)
    shift = effect / error
    expected = np.mean(stats.norm.cdf(shift - scaled) + stats.norm.cdf(-shift - scaled))
    found = UNIFORM.power(effect, n_problems=n_problems, n_attempts=4)
    assert found == pytest.approx(expected, abs=1e-4)
    assert UNIFORM.power(-effect, n_problems=n_problems, n_attempts=4) == found


@given(
    st.floats(0.0, 0.25),
    st.floats(0.001, 0.25),
    st.integers(5, 3_000),
    st.integers(1, 64),
    st.floats(0.1, 0.99),
)
def test_effects_problems_and_attempts_agree(
    between: float, within: float, n_problems: int, n_attempts: int, power: float
) -> None:
    design = tts.statistics.PairedDesign(
        variance_between=between, variance_within=within, variance_within_baseline=within
    )
    effect = design.minimum_detectable_effect(
        n_problems=n_problems, n_attempts=n_attempts, power=power, test="paired_t"
    )
    by_t = {"test": "paired_t"}
    reached = design.power(effect, n_problems=n_problems, n_attempts=n_attempts, **by_t)
    assert reached == pytest.approx(power, abs=1e-9)
    more = effect * (1 + 1e-6)
    assert design.n_problems_needed(more, n_attempts=n_attempts, power=power, **by_t) <= n_problems
    found = design.n_attempts_needed(more, n_problems=n_problems, power=power, **by_t)
    assert found is not None
    assert found <= n_attempts
    if found > 1:
        lacking = design.power(more, n_problems=n_problems, n_attempts=found - 1, **by_t)
        assert lacking < power


def test_needed_numbers_are_the_smallest() -> None:
    n = UNIFORM.n_problems_needed(0.05, n_attempts=4)
    assert UNIFORM.power(0.05, n_problems=n, n_attempts=4) >= 0.8
    assert UNIFORM.power(0.05, n_problems=n - 1, n_attempts=4) < 0.8


def test_more_attempts_do_not_replace_problems() -> None:
    # Without any sampling noise 200 problems show 0.066; no number of attempts shows 0.05.
    assert UNIFORM.n_attempts_needed(0.05, n_problems=200) is None
    assert UNIFORM.n_attempts_needed(0.08, n_problems=200) is not None
    assert UNIFORM.n_attempts_needed(0.0, n_problems=200) is None


@pytest.mark.parametrize("n_attempts", [1, 4])
@pytest.mark.parametrize("n_problems", [40, 300])
def test_stated_power_is_reached_by_the_test_of_compare(n_problems: int, n_attempts: int) -> None:
    """Simulated runs with the effect that is said to be found in 80 of 100."""
    rng = np.random.default_rng([n_problems, n_attempts])
    n_runs = 1_000
    # Truth: chances in the middle, and an effect that differs from problem to problem.
    chances = rng.uniform(0.3, 0.6, (n_runs, n_problems))
    spread = 0.05
    within = 0.45 - 0.45**2 - 0.3**2 / 12
    design = tts.statistics.PairedDesign(
        variance_between=spread**2 / 3,
        variance_within=within,
        variance_within_baseline=within,
    )
    effect = design.minimum_detectable_effect(n_problems=n_problems, n_attempts=n_attempts)
    better = chances + effect + rng.uniform(-spread, spread, chances.shape)
    assert better.max() < 1.0
    shifted = 0.45 + effect
    design = tts.statistics.PairedDesign(
        variance_between=spread**2 / 3,
        variance_within=shifted - shifted**2 - 0.3**2 / 12 - spread**2 / 3,
        variance_within_baseline=within,
    )
    frame = pl.concat(
        pl.DataFrame({
            "run": np.repeat(np.arange(n_runs), n_problems),
            "problem_id": np.tile(np.arange(n_problems), n_runs),
            "value": rng.binomial(n_attempts, p).ravel() / n_attempts,
        }).with_columns(model=pl.lit(model))
        for model, p in (("new", better), ("old", chances))
    )
    table = tts.compare(frame, column="model", baseline="old", by="run", correction="none")
    interval = tts.student_t_interval("difference", "standard_error", "n_pairs", bounds=None)
    found = table.select(interval.struct.field("ci_low") > 0)["ci_low"].mean()
    margin = 4 * math.sqrt(0.16 / n_runs)
    sizes = {"n_problems": n_problems, "n_attempts": n_attempts}
    assert found == pytest.approx(design.power(effect, **sizes, test="paired_t"), abs=margin)
    # What is stated by default is the power of the test that is used.
    rejected = (table["p_value"] <= 0.05).mean()
    assert rejected == pytest.approx(design.power(effect, **sizes), abs=margin)
    if n_attempts == 1:
        exact = tts.compare(
            frame, column="model", baseline="old", by="run", correction="none", mcnemar="exact"
        )
        rejected = (exact["p_value"] <= 0.05).mean()
        stated = design.power(effect, **sizes, test="mcnemar_exact")
        assert rejected == pytest.approx(stated, abs=margin)


def test_the_power_of_mcnemars_test_is_that_of_all_outcomes() -> None:
    n, differ, effect = 20, 0.43, 0.1
    found = dict.fromkeys(("mcnemar_exact", "mcnemar_mid_p"), 0.0)
    for m in range(n + 1):
        for wins in range(m + 1):
            chance = stats.binom.pmf(m, n, differ)
            chance *= stats.binom.pmf(wins, m, 0.5 + effect / differ / 2)
            p_value = stats.binomtest(wins, m).pvalue if m else 1.0
            half = 0.0 if 2 * wins == m else stats.binom.pmf(wins, m, 0.5)
            found["mcnemar_exact"] += chance * (p_value <= 0.05)
            found["mcnemar_mid_p"] += chance * (p_value - half <= 0.05)
    design = tts.statistics.PairedDesign(
        variance_between=differ - effect**2, variance_within=0, variance_within_baseline=0
    )
    for test, power in found.items():
        assert design.power(effect, n_problems=n, test=test) == pytest.approx(power)
    # Four problems cannot reach 5 %, whatever differs.
    assert design.minimum_detectable_effect(n_problems=4) == math.inf
    with pytest.raises(ParameterError, match="McNemar's test is of single attempts"):
        design.power(effect, n_problems=n, n_attempts=2, test="mcnemar_exact")


def pilot(n_problems: int, seed: int) -> pl.DataFrame:
    """Return ragged attempts of two models at the same problems, and of one at more."""
    rng = np.random.default_rng(seed)
    rows = []
    for problem in range(n_problems):
        chance = rng.beta(2, 2)
        for model, p in (("new", min(1.0, chance + 0.1)), ("old", chance)):
            n = rng.integers(2, 6)
            rows += [(problem, model, bool(x)) for x in rng.random(n) < p]
    rows += [(n_problems + 1, "new", True), (n_problems + 1, "new", False)]
    schema = {"problem_id": pl.Int64, "model": pl.String, "is_correct": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_design_from_a_pilot_is_the_split_of_its_differences(is_lazy: bool) -> None:
    frame = pilot(60, seed=1).sample(fraction=1, shuffle=True, seed=0)
    source = frame.lazy() if is_lazy else frame
    design = tts.statistics.PairedDesign.from_attempts(
        source, column="model", contender="new", baseline="old"
    )
    cells: dict[tuple[int, str], list[float]] = defaultdict(list)
    for problem, model, value in frame.rows():
        cells[problem, model].append(float(value))
    differences, sampling = [], []
    for problem in range(60):
        new, old = cells[problem, "new"], cells[problem, "old"]
        differences.append(statistics.fmean(new) - statistics.fmean(old))
        sampling.append(statistics.variance(new) / len(new) + statistics.variance(old) / len(old))
    between = statistics.variance(differences) - statistics.fmean(sampling)
    assert design.variance_between == pytest.approx(max(0.0, between), abs=1e-12)
    for name, found in (
        ("new", design.variance_within),
        ("old", design.variance_within_baseline),
    ):
        expected = statistics.fmean(statistics.variance(cells[p, name]) for p in range(60))
        assert found == pytest.approx(expected, abs=1e-12)


def test_a_pilot_that_shows_nothing_is_an_error() -> None:
    frame = pilot(3, seed=0)
    with pytest.raises(DataError, match="0 problems have two or more attempts of both 'a' and 'b'"):
        tts.statistics.PairedDesign.from_attempts(
            frame, column="model", contender="a", baseline="b"
        )
    with pytest.raises(ColumnsError, match="'run'"):
        tts.statistics.PairedDesign.from_attempts(frame, column="run", contender="a", baseline="b")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: UNIFORM.power(0.1, n_problems=1), "n_problems == 1, must be at least 2"),
        (lambda: UNIFORM.standard_error(n_problems=0), "n_problems == 0"),
        (lambda: UNIFORM.power(0.1, n_problems=9, n_attempts=0), "n_attempts == 0"),
        (lambda: UNIFORM.n_problems_needed(0.1, power=1.0), "power == 1.0"),
        (lambda: UNIFORM.n_problems_needed(0.1, power=0.01), "power == 0.01, must be above"),
        (lambda: UNIFORM.n_problems_needed(0.0), "effect == 0.0, needs more than a billion"),
        (lambda: UNIFORM.power(0.1, n_problems=9, confidence_level=5), "confidence_level"),
        (
            lambda: tts.statistics.PairedDesign(
                variance_between=-0.1, variance_within=0.1, variance_within_baseline=0.1
            ),
            "variance_between == -0.1",
        ),
        (
            lambda: tts.statistics.PairedDesign(
                variance_between=math.nan, variance_within=0.1, variance_within_baseline=0.1
            ),
            "variance_between == nan",
        ),
        (
            lambda: tts.statistics.PairedDesign(
                variance_between=0, variance_within=0, variance_within_baseline=0
            ),
            "are all 0",
        ),
    ],
)
def test_impossible_plans_are_refused(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(ParameterError, match=words):
        call()


def test_numbers_of_problems_are_whole() -> None:
    with pytest.raises(ParameterTypeError, match=r"n_problems must be .*, got float"):
        UNIFORM.power(0.1, n_problems=9.5)  # type: ignore[arg-type]
