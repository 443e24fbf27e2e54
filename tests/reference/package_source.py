"""The package's own source, parsed, for tests of what it may contain."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import ttsframe as tts

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ttsframe"


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module of the package by its path within it, such as `readers/_table.py`."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def imports(tree: ast.AST) -> tuple[str, ...]:
    """Return the full name of whatever is imported, anywhere in a module."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


def imports_at_load(tree: ast.Module) -> Iterator[str]:
    """Yield what is imported when a module is loaded, not inside its functions."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(ast.Module([node], []))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))


def of_every_module(check: Callable[[str], None]) -> Callable[[], None]:
    """Make one test of a check of a module, which names every module that fails it."""

    def test() -> None:
        failed = []
        for module in modules():
            try:
                check(module)
            except AssertionError as error:
                failed.append(f"{module}: {error}")
        assert not failed, "\n".join(failed)

    test.__name__, test.__module__ = check.__name__, check.__module__
    return test


PACKAGES = (
    "answers",
    "curves",
    "errors",
    "estimators",
    "estimators.aggregators",
    "process",
    "readers",
    "statistics",
    "testing",
    "verifier",
    "votes",
)
"""The parts of the public API beside the root that load with it."""


def public() -> dict[str, object]:
    """Return what users import, by its shortest name, such as `curves.halve_attempts`."""
    found: dict[str, object] = {name: getattr(tts, name) for name in tts.__all__}
    for package in PACKAGES:
        module = import_module(f"ttsframe.{package}")
        for name in module.__all__:
            if name not in tts.__all__ and not ismodule(getattr(module, name)):
                found[f"{package.removeprefix('estimators.')}.{name}"] = getattr(module, name)
    return found
