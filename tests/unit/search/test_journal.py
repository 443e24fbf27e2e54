"""A search that is stopped at any byte goes on to the same tree."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.search import Beam, ParticleFilter, Policy, Rebase, VerifierFaults
from ttsframe.search.engine import ANSWER_SCHEMA, Record
from ttsframe.search.journal import _decoded, _encode

S = tts.search
WORLD = S.simulate(6, seed=0, faults=VerifierFaults(missing_rate=0.1), cut_rate=0.02)


class StopError(Exception):
    """Ends a search from inside a server."""


class Counting:
    """Counts the steps it is asked for, and stops after some."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.asked: list[tuple[str, int]] = []

    def __call__(self, requests: pl.DataFrame) -> pl.DataFrame:
        self.asked += requests.select("problem_id", "node_id").rows()
        if self.most is not None and len(self.asked) > self.most:
            raise StopError
        return WORLD.generator(requests)


def vectors(prefixes: pl.DataFrame) -> pl.Series:
    """Return lists with nulls and NaN, of every length."""
    scores = WORLD.prm(prefixes)
    return pl.Series([
        None if score is None else [None, float("nan"), *[score] * (i % 3)]
        for i, score in enumerate(scores.to_list())
    ])


def journal_of(folder: Path, policy: Policy, prm: object = WORLD.prm, **options: object) -> bytes:
    """Return a journal of a whole search, which is kept only by one that fails."""
    total = Counting()
    S.search(WORLD.problems, total, prm, policy, seed=1)
    stopping = Counting(most=len(total.asked) - 1)
    with pytest.raises(StopError):
        S.search(WORLD.problems, stopping, prm, policy, seed=1, checkpoint=folder, **options)
    return (folder / "journal.bin").read_bytes()


@pytest.mark.parametrize("policy", [Rebase(8), ParticleFilter(8), Beam(8, lookahead=1)])
def test_a_search_cut_at_any_byte_ends_with_the_same_tree(policy: Policy, tmp_path: Path) -> None:
    expected = S.search(WORLD.problems, WORLD.generator, WORLD.prm, policy, seed=1)
    content = journal_of(tmp_path / "a", policy)
    cuts = np.random.default_rng(0).integers(0, len(content) + 1, 4)
    for i, cut in enumerate([0, len(content), *cuts.tolist()]):
        folder = tmp_path / f"cut-{i}"
        folder.mkdir()
        (folder / "search.json").write_bytes((tmp_path / "a" / "search.json").read_bytes())
        (folder / "journal.bin").write_bytes(content[:cut])
        found = S.search(
            WORLD.problems, WORLD.generator, WORLD.prm, policy, seed=1, checkpoint=folder
        )
        assert_frame_equal(found, expected)
        assert sorted(path.name for path in folder.iterdir()) == ["nodes.parquet", "search.json"]


@pytest.mark.slow
def test_a_hundred_cuts(tmp_path: Path) -> None:
    policy = Rebase(8)
    expected = S.search(WORLD.problems, WORLD.generator, WORLD.prm, policy, seed=1)
    content = journal_of(tmp_path / "a", policy)
    for i, cut in enumerate(np.random.default_rng(1).integers(0, len(content) + 1, 100).tolist()):
        folder = tmp_path / f"cut-{i}"
        folder.mkdir()
        (folder / "search.json").write_bytes((tmp_path / "a" / "search.json").read_bytes())
        (folder / "journal.bin").write_bytes(content[:cut])
        found = S.search(
            WORLD.problems, WORLD.generator, WORLD.prm, policy, seed=1, checkpoint=folder
        )
        assert_frame_equal(found, expected)


def test_only_what_is_missing_is_asked_again(tmp_path: Path) -> None:
    whole = Counting()
    expected = S.search(WORLD.problems, whole, vectors, Rebase(8), seed=1)
    content = journal_of(tmp_path / "a", Rebase(8), vectors)
    rest = Counting()
    found = S.search(WORLD.problems, rest, vectors, Rebase(8), seed=1, checkpoint=tmp_path / "a")
    assert_frame_equal(found, expected)
    assert 0 < len(rest.asked) < len(whole.asked) / 4
    nothing = Counting()
    again = S.search(WORLD.problems, nothing, vectors, Rebase(8), seed=1, checkpoint=tmp_path / "a")
    assert_frame_equal(again, expected)
    assert not nothing.asked
    assert len(content) > 100


