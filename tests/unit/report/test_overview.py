"""A page of many runs: sorted, a table at the top, tables before charts."""

from __future__ import annotations

import re
from html import unescape

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.report.overview import rank_runs, sort_runs

SHARES = {"algebra": 0.9, "Logic <x>": 0.3, "geometry": 0.5, "topology": 0.7, "counting": 0.5}


def make_run(shares: dict[str, float]) -> pl.DataFrame:
    """Return ten problems a subject, of which a share is always solved."""
    rows = [
        (subject, f"{subject} {i}", attempt, "1" if i < share * 10 else "2")
        for subject, share in shares.items()
        for i in range(10)
        for attempt in range(2)
    ]
    names = ["subject", "problem_id", "attempt", "answer"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(gold=pl.lit("1"))


@pytest.fixture(scope="module")
def html() -> str:
    return tts.build_report(make_run(SHARES), by="subject").to_html()


def tables(html: str) -> list[list[list[str]]]:
    """Return the texts of each table's cells."""
    return [
        [
            [
                unescape(re.sub("<small>.*?</small>", "", cell))
                for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)
            ]
            for row in re.findall("<tr>(.*?)</tr>", table, flags=re.DOTALL)
        ]
        for table in re.findall("<table>(.*?)</table>", html, flags=re.DOTALL)
    ]


BY_ACCURACY = ["algebra", "topology", "counting", "geometry", "Logic <x>"]


def test_a_table_of_all_runs_is_at_the_top_sorted_by_accuracy(html: str) -> None:
    first = html.index("<table>")
    assert first < html.index("id='contents'")
    head, *rows = tables(html)[0]
    assert head == ["subject", "problems", "attempts", "majority vote", "oracle"]
    assert [row[0] for row in rows] == BY_ACCURACY
    assert [row[3] for row in rows] == ["90.0%", "70.0%", "50.0%", "50.0%", "30.0%"]
    assert {(row[1], row[2]) for row in rows} == {("10", "2")}
    lead = "5 runs: the accuracy of majority vote with all attempts is between "
    assert f"{lead}30.0% (Logic &lt;x&gt;) and 90.0% (algebra)." in html


def test_every_section_has_the_runs_in_this_order(html: str) -> None:
    found = [
        [row[0] for row in rows[1:] if row[0] in SHARES]
        for rows in tables(html)
        if rows[0][0] == "subject"
    ]
    assert len(found) >= 3
    for names in found:
        assert list(dict.fromkeys(names)) == BY_ACCURACY


def test_tables_stand_before_charts(html: str) -> None:
    sections = re.findall("<section.*?</section>", html, flags=re.DOTALL)
    drawn = [section for section in sections if "<figure>" in section and "<table>" in section]
    assert drawn
    for section in drawn:
        assert section.index("<table>") < section.index("<figure>")


def test_a_few_runs_stay_in_their_order_and_have_sentences() -> None:
    few = {name: SHARES[name] for name in ("Logic <x>", "algebra", "geometry", "topology")}
    html = tts.build_report(make_run(few), by="subject").to_html()
    assert "algebra: 2 attempts at each of 10 problems: majority vote 90.0%" in html
    accuracy = next(rows for rows in tables(html) if rows[0][:2] == ["subject", "selector"])
    assert list(dict.fromkeys(row[0] for row in accuracy[1:])) == sorted(few)


def test_ungraded_runs_come_last_with_their_agreement() -> None:
    run = make_run(SHARES).with_columns(gold=pl.when(pl.col("subject") != "algebra").then("gold"))
    html = tts.build_report(run, by="subject").to_html()
    head, *rows = tables(html)[0]
    assert head[-1] == "majority vote, agreement"
    assert [row[0] for row in rows] == [*BY_ACCURACY[1:], "algebra"]
    assert rows[-1][3:] == ["—", "—", "100.0%"]


def test_a_run_without_a_name_has_a_rank_too() -> None:
    names = [None, "a", "b", "c", "d"]
    curve = pl.DataFrame({
        "run": names,
        "selector": ["majority_vote"] * 5,
        "budget": [1] * 5,
        "accuracy": [0.5, None, 0.1, 0.9, 0.5],
    })
    ranks = rank_runs(curve, None, ["run"])
    assert ranks is not None
    table = pl.DataFrame({"run": [*reversed(names), None], "x": range(6)})
    assert sort_runs(table, ranks)["run"].to_list() == ["c", "d", None, None, "b", "a"]
    assert rank_runs(curve.head(4), None, ["run"]) is None
    assert rank_runs(curve, None, []) is None
