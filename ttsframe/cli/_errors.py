"""End every failure with one message and an exit status, never with a traceback."""

from __future__ import annotations

import errno
import os
import re
import shlex
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click
import polars as pl
from click.shell_completion import CompletionItem

from ttsframe._settings import Setting, settings_in
from ttsframe.cli._console import Console
from ttsframe.errors import TtsframeError

BAD_INPUT: Final = 2
FAULT: Final = 70
"""EX_SOFTWARE: what ttsframe itself did wrong."""
_DEBUG: Final = "TTSFRAME_DEBUG"
TYPED: Final = "ttsframe.typed"
"""Where the context of a command keeps the arguments."""
SOURCES: Final = "ttsframe.sources"
"""Where it keeps a function that lists the files of its sources."""
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells count."""

_OPTIONS: Final[Mapping[str, str]] = {
    "overwrite": "--replace",
    "paths": "--paths",
    "references": "--reference",
    "rerun": "rerun the same command",
    "restart": "--restart",
    "validate": "ttsframe validate",
}
"""What the command line calls a parameter or action, where that is not its name with dashes."""
_FLAGS: Final = frozenset({"overwrite", "paths", "rerun", "restart", "validate"})
_OPEN: Final[Mapping[str, str]] = {
    "baseline": "VALUE",
    "by": "COLUMN",
    "format": "NAME",
    "gold": "FILE",
    "rename": "YOURS=OURS",
    "scores": "COLUMN",
}
"""Values that a message leaves open."""


class Commands(click.Group):
    """A group whose commands load when they run, and turn exceptions into one message."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the commands in the order in which they were added."""
        return list(self.commands)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Load a command from the module of its name."""
        if name not in self.commands:
            return None
        command: click.Command = getattr(import_module(f"ttsframe.cli.{name}"), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """List the commands that begin so, without loading them, then the options."""
        commands = [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by their summaries, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([
                (name, command.get_short_help_str()) for name, command in self.commands.items()
            ])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was typed, for what is written to name it."""
        ctx.meta[TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command and report its errors; a closed pipe is left to click."""
        console = ctx.obj = Console()
        try:
            with console.own_warnings():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            console.stopped("Interrupted.")
            status = INTERRUPTED
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            where = f"{error.filename}: " if error.filename else ""
            console.error(f"{where}{error.strerror or error}.")
            status = BAD_INPUT
        except (
            TtsframeError,
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
            MemoryError,
            UnicodeError,
        ) as error:
            console.error(_message(error))
            status = BAD_INPUT
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get(_DEBUG):
                raise
            console.error(_fault(error))
            status = FAULT
        return ctx.exit(status)


def _fault(error: Exception) -> str:
    """Say where ttsframe failed, for a report of the fault."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "ttsframe" in Path(frame.filename).parts] or frames
    reason = str(error).partition("\n")[0]
    return (
        f"a fault of ttsframe, not of the input: {type(error).__name__} in {Path(own[-1].filename).name}, "
        f"line {own[-1].lineno}: {reason}. Hint: please report it with the command; {_DEBUG}=1 shows where "
        "it comes from."
    )


def typed_command() -> str:
    """Return the command that runs, quoted for a shell."""
    return shlex.join(["ttsframe", *click.get_current_context().meta.get(TYPED, ())])


def in_options(text: str, settings: Sequence[Setting] | None = None) -> str:
    """Name options of the command line where a text of the library names parameters."""
    named = {each.text: each for each in (settings_in(text) if settings is None else settings)}
    if not named:
        return text
    # In one pass, longest spellings first: an option never becomes part of another.
    spellings = "|".join(re.escape(spelling) for spelling in named)
    return re.sub(spellings, lambda match: _option(named[match[0]]), text)


def _option(setting: Setting) -> str:
    name, value = setting.name, setting.value
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if name in _FLAGS:
        return option
    if name == "references":
        return f"{option} {value}="
    if name == "neutral" and isinstance(value, bool):
        return f"{option} {'right' if value else 'wrong'}"
    if isinstance(value, Mapping):
        return " ".join(f"{option} {left}={right}" for left, right in value.items())
    if isinstance(value, list | tuple):
        return " ".join(f"{option} {item}" for item in value)
    return f"{option} {_OPEN.get(name, '...') if value is None else value}"


def _message(error: BaseException) -> str:
    if isinstance(error, TtsframeError):
        return in_options(str(error), error.settings)
    if isinstance(error, MemoryError):
        return (
            "out of memory. Hint: read fewer files at a time, or drop columns with ttsframe score."
        )
    if isinstance(error, UnicodeError):
        return f"text that is not UTF-8 ({error}). Hint: iconv -t UTF-8 converts a file."
    first, _, _ = str(error).partition("\n")
    files = click.get_current_context().meta.get(SOURCES)
    from ttsframe.readers.engine import DAMAGED, find_damage, first_line  # slow to import

    damaged = None if files is None else find_damage(files())
    if damaged is not None:
        return f"{damaged}: cannot be read ({first_line(error)}). Hint: {DAMAGED}"
    return f"{first or type(error).__name__}. Hint: ttsframe validate checks the source."
