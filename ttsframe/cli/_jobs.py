"""Run a command as a batch job: in parts, with bounded memory, and resumed after an interruption."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import polars as pl

from ttsframe._files import check_parent_folder
from ttsframe._wording import counted
from ttsframe.batch import ENGINES, BatchResult, Engine, RayEngine, Stage, transform
from ttsframe.batch.job import check_kind
from ttsframe.cli._console import Console
from ttsframe.cli._documents import DOCUMENT_SUFFIXES
from ttsframe.cli._names import Name
from ttsframe.cli._options import Decorator, Run, gathers
from ttsframe.cli._output import TABLE_SUFFIXES, check_output
from ttsframe.cli._progress import JobProgress
from ttsframe.cli._stopping import stopping
from ttsframe.readers.engine import is_local

OUTPUT_HELP: Final = (
    "X.parquet or a folder of Parquet parts, written by a job that resumes if it is interrupted; or a "
    f"file that ends in {', '.join(suffix for suffix in TABLE_SUFFIXES if suffix != '.parquet')}."
)
SHOWN_SUFFIXES: Final = (*TABLE_SUFFIXES, *DOCUMENT_SUFFIXES)
"""What commands write whose tables people read too."""
SHOWN_HELP: Final = f"{OUTPUT_HELP[:-1]}, {', '.join(DOCUMENT_SUFFIXES)}."
_ROWS_PER_PART: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options that say how a job runs."""

    engine: str
    address: str | None
    workers: int | None
    rows_per_part: int
    replace: bool
    restart: bool

    def check_unused(self) -> None:
        """Raise if an option for jobs is given where no job runs."""
        given = [
            f"--{name.replace('_', '-')}"
            for name in ("engine", "address", "workers", "rows_per_part", "restart")
            if click.get_current_context().get_parameter_source(name)
            is click.core.ParameterSource.COMMANDLINE
        ]
        if given:
            raise click.UsageError(
                f"{' and '.join(given)}: only for a job, which writes Parquet. Hint: -o X.parquet, or "
                "-o folder/."
            )

    def make_engine(self) -> Engine:
        """Make the engine that runs the tasks."""
        if self.engine == "ray":
            return RayEngine(self.address, n_workers=self.workers)
        for name, value in ("--address", self.address), ("--workers", self.workers):
            if value is not None:
                raise click.UsageError(f"{name}: only with --engine ray.")
        return ENGINES[self.engine]()


def _log_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Console).is_log_json = value


_JOB_OPTIONS: Final[dict[str, Decorator]] = {
    "engine": click.option(
        "--engine",
        type=Name(list(ENGINES)),
        default="polars",
        show_default=True,
        help="Where the parts run: on this machine, or on a Ray cluster.",
    ),
    "address": click.option(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster to join. Default: RAY_ADDRESS, else a new one on this machine.",
    ),
    "workers": click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Maximum number of parts at a time on Ray.",
    ),
    "rows_per_part": click.option(
        "--rows-per-part",
        type=click.IntRange(min=1),
        default=_ROWS_PER_PART,
        show_default=True,
        metavar="N",
        help="Approximate number of attempts in memory at once.",
    ),
    "replace": click.option(
        "--replace",
        is_flag=True,
        help="Replace an existing output once the new one is complete.",
    ),
    "restart": click.option(
        "--restart",
        is_flag=True,
        help="Discard the work of an interrupted job instead of resuming it.",
    ),
    "log_json": click.option(
        "--log-json",
        is_flag=True,
        callback=_log_json,
        expose_value=False,
        help="Write start, progress, warnings, end and errors to stderr, one JSON object per line.",
    ),
}


