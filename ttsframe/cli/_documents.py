"""Tables for papers and notes: Markdown, LaTeX and HTML, with the cells of the printed tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from ttsframe._files import replacing
from ttsframe._wording import counted, shorten
from ttsframe.cli._console import Console, printable

DOCUMENT_SUFFIXES: Final = (".md", ".tex", ".html")
_CELL_MAX: Final = 200
_MARKDOWN: Final = str.maketrans({char: f"\\{char}" for char in "\\|*`<"})
_LATEX: Final = str.maketrans({
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
})
_TEMPLATES: Final[Mapping[str, str]] = {
    ".tex": r"""% needs \usepackage{booktabs}, and \usepackage[T1]{fontenc} for quotation marks
{% for table in tables %}
% <<table.title>>
\begin{tabular}{<<table.columns>>}
\toprule
<<table.names | join(" & ")>> \\
\midrule
{% for row in table.rows %}
<<row | join(" & ")>> \\
{% endfor %}
\bottomrule
\end{tabular}
{% endfor %}
""",
    ".html": """<!doctype html>
<meta charset="utf-8">
<title><<tables[0].title>></title>
{% for table in tables %}
<table>
<caption><<table.title>></caption>
<thead><tr>{% for name in table.names %}<th><<name>></th>{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr>{% for cell in row %}<td><<cell>></td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
{% endfor %}
""",
}


class Cells(NamedTuple):
    """A table as it is shown: every cell a text."""

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool]
    """Which columns hold numbers."""


def is_document(target: Path) -> bool:
    """Return whether a file is for people to read."""
    return target.suffix.lower() in DOCUMENT_SUFFIXES


def save_document(tables: Sequence[Cells], target: Path, console: Console) -> dict[str, object]:
    """Write tables in the format of the target's suffix, and return what was written for JSON."""
    kind = target.suffix.lower()
    shown = [_line_of(table) for table in tables]
    text = "\n\n".join(map(_markdown, shown)) + "\n" if kind == ".md" else _render(kind, shown)
    with replacing(target) as temporary:
        temporary.write_text(text, "utf-8", errors="replace")
    n_rows = sum(len(table.rows) for table in tables)
    console.say(f"Wrote {target}: {counted([n_rows], 'row')}")
    return {"output": str(target), "n_rows": n_rows}


def _line_of(table: Cells) -> Cells:
    """Put every cell on one line, without control characters."""
    names, *rows = (
        [printable(shorten(cell, _CELL_MAX)) for cell in row] for row in (table.names, *table.rows)
    )
    return table._replace(
        title=printable(". ".join(table.title.splitlines())), names=names, rows=rows
    )


def _markdown(table: Cells) -> str:
    names, *rows = (
        [cell.translate(_MARKDOWN) for cell in row] for row in (table.names, *table.rows)
    )
    # Polars needs names that differ; its header is the first line.
    frame = pl.DataFrame(rows, schema=[str(i) for i in range(len(names))], orient="row")
    frame = frame.rename(dict(zip(frame.columns, _different(names), strict=True)))
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=65_535,
        fmt_str_lengths=2 * _CELL_MAX,
    ):
        return f"{table.title}\n\n{frame}"


def _different(names: Sequence[str]) -> list[str]:
    """Tell equal names of columns apart, by spaces that Markdown does not show."""
    return [name + " " * list(names[:i]).count(name) for i, name in enumerate(names)]


def _render(kind: str, tables: Sequence[Cells]) -> str:
    import jinja2

    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(default_for_string=kind == ".html"),
        trim_blocks=True,
        keep_trailing_newline=True,
        variable_start_string="<<",
        variable_end_string=">>",
        undefined=jinja2.StrictUndefined,
    )
    shown = tables if kind == ".html" else [_in_latex(table) for table in tables]
    documents = [
        {**table._asdict(), "columns": "".join("r" if one else "l" for one in table.numbers)}
        for table in shown
    ]
    return environment.from_string(_TEMPLATES[kind]).render(tables=documents)


def _in_latex(table: Cells) -> Cells:
    names, *rows = ([cell.translate(_LATEX) for cell in row] for row in (table.names, *table.rows))
    rows = [
        [
            re.sub(r"-(?=\d)", "$-$", cell) if is_number else cell
            for cell, is_number in zip(row, table.numbers, strict=True)
        ]
        for row in rows
    ]
    # A bracket or an asterisk would be an option of the end of the line before.
    rows = [[f"{{}}{row[0]}" if row[0][:1] in {"[", "*"} else row[0], *row[1:]] for row in rows]
    return table._replace(names=names, rows=rows)
