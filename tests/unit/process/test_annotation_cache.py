"""The cache of rollouts: nothing that was finished is sampled again, and nothing is mixed."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import CompletionError, SourceError


def solutions(n_problems: int = 3, n_solutions: int = 2, n_steps: int = 3) -> pl.DataFrame:
    """Return solutions of which the first steps are shared."""
    numbers = itertools.product(range(n_problems), range(n_solutions), range(n_steps))
    return pl.DataFrame([
        {
            "problem_id": f"p{problem}",
            "solution_id": solution,
            "step": step,
            "problem": f"What is {problem} + 1?",
            "text": f"step {step} of {solution if step else 'all'}",
            "gold": str(problem + 1),
        }
        for problem, solution, step in numbers
    ])


class Counting:
    """Completes each prefix with numbers that go on from call to call, and counts them."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.calls: list[int] = []

    def __call__(self, prefixes: list[str], n: int) -> list[list[str]]:
        self.calls.append(n)
        listed = []
        for prefix in prefixes:
            start = self.asked[prefix]
            listed.append([f"The answer is {start + i}." for i in range(n)])
            self.asked[prefix] += n
        return listed


class Interrupted(Counting):
    """Raises in one of its calls."""

    def __init__(self, error: BaseException, at: int) -> None:
        super().__init__()
        self._error = error
        self._at = at

    def __call__(self, prefixes: list[str], n: int) -> list[list[str]]:
        if len(self.calls) == self._at:
            raise self._error
        return super().__call__(prefixes, n)


def test_a_second_call_samples_nothing(tmp_path: Path) -> None:
    completer = Counting()
    plain = tts.process.annotate(solutions(), Counting(), 4)
    first = tts.process.annotate(
        solutions(), completer, 4, cache=tmp_path / "new" / "cache", key="m"
    )
    asked = dict(completer.asked)
    second = tts.process.annotate(
        solutions(), completer, 4, cache=tmp_path / "new" / "cache", key="m"
    )
    assert_frame_equal(first, plain)
    assert_frame_equal(second, plain)
    assert completer.asked == asked


def test_what_was_given_up_is_never_drawn_again(tmp_path: Path) -> None:
    class Failing(Counting):
        def __call__(self, prefixes: list[str], n: int) -> list[list[str]]:
            return [
                [*texts[:-1], tts.process.Failed("length")]
                for texts in super().__call__(prefixes, n)
            ]

    completer = Failing()
    for final_step in ("grade", "sample"):
        with pytest.warns(UserWarning, match="were not drawn again"):
            first = tts.process.annotate(
                solutions(), completer, 4, cache=tmp_path, key="m", final_step=final_step
            )
        asked = dict(completer.asked)
        with pytest.warns(UserWarning, match="were not drawn again"):
            second = tts.process.annotate(
                solutions(), completer, 4, cache=tmp_path, key="m", final_step=final_step
            )
        assert completer.asked == asked
        assert_frame_equal(first, second)
        is_failed = first["finish_reason"].is_not_null()
        assert first.filter(is_failed)["is_correct"].null_count() == is_failed.sum() > 0
        assert first.filter(~is_failed)["is_correct"].null_count() == 0


def test_a_cache_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    completer = Counting()
    first = tts.process.annotate(solutions(), completer, 3, cache=tmp_path, key="m", batch_size=4)
    asked = dict(completer.asked)
    for part in sorted(tmp_path.rglob("*.parquet"))[::2]:
        pl.read_parquet(part).drop("finish_reason").write_parquet(part)
    again = tts.process.annotate(solutions(), completer, 3, cache=tmp_path, key="m")
    assert_frame_equal(again, first)
    assert completer.asked == asked


def test_more_rollouts_sample_the_difference(tmp_path: Path) -> None:
    completer = Counting()
    for n in (2, 5):
        grown = tts.process.annotate(
            solutions(), completer, n, cache=tmp_path, key="m", batch_size=4
        )
    assert set(completer.asked.values()) == {5}
    assert_frame_equal(grown, tts.process.annotate(solutions(), Counting(), 5))
    fewer = tts.process.annotate(solutions(), completer, 3, cache=tmp_path, key="m")
    assert set(completer.asked.values()) == {5}
    assert_frame_equal(fewer, grown.filter(pl.col("rollout") < 3))


