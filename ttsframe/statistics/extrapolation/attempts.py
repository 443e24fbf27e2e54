"""Counts of attempts and correct attempts of a run, to which the models are fitted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._counts import read_counts
from ttsframe._draws import Purpose, bits_at, problem_bits
from ttsframe._exprs import safe_names, to_safe
from ttsframe._typing import ColumnNames
from ttsframe.errors import ColumnsError, DataError
from ttsframe.schema import holds_counts, require_columns
from ttsframe.statistics.extrapolation.model import Counts


class Attempts(NamedTuple):
    """The attempts of a run, collected, under internal names."""

    rows: pl.DataFrame
    """`key0`, ..., `problem`, `is_correct` and, if present, `attempt`; of counts `n` and `c` instead."""
    keys: tuple[str, ...]
    names: tuple[str, ...]
    """The caller's names of the keys."""

    def groups(self) -> list[pl.DataFrame]:
        """Split the rows by the keys."""
        if not self.keys:
            return [self.rows]
        return self.rows.sort(self.keys).partition_by(self.keys, maintain_order=True)

    def combine(
        self,
        groups: Sequence[pl.DataFrame],
        tables: Sequence[pl.DataFrame],
        schema: Mapping[str, pl.DataType],
    ) -> pl.DataFrame:
        """Concatenate one table per group, with the keys in front; NaN becomes null."""
        empty = (
            self.rows
            .select(self.keys)
            .clear()
            .with_columns(**{name: pl.lit(None, dtype) for name, dtype in schema.items()})
        )
        keyed = [
            table.with_columns(pl.col(pl.Float64).fill_nan(None)).select(
                *[pl.lit(group[key].head(1)).first().alias(key) for key in self.keys],
                *[pl.col(name).cast(dtype) for name, dtype in schema.items()],
            )
            for group, table in zip(groups, tables, strict=True)
        ]
        together = pl.concat([empty, *keyed])
        return together.rename(dict(zip(self.keys, self.names, strict=True)))


def read_attempts(
    trajectories: pl.DataFrame | pl.LazyFrame, by: ColumnNames, *, taken: Collection[str]
) -> Attempts:
    """Collect the columns that extrapolation reads, and check them."""
    check_frame(trajectories, "trajectories")
    names: tuple[str, ...] = check_names(by, "by", taken=taken)
    if holds_counts(trajectories.collect_schema()):
        keyed = safe_names(names) | {"problem": "problem_id"}
        return Attempts(read_counts(trajectories, keyed).collect(), tuple(keyed)[:-1], names)
    schema = require_columns(trajectories, [*names, "problem_id", "is_correct"])
    if schema["is_correct"] not in {pl.Boolean, pl.Null}:
        raise ColumnsError(
            f"trajectories: 'is_correct' is {schema['is_correct']}, must be Boolean."
        )
    renamed = safe_names(names) | {"problem": "problem_id"}
    optional = [name for name in ("attempt", "is_exchangeable") if name in schema]
    rows = (
        trajectories
        .lazy()
        .select(
            *to_safe(renamed),
            pl.col("is_correct").cast(pl.Boolean),
            *optional,
        )
        .collect()
    )
    if "is_exchangeable" in optional and not rows["is_exchangeable"].cast(pl.Boolean).all():
        raise DataError(
            "trajectories: 'is_exchangeable' is false, must be true in every row: attempts that "
            "share steps, as in beam or tree search, are not independent. Hint: extrapolate a best-of-n "
            "run of the same model."
        )
    unit = [*renamed, "attempt"]
    if "attempt" in optional and (repeated := rows.select(unit).is_duplicated()).any():
        row = rows.filter(repeated).sort(unit).row(0, named=True)
        problem = ", ".join(f"{name} {row[key]!r}" for key, name in renamed.items())
        raise DataError(
            f"{problem}: attempt {row['attempt']} appears twice. Hint: name the column that "
            "tells runs, models or seeds apart in by=(...)."
        )
    keys = tuple(key for key in renamed if key != "problem")
    return Attempts(rows.drop("is_exchangeable", strict=False), keys, names)


def count_attempts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `problem`, `n` and `c`: the graded and the correct attempts at each problem."""
    if "n" in rows.columns:
        return rows.select("problem", "n", "c")
    grade = pl.col("is_correct")
    return rows.group_by("problem").agg(
        grade.count().cast(pl.Int64).alias("n"), grade.sum().cast(pl.Int64).alias("c")
    )


def distinct_counts(problems: pl.DataFrame) -> Counts:
    """Return the distinct counts of problems with a graded attempt, sorted."""
    distinct = problems.filter(pl.col("n") > 0).group_by("n", "c").len("weight").sort("n", "c")
    n, c, weight = distinct.to_numpy().astype(np.float64).T
    return Counts(n, c, weight)


def with_attempts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per attempt; of counts, in an order drawn at random, the same on every call."""
    if "n" not in rows.columns:
        return rows
    problems = rows.sort("problem")
    n, c = problems["n"].to_numpy(), problems["c"].to_numpy()
    problem = np.repeat(np.arange(len(n)), n)
    place = np.arange(len(problem)) - np.repeat(np.cumsum(n) - n, n)
    draws = problem_bits(0, Purpose.OUTCOME, np.arange(len(n)))
    return pl.DataFrame({
        "problem": problems["problem"].gather(problem),
        "is_correct": place < c[problem],
        "draw": bits_at(draws[problem], place),
    }).select("problem", "is_correct", attempt=pl.col("draw").rank("ordinal").over("problem") - 1)
