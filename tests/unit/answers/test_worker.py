"""Workers for sympy and latex2sympy2: limits, replacement, threads, forks."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ttsframe.answers.lookup import worker
from ttsframe.answers.lookup.bounds import is_bounded
from ttsframe.answers.lookup.worker import Outcome, resolve_strings, worker_counts

SUMS = {rf"\sum_{{k=1}}^{{{n}}} k": str(n * (n + 1) // 2) for n in range(1, 25)}

DANGEROUS_CHILD = f"""
import os, runpy, signal, sys
child = runpy.run_path({str(worker._CHILD)!r})
load = child["load_tasks"]

def misbehave(text):
    if text == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if text == "hang":
        while True:
            pass
    if text == "hang in C":
        9 ** (9 ** 9)
    if text == "allocate":
        return str(len(bytearray(6 << 30)))
    if text == "swallow":
        while True:
            try:
                while True:
                    pass
            except BaseException:
                raise ValueError
    if text == "print":
        print("noise")
    return text.upper()

child["main"].__globals__["load_tasks"] = lambda: {{"evaluate": misbehave}}
child["main"]()
"""


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path | None], worker._Pool]]:
    """Build a pool of its own for a test, with another child script where one is given."""
    pools = []

    def build(script: Path | None = None) -> worker._Pool:
        if script is not None:
            monkeypatch.setattr(worker, "_CHILD", script)
        pools.append(worker._Pool())
        monkeypatch.setattr(worker, "_pool", pools[-1])
        return pools[-1]

    yield build
    for built in pools:
        built.close()


def test_values_are_read_back() -> None:
    outcomes = resolve_strings("evaluate", list(SUMS))
    assert {text: outcome.value for text, outcome in outcomes.items()} == SUMS
    assert {outcome.status for outcome in outcomes.values()} == {"done"}


@pytest.mark.parametrize(
    "text",
    ["5) + 3", "2}3", "1,2;3", "x=5", "x<5", "", "Quadrant~", "\\frac{1}{", "{" * 30],
)
def test_what_is_no_expression_to_its_end_has_no_value(text: str) -> None:
    assert resolve_strings("evaluate", [text]) == {text: Outcome(None, "done")}


def test_no_state_passes_from_one_string_to_the_next() -> None:
    texts = ["x+1", "dx", "6 and y", "diverges", "Quadrant I", "x=5", "2x+1", "Friday", *SUMS]
    alone = {text: resolve_strings("published", [text])[text] for text in texts}
    for seed in range(3):
        shuffled = random.Random(seed).sample(texts, len(texts))
        assert resolve_strings("published", shuffled) == alone


def test_code_is_never_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    attacks = [
        f"__import__('os').system('touch {target}')",
        f"open('{target}','w')",
        rf"\variable{{__import__('os').mknod('{target}')}}",
    ]
    resolve_strings("evaluate", attacks)
    resolve_strings("published", attacks)
    assert not target.exists()


def test_each_attack_costs_itself_alone(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool]
) -> None:
    script = tmp_path / "child.py"
    script.write_text(DANGEROUS_CHILD)
    own = pool(script)
    attacks = {
        "segfault": "died",
        "hang": "limit",
        "hang in C": "limit",
        "allocate": "limit",
        "swallow": "done",
    }
    harmless = [f"text {i}" for i in range(40)]
    texts = [*harmless, *attacks, "print"]
    random.Random(1).shuffle(texts)
    outcomes = own.resolve("evaluate", texts, 0.3)
    assert {text: outcomes[text].value for text in harmless} == {t: t.upper() for t in harmless}
    assert outcomes["print"] == Outcome("PRINT", "done")
    # a limit in C code ends in a kill by the system, which the parent sees as a death
    seen = {text: outcomes[text].status for text in attacks}
    assert seen["hang in C"] in {"limit", "died"}
    assert seen | {"hang in C": "limit"} == attacks
    assert all(outcomes[text].value is None for text in attacks)
    assert own.counts["n_limited"] + own.counts["n_died"] == 4
    assert len(own.everyone) <= own.size


def test_killed_workers_are_replaced(pool: Callable[[Path | None], worker._Pool]) -> None:
    own = pool(None)
    own.resolve("evaluate", list(SUMS), 4.0)
    processes = [busy.process.pid for busy in own.everyone]
    for process in processes:
        os.kill(process, signal.SIGKILL)
    outcomes = own.resolve("evaluate", list(SUMS), 4.0)
    assert {text: outcome.value for text, outcome in outcomes.items()} == SUMS
    assert not {busy.process.pid for busy in own.everyone} & set(processes)


def test_eight_threads_share_the_workers() -> None:
    texts = list(SUMS)

    def ask(seed: int) -> dict[str, Outcome]:
        return resolve_strings("evaluate", random.Random(seed).sample(texts, 12))

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(ask, range(24)))
    assert all(
        outcome.value == SUMS[text] for result in results for text, outcome in result.items()
    )
    assert len(worker._pool.everyone) <= worker._pool.size


def test_workers_start_on_the_first_string_that_needs_one() -> None:
    code = """
    import ttsframe, sys
    from ttsframe.answers.lookup import worker
    assert not worker._pool.everyone
    worker.resolve_strings("evaluate", [])
    assert not worker._pool.everyone
    worker.resolve_strings("evaluate", ["1+1"])
    assert len(worker._pool.everyone) == 1
    assert "sympy" not in sys.modules and "latex2sympy2" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


