"""Find the distinct answers of the source and their keys, so that each string is keyed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe._files import appearing
from ttsframe.answers import AnswerPolicy, answer_key, gold_key
from ttsframe.batch.numbered import numbered_files, sink_numbered
from ttsframe.batch.tasks import Task

__all__ = ["AnswersTask", "KeysTask"]

_STRINGS_AT_ONCE: Final = 50_000
_STRINGS_FOR_A_PROCESS: Final = 50_000
_ROW_GROUP_OF_STRINGS: Final = 50_000


@dataclass(frozen=True, kw_only=True)
class AnswersTask(Task):
    """Write the distinct strings that need keys: a folder per column, with a file per shard."""

    slices: Path
    """The folder that `ScanTask` wrote to."""
    columns: tuple[str, ...]
    n_shards: int

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
class KeysTask(Task):
    """Key the distinct strings of a shard: a table of `text` and `key` per column."""

    answers: Path
    """The folder that `AnswersTask` wrote."""
    columns: tuple[str, ...]
    shard: int
    policy: AnswerPolicy | None

    @property
    def keeps_one_core(self) -> bool:
        """Whether there are so many strings that a process for them pays."""
        files = [file for column in self.columns for file in self._files(column)]
        if not files:
            return False
        n_strings = pl.scan_parquet(files, glob=False).select(pl.len()).collect().item()
        return int(n_strings) >= _STRINGS_FOR_A_PROCESS

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
        """Yield the strings of a column in batches, always in the same order."""
        if files := self._files(column):
            strings = pl.scan_parquet(files, glob=False).sort("text").collect()
            for start in range(0, strings.height, _STRINGS_AT_ONCE):
                yield strings.slice(start, _STRINGS_AT_ONCE)
