"""First errors by scores and by labels, beside a plain recount on published labels."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError

NAN = float("nan")
LISTS = pl.List(pl.Float64)


def plain_first_error(scores: list[float | None] | None, threshold: float) -> int | None:
    if scores is None or all(score is None for score in scores):
        return None
    for place, score in enumerate(scores):
        if score is not None and score != score:  # noqa: PLR0124  (NaN)
            return None
        if score is not None and score < threshold:
            return place
    return -1


def plain_f1(found: list[int | None], labels: list[int]) -> dict[str, float | None]:
    """Recount as ProcessBench's code/run_eval.py does, without attempts that have no scores."""
    pairs = [(f, label) for f, label in zip(found, labels, strict=True) if f is not None]
    wrong = [f == label for f, label in pairs if label != -1]
    right = [f == label for f, label in pairs if label == -1]
    a_e = sum(wrong) / len(wrong) if wrong else None
    a_c = sum(right) / len(right) if right else None
    f1 = None
    if a_e is not None and a_c is not None:
        f1 = 2 * a_e * a_c / (a_e + a_c) if a_e + a_c else 0.0
    return {"first_error_accuracy": a_e, "no_error_accuracy": a_c, "f1": f1}


def check(solutions: pl.DataFrame, labels: list[int], thresholds: list[float]) -> pl.DataFrame:
    table = tts.verifier.processbench_f1(solutions, error_threshold=thresholds, labels="label")
    for row, threshold in zip(table.iter_rows(named=True), sorted(thresholds), strict=True):
        found = [plain_first_error(each, threshold) for each in solutions["step_scores"].to_list()]
        for name, value in plain_f1(found, labels).items():
            assert row[name] == (None if value is None else pytest.approx(value, rel=1e-12))
    return table


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_first_error_equals_a_plain_loop(engine: Any) -> None:
    draws = random.Random(0)
    rows: list[list[float | None] | None] = [None, [], [None], [None, 0.1], [NAN, 0.1], [0.1, NAN]]
    rows += [
        [draws.choice([None, NAN, 0.25, 0.5, 0.75, 1.0, 1.0]) for _ in range(draws.randrange(9))]
        for _ in range(500)
    ]
    frame = pl.LazyFrame({"steps": pl.Series(rows, dtype=LISTS)})
    for threshold in (-1.0, 0.25, 0.5, 0.6, 2):
        found = frame.select(tts.verifier.first_error("steps", threshold)).collect(engine=engine)[
            "steps"
        ]
        assert found.dtype == pl.Int64
        assert found.to_list() == [plain_first_error(row, threshold) for row in rows]
    assert frame.select(pl.col("steps").tts.first_error(0.6)).collect()["steps"].len() == len(rows)  # type: ignore[attr-defined]


def test_labels_of_steps_have_a_first_error_too() -> None:
    labels = pl.Series([[True, False, False], [True, True]])
    assert pl.select(tts.verifier.first_error(labels)).to_series().to_list() == [1, -1]
    ratings = pl.Series([[1, 0, -1], [0, 1]])
    assert pl.select(tts.verifier.first_error(ratings, 0)).to_series().to_list() == [2, -1]
    arrays = pl.Series([[0.1, 0.9]], dtype=pl.Array(pl.Float32, 2))
    assert pl.select(tts.verifier.first_error(arrays)).to_series().to_list() == [0]


def simulated(labels: list[int], n_steps: list[int], seed: int) -> pl.DataFrame:
    """Return solutions whose scores fall from the labelled first error on, with some noise."""
    draws = random.Random(seed)
    scores = [
        [draws.betavariate(2, 4) if 0 <= label <= i else draws.betavariate(8, 2) for i in range(n)]
        for label, n in zip(labels, n_steps, strict=True)
    ]
    return pl.DataFrame({"step_scores": pl.Series(scores, dtype=LISTS), "label": labels})


