"""Write the page of a report: one HTML document that opens without a network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Final

import jinja2
from altair.utils.schemapi import debug_mode

from ttsframe._waits import Threads, result_of
from ttsframe.errors import DataError
from ttsframe.report.bundle import vega_bundle
from ttsframe.report.parts import Figure, Page, Paragraph, Part

_N_ANSWERS_MAX: Final = 4
"""Runs that a section has a sentence on: more are read faster in its tables."""


def write_page(page: Page) -> str:
    """Draw the charts of a page and write everything into one document."""
    specifications: dict[str, dict[str, object]] = {}
    with Threads(1) as pool:
        # Rust makes the bundle while Python draws.
        bundle = pool.submit(vega_bundle)
        sections = [
            section._replace(parts=[draw_figure(part, specifications) for part in section.parts])
            for section in page.sections
        ]
    scripts = [result_of(bundle), _read("page.js")]
    return (
        environment()
        .get_template("page.html.jinja")
        .render(
            page=page._replace(sections=sections),
            specifications=specifications,
            scripts=scripts,
            policy=_allow(scripts),
            style=_read("page.css"),
            n_answers_max=_N_ANSWERS_MAX,
        )
    )


def draw_figure(part: Part, specifications: dict[str, dict[str, object]]) -> Part:
    """Add the specification of a figure's chart; a chart that cannot hold the data becomes a note."""
    if not isinstance(part, Figure):
        return part
    # The charts' tests validate the parts that are the same for every run; here it took half the time.
    with debug_mode(arg=False):
        try:
            chart = part.draw()
        except DataError as error:
            reason, _, _ = str(error).partition(" Hint: ")
            return Paragraph(f"Not drawn: {reason}")
        specifications[part.name] = chart.to_dict(validate=False)
    return part


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Return the environment of the templates: every value is escaped, and none may be missing."""
    environment = jinja2.Environment(
        autoescape=True,
        keep_trailing_newline=True,
        loader=jinja2.PackageLoader("ttsframe", "report"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def _read(name: str) -> str:
    """Read a file of this package."""
    return files("ttsframe.report").joinpath(name).read_text("utf-8")


def _allow(scripts: Iterable[str]) -> str:
    """Allow the page's own scripts by their hash, and no other script and no request at all."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"
    )
