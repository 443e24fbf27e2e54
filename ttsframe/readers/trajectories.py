"""Read runs of other tools, and ttsframe's own, as one table of attempts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe._checks import check_choice, check_mapping
from ttsframe.errors import ParameterError, SkippedRowsWarning, UnmatchedGoldWarning
from ttsframe.readers.engine.attempts import Survey, scan_attempts
from ttsframe.readers.engine.gold import Gold, find_gold
from ttsframe.readers.engine.load import survey as look_over
from ttsframe.readers.engine.sources import Source, expand
from ttsframe.readers.engine.table import OnError, Reader
from ttsframe.readers.trajectory_formats import (
    compute_optimal_tts,
    long_form,
    qwen_math,
    rebase,
    search_and_learn,
)

__all__ = [
    "READERS",
    "read_trajectories",
    "scan_trajectories",
]

Format: TypeAlias = Literal[
    "auto", "search_and_learn", "qwen_math", "rebase", "compute_optimal_tts", "long_form"
]

READERS: Final[Mapping[str, Reader]] = MappingProxyType({
    "search_and_learn": search_and_learn.READER,
    "qwen_math": qwen_math.READER,
    "rebase": rebase.READER,
    "compute_optimal_tts": compute_optimal_tts.READER,
    "long_form": long_form.READER,
})
"""The formats, by the name that ``format`` takes; the first one that recognises a file reads it."""

_SHOWN = 5


class Reading(NamedTuple):
    """A source that was looked over, and what there is to say about it."""

    frame: pl.LazyFrame
    """All attempts."""
    survey: Survey
    """How to read the files, or slices of them."""
    gold: Gold | None
    """What to attach to the attempts of a slice."""
    warnings: tuple[UserWarning, ...]


def plan_reading(
    source: Source,
    *,
    format: Format,  # noqa: A002
    rename: Mapping[str, str] | None,
    gold: str | os.PathLike[str] | None,
    on_error: OnError,
) -> Reading:
    """Look a source over, as `scan_trajectories` does, which states parameters and errors."""
    frame, survey, said = plan_table(
        source, READERS, format=format, rename=rename, on_error=on_error, row="attempt"
    )
    if gold is None:
        return Reading(frame, survey, None, tuple(said))
    found = find_gold(frame, gold)
    if found.unmatched:
        some = ", ".join(repr(name) for name in found.unmatched[:_SHOWN])
        more = ", ..." if len(found.unmatched) > _SHOWN else ""
        said.append(
            UnmatchedGoldWarning(
                f"{gold}: no reference answer for {len(found.unmatched):,} of {found.n_problems:,} "
                f"problems, which cannot be graded: {some}{more}."
            )
        )
    return Reading(found.attach(frame), survey, found, tuple(said))


def plan_table(
    source: Source,
    readers: Mapping[str, Reader],
    *,
    format: str,  # noqa: A002
    rename: Mapping[str, str] | None,
    on_error: OnError,
    row: str,
) -> tuple[pl.LazyFrame, Survey, list[UserWarning]]:
    """Look a source over that one of some readers reads; ``row`` is what a row of it stands for."""
    check_choice(format, "format", ["auto", *readers])
    check_choice(on_error, "on_error", ["raise", "skip"])
    renamed = check_mapping(rename, "rename")
    if len(set(renamed.values())) != len(renamed):
        raise ParameterError(f"rename == {renamed} gives two columns one name.")
    survey, faulty = look_over(
        expand(source), readers, format=format, rename=renamed, on_error=on_error, row=row
    )
    frame, broken = scan_attempts(survey)
    skipped = [*faulty, *broken]
    if not skipped:
        return frame, survey, []
    more = f" and {len(skipped) - _SHOWN:,} more" if len(skipped) > _SHOWN else ""
    rows = f"{len(skipped):,} row{'s' if len(skipped) > 1 else ''}"
    message = f"{rows} skipped: {'; '.join(skipped[:_SHOWN])}{more}."
    return frame, survey, [SkippedRowsWarning(message, len(skipped))]


def scan_trajectories(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    gold: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
) -> pl.LazyFrame:
    """Scan a run, in whatever format a tool wrote it, as one lazy row per attempt.

    The format is recognised by content, never by file name. Parquet and Arrow files are scanned as
    they are; a JSON file is looked through once at the call, so that no column that starts late is
    lost and a malformed line is reported by its number, and is parsed again at collection.

    Parameters
    ----------
    source
        Path of a file or folder, a glob, or a sequence of these. A folder is read with the folders in
        it, without hidden files; JSON documents in it that hold no attempts (a run's config) and
        files that are no tables are passed over. JSON may be compressed (gzip, bzip2, zstd).
    format
        Key of `READERS`, or ``"auto"``.
    rename
        The file's column names to the names that the format expects, such as
        ``{"response": "completion"}``; applied before the format is recognised.
    gold
        File of reference answers (JSON, Parquet, Arrow or CSV) with one row per problem: ``gold``,
        ``answer``, ``gt`` or ``ground_truth``, found by ``problem_id``, ``unique_id``, ``id`` or ``idx``, else by
        the text ``problem`` or ``question``. Fills ``gold`` and ``solution`` where they are null or not there;
        an answer that differs from the one that is there is an error. Problems without an answer keep
        a null and are counted in an `UnmatchedGoldWarning`. The ids of the problems are read at the call.
    on_error
        ``"raise"`` stops at the first row that cannot be read. ``"skip"`` leaves such rows out and
        says how many in a `SkippedRowsWarning`; to count them, the source is read through at the call.

    Returns
    -------
    pl.LazyFrame
        The table `trajectories`: ``problem_id`` (String, or the integer of the source; a source without
        ids gets 16 hex digits of a BLAKE2b hash of the problem's text), ``attempt`` (UInt32, from 0 in the
        order of the source; in a long form without it, the order of the problem's rows), then of ``problem``, ``completion``, ``solution``, ``step_scores`` (List(Float64)),
        ``answer``, ``gold``, ``is_correct``, ``score``, ``n_tokens`` (Int64), ``is_exchangeable`` what the source has, then
        its other columns, those of a problem repeated for each attempt. ``source_file`` says where
        a row came from when several files were read, which are never joined; a run in pieces, one
        file per problem, counts as one file: its folder.

    Raises
    ------
    SourceError
        At the call, when a file is missing, empty, in no known format, of another format than the
        rest, or malformed; at collection, naming file and line, when a value is not of its
        column's type or the lists of a problem differ in length.
    ColumnsError
        At the call, when a column's type cannot be used or ``rename`` does not fit.
    ParameterError
        At the call, when ``format`` or ``on_error`` is none of the choices.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import ttsframe as tts
    >>> row = {"problem": "1 + 1?", "answer": "2", "completions": ["2", "3"], "scores": [[0.9], [0.2, 0.1]]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "bon_completions.jsonl")
    ...     _ = path.write_text(json.dumps(row))
    ...     run = tts.scan_trajectories(path).collect()
    >>> run.select("problem_id", "attempt", "completion", "step_scores", "gold")
    shape: (2, 5)
    ┌──────────────────┬─────────┬────────────┬─────────────┬──────┐
    │ problem_id       ┆ attempt ┆ completion ┆ step_scores ┆ gold │
    │ ---              ┆ ---     ┆ ---        ┆ ---         ┆ ---  │
    │ str              ┆ u32     ┆ str        ┆ list[f64]   ┆ str  │
    ╞══════════════════╪═════════╪════════════╪═════════════╪══════╡
    │ 5ff699181b13a351 ┆ 0       ┆ 2          ┆ [0.9]       ┆ 2    │
    │ 5ff699181b13a351 ┆ 1       ┆ 3          ┆ [0.2, 0.1]  ┆ 2    │
    └──────────────────┴─────────┴────────────┴─────────────┴──────┘
    """
    reading = plan_reading(source, format=format, rename=rename, gold=gold, on_error=on_error)
    for warning in reading.warnings:
        warnings.warn(warning, stacklevel=2)
    return reading.frame


def read_trajectories(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    gold: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
) -> pl.DataFrame:
    """Read a run, in whatever format a tool wrote it, as one row per attempt.

    The same as `scan_trajectories`, collected: for runs that fit in memory.

    Parameters
    ----------
    source
        Path of a file or folder, a glob, or a sequence of these.
    format
        Key of `READERS`, or ``"auto"``.
    rename
        The file's column names to the names that the format expects.
    gold
        File of reference answers, one row per problem.
    on_error
        ``"raise"``, or ``"skip"`` to leave rows out that cannot be read, and count them in a warning.

    Returns
    -------
    pl.DataFrame
        The table `trajectories`; see `scan_trajectories`.

    Raises
    ------
    SourceError
        When a file is missing, empty, in no known format, or holds a row that cannot be read.
    ColumnsError
        When a column's type cannot be used or ``rename`` does not fit.
    ParameterError
        When ``format`` or ``on_error`` is none of the choices.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import ttsframe as tts
    >>> rows = [{"question": "1 + 1?", "response": text, "right": text == "2"} for text in ("2", "3")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "mine.jsonl")
    ...     _ = path.write_text("".join(json.dumps(row) + chr(10) for row in rows))
    ...     mine = {"question": "problem", "response": "completion", "right": "is_correct"}
    ...     run = tts.read_trajectories(path, rename=mine)
    >>> run.select("attempt", "completion", "is_correct").rows()
    [(0, '2', True), (1, '3', False)]
    """
    frame = scan_trajectories(source, format=format, rename=rename, gold=gold, on_error=on_error)
    return frame.collect()
