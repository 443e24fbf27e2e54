"""Cut a source into slices: the rows that one task reads, with the columns of the whole source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from ttsframe.batch.progress import Amount, total
from ttsframe.readers.engine import Gold, Survey, SurveyedFile, scan_survey, scan_table

__all__ = ["Piece", "Slice", "cut_rows", "pieces_of", "slices_of"]

_NOT_COMPRESSED_BY: Final = 4
"""Expected size of JSON relative to its compressed file."""


@dataclass(frozen=True)
class Slice:
    """Some rows of a source, as a value that can be pickled."""

    number: int
    survey: Survey
    """The files, and which rows or bytes of each."""
    gold: Gold | None
    schema: Mapping[str, pl.DataType]
    """Columns of the whole source."""
    amount: Amount

    def scan(self) -> pl.LazyFrame:
        """Scan the attempts, with the columns of the whole source."""
        frame, _ = scan_survey(self.survey)
        if self.gold is not None:
            frame = self.gold.attach(frame)
        schema = frame.collect_schema()
        return frame.select(
            _as(name, dtype, schema.get(name)) for name, dtype in self.schema.items()
        )

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return [one.file.path for one in self.survey.files]

    @property
    def label(self) -> str:
        """The files and rows, for messages."""
        return "; ".join(_label(one) for one in self.survey.files[:3])


def _as(name: str, dtype: pl.DataType, found: pl.DataType | None) -> pl.Expr:
    """Return a column of the whole source, null if the slice lacks it."""
    if found is None:
        return pl.lit(None, dtype).alias(name)
    return pl.col(name) if found == dtype else pl.col(name).cast(dtype)


def _label(one: SurveyedFile) -> str:
    path = one.file.name
    if one.rows is not None:
        return f"{path}, rows {one.rows[0] + 1:,} to {sum(one.rows):,}"
    if one.spans:
        return f"{path}, from line {one.spans[0].first:,}"
    return path


class Piece(NamedTuple):
    """The smallest part of a file that can be read by itself."""

    file: SurveyedFile
    amount: Amount
    n_bytes_kept: int
    """Bytes in memory of the columns that are kept."""


def pieces_of(survey: Survey, is_kept: Callable[[str], bool], share_kept: float) -> list[Piece]:
    """Cut Parquet between row groups, JSON lines between chunks of a few megabytes, and no other files."""
    pieces: list[Piece] = []
    for one in survey.files:
        if one.file.container == "parquet":
            pieces.extend(_row_groups(one, is_kept))
        elif one.spans:
            pieces.extend(_chunks(one, share_kept))
        else:
            n_bytes = os.stat(one.file.path).st_size  # noqa: PTH116 - one call
            if one.file.compression is not None:
                n_bytes *= _NOT_COMPRESSED_BY
            n_rows = one.n_rows
            if not one.is_json:
                n_rows = int(scan_table(one).select(pl.len()).collect().item())
            pieces.append(Piece(one, Amount(n_rows, n_bytes), int(n_bytes * share_kept)))
    return pieces


def _row_groups(one: SurveyedFile, is_kept: Callable[[str], bool]) -> Iterator[Piece]:
    from pyarrow import parquet  # heavy, and only the footers of Parquet need it

    footer = parquet.read_metadata(one.file.path)
    if footer.num_row_groups == 0:
        yield Piece(one._replace(rows=(0, 0)), Amount(0, 0), 0)
    first = 0
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        sizes: dict[str, int] = {}
        for j in range(group.num_columns):
            column = group.column(j)
            name = column.path_in_schema.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
        yield Piece(
            one._replace(rows=(first, group.num_rows)),
            Amount(group.num_rows, group.total_byte_size),
            sum(size for name, size in sizes.items() if is_kept(name)),
        )
        first += group.num_rows


def _chunks(one: SurveyedFile, share_kept: float) -> Iterator[Piece]:
    firsts = [span.first for span in one.spans]
    last = firsts[-1] if one.n_rows is None else max(firsts[-1], one.n_rows + 1)
    for span, (first, following) in zip(one.spans, pairwise([*firsts, last]), strict=True):
        n_bytes = span.end - span.start
        yield Piece(
            one._replace(spans=(span,)),
            Amount(following - first, n_bytes),
            int(n_bytes * share_kept),
        )


def slices_of(
    survey: Survey,
    pieces: Sequence[Piece],
    gold: Gold | None,
    schema: Mapping[str, pl.DataType],
    *,
    n_rows: int,
    n_bytes: int,
) -> list[Slice]:
    """Join consecutive pieces into slices of about the given size."""
    groups: list[list[Piece]] = []
    rows = size = 0
    for piece in pieces:
        more = piece.amount.n_rows or 0
        if not groups or rows + more > n_rows or size + piece.amount.n_bytes > n_bytes:
            groups.append([])
            rows = size = 0
        groups[-1].append(piece)
        rows += more
        size += piece.amount.n_bytes
    return [
        Slice(
            number,
            survey._replace(files=_joined([piece.file for piece in group])),
            gold,
            schema,
            total([piece.amount for piece in group]),
        )
        for number, group in enumerate(groups)
    ]


def _joined(files: Sequence[SurveyedFile]) -> tuple[SurveyedFile, ...]:
    """Read consecutive pieces of one file at once."""
    joined: list[SurveyedFile] = []
    for one in files:
        before = joined[-1] if joined else None
        if before is None or before.file != one.file:
            joined.append(one)
        elif before.rows is not None and one.rows is not None:
            joined[-1] = before._replace(rows=(before.rows[0], before.rows[1] + one.rows[1]))
        else:
            joined[-1] = before._replace(spans=(*before.spans, *one.spans))
    return tuple(joined)


def cut_rows(
    survey: Survey,
    pieces: Sequence[Piece],
    gold: Gold | None,
    schema: Mapping[str, pl.DataType],
    cuts: Sequence[int],
) -> list[Slice]:
    """Cut tables between given rows."""
    whole = total([piece.amount for piece in pieces])
    bytes_per_row = whole.n_bytes / max(1, whole.n_rows or 1)
    ends = [*cuts[1:], whole.n_rows or 0]
    slices = []
    for number, (first, end) in enumerate(zip(cuts, ends, strict=True)):
        files: list[SurveyedFile] = []
        at = 0
        for piece in pieces:
            begin, n = piece.file.rows or (0, piece.amount.n_rows or 0)
            low, high = max(first, at), min(end, at + n)
            if low < high:
                files.append(piece.file._replace(rows=(begin + low - at, high - low)))
            at += n
        amount = Amount(end - first, round((end - first) * bytes_per_row))
        slices.append(Slice(number, survey._replace(files=_joined(files)), gold, schema, amount))
    return slices
