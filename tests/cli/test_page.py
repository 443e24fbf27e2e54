"""The page that the command writes: its title, what it says about itself, and no PDF."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def test_the_page_names_title_source_and_command(
    ttsframe: Run, sample: Path, tmp_path: Path
) -> None:
    title = "Llama & 'friends' <1B>"
    options = ["--sections", "loaded", "--title", title, "-q"]
    assert ttsframe("report", sample, "-o", "page.html", *options).exit_code == 0
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.findall("<h1>(.*)</h1>", html) == ["Llama &amp; &#39;friends&#39; &lt;1B&gt;"]
    (command,) = re.findall("<dt>Command</dt><dd><code>(.*)</code>", html)
    assert unescape(command) == (
        f"ttsframe report {sample} -o page.html --sections loaded "
        "--title 'Llama & '\"'\"'friends'\"'\"' <1B>' -q"
    )
    assert f"<dt>Sources</dt><dd>{sample}</dd>" in html
    assert "<p class='origin'>sample.jsonl · " in html


def test_a_pdf_is_refused_before_any_work(ttsframe: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = ttsframe("report", "empty.jsonl", "-o", "report.pdf")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: report.pdf: a page is HTML, must end in .html. Hint: write report.html, open it in a "
        "browser and print it to PDF there: charts, panels and tables are laid out anew for paper.\n"
    )


def test_a_wrong_date_is_refused(
    ttsframe: Run, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    result = ttsframe("report", sample)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: SOURCE_DATE_EPOCH == 'soon' in the environment, must be"
    )
