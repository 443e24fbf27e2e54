"""Rules about columns: that they exist, and that their dtypes can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from ttsframe._settings import setting
from ttsframe.schema import TRAJECTORY_COLUMNS
from ttsframe.validation.finding import Finding, Pending


def missing_columns(schema: pl.Schema) -> Iterator[Pending]:
    """Find required columns that are missing."""
    hints = {
        "problem_id": "name the column that identifies problems: "
        f"{setting('rename', {'yours': 'problem_id'})}.",
        "attempt": "tts.renumber_attempts(trajectories) numbers the attempts of a problem in row order.",
    }
    for name, hint in hints.items():
        if name not in schema:
            message = f"no column {name!r}; found: {schema.names()}"
            yield Pending(Finding("missing_column", "error", name, 1, message, (), hint))


def wrong_dtypes(schema: pl.Schema) -> Iterator[Pending]:
    """Find columns of `trajectories` whose dtype cannot be used; no other rule reads these."""
    for name, dtype in schema.items():
        if name in TRAJECTORY_COLUMNS and not is_usable(name, dtype):
            wanted = TRAJECTORY_COLUMNS[name].dtype
            message = f"column {name!r} is {dtype}, must be {wanted}"
            cast = f"pl.col({name!r}).cast(pl.{str(wanted).replace('(', '(pl.')})"
            hint = f"trajectories.with_columns({cast}), or check the tool that wrote the column."
            yield Pending(Finding("wrong_dtype", "error", name, 1, message, (), hint))


def is_usable(name: str, dtype: pl.DataType) -> bool:
    """Return whether a column of this dtype can serve as the column of `trajectories` of its name."""
    wanted = TRAJECTORY_COLUMNS[name].dtype
    is_text = isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    if dtype in {pl.Null(), wanted}:
        return True
    if isinstance(wanted, pl.List):
        return isinstance(dtype, pl.List) and (dtype.inner == pl.Null or dtype.inner.is_numeric())
    if name == "problem_id":
        return is_text or dtype.is_integer()
    if name in {"answer", "gold"} and isinstance(dtype, pl.Date | pl.Datetime):
        return True
    if wanted.is_integer():
        return dtype.is_integer()
    return dtype.is_numeric() if wanted.is_float() else wanted == pl.String and is_text


def canonical_casts(schema: pl.Schema, usable: Collection[str]) -> list[pl.Expr]:
    """Cast usable columns to the dtypes that the other rules rely on."""
    dtypes = {name: TRAJECTORY_COLUMNS[name].dtype for name in usable if name != "problem_id"}
    if "attempt" in dtypes:
        dtypes["attempt"] = pl.Int64()  # negative numbers would wrap around in UInt32
    return [
        pl.col(name).cast(dtype, strict=False)
        for name, dtype in dtypes.items()
        if schema[name] != dtype
    ]
