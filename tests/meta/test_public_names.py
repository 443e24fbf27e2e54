"""What is public is sorted, documented by the house's form, and covered by the contracts."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, get_args, get_type_hints

import polars as pl
import pytest
from contract_registry import AGGREGATORS, EXPR_FUNCTIONS, FRAME_FUNCTIONS
from numpydoc.validate import validate
from package_source import PACKAGES, ROOT, modules, public

import ttsframe as tts
from ttsframe._typing import (
    AnswerStyle,
    FrameT,
    IntoExprColumn,
    StepReduction,
)
from ttsframe.readers.steps import StepFormatName
from ttsframe.readers.trajectories import Format
from ttsframe.votes.engine.registry import SelectorName

IGNORED = {
    "PR04": "types live in the signature",
    "SA01": "no list of related names for its own sake",
    "ES01": "a summary may say it all",
}

REGISTRIES = {"READERS", "SELECTORS", "STEP_FORMATS", "STEP_REDUCTIONS", "WRITERS"}

PUBLIC = public()
CALLABLES = [
    name for name in PUBLIC if name not in REGISTRIES and not name.startswith("aggregators.")
]
CLASSES = [name for name in CALLABLES if inspect.isclass(PUBLIC[name])]
FUNCTIONS = [name for name in CALLABLES if name not in CLASSES]


def resolve(name: str) -> Any:
    """Return what numpydoc and users find under `ttsframe.` and a name."""
    return PUBLIC[name]


def exemptions(name: str) -> set[str]:
    """Return what need not be documented: a Protocol has no parameters, an error no use."""
    found: Any = resolve(name)
    if not inspect.isclass(found):
        return set()
    exempt = {"PR01"} if getattr(found, "_is_protocol", False) else set()
    return exempt | ({"PR01", "EX01"} if issubclass(found, Exception) else set())


def test_names_are_sorted_and_there() -> None:
    # ruff's order: constants, then classes, then functions.
    def key(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)

    assert tts.__all__ == sorted(set(tts.__all__), key=key)
    for name in tts.__all__:
        assert hasattr(tts, name), name


def test_a_name_loads_from_where_type_checkers_see_it() -> None:
    tree = modules()["__init__.py"]
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and node.body[1:])
    seen = {
        alias.name: import_module(node.module or "")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(seen) - set(dir(tts)) == set()
    assert set(dir(tts)) - set(seen) == {"__all__", "__doc__", "__version__"}
    for name, module in seen.items():
        assert getattr(tts, name) is getattr(module, name), name


def test_dir_shows_the_public_names_and_no_others() -> None:
    shown = {name for name in dir(tts) if not name.startswith("__")}
    modules = {name for name in shown if inspect.ismodule(getattr(tts, name))}
    assert shown - modules == set(tts.__all__)
    assert modules == {package.rpartition(".")[2] for package in PACKAGES} | {
        "batch",
        "charts",
        "evaluator",
        "search",
    }


@pytest.mark.parametrize(
    "module", [tts, *(import_module(f"ttsframe.{package}") for package in PACKAGES)]
)
def test_nothing_public_is_left_out(module: ModuleType) -> None:
    names = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and name != "annotations"
        and getattr(value, "__module__", module.__name__).startswith("ttsframe")
    }
    names |= {name for name in module.__all__ if name not in vars(module)}  # loaded on first use
    listed = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    assert names - {"Final", "Sequence"} == listed


@pytest.mark.parametrize("name", CALLABLES)
def test_a_docstring_has_the_form_of_the_house(name: str) -> None:
    exempt = exemptions(name)
    errors = [
        (code, text)
        for code, text in validate(f"ttsframe.{name}")["errors"]
        if code not in IGNORED and code not in exempt
    ]
    assert not errors


@pytest.mark.parametrize("name", [n for n in CALLABLES if "EX01" not in exemptions(n)])
def test_a_docstring_shows_an_example(name: str) -> None:
    found = resolve(name)
    assert ">>> " in (inspect.getdoc(found) or "")
    assert "tts." in (inspect.getdoc(found) or "")


@pytest.mark.parametrize("name", tts.aggregators.__all__)
def test_an_aggregator_is_documented_alike(name: str) -> None:
    found = getattr(tts.aggregators, name)
    exempt = {"PR01"} if getattr(found, "_is_protocol", False) else set()
    errors = validate(f"ttsframe.estimators.aggregators.{name}")["errors"]
    assert not [each for each in errors if each[0] not in IGNORED and each[0] not in exempt]
    assert f"{name}(" in (inspect.getdoc(found) or "") or exempt


@pytest.mark.parametrize("name", CLASSES)
def test_methods_and_properties_are_documented(name: str) -> None:
    found = resolve(name)
    for attribute, value in vars(found).items():
        if attribute.startswith("_") or not (callable(value) or isinstance(value, property)):
            continue
        assert inspect.getdoc(value), f"{name}.{attribute}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_is_typed_and_options_are_named(name: str) -> None:
    found = resolve(name)
    signature = inspect.signature(found)
    hints = get_type_hints(found)
    assert "return" in hints
    for parameter in signature.parameters.values():
        assert parameter.name in hints
        assert "Any" not in str(parameter.annotation).split("[")
    parameters = list(signature.parameters.values())
    if parameters and hints[parameters[0].name] == FrameT:
        assert parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY
        for option in parameters[1:]:
            assert option.kind is inspect.Parameter.KEYWORD_ONLY, option.name


def test_registries_are_their_literals() -> None:
    assert list(tts.STEP_REDUCTIONS) == list(get_args(StepReduction))
    assert list(tts.SELECTORS) == list(get_args(SelectorName))
    assert ["auto", *tts.READERS] == list(get_args(Format))
    assert list(tts.STEP_FORMATS) == list(get_args(StepFormatName))
    assert "auto" in get_args(AnswerStyle)


def test_registries_cannot_be_changed_by_a_caller() -> None:
    for name in REGISTRIES:
        registry = resolve(name)
        with pytest.raises(TypeError):
            registry["mine"] = None


def test_every_reduction_and_selector_is_a_function_of_its_name() -> None:
    for name, function in tts.STEP_REDUCTIONS.items():
        assert function is getattr(tts, f"step_{name}")
    for name, selector in tts.SELECTORS.items():
        assert callable(getattr(tts, name))
        assert selector.summary


def shape(name: str) -> str:
    """Return which of the three shapes of CONTRIBUTING a public function has."""
    function = resolve(name)
    if inspect.isclass(function):
        return "class"
    parameters = list(inspect.signature(function).parameters.values())
    hints = get_type_hints(function)
    if parameters and hints[parameters[0].name] == hints["return"] == FrameT:
        return "frame"
    if parameters and hints[parameters[0].name] == IntoExprColumn and hints["return"] is pl.Expr:
        return "expression"
    return "other"


def test_every_function_of_a_shape_is_under_the_contracts() -> None:
    frames = {name.rpartition(".")[2] for name in CALLABLES if shape(name) == "frame"}
    expressions = {name.rpartition(".")[2] for name in CALLABLES if shape(name) == "expression"}
    aggregators = set(tts.aggregators.__all__) - {"Aggregator"}
    public = {
        name.rpartition(".")[2]
        for name in CLASSES
        if any("__call__" in vars(base) for base in inspect.getmro(resolve(name)))
    }
    assert public - {"Aggregator", "Completer", "RolloutProgress"} <= aggregators
    assert {type(aggregator).__name__ for aggregator in AGGREGATORS} == aggregators
    assert {row.name for row in FRAME_FUNCTIONS} == frames | aggregators
    assert {row.name for row in EXPR_FUNCTIONS} == expressions


def test_the_version_is_the_head_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## \[(.+?)\]", changelog, flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert heads[:2] == ["Unreleased", tts.__version__]
    assert project["version"] == tts.__version__ == version("ttsframe")


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "ttsframe" / "py.typed").is_file()
