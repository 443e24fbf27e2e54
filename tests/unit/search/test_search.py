"""A search with plain and asynchronous functions, and what it says about wrong ones."""

from __future__ import annotations

import asyncio
import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, ParticleFilter, Policy, Rebase

S = tts.search
PROBLEMS = Compared(World(), 6).problems()


def run(policy: Policy, generator=None, prm=None, problems=PROBLEMS, **options) -> pl.DataFrame:  # noqa: ANN001, ANN003
    world = World()
    return S.search(
        problems, generator or world.generate, prm or world.verify, policy, **{"seed": 3, **options}
    )


def test_the_result_is_the_table_nodes() -> None:
    nodes = run(Beam(8))
    assert nodes.columns == list(S.NODE_COLUMNS)
    assert {n: nodes.schema[n] for n in nodes.columns} == {
        n: c.dtype for n, c in S.NODE_COLUMNS.items()
    }
    assert (
        nodes["problem_id"].unique(maintain_order=True).to_list()
        == PROBLEMS["problem_id"].to_list()
    )


def test_asynchronous_servers_give_the_same_tree() -> None:
    world = World()

    async def generate(requests: pl.DataFrame) -> pl.DataFrame:
        # Batches overtake each other.
        for _ in range(requests.height % 3):
            await asyncio.sleep(0)
        return world.generate(requests)

    async def verify(prefixes: pl.DataFrame) -> list[float | None]:
        await asyncio.sleep(0)
        return world.verify(prefixes)

    whole = run(Rebase(8))
    assert_frame_equal(run(Rebase(8), generate, verify, batch_size=2), whole)
    assert_frame_equal(run(Rebase(8), generate, batch_size=2), whole)

    async def in_a_loop() -> pl.DataFrame:
        return run(Rebase(8), generate, verify)

    assert_frame_equal(asyncio.run(in_a_loop()), whole)


def test_batches_of_asynchronous_servers_run_at_the_same_time() -> None:
    at_once, most = 0, 0

    async def generate(requests: pl.DataFrame) -> pl.DataFrame:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return World().generate(requests)

    run(BestOfN(2), generate, batch_size=1)
    assert most == PROBLEMS.height


def test_the_first_failure_of_an_asynchronous_server_is_raised() -> None:
    async def generate(requests: pl.DataFrame) -> pl.DataFrame:
        await asyncio.sleep(0)
        raise KeyError(requests.height)

    with pytest.raises(KeyError):
        run(BestOfN(2), generate, batch_size=2)


def test_rows_may_come_in_any_order() -> None:
    def shuffled(requests: pl.DataFrame) -> pl.DataFrame:
        children = World().generate(requests)
        request = pl.Series("request", range(requests.height)).repeat_by(requests["n"]).explode()
        both = children.with_columns(request)
        return both.sort("request", descending=True, maintain_order=True)

    assert_frame_equal(run(Beam(8), shuffled), run(Beam(8)))


def test_the_verifier_may_give_all_steps() -> None:
    seen: dict[str, list[float]] = {"": []}

    def verify(prefixes: pl.DataFrame) -> list[list[float]]:
        lists = []
        for prefix, text in prefixes.select("prefix", "text").rows():
            seen[prefix + text] = [*seen[prefix], (int(text) % 97) / 97]
            lists.append(seen[prefix + text])
        return lists

    def last(prefixes: pl.DataFrame) -> pl.Series:
        return (prefixes["text"].cast(pl.UInt64) % 97).cast(pl.Float64) / 97

    for reduction in ("last", "min", "prod", "mean"):
        lists = run(Beam(8, reduction=reduction), prm=verify)
        numbers = run(Beam(8, reduction=reduction), prm=last)
        shared = [name for name in lists.columns if name not in {"score_vector", "step_score"}]
        assert_frame_equal(lists.select(shared), numbers.select(shared))
        assert (lists["step_score"] - numbers["step_score"]).abs().max() < 1e-12
        assert lists["score_vector"].list.len().to_list() == lists["depth"].to_list()
        assert numbers["score_vector"].null_count() == numbers.height


def test_a_step_without_a_score_is_kept_and_ranks_last() -> None:
    def verify(prefixes: pl.DataFrame) -> list[float | None]:
        return [None if i % 2 else -5.0 for i in range(prefixes.height)]

    nodes = run(Beam(8), prm=verify).filter(depth=1, finish_reason="step")
    assert nodes["step_score"].null_count() > 0
    unscored = pl.col("step_score").is_null()
    kept = nodes.group_by("problem_id").agg(
        scored=(~unscored & ~pl.col("is_kept")).sum(), unscored=(unscored & pl.col("is_kept")).sum()
    )
    assert kept.filter((pl.col("scored") > 0) & (pl.col("unscored") > 0)).height == 0


def test_nan_is_no_score() -> None:
    nodes = run(Rebase(4), prm=lambda prefixes: [float("nan")] * prefixes.height)
    assert nodes["step_score"].null_count() == nodes.height


