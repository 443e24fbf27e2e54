"""Clusters are started, joined, ended and left as they should be, in processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ttsframe as tts
from ttsframe.batch import ray_engine
from ttsframe.errors import EngineError, MissingExtraError, ParameterError, ParameterTypeError

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None or sys.platform != "linux",
    reason="the extra 'ray' is not installed, or no /proc to look for processes",
)
MARK = "TTSFRAME_TEST_RUN"
OPTIONS: dict[str, Any] = {
    "stages": [tts.batch.Score(), tts.batch.Select(budgets=[1, 4])],
    "rows_per_part": 100,
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "run.parquet"
    run = tts.simulate_trajectories(40, 8, seed=3, texts=True, n_steps=(1, 3)).drop("^true.*$")
    run.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path, row_group_size=50)
    return path


def contents(sink: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(sink.iterdir())]


def driver(program: str, mark: Path, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Start a program whose processes, wherever they end up, can be told by a mark."""
    environment = {**os.environ, MARK: str(mark), "POLARS_MAX_THREADS": "2", **variables}
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def marked(mark: Path) -> list[str]:
    """Return the command lines of processes that carry a mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def left_over(mark: Path, seconds: float = 120.0) -> list[str]:
    """Return what is still running a while after its driver has ended; Ray's agents look seldom."""
    deadline = time.monotonic() + seconds
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_parameters_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "require_ray", lambda: None)
    assert tts.batch.RayEngine(n_workers=2, n_threads=3).n_threads == 3
    with pytest.raises(ParameterError, match="n_workers == 0, must be at least 1"):
        tts.batch.RayEngine(n_workers=0)
    with pytest.raises(ParameterTypeError, match=r"n_threads must be .*, got float"):
        tts.batch.RayEngine(n_threads=1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="n_retries == -1, must be at least 0"):
        tts.batch.RayEngine(n_retries=-1)


def test_a_missing_extra_is_named_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ttsframe.batch.ray_cluster.find_spec", lambda _: None)
    words = r'needs Ray, which is not installed\. Hint: python -m pip install "ttsframe\[ray\]"'
    with pytest.raises(MissingExtraError, match=words):
        tts.batch.transform(tmp_path / "gone", tmp_path / "out", engine="ray")
    with pytest.raises(MissingExtraError, match=words):
        tts.batch.RayEngine("auto")


OWN = """
import os, signal, sys, warnings
warnings.simplefilter("error")
import ttsframe as tts

assert "ray" not in sys.modules
names, handler = set(os.environ), signal.getsignal(signal.SIGTERM)
stages = [tts.batch.Score(), tts.batch.Select(budgets=[1, 4])]
tts.batch.transform(sys.argv[1], sys.argv[2], stages=stages, engine="ray", rows_per_part=100)
import ray

assert not ray.is_initialized()
assert set(os.environ) - names <= {"RAY_CLIENT_MODE"}, set(os.environ) - names
assert signal.getsignal(signal.SIGTERM) == handler
sys.modules.pop("ray")
assert tts.batch.transform(sys.argv[1], sys.argv[2], stages=stages, engine="ray", rows_per_part=100)
assert "ray" not in sys.modules
"""


@needs_ray
def test_a_cluster_that_was_started_is_ended_and_leaves_nothing(
    source: Path, tmp_path: Path
) -> None:
    with tempfile.TemporaryDirectory() as short:
        killed = Path(short, "tts-ray-killed")
        killed.mkdir()
        (killed / "lock").touch()
        process = driver(OWN, tmp_path, source, tmp_path / "out", RAY_TMPDIR=short)
        said, complained = process.communicate(timeout=300)
        assert (process.returncode, said, complained) == (0, "", "")
        assert left_over(tmp_path) == []
        assert list(Path(short).iterdir()) == []
    tts.batch.transform(source, tmp_path / "here", **OPTIONS)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


ENDLESS = """
import sys
import ttsframe as tts

def say(step):
    if step.n_tasks_done:
        print(step.phase, flush=True)

with tts.batch.RayEngine(n_workers=1) as engine:
    while True:
        stages = [tts.batch.Score(), tts.batch.Select(budgets=[1, 4])]
        tts.batch.transform(
            sys.argv[1], sys.argv[2], stages=stages, engine=engine, rows_per_part=100,
            progress=say, restart=True, overwrite=True,
        )
"""


@needs_ray
@pytest.mark.parametrize(
    "sent",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_driver_that_is_ended_leaves_no_process_and_a_job_to_go_on_with(
    source: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    sink = tmp_path / "out"
    process = driver(ENDLESS, tmp_path, source, sink)
    assert process.stdout is not None
    assert process.stdout.readline() == "scan\n"
    process.send_signal(sent)
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert left_over(tmp_path) == []
    tts.batch.transform(source, tmp_path / "here", **OPTIONS)
    tts.batch.transform(source, sink, **OPTIONS)
    assert contents(sink) == contents(tmp_path / "here")


HEAD = """
import sys
import ray
ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.readline()
ray.get(ray.remote(lambda: None).remote())
print("still there", flush=True)
ray.shutdown()
"""

JOIN = """
import sys
import ray
import ttsframe as tts
stages = [tts.batch.Score(), tts.batch.Select(budgets=[1, 4])]
engine = tts.batch.RayEngine(sys.argv[3] or None, n_workers=1)
tts.batch.transform(sys.argv[1], sys.argv[2], stages=stages, engine=engine, rows_per_part=100)
assert not ray.is_initialized()
"""


@needs_ray
@pytest.mark.parametrize("is_variable", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_cluster_with_an_address_is_joined_and_left(
    source: Path, tmp_path: Path, *, is_variable: bool
) -> None:
    # Without the mode, Ray gives a token to clusters that it starts, and none to those it joins.
    mode = {"RAY_AUTH_MODE": "token"}
    head = driver(HEAD, tmp_path / "head", **mode)
    assert head.stdout is not None
    address = head.stdout.readline().strip()
    given = ("", {"RAY_ADDRESS": address}) if is_variable else (address, {})
    joined = driver(JOIN, tmp_path / "join", source, tmp_path / "out", given[0], **mode, **given[1])
    _, complained = joined.communicate(timeout=300)
    assert (joined.returncode, complained) == (0, "")
    assert left_over(tmp_path / "join") == []
    said, complained = head.communicate("\n", timeout=300)
    assert (head.returncode, said.splitlines()[-1:]) == (0, ["still there"]), complained
    assert left_over(tmp_path / "head") == []
    tts.batch.transform(source, tmp_path / "here", **OPTIONS)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


@needs_ray
def test_a_cluster_that_cannot_be_had_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    words = r"the Ray cluster at address '{}' cannot be reached \(.*{}.*\)\. Hint: 'auto' on a node"
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(EngineError, match=words.format(address, "refused")):
            tts.batch.transform(source, tmp_path / "out", engine=tts.batch.RayEngine(address))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no\nway")

    monkeypatch.setattr("ray.init", fail)
    with pytest.raises(EngineError, match=words.format("auto", "no")):
        tts.batch.transform(source, tmp_path / "out", engine=tts.batch.RayEngine("auto"))
    with pytest.raises(EngineError, match=r"no local Ray cluster could be started \(no\)\."):
        tts.batch.transform(source, tmp_path / "out", engine="ray")

    def give_up(*_: object, **__: object) -> None:
        raise Exception("The current node timed out during startup.")  # noqa: TRY002 - as Ray does

    monkeypatch.setattr("ray.init", give_up)
    with pytest.raises(EngineError, match=r"could be started \(The current node timed out"):
        tts.batch.transform(source, tmp_path / "out", engine="ray")
