"""The page of a report: one HTML document that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

import altair as alt
import polars as pl
import vl_convert

from ttsframe import charts
from ttsframe._wording import counted, interval, left_out, percent, quantity_of
from ttsframe.charts._style import N_PANELS_MAX, shorten
from ttsframe.report.build import Report

_N_ROWS_MAX: Final = 200
_TEXT_MAX: Final = 1_200
_NONE: Final = "—"

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


class _Figure(NamedTuple):
    """A chart, what it is called in the page, and what is written under it."""

    name: str
    chart: alt.LayerChart | alt.ConcatChart | alt.HConcatChart
    caption: str


def write_page(report: Report) -> str:
    """Draw the charts of a report and put everything into one document."""
    from importlib.metadata import version

    figures: list[_Figure] = []
    body = [
        f"<h1>{escape(report.title)}</h1>",
        *_headline(report),
        f"<noscript><p class='notice'>{_NO_SCRIPT}</p></noscript>",
        *_curves(report, figures),
        *_steps(report, figures),
        *_votes(report, figures),
        *_loaded(report),
    ]
    scripts = [_bundle(), _START]
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
        *body,
        f"<footer><p>Made by ttsframe {escape(version('ttsframe'))}.</p></footer>",
        "</main>",
        *[_specification(figure) for figure in figures],
        *[f"<script>{script}</script>" for script in scripts],
        "</body>",
        "</html>",
        "",
    ])


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


def _specification(figure: _Figure) -> str:
    """Put a chart into the page as data, in which no text can end the element that holds it."""
    text = json.dumps(figure.chart.to_dict(), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f"<script type='application/json' id='{figure.name}-spec'>{text}</script>"


def _figure(figure: _Figure) -> list[str]:
    """Return the place that a chart is drawn in."""
    return [
        "<figure>",
        f"<div class='chart' id='{figure.name}'></div>",
        f"<figcaption>{escape(figure.caption)}</figcaption>",
        "</figure>",
    ]


def _headline(report: Report) -> list[str]:
    """Say what came out, a sentence per run, and what to know before reading on."""
    sentences = []
    for table in (report.curve, report.agreement):
        if table is not None:
            sentences += _sentences(table, report)
    lines = [f"<p class='lead'>{escape(sentence)}</p>" for sentence in sentences[:N_PANELS_MAX]]
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
    for _, rows in _runs(table, report.by):
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
        name = _run_name(rows, report.by)
        budget = counted([last["budget"][0]], "attempt")
        problems = counted(last["n_problems"].to_list(), "problem")
        what = "" if quantity == "accuracy" else ", agreement (no gold answers)"
        texts.append(f"{name}{budget} at each of {problems}{what}: {', '.join(ends)}.")
    return texts


def _runs(table: pl.DataFrame, by: Sequence[str]) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    """Part a table by run."""
    if not by:
        return [((), table)]
    return list(table.partition_by(by, as_dict=True, maintain_order=True).items())


def _run_name(rows: pl.DataFrame, by: Sequence[str]) -> str:
    """Name the run of some rows, or nothing where there is one."""
    names = [shorten(str(rows[name][0]), 80) for name in by]
    return f"{', '.join(names)}: " if names else ""


def _curves(report: Report, figures: list[_Figure]) -> list[str]:
    """Show each curve as a chart and a table."""
    level = f"{100 * report.confidence_level:g}%"
    captions = {
        "accuracy": "Each line is one way of choosing an answer among the first attempts. Majority "
        "vote needs no scores; the oracle chooses a right answer wherever there is one, so on the "
        f"same problems no selector can be above it. Bands are {level} intervals over problems: problems, not "
        "attempts, are the unit.",
        "agreement": "Without gold answers nothing can be graded: the lines show which share of the "
        "attempts gave the answer that was chosen, which is not how often it is right. Bands are "
        f"{level} intervals over problems.",
    }
    lines = []
    for table in (report.curve, report.agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        lines.append(f"<section><h2>{quantity.capitalize()} by number of attempts</h2>")
        drawn = _first_runs(table, report.by)
        if table[quantity].count():
            chart = charts.scaling_curve(
                drawn,
                references=report.references if quantity == "accuracy" else None,
                confidence_level=report.confidence_level,
            )
            figure = _Figure(f"{quantity}-by-attempts", chart, captions[quantity])
            figures.append(figure)
            lines += _figure(figure)
        lines += [*_more_runs(table, report.by), *_curve_table(table, report), "</section>"]
    return lines


def _first_runs(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Keep as many runs as one chart holds."""
    return pl.concat([rows for _, rows in _runs(table, by)[:N_PANELS_MAX]])


