"""Means over problems and Cohen's kappa, which all tables of agreement share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ttsframe._exprs import in_order
from ttsframe.statistics.intervals import student_t_interval
from ttsframe.statistics.uncertainty import degrees_of_freedom, standard_error


def mean_over_problems(
    rows: pl.DataFrame, keys: Sequence[str], values: Mapping[str, str], confidence_level: float
) -> pl.DataFrame:
    """Average columns in [0, 1], with intervals (behind the prefixes `values`) over problems as units."""
    n_problems = {
        name: pl.col("problem_id").filter(pl.col(name).is_not_null()).n_unique() for name in values
    }
    means = (
        rows
        .group_by(keys)
        .agg(
            *[in_order(pl.col(name)).list.mean().alias(name) for name in values],
            *[
                standard_error(name, cluster="problem_id").alias(f"{prefix}standard_error")
                for name, prefix in values.items()
            ],
            *[
                degrees_of_freedom(name, cluster="problem_id").alias(f"df_{name}")
                for name in values
            ],
            *[n.cast(pl.UInt32).alias(f"n_{name}") for name, n in n_problems.items()],
        )
        .sort(keys)
    )
    for name, prefix in values.items():
        n_units = pl.col(f"df_{name}") + 1.0
        ends = student_t_interval(
            name, f"{prefix}standard_error", n_units, confidence_level=confidence_level
        )
        means = means.with_columns(
            ends.struct.field(end).alias(f"{prefix}{end}") for end in ("ci_low", "ci_high")
        )
    return means.drop(f"df_{name}" for name in values).rename({
        f"n_{next(iter(values))}": "n_problems"
    })


def with_schema(
    table: pl.DataFrame, keys: Sequence[str], schema: Mapping[str, type[pl.DataType]]
) -> pl.DataFrame:
    """Return a table with the columns and dtypes of its schema, sorted by the keys and its parameter."""
    if not table.height:
        return pl.DataFrame(schema={key: table.schema[key] for key in keys} | dict(schema))
    parameter = [name for name in ("threshold", "n_rollouts") if next(iter(schema)) == name]
    return table.sort(*keys, *parameter).select(
        *keys, *[pl.col(name).cast(dtype) for name, dtype in schema.items()]
    )


def cohen_kappa(both: pl.Expr, first: pl.Expr, second: pl.Expr) -> pl.Expr:
    """Return Cohen's kappa of two labels, given the shares that both and each of them call right."""
    observed = 1.0 - first - second + 2.0 * both
    by_chance = first * second + (1.0 - first) * (1.0 - second)
    return pl.when(by_chance < 1.0).then((observed - by_chance) / (1.0 - by_chance))
