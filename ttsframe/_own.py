"""Functions that users pass in the place of a name: what they are called, and where they are imported from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import polars as pl

from ttsframe._checks import check_choice
from ttsframe._settings import setting
from ttsframe._typing import ChoiceT
from ttsframe.errors import (
    DataError,
    EngineError,
    ParameterError,
    ParameterTypeError,
    TtsframeError,
)

OwnT = TypeVar("OwnT", bound=Callable[..., object])

_KINDS: Final = {
    "selectors": "selector",
    "reductions": "reduction",
    "reduction": "reduction",
    "grade": "grader",
}
"""What a function is, by the parameter that takes it."""
_HINT: Final = "Hint: a function that returns the expression gives its rows a name."


def check_named(
    values: ChoiceT | OwnT | Sequence[ChoiceT | OwnT],
    parameter: str,
    choices: Iterable[ChoiceT],
    *,
    taken: Iterable[str] = (),
) -> tuple[ChoiceT | OwnT, ...]:
    """Return names among the choices and functions as a tuple, in the order given, each once."""
    # `taken` are names that mean something else in the column of names.
    listed: tuple[Any, ...]
    listed = (
        (values,) if isinstance(values, str) or callable(values) else _listed(values, parameter)
    )
    known = list(choices)
    if not listed:
        raise ParameterError(f"{parameter} is empty, must name at least one of {known}.")
    names: dict[str, Any] = {}
    for value in listed:
        if not callable(value):
            _check_name(value, parameter, known)
        elif (name := name_of(value)) in {*known, *taken}:
            raise ParameterError(
                f"{describe(value, parameter)}: {name!r} already has a meaning in {parameter}. Hint: "
                + (f"pass the name {name!r}, or rename" if name in known else "rename")
                + " your function."
            )
        name = name_of(value)
        if names.setdefault(name, value) != value:
            raise ParameterError(
                f"{parameter} holds two functions of the name {name!r}, which would share their rows. "
                "Hint: rename one of them."
            )
    return tuple(names.values())


def _listed(values: object, parameter: str) -> tuple[Any, ...]:
    if isinstance(values, pl.Expr) or not isinstance(values, Iterable):
        raise ParameterTypeError(
            f"{parameter} must hold names or functions, got {type(values).__name__}. {_HINT}"
        )
    return tuple(values)


def _check_name(value: object, parameter: str, known: list[Any]) -> None:
    if not isinstance(value, str):
        raise ParameterTypeError(
            f"{parameter} must hold names or functions, got {type(value).__name__}. {_HINT}"
        )
    check_choice(value, parameter, known)


def name_of(value: str | Callable[..., object]) -> str:
    """Return the name of a choice or function, as tables show it."""
    if isinstance(value, str):
        return value
    if isinstance(value, partial):
        fixed = [*map(repr, value.args), *(f"{name}={of!r}" for name, of in value.keywords.items())]
        return f"{name_of(value.func)}({', '.join(fixed)})"
    return str(getattr(value, "__name__", type(value).__name__))


def describe(function: Callable[..., object], parameter: str) -> str:
    """Name a function in a message, such as `selector 'shortest'`."""
    return f"{_KINDS[parameter]} {name_of(function)!r}"


def call(function: Callable[..., object], parameter: str, shape: str, *values: pl.Expr) -> pl.Expr:
    """Call a user's function, which must return an expression; `shape` says how it is called."""
    what = describe(function, parameter)
    try:
        made = function(*values)
    except TtsframeError:
        raise
    except Exception as error:
        raise ParameterError(
            f"{what} raised {_reason(error)}. Hint: it is called as {shape}, and must return a polars "
            "expression."
        ) from error
    if not isinstance(made, pl.Expr):
        raise ParameterTypeError(
            f"{what} must return a polars expression, got {type(made).__name__}. Hint: it is called as "
            f"{shape}."
        )
    if made.meta.has_multiple_outputs():
        raise ParameterError(
            f"{what} returned an expression of several columns, must return one value. Hint: name the "
            "columns that it reads."
        )
    return made


def failed(what: str, error: Exception, hint: str) -> DataError:
    """Build the error for an expression of a user that cannot be computed."""
    return DataError(f"{what} could not be computed: {_reason(error)}. Hint: {hint}")


