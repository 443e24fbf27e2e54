"""Parquet with all columns: with what they mean and where they come from, or with the features of `datasets`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import polars as pl

from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.dtypes import as_instance, struct_fields
from ttsframe.readers.trajectory_writers.writer import Writer
from ttsframe.schema import COUNT_COLUMNS, TRAJECTORY_COLUMNS, require_columns

_DTYPES: Mapping[type[pl.DataType], str] = {
    pl.String: "string",
    pl.Boolean: "bool",
    pl.Float32: "float32",
    pl.Float64: "float64",
    pl.Binary: "binary",
    pl.Date: "date32",
    pl.Time: "time64[ns]",
    pl.Null: "null",
}
_ROWS_PER_GROUP = 50_000


def _write_long(attempts: pl.LazyFrame, path: Path) -> list[str]:
    schema = require_columns(attempts, ["problem_id"])
    known = {**TRAJECTORY_COLUMNS, **COUNT_COLUMNS}
    sources = []
    if "source_file" in schema:
        named = attempts.select(pl.col("source_file").drop_nulls().unique().sort())
        sources = named.collect(engine="streaming").to_series().cast(pl.String).to_list()
    provenance = {
        "written_by": f"ttsframe {version('ttsframe')}",
        "table": "trajectories",
        "columns": {name: known[name].meaning for name in schema if name in known},
        "source_files": sources,
    }
    attempts.sink_parquet(path, metadata={"ttsframe": json.dumps(provenance, ensure_ascii=False)})
    return []


def _write_datasets(attempts: pl.LazyFrame, path: Path) -> list[str]:
    schema = require_columns(attempts, ["problem_id"])
    # `datasets` has labels of its own in the place of categories.
    texts = [name for name, dtype in schema.items() if isinstance(dtype, pl.Categorical | pl.Enum)]
    frame = attempts.with_columns(pl.col(texts).cast(pl.String))
    features = {name: _feature(dtype, name) for name, dtype in frame.collect_schema().items()}
    frame.sink_parquet(
        path,
        row_group_size=_ROWS_PER_GROUP,
        metadata={"huggingface": json.dumps({"info": {"features": features}}, ensure_ascii=False)},
    )
    return []


def _feature(dtype: pl.DataType, name: str) -> object:
    """Describe a column in the terms of `datasets.Features`."""
    if isinstance(dtype, pl.List):
        inner = _feature(as_instance(dtype.inner), name)
        # A sequence of a dict would be a dict of lists there.
        is_struct = isinstance(as_instance(dtype.inner), pl.Struct)
        return [inner] if is_struct else {"feature": inner, "_type": "Sequence"}
    if isinstance(dtype, pl.Struct):
        return {field: _feature(inner, name) for field, inner in struct_fields(dtype).items()}
    kind = _DTYPES.get(type(dtype))
    if kind is None and dtype.is_integer():
        kind = str(dtype).lower()
    if kind is None and isinstance(dtype, pl.Datetime):
        zone = f", tz={dtype.time_zone}" if dtype.time_zone else ""
        kind = f"timestamp[{dtype.time_unit}{zone}]"
    if kind is None and isinstance(dtype, pl.Duration):
        kind = f"duration[{dtype.time_unit}]"
    if kind is None and isinstance(dtype, pl.Decimal):
        kind = f"decimal128({dtype.precision}, {dtype.scale})"
    if kind is None:
        raise ColumnsError(
            f"trajectories: 'datasets' has no type for column {name!r}, which holds {dtype}. Hint: cast or drop it."
        )
    return {"dtype": kind, "_type": "Value"}


LONG_FORM = Writer(
    "ttsframe's long form: all columns, and in the file's metadata what they mean (Parquet)",
    _write_long,
    ".parquet",
)
DATASETS = Writer(
    "Hugging Face datasets: all columns, with their features (Parquet)", _write_datasets, ".parquet"
)
