"""Runs whose columns or rows were mixed up are named; runs that only look odd are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ttsframe as tts


def found(run: pl.DataFrame, **settings: Any) -> dict[str, tts.Finding]:
    report = tts.validate_trajectories(run, **settings)
    return {finding.code: finding for finding in report.findings}


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    made = tts.simulate_trajectories(100, 8, seed=3, keys=True)
    return made.sort("problem_id", "attempt").with_columns(
        answer=pl.col("answer_key"), gold=pl.col("gold_key")
    )


def prompts_of_upstream(n_problems: int, n: int, batch: int) -> list[tuple[int, int]]:
    """Return, for each row and column, the problem and attempt that search-and-learn's fork put there.

    Its `best_of_n.py` builds the prompts of a batch as ``x["problem"] * n`` and slices the outputs n by n.
    """
    rows = []
    for first in range(0, n_problems, batch):
        problems = list(range(first, min(first + batch, n_problems)))
        outputs = [(problem, copy) for copy in range(n) for problem in problems]
        rows += outputs
    return rows


def prompts_of_blocks(n_problems: int, n: int, batch: int) -> list[tuple[int, int]]:
    """Return what rows hold that take every n-th of outputs which are sorted by problem."""
    rows = []
    for first in range(0, n_problems, batch):
        problems = list(range(first, min(first + batch, n_problems)))
        outputs = [(problem, copy) for problem in problems for copy in range(n)]
        rows += [
            outputs[copy * len(problems) + i] for i in range(len(problems)) for copy in range(n)
        ]
    return rows


def shifted(by: int) -> Callable[[int, int, int], list[tuple[int, int]]]:
    return lambda n_problems, n, _: [
        ((problem + by) % n_problems, copy) for problem in range(n_problems) for copy in range(n)
    ]


@pytest.mark.parametrize(
    ("order", "batch", "words"),
    [
        (prompts_of_upstream, 100, "by turns (one attempt each)"),
        (prompts_of_upstream, 25, "by turns (one attempt each, in batches of 25 problems)"),
        (prompts_of_blocks, 100, "by blocks (all attempts at one, then at the next)"),
        (
            prompts_of_blocks,
            10,
            "by blocks (all attempts at one, then at the next, in batches of 10",
        ),
        (shifted(1), 100, "1 after it in the file"),
        (shifted(-2), 100, "2 before it in the file"),
    ],
)
def test_completions_in_rows_of_other_problems_are_found(
    run: pl.DataFrame, order: Callable[..., list[tuple[int, int]]], batch: int, words: str
) -> None:
    places = [problem * 8 + copy for problem, copy in order(100, 8, batch)]
    mixed = run.with_columns(pl.col("answer", "answer_key").gather(places)).with_columns(
        is_correct=pl.col("answer_key") == pl.col("gold_key")
    )
    finding = found(mixed)["shifted_completions"]
    assert words in finding.message
    assert finding.severity == "error"
    n_right = int(run.select((pl.col("answer") == pl.col("gold")).sum()).item())
    if not words.endswith("file"):  # whose first or last problem has no neighbor
        assert finding.count == n_right
    by_run = pl.concat([run.with_columns(model=pl.lit("a")), mixed.with_columns(model=pl.lit("b"))])
    assert "model 'b': " in found(by_run, by="model")["shifted_completions"].message
    without_keys = mixed.drop("answer_key", "gold_key")
    assert "shifted_completions" in found(without_keys)


def test_runs_in_their_order_are_not_called_shifted(run: pl.DataFrame) -> None:
    assert "shifted_completions" not in found(run)
    # A weak model at multiple choice: wrong answers agree with other problems by chance.
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 4, 200).repeat(8)
    answers = (gold + generator.choice(4, 1600, p=[0.05, 0.35, 0.3, 0.3])) % 4
    weak = pl.DataFrame({
        "problem_id": np.arange(200).repeat(8),
        "attempt": np.tile(np.arange(8), 200),
        "answer": [f"{each}" for each in answers],
        "gold": [f"{each}" for each in gold],
    })
    assert "shifted_completions" not in found(weak)
    assert "shifted_completions" not in found(weak.with_columns(gold=pl.lit("1")))
    assert "shifted_completions" not in found(weak.with_columns(answer=pl.lit(None, pl.String)))
    assert "shifted_completions" not in found(weak.head(8))


def test_the_reference_answer_in_the_place_of_the_answer(run: pl.DataFrame) -> None:
    finding = found(run.with_columns(answer=pl.col("gold")))["answer_is_gold"]
    assert finding.count == 800
    assert "answer_is_gold" not in found(run)
    swapped = run.rename({"answer": "gold", "gold": "answer"})
    finding = found(swapped)["swapped_gold"]
    assert finding.severity == "error"


def test_a_score_that_knows_the_grade(run: pl.DataFrame) -> None:
    graded = run.with_columns(score=pl.col("is_correct").cast(pl.Float64))
    assert "in all problems" in found(graded)["oracle_scores"].message
    generator = np.random.default_rng(1)
    level = pl.Series(generator.uniform(0, 100, 100).repeat(8))
    within = graded.with_columns(score=(pl.col("score") + level) / 101)
    assert "that have both" in found(within)["oracle_scores"].message
    noisy = graded.with_columns(
        score=pl.when(pl.int_range(pl.len()) == 5).then(1 - pl.col("score")).otherwise("score")
    )
    noisy_within = within.with_columns(
        score=pl.when(pl.int_range(pl.len()) % 8 == 5).then(0.5).otherwise("score")
    )
    assert "oracle_scores" not in found(noisy)
    assert "oracle_scores" not in found(noisy_within)
    assert "oracle_scores" not in found(run)
    few = graded.filter(pl.col("problem_id") == pl.col("problem_id").first())
    assert "oracle_scores" not in found(few)


@pytest.mark.parametrize("column", ["seed", "source_file"])
def test_a_seed_that_ran_twice(column: str) -> None:
    runs = [
        pl.DataFrame({
            "problem_id": [f"p{i // 4}" for i in range(40)],
            "attempt": [i % 4 for i in range(40)],
            "completion": [
                f"the text of seed {text}, attempt {i}, which is long enough" for i in range(40)
            ],
        }).with_columns(pl.lit(seed if column == "seed" else str(seed)).alias(column))
        for seed, text in ((0, 0), (1, 1), (2, 0))
    ]
    finding = found(pl.concat(runs), by=column)["repeated_runs"]
    assert "1 pair of" in finding.message
    assert "40 of 40 in '0' and '2'" in finding.message
    assert [*finding.examples] == [{column: "0", f"other {column}": "2", "n_same": 40}]
    assert "repeated_runs" not in found(pl.concat(runs[:2]), by=column)
    short = pl.concat(runs).with_columns(completion=pl.lit("42"))
    assert "repeated_runs" not in found(short, by=column)


def test_prompts_that_differ_within_a_problem(run: pl.DataFrame) -> None:
    prompts = run.with_columns(prompt=pl.lit("solve"))
    assert "differing_prompts" not in found(prompts)
    several = run.with_columns(prompt=pl.format("solve {}", pl.col("attempt") % 2))
    assert found(several)["differing_prompts"].count == 100


@pytest.mark.parametrize(
    ("scores", "code"),
    [
        ([-3.0, 0.5, 4.0], "logit_scores"),
        ([-3.0, -0.5, -20.0], "log_scores"),
        ([0.0, 7.5, 10.0], "unscaled_scores"),
        ([1.0, 3.0, 5.0], "unscaled_scores"),
        ([0.0, 60.0, 88.0], "unscaled_scores"),
        ([0.0, 150.0, 3.0], "logit_scores"),
        ([0.0, 1.5, 1.0], "logit_scores"),
        ([0.0, 0.5, 1.0], None),
    ],
)
def test_scores_that_are_no_probabilities(scores: list[float], code: str | None) -> None:
    run = pl.DataFrame({"problem_id": ["a"] * 3, "attempt": [0, 1, 2], "score": scores})
    codes = {"logit_scores", "log_scores", "unscaled_scores", "out_of_range_scores"}
    assert codes & set(found(run)) == ({code} if code else set())


GRADES = [
    # answer, gold, answer_key, gold_key, theirs, ours, the sentence that counts it
    ("4", "4", "4", "4", False, True, "letter by letter"),
    ("10000", "10{,}000", "10000", "10000", False, True, "another spelling"),
    ("25%", "0.25", "25", "1/4", False, True, "as right by us"),
    ("Paris.", "paris", "a", "b", True, False, "case, spaces or punctuation"),
    ("-4,-5", "-4", "a", "b", True, False, "contains the gold answer"),
    ("7", "8", "7", "8", True, False, "is another one"),
    ("7", "7", "7", "7", True, True, None),
    ("6", "7", "6", "7", False, False, None),
    (None, "7", None, "7", True, False, None),
    ("6", "7", "6", "7", None, False, None),
]


def test_grades_that_differ_are_counted_by_rule() -> None:
    names = ["answer", "gold", "answer_key", "gold_key", "is_correct_recorded", "is_correct"]
    run = pl.DataFrame([row[:6] for row in GRADES], schema=names, orient="row").with_columns(
        problem_id=pl.int_range(pl.len()), attempt=pl.lit(0)
    )
    findings = [
        finding
        for finding in tts.validate_trajectories(run).findings
        if finding.code == "grades_differ"
    ]
    for i, (answer, gold, *_, sentence) in enumerate(GRADES):
        if sentence is not None:
            (finding,) = [each for each in findings if sentence in each.message]
            assert finding.count == 1
            (example,) = finding.examples
            assert example == {"problem_id": i, "attempt": 0, "answer": answer, "gold": gold}
    assert len(findings) == sum(row[-1] is not None for row in GRADES)
    assert all("of 9 attempts" in finding.message for finding in findings)


def test_real_runs_raise_no_false_alarm(shared_data: Path) -> None:
    folder = shared_data / "search_and_learn"
    sources = [
        folder / "beam16_llama3.2-3b-awq_q100.jsonl",
        folder / "bon256_q10_own_prompt_only.jsonl",
        shared_data / "qwen_math" / "math_cot_50.jsonl",
        shared_data / "ets" / "synthetic_20x16.json",
    ]
    alarms = {
        "shifted_completions",
        "swapped_gold",
        "answer_is_gold",
        "oracle_scores",
        "repeated_runs",
    }
    for source in sources:
        scored = tts.score_trajectories(tts.read_trajectories(source))
        assert not alarms & set(found(scored)), source


def test_a_real_run_mixed_up_as_upstream_did(shared_data: Path) -> None:
    """Best-of-N runs of a fork of search-and-learn have this mistake; here it is made in its beams."""
    source = shared_data / "search_and_learn" / "beam16_llama3.2-3b-awq_q100.jsonl"
    scored = tts.score_trajectories(tts.read_trajectories(source))
    places = [problem * 16 + copy for problem, copy in prompts_of_upstream(100, 16, 25)]
    mixed = scored.with_columns(pl.col("completion", "answer", "answer_key").gather(places))
    right = mixed.select((pl.col("answer_key") == pl.col("gold_key")).mean()).item()
    assert right < 0.05
    message = found(mixed.drop("is_correct"))["shifted_completions"].message
    assert "in batches of 25 problems" in message