class JobCommand(click.Command):
    """A command whose help lists the options of jobs separately."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Large runs": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections["Large runs" if param.name in _JOB_OPTIONS else "Options"].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


runs_job = gathers(JobOptions, "job", _JOB_OPTIONS.values())


def is_job(output: str | None, sources: Sequence[str]) -> bool:
    """Return whether a job writes the output: Parquet, or a folder (no suffix, or a slash at the end)."""
    # A job reads its sources more than once, so it never reads standard input or a URL.
    if output is None:
        return False
    if _is_folder(output):
        return True
    return Path(output).suffix.lower() == ".parquet" and all(map(is_local, sources))


def _is_folder(output: str) -> bool:
    path = Path(output)
    return output.endswith(("/", os.sep)) or path.is_dir() or not path.suffix


def check_target(
    output: str | None,
    sources: Sequence[str],
    job: JobOptions,
    suffixes: Sequence[str] = TABLE_SUFFIXES,
) -> None:
    """Check that the output can be written and that the job options apply, before any work is done."""
    if not is_job(output, sources):
        job.check_unused()
        if output is not None:
            check_output(Path(output), suffixes, sources)
    elif output is not None:
        remote = next((source for source in sources if not is_local(source)), None)
        if remote is not None:
            raise click.UsageError(
                f"{output}: a folder is written by a job, which needs local files, not "
                f"{'standard input' if remote == '-' else remote}. Hint: -o X.parquet."
            )
        check_parent_folder(Path(output))
        check_kind(Path(output))


@contextmanager
def logged(run: Run, output: str | None, console: Console) -> Iterator[dict[str, object]]:
    """Log the start and the end of a command; the block adds what it has done."""
    started = time.monotonic()
    command = click.get_current_context().info_name
    console.log("start", command=command, sources=list(run.sources), output=output)
    done: dict[str, object] = {}
    yield done
    console.log("end", **done, seconds=time.monotonic() - started)


class Runner:
    """Runs batch jobs over the sources of a command."""

    def __init__(self, run: Run, job: JobOptions, progress: JobProgress) -> None:
        self._run, self._job, self._progress = run, job, progress
        self._engine = job.make_engine()

    def transform(
        self,
        stages: Sequence[Stage],
        sink: Path,
        *,
        by: Sequence[str] = (),
        is_intermediate: bool = False,
    ) -> BatchResult:
        """Run a job; an intermediate result may always be replaced."""
        result = transform(
            list(self._run.sources),
            sink,
            stages=stages,
            engine=self._engine,
            by=tuple(by),
            overwrite=self._job.replace or is_intermediate,
            restart=self._job.restart,
            rows_per_part=self._job.rows_per_part,
            progress=self._progress,
            **self._run.reading,
        )
        self._progress.close()
        return result


@contextmanager
def running(run: Run, job: JobOptions, console: Console) -> Iterator[Runner]:
    """Show the progress of the jobs in the block, and end at once on SIGINT and SIGTERM."""
    progress = JobProgress(console)
    console.clear_progress = progress.close

    def leave() -> None:
        console.stopped("Stopped. Rerun the same command to resume.")

    try:
        with stopping(leave):
            yield Runner(run, job, progress)
    finally:
        progress.close()
        console.clear_progress = None


def run_job(
    run: Run,
    job: JobOptions,
    stages: Sequence[Stage],
    output: str,
    console: Console,
    *,
    by: Sequence[str] = (),
) -> None:
    """Run one job and print what it has written."""
    with logged(run, output, console) as done, running(run, job, console) as runner:
        result = runner.transform(stages, Path(output), by=by)
        done.update(log_fields(result))
        console.result(summarize(result, output, console))


def log_fields(result: BatchResult) -> dict[str, object]:
    """Return the fields of the last line of the log."""
    return {
        "table": result.table,
        "rows": result.n_rows,
        "bytes": result.n_bytes,
        "parts": result.n_parts,
        "parts_resumed": result.n_parts_resumed,
    }


def summarize(result: BatchResult, output: str, console: Console) -> dict[str, object]:
    """Print what a job has written, and return it for JSON."""
    files = [result.sink] if result.sink.is_file() else sorted(result.sink.glob("*.parquet"))
    table = pl.scan_parquet(files, glob=False)
    columns = table.collect_schema().names()
    size: dict[str, object] = {"n_rows": result.n_rows}
    words = counted([result.n_rows], "row")
    if "problem_id" in columns:
        n_problems = pl.col("problem_id").n_unique()
        n = int(table.select(n_problems).collect(engine="streaming").item())
        size["n_problems"] = n
        words += f" for {counted([n], 'problem')}"
    if result.sink.is_dir():
        words += f" in {counted([result.n_parts], 'part')}"
    if result.n_parts_resumed == result.n_parts:
        words += "; it existed already"
    elif result.n_parts_resumed:
        words += f"; {counted([result.n_parts_resumed], 'part')} existed already"
    console.say(f"Wrote {output}: {words}; columns: {', '.join(columns)}")
    return {
        "output": output,
        **size,
        "columns": columns,
        "table": result.table,
        "n_bytes": result.n_bytes,
        "n_parts": result.n_parts,
        "n_parts_resumed": result.n_parts_resumed,
    }
