"""Keys as expressions: once per distinct answer, on every engine, thread and process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.answers.engine import canonicalize
from ttsframe.answers.latex.tree import Node
from ttsframe.answers.lookup import table as tables
from ttsframe.answers.lookup import worker
from ttsframe.answers.lookup.table import Entry, KeyTable
from ttsframe.errors import MissingExtraError

ANSWERS = [
    "0.5",
    r"\frac{1}{2}",
    "1/2",
    "x+1",
    "1+x",
    "[0,1)",
    "(0,1)",
    "Evelyn",
    "odd",
    "",
    "3",
    r"\sqrt{2}",
    None,
]
SPECIAL = [rf"\int_0^{{{n}}} 2x dx" for n in range(2, 12)]


def key(*answers: str | None, **options: object) -> list[str | None]:
    frame = pl.DataFrame({"answer": list(answers)}, schema={"answer": pl.String})
    return frame.select(tts.answer_key("answer", **options))["answer"].to_list()  # type: ignore[arg-type]


def test_keys_are_those_of_the_engine() -> None:
    policy = tts.answers.AnswerPolicy()
    expected = [None if not a else canonicalize(a, policy).key for a in ANSWERS]
    assert key(*ANSWERS) == expected


def test_equivalent_answers_share_a_key() -> None:
    half = key("0.5", r"\frac{1}{2}", "1/2", r"$\dfrac12$", r"\frac{2}{4}")
    assert len(set(half)) == 1
    assert len(set(key("[0,1)", "(0,1)", "(0,1]", "0,1"))) == 4


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_every_engine_gives_the_same_keys(engine: str) -> None:
    rng = random.Random(5)
    answers = rng.choices(ANSWERS, k=300_000)
    known = dict(zip(ANSWERS, key(*ANSWERS), strict=True))
    frame = pl.LazyFrame({"answer": answers}, schema={"answer": pl.String})
    result = frame.select(tts.answer_key("answer")).collect(engine=engine)
    assert result["answer"].to_list() == [known[answer] for answer in answers]


def test_keys_compose_with_other_expressions() -> None:
    frame = pl.LazyFrame({"p": [1, 1, 1, 2], "answer": ["0.5", "1/2", "3", None]})
    votes = (
        frame
        .group_by("p", tts.answer_key("answer").alias("k"))
        .len()
        .filter(pl.col("k").is_not_null())
        .sort("p", "len", descending=[False, True])
        .collect()
    )
    assert votes.rows() == [(1, "3:1/2", 2), (1, "3:3", 1)]
    filtered = frame.with_columns(tts.answer_key("answer").alias("k")).filter(pl.col("k") == "3:3")
    assert filtered.collect().height == 1
    assert frame.select(tts.answer_key("answer")).head(1).collect().item() == "3:1/2"


def test_names_and_dtypes_are_kept() -> None:
    frame = pl.DataFrame({"a": ["1"], "b": ["2"]})
    assert frame.select(tts.answer_key(pl.col("a", "b"))).columns == ["a", "b"]
    assert frame.select(tts.answer_key("a").alias("k")).columns == ["k"]
    assert frame.select(tts.answer_key(pl.col("a") + "2")).item() == "3:12"
    assert frame.clear().select(tts.answer_key("a")).schema == {"a": pl.String}
    categories = frame.select(pl.col("a").cast(pl.Categorical))
    assert categories.select(tts.answer_key("a")).item() == "3:1"
    nulls = pl.DataFrame({"a": [None, None]})
    assert nulls.select(tts.answer_key("a"))["a"].to_list() == [None, None]
    assert nulls.select(tts.answers.answer_kind("a"))["a"].to_list() == ["missing", "missing"]


def test_numbers_are_refused_with_a_hint() -> None:
    frame = pl.DataFrame({"answer": [1, 2]})
    with pytest.raises(
        tts.TtsframeError, match=r"column 'answer' of dtype Int64, must be String.*cast"
    ):
        frame.select(tts.answer_key("answer"))


def test_wrong_parameters_are_refused_at_once() -> None:
    with pytest.raises(
        tts.TtsframeError, match="method == 'sympi', must be one of 'auto', 'sympy'"
    ):
        tts.answer_key("answer", method="sympi")  # type: ignore[arg-type]
    with pytest.raises(tts.TtsframeError, match="has no policy"):
        tts.answer_key("answer", method="sympy", policy=tts.answers.AnswerPolicy())
    with pytest.raises(TypeError, match="policy is a str, must be an AnswerPolicy"):
        tts.answer_key("answer", policy="percent")  # type: ignore[arg-type]


def test_policies_have_keys_of_their_own() -> None:
    fraction = tts.answers.AnswerPolicy(percent="fraction")
    assert key("25%", policy=fraction) == [fraction.prefix + "1/4"]
    assert key("25%") == ["3:25"]
    assert key("25%", method="sympy") == ["s1:25"]


def test_sums_and_integrals_are_evaluated_in_workers() -> None:
    before = tts.answers.answer_statistics()
    assert key(*SPECIAL) == [f"3:{n * n}" for n in range(2, 12)]
    assert key(r"\int_0^1 x^2 dx", r"\lim_{x\to 0} \frac{\sin x}{x}") == ["3:1/3", "3:1"]
    assert key(r"\int_0^1\frac{4}{1+x^2}dx") == key(r"\pi")
    after = tts.answers.answer_statistics()
    assert after.n_by_worker > before.n_by_worker
    assert after.n_limited == before.n_limited


def test_golds_give_up_their_answers() -> None:
    frame = pl.DataFrame({
        "gold": [
            r"so $x = \boxed{\frac12}$",
            "18\n#### 18",
            "0.5",
            r"\text{odd}",
            None,
            "It is 3.\nA: 3",
        ]
    })
    golds = frame.select(tts.gold_key("gold"))["gold"].to_list()
    assert golds == key("1/2", "18", "1/2", "odd", None, "3")


def test_kinds_are_an_enum() -> None:
    frame = pl.DataFrame({"a": ["1,234", r"\sqrt{2}", "x+1", "{1,2}", "Evelyn", "", None]})
    kinds = frame.select(tts.answers.answer_kind("a"))["a"]
    assert isinstance(kinds.dtype, pl.Enum)
    assert kinds.to_list() == [
        "exact",
        "numeric",
        "symbolic",
        "structure",
        "text",
        "missing",
        "missing",
    ]


def test_each_answer_is_read_once_whatever_the_threads() -> None:
    reads = Counter[str]()
    lock = threading.Lock()

    def slow(answers: Sequence[str]) -> dict[str, Entry]:
        time.sleep(0.01)
        with lock:
            reads.update(answers)
        return {answer: Entry(answer, "text") for answer in answers}

    table = KeyTable(slow)
    answers = [f"a{i}" for i in range(400)]

    def ask(seed: int) -> bool:
        wanted = random.Random(seed).sample(answers, 200)
        return table.look_up(wanted) == {a: Entry(a, "text") for a in wanted}

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(40)))
    assert set(reads.values()) == {1}


def test_a_failure_leaves_nothing_in_flight() -> None:
    attempts = []

    def fails_once(answers: Sequence[str]) -> dict[str, Entry]:
        attempts.append(list(answers))
        if len(attempts) == 1:
            raise RuntimeError("once")
        return {answer: Entry(answer, "text") for answer in answers}

    table = KeyTable(fails_once)
    with pytest.raises(RuntimeError, match="once"):
        table.look_up(["a"])
    assert table.look_up(["a"])["a"].key == "a"


def test_the_table_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttsframe.answers.lookup.table._MOST_BYTES", 10_000)

    def read(answers: Sequence[str]) -> dict[str, Entry]:
        return {answer: Entry(answer, "text") for answer in answers}

    table = KeyTable(read)
    for start in range(0, 2_000, 100):
        wanted = [f"answer {i}" for i in range(start, start + 100)]
        assert {a: e.key for a, e in table.look_up(wanted).items()} == {a: a for a in wanted}
        assert len(table._entries) <= 100


def test_eight_threads_collect_at_once() -> None:
    answers = [*ANSWERS, *SPECIAL]
    expected = key(*answers)

    def collect(seed: int) -> bool:
        order = random.Random(seed).sample(range(len(answers)), len(answers))
        frame = pl.LazyFrame({"answer": [answers[i] for i in order]}, schema={"answer": pl.String})
        result = frame.select(tts.answer_key("answer")).collect()["answer"].to_list()
        return result == [expected[i] for i in order]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(collect, range(16)))


SCRIPT = r"""
import polars as pl, ttsframe as tts
answers = ["0.5", "\\frac{1}{2}", "\\int_0^2 5x dx", "x+1"]
frame = pl.LazyFrame({"answer": answers * 50_000}).select(tts.answer_key("answer"))
print(*frame.collect(engine="streaming")["answer"].to_list()[:4], sep="|")
"""
SCRIPT_KEYS = key("0.5", "0.5", "10", "x+1")


def run(command: Sequence[str], **options: object) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout).strip()


def test_a_script_without_a_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # a module of this name beside the script is what latex2sympy2 must not pick up
    (tmp_path / "gen.py").write_text("raise SystemExit('the wrong gen')")
    assert run([sys.executable, str(script)], cwd=tmp_path).split("|") == SCRIPT_KEYS


def test_a_script_on_stdin(tmp_path: Path) -> None:
    assert run([sys.executable, "-"], input=SCRIPT, cwd=tmp_path).split("|") == SCRIPT_KEYS


def test_a_forked_child() -> None:
    # the table is filled before the fork; Polars itself may not be used on both sides of one
    code = """
    import os
    from ttsframe.answers.lookup.table import key_table
    table = key_table(None, "auto")
    answers = ["0.5", "\\\\int_0^2 5x dx", "x+1"]
    before = table.look_up(answers)
    child = os.fork()
    if child == 0:
        import polars as pl, ttsframe as tts
        frame = pl.DataFrame({"answer": answers})
        keys = frame.select(tts.answer_key("answer"))["answer"].to_list()
        same = table.look_up(answers) == before and keys == [e.key for e in before.values()]
        os._exit(0 if same else 3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    """
    run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)])


def test_keys_do_not_depend_on_the_hash_seed_or_the_process() -> None:
    code = "import sys; exec(sys.stdin.read())"
    results = {
        run(
            [sys.executable, "-c", code],
            input=SCRIPT,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        )
        for seed in range(3)
    }
    assert results == {"|".join(map(str, SCRIPT_KEYS))}


def test_a_limited_expression_is_text_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    scalar = r"\int_0^3 7x dx"

    def limited(_task: str, items: Sequence[Node]) -> dict[Node, worker.Outcome]:
        return {item: worker.Outcome(None, "limit") for item in items}

    monkeypatch.setattr(tables, "run_tasks", limited)
    entries = tables._read([scalar, "3"], tts.answers.AnswerPolicy())
    assert entries["3"] == Entry("3:3", "exact")
    assert entries[scalar].kind == "text"


def test_a_fault_of_the_reader_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(answer: str, *rest: object) -> object:
        if answer == "boom":
            raise ZeroDivisionError
        return canonicalize(answer, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "canonicalize", faulty)
    entries = tables._read(["boom", "3"], tts.answers.AnswerPolicy())
    assert (entries["boom"].kind, entries["3"].key) == ("text", "3:3")
    assert (entries["boom"].is_failed, entries["3"].is_failed) == (True, False)
    monkeypatch.setattr(tables, "_tables", {})
    assert key("boom", "3", "3") == ["3:rboom", "3:3", "3:3"]
    assert tts.answers.answer_statistics().n_failed == 1


def test_what_has_no_certain_meaning_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Node] = []

    def record(_task: str, items: Sequence[Node]) -> dict[Node, worker.Outcome]:
        sent.extend(items)
        return {}

    monkeypatch.setattr(tables, "run_tasks", record)
    answers = [
        r"\sum_{k=1}^{3} 3\frac{1}{2}",
        r"\int x dx",
        r"\sum_{k=1}^{2} \log 5",
        r"\sum_{k=1}^{9^{9^9}} k",
        r"\int_0^1 \log x dx",
        r"\int_0^1 f(x) dx",
        r"\int_0^a x dx",
        r"\int_0^1 x\% dx",
    ]
    entries = tables._read(answers, tts.answers.AnswerPolicy())
    assert sent == []
    assert len({entry.key for entry in entries.values()}) == len(answers)


def test_a_missing_library_is_an_error_and_never_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> object:
        raise ModuleNotFoundError("No module named 'flint'")

    monkeypatch.setattr(tables, "canonicalize", missing)
    with pytest.raises(tts.TtsframeError, match=r"without python-flint.*No module named 'flint'"):
        tables._read(["3"], tts.answers.AnswerPolicy())


def test_the_published_form_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"needs latex2sympy2.*ttsframe\[latex2sympy\]"):
        tts.answer_key("answer", method="sympy")
    assert key("0.5") == ["3:1/2"]