def test_more_solutions_sample_what_is_new(tmp_path: Path) -> None:
    completer = Counting()
    tts.process.annotate(solutions(n_solutions=1), completer, 2, cache=tmp_path, key="m")
    n_before = len(completer.asked)
    tts.process.annotate(solutions(n_solutions=2), completer, 2, cache=tmp_path, key="m")
    assert set(completer.asked.values()) == {2}
    assert len(completer.asked) == n_before + 3 * 2  # the shared first steps are there


def test_another_key_another_template_or_separator_is_sampled_anew(tmp_path: Path) -> None:
    variants: list[dict[str, str]] = [
        {"key": "m"},
        {"key": "n"},
        {"key": "m", "template": "Q: {problem}\n{steps}"},
        {"key": "m", "separator": "\n\n"},
    ]
    for options in variants:
        completer = Counting()
        tts.process.annotate(solutions(), completer, 2, cache=tmp_path, **options)  # type: ignore[arg-type]
        assert set(completer.asked.values()) == {2}
    described = sorted(path.read_text(encoding="utf-8") for path in tmp_path.glob("*/key.json"))
    assert [json.loads(text)["key"] for text in described] == [["m"], ["n"]]


def test_a_completer_with_a_key_needs_no_other(tmp_path: Path) -> None:
    class Keyed(Counting):
        key = "model x at 0.7"

    completer = Keyed()
    tts.process.annotate(solutions(), completer, 2, cache=tmp_path)
    tts.process.annotate(solutions(), completer, 2, cache=tmp_path)
    assert set(completer.asked.values()) == {2}
    tts.process.annotate(solutions(), completer, 2, cache=tmp_path, key="second draw")
    assert set(completer.asked.values()) == {4}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("out of memory")])
@pytest.mark.parametrize("at", [0, 2])
def test_what_was_finished_before_an_error_is_kept(
    error: BaseException, at: int, tmp_path: Path
) -> None:
    broken = Interrupted(error, at)
    with pytest.raises(type(error)):
        tts.process.annotate(solutions(), broken, 2, cache=tmp_path, key="m", batch_size=2)
    assert sum(broken.asked.values()) == at * 4
    whole = Counting()
    seen: list[tuple[int, int]] = []
    found = tts.process.annotate(
        solutions(),
        whole,
        2,
        cache=tmp_path,
        key="m",
        batch_size=2,
        progress=lambda *done: seen.append(done),
    )
    assert set((broken.asked + whole.asked).values()) == {2}
    assert seen[0] == (at * 4, 30)
    assert seen[-1] == (30, 30)
    assert_frame_equal(found, tts.process.annotate(solutions(), Counting(), 2))


def test_a_wrong_batch_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(CompletionError):
        tts.process.annotate(solutions(), lambda *_: [["x"]], 2, cache=tmp_path, key="m")
    assert not list(tmp_path.rglob("*.parquet"))


def test_an_error_of_the_progress_loses_nothing(tmp_path: Path) -> None:
    completer = Counting()

    def progress(n_done: int, n_all: int) -> None:
        if n_done:
            raise RuntimeError(n_all)

    with pytest.raises(RuntimeError):
        tts.process.annotate(solutions(), completer, 2, cache=tmp_path, key="m", progress=progress)
    tts.process.annotate(solutions(), completer, 2, cache=tmp_path, key="m")
    assert set(completer.asked.values()) == {2}


def test_a_lost_part_is_sampled_again_and_no_other(tmp_path: Path) -> None:
    completer = Counting()
    options = {"cache": tmp_path, "key": "m", "batch_size": 4}
    tts.process.annotate(solutions(), completer, 2, **options)  # type: ignore[arg-type]
    tts.process.annotate(solutions(), completer, 4, **options)  # type: ignore[arg-type]
    parts = sorted(tmp_path.rglob("*.parquet"))
    lost = pl.read_parquet(parts[1])
    parts[1].unlink()
    n_before = completer.asked.total()
    found = tts.process.annotate(solutions(), completer, 4, **options)  # type: ignore[arg-type]
    assert completer.asked.total() - n_before == lost.height
    assert found.group_by("problem_id", "solution_id", "step").len()["len"].unique().to_list() == [
        4
    ]


