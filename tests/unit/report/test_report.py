"""Reports: what is chosen where nothing is said, what is counted, and a page that only shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, DataError, ParameterError, SourceError

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{x}}\u2028"


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    return tts.simulate_trajectories(30, 8, seed=5)


@pytest.fixture(scope="module")
def report(run: pl.DataFrame) -> tts.Report:
    return tts.build_report(run)


class Page(HTMLParser):
    """The elements of a page, and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._stack: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += attrs
        self._stack.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._stack and self._stack.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._stack and self._stack[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self._stack:
            self.text += data


def ragged(frame: pl.DataFrame) -> pl.DataFrame:
    """Cut two problems in thirty to three attempts."""
    short = frame["problem_id"].unique().sort()[:2].implode()
    return frame.filter(~pl.col("problem_id").is_in(short) | (pl.col("attempt") < 3))


def test_the_curve_is_the_one_that_the_parts_make(run: pl.DataFrame, report: tts.Report) -> None:
    expected = (
        run
        .pipe(tts.score_trajectories)
        .pipe(
            tts.select_answers,
            selectors=["majority_vote", "weighted_vote", "best_of_n", "oracle"],
            reductions="last",
            budgets=[1, 2, 4, 8],
        )
        .pipe(tts.scaling_curve)
    )
    assert report.agreement is None
    assert_frame_equal(report.curve, expected, check_row_order=False)
    # Lines stand in the order of the registry.
    order = report.curve["selector"].unique(maintain_order=True).to_list()
    assert order == ["majority_vote", "weighted_vote", "best_of_n", "oracle"]


@pytest.mark.parametrize(
    ("n_attempts", "budgets"),
    [(1, [1]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8]), (9, [1, 2, 4, 8, 9])],
)
def test_budgets_are_powers_of_two_and_all(n_attempts: int, budgets: list[int]) -> None:
    report = tts.build_report(tts.simulate_trajectories(5, n_attempts, seed=1), sections="accuracy")
    assert report.curve["budget"].unique().sort().to_list() == budgets


def test_a_few_short_problems_cost_themselves_and_not_the_budget(run: pl.DataFrame) -> None:
    report = tts.build_report(ragged(run), sections="accuracy")
    assert report.curve["budget"].max() == 8
    assert report.curve["n_short"].unique().to_list() == [2]
    assert report.loaded.select("attempts_min", "attempts_median", "attempts_max").row(0) == (
        3,
        8,
        8,
    )


def test_what_was_loaded_is_counted(run: pl.DataFrame) -> None:
    scored = tts.score_trajectories(run).with_columns(
        score=pl.when(pl.col("attempt") != 3).then("score"), source_file=pl.lit("a.jsonl")
    )
    row = tts.build_report(scored, sections="accuracy").loaded.row(0, named=True)
    assert row["source_file"] == "a.jsonl"
    assert (row["n_problems"], row["n_attempts"]) == (30, 240)
    assert row["n_missing_answers"] == scored["answer_key"].null_count()
    assert row["n_unscored_attempts"] == 30
    assert row["n_ungraded_attempts"] == 0
    assert row["score_min"] == scored["score"].min()
    assert row["score_max"] == scored["score"].max()


def test_runs_stand_side_by_side_each_with_its_own_budgets(run: pl.DataFrame) -> None:
    small = run.filter(pl.col("attempt") < 3)
    both = pl.concat([
        run.with_columns(source_file=pl.lit("a")),
        small.with_columns(source_file=pl.lit("b")),
    ])
    report = tts.build_report(both, by="source_file")
    for name, alone in (("a", run), ("b", small)):
        part = report.curve.filter(source_file=name).drop("source_file")
        assert_frame_equal(part, tts.build_report(alone, sections="accuracy").curve)
    assert report.loaded["source_file"].to_list() == ["a", "b"]
    text = Page(report.to_html()).text
    assert "a: 8 attempts at each of 30 problems" in text
    assert "b: 3 attempts at each of 30 problems" in text
    with pytest.raises(DataError, match="by"):
        tts.build_report(both)


