"""The page of a report: one HTML document that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

import altair as alt
import polars as pl
import vl_convert

from ttsframe._typing import SectionName
from ttsframe._wording import counted, percent, quantity_of
from ttsframe.report.contents import SECTIONS
from ttsframe.report.example import Example
from ttsframe.report.names import N_RUNS_MAX, runs_of, telling_names, with_telling_names
from ttsframe.report.report import Report
from ttsframe.report.sections import WRITERS
from ttsframe.report.sections.section import Figure, Part
from ttsframe.verifier import VerifierReport

_EXPORT: Final = "window.vegaEmbed = vegaEmbed;"
_START: Final = """
for (const box of document.querySelectorAll(".chart")) {
  const spec = JSON.parse(document.getElementById(box.id + "-spec").textContent);
  const options = {
    renderer: "svg",
    ast: true,
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: box.id,
  };
  vegaEmbed(box, spec, options).catch((error) => {
    box.textContent = "This chart could not be drawn: " + error.message;
  });
}
"""

_NO_SCRIPT: Final = (
    "Charts need JavaScript, which is off here. The tables hold the numbers of every curve."
)


_N_ANSWERS_MAX: Final = 4
"""Runs that a section has a sentence on: more are read faster in its tables."""


class _Written(NamedTuple):
    """A section as it stands in the page."""

    name: SectionName
    question: str
    answers: list[str]
    parts: list[Part]

    @property
    def anchor(self) -> str:
        """Where links to the section lead."""
        return self.name.replace("_", "-")


def write_page(report: Report) -> str:
    """Draw the charts of a report and put everything into one document."""
    from importlib.metadata import version

    report = _with_telling_names(report)
    with ThreadPoolExecutor(1) as aside:
        # Rust makes the bundle, meanwhile Python draws.
        bundle = aside.submit(_bundle)
        sections = [
            _Written(name, writer.question(report), writer.answers(report), writer.body(report))
            for name in SECTIONS
            if (writer := WRITERS[name]).is_there(report)
        ]
    figures = [part for section in sections for part in section.parts if isinstance(part, Figure)]
    scripts = [bundle.result(), _START]
    return "\n".join([
        "<!doctype html>",
        "<html lang='en'>",
        "<head>",
        "<meta charset='utf-8'>",
        _policy(scripts),
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{escape(report.title)}</title>",
        f"<style>\n{files('ttsframe.report').joinpath('page.css').read_text('utf-8')}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(report.title)}</h1>",
        *_headline(report),
        f"<noscript><p class='notice'>{_NO_SCRIPT}</p></noscript>",
        *_contents(sections, report),
        *[line for section in sections for line in _section(section)],
        f"<footer><p>Made by ttsframe {escape(version('ttsframe'))}.</p></footer>",
        "</main>",
        *[_specification(figure) for figure in figures],
        *[f"<script>{script}</script>" for script in scripts],
        "</body>",
        "</html>",
        "",
    ])


def _with_telling_names(report: Report) -> Report:
    """Tell runs apart by what is different in their names; what was loaded keeps them whole."""
    names = {
        name: telling_names(report.loaded[name].drop_nulls().unique().sort().to_list())
        for name in report.by
        if report.loaded[name].dtype == pl.String
    }

    def renamed(value: object) -> object:
        if isinstance(value, pl.DataFrame):
            return with_telling_names(value, names)
        if isinstance(value, (VerifierReport, Example)):
            changed = {each.name: renamed(getattr(value, each.name)) for each in fields(value)}
            return replace(value, **changed)  # type: ignore[arg-type]
        return value

    changed = {
        each.name: renamed(getattr(report, each.name))
        for each in fields(report)
        if each.name != "loaded"
    }
    return replace(report, **changed)  # type: ignore[arg-type]


def _policy(scripts: Iterable[str]) -> str:
    """Allow the page's own scripts by their hash, and no other script and no request at all."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    rules = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    bundle = str(vl_convert.javascript_bundle(_EXPORT, vl_version=_vega_lite_version()))
    return bundle.replace("</script", "<\\/script")


