"""Tables of counts: how many attempts at a problem there are, and how many of them are correct."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ttsframe._exprs import raise_where, to_safe
from ttsframe.errors import DataError
from ttsframe.schema import require_columns, require_kind


def read_counts(counts: pl.DataFrame | pl.LazyFrame, keys: Mapping[str, str]) -> pl.LazyFrame:
    """Return the columns of `keys`, which tell problems apart, under safe names, and checked `n` and `c`."""
    # A problem with a null count has no graded attempt: both its counts are 0.
    schema = require_columns(counts, [*keys.values(), "n_attempts", "n_correct"], where="counts")
    require_kind(schema, "an integer", "n_attempts", "n_correct", where="counts")
    n, c = (pl.col(name).cast(pl.Int64) for name in ("n_attempts", "n_correct"))

    def impossible(rows: pl.DataFrame) -> DataError:
        row = rows.row(0, named=True)
        return DataError(
            f"{_name(row, keys)}: n_correct is {row['c']} and n_attempts {row['n']}, must be 0 <= n_correct "
            "<= n_attempts. Hint: n_correct counts attempts; it is no share and no percentage."
        )

    def repeated(rows: pl.DataFrame) -> DataError:
        row = rows.sort([*keys]).row(0, named=True)
        return DataError(
            f"{_name(row, keys)}: {row['n_rows']} rows of counts, expected one. Hint: name the column that "
            "tells runs, models or seeds apart in by=(...)."
        )

    selected = counts.lazy().select(*to_safe(keys), n.alias("n"), c.alias("c"))
    is_broken = (pl.col("n") < 0) | ~pl.col("c").is_between(0, pl.col("n"))
    checked = selected.filter(
        raise_where(pl.struct(is_broken.alias("broken"), *keys, "n", "c"), impossible)
    ).with_columns(n_rows=pl.len().over([*keys]))
    is_repeated = (pl.col("n_rows") > 1).alias("broken")
    known = pl.col("n").is_not_null() & pl.col("c").is_not_null()
    return (
        checked
        .filter(raise_where(pl.struct(is_repeated, *keys, "n_rows"), repeated))
        .drop("n_rows")
        .with_columns(pl.when(known).then("n").otherwise(0), pl.when(known).then("c").otherwise(0))
    )


def _name(row: Mapping[str, object], keys: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {row[key]!r}" for key, name in keys.items())
