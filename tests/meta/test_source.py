"""What the package's source may not contain."""

from __future__ import annotations

import ast
import sys

from package_source import PACKAGE, imports, modules, of_every_module

ROW_LOOPS = {"map_elements", "map_rows", "map_groups", "iter_rows", "iter_slices", "apply"}

MAY_LOOP = {
    "readers/engine/table.py": "names the first rows that cannot be read",
    "defaults.py": "words for a few lines of a table",
    "_html.py": "writes the first rows of tables out as HTML",
    "report/": "writes small tables out as HTML",
    "cli/": "writes small tables out as text",
}
"""Where rows are looped over that are few and shown to people."""

REMOVED = {
    # Removed in 3.12.
    "asynchat",
    "asyncore",
    "distutils",
    "imp",
    "smtpd",
    # Removed in 3.13 (PEP 594 and others).
    "aifc",
    "audioop",
    "cgi",
    "cgitb",
    "chunk",
    "crypt",
    "imghdr",
    "lib2to3",
    "mailcap",
    "msilib",
    "nis",
    "nntplib",
    "ossaudiodev",
    "pipes",
    "sndhdr",
    "spwd",
    "sunau",
    "telnetlib",
    "typing.io",
    "typing.re",
    "uu",
    "xdrlib",
}

REMOVED_NAMES = {
    # Removed from ast in 3.14, from others in 3.12 and 3.13.
    ("ast", "Num"),
    ("ast", "Str"),
    ("ast", "Bytes"),
    ("ast", "NameConstant"),
    ("ast", "Ellipsis"),
    ("asyncio", "get_child_watcher"),
    ("asyncio", "set_child_watcher"),
    ("importlib", "find_loader"),
    ("importlib.abc", "Finder"),
    ("importlib.abc", "ResourceReader"),
    ("locale", "resetlocale"),
    ("pkgutil", "ImpImporter"),
    ("pkgutil", "find_loader"),
    ("pkgutil", "get_loader"),
    ("pathlib.Path", "link_to"),
    ("pty", "master_open"),
    ("sqlite3", "version"),
    ("tempfile", "mktemp"),
    ("urllib.parse", "Quoter"),
    ("unittest", "makeSuite"),
}


@of_every_module
def test_no_row_is_handed_to_python(module: str) -> None:
    if module.startswith(tuple(MAY_LOOP)):
        return
    used = {node.attr for node in ast.walk(modules()[module]) if isinstance(node, ast.Attribute)}
    assert not used & ROW_LOOPS, f"{module} uses {used & ROW_LOOPS}"


def test_nowhere_at_all_does_python_compute_a_column_value_by_value() -> None:
    for module, tree in modules().items():
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not used & {"map_elements", "map_rows"}, module


@of_every_module
def test_nothing_that_later_pythons_removed_is_used(module: str) -> None:
    tree = modules()[module]
    for name in imports(tree):
        root = name.rsplit(".", maxsplit=1)
        assert name not in REMOVED
        assert name.split(".")[0] not in REMOVED, f"{module} imports {name}"
        assert tuple(root) not in REMOVED_NAMES, f"{module} imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used = (node.value.id, node.attr)
            assert used not in REMOVED_NAMES, f"{module} uses {'.'.join(used)}"
            assert used not in {("datetime", "utcnow"), ("datetime", "utcfromtimestamp")}


def test_modules_that_were_removed_are_not_standard_any_more() -> None:
    if sys.version_info >= (3, 13):
        assert not {name for name in REMOVED if "." not in name} & sys.stdlib_module_names


@of_every_module
def test_checks_are_errors_and_never_asserts(module: str) -> None:
    asserts = [node.lineno for node in ast.walk(modules()[module]) if isinstance(node, ast.Assert)]
    assert not asserts, f"{module}, lines {asserts}"


@of_every_module
def test_annotations_are_never_evaluated(module: str) -> None:
    body = modules()[module].body
    if len(body) > (1 if ast.get_docstring(modules()[module]) else 0):
        assert "__future__.annotations" in set(imports(modules()[module]))


@of_every_module
def test_nothing_is_left_to_do(module: str) -> None:
    text = (PACKAGE / module).read_text(encoding="utf-8")
    for word in ("TODO", "FIXME", "XXX", "HACK", "NotImplementedError"):
        assert word not in text, f"{module} says {word}"


@of_every_module
def test_a_suppressed_check_names_its_code(module: str) -> None:
    for line in (PACKAGE / module).read_text(encoding="utf-8").splitlines():
        if "# noqa" in line:
            assert "# noqa: " in line, f"{module}: {line.strip()}"
        if "type: ignore" in line:
            assert "type: ignore[" in line, f"{module}: {line.strip()}"