def test_a_lookahead_is_scored_and_nothing_else() -> None:
    problems, generator, prm = S.simulate(5, seed=0)
    prefixes: list[pl.DataFrame] = []

    def verify(batch: pl.DataFrame) -> pl.Series:
        prefixes.append(batch)
        return prm(batch)

    nodes = S.search(problems, generator, verify, Beam(8, lookahead=2), seed=0)
    batch = prefixes[0]
    ahead = batch.filter(pl.col("lookahead_text").is_not_null())
    assert ahead.height == batch.height
    assert (ahead["lookahead_text"].str.count_matches("Step") == 2).all()
    assert nodes.filter(pl.col("text").str.contains("Step 2"))["depth"].unique().to_list() == [2]
    assert (
        nodes.filter(is_terminal=True)["lookahead_text"].null_count() == nodes["is_terminal"].sum()
    )
    assert (nodes.filter(pl.col("n_lookahead_tokens") > 0)["lookahead_text"].is_not_null()).all()


def test_a_cut_step_is_asked_for_three_times() -> None:
    asked: list[int] = []

    def always_cut(requests: pl.DataFrame) -> pl.DataFrame:
        asked.append(int(requests["n"].sum()))
        n = int(requests["n"].sum())
        return pl.DataFrame({"text": ["x"] * n, "finish_reason": ["length"] * n})

    nodes = run(Beam(4, truncated="retry"), always_cut, problems=PROBLEMS[:1])
    assert asked == [4, 4, 4]
    assert nodes.height == 12
    assert nodes["node_id"].n_unique() == 12
    assert set(nodes["dropped_because"]) == {"truncated"}
    assert run(Beam(4, truncated="end"), always_cut)["is_terminal"].all()


def test_duplicates_are_dropped_by_name() -> None:
    def same(requests: pl.DataFrame) -> pl.DataFrame:
        n = int(requests["n"].sum())
        return pl.DataFrame({"text": ["same"] * n, "finish_reason": ["step"] * n})

    nodes = run(BestOfN(4, duplicates="drop", max_rounds=2), same)
    first = nodes.filter(round=0)
    assert first["dropped_because"].value_counts().sort("count").rows() == [
        (None, 6),
        ("duplicate", 18),
    ]
    assert run(BestOfN(4, max_rounds=2), same).filter(round=0)["is_kept"].all()


def test_the_last_round_can_finish_what_is_left() -> None:
    problems, generator, prm = S.simulate(5, seed=0)
    cut = S.search(problems, generator, prm, BestOfN(4, max_rounds=2), seed=0)
    assert cut.filter(round=1, is_terminal=False)["dropped_because"].unique().to_list() == [
        "budget"
    ]
    whole = S.search(
        problems, generator, prm, BestOfN(4, max_rounds=2, last_round="finish"), seed=0
    )
    assert whole.filter(round=1)["is_terminal"].all()


def test_particles_are_as_many_as_the_width() -> None:
    problems, generator, prm = S.simulate(20, seed=0)
    policy = ParticleFilter(8)
    nodes = S.search(problems, generator, prm, policy, seed=0)
    solutions = S.to_trajectories(nodes, policy=policy)
    assert solutions.group_by("problem_id").len()["len"].unique().to_list() == [8]
    assert solutions["node_id"].n_unique() < solutions.height


def test_dvts_needs_whole_subtrees() -> None:
    with pytest.raises(
        tts.TtsframeError, match=r"width == 10, must be a multiple of beam_width \(4\)"
    ):
        DVTS(10)


BAD = [
    (lambda _: None, "generator: returned NoneType, must return a polars DataFrame"),
    (lambda r: r.select(text="problem_id"), "generator: the columns ['finish_reason'] are missing"),
    (
        lambda r: r.select(text="problem_id", finish_reason=pl.lit("stop")),
        "generator: returned 6 rows for 24 continuations of 6 requests",
    ),
    (
        lambda r: World().generate(r).with_columns(finish_reason=pl.lit("done")),
        "generator: finish_reason is 'done', must be one of step, stop, length, error",
    ),
    (
        lambda r: World().generate(r).with_columns(text=pl.lit(None, pl.String)),
        "generator: 24 continuations have no text",
    ),
    (
        lambda r: World().generate(r)[:3].with_columns(request=pl.lit(0)),
        "generator: returned fewer than 4 continuations of a node of problem 'p0'",
    ),
    (
        lambda r: World().generate(r).with_columns(request=pl.lit(0)),
        "generator: returned 24 continuations of request 0, which asked for 4",
    ),
    (
        lambda r: World().generate(r).with_columns(request=pl.lit(77)),
        "generator: 'request' must be from 0 to 5, found 77 to 77",
    ),
    (
        lambda r: World().generate(r).with_columns(request=pl.lit(None, pl.Int64)),
        "generator: 'request' is null in a row",
    ),
    (
        lambda r: World().generate(r).with_columns(request=pl.lit("0")),
        "generator: 'request' is String, must hold integers",
    ),
    (
        lambda r: World().generate(r).with_columns(n_tokens=pl.lit(-3)),
        "generator: 'n_tokens' is -3 in a row, must be no less than 0 and fit Int64",
    ),
    (
        lambda r: World().generate(r).with_columns(n_tokens=pl.lit(2**63, pl.UInt64)),
        "generator: 'n_tokens' is 9223372036854775808 in a row",
    ),
    (
        lambda r: World().generate(r).with_columns(n_tokens=pl.lit(3.5)),
        "generator: 'n_tokens' is Float64, must hold integers",
    ),
    (
        lambda r: World().generate(r).with_columns(state=pl.lit(-1)),
        "generator: 'state' is -1 in a row, must be no less than 0 and fit UInt64",
    ),
    (
        lambda r: World().generate(r).with_columns(text=pl.concat_list(pl.lit("a"))),
        "generator: 'text' is List(String), must hold texts (String)",
    ),
]


