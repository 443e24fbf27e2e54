"""However a run is cut into files, row groups, slices and parts, a job gives the rows of memory."""

from __future__ import annotations

import tempfile
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts

KEYS = ["source_file", "seed", "problem_id", "attempt", "budget", "selector", "reduction"]
TEXTS = [r"So \boxed{\frac12}", r"Thus \boxed{0.5}", "The answer is 3.", r"\boxed{", "", None]
SCHEMA = {
    "problem_id": pl.String,
    "seed": pl.Int64,
    "attempt": pl.UInt32,
    "completion": pl.String,
    "gold": pl.String,
    "step_scores": pl.List(pl.Float64),
}


@st.composite
def runs(draw: st.DrawFn) -> pl.DataFrame:
    """Draw a run: ragged problems, in any order, with missing texts, scores and gold answers."""
    rows = []
    for problem in range(draw(st.integers(1, 6))):
        gold = draw(st.sampled_from(["0.5", "3", r"\boxed{1/2}", None]))
        for seed in range(draw(st.integers(1, 2))):
            for attempt in range(draw(st.integers(1, 6))):
                scores = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=3))
                text = draw(st.sampled_from(TEXTS))
                rows.append((f"p{problem}", seed, attempt, text, gold, scores))
    order = draw(st.sampled_from(["written", "mixed", "mixed in problems"]))
    if order != "written":
        rows = draw(st.permutations(rows))
    if order == "mixed in problems":
        rows = sorted(rows, key=itemgetter(0))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def write(run: pl.DataFrame, folder: Path, form: str, n_files: int, row_group_size: int) -> None:
    """Write a run in as many files; no attempt of a problem may be in two of them twice."""
    size = -(-run.height // n_files)
    for number, start in enumerate(range(0, run.height, size)):
        rows = run.slice(start, size)
        if form == "jsonl":
            rows.write_ndjson(folder / f"{number}.jsonl")
        else:
            rows.write_parquet(folder / f"{number}.parquet", row_group_size=row_group_size)


@settings(max_examples=10)
@given(
    run=runs(),
    form=st.sampled_from(["parquet", "parquet", "jsonl"]),
    n_files=st.integers(1, 3),
    row_group_size=st.integers(1, 20),
    rows_per_part=st.sampled_from([1, 3, 10, 1000]),
    stages=st.sampled_from(["none", "score", "texts", "again", "votes", "select", "curve"]),
    is_file=st.booleans(),
)
def test_a_job_gives_the_rows_of_memory(
    run: pl.DataFrame,
    form: str,
    n_files: int,
    row_group_size: int,
    rows_per_part: int,
    stages: str,
    is_file: bool,
) -> None:
    batch = tts.batch
    score = batch.Score(reduction="min")
    select = batch.Select(selectors=list(tts.SELECTORS), budgets=[1, 2, 4])
    listed: dict[str, list[Any]] = {
        "none": [],
        "score": [score],
        "texts": [batch.Score(reduction="min", texts=True)],
        "again": [batch.Score(reduction="min", overwrite="answer_key")],
        "votes": [score, batch.Votes(budgets=[2])],
        "select": [score, select],
        "curve": [score, select, batch.Curve(replicates="seed", include="available")],
    }
    with tempfile.TemporaryDirectory() as name:
        folder, sink = Path(name, "run"), Path(name, "out.parquet" if is_file else "out")
        folder.mkdir()
        write(run, folder, form, n_files, row_group_size)
        attempts = tts.read_trajectories(folder)
        by = ["source_file"] if "source_file" in attempts.columns else []
        keys = [*by, "seed"]
        batch.transform(
            folder,
            sink,
            stages=listed[stages],
            by=by if stages == "curve" else keys,
            rows_per_part=rows_per_part,
        )
        expected = attempts
        if stages != "none":
            expected = tts.score_trajectories(attempts, reduction="min")
        if stages not in {"none", "texts"}:
            expected = expected.drop("completion")
        if stages == "votes":
            expected = tts.tally_votes(expected, budgets=[2], by=keys)
        if stages in {"select", "curve"}:
            expected = tts.select_answers(
                expected, selectors=list(tts.SELECTORS), budgets=[1, 2, 4], by=keys
            )
        if stages == "curve":
            expected = tts.scaling_curve(expected, by=by, replicates="seed", include="available")
        found = pl.read_parquet(sink if is_file else sorted(sink.iterdir()))
    order = [key for key in [*KEYS, "answer_key"] if key in expected.columns]
    assert_frame_equal(
        found.sort(order), expected.sort(order), check_exact=False, rel_tol=1e-12, abs_tol=1e-12
    )
