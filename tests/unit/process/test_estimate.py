"""Values of steps beside a plain recount, enumerated subsets and simulations of known truth."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import selectors as cs
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError
from ttsframe.readers.steps import WritableStepFormat

ENGINES = ["in-memory", "streaming"]
SIZES = [1, 2, 5]
SCHEMA = {
    "problem_id": pl.String,
    "solution_id": pl.Int64,
    "step": pl.Int64,
    "rollout": pl.Int64,
    "is_correct": pl.Boolean,
}

Share = tuple[Any, Any, Any]
Grades = dict[tuple[str, int, int], list[bool | None]]


def frame_of(grades: Grades) -> pl.DataFrame:
    """Return rollouts in a scrambled order."""
    rows = [(*key, i, grade) for key, found in grades.items() for i, grade in enumerate(found)]
    random.Random(len(rows)).shuffle(rows)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def plain_wilson(c: int, n: int) -> tuple[float, float]:
    """Solve the quadratic of the score test, as a textbook does."""
    z = NormalDist().inv_cdf(0.975)
    p, centre = c / n, (c / n + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return centre - half, centre + half


def plain_steps(grades: Grades, threshold: float) -> list[dict[str, Any]]:
    """Recount as a loop over dicts would."""
    rows: dict[tuple[str, int, int], dict[str, Any]] = {}
    for key in sorted(grades):
        known = [grade for grade in grades[key] if grade is not None]
        n, c = len(known), sum(known)
        low, high = plain_wilson(c, n) if n else (None, None)
        earlier = rows.get((*key[:2], key[2] - 1), {})
        before = earlier.get("soft")
        soft = c / n if n else None
        rows[key] = {
            **dict(zip(("problem_id", "solution_id", "step"), key, strict=True)),
            "n_rollouts": n,
            "n_correct": c,
            "n_ungraded": len(grades[key]) - n,
            "hard": c > 0 if n else None,
            "soft": soft,
            "ci_low": low,
            "ci_high": high,
            **{f"hard@{m}": any_right_by_subsets(known, m) for m in SIZES},
            **plain_advantage(
                (soft, low, high), (before, earlier.get("ci_low"), earlier.get("ci_high"))
            ),
            "is_correct": soft > threshold if n and key[2] >= 0 else None,
            "is_first_error": False,
            "first_error_chance": None,
        }
    for _, group in itertools.groupby(rows.values(), lambda row: list(row.values())[:2]):
        solution, right = [*group], 1.0
        for row in solution:
            if row["is_correct"] is not None:
                chance = plain_wrong_chance(row["n_rollouts"], row["n_correct"], threshold)
                row["first_error_chance"] = right * chance
                right *= 1.0 - chance
        wrong = [row for row in solution if row["is_correct"] is False]
        if wrong:
            wrong[0]["is_first_error"] = True
    return list(rows.values())


def plain_wrong_chance(n: int, c: int, threshold: float) -> float:
    """Add up the chances that k of n new rollouts are right, for a uniform prior and c right of n."""

    def beta(a: int, b: int) -> Fraction:
        return Fraction(math.factorial(a - 1) * math.factorial(b - 1), math.factorial(a + b - 1))

    chances = [
        math.comb(n, k) * beta(k + c + 1, 2 * n - k - c + 1) / beta(c + 1, n - c + 1)
        for k in range(n + 1)
        if k / n <= threshold + 1e-9
    ]
    return float(sum(chances))


def plain_advantage(now: Share, before: Share) -> dict[str, float | None]:
    names = ("advantage", "advantage_ci_low", "advantage_ci_high")
    if None in now or None in before:
        return dict.fromkeys(names)
    (p, low, high), (q, low_q, high_q) = now, before
    gap = p - q
    ends = gap - math.hypot(p - low, high_q - q), gap + math.hypot(high - p, q - low_q)
    return dict(zip(names, (gap, *ends), strict=True))


def any_right_by_subsets(known: list[bool], m: int) -> float | None:
    subsets = [any(subset) for subset in itertools.combinations(known, m)]
    return sum(subsets) / len(subsets) if subsets else None


GRADES = st.dictionaries(
    st.tuples(st.sampled_from("pq"), st.integers(0, 2), st.integers(-1, 3)),
    st.lists(st.sampled_from([True, False, False, None]), min_size=1, max_size=7),
    max_size=16,
)


@pytest.mark.parametrize("engine", ENGINES)
@given(grades=GRADES, threshold=st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_steps_equal_a_plain_recount(engine: Any, grades: Grades, threshold: float | None) -> None:
    plan = tts.process.estimate_steps(
        frame_of(grades).lazy(), n_rollouts=SIZES, right_above=threshold
    )
    expected = pl.DataFrame(plain_steps(grades, threshold), schema=plan.collect_schema())
    assert_frame_equal(plan.collect(engine=engine), expected, rel_tol=1e-12, abs_tol=1e-13)


def test_the_worked_example_of_math_shepherd() -> None:
    rollouts = pl.DataFrame({
        "problem_id": ["7 x 6 + 5"] * 5,
        "solution_id": ["s"] * 5,
        "step": [0] * 5,
        "rollout": range(5),
        "answer": ["47", "46", "47", "47.0", "41"],
        "gold": ["47"] * 5,
    })
    row = tts.process.estimate_steps(rollouts).row(0, named=True)
    assert (row["hard"], row["soft"], row["n_correct"]) == (True, 0.6, 3)


def test_grades_come_from_what_is_there() -> None:
    rollouts = pl.DataFrame({
        "problem_id": ["p"] * 3,
        "solution_id": [0] * 3,
        "step": [0] * 3,
        "rollout": [0, 1, 2],
        "completion": [r"so \boxed{0.5}", r"so \boxed{7}", "I give up"],
        "gold": [r"\frac{1}{2}"] * 3,
        "step_scores": ["not read"] * 3,
        "score": ["not read"] * 3,
    })
    from_texts = tts.process.estimate_steps(rollouts)
    assert from_texts.select("n_rollouts", "n_correct", "n_ungraded").row(0) == (3, 1, 0)
    answered = rollouts.drop("completion").with_columns(answer=pl.Series(["1/2", "7", None]))
    assert tts.process.estimate_steps(answered).equals(from_texts)
    keyed = answered.select(
        pl.all().exclude("answer", "gold"),
        answer_key=tts.answer_key("answer"),
        gold_key=tts.gold_key("gold"),
    )
    assert tts.process.estimate_steps(keyed).equals(from_texts)
    # A recorded grade is kept, as everywhere.
    recorded = rollouts.with_columns(is_correct=pl.Series([False, None, True]))
    assert tts.process.estimate_steps(recorded).select("n_correct", "n_ungraded").row(0) == (1, 1)
    ungradable = rollouts.with_columns(gold=pl.lit(None, pl.String))
    assert tts.process.estimate_steps(ungradable).select("n_rollouts", "n_ungraded", "hard").row(
        0
    ) == (
        0,
        3,
        None,
    )


def test_a_gap_in_the_steps_has_no_advantage_and_is_passed_over() -> None:
    grades: Grades = {
        ("p", 0, 0): [True, True],
        ("p", 0, 2): [True, False],
        ("p", 0, 3): [False, False],
        ("p", 0, 4): [False, False],
    }
    steps = tts.process.estimate_steps(frame_of(grades))
    assert steps["advantage"].to_list() == [None, None, -0.5, 0.0]
    assert steps["is_first_error"].to_list() == [False, False, True, False]


def test_the_problem_itself_is_the_step_before_the_first() -> None:
    grades: Grades = {
        ("p", 0, -1): [False, False, False, False],
        ("p", 0, 0): [True, False, False, False],
        ("p", 1, 0): [False],
    }
    steps = tts.process.estimate_steps(frame_of(grades), right_above=0.2)
    assert steps["advantage"].to_list() == [None, 0.25, None]
    assert steps["is_correct"].to_list() == [None, True, False]
    assert steps["is_first_error"].to_list() == [False, False, True]


def test_an_ungraded_step_is_not_an_error() -> None:
    grades: Grades = {("p", 0, 0): [None, None], ("p", 0, 1): [False], ("p", 0, 2): [True]}
    steps = tts.process.estimate_steps(frame_of(grades), n_rollouts=1)
    assert steps["hard"].to_list() == [None, False, True]
    assert steps["hard@1"].to_list() == [None, 0.0, 1.0]
    assert steps["advantage"].to_list() == [None, None, 1.0]
    assert steps["is_first_error"].to_list() == [False, True, False]


def test_what_was_not_sampled_is_known() -> None:
    grades: Grades = {("p", 0, 0): [True, False, True], ("p", 0, 1): [True, True, True]}
    rollouts = frame_of(grades).with_columns(is_sampled=pl.col("step") == 0)
    steps = tts.process.estimate_steps(rollouts)
    assert steps["ci_low"].to_list() == [pytest.approx(plain_wilson(2, 3)[0]), 1.0]
    assert steps["ci_high"].to_list() == [pytest.approx(plain_wilson(2, 3)[1]), 1.0]
    sampled = tts.process.estimate_steps(rollouts.drop("is_sampled"))
    assert sampled["ci_low"][1] < 0.5
    assert steps["first_error_chance"][1] == 0.0
    assert sampled["first_error_chance"][1] > 0.0
    others = ~(cs.contains("ci_") | cs.by_name("first_error_chance"))
    assert sampled.select(others).equals(steps.select(others))


def test_labels_are_written_in_every_writable_format_and_read_back(tmp_path: Path) -> None:
    grades: Grades = {("p", s, k): [s == 0 or k == 0, False] for s in (0, 1) for k in (0, 1)}
    labels = tts.process.estimate_steps(frame_of(grades)).with_columns(
        problem=pl.lit("What is 6 x 7?"),
        text=pl.format("Step {}: so {}.", pl.col("step") + 1, "solution_id"),
    )
    texts = ["problem_id", "solution_id", "step", "problem", "text"]
    for name in get_args(WritableStepFormat):
        path = tmp_path / f"{name}.jsonl"
        tts.write_steps(labels.select(*texts, "is_correct"), path, format=name)
        back = tts.read_steps(path)
        assert back.select("text", "is_correct").sort("text").rows() == (
            labels.select("text", "is_correct").sort("text").rows()
        ), name


def test_runs_are_told_apart() -> None:
    grades: Grades = {("p", 0, 0): [True, False], ("p", 0, 1): [False, False]}
    one = frame_of(grades)
    both = pl.concat([one.with_columns(n_rows=pl.lit(name)) for name in "xy"])
    steps = tts.process.estimate_steps(both, by="n_rows")
    for name in "xy":
        assert steps.filter(n_rows=name).drop("n_rows").equals(tts.process.estimate_steps(one))
    with pytest.raises(DataError, match=r"solution_id 0, step 0: 4 rollouts with 2 numbers.*by="):
        tts.process.estimate_steps(both)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("step", [None, -2, 2**63])
def test_a_step_that_is_none_is_refused_on_collection(engine: Any, step: int | None) -> None:
    frame = frame_of({("p", 0, 0): [True]}).with_columns(
        step=pl.Series([step], dtype=pl.Int64 if step is None or step < 0 else pl.UInt64)
    )
    plan = tts.process.estimate_steps(frame.lazy())
    with pytest.raises(DataError, match=r"problem_id 'p'.*must be a number from 0, or -1"):
        plan.collect(engine=engine)
    # Also where none of what it spoils is asked for.
    with pytest.raises(DataError):
        plan.select("problem_id").collect(engine=engine)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (lambda f: f.drop("rollout"), {}, ColumnsError, "1 missing column for rollouts: 'rollout'"),
        (lambda f: f.drop("is_correct"), {}, ColumnsError, "'is_correct'.*'answer' is graded"),
        (
            lambda f: f.drop("is_correct").with_columns(answer=pl.lit("1")),
            {},
            ColumnsError,
            "'is_correct'.*'gold'",
        ),
        (lambda f: f.cast({"is_correct": pl.Int8}), {}, ColumnsError, "is Int8, must be Boolean"),
        (lambda f: f.cast({"step": pl.String}), {}, ColumnsError, "'step' is String"),
        (lambda f: f.cast({"step": pl.Float64}), {}, ColumnsError, "'step' is Float64"),
        (lambda f: f, {"n_rollouts": 0}, ParameterError, "n_rollouts == 0, must be at least 1"),
        (lambda f: f, {"n_rollouts": []}, ParameterError, "n_rollouts is empty"),
        (lambda f: f, {"n_rollouts": [1.5]}, ParameterTypeError, "n_rollouts must be an int"),
        (lambda f: f, {"right_above": 1.5}, ParameterError, "right_above == 1.5"),
        (lambda f: f, {"right_above": math.nan}, ParameterError, "right_above == nan"),
        (lambda f: f, {"confidence_level": 1.0}, ParameterError, "confidence_level"),
        (lambda f: f, {"by": "soft"}, ParameterError, "by names"),
        (lambda f: f, {"by": "hard@2", "n_rollouts": 2}, ParameterError, "by names"),
        (lambda f: f, {"by": "model"}, ColumnsError, "'model'"),
        (
            lambda f: f.to_dicts(),
            {},
            ParameterTypeError,
            "rollouts must be a polars DataFrame or LazyFrame, got list",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    change: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    frame = change(frame_of({("p", 0, 0): [True, False]}))
    lazy = frame.lazy() if isinstance(frame, pl.DataFrame) else frame
    with pytest.raises(error, match=message):
        tts.process.estimate_steps(lazy, **options)


def test_hostile_rows_are_counted_and_nothing_else() -> None:
    answers = [None, "", "9" * 100_000, "{" * 10_000, "\\boxed{" * 500, "10^10^10^10", "\0", "2"]
    rollouts = pl.DataFrame({
        "problem_id": [""] * len(answers),
        "solution_id": [None] * len(answers),
        "step": [0] * len(answers),
        "rollout": range(len(answers)),
        "answer": answers,
        "gold": ["2"] * len(answers),
    })
    row = tts.process.estimate_steps(rollouts).row(0, named=True)
    assert (row["n_rollouts"], row["n_correct"], row["n_ungraded"]) == (8, 1, 0)


def simulated(truth: np.ndarray, n: int, seed: int) -> pl.DataFrame:
    """Return n rollouts of each step; `truth` is (n_solutions, n_steps) chances to be right."""
    rng = np.random.default_rng(seed)
    n_solutions, n_steps = truth.shape
    grid = np.indices((n_solutions, n_steps, n)).reshape(3, -1)
    return pl.DataFrame({
        "problem_id": grid[0] // 2,
        "solution_id": grid[0],
        "step": grid[1],
        "rollout": grid[2],
        "is_correct": rng.random(grid.shape[1]) < truth[grid[0], grid[1]],
    })


def test_hard_rises_with_the_number_of_rollouts_as_pass_at_n_does() -> None:
    rng = np.random.default_rng(0)
    truth = rng.beta(0.5, 2.0, (500, 6))
    for n in (1, 4, 16):
        steps = tts.process.estimate_steps(simulated(truth, n, seed=n))
        expected = (1 - (1 - truth) ** n).mean()
        error = math.sqrt(expected * (1 - expected) / truth.size)
        assert steps["hard"].mean() == pytest.approx(expected, abs=4 * error)
        assert steps["soft"].mean() == pytest.approx(truth.mean(), abs=4 * error)


def test_hard_at_fewer_rollouts_is_what_fewer_rollouts_say_on_average() -> None:
    truth = np.random.default_rng(1).beta(0.5, 2.0, (500, 6))
    stored = tts.process.estimate_steps(simulated(truth, 16, seed=2), n_rollouts=[1, 4])
    for m in (1, 4):
        expected = (1 - (1 - truth) ** m).mean()
        found = stored[f"hard@{m}"]
        # The spread over 3,000 steps of the estimates about what they estimate.
        errors = found.to_numpy() - (1 - (1 - truth) ** m).ravel()
        assert found.mean() == pytest.approx(expected, abs=4 * errors.std() / math.sqrt(truth.size))
        # The plain label of all 16 is far from it.
        assert stored["hard"].mean() > expected + 0.1


@pytest.mark.parametrize("p", [0.05, 0.3, 0.8])
def test_the_interval_covers_the_chance_that_soft_estimates(p: float) -> None:
    steps = tts.process.estimate_steps(simulated(np.full((2_000, 1), p), 32, seed=3))
    covered = ((steps["ci_low"] <= p) & (p <= steps["ci_high"])).mean()
    exact = sum(
        math.comb(32, c) * p**c * (1 - p) ** (32 - c)
        for c in range(33)
        if plain_wilson(c, 32)[0] <= p <= plain_wilson(c, 32)[1]
    )
    assert covered == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2_000))
    assert covered > 0.92


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.1, 0.9), (0.05, 0.2)])
def test_the_interval_covers_the_advantage(p: float, q: float) -> None:
    steps = tts.process.estimate_steps(simulated(np.full((2_000, 2), [q, p]), 16, seed=6))
    after = steps.filter(step=1)
    covered = after.select(
        pl.lit(p - q).is_between("advantage_ci_low", "advantage_ci_high").mean()
    ).item()
    shares = [(c / 16, *plain_wilson(c, 16)) for c in range(17)]
    exact = 0.0
    for c, d in itertools.product(range(17), repeat=2):
        found = plain_advantage(shares[c], shares[d])
        if found["advantage_ci_low"] <= p - q <= found["advantage_ci_high"]:
            chances = [math.comb(16, k) * r**k * (1 - r) ** (16 - k) for k, r in ((c, p), (d, q))]
            exact += chances[0] * chances[1]
    assert covered == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2_000))
    assert covered > 0.9


def test_advantages_are_the_differences_of_the_truth_on_average() -> None:
    rng = np.random.default_rng(4)
    truth = np.clip(np.cumsum(rng.normal(0, 0.1, (400, 5)), axis=1) + 0.5, 0, 1)
    steps = tts.process.estimate_steps(simulated(truth, 8, seed=5))
    found = steps["advantage"].to_numpy().reshape(400, 5)
    assert np.isnan(found[:, 0]).all()
    errors = found[:, 1:] - np.diff(truth, axis=1)
    expected = ((truth * (1 - truth))[:, 1:] + (truth * (1 - truth))[:, :-1]) / 8
    assert abs(errors.mean()) < 4 * math.sqrt(expected.mean() / errors.size)
    assert errors.var() == pytest.approx(expected.mean(), rel=0.1)