@pytest.mark.parametrize("seed", range(5))
def test_f1_equals_a_plain_recount_on_simulated_labels(seed: int) -> None:
    draws = random.Random(100 + seed)
    n_steps = [draws.randint(1, 12) for _ in range(300)]
    labels = [draws.randrange(-1, n) for n in n_steps]
    table = check(simulated(labels, n_steps, seed), labels, [0.0, 0.3, 0.5, 0.7, 1.1])
    # Nothing flagged: no first error is found; all flagged: no right solution passes.
    assert table["f1"][0] == table["f1"][-1] == 0.0
    assert table["f1"].max() > 0.6


def test_f1_equals_a_plain_recount_on_prmbench_labels(shared_data: Path) -> None:
    rows = [
        json.loads(line)
        for path in sorted((shared_data / "prmbench").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    n_steps = [len(row["modified_process"]) for row in rows]
    # PRMBench lists the numbers of wrong steps from 1, none where the solution is right.
    labels = [min(row["error_steps"], default=0) - 1 for row in rows]
    assert len(rows) >= 165
    check(simulated(labels, n_steps, 1), labels, [0.3, 0.5, 0.7])
    # The solutions at hand are all right, so errors are put into every second one of them.
    broken = [
        random.Random(i).randrange(n) if i % 2 else label
        for i, (label, n) in enumerate(zip(labels, n_steps, strict=True))
    ]
    table = check(simulated(broken, n_steps, 2), broken, [0.3, 0.5, 0.7])
    assert table["f1"].null_count() == 0
    assert table["n_wrong"][0] + table["n_right"][0] == len(rows)


def test_lists_of_labels_and_positions_agree() -> None:
    n_steps = [4, 4, 3, 5]
    labels = [2, -1, 0, 4]
    solutions = simulated(labels, n_steps, 3).with_columns(
        step_labels=pl.Series([
            [i < label or label < 0 for i in range(n)]
            for label, n in zip(labels, n_steps, strict=True)
        ])
    )
    lists = tts.verifier.processbench_f1(solutions)
    assert lists.equals(tts.verifier.processbench_f1(solutions, labels="label"))


def test_what_is_missing_is_left_out_and_counted() -> None:
    solutions = pl.DataFrame({
        "step_scores": pl.Series([[0.9, 0.1], [0.9], [], [0.9]], dtype=LISTS),
        "label": [1, -1, 0, None],
        "subset": ["a", "a", "a", "b"],
    })
    a, b = tts.verifier.processbench_f1(solutions, labels="label", by="subset").to_dicts()
    counts = ("n_wrong", "n_right", "n_unscored", "n_unlabelled")
    assert [a[name] for name in counts] == [1, 1, 1, 0]
    assert [b[name] for name in counts] == [0, 0, 0, 1]
    assert (a["f1"], b["f1"]) == (1.0, None)


def test_one_kind_of_solution_has_no_f1() -> None:
    right = pl.DataFrame({"step_scores": [[0.9], [0.2]], "label": [-1, -1]})
    row = tts.verifier.processbench_f1(right, labels="label").row(0, named=True)
    assert (row["no_error_accuracy"], row["first_error_accuracy"], row["f1"]) == (0.5, None, None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"error_threshold": NAN}, ParameterError, "threshold is NaN"),
        ({"error_threshold": []}, ParameterError, "threshold is empty"),
        ({"error_threshold": "high"}, ParameterTypeError, "threshold must be a number, got str"),
        ({"error_threshold": True}, ParameterTypeError, "threshold must be a number, got bool"),
        ({"labels": "gold"}, ColumnsError, r"'gold'.*Hint: labels='gold'"),
        ({"labels": "text"}, ColumnsError, "'text' is String"),
        ({"by": "f1"}, ParameterError, "by names .'f1'."),
    ],
)
def test_what_cannot_be_used(options: dict[str, Any], error: type[Exception], message: str) -> None:
    frame = pl.LazyFrame({"step_scores": [[0.5]], "step_labels": [[1]], "text": ["x"]})
    with pytest.raises(error, match=message):
        tts.verifier.processbench_f1(frame, **options)
