"""Checks of parameters: one vocabulary, one form of message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ttsframe._settings import found
from ttsframe._typing import ChoiceT, ColumnNames
from ttsframe.errors import ParameterError, ParameterTypeError


def check_choice(value: str, parameter: str, choices: Iterable[str]) -> None:
    """Raise unless ``value`` is one of ``choices``.

    Parameters
    ----------
    value
        What was given.
    parameter
        Its parameter's name.
    choices
        What may be given, such as the keys of a registry.

    Raises
    ------
    ParameterError
        When it is none of them.
    """
    known = list(choices)
    if value not in known:
        listed = ", ".join(repr(choice) for choice in known)
        raise ParameterError(f"{found(parameter, repr(value))}, must be one of {listed}.")


def check_choices(
    values: ChoiceT | Sequence[ChoiceT], parameter: str, choices: Iterable[ChoiceT]
) -> tuple[ChoiceT, ...]:
    """Return the choices as a tuple without repetition, in the order given.

    Parameters
    ----------
    values
        One choice or several.
    parameter
        Their parameter's name.
    choices
        What may be given.

    Returns
    -------
    tuple[ChoiceT, ...]
        The choices.

    Raises
    ------
    ParameterError
        When there is none, or one of them is not a choice.
    """
    listed: tuple[ChoiceT, ...] = (values,) if isinstance(values, str) else tuple(values)
    known = list(choices)
    if not listed:
        raise ParameterError(f"{parameter} is empty, must name at least one of {known}.")
    for value in listed:
        check_choice(value, parameter, known)
    return tuple(dict.fromkeys(listed))


def check_positive(value: int, parameter: str) -> int:
    """Return a whole number that is at least 1.

    Parameters
    ----------
    value
        What was given.
    parameter
        Its parameter's name.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ParameterTypeError
        When it is not an int (a bool is not an int here).
    ParameterError
        When it is below 1.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterTypeError(f"{parameter} is a {type(value).__name__}, must be an int.")
    if value < 1:
        raise ParameterError(f"{found(parameter, value)}, must be at least 1.")
    return value


def check_draws(k: int | Sequence[int], parameter: str = "k") -> tuple[int, ...]:
    """Return the numbers of attempts drawn, each once, in the order given.

    Parameters
    ----------
    k
        Number of attempts drawn, or several.
    parameter
        Its parameter's name.

    Returns
    -------
    tuple[int, ...]
        The numbers.

    Raises
    ------
    ParameterTypeError
        When one of them is not an int.
    ParameterError
        When the sequence is empty or a number is below 1.
    """
    listed = tuple(k) if isinstance(k, Sequence) else (k,)
    if not listed:
        raise ParameterError(f"{parameter} is empty, must hold at least one number.")
    return tuple(dict.fromkeys(check_positive(draw, parameter) for draw in listed))


def check_budgets(budgets: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return budgets sorted and without repetition, or None for all attempts.

    Parameters
    ----------
    budgets
        Number of attempts, several of them, or None.

    Returns
    -------
    tuple[int, ...] or None
        Ascending budgets.

    Raises
    ------
    ParameterTypeError
        When a budget is not an int.
    ParameterError
        When the sequence is empty or a budget is below 1.
    """
    if budgets is None:
        return None
    listed = tuple(budgets) if isinstance(budgets, Iterable) else (budgets,)
    if not listed:
        raise ParameterError("budgets is empty, must hold at least one number of attempts.")
    return tuple(sorted({check_positive(budget, "budgets") for budget in listed}))


def check_fraction(value: float, parameter: str) -> float:
    """Return a number strictly between 0 and 1.

    Parameters
    ----------
    value
        What was given.
    parameter
        Its parameter's name.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ParameterError
        When it is not strictly between 0 and 1.
    """
    if not 0.0 < value < 1.0:
        raise ParameterError(f"{found(parameter, value)}, must be between 0 and 1, both excluded.")
    return float(value)


def check_between(value: float, parameter: str, least: float, most: float) -> float:
    """Return a number that lies in a closed range.

    Parameters
    ----------
    value
        What was given.
    parameter
        Its parameter's name.
    least
        Smallest number allowed.
    most
        Largest number allowed.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ParameterError
        When it lies outside, or is NaN.
    """
    if not least <= value <= most:
        raise ParameterError(f"{found(parameter, value)}, must be from {least:g} to {most:g}.")
    return float(value)


def check_seed(value: int, parameter: str = "seed") -> int:
    """Return the seed of random numbers.

    Parameters
    ----------
    value
        What was given.
    parameter
        Its parameter's name.

    Returns
    -------
    int
        The seed.

    Raises
    ------
    ParameterTypeError
        When it is not an int (a bool is not an int here).
    ParameterError
        When it does not fit into 64 bits without a sign.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterTypeError(f"{parameter} is a {type(value).__name__}, must be an int.")
    if not 0 <= value < 2**64:
        raise ParameterError(f"{found(parameter, value)}, must be from 0 to 2**64 - 1.")
    return value


def check_names(
    names: ColumnNames, parameter: str, *, taken: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return column names as a tuple.

    Parameters
    ----------
    names
        One name or several.
    parameter
        Their parameter's name.
    taken
        Names that the result has for columns of its own.

    Returns
    -------
    tuple[str, ...]
        The names, in the order given.

    Raises
    ------
    ParameterTypeError
        When one of them is not a string.
    ParameterError
        When a name comes twice, or is taken.
    """
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise ParameterTypeError(
                f"{parameter} holds a {type(name).__name__}, must hold column names."
            )
    if len(set(listed)) != len(listed):
        raise ParameterError(f"{found(parameter, list(listed))} names a column twice.")
    if both := [name for name in listed if name in set(taken)]:
        raise ParameterError(
            f"{parameter} names {both}, which the result has as columns of its own. Hint: rename "
            "yours with frame.rename({...})."
        )
    return listed


def check_frame(frame: object, parameter: str) -> None:
    """Raise unless the argument is a Polars frame.

    Parameters
    ----------
    frame
        What was given.
    parameter
        Its parameter's name.

    Raises
    ------
    ParameterTypeError
        When it is neither a DataFrame nor a LazyFrame.
    """
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        hint = " Hint: pl.from_pandas(...) or tts.read_trajectories(...) makes one."
        raise ParameterTypeError(
            f"{parameter} is a {type(frame).__name__}, must be a polars DataFrame or LazyFrame.{hint}"
        )


def check_mapping(value: object, parameter: str) -> dict[str, str]:
    """Return a mapping of names as a dict; None is an empty one.

    Parameters
    ----------
    value
        What was given.
    parameter
        Its parameter's name.

    Returns
    -------
    dict[str, str]
        The mapping.

    Raises
    ------
    ParameterTypeError
        When it is not a mapping of strings to strings.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(item, str) for pair in value.items() for item in pair
    ):
        raise ParameterTypeError(f"{parameter} must be a mapping of column names to column names.")
    return dict(value)
