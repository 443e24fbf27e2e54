"""The sections of a page: questions, answers in words, and nothing that runs or grows."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields
from functools import partial
from html.parser import HTMLParser
from typing import get_args

import polars as pl
import pytest

import ttsframe as tts
from ttsframe._wording import shorten_paths
from ttsframe.defaults import PickOptions, plan_picks
from ttsframe.errors import DataError
from ttsframe.report import SECTIONS
from ttsframe.report.page import draw_figure, environment
from ttsframe.report.parts import Figure, Part, make_budget_table, make_table
from ttsframe.report.report import SectionName
from ttsframe.report.runs import RunData

ALONE = {"comparison", "ranking", "search"}
"""Sections that a single run without trees has not."""
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{x}}\u2028\n"


class Page(HTMLParser):
    """Elements, the text of headings, and what is said in each section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.questions: list[str] = []
        self.anchors: list[str] = []
        self.attributes: set[str] = set()
        self.sections: dict[str, str] = {}
        self._stack: list[str] = []
        self._section = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.elements.append(tag)
        self.attributes |= values.keys()
        self._stack.append(tag)
        if tag == "section":
            self._section = values["id"] or ""
            self.sections[self._section] = ""
        if tag == "a":
            self.anchors.append((values["href"] or "").removeprefix("#"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self._section = ""
        while self._stack and self._stack.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._section:
            self.sections[self._section] += data
        if self._stack and self._stack[-1] == "h2" and self._section:
            self.questions.append(data)


def render_part(part: Part) -> str:
    """Write one part as HTML."""
    source = "{% from 'parts.html.jinja' import render %}{{ render(part) }}"
    return environment().from_string(source).render(part=part)


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    return tts.simulate_trajectories(60, 16, seed=5, keys=True)


@pytest.fixture(scope="module")
def report(run: pl.DataFrame) -> tts.Report:
    return tts.build_report(run)


@pytest.fixture(scope="module")
def page(report: tts.Report) -> Page:
    return Page(report.to_html())


def test_every_section_is_written_in_the_order_of_the_registry(page: Page) -> None:
    assert get_args(SectionName) == tuple(SECTIONS)
    names = [name.replace("_", "-") for name in SECTIONS if name not in ALONE]
    assert list(page.sections) == names
    assert page.anchors == names
    assert all(question.endswith("?") for question in page.questions)
    assert len(set(page.questions)) == len(names)


def test_the_fields_of_a_report_are_what_its_sections_make(run: pl.DataFrame) -> None:
    data = RunData(plan_picks(run, PickOptions()))
    names = [name for section in SECTIONS.values() for name in section.tables]
    assert len(names) == len(set(names))
    assert set(names) <= {field.name for field in fields(tts.Report)}
    for section in SECTIONS.values():
        assert section.module.make(data, data.runs).keys() == set(section.tables)
        assert set(section.reads) <= {field.name for field in fields(tts.Report)}


def test_a_section_begins_with_its_answer(page: Page, report: tts.Report) -> None:
    for name, sentences in report.answers().items():
        assert len(sentences) == 1
        (sentence,) = sentences
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert page.sections[name.replace("_", "-")].split("\n")[2] == sentence


def test_answers_say_what_the_tables_say(report: tts.Report, run: pl.DataFrame) -> None:
    answers = {name: texts[0] for name, texts in report.answers().items()}
    per_problem = run.group_by("problem_id").agg(
        pl.col("is_correct").any().alias("solved"),
        pl.col("is_correct").sort_by("score", descending=True).first().alias("chosen"),
    )
    right, solved = per_problem["chosen"].mean(), per_problem["solved"].mean()
    assert f"best of n (score) answers {right:.1%} of 60 problems" in answers["selection_gap"]
    assert f"; {solved - right:.1%} (" in answers["selection_gap"]
    assert f"and {1 - solved:.1%} have none." in answers["selection_gap"]

    tokens = run.group_by("problem_id").agg(pl.col("n_tokens").sum())["n_tokens"].mean()
    assert f"{right:.1%}" in answers["cost"]
    assert f"costs {tokens:,.0f} generated tokens per problem" in answers["cost"]

    pairs = run.join(run, on="problem_id").filter("is_correct", ~pl.col("is_correct_right"))
    wins = (pl.col("score") > pl.col("score_right")).mean().alias("wins")
    auroc = pairs.group_by("problem_id").agg(wins)["wins"].mean()
    assert f"outscores a wrong one {auroc:.1%} (" in answers["verifier"]
    assert "(50% is chance; 51 problems with both; scores: column score)" in answers["verifier"]

    votes = report.curve.filter(selector="majority_vote").sort("budget")["accuracy"]
    assert answers["accuracy"].startswith(
        f"Majority vote is at {votes[0]:.1%} with 1 attempt; with 16 attempts, majority vote is at "
    )
    is_mixed = pl.col("is_correct").any() & ~pl.col("is_correct").all()
    mixed = run.filter(is_mixed.over("problem_id"))
    for end in ("last", "first"):
        score = getattr(pl.col("step_scores").list, end)()
        cells = mixed.group_by("is_correct", "problem_id").agg(score.mean())
        means = dict(cells.group_by("is_correct").agg(pl.col("step_scores").mean()).rows())
        assert (
            f"{means[True]:.2f}{' in right ones' if end == 'last' else ''} and " in answers["steps"]
        )
        assert f" and {means[False]:.2f}" in answers["steps"]
    n_mixed = mixed["problem_id"].n_unique()
    assert answers["steps"].startswith(f"At the {n_mixed} problems with right and wrong attempts, ")


def test_a_choice_that_does_not_stand_out_is_not_praised(report: tts.Report) -> None:
    (answer,) = report.answers()["compute_optimal"]
    ends = report.optimal.filter(budget=8)
    honest = ends.filter(selector="compute_optimal").row(0, named=True)
    seen = ends.filter(selector="compute_optimal_in_sample").row(0, named=True)
    single = ends.filter(pl.col("selector").is_in(["majority_vote", "weighted_vote", "best_of_n"]))
    assert honest["ci_low"] < single["accuracy"].max() < honest["ci_high"]
    assert re.search(rf" reach(es)? {single['accuracy'].max():.1%}: a difference of ", answer)
    assert ", within chance. " in answer
    assert f"would seem to reach {seen['accuracy']:.1%}." in answer


def test_best_of_n_that_turns_down_is_said_to() -> None:
    flawed = tts.simulate_trajectories(300, 32, seed=3, keys=True, score_strength=-1.5)
    report = tts.build_report(flawed, sections="verifier")
    (answer,) = report.answers()["verifier"]
    assert "Best-of-n accuracy peaks at 1 attempt and declines by " in answer


@pytest.mark.parametrize("is_right", [True, False])
def test_a_run_without_any_difference_has_a_sensible_page(
    run: pl.DataFrame, is_right: bool
) -> None:
    alike = run.with_columns(pl.col("answer_key").fill_null("3:1"), is_correct=pl.lit(is_right))
    report = tts.build_report(alike)
    (answer,) = report.answers()["difficulty"]
    assert answer.startswith(
        "Majority vote gains at no level from 1 to 8 attempts. All problems are"
    )
    page = Page(report.to_html())
    assert "verifier" not in page.sections
    assert f"{'100.0' if is_right else '0.0'}%" in page.sections["accuracy"]


def test_what_a_run_says_is_shown_and_never_run(run: pl.DataFrame) -> None:
    names = {"model": pl.lit("m"), "problem_id": pl.col("problem_id")}
    honest = tts.build_report(run.with_columns(**names), by="model", references={"x": 0.5})
    hostile = run.with_columns(
        problem_id=pl.col("problem_id") + HOSTILE,
        answer=pl.col("answer") + HOSTILE,
        gold=pl.col("gold") + HOSTILE,
        problem=pl.lit(HOSTILE),
    ).with_columns(pl.lit(HOSTILE).alias(HOSTILE))
    report = tts.build_report(hostile, by=HOSTILE, title=HOSTILE, references={HOSTILE: 0.5})
    page, harmless = Page(report.to_html()), Page(honest.to_html())
    names = [name.replace("_", "-") for name in SECTIONS if name not in ALONE]
    assert list(page.sections) == list(harmless.sections) == names
    for tag in ("script", "img", "style", "meta", "section", "a", "table", "figure", "details"):
        assert page.elements.count(tag) == harmless.elements.count(tag), tag
    assert not [name for name in page.attributes if name.startswith("on")]
    for name, text in page.sections.items():
        assert "alert(1)" in text, name


def test_equal_runs_give_equal_pages(run: pl.DataFrame, report: tts.Report) -> None:
    shuffled = run.sample(fraction=1.0, shuffle=True, seed=3).lazy()
    again = tts.build_report(shuffled)
    assert again.to_html() == report.to_html()
    assert again.answers() == report.answers()


def test_a_page_does_not_grow_with_the_run(report: tts.Report) -> None:
    size = len(report.to_html())
    larger = tts.simulate_trajectories(600, 16, seed=5, keys=True)
    assert len(tts.build_report(larger).to_html()) < 1.1 * size
    assert size < 1_300_000


def test_many_runs_are_in_the_tables_and_a_few_are_drawn(run: pl.DataFrame) -> None:
    few = run.filter(pl.col("problem_id") < "sim-000020")
    runs = pl.concat([few.with_columns(model=pl.lit(f"m{i:02d}")) for i in range(7)])
    report = tts.build_report(runs, by="model")
    page = Page(report.to_html())
    assert "And 3 more runs." in page.sections["cost"]
    assert "The chart shows the first 2 of 7 runs." in page.sections["selection-gap"]
    assert "The chart shows the first 4 of 7 runs." in page.sections["difficulty"]
    assert "The chart shows the first 6 of 7 runs." in page.sections["verifier"]
    for name in ("selection-gap", "difficulty", "compute-optimal", "cost", "verifier"):
        assert "m06" in page.sections[name]
    assert len(report.answers()["cost"]) == 7


def test_many_lines_are_in_the_table_and_a_few_are_drawn(run: pl.DataFrame) -> None:
    report = tts.build_report(run, reductions=["last", "min", "mean", "prod"])
    page = Page(report.to_html())
    assert "The chart shows the first 6 of 9 lines." in page.sections["selection-gap"]
    assert "The table has 1 more reduction." in page.sections["difficulty"]
    assert "Not drawn" not in "".join(page.sections.values())


def test_a_chart_that_cannot_be_drawn_costs_itself_alone() -> None:
    def refuse(rows: pl.DataFrame) -> None:
        raise DataError(f"curve has {rows.height} rows & no room. Hint: filter it.")

    figure = Figure("name", "caption", partial(refuse, pl.DataFrame({"a": [1]})))
    specifications: dict[str, dict[str, object]] = {}
    html = render_part(draw_figure(figure, specifications))
    assert html == "<p>Not drawn: curve has 1 rows &amp; no room.</p>\n"
    assert specifications == {}


def test_what_json_has_no_word_for_is_null(run: pl.DataFrame) -> None:
    is_correct = pl.col("is_correct") & (pl.col("attempt") == 0)
    flawed = run.with_columns(
        is_correct=is_correct, score=pl.when(is_correct).then(0.5).otherwise(1)
    )
    report = tts.build_report(flawed, references={"greedy": 0.3})
    assert report.verifier.thresholds["threshold"].is_infinite().any()
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    chosen = [row["threshold"] for row in values["verifier"]["thresholds"]]
    assert None in chosen
    assert math.inf not in chosen
    assert len(values["level_curve"]) == report.level_curve.height
    assert values["answers"]["cost"] == report.answers()["cost"]
    assert values["omitted"] == {}
    assert "levels" not in values


def test_a_table_holds_a_few_hundred_rows_and_counts_the_others() -> None:
    frame = pl.DataFrame({"name": range(250), "n": [1_000] * 250})
    html = render_part(make_table("Caption", frame.select("name"), frame.select("n")))
    assert html.count("<tr>") == 201
    assert "<td>1,000</td>" in html
    assert "50 more rows not shown." in html


def test_columns_of_a_run_may_have_the_names_of_ours() -> None:
    points = pl.DataFrame({
        "problems": ["a", "a", "b"],
        "8": ["x", "x", "y"],
        "budget": [1, 8, 8],
        "text": ["low\n1 to 2", "high", None],
        "n": [3, 4, 5],
    })
    names = ["problems", "8"]
    cells = points.select("budget", cell="text", problems="n")
    html = render_part(make_budget_table("Caption", points.select(names), cells))
    name = "<th scope='row'>{}</th>".format
    rows = re.findall(r"<tr>(.*?)</tr>", html.replace("\n", ""))
    assert re.findall(r">([^<>]+)</th>", rows[0]) == ["problems", "8", "1", "8", "problems"]
    assert rows[1:] == [
        f"{name('a')}{name('x')}<td>low<small>1 to 2</small></td><td>high</td><td>4</td>",
        f"{name('b')}{name('y')}<td>—</td><td>—</td><td>5</td>",
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["runs/a/x.jsonl", "runs/b/x.jsonl"], ["a", "b"]),
        (["runs/a.jsonl", "runs/b.jsonl"], ["a.jsonl", "b.jsonl"]),
        (["/d/a/s/x", "/d/b/c/s/x"], ["a", "b/c"]),
        (["a/b", "a/b/c"], ["b", "b/c"]),
        (["x/y/x", "x/x"], ["y/x", "x"]),
        (["a/b/c"], ["a/b/c"]),
        (["a", "a/b"], ["a", "a/b"]),
        ([], []),
    ],
)
def test_names_keep_what_tells_them_apart(names: list[str], expected: list[str]) -> None:
    assert shorten_paths(names) == dict(zip(names, expected, strict=True))


def test_runs_from_files_are_named_by_what_differs(run: pl.DataFrame) -> None:
    paths = [f"/data/{name}/samples.jsonl" for name in ("small", "large")]
    few = run.filter(pl.col("attempt") < 4)
    runs = pl.concat([few.with_columns(source_file=pl.lit(path)) for path in paths])
    report = tts.build_report(runs, by="source_file")
    page = Page(report.to_html())
    assert "/data/small/samples.jsonl" in page.sections["loaded"]
    assert "samples.jsonl" not in page.sections["accuracy"]
    assert "small: majority vote" in page.sections["accuracy"]
    assert report.curve["source_file"].unique().sort().to_list() == sorted(paths)
