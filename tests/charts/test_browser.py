"""The page of a report in a browser without a network: every chart is drawn, and nothing complains."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=20000",
    "--enable-logging=stderr",
    "--v=0",
    "--dump-dom",
)

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser here: looked for {', '.join(BROWSERS)}")
    return found


class Marks(HTMLParser):
    """Drawn marks per chart, read from the document that the browser made of the page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.marks: dict[str, Counter[str]] = {}
        self.pictures: Counter[str] = Counter()
        self.messages: dict[str, str] = {}
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self._open: list[tuple[str, str, str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = values.get("class", "").split()
        self.ids.update([values["id"]] if "id" in values else [])
        self.links += [values["href"]] if tag == "a" and not self._is_in_chart() else []
        _, chart, kind = self._open[-1] if self._open else ("", "", "")
        self.pictures[chart] += tag == "svg" and "marks" in classes
        if "chart" in classes:
            chart = values["id"]
            self.marks[chart] = Counter()
        elif "role-mark" in classes:
            kind = next(name for name in classes if name.startswith("mark-"))
        elif kind and tag in {"path", "line", "text"}:
            self.marks[chart][kind.removeprefix("mark-")] += 1
        if tag not in {"meta", "br", "input", "link"}:
            self._open.append((tag, chart, kind))

    def _is_in_chart(self) -> bool:
        return bool(self._open and self._open[-1][1])

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "div" and self._open[-1][1]:
            self.messages[self._open[-1][1]] = data.strip()


def open_page(browser: str, page: Path, profile: Path) -> tuple[Marks, list[str]]:
    """Open a page with the network away; return what is drawn, and what the console says."""
    command = [browser, *OPTIONS, f"--user-data-dir={profile}", page.as_uri()]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "HOME": str(profile)},
    )
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Marks(done.stdout), console


def check_whole(page: Marks, console: list[str]) -> None:
    """Check that everything is drawn, nothing complains, and every link leads somewhere."""
    assert console == []
    assert not any(page.messages.values())
    for chart, marks in page.marks.items():
        assert page.pictures[chart] == 1, chart
        assert marks.total() > 0, chart
    assert page.links
    for link in page.links:
        assert link.startswith("#")
        assert page.ids[link[1:]] == 1, link


@pytest.fixture(scope="module")
def sample() -> pl.DataFrame:
    source = Path(__file__).resolve().parents[2] / "data" / "sample.jsonl"
    return tts.read_trajectories(source)


def test_the_sample_report_draws_every_chart(
    browser: str, sample: pl.DataFrame, tmp_path: Path
) -> None:
    report = tts.build_report(sample, references={"greedy": 0.3, "larger model": 0.9})
    report.save(tmp_path / "report.html")
    page, console = open_page(browser, tmp_path / "report.html", tmp_path / "profile")
    check_whole(page, console)
    assert list(page.marks) == [
        "votes-of-one",
        "accuracy-by-attempts",
        "lost-by-attempts",
        "problems-by-difficulty",
        "accuracy-by-level",
        "methods-by-level",
        "compute-optimal-by-attempts",
        "accuracy-by-tokens",
        "reductions",
        "score-distribution",
        "reliability",
        "over-optimization",
        "step-scores",
    ]
    # A single run is compared with no other, and ranked among none, and has no trees.
    assert len(page.links) == len(tts.report.SECTIONS) - 3
    votes, curve, *others, steps = page.marks.values()
    n_lines = report.curve.select("selector", "reduction").n_unique()
    assert curve["line"] == n_lines == 4
    # The subtitle names the lines that have a band.
    assert curve["area"] == 2
    assert curve["symbol"] == report.curve.height
    # Two references, and a wide line below the part that two lines share.
    assert curve["rule"] == 2 + 1
    assert curve["text"] == n_lines + 2
    assert steps["line"] == steps["area"] == steps["text"] == 2
    assert steps["symbol"] == report.profile.height
    assert votes["rect"] == votes["text"] == 2 * report.example.votes.height
    lost, hard, levels, bars, optimal, cost, reductions, scores, reliable, turns = others
    n_gaps = report.selection_gap.height
    assert lost["symbol"] == 2 * n_gaps
    # Intervals stand in brackets behind the names of the bands.
    assert lost["rule"] == 0
    assert hard["rect"] > 0
    assert levels["line"] == 5 * 4
    assert levels["area"] == 5 * 2
    assert bars["rect"] >= 5 * 3 * 3
    assert optimal["line"] == 4 + 2
    assert cost["symbol"] >= report.cost.height
    assert reductions["symbol"] == 2 * 4
    assert scores["line"] == 2
    assert reliable["symbol"] == report.verifier.reliability.filter(binning="equal_width").height
    assert turns["line"] == 1


