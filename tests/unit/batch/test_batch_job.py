"""A job that is stopped goes on; what it makes appears whole; what has changed is not mixed in."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.batch.job import Job
from ttsframe.batch.lock import locked
from ttsframe.errors import ParameterError, SourceError

STAGES = [tts.batch.Score(), tts.batch.Select(budgets=[1, 4])]
SMALL: dict[str, Any] = {"stages": STAGES, "rows_per_part": 100}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "run.parquet"
    run = tts.simulate_trajectories(40, 8, seed=3, texts=True, n_steps=(1, 3)).drop("^true.*$")
    run.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path, row_group_size=50)
    return path


@pytest.fixture
def whole(source: Path, tmp_path: Path) -> list[bytes]:
    """Return what an unbroken job writes."""
    tts.batch.transform(source, tmp_path / "unbroken", **SMALL)
    return contents(tmp_path / "unbroken")


def contents(sink: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(sink.iterdir())]


def tables(sink: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(sink.iterdir())])


class StoppedError(Exception):
    """Stands for whatever ends a job."""


class Stops:
    """An engine that is stopped after some tasks."""

    def __init__(self, n_tasks: int) -> None:
        self.n_left = n_tasks

    def run(self, tasks: Any, on_done: Any) -> None:
        for task in tasks:
            if self.n_left == 0:
                raise StoppedError
            self.n_left -= 1
            tts.batch.LocalEngine().run([task], on_done)


def stop(source: Path, sink: Path, n_tasks: int, **options: Any) -> None:
    with pytest.raises(StoppedError):
        tts.batch.transform(source, sink, engine=Stops(n_tasks), **{**SMALL, **options})
    assert Job(sink).folder.is_dir()


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_a_stopped_job_goes_on_where_it_was(
    source: Path, tmp_path: Path, whole: list[bytes]
) -> None:
    for n_tasks in (0, 1, 4, 5, 6, 9):
        sink = tmp_path / f"out{n_tasks}"
        stop(source, sink, n_tasks)
        assert not sink.exists()
        seen: list[tts.batch.Progress] = []
        done = tts.batch.transform(source, sink, progress=seen.append, **SMALL)
        assert seen[0].n_tasks_done == min(n_tasks, 4)
        assert done.n_parts_resumed == max(0, n_tasks - 6)
        assert contents(sink) == whole
        assert hidden(tmp_path) == []


def test_a_finished_job_is_not_done_again(source: Path, tmp_path: Path) -> None:
    for name in ("out", "out.parquet"):
        sink = tmp_path / name
        first = tts.batch.transform(source, sink, **SMALL)
        again = tts.batch.transform(source, sink, engine=Stops(0), **SMALL)
        assert again == first._replace(n_parts_resumed=first.n_parts)
        os.utime(source)
        assert tts.batch.transform(source, sink, engine=Stops(0), **SMALL).n_rows == first.n_rows
        renewed = tts.batch.transform(source, sink, overwrite=True, **SMALL)
        assert renewed.n_parts_resumed == 0


@pytest.mark.parametrize("name", ["out", "out.parquet"])
def test_what_was_made_otherwise_is_replaced_only_by_name_and_only_when_the_new_is_whole(
    source: Path, tmp_path: Path, name: str
) -> None:
    sink = tmp_path / name
    tts.batch.transform(source, sink, rows_per_part=100)
    with pytest.raises(
        SourceError,
        match=r"different settings: stages: \[\] -> \['score', 'select'\]\. Hint: overwrite=True",
    ):
        tts.batch.transform(source, sink, **SMALL)
    old = tts.batch.read_manifest(sink)
    stop(source, sink, 5, overwrite=True)
    assert tts.batch.read_manifest(sink) == old
    done = tts.batch.transform(source, sink, overwrite=True, **SMALL)
    assert tts.batch.read_manifest(sink) == done.manifest != old
    assert hidden(tmp_path) == []


def test_a_strangers_file_stays(source: Path, tmp_path: Path) -> None:
    sink = tmp_path / "out.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(sink)
    with pytest.raises(
        SourceError, match=r"out\.parquet: already exists and was not written by a ttsframe job"
    ):
        tts.batch.transform(source, sink)
    assert pl.read_parquet(sink)["a"].to_list() == [1]
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("all my work")
    with pytest.raises(SourceError, match="mine: already exists and was not written"):
        tts.batch.transform(source, folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert tts.batch.transform(source, empty).n_rows == 320


def test_a_sink_that_cannot_be_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is one of the sources and would be replaced"):
        tts.batch.transform(source, source)
    with pytest.raises(SourceError, match="is one of the sources"):
        tts.batch.transform(source, tmp_path)
    with pytest.raises(SourceError, match=r"gone: no such folder, so out\.parquet"):
        tts.batch.transform(source, tmp_path / "gone" / "out.parquet")
    (tmp_path / "dir.parquet").mkdir()
    with pytest.raises(SourceError, match=r"dir\.parquet: is a folder\. Hint: a name that ends"):
        tts.batch.transform(source, tmp_path / "dir.parquet")
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="file: is a file"):
        tts.batch.transform(source, tmp_path / "file")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stages": [tts.batch.Score()]}, r"stages: \['score', 'select'\] -> \['score'\]"),
        ({"by": "gold"}, r"by: \[\] -> \['gold'\]"),
        ({"rows_per_part": 120}, "parts n_rows: 100 -> 120"),
        ({"on_error": "skip"}, "reading on_error: 'raise' -> 'skip'"),
    ],
)
def test_other_options_are_not_mixed_in(
    source: Path, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    sink = tmp_path / "out"
    stop(source, sink, 8)
    with pytest.raises(
        ParameterError, match=f"unfinished job with different settings: {words}.*restart=True"
    ):
        tts.batch.transform(source, sink, **{**SMALL, **options})
    assert tts.batch.transform(source, sink, restart=True, **{**SMALL, **options}).n_rows > 0
    assert hidden(tmp_path) == []


def test_another_version_or_a_changed_source_is_not_mixed_in(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: list[bytes]
) -> None:
    sink = tmp_path / "out"
    stop(source, sink, 8)
    with monkeypatch.context() as patched:
        patched.setattr("ttsframe.batch.manifest.version", lambda _: "9.9")
        with pytest.raises(ParameterError, match=r"version of polars: '.*' -> '9\.9'; version of"):
            tts.batch.transform(source, sink, **SMALL)
    before = source.read_bytes()
    pl.read_parquet(source).with_columns(gold=pl.lit("1")).write_parquet(source)
    with pytest.raises(ParameterError, match=r"source file .*run\.parquet changed \("):
        tts.batch.transform(source, sink, **SMALL)
    source.write_bytes(before)
    done = tts.batch.transform(source, sink, **SMALL)
    assert done.n_parts_resumed > 0
    assert contents(sink) == whole
    source.write_bytes(before[:-1])
    with pytest.raises(SourceError, match=r"different settings: source file .* changed"):
        tts.batch.transform(source, sink, **SMALL)


def test_a_folder_that_cannot_be_replaced_is_named_before_any_work(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = tmp_path / "out"
    tts.batch.transform(source, sink, **SMALL)
    # Rights do not hold for root, who may run this test.
    access = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != sink and access(path, mode))
    with pytest.raises(SourceError, match="out: cannot be written to, so it cannot be replaced"):
        tts.batch.transform(source, sink, overwrite=True, engine=Stops(0), **SMALL)


def test_a_source_that_changes_meanwhile_is_noticed_at_the_end(
    source: Path, tmp_path: Path
) -> None:
    sink = tmp_path / "out"

    def change(step: tts.batch.Progress) -> None:
        if step.phase == "parts" and step.n_tasks_done == step.n_tasks:
            source.write_bytes(source.read_bytes() + b"x")

    with pytest.raises(SourceError, match=r"run\.parquet: has changed since the job began"):
        tts.batch.transform(source, sink, progress=change, **SMALL)
    assert not sink.exists()


def test_leftovers_of_a_killed_run_are_cleared(
    source: Path, tmp_path: Path, whole: list[bytes]
) -> None:
    sink = tmp_path / "out"
    stop(source, sink, 3)
    left = Job(sink).folder / "slices" / ".00007.123-abc.tmp" / "00007"
    left.mkdir(parents=True)
    (left / "00001.0.parquet").write_bytes(b"PAR1 half")
    tts.batch.transform(source, sink, **SMALL)
    assert contents(sink) == whole
    Job(sink).folder.mkdir()
    assert tts.batch.transform(source, sink, **SMALL).n_parts_resumed > 0
    assert hidden(tmp_path) == []


def test_a_run_killed_between_the_renames_goes_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: list[bytes]
) -> None:
    sink = tmp_path / "out"
    tts.batch.transform(source, sink, rows_per_part=100)
    with monkeypatch.context() as patched:
        patched.setattr(Job, "remove", lambda _: None)
        tts.batch.transform(source, sink, overwrite=True, **SMALL)
    # Killed after the renames: what is left in the folder of the job is of no use to another job.
    assert contents(sink) == whole
    tts.batch.transform(source, sink, overwrite=True, rows_per_part=100)
    assert hidden(tmp_path) == []
    stop(source, sink, 9, overwrite=True)
    sink.rename(Job(sink).folder / "replaced")
    tts.batch.transform(source, sink, **SMALL)
    assert contents(sink) == whole
    assert hidden(tmp_path) == []


def test_a_second_job_on_one_output_is_told_who_writes_it(source: Path, tmp_path: Path) -> None:
    sink = tmp_path / "out"
    first_words = rf"out: another job is writing it \(process {os.getpid()} on .*, since 20.*\)"

    def again(_: tts.batch.Progress) -> None:
        with pytest.raises(SourceError, match=first_words):
            tts.batch.transform(source, sink, **SMALL)

    assert tts.batch.transform(source, sink, progress=again, **SMALL).n_rows > 0


def test_a_lock_is_taken_by_one_of_many_at_a_time(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from ttsframe.batch.lock import locked\n"
        "from ttsframe.errors import SourceError\n"
        "lock, held = pathlib.Path(sys.argv[1], 'lock'), pathlib.Path(sys.argv[1], 'held')\n"
        "n = 0\n"
        "while n < 200:\n"
        "    try:\n"
        "        with locked(lock, lock):\n"
        "            held.touch(exist_ok=False); held.unlink(); n += 1\n"
        "    except SourceError:\n"
        "        pass\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for process in running:
        _, said = process.communicate(timeout=300)
        assert (process.returncode, said) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_a_file_stands_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsframe.batch.lock.sys.platform", "win32")
    lock = tmp_path / "lock"
    words = r"another job is writing it \(process .*delete .*lock if that"
    with locked(lock, tmp_path), pytest.raises(SourceError, match=words), locked(lock, tmp_path):
        pytest.fail("two jobs at once")
    assert not lock.exists()
    lock.write_bytes(b"")
    words = r"another job is writing it \(see .*lock\)"
    with pytest.raises(SourceError, match=words), locked(lock, tmp_path):
        pytest.fail("the file was there")


PROGRAM = """
import os, pathlib, signal, sys
import ttsframe as tts

