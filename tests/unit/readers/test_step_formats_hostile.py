"""Texts that a model may write: a format holds them to the letter, or says which step it cannot hold."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttsframe as tts
from ttsframe.errors import DataError

PIECES = [
    "ки", "к", "и", "Step 1:", "Step 1: ", " Step 1:", "Step 2: ", "\n" * 5, "\n" * 4, "\n\n", "\n",
    " ", "", "+", "-", " +", "-\n", "x", "é", "🙂", "\u2028", "\x00", "\x1e", "\x1f", '"', "\\", "\\n",
    "{", "]", ",", "\t", "\r", "'", "%s", "#", "\ufeff",
]  # fmt: skip
TEXTS = (
    st
    .lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=6)
    .map("".join)
    .map(
        # what no file in UTF-8 can hold, no column can either
        lambda text: text.encode("utf-8", "ignore").decode()
    )
)
FIRST = TEXTS | TEXTS.map(lambda text: f"Step 1: {text}")


@st.composite
def solutions(draw: st.DrawFn, *, soft: bool = False) -> pl.DataFrame:
    """Return steps of one to three solutions, often of one problem, with any texts."""
    rows = []
    problems = draw(st.lists(TEXTS, min_size=1, max_size=2))
    for number in range(draw(st.integers(1, 3))):
        problem = draw(st.sampled_from(problems))
        for step in range(draw(st.integers(1, 4))):
            row = {
                "problem_id": f"p{problems.index(problem)}",
                "solution_id": f"s{number}",
                "step": step,
                "problem": problem,
                "text": draw(FIRST if step == 0 else TEXTS),
            }
            value: dict[str, Any] = {"is_correct": draw(st.booleans())}
            if soft:
                value = {"soft": draw(st.sampled_from([0.0, 0.25, 0.1 + 0.2, 1.0, 1e-7]))}
            rows.append({**row, **value})
    return pl.DataFrame(rows)


def told(steps: pl.DataFrame) -> list[tuple[object, ...]]:
    """Return all that a reader of the file may know of the steps."""
    names = ["problem_id", "solution_id", "step", "problem", "text", "is_correct", "soft"]
    return steps.select(name for name in names if name in steps.columns).rows()


def row_of(steps: pl.DataFrame, name: str) -> dict[str, Any]:
    """Return the row of a solution as the tool of a format writes it."""
    first = steps.row(0, named=True)
    texts = steps["text"].to_list()
    if name == "prm800k":
        ratings = [1 if label else -1 for label in steps["is_correct"]]
        listed = [
            {
                "completions": [{"text": text, "rating": rating, "flagged": False}],
                "human_completion": None,
                "chosen_completion": 0,
            }
            for text, rating in zip(texts, ratings, strict=True)
        ]
        row = {"question": {"problem": first["problem"]}, "label": {"steps": listed}}
    elif name == "math_aps":
        entries = [
            {"solution_prefix": first["problem"] + "".join(texts[: n + 1]), "mc_value": value}
            for n, value in enumerate(steps["soft"])
        ]
        row = {"question": first["problem"], "reasoning_steps": entries}
    else:
        children: list[dict[str, Any]] = []
        for text, value in reversed(list(zip(texts, steps["soft"], strict=True))):
            children = [{"text": text, "mc_value": value, "children": children}]
        tree = {"text": first["problem"], "mc_value": None, "children": children}
        row = {"question": first["problem"], "reasoning_steps": tree}
    return {**row, "problem_id": first["problem_id"], "solution_id": first["solution_id"]}


def read_as(steps: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return what is read of a file of a format that is not written."""
    rows = [row_of(one, name) for one in steps.partition_by("solution_id", maintain_order=True)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return tts.read_steps(path, format=name)  # type: ignore[arg-type]


def written(steps: pl.DataFrame, name: str) -> pl.DataFrame | None:
    """Return what is read back, or None where the format said which step it cannot hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        refusal = ""
        try:
            tts.write_steps(steps, path, format=name)  # type: ignore[arg-type]
        except DataError as error:
            refusal = str(error)
        if refusal:
            assert re.match(r"problem 'p\d', solution 's\d', step -?\d: ", refusal)
            assert not list(Path(folder).iterdir())
            return None
        for line in path.read_bytes().split(b"\n")[:-1]:
            assert isinstance(json.loads(line), dict)
        return tts.read_steps(path, format=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["trl", "table"])
@given(steps=solutions())
def test_formats_of_lists_hold_any_text(name: str, steps: pl.DataFrame) -> None:
    back = written(steps, name)
    assert back is not None
    assert told(back) == told(steps)


@pytest.mark.parametrize("name", ["math_shepherd", "openr"])
@given(steps=solutions())
def test_formats_with_tags_hold_a_text_or_refuse_it(name: str, steps: pl.DataFrame) -> None:
    back = written(steps, name)
    tag = {"math_shepherd": "ки", "openr": "\n" * 5}[name]
    texts = [*steps["text"], *(steps["problem"] if name == "math_shepherd" else [])]
    starts = steps.filter(pl.col("step") == 0)["text"].str.starts_with("Step 1:").all()
    is_clear = starts and not steps["problem"].str.contains(r"(\A|\s)Step 1:").any()
    expected = not any(tag in text for text in texts) and (name == "openr" or is_clear)
    assert (back is not None) == expected, "refused neither too much nor too little"
    if back is not None:
        assert told(back) == told(steps)


@given(steps=solutions())
def test_alternatives_hold_any_text(steps: pl.DataFrame) -> None:
    assert told(read_as(steps, "prm800k")) == told(steps)


@given(steps=solutions(soft=True))
def test_a_tree_of_values_holds_any_text(steps: pl.DataFrame) -> None:
    back = read_as(steps, "math_aps_tree")
    assert told(back.filter(pl.col("step") >= 0)) == told(steps)


@given(steps=solutions(soft=True))
def test_a_list_of_prefixes_holds_any_text_but_the_empty_one(steps: pl.DataFrame) -> None:
    # An empty text has the prefix of the step before it.
    steps = steps.filter((pl.col("text") != "").all().over("solution_id"))
    if steps.height:
        assert told(read_as(steps, "math_aps")) == told(steps)


@given(texts=st.lists(TEXTS, min_size=3, max_size=3), parent=st.sampled_from([0, 1]))
def test_a_prefix_continues_the_longest_other_that_it_begins_with(
    texts: list[str], parent: int
) -> None:
    siblings = [f"Q{text}" for text in texts[:2]]
    prefixes = ["Q", *siblings, siblings[parent] + texts[2]]
    row = {
        "question": "Q",
        "reasoning_steps": [{"solution_prefix": text, "mc_value": 0.5} for text in prefixes],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        path.write_text(json.dumps(row), encoding="utf-8")
        steps = tts.read_steps(path, format="math_aps")
    for prefix, step in zip(prefixes, steps.rows(named=True), strict=True):
        before = [other for other in prefixes if other != prefix and prefix.startswith(other)]
        longest = max(before, key=len, default=None)
        assert step["parent"] == (None if longest is None else prefixes.index(longest))
        assert step["step"] == len(set(before)) - 1
        assert step["text"] == (None if longest is None else prefix[len(longest) :])


@given(text=TEXTS, label=st.sampled_from(["+", "-"]), after=TEXTS)
def test_marks_at_line_ends_are_never_labels(text: str, label: str, after: str) -> None:
    steps = pl.DataFrame({
        "problem_id": "p0",
        "solution_id": "s0",
        "step": [0, 1],
        "problem": "Q",
        "text": [f"Step 1: {text} +\n- {text}", f"{after} -"],
        "is_correct": [label == "+", label == "-"],
    })
    back = written(steps, "math_shepherd")
    assert (back is None) == ("ки" in text or "ки" in after)
    if back is not None:
        assert told(back) == told(steps)


@given(texts=st.lists(st.text(st.characters(), max_size=4), min_size=1, max_size=3))
def test_halves_of_surrogate_pairs_are_read_as_a_mark_of_replacement(texts: list[str]) -> None:
    row = {"prompt": "Q", "completions": texts, "labels": [True] * len(texts)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        path.write_text(
            json.dumps({
                **row,
                "completions": [*texts, "\ud83d"],
                "labels": [True] * (len(texts) + 1),
            })
        )
        back = tts.read_steps(path)
    mended = [
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for text in texts
    ]
    assert back["text"].to_list() == [*mended, "\ufffd"]
