"""From a run to the counts of attempts and correct ones that the models are fitted to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._typing import ColumnNames
from ttsframe.errors import ColumnsError, DataError
from ttsframe.schema import require_columns
from ttsframe.statistics.extrapolation.model import Counts


class Attempts(NamedTuple):
    """The attempts of a run, collected, under names that collide with none of the caller's."""

    rows: pl.DataFrame
    """`key0`, ..., `problem`, `is_correct` and, where it is there, `attempt`."""
    keys: tuple[str, ...]
    names: tuple[str, ...]
    """What the caller calls the keys."""

    def groups(self) -> list[pl.DataFrame]:
        """Split the rows by the keys."""
        if not self.keys:
            return [self.rows]
        return self.rows.sort(self.keys).partition_by(self.keys, maintain_order=True)

    def labelled(
        self,
        groups: Sequence[pl.DataFrame],
        tables: Sequence[pl.DataFrame],
        schema: Mapping[str, pl.DataType],
    ) -> pl.DataFrame:
        """Put the tables made of groups under one another, behind the keys."""
        empty = self.rows.select(self.keys).clear().with_columns(**_nothing(schema))
        behind = [
            table.with_columns(pl.col(pl.Float64).fill_nan(None)).select(
                *[pl.lit(group[key].head(1)).first().alias(key) for key in self.keys],
                *[pl.col(name).cast(dtype) for name, dtype in schema.items()],
            )
            for group, table in zip(groups, tables, strict=True)
        ]
        together = pl.concat([empty, *behind])
        return together.rename(dict(zip(self.keys, self.names, strict=True)))


def _nothing(schema: Mapping[str, pl.DataType]) -> dict[str, pl.Expr]:
    return {name: pl.lit(None, dtype) for name, dtype in schema.items()}


def read_attempts(
    trajectories: pl.DataFrame | pl.LazyFrame, by: ColumnNames, *, taken: Collection[str]
) -> Attempts:
    """Collect what extrapolation reads of a run, and check that it may be read so."""
    check_frame(trajectories, "trajectories")
    names: tuple[str, ...] = check_names(by, "by", taken=taken)
    schema = require_columns(trajectories, [*names, "problem_id", "is_correct"])
    if schema["is_correct"] not in {pl.Boolean, pl.Null}:
        raise ColumnsError(
            f"trajectories: 'is_correct' is {schema['is_correct']}, must be Boolean."
        )
    renamed = {f"key{i}": name for i, name in enumerate(names)} | {"problem": "problem_id"}
    optional = [name for name in ("attempt", "is_exchangeable") if name in schema]
    rows = (
        trajectories
        .lazy()
        .select(
            *[pl.col(name).alias(key) for key, name in renamed.items()],
            pl.col("is_correct").cast(pl.Boolean),
            *optional,
        )
        .collect()
    )
    if "is_exchangeable" in optional and not rows["is_exchangeable"].cast(pl.Boolean).all():
        raise DataError(
            "trajectories: 'is_exchangeable' is false, must be true in every row: attempts that "
            "share steps, as in beam or tree search, say less about more attempts than independent "
            "ones. Hint: extrapolate a best-of-n run of the same model."
        )
    unit = [*renamed, "attempt"]
    if "attempt" in optional and (repeated := rows.select(unit).is_duplicated()).any():
        row = rows.filter(repeated).sort(unit).row(0, named=True)
        place = ", ".join(f"{name} {row[key]!r}" for key, name in renamed.items())
        raise DataError(
            f"{place}: attempt {row['attempt']} comes more than once. Hint: name the column that "
            "tells runs, models or seeds apart in by=(...)."
        )
    keys = tuple(key for key in renamed if key != "problem")
    return Attempts(rows.drop("is_exchangeable", strict=False), keys, names)


def count_attempts(rows: pl.DataFrame) -> pl.DataFrame:
    """Count the graded attempts at each problem."""
    grade = pl.col("is_correct")
    return rows.group_by("problem").agg(
        grade.count().cast(pl.Int64).alias("n"), grade.sum().cast(pl.Int64).alias("c")
    )


def distinct_counts(problems: pl.DataFrame) -> Counts:
    """Return the distinct counts of the problems that have a graded attempt."""
    distinct = problems.filter(pl.col("n") > 0).group_by("n", "c").len("weight").sort("n", "c")
    n, c, weight = distinct.to_numpy().astype(np.float64).T
    return Counts(n, c, weight)
