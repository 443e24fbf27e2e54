"""The tasks of a job: functions over files, which any engine can run in any process.

A task reads files that exist before it starts, and its output, a file or a folder, is renamed into
place when it is complete. So a task may run twice, even at once, and a task whose output exists need
not run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe._files import appearing
from ttsframe.batch.numbered import numbered_files, row_hash, sink_numbered
from ttsframe.batch.progress import Amount
from ttsframe.batch.scoring import Scoring
from ttsframe.batch.sources import Slice
from ttsframe.batch.stages import Curve, Score, Stage

__all__ = ["CompleteTask", "JoinTask", "PartTask", "ScanTask", "Task", "Writing"]

Compression: TypeAlias = Literal["lz4", "zstd"]

_SLICE: Final = "__slice"


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A function over files, as a value that can be pickled."""

    name: str
    """For messages, as is `reads`."""
    reads: str
    output: Path
    """Absolute path of the file or folder to make; it exists if and only if the task is done."""
    amount: Amount
    """How much of the source it stands for."""

    @property
    def keeps_one_core(self) -> bool:
        """Whether it runs Python code on one core for so long that a process for it pays."""
        return False

    @property
    def paths(self) -> Sequence[Path]:
        """The files of the source that it reads itself."""
        return []

    @abstractmethod
    def run(self) -> None:
        """Make the output."""


@dataclass(frozen=True)
class Writing:
    """How tables of the result are written."""

    compression: Compression
    row_group_size: int
    metadata: Mapping[str, str]

    def sink(self, frame: pl.LazyFrame, path: Path) -> None:
        """Write a frame; the same rows give the same bytes."""
        frame.sink_parquet(
            path,
            compression=self.compression,
            row_group_size=self.row_group_size,
            metadata=dict(self.metadata),
        )


@dataclass(frozen=True, kw_only=True)
class ScanTask(Task):
    """Read a slice once, and write the rows of each part to a separate file in a folder."""

    slice: Slice
    scoring: Scoring | None
    """What to extract from the texts."""
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    """Columns whose hash decides the part of a row."""
    n_parts: int | None
    """None: all rows belong to the part that has the number of the slice."""
    row_group_size: int

    @property
    def paths(self) -> Sequence[Path]:
        """The files of the slice."""
        return self.slice.paths

    def run(self) -> None:
        """Make the output."""
        frame = self.slice.scan()
        if self.scoring is not None:
            frame = self.scoring.extract(frame)
        frame = frame.select(self.columns)
        part = pl.lit(0 if self.n_parts else self.slice.number, pl.UInt64)
        if self.n_parts is not None and self.n_parts > 1:
            part = row_hash(self.slice.schema, self.keys) % self.n_parts
        with appearing(self.output, is_lasting=False) as folder:
            sink = sink_numbered(frame, part, folder, self.row_group_size)
            sink.collect(engine="streaming")


@dataclass(frozen=True, kw_only=True)
class PartTask(Task):
    """Make a part of the result from all attempts at some problems."""

    part: int
    slice: Slice | None
    """The rows in the source; None if those of a part are spread over it."""
    scanned: Path | None
    """The folder that `ScanTask` wrote to: all columns of the rows, or those that `slice` lacks."""
    schema: Mapping[str, pl.DataType]
    """Columns of `scanned`."""
    stages: tuple[Stage, ...]
    """All stages but `Curve`."""
    scoring: Scoring | None
    """The rest of `Score`, if `ScanTask` did the first half."""
    answer_keys: Path
    """The folder that `KeysTask` wrote to."""
    keys: tuple[str, ...]
    order: tuple[str, ...]
    """Columns by which attempts are sorted; empty if they keep the order of the source."""
    numbering: tuple[str, ...]
    """Columns of a run whose attempts are numbered by row; empty if attempts have numbers."""
    columns: tuple[str, ...]
    """Columns of the part."""
    writing: Writing

    @property
    def paths(self) -> Sequence[Path]:
        """The files of the slice, if it reads one."""
        return [] if self.slice is None else self.slice.paths

    def run(self) -> None:
        """Make the output."""
        frame = self._rows()
        table = "trajectories"
        for stage in self.stages:
            if isinstance(stage, Score) and self.scoring is not None:
                frame = self.scoring.finish(frame, self.answer_keys)
            else:
                frame = stage.make(frame, self.keys)
            table = stage.makes
        frame = frame.select(self.columns)
        if table == "trajectories" and self.order:
            frame = _sorted(frame, self.order, self.slice)
        with appearing(self.output) as path:
            self.writing.sink(frame, path)

    def _rows(self) -> pl.LazyFrame:
        """Scan the rows of this part."""
        frames = [] if self.slice is None else [self.slice.scan()]
        if self.scanned is not None:
            frames = [
                *(frame.drop(self.schema, strict=False) for frame in frames),
                self._scanned(self.scanned),
            ]
        return pl.concat(frames, how="horizontal")

    def _scanned(self, slices: Path) -> pl.LazyFrame:
        """Scan what was written of the rows of this part, from all slices in their order."""
        files = numbered_files(slices, "*/", self.part)
        if not files:
            return pl.LazyFrame(schema=pl.Schema(self.schema))
        if not self.numbering:
            return pl.scan_parquet(files, glob=False, hive_partitioning=False)
        # Each slice has numbered its own rows: continue the count over all slices.
        numbered = pl.concat([
            pl.scan_parquet(file, glob=False, hive_partitioning=False).with_columns(
                pl.lit(number, pl.UInt32).alias(_SLICE)
            )
            for number, file in enumerate(files)
        ])
        position = pl.int_range(pl.len(), dtype=pl.UInt32)
        return numbered.with_columns(
            position.over(self.numbering, order_by=[_SLICE, "attempt"]).alias("attempt")
        ).drop(_SLICE)


