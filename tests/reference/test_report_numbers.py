"""Every number of a report's page, in tables and in sentences, against plain Python on the same file.

Not covered: captions (they hold the confidence level alone), the charts' own data, the messages of the
validation, and both ends of the intervals of token ratios, which are resampled: those are held to lie
on both sides of the ratio. Which problems a threshold is chosen on is drawn by the package.
"""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import report_oracle
from report_oracle import Around, Expected, Run

import ttsframe as tts

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample.jsonl"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
SECTIONS = {
    "sample": {"loaded", "health", "votes", "accuracy", "selection-gap", "difficulty", "compute-optimal", "cost", "verifier", "steps"},
    "beam16": {"loaded", "health", "votes", "accuracy", "selection-gap", "verifier", "steps"},
    "qwen_math": {"loaded", "health", "votes", "accuracy", "selection-gap", "verifier"},
    "boinf": {"loaded", "health", "votes", "accuracy", "selection-gap", "difficulty", "cost"},
}  # fmt: skip


class Page(HTMLParser):
    """The sentences and tables of each section; a table is a caption and rows of heads and cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.lead: list[str] = []
        self.answers: dict[str, list[str]] = {}
        self.tables: dict[str, list[tuple[str, list[tuple[list[str], list[str]]]]]] = {}
        self._section = ""
        self._text: list[str] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "section":
            self._section = values["id"] or ""
            self.answers[self._section], self.tables[self._section] = [], []
        elif tag == "p" and values.get("class") in {"lead", "answer"}:
            self._text = self.lead if values["class"] == "lead" else self.answers[self._section]
            self._text.append("")
        elif tag == "caption":
            self.tables[self._section].append(("", []))
        elif tag == "tr" and self._section:
            self.tables[self._section][-1][1].append(([], []))
        elif tag in {"th", "td"}:
            self._text = self.tables[self._section][-1][1][-1][tag == "td"]
            self._text.append("")
        elif tag == "small" and self._text:
            self._text[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in {"p", "th", "td"}:
            self._text = None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text[-1] += data
        elif self.lasttag == "caption" and self.tables[self._section][-1][0] == "":
            _, rows = self.tables[self._section][-1]
            self.tables[self._section][-1] = (data, rows)


def check_numbers(text: str, expected: list[Any], where: str) -> None:
    """Compare the numbers of a text with exact ones, to the decimals that it shows."""
    if expected and isinstance(expected[0], bool):
        assert text == ("yes" if expected[0] else "no"), where
        return
    if expected == [math.inf]:
        assert text == "inf", where
        return
    shown = NUMBER.findall(text)
    assert len(shown) == len(expected), (where, text, expected)
    for number, value in zip(shown, expected, strict=True):
        if value is None:
            continue
        _, _, decimals = number.partition(".")
        found, slack = float(number.replace(",", "")), 0.5 * 10.0 ** -len(decimals) + 1e-9
        if isinstance(value, Around):
            assert value.sign * (found - value.estimate) >= -slack, (where, text)
        else:
            assert abs(found - value) <= slack, (where, text, number, value)


def check_section(page: Page, name: str, expected: Expected) -> None:
    """Compare a section's sentences and every cell of its tables."""
    sentence = " ".join(page.answers[name])
    for word in expected.words:
        shown = " ".join(str(word).split())
        assert shown in sentence
        sentence = sentence.replace(shown, "")
    check_numbers(sentence, expected.sentence, name)
    assert len(page.tables[name]) == len(expected.tables)
    for caption, (_, *rows) in page.tables[name]:
        (table,) = [of for start, of in expected.tables.items() if caption.startswith(start)]
        assert len(rows) == len(table), (name, caption)
        for heads, cells in rows:
            n_more = max(map(len, table)) - len(heads)
            key = (*heads, *cells[:n_more])
            wanted = table[key]
            assert len(wanted) == len(cells) - n_more, (name, caption, key)
            for text, values in zip(cells[n_more:], wanted, strict=True):
                check_numbers(text, values, f"{name}, {caption}, {key}")


def read(name: str, folder: Path) -> tuple[Run, pl.DataFrame | pl.LazyFrame]:
    """Read a file in plain Python, and as the package does; the package knows no format of BoInf's."""
    paths = {
        "sample": SAMPLE,
        "beam16": folder / "search_and_learn" / "beam16_llama3.2-3b-awq_q100.jsonl",
        "qwen_math": folder / "qwen_math" / "math_cot_50.jsonl",
        "boinf": folder / "boinf" / "analysis_aime2024_Qwen3-4B.jsonl",
    }
    path = paths[name]
    if name == "boinf":
        run = report_oracle.read_boinf(path)
        columns = ["problem_id", "attempt", "answer", "gold", "n_tokens"]
        return run, pl.DataFrame([{column: a[column] for column in columns} for a in run.attempts])
    if name == "qwen_math":
        return report_oracle.read_qwen_math(path), tts.scan_trajectories(path)
    return report_oracle.read_search_and_learn(path), tts.scan_trajectories(path)


