"""A seeded part of ``benchmarks/k_scaling.py``: reuse is unbiased, and no rise is seen without one."""

from __future__ import annotations

import pytest

from benchmarks.k_scaling import (
    IT_RISES,
    K_DOES_NOT_MATTER,
    LIMIT,
    ONLY_ACCURACY_RISES,
    World,
    evaluate,
    is_too_often,
    run,
)


def test_reused_draws_agree_with_the_truth_and_save_draws_and_variance() -> None:
    cells, spreads, drawn = evaluate(40, seed=3)
    assert drawn == {False: 16, True: 10}
    assert {(cell.reuse, cell.k) for cell in cells} == {
        (reuse, k) for reuse in (False, True) for k in (1, 5, 10)
    }
    assert [cell for cell in cells if abs(cell.z) > LIMIT] == []
    assert all(spread.reused < spread.fresh for spread in spreads if spread.fresh)


@pytest.mark.parametrize(
    "world", [*K_DOES_NOT_MATTER, *ONLY_ACCURACY_RISES], ids=lambda world: world.name
)
def test_no_rise_is_seen_where_there_is_none(world: World) -> None:
    row = run(world, 10, 60, seed=1)
    assert row.is_null
    assert not is_too_often(row)
    assert row.held >= 0.9


def test_a_rise_is_seen_where_a_bootstrap_and_where_exchanging_would_fail() -> None:
    cliff = run(next(world for world in IT_RISES if world.name == "cliff 3 to 5"), 30, 40, seed=1)
    assert (cliff.rejected, cliff.exchanged) == (1.0, 0.0)
    solved = run(ONLY_ACCURACY_RISES[0], 10, 100, seed=1)
    assert solved.rejected <= 0.05 < solved.bootstrapped