def test_missing_libraries_are_told_once(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool]
) -> None:
    script = tmp_path / "child.py"
    script.write_text('print(\'{"ready": false, "reason": "no module"}\', flush=True)')
    own = pool(script)
    with pytest.warns(RuntimeWarning, match="cannot be used.*no module.*pip install"):
        assert own.resolve("evaluate", ["1+1"], 1.0) == {"1+1": Outcome(None, "unavailable")}
    assert own.resolve("evaluate", ["1+2"], 1.0) == {"1+2": Outcome(None, "unavailable")}


def test_a_child_that_cannot_start_is_given_up(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool]
) -> None:
    script = tmp_path / "child.py"
    script.write_text("raise SystemExit(1)")
    own = pool(script)
    with pytest.warns(RuntimeWarning, match="ended before they were ready"):
        assert own.resolve("evaluate", ["1+1"], 1.0)["1+1"].status == "unavailable"


def test_the_parser_imports_where_typing_io_is_gone(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool]
) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        textwrap.dedent(f"""
        import builtins, runpy, sys, typing
        sys.modules.pop("typing.io", None)
        sys.modules.pop("typing.re", None)
        original = builtins.__import__

        def as_python_3_13(name, *rest, **options):
            if name == "typing.io" and name not in sys.modules:
                raise ModuleNotFoundError("No module named 'typing.io'")
            return original(name, *rest, **options)

        builtins.__import__ = as_python_3_13
        runpy.run_path({str(worker._CHILD)!r}, run_name="__main__")
        """)
    )
    own = pool(script)
    assert own.resolve("evaluate", [r"\sum_{k=1}^{4} k"], 4.0) == {
        r"\sum_{k=1}^{4} k": Outcome("10", "done")
    }


def test_a_forked_child_has_workers_of_its_own() -> None:
    code = """
    import os, sys
    from ttsframe.answers.lookup import worker
    before = worker.resolve_strings("evaluate", ["1+1"])
    mine = {each.process.pid for each in worker._pool.everyone}
    child = os.fork()
    if child == 0:
        assert not worker._pool.everyone
        same = worker.resolve_strings("evaluate", ["1+1"]) == before
        own = {each.process.pid for each in worker._pool.everyone}
        worker._pool.close()
        os._exit(0 if same and not own & mine else 3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert worker.resolve_strings("evaluate", ["1+1"]) == before
    assert {each.process.pid for each in worker._pool.everyone} == mine
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)]
    subprocess.run(command, check=True, timeout=120)


def test_workers_end_with_a_killed_parent() -> None:
    code = """
    import os, sys
    from ttsframe.answers.lookup import worker
    worker.resolve_strings("evaluate", ["1+1"])
    print(*[each.process.pid for each in worker._pool.everyone], flush=True)
    os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    processes = [int(process) for process in done.stdout.split()]
    assert processes
    deadline = time.monotonic() + 100
    while any(_is_running(process) for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_counts_grow_with_the_strings() -> None:
    before = worker_counts()
    resolve_strings("evaluate", ["2+3", "2+3", "3+4"])
    after = worker_counts()
    assert after.n_strings == before.n_strings + 2
    assert after.n_limited == before.n_limited


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^9}",
        "2^{2^{2^{49}}}",
        "9^9^9",
        "9^ {9^9}",
        "(10^9)!",
        "1000000!",
        "2^{5!}",
        "(a+b+c+d+e+f)^{50}",
        "{9^9}^{9999}",
        "x^{1000000}",
        r"\binom{1000000}{500000}",
        r"\operatorname{zeros}(8000)",
        r"\operatorname{eye}(6000)",
        "(" * 150 + "1" + ")" * 150,
        "9" * 5_000,
        "1e999999",
        "10**9",
        "x" * 401,
        "1\x002",
    ],
)
def test_large_work_is_not_sent(text: str) -> None:
    assert not is_bounded(text)


@pytest.mark.parametrize(
    "text",
    [
        r"\sum_{k=1}^{30} 2^{k-1}",
        "e^{x^{2}}",
        r"x^{\frac{4}{3}}",
        "2^{99}",
        "3^{2025}",
        "5!",
        "(n+1)!",
        "(x+1)^2",
    ],
)
def test_ordinary_work_is_sent(text: str) -> None:
    assert is_bounded(text)