def test_seeds_are_averaged_per_problem(run: pl.DataFrame) -> None:
    seeds = pl.concat([
        run.with_columns(seed=pl.lit(0)),
        tts.simulate_trajectories(30, 8, seed=6).with_columns(seed=pl.lit(1)),
    ])
    curve = tts.build_report(seeds, replicates="seed", sections="accuracy").curve
    alone = [
        tts.build_report(seeds.filter(seed=i), sections="accuracy").curve["accuracy"]
        for i in (0, 1)
    ]
    assert curve["accuracy"].to_list() == pytest.approx(((alone[0] + alone[1]) / 2).to_list())
    assert curve["n_problems"].unique().to_list() == [30]


def test_without_gold_answers_there_is_agreement(run: pl.DataFrame) -> None:
    ungraded = run.drop("gold", "solution", "is_correct", strict=False)
    report = tts.build_report(ungraded)
    assert report.curve is None
    picked = tts.majority_vote(tts.score_trajectories(ungraded), budgets=8)
    last = report.agreement.filter(selector="majority_vote", budget=8)
    assert last["agreement"].item() == pytest.approx(picked["agreement"].mean())
    assert "oracle" not in report.agreement["selector"].to_list()
    page = Page(report.to_html())
    assert "Agreement by number of attempts" in page.text
    assert "Accuracy" not in page.text
    assert "no gold answers" in page.text


def test_graded_and_ungraded_runs_each_get_what_they_can(run: pl.DataFrame) -> None:
    graded = tts.score_trajectories(run)
    both = pl.concat([
        graded.with_columns(model=pl.lit("x")),
        graded.with_columns(model=pl.lit("y"), is_correct=pl.lit(None, pl.Boolean)),
    ])
    report = tts.build_report(both, by="model")
    assert report.curve["model"].unique().to_list() == ["x"]
    assert report.agreement["model"].unique().to_list() == ["y"]
    page = Page(report.to_html())
    assert "How does accuracy grow" in page.text
    assert "Agreement by number of attempts" in page.text
    assert report.omitted["selection_gap"] == "no gold answers (y)"
    assert "for some runs: no gold answers (y)" in page.text


def test_without_scores_no_selector_reads_one_and_the_report_says_so(run: pl.DataFrame) -> None:
    report = tts.build_report(run.drop("step_scores"))
    assert set(report.curve["selector"]) == {"majority_vote", "oracle"}
    assert report.notes == ("No weighted_vote or best_of_n: the run has no scores.",)
    assert report.profile is None
    assert "the run has no scores" in Page(report.to_html()).text
    with pytest.raises(ColumnsError, match="'score'"):
        tts.build_report(run.drop("step_scores"), selectors="best_of_n")


def test_the_baseline_and_the_bound_always_stand_beside_what_was_chosen(run: pl.DataFrame) -> None:
    report = tts.build_report(run, selectors="best_of_n", reductions=["min", "prod"], budgets=[3])
    lines = report.curve.select("selector", "reduction", "budget").rows()
    assert lines == [
        ("majority_vote", None, 3),
        ("best_of_n", "min", 3),
        ("best_of_n", "prod", 3),
        ("oracle", None, 3),
    ]


def test_a_recorded_score_is_read_before_step_scores(run: pl.DataFrame, report: tts.Report) -> None:
    recorded = run.with_columns(score=1.0 - pl.col("step_scores").list.last())
    reductions = (
        tts.build_report(recorded, sections="accuracy").curve["reduction"].unique().to_list()
    )
    assert set(reductions) == {None, "score"}
    assert set(report.curve["reduction"]) == {None, "last"}


