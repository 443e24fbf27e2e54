"""Read runs of other tools, and those of ttsframe, as one table of attempts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from ttsframe.errors import UnmatchedGoldWarning
from ttsframe.readers.engine.faults import DAMAGED, naming
from ttsframe.readers.engine.gold import Gold, find_gold
from ttsframe.readers.engine.memory import name_of
from ttsframe.readers.engine.scan import Survey, scan_survey
from ttsframe.readers.engine.sources import Source
from ttsframe.readers.engine.survey import scan_source
from ttsframe.readers.engine.table import FileFormat, OnError
from ttsframe.readers.step_formats.registry import STEP_FORMATS

__all__ = [
    "READERS",
    "read_trajectories",
    "scan_trajectories",
]

Format: TypeAlias = Literal[
    "auto",
    "inspect_ai",
    "lm_eval",
    "opencompass",
    "lighteval",
    "nemo_skills",
    "verl",
    "verl_generation",
    "trl",
    "verifiers",
    "helm",
    "every_eval_ever",
    "boinf",
    "openr1",
    "large_language_monkeys",
    "evalplus",
    "bigcodebench",
    "livecodebench",
    "human_eval",
    "search_and_learn",
    "qwen_math",
    "rebase",
    "compute_optimal_tts",
    "optillm",
    "its_hub",
    "self_certainty",
    "verify_cot",
    "eval_framework",
    "sieval",
    "long_form",
    "counts",
]
"""Each name but the first is that of a module of `trajectory_formats`."""

READERS: Final[Mapping[str, FileFormat]] = MappingProxyType({
    name: import_module(f"ttsframe.readers.trajectory_formats.{name}").FORMAT
    for name in get_args(Format)
    if name != "auto"
})
"""The formats by name, as `format=` takes them; `"auto"` uses the first that recognizes a file."""

_N_LISTED = 5


class ScannedRun(NamedTuple):
    """A run that was surveyed, and the warnings about it."""

    frame: pl.LazyFrame
    """All attempts."""
    survey: Survey
    """How to read the files, or slices of them."""
    gold: Gold | None
    """The gold answers to attach to the attempts of a slice."""
    warnings: tuple[UserWarning, ...]


def plan_reading(
    source: Source,
    *,
    format: Format,  # noqa: A002
    rename: Mapping[str, str] | None,
    gold: Source | None,
    on_error: OnError,
    names_files: bool = False,
) -> ScannedRun:
    """Survey a run and scan it, as `scan_trajectories` does; `names_files` names a single file too."""
    frame, survey, skipped = scan_source(
        source,
        READERS,
        format=format,
        rename=rename,
        on_error=on_error,
        row="attempt",
        elsewhere={name: each.reader for name, each in STEP_FORMATS.items()},
    )
    if names_files and not survey.has_several_runs:
        survey = survey._replace(has_several_runs=True)
        frame, _ = scan_survey(survey)
    if gold is None:
        return ScannedRun(frame, survey, None, tuple(skipped))
    answers = find_gold(frame, gold)
    unmatched: list[UserWarning] = []
    if answers.unmatched:
        listed = ", ".join(repr(name) for name in answers.unmatched[:_N_LISTED])
        name = gold if isinstance(gold, str | os.PathLike) else name_of(gold).removeprefix("the ")
        more = ", ..." if len(answers.unmatched) > _N_LISTED else ""
        message = (
            f"{name}: no gold answer for {len(answers.unmatched):,} of {answers.n_problems:,} "
            f"problems, which cannot be graded: {listed}{more}."
        )
        unmatched.append(UnmatchedGoldWarning(message))
    return ScannedRun(answers.attach(frame), survey, answers, (*skipped, *unmatched))


def scan_trajectories(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    gold: Source | None = None,
    on_error: OnError = "raise",
) -> pl.LazyFrame:
    """Scan a run in any known format as one lazy row per attempt.

    The format is recognized by content, never by file name. Parquet, Arrow files and frames are
    scanned as they are. JSON and CSV files are inspected once at the call, so that columns that start
    late are found and a malformed line is reported by its number; collection parses them again.

    Parameters
    ----------
    source
        What holds the run, or a sequence of these:

        - Path of a file or folder, or a glob: Parquet, Arrow IPC, JSON lines, JSON or CSV. A folder is
          read with its subfolders, without hidden files; files in it that are not tables, and JSON
          documents and CSV without attempts, are ignored. JSON and CSV may be compressed (gzip, bzip2,
          zstd).
        - URL: `http(s)://`, `hf://`, and the clouds that Polars reads. Parquet stays there and is read
          by column if the server allows it; anything else is read into memory at the call. The network
          is used for nothing else.
        - `"-"`: standard input, of any of these kinds, read into memory at the call.
        - In memory: a frame of Polars or pandas, an Arrow table (anything with the Arrow C stream
          interface), a `Dataset` of Hugging Face with its selection and order of rows, or a list of
          dicts, which is read as the JSON lines of its rows.

        In CSV, an empty field is null and a list is JSON text, such as `[0.9, 0.5]`.
    format
        Key of `READERS`, or `"auto"`.
    rename
        Maps column names of the file to the names that the format expects, for example
        `{"response": "completion"}`; applied before the format is recognized.
    gold
        Gold answers with one row per problem: a file, a URL or what is in memory, as in `source`. The answer is in
        `gold`, `answer`, `gt` or `ground_truth`; the problem is identified by `problem_id`,
        `unique_id`, `id` or `idx`, else by its text in `problem` or `question`. Fills nulls of `gold`
        and `solution`, or adds the columns; a gold answer that contradicts an existing one is an
        error. Problems without a gold answer are counted in an `UnmatchedGoldWarning`. The ids of the
        problems are read at the call.
    on_error
        `"raise"` raises at the first row that cannot be read. `"skip"` leaves such rows out and counts
        them in a `SkippedRowsWarning`; for the count, the source is read completely at the call.

    Returns
    -------
    pl.LazyFrame
        The table `trajectories`: `problem_id` (String or the integer of the source; without ids, 16
        hex digits of a BLAKE2b hash of the problem's text) and `attempt` (UInt32, from 0 in the order
        of the source, or the column of a long form); then, as far as the source has them, `problem`,
        `completion`, `solution`, `step_scores` (List(Float64)), `answer`, `gold`, `is_correct`,
        `score`, `n_tokens` (Int64), `is_exchangeable`; then its other columns, with those of a problem
        repeated for each attempt. If several files were read, `source_file` names the file of a row,
        and their attempts are never joined; a run with one file per problem counts as one file, its
        folder.

    Raises
    ------
    SourceError
        At the call, when a file is missing, empty, malformed, in no known format, or not in the format
        of the others. At collection, naming file and line, when a value does not have the type of its
        column or the lists of a problem differ in length.
    ColumnsError
        At the call, when a column has an unusable type or `rename` does not match the columns.
    ParameterError
        At the call, when `format` or `on_error` is not among its choices.

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
    run = plan_reading(source, format=format, rename=rename, gold=gold, on_error=on_error)
    for warning in run.warnings:
        warnings.warn(warning, stacklevel=2)
    return run.frame


def read_trajectories(
    source: Source,
    *,
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    gold: Source | None = None,
    on_error: OnError = "raise",
) -> pl.DataFrame:
    """Read a run in any known format as one row per attempt.

    The same as `scan_trajectories`, collected; for runs that fit into memory.

    Parameters
    ----------
    source, format, rename, gold, on_error
        As in `scan_trajectories`.

    Returns
    -------
    pl.DataFrame
        The table `trajectories`, as in `scan_trajectories`.

    Raises
    ------
    SourceError
        When a file is missing, empty, malformed, damaged, or in no known format.
    ColumnsError
        When a column has an unusable type or `rename` does not match the columns.
    ParameterError
        When `format` or `on_error` is not among its choices.

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

    The rows of a file mean the same in memory:

    >>> tts.read_trajectories(rows, rename=mine).equals(run)
    True
    """
    run = plan_reading(source, format=format, rename=rename, gold=gold, on_error=on_error)
    for warning in run.warnings:
        warnings.warn(warning, stacklevel=2)
    with naming([file.file.name for file in run.survey.files], DAMAGED):
        return run.frame.collect()
