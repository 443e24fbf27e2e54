"""Searches with a model and a verifier, each a plain or an asynchronous function."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeAlias, cast

import numpy as np
import polars as pl

from ttsframe._checks import check_positive, check_seed
from ttsframe._typing import Flags
from ttsframe._waits import join, result_of
from ttsframe.errors import CompletionError, DataError, ParameterTypeError
from ttsframe.schema import require_columns
from ttsframe.search.engine import Batch, Call, Record, Rounds
from ttsframe.search.generators import Generator, ProcessRewardModel
from ttsframe.search.identity import root_ids
from ttsframe.search.journal import Journal, key_of
from ttsframe.search.nodes import NODE_COLUMNS
from ttsframe.search.policies import Policy

__all__ = ["search"]

Server: TypeAlias = Callable[[pl.DataFrame], object]
Keep: TypeAlias = Callable[[Record], None]
"""Keeps what servers answered."""

_HINT: Final = "one row per problem, with problem_id and, for the prompts, problem."


def search(
    problems: pl.DataFrame,
    generator: Generator,
    prm: ProcessRewardModel,
    policy: Policy,
    *,
    seed: int,
    batch_size: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> pl.DataFrame:
    """Search for solutions of problems, guided by a verifier, and keep the whole tree.

    In each round the policy says which steps are continued and how often, the generator writes the
    next steps, and the verifier scores them.

    Parameters
    ----------
    problems
        One row per problem: `problem_id`, and `problem`, the text for the prompts.
    generator
        Writes steps (`tts.search.Generator`); a plain or an asynchronous function.
    prm
        Scores steps (`tts.search.ProcessRewardModel`); a plain or an asynchronous function.
    policy
        What is continued, such as `tts.search.Beam(16)`.
    seed
        Seed of all draws. A draw depends on the seed, the problem and the path of the node, so the
        tree does not depend on the other problems, nor on how they are batched.
    batch_size
        Problems that are searched together, round by round. Batches run one after the other, or at the
        same time if the generator or the verifier is asynchronous. None: all problems, or one if it is
        asynchronous, so that a slow problem does not hold up the others.
    checkpoint
        A folder, empty or that of the same search. What the generator and the verifier answer is kept
        there as it arrives. An interrupted search resumes when the same call is repeated: it requests again only
        rounds that were not finished, at most one of each problem, and ends with the same tree. A round outlives the
        process that wrote it; what a failure of the machine cuts off is requested again. At the end the folder holds
        ``nodes.parquet``, which a repeated call returns. Whether generator and verifier are the same as before
        cannot be checked.

    Returns
    -------
    pl.DataFrame
        The table `nodes` (`tts.search.NODE_COLUMNS`): one row per step, kept or dropped, in the order
        of the problems and rounds.

    Raises
    ------
    ParameterTypeError
        When an argument has the wrong type.
    ColumnsError
        When `problem_id` is missing.
    DataError
        When a problem appears twice, or the policy decides something impossible.
    CompletionError
        When the generator or the verifier does not return what was asked for.
    SourceError
        When `checkpoint` belongs to another search, is in use, or cannot be written.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(20, seed=0)
    >>> policy = tts.search.Beam(8)
    >>> nodes = tts.search.search(problems, generator, prm, policy, seed=0)
    >>> nodes.filter(round=0)["is_kept"].sum(), nodes.filter(round=0).height
    (40, 160)
    >>> solutions = tts.search.to_trajectories(nodes, policy=policy, problems=problems)
    >>> solutions.pipe(tts.score_trajectories).pipe(tts.select_answers)["is_correct"].len()
    60
    """
    check_policy(policy)
    check_seed(seed)
    if checkpoint is None:
        found, _ = run_search(problems, generator, prm, policy, seed=seed, batch_size=batch_size)
        return found
    journal = Journal(checkpoint, key_of(listed_problems(problems), policy, seed))
    if (finished := journal.finished()) is not None:
        return finished
    try:
        found, _ = run_search(
            problems,
            generator,
            prm,
            policy,
            seed=seed,
            batch_size=batch_size,
            recorded=journal.recorded(),
            keep=journal.keep,
        )
        journal.finish(found)
    finally:
        journal.close()
    return found


def run_search(
    problems: pl.DataFrame,
    generator: Generator,
    prm: ProcessRewardModel,
    policy: Policy,
    *,
    seed: int,
    batch_size: int | None = None,
    recorded: pl.DataFrame | None = None,
    keep: Keep | None = None,
    allows_short: bool = False,
) -> tuple[pl.DataFrame, Flags]:
    """Search; return the nodes, and for which problems the generator ran short."""
    check_policy(policy)
    check_seed(seed)
    for name, server in (("generator", generator), ("prm", prm)):
        if not callable(server):
            raise ParameterTypeError(
                f"{name} must be callable, got {type(server).__name__}. Hint: tts.search.simulate(...) makes "
                "problems, a generator and a prm to begin with."
            )
    listed = listed_problems(problems)
    waits = is_async(generator) or is_async(prm)
    # One problem a batch where a model is waited for, so that a slow problem holds up no other.
    usual = 1 if waits else max(listed.height, 1)
    size = usual if batch_size is None else check_positive(batch_size, "batch_size")
    batches = [
        Batch(
            listed[start : start + size], policy, seed, recorded=recorded, allows_short=allows_short
        )
        for start in range(0, max(listed.height, 1), size)
    ]
    try:
        if waits:
            run_coroutine(_drive_all(batches, generator, prm, keep))
        else:
            for batch in batches:
                _drive(batch, generator, prm, keep)
    finally:
        for server in (generator, prm):
            end = getattr(server, "end_search", None)
            if callable(end):
                end()
    nodes = pl.concat([batch.nodes() for batch in batches])
    is_short = np.concatenate([batch.is_short for batch in batches])
    return nodes.sort("problem", maintain_order=True).select(*NODE_COLUMNS), is_short


def check_policy(policy: object) -> None:
    """Check that an argument is a policy."""
    if not isinstance(policy, Policy):
        what = f"the class {policy.__name__}" if isinstance(policy, type) else type(policy).__name__
        raise ParameterTypeError(
            f"policy must be a tts.search.Policy, got {what}. Hint: tts.search.Beam(16), or an instance of a "
            "subclass of tts.search.Policy."
        )


def listed_problems(problems: object) -> pl.DataFrame:
    """Return number, id, text and root of each problem."""
    if not isinstance(problems, pl.DataFrame):
        raise ParameterTypeError(
            f"problems must be a polars DataFrame, got {type(problems).__name__}. Hint: {_HINT}"
        )
    require_columns(problems, ["problem_id"], where="problems", hint=_HINT)
    ids = problems["problem_id"]
    if not (ids.dtype == pl.String or ids.dtype.is_integer() or ids.dtype == pl.Null):
        raise DataError(f"problems: problem_id is {ids.dtype}, must be a string or an integer.")
    if ids.null_count() or ids.n_unique() != len(ids):
        what = "a null" if ids.null_count() else "a problem twice"
        raise DataError(f"problems: problem_id has {what}. Hint: {_HINT}")
    has_text = "problem" in problems.columns
    text = problems["problem"].cast(pl.String) if has_text else pl.lit(None, pl.String)
    return problems.select(
        problem=pl.int_range(pl.len()), problem_id="problem_id", text=text
    ).with_columns(root=pl.Series(root_ids(ids), dtype=pl.UInt64))


def is_async(server: object) -> bool:
    """Tell whether a server is a coroutine function, or an object with one as its call."""
    call = getattr(server, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(server) or inspect.iscoroutinefunction(call)


def _answer(server: Server, batch: pl.DataFrame) -> object:
    answer = server(batch)
    if inspect.isawaitable(answer):
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        raise CompletionError(
            f"{getattr(server, '__name__', type(server).__name__)}: returned an awaitable, but is no "
            "coroutine function. Hint: define it with 'async def'."
        )
    return answer


def _drive(batch: Batch, generator: Server, prm: Server, keep: Keep | None) -> None:
    """Run the rounds of a batch."""
    rounds, answer = batch.rounds(), None
    while (call := _next(rounds, answer, batch, keep)) is not None:
        answer = _answer(generator if call.server == "generator" else prm, call.batch)


async def _drive_async(batch: Batch, generator: Server, prm: Server, keep: Keep | None) -> None:
    """Run the rounds of a batch, waiting for what is asynchronous."""
    rounds, answer = batch.rounds(), None
    while (call := _next(rounds, answer, batch, keep)) is not None:
        answer = (generator if call.server == "generator" else prm)(call.batch)
        if inspect.isawaitable(answer):
            answer = await cast("Awaitable[object]", answer)


def _next(rounds: Rounds, answer: object, batch: Batch, keep: Keep | None) -> Call | None:
    """Return the next call, after what a finished round answered has been kept."""
    try:
        call: Call | None = rounds.send(answer)
    except StopIteration:
        call = None
    if batch.fresh is not None:
        if keep is not None:
            keep(batch.fresh)
        batch.fresh = None
    return call


async def _drive_all(
    batches: Sequence[Batch], generator: Server, prm: Server, keep: Keep | None
) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for batch in batches:
                group.create_task(_drive_async(batch, generator, prm, keep))
    except BaseExceptionGroup as errors:
        # The first failure cancels the other batches; it is what the caller must see.
        raise errors.exceptions[0] from None


def run_coroutine(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in Jupyter, where a loop is running, in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    failures: list[BaseException] = []
    running: Future[Callable[[], object]] = Future()

    async def cancellable() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            running.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        await coroutine

    def run() -> None:
        try:
            asyncio.run(cancellable())
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=run, name="ttsframe-search")
    thread.start()
    try:
        join(thread)
    except BaseException:  # an interrupt
        with contextlib.suppress(RuntimeError):  # it has ended since
            result_of(running)()
        join(thread)
        raise
    if failures:
        raise failures[0]