def test_a_damaged_record_and_what_follows_are_asked_again(tmp_path: Path) -> None:
    expected = S.search(WORLD.problems, WORLD.generator, WORLD.prm, Rebase(8), seed=1)
    content = bytearray(journal_of(tmp_path, Rebase(8)))
    content[len(content) // 2] ^= 1
    (tmp_path / "journal.bin").write_bytes(content)
    found = S.search(
        WORLD.problems, WORLD.generator, WORLD.prm, Rebase(8), seed=1, checkpoint=tmp_path
    )
    assert_frame_equal(found, expected)


def test_any_damage_of_a_record_is_seen() -> None:
    rows = 2_000  # many pages
    draw = np.random.default_rng(0)
    known = pl.DataFrame({
        "problem": range(rows),
        "request": 3,
        "child": range(rows),
        "text": [f"{i} {'x' * (i % 50)}" for i in range(rows)],
        "step_score": draw.normal(size=rows),
        "score_vector": [[0.5, None]] * rows,
    })
    missing = [pl.lit(None).alias(name) for name in ANSWER_SCHEMA if name not in known.columns]
    ordered = known.with_columns(missing).select(list(ANSWER_SCHEMA))
    expected = ordered.cast(pl.Schema(ANSWER_SCHEMA))
    content = b"".join(_encode(Record(7, expected)))
    for whole in (expected, expected.clear()):
        stored = b"".join(_encode(Record(7, whole)))
        ((found, end),) = _decoded(stored)
        assert_frame_equal(found, whole.with_columns(round=pl.lit(7, pl.Int64)))
        assert end == len(stored)
    for place in [*range(16), *draw.integers(0, len(content), 200).tolist()]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(draw.integers(8))
        assert not list(_decoded(bytes(flipped))), place
        assert not list(_decoded(content[:place]))
    for start in range(4096, len(content) - 8192, 4096):
        first, second = content[start : start + 4096], content[start + 4096 : start + 8192]
        for pages in (bytes(4096) + second, second + first):
            if pages != first + second:
                assert not list(_decoded(content[:start] + pages + content[start + 8192 :]))


def test_lists_of_scores_come_back_as_they_were(tmp_path: Path) -> None:
    policy = Rebase(8, reduction="mean")
    expected = S.search(WORLD.problems, WORLD.generator, vectors, policy, seed=1)
    journal_of(tmp_path, policy, vectors)
    found = S.search(WORLD.problems, WORLD.generator, vectors, policy, seed=1, checkpoint=tmp_path)
    assert_frame_equal(found, expected)


def test_asynchronous_batches_share_a_journal(tmp_path: Path) -> None:
    async def generate(requests: pl.DataFrame) -> pl.DataFrame:
        await asyncio.sleep(0)
        if requests["depth"][0] == 3 and "problem-4" in requests["problem_id"]:
            raise StopError
        return WORLD.generator(requests)

    expected = S.search(WORLD.problems, WORLD.generator, WORLD.prm, Rebase(8), seed=1)
    options = {"seed": 1, "checkpoint": tmp_path}
    with pytest.raises(StopError):
        S.search(WORLD.problems, generate, WORLD.prm, Rebase(8), batch_size=1, **options)
    rest = Counting()
    found = S.search(WORLD.problems, rest, WORLD.prm, Rebase(8), batch_size=4, **options)
    assert_frame_equal(found, expected)
    assert len(rest.asked) < expected["parent_id"].n_unique()


def test_records_in_any_order_of_arrival(tmp_path: Path) -> None:
    ids = WORLD.problems["problem_id"].to_list()
    answered = {(depth, problem): asyncio.Event() for depth in range(40) for problem in ids}

    async def generate(requests: pl.DataFrame) -> pl.DataFrame:
        # The later a problem stands, the earlier it is answered.
        depth, mine = requests["depth"][0], requests["problem_id"][0]
        if mine != ids[-1]:
            await answered[depth, ids[ids.index(mine) + 1]].wait()
        answered[depth, mine].set()
        if (depth, mine) == (2, ids[0]):
            raise StopError
        return WORLD.generator(requests)

    expected = S.search(WORLD.problems, WORLD.generator, WORLD.prm, Rebase(8), seed=1)
    with pytest.raises(StopError):
        S.search(
            WORLD.problems,
            generate,
            WORLD.prm,
            Rebase(8),
            seed=1,
            checkpoint=tmp_path,
            batch_size=1,
        )
    found = S.search(
        WORLD.problems, WORLD.generator, WORLD.prm, Rebase(8), seed=1, checkpoint=tmp_path
    )
    assert_frame_equal(found, expected)


KILLED = """
import os, signal, sys
import ttsframe as tts
problems, generator, prm = tts.search.simulate(6, seed=0)
n = 0
def killing(requests):
    global n
    n += 1
    if n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return generator(requests)
tts.search.search(problems, killing, prm, tts.search.Rebase(8), seed=1, checkpoint=sys.argv[1])
"""


def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "run")], check=False, timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    world = S.simulate(6, seed=0)
    expected = S.search(*world, Rebase(8), seed=1)
    assert (tmp_path / "run" / "journal.bin").stat().st_size > 0
    found = S.search(*world, Rebase(8), seed=1, checkpoint=tmp_path / "run")
    assert_frame_equal(found, expected)


