"""Jobs import functions of a user by name, record them, and notice a change."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.batch.failures import run_task
from ttsframe.errors import EngineError, ParameterError, SourceError

SOURCE = """
import polars as pl

def best():
    return pl.col("attempt").filter(pl.col("score") == pl.col("score").max()).min()

def wordiest():
    n_chars = pl.col("completion").str.len_chars()
    return pl.col("attempt").sort_by(n_chars, "attempt", descending=[True, False]).first()

def half(step_scores):
    return step_scores.list.last() / {divisor}

def says_so():
    return pl.col("completion").str.contains("answer is", literal=True) & (pl.col("answer") == pl.col("gold"))
"""

NAME = "own_functions_of_a_test"


def write_module(folder: Path, divisor: int = 2) -> None:
    (folder / f"{NAME}.py").write_text(SOURCE.format(divisor=divisor), encoding="utf-8")
    importlib.invalidate_caches()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module of the user that is importable in this process."""
    folder = tmp_path / "package"
    folder.mkdir()
    write_module(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    run = tts.simulate_trajectories(40, 4, seed=3, texts=True, n_steps=(1, 3))
    path = tmp_path / "run.parquet"
    columns = ["problem_id", "attempt", "completion", "gold", "step_scores"]
    run.select(columns).sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path)
    return path


def stages_of(own: ModuleType) -> list[Any]:
    return [
        tts.batch.Score(grade=own.says_so, reduction=own.half, texts=True),
        tts.batch.Select(selectors=["oracle", own.best, own.wordiest], budgets=[1, 4]),
    ]


@pytest.mark.parametrize("rows_per_part", [1_000, 50])
def test_a_job_gives_what_the_functions_give(
    source: Path, tmp_path: Path, own: Any, rows_per_part: int
) -> None:
    sink = tmp_path / "out.parquet"
    tts.batch.transform(source, sink, stages=stages_of(own), rows_per_part=rows_per_part)
    expected = (
        tts
        .scan_trajectories(source)
        .pipe(tts.score_trajectories, grade=own.says_so, reduction=own.half)
        .pipe(tts.select_answers, selectors=["oracle", own.best, own.wordiest], budgets=[1, 4])
        .collect()
    )
    keys = ["problem_id", "budget", "selector"]
    assert_frame_equal(pl.read_parquet(sink).sort(keys), expected.sort(keys))
    assert expected["is_correct"].any()


def test_a_grade_over_texts_works_although_texts_are_not_kept(
    source: Path, tmp_path: Path, own: Any
) -> None:
    for rows_per_part in (1_000, 50):
        sink = tmp_path / f"{rows_per_part}.parquet"
        score = tts.batch.Score(grade=own.says_so)
        tts.batch.transform(source, sink, stages=score, rows_per_part=rows_per_part)
        found = pl.read_parquet(sink).sort("problem_id", "attempt")
        assert "completion" not in found.columns
        expected = tts.score_trajectories(tts.read_trajectories(source), grade=own.says_so)
        expected = expected.sort("problem_id", "attempt")
        assert found["is_correct"].equals(expected["is_correct"])
        assert found["is_correct"].any()


def test_the_manifest_names_functions_and_the_file_that_defines_them(
    source: Path, tmp_path: Path, own: Any
) -> None:
    manifest = tts.batch.transform(source, tmp_path / "out", stages=stages_of(own)).manifest
    score, select = manifest.stages
    assert score["grade"] == f"{NAME}:says_so"
    assert score["reduction"] == f"{NAME}:half"
    assert select["selectors"] == ["oracle", f"{NAME}:best", f"{NAME}:wordiest"]
    versions = {manifest.versions[f"{NAME}:{name}"] for name in ("best", "wordiest", "half")}
    (version,) = versions
    assert version.startswith("source ")


def test_a_changed_function_is_noticed_before_work_is_mixed(
    source: Path, tmp_path: Path, own: Any
) -> None:
    sink = tmp_path / "out"
    tts.batch.transform(source, sink, stages=stages_of(own))
    assert tts.batch.transform(source, sink, stages=stages_of(own)).n_parts_resumed == 1
    write_module(Path(own.__file__).parent, divisor=3)
    with pytest.raises(SourceError, match=rf"version of {NAME}:best: 'source \w+' -> 'source \w+'"):
        tts.batch.transform(source, sink, stages=stages_of(own))


