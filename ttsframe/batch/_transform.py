"""Run a job."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_mapping, check_names, check_positive
from ttsframe._settings import setting
from ttsframe._typing import ColumnNames
from ttsframe.batch.failures import reading_error
from ttsframe.batch.job import Job, check_not_replaced
from ttsframe.batch.local import Engine, LocalEngine
from ttsframe.batch.lock import locked
from ttsframe.batch.manifest import Manifest, fingerprint, make_manifest
from ttsframe.batch.plan import Phase, Size, make_plan
from ttsframe.batch.progress import Meter, OnProgress
from ttsframe.batch.ray_engine import RayEngine
from ttsframe.batch.stages import Stage, Table, check_stages, import_functions
from ttsframe.errors import ParameterError, SourceError
from ttsframe.readers.engine import Candidate, OnError, Source, expand, one_source
from ttsframe.readers.trajectories import Format, plan_reading

__all__ = ["ENGINES", "BatchResult", "EngineName", "transform"]

EngineName: TypeAlias = Literal["polars", "ray"]

ENGINES: Final[Mapping[str, Callable[[], Engine]]] = MappingProxyType({
    "polars": LocalEngine,
    "ray": RayEngine,
})
"""The engines that can run the tasks of a job, by the name that `engine` takes."""


class BatchResult(NamedTuple):
    """Result of a job.

    Parameters
    ----------
    sink
        The file or folder that was written.
    table
        The table in it: "trajectories", "votes", "problems" or "curve".
    n_rows
        Number of its rows.
    n_parts
        Number of parts that it was made in.
    n_parts_resumed
        Number of parts that an earlier run of the job made; all if the result existed already.
    n_bytes
        Size of the file or of all parts.
    manifest
        Sources, settings and versions.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(2, 4, seed=0, keys=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, sink = pathlib.Path(folder, "run.parquet"), pathlib.Path(folder, "out.parquet")
    ...     run.write_parquet(source)
    ...     done = tts.batch.transform(source, sink, stages=tts.batch.Votes())
    >>> done.table, done.n_parts, done.n_parts_resumed
    ('votes', 1, 0)
    """

    sink: Path
    table: Table
    n_rows: int
    n_parts: int
    n_parts_resumed: int
    n_bytes: int
    manifest: Manifest


def transform(
    source: Source,
    sink: str | os.PathLike[str],
    /,
    *,
    stages: Stage | Sequence[Stage] = (),
    engine: EngineName | Engine = "polars",
    by: ColumnNames = (),
    format: Format = "auto",  # noqa: A002 - the word users know
    rename: Mapping[str, str] | None = None,
    gold: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
    overwrite: bool = False,
    restart: bool = False,
    rows_per_part: int = 1_000_000,
    bytes_per_part: int = 256 << 20,
    progress: OnProgress | None = None,
) -> BatchResult:
    """Convert, score, count or average a run of any size, from files to Parquet.

    The result equals that of the functions after which the stages are named, on the complete source,
    but only a part of it is in memory. An interrupted job resumes where it stopped if you rerun the
    same call. The output is written completely or not at all.

    Parameters
    ----------
    source
        A file, folder or glob, or several of these, as `scan_trajectories` reads.
    sink
        A file, if its name ends in ".parquet", else a folder of "part-00000.parquet" and so on.
    stages
        What to do, in this order: `Score`; `Votes` or `Select`; `Curve` after `Select`. Without
        stages, the attempts are written as one table.
    engine
        Where the tasks run: "polars", in this process on all cores; "ray", on a Ray cluster, see
        `RayEngine`; or an engine, for example a RayEngine with an address.
    by
        Columns that tell runs, models or seeds apart; attempts never join across them.
    format, rename, gold, on_error
        As `scan_trajectories` takes them.
    overwrite
        Whether to replace an existing output once the new one is complete. Otherwise the result of
        the same job is kept, and anything else is an error.
    restart
        Whether to discard the work of an interrupted job instead of resuming it.
    rows_per_part
        Approximate number of attempts in memory at once; a problem is never divided.
    bytes_per_part
        Approximate number of their bytes.
    progress
        Called with a `Progress` at the start of each phase and after each task.

    Returns
    -------
    BatchResult
        Description of the output. Attempts of a part are sorted by (by, `problem_id`, `attempt`),
        votes and problems as their functions sort them.

    Raises
    ------
    SourceError
        If a file cannot be read, is damaged, or changes during the job; if the disk is full; if the
        sink exists and was written with different settings; if another job is writing it.
    ParameterError
        If a stage cannot follow another, an option is not among its choices, or an interrupted job
        has another source, other settings or other versions.
    ColumnsError
        If a stage lacks a column.
    DataError
        If the attempts break a rule of a stage.

    See Also
    --------
    read_manifest : Sources, settings and versions of a result.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(50, 8, seed=0, keys=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, sink = pathlib.Path(folder, "run.parquet"), pathlib.Path(folder, "curve.parquet")
    ...     run.write_parquet(source)
    ...     stages = [tts.batch.Select(selectors="oracle", budgets=[1, 8]), tts.batch.Curve()]
    ...     done = tts.batch.transform(source, sink, stages=stages)
    ...     curve = pl.read_parquet(sink)
    >>> curve.select("selector", "budget", "accuracy", "n_problems")
    shape: (2, 4)
    ┌──────────┬────────┬──────────┬────────────┐
    │ selector ┆ budget ┆ accuracy ┆ n_problems │
    │ ---      ┆ ---    ┆ ---      ┆ ---        │
    │ str      ┆ u32    ┆ f64      ┆ u32        │
    ╞══════════╪════════╪══════════╪════════════╡
    │ oracle   ┆ 1      ┆ 0.66     ┆ 50         │
    │ oracle   ┆ 8      ┆ 0.94     ┆ 50         │
    └──────────┴────────┴──────────┴────────────┘
    """
    listed = tuple(import_functions(stage) for stage in check_stages(stages))
    if isinstance(engine, str):
        check_choice(engine, "engine", ENGINES)
        engine = ENGINES[engine]()
    names = check_names(by, "by")
    check_choice(format, "format", get_args(Format))
    check_choice(on_error, "on_error", get_args(OnError))
    size = Size(
        check_positive(rows_per_part, "rows_per_part"),
        check_positive(bytes_per_part, "bytes_per_part"),
    )
    job = Job(Path(sink).expanduser().absolute())
    job.check_place()
    paths = [_file_of(candidate) for candidate in expand(source)]
    check_not_replaced(job.sink, paths)
    with locked(job.lock, job.sink):
        wanted = make_manifest(
            paths,
            gold=None if gold is None else _file_of(one_source(gold, "gold")),
            reading={
                "format": format,
                "rename": check_mapping(rename, "rename"),
                "on_error": on_error,
            },
            by=names,
            stages=listed,
            parts=size._asdict(),
        )
        finished = job.finished(wanted, overwrite=overwrite)
        if finished is not None:
            job.remove()
            return _result(job.sink, listed, finished, is_resumed=True)
        begun = job.begin(wanted, restart=restart)
        reading = plan_reading(
            source,
            format=format,
            rename=rename,
            gold=gold,
            on_error=on_error,
            names_files="source_file" in names,
        )
        for warning in reading.warnings:
            warnings.warn(warning, stacklevel=2)
        try:
            plan = make_plan(reading, listed, names, size)
        except (OSError, pl.exceptions.PolarsError) as error:
            failure = reading_error("; ".join(map(str, paths[:3])), paths, error)
            raise failure from error
        manifest = replace(begun or wanted, layout=plan.layout)
        if begun is None:
            job.write_manifest(manifest)
        phases = plan.phases(job.folder, job.parts, manifest.to_json(), is_file=job.is_file)
        with engine if isinstance(engine, AbstractContextManager) else nullcontext():
            n_resumed = _run(phases, engine, progress)
        _check_unchanged(manifest)
        made = phases[-1].tasks[-1].output
        job.publish(made if job.is_file else made.parent)
    result = _result(job.sink, listed, manifest, is_resumed=False)
    return result._replace(n_parts_resumed=n_resumed)


def _file_of(candidate: Candidate) -> Path:
    """Return the path of a source, which a job may read again in other processes and later."""
    if candidate.kind != "file":
        raise ParameterError(
            f"{candidate.name}: is not a local file, as a job needs that can be resumed. Hint: write it to "
            "a file first; tts.read_trajectories(source).write_parquet(...) does for any source."
        )
    return candidate.path


def _run(phases: Sequence[Phase], engine: Engine, progress: OnProgress | None) -> int:
    """Run the tasks that are not done; return the number of parts that an earlier run made."""
    n_resumed = 0
    for phase in _from_first_open(phases):
        done = [task for task in phase.tasks if task.output.exists()]
        if phase.name == "parts":
            n_resumed = len(done)
        meter = Meter(
            phase.name,
            [task.amount for task in phase.tasks],
            n_tasks_before=len(done),
            before=[task.amount for task in done],
            on_progress=progress,
        )
        open_tasks = [task for task in phase.tasks if task not in done]
        engine.run(open_tasks, meter.add)
    return n_resumed


def _from_first_open(phases: Sequence[Phase]) -> Sequence[Phase]:
    """Skip the phases before the parts if all parts exist."""
    for number, phase in enumerate(phases):
        if phase.name == "parts" and all(task.output.exists() for task in phase.tasks):
            return phases[number:]
    return phases


def _check_unchanged(manifest: Manifest) -> None:
    """Raise if a source has changed since the job began."""
    gold = [] if manifest.gold is None else [manifest.gold]
    for before in [*manifest.source, *gold]:
        after = fingerprint(Path(before.path))
        if not before.is_same(after):
            raise SourceError(
                f"{before.path}: has changed since the job began ({before.size:,} -> {after.size:,} "
                f"bytes), so nothing was written. Hint: rerun with {setting('restart', True)} once the "
                "file no longer changes."
            )


def _result(
    sink: Path, stages: Sequence[Stage], manifest: Manifest, *, is_resumed: bool
) -> BatchResult:
    """Describe the output."""
    files = sorted(sink.glob("*.parquet")) if sink.is_dir() else [sink]
    n_rows = pl.scan_parquet(files, glob=False).select(pl.len()).collect().item()
    n_parts = int(str(manifest.layout["n_parts"]))
    return BatchResult(
        sink=sink,
        table=stages[-1].makes if stages else "trajectories",
        n_rows=int(n_rows),
        n_parts=n_parts,
        n_parts_resumed=n_parts if is_resumed else 0,
        n_bytes=sum(file.stat().st_size for file in files),
        manifest=manifest,
    )
