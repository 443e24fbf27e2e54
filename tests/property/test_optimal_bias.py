"""A seeded part of ``benchmarks/optimal_bias.py``: cross-fitted lines are unbiased."""

from __future__ import annotations

import polars as pl

from benchmarks.optimal_bias import IN_SAMPLE, SETTINGS, failed_claims, study

N_RUNS = {"equal": 150, "opposed": 6, "own levels": 4, "other half's levels": 6}


def test_cross_fitted_lines_are_unbiased_and_others_are_detected() -> None:
    assert N_RUNS.keys() == SETTINGS.keys()
    table = pl.concat([study(setting, n_runs, seed=1) for setting, n_runs in N_RUNS.items()])
    assert failed_claims(table) == []
    twisted = table.with_columns(line=pl.col("line").replace(IN_SAMPLE, "compute_optimal"))
    swapped = twisted.unique(["setting", "line"], keep="last").vstack(
        table.filter(line="compute_optimal").with_columns(line=pl.lit(IN_SAMPLE))
    )
    assert any(
        "equal: the cross-fitted line is off by +0.06" in each for each in failed_claims(swapped)
    )
