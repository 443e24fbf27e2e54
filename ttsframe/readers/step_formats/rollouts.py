"""Completions of steps, one per row: what `estimate_steps` makes labels of, read from a file."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe.readers.engine.table import Reader, Table

_NAMES: Final = ("problem_id", "solution_id", "step", "rollout")


def _as_they_are(table: Table) -> pl.LazyFrame:
    return table.frame


READER: Final = Reader(
    summary="completions of steps: a row per completion (Parquet, Arrow IPC or JSON)",
    requires=tuple((name,) for name in _NAMES),
    dtypes={},
    to_attempts=_as_they_are,
)
