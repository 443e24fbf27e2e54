"""Tables for papers say what the terminal says, and what a model wrote is only text in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

import ttsframe as tts
from ttsframe.cli._console import Console
from ttsframe.cli._documents import Cells, save_document

Run = Callable[..., Result]

HOSTILE = [
    "</td><script>alert(1)</script>",
    "\\input{/etc/passwd} 5% of $1 & #_{}~^",
    "a|b\n\x1b[31m",
    "[2]*",
]


class Table(HTMLParser):
    """The cells of a page, and the names of its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.elements: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.elements.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1] and data.strip():
            self.rows[-1][-1] += data


def read_markdown(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert set("".join(rows[1])) == {"-"}
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in row] for row in (rows[0], *rows[2:])]


def read_latex(text: str) -> list[list[str]]:
    lines = [line[:-3] for line in text.splitlines() if line.endswith(r" \\")]
    plain = [re.sub(r"\\([&%$#_{}])", r"\1", line.replace("$-$", "-")) for line in lines]
    return [line.split(" & ") for line in plain]


@pytest.mark.parametrize("command", ["curve", "compare", "vote"])
def test_every_format_holds_the_same_cells(ttsframe: Run, sample: Path, command: str) -> None:
    for suffix in ("md", "tex", "html"):
        result = ttsframe(command, sample, "--budgets", "1,16", "-o", f"table.{suffix}")
        assert result.exit_code == 0, result.stderr
        assert f"Wrote table.{suffix}: " in result.stdout
    markdown = read_markdown(Path("table.md").read_text())
    assert markdown == Table(Path("table.html").read_text()).rows
    if command != "vote":  # whose answers hold commands
        assert markdown == read_latex(Path("table.tex").read_text())
    else:
        assert len(markdown) == 1 + 60 * 2 * 4


def test_a_curve_is_the_one_in_the_terminal(ttsframe: Run, sample: Path) -> None:
    shown = ttsframe("curve", sample, "-o", "table.md").stdout
    names, *rows = read_markdown(Path("table.md").read_text())
    printed = [re.split(r"  +", line.strip()) for line in shown.splitlines()[2:9]]
    assert printed[0] == names
    assert printed[2:] == rows[:5]
    assert rows[4] == [
        "16",
        "65.0% [52.4, 75.8]",
        "75.0% [62.8, 84.2]",
        "71.7% [59.2, 81.5]",
        "91.7% [81.9, 96.4]",
    ]
    assert Path("table.md").read_text().startswith("Accuracy, with 95% intervals over problems\n")


def test_runs_are_columns(ttsframe: Run) -> None:
    for name in "ab":
        tts.simulate_trajectories(6, 2, seed=1).write_ndjson(f"{name}.jsonl")
    tts.simulate_trajectories(6, 4, seed=1).drop("step_scores").write_ndjson("c.jsonl")
    assert ttsframe("curve", "a.jsonl", "b.jsonl", "c.jsonl", "-o", "t.md").exit_code == 0
    names, *rows = read_markdown(Path("t.md").read_text())
    assert names[:2] == ["source_file", "attempts"]
    files = [row[0] for row in rows]
    assert {name: files.count(name) for name in files} == {
        "a.jsonl": 3,
        "b.jsonl": 3,
        "c.jsonl": 5,
    }  # and unscored


@pytest.mark.parametrize("suffix", ["md", "tex", "html"])
def test_what_a_model_wrote_stays_text(tmp_path: Path, suffix: str) -> None:
    rows = [[text, "-1.5"] for text in HOSTILE]
    target = tmp_path / f"t.{suffix}"
    table = Cells("A <title> & more\nof it", ["answer", "answer"], rows, [False, True])
    save_document([table, table], target, Console(is_quiet=True))
    text = target.read_text()
    assert "\x1b" not in text
    if suffix == "html":
        page = Table(text)
        assert page.elements == {
            "meta",
            "title",
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
        }
        assert page.rows[1] == [HOSTILE[0], "-1.5"]
        assert len(page.rows) == 10
    elif suffix == "md":
        first, *_ = text.split("\n\nA ")
        found = read_markdown(first)
        assert [row[0] for row in found[1:3]] == HOSTILE[:2]
        assert len(found) == 5
        assert not re.search(r"(?<!\\)<", first.partition("\n\n")[2])
    else:
        body = text.partition(r"\toprule")[2]
        assert r"\textbackslash{}input\{/etc/passwd\} 5\% of \$1 \& \#\_\{\}" in body
        assert "\n{}[2]* & $-$1.5" in body
        assert "\\input" not in body


def test_a_failure_leaves_the_old_file(ttsframe: Run, sample: Path) -> None:
    Path("t.tex").write_text("old")
    assert ttsframe("curve", sample, "--by", "model", "-o", "t.tex").exit_code == 2
    assert Path("t.tex").read_text() == "old"


def test_unknown_suffixes_name_the_known_ones(ttsframe: Run, sample: Path) -> None:
    said = ttsframe("curve", sample, "-o", "t.xlsx").stderr
    assert "ends in '.xlsx', must end in .parquet, .jsonl" in said
    assert ".md, .tex or .html. Hint: the suffix decides the format." in said
    assert ".tex" not in ttsframe("convert", sample, "-o", "t.xlsx").stderr


def test_json_counts_the_rows(ttsframe: Run, sample: Path) -> None:
    result = ttsframe("curve", sample, "-o", "t.html", "--json")
    assert '"output": "t.html", "n_rows": 6' in result.stdout
    assert pl.DataFrame(Table(Path("t.html").read_text()).rows[1:], orient="row").height == 6
