"""Whatever goes wrong ends in one message and a status, never in a traceback."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import Final

import click
import polars as pl

from ttsframe.cli._console import Console
from ttsframe.errors import TtsframeError

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells count."""


class Commands(click.Group):
    """A group whose commands turn errors into one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands as they were added, the main job first.

        Parameters
        ----------
        ctx
            Context of the group.

        Returns
        -------
        list[str]
            Their names.
        """
        del ctx
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was named.

        Parameters
        ----------
        ctx
            Context of the group.

        Returns
        -------
        object
            What the command returns.

        Raises
        ------
        OSError
            When whatever reads stdout has stopped reading; click then ends without a word.
        """
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
            console.error(_of_system(error))
            status = BAD_INPUT
        except (TtsframeError, pl.exceptions.PolarsError, MemoryError, UnicodeError) as error:
            console.error(_message(error))
            status = BAD_INPUT
        return ctx.exit(status)


def as_options(text: str) -> str:
    """Write what a message of the library says of its parameters as options of the command line.

    Parameters
    ----------
    text
        A message.

    Returns
    -------
    str
        The same, with `--on-error skip` for `on_error="skip"`, and the like.
    """
    for pattern, option in _OPTIONS:
        text = pattern.sub(option, text)
    return text


def _dashed(match: re.Match[str]) -> str:
    return f"--{match[1].replace('_', '-')} == "


def _dropped(match: re.Match[str]) -> str:
    return " ".join(f"--drop {name.strip(' ')[1:-1]}" for name in match[1].split(","))


_OPTIONS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"""on_error=["'](\w+)["']"""), r"--on-error \1"),
    (re.compile(r"rename=\{'([^']+)': '([^']+)'\}"), r"--rename \1=\2"),
    (re.compile(r"rename=\{'its column': "), "--rename COLUMN="),
    (re.compile(r"""\bby=["'](\w+)["']"""), r"--by \1"),
    (re.compile(r"\bby=\(\.\.\.\)"), "--by COLUMN"),
    (re.compile(r"\bformat=\.\.\."), "--format"),
    (re.compile(r"""\bweights=["'](\w+)["']"""), r"--weights \1"),
    (re.compile(r"references\['(.+?)'\] == "), r"--reference \1="),
    (re.compile(r"tts\.validate_trajectories\(\w+\)"), "ttsframe validate"),
    (re.compile(r"\bneutral=True"), "--neutral right"),
    (re.compile(r"\bneutral=False"), "--neutral wrong"),
    (re.compile(r"\bthreshold=(0\.5)"), r"--threshold \1"),
    (re.compile(r"steps\.drop\(([^)]*)\)"), _dropped),
    (re.compile(r"tts\.process\.step_paths\(steps\)|steps\.filter\('is_on_path'\)"), "--paths"),
    (re.compile(r"steps\.rename\(\{'([^']+)': '([^']+)'\}\)"), r"--rename \1=\2"),
    (re.compile(r"\bscores='\.\.\.'"), "--scores COLUMN"),
    (re.compile(r"\boverwrite=True"), "--replace"),
    (re.compile(r"\brestart=True"), "--restart"),
    (re.compile(r"\bthe same call\b"), "the same command"),
    (re.compile(r"\btts\.batch\.transform\b"), "ttsframe"),
    (re.compile(r"^([a-z]+(?:_[a-z]+)*) == "), _dashed),
)


def _message(error: Exception) -> str:
    if isinstance(error, TtsframeError):
        return as_options(str(error))
    if isinstance(error, MemoryError):
        return (
            "out of memory. Hint: read fewer files at a time, or drop columns with ttsframe score."
        )
    if isinstance(error, UnicodeError):
        return f"text that is not UTF-8 ({error}). Hint: iconv -t UTF-8 converts a file."
    # A table that fits its format and still cannot be used: Polars says where.
    first, _, _ = str(error).partition("\n")
    return f"{first or type(error).__name__}. Hint: ttsframe validate looks for what is wrong."


def _of_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}."
