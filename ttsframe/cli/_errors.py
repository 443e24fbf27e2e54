"""Whatever goes wrong ends in one message and a status, never in a traceback."""

from __future__ import annotations

import errno
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
            console.remark("Interrupted.")
            status = INTERRUPTED
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            console.remark(f"Error: {_of_system(error)}")
            status = BAD_INPUT
        except (TtsframeError, pl.exceptions.PolarsError, MemoryError, UnicodeError) as error:
            console.remark(f"Error: {_message(error)}")
            status = BAD_INPUT
        return ctx.exit(status)


def _message(error: Exception) -> str:
    if isinstance(error, TtsframeError):
        return str(error)
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
