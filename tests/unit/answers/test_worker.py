"""Workers for sympy: limits, replacement, threads, forks, missing libraries."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ttsframe.answers.latex.parser import parse
from ttsframe.answers.latex.tree import Node
from ttsframe.answers.lookup import worker
from ttsframe.answers.lookup.bounds import is_bounded_text, is_evaluable
from ttsframe.answers.lookup.worker import Outcome, run_tasks, worker_counts
from ttsframe.errors import EngineError, MissingExtraError

SUMS = {parse(rf"\sum_{{k=1}}^{{{n}}} k"): ["q", n * (n + 1) // 2, 1] for n in range(1_000, 1_024)}
ONE_PLUS_ONE = '("+", (("q", 1, 1), ("q", 1, 1)))'

DANGEROUS_CHILD = f"""
import os, runpy, signal, sys
child = runpy.run_path({str(worker._CHILD)!r})

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

child["main"].__globals__["LOADERS"] = {{"evaluate": lambda: misbehave}}
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
    outcomes = run_tasks("evaluate", list(SUMS))
    assert {text: outcome.value for text, outcome in outcomes.items()} == SUMS
    assert {outcome.status for outcome in outcomes.values()} == {"done"}


@pytest.mark.parametrize(
    "tree",
    [
        ("u", "f", (("q", 1, 1),)),
        ("f", "log", (("q", 5, 1),)),
        ("f", "eval", (("q", 5, 1),)),
        ("/", ("q", 1, 1), ("q", 0, 1)),
        ("unknown",),
        (),
    ],
)
def test_what_is_no_known_tree_has_no_value(tree: Node) -> None:
    assert run_tasks("evaluate", [tree]) == {tree: Outcome(None, "done")}


def test_no_state_passes_from_one_string_to_the_next() -> None:
    texts = [
        "x+1",
        "dx",
        "6 and y",
        "diverges",
        "Quadrant I",
        "x=5",
        "2x+1",
        "Friday",
        r"\sum_{k=1}^{9} k",
    ]
    alone = {text: run_tasks("published", [text])[text] for text in texts}
    for seed in range(3):
        shuffled = random.Random(seed).sample(texts, len(texts))
        assert run_tasks("published", shuffled) == alone


def test_code_is_never_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    attacks = [
        f"__import__('os').system('touch {target}')",
        f"open('{target}','w')",
        rf"\variable{{__import__('os').mknod('{target}')}}",
    ]
    for attack in attacks:
        names = [("s", attack), ("c", attack), ("f", attack, (("q", 1, 1),)), (attack,)]
        bound = ("S", "sum", attack, ("q", 1, 1), ("q", 1_000, 1), ("s", attack))
        outcomes = run_tasks("evaluate", [*names, bound])
        assert outcomes[bound].value == ["q", 500_500, 1]
    run_tasks("published", attacks)
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
    outcomes = own.run("evaluate", texts, 0.3)
    assert {text: outcomes[text].value for text in harmless} == {t: t.upper() for t in harmless}
    assert outcomes["print"] == Outcome("PRINT", "done")
    # a limit in C code ends in a kill by the system, which the parent sees as a death
    seen = {text: outcomes[text].status for text in attacks}
    assert seen["hang in C"] in {"limit", "died"}
    assert seen | {"hang in C": "limit"} == attacks
    assert all(outcomes[text].value is None for text in attacks)
    assert own.counts["n_limited"] + own.counts["n_died"] == 4
    assert len(own.workers) <= own.size


def test_killed_workers_are_replaced(pool: Callable[[Path | None], worker._Pool]) -> None:
    own = pool(None)
    own.run("evaluate", list(SUMS), 4.0)
    processes = [busy.process.pid for busy in own.workers]
    for process in processes:
        os.kill(process, signal.SIGKILL)
    outcomes = own.run("evaluate", list(SUMS), 4.0)
    assert {text: outcome.value for text, outcome in outcomes.items()} == SUMS
    assert not {busy.process.pid for busy in own.workers} & set(processes)


def test_eight_threads_share_the_workers() -> None:
    trees = list(SUMS)

    def ask(seed: int) -> dict[Node, Outcome]:
        return run_tasks("evaluate", random.Random(seed).sample(trees, 12))

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(ask, range(24)))
    assert all(
        outcome.value == SUMS[tree] for result in results for tree, outcome in result.items()
    )
    workers = [each for each in worker._pool.workers if each.task == "evaluate"]
    assert len(workers) <= worker._pool.size