def _reason(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def import_name(function: Callable[..., object], parameter: str) -> str:
    """Return `module:name`, by which another process can import the function."""
    what = describe(function, parameter)
    expected = "a job runs in other processes too, which import the function by its name"
    if isinstance(function, partial):
        raise ParameterError(
            f"{what} is a partial function, which has no name to import; {expected}. Hint: def a "
            "function that calls it, in a module."
        )
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module is None or not name or "<" in name:
        kind = "a lambda" if "<lambda>" in name else "defined inside of another function"
        found = kind if "<" in name else f"an object of class {type(function).__name__}"
        raise ParameterError(
            f"{what} is {found}; {expected}. Hint: def it at the top level of a module."
        )
    if module == "__main__":
        raise ParameterError(
            f"{what} is defined in a script or notebook; {expected}. Hint: move it to a module, "
            f"my_functions.py for example, and use `from my_functions import {name}`."
        )
    loaded = load(f"{module}:{name}")
    if loaded is not function:
        raise ParameterError(
            f"{what}: {module}:{name} is another object now; {expected}. Hint: import it again, or "
            "undo the decorator that hides it."
        )
    return f"{module}:{name}"


def load(text: str) -> Callable[..., Any]:
    """Import a function by `package.module:name`."""
    module, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ParameterError(f"{text!r} must be written as package.module:name.")
    found: Any = _import(module, text)
    for part in name.split("."):
        if not hasattr(found, part):
            offered = getattr(found, "__dict__", {}).items()
            names = [key for key, value in offered if _is_offered(found, key, value)]
            raise ParameterError(
                f"{text}: {module} has no {part!r}; its functions: {names or 'none'}."
            )
        found = getattr(found, part)
    if not callable(found):
        raise ParameterError(
            f"{text} is a value of type {type(found).__name__}, must be a function that returns an "
            "expression."
        )
    result: Callable[..., Any] = found
    return result


def _is_offered(module: object, name: str, value: object) -> bool:
    """Return whether a module defines a public function of this name."""
    home = getattr(value, "__module__", None)
    return (
        callable(value) and not name.startswith("_") and home == getattr(module, "__name__", None)
    )


def _import(module: str, text: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ParameterError(f"{text}: importing {module} raised {_reason(error)}.") from error
        raise ParameterError(
            f"{text}: there is no module {error.name!r}{_where_it_lies(module)}"
        ) from error
    except Exception as error:
        raise ParameterError(f"{text}: importing {module} raised {_reason(error)}.") from error


def _where_it_lies(module: str) -> str:
    """Say how a module in the working directory becomes importable."""
    folder = Path.cwd()
    path = folder.joinpath(*module.split("."))
    if path.with_suffix(".py").is_file() or path.is_dir():
        return (
            f" on Python's path. {path.relative_to(folder).with_suffix('.py')} lies in the working "
            "directory, from which nothing is imported. Hint: set PYTHONPATH to this folder "
            f"(PYTHONPATH={folder}), or install the package: pip install -e ."
        )
    return (
        " on Python's path. Hint: set PYTHONPATH to the folder that holds it, or install its package "
        "with pip in this environment."
    )


def source_version(function: Callable[..., object]) -> str:
    """Return a digest of the file that defines a function, and the version of its package."""
    module = str(function.__module__)
    parts = []
    try:
        spec = find_spec(module)
        origin = None if spec is None else spec.origin
    except (ImportError, ValueError):
        origin = getattr(sys.modules.get(module), "__file__", None)
    if origin is not None and Path(origin).is_file():
        digest = blake2b(Path(origin).read_bytes(), digest_size=8).hexdigest()
        parts.append(f"source {digest}")
    if package := _package_of(module.partition(".")[0]):
        parts.append(package)
    return ", ".join(parts) or "none"


@lru_cache
def _package_of(module: str) -> str | None:
    """Return name and version of the installed package that holds a top-level module."""
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    for name in packages_distributions().get(module, ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return None


@dataclass(frozen=True)
class Imported:
    """A function by its name, which loads where it is called: it pickles without its module."""

    text: str
    """`package.module:name`."""
    version: str
    """Where the job began; another one is an error."""
    parameter: str

    @property
    def __name__(self) -> str:
        """Name of the function, as tables show it."""
        return self.text.rpartition(":")[2].rpartition(".")[2]

    def __call__(self, *values: pl.Expr) -> object:
        """Import the function, and call it."""
        try:
            function = load(self.text)
        except ParameterError as error:
            raise EngineError(
                f"{error} Every process of the job must be able to import it, on a cluster on every node."
            ) from error
        found = source_version(function)
        if found != self.version:
            raise EngineError(
                f"{self.text} has changed since the job began, or differs on this machine: "
                f"{self.version} -> {found}. Hint: the same package must be installed wherever the job "
                f"runs; {setting('restart', True)} starts over."
            )
        return function(*values)


def by_name(function: Callable[..., object], parameter: str) -> Imported:
    """Refer to a function by its name, for a job."""
    if isinstance(function, Imported):
        return function
    return Imported(import_name(function, parameter), source_version(function), parameter)