def test_a_line_over_fewer_problems_is_pointed_out(run: pl.DataFrame) -> None:
    logits = run.with_columns(pl.col("step_scores").list.eval((pl.element() - 0.2) * 5))
    report = tts.build_report(logits)
    (note,) = report.notes
    assert note.startswith("Weighted vote (last) has results for only ")
    assert "undefined), so it is not compared with the other lines" in note
    assert note.endswith("weights='sigmoid' or weights='softmax' makes weights of such scores.")
    assert "weighted_vote" not in report.curve["selector"].to_list()
    for weights in ("sigmoid", "softmax"):
        named = tts.build_report(logits, weights=weights)
        assert named.notes == ()
        assert set(named.curve["n_undefined"]) == {0}
        assert f"weighted vote (last, {weights} weights) " in named.answers()["accuracy"][0]
        text = Page(named.to_html()).text
        assert f"A weighted vote adds up {weights} weights" in text
        assert f"the sum of its attempts' {weights} weights." in text


def test_the_example_is_the_vote_that_was_lost_by_least() -> None:
    rows = [
        *[("a", i, key, key == "1") for i, key in enumerate("2221")],
        *[("b", i, key, key == "1") for i, key in enumerate("2213")],
        *[("c", i, key, key == "1") for i, key in enumerate("2211")],
        *[("d", i, key, key == "1") for i, key in enumerate("1112")],
        *[("e", i, key, key == "1") for i, key in enumerate("3333")],
    ]
    names = ["problem_id", "attempt", "answer_key", "is_correct"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        problem=pl.lit("Problem ") + pl.col("problem_id"), gold=pl.lit("1")
    )
    example = tts.build_report(frame, sections="votes").example
    assert example.votes["problem_id"].unique().to_list() == ["c"]
    assert example.votes["n_votes"].to_list() == [2, 2]
    assert (example.problem, example.gold) == ("Problem c", "1")
    assert "closest to winning" in example.reason
    won = frame.filter(pl.col("problem_id").is_in(["d", "e"]))
    assert tts.build_report(won, sections="votes").example.votes[
        "problem_id"
    ].unique().to_list() == ["d"]
    mute = frame.with_columns(answer_key=pl.lit(None, pl.String), is_correct=pl.lit(value=False))
    assert tts.build_report(mute, sections="votes").example is None


def test_row_order_changes_no_byte_of_the_page(run: pl.DataFrame, report: tts.Report) -> None:
    shuffled = run.sample(fraction=1.0, shuffle=True, seed=3)
    assert tts.build_report(shuffled).to_html() == report.to_html()


def test_the_page_is_one_readable_document(run: pl.DataFrame) -> None:
    html = tts.build_report(run, title="Llama & friends", references={"greedy": 0.3}).to_html()
    page = Page(html)
    assert html.startswith("<!doctype html>\n<html lang='en'>")
    assert page.elements["h1"] == page.elements["main"] == page.elements["title"] == 1
    assert ("charset", "utf-8") in page.attributes
    assert any(value and "width=device-width" in value for _, value in page.attributes)
    assert page.elements["table"] == page.elements["caption"] > 2
    assert page.elements["figure"] == page.elements["figcaption"] == 9
    assert "Charts need JavaScript" in page.text
    assert "Llama & friends" in page.text
    assert "30 problems" in page.text
    assert "majority vote 70.0%" in page.text
    # Nothing is fetched: no source, no link, no style sheet, no frame.
    assert not {"link", "iframe", "object", "embed", "img", "base", "form"} & set(page.elements)
    assert not {name for name, _ in page.attributes} & {"src", "action", "data", "srcset"}
    links = [value or "" for name, value in page.attributes if name == "href"]
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {link[:1] for link in links} == {"#"}
    assert {link[1:] for link in links} <= set(ids)
    assert len(links) == page.elements["section"]
    assert "content=\"default-src 'none'; script-src 'sha256-" in html
    assert len(html) < 1_300_000


def test_the_specifications_are_valid_json_with_the_data_inside(report: tts.Report) -> None:
    page = Page(report.to_html())
    *specs, bundle, start = page.scripts
    assert len(specs) == 9
    for text in specs:
        spec = json.loads(text)
        assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        assert spec["datasets"]
        assert "<" not in text
    assert len(bundle) > 500_000
    assert "vegaEmbed" in start


