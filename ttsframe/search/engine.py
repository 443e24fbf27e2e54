"""The rounds of a search: ask the policy, the generator and the verifier, tell the policy, keep everything."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ttsframe._typing import Flags, Integers
from ttsframe.errors import CompletionError, DataError
from ttsframe.search.generators import check_children, check_scores
from ttsframe.search.identity import LOOKAHEAD, child_ids, request_draws, round_draws
from ttsframe.search.nodes import DROP_REASONS, NODE_COLUMNS, NODE_SCHEMA
from ttsframe.search.policies import FRONTIER_COLUMNS, Policy
from ttsframe.steps import STEP_REDUCTIONS

_TRIES: Final = 3
"""How often a step is asked for that a limit of length keeps cutting."""

Server: TypeAlias = Literal["generator", "prm"]


class Call(NamedTuple):
    """What a search asks of a server; the driver sends back the answer."""

    server: Server
    batch: pl.DataFrame


Rounds: TypeAlias = Generator[Call, object, None]


class Record(NamedTuple):
    """What the servers answered in one round, one row per new step."""

    round: int
    answers: pl.DataFrame


ANSWER_SCHEMA: Final = {
    "problem": pl.Int64(),
    "request": pl.Int64(),
    "child": pl.Int64(),
    "text": pl.String(),
    "lookahead_text": pl.String(),
    "finish_reason": pl.String(),
    "n_tokens": pl.Int64(),
    "n_lookahead_tokens": pl.Int64(),
    "n_prompt_tokens_new": pl.Int64(),
    "node_id": pl.UInt64(),
    "state": pl.UInt64(),
    "step_score": pl.Float64(),
    "score_vector": pl.List(pl.Float64()),
}
"""What servers answered, as it is recorded. `problem` is the row of the problem among all; `request`
counts the problem's requests of the round."""


@dataclass
class Outcomes:
    """What became of the nodes of a batch, by row of its log."""

    rows: list[Integers] = field(default_factory=list)
    n_allocated: list[Integers] = field(default_factory=list)
    n_children: list[Integers] = field(default_factory=list)
    dropped: list[pl.Series] = field(default_factory=list)

    def add(
        self, rows: Integers, n_allocated: Integers, n_children: Integers, dropped: pl.Series
    ) -> None:
        """Note what happened to nodes; a later note replaces an earlier one."""
        self.rows.append(rows)
        self.n_allocated.append(n_allocated)
        self.n_children.append(n_children)
        self.dropped.append(dropped.cast(_REASON))

    def columns(self, n_rows: int) -> dict[str, pl.Series]:
        """Return the columns of `nodes` that tell what became of each node."""
        allocated = np.zeros(n_rows, dtype=np.int64)
        children = np.zeros(n_rows, dtype=np.int64)
        codes = np.full(n_rows, -1, dtype=np.int64)
        for rows, given, got, dropped in zip(
            self.rows, self.n_allocated, self.n_children, self.dropped, strict=True
        ):
            allocated[rows] = given
            children[rows] = got
            codes[rows] = dropped.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        code = pl.Series(codes)
        names = pl.Series("dropped_because", DROP_REASONS, dtype=pl.String)
        return {
            "n_allocated": pl.Series(allocated),
            "n_children": pl.Series(children),
            "is_kept": code < 0,
            "dropped_because": names.gather(code.set(code < 0, None)),
        }


_REASON: Final = pl.Enum(DROP_REASONS)


