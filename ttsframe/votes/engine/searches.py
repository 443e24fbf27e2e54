"""Solutions of a search have no smaller budgets inside them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ttsframe._exprs import raise_where, safe_names, to_safe
from ttsframe.errors import DataError


def refuse_prefixes(
    trajectories: pl.LazyFrame,
    schema: pl.Schema,
    keys: Sequence[str],
    budgets: Sequence[int] | None,
) -> pl.LazyFrame:
    """Raise if a budget takes only the first solutions of a search (`tts.search.to_trajectories`)."""
    # Files of other programs are read as those programs count: search-and-learn takes the first attempts of
    # its searches, too, and its files do not say at which width they were made.
    if budgets is None or not {"is_exchangeable", "policy", "width"} <= {*schema}:
        return trajectories
    named = safe_names(keys)

    def describe(rows: pl.DataFrame) -> DataError:
        row = rows.sort(*named).row(0, named=True)
        where = ", ".join(f"{name} {row[key]!r}" for key, name in named.items())
        least = min(budget for budget in budgets if budget <= row["__attempt"])
        return DataError(
            f"{where}: budgets has {least}, but this is a search by {row['__policy']} at width {row['__width']} with "
            f"more solutions. Those that finished first are no search of width {least}. Hint: "
            "tts.search.select_by_width(trajectories) takes each search whole, and searches at several "
            "widths make a curve; tts.search.replay gives smaller DVTS searches."
        )

    is_beyond = ~pl.col("is_exchangeable").cast(pl.Boolean) & (pl.col("attempt") >= min(budgets))
    described = pl.struct(
        (is_beyond & pl.col("policy").is_not_null()).alias("broken"),
        *to_safe(named),
        pl.col("attempt").alias("__attempt"),
        pl.col("policy").alias("__policy"),
        pl.col("width").alias("__width"),
    )
    return trajectories.filter(raise_where(described, describe))
