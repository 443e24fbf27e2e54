"""Checks of parameters, with one form of message: what was given and what it must be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl
from polars.datatypes import DataTypeClass

from ttsframe._forks import check_not_stuck
from ttsframe._settings import found, setting
from ttsframe._typing import ChoiceT, ColumnNames
from ttsframe.errors import ColumnsError, ParameterError, ParameterTypeError

_READ: Final = "tts.read_trajectories(frame)"
_OF_ATTEMPTS: Final = ("trajectories", "reference")
_TEXTS: Final = ("completion", "answer", "answer_key", "gold", "gold_key", "problem", "solution")
_FLAGS: Final = ("is_correct", "is_exchangeable")
_NUMBERS: Final = ("attempt", "score", "n_tokens")
_NAMES: Final = ("problem_id", "source_file")
_LISTS_OF_ATTEMPTS: Final = frozenset({
    "answers",
    "attempts",
    "candidates",
    "code",
    "completions",
    "generations",
    "model_answer",
    "output",
    "outputs",
    "pred",
    "predictions",
    "resps",
    "response",
    "responses",
    "rollouts",
    "samples",
})
"""Names under which tools keep all attempts at a problem in one row, as a list."""


def check_choice(value: str, parameter: str, choices: Iterable[str]) -> None:
    """Check that a value is one of the choices."""
    known = list(choices)
    if value not in known:
        listed = ", ".join(repr(choice) for choice in known)
        near = " or ".join(map(repr, near_names(str(value), known)))
        hint = f" Hint: did you mean {near}?" if near else ""
        raise ParameterError(f"{found(parameter, repr(value))}, must be one of {listed}.{hint}")


def near_names(value: str, known: Iterable[str], *, least: float = 0.6) -> list[str]:
    """Return the names like a value, the nearest first; at most three."""
    import difflib  # only needed where something went wrong

    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(value.casefold(), by_folded, 3, least)
    return [by_folded[name] for name in near]


def check_choices(
    values: ChoiceT | Sequence[ChoiceT], parameter: str, choices: Iterable[ChoiceT]
) -> tuple[ChoiceT, ...]:
    """Return one choice or several as a tuple without duplicates, in the order given."""
    listed: tuple[ChoiceT, ...] = (values,) if isinstance(values, str) else tuple(values)
    known = list(choices)
    if not listed:
        raise ParameterError(f"{parameter} is empty, must name at least one of {known}.")
    for value in listed:
        check_choice(value, parameter, known)
    return tuple(dict.fromkeys(listed))


def check_int(value: int, parameter: str) -> int:
    """Return an integer; a bool is not an integer here."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterTypeError(f"{parameter} must be an int, got {type(value).__name__}.")
    return value


def check_positive(value: int, parameter: str) -> int:
    """Return an integer that is at least 1."""
    if check_int(value, parameter) < 1:
        raise ParameterError(f"{found(parameter, value)}, must be at least 1.")
    return value


def check_not_negative(value: int, parameter: str) -> int:
    """Return an integer that is at least 0."""
    if check_int(value, parameter) < 0:
        raise ParameterError(f"{found(parameter, value)}, must be at least 0.")
    return value


def check_draws(k: int | Sequence[int], parameter: str = "k") -> tuple[int, ...]:
    """Return the numbers of attempts to draw, without duplicates, in the order given."""
    listed = tuple(k) if isinstance(k, Sequence) else (k,)
    if not listed:
        raise ParameterError(f"{parameter} is empty, must hold at least one number.")
    return tuple(dict.fromkeys(check_positive(draw, parameter) for draw in listed))


