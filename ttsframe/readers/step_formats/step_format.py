"""A format of labeled steps: its reader, and its writer if it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import polars as pl

from ttsframe.readers.engine.table import FileFormat
from ttsframe.schema import Column

STEP_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({
    "problem_id": Column(pl.String(), "the source's own id, else a hash of the problem's text"),
    "solution_id": Column(pl.String(), "the source's own id, else a hash of the steps' texts"),
    "step": Column(pl.Int64(), "0 is the first step, -1 the problem before any step"),
    "node": Column(pl.Int64(), "of a tree: number of the step within it, from 0"),
    "parent": Column(pl.Int64(), "of a tree: the node that this one continues"),
    "alternative": Column(pl.Int64(), "of several texts for one step: its number, from 0"),
    "is_on_path": Column(pl.Boolean(), "of several texts for one step: the one that was continued"),
    "problem": Column(pl.String(), "text of the problem"),
    "gold": Column(pl.String(), "gold answer"),
    "solution": Column(pl.String(), "reference solution"),
    "text": Column(pl.String(), "text of this step alone"),
    "is_correct": Column(pl.Boolean(), "label; null where the step has none"),
    "rating": Column(pl.Int8(), "label of a person: 1 right, 0 neutral, -1 wrong"),
    "soft": Column(pl.Float64(), "share of completions from here that reach the right answer"),
})
"""The columns of `steps` that have a meaning; any other column passes through unchanged."""


class Labels(NamedTuple):
    """How other values become labels in formats that only know right and wrong."""

    neutral: bool | None
    """The label of a neutral rating."""
    right_above: float | None
    """Soft values above it count as right."""


class StepFormat(NamedTuple):
    """A format of labeled steps."""

    reader: FileFormat
    """How its files become steps."""
    to_lines: Callable[[pl.DataFrame, Labels], pl.Series] | None = None
    """Turns steps into the JSON lines of a file; None if the format is not written as JSON lines."""

    @property
    def summary(self) -> str:
        """One line that describes the format."""
        return self.reader.summary