@dataclass(frozen=True, kw_only=True)
class CompleteTask(Task):
    """Write the attempts of the source, in order, with the columns that its parts add to them.

    So texts are written once. Polars sorts one part after another.
    """

    slices: tuple[Slice, ...]
    parts: Path
    """A file per slice, whose rows are in the order of the slice; no file if nothing is added."""
    order: tuple[str, ...]
    columns: tuple[str, ...]
    writing: Writing

    @property
    def paths(self) -> Sequence[Path]:
        """The files of the source."""
        return [path for part in self.slices for path in part.paths]

    def run(self) -> None:
        """Make the output."""
        files: list[Path | None] = [*sorted(self.parts.glob("*.parquet"))]
        files = files or [None] * len(self.slices)
        frames = [self._completed(*one) for one in zip(self.slices, files, strict=True)]
        with appearing(self.output) as path:
            self.writing.sink(pl.concat(frames), path)

    def _completed(self, part: Slice, file: Path | None) -> pl.LazyFrame:
        frame = part.scan()
        if file is not None:
            added = pl.scan_parquet(file, glob=False, hive_partitioning=False)
            names = added.collect_schema().names()
            frame = pl.concat([frame.drop(names, strict=False), added], how="horizontal")
        return _sorted(frame.select(self.columns), self.order, part)


@dataclass(frozen=True, kw_only=True)
class JoinTask(Task):
    """Join the parts: to one file, or to the curve of their problems."""

    parts: Path
    curve: Curve | None
    keys: tuple[str, ...]
    writing: Writing

    def run(self) -> None:
        """Make the output."""
        files = sorted(self.parts.glob("*.parquet"))
        frame = pl.scan_parquet(files, glob=False, hive_partitioning=False)
        if self.curve is not None:
            frame = self._averaged(frame, self.curve)
        with appearing(self.output) as path:
            self.writing.sink(frame, path)

    def _averaged(self, problems: pl.LazyFrame, curve: Curve) -> pl.LazyFrame:
        """Average one selector after another, so that only the problems of one are in memory."""
        selectors = problems.select(pl.col("selector").unique()).collect(engine="streaming")
        curves = [
            curve.make(problems.filter(pl.col("selector") == name), self.keys).collect()
            for name in sorted(selectors.to_series())
        ]
        if not curves:
            return curve.make(problems, self.keys)
        groups = [name for name in self.keys if name not in {*curve.replicates, curve.cluster}]
        order = [*groups, "selector", "reduction", "budget", "subsets"]
        return pl.concat(curves).lazy().sort(order)


def _sorted(frame: pl.LazyFrame, order: Sequence[str], rows: Slice | None) -> pl.LazyFrame:
    """Sort a part unless its rows stand in order already: then it need not be in memory."""
    if rows is not None:
        keys = rows.scan().select(order).collect()
        if keys.equals(keys.sort(order, maintain_order=True)):
            return frame
    return frame.sort(order, maintain_order=True)
