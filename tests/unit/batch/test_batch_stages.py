from __future__ import annotations

import pickle
from typing import Any

import pytest

import ttsframe as tts
from ttsframe.batch.stages import check_stages, stage_settings
from ttsframe.errors import ParameterError, ParameterTypeError

Score, Votes, Select, Curve = tts.batch.Score, tts.batch.Votes, tts.batch.Select, tts.batch.Curve


@pytest.mark.parametrize(
    "stages",
    [
        [],
        [Score()],
        [Votes()],
        [Score(), Votes()],
        [Select()],
        [Score(), Select()],
        [Select(), Curve()],
        [Score(), Select(), Curve()],
    ],
)
def test_stages_follow_the_flow_of_the_tables(stages: list[Any]) -> None:
    assert check_stages(stages) == tuple(stages)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([Curve()], "Curve comes after no stage, .* 'trajectories'; it reads the table 'problems'"),
        ([Score(), Curve()], "Curve comes after Score"),
        ([Votes(), Curve()], "Curve comes after Votes, which makes the table 'votes'"),
        ([Select(), Score()], "Score comes after Select, which makes the table 'problems'"),
        ([Votes(), Select()], "Select comes after Votes"),
        ([Select(), Curve(), Votes()], "Votes comes after Select and Curve"),
        ([Score(), Score()], "Score twice"),
    ],
)
def test_an_order_in_which_a_stage_lacks_its_table_is_refused(
    stages: list[Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        check_stages(stages)


def test_something_else_is_no_stage() -> None:
    with pytest.raises(ParameterTypeError, match="stages holds a str, must hold Score"):
        check_stages(["score"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Score(reduction="median"), "reduction == 'median'"),  # type: ignore[arg-type]
        (lambda: Score(style="latex"), "style == 'latex'"),  # type: ignore[arg-type]
        (lambda: Score(overwrite=["completion"]), "overwrite == 'completion'"),
        (lambda: Votes(budgets=0), "budgets == 0, must be at least 1"),
        (lambda: Votes(weights="exp"), "weights == 'exp'"),  # type: ignore[arg-type]
        (lambda: Select(selectors=["best"]), "selectors == 'best'"),  # type: ignore[list-item]
        (lambda: Select(reductions="median"), "reductions == 'median'"),  # type: ignore[arg-type]
        (lambda: Curve(confidence_level=1.5), "confidence_level == 1.5"),
        (lambda: Curve(include="all"), "include == 'all'"),  # type: ignore[arg-type]
    ],
)
def test_an_impossible_option_is_refused_at_once(make: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()


def test_the_same_stage_said_otherwise_is_the_same() -> None:
    assert Select(budgets=[4, 1, 4], selectors="oracle") == Select(
        budgets=(1, 4), selectors=["oracle", "oracle"]
    )
    assert Score(overwrite="answer") == Score(overwrite=["answer"])


def test_settings_are_values_for_json_and_stages_can_be_pickled() -> None:
    stage = Score(policy=tts.answers.AnswerPolicy(percent="ignored"), overwrite=["gold"])
    settings = stage_settings(stage)
    assert settings["stage"] == "score"
    assert settings["overwrite"] == ["gold"]
    assert settings["policy"]["percent"] == "ignored"  # type: ignore[index]
    assert pickle.loads(pickle.dumps(stage)) == stage  # noqa: S301 - just made
