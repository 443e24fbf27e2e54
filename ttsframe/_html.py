"""Fragments of HTML for notebooks: every text is escaped, and no fragment grows with a run."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import polars as pl

from ttsframe._wording import shorten

_N_ROWS_MAX: Final = 20
_N_COLUMNS_MAX: Final = 40
_CELL_MAX: Final = 80
_TEXT_MAX: Final = 600
_IS_WIDE: Final = 8
_IS_LOW: Final = 4


def fragment(*parts: str) -> str:
    """Join parts; what is wider than the notebook scrolls."""
    return f"<div class='ttsframe' style='overflow-x: auto'>{''.join(parts)}</div>"


def heading(text: str) -> str:
    """Write a line in bold."""
    return f"<p><strong>{_text(text)}</strong></p>"


def paragraph(text: str) -> str:
    """Write a paragraph."""
    return f"<p>{_text(text)}</p>"


def bullets(texts: Sequence[str]) -> str:
    """Write a list; empty without texts."""
    items = "".join(f"<li>{_text(text)}</li>" for text in texts[:_N_ROWS_MAX])
    return f"<ul>{items}</ul>{_note_more(len(texts), 'line')}" if texts else ""


def preformatted(text: str) -> str:
    """Write lines of text as they are."""
    lines = text.splitlines()
    shown = "\n".join(shorten_line(line) for line in lines[:_N_ROWS_MAX])
    return f"<pre>{escape(shown)}</pre>{_note_more(len(lines), 'line')}"


def shorten_line(line: str) -> str:
    """Shorten a line, and keep the spaces that align it."""
    return line if len(line) <= _TEXT_MAX else shorten(line, _TEXT_MAX)


def folded(summary: str, *parts: str) -> str:
    """Put parts behind a line that opens them."""
    return f"<details><summary>{_text(summary)}</summary>{''.join(parts)}</details>"


def picture(svg: str, description: str) -> str:
    """Show a drawing as a picture, in which no script runs."""
    data = base64.b64encode(svg.encode()).decode()
    return (
        f"<img src='data:image/svg+xml;base64,{data}' alt='{escape(description)}' "
        "style='max-width: 100%; background: white'>"
    )


def table(frame: pl.DataFrame, caption: str = "") -> str:
    """Write the first rows of a frame; one that is wide and low is turned."""
    shown = frame.head(_N_ROWS_MAX)
    names = frame.columns[:_N_COLUMNS_MAX]
    rows = [[_cell(value) for value in row] for row in shown.select(names).iter_rows()]
    heads = [escape(shorten(name, _CELL_MAX)) for name in names]
    if len(names) > _IS_WIDE and frame.height <= _IS_LOW:
        lines = [[head, *(row[i] for row in rows)] for i, head in enumerate(heads)]
        head = ""
    else:
        lines, head = rows, _row(heads, "th")
    body = "".join(_row(line, "td") for line in lines)
    top = f"<caption style='text-align: left'>{_text(caption)}</caption>" if caption else ""
    return (
        f"<table>{top}<thead>{head}</thead><tbody>{body}</tbody></table>"
        f"{_note_more(frame.height, 'row')}"
    )


def texts(rows: Sequence[Mapping[str, str]]) -> str:
    """Write a table of sentences, which wrap."""
    cells = [[_text(text) for text in row.values()] for row in rows[:_N_ROWS_MAX]]
    body = "".join(_row(line, "td style='text-align: left; vertical-align: top'") for line in cells)
    head = _row([escape(name) for name in rows[0]], "th style='text-align: left'")
    return (
        f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{_note_more(len(rows), 'row')}"
    )


def _row(cells: Sequence[str], tag: str) -> str:
    end = tag.partition(" ")[0]
    return f"<tr>{''.join(f'<{tag}>{cell}</{end}>' for cell in cells)}</tr>"


def _cell(value: object) -> str:
    """Write a value: numbers to four digits, texts on a line."""
    match value:
        case None:
            return "—"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.4g}"
    return escape(shorten(str(value), _CELL_MAX))


def _text(text: str) -> str:
    return escape(shorten(text, _TEXT_MAX))


def _note_more(n: int, noun: str) -> str:
    """Say how many rows are left out."""
    n_more = n - _N_ROWS_MAX
    return f"<p>{n_more:,} more {noun}{'s' if n_more > 1 else ''}</p>" if n_more > 0 else ""
