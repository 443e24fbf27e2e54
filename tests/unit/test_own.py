"""Functions of a user are imported by name, and every failure says what to do."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ttsframe._own import Imported, by_name, import_name, load, name_of, source_version
from ttsframe.errors import EngineError, ParameterError

MODULE = "own_module_of_a_test"
TEXT = """
import polars as pl

LIMIT = 3

class Rules:
    @staticmethod
    def first():
        return pl.col("attempt").first()

def first():
    return pl.col("attempt").first()

def hidden():
    def inner():
        return first()
    return inner

decorated = hidden()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / f"{MODULE}.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module(MODULE)
    sys.modules.pop(MODULE, None)


def test_a_function_comes_back_by_its_name(module: Any) -> None:
    for function in (module.first, module.Rules.first):
        assert load(import_name(function, "selectors")) is function
    assert import_name(module.Rules.first, "selectors") == f"{MODULE}:Rules.first"


def test_it_pickles_without_its_module(module: Any) -> None:
    reference = by_name(module.first, "selectors")
    sent = pickle.dumps(reference)
    assert name_of(reference) == "first"
    assert by_name(reference, "selectors") is reference
    sys.modules.pop(MODULE)
    received: Imported = pickle.loads(sent)  # noqa: S301 - just made
    assert received == reference
    assert MODULE not in sys.modules
    assert str(received()) == str(pl.col("attempt").first())
    assert MODULE in sys.modules


def test_another_source_is_an_error(module: Any) -> None:
    reference = by_name(module.first, "selectors")
    path = Path(module.__file__)
    path.write_text(TEXT.replace("first()", "last()"), encoding="utf-8")
    assert source_version(module.first) != reference.version
    with pytest.raises(EngineError, match="has changed since the job began"):
        reference()


def test_the_version_of_an_installed_package_is_part_of_it() -> None:
    assert f"polars {pl.__version__}" in source_version(pl.col("a").sort_by)  # type: ignore[arg-type]


class Picks:
    def __call__(self) -> pl.Expr:
        return pl.col("attempt").first()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: lambda: pl.col("attempt"), "is a lambda"),
        (lambda _: partial(int, 3), "is a partial function"),
        (lambda _: Picks(), "is an object of class Picks"),
        (lambda module: module.hidden(), "is defined inside of another function"),
    ],
)
def test_what_has_no_name_to_import_is_refused(
    module: Any, make: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=f"selector '.*' {message}"):
        import_name(make(module), "selectors")


def test_a_name_that_means_another_object_now_is_refused(module: Any) -> None:
    old = module.first
    importlib.reload(module)
    with pytest.raises(ParameterError, match=f"{MODULE}:first is another object now"):
        import_name(old, "selectors")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{MODULE}:", "must be written as package.module:name"),
        (":first", "must be written as package.module:name"),
        ("a/b.py:first", "must be written as package.module:name"),
        (f"{MODULE}:f()", "must be written as package.module:name"),
        (
            f"{MODULE}:second",
            r"has no 'second'; its functions: \['Rules', 'first', 'hidden', 'decorated'\]",
        ),
        (f"{MODULE}:LIMIT", "is a value of type int, must be a function"),
        (f"{MODULE}:LIMIT.real.up", "has no 'up'"),
        ("no_such_module:f", "no module 'no_such_module' on Python's path. Hint: set PYTHONPATH"),
        (f"{MODULE}.sub:f", f"there is no module '{MODULE}.sub'"),
    ],
)
@pytest.mark.usefixtures("module")
def test_what_cannot_be_imported_is_explained(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        load(text)


@pytest.mark.parametrize("line", ["import no_such_package", "raise OSError('no disk')", "1 +"])
def test_a_module_that_fails_names_its_own_error(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_module.py").write_text(line, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ParameterError, match=r"importing failing_module raised [A-Z]") as raised:
        load("failing_module:f")
    assert "PYTHONPATH" not in str(raised.value)


def test_a_module_in_the_working_directory_is_not_imported_but_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder_of_mine").mkdir()
    (tmp_path / "folder_of_mine" / "rules.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in {"", "."}])
    with pytest.raises(
        ParameterError, match=r"folder_of_mine/rules.py lies in the working"
    ) as raised:
        load("folder_of_mine.rules:first")
    assert f"PYTHONPATH={tmp_path}" in str(raised.value)
