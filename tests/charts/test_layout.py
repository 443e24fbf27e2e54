"""The page in a browser at several widths, in a dark scheme and on paper: nothing is cut or shrunk."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAPER = (688, 1017)
"""The room on a sheet of A4 within the margins, in pixels of CSS."""

DRAWN = """
return [...document.querySelectorAll(".chart")].every((box) => box.querySelector("svg.marks"));
"""
BOXES = """
return [...document.querySelectorAll(".chart svg.marks")].map((svg) => {
  const box = svg.closest(".chart"), shown = svg.getBoundingClientRect();
  const outer = box.getBoundingClientRect();
  return {
    name: box.id, room: outer.width, from: shown.left - outer.left, to: shown.right - outer.left,
    height: shown.height, scale: shown.width / svg.width.baseVal.value,
    words: [...svg.querySelectorAll("text")].map((text) => {
      const {left, right} = text.getBoundingClientRect();
      return [left - outer.left, right - outer.left, text.textContent];
    }),
  };
});
"""

pytestmark = pytest.mark.browser


class Session:
    """A headless browser, driven over HTTP."""

    def __init__(self, driver: str, browser: str, profile: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(
            [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                self._send("/status")
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        options = {
            "binary": browser,
            "args": [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={profile}",
            ],
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options}
        made = self._send("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def _send(self, path: str, data: object = None, method: str | None = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(  # noqa: S310  (this machine)
            self.address + path, body, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
            return json.loads(answer.read())["value"]

    def tell(self, command: str, **parameters: object) -> Any:
        """Send a command of the protocol of the browser's developer tools."""
        return self._send(
            f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters}
        )

    def run(self, script: str) -> Any:
        """Run a script in the page, and return its value."""
        return self._send(f"{self.session}/execute/sync", {"script": script, "args": []})

    def wait_for(self, script: str) -> None:
        """Wait until a script in the page returns true."""
        for _ in range(600):
            if self.run(script):
                return
            time.sleep(0.1)
        pytest.fail(f"never true: {script}")

    def open(self, page: Path, width: int, *, scheme: str = "light", media: str = "") -> None:
        """Open a page in a window of a width, and wait until its charts are drawn."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.tell("Emulation.setEmulatedMedia", media=media, features=features)
        self._send(f"{self.session}/url", {"url": page.as_uri()})
        self.wait_for(DRAWN)

    def close(self) -> None:
        """End the browser, then its driver."""
        try:
            self._send(self.session, method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait(30)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no browser with chromedriver here")
    session = Session(driver, browser, tmp_path_factory.mktemp("profile"))
    try:
        yield session
    finally:
        session.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).resolve().parents[2] / "data" / "sample.jsonl"
    path = tmp_path_factory.mktemp("page") / "report.html"
    report = tts.build_report(tts.read_trajectories(source), references={"a larger model": 0.9})
    report.save(path)
    return path


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of nine runs, whose names are long."""
    run = tts.simulate_trajectories(27, 4, seed=2)
    number = pl.col("problem_id").rank("dense") % 9
    subject = pl.format("A subject with the rather long name {}", number)
    path = tmp_path_factory.mktemp("subjects") / "report.html"
    tts.build_report(run.with_columns(subject=subject), by="subject").save(path)
    return path


def check_whole(boxes: list[dict[str, Any]], room: float | None = None) -> None:
    """Check that no chart and no word in it leaves its box, and that none is shrunk."""
    assert boxes
    for box in boxes:
        room_here = box["room"] if room is None else room
        assert box["from"] >= -1, box["name"]
        assert box["to"] <= room_here + 1, box["name"]
        assert box["scale"] > 0.9, box["name"]
        for left, right, word in box["words"]:
            assert left >= -2, (box["name"], word)
            assert right <= room_here + 2, (box["name"], word)


