"""What a job consists of: pure functions over files, which any engine can run in any process.

A task reads files that are there before it starts, and its output, a file or a folder, appears
whole. So a task may be run twice, even at once, and one whose output exists need not be run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import polars as pl
from polars.io.partition import FileProviderArgs

from ttsframe._files import appearing
from ttsframe.answers import AnswerPolicy, answer_key, gold_key
from ttsframe.batch.progress import Amount
from ttsframe.batch.sources import Slice
from ttsframe.batch.stages import Curve, Score, Stage
from ttsframe.scoring import Addition, plan_additions

__all__ = ["AnswersTask", "JoinTask", "KeysTask", "PartTask", "ScanTask", "Task", "Writing"]

Compression: TypeAlias = Literal["lz4", "zstd"]

_NUMBER: Final = "__number"
_SLICE: Final = "__slice"
_KEY_SOURCES: Final = {"answer_key": "answer", "gold_key": "gold"}
_STRINGS_AT_ONCE: Final = 50_000
_STRINGS_OF_A_PROCESS: Final = 50_000
_ROW_GROUP_OF_STRINGS: Final = 50_000


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
class Scoring:
    """How `Score` is divided among tasks.

    Parameters
    ----------
    stage
        Its options.
    schema
        Columns of the source.
    needed
        Columns that are read or written later.
    """

    stage: Score
    schema: Mapping[str, pl.DataType]
    needed: frozenset[str]

    @property
    def additions(self) -> list[Addition]:
        """The columns to be made that are needed.

        Returns
        -------
        list[Addition]
            In the order in which they are made.
        """
        planned = plan_additions(
            pl.Schema(self.schema),
            reduction=self.stage.reduction,
            style=self.stage.style,
            policy=self.stage.policy,
            overwrite=self.stage.overwrite,
        )
        return [addition for addition in planned if addition.name in self.needed]

    def extract(self, attempts: pl.LazyFrame) -> pl.LazyFrame:
        """Read the texts: add answers and gold answers, and leave out what is not needed.

        Parameters
        ----------
        attempts
            Attempts of the source.

        Returns
        -------
        pl.LazyFrame
            Columns that are needed and can be had without keys.
        """
        for addition in self.additions:
            if addition.name in {"answer", "gold"}:
                attempts = attempts.with_columns(addition.value.alias(addition.name))
        names = attempts.collect_schema().names()
        return attempts.select(name for name in names if name in self.needed)

    def strings(self) -> list[str]:
        """Return the columns whose distinct strings get keys.

        Returns
        -------
        list[str]
            Among "answer" and "gold".
        """
        names = [addition.name for addition in self.additions]
        return [source for key, source in _KEY_SOURCES.items() if key in names]

    def finish(self, extracted: pl.LazyFrame, keys: Path) -> pl.LazyFrame:
        """Add keys, grades and scores.

        Parameters
        ----------
        extracted
            What `extract` returned.
        keys
            Folder that the `KeysTask` wrote.

        Returns
        -------
        pl.LazyFrame
            All columns that are needed.
        """
        frame = extracted
        for addition in self.additions:
            if addition.name in _KEY_SOURCES:
                frame = _with_keys(frame, addition.name, keys)
            elif addition.name not in {"answer", "gold"}:
                frame = frame.with_columns(addition.value.alias(addition.name))
        return frame


def _with_keys(frame: pl.LazyFrame, name: str, keys: Path) -> pl.LazyFrame:
    """Look the keys of a column up in a table of distinct strings."""
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
            sink = _sink_numbered(frame, part, folder, self.row_group_size)
            sink.collect(engine="streaming")


def _sink_numbered(
    frame: pl.LazyFrame, number: pl.Expr, folder: Path, row_group_size: int
) -> pl.LazyFrame:
    """Plan to write rows to a file per number, their order kept."""
    folder.mkdir(parents=True)
    return frame.with_columns(number.alias(_NUMBER)).sink_parquet(
        pl.PartitionBy(
            folder,
            key=_NUMBER,
            include_key=False,
            approximate_bytes_per_file=None,
            file_path_provider=_numbered_name,
        ),
        compression="lz4",
        row_group_size=row_group_size,
        lazy=True,
    )


def _numbered_name(file: FileProviderArgs) -> str:
    return f"{file.partition_keys.item():05}.{file.index_in_partition}.parquet"


def _numbered_files(folder: Path, pattern: str, number: int) -> list[Path]:
    """Find the files of a number, in the order in which their rows are read."""
    return sorted(folder.glob(f"{pattern}{number:05}.*.parquet"))


def row_hash(schema: Mapping[str, pl.DataType], keys: Sequence[str]) -> pl.Expr:
    """Return a hash of some columns, which depends on their values alone.

    Parameters
    ----------
    schema
        Dtypes of the columns.
    keys
        Their names.

    Returns
    -------
    pl.Expr
        UInt64.
    """
    coded = pl.Categorical | pl.Enum
    values = [
        pl.col(key).cast(pl.String) if isinstance(schema[key], coded) else pl.col(key)
        for key in keys
    ]
    return pl.struct(values).hash(0)


@dataclass(frozen=True, kw_only=True)
class AnswersTask:
    """Gather the distinct strings that need keys, in shards.

    Parameters
    ----------
    output
        Folder of a folder per column, with a file per shard.
    slices
        Folder that the `ScanTask` wrote to.
    columns
        Columns of strings.
    n_shards
        Number of shards.
    amount
        How much of the source the slices have read.
    """

    output: Path
    slices: Path
    columns: tuple[str, ...]
    n_shards: int
    amount: Amount
    keeps_one_core: bool = field(default=False, init=False)
    name: str = field(default="distinct answers", init=False)
    reads: str = field(default="the extracted answers", init=False)

    def run(self) -> None:
        """Make the output."""
        files = sorted(self.slices.glob("*/*.parquet"))
        shard = pl.col("text").hash(0) % self.n_shards
        with appearing(self.output, is_lasting=False) as folder:
            sinks = []
            for column in self.columns:
                text = pl.col(column).cast(pl.String).alias("text")
                strings = pl.scan_parquet(files, glob=False).select(text).drop_nulls().unique()
                size = _ROW_GROUP_OF_STRINGS
                sinks.append(_sink_numbered(strings, shard, folder / column, size))
            pl.collect_all(sinks, engine="streaming")


@dataclass(frozen=True, kw_only=True)
class KeysTask:
    """Give the distinct strings of a shard their keys.

    Parameters
    ----------
    output
        Folder with a table of `text` and `key` per column.
    answers
        Folder that the `AnswersTask` wrote.
    columns
        Columns of strings.
    shard
        Number of the shard.
    policy
        Conventions of the keys.
    amount
        Its share of the source.
    """

    output: Path
    answers: Path
    columns: tuple[str, ...]
    shard: int
    policy: AnswerPolicy | None
    amount: Amount

    @property
    def keeps_one_core(self) -> bool:
        """Whether it is Python code on one core, for so long that a process of its own pays."""
        files = [file for column in self.columns for file in self._files(column)]
        if not files:
            return False
        n_strings = pl.scan_parquet(files, glob=False).select(pl.len()).collect().item()
        return int(n_strings) >= _STRINGS_OF_A_PROCESS

    @property
    def name(self) -> str:
        """Name, for messages."""
        return f"keys {self.shard}"

    @property
    def reads(self) -> str:
        """What it reads, for messages."""
        return "the distinct answers"

    def run(self) -> None:
        """Make the output."""
        with appearing(self.output, is_lasting=False) as folder:
            folder.mkdir()
            for column in self.columns:
                make = answer_key if column == "answer" else gold_key
                keyed = [
                    strings.with_columns(make("text", policy=self.policy).alias("key"))
                    for strings in self._strings(column)
                ]
                empty = pl.DataFrame(schema={"text": pl.String(), "key": pl.String()})
                pl.concat([empty, *keyed]).write_parquet(
                    folder / f"{column}.parquet", row_group_size=_ROW_GROUP_OF_STRINGS
                )

    def _files(self, column: str) -> list[Path]:
        return _numbered_files(self.answers / column, "", self.shard)

    def _strings(self, column: str) -> Iterator[pl.DataFrame]:
        """Yield the strings of a column, some at a time, in an order that is always the same."""
        if files := self._files(column):
            strings = pl.scan_parquet(files, glob=False).sort("text").collect()
            for start in range(0, strings.height, _STRINGS_AT_ONCE):
                yield strings.slice(start, _STRINGS_AT_ONCE)


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
                frame = stage.apply(frame, self.keys)
            table = stage.makes
        frame = frame.select(self.columns)
        if table == "trajectories":
            frame = frame.sort(self.order, maintain_order=True)
        with appearing(self.output) as path:
            self.writing.sink(frame, path)

    def _shuffled(self, slices: Path) -> pl.LazyFrame:
        """Scan what the slices have of this part, in their order."""
        files = _numbered_files(slices, "*/", self.part)
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
            frame = self.curve.apply(frame, self.keys)
        with appearing(self.output) as path:
            self.writing.sink(frame, path)