def test_workers_start_on_the_first_string_that_needs_one() -> None:
    code = f"""
    import ttsframe, sys
    from ttsframe.answers.lookup import worker
    assert not worker._pool.workers
    worker.run_tasks("evaluate", [])
    assert not worker._pool.workers
    worker.run_tasks("evaluate", [{ONE_PLUS_ONE}])
    assert len(worker._pool.workers) == 1
    assert "sympy" not in sys.modules and "latex2sympy2" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=300)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("evaluate", r"sympy cannot be imported.*no module.*pip install"),
        ("published", r"latex2sympy2 cannot be imported.*no module.*antlr4-python3-runtime"),
    ],
)
def test_a_library_that_cannot_be_imported_is_an_error(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool], task: worker.Task, message: str
) -> None:
    script = tmp_path / "child.py"
    script.write_text('print(\'{"status": "unavailable", "value": "no module"}\', flush=True)')
    own = pool(script)
    for items in (["1+1"], [f"{i}+1" for i in range(40)]):
        with pytest.raises(MissingExtraError, match=message):
            own.run(task, items, 1.0)
    assert not own.workers


def test_another_antlr_breaks_the_published_form_alone(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool]
) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        textwrap.dedent(f"""
        import builtins, runpy
        original = builtins.__import__

        def with_antlr_4_13(name, *rest, **options):
            if name.split(".")[0] in {{"latex2sympy2", "antlr4", "gen"}}:
                raise Exception("Could not deserialize ATN with version 3 (expected 4).")
            return original(name, *rest, **options)

        builtins.__import__ = with_antlr_4_13
        runpy.run_path({str(worker._CHILD)!r}, run_name="__main__")
        """)
    )
    own = pool(script)
    with pytest.raises(MissingExtraError, match="Could not deserialize ATN"):
        own.run("published", ["1+1"], 4.0)
    outcomes = own.run("evaluate", list(SUMS), 4.0)
    assert {tree: outcome.value for tree, outcome in outcomes.items()} == SUMS


def test_a_child_that_cannot_start_is_an_error(
    tmp_path: Path, pool: Callable[[Path | None], worker._Pool]
) -> None:
    script = tmp_path / "child.py"
    script.write_text("raise SystemExit(1)")
    own = pool(script)
    with pytest.raises(EngineError, match="ended before they were ready"):
        own.run("evaluate", ["1+1"], 1.0)
    assert not own.workers


def test_a_worker_that_does_not_answer_is_killed(
    tmp_path: Path,
    pool: Callable[[Path | None], worker._Pool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = tmp_path / "child.py"
    script.write_text('import time; print(\'{"status": "ready"}\', flush=True); time.sleep(600)')
    monkeypatch.setattr(worker, "_WALL_SECONDS", 0.1)
    own = pool(script)
    assert own.run("evaluate", ["1+1"], 0.1) == {"1+1": Outcome(None, "limit")}
    assert own.counts["n_limited"] == 1
    assert not own.workers


def test_an_interrupted_call_ends_at_once(
    tmp_path: Path,
    pool: Callable[[Path | None], worker._Pool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = tmp_path / "child.py"
    script.write_text('import time; print(\'{"status": "ready"}\', flush=True); time.sleep(600)')
    own = pool(script)
    waits = iter([KeyboardInterrupt()])

    def interrupted_once(*args: Any) -> Any:
        for error in waits:
            raise error
        return futures.wait(*args)

    monkeypatch.setattr(worker, "wait", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        own.run("evaluate", [f"{i}+1" for i in range(40)], 600.0)
    assert not own.workers
    assert own.counts["n_items"] == 0


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
    assert own.run("published", [r"\frac{2}{4}"], 4.0) == {
        r"\frac{2}{4}": Outcome(r"\frac{1}{2}", "done")
    }


def test_a_forked_child_has_workers_of_its_own() -> None:
    code = f"""
    import os, sys
    from ttsframe.answers.lookup import worker
    before = worker.run_tasks("evaluate", [{ONE_PLUS_ONE}])
    mine = set(each.process.pid for each in worker._pool.workers)
    child = os.fork()
    if child == 0:
        assert not worker._pool.workers
        same = worker.run_tasks("evaluate", [{ONE_PLUS_ONE}]) == before
        own = set(each.process.pid for each in worker._pool.workers)
        worker._pool.close()
        os._exit(0 if same and not own & mine else 3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert worker.run_tasks("evaluate", [{ONE_PLUS_ONE}]) == before
    assert set(each.process.pid for each in worker._pool.workers) == mine
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)]
    subprocess.run(command, check=True, timeout=300)


def test_workers_end_with_a_killed_parent() -> None:
    code = f"""
    import os, sys
    from ttsframe.answers.lookup import worker
    worker.run_tasks("evaluate", [{ONE_PLUS_ONE}])
    print(*[each.process.pid for each in worker._pool.workers], flush=True)
    os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
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
    trees = [parse(text) for text in ("2+3", "2+3", "3+4")]
    run_tasks("evaluate", trees)
    after = worker_counts()
    assert after.n_items == before.n_items + 2
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
    assert not is_bounded_text(text)


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
    assert is_bounded_text(text)


@pytest.mark.parametrize(
    "text",
    [
        r"\int_0^1 9^{9^{9}} dx",
        r"\int_0^1 x^{9^{9}} dx",
        r"\int_0^1 (x+1)^{50} dx",
        r"\int_0^1 ((x^{20})^{20})^{20} dx",
        r"\int_0^1 x^{5001} dx",
        r"\int_0^1 e^{e^{9!}} dx",
        r"\sum_{k=1}^{2^{2^{2^{9}}}} k",
        r"\sum_{k=1}^{\infty} (10^{9})!",
        r"\sum_{k=1}^{\infty} 1001!",
        r"\sum_{k=1}^{\infty} \binom{1000000}{k}",
        r"\sum_{k=1}^{\infty} (k!)!",
        r"\sum_{k=1}^{\infty} " + "9" * 61,
        r"\int_0^1 \int_0^1 \int_0^1 \int_0^1 x dx dx dx dx",
        r"\lim_{x \to 0} \lim_{x \to 0} \lim_{x \to 0} \lim_{x \to 0} x",
        r"\int_0^1 (" + "+".join(["x"] * 220) + ") dx",
    ],
)
def test_large_trees_are_not_sent(text: str) -> None:
    assert not is_evaluable(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        r"\int_0^1 \int_0^1 \int_0^1 x y z dx dy dz",
        r"\int_0^1 x^{99} (x+1)^{3} dx",
        r"\int_0^{\infty} e^{-x^{2}} dx",
        r"\sum_{k=0}^{\infty} \frac{2^{k}}{(2 k)!}",
        r"\lim_{n \to \infty} (1 + \frac{1}{n})^{n}",
        r"\sum_{k=1}^{10^{9}} k",
    ],
)
def test_ordinary_trees_are_sent(text: str) -> None:
    assert is_evaluable(parse(text))
