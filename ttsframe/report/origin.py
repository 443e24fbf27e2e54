"""Where a page comes from: sources, command, options, date and versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from ttsframe._own import name_of
from ttsframe._settings import hide_secrets
from ttsframe._wording import shorten
from ttsframe.answers import AnswerPolicy
from ttsframe.errors import ParameterError

_EPOCH: Final = "SOURCE_DATE_EPOCH"
_N_SOURCES_MAX: Final = 20
_SOURCE_MAX: Final = 200
_COMMAND_MAX: Final = 1_000
_VALUE_MAX: Final = 200


class Origin(NamedTuple):
    """What a page says about itself."""

    headline: str
    """The line below the title."""
    sources: list[str]
    n_more_sources: int
    command: str | None
    terms: list[tuple[str, str]]
    """Date, options and versions."""


def describe_origin(
    sources: Sequence[str],
    *,
    command: str | None,
    date: datetime | None,
    options: Mapping[str, object],
) -> Origin:
    """Describe where a page comes from; None is the current date."""
    made = _format_date(page_date() if date is None else date)
    package = f"ttsframe {version('ttsframe')}"
    names = [shorten(hide_secrets(source), _SOURCE_MAX) for source in sources[:_N_SOURCES_MAX]]
    n_more = len(sources) - len(names)
    few = names[0].rpartition("/")[2] or names[0] if len(sources) == 1 else ""
    few = f"{len(sources):,} sources" if len(sources) > 1 else few
    written = [f"{name}: {text}" for name, text in _write_options(options)]
    others = [f"{name} {version(name)}" for name in ("polars", "altair")]
    return Origin(
        headline=" · ".join(filter(None, [few, made, package])),
        sources=names,
        n_more_sources=n_more,
        command=None if command is None else shorten(hide_secrets(command), _COMMAND_MAX),
        terms=[
            *([("Options", " · ".join(written))] if written else []),
            ("Date", made),
            ("Versions", ", ".join([package, *others, f"Python {platform.python_version()}"])),
        ],
    )


def refuse_pdf(path: str | os.PathLike[str]) -> None:
    """Raise an error if a page is to be written as PDF."""
    target = Path(path)
    if target.suffix.lower() == ".pdf":
        page = target.with_suffix(".html").name
        raise ParameterError(
            f"{target}: a page is HTML, must end in .html. Hint: write {page}, open it in a browser and "
            "print it to PDF there: charts, panels and tables are laid out anew for paper."
        )


def page_date() -> datetime:
    """Return the date of a page: that of SOURCE_DATE_EPOCH, or else now."""
    text = os.environ.get(_EPOCH)
    if not text:
        return datetime.now(UTC)
    try:
        # Seconds since 1970, as tools that build the same files again agree on.
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise ParameterError(
            f"{_EPOCH} == {shorten(text, 40)!r} in the environment, must be a number of seconds since "
            "1970. Hint: unset it to write the current date."
        ) from None


def _format_date(date: datetime) -> str:
    """Write a date to the minute."""
    if date.tzinfo is None:
        return date.strftime("%Y-%m-%d %H:%M")
    return date.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _write_options(options: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Write options that are not left open."""
    for name, value in options.items():
        if isinstance(value, AnswerPolicy):
            changed = _changed_choices(value)
            if changed:
                yield name, ", ".join(changed)
        elif isinstance(value, Mapping):
            if value:
                yield name, shorten(", ".join(f"{k}={v}" for k, v in value.items()), _VALUE_MAX)
        elif isinstance(value, str) or not isinstance(value, Sequence):
            if value is not None:
                yield name, shorten(_write_value(value), _VALUE_MAX)
        elif value:
            yield name, shorten(", ".join(map(_write_value, value)), _VALUE_MAX)


def _write_value(value: object) -> str:
    """Write one value; a function by its name."""
    if isinstance(value, pl.Expr):
        return "an expression"
    return name_of(value) if callable(value) else str(value)


def _changed_choices(policy: AnswerPolicy) -> list[str]:
    """List the choices of a policy that are not the usual ones."""
    usual: Any = AnswerPolicy()
    return [
        f"{field.name}={getattr(policy, field.name)}"
        for field in fields(policy)
        if getattr(policy, field.name) != getattr(usual, field.name)
    ]