def _vega_lite_version() -> str:
    """Return the version that Altair writes specifications for, as vl-convert names it."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _specification(figure: Figure) -> str:
    """Put a chart into the page as data, in which no text can end the element that holds it."""
    # The tests of the charts validate what is the same for every run; here it took half of the time.
    text = json.dumps(figure.chart.to_dict(validate=False), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f"<script type='application/json' id='{figure.name}-spec'>{text}</script>"


def _section(section: _Written) -> list[str]:
    """Write a section: its question, its answer, what shows it."""
    more = len(section.answers) - _N_ANSWERS_MAX
    return [
        f"<section id='{section.anchor}' aria-labelledby='{section.anchor}-question'>",
        f"<h2 id='{section.anchor}-question'>{escape(section.question)}</h2>",
        *[f"<p class='answer'>{escape(answer)}</p>" for answer in section.answers[:_N_ANSWERS_MAX]],
        *([f"<p>And {more} more runs.</p>"] if more > 0 else []),
        *[_figure(part) if isinstance(part, Figure) else part for part in section.parts],
        "</section>",
    ]


def _figure(figure: Figure) -> str:
    """Return the place that a chart is drawn in."""
    return "\n".join([
        "<figure>",
        f"<div class='chart' id='{figure.name}'></div>",
        f"<figcaption>{escape(figure.caption)}</figcaption>",
        "</figure>",
    ])


def _contents(sections: list[_Written], report: Report) -> list[str]:
    """List the sections, and why others are not there."""
    links = [f"<li><a href='#{each.anchor}'>{escape(each.question)}</a></li>" for each in sections]
    there = {section.name for section in sections}
    reasons: dict[str, list[str]] = {}
    for name, reason in report.omitted.items():
        what = f"{SECTIONS[name]}{' of some runs' * (name in there)}"
        reasons.setdefault(reason, []).append(what)
    absent = [
        f"<li>{escape('; '.join(names))}: {escape(reason)}</li>"
        for reason, names in reasons.items()
    ]
    return [
        "<nav aria-labelledby='contents'>",
        "<h2 id='contents'>Contents</h2>",
        "<ol>",
        *links,
        "</ol>",
        *(["<p>Not in this report:</p>", "<ul>", *absent, "</ul>"] if absent else []),
        "</nav>",
    ]


def _headline(report: Report) -> list[str]:
    """Say what came out, a sentence per run, and what to know before reading on."""
    sentences = []
    for table in (report.curve, report.agreement):
        if table is not None:
            sentences += _sentences(table, report)
    lines = [f"<p class='lead'>{escape(sentence)}</p>" for sentence in sentences[:N_RUNS_MAX]]
    serious = [
        f"{finding.message}."
        for finding in report.validation.findings
        if finding.severity != "note"
    ]
    notes = [*report.notes, *serious]
    if notes:
        lines += [
            "<div class='notice'><p>Before reading the numbers:</p><ul>",
            *[f"<li>{escape(note)}</li>" for note in notes],
            "</ul></div>",
        ]
    return lines


def _sentences(table: pl.DataFrame, report: Report) -> list[str]:
    """Say where each run's lines end."""
    quantity = quantity_of(table.columns)
    texts = []
    for name, rows in runs_of(table, report.by):
        last = rows.filter(
            pl.col("budget") == pl.col("budget").max(), pl.col(quantity).is_not_null()
        )
        if last.is_empty():
            continue
        ends = last.select(
            pl.concat_str(
                pl.col("selector").str.replace_all("_", " "),
                pl.format(" ({})", "reduction").fill_null(""),
                pl.lit(" "),
                percent(pl.col(quantity)),
            )
        ).to_series()
        budget = counted([last["budget"][0]], "attempt")
        problems = counted(last["n_problems"].to_list(), "problem")
        what = "" if quantity == "accuracy" else ", agreement (no gold answers)"
        texts.append(f"{name}{budget} at each of {problems}{what}: {', '.join(ends)}.")
    return texts
