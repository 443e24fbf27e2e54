"""The health of a run in the report: its table, its sentence, and what a single attempt is not."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

import ttsframe as tts


def run(*, missing: float = 0.0) -> pl.DataFrame:
    return tts.simulate_trajectories(40, 8, seed=6, keys=True, missing_share=missing)


def sentence(frame: pl.DataFrame, **options: str) -> list[str]:
    return tts.build_report(frame, sections="health", **options).answers()["health"]  # type: ignore[arg-type]


def test_the_table_is_that_of_the_function() -> None:
    frame = run(missing=0.2)
    report = tts.build_report(frame)
    assert report.health is not None
    assert_frame_equal(report.health, tts.run_health(frame))
    assert report.to_dict()["health"] == tts.run_health(frame).to_dicts()


def test_the_sentence_names_the_issue_that_may_cost_most() -> None:
    frame = run(missing=0.2).with_columns(
        finish_reason=pl.when(pl.col("attempt") < 4).then(pl.lit("length"))
    )
    by_problem = frame.group_by("problem_id").agg(
        right=pl.col("is_correct").mean(),
        then=(pl.col("is_correct") | (pl.col("attempt") < 4)).mean(),
    )
    now, then = (round(100 * by_problem[name].mean(), 1) for name in ("right", "then"))  # type: ignore[operator,arg-type]
    (text,) = sentence(frame)
    assert text == (
        f"160 attempts (50.0%) are truncated: if all had been right, pass@1 over all attempts would be "
        f"{then}% instead of {now}%, the most that any issue may cost."
    )
    page = tts.build_report(frame, sections="health").to_html()
    assert text in page
    assert "costs at most (points)" in page


def test_a_healthy_run_is_said_to_be_one() -> None:
    assert sentence(run()) == ["No attempt is without an answer, missing or ungraded."]


def test_each_run_has_a_sentence() -> None:
    frames = [run(missing=share).with_columns(model=pl.lit(f"{share}")) for share in (0.0, 0.3)]
    texts = sentence(pl.concat(frames), by="model")
    assert [text[:5] for text in texts] == ["0.0: ", "0.3: "]
    assert "no attempt is" in texts[0]
    assert "without an answer: if all had been right" in texts[1]


def test_an_ungraded_run_has_counts() -> None:
    frame = (
        run(missing=0.3).drop("gold", "gold_key").with_columns(is_correct=pl.lit(None, pl.Boolean))
    )
    assert sentence(frame) == ["320 attempts (100.0%) are ungraded; no attempt is graded."]


def test_a_single_attempt_is_no_tree_search() -> None:
    frame = run().filter(pl.col("attempt") == 0)
    report = tts.build_report(frame.with_columns(is_exchangeable=pl.lit(value=False)))
    assert report.omitted
    assert "tree search" not in " ".join(report.omitted.values())
    several = tts.build_report(run().with_columns(is_exchangeable=pl.lit(value=False)))
    assert "tree search" in several.omitted["difficulty"]


def test_a_run_of_code_is_reported_beside_one_with_answers() -> None:
    answers = run().with_columns(model=pl.lit("answers"))
    code = answers.with_columns(
        model=pl.lit("code"),
        **{name: pl.lit(None, pl.String) for name in ("answer", "answer_key", "gold", "gold_key")},
    )
    report = tts.build_report(pl.concat([answers, code]), by="model")
    assert report.curve is not None
    assert report.curve.filter(model="code", selector="majority_vote").is_empty()
    assert report.incomplete is not None
    votes = report.incomplete.filter(model="code", of_selector="majority_vote")
    assert votes["n_undefined"].unique().to_list() == [40]
    assert votes["accuracy"].null_count() == votes.height
    (note,) = [note for note in report.notes if note.startswith("code: majority vote")]
    assert note.endswith("A vote needs answers, and no attempt at these problems has one.")
    bounds = report.curve.filter(selector="oracle").partition_by("model")
    assert bounds[0]["accuracy"].to_list() == bounds[1]["accuracy"].to_list()
