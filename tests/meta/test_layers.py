"""Imports go one way: no module imports from its own layer or above, and there is no circle."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest
from package_source import imports, imports_at_load, modules, of_every_module

LAYERS: list[set[str]] = [
    {"_settings", "_program", "_waits"},
    {"errors", "_typing", "_draws"},
    {"_docstrings", "_forks"},
    {"_exprs", "_checks", "_files"},
    {"_own", "_http"},
    {"_traps"},
    {"schema"},
    {"_counts", "_wording"},
    {"_html"},
    {
        "steps",
        "answers",
        "readers",
        "estimators",
        "statistics",
        "validation",
        "charts",
    },
    {"scoring", "votes", "simulation"},
    {"curves"},
    {"verifier"},
    {"process"},
    {"evaluator", "search"},
    {"defaults"},
    {"report", "batch", "testing"},
    {"_namespace"},
    {"cli"},
    {"__main__", "__init__"},
]
"""The packages, lowest first; packages of one set do not know each other."""

RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}

ONLY_WORDING_AND_BELOW = {"readers", "charts", "validation"}
"""Readers return what a file says, and charts draw what they are given."""

HEAVY = {
    "altair",
    "vl_convert",
    "scipy",
    "sympy",
    "flint",
    "latex2sympy2",
    "antlr4",
    "ray",
    "httpx",
    "httpcore",
    "jinja2",
    "rich",
}

OWNERS = {
    # The page embeds the scripts of the schema version that the charts are written in.
    "altair": ("charts/", "report/bundle.py", "report/page.py"),
    "vl_convert": ("charts/", "report/bundle.py", "report/page.py"),
    "jinja2": ("cli/_documents.py", "report/page.py", "search/servers/prompts.py"),
    "sympy": ("answers/",),
    "flint": ("answers/",),
    "latex2sympy2": ("answers/",),
    "antlr4": ("answers/",),
    "click": ("cli/",),
    "httpx": ("_http/",),
    "httpcore": ("_http/",),
    "rich": ("cli/",),
}
"""Packages that only one part of the package knows."""


def dotted(module: str) -> str:
    """Return the import name of a module from its path, such as `ttsframe.readers.engine`."""
    return "ttsframe." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


BY_NAME = {dotted(module).removesuffix(".__init__"): module for module in modules()}


def package(module: str) -> str:
    """Return the name in `LAYERS` of a module, from its path."""
    return module.removesuffix(".py").split("/", maxsplit=1)[0]


@cache
def imported_modules(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, by path."""
    found = set()
    for name in imports(modules()[module]):
        for candidate in (name, name.rpartition(".")[0]):
            if candidate in BY_NAME:
                found.add(BY_NAME[candidate])
                break
    return frozenset(found - {module})


def imported_packages(module: str) -> set[str]:
    return {package(name) for name in imported_modules(module)} - {package(module)}


@of_every_module
def test_a_module_has_a_layer(module: str) -> None:
    assert package(module) in RANKS, f"{module} has no place in LAYERS"


@of_every_module
def test_a_module_imports_only_from_below(module: str) -> None:
    rank = RANKS[package(module)]
    upward = {name for name in imported_packages(module) if RANKS[name] >= rank}
    assert not upward, f"{module} imports {upward}"


def test_no_circle_exists_inside_packages_either() -> None:
    graph = {module: imported_modules(module) for module in modules()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"circle of imports: {' -> '.join(error.args[1])}")


@of_every_module
def test_private_modules_stay_in_their_package(module: str) -> None:
    for imported in imported_modules(module):
        *folders, file = imported.split("/")
        for depth, part in enumerate([*folders, file.removesuffix(".py")]):
            if part.startswith("_") and part != "__init__" and depth:
                package = "/".join(imported.split("/")[:depth]) + "/"
                assert module.startswith(package), f"{module} imports {imported}"


@of_every_module
def test_private_names_stay_in_their_module(module: str) -> None:
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ttsframe."):
            private = {
                alias.name
                for alias in node.names
                if alias.name.startswith("_") and f"{node.module}.{alias.name}" not in BY_NAME
            }
            assert not private, f"{module} imports {private} of {node.module}"


@of_every_module
def test_tables_come_in_and_charts_go_out_without_statistics(module: str) -> None:
    if package(module) not in ONLY_WORDING_AND_BELOW:
        return
    above = {name for name in imported_packages(module) if RANKS[name] > RANKS["_html"]}
    assert not above, f"{module} imports {above}"


@of_every_module
def test_a_package_is_imported_only_by_its_owner(module: str) -> None:
    for name in imports(modules()[module]):
        root = name.split(".")[0]
        if root in OWNERS:
            assert module.startswith(OWNERS[root]), f"{module} imports {name}"


@of_every_module
def test_heavy_packages_are_imported_where_they_are_used(module: str) -> None:
    # An owner is itself imported late, which test_import_cost.py holds.
    heavy = {
        name
        for name in imports_at_load(modules()[module])
        if (root := name.split(".")[0]) in HEAVY and not module.startswith(OWNERS.get(root, ()))
    }
    assert not heavy


@of_every_module
def test_imports_are_absolute_and_never_starred(module: str) -> None:
    for name in imports(modules()[module]):
        assert not re.search(r"(^|\.)(None|\*)(\.|$)", name), f"{module} imports {name}"


def test_the_test_sees_what_it_looks_for() -> None:
    assert "polars" in imports(modules()["steps.py"])
    assert imported_packages("curves/scaling.py") >= {"_checks", "statistics", "schema"}
    assert "answers" not in imported_packages("votes/tally.py")
