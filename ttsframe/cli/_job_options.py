"""Options of commands that run as jobs, apart from the others in their help."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import click

from ttsframe.batch import ENGINES, Engine, RayEngine
from ttsframe.cli._console import Console
from ttsframe.cli._options import Command, with_options

_ROWS_PER_PART: Final = 1_000_000


class JobCommand(click.Command):
    """A command whose help keeps the options of jobs apart."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of jobs below the others.

        Parameters
        ----------
        ctx
            Context of the command.
        formatter
            Where to write.
        """
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Large runs": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                section = "Large runs" if param.name in _JOB_OPTIONS else "Options"
                sections[section].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


@dataclass(frozen=True, kw_only=True)
class Job:
    """How a job runs."""

    engine: str
    address: str | None
    workers: int | None
    rows_per_part: int
    replace: bool
    restart: bool

    def check_unused(self) -> None:
        """Raise where an option says something of a job, and there is none.

        Raises
        ------
        click.UsageError
            When there is such an option.
        """
        given = [
            f"--{name.replace('_', '-')}"
            for name in ("engine", "address", "workers", "rows_per_part", "restart")
            if click.get_current_context().get_parameter_source(name)
            is click.core.ParameterSource.COMMANDLINE
        ]
        if given:
            raise click.UsageError(
                f"{' and '.join(given)}: only for Parquet. Hint: -o X.parquet, or -o folder/."
            )

    def make_engine(self) -> Engine:
        """Make what runs the tasks.

        Returns
        -------
        Engine
            The engine.

        Raises
        ------
        click.UsageError
            When there is an option of another engine.
        """
        if self.engine == "ray":
            return RayEngine(self.address, n_workers=self.workers)
        for name, value in ("--address", self.address), ("--workers", self.workers):
            if value is not None:
                raise click.UsageError(f"{name}: only with --engine ray.")
        return ENGINES[self.engine]()


def runs_job(command: Command) -> Command:
    """Give a command the options of a job; it takes a `Job` as `job`."""

    @functools.wraps(command)
    def with_job(
        *,
        engine: str,
        address: str | None,
        workers: int | None,
        rows_per_part: int,
        replace: bool,
        restart: bool,
        log_json: bool,
        **others: object,
    ) -> None:
        click.get_current_context().ensure_object(Console).is_log_json = log_json
        job = Job(
            engine=engine,
            address=address,
            workers=workers,
            rows_per_part=rows_per_part,
            replace=replace,
            restart=restart,
        )
        command(job=job, **others)

    return with_options(with_job, _JOB_OPTIONS.values())


_JOB_OPTIONS: Final[dict[str, Callable[[Command], Command]]] = {
    "engine": click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="polars",
        show_default=True,
        help="What runs the parts: this machine, or a Ray cluster.",
    ),
    "address": click.option(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster to join. Without it: RAY_ADDRESS, else one on this machine.",
    ),
    "workers": click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Most parts at a time on Ray.",
    ),
    "rows_per_part": click.option(
        "--rows-per-part",
        type=click.IntRange(min=1),
        default=_ROWS_PER_PART,
        show_default=True,
        metavar="N",
        help="About how many attempts are in memory at once.",
    ),
    "replace": click.option(
        "--replace",
        is_flag=True,
        help="Replace what is there under the name of the output, once the new is whole.",
    ),
    "restart": click.option(
        "--restart",
        is_flag=True,
        help="Throw away what a stopped job has left, rather than go on with it.",
    ),
    "log_json": click.option(
        "--log-json",
        is_flag=True,
        help="Write start, progress, warnings, end and errors to stderr, a JSON object per line.",
    ),
}