class Batch:
    """The search of some problems, all in the same round."""

    def __init__(
        self,
        problems: pl.DataFrame,
        policy: Policy,
        seed: int,
        *,
        recorded: pl.DataFrame | None = None,
        allows_short: bool = False,
    ) -> None:
        """Begin with the problems themselves: `problem` (row among all), `problem_id`, `text`, `root`."""
        self._problems = problems
        self._policy = policy
        self._seed = seed
        self._recorded = (
            None
            if recorded is None
            else recorded.join(problems.select("problem"), on="problem", how="semi")
        )
        self._allows_short = allows_short
        self._log: list[pl.DataFrame] = []
        self._n_rows = 0
        self._outcomes = Outcomes()
        self._finished = np.zeros(problems.height, dtype=np.int64)
        self._finished_subtree = np.zeros((problems.height, 1), dtype=np.int64)
        self.is_short = np.zeros(problems.height, dtype=np.bool_)
        """Problems whose generator had fewer continuations than the policy asked for."""
        self.fresh: Record | None = None
        """Answers of the last round that no record held."""

    def rounds(self) -> Rounds:
        """Run the search; yields calls of the servers, and takes their answers."""
        pool = self._roots()
        for number in range(self._policy.max_rounds):
            pool, asked = self._ask(pool, number)
            if not asked.height:
                return
            answers = yield from self._answers(asked, number)
            pool = self._tell(pool, asked, answers, number)
            if not pool.height:
                return
        self._end(pool)

    def _roots(self) -> pl.DataFrame:
        n = self._problems.height
        roots = self._problems.select(
            local=pl.int_range(pl.len()),
            problem="problem",
            root="root",
            node_id="root",
            parent_id=pl.lit(None, pl.UInt64),
            depth=pl.lit(0, pl.Int64),
            subtree=pl.lit(0, pl.Int64),
            child=pl.lit(0, pl.Int64),
            score=pl.lit(None, pl.Float64),
            n_scores=pl.lit(None, pl.Int64),
            is_terminal=pl.lit(False),
            n_copies=pl.lit(1, pl.Int64),
            n_tokens=pl.lit(0, pl.Int64),
            row=pl.lit(-1, pl.Int64),
            prefix=pl.lit("", pl.String),
            text=pl.lit("", pl.String),
            state=pl.lit(None, pl.UInt64),
            path_scores=pl.lit([], pl.List(pl.Float64)),
            path=pl.lit([], pl.List(pl.UInt64)),
            path_tokens=pl.lit([], pl.List(pl.Int64)),
        )
        return roots.select(self._pool_columns(roots.columns)) if n else roots

    def _pool_columns(self, columns: list[str]) -> list[str]:
        left_out = set() if self._policy.needs_paths else {"path", "path_tokens"}
        if self._policy.reduction == "last":
            left_out.add("path_scores")
        return [name for name in columns if name not in left_out]

    def _ask(self, pool: pl.DataFrame, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Ask the policy; return what stays in the frontier, and the rows to continue."""
        frontier = self._frontier(pool, number)
        answer = self._policy.ask(frontier)
        pool = pool.with_columns(_checked_allocation(answer, pool, self._policy.name))
        is_open = ~pool["is_terminal"]
        is_given = pool["n_allocated"] > 0
        # The whole path is written once, for the requests; its children refer to it.
        asked = pool.filter(is_open & is_given).with_columns(prefix=pl.concat_str("prefix", "text"))
        is_going = np.zeros(self._problems.height, dtype=np.bool_)
        is_going[asked["local"].to_numpy()] = True
        stays = ~is_open & is_given & pl.Series(is_going[pool["local"].to_numpy()])
        leaves = pool.filter(~stays & ~(is_open & is_given))
        self._note(leaves, leaves["n_allocated"].to_numpy(), leaves["dropped_because"])
        return pool.filter(stays), asked

    def _frontier(self, pool: pl.DataFrame, number: int) -> pl.DataFrame:
        local, subtree = pool["local"].to_numpy(), pool["subtree"].to_numpy()
        roots = pool["root"].to_numpy()
        added = pool.with_columns(
            round=pl.lit(number, pl.Int64),
            n_finished=pl.Series(self._finished[local]),
            n_finished_subtree=pl.Series(self._finished_subtree[local, subtree]),
            draw=pl.Series(round_draws(self._seed, roots, np.array([number]))),
        )
        return added.select(name for name in FRONTIER_COLUMNS if name in added.columns)

    def _answers(self, asked: pl.DataFrame, number: int) -> Generator[Call, object, pl.DataFrame]:
        """Return the steps of a round, recorded or from the servers, in the order of the requests."""
        local = asked["local"].to_numpy()
        request = np.arange(len(local)) - np.searchsorted(local, local)
        asked = asked.with_columns(request=pl.Series(request))
        recorded = self._recorded_answers(number)
        if recorded is None:
            fresh = yield from self._fetch(asked, number)
            self.fresh = Record(number, fresh)
            return fresh
        is_known = np.isin(asked["problem"].to_numpy(), recorded["problem"].to_numpy())
        missing = asked.filter(pl.Series(~is_known))
        if not missing.height:
            return recorded
        fresh = yield from self._fetch(missing, number)
        self.fresh = Record(number, fresh)
        return pl.concat([recorded, fresh]).sort("problem", maintain_order=True)

    def _recorded_answers(self, number: int) -> pl.DataFrame | None:
        if self._recorded is None:
            return None
        # Records of batches that ran at the same time are mixed.
        found = self._recorded.filter(round=number).drop("round")
        return found.sort("problem", maintain_order=True) if found.height else None

    def _fetch(self, asked: pl.DataFrame, number: int) -> Generator[Call, object, pl.DataFrame]:
        """Ask the generator and the verifier."""
        requests = self._requests(asked, number)
        children = yield from self._generate(requests, asked)
        parents = asked[children["request"].to_numpy()]
        ids = (
            children["node_id"].to_numpy()
            if "node_id" in children.columns
            else child_ids(parents["node_id"].to_numpy(), children["child"].to_numpy())
        )
        missing = [
            pl.lit(None, ANSWER_SCHEMA[name]).alias(name)
            for name in ("n_tokens", "n_prompt_tokens_new", "state")
            if name not in children.columns
        ]
        texts = self._problems["text"].gather(parents["local"])
        paths = children.with_columns(
            *missing,
            node_id=pl.Series(ids),
            problem=parents["problem"],
            problem_id=self._problems["problem_id"].gather(parents["local"]),
            problem_text=texts,
            depth=parents["depth"] + 1,
            prefix=requests["prefix"].gather(children["request"]),
            lookahead_text=pl.lit(None, pl.String),
            n_lookahead_tokens=pl.lit(0, pl.Int64),
            request=parents["request"],
        ).with_columns(seen_state="state")
        if self._policy.lookahead:
            paths = yield from self._look_ahead(paths)
        scored = yield from self._score(paths)
        return scored.select(list(ANSWER_SCHEMA))

    def _requests(self, asked: pl.DataFrame, number: int) -> pl.DataFrame:
        is_last = number + 1 == self._policy.max_rounds and self._policy.last_round == "finish"
        nodes = asked["node_id"].to_numpy()
        return asked.select(
            self._problems["problem_id"].gather(asked["local"]).alias("problem_id"),
            self._problems["text"].gather(asked["local"]).alias("problem"),
            "node_id",
            "depth",
            "prefix",
            pl.col("n_allocated").alias("n"),
            pl.Series("draw", request_draws(self._seed, nodes)),
            pl.lit(False).alias("is_greedy"),
            pl.lit("end" if is_last else "step").alias("until"),
            "state",
        )

    def _generate(
        self, requests: pl.DataFrame, asked: pl.DataFrame
    ) -> Generator[Call, object, pl.DataFrame]:
        """Ask for children; steps that a limit cut are asked for again, if the policy says so."""
        answer = yield Call("generator", requests)
        found, is_short = check_children(answer, requests)
        self._take_short(is_short, requests, asked)
        children = _numbered(found, np.zeros(requests.height, dtype=np.int64))
        if self._policy.truncated != "retry":
            return children
        n_so_far = requests["n"].to_numpy().copy()
        for _ in range(_TRIES - 1):
            rows, is_cut = (
                found["request"].to_numpy(),
                (found["finish_reason"] == "length").to_numpy(),
            )
            n_cut = np.bincount(rows[is_cut], minlength=requests.height)
            n_again = np.where(n_cut == np.bincount(rows, minlength=requests.height), n_cut, 0)
            if not n_again.any():
                break
            again = requests.with_columns(n=pl.Series(n_again)).with_columns(
                draw=pl.Series(child_ids(requests["draw"].to_numpy(), n_so_far + LOOKAHEAD))
            )
            rows = np.flatnonzero(n_again)
            answer = yield Call("generator", again[rows])
            found, is_short = check_children(answer, again[rows])
            self._take_short(is_short, again[rows], asked[rows])
            found = found.with_columns(request=pl.Series(rows[found["request"].to_numpy()]))
            children = pl.concat([children, _numbered(found, n_so_far)])
            n_so_far += n_again
        return children.sort("request", "child")

    def _take_short(self, is_short: Flags, requests: pl.DataFrame, asked: pl.DataFrame) -> None:
        if not is_short.any():
            return
        if not self._allows_short:
            row = int(np.argmax(is_short))
            raise CompletionError(
                f"generator: returned fewer than {requests['n'][row]} continuations of a node of problem "
                f"{requests['problem_id'][row]!r}. Hint: return rows with finish_reason 'error' for "
                "those that failed."
            )
        self.is_short[asked["local"].to_numpy()[is_short]] = True

    def _look_ahead(self, paths: pl.DataFrame) -> Generator[Call, object, pl.DataFrame]:
        """Continue each step greedily, for the verifier only."""
        n = paths.height
        texts = pl.Series([""], dtype=pl.String).new_from_index(0, n)
        tokens = np.zeros(n, dtype=np.int64)
        states = paths["state"]
        going = np.flatnonzero((paths["finish_reason"] == "step").to_numpy())
        nodes = paths["node_id"].to_numpy().copy()
        for step in range(self._policy.lookahead):
            if not len(going):
                break
            rows = paths[going]
            draws = request_draws(self._seed, child_ids(nodes[going], np.array([LOOKAHEAD])))
            requests = rows.select(
                "problem_id",
                pl.col("problem_text").alias("problem"),
                "node_id",
                pl.col("depth") + step,
                pl.concat_str("prefix", "text", texts.gather(going).alias("ahead")).alias("prefix"),
                pl.lit(1, pl.Int64).alias("n"),
                pl.Series("draw", draws),
                pl.lit(True).alias("is_greedy"),
                pl.lit("step").alias("until"),
                states.gather(going).alias("state"),
            )
            answer = yield Call("generator", requests)
            found, is_short = check_children(answer, requests)
            self._take_short(is_short, requests, self._locals(rows))
            got = going[found["request"].to_numpy()]
            ahead = pl.DataFrame({"at": got, "ahead": found["text"].fill_null("")})
            texts = (
                pl
                .DataFrame({"at": np.arange(n), "text": texts})
                .join(ahead, on="at", how="left", maintain_order="left")
                .select(pl.concat_str("text", pl.col("ahead").fill_null("")))
                .to_series()
            )
            if "n_tokens" in found.columns:
                tokens[got] += found["n_tokens"].fill_null(0).to_numpy()
            if "state" in found.columns:
                states = states.scatter(got, found["state"])
            nodes[got] = child_ids(nodes[got], np.array([LOOKAHEAD]))
            going = got[(found["finish_reason"] == "step").to_numpy()]
        # An empty lookahead is none: the step ended the solution.
        return paths.with_columns(
            lookahead_text=texts.set(texts == "", None),
            n_lookahead_tokens=pl.Series(tokens),
            seen_state=states,
        )

    def _locals(self, rows: pl.DataFrame) -> pl.DataFrame:
        local = np.searchsorted(self._problems["problem"].to_numpy(), rows["problem"].to_numpy())
        return pl.DataFrame({"local": local})

    @staticmethod
    def _score(paths: pl.DataFrame) -> Generator[Call, object, pl.DataFrame]:
        """Ask the verifier about every step that has a text."""
        there = np.flatnonzero((paths["finish_reason"] != "error").to_numpy())
        rows = paths if len(there) == paths.height else paths[there]
        if not rows.height:
            return paths.with_columns(
                step_score=pl.lit(None, pl.Float64), score_vector=pl.lit(None, pl.List(pl.Float64))
            )
        answer = yield Call(
            "prm",
            rows.select(
                "problem_id",
                pl.col("problem_text").alias("problem"),
                "node_id",
                "depth",
                "prefix",
                "text",
                "lookahead_text",
                "finish_reason",
                pl.col("seen_state").alias("state"),
            ),
        )
        last, vectors = check_scores(answer, rows.height)
        scores = pl.DataFrame({
            "at": there,
            "step_score": last,
            "score_vector": vectors
            if vectors is not None
            else pl.Series([None], dtype=pl.List(pl.Float64)).new_from_index(0, rows.height),
        })
        if rows.height == paths.height:
            return paths.with_columns(scores["step_score"], scores["score_vector"])
        at = pl.int_range(pl.len()).alias("at")
        return paths.with_columns(at).join(scores, on="at", how="left", maintain_order="left")

    def _tell(
        self, pool: pl.DataFrame, asked: pl.DataFrame, answers: pl.DataFrame, number: int
    ) -> pl.DataFrame:
        """Add the new steps to the log; return the next frontier."""
        asked, answers = self._without_short(asked, answers)
        if self.is_short.any():
            pool = pool.filter(~pl.Series(self.is_short[pool["local"].to_numpy()]))
        starts = np.searchsorted(asked["local"].to_numpy(), self._locals(answers)["local"])
        parent = starts + answers["request"].to_numpy()
        n_children = np.bincount(parent, minlength=asked.height)
        self._note(asked, asked["n_allocated"].to_numpy(), None, n_children)
        children = self._children(asked[parent], answers)
        if self._policy.child_order == "tiled":
            children = children.sort("local", "child", maintain_order=True)
        children = children.with_columns(row=pl.int_range(pl.len()) + self._n_rows)
        self._widen(int(children["subtree"].to_numpy().max(initial=0)) + 1)
        self._log.append(self._logged(children, number))
        self._n_rows += children.height
        dropped = self._dropped(children, number)
        is_dropped = dropped.is_not_null()
        lost = children.filter(is_dropped)
        self._note(lost, np.zeros(lost.height, dtype=np.int64), dropped.filter(is_dropped))
        is_finished = children["is_terminal"] & ~is_dropped
        self._count(children.filter(is_finished))
        stays = ~is_dropped if self._policy.keeps_finished else ~is_dropped & ~is_finished
        fresh = children.filter(stays).select(self._pool_columns(_POOL_COLUMNS))
        if not pool.height:
            return fresh
        kept = pool.with_columns(n_copies="n_allocated").select(fresh.columns)
        return pl.concat([kept, fresh]).sort("local", maintain_order=True)

    def _without_short(
        self, asked: pl.DataFrame, answers: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Leave out problems for which the generator ran short: their search ends before the round."""
        if not self.is_short.any():
            return asked, answers
        is_out = pl.Series(self.is_short[asked["local"].to_numpy()])
        self._note_end(asked.filter(is_out))
        outside = self._problems["problem"].to_numpy()[self.is_short]
        is_left = ~np.isin(answers["problem"].to_numpy(), outside)
        return asked.filter(~is_out), answers.filter(pl.Series(is_left))

    def _children(self, parents: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
        """Put new steps and what they inherit together."""
        is_first = parents["depth"] == 0
        terminal = pl.col("finish_reason") == "stop"
        if self._policy.truncated == "end":
            terminal |= pl.col("finish_reason") == "length"
        if self._policy.empty_ends:
            terminal |= pl.col("text") == ""
        if self._policy.ends_at is not None:
            terminal |= pl.col("text").str.contains(self._policy.ends_at, literal=True)
        children = answers.with_columns(
            local=parents["local"],
            root=parents["root"],
            parent_id=parents["node_id"].set(is_first, None),
            depth=parents["depth"] + 1,
            subtree=pl
            .when(is_first)
            .then(pl.col("child") // self._policy.subtree_size)
            .otherwise(parents["subtree"]),
            is_terminal=terminal,
            n_copies=pl.lit(1, pl.Int64),
            n_scores=pl.col("score_vector").list.len().cast(pl.Int64),
            prefix=parents["prefix"],
        )
        if self._policy.needs_paths:
            children = children.with_columns(
                path=pl.concat_list(parents["path"], "node_id"),
                path_tokens=pl.concat_list(parents["path_tokens"], pl.col("n_tokens").fill_null(0)),
            )
        if self._policy.reduction == "last":
            return children.with_columns(score="step_score")
        reduce = STEP_REDUCTIONS[self._policy.reduction]
        own = pl.concat_list(parents["path_scores"], "step_score")
        return children.with_columns(path_scores=pl.coalesce("score_vector", own)).with_columns(
            reduce("path_scores").fill_nan(None).alias("score")
        )

    def _dropped(self, children: pl.DataFrame, number: int) -> pl.Series:
        """Ask the policy which new steps cannot be continued."""
        frontier = self._frontier(children, number).with_columns(
            children["finish_reason"],
            is_duplicate=pl.lit(False),
        )
        if self._policy.duplicates == "drop":
            path = pl.struct("local", pl.concat_str("prefix", "text"), "is_terminal")
            is_first = children.select(path.is_first_distinct()).to_series()
            frontier = frontier.with_columns(is_duplicate=~is_first)
        found = self._policy.tell(frontier)
        if len(found) != children.height:
            raise DataError(
                f"{self._policy.name}: tell returned {len(found)} reasons for {children.height} steps."
            )
        return found

    def _logged(self, children: pl.DataFrame, number: int) -> pl.DataFrame:
        known = [
            "parent_id",
            "node_id",
            "depth",
            "subtree",
            "text",
            "lookahead_text",
            "step_score",
            "score_vector",
            "n_tokens",
            "n_lookahead_tokens",
            "n_prompt_tokens_new",
            "finish_reason",
            "is_terminal",
        ]
        return children.select(
            "local",
            pl.lit(number, pl.UInt16).alias("round"),
            *(pl.col(name).cast(NODE_SCHEMA[name]) for name in known),
        )

    def _count(self, finished: pl.DataFrame) -> None:
        local, subtree = finished["local"].to_numpy(), finished["subtree"].to_numpy()
        np.add.at(self._finished, local, 1)
        np.add.at(self._finished_subtree, (local, subtree), 1)

    def _widen(self, n_subtrees: int) -> None:
        missing = n_subtrees - self._finished_subtree.shape[1]
        if missing > 0:
            self._finished_subtree = np.pad(self._finished_subtree, ((0, 0), (0, missing)))

    def _note(
        self,
        nodes: pl.DataFrame,
        n_allocated: Integers,
        dropped: pl.Series | None,
        n_children: Integers | None = None,
    ) -> None:
        rows = nodes["row"].to_numpy()
        is_node = rows >= 0
        if not is_node.any():
            return
        empty = pl.Series([None], dtype=pl.String).new_from_index(0, len(rows))
        got = np.zeros(len(rows), dtype=np.int64) if n_children is None else n_children
        reason = empty if dropped is None else dropped
        self._outcomes.add(
            rows[is_node], n_allocated[is_node], got[is_node], reason.filter(pl.Series(is_node))
        )

    def _note_end(self, pool: pl.DataFrame) -> None:
        """Note that no width is left for unfinished paths; finished ones are returned."""
        budget = pool.select(pl.when(~pl.col("is_terminal")).then(pl.lit("budget"))).to_series()
        copies = pool.select(pl.when("is_terminal").then("n_copies").otherwise(0)).to_series()
        self._note(pool, copies.to_numpy(), budget)

    def _end(self, pool: pl.DataFrame) -> None:
        """End the search after its last round."""
        if self._policy.last_round != "return":
            self._note_end(pool)
            return
        answer = self._policy.ask(self._frontier(pool, self._policy.max_rounds))
        pool = pool.with_columns(_checked_allocation(answer, pool, self._policy.name))
        self._note(pool, pool["n_allocated"].to_numpy(), pool["dropped_because"])

    def nodes(self) -> pl.DataFrame:
        """Return the table `nodes` of the batch, with the row of the problem as `problem`."""
        if not self._log:
            return pl.DataFrame(schema={"problem": pl.Int64(), **NODE_SCHEMA}).with_columns(
                self._problems["problem_id"].head(0)
            )
        log = pl.concat(self._log)
        local = log["local"]
        return log.with_columns(
            problem=self._problems["problem"].gather(local),
            problem_id=self._problems["problem_id"].gather(local),
            **self._outcomes.columns(log.height),
        ).select("problem", *NODE_COLUMNS)


_POOL_COLUMNS: Final = [
    "local",
    "problem",
    "root",
    "node_id",
    "parent_id",
    "depth",
    "subtree",
    "child",
    "score",
    "n_scores",
    "is_terminal",
    "n_copies",
    "n_tokens",
    "row",
    "prefix",
    "text",
    "state",
    "path_scores",
    "path",
    "path_tokens",
]


def _numbered(children: pl.DataFrame, starts: Integers) -> pl.DataFrame:
    """Give each child its index in its request, behind those that came before."""
    request = children["request"].to_numpy()
    position = np.arange(len(request)) - np.searchsorted(request, request)
    return children.with_columns(child=pl.Series(starts[request] + position))


def _checked_allocation(answer: object, pool: pl.DataFrame, name: str) -> list[pl.Series]:
    """Check what a policy decided."""
    if not isinstance(answer, pl.DataFrame) or answer.height != pool.height:
        size = answer.height if isinstance(answer, pl.DataFrame) else type(answer).__name__
        raise DataError(
            f"{name}: ask must return a frame with one row for each of the {pool.height} rows of the "
            f"frontier, found {size}."
        )
    missing = {"n_allocated", "dropped_because"} - set(answer.columns)
    if missing:
        raise DataError(f"{name}: ask must return the columns {sorted(missing)}.")
    n_allocated = answer["n_allocated"].cast(pl.Int64)
    if n_allocated.null_count() or (n_allocated < 0).any():
        raise DataError(f"{name}: ask returned an n_allocated that is negative or null.")
    reason = answer["dropped_because"].cast(pl.String)
    unknown = reason.drop_nulls().filter(~reason.drop_nulls().is_in(DROP_REASONS))
    if len(unknown):
        raise DataError(
            f"{name}: dropped_because is {unknown[0]!r}, must be one of {', '.join(DROP_REASONS)}."
        )
    kept = n_allocated > 0
    return [
        n_allocated.alias("n_allocated"),
        reason.set(kept, None).alias("dropped_because"),
    ]