@pytest.mark.parametrize(("generator", "message"), BAD)
def test_a_wrong_generator_is_told(generator: object, message: str) -> None:
    with pytest.raises(tts.TtsframeError, match=re.escape(message)):
        run(Beam(4), generator)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "prm: returned NoneType, must return a number or a list of numbers"),
        ([0.5], "prm: returned 1 scores for 24 prefixes"),
        ([float("inf")] * 24, "prm: a score is infinite, must be finite"),
        ([[0.5, float("-inf")]] * 24, "prm: a score is infinite, must be finite"),
        (["high"] * 24, "prm: scores are String, must be numbers"),
        ([["high"]] * 24, "must be numbers"),
        ("high", "prm: returned str"),
    ],
)
def test_a_wrong_verifier_is_told(answer: object, message: str) -> None:
    with pytest.raises(tts.TtsframeError, match=re.escape(message)):
        run(Beam(4), prm=lambda _: answer)


def test_numbers_and_lists_of_any_kind_are_scores() -> None:
    for answer in ([1, 0.5, None] * 8, [[], [1], None] * 8, pl.Series([None] * 24)):
        nodes = run(Beam(4, max_rounds=1), prm=lambda _, answer=answer: answer)
        assert nodes.height == 24


def test_an_awaitable_of_a_plain_function_is_told() -> None:
    async def later(requests: pl.DataFrame) -> pl.DataFrame:
        return World().generate(requests)

    def answers_later(requests: pl.DataFrame) -> object:
        return later(requests)

    with pytest.raises(tts.TtsframeError, match="is no coroutine function"):
        run(Beam(4), answers_later)


def test_problems_are_checked() -> None:
    twice = pl.DataFrame({"problem_id": ["a", "a"]})
    with pytest.raises(tts.TtsframeError, match="problem_id has a problem twice"):
        run(Beam(4), problems=twice)
    with pytest.raises(tts.TtsframeError, match="problem_id has a null"):
        run(Beam(4), problems=pl.DataFrame({"problem_id": ["a", None]}))
    with pytest.raises(tts.TtsframeError, match="missing column"):
        run(Beam(4), problems=pl.DataFrame({"id": ["a"]}))
    with pytest.raises(tts.TtsframeError, match="problems must be a polars DataFrame"):
        run(Beam(4), problems=["a"])
    with pytest.raises(tts.TtsframeError, match="policy must be a"):
        run("beam")
    with pytest.raises(tts.TtsframeError, match="got the class Beam"):
        run(Beam)
    with pytest.raises(tts.TtsframeError, match="generator must be callable, got int"):
        run(Beam(4), 7)
    assert run(Beam(4), problems=twice[:0]).height == 0


def test_integers_are_problem_ids_too() -> None:
    nodes = run(Beam(4), problems=pl.DataFrame({"problem_id": [7, 3]}))
    assert nodes["problem_id"].dtype == pl.Int64
    assert nodes["problem_id"].unique(maintain_order=True).to_list() == [7, 3]


class Odd(Policy):
    """Decides what cannot be."""

    answer: pl.DataFrame

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        return self.answer.head(frontier.height) if self.answer.height > 6 else self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (pl.DataFrame({"n_allocated": [1]}), "one row for each of the 6 rows"),
        (pl.DataFrame({"n_allocated": [1] * 6}), r"must return the columns \['dropped_because'\]"),
        (
            pl.DataFrame({"n_allocated": [-1] * 6, "dropped_because": [None] * 6}),
            "negative or null",
        ),
        (
            pl.DataFrame({"n_allocated": [0] * 6, "dropped_because": ["boring"] * 6}),
            "dropped_because is 'boring'",
        ),
    ],
)
def test_a_policy_that_decides_the_impossible_is_told(answer: pl.DataFrame, message: str) -> None:
    policy = Odd(4)
    Odd.answer = answer
    with pytest.raises(tts.TtsframeError, match=message):
        run(policy)
