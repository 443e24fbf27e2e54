"""The installed program: its streams, its status, and what is left when it is stopped."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts

PROGRAM = [sys.executable, "-m", "ttsframe"]


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_streams_and_status(sample: Path, tmp_path: Path) -> None:
    good = run("curve", sample, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["curve"]
    bad = run("curve", tmp_path / "gone.jsonl")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("Error: ")
    assert "Traceback" not in bad.stderr


def test_help_loads_no_charts_and_no_solvers() -> None:
    code = (
        "import sys, ttsframe.cli\n"
        "heavy = {'altair', 'vl_convert', 'scipy', 'sympy', 'flint', 'pyarrow', 'pandas', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def read_to_the_end(terminal: int) -> str:
    parts = []
    with contextlib.suppress(OSError):  # the end of a terminal whose program has ended
        while part := os.read(terminal, 10_000):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_cold_report_is_quick_and_shows_progress_on_stderr_alone(
    sample: Path, tmp_path: Path
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "report", str(sample), "-o", str(tmp_path / "report.html")]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process,
        ThreadPoolExecutor(1) as threads,
    ):
        os.close(theirs)
        # Read all along: a spinner that turns for long fills the buffer of the terminal.
        reading = threads.submit(read_to_the_end, ours)
        stdout, _ = process.communicate(timeout=300)
        progress = reading.result()
    os.close(ours)
    # Time of the processor, which other programs on the machine do not change.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 15
    assert process.returncode == 0
    for title in ("Reading", "Voting ...", "Drawing"):
        assert title in progress
    assert stdout.startswith("960 attempts")


def test_a_reader_that_stops_ends_it_without_a_word(sample: Path) -> None:
    command = [*PROGRAM, "vote", str(sample), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


WRITING = """
import os, sys
from ttsframe.cli import _output, main

def pause(frame):
    os.write(1, b"writing\\n")  # in one piece, whatever the number of threads
    sys.stdin.readline()
    return frame

def sink(frame, path):
    path.touch()
    return frame.map_batches(pause, streamable=True).sink_ipc(path, lazy=True)

_output._SINKS[".arrow"] = sink
main(sys.argv[1:])
"""
"""The program, which waits in the query that writes a file."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_is_stopped_while_writing_leaves_the_old_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    source, target = tmp_path / "run.parquet", tmp_path / "out" / "run.arrow"
    target.parent.mkdir()
    target.write_text("old")
    tts.simulate_trajectories(4, 4, seed=1, texts=True).write_parquet(source)
    command = [sys.executable, "-c", WRITING, "convert", str(source), "-o", str(target)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert len(list(target.parent.iterdir())) == 2
        process.send_signal(number)
        # The query ends, and sees the signal that was sent before.
        _, stderr = process.communicate(b"\n" if number == signal.SIGINT else None, timeout=300)
    assert target.read_text() == "old"
    if number == signal.SIGINT:
        assert (process.returncode, stderr) == (130, b"Interrupted.\n")
        assert [path.name for path in target.parent.iterdir()] == [target.name]
    else:
        assert process.returncode == -signal.SIGKILL


LOADING = """
import os, signal, sys
sys.argv = ["/bin/ttsframe"]

class Sends:
    def find_spec(self, name, path=None, target=None):
        if name == "polars":
            os.kill(os.getpid(), {sent})


sys.meta_path.insert(0, Sends())
from ttsframe.cli import main
"""


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_loads_ends_it_without_a_traceback(
    sent: signal.Signals, status: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING.format(sent=int(sent))],
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (status, b"")


def test_streams_that_are_closed_or_narrow(sample: Path, tmp_path: Path) -> None:
    command = f"{sys.executable} -m ttsframe vote {tmp_path / 'gone'} 2>&-"
    assert subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 2
    run = tts.read_trajectories(sample).with_columns(model=pl.lit("\u6a21\u578b \U0001f600"))
    run.write_parquet(tmp_path / "run.parquet")
    arguments = ["vote", tmp_path / "run.parquet", "--by", "model"]
    narrow = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    for extra in ([], ["--json"]):
        done = subprocess.run(
            [*PROGRAM, *map(str, arguments), *extra], capture_output=True, check=True, env=narrow
        )
        assert done.stderr == b""
        if extra:
            (row, *_) = json.loads(done.stdout)["problems"]
            assert row["model"] == "\u6a21\u578b \U0001f600"
        else:
            assert rb"\u6a21\u578b \U0001f600" in done.stdout


def test_charts_without_docstrings(sample: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "ttsframe", "report", str(sample)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: charts need Altair, which needs the docstrings")