def check_budgets(budgets: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return budgets in ascending order without duplicates; None, all attempts, stays None."""
    if budgets is None:
        return None
    if isinstance(budgets, str):
        raise ParameterTypeError(f"budgets must be an int or a list of ints, got {budgets!r}.")
    listed = tuple(budgets) if isinstance(budgets, Iterable) else (budgets,)
    if not listed:
        raise ParameterError("budgets is empty, must hold at least one number of attempts.")
    return tuple(sorted({check_positive(budget, "budgets") for budget in listed}))


def check_number(value: float, parameter: str) -> float:
    """Return a number, which may be infinite, as a float; NaN is not a number here."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterTypeError(f"{parameter} must be a number, got {type(value).__name__}.")
    if math.isnan(value):
        raise ParameterError(f"{parameter} is NaN, must be a number.")
    return float(value)


def check_numbers(values: float | Sequence[float], parameter: str) -> list[float]:
    """Return one number or several in ascending order without duplicates."""
    listed = tuple(values) if isinstance(values, Sequence) else (values,)
    if not listed:
        raise ParameterError(f"{parameter} is empty, must hold at least one number.")
    return sorted({check_number(value, parameter) for value in listed})


def check_fraction(value: float, parameter: str) -> float:
    """Return a number strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ParameterError(f"{found(parameter, value)}, must be between 0 and 1, both excluded.")
    return float(value)


def check_between(value: float, parameter: str, least: float, most: float) -> float:
    """Return a number in a closed range; NaN is outside."""
    if not least <= value <= most:
        raise ParameterError(f"{found(parameter, value)}, must be from {least:g} to {most:g}.")
    return float(value)


def check_seed(value: int, parameter: str = "seed") -> int:
    """Return a seed that fits into 64 unsigned bits."""
    if not 0 <= check_int(value, parameter) < 2**64:
        raise ParameterError(f"{found(parameter, value)}, must be from 0 to 2**64 - 1.")
    return value


def check_references(references: Mapping[str, float] | None) -> dict[str, float]:
    """Return accuracies to compare with as floats by name."""
    for name, value in (references or {}).items():
        if not 0.0 <= value <= 1.0:
            reference = setting("references", name, text=f"references[{name!r}] == ")
            raise ParameterError(
                f"{reference}{float(value)}, must be an accuracy between 0 and 1. Hint: 42 % is 0.42."
            )
    return {str(name): float(value) for name, value in (references or {}).items()}


def check_names(
    names: ColumnNames, parameter: str, *, taken: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return one column name or several as a tuple; `taken` are names of columns of the result."""
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise ParameterTypeError(
                f"{parameter} must hold column names, got {type(name).__name__}."
            )
    if len(set(listed)) != len(listed):
        raise ParameterError(f"{found(parameter, list(listed))} names a column twice.")
    if both := [name for name in listed if name in set(taken)]:
        raise ParameterError(
            f"{parameter} names {both}, which are columns of the result. Hint: rename yours with "
            f"{setting('rename', {both[0]: f'my_{both[0]}'}, text=f'frame.rename({{{both[0]!r}: ...}})')}."
        )
    return listed


def check_frame(frame: object, parameter: str, *, takes_any_dtype: bool = False) -> None:
    """Check that an argument is a Polars frame; of attempts, also that a row is one attempt, and dtypes."""
    check_not_stuck()
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        raise ParameterTypeError(
            f"{parameter} must be a polars DataFrame or LazyFrame, got {kind_of(frame)}. Hint: "
            f"{_polars_hint(frame)}"
        )
    if parameter in _OF_ATTEMPTS:
        schema = frame.collect_schema()
        _check_rows(schema, parameter)
        if not takes_any_dtype:
            _check_dtypes(schema, parameter)


def _check_rows(schema: Mapping[str, pl.DataType], where: str) -> None:
    """Check that a row is one attempt."""
    name = list_of_attempts(schema)
    if name is not None:
        raise ColumnsError(
            f"{where}: {name!r} is {_short(schema[name])}, which holds all attempts at a problem in one "
            f"row; expected one row per attempt. Hint: {_READ} makes one row per attempt; drop {name!r} "
            f"if each row is one attempt."
        )


def _check_dtypes(schema: Mapping[str, pl.DataType], where: str) -> None:
    """Check the dtypes of the columns that have a meaning."""
    for name, dtype in schema.items():
        expected = _expected_kind(name, dtype)
        if expected is not None:
            raise ColumnsError(
                f"{where}: {name!r} is {_short(dtype)}, {_must_be(name, dtype, expected)}"
            )


def list_of_attempts(schema: Mapping[str, pl.DataType]) -> str | None:
    """Return the column that holds all attempts at a problem as a list; None if a row has one text."""
    if schema.get("completion") == pl.String:
        return None
    return next(
        (
            name
            for name, dtype in schema.items()
            if name in _LISTS_OF_ATTEMPTS and isinstance(dtype, pl.List | pl.Array)
        ),
        None,
    )


def _short(dtype: pl.DataType | DataTypeClass) -> str:
    """Return a dtype as text, without the fields of a struct."""
    if isinstance(dtype, pl.List | pl.Array):
        return f"{type(dtype).__name__}({_short(dtype.inner)})"
    return "Struct" if isinstance(dtype, pl.Struct) else str(dtype)


def _expected_kind(name: str, dtype: pl.DataType) -> str | None:
    """Return what a column must be, or None if its dtype is possible or the column is not known."""
    if dtype == pl.Null:
        return None
    if name == "step_scores":
        inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else pl.String
        return None if inner == pl.Null or inner.is_numeric() else "a list of numbers"
    if name in _FLAGS:
        return None if dtype == pl.Boolean or dtype.is_numeric() else "Boolean"
    if name in _NUMBERS:
        return None if dtype.is_numeric() else "a number"
    is_value = not (dtype.is_nested() or dtype in {pl.Binary, pl.Object})
    return None if is_value or name not in {*_TEXTS, *_NAMES} else "String"


def _must_be(name: str, dtype: pl.DataType, expected: str) -> str:
    """End a message on a column whose dtype cannot be used."""
    if dtype.is_nested() and name != "step_scores":
        how = (
            f"frame.explode({name!r}), with all columns of lists,"
            if isinstance(dtype, pl.List | pl.Array)
            else _READ
        )
        return f"must be {expected}, one value per attempt. Hint: {how} makes one row per attempt."
    cast = {
        "Boolean": f"pl.col({name!r}).str.to_lowercase() == 'true'",
        "a number": f"pl.col({name!r}).cast(pl.Float64)",
        "a list of numbers": f"pl.col({name!r}).str.json_decode(pl.List(pl.Float64))",
        "String": f"pl.col({name!r}).cast(pl.String)",
    }[expected]
    hint = (
        f"frame.with_columns({cast})" if dtype == pl.String or expected == "String" else "cast it"
    )
    return f"must be {expected}. Hint: {hint}, or rename the column if it is something else."


def kind_of(value: object) -> str:
    """Name the type of a value; a frame of another library with the name of the library."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library in {"builtins", "ttsframe", "__main__", ""}:
        return kind.__name__
    return f"a {library} {kind.__name__}"


def _polars_hint(value: object) -> str:
    """Say how to make a Polars frame of a value."""
    library = type(value).__module__.partition(".")[0]
    plain = {"pandas": "pl.from_pandas(frame)", "pyarrow": "pl.from_arrow(table)"}.get(library)
    if plain is not None:
        return f"{plain} makes one; for attempts, tts.read_trajectories does, whatever the columns are."
    return "pl.DataFrame(...) or tts.read_trajectories(...) makes one."


def check_mapping(value: object, parameter: str) -> dict[str, str]:
    """Return a mapping of names to names as a dict; None becomes an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(item, str) for pair in value.items() for item in pair
    ):
        raise ParameterTypeError(f"{parameter} must be a mapping of column names to column names.")
    return dict(value)
