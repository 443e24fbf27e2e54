"""The result of a job on Ray is that of the local engine, whatever happens to its workers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.batch import ray_engine, ray_worker
from ttsframe.batch.progress import Amount
from ttsframe.errors import DataError, EngineError, ParameterError, SourceError

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
# Workers cannot import this file; what they need of it is sent to them.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc")

BUDGETS = [1, 4]
SMALL: dict[str, Any] = {"rows_per_part": 100}
SCORE, SELECT = tts.batch.Score(), tts.batch.Select(budgets=BUDGETS)


@pytest.fixture(scope="module")
def engine() -> Iterator[tts.batch.RayEngine]:
    """Keep one local cluster of two workers for all tests that do not start one themselves."""
    with tts.batch.RayEngine(n_workers=2) as kept:
        yield kept
    assert not ray.is_initialized()


def ragged() -> pl.DataFrame:
    """Return problems of 1 to 8 attempts, in no order, some of whose answers only a worker can read."""
    run = tts.simulate_trajectories(40, 8, seed=3, texts=True, n_steps=(1, 3)).drop("^true.*$")
    n_kept = pl.col("problem_id").rank("dense") % 8 + 1
    integral = pl.lit(r" so \boxed{\int_0^1 x\,dx}")
    hard = pl.when(pl.col("attempt") == 2).then(pl.col("completion") + integral)
    return (
        run
        .filter(pl.col("attempt") < n_kept)
        .with_columns(hard.otherwise("completion").alias("completion"))
        .sample(fraction=1.0, shuffle=True, seed=1)
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    rows = ragged()
    rows[:70].write_parquet(folder / "a.parquet", row_group_size=20)
    rows[70:].with_columns(seed=pl.lit(1)).write_parquet(folder / "b.parquet", row_group_size=50)
    rows[30:50].drop("gold").write_ndjson(folder / "c.jsonl")
    return folder


def contents(sink: Path) -> list[bytes]:
    return [path.read_bytes() for path in ([sink] if sink.is_file() else sorted(sink.iterdir()))]


def table(sink: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(sink.iterdir())])


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize(
    "stages",
    [
        [],
        [tts.batch.Score(texts=True)],
        [SCORE, tts.batch.Votes(budgets=BUDGETS)],
        [SCORE, SELECT],
        [SCORE, SELECT, tts.batch.Curve()],
    ],
    ids=["convert", "score", "votes", "select", "curve"],
)
def test_rows_are_those_of_the_local_engine(
    source: Path, tmp_path: Path, engine: tts.batch.RayEngine, stages: list[Any]
) -> None:
    options = {"stages": stages, "by": "source_file", "rows_per_part": 50}
    for name in ("folder", "file.parquet"):
        here, there = tmp_path / f"here-{name}", tmp_path / f"there-{name}"
        local = tts.batch.transform(source, here, **options)
        done = tts.batch.transform(source, there, engine=engine, **options)
        assert done == local._replace(sink=there)
        if not stages or not isinstance(stages[-1], tts.batch.Curve):
            assert done.n_parts > 2
        frames = [pl.read_parquet(sink) for sink in (here, there)]
        assert_frame_equal(frames[1], frames[0], check_exact=True)
        assert contents(there) == contents(here)
        assert hidden(tmp_path) == []


def test_keys_that_need_sympy_are_made_in_ray_workers(
    tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    answers = [rf"\int_0^{{{i}}} x\,dx" for i in range(1, 9)]
    rows = pl.DataFrame({
        "problem_id": [i % 20 for i in range(160)],
        "attempt": [i // 20 for i in range(160)],
        "answer": [answers[i % 8] for i in range(160)],
        "gold": ["2"] * 160,
    })
    rows.sample(fraction=1.0, shuffle=True, seed=2).write_parquet(tmp_path / "run.parquet")
    options: dict[str, Any] = {"stages": SCORE, "rows_per_part": 50, "engine": engine}
    tts.batch.transform(tmp_path / "run.parquet", tmp_path / "out", **options)
    found = table(tmp_path / "out")
    assert found.filter("is_correct")["answer"].unique().to_list() == [answers[1]]
    expected = tts.score_trajectories(rows.cast({"attempt": pl.UInt32}))
    keys = ["problem_id", "attempt"]
    assert_frame_equal(found.sort(keys), expected.sort(keys).select(found.columns))


def test_tasks_end_in_the_thread_of_the_caller(
    source: Path, tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    seen: list[tuple[str, int, int]] = []
    threads = set()

    def note(step: tts.batch.Progress) -> None:
        threads.add(threading.get_ident())
        seen.append((step.phase, step.n_tasks_done, step.n_tasks))

    tts.batch.transform(
        source,
        tmp_path / "out",
        stages=[SCORE, SELECT],
        by="source_file",
        engine=engine,
        progress=note,
        **SMALL,
    )
    assert threads == {threading.get_ident()}
    assert list(dict.fromkeys(phase for phase, _, _ in seen)) == [
        "scan",
        "answers",
        "keys",
        "parts",
    ]
    for name in ("scan", "parts"):
        of_phase = [(n_done, n) for phase, n_done, n in seen if phase == name]
        assert of_phase == [(i, of_phase[0][1]) for i in range(len(of_phase))]


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A task that does something else than a job's."""

    output: Path
    kind: str = "write"
    keeps_one_core: bool = False
    amount: Amount = field(default=Amount(0, 0))
    reads: str = "nothing"

    @property
    def name(self) -> str:
        return f"{self.kind} {self.output.name}"

    def run(self) -> None:
        getattr(self, self.kind)()

    def write(self) -> None:
        self.output.write_text(f"{os.getpid()} {pl.thread_pool_size()}")

    def refuse(self) -> None:
        raise DataError("the rows are wrong. Hint: make them right.")

    def break_(self) -> None:
        raise ZeroDivisionError("one by none")

    def break_strangely(self) -> None:
        class StrangeError(Exception):
            def __init__(self, first: object, second: object) -> None:
                super().__init__(f"{first} and {second}")

        raise StrangeError(1, 2)

    def wait(self) -> None:
        begun, ended = self.output.with_suffix(".begun"), self.output.with_suffix(".ended")
        try:
            begun.write_text(str(os.getpid()))
            for _ in range(3_000):
                time.sleep(0.1)
            self.write()
        finally:
            ended.touch()

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def die_once(self) -> None:
        begun = self.output.with_suffix(".begun")
        if not begun.exists():
            begun.touch()
            self.die()
        self.write()

    def write_elsewhere(self) -> None:
        return


