"""The result of a job is that of the functions in memory, however the job was divided."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.batch.plan import Size, make_plan
from ttsframe.errors import ColumnsError, DataError, ParameterError, SourceError
from ttsframe.readers.trajectories import plan_reading

BUDGETS = [1, 4, 8]
KEYS = ["source_file", "problem_id", "attempt", "budget", "selector", "reduction", "first_attempt"]
SMALL = {"rows_per_part": 100}


def texts() -> pl.DataFrame:
    return tts.simulate_trajectories(40, 8, seed=3, texts=True, n_steps=(1, 3)).drop("^true.*$")


def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sample(fraction=1.0, shuffle=True, seed=7)


def as_grouped(folder: Path) -> Path:
    texts().write_parquet(folder / "run.parquet", row_group_size=50)
    return folder / "run.parquet"


def as_shuffled(folder: Path) -> Path:
    shuffled(texts()).write_parquet(folder / "run.parquet", row_group_size=50)
    return folder / "run.parquet"


def as_several_files(folder: Path) -> Path:
    rows = shuffled(texts())
    (folder / "runs").mkdir()
    rows[:150].write_parquet(folder / "runs" / "a.parquet", row_group_size=50)
    more = rows[150:].with_columns(seed=pl.lit(1), n_tokens=pl.col("n_tokens").cast(pl.Int32))
    more.write_parquet(folder / "runs" / "b.parquet")
    return folder / "runs"


def as_json_lines(folder: Path) -> Path:
    columns = ["problem_id", "attempt", "completion", "gold", "step_scores"]
    shuffled(texts()).select(columns).write_ndjson(folder / "run.jsonl")
    return folder / "run.jsonl"


def as_search_and_learn(folder: Path) -> Path:
    rows = (
        texts()
        .group_by("problem_id", "problem", maintain_order=True)
        .agg(
            pl.col("gold").first().alias("answer"),
            completions="completion",
            scores="step_scores",
        )
    )
    rows.write_ndjson(folder / "bon.jsonl")
    return folder / "bon.jsonl"


SOURCES = [as_grouped, as_shuffled, as_several_files, as_json_lines, as_search_and_learn]


def read(sink: Path) -> pl.DataFrame:
    files = [sink] if sink.is_file() else sorted(sink.iterdir())
    return pl.concat([pl.read_parquet(file) for file in files])


def assert_same_rows(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    keys = [name for name in KEYS if name in expected.columns]
    assert_frame_equal(
        found.sort(keys), expected.sort(keys), check_exact=False, rel_tol=1e-12, abs_tol=1e-12
    )


@pytest.mark.parametrize(
    ("make_source", "options"),
    [
        pytest.param(as_grouped, {}, id="whole"),
        pytest.param(as_several_files, {}, id="whole, several files"),
        *[pytest.param(make, SMALL, id=f"in parts, {make.__name__}") for make in SOURCES],
    ],
)
def test_each_table_is_that_of_the_functions_in_memory(
    tmp_path: Path, make_source: Callable[[Path], Path], options: dict[str, Any]
) -> None:
    source = make_source(tmp_path)
    attempts = tts.read_trajectories(source)
    by = ["source_file"] if "source_file" in attempts.columns else []
    scored = tts.score_trajectories(attempts)
    problems = tts.select_answers(scored, budgets=BUDGETS, by=by)
    score, select = tts.batch.Score(), tts.batch.Select(budgets=BUDGETS)
    expected: dict[str, tuple[list[Any], pl.DataFrame]] = {
        "plain.parquet": ([], attempts),
        "scored": ([score], scored.drop("problem", "completion", "solution", strict=False)),
        "texts.parquet": ([tts.batch.Score(texts=True)], scored),
        "votes": (
            [score, tts.batch.Votes(budgets=BUDGETS)],
            tts.tally_votes(scored, budgets=BUDGETS, by=by),
        ),
        "problems.parquet": ([score, select], problems),
        "curve.parquet": (
            [score, select, tts.batch.Curve()],
            tts.scaling_curve(problems, by=by),
        ),
    }
    for name, (stages, table) in expected.items():
        sink = tmp_path / name
        done = tts.batch.transform(source, sink, stages=stages, by=by, **options)
        assert_same_rows(read(sink), table)
        assert done.n_rows == table.height
        assert done.n_bytes == sum(
            p.stat().st_size for p in ([sink] if sink.is_file() else sink.iterdir())
        )
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def kind_of(source: Path, tmp_path: Path, **options: Any) -> str:
    done = tts.batch.transform(source, tmp_path / "kind", overwrite=True, **{**SMALL, **options})
    assert done.n_parts > 1
    return str(done.manifest.layout["kind"])


def test_rows_that_stand_together_are_not_moved(tmp_path: Path) -> None:
    assert kind_of(as_grouped(tmp_path), tmp_path) == "grouped"
    assert kind_of(as_shuffled(tmp_path), tmp_path) == "hashed"
    seeds = pl.concat([texts().with_columns(seed=pl.lit(seed)) for seed in (0, 1)])
    path = tmp_path / "seeds.parquet"
    seeds.write_parquet(path)
    assert kind_of(path, tmp_path, by="seed") == "grouped"
    assert kind_of(path, tmp_path) == "hashed"


def test_parts_hold_whole_problems_sorted_under_one_manifest(tmp_path: Path) -> None:
    for make_source in (as_grouped, as_shuffled):
        sink = tmp_path / make_source.__name__
        done = tts.batch.transform(make_source(tmp_path), sink, **SMALL)
        parts = [pl.read_parquet(path) for path in sorted(sink.iterdir())]
        names = [set(part["problem_id"]) for part in parts]
        assert len(parts) == done.n_parts > 2
        assert len(set.union(*names)) == sum(map(len, names)) == 40
        for part in parts:
            assert_frame_equal(part, part.sort("problem_id", "attempt"))
        manifests = {tts.batch.read_manifest(path).to_json() for path in sink.iterdir()}
        assert manifests == {done.manifest.to_json()}
        assert tts.batch.read_manifest(sink) == done.manifest


def test_the_same_job_gives_the_same_bytes(tmp_path: Path) -> None:
    source = as_shuffled(tmp_path)
    stages = [tts.batch.Score(), tts.batch.Select(budgets=BUDGETS)]
    contents = []
    for name in ("a", "b"):
        tts.batch.transform(source, tmp_path / name, stages=stages, **SMALL)
        contents.append([path.read_bytes() for path in sorted((tmp_path / name).iterdir())])
    assert contents[0] == contents[1]


def test_attempts_without_numbers_are_numbered_as_in_memory(tmp_path: Path) -> None:
    rows = shuffled(texts()).drop("attempt")
    path = tmp_path / "run.parquet"
    rows.write_parquet(path, row_group_size=40)
    done = tts.batch.transform(path, tmp_path / "out.parquet", **SMALL)
    assert done.manifest.layout["kind"] == "hashed"
    expected = tts.read_trajectories(path)
    assert_same_rows(read(tmp_path / "out.parquet"), expected)
    for seed in ([], ["seed"]):
        runs = pl.concat([rows.with_columns(seed=pl.lit(i)) for i in range(2)]).sort("problem_id")
        runs.write_parquet(path, row_group_size=40)
        sink = tmp_path / f"{len(seed)}.parquet"
        tts.batch.transform(path, sink, by=seed, **SMALL)
        assert_same_rows(read(sink), tts.read_trajectories(path))


def test_reference_answers_are_attached_to_every_slice(tmp_path: Path) -> None:
    rows = shuffled(texts()).with_columns(
        gold=pl.when(pl.col("problem_id") < "sim-000010").then("gold")
    )
    rows.drop("solution").write_parquet(tmp_path / "run.parquet", row_group_size=50)
    answers = texts().unique("problem_id").filter(pl.col("problem_id") != "sim-000039")
    answers.select("problem_id", "gold", "solution").write_csv(tmp_path / "gold.csv")
    given = {"gold": tmp_path / "gold.csv"}
    with pytest.warns(tts.errors.UnmatchedGoldWarning, match="no gold answer for 1 of 40"):
        done = tts.batch.transform(tmp_path / "run.parquet", tmp_path / "out", **given, **SMALL)
    with pytest.warns(tts.errors.UnmatchedGoldWarning):
        expected = tts.read_trajectories(tmp_path / "run.parquet", **given)
    assert_same_rows(read(tmp_path / "out"), expected)
    assert done.manifest.gold is not None
    assert done.manifest.gold.path.endswith("gold.csv")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_rows_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path, form: str) -> None:
    rows = shuffled(texts()).drop("solution").with_columns(pl.col("attempt").cast(pl.Int64))
    if form == "jsonl":
        lines = rows.write_ndjson().splitlines()
        lines[17] = "{broken"
        path = tmp_path / "run.jsonl"
        path.write_text("\n".join(lines))
    else:
        path = tmp_path / "run.parquet"
        is_bad = pl.int_range(pl.len()) == 17
        rows.with_columns(attempt=pl.when(is_bad).then(-1).otherwise("attempt")).write_parquet(
            path, row_group_size=50
        )
    with pytest.raises(SourceError, match=r"line 18|row 18"):
        tts.batch.transform(path, tmp_path / "out", **SMALL)
    with pytest.warns(tts.errors.SkippedRowsWarning, match="1 row skipped"):
        tts.batch.transform(path, tmp_path / "out", on_error="skip", restart=True, **SMALL)
    with pytest.warns(tts.errors.SkippedRowsWarning):
        expected = tts.read_trajectories(path, on_error="skip")
    assert expected.height == 319
    assert_same_rows(read(tmp_path / "out"), expected)


def test_long_json_lines_are_read_in_slices_that_know_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsframe.readers.engine.chunks.CHUNK_BYTES", 1 << 14)
    source = as_json_lines(tmp_path)
    reading = plan_reading(source, format="auto", rename=None, gold=None, on_error="raise")
    plan = make_plan(reading, [], [], Size(60, 1 << 20))
    assert len(plan.slices) > 4
    assert sum(one.amount.n_rows or 0 for one in plan.slices) == 320
    assert sum(one.amount.n_bytes for one in plan.slices) == source.stat().st_size
    read_in_slices = pl.concat([one.scan().collect() for one in plan.slices])
    assert_frame_equal(read_in_slices, tts.read_trajectories(source))
    lines = source.read_text().splitlines()
    row = json.loads(lines[300])
    lines[300] = json.dumps({**row, "attempt": -5})
    source.write_text("\n".join(lines))
    with pytest.raises(SourceError, match=r"run\.jsonl, line 301: attempt is -5"):
        tts.batch.transform(source, tmp_path / "out", rows_per_part=60)


@pytest.mark.parametrize("arrange", [shuffled, pl.DataFrame.clone])
def test_recorded_columns_are_kept_unless_overwritten(
    tmp_path: Path, arrange: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    rows = arrange(texts()).with_columns(
        answer=pl.lit("7"), is_correct=pl.lit(value=True), score=pl.lit(0.5)
    )
    path = tmp_path / "run.parquet"
    rows.write_parquet(path, row_group_size=50)
    for overwrite in ([], ["answer"], ["answer", "gold", "score"], ["is_correct"]):
        sink = tmp_path / f"{'-'.join(overwrite)}.parquet"
        stage = tts.batch.Score(overwrite=overwrite, texts=True, reduction="min")
        tts.batch.transform(path, sink, stages=stage, **SMALL)
        expected = tts.score_trajectories(rows, overwrite=overwrite, reduction="min")
        assert_same_rows(read(sink), expected.select(read(sink).columns))
        assert set(read(sink).columns) == set(expected.columns)


def test_keys_follow_the_policy_and_the_column(tmp_path: Path) -> None:
    rows = pl.DataFrame({
        "problem_id": [f"p{i % 30}" for i in range(300)],
        "attempt": [i // 30 for i in range(300)],
        "answer": ["50%", "50", None, "", "(B) 50"] * 60,
        # Text that is no answer by itself, and holds one: only a gold answer is read so.
        "gold": [r"Hence \boxed{50}", "#### 50", None, "0.5"] * 75,
    })
    rows.write_parquet(tmp_path / "run.parquet", row_group_size=50)
    grades = set()
    for percent in (None, "fraction", "kept"):
        policy = None if percent is None else tts.answers.AnswerPolicy(percent=percent)  # type: ignore[arg-type]
        sink = tmp_path / f"{percent}.parquet"
        tts.batch.transform(
            tmp_path / "run.parquet", sink, stages=tts.batch.Score(policy=policy), **SMALL
        )
        expected = tts.score_trajectories(rows.cast({"attempt": pl.UInt32}), policy=policy)
        assert_same_rows(read(sink), expected)
        grades.add(expected["is_correct"].sum())
    assert len(grades) == 3


def test_votes_take_grades_that_only_texts_decide(tmp_path: Path) -> None:
    rows = pl.DataFrame({
        "problem_id": [f"p{i % 30}" for i in range(300)],
        "attempt": pl.Series([i // 30 for i in range(300)], dtype=pl.UInt32),
        "answer": ["50%"] * 300,
        "solution": [r"Hence $\boxed{0.5}$, as 50% is half."] * 300,
    })
    rows.write_parquet(tmp_path / "run.parquet", row_group_size=50)
    stages = [tts.batch.Score(), tts.batch.Select(selectors="majority_vote", budgets=[1, 4])]
    tts.batch.transform(tmp_path / "run.parquet", tmp_path / "out.parquet", stages=stages, **SMALL)
    picked = read(tmp_path / "out.parquet").filter(pl.col("selector") == "majority_vote")
    assert picked.height == 60
    assert picked["is_correct"].all()


def test_replicates_are_told_apart_and_averaged(tmp_path: Path) -> None:
    rows = pl.concat([
        tts.simulate_trajectories(20, 8, seed=i, keys=True).with_columns(
            seed=pl.lit(i), model=pl.lit(model)
        )
        for i in range(3)
        for model in ("a", "b")
    ])
    shuffled(rows).write_parquet(tmp_path / "run.parquet", row_group_size=50)
    stages = [tts.batch.Select(budgets=BUDGETS), tts.batch.Curve(replicates="seed")]
    for name, options in {"whole": {}, "parts": SMALL}.items():
        sink = tmp_path / f"{name}.parquet"
        tts.batch.transform(tmp_path / "run.parquet", sink, stages=stages, by="model", **options)
        expected = tts.select_answers(rows, budgets=BUDGETS, by=["model", "seed"]).pipe(
            tts.scaling_curve, by="model", replicates="seed"
        )
        assert_frame_equal(read(sink), expected, check_exact=False, rel_tol=1e-12)


def test_a_source_without_rows_gives_a_table_without_rows(tmp_path: Path) -> None:
    texts().clear().write_parquet(tmp_path / "run.parquet")
    stages = [tts.batch.Score(), tts.batch.Select(budgets=4)]
    done = tts.batch.transform(tmp_path / "run.parquet", tmp_path / "out.parquet", stages=stages)
    assert done.n_rows == 0
    expected = tts.select_answers(tts.score_trajectories(texts().clear()), budgets=4)
    assert read(tmp_path / "out.parquet").schema == expected.schema


def test_what_cannot_be_done_is_said_before_anything_is_read(tmp_path: Path) -> None:
    keyed = tts.simulate_trajectories(4, 4, seed=0).drop("answer")
    keyed.write_parquet(tmp_path / "run.parquet")
    sink = tmp_path / "out.parquet"
    with pytest.raises(ColumnsError, match="1 missing column for trajectories: 'answer_key'"):
        tts.batch.transform(tmp_path / "run.parquet", sink, stages=tts.batch.Votes())
    with pytest.raises(ColumnsError, match="'completion'"):
        tts.batch.transform(tmp_path / "run.parquet", sink, stages=tts.batch.Score())
    with pytest.raises(ColumnsError, match="'model'"):
        tts.batch.transform(tmp_path / "run.parquet", sink, by="model")
    with pytest.raises(ParameterError, match="engine == 'spark'"):
        tts.batch.transform(tmp_path / "run.parquet", sink, engine="spark")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="rows_per_part == 0"):
        tts.batch.transform(tmp_path / "run.parquet", sink, rows_per_part=0)
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_an_error_in_the_rows_is_that_of_the_function(tmp_path: Path) -> None:
    run = tts.simulate_trajectories(40, 4, seed=0, keys=True)
    pl.concat([run, run]).write_parquet(tmp_path / "run.parquet", row_group_size=50)
    with pytest.raises(DataError, match=r"in by="):
        tts.batch.transform(
            tmp_path / "run.parquet", tmp_path / "out", stages=tts.batch.Votes(budgets=4), **SMALL
        )


def test_tasks_can_be_sent_to_another_process(tmp_path: Path) -> None:
    source = as_shuffled(tmp_path)
    reading = plan_reading(source, format="auto", rename=None, gold=None, on_error="raise")
    stages = [tts.batch.Score(), tts.batch.Select(budgets=BUDGETS)]
    plan = make_plan(reading, stages, [], Size(100, 1 << 28))
    folder = tmp_path / "job"
    folder.mkdir()
    from ttsframe.batch.failures import run_task

    for phase in plan.phases(folder, folder / "parts", "{}", is_file=True):
        for task in reversed(phase.tasks):
            copy = pickle.loads(pickle.dumps(task))  # noqa: S301 - just made
            run_task(copy)
            run_task(copy)
            assert task.output.exists()
            assert task.name
            assert task.reads
    expected = tts.select_answers(tts.score_trajectories(texts()), budgets=BUDGETS)
    assert_same_rows(read(task.output), expected)


def test_keys_are_made_in_processes_of_their_own_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsframe.batch.keys._STRINGS_FOR_A_PROCESS", 1)
    monkeypatch.setattr("ttsframe.batch.plan._SHARDS_FROM_ROWS", 1)
    source = as_shuffled(tmp_path)
    tts.batch.transform(source, tmp_path / "out", stages=tts.batch.Score(texts=True), **SMALL)
    assert_same_rows(
        read(tmp_path / "out"),
        tts.score_trajectories(texts()).select(read(tmp_path / "out").columns),
    )


def test_progress_counts_up_to_all_of_the_source(tmp_path: Path) -> None:
    source = as_shuffled(tmp_path)
    seen: list[tts.batch.Progress] = []
    stages = [tts.batch.Score(), tts.batch.Select(budgets=BUDGETS), tts.batch.Curve()]
    tts.batch.transform(
        source, tmp_path / "o.parquet", stages=stages, progress=seen.append, **SMALL
    )
    names = list(dict.fromkeys(step.phase for step in seen))
    assert names == ["scan", "answers", "keys", "parts", "result"]
    scans = [step for step in seen if step.phase == "scan"]
    assert [step.n_tasks_done for step in scans] == list(range(scans[0].n_tasks + 1))
    assert (scans[-1].n_rows_done, scans[-1].n_rows) == (320, 320)
    assert scans[-1].n_bytes_done == scans[-1].n_bytes


def test_an_output_that_cannot_be_made_is_named_and_not_its_lock(tmp_path: Path) -> None:
    source = tmp_path / "run.parquet"
    tts.simulate_trajectories(2, 2, seed=0, keys=True).write_parquet(source)
    sink = tmp_path / f"{'a' * 243}.parquet"  # the name of its lock is too long

    with pytest.raises(SourceError) as caught:
        tts.batch.transform(source, sink)

    assert str(caught.value).startswith(f"{sink}: cannot be written (")
    assert "lock" not in str(caught.value)