def test_two_runs_one_of_them_ungraded_draw_every_chart(
    browser: str, sample: pl.DataFrame, tmp_path: Path
) -> None:
    hostile = "</script><script>alert(1)</script>"
    ungraded = sample.drop("gold", "solution").filter(pl.col("attempt") < 5)
    runs = pl.concat(
        [sample.with_columns(model=pl.lit("8b")), ungraded.with_columns(model=pl.lit(hostile))],
        how="diagonal",
    ).with_columns(problem_id=pl.col("problem_id") + hostile)
    report = tts.build_report(runs, by="model", title=hostile, reductions=["last", "min"])
    report.save(tmp_path / "report.html")
    page, console = open_page(browser, tmp_path / "report.html", tmp_path / "profile")
    check_whole(page, console)
    votes, accuracy, agreement, *_, steps = page.marks.values()
    assert accuracy["symbol"] == report.curve.height
    assert agreement["symbol"] == report.agreement.height
    assert accuracy["line"] == 2 + 2 * 2
    assert agreement["line"] == 1 + 2 * 2
    assert steps["line"] == 3
    assert votes["rect"] > 0


def test_two_runs_without_scores_draw_what_they_can(
    browser: str, sample: pl.DataFrame, tmp_path: Path
) -> None:
    unscored = sample.drop("step_scores")
    runs = pl.concat([
        unscored.with_columns(model=pl.lit("8b")),
        unscored.filter(pl.col("attempt") < 7).with_columns(model=pl.lit("1b")),
    ])
    report = tts.build_report(runs, by="model")
    report.save(tmp_path / "report.html")
    page, console = open_page(browser, tmp_path / "report.html", tmp_path / "profile")
    check_whole(page, console)
    assert list(page.marks) == [
        "votes-of-one",
        "accuracy-by-attempts",
        "runs-by-attempts-1",
        "ranks",
        "lost-by-attempts",
        "problems-by-difficulty",
        "accuracy-by-level",
        "methods-by-level-1",
        "accuracy-by-tokens",
    ]
    assert page.marks["accuracy-by-attempts"]["line"] == 2 * 2
    assert page.marks["accuracy-by-level"]["line"] == 5 * 2


def test_a_page_that_fails_is_noticed(browser: str, sample: pl.DataFrame, tmp_path: Path) -> None:
    html = tts.build_report(sample).to_html()
    # A mark that Vega-Lite does not know in one chart; a script that the page did not bring.
    broken = html.replace('"mark":{"type":"area"', '"mark":{"type":"aria"', 1)
    broken = broken.replace("</main>", "<script>document.title = 'owned'</script></main>")
    (tmp_path / "report.html").write_text(broken, encoding="utf-8")
    page, console = open_page(browser, tmp_path / "report.html", tmp_path / "profile")
    assert any("Content Security Policy" in line for line in console)
    assert page.messages["accuracy-by-attempts"].startswith("This chart could not be drawn")
    assert page.marks["accuracy-by-attempts"].total() == 0
    assert page.marks["votes-of-one"].total() > 0
