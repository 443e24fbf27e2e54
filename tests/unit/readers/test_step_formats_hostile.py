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


@pytest.mark.parametrize("name", ["trl", "prm800k", "table"])
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


@given(steps=solutions(soft=True))
def test_a_tree_of_values_holds_any_text(steps: pl.DataFrame) -> None:
    back = written(steps, "math_aps_tree")
    assert back is not None
    assert told(back.filter(pl.col("step") >= 0)) == told(steps)


@given(steps=solutions(soft=True))
def test_a_list_of_prefixes_holds_a_text_or_refuses_it(steps: pl.DataFrame) -> None:
    back = written(steps, "math_aps")
    # the steps of one solution continue one another, so only an empty text hides
    assert (back is not None) == (not (steps["text"] == "").any())
    if back is not None:
        assert told(back) == told(steps)


@given(texts=st.lists(TEXTS, min_size=3, max_size=3), parent=st.sampled_from([0, 1]))
def test_siblings_in_a_list_never_become_parents(texts: list[str], parent: int) -> None:
    tree = pl.DataFrame({
        "problem_id": "p0",
        "solution_id": "s0",
        "node": [0, 1, 2, 3],
        "parent": [None, 0, 0, 1 + parent],
        "step": [-1, 0, 0, 1],
        "problem": "Q",
        "text": [None, *texts],
        "soft": 0.5,
    })
    back = written(tree, "math_aps")
    if back is not None:
        columns = ["node", "parent", "step", "text"]
        assert back.select(columns).rows() == tree.select(columns).rows()


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