def deeds(folder: Path, *kinds: str) -> list[Any]:
    return [Deed(output=folder / str(i), kind=kind) for i, kind in enumerate(kinds)]


def test_a_task_has_the_cores_it_asks_for(tmp_path: Path, engine: tts.batch.RayEngine) -> None:
    done: list[Any] = []
    tasks = deeds(tmp_path, *["write"] * 6)
    engine.run(tasks, done.append)
    assert sorted(task.output.name for task in done) == [task.output.name for task in tasks]
    told = [task.output.read_text().split() for task in tasks]
    assert {n_threads for _, n_threads in told} == {"1"}
    assert str(os.getpid()) not in {pid for pid, _ in told}
    wide = tts.batch.RayEngine(n_threads=2)
    wide.run(deeds(tmp_path / "wide", "write"), done.append)
    assert (tmp_path / "wide" / "0").read_text().split()[1] == "2"
    with pytest.raises(ParameterError, match="n_threads == 3, must be at most 2, the cores of the"):
        tts.batch.RayEngine(n_threads=3).run(deeds(tmp_path / "wider", "write"), done.append)


def test_an_error_of_a_task_is_the_one_that_it_raised(
    tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    with pytest.raises(DataError) as caught:
        engine.run(deeds(tmp_path, "write", "refuse"), lambda _: None)
    assert type(caught.value) is DataError
    assert str(caught.value) == "the rows are wrong. Hint: make them right."
    assert caught.value.__notes__[0].startswith("at refuse 1, on node ")
    with pytest.raises(ZeroDivisionError, match="one by none") as other:
        engine.run(deeds(tmp_path / "other", "break_"), lambda _: None)
    assert "in break_\n" in other.value.__notes__[0]
    with pytest.raises(RuntimeError, match="StrangeError: 1 and 2"):
        engine.run(deeds(tmp_path / "strange", "break_strangely"), lambda _: None)


def test_a_job_that_fails_says_so_as_the_local_engine_does(
    tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    run = tts.simulate_trajectories(40, 4, seed=0, keys=True)
    twice = run.filter(pl.col("problem_id") == run["problem_id"][30])
    pl.concat([run, twice]).write_parquet(tmp_path / "run.parquet", row_group_size=50)
    said = []
    for name, runs in {"here": "polars", "there": engine}.items():
        with pytest.raises(DataError) as caught:
            tts.batch.transform(
                tmp_path / "run.parquet",
                tmp_path / name,
                stages=tts.batch.Votes(budgets=4),
                engine=runs,  # type: ignore[arg-type]
                **SMALL,
            )
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_the_first_failure_ends_the_other_tasks(
    tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    (tmp_path / "0.begun").touch()

    @dataclass(frozen=True, kw_only=True)
    class RefuseLater(Deed):
        def run(self) -> None:
            while not self.output.with_name("0.begun").read_text():
                time.sleep(0.02)
            raise DataError("no")

    tasks = [*deeds(tmp_path, "wait"), RefuseLater(output=tmp_path / "1")]
    with pytest.raises(DataError, match="no"):
        engine.run([*tasks, *deeds(tmp_path / "more", *["write"] * 40)], lambda _: None)
    assert (tmp_path / "0.ended").exists()
    assert not (tmp_path / "0").exists()


def test_an_error_of_the_caller_ends_the_tasks(tmp_path: Path, engine: tts.batch.RayEngine) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(deeds(tmp_path, "write", "wait"), interrupt)
    assert not (tmp_path / "1").exists()
    assert (tmp_path / "1.ended").exists() == (tmp_path / "1.begun").exists()


def test_a_worker_that_dies_is_replaced_a_few_times(
    tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    engine.run(deeds(tmp_path, "die_once", "write"), lambda _: None)
    assert (tmp_path / "0").exists()
    impatient = tts.batch.RayEngine(n_retries=1)
    words = (
        r"die 0: its worker died, also in 1 retries \(.*\)\. Hint: rerun the same call; completed"
    )
    with pytest.raises(EngineError, match=words):
        impatient.run(deeds(tmp_path / "more", "die"), lambda _: None)


@dataclass(frozen=True, kw_only=True)
class DiesOnce:
    """A task whose worker dies once, when the output is written but has not its name yet."""

    task: Any
    mark: Path

    def __getattr__(self, name: str) -> Any:
        if name in {"task", "mark"}:  # asked for while it is unpickled
            raise AttributeError(name)
        return getattr(self.task, name)

    def run(self) -> None:
        if not self.mark.exists():
            self.mark.touch()
            Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment,misc]
        self.task.run()


class Lossy:
    """An engine that loses a worker in the first task of a phase."""

    def __init__(self, engine: tts.batch.RayEngine, kind: str, mark: Path) -> None:
        self.engine, self.kind, self.mark = engine, kind, mark

    def run(self, tasks: Any, on_done: Any) -> None:
        first, *others = tasks
        if first.name.startswith(self.kind):
            first = DiesOnce(task=first, mark=self.mark)
        self.engine.run([first, *others], on_done)


@pytest.mark.parametrize("kind", ["slice", "keys", "part"])
def test_a_worker_that_is_killed_in_a_task_does_not_change_the_result(
    tmp_path: Path, engine: tts.batch.RayEngine, kind: str
) -> None:
    rows = ragged()
    path, mark = tmp_path / "run.parquet", tmp_path / "mark"
    rows.write_parquet(path, row_group_size=20)
    tts.batch.transform(path, tmp_path / "here", stages=[SCORE, SELECT], **SMALL)
    sink = tmp_path / "there"
    lossy: Any = Lossy(engine, kind, mark)
    tts.batch.transform(path, sink, stages=[SCORE, SELECT], engine=lossy, **SMALL)
    assert mark.exists()
    assert contents(sink) == contents(tmp_path / "here")
    assert hidden(tmp_path) == []


class StoppedError(Exception):
    """Stands for whatever ends a job."""


class Stops:
    """An engine that is stopped after some tasks."""

    def __init__(self, engine: Any, n_tasks: int) -> None:
        self.engine, self.n_left = engine, n_tasks

    def run(self, tasks: Any, on_done: Any) -> None:
        for task in tasks:
            if self.n_left == 0:
                raise StoppedError
            self.n_left -= 1
            self.engine.run([task], on_done)


@pytest.mark.parametrize("is_begun_here", [True, False])
def test_a_job_that_one_engine_began_is_finished_by_another(
    source: Path, tmp_path: Path, engine: tts.batch.RayEngine, *, is_begun_here: bool
) -> None:
    engines: list[Any] = [tts.batch.LocalEngine(), engine]
    first, second = engines if is_begun_here else reversed(engines)
    options: dict[str, Any] = {"stages": [SCORE, SELECT], "by": "source_file", **SMALL}
    tts.batch.transform(source, tmp_path / "whole", **options)
    n_slices = tts.batch.read_manifest(tmp_path / "whole").layout["n_slices"]
    assert isinstance(n_slices, int)
    sink = tmp_path / "out"
    with pytest.raises(StoppedError):
        tts.batch.transform(source, sink, engine=Stops(first, n_slices + 3), **options)
    done = tts.batch.transform(source, sink, engine=second, **options)
    assert done.n_parts_resumed == 1
    assert contents(sink) == contents(tmp_path / "whole")
    again = tts.batch.transform(source, sink, engine=Stops(first, 0), **options)
    assert again.manifest == done.manifest
    assert "ray" not in done.manifest.to_json()


def test_files_that_a_node_does_not_see_are_named(
    tmp_path: Path, engine: tts.batch.RayEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "_PATIENCE", 0.2)
    (task,) = deeds(tmp_path, "write")
    seen = {tmp_path: 1, tmp_path / "gone.parquet": 0}
    order = ray_worker.Order(task, seen, ray_worker.decisive_versions(), 0.0)
    failure = ray_worker.run_order(order)
    assert isinstance(failure, SourceError)
    assert str(failure).startswith(f"{tmp_path}: is missing or incomplete on node ")
    (tmp_path / ".hidden").touch()
    assert ray_worker.run_order(order) is not None
    (tmp_path / "shown").touch()
    words = (
        r"gone\.parquet: is missing or incomplete.* under the same paths, on a shared file system"
    )
    failure = ray_worker.run_order(order)
    assert failure is not None
    with pytest.raises(SourceError, match=words):
        raise failure
    assert not task.output.exists()
    with pytest.raises(SourceError, match="was made on another node and is missing on this one"):
        engine.run(deeds(tmp_path, "write_elsewhere"), lambda _: None)


def test_a_file_that_another_node_has_written_is_waited_for(tmp_path: Path) -> None:
    late = threading.Timer(0.3, (tmp_path / "late").touch)
    late.start()
    assert ray_worker.wait_until_seen({tmp_path / "late": 0}, 10.0) is None
    late.join()


def test_other_versions_on_a_node_are_refused(tmp_path: Path) -> None:
    (task,) = deeds(tmp_path, "write")
    versions = {**ray_worker.decisive_versions(), "polars": "1.9"}
    failure = ray_worker.run_order(ray_worker.Order(task, {}, versions, 0.0))
    assert isinstance(failure, EngineError)
    assert f"has polars {pl.__version__}, not 1.9, so rows could be divided" in str(failure)
    assert not task.output.exists()


def test_a_cluster_that_is_there_is_joined_and_left(
    source: Path, tmp_path: Path, engine: tts.batch.RayEngine
) -> None:
    engine.run(deeds(tmp_path, "write"), lambda _: None)
    for other in ("ray", tts.batch.RayEngine(n_workers=1), tts.batch.RayEngine("nowhere:1")):
        sink = tmp_path / f"{id(other)}.parquet"
        tts.batch.transform(source, sink, engine=other)  # type: ignore[arg-type]
        assert ray.is_initialized()