def test_an_unfinished_job_with_a_changed_function_is_not_resumed(
    source: Path, tmp_path: Path, own: Any
) -> None:
    class Stopping:
        def run(self, tasks: Any, _: Any) -> None:
            run_task(tasks[0])
            raise KeyboardInterrupt

    options: dict[str, Any] = {"stages": stages_of(own), "rows_per_part": 50}
    with pytest.raises(KeyboardInterrupt):
        tts.batch.transform(source, tmp_path / "out", engine=Stopping(), **options)
    write_module(Path(own.__file__).parent, divisor=3)
    with pytest.raises(ParameterError, match=rf"unfinished job .*version of {NAME}:best"):
        tts.batch.transform(source, tmp_path / "out", **options)


def test_a_function_that_changes_during_the_job_stops_it(
    source: Path, tmp_path: Path, own: Any
) -> None:
    class Meddling:
        def run(self, tasks: Any, _: Any) -> None:
            write_module(Path(own.__file__).parent, divisor=3)
            for task in tasks:
                run_task(task)

    with pytest.raises(EngineError, match=rf"{NAME}:\w+ has changed since the job began"):
        tts.batch.transform(source, tmp_path / "out", stages=stages_of(own), engine=Meddling())


def test_an_expression_as_grade_is_recorded(source: Path, tmp_path: Path) -> None:
    score = tts.batch.Score(grade=pl.col("answer") == pl.col("gold"))
    done = tts.batch.transform(source, tmp_path / "out", stages=score)
    assert "gold" in str(done.manifest.stages[0]["grade"])
    assert tts.batch.transform(source, tmp_path / "out", stages=score).n_parts_resumed == 1
    other = tts.batch.Score(grade=pl.col("answer") != pl.col("gold"))
    with pytest.raises(SourceError, match="score grade: "):
        tts.batch.transform(source, tmp_path / "out", stages=other)


def test_expressions_that_print_alike_are_told_apart(source: Path, tmp_path: Path) -> None:
    numbers = [*map(str, range(500))]
    first = pl.col("answer").is_in(numbers)
    second = pl.col("answer").is_in([*numbers[:250], "?", *numbers[251:]])
    assert str(first) == str(second)
    tts.batch.transform(source, tmp_path / "out", stages=tts.batch.Score(grade=first))
    with pytest.raises(SourceError, match="score grade: "):
        tts.batch.transform(source, tmp_path / "out", stages=tts.batch.Score(grade=second))


def test_functions_that_no_other_process_can_import_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def local() -> pl.Expr:
        return pl.col("attempt").first()

    def run(selector: Any) -> None:
        stages = [tts.batch.Score(), tts.batch.Select(selectors=selector)]
        tts.batch.transform(source, tmp_path / "out", stages=stages)

    with pytest.raises(ParameterError, match="defined inside of another function"):
        run(local)
    with pytest.raises(ParameterError, match="is a lambda; a job runs in other processes"):
        run(lambda: pl.col("attempt").first())
    monkeypatch.setattr(local, "__module__", "__main__")
    monkeypatch.setattr(local, "__qualname__", "local")
    with pytest.raises(ParameterError, match="defined in a script or notebook"):
        run(local)
    assert not (tmp_path / "out").exists()


ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")


@pytest.mark.skipif(sys.platform == "win32", reason="as the other tests on Ray")
def test_ray_workers_import_functions_by_name(
    source: Path, tmp_path: Path, own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(Path(own.__file__).parent)
    options: dict[str, Any] = {"stages": stages_of(own), "rows_per_part": 50}
    tts.batch.transform(source, tmp_path / "here.parquet", **options)
    expected = pl.read_parquet(tmp_path / "here.parquet")
    # Workers of a cluster do not have the path of this process.
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != folder])
    with (
        tts.batch.RayEngine(n_workers=1) as engine,
        pytest.raises(EngineError, match=f"no module '{NAME}' .*on a cluster on every node"),
    ):
        tts.batch.transform(source, tmp_path / "there.parquet", engine=engine, **options)
    monkeypatch.setenv("PYTHONPATH", folder)
    with tts.batch.RayEngine(n_workers=1) as engine:
        tts.batch.transform(source, tmp_path / "there.parquet", engine=engine, **options)
    assert_frame_equal(pl.read_parquet(tmp_path / "there.parquet"), expected)
