"""Distinct answers of the whole source, and their keys: each string is canonicalised once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe._files import appearing
from ttsframe.answers import AnswerPolicy, answer_key, gold_key
from ttsframe.batch.numbered import numbered_files, sink_numbered
from ttsframe.batch.progress import Amount

__all__ = ["AnswersTask", "KeysTask"]

_STRINGS_AT_ONCE: Final = 50_000
_STRINGS_OF_A_PROCESS: Final = 50_000
_ROW_GROUP_OF_STRINGS: Final = 50_000


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
                sinks.append(sink_numbered(strings, shard, folder / column, size))
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
        return numbered_files(self.answers / column, "", self.shard)

    def _strings(self, column: str) -> Iterator[pl.DataFrame]:
        """Yield the strings of a column, some at a time, in an order that is always the same."""
        if files := self._files(column):
            strings = pl.scan_parquet(files, glob=False).sort("text").collect()
            for start in range(0, strings.height, _STRINGS_AT_ONCE):
                yield strings.slice(start, _STRINGS_AT_ONCE)
