"""The one function that runs a job."""

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
from ttsframe._typing import ColumnNames
from ttsframe.batch.failures import found_damage
from ttsframe.batch.job import Job
from ttsframe.batch.local import Engine, LocalEngine
from ttsframe.batch.lock import locked
from ttsframe.batch.manifest import Manifest, fingerprint, make_manifest
from ttsframe.batch.plan import Phase, Size, make_plan
from ttsframe.batch.progress import Meter, OnProgress
from ttsframe.batch.ray_engine import RayEngine
from ttsframe.batch.stages import Stage, Table, check_stages
from ttsframe.errors import SourceError
from ttsframe.readers.engine import OnError, Source, expand
from ttsframe.readers.trajectories import Format, plan_reading

__all__ = ["ENGINES", "BatchResult", "EngineName", "transform"]

EngineName: TypeAlias = Literal["polars", "ray"]

ENGINES: Final[Mapping[str, Callable[[], Engine]]] = MappingProxyType({
    "polars": LocalEngine,
    "ray": RayEngine,
})
"""What can run the tasks of a job, by the name that ``engine`` takes."""


class BatchResult(NamedTuple):
    """What a job has made.

    Parameters
    ----------
    sink
        The file or folder.
    table
        What its rows are: "trajectories", "votes", "problems" or "curve".
    n_rows
        Rows of it.
    n_parts
        Parts that it was made in.
    n_parts_resumed
        Those that an earlier run of the job had made; all of them if the result was there already.
    n_bytes
        Size of it.
    manifest
        What it was made of, how, and with which versions.

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

    The result is that of the functions that the stages are named after, on all of the source; memory
    is that of a part of it. A job that was stopped, by whatever, goes on where it was when the same
    call is made again, and its output appears whole or not at all.

    Parameters
    ----------
    source
        What `scan_trajectories` reads: a file, folder, glob, or several of these.
    sink
        A file, if its name ends in ".parquet", else a folder of "part-00000.parquet" and so on.
    stages
        What to do, in this order: `Score`; `Votes` or `Select`; `Curve` after `Select`. None: write
        the attempts as one table.
    engine
        What runs the tasks: "polars", in this process on all cores; "ray", on a Ray cluster, see
        `RayEngine`; or an engine, such as a RayEngine with an address.
    by
        Columns that tell runs, models or seeds apart; attempts never join across them.
    format, rename, gold, on_error
        As `scan_trajectories` takes them.
    overwrite
        Whether to replace what is there under the name of the sink, once the new is whole. Otherwise
        the result of this very job is kept as it is, and anything else is an error.
    restart
        Whether to throw away what a stopped job has left, rather than to go on with it.
    rows_per_part
        About how many attempts are held in memory at once; a problem is never divided.
    bytes_per_part
        About how many bytes of them.
    progress
        Called with a `Progress` at the beginning of each phase and as each task ends.

    Returns
    -------
    BatchResult
        What was made, and how. Attempts of a part are sorted by (by, `problem_id`, `attempt`), as
        are votes and problems as their functions sort them; the parts follow one another.

    Raises
    ------
    SourceError
        When a file cannot be read, is damaged, or changes meanwhile; when the disk takes no more;
        when the sink is there already and was made otherwise; when another job writes it.
    ParameterError
        When a stage cannot follow another, an option is none of its choices, or a stopped job had
        another source, other options or other versions.
    ColumnsError
        When a stage lacks a column.
    DataError
        When the attempts break a rule of a stage.

    See Also
    --------
    read_manifest : What a result was made of.

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
    listed = check_stages(stages)
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
    paths = [candidate.path for candidate in expand(source)]
    _check_apart(job.sink, paths)
    with locked(job.lock, job.sink):
        wanted = make_manifest(
            paths,
            gold=None if gold is None else Path(gold).expanduser(),
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
        reading = plan_reading(source, format=format, rename=rename, gold=gold, on_error=on_error)
        for warning in reading.warnings:
            warnings.warn(warning, stacklevel=2)
        try:
            plan = make_plan(reading, listed, names, size)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise found_damage(reading.survey.files) or error from error
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


def _check_apart(sink: Path, sources: Sequence[Path]) -> None:
    """Raise where a source would be replaced."""
    place = sink.resolve()
    for path in sources:
        real = path.resolve()
        if real == place or place in real.parents:
            raise SourceError(
                f"{sink}: {path} is one of the sources, and would be replaced. Hint: give the output "
                "another name, outside of a folder that is read."
            )


def _run(phases: Sequence[Phase], engine: Engine, progress: OnProgress | None) -> int:
    """Run what is not done yet; return how many parts an earlier run had made."""
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
    """Leave out the phases whose outputs only served parts that are all there."""
    for number, phase in enumerate(phases):
        if phase.name == "parts" and all(task.output.exists() for task in phase.tasks):
            return phases[number:]
    return phases


def _check_unchanged(manifest: Manifest) -> None:
    """Raise where a source is not any more what it was when the job began."""
    gold = [] if manifest.gold is None else [manifest.gold]
    now = [fingerprint(Path(one.path)) for one in [*manifest.source, *gold]]
    for before, after in zip([*manifest.source, *gold], now, strict=True):
        if not before.is_same(after):
            raise SourceError(
                f"{before.path}: changed while the job was reading it ({before.size:,} -> "
                f"{after.size:,} bytes), so nothing was written. Hint: run it again with restart=True "
                "when the file stays as it is."
            )


def _result(
    sink: Path, stages: Sequence[Stage], manifest: Manifest, *, is_resumed: bool
) -> BatchResult:
    """Describe what is there."""
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
