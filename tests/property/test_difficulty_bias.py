"""A seeded part of ``benchmarks/difficulty_bias.py``: levels that bias a curve, and levels that do not."""

from __future__ import annotations

import pytest

from benchmarks.difficulty_bias import N_LEVELS, Setting, rows_of, unexpected_rows


@pytest.mark.parametrize("setting", [Setting(4, None), Setting(16, (0.5, 0.5))], ids=str)
def test_levels_from_other_attempts_bias_no_curve_and_levels_from_the_same_do(
    setting: Setting,
) -> None:
    rows = rows_of(setting, 40, seed=1)
    assert {row.way for row in rows} == {"same sample", "cross-fitted", "reference"}
    assert unexpected_rows(rows) == ([], [])
    hardest = {row.way: row for row in rows if row.level == N_LEVELS}
    easiest = {row.way: row for row in rows if row.level == 1}
    assert hardest["same sample"].mean < hardest["same sample"].truth
    assert easiest["same sample"].mean > easiest["same sample"].truth


def test_equal_problems_look_unequal_on_the_same_attempts_alone() -> None:
    rows = rows_of(Setting(4, None), 40, seed=2)
    means = {(row.way, row.level): row.mean for row in rows}
    assert means["same sample", N_LEVELS] < 0.2
    assert means["cross-fitted", N_LEVELS] == pytest.approx(0.5, abs=0.02)
    assert means["reference", N_LEVELS] == pytest.approx(0.5, abs=0.02)
