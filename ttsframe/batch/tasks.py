"""What a job consists of: pure functions over files, which any engine can run in any process.

A task reads files that are there before it starts, and its output, a file or a folder, appears
whole. So a task may be run twice, even at once, and one whose output exists need not be run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import polars as pl

from ttsframe._files import appearing
from ttsframe.batch.numbered import numbered_files, row_hash, sink_numbered
from ttsframe.batch.progress import Amount
from ttsframe.batch.scoring import Scoring
from ttsframe.batch.sources import Slice
from ttsframe.batch.stages import Curve, Score, Stage

__all__ = ["JoinTask", "PartTask", "ScanTask", "Task", "Writing"]

Compression: TypeAlias = Literal["lz4", "zstd"]

_SLICE: Final = "__slice"


class Task(Protocol):
    """A pure function over files; a value that can be pickled.

    The output is the path that exists exactly if the task is done.
    """

    @property
    def name(self) -> str:
        """Name, for messages."""

    @property
    def output(self) -> Path:
        """File or folder that it makes; an absolute path."""

    @property
    def amount(self) -> Amount:
        """How much of the source it reads."""

    @property
    def keeps_one_core(self) -> bool:
        """Whether it is Python code on one core, for so long that a process of its own pays."""

    @property
    def reads(self) -> str:
        """What it reads, for messages."""

    def run(self) -> None:
        """Make the output."""


@dataclass(frozen=True)
class Writing:
    """How tables of the result are written.

    Parameters
    ----------
    compression
        Codec.
    row_group_size
        Rows of a row group.
    metadata
        Key and value pairs of the file.
    """

    compression: Compression
    row_group_size: int
    metadata: Mapping[str, str]

    def sink(self, frame: pl.LazyFrame, path: Path) -> None:
        """Write a frame; the same rows give the same bytes.

        Parameters
        ----------
        frame
            Rows in their order.
        path
            File to write.
        """
        frame.sink_parquet(
            path,
            compression=self.compression,
            row_group_size=self.row_group_size,
            metadata=dict(self.metadata),
        )


@dataclass(frozen=True, kw_only=True)
class ScanTask:
    """Read a slice once, and write the rows of each part to a file of their own.

    Parameters
    ----------
    output
        Folder of files, by part.
    slice
        Rows to read.
    scoring
        What to read out of the texts; None: nothing.
    columns
        What to keep.
    keys
        Columns whose hash decides on the part.
    n_parts
        Number of parts; None: all rows belong to the part that has the number of the slice.
    row_group_size
        Rows of a row group; bounds what is held in memory.
    """

    output: Path
    slice: Slice
    scoring: Scoring | None
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    n_parts: int | None
    row_group_size: int
    keeps_one_core: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """Name, for messages."""
        return f"slice {self.slice.number}"

    @property
    def amount(self) -> Amount:
        """How much of the source it reads."""
        return self.slice.amount

    @property
    def reads(self) -> str:
        """What it reads, for messages."""
        return self.slice.label

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
class PartTask:
    """Make a part of the result out of all attempts at some problems.

    Parameters
    ----------
    output
        Parquet file.
    part
        Number of the part.
    rows
        The attempts: a slice of the source, or the folder that the `ScanTask` wrote to.
    schema
        Columns of the attempts, as `rows` has them.
    stages
        What to do, but for the last averages.
    scoring
        Where `rows` is a folder and Score is among the stages, how it goes on.
    answer_keys
        Folder that the `KeysTask` wrote to.
    keys
        Columns that tell runs apart.
    order
        Columns by which attempts are sorted.
    numbering
        Columns of a run, where attempts are numbered by the order of their rows; none: they have
        numbers.
    columns
        Columns of the result.
    writing
        How to write it.
    amount
        How much of the source it stands for.
    """

    output: Path
    part: int
    rows: Slice | Path
    schema: Mapping[str, pl.DataType]
    stages: tuple[Stage, ...]
    scoring: Scoring | None
    answer_keys: Path
    keys: tuple[str, ...]
    order: tuple[str, ...]
    numbering: tuple[str, ...]
    columns: tuple[str, ...]
    writing: Writing
    amount: Amount
    keeps_one_core: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """Name, for messages."""
        return f"part {self.part}"

    @property
    def reads(self) -> str:
        """What it reads, for messages."""
        return self.rows.label if isinstance(self.rows, Slice) else f"the rows of part {self.part}"

    def run(self) -> None:
        """Make the output."""
        frame = self.rows.scan() if isinstance(self.rows, Slice) else self._shuffled(self.rows)
        table = "trajectories"
        for stage in self.stages:
            if isinstance(stage, Score) and self.scoring is not None:
                frame = self.scoring.finish(frame, self.answer_keys)
            else:
                frame = stage.make(frame, self.keys)
            table = stage.makes
        frame = frame.select(self.columns)
        if table == "trajectories":
            frame = frame.sort(self.order, maintain_order=True)
        with appearing(self.output) as path:
            self.writing.sink(frame, path)

    def _shuffled(self, slices: Path) -> pl.LazyFrame:
        """Scan what the slices have of this part, in their order."""
        files = numbered_files(slices, "*/", self.part)
        if not files:
            return pl.LazyFrame(schema=pl.Schema(self.schema))
        if not self.numbering:
            return pl.scan_parquet(files, glob=False, hive_partitioning=False)
        # What a slice has numbered for itself is counted on over all slices.
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
class JoinTask:
    """Put the parts together: one file of them all, or the curve of the problems in them.

    Parameters
    ----------
    output
        Parquet file.
    parts
        Folder of the parts.
    curve
        How to average; None: the rows as they are.
    keys
        Columns that tell runs and replicates apart.
    writing
        How to write it.
    amount
        How much of the source the parts stand for.
    """

    output: Path
    parts: Path
    curve: Curve | None
    keys: tuple[str, ...]
    writing: Writing
    amount: Amount
    keeps_one_core: bool = field(default=False, init=False)
    name: str = field(default="result", init=False)
    reads: str = field(default="the parts", init=False)

    def run(self) -> None:
        """Make the output."""
        files = sorted(self.parts.glob("*.parquet"))
        frame = pl.scan_parquet(files, glob=False, hive_partitioning=False)
        if self.curve is not None:
            frame = self._averaged(frame, self.curve)
        with appearing(self.output) as path:
            self.writing.sink(frame, path)

    def _averaged(self, problems: pl.LazyFrame, curve: Curve) -> pl.LazyFrame:
        """Average the problems of one selector after the other, so that those of one are in memory."""
        selectors = problems.select(pl.col("selector").unique()).collect(engine="streaming")
        curves = [
            curve.make(problems.filter(pl.col("selector") == name), self.keys).collect()
            for name in sorted(selectors.to_series())
        ]
        if not curves:
            return curve.make(problems, self.keys)
        groups = [name for name in self.keys if name not in curve.replicates]
        order = [*groups, "selector", "reduction", "budget", "subsets"]
        return pl.concat(curves).lazy().sort(order)
