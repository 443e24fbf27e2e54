"""A forked process in which queries would hang says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import os, sys
import polars as pl
import ttsframe as tts

frame = pl.DataFrame({"problem_id": ["p"] * 4, "attempt": range(4), "answer_key": ["a"] * 4})
if sys.argv[1] == "used":
    big = pl.DataFrame({"a": range(100_000)}).lazy().group_by(pl.col("a") % 7).agg(pl.len())
    assert big.collect().height == 7
child = os.fork()
if child == 0:
    n_refused = 0
    for call in (
        lambda: tts.majority_vote(frame),
        lambda: tts.read_trajectories([{"problem_id": "p", "completion": "a"}]),
        lambda: tts.batch.transform("gone", "out.parquet"),
    ):
        try:
            call()
        except tts.errors.EngineError as error:
            n_refused += "this process was forked" in str(error)
        except tts.errors.SourceError:
            pass
    os._exit(n_refused)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names the threads of a process")
@pytest.mark.parametrize(("use", "n_refused"), [("used", "3"), ("unused", "0")])
def test_a_child_of_a_process_that_has_used_polars_says_so(use: str, n_refused: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE, use],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == (n_refused, "")