def test_no_more_than_twice_the_tree_is_written(tmp_path: Path) -> None:
    world = S.simulate(30, seed=0, text_length=200)
    last = Counting()
    nodes = S.search(world.problems, world.generator, world.prm, Rebase(16), seed=1)

    def stopping(requests: pl.DataFrame) -> pl.DataFrame:
        last.asked.append(("", requests.height))
        if len(last.asked) == nodes["round"].n_unique():
            raise StopError
        return world.generator(requests)

    with pytest.raises(StopError):
        S.search(world.problems, stopping, world.prm, Rebase(16), seed=1, checkpoint=tmp_path)
    assert (tmp_path / "journal.bin").stat().st_size < nodes.estimated_size()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 2}, "seed was 1, is 2"),
        ({"policy": Rebase(4)}, r"policy was width=8, is width=4\."),
        (
            {"policy": Rebase(8, temperature=1.0)},
            r"policy was temperature=0.2, is temperature=1.0\.",
        ),
        ({"policy": Beam(8)}, r"policy was Rebase, is Beam\."),
        ({"problems": WORLD.problems.head(3)}, "n_problems was 6, is 3"),
        ({"problems": WORLD.problems.with_columns(problem=pl.lit("?"))}, "problems was"),
    ],
)
def test_another_search_is_refused(changed: dict, message: str, tmp_path: Path) -> None:
    options = {"problems": WORLD.problems, "policy": Rebase(8), "seed": 1} | changed
    journal_of(tmp_path / "a", Rebase(8))
    with pytest.raises(tts.TtsframeError, match=f"is the checkpoint of another search: {message}"):
        S.search(generator=WORLD.generator, prm=WORLD.prm, checkpoint=tmp_path / "a", **options)


def test_of_an_earlier_format_only_what_is_finished_is_read(tmp_path: Path) -> None:
    about = tmp_path / "search.json"
    journal_of(tmp_path, Rebase(4))
    new = about.read_text()
    about.write_text(new.replace('"format": 4', '"format": 2'))
    with pytest.raises(tts.TtsframeError, match="format was 2, is 4"):
        S.search(*WORLD, Rebase(4), seed=1, checkpoint=tmp_path)
    about.write_text(new)
    nodes = S.search(*WORLD, Rebase(4), seed=1, checkpoint=tmp_path)
    about.write_text(new.replace('"format": 4', '"format": 2'))
    assert_frame_equal(S.search(*WORLD, Rebase(4), seed=1, checkpoint=tmp_path), nodes)


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    for folder, message in (
        (tmp_path, "holds other files"),
        (tmp_path / "mine.txt", "cannot be used|holds other|no such folder|is a file"),
        (tmp_path / "no" / "where", "no such folder"),
    ):
        with pytest.raises(tts.TtsframeError, match=message):
            S.search(*WORLD, Rebase(4), seed=1, checkpoint=folder)


def test_what_a_killed_process_left_behind_is_removed(tmp_path: Path) -> None:
    for name in (
        "search.json",
        "nodes.parquet",
    ):  # killed while it wrote the first file or the last
        (tmp_path / f".{name}.1-ab.tmp").mkdir()
        (tmp_path / f".{name}.1-ab.tmp" / name).write_bytes(b"{")
    content = journal_of(tmp_path, Rebase(4))
    nodes = S.search(*WORLD, Rebase(4), seed=1, checkpoint=tmp_path)
    kept = ["nodes.parquet", "search.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    (tmp_path / "journal.bin").write_bytes(content)  # or between the last file and the end
    assert_frame_equal(S.search(*WORLD, Rebase(4), seed=1, checkpoint=tmp_path), nodes)
    assert sorted(path.name for path in tmp_path.iterdir()) == kept


@pytest.mark.skipif(os.name == "nt", reason="files are not locked on Windows")
def test_two_processes_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        S.search(
            WORLD.problems, Stopping(tmp_path), WORLD.prm, Rebase(4), seed=1, checkpoint=tmp_path
        )


class Stopping:
    """Tries to open the checkpoint that is in use, and stops."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, _: pl.DataFrame) -> pl.DataFrame:
        with pytest.raises(tts.TtsframeError, match="another process writes this checkpoint"):
            S.search(*WORLD, Rebase(4), seed=1, checkpoint=self.folder)
        raise StopError
