"""Options that several commands share, built from the library's registries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import click
import polars as pl

from ttsframe._typing import AnswerStyle, StepReduction, Weights
from ttsframe.answers import AnswerPolicy
from ttsframe.answers.policy import POLICY_CHOICES
from ttsframe.cli._console import Console
from ttsframe.errors import SourceError
from ttsframe.readers.engine import OnError, first_line
from ttsframe.readers.trajectories import READERS, scan_trajectories
from ttsframe.steps import STEP_REDUCTIONS
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.selectors import SELECTORS

Command: TypeAlias = Callable[..., None]


def examples(*lines: str) -> str:
    """Write examples for the end of a help text, which click does not rewrap."""
    return "\n".join([
        "\b",
        "Examples:" if len(lines) > 1 else "Example:",
        *[f"  {line}" for line in lines],
    ])


Callback: TypeAlias = Callable[[click.Context, click.Parameter, Any], Any]


def names_of(choices: Iterable[str]) -> Callback:
    """Make the callback that reads names separated by commas, in the order typed, each once."""
    choice = click.Choice(list(choices))

    def read(
        ctx: click.Context, param: click.Parameter, value: str | None
    ) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = [name.strip() for name in value.split(",")]
        return tuple(dict.fromkeys(choice.convert(name, param, ctx) for name in names))

    return read


def _read_budgets(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> tuple[int, ...] | Literal["all"] | None:
    """Read numbers of attempts separated by commas, or "all"."""
    if value is None:
        return None
    if value.strip() == "all":
        return "all"
    parts = [part.strip() for part in value.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and 0 < int(part[:20]) < 2**32):
            raise click.BadParameter(
                f"{part!r} is not a number of attempts; expected whole numbers from 1, such as "
                f"1,2,4,8, or all."
            )
    return tuple(map(int, parts))


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


def _read_policy(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> AnswerPolicy | None:
    """Read options of a policy, each as OPTION=CHOICE, several separated by commas."""
    options: dict[str, Any] = {}
    for pair in (pair.strip() for value in values for pair in value.split(",")):
        name, equals, choice = (part.strip() for part in pair.partition("="))
        if name not in POLICY_CHOICES:
            known = [f"{option} ({', '.join(of)})" for option, of in POLICY_CHOICES.items()]
            raise click.BadParameter(
                f"{name!r} is no option of an answer policy; expected OPTION=CHOICE, of "
                f"{'; '.join(known)}."
            )
        if not equals or choice not in POLICY_CHOICES[name]:
            raise click.BadParameter(
                f"{choice!r} is no choice of {name}; expected one of {', '.join(POLICY_CHOICES[name])}."
            )
        if options.setdefault(name, choice) != choice:
            raise click.BadParameter(f"{name!r} is given twice, with different choices.")
    return AnswerPolicy(**options) if options else None


OUTPUT: Final = click.Path(path_type=Path)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The sources to read, and the reading options."""

    sources: tuple[str, ...]
    format: str
    rename: Mapping[str, str]
    gold: str | None
    on_error: OnError

    @property
    def label(self) -> str:
        """The sources in a few words."""
        return self.sources[0] if len(self.sources) == 1 else f"{len(self.sources)} sources"

    @property
    def reading(self) -> dict[str, Any]:
        """The reading options, as keywords of the library."""
        return {
            "format": self.format,
            "rename": self.rename,
            "gold": self.gold,
            "on_error": self.on_error,
        }

    def scan(self) -> pl.LazyFrame:
        """Scan the attempts."""
        return scan_trajectories(list(self.sources), **self.reading)

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the sources in errors of Polars and of the operating system."""
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SourceError(
                f"{self.label}: could not be read ({first_line(error)}). Hint: if a file is damaged, "
                "repair or restore it."
            ) from error


@dataclass(frozen=True, kw_only=True)
class Choosing:
    """The options that say how answers are chosen."""

    budgets: tuple[int, ...] | Literal["all"] | None
    selectors: tuple[SelectorName, ...] | None
    reductions: tuple[StepReduction, ...] | None
    weights: Weights
    style: AnswerStyle
    policy: AnswerPolicy | None
    by: tuple[str, ...]


def with_options(command: Command, options: Iterable[Callable[[Command], Command]]) -> Command:
    """Add options to a command, in their order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def reads_run(command: Command) -> Command:
    """Add the sources and reading options to a command, which takes a `Run` as `run`."""

    @functools.wraps(command)
    def with_run(
        *,
        sources: tuple[str, ...],
        format_: str,
        rename: Mapping[str, str],
        gold: str | None,
        on_error: OnError,
        **others: object,
    ) -> None:
        run = Run(sources=sources, format=format_, rename=rename, gold=gold, on_error=on_error)
        command(run=run, **others)

    return with_options(
        with_run,
        [
            *source_options(READERS),
            click.option(
                "--gold",
                type=click.Path(),
                metavar="FILE",
                help="File of reference answers, one row per problem (JSON, Parquet, Arrow, CSV).",
            ),
            on_error_option,
        ],
    )


