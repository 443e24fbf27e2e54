"""What the tables of agreement share: means over steps with problems as the units, and kappa."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ttsframe.statistics.intervals import student_t_interval, wilson_interval
from ttsframe.statistics.uncertainty import standard_error


def over_problems(
    rows: pl.DataFrame, keys: Sequence[str], values: Mapping[str, str], confidence_level: float
) -> pl.DataFrame:
    """Average values of rows, with intervals for which the problem is the unit.

    Steps of a solution, and solutions of a problem, are no independent units.

    Parameters
    ----------
    rows
        One row per step or solution, with `problem_id`, `keys` and the values, null where there is
        none.
    keys
        Columns that get means of their own, at least one.
    values
        Columns to average, in [0, 1], and what the columns of their intervals begin with.
    confidence_level
        Coverage, in (0, 1).

    Returns
    -------
    pl.DataFrame
        One row per combination of `keys`, sorted: for each value its mean, null of none, and behind
        its prefix `standard_error`, `ci_low` and `ci_high`, null below two problems; `n_problems`
        (UInt32), those with a first value.
    """
    first, *_ = values
    n_problems = {
        name: pl.col("problem_id").filter(pl.col(name).is_not_null()).n_unique() for name in values
    }
    means = (
        rows
        .group_by(keys)
        .agg(
            pl.col(*values).mean(),
            *[
                standard_error(name, cluster="problem_id").alias(f"{prefix}standard_error")
                for name, prefix in values.items()
            ],
            *[n.cast(pl.UInt32).alias(f"n_{name}") for name, n in n_problems.items()],
        )
        .sort(keys)
    )
    for name, prefix in values.items():
        mean, n = pl.col(name), pl.col(f"n_{name}")
        wilson = wilson_interval(mean * n, n, confidence_level=confidence_level)
        student = student_t_interval(
            name, f"{prefix}standard_error", n, confidence_level=confidence_level
        )
        # A spread of nothing says nothing of how far the mean could be off.
        is_pure = mean.is_in([0.0, 1.0]) & (n > 1)
        ends = pl.when(is_pure).then(wilson).otherwise(student)
        means = means.with_columns(
            ends.struct.field(end).alias(f"{prefix}{end}") for end in ("ci_low", "ci_high")
        )
    return means.rename({f"n_{first}": "n_problems"})


def typed(
    table: pl.DataFrame, keys: Sequence[str], schema: Mapping[str, type[pl.DataType]]
) -> pl.DataFrame:
    """Bring a table into the form in which it is returned.

    Parameters
    ----------
    table
        Its rows; without rows it may lack columns.
    keys
        Columns that stand first.
    schema
        The other columns and their dtypes.

    Returns
    -------
    pl.DataFrame
        These columns, sorted by `keys`, and by the first of the others where that is a parameter.
    """
    if not table.height:
        names = {key: table.schema[key] for key in keys}
        return pl.DataFrame(schema=names | dict(schema))
    order = [*keys, *[name for name in ("threshold", "n_rollouts") if next(iter(schema)) == name]]
    return table.sort(order).select(
        *keys, *[pl.col(name).cast(dtype) for name, dtype in schema.items()]
    )


def kappa(both: pl.Expr, first: pl.Expr, second: pl.Expr) -> pl.Expr:
    r"""Build Cohen's kappa of two labellings, the agreement beyond that of chance.

    Parameters
    ----------
    both
        Share of the steps that both call right.
    first, second
        Share that either calls right.

    Returns
    -------
    pl.Expr
        Float64, at most 1; null where both call all steps the same.

    Notes
    -----
    .. math:: \kappa = \frac{p_o - p_e}{1 - p_e}

    with the observed agreement and that of labels drawn with the same shares.
    """
    observed = 1.0 - first - second + 2.0 * both
    by_chance = first * second + (1.0 - first) * (1.0 - second)
    return pl.when(by_chance < 1.0).then((observed - by_chance) / (1.0 - by_chance))
