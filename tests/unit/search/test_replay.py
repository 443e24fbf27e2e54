"""Replays of banks and of searched trees."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from search_worlds import Compared, World

import ttsframe as tts
from ttsframe.search import DVTS, Beam, BestOfN, ParticleFilter, Policy, Rebase, VerifierFaults

S = tts.search
FAULTS = VerifierFaults(noise=1.5)
POLICIES = [BestOfN, Beam, DVTS, Rebase, ParticleFilter]


def make(kind: type[Policy], width: int) -> Policy:
    return kind(width, beam_width=2) if kind in {Beam, DVTS} else kind(width)  # type: ignore[call-arg]


def accuracy(nodes: pl.DataFrame, policy: Policy, problems: pl.DataFrame) -> pl.Series:
    """Return for each problem whether the solution with the best last score is right."""
    answer = pl.col("completion").str.extract(r"\\boxed\{(\d+)\}")
    best = pl.col("step_scores").list.last().fill_null(-1.0).arg_max()
    return (
        S
        .to_trajectories(nodes, policy=policy, problems=problems)
        .with_columns(is_right=(answer == pl.col("gold")).fill_null(value=False))
        .group_by("problem_id", maintain_order=True)
        .agg(pl.col("is_right").get(best))["is_right"]
        .cast(pl.Float64)
    )


def replayed_accuracy(
    bank: pl.DataFrame, policy: Policy, problems: pl.DataFrame, seed: int
) -> tuple[pl.Series, pl.Series]:
    replayed = S.replay(bank, policy, seed=seed)
    nodes = replayed.nodes.drop("text").join(
        bank.select("problem_id", "node_id", "text"),
        on=["problem_id", "node_id"],
        how="left",
        maintain_order="left",
    )
    return accuracy(nodes, policy, problems), replayed.problems["status"]


def differences(n_problems: int, widths: tuple[int, ...]) -> pl.DataFrame:
    options = {"accuracy": 0.35, "faults": FAULTS, "seed": 11}
    problems, bank = S.simulate_bank(n_problems, n_children=(8, 8, 8), **options)
    world = S.simulate(n_problems, n_steps=(3, 3), step_spread=0, **options)
    assert_frame_equal(world.problems, problems)
    rows = []
    for kind in POLICIES:
        for width in widths:
            policy = make(kind, width)
            replayed, status = replayed_accuracy(bank, policy, problems, seed=5)
            assert set(status) == {"ok"}
            fresh = accuracy(S.search(*world, policy, seed=99), policy, problems)
            d = (replayed - fresh).to_numpy()
            z = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
            rows.append((policy.name, width, d.mean(), z))
    return pl.DataFrame(rows, schema=["policy", "width", "difference", "z"], orient="row")


def test_a_replay_is_like_a_fresh_search() -> None:
    found = differences(400, (2, 8))
    assert found["z"].abs().max() < 3.5, found


@pytest.mark.slow
def test_a_replay_is_like_a_fresh_search_in_every_cell() -> None:
    found = differences(5000, (2, 4, 8))
    assert found["z"].abs().max() < 3.5, found
    assert found["difference"].abs().max() < 0.02, found


def test_problems_that_ran_short_are_hard_ones_so_dropping_them_is_wrong() -> None:
    faults = VerifierFaults(noise=3, persistence=0.9)
    options = {"accuracy": 0.35, "faults": faults, "seed": 11}
    problems, bank = S.simulate_bank(1000, n_children=(8, 4, 4), **options)
    world = S.simulate(1000, n_steps=(3, 3), step_spread=0, **options)
    policy = Rebase(8)
    found, status = replayed_accuracy(bank, policy, problems, seed=5)
    fresh = accuracy(S.search(*world, policy, seed=99), policy, problems).mean()
    is_short = status == "short"
    complete = found.filter(~is_short)
    assert isinstance(fresh, float)
    assert ((complete.mean() or 0) - fresh) / (complete.std() / np.sqrt(len(complete))) > 3.5
    graded = problems.select("problem_id").with_columns(is_correct=found.cast(pl.Boolean))
    low, high = S.accuracy_bounds(graded, status=S.replay(bank, policy, seed=5).problems)
    assert low is not None
    assert high is not None
    assert low < fresh < high
    assert high - low == pytest.approx(is_short.mean())


class WithReplacement:
    """A replay as it must not be: continuations are put back. The state of a step is its row in the bank."""

    def __init__(self, bank: pl.DataFrame) -> None:
        self.bank = bank
        row_of = {node: row for row, node in enumerate(bank["node_id"].to_list())}
        self.below: dict[tuple[str, int | None], list[int]] = {}
        for row, (problem, parent) in enumerate(bank.select("problem_id", "parent_id").rows()):
            key = problem, None if parent is None else row_of[parent]
            self.below.setdefault(key, []).append(row)

    def generate(self, requests: pl.DataFrame) -> pl.DataFrame:
        rows = []
        for problem, state, n, draw in requests.select("problem_id", "state", "n", "draw").rows():
            rng = np.random.default_rng(draw)
            rows += rng.choice(self.below[problem, state], n).tolist()
        found = self.bank[rows].select("text", "finish_reason", "n_tokens")
        return found.with_columns(state=pl.Series(rows, dtype=pl.UInt64))

    def score(self, prefixes: pl.DataFrame) -> pl.Series:
        return self.bank["step_score"].gather(prefixes["state"].cast(pl.Int64))


def test_drawing_with_replacement_would_be_wrong() -> None:
    options = {"accuracy": 0.35, "faults": FAULTS, "seed": 11}
    problems, bank = S.simulate_bank(2500, n_children=(8, 2), **options)
    world = S.simulate(2500, n_steps=(2, 2), step_spread=0, **options)
    again = WithReplacement(bank)
    policy = BestOfN(8)
    wrong = accuracy(
        S.search(problems, again.generate, again.score, policy, seed=5), policy, problems
    )
    right, _ = replayed_accuracy(bank, policy, problems, seed=5)
    fresh = accuracy(S.search(*world, policy, seed=99), policy, problems)
    for found, is_right in ((right, True), (wrong, False)):
        d = (found - fresh).to_numpy()
        z = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
        assert (abs(z) < 3.5) == is_right, (z, is_right)


def test_children_are_drawn_without_replacement_in_an_order_of_the_seed() -> None:
    _, bank = S.simulate_bank(30, n_children=(8, 4), seed=0)
    one, two = (S.replay(bank, BestOfN(4), seed=seed).nodes for seed in (1, 2))
    assert one["node_id"].n_unique() == one.height
    assert set(one["node_id"]) <= set(bank["node_id"])
    assert set(one["node_id"]) != set(two["node_id"])
    every = S.replay(bank, BestOfN(8), seed=1).nodes.filter(depth=1)
    assert set(every["node_id"]) == set(bank.filter(depth=1)["node_id"])
    counts = pl.concat([
        S.replay(bank, BestOfN(2), seed=seed).nodes.filter(depth=1) for seed in range(40)
    ])
    n = counts.join(bank.select("node_id", "step_score"), on="node_id")["node_id"].value_counts()
    # 40 seeds draw 2 of 8: each node 10 times on average.
    assert n["count"].mean() == pytest.approx(10, abs=0.3)
    assert n["count"].std() == pytest.approx(np.sqrt(40 * 0.25 * 0.75), rel=0.25)


def test_scores_and_tokens_are_those_of_the_bank() -> None:
    _, bank = S.simulate_bank(10, n_children=(4, 4), seed=0)
    nodes = S.replay(bank.lazy(), Beam(4, beam_width=2), seed=0).nodes
    columns = [
        "problem_id",
        "node_id",
        "parent_id",
        "depth",
        "step_score",
        "n_tokens",
        "finish_reason",
    ]
    both = nodes.select(columns).join(
        bank.select(columns), on=columns, how="anti", nulls_equal=True
    )
    assert both.height == 0
    assert nodes["text"].unique().to_list() == [""]


def test_a_search_tree_answers_its_own_policy_only() -> None:
    world = World()
    problems = Compared(world, 10).problems()
    for kind in POLICIES:
        policy = make(kind, 8)
        nodes = S.search(problems, world.generate, world.verify, policy, seed=3)
        again = S.replay(nodes, policy, seed=3, made_by=policy)
        assert set(again.problems["status"]) == {"ok"}
        shared = [name for name in nodes.columns if name not in {"text", "n_lookahead_tokens"}]
        assert_frame_equal(again.nodes.select(shared), nodes.select(shared))
        if kind is not BestOfN:
            with pytest.raises(tts.TtsframeError, match="tree of a search and no bank"):
                S.replay(nodes, Rebase(4), seed=3)
        with pytest.raises(
            tts.TtsframeError, match="cannot be answered from the tree of a search by"
        ):
            S.replay(nodes, Rebase(5, temperature=0.3), seed=3, made_by=policy)
    with pytest.raises(
        tts.TtsframeError, match="of width 8 with other parameters cannot be answered"
    ):
        S.replay(nodes, ParticleFilter(8, temperature=2), seed=3, made_by=ParticleFilter(8))


def test_a_run_of_best_of_n_answers_smaller_ones() -> None:
    problems, generator, prm = S.simulate(10, seed=0)
    nodes = S.search(problems, generator, prm, BestOfN(8), seed=0)
    found = S.replay(nodes, BestOfN(4), seed=1)
    assert set(found.problems["status"]) == {"ok"}
    assert found.nodes.filter(depth=1).height == 40
    assert set(S.replay(nodes, Beam(8), seed=1).problems["status"]) == {"short"}


def test_dvts_answers_fewer_subtrees() -> None:
    world = World()
    problems = Compared(world, 10).problems()
    nodes = S.search(problems, world.generate, world.verify, DVTS(16), seed=3)
    found = S.replay(nodes, DVTS(8), seed=1, made_by=DVTS(16))
    assert set(found.problems["status"]) == {"ok"}
    again = nodes.join(found.nodes.select("problem_id", "node_id"), on=["problem_id", "node_id"])
    assert again.height == found.nodes.height
    assert again.group_by("problem_id").agg(pl.col("subtree").n_unique())[
        "subtree"
    ].unique().to_list() == [2]
    whole = nodes.join(again.select("problem_id", "subtree").unique(), on=["problem_id", "subtree"])
    assert whole.height == found.nodes.height
    others = S.replay(nodes, DVTS(8), seed=2, made_by=DVTS(16)).nodes
    assert set(others["node_id"]) != set(found.nodes["node_id"])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Beam(4, lookahead=1), "lookahead == 1, must be 0 in a replay"),
        (Beam(4, last_round="finish"), "last_round == 'finish', must be 'stop'"),
        (Beam(4, duplicates="drop"), "cannot be replayed"),
        (Beam(4, truncated="retry"), "cannot be replayed"),
    ],
)
def test_what_a_stored_tree_cannot_answer_is_refused(policy: Policy, message: str) -> None:
    _, bank = S.simulate_bank(2, n_children=(4, 4), seed=0)
    with pytest.raises(tts.TtsframeError, match=message):
        S.replay(bank, policy, seed=0)


def test_uneven_trees_and_mixed_ones_are_refused() -> None:
    _, bank = S.simulate_bank(4, n_children=(4, 4), seed=0)
    uneven = bank.with_columns(
        n_children=pl
        .when((pl.col("depth") == 1) & (pl.col("subtree") == 0))
        .then(2)
        .otherwise("n_children")
    )
    with pytest.raises(tts.TtsframeError, match="different numbers of continuations"):
        S.replay(uneven, Beam(4), seed=0)
    with pytest.raises(tts.TtsframeError, match="a node_id appears twice"):
        S.replay(pl.concat([bank, bank]), Beam(4), seed=0)


def test_bounds_need_grades() -> None:
    status = pl.DataFrame({"problem_id": ["a", "b"], "status": ["ok", "ok"]})
    graded = pl.DataFrame({"problem_id": ["a", "b"], "is_correct": [True, None]})
    with pytest.raises(tts.TtsframeError, match="'b' has no grade and is not short"):
        S.accuracy_bounds(graded, status=status)
    with pytest.raises(tts.TtsframeError, match="a problem appears twice"):
        S.accuracy_bounds(pl.concat([graded, graded]), status=status)
    assert S.accuracy_bounds(graded.head(0), status=status.head(0)) == (None, None)
