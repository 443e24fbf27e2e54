"""The errors of ttsframe: one root class, a few subclasses, one message each.

A message says what is wrong, where, what was found and what was expected, and ends with a hint. Each
class takes one argument, the message, because Polars rebuilds an exception that is raised in a query
from its message alone. The parameters that the message names are fields of the error, so that the
command line can name its options instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from ttsframe import _settings

__all__ = [
    "ColumnsError",
    "CompletionError",
    "DataError",
    "EngineError",
    "FewProblemsWarning",
    "LostColumnsWarning",
    "MissingExtraError",
    "ParameterError",
    "ParameterTypeError",
    "SkippedRowsWarning",
    "SourceError",
    "SourceWarning",
    "TtsframeError",
    "UnmatchedGoldWarning",
]

_POLARS_TRAILER = "\n\nThis error occurred "


class TtsframeError(Exception):
    """Root of every error that ttsframe raises on purpose.

    Parameters
    ----------
    *message
        What is wrong.

    Attributes
    ----------
    settings : tuple
        The parameters that the message names: `text` as the message spells it, `name`, and `value`
        (None where the message leaves it open).

    Examples
    --------
    >>> import ttsframe as tts
    >>> try:
    ...     tts.PassAtK(k=0)
    ... except tts.TtsframeError as error:
    ...     print(error)
    k == 0, must be at least 1.
    """

    settings: tuple[_settings.Setting, ...]

    def __init__(self, *message: object) -> None:
        super().__init__(*message)
        self.settings = _settings.settings_in(str(self))

    def __str__(self) -> str:
        """Return the message without secrets of addresses, and without what Polars appends in a query."""
        return _settings.hide_secrets(super().__str__().split(_POLARS_TRAILER, maxsplit=1)[0])


class ParameterError(TtsframeError, ValueError):
    """A parameter has the right type but an impossible value."""


class ParameterTypeError(TtsframeError, TypeError):
    """A parameter has the wrong type."""


class ColumnsError(TtsframeError, ValueError):
    """A frame lacks a column, or a column has a dtype that cannot be used."""

    @classmethod
    def missing(
        cls, missing: Sequence[str], found: Sequence[str], *, where: str, hint: str
    ) -> ColumnsError:
        """Build the error for missing columns.

        Parameters
        ----------
        missing
            Names of the missing columns.
        found
            Names of the columns that exist.
        where
            The table that was expected, such as ``"trajectories"``.
        hint
            One sentence on how to fix it.

        Returns
        -------
        ColumnsError
            The error, to be raised.
        """
        count = f"{len(missing)} missing column{'s' if len(missing) != 1 else ''}"
        names = ", ".join(repr(name) for name in missing)
        return cls(
            f"{count} for {where}: {names}; found: {list(found)}. Hint: {_near(missing, found)}{hint}"
        )


def _near(missing: Sequence[str], found: Sequence[str]) -> str:
    """Ask for the columns like those that are missing, before another hint."""
    import difflib  # only needed where something went wrong

    near = {name: difflib.get_close_matches(name, found, 1, 0.75) for name in missing}
    asked = [f"did you mean {names[0]!r} for {name!r}?" for name, names in near.items() if names]
    return f"{' '.join(asked)} Else, " if asked else ""


class DataError(TtsframeError, ValueError):
    """The values of a frame break a rule without which a number would be wrong."""


class SourceError(TtsframeError, ValueError):
    """A file or folder cannot be read, or its content is not what its format promises."""


class EngineError(TtsframeError, RuntimeError):
    """The engine of a job cannot be reached, was lost, or differs between machines."""


class CompletionError(TtsframeError, RuntimeError):
    """A completer, or the server behind it, did not return the requested completions."""


class MissingExtraError(TtsframeError, ImportError):
    """A feature needs a package that is not installed, or that cannot be imported."""


class _Told(UserWarning):
    def __str__(self) -> str:
        return _settings.hide_secrets(super().__str__())


class SkippedRowsWarning(_Told):
    """Rows were left out because of `on_error="skip"`; the message counts them.

    Parameters
    ----------
    message
        Number of rows, and the first of them with file, line and reason.
    n_skipped
        Number of rows.
    """

    def __init__(self, message: str, n_skipped: int = 0) -> None:
        super().__init__(message)
        self.n_skipped = n_skipped


class SourceWarning(_Told):
    """A source was read, but what it holds may not be what it seems: a log without samples, for example."""


class LostColumnsWarning(_Told):
    """A format does not hold all columns of the table that was written in it; the message names them."""


class UnmatchedGoldWarning(_Told):
    """The file of gold answers lacks some problems, which cannot be graded."""


class FewProblemsWarning(UserWarning):
    """A curve averages fewer than half of its problems."""
