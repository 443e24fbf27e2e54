"""Keys that outlive the process."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.answers import keys as keys_module
from ttsframe.answers.lookup import reading, worker
from ttsframe.answers.lookup.cache import CachedKey, KeyCache

ANSWERS = ["0.5", r"\frac{1}{2}", "x+1", "Evelyn", r"\int_0^1 x dx", "", "a\x00b", "é" * 3]


@pytest.fixture(autouse=True)
def _forget_tables() -> Iterator[None]:
    reading._table.cache_clear()
    keys_module._named_expression.cache_clear()
    yield
    reading._table.cache_clear()
    keys_module._named_expression.cache_clear()


def key(answers: Sequence[str], cache: Path | None) -> list[str | None]:
    frame = pl.DataFrame({"answer": answers})
    return frame.select(tts.answer_key("answer", cache=cache))["answer"].to_list()


def test_a_second_process_reads_what_the_first_wrote(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "keys.sqlite"
    expected = key(ANSWERS, None)
    assert key(ANSWERS, path) == expected
    reading._table.cache_clear()
    keys_module._named_expression.cache_clear()
    before = tts.answers.answer_statistics()
    assert key([*ANSWERS, "77"], path) == [*expected, "1:77"]
    after = tts.answers.answer_statistics()
    assert after.n_cached - before.n_cached == len(ANSWERS)
    assert after.n_answers - before.n_answers == 1
    assert after.n_by_worker == before.n_by_worker


def test_it_is_off_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    key(ANSWERS, None)
    assert list(tmp_path.iterdir()) == []


def test_kinds_and_missing_answers_come_back(tmp_path: Path) -> None:
    cache = KeyCache(tmp_path / "keys.sqlite", "1:")
    stored = {"0.5": CachedKey("1:1/2", "exact"), "": CachedKey(None, "missing")}
    cache.put(stored)
    assert cache.get(["0.5", "", "other"]) == stored


def test_policies_and_versions_do_not_share_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    KeyCache(path, "1:").put({"25%": CachedKey("1:1/4", "exact")})
    assert KeyCache(path, "1p1:").get(["25%"]) == {}
    assert KeyCache(path, "2:").get(["25%"]) == {}
    frame = pl.DataFrame({"answer": ["25%"]})
    ignored = tts.answers.AnswerPolicy(percent="ignored")
    assert frame.select(tts.answer_key("answer", cache=path)).item() == "1:1/4"
    assert frame.select(tts.answer_key("answer", cache=path, policy=ignored)).item() == "1p1:25"
    assert frame.select(tts.answer_key("answer", cache=path, method="sympy")).item() == "s1:25"


@pytest.mark.parametrize(
    "content", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5_000]
)
def test_a_corrupt_file_costs_time_only(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys.sqlite"
    path.write_bytes(content)
    if content:
        with pytest.warns(RuntimeWarning, match=r"keys.sqlite cannot be used.*delete the file"):
            assert key(ANSWERS, path) == key(ANSWERS, None)
    else:
        assert key(ANSWERS, path) == key(ANSWERS, None)


def test_a_truncated_file_costs_time_only(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    cache = KeyCache(path, "1:")
    cache.put({f"answer {i}": CachedKey(f"1:t{i}", "text") for i in range(2_000)})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[:20_000])
    reopened = KeyCache(path, "1:")
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        found = reopened.get([f"answer {i}" for i in range(2_000)])
    assert found == {}


def test_another_layout_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=99")
    content = path.read_bytes()
    with pytest.warns(RuntimeWarning, match="its layout is 99, expected 1"):
        assert key(["3"], path) == ["1:3"]
    assert path.read_bytes() == content


def test_a_folder_or_a_file_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert key(["3"], tmp_path) == ["1:3"]


def test_what_a_limit_decided_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.sqlite"
    scalar = r"\int_0^1 3x dx"

    def limited(_task: str, texts: Sequence[str]) -> dict[str, worker.Outcome]:
        return {text: worker.Outcome(None, "limit") for text in texts}

    with monkeypatch.context() as patch:
        patch.setattr(reading, "resolve_strings", limited)
        fallback = key([scalar, "4"], path)
    reading._table.cache_clear()
    keys_module._named_expression.cache_clear()
    assert key([scalar, "4"], path) == ["1:3/2", "1:4"]
    assert fallback[0] != "1:3/2"


def test_threads_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"

    def work(seed: int) -> bool:
        cache = KeyCache(path, "1:")
        mine = {f"answer {i}": CachedKey(f"1:t{i}", "text") for i in range(seed, seed + 300)}
        cache.put(mine)
        return cache.get(list(mine)) == mine

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(0, 800, 50)))


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    code = """
import sys, warnings, polars as pl, ttsframe as tts
warnings.simplefilter("error")
seed = int(sys.argv[2])
answers = [f"{i}/7" for i in range(seed, seed + 400)]
frame = pl.DataFrame({"answer": answers})
key = tts.answer_key("answer", cache=sys.argv[1])
plain = frame.select(tts.answer_key("answer"))
assert frame.select(key).equals(plain)
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(seed)], stderr=subprocess.PIPE)
        for seed in range(1, 601, 100)
    ]
    errors = [process.communicate(timeout=120)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), errors
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM keys").fetchone()[0] == 900
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
