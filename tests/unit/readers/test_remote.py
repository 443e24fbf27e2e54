"""URLs, from a server on this machine, and standard input."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ParameterError, SourceError
from ttsframe.readers.engine import is_local

ROWS = [{"problem_id": f"p{i}", "completion": rf"so \boxed{{{i}}}"} for i in range(5)]


class Plain(SimpleHTTPRequestHandler):
    """A server that only sends whole files."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Ranged(Plain):
    """A server that sends parts of files, as those of data sets do."""

    asked: list[str] = []  # noqa: RUF012 - one list for all requests

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        size = len(data)
        start, end = 0, size
        if found is not None:
            type(self).asked.append(found[0])
            first, last = found.groups()
            start = int(first) if first else max(0, size - int(last))
            end = min(int(last) + 1 if first and last else size, size)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(data[start:end])


@pytest.fixture(params=[Plain, Ranged])
def served(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, str]]:
    """Serve a folder, and return it with its URL."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()

    def handler(*args: object) -> object:
        return request.param(*args, directory=str(folder))

    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def write_all(folder: Path) -> list[str]:
    """Write one run in each kind of file, and return their names."""
    frame = pl.DataFrame(ROWS)
    frame.write_parquet(folder / "a.parquet")
    frame.write_ipc(folder / "a.arrow")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_json(folder / "a.json")
    frame.write_csv(folder / "a.csv")
    (folder / "a.jsonl.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    return [path.name for path in folder.iterdir()]


def test_a_url_is_read_as_its_file(served: tuple[Path, str]) -> None:
    folder, url = served
    expected = tts.read_trajectories(ROWS)
    names = write_all(folder)
    assert len(names) == 6

    for name in names:
        assert_frame_equal(tts.read_trajectories(f"{url}/{name}"), expected)


def test_parquet_stays_where_it_is_if_the_server_sends_parts(served: tuple[Path, str]) -> None:
    folder, url = served
    write_all(folder)
    Ranged.asked.clear()

    plan = tts.scan_trajectories(f"{url}/a.parquet")
    before = len(Ranged.asked)
    assert plan.collect().height == 5

    is_ranged = bool(Ranged.asked)
    assert not is_ranged or len(Ranged.asked) > before > 0


def test_several_urls_and_files_are_runs_of_their_own(served: tuple[Path, str]) -> None:
    folder, url = served
    write_all(folder)
    (folder / "gold.csv").write_text("problem_id,gold\np1,1\n")

    with pytest.warns(UserWarning, match=f"{url}/gold.csv: no gold answer for 4 of 5"):
        found = tts.read_trajectories(
            [f"{url}/a.parquet", folder / "a.jsonl"], gold=f"{url}/gold.csv"
        )

    assert set(found["source_file"]) == {f"{url}/a.parquet", str(folder / "a.jsonl")}
    assert found["gold"].count() == 2


def test_no_output_shows_the_credentials_of_a_url(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    write_all(folder)
    signed = [f"{url}/a.parquet?X-Amz-Signature=hushed{i}" for i in (1, 2)]
    scored = tmp_path / "scored.parquet"

    found = tts.read_trajectories(signed)
    tts.score_trajectories(found).write_parquet(scored)
    report = tts.build_report(found, by="source_file")
    page = report.to_html(sources=signed, command=f"ttsframe report {signed[0]}")

    # Files that differ in the query alone remain runs of their own.
    assert set(found["source_file"]) == {f"{url}/a.parquet?…", f"{url}/a.parquet?… (2)"}
    texts = [found.write_json(), page, json.dumps(report.to_dict()), str(report.validation)]
    assert not any("hushed" in text for text in texts)
    assert b"hushed" not in scored.read_bytes()


def test_a_url_that_is_not_there(served: tuple[Path, str]) -> None:
    _, url = served
    with pytest.raises(
        SourceError, match=rf"{url}/gone\.jsonl: cannot be read \(the server answers 404"
    ):
        tts.scan_trajectories(f"{url}/gone.jsonl")


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(
        SourceError, match=r"http://127\.0\.0\.1:9/a\.jsonl: cannot be read \(.*Hint: "
    ):
        tts.scan_trajectories("http://127.0.0.1:9/a.jsonl")
    with pytest.raises(
        SourceError, match=r"ftp://x/a\.jsonl: is a URL that cannot be read; expected"
    ):
        tts.scan_trajectories("ftp://x/a.jsonl")


def test_a_url_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a run.jsonl"
    pl.DataFrame(ROWS).write_ndjson(path)

    assert_frame_equal(tts.read_trajectories(path.as_uri()), tts.read_trajectories(ROWS))
    assert is_local(path.as_uri())
    assert is_local(str(path))
    assert not is_local("-")
    assert not is_local("hf://datasets/a/b/c.parquet")


class Piped(io.TextIOWrapper):
    """Standard input that is a pipe."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))


def test_standard_input_is_recognized_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tts.read_trajectories(ROWS)
    for name in write_all(tmp_path):
        monkeypatch.setattr(sys, "stdin", Piped((tmp_path / name).read_bytes()))
        plan = tts.scan_trajectories("-")
        assert_frame_equal(plan.collect(), expected)
        assert_frame_equal(plan.collect(engine="streaming"), expected)


def test_standard_input_that_is_no_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(b""))
    with pytest.raises(SourceError, match="standard input: is empty"):
        tts.scan_trajectories("-")
    monkeypatch.setattr(sys, "stdin", Piped(b'{"problem_id": "a", "completion": "x"}\n{"prob'))
    with pytest.raises(SourceError, match="standard input, line 2: is cut off"):
        tts.scan_trajectories("-")
    with pytest.raises(ParameterError, match="standard input: is not a local file"):
        tts.batch.transform("-", tmp_path / "out.parquet")
    with pytest.raises(SourceError, match="named twice"):
        tts.scan_trajectories(["-", "-"])


def test_no_message_shows_a_signature_or_a_password() -> None:
    for url in (
        "http://127.0.0.1:9/a.jsonl?X-Amz-Date=2026-01-01T00:00:00&X-Amz-Signature=SECRET",
        "http://me:SECRET@127.0.0.1:9/a.parquet?sig=SECRET",
    ):
        for read in (tts.read_trajectories, tts.read_steps):
            with pytest.raises(SourceError, match=r"127.0.0.1:9/a.*\?…: cannot be read") as caught:
                read(url)
            assert "SECRET" not in str(caught.value)
            assert "00:00" not in str(caught.value)
