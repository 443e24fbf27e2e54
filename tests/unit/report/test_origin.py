"""What a page says about itself: sources, command, options, date and versions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from html import unescape
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import ParameterError
from ttsframe.report.origin import describe_origin, hide_secrets

DATE = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    return tts.simulate_trajectories(6, 2, seed=5)


@pytest.fixture(scope="module")
def report(run: pl.DataFrame) -> tts.report.Report:
    return tts.build_report(
        run,
        sections="loaded",
        budgets=[1, 2],
        references={"greedy": 0.3},
        policy=tts.answers.AnswerPolicy(percent="fraction"),
    )


def terms(html: str) -> dict[str, str]:
    """Return the terms at the end of a page."""
    (footer,) = re.findall("<footer>(.*)</footer>", html, flags=re.DOTALL)
    pairs = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", footer, flags=re.DOTALL)
    return {name: unescape(re.sub("<[^>]*>", "", text)) for name, text in pairs}


def test_the_page_says_where_it_comes_from(report: tts.report.Report) -> None:
    command = "ttsframe report 'a b.jsonl' --title '<b>'"
    html = report.to_html(sources=["runs/a b.jsonl"], command=command, date=DATE)
    shown = terms(html)
    assert shown["Sources"] == "runs/a b.jsonl"
    assert shown["Command"] == command
    assert shown["Date"] == "2026-03-04 05:06 UTC"
    assert f"ttsframe {version('ttsframe')}, polars {pl.__version__}" in shown["Versions"]
    for option in (
        "budgets: 1, 2",
        "references: greedy=0.3",
        "policy: percent=fraction",
        "sections: loaded",
        "confidence_level: 0.95",
    ):
        assert option in shown["Options"].split(" · ")
    assert "selectors" not in shown["Options"]
    top = f"<p class='origin'>a b.jsonl · 2026-03-04 05:06 UTC · ttsframe {version('ttsframe')}</p>"
    assert top in html


def test_the_date_is_the_only_difference_between_pages_of_a_run(
    report: tts.report.Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = report.to_html(date=DATE)
    assert page == report.to_html(date=DATE.astimezone(timezone(timedelta(hours=9))))
    later = report.to_html(date=DATE + timedelta(days=1))
    assert later != page
    assert later.replace("2026-03-05", "2026-03-04") == page
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(DATE.timestamp())))
    assert report.to_html() == page
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ParameterError, match="SOURCE_DATE_EPOCH == 'yesterday'"):
        report.to_html()


def test_without_the_variable_the_date_is_now(
    report: tts.report.Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    before = datetime.now(UTC).replace(second=0, microsecond=0)
    shown = datetime.strptime(
        terms(report.to_html())["Date"].replace("UTC", "+0000"), "%Y-%m-%d %H:%M %z"
    )
    assert before <= shown <= datetime.now(UTC)


def test_files_are_named_by_the_column_where_nobody_else_does(run: pl.DataFrame) -> None:
    both = pl.concat([
        run.with_columns(source_file=pl.lit(name)) for name in ("b.jsonl", "a.jsonl")
    ])
    html = tts.build_report(both, by="source_file", sections="loaded").to_html()
    assert "<dt>Sources</dt><dd>a.jsonl<br>b.jsonl</dd>" in html
    assert "<p class='origin'>2 sources · " in html


def test_a_thousand_files_do_not_fill_the_page() -> None:
    origin = describe_origin(
        [f"{i}.jsonl" for i in range(1_000)], command="x" * 10**6, date=DATE, options={}
    )
    assert len(origin.sources) == 20
    assert origin.n_more_sources == 980
    assert origin.headline.startswith("1,000 sources · ")
    assert len(origin.command or "") <= 1_000


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:secret@host/a.jsonl", "https://…@host/a.jsonl"),
        ("https://host/a.parquet?X-Signature=abc&b=c", "https://host/a.parquet?…"),
        (
            "ttsframe report 'https://h/a?token=1' -o b.html",
            "ttsframe report 'https://h/a?…' -o b.html",
        ),
        ("hf://datasets/me/run@main/a.parquet", "hf://datasets/me/run@main/a.parquet"),
        ("runs/what?.jsonl", "runs/what?.jsonl"),
    ],
)
def test_passwords_and_signatures_are_not_shown(address: str, shown: str) -> None:
    assert hide_secrets(address) == shown


def test_a_page_is_never_written_as_pdf(report: tts.report.Report, tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"must end in .html. Hint: write report.html, open it"
    ):
        report.save(tmp_path / "report.PDF")
    assert not list(tmp_path.iterdir())
