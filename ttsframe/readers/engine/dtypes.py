"""The dtypes of JSON columns, found value by value and merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from polars.datatypes import DataTypeClass

_MAX_DEPTH = 8
_MAX_FIELDS = 256


def as_instance(dtype: pl.DataType | DataTypeClass) -> pl.DataType:
    """Return a dtype as an instance; Polars types inner dtypes as a class or an instance."""
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def dtype_of(value: object, depth: int = 0) -> pl.DataType:
    """Return the narrowest dtype that holds a JSON value."""
    if isinstance(value, list | dict) and depth >= _MAX_DEPTH:
        return pl.String()
    if isinstance(value, list):
        return pl.List(merge_dtypes(dtype_of(item, depth + 1) for item in value))
    if isinstance(value, dict):
        if not 0 < len(value) <= _MAX_FIELDS:
            return pl.String()
        return pl.Struct({name: dtype_of(item, depth + 1) for name, item in value.items()})
    if type(value) is int and not -(2**63) <= value < 2**63:
        return pl.String()
    scalars = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String()}
    return scalars.get(type(value), pl.Null())


def merge_dtypes(dtypes: Iterable[pl.DataType]) -> pl.DataType:
    """Return a dtype for values of all dtypes; if they do not mix, String (of JSON text)."""
    result: pl.DataType = pl.Null()
    for dtype in dtypes:
        result = _merge(result, dtype)
    return result


def _merge(left: pl.DataType, right: pl.DataType) -> pl.DataType:
    if left == right or isinstance(right, pl.Null):
        return left
    if isinstance(left, pl.Null):
        return right
    if isinstance(left, pl.List) and isinstance(right, pl.List):
        return pl.List(_merge(as_instance(left.inner), as_instance(right.inner)))
    if isinstance(left, pl.Struct) and isinstance(right, pl.Struct):
        fields = {field.name: as_instance(field.dtype) for field in left.fields}
        for field in right.fields:
            fields[field.name] = _merge(fields.get(field.name, pl.Null()), as_instance(field.dtype))
        return pl.Struct(fields) if len(fields) <= _MAX_FIELDS else pl.String()
    if {type(left), type(right)} == {pl.Int64, pl.Float64}:
        return pl.Float64()
    return pl.String()


def resolve_dtype(dtype: pl.DataType, *, unseen: pl.DataType, depth: int = 0) -> pl.DataType:
    """Replace Null, that of nulls and empty lists, by `unseen` and unsupported dtypes by String."""
    if isinstance(dtype, pl.Null):
        return unseen
    if isinstance(dtype, pl.List) and depth < _MAX_DEPTH:
        return pl.List(resolve_dtype(as_instance(dtype.inner), unseen=unseen, depth=depth + 1))
    if isinstance(dtype, pl.Struct) and depth < _MAX_DEPTH and 0 < len(dtype.fields) <= _MAX_FIELDS:
        return pl.Struct({
            field.name: resolve_dtype(as_instance(field.dtype), unseen=unseen, depth=depth + 1)
            for field in dtype.fields
        })
    return dtype if isinstance(dtype, pl.Boolean | pl.Int64 | pl.Float64) else pl.String()


def without_null(dtype: pl.DataType) -> pl.DataType:
    """Replace Null, that of nulls and empty lists, by String at any depth."""
    if isinstance(dtype, pl.Null):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(without_null(as_instance(dtype.inner)))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({
            field.name: without_null(as_instance(field.dtype)) for field in dtype.fields
        })
    return dtype


def column_dtypes(rows: Iterable[Mapping[str, Any]]) -> dict[str, pl.DataType]:
    """Return the merged dtype of each column of some rows."""
    dtypes: dict[str, pl.DataType] = {}
    for row in rows:
        for name, value in row.items():
            dtypes[name] = _merge(dtypes.get(name, pl.Null()), dtype_of(value))
    return dtypes


def struct_fields(dtype: pl.DataType) -> dict[str, pl.DataType]:
    """Return the fields of a struct, or of a list of structs; none for any other dtype."""
    inner = as_instance(dtype.inner) if isinstance(dtype, pl.List) else dtype
    if not isinstance(inner, pl.Struct):
        return {}
    return {field.name: as_instance(field.dtype) for field in inner.fields}
