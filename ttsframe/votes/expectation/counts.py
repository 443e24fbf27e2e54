"""pass@k of a table of counts, as `problems`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ttsframe._counts import read_counts
from ttsframe._exprs import from_safe, run_plan, safe_names
from ttsframe._own import name_of
from ttsframe._typing import FrameT
from ttsframe.errors import ColumnsError
from ttsframe.estimators.passk import pass_at_k
from ttsframe.votes.engine.picked import PROBLEM_COLUMNS
from ttsframe.votes.engine.registry import AnySelector


def expect_of_counts(
    counts: FrameT,
    /,
    *,
    selectors: Sequence[AnySelector],
    budgets: Sequence[int],
    by: Sequence[str],
) -> FrameT:
    """Return the expected accuracy of the oracle at each budget, the only selector that counts allow."""
    others = [name_of(one) for one in selectors if one != "oracle"]
    if others:
        raise ColumnsError(
            f"counts: {', '.join(others)} picks among attempts, and the table has only their number "
            "('n_attempts', 'n_correct'). Hint: selectors='oracle' is pass@k, which counts are enough for."
        )
    keys = safe_names([*by, "problem_id"])

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        passes = pass_at_k("c", budgets, n_attempts="n").struct.field("*")
        n, budget, value = pl.col("n"), pl.col("budget"), pl.col("value")
        status = (
            pl
            .when(n == 0)
            .then(pl.lit("ungraded"))
            .when(n < budget)
            .then(pl.lit("short"))
            .otherwise(pl.lit("ok"))
        )
        columns = {
            "subsets": pl.lit("all"),
            "selector": pl.lit("oracle"),
            "value": value,
            "status": status,
            "n_attempts": n,
            "monte_carlo_error": pl.when(value.is_not_null()).then(0.0),
        }
        made: Mapping[str, type[pl.DataType]] = {
            **PROBLEM_COLUMNS,
            "monte_carlo_error": pl.Float64,
        }
        return (
            read_counts(lazy, keys)
            .with_columns(
                value=pl.concat_list(passes),
                budget=pl.lit([*budgets], pl.List(pl.UInt32)),
            )
            .explode("value", "budget", empty_as_null=False)
            .sort(*keys, "budget")
            .select(
                *from_safe(keys),
                *(
                    columns
                    .get(name, budget if name == "budget" else pl.lit(None))
                    .cast(dtype)
                    .alias(name)
                    for name, dtype in made.items()
                ),
            )
        )

    return run_plan(counts, plan)
