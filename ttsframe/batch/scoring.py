"""Divide `Score` among tasks: texts are read by slice, answers keyed once, the rest done by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe.batch.stages import Score
from ttsframe.scoring import Addition

__all__ = ["Scoring"]

_EXTRACTED: Final = {"answer", "gold"}
_KEY_SOURCES: Final = {"answer_key": "answer", "gold_key": "gold"}


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How `Score` is divided among tasks."""

    stage: Score
    schema: Mapping[str, pl.DataType]
    """Columns of the source."""
    needed: frozenset[str]
    """Columns that are read or written later."""

    @property
    def additions(self) -> list[Addition]:
        """The needed columns that have to be made, in order."""
        planned = self.stage.additions(self.schema)
        return [addition for addition in planned if addition.name in self.needed]

    def extract(self, attempts: pl.LazyFrame) -> pl.LazyFrame:
        """Extract answers and gold answers from the texts, and drop what is not needed."""
        for addition in self.additions:
            if addition.name in _EXTRACTED:
                attempts = attempts.with_columns(addition.value.alias(addition.name))
        names = attempts.collect_schema().names()
        return attempts.select(name for name in names if name in self.needed)

    @property
    def passed_on(self) -> set[str]:
        """Columns that are extracted, or whose strings get keys: all that later tasks cannot read from the source."""
        extracted = {addition.name for addition in self.additions} & _EXTRACTED
        return {*extracted, *self.strings()}

    def strings(self) -> list[str]:
        """Return the columns whose distinct strings get keys: "answer", "gold", both or none."""
        made = [(addition.name, addition.source) for addition in self.additions]
        return [source for key, source in _KEY_SOURCES.items() if (key, source) in made]

    def finish(self, extracted: pl.LazyFrame, keys: Path) -> pl.LazyFrame:
        """Add keys from the folder that `KeysTask` wrote, grades and scores."""
        frame = extracted
        for addition in self.additions:
            if _KEY_SOURCES.get(addition.name) == addition.source:
                frame = _with_keys(frame, addition.name, keys)
            elif addition.name not in _EXTRACTED:
                frame = frame.with_columns(addition.value.alias(addition.name))
        return frame


def _with_keys(frame: pl.LazyFrame, name: str, keys: Path) -> pl.LazyFrame:
    """Look up the keys of a column in the table of distinct strings."""
    source = _KEY_SOURCES[name]
    text = pl.col(source).cast(pl.String)
    table = pl.scan_parquet(sorted(keys.glob(f"*/{source}.parquet")), glob=False)
    # Only the strings of this part are held in memory, not those of the whole source.
    wanted = frame.select(text.alias("text")).unique()
    table = table.join(wanted, on="text", how="semi").rename({"key": name})
    columns = frame.collect_schema().names()
    return (
        frame
        .drop(name, strict=False)
        .join(table, left_on=text, right_on="text", how="left", maintain_order="left")
        .select(*columns, *([] if name in columns else [name]))
    )
