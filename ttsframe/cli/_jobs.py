"""Commands that run as jobs: in parts, with bounded memory, stopped and taken up again."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import click
import polars as pl

from ttsframe._wording import counted
from ttsframe.batch import BatchResult, Score, Stage, transform
from ttsframe.batch.failures import found_damage
from ttsframe.cli._console import Console
from ttsframe.cli._job_options import Job
from ttsframe.cli._options import Choosing, Run
from ttsframe.cli._output import TABLE_SUFFIXES, check_folder, check_output
from ttsframe.cli._progress import Follower, following
from ttsframe.cli._stopping import stopping
from ttsframe.defaults import Budgets, Choice, PickOptions, choose_picks
from ttsframe.errors import SourceError
from ttsframe.scoring import plan_additions

OUTPUT_HELP: Final = (
    "X.parquet or a folder of Parquet parts, written as a job that goes on where it was stopped; or "
    f"a file that ends in {', '.join(suffix for suffix in TABLE_SUFFIXES if suffix != '.parquet')}."
)


class Work:
    """A job that is going on.

    Parameters
    ----------
    run
        What to read.
    job
        How to run it.
    folder
        Where results that are only shown are written; removed at the end.
    follower
        Where to report.
    console
        Where to log.
    """

    def __init__(
        self, run: Run, job: Job, folder: Path, follower: Follower, console: Console
    ) -> None:
        self._run, self._job = run, job
        self._engine = job.make_engine()
        self._follower, self._console = follower, console
        self._started = time.monotonic()
        self.folder = folder

    def choose(
        self, choosing: Choosing, *, budgets: Budgets, confidence_level: float = 0.95
    ) -> tuple[Choice, list[Stage]]:
        """Take a first look, and decide what was not said.

        Parameters
        ----------
        choosing
            What was said.
        budgets
            Numbers of attempts; "all" or None as `choose_picks` takes them.
        confidence_level
            Coverage of the intervals.

        Returns
        -------
        tuple[Choice, list[Stage]]
            What to pick, and the stage that makes what the run lacks for it, if it lacks something.
        """
        attempts = self._run.scan()
        try:
            options = PickOptions(
                by=choosing.by,
                budgets=budgets,
                selectors=choosing.selectors,
                reductions=choosing.reductions,
                weights=choosing.weights,
                style=choosing.style,
                confidence_level=confidence_level,
            )
            choice = choose_picks(attempts, options)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise found_damage(self._run.survey().files) or error from error
        score = Score(style=choosing.style)
        made = plan_additions(
            attempts.collect_schema(),
            reduction=score.reduction,
            style=score.style,
            policy=None,
            overwrite=(),
        )
        needed = {"answer", "answer_key", "is_correct"}
        if choice.options.reductions is None:
            needed.add("score")
        return choice, [score] if any(one.name in needed for one in made) else []

    def check_alone(self, target: Path) -> None:
        """Refuse an output that is there, or is no file, before what no job writes as a whole.

        Parameters
        ----------
        target
            File to write.

        Raises
        ------
        SourceError
            When it is there and may not be replaced, or is a folder.
        """
        if target.suffix.lower() != ".parquet":
            raise SourceError(
                f"{target}: is a folder, must be a file. Hint: curves of runs that differ in their "
                f"numbers of attempts, or in being graded, are one file, such as {target}.parquet."
            )
        if target.exists() and not self._job.replace:
            raise SourceError(
                f"{target}: is there already. Hint: --replace replaces it once the new one is whole."
            )

    def transform(
        self,
        stages: Sequence[Stage],
        sink: Path,
        *,
        by: Sequence[str] = (),
        is_passing: bool = False,
    ) -> BatchResult:
        """Run it; what was shown of its progress is cleared then.

        Parameters
        ----------
        stages
            What to do.
        sink
            File or folder to write.
        by
            Columns that tell runs apart.
        is_passing
            Whether it serves this command only, and may always be replaced.

        Returns
        -------
        BatchResult
            What was made.
        """
        result = transform(
            list(self._run.sources),
            sink,
            stages=stages,
            engine=self._engine,
            by=tuple(by),
            format=cast("Any", self._run.format),
            rename=self._run.rename,
            gold=self._run.gold,
            on_error=self._run.on_error,
            overwrite=self._job.replace or is_passing,
            restart=self._job.restart,
            rows_per_part=self._job.rows_per_part,
            progress=self._follower,
        )
        self._follower.close()
        self._console.log(
            "end",
            table=result.table,
            rows=result.n_rows,
            bytes=result.n_bytes,
            parts=result.n_parts,
            parts_resumed=result.n_parts_resumed,
            seconds=time.monotonic() - self._started,
        )
        return result


@contextmanager
def working(run: Run, job: Job, output: str | None, console: Console) -> Iterator[Work]:
    """Run a job: show how far it is, end it when it is told to stop, and clean up.

    Parameters
    ----------
    run
        What to read.
    job
        How to run it.
    output
        What is to be written; None: nothing.
    console
        Where to talk.

    Yields
    ------
    Work
        To be used in the block.
    """
    folder = Path(tempfile.mkdtemp(prefix="ttsframe-"))
    is_kept = output is not None and is_job(output)

    def leave() -> None:
        console.stopped(
            "Stopped; the same command goes on where it was." if is_kept else "Stopped."
        )
        shutil.rmtree(folder, ignore_errors=True)

    command = click.get_current_context().info_name
    try:
        with stopping(leave), following(console) as follower:
            console.log("start", command=command, sources=list(run.sources), output=output)
            yield Work(run, job, folder, follower, console)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_job(output: str) -> bool:
    """Tell whether an output is written as a job.

    Parameters
    ----------
    output
        As it was typed.

    Returns
    -------
    bool
        True for Parquet and for folders: what is one, ends in a slash or has no suffix.
    """
    path = Path(output)
    is_folder = output.endswith(("/", os.sep)) or path.is_dir()
    return is_folder or path.suffix.lower() in {"", ".parquet"}


def check_target(output: str | None, sources: Sequence[str]) -> None:
    """Refuse an output that could not be written, before any work is done.

    Parameters
    ----------
    output
        As it was typed; None is nothing to write.
    sources
        What is read.

    Raises
    ------
    SourceError
        When it is a folder where its name says that it is a file, or cannot be written.
    """
    if output is None:
        return
    path = Path(output)
    if not is_job(output):
        check_output(path, TABLE_SUFFIXES, sources)
        return
    check_folder(path)
    if path.is_dir() if path.suffix.lower() == ".parquet" else path.is_file():
        kind = "folder" if path.is_dir() else "file"
        raise SourceError(
            f"{path}: is a {kind}. Hint: a name that ends in '.parquet' makes one file, a folder holds "
            "parts."
        )


def tell(result: BatchResult, output: str, console: Console) -> dict[str, object]:
    """Say what a job has written.

    Parameters
    ----------
    result
        What it has made.
    output
        As it was typed.
    console
        Where to say it.

    Returns
    -------
    dict[str, object]
        The same as values for JSON.
    """
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
        words += "; it was there already"
    elif result.n_parts_resumed:
        words += f"; {result.n_parts_resumed:,} parts were there already"
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