def test_a_part_that_two_processes_wrote_counts_once(tmp_path: Path) -> None:
    found = tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m")
    part = next(tmp_path.rglob("*.parquet"))
    part.with_name("part-zzz.parquet").write_bytes(part.read_bytes())
    assert_frame_equal(
        tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m"), found
    )


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m")
    part = next(tmp_path.rglob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=rf"{part.name}: cannot be read .*Hint: delete it"):
        tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m")
    pl.DataFrame({"prefix_id": ["x"]}).write_parquet(part)
    with pytest.raises(SourceError, match=rf"{part.name}: has the columns .*must have"):
        tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m")


def test_a_cache_that_cannot_be_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(SourceError, match="cannot be used as a cache"):
        tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path / "file", key="m")


def test_what_a_killed_process_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m")
    folder = next(tmp_path.iterdir())
    old, new = (folder / f".part-{name}.parquet.1-ab.tmp" for name in ("old", "new"))
    for left in (old, new):
        left.mkdir()
        (left / "part.parquet").write_bytes(b"PAR1")
    os.utime(old, (time.time() - 7200,) * 2)
    tts.process.annotate(solutions(), Counting(), 2, cache=tmp_path, key="m")
    assert not old.exists()
    assert new.exists()


PROGRAM = """
import itertools, os, signal, sys
import polars as pl
import ttsframe as tts

cache, log, target, n_left = sys.argv[1:]
n_left = int(n_left)

def completer(prefixes, n):
    global n_left
    with open(log, "a") as handle:
        handle.write(f"begin {len(prefixes)}\\n")
    n_left -= 1
    if n_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return [[f"The answer is {len(prefix) % 7 + i}." for i in range(n)] for prefix in prefixes]

def progress(n_done, n_all):
    with open(log, "a") as handle:
        handle.write(f"end {n_done} {n_all}\\n")

solutions = pl.DataFrame([
    {"problem_id": p, "solution_id": s, "step": i, "problem": f"{p}?", "gold": "3",
     "text": f"{'x' * i} {s if i else ''}"}
    for p, s, i in itertools.product(range(12), range(3), range(3))
])
tts.process.annotate(
    solutions, completer, 4, cache=cache, key="m", batch_size=3, progress=progress
).write_parquet(target)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    def command(cache: str, log: str, target: str, n_calls: int = 0) -> list[str]:
        return [
            sys.executable,
            "-c",
            PROGRAM,
            *(str(tmp_path / name) for name in (cache, log, target)),
            str(n_calls),
        ]

    subprocess.run(command("plain", "plain.log", "plain.parquet"), check=True, timeout=300)
    rng = random.Random(11)
    log = tmp_path / "killed.log"
    n_kills, n_kept = 2, 0
    for _ in range(n_kills):
        # The run ends itself in a call of its completer, of which there are 28 in all.
        arguments = command("killed", "killed.log", "killed.parquet", rng.randrange(3, 7))
        done = subprocess.run(arguments, check=False, timeout=300)
        assert done.returncode == -signal.SIGKILL
        parts = list((tmp_path / "killed").rglob("*.parquet"))
        finished = pl.concat(
            pl.read_parquet(part) for part in parts if not part.parent.name.endswith(".tmp")
        )
        assert finished.is_unique().all()  # no batch is there twice
        assert finished.height > n_kept
        n_kept = finished.height
    subprocess.run(command("killed", "killed.log", "killed.parquet"), check=True, timeout=300)
    assert_frame_equal(
        pl.read_parquet(tmp_path / "killed.parquet"), pl.read_parquet(tmp_path / "plain.parquet")
    )
    # 12 x 7 prefixes in batches of 3; at most the batch under way was asked for again
    begun = [line for line in log.read_text(encoding="utf-8").splitlines() if line[0] == "b"]
    assert 28 <= len(begun) <= 28 + n_kills
