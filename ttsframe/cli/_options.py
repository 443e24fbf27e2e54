"""Options that several commands share, built from the library's registries."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

import click
import polars as pl
from click.shell_completion import CompletionItem

from ttsframe._own import load
from ttsframe._settings import hide_secrets
from ttsframe._typing import AnswerStyle
from ttsframe.cli._console import Console
from ttsframe.cli._errors import SOURCES
from ttsframe.cli._names import Name
from ttsframe.readers.engine import DAMAGED, OnError, expand, naming
from ttsframe.readers.trajectories import READERS, ScannedRun, plan_reading

Command: TypeAlias = Callable[..., None]
Decorator: TypeAlias = Callable[[Command], Command]
Callback: TypeAlias = Callable[[click.Context, click.Parameter, Any], Any]


def examples(*lines: str) -> str:
    """Write examples for the end of a help text, which click does not rewrap."""
    return "\n".join([
        "\b",
        "Examples:" if len(lines) > 1 else "Example:",
        *[f"  {line}" for line in lines],
    ])


def names_of(choices: Iterable[str], *, takes_functions: bool = False) -> Callback:
    """Make the callback that reads names separated by commas, in the order typed, each once."""
    read_one = name_of(choices, takes_functions=takes_functions)

    def read(
        ctx: click.Context, param: click.Parameter, value: str | None
    ) -> tuple[Any, ...] | None:
        if value is None:
            return None
        return tuple(dict.fromkeys(read_one(ctx, param, name) for name in value.split(",")))

    return read


def name_of(choices: Iterable[str], *, takes_functions: bool = False) -> Callback:
    """Make the callback that reads one name; one with a colon is that of a function to import."""
    choice = Name(list(choices))

    def read(ctx: click.Context, param: click.Parameter, value: str) -> Any:  # noqa: ANN401 - a function of the user
        name = value.strip()
        if takes_functions and ":" in name:
            return load(name)
        return choice.convert(name, param, ctx)

    return read


def _read_function(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Any:  # noqa: ANN401 - a function of the user
    """Import the function that an option names."""
    return None if value is None else load(value)


FUNCTION_HELP: Final = "or package.module:name of a function of yours"
grade_option = click.option(
    "--grade",
    callback=_read_function,
    metavar="MODULE:NAME",
    help="Grade attempts by a function of yours, which returns a Boolean polars expression.",
)


def _read_pairs(
    _ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Split each value at its last equals sign."""
    pairs: dict[str, str] = {}
    for value in values:
        left, _, right = (part.strip() for part in value.rpartition("="))
        if not left or not right:
            raise click.BadParameter(f"{value!r} must be {param.metavar}.")
        if left in pairs:
            raise click.BadParameter(f"{left!r} is given twice.")
        pairs[left] = right
    return pairs


