"""Health of a run: every number recomputed in plain Python, one attempt after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ColumnsError, ParameterError

SCHEMA = {
    "model": pl.String,
    "problem_id": pl.String,
    "answer_key": pl.String,
    "gold_key": pl.String,
    "is_correct": pl.Boolean,
    "finish_reason": pl.String,
    "completion": pl.String,
}
TEXTS = {r"so \boxed{1}": "box", "The answer is 2.": "phrase", "I pass.": None, None: None}


@st.composite
def attempts(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        {
            "model": draw(st.sampled_from(["m", "n"])),
            "problem_id": draw(st.sampled_from(["p", "q", "r"])),
            "answer_key": draw(st.sampled_from([None, "1"])),
            "gold_key": draw(st.sampled_from([None, "1"])),
            "is_correct": draw(st.sampled_from([True, False, None])),
            "finish_reason": draw(st.sampled_from([None, "stop", "length", "error"])),
            "completion": draw(st.sampled_from([*TEXTS])),
        }
        for _ in range(draw(st.integers(1, 14)))
    ]


def copies(rows: Sequence[dict[str, Any]]) -> list[int]:
    """Return the copies among the attempts at a problem: all but one, a right one if there is one."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        if row["completion"] is not None:
            by_text[row["completion"]].append(i)
    rank = {True: 0, False: 1, None: 2}
    kept = {
        min(same, key=lambda i: rank[rows[i]["is_correct"]]) for same in by_text.values() if same
    }
    return [i for same in by_text.values() for i in same if i not in kept]


def accuracy(problems: Sequence[Sequence[bool | None]]) -> float | None:
    shares = []
    for grades in problems:
        known = [grade for grade in grades if grade is not None]
        if known:
            shares.append(sum(known) / len(known))
    return sum(shares) / len(shares) if shares else None


def expected_rows(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Compute the table of one run."""
    problems: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        problems[row["problem_id"]].append(row)
    most = max(map(len, problems.values()))
    grades = [[row["is_correct"] for row in group] for group in problems.values()]

    def has(issue: str, rule: str | None, row: dict[str, Any]) -> bool:
        if issue == "no_answer":
            can_count = row["gold_key"] is not None or row["is_correct"] is None
            return row["answer_key"] is None and can_count
        if issue == "ungraded":
            return row["is_correct"] is None
        if issue == "extracted":
            return TEXTS[row["completion"]] == rule
        return row["finish_reason"] == {"truncated": "length", "failed": "error"}[issue]

    found = []
    issues = ["truncated", "failed", "no_answer", "duplicated", "short", "ungraded"]
    for issue, rule in [
        *((name, None) for name in issues),
        ("extracted", "box"),
        ("extracted", "phrase"),
    ]:
        n, n_problems, then, total = 0, 0, [], len(rows)
        for group, known in zip(problems.values(), grades, strict=True):
            after = [*known]
            if issue == "short":
                n_here = most - len(group)
                after += [True] * n_here
                total += n_here
            else:
                chosen = (
                    copies(group)
                    if issue == "duplicated"
                    else [i for i, row in enumerate(group) if has(issue, rule, row)]
                )
                n_here = len(chosen)
                for i in chosen:
                    after[i] = True
            n += n_here
            n_problems += n_here > 0
            then.append(after)
        now = accuracy(grades)
        lost = None if now is None else accuracy(then) - now  # type: ignore[operator]
        if issue != "extracted" or n:
            found.append((issue, rule, n, n / total, n_problems, now, lost))
    return found


@given(attempts())
def test_every_number_is_that_of_a_plain_count(rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(
        extraction_rule=tts.answers.extraction_rule("completion")
    )
    runs = {name: [row for row in rows if row["model"] == name] for name in ("m", "n")}
    expected = [
        (name, *row) for name, of_run in runs.items() if of_run for row in expected_rows(of_run)
    ]
    found = tts.run_health(frame, by="model").rows()
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert row[:6] == pytest.approx(other[:6], abs=1e-12), (row, other)
        for value, truth in zip(row[6:], other[6:], strict=True):
            assert value == (None if truth is None else pytest.approx(truth, abs=1e-12)), row
    alone = tts.run_health(frame.drop("model")).rows()
    assert [row[:3] for row in alone] == [row[:3] for row in expected_rows(rows)]


def test_neither_order_nor_laziness_matters() -> None:
    frame = tts.simulate_trajectories(30, 8, seed=2, keys=True, missing_share=0.2).with_columns(
        finish_reason=pl.when(pl.col("attempt") > 5).then(pl.lit("length"))
    )
    frame = frame.filter(~((pl.col("attempt") > 3) & (pl.col("problem_id").hash() % 3 == 0)))
    health = tts.run_health(frame)
    assert health["issue"].to_list() == ["truncated", "failed", "no_answer", "short", "ungraded"]
    assert (health["lost_at_most"] > 0).to_list() == [True, False, True, True, False]
    for seed in range(3):
        plan = tts.run_health(frame.sample(fraction=1.0, shuffle=True, seed=seed).lazy())
        assert isinstance(plan, pl.LazyFrame)
        for engine in ("in-memory", "streaming"):
            assert_frame_equal(plan.collect(engine=engine), health, abs_tol=1e-12)  # type: ignore[arg-type]


def test_what_the_columns_do_not_tell_has_no_row() -> None:
    frame = pl.DataFrame({"problem_id": ["p", "p", "q"]})
    assert tts.run_health(frame).select("issue", "n_attempts", "lost_at_most").rows() == [
        ("short", 1, None),
        ("ungraded", 3, None),
    ]
    code = frame.with_columns(answer_key=pl.lit(None, pl.String), is_correct=pl.lit(value=False))
    by_issue = {row[0]: row for row in tts.run_health(code).rows()}
    assert by_issue["no_answer"][2] == 0  # a test graded it: nobody looked for an answer


def test_names_that_the_table_has_are_refused_at_once() -> None:
    frame = pl.DataFrame({"problem_id": ["p"], "issue": ["x"]}).lazy()
    with pytest.raises(ParameterError, match="issue"):
        tts.run_health(frame, by="issue")
    with pytest.raises(ColumnsError, match="'problem_id'"):
        tts.run_health(frame.drop("problem_id"))