def check_page(name: str, folder: Path) -> None:
    run, attempts = read(name, folder)
    report = tts.build_report(attempts)
    page = Page(report.to_html())
    expected, lead = report_oracle.expect(run)
    assert set(expected) == SECTIONS[name]
    assert set(page.answers) == SECTIONS[name]
    for section, shown in expected.items():
        check_section(page, section, shown)
    (sentence,) = page.lead
    check_numbers(sentence, lead, "lead")
    limit = report_oracle.majority_limit(run)
    found = None if report.majority_limit is None else report.majority_limit.row(0, named=True)
    assert found == (limit and pytest.approx(limit, rel=1e-9, abs=1e-12))
    if report.efficiency is not None:
        # The sentence names the line whose interval begins highest; its numbers are the table's.
        surest = report.efficiency.sort("ci_low", descending=True).row(0, named=True)
        shown = [f"{surest[of]:.1f}" for of in ("gain", "ci_low", "ci_high")]
        assert f"with {shown[0]} ({shown[1]} to {shown[2]}) times fewer" in page.answers["cost"][0]


def test_every_number_of_the_sample_is_that_of_plain_python() -> None:
    check_page("sample", SAMPLE.parent)


@pytest.mark.parametrize("name", ["beam16", "qwen_math", "boinf"])
def test_every_number_of_a_real_file_is_that_of_plain_python(name: str, shared_data: Path) -> None:
    check_page(name, shared_data)


def halves_of_sample() -> tuple[dict[str, Run], pl.DataFrame | pl.LazyFrame]:
    """Return the early and the late attempts of the sample as two runs."""
    run, attempts = read("sample", SAMPLE.parent)
    is_late = pl.col("attempt") >= 8
    halves = attempts.with_columns(
        half=pl.when(is_late).then(pl.lit("late")).otherwise(pl.lit("early")),
        attempt=pl.col("attempt") % 8,
    )
    runs = {
        name: run._replace(
            problems={
                problem: [a | {"attempt": a["attempt"] % 8} for a in rows[start : start + 8]]
                for problem, rows in run.problems.items()
            }
        )
        for name, start in (("early", 0), ("late", 8))
    }
    return runs, halves


def test_every_number_of_a_comparison_is_that_of_plain_python() -> None:
    runs, halves = halves_of_sample()
    page = Page(tts.build_report(halves, by="half", sections="comparison").to_html())
    assert set(page.answers) == {"loaded", "accuracy", "comparison"}
    expected = report_oracle.expect_comparison(runs, [1, 2, 4, 8])
    check_section(page, "comparison", expected)


def check_ranking(
    runs: dict[str, Run], attempts: pl.DataFrame | pl.LazyFrame, by: str, budget: int
) -> None:
    report = tts.build_report(attempts, by=by, sections="ranking")
    check_section(Page(report.to_html()), "ranking", report_oracle.expect_ranking(runs, budget))
    assert report.ranking is not None
    shares = report.ranking.group_by("selector").agg(pl.col("share_of_resamples_best").sum())
    assert shares["share_of_resamples_best"].to_list() == pytest.approx([1.0] * shares.height)
    # The best has at least as many resamples as any other, since the medians of these differ.
    first = report.ranking.sort("share_of_resamples_best", descending=True).unique(
        "selector", keep="first", maintain_order=True
    )
    assert first["rank"].to_list() == [1] * first.height


def test_every_number_of_a_ranking_is_that_of_plain_python() -> None:
    runs, halves = halves_of_sample()
    check_ranking(runs, halves, "half", 8)


def test_every_number_of_a_ranking_of_real_runs_is_that_of_plain_python(shared_data: Path) -> None:
    models = ("Qwen3-4B", "LIMO-v2", "Phi-4-reasoning")
    runs = {
        name: report_oracle.read_boinf(shared_data / "boinf" / f"analysis_aime2024_{name}.jsonl")
        for name in models
    }
    columns = ["problem_id", "attempt", "answer", "gold", "n_tokens"]
    attempts = pl.DataFrame([
        {"model": name, **{column: a[column] for column in columns}}
        for name, run in runs.items()
        for a in run.attempts
    ])
    budget = max(set.intersection(*(set(report_oracle.budgets_of(run)) for run in runs.values())))
    check_ranking(runs, attempts, "model", budget)


def test_every_number_of_searches_is_that_of_plain_python() -> None:
    problems, generator, prm = tts.search.simulate(12, seed=0)
    nodes, solutions = [], []
    runs: dict[tuple[str, int], list[Run]] = {}
    for policy in (tts.search.Beam(4), tts.search.BestOfN(4)):
        for seed in (0, 1):
            tree = tts.search.search(problems, generator, prm, policy, seed=seed)
            found = tts.search.to_trajectories(tree, policy=policy, problems=problems)
            runs.setdefault((policy.name, 4), []).append(report_oracle.read_solutions(found))
            label = {"policy": policy.name, "width": 4, "seed": seed}
            named = [pl.lit(value).alias(name) for name, value in label.items()]
            nodes.append(tree.with_columns(named))
            solutions.append(found.with_columns(named))
    page = Page(
        tts.build_report(
            pl.concat(solutions),
            nodes=pl.concat(nodes),
            by=["policy", "width"],
            replicates="seed",
            sections="search",
        ).to_html()
    )
    sentences, tables = report_oracle.expect_search(pl.concat(nodes).to_dicts(), runs)
    assert len(page.answers["search"]) == len(sentences)
    for answer, expected in zip(page.answers["search"], sentences, strict=True):
        _, _, said = answer.partition(": ")
        check_numbers(said, expected, "search")
    page.answers["search"] = [""]
    check_section(page, "search", report_oracle.Expected([], tables))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("36.8% (25.6 to 49.3)", [36.7, 25.6, 49.3]), ("36.7%", [36.7, 25.6]), ("1,000", [100])],
)
def test_a_wrong_number_is_noticed(text: str, expected: list[float]) -> None:
    with pytest.raises(AssertionError):
        check_numbers(text, expected, "a wrong number")