@pytest.mark.parametrize(
    ("which", "width"), [("page", 1000), ("page", 500), ("subjects", 1600), ("subjects", 500)]
)
def test_charts_fit_and_nothing_is_wider_than_the_window(
    session: Session, width: int, which: str, request: pytest.FixtureRequest
) -> None:
    session.open(request.getfixturevalue(which), width)
    check_whole(session.run(BOXES))
    assert session.run("return document.documentElement.scrollWidth") <= width


def test_the_width_of_the_window_is_used(session: Session, page: Path) -> None:
    session.open(page, 1200)
    boxes = {box["name"]: box for box in session.run(BOXES)}
    curve = boxes["accuracy-by-attempts"]
    assert curve["room"] > 800
    assert curve["to"] > 0.95 * curve["room"]
    caption = "document.querySelector('#accuracy-by-attempts + figcaption').getBoundingClientRect()"
    assert session.run(f"return {caption}.right") > 1100


def test_charts_are_drawn_anew_when_the_window_changes(session: Session, page: Path) -> None:
    session.open(page, 1200)
    session.tell(
        "Emulation.setDeviceMetricsOverride",
        width=500,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    session.wait_for(
        "return [...document.querySelectorAll('.chart svg.marks')].every((svg) => "
        "svg.width.baseVal.value <= 500);"
    )
    check_whole(session.run(BOXES))


def test_a_dark_scheme_turns_page_and_charts_around(session: Session, page: Path) -> None:
    style = "return getComputedStyle(document.querySelector('{}')).{};"
    session.open(page, 1200, scheme="dark")
    assert session.run(style.format("body", "backgroundColor")) == "rgb(18, 18, 18)"
    assert session.run(style.format("body", "color")) == "rgb(228, 228, 228)"
    assert "invert(0.93)" in session.run(style.format(".chart svg.marks", "filter"))
    session.open(page, 1200, scheme="light")
    assert session.run(style.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert session.run(style.format(".chart svg.marks", "filter")) == "none"
    # Paper is never dark.
    session.open(page, 1200, scheme="dark", media="print")
    assert session.run(style.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert session.run(style.format(".chart svg.marks", "filter")) == "none"


@pytest.mark.parametrize("which", ["page", "subjects"])
def test_on_paper_no_chart_is_cut(
    session: Session, which: str, request: pytest.FixtureRequest
) -> None:
    session.open(request.getfixturevalue(which), 1200)
    # What a browser does before it prints: the event, then the layout of paper.
    session.run("dispatchEvent(new Event('beforeprint'));")
    session.wait_for(
        "return [...document.querySelectorAll('.chart svg.marks')].every((svg) => "
        f"svg.width.baseVal.value <= {PAPER[0]});"
    )
    session.tell("Emulation.setEmulatedMedia", media="print")
    for box in session.run(BOXES):
        assert box["to"] <= PAPER[0], box["name"]
        assert box["height"] < PAPER[1], box["name"]
        assert box["scale"] > 0.6, box["name"]
    kept = "getComputedStyle(document.querySelector('.chart .vega-embed')).breakInside"
    assert session.run(f"return {kept}") == "avoid"


def test_a_browser_draws_for_paper_when_it_prints(session: Session, page: Path) -> None:
    session.open(page, 1200)
    session.run("""
      window.drawn = {};
      const look = new MutationObserver((changes) => changes.forEach(({target}) => {
        const box = target.closest(".chart"), svg = box?.querySelector("svg.marks");
        if (svg) (window.drawn[box.id] ??= []).push(svg.width.baseVal.value);
      }));
      look.observe(document.querySelector("main"), {childList: true, subtree: true});
    """)
    pdf = base64.b64decode(session.tell("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF-")
    drawn = session.run("return window.drawn")
    charts = session.run("return [...document.querySelectorAll('.chart')].map((box) => box.id)")
    assert sorted(drawn) == sorted(charts)
    assert all(min(widths) <= PAPER[0] for widths in drawn.values())
