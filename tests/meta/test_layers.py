"""Imports go one way: a module knows its own layer's package and the layers below, no others."""

from __future__ import annotations

import re

import pytest
from package_source import imports, imports_at_load, modules

LAYERS: list[set[str]] = [
    {"errors", "_typing", "_draws"},
    {"_exprs", "_checks", "_files", "_resampling", "_subset_counts", "_wording"},
    {"schema", "_simulated_answers"},
    {
        "steps",
        "passk",
        "gpassk",
        "bestofk",
        "answers",
        "intervals",
        "uncertainty",
        "readers",
        "datasets",
        "charts",
        "validation",
    },
    {"scoring", "_ballots", "_units", "_paired"},
    {"votes", "_pairing"},
    {"selectors", "aggregators", "expectation", "curation"},
    {"scaling", "comparison", "extrapolation", "variance", "power"},
    {"difficulty"},
    {
        "cost",
        "adaptive",
        "optimal",
        "verifier",
        "selection_gap",
    },
    {"process"},
    {"evaluator", "search"},
    {"report", "batch"},
    {"_namespace"},
    {"cli"},
    {"__main__", "__init__"},
]
"""DESIGN section 4, lowest first; modules in one set do not know each other."""

RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}

ONLY_SCHEMA_AND_BELOW = {"readers", "datasets", "charts", "validation"}
"""DESIGN says it of the first three; a report on data needs no statistics either."""

HEAVY = {"altair", "vl_convert", "scipy", "sympy", "flint", "latex2sympy2", "antlr4", "ray"}

OWNERS = {
    # The page embeds the scripts of the schema version that the charts are written in.
    "altair": ("charts/", "report/page.py"),
    "vl_convert": ("charts/", "report/page.py"),
    "sympy": ("answers/",),
    "flint": ("answers/",),
    "latex2sympy2": ("answers/",),
    "antlr4": ("answers/",),
    "click": ("cli/",),
}
"""Packages that only one part of the package knows."""


def owner(module: str) -> str:
    """Return the name in `LAYERS` of a module, by its path."""
    return module.removesuffix(".py").split("/", maxsplit=1)[0]


def own_imports(module: str) -> set[str]:
    """Return the parts of the package that a module imports."""
    found = set()
    for name in imports(modules()[module]):
        parts = name.split(".")
        if parts[0] == "ttsframe":
            found.add("__init__" if len(parts) == 1 else parts[1])
    return found - {owner(module)}


@pytest.mark.parametrize("module", modules())
def test_a_module_has_a_layer(module: str) -> None:
    assert owner(module) in RANKS, f"{module} has no place in LAYERS"


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_below(module: str) -> None:
    rank = RANKS[owner(module)]
    upward = {name for name in own_imports(module) if RANKS.get(name, 99) >= rank}
    assert not upward, f"{module} imports {upward}"


@pytest.mark.parametrize(
    "module", [name for name in modules() if owner(name) in ONLY_SCHEMA_AND_BELOW]
)
def test_tables_come_in_and_charts_go_out_without_statistics(module: str) -> None:
    above = {name for name in own_imports(module) if RANKS[name] > RANKS["schema"]}
    assert not above, f"{module} imports {above}"


@pytest.mark.parametrize("module", modules())
def test_a_package_is_imported_only_by_its_owner(module: str) -> None:
    for name in imports(modules()[module]):
        root = name.split(".")[0]
        if root in OWNERS:
            assert module.startswith(OWNERS[root]), f"{module} imports {name}"


@pytest.mark.parametrize("module", modules())
def test_heavy_packages_are_imported_where_they_are_used(module: str) -> None:
    # An owner is itself imported late, which test_import_cost.py holds.
    heavy = {
        name
        for name in imports_at_load(modules()[module])
        if (root := name.split(".")[0]) in HEAVY and not module.startswith(OWNERS.get(root, ()))
    }
    assert not heavy


@pytest.mark.parametrize("module", modules())
def test_imports_are_absolute_and_never_starred(module: str) -> None:
    for name in imports(modules()[module]):
        assert not re.search(r"(^|\.)(None|\*)(\.|$)", name), f"{module} imports {name}"


def test_the_test_sees_what_it_looks_for() -> None:
    assert "polars" in imports(modules()["steps.py"])
    assert own_imports("scaling.py") >= {"_checks", "_units", "schema"}
    assert "answers" not in own_imports("votes.py")
