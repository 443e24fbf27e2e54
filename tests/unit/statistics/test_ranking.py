"""Ranks, their intervals and sets, against plain loops."""

from __future__ import annotations

import itertools
import random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from benchmarks.rank_coverage import WORLDS, coverage
from ttsframe.errors import ColumnsError, DataError, ParameterError


def table_of(values: dict[str, list[float]], **more: Any) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame({"problem_id": range(len(own)), "model": model, "value": own, **more})
        for model, own in values.items()
    )


def drawn(chances: dict[str, float], n: int, seed: int) -> pl.DataFrame:
    draws = random.Random(seed)
    return table_of({m: [float(draws.random() < p) for _ in range(n)] for m, p in chances.items()})


def plain_ranks(frame: pl.DataFrame, **options: Any) -> dict[str, tuple[int, int]]:
    """Invert all pairs of `compare`, corrected over all of them as Holm does, as loops."""
    models = frame["model"].unique().sort().to_list()
    found = {}
    for a, b in itertools.combinations(models, 2):
        pair = frame.filter(pl.col("model").is_in([a, b]))
        row = tts.compare(pair, column="model", baseline=b, **options).row(0, named=True)
        found[a, b] = (row["p_value"], row["difference"])
    ordered = sorted(found, key=lambda pair: found[pair][0])
    above: set[tuple[str, str]] = set()
    for i, pair in enumerate(ordered):
        p_value, difference = found[pair]
        if p_value * (len(ordered) - i) > 0.05:
            break
        above.add(pair if difference > 0 else pair[::-1])
    return {
        m: (1 + sum(b == m for _, b in above), len(models) - sum(a == m for a, _ in above))
        for m in models
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cluster", [None, "text"])
def test_intervals_invert_the_adjusted_pairs(seed: int, cluster: str | None) -> None:
    chances = {"a": 0.2, "b": 0.25, "c": 0.5, "d": 0.55, "e": 0.9}
    frame = drawn(chances, 60, seed).with_columns(text=pl.col("problem_id") // 3)
    table = tts.rank(frame, column="model", cluster=cluster, n_resamples=50)
    wanted = plain_ranks(frame, cluster=cluster)
    assert {
        row["model"]: (row["rank_low"], row["rank_high"]) for row in table.iter_rows(named=True)
    } == wanted
    differ = {
        (a, b)
        for a, b in itertools.permutations(chances, 2)
        if wanted[a][0] > wanted[b][1] or wanted[b][0] > wanted[a][1]
    }
    sets = dict(table.select("model", "sets").iter_rows())
    for a, b in differ:
        assert not {*sets[a]} & {*sets[b]}
    # Sets are the largest without a difference, so each has members, and none is inside another.
    members = [
        {m for m in sets if number in sets[m]}
        for number in range(1, max(map(max, sets.values())) + 1)
    ]
    assert all(members)
    assert not any(a < b for a, b in itertools.permutations(members, 2))
    assert table["share_of_resamples_best"].sum() == pytest.approx(1.0)
    assert table["rank"].is_sorted()


def test_equal_values_share_their_rank_and_the_resamples() -> None:
    frame = table_of({m: [1.0, 0.0, 0.5, 1.0] for m in "abc"})
    table = tts.rank(frame, column="model", n_resamples=10)
    assert table["rank"].to_list() == [1, 1, 1]
    assert table.select("rank_low", "rank_high").unique().row(0) == (1, 3)
    assert table["share_of_resamples_best"].to_list() == pytest.approx([1 / 3] * 3)
    assert table["sets"].to_list() == [[1], [1], [1]]


def test_only_problems_that_all_have_count_and_budgets_are_apart() -> None:
    frame = table_of({"a": [1.0, 1.0, 0.0], "b": [0.0, 1.0, None]}, budget=4)  # type: ignore[list-item]
    both = pl.concat([frame, frame.with_columns(budget=8).filter(pl.col("problem_id") < 1)])
    table = tts.rank(both, column="model", n_resamples=5)
    assert table.select("budget", "model", "n_problems", "n_left_out").rows() == [
        (4, "a", 2, 1),
        (4, "b", 2, 1),
        (8, "a", 1, 0),
        (8, "b", 1, 0),
    ]
    # A single problem tells nothing apart.
    assert table.filter(budget=8).select("rank_low", "rank_high").rows() == [(1, 2), (1, 2)]


def test_selectors_are_ranked_with_their_reductions_without_the_oracle() -> None:
    run = tts.simulate_trajectories(30, 8, seed=3, keys=True)
    problems = tts.select_answers(
        run,
        selectors=["majority_vote", "best_of_n", "oracle"],
        reductions=["last", "min"],
        budgets=8,
    )
    table = tts.rank(problems, n_resamples=20)
    assert sorted(table.select("selector", "reduction").rows(), key=str) == [
        ("best_of_n", "last"),
        ("best_of_n", "min"),
        ("majority_vote", None),
    ]
    assert_frame_equal(tts.rank(problems.lazy(), n_resamples=20).collect(), table)
    shuffled = problems.sample(fraction=1.0, shuffle=True, seed=1)
    assert_frame_equal(tts.rank(shuffled, n_resamples=20), table)
    assert tts.rank(problems.lazy()).collect_schema() == table.schema


def test_what_cannot_be_ranked_is_refused() -> None:
    frame = table_of({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    with pytest.raises(ColumnsError, match="'modell'"):
        tts.rank(frame, column="modell")
    with pytest.raises(ParameterError, match=r"name \['model'\] twice"):
        tts.rank(frame, column="model", by="model")
    with pytest.raises(ParameterError, match="n_resamples"):
        tts.rank(frame, column="model", n_resamples=0)
    with pytest.raises(DataError, match="2 rows of one value of the ranked column"):
        tts.rank(pl.concat([frame, frame]), column="model")
    assert tts.rank(frame.head(0), column="model").is_empty()


@pytest.mark.parametrize("world", ["10 equal", "5 equal, 5 better by .3"])
def test_a_seeded_part_of_the_coverage(world: str) -> None:
    held, _, _ = coverage(WORLDS[world], 60, 60, 1)
    # 95 less three Monte-Carlo standard errors of 60 runs.
    assert held >= 95.0 - 300.0 * (0.05 * 0.95 / 60) ** 0.5
