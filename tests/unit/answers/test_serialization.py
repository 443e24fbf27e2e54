"""Expressions of answers pickle, and mean the same in another process."""

from __future__ import annotations

import pickle
import subprocess
import sys

import polars as pl
import pytest

import ttsframe as tts

FRAME = pl.DataFrame({
    "answer": ["0.5", r"\frac{1}{2}", "25%", "(B) 12", "5 cents", None],
    "gold": ["1/2", "so \n#### 3", "0.25", "12", "5 dollars", "1"],
    "answer_key": ["3:1", "3:2", "3:3", "3:4", "3:5", None],
    "gold_key": ["3:1"] * 6,
})
KEPT = tts.answers.AnswerPolicy(units="kept", percent="kept")
EXPRESSIONS = {
    "answer_key": tts.answer_key("answer"),
    "answer_key of a policy": tts.answer_key("answer", policy=KEPT),
    "gold_key": tts.gold_key("gold"),
    "normalize_answer": tts.normalize_answer("answer"),
    "answer_kind": tts.answers.answer_kind("answer"),
    "is_equivalent": tts.is_equivalent("answer", "gold"),
    "is_equivalent of a policy": tts.is_equivalent("answer", "gold", policy=KEPT, rel_tol=0.1),
    "is_same_key": tts.answers.is_same_key("answer_key", "gold_key"),
    "extract_answer": tts.extract_answer("gold"),
    "extraction_rule": tts.answers.extraction_rule("gold"),
}
COLLECT = """
import io, sys
import polars as pl
plan = pl.LazyFrame.deserialize(io.BytesIO(sys.stdin.buffer.read()))
sys.stdout.buffer.write(plan.collect().write_ipc(None).getvalue())
"""
UNPICKLE = """
import pickle, sys
import polars as pl
expression, frame = pickle.loads(sys.stdin.buffer.read())
sys.stdout.buffer.write(frame.select(expression).write_ipc(None).getvalue())
"""


def in_a_fresh_process(code: str, sent: bytes) -> pl.DataFrame:
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return pl.read_ipc(done.stdout)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_pickled_expression_gives_the_same_values(name: str) -> None:
    expression = EXPRESSIONS[name]
    again = pickle.loads(pickle.dumps(expression))  # noqa: S301
    assert FRAME.select(again).equals(FRAME.select(expression))


def test_a_serialized_query_gives_the_same_values_in_a_fresh_process() -> None:
    query = FRAME.lazy().select(expression.alias(name) for name, expression in EXPRESSIONS.items())
    assert in_a_fresh_process(COLLECT, query.serialize()).equals(query.collect())


def test_a_pickled_expression_gives_the_same_values_in_a_fresh_process() -> None:
    for expression in (EXPRESSIONS["answer_key"], EXPRESSIONS["is_equivalent of a policy"]):
        sent = pickle.dumps((expression, FRAME))
        assert in_a_fresh_process(UNPICKLE, sent).equals(FRAME.select(expression))


def test_scored_attempts_are_a_plan_that_can_be_sent() -> None:
    attempts = FRAME.select("answer", "gold", problem_id=pl.lit("p")).with_row_index("attempt")
    plan = tts.score_trajectories(attempts.lazy())
    assert in_a_fresh_process(COLLECT, plan.serialize()).equals(plan.collect())


def test_keys_are_pickled_without_another_library() -> None:
    code = """
import sys
sys.modules["cloudpickle"] = None
import pickle, ttsframe as tts
for make in (
    tts.answer_key, tts.gold_key, tts.normalize_answer, tts.answers.answer_kind,
    tts.extract_answer, tts.answers.extraction_rule,
):
    pickle.dumps(make("answer"))
pickle.dumps(tts.is_equivalent("answer", "gold"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_pickled_policy_holds_its_options_alone() -> None:
    policy = tts.answers.AnswerPolicy(units="kept")
    assert policy.prefix == "3u1:"
    again = pickle.loads(pickle.dumps(policy))  # noqa: S301
    assert again == policy
    assert "prefix" not in vars(again)
    assert again.prefix == policy.prefix