def _more_runs(table: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Say how many runs the chart does not show."""
    n_more = len(_runs(table, by)) - N_PANELS_MAX
    return [
        f"<p>The chart shows the first {N_PANELS_MAX} runs; {n_more} more are in the table.</p>"
    ] * (n_more > 0)


def _steps(report: Report, figures: list[_Figure]) -> list[str]:
    """Show the step profile."""
    if report.profile is None:
        return []
    drawn = _first_runs(report.profile, report.by)
    chart = charts.step_profile(
        drawn,
        confidence_level=report.confidence_level,
    )
    caption = (
        "Scores that the verifier gave to the steps, by the share of the attempt written when it "
        "gave them. The further the lines are apart, the better the scores tell right from wrong. "
        "An attempt with fewer steps than points has none at some of them; its last step is always "
        "at the last. Means are taken per attempt, then per problem, then over problems."
    )
    figure = _Figure("step-scores", chart, caption)
    figures.append(figure)
    return ["<section><h2>Step scores, right against wrong</h2>", *_figure(figure), "</section>"]


def _votes(report: Report, figures: list[_Figure]) -> list[str]:
    """Show one problem's votes."""
    example = report.example
    if example is None:
        return []
    weights = (
        ""
        if example.votes["weight"].count() == 0
        else (" The weight of an answer is what the scores of its attempts add up to.")
    )
    caption = f"{example.reason} A bar is an answer; equivalent spellings vote together.{weights}"
    figure = _Figure("votes", charts.answer_votes(example.votes), caption)
    figures.append(figure)
    texts = []
    for name, text in (("Problem", example.problem), ("Gold answer", example.gold)):
        if text is not None:
            texts.append(f"<dt>{name}</dt><dd>{escape(shorten(text, _TEXT_MAX))}</dd>")
    return [
        "<section><h2>How one problem was voted on</h2>",
        *(["<dl>", *texts, "</dl>"] if texts else []),
        *_figure(figure),
        "</section>",
    ]


def _curve_table(table: pl.DataFrame, report: Report) -> list[str]:
    """Write a curve as a table: a row per line, a column per budget, intervals below values."""
    quantity = quantity_of(table.columns)
    line = [*report.by, "selector", "reduction"]
    budgets = table["budget"].unique().sort().to_list()
    texts = table.with_columns(
        value=percent(pl.col(quantity)).fill_null(_NONE),
        ends=interval().str.replace_all("%", "", literal=True).fill_null(""),
        omitted=left_out(),
    )
    rows = []
    for key, points in texts.partition_by(line, as_dict=True, maintain_order=True).items():
        cells = {
            budget: f"<td>{value}<small>{ends}</small></td>"
            for budget, value, ends in points.select("budget", "value", "ends").iter_rows()
        }
        last = points.row(-1, named=True)
        rows.append(
            "<tr>"
            + "".join(f"<th scope='row'>{_text(part)}</th>" for part in key)
            + "".join(cells.get(budget, f"<td>{_NONE}</td>") for budget in budgets)
            + f"<td>{last['n_problems']:,}</td><td>{last['omitted']}</td></tr>"
        )
    level = f"{100 * report.confidence_level:g}%"
    names = [*[f"{budget:,}" for budget in budgets], "problems", "left out"]
    caption = f"{quantity.capitalize()} by number of attempts, with {level} intervals below"
    return _table(caption, line, names, rows, n_rows=len(rows))


def _table(
    caption: str, heads: Sequence[str], names: Sequence[str], rows: Sequence[str], *, n_rows: int
) -> list[str]:
    """Write a table that scrolls by itself on a narrow screen."""
    more = n_rows - _N_ROWS_MAX
    return [
        "<div class='scroll' tabindex='0'><table>",
        f"<caption>{escape(caption)}</caption>",
        "<thead><tr>",
        *[f"<th scope='col' class='head'>{_text(name)}</th>" for name in heads],
        *[f"<th scope='col'>{name}</th>" for name in names],
        "</tr></thead>",
        "<tbody>",
        *rows[:_N_ROWS_MAX],
        "</tbody>",
        "</table></div>",
        *([f"<p>{more:,} more rows are not shown.</p>"] if more > 0 else []),
    ]


def _loaded(report: Report) -> list[str]:
    """Show what was loaded and what its validation found."""
    table = report.loaded
    groups = table.columns[: table.columns.index("n_problems")]
    names = [
        "problems",
        "attempts",
        "attempts per problem (fewest, median, most)",
        "without an answer",
        "not graded",
        "without a score",
        "range of the score",
    ]
    rows = []
    for row in table.head(_N_ROWS_MAX + 1).iter_rows(named=True):
        share = row["n_missing_answers"] / row["n_attempts"]
        cells = [
            f"{row['n_problems']:,}",
            f"{row['n_attempts']:,}",
            f"{row['attempts_min']:,}, {row['attempts_median']:,g}, {row['attempts_max']:,}",
            f"{row['n_missing_answers']:,} ({share:.1%})",
            f"{row['n_ungraded_attempts']:,}",
            f"{row['n_unscored_attempts']:,}",
            "no scores"
            if row["score_min"] is None
            else f"{row['score_min']:.4g} to {row['score_max']:.4g}",
        ]
        rows.append(
            "<tr>"
            + "".join(f"<th scope='row'>{_text(row[name])}</th>" for name in groups)
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    return [
        "<section><h2>What was loaded</h2>",
        *_table("Problems and attempts", groups, names, rows, n_rows=table.height),
        *_findings(report),
        "</section>",
    ]


def _findings(report: Report) -> list[str]:
    """List what the validation found, with the first examples."""
    if not report.validation.findings:
        return ["<p>The validation found nothing to report.</p>"]
    lines = ["<h3>What the validation found</h3>", "<ul class='findings'>"]
    for finding in report.validation.findings:
        examples = "; ".join(
            ", ".join(f"{name} {shorten(repr(value), 60)}" for name, value in example.items())
            for example in finding.examples
        )
        seen = f" <span class='examples'>For example {escape(examples)}.</span>" if examples else ""
        lines.append(
            f"<li><strong class='{finding.severity}'>{finding.severity}</strong> "
            f"{escape(finding.message)}.{seen} <span class='hint'>Hint: {escape(finding.hint)}</span></li>"
        )
    return [*lines, "</ul>"]


def _text(value: object) -> str:
    """Write a value of the run, which may be anything, as text in the page."""
    return escape(_NONE if value is None else shorten(str(value), 80))
