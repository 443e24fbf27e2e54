"""What results show in a notebook: a chart or table first, every text escaped, never long."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from evaluator_oracle import Echo, echoing

import ttsframe as tts
from ttsframe.evaluator import AggregatedResult, EvaluationResult, Evaluator

HOSTILE = "</td></pre><script>alert(1)</script><img src=x onerror='alert(2)'>\"'&{{7*7}}"
ALLOWED = {
    *("div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "img"),
    *("details", "summary", "ul", "li", "small", "br", "pre"),
}


class View(HTMLParser):
    """Elements, attributes, cells and texts of a fragment."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.order: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._in_cell = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.order.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.rows[-1][-1] += data

    def pictures(self) -> list[str]:
        """Return the texts of the pictures, which must be drawings without a script."""
        texts = []
        for name, value in self.attributes:
            if name == "src":
                kind, _, data = (value or "").partition(",")
                assert kind == "data:image/svg+xml;base64"
                root = ET.fromstring(base64.b64decode(data))  # noqa: S314  (drawn here)
                texts.append("".join(root.itertext()))
        return texts


def view(value: Any) -> View:
    shown = View(value._repr_html_())
    assert set(shown.elements) <= ALLOWED
    assert not [name for name, _ in shown.attributes if name.startswith("on")]
    return shown


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    return tts.simulate_trajectories(30, 8, seed=5)


@pytest.fixture(scope="module")
def scored(run: pl.DataFrame) -> pl.DataFrame:
    return tts.score_trajectories(run)


def test_a_report_shows_its_curve_and_the_table_of_it(run: pl.DataFrame) -> None:
    report = tts.build_report(run, title="Llama & co")
    shown = view(report)
    assert shown.order.index("img") < shown.order.index("table")
    (picture,) = shown.pictures()
    assert "Accuracy by attempts per problem" in picture
    assert "Llama & co" in shown.text
    oracle = report.curve.filter(selector="oracle", budget=8)["accuracy"].item()
    (row,) = (row for row in shown.rows if row[0] == "oracle")
    assert f"{oracle:.1%}" in row[5]
    assert 'report.save("report.html")' in shown.text
    # No date: a stored notebook is the same when it is run again.
    assert report._repr_html_() == tts.build_report(run, title="Llama & co")._repr_html_()
    assert not re.search(r"\d{4}-\d{2}-\d{2}", shown.text)


def test_a_report_of_many_runs_shows_their_table_first(run: pl.DataFrame) -> None:
    runs = pl.concat([run.with_columns(model=pl.lit(f"m{i}")) for i in range(6)])
    shown = view(tts.build_report(runs, by="model", sections="accuracy"))
    assert shown.order.index("table") < shown.order.index("img")
    assert [row[0] for row in shown.rows[1:]] == [f"m{i}" for i in range(6)]


def test_a_validation_lists_its_findings(run: pl.DataFrame) -> None:
    report = tts.validate_trajectories(run.vstack(run.head(1)))
    shown = view(report)
    head, *rows = shown.rows
    assert head == ["severity", "finding", "for example", "hint"]
    assert [row[0] for row in rows] == [finding.severity for finding in report.findings]
    assert [row[1] for row in rows] == [finding.message for finding in report.findings]
    nothing = view(
        tts.validate_trajectories(tts.simulate_trajectories(5, 2, missing_share=0.0, seed=1))
    )
    assert "nothing found" in nothing.text
    assert nothing.rows == []


def test_a_verifier_report_shows_a_chart_then_every_table(scored: pl.DataFrame) -> None:
    report = tts.verifier_report(scored, reductions=["last", "min"])
    shown = view(report)
    (picture,) = shown.pictures()
    assert "How well scores tell right attempts from wrong ones" in picture
    assert shown.order.index("img") < shown.order.index("table")
    head, last, low = shown.rows[:3]
    assert [last[0], low[0]] == ["last", "min"]
    area = report.metrics["auroc_within"].to_list()
    assert [row[head.index("auroc_within")] for row in (last, low)] == [f"{x:.4g}" for x in area]
    for name in ("reliability", "thresholds", "profile", "over_optimization"):
        assert name in shown.text
    assert "first_errors" not in shown.text


