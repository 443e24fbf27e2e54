"""Generate what must not be written by hand: API pages from `__all__`, tables from the registries.

`sphinx-build` fails if a public name is not documented.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.docscrape import NumpyDocString
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

import ttsframe as tts
from ttsframe.cli import cli
from ttsframe.readers.engine import FileFormat

DOCS = Path(__file__).parent
TABLES = DOCS / "tables"
API = DOCS / "api"
NOTEBOOKS = DOCS / "guide" / "notebooks"

PACKAGES = (
    "readers",
    "answers",
    "votes",
    "estimators",
    "estimators.aggregators",
    "statistics",
    "curves",
    "verifier",
    "process",
    "search",
    "search.servers",
    "charts",
    "batch",
    "report",
    "evaluator",
    "testing",
    "errors",
)
SMALL = ("schema", "scoring", "steps", "simulation", "validation")
"""Modules whose public names have one API page together."""

NAMESPACES = {package for package in PACKAGES if package != "report"}


def public_name(package: str, name: str, value: object) -> str:
    """Return the shortest name under which users import something of a subpackage."""
    if getattr(tts, name, None) is value:
        return f"ttsframe.{name}"
    return f"ttsframe.{package}.{name}"


def public_names(package: str) -> dict[str, Any]:
    """Return what a subpackage or module offers, by its shortest name."""
    module = import_module(f"ttsframe.{package}")
    offered = {name: getattr(module, name) for name in module.__all__}
    return {
        public_name(package, name, value): value
        for name, value in offered.items()
        if not inspect.ismodule(value)
        and (package in NAMESPACES or name in tts.__all__)
        and not (package == "estimators" and name in tts.aggregators.__all__)
    }


def is_data(value: object) -> bool:
    return not (callable(value) or inspect.isclass(value))


def api_page(title: str, module: ModuleType, names: dict[str, Any]) -> str:
    """Return one API page in reStructuredText."""
    intro = (module.__doc__ or "").strip().splitlines()[0]
    listed = sorted(names, key=lambda name: name.rpartition(".")[2].lower())
    functions = [name for name in listed if not is_data(names[name])]
    lines = [title, "=" * len(title), "", intro, ""]
    lines += [".. autosummary::", "   :toctree: items", ""]
    lines += [f"   {name}" for name in functions]
    for name in listed:
        if is_data(names[name]):
            lines += ["", f".. py:data:: {name}", "", f"   {data_summary(name, names[name])}"]
    return "\n".join(lines) + "\n"


_NAMED = (
    "SELECTORS",
    "READERS",
    "WRITERS",
    "STEP_FORMATS",
    "STEP_REDUCTIONS",
    "SEARCH_POLICIES",
    "PRESETS",
    "NODE_COLUMNS",
    "FRONTIER_COLUMNS",
    "REQUEST_COLUMNS",
    "PREFIX_COLUMNS",
)
"""Mappings whose keys a page lists."""


def data_summary(name: str, value: object) -> str:
    if name.endswith(_NAMED):
        return f"Read-only mapping by name: {', '.join(f'``{key}``' for key in value)}."  # type: ignore[attr-defined]
    return f"``{value!r}``" if isinstance(value, str) else "Read-only mapping."


def summary(value: object) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def source(value: object) -> str:
    """Return the papers that a docstring names, as links where it has an arXiv number or DOI."""
    references = " ".join(NumpyDocString(inspect.getdoc(value) or "")["References"])
    identifiers = re.findall(r"(?:arXiv:?\s*|abs/)(\d{4}\.\d{4,5})", references)
    return ", ".join(
        f"[{number}](https://arxiv.org/abs/{number})" for number in dict.fromkeys(identifiers)
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def independence(row: FileFormat) -> str:
    return {True: "yes", False: "no", None: "not said, or by row"}[row.is_exchangeable]


def score_range(row: FileFormat) -> str:
    """Describe the scores of a format: column, range and direction."""
    scores = row.scores
    if scores is None:
        return "none"
    least, most = ("" if end is None else f"{end:g}" for end in (scores.least, scores.most))
    bounds = f"{least} to {most}" if least or most else "any number"
    return (
        f"`{scores.column}`, {bounds}, {'higher' if scores.higher_is_better else 'lower'} is better"
    )


def tables() -> Iterator[tuple[str, str]]:
    """Yield the tables by file name."""
    yield (
        "selectors",
        table(
            ("selector", "picks", "reads scores", "source"),
            (
                (
                    f"`{name}`",
                    row.summary,
                    "yes" if row.reads_score else "",
                    source(getattr(tts, name)),
                )
                for name, row in tts.SELECTORS.items()
            ),
        ),
    )
    yield (
        "reductions",
        table(
            ("reduction", "score of the attempt", "source"),
            (
                (f"`{name}`", summary(function), source(function))
                for name, function in tts.STEP_REDUCTIONS.items()
            ),
        ),
    )
    estimators = [*public_names("estimators").items(), *public_names("statistics").items()]
    yield (
        "estimators",
        table(
            ("name", "estimates", "source"),
            (
                (f"`{name.removeprefix('ttsframe.')}`", summary(value), source(value))
                for name, value in estimators
            ),
        ),
    )
    yield (
        "search_policies",
        table(
            ("policy", "class", "continues", "source"),
            (
                (
                    f"`{name}`",
                    f"`tts.search.{row.policy.__name__}`",
                    row.summary,
                    source(row.policy),
                )
                for name, row in tts.search.SEARCH_POLICIES.items()
            ),
        ),
    )
    yield (
        "search_presets",
        table(
            ("preset", "reproduces"),
            ((f"`{name}`", row.reproduces) for name, row in tts.search.PRESETS.items()),
        ),
    )
    yield (
        "nodes",
        table(
            ("column", "type", "meaning"),
            (
                (f"`{name}`", str(column.dtype), column.meaning)
                for name, column in tts.search.NODE_COLUMNS.items()
            ),
        ),
    )
    yield (
        "formats",
        table(
            ("format", "written by", "a row is a", "independent attempts", "scores"),
            (
                (f"`{key}`", row.summary, row.unit, independence(row), score_range(row))
                for key, row in tts.READERS.items()
            ),
        ),
    )
    yield (
        "writers",
        table(
            ("format", "what is written"),
            ((f"`{key}`", row.summary) for key, row in tts.WRITERS.items()),
        ),
    )
    yield (
        "step_formats",
        table(
            ("format", "written by"),
            ((f"`{key}`", row.summary) for key, row in tts.STEP_FORMATS.items()),
        ),
    )
    yield (
        "commands",
        table(
            ("command", "does"),
            (
                (f"`ttsframe {name}`", command.get_short_help_str(200))
                for name, command in cli.commands.items()
            ),
        ),
    )


def write(path: Path, text: str) -> None:
    """Write a file only if it changes, so that Sphinx rebuilds no page for nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate() -> None:
    shutil.rmtree(API / "items", ignore_errors=True)  # pages of names that no longer exist
    for name, text in tables():
        write(TABLES / f"{name}.md", text)
    pages = {
        package: (import_module(f"ttsframe.{package}"), public_names(package))
        for package in PACKAGES
    }
    small = {name: value for package in SMALL for name, value in public_names(package).items()}
    pages["run"] = (tts, small)
    for package, (module, names) in pages.items():
        title = f"tts.{package.removeprefix('estimators.')}"
        write(API / f"{package}.rst", api_page(title, module, names))
    toctree = "\n".join(f"   {package}" for package in pages)
    write(
        API / "index.rst",
        "API reference\n=============\n\n.. toctree::\n   :maxdepth: 1\n\n" + toctree + "\n",
    )
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    for notebook in (DOCS.parent / "notebooks").glob("*.ipynb"):
        shutil.copy2(notebook, NOTEBOOKS)


def everything_public() -> set[str]:
    found = {f"ttsframe.{name}" for name in tts.__all__}
    for package in PACKAGES:
        found |= set(public_names(package))
    return found


def check(_: Sphinx, environment: BuildEnvironment) -> None:
    """Fail if a public name has no entry."""
    documented = {name for name, *_ in environment.get_domain("py").get_objects()}
    missing = sorted(everything_public() - documented)
    if missing:
        raise ExtensionError(f"public names without documentation: {', '.join(missing)}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Generate at once, since Sphinx looks for documents before its first event."""
    generate()
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True}