def test_text_of_a_run_is_shown_and_never_run(run: pl.DataFrame) -> None:
    honest = tts.build_report(
        run.with_columns(model=pl.lit("m")), by="model", references={"x": 0.5}
    )
    hostile = run.with_columns(
        problem_id=pl.col("problem_id").cast(pl.String) + HOSTILE,
        gold=pl.when(pl.col("problem_id").hash() % 2 == 0).then(pl.lit(HOSTILE)).otherwise("gold"),
        answer=pl.when(pl.col("attempt") == 0).then(pl.lit(HOSTILE)).otherwise("answer"),
        problem=pl.lit(HOSTILE),
        source_file=pl.lit(HOSTILE),
    ).with_columns(pl.lit(HOSTILE).alias(HOSTILE))
    report = tts.build_report(ragged(hostile), by=HOSTILE, title=HOSTILE, references={HOSTILE: 0.5})
    page, harmless = Page(report.to_html()), Page(honest.to_html())
    for tag in ("script", "img", "style", "noscript", "meta"):
        assert page.elements[tag] == harmless.elements[tag]
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert page.text.count("alert(1)") > 5
    # The scripts that may run are the two that every page has.
    assert page.scripts[-2:] == harmless.scripts[-2:]


def test_saving_is_all_or_nothing(report: tts.Report, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.save(path)
    assert path.read_text(encoding="utf-8") == report.to_html()
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(SourceError, match="no such folder"):
        report.save(tmp_path / "absent" / "report.html")
    with pytest.raises(SourceError, match="is a folder"):
        report.save(tmp_path)


def test_many_runs_are_all_in_the_table_and_twelve_in_the_chart(run: pl.DataFrame) -> None:
    runs = pl.concat([
        run.filter(pl.col("attempt") < 2).with_columns(model=pl.lit(f"m{i:02d}")) for i in range(14)
    ])
    text = Page(tts.build_report(runs, by="model", sections="accuracy").to_html()).text
    assert "The chart shows the first 12 of 14 runs." in text
    assert "m13" in text


def test_plain_values_are_json(run: pl.DataFrame) -> None:
    report = tts.build_report(run, references={"greedy": 0.3})
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert len(values["curve"]) == report.curve.height
    assert values["agreement"] is None
    assert values["references"] == {"greedy": 0.3}
    assert values["validation"]["n_attempts"] == 240


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (lambda t: t.drop("attempt"), {}, ColumnsError, "'attempt'"),
        (lambda t: t.drop("answer"), {}, ColumnsError, "'completion'"),
        (lambda t: t.head(0), {}, DataError, "no rows"),
        (lambda t: t, {"by": "model"}, ColumnsError, "'model'"),
        (lambda t: t, {"references": {"greedy": 30}}, ParameterError, "42 % is 0.42"),
        (lambda t: t, {"selectors": "best"}, ParameterError, "selectors == 'best'"),
        (lambda t: t, {"budgets": 0}, ParameterError, "budgets == 0"),
        (lambda t: t, {"confidence_level": 95}, ParameterError, "confidence_level == 95"),
        (lambda t: t.drop("step_scores"), {"reductions": "min"}, ColumnsError, "'step_scores'"),
    ],
)
def test_what_cannot_be_reported(
    run: pl.DataFrame,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        tts.build_report(change(run), **options)


@pytest.mark.parametrize(
    "source",
    [
        "search_and_learn/beam16_llama3.2-3b-awq_q100.jsonl",
        "qwen_math/math_cot_50.jsonl",
        "ets",
    ],
)
def test_real_runs(shared_data: Path, source: str) -> None:
    path = shared_data / source
    paths = path if path.is_file() else next(path.glob("*.json"))
    report = tts.build_report(tts.scan_trajectories(paths))
    page = Page(report.to_html())
    assert page.elements["figure"] >= 2
    assert report.loaded["n_attempts"].sum() == report.validation.n_attempts
