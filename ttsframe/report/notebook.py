"""What a report shows in a notebook: its conclusion, a chart and a table."""

from __future__ import annotations

from typing import Final

from ttsframe import _html
from ttsframe.charts.picture import show_chart
from ttsframe.report.page import environment
from ttsframe.report.parts import Figure, Folded, Page, Part, Table

_SECTION: Final = "accuracy"
_RENDER: Final = "{% from 'parts.html.jinja' import render %}{{ render(part) }}"


def show_report(page: Page) -> str:
    """Write the top of a page, with the chart and the table of its main section."""
    (section,) = (section for section in page.sections if section.anchor == _SECTION)
    charts = [part for part in section.parts if isinstance(part, Figure)]
    tables = [page.overview] if page.overview else _find_tables(section.parts)
    template = environment().from_string(_RENDER)
    questions = [f"{other.anchor.replace('-', '_')}: {other.question}" for other in page.sections]
    shown = [
        "".join(show_chart(chart.draw) for chart in charts[:1]),
        # Without the style of the page, an interval would stand beside its value.
        "".join(template.render(part=table) for table in tables[:1]).replace(
            "<small>", "<br><small>"
        ),
    ]
    return _html.fragment(
        _html.heading(page.title),
        *(_html.paragraph(sentence) for sentence in page.lead),
        _html.bullets(page.notices),
        *(reversed(shown) if page.overview else shown),
        _html.folded(
            'report.save("report.html") writes the page, which answers more questions',
            _html.bullets(questions),
        ),
    )


def _find_tables(parts: list[Part]) -> list[Table]:
    """Find tables, also folded ones."""
    found: list[Table] = []
    for part in parts:
        if isinstance(part, Table):
            found.append(part)
        elif isinstance(part, Folded):
            found += [folded for folded in part.parts if isinstance(folded, Table)]
    return found
