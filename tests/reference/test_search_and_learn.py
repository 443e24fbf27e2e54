"""Parity with search-and-learn: its own picks on real runs, and all it computes on a synthetic one."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sal_comparison import (
    UNEXPLAINED,
    Attempt,
    Comparison,
    Forms,
    compare,
    has_box,
    read_rows,
    reason_of_pair,
    recorded_picks,
)
from sal_replay import extract, strip

import ttsframe as tts

BEAM16 = "beam16_llama3.2-3b-awq_q100.jsonl"
BEAM3 = "beam3_llama3.1-8b-awq_q500.jsonl"
ABSTAINED = "no answer voted there"
IN_PART = "an answer without a box read in part"
PLACEHOLDER = "a placeholder voted there"
REJECTED = "split: the parser rejects one"
TWO_FORMS = "split: two forms of one value"
NESTED = "split: a box kept around one"

# Picks per rule, and how many of them are of problems whose attempts are all boxed; None: agreed.
PICKS: dict[str, dict[str | None, tuple[int, int]]] = {
    BEAM16: {
        None: (1414, 997),
        ABSTAINED: (81, 0),
        IN_PART: (2, 0),
        f"{IN_PART} + {REJECTED}": (1, 0),
        REJECTED: (1, 1),
        f"{NESTED} + {TWO_FORMS}": (1, 1),
    },
    BEAM3: {None: (2922, 2640), ABSTAINED: (78, 0)},
    "best_of_n_switch_roles_big_small_completions.jsonl": {None: (90, 0)},
    "bon1_llama3.2-3b-awq_q500.jsonl": {None: (1443, 1284), ABSTAINED: (57, 0)},
    "edge_400steps_qwen2.5-math_q100.jsonl": {
        None: (296, 231),
        ABSTAINED: (3, 0),
        "short": (600, 462),
        "undefined": (1, 0),
    },
    "edge_empty-text_q10.jsonl": {None: (20, 0), "short": (60, 0), "undefined": (10, 0)},
    "edge_logit-scores_qwen2.5-math_q500.jsonl": {
        None: (1344, 991),
        PLACEHOLDER: (11, 0),
        ABSTAINED: (90, 0),
        "short": (3000, 2010),
        "undefined": (55, 14),
    },
    "edge_null-scores_qwen2.5-math_q100.jsonl": {
        None: (202, 138),
        PLACEHOLDER: (3, 0),
        ABSTAINED: (6, 0),
        "short": (600, 420),
        "undefined": (3, 2),
        "unscored": (86, 70),
    },
    "edge_one-completion-many-scores_q100.jsonl": {
        None: (191, 173),
        PLACEHOLDER: (2, 2),
        ABSTAINED: (27, 0),
        "short": (1200, 948),
        "undefined": (80, 62),
    },
}


@functools.cache
def comparisons(path: Path) -> list[Comparison]:
    recorded = {row["unique_id"]: recorded_picks(row) for row in read_rows(path)}
    return compare(tts.read_trajectories(path).pipe(tts.score_trajectories), recorded, Forms())


def count_rules(compared: list[Comparison]) -> dict[str | None, tuple[int, int]]:
    of_all = Counter(pick.rule for pick in compared)
    of_boxed = Counter(pick.rule for pick in compared if pick.is_boxed)
    return {rule: (count, of_boxed[rule]) for rule, count in of_all.items()}


@pytest.mark.parametrize("name", PICKS)
def test_replay_picks_what_the_file_records(shared_data: Path, name: str) -> None:
    compared = comparisons(shared_data / "search_and_learn" / name)

    assert [pick for pick in compared if pick.recorded != pick.replayed] == []


@pytest.mark.parametrize("name", PICKS)
def test_replay_with_our_answers_and_keys_picks_what_we_pick(shared_data: Path, name: str) -> None:
    compared = comparisons(shared_data / "search_and_learn" / name)

    assert [pick for pick in compared if not pick.is_replayed_here] == []


@pytest.mark.parametrize("name", PICKS)
def test_each_pick_agrees_or_has_a_rule(shared_data: Path, name: str) -> None:
    compared = comparisons(shared_data / "search_and_learn" / name)

    assert [pick for pick in compared if pick.rule == UNEXPLAINED] == []
    assert count_rules(compared) == PICKS[name]


def test_every_file_with_picks_is_compared(shared_data: Path) -> None:
    files = (shared_data / "search_and_learn").glob("*.jsonl")

    with_picks = {path.name for path in files if recorded_picks(read_rows(path)[0])}

    assert with_picks == set(PICKS)


# The last file has one text and many scores per problem, and aggregates them all.
@pytest.mark.parametrize("name", sorted(PICKS)[:-1])
def test_last_step_scores_are_the_aggregated_scores(shared_data: Path, name: str) -> None:
    trajectories = tts.read_trajectories(shared_data / "search_and_learn" / name)
    last = trajectories.select(tts.step_last("step_scores"))["step_scores"]

    assert last.to_list() == trajectories["agg_scores"].to_list()


def test_correct_counts_of_independent_samples(shared_data: Path) -> None:
    path = shared_data / "search_and_learn" / "bon256_q10_own_prompt_only.jsonl"
    scored = tts.read_trajectories(path).pipe(tts.score_trajectories)
    rows = scored.with_columns(
        boxed=pl.col("completion").str.extract(r"(?s).*\\boxed\{(.*)\}").pipe(_unspaced),
        target=pl.col("gold").pipe(_unspaced),
    ).with_columns(is_equal=(pl.col("boxed") == pl.col("target")).fill_null(value=False))

    by_string = rows.group_by("problem_id", maintain_order=True).agg(pl.col("is_equal").sum())
    more = rows.filter(pl.col("is_correct") != pl.col("is_equal"))

    # As PROVENANCE.md counts equal strings, and what is right beyond them.
    assert by_string["is_equal"].to_list() == [25, 1, 19, 23, 0, 17, 11, 0, 25, 1]
    assert more["is_correct"].all()
    assert Counter(more["boxed"].to_list()) == {
        None: 1,
        "Evelyn": 8,
        r"\sqrt{117}": 1,
        r"(3,\\frac{\pi}{2})": 1,
    }


def _unspaced(text: pl.Expr) -> pl.Expr:
    return text.str.replace_all(r"\\left|\\right|\s", "")


# The synthetic run, and what search-and-learn computed from it with its parser's state reset.

BUDGETS = (1, 2, 4, 8, 16, 32, 64)


@pytest.fixture(scope="module")
def expected(shared_data: Path) -> dict[str, Any]:
    path = shared_data / "search_and_learn" / "synthetic_100x64_expected.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def synthetic(shared_data: Path, expected: dict[str, Any]) -> pl.DataFrame:
    """Return scored attempts with what search-and-learn made of each, as `their_*`."""
    path = shared_data / "search_and_learn" / "synthetic_100x64.parquet"
    problems = expected["problems"]

    def joined(name: str) -> list[Any]:
        return [value for problem in problems for value in problem[name]]

    return (
        tts
        .read_trajectories(path)
        .pipe(tts.score_trajectories)
        .with_columns(
            pl.Series("their_answer", joined("preds")),
            pl.Series("their_form", joined("canonical")),
            pl.Series("is_their_correct", joined("correct")),
            pl.Series("is_their_correct_stripped", joined("correct_vs_stripped_gold")),
        )
    )


@pytest.fixture(scope="module")
def forms(synthetic: pl.DataFrame, expected: dict[str, Any]) -> Forms:
    known = dict(synthetic.select("their_answer", "their_form").rows())
    of_gold = {p["gold_stripped"]: p["gold_canonical_stripped"] for p in expected["problems"]}
    return Forms(known | of_gold)


def test_synthetic_answers_are_read_as_there(synthetic: pl.DataFrame) -> None:
    texts, theirs = synthetic["completion"].to_list(), synthetic["their_answer"].to_list()

    assert [extract(text) for text in texts] == theirs
    # Ours, cut as theirs are, is the same string wherever there is one.
    answers = synthetic["answer"].to_list()
    assert all(strip(a) == t for a, t in zip(answers, theirs, strict=True) if a is not None)
    assert not any(has_box(t) for t, a in zip(texts, answers, strict=True) if a is None)


def test_synthetic_picks_agree_or_have_a_rule(
    synthetic: pl.DataFrame, expected: dict[str, Any], forms: Forms
) -> None:
    ids = synthetic["problem_id"].unique(maintain_order=True)
    recorded = {
        problem_id: recorded_picks({f"pred_{name}": pick for name, pick in problem["pred"].items()})
        for problem_id, problem in zip(ids, expected["problems"], strict=True)
    }

    compared = compare(synthetic, recorded, forms)

    assert [pick for pick in compared if pick.recorded != pick.replayed] == []
    assert [pick for pick in compared if not pick.is_replayed_here] == []
    assert count_rules(compared) == {
        None: (2034, 893),
        ABSTAINED: (58, 0),
        REJECTED: (6, 1),
        TWO_FORMS: (2, 0),
    }


def test_synthetic_curve_from_their_groups_is_theirs(
    synthetic: pl.DataFrame, expected: dict[str, Any], forms: Forms
) -> None:
    # A pick is graded after it was read, and so cut, once more.
    of_gold = [p["gold_canonical"] for p in expected["problems"] for _ in range(64)]
    of_answer = [forms[strip(answer)] for answer in synthetic["their_answer"]]
    theirs = synthetic.with_columns(
        answer=pl.col("their_answer"),
        answer_key=pl.col("their_form"),
        is_correct=pl.Series(of_answer) == pl.Series(of_gold),
    )

    problems = tts.select_answers(theirs, budgets=BUDGETS)
    curve = tts.scaling_curve(problems)

    methods = {"best_of_n": "naive", "weighted_vote": "weighted", "majority_vote": "maj"}
    index = {pid: i for i, pid in enumerate(theirs["problem_id"].unique(maintain_order=True))}
    for row in problems.iter_rows(named=True):
        problem = expected["problems"][index[row["problem_id"]]]
        name = f"{methods[row['selector']]}@{row['budget']}"
        pick = problem["pred"][name].removeprefix("\\boxed{").removesuffix("}")
        assert row["answer_key"] == forms[pick]
        # Of the answer that best-of-n picks, its first spelling is reported here.
        assert row["answer"] == pick or row["selector"] == "best_of_n"
        assert row["is_correct"] == problem["pred_correct"][name]
    accuracy = {
        f"{methods[selector]}@{budget}": value
        for selector, budget, value in curve.select("selector", "budget", "accuracy").rows()
    }
    assert accuracy == pytest.approx(expected["summary"]["acc"], abs=1e-12)


@pytest.mark.parametrize("reduction", ["last", "min", "prod"])
def test_synthetic_reductions(
    synthetic: pl.DataFrame, expected: dict[str, Any], reduction: str
) -> None:
    values = synthetic.select(tts.STEP_REDUCTIONS[reduction]("step_scores")).to_series()

    theirs = [value for problem in expected["problems"] for value in problem["agg"][reduction]]
    assert values.to_list() == pytest.approx(theirs, rel=1e-12, abs=0)


def test_synthetic_pass_at_k_from_their_grades(
    synthetic: pl.DataFrame, expected: dict[str, Any]
) -> None:
    estimates = (
        synthetic
        .group_by("problem_id", maintain_order=True)
        .agg(tts.pass_at_k("is_their_correct", k=BUDGETS).alias("estimates"))
        .unnest("estimates")
    )

    for k in BUDGETS:
        theirs = [problem["pass_at_k"][str(k)] for problem in expected["problems"]]
        assert estimates[f"pass@{k}"].to_list() == pytest.approx(theirs, abs=1e-12)
        total = expected["summary"]["pass_at_k"][str(k)]
        assert estimates[f"pass@{k}"].mean() == pytest.approx(total, abs=1e-12)


def test_synthetic_grades_agree_or_have_a_rule(
    synthetic: pl.DataFrame, expected: dict[str, Any], forms: Forms
) -> None:
    gold = [problem["gold_stripped"] for problem in expected["problems"] for _ in range(64)]
    rows = synthetic.with_columns(pl.Series("their_gold", gold)).iter_rows(named=True)

    rules = Counter(_reason_of_grade(row, forms) for row in rows)

    assert UNEXPLAINED not in rules
    assert rules == {
        None: 5955,
        "a gold answer left uncut": 282,
        ABSTAINED: 43,
        REJECTED: 78,
        TWO_FORMS: 35,
        "split: letters taken for factors": 7,
    }


def _reason_of_grade(row: dict[str, Any], forms: Forms) -> str | None:
    """Say why search-and-learn grades an attempt otherwise; None where it does not."""
    if row["is_correct"] == row["is_their_correct"]:
        return None
    if row["is_correct"] == row["is_their_correct_stripped"]:
        # It compares answers that it has cut with a gold answer that it has not.
        return "a gold answer left uncut" if row["gold"] != row["their_gold"] else UNEXPLAINED
    if row["answer"] is None:
        return UNEXPLAINED if has_box(row["completion"]) else ABSTAINED
    pair = [
        Attempt(row["completion"], row["their_answer"], row["answer"], row["answer_key"], 0.0),
        Attempt("", row["their_gold"], row["gold"], row["gold_key"], 0.0),
    ]
    return reason_of_pair(*pair, forms)


def test_synthetic_pass_at_k_differs_only_with_the_grades(
    synthetic: pl.DataFrame, expected: dict[str, Any]
) -> None:
    counts = synthetic.group_by("problem_id", maintain_order=True).agg(
        n_correct=pl.col("is_correct").sum(),
        n_their_correct=pl.col("is_their_correct").sum(),
        estimates=tts.pass_at_k("is_correct", k=BUDGETS),
    )

    n_differing = 0
    for row, problem in zip(counts.iter_rows(named=True), expected["problems"], strict=True):
        n_differing += row["n_correct"] != row["n_their_correct"]
        for k in BUDGETS:
            estimate = row["estimates"][f"pass@{k}"]
            exact = 1 - math.comb(64 - row["n_correct"], k) / math.comb(64, k)
            assert estimate == pytest.approx(exact, abs=1e-12)
            if row["n_correct"] == row["n_their_correct"]:
                assert estimate == pytest.approx(problem["pass_at_k"][str(k)], abs=1e-12)
    assert n_differing == 51