def _read_renames(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Read pairs of names, which must differ on both sides."""
    pairs = _read_pairs(ctx, param, values)
    for new in pairs.values():
        if len(old := [name for name, target in pairs.items() if target == new]) > 1:
            listed = " and ".join(map(repr, old))
            raise click.BadParameter(f"{listed} cannot both be read as {new!r}.")
    return pairs


def read_columns(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Read names of columns, which are not empty."""
    if not all(value.strip() for value in values):
        raise click.BadParameter("'' is no name of a column.")
    return values


class _Level(click.FloatRange):
    """A number between 0 and 1, which is not a percentage."""

    def convert(
        self,
        value: Any,  # noqa: ANN401  (as click has it)
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Read the number; one above 1 may be a percentage."""
        with contextlib.suppress(ValueError):
            if 1.0 < (percent := float(value)) < 100.0:
                hint = f"{percent:g} % is {percent / 100:g}."
                self.fail(f"{percent} is not in the range 0.0<x<1.0. {hint}", param, ctx)
        return float(super().convert(value, param, ctx))


def _read_fractions(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    """Read pairs of a name and a number."""
    numbers = {}
    for name, text in _read_pairs(ctx, param, values).items():
        try:
            numbers[name] = float(text)
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is not a number; expected for example {name}=0.3."
            ) from None
    return numbers


class _Source(click.ParamType[str]):
    """A file, folder or glob, which the shell completes as it completes files."""

    name = "source"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Leave the completion to the shell."""
        return click.Path().shell_complete(ctx, param, incomplete)


_SOURCE: Final = _Source()
OUTPUT: Final = click.Path(path_type=Path)


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The sources to read, and how."""

    sources: tuple[str, ...]
    format: str
    rename: Mapping[str, str]
    on_error: OnError

    def __post_init__(self) -> None:
        """Keep the files for errors that do not name them."""
        click.get_current_context().meta[SOURCES] = self.files

    def files(self) -> list[str]:
        """Return the names of the files."""
        return [each.name for each in expand(list(self.sources)) if each.kind == "file"]

    @property
    def label(self) -> str:
        """The sources in a few words."""
        if len(self.sources) > 1:
            return f"{len(self.sources)} sources"
        return hide_secrets(self.sources[0])


@dataclass(frozen=True, kw_only=True)
class Run(Sources):
    """The sources of a run."""

    gold: str | None

    @property
    def reading(self) -> dict[str, Any]:
        """The reading options, as keywords of the library."""
        return {
            "format": self.format,
            "rename": self.rename,
            "gold": self.gold,
            "on_error": self.on_error,
        }

    def scan(self, by: Sequence[str] = ()) -> pl.LazyFrame:
        """Scan the attempts; `source_file` is there for several files, and where runs are told apart by it."""
        return self.plan(by).frame

    def plan(self, by: Sequence[str] = ()) -> ScannedRun:
        """Scan the attempts, with what is known of their format."""
        read = plan_reading(list(self.sources), **self.reading, names_files="source_file" in by)
        for message in read.warnings:
            warnings.warn(message, stacklevel=2)
        return read

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the sources in errors of Polars and of the operating system."""
        with naming([self.label], DAMAGED, self.files):
            yield


def with_options(command: Command, options: Iterable[Decorator]) -> Command:
    """Add options to a command, in their order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def gathers(kind: type[Any], name: str, options: Iterable[Decorator]) -> Decorator:
    """Add options to a command, which takes those that are fields of `kind` as one object, `name`."""
    names = [field.name for field in fields(kind)]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_object(**values: object) -> None:
            given = {field: values.pop(field) for field in names if field in values}
            command(**values, **{name: kind(**given)})

        return with_options(with_object, options)

    return decorate


def source_options(formats: Iterable[str]) -> list[Decorator]:
    """Make the options of `Sources`."""
    return [
        click.argument("sources", type=_SOURCE, nargs=-1, required=True, metavar="SOURCE..."),
        click.option(
            "--format",
            type=Name(["auto", *formats]),
            default="auto",
            show_default=True,
            help="Format of the files; auto recognizes it by their content.",
        ),
        click.option(
            "--rename",
            callback=_read_renames,
            multiple=True,
            metavar="YOURS=OURS",
            help="Read the column YOURS as OURS, for example response=completion. Repeatable.",
        ),
        click.option(
            "--on-error",
            type=Name(get_args(OnError)),
            default="raise",
            show_default=True,
            help="Rows that cannot be read: stop at the first, or skip and count them.",
        ),
    ]


reads_run = gathers(
    Run,
    "run",
    [
        *source_options(READERS),
        click.option(
            "--gold",
            type=click.Path(),
            metavar="FILE",
            help="File of gold answers, one row per problem (JSON, Parquet, Arrow, CSV).",
        ),
    ],
)


style_option = click.option(
    "--style",
    type=Name(get_args(AnswerStyle)),
    default="auto",
    show_default=True,
    help="How answers are marked in completions.",
)
question_option = click.option(
    "--cut-at-next-question/--keep-next-question",
    default=True,
    show_default=True,
    help="Stop reading where a completion goes on with a question of its own after its answer.",
)
by_option = click.option(
    "--by",
    callback=read_columns,
    multiple=True,
    metavar="COLUMN",
    help="Column that tells runs apart, for example source_file or model. Repeatable.",
)
cluster_option = click.option(
    "--cluster",
    metavar="COLUMN",
    help="Column that groups problems that belong together, for example by the text they ask about.",
)
references_option = click.option(
    "--reference",
    "references",
    callback=_read_fractions,
    multiple=True,
    metavar="NAME=ACCURACY",
    help="Accuracy to compare with, for example greedy=0.3. Repeatable.",
)
level_option = click.option(
    "--confidence-level",
    type=_Level(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)


def prints(command: Command) -> Command:
    """Add `--json` and `--quiet` to a command, which takes a `Console` as `console`."""

    @functools.wraps(command)
    def with_console(*, as_json: bool, quiet: bool, **others: object) -> None:
        console = click.get_current_context().ensure_object(Console)
        console.is_json, console.is_quiet = as_json, quiet
        command(console=console, **others)

    return with_options(
        with_console,
        [
            click.option(
                "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
            ),
            click.option("-q", "--quiet", is_flag=True, help="Print no progress and no table."),
        ],
    )