def source_options(formats: Iterable[str]) -> list[Callable[[Command], Command]]:
    """Make the options that name the source files: `sources`, `format_` and `rename`."""
    return [
        click.argument("sources", nargs=-1, required=True, metavar="SOURCE..."),
        click.option(
            "--format",
            "format_",
            type=click.Choice(["auto", *formats]),
            default="auto",
            show_default=True,
            help="Format of the files; auto recognizes it by their content.",
        ),
        click.option(
            "--rename",
            callback=_read_pairs,
            multiple=True,
            metavar="YOURS=OURS",
            help="Read the column YOURS as OURS, for example response=completion. Repeatable.",
        ),
    ]


on_error_option = click.option(
    "--on-error",
    type=click.Choice(get_args(OnError)),
    default="raise",
    show_default=True,
    help="Rows that cannot be read: stop at the first, or skip and count them.",
)


def chooses(command: Command) -> Command:
    """Add the options that say how answers are chosen; the command takes them as `choosing`."""

    @functools.wraps(command)
    def with_choosing(
        *,
        budgets: tuple[int, ...] | Literal["all"] | None,
        selectors: tuple[SelectorName, ...] | None,
        reductions: tuple[StepReduction, ...] | None,
        weights: Weights,
        style: AnswerStyle,
        policy: AnswerPolicy | None,
        by: tuple[str, ...],
        **others: object,
    ) -> None:
        choosing = Choosing(
            budgets=budgets,
            selectors=selectors,
            reductions=reductions,
            weights=weights,
            style=style,
            policy=policy,
            by=by,
        )
        command(choosing=choosing, **others)

    return with_options(
        with_choosing,
        [
            click.option(
                "--budgets",
                callback=_read_budgets,
                metavar="N,...",
                help="Numbers of attempts, for example 1,2,4; or all, for all attempts at a problem.",
            ),
            click.option(
                "--selectors",
                callback=names_of(SELECTORS),
                metavar="NAME,...",
                help=f"How to choose an answer: {', '.join(SELECTORS)}.",
            ),
            click.option(
                "--reductions",
                callback=names_of(STEP_REDUCTIONS),
                metavar="NAME,...",
                help=f"How to reduce step scores to a score: {', '.join(STEP_REDUCTIONS)}. "
                "Default: the column score if the run has one, else the last step's score.",
            ),
            click.option(
                "--weights",
                type=click.Choice(get_args(Weights)),
                default="score",
                show_default=True,
                help="Weight of a vote in weighted_vote and top_fraction_vote; sigmoid and softmax are "
                "for logits.",
            ),
            style_option,
            policy_option,
            by_option,
        ],
    )


style_option = click.option(
    "--style",
    type=click.Choice(get_args(AnswerStyle)),
    default="auto",
    show_default=True,
    help="How answers are marked in completions.",
)
policy_option = click.option(
    "--answer-policy",
    "policy",
    callback=_read_policy,
    multiple=True,
    metavar="OPTION=CHOICE,...",
    help="Conventions under which answers are the same, for example percent=fraction. Options: "
    f"{', '.join(POLICY_CHOICES)}. Repeatable.",
)
by_option = click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Column that tells runs apart, for example source_file or model. Repeatable.",
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
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
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