def test_a_fit_shows_its_parameters_and_what_it_predicts(scored: pl.DataFrame) -> None:
    fit = tts.fit_pass_at_k(scored)
    shown = view(fit)
    predicted = fit.predict([1, 8, 16, 80, 800])
    rows = [row for row in shown.rows if row[0] in {"1", "8", "16", "80", "800"}]
    assert [row[1] for row in rows] == [f"{value:.4g}" for value in predicted["accuracy"]]
    scale = fit.parameters["scale"].item()
    assert ["scale", f"{scale:.4g}"] in shown.rows


def test_a_fit_without_a_graded_attempt_shows_its_status(scored: pl.DataFrame) -> None:
    ungraded = scored.with_columns(is_correct=pl.lit(None, pl.Boolean))
    assert ["status", "ungraded"] in view(tts.fit_pass_at_k(ungraded)).rows


def test_results_of_an_evaluation_show_a_chart_and_their_levels() -> None:
    evaluator = Evaluator(Echo())
    results = evaluator.evaluate(echoing(8), (1, 3), [1, 5], 4, verbose=False)
    assert isinstance(results, dict)
    for shown, rows in (
        (view(results), sum(result.to_frame().height for result in results.values())),
        (view(results[5]), 3),
    ):
        assert len(shown.pictures()) == 1
        assert len(shown.rows) == 1 + rows
    scaling = evaluator.compare_k_scaling(results)
    shown = view(scaling)
    assert scaling["conclusion"] in shown.text
    assert json.loads(json.dumps(scaling)) == scaling
    by_hand = view(EvaluationResult("hanoi", 5, "majority_vote", {1: 1.0, 2: 0.5}, 2))
    assert by_hand.rows == [["complexity", "accuracy"], ["1", "1"], ["2", "0.5"]]


def test_labels_of_steps_show_their_tables() -> None:
    steps = pl.DataFrame({
        "problem_id": ["a", "a"],
        "solution_id": [0, 0],
        "step": [0, 1],
        "is_correct": [True, False],
        "score": [0.9, 0.2],
    })
    shown = view(tts.process.step_agreement(steps))
    assert shown.elements["caption"] == shown.elements["table"] == 3
    assert shown.text.index("thresholds") < shown.text.index("separation")


@pytest.mark.parametrize(
    "make",
    [
        lambda run: tts.build_report(run, by="model", title=HOSTILE, references={HOSTILE: 0.5}),
        lambda run: tts.validate_trajectories(run.vstack(run.head(1)), by="model"),
        lambda run: tts.verifier_report(tts.score_trajectories(run), by="model"),
        lambda run: tts.fit_pass_at_k(tts.score_trajectories(run), by="model"),
        lambda _: tts.explain_answer(HOSTILE),
        lambda _: EvaluationResult(HOSTILE, 5, HOSTILE, {1: 1.0}, 1),
        lambda _: AggregatedResult(HOSTILE, True, 3, HOSTILE, metadata={"answer": HOSTILE}),
    ],
)
def test_text_of_a_model_is_shown_and_never_run(
    run: pl.DataFrame, make: Callable[[pl.DataFrame], Any]
) -> None:
    hostile = run.with_columns(
        problem_id=pl.col("problem_id") + HOSTILE,
        answer=pl.when(pl.col("attempt") == 0).then(pl.lit(HOSTILE)).otherwise("answer"),
        problem=pl.lit(HOSTILE),
        model=pl.lit(HOSTILE),
    )
    shown = view(make(hostile))
    assert shown.elements["script"] == 0
    assert "alert(1)" in shown.text
    shown.pictures()


def test_a_megabyte_of_text_and_a_thousand_rows_stay_short(scored: pl.DataFrame) -> None:
    long = AggregatedResult(
        "x\n" * 10**6, True, 1, "majority_vote", metadata={"answer": "y" * 10**6}
    )
    assert len(long._repr_html_()) < 5_000
    runs = pl.concat([scored.with_columns(run=pl.lit(i)) for i in range(60)])
    fit = tts.fit_pass_at_k(runs, by="run")
    shown = view(fit)
    assert len(shown.rows) == 2 * 21
    assert "40 more rows" in shown.text
    assert "280 more rows" in shown.text