n_calls = int(sys.argv[3])

def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

def count(step) -> None:
    global n_calls
    n_calls -= 1
    if n_calls == 0:
        die()

if sys.argv[4]:  # in the middle of writing a part, or of renaming the result
    rename = pathlib.Path.replace

    def replace(path, target):
        if str(target).endswith(sys.argv[4]):
            die()
        return rename(path, target)

    pathlib.Path.replace = replace
stages = [tts.batch.Score(), tts.batch.Select(budgets=[1, 4])]
tts.batch.transform(sys.argv[1], sys.argv[2], stages=stages, rows_per_part=100, progress=count)
"""


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_job_that_is_killed_again_and_again_gives_the_same_rows(
    source: Path, tmp_path: Path, whole: list[bytes], seed: int
) -> None:
    calls, sink = random.Random(seed), tmp_path / "out"
    command = [sys.executable, "-c", PROGRAM, str(source), str(sink)]
    # Each run ends itself: after some reports of progress, or before a rename.
    points = [(str(calls.randint(1, 3)), "") for _ in range(2)]
    points += [("0", "part-00001.parquet"), ("0", "publishing"), ("0", "out")]
    for n_calls, name in points:
        done = subprocess.run([*command, n_calls, name], check=False, timeout=300)
        assert done.returncode == -signal.SIGKILL
        assert not sink.exists()
    tts.batch.transform(source, sink, **SMALL)
    assert contents(sink) == whole
    assert hidden(tmp_path) == []


def test_a_damaged_row_group_is_named_and_earlier_work_is_kept(
    source: Path, tmp_path: Path, whole: list[bytes]
) -> None:
    from pyarrow import parquet

    assert whole

    column = parquet.read_metadata(source).row_group(4).column(3)
    begin = column.dictionary_page_offset or column.data_page_offset
    content = source.read_bytes()
    middle = begin + column.total_compressed_size // 2
    damaged = bytearray(content)
    damaged[begin + 20 : middle] = bytes(len(damaged[begin + 20 : middle]))
    source.write_bytes(bytes(damaged))
    name = pl.read_parquet_schema(source)
    assert list(name)[3] == "completion"
    sink = tmp_path / "out"
    with pytest.raises(SourceError, match=r"run\.parquet, rows 201 to 300: cannot be read"):
        tts.batch.transform(source, sink, **SMALL)
    # Two slices are read at a time, so what stood beside the damage may be there, too.
    kept = {each.name for each in (Job(sink).folder / "slices").iterdir()}
    assert {"00000", "00001"} <= kept <= {"00000", "00001", "00003"}
    assert not sink.exists()
    source.write_bytes(content)
    with pytest.raises(ParameterError, match="changed"):
        tts.batch.transform(source, sink, **SMALL)
    tts.batch.transform(source, sink, restart=True, **SMALL)
    assert tables(sink).equals(tables(tmp_path / "unbroken"))


def test_a_file_that_goes_away_is_named_and_may_come_back(
    source: Path, tmp_path: Path, whole: list[bytes]
) -> None:
    sink, away = tmp_path / "out", tmp_path / "away"

    def hide(step: tts.batch.Progress) -> None:
        if step.phase == "scan" and step.n_tasks_done == 2:
            source.rename(away)

    with pytest.raises(SourceError, match=r"run\.parquet.*: cannot be read \(.*No such file"):
        tts.batch.transform(source, sink, progress=hide, **SMALL)
    away.rename(source)
    seen: list[tts.batch.Progress] = []
    tts.batch.transform(source, sink, progress=seen.append, **SMALL)
    # What was done before is kept; how far a thread had read ahead is a matter of time.
    assert seen[0].n_tasks_done >= 2
    assert contents(sink) == whole


LIMITED = """
import resource, signal, sys
import ttsframe as tts
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    tts.batch.transform(sys.argv[1], sys.argv[2], stages=tts.batch.Score(texts=True), rows_per_part=100)
except tts.TtsframeError as error:
    print(error)
    sys.exit(3)
"""


def test_a_disk_that_takes_no_more_is_said_and_work_goes_on_when_it_does(
    source: Path, tmp_path: Path
) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    sink = tmp_path / "out"
    command = [sys.executable, "-c", LIMITED, str(source), str(sink), "8000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 3, done.stderr
    assert "could not be written (File too large)" in done.stdout
    assert "rerun the same call; completed parts are reused" in done.stdout
    assert not sink.exists()
    stages = tts.batch.Score(texts=True)
    assert tts.batch.transform(source, sink, stages=stages, rows_per_part=100).n_rows == 320
    assert hidden(tmp_path) == []
