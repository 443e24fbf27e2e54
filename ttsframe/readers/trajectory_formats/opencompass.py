"""OpenCompass: `predictions/{model}/{dataset}.json`, or `results/{model}/{dataset}.json` with details of repeats.

Predictions are an object of numbered samples. Repeats of a data set are blocks of the complete set, without an id, so
equal prompts are one problem, and attempts are in the order of the numbers; a sample with several predictions is several attempts. A data
set that was cut into parts (`{dataset}_0.json`) has its repeats in several files, which are never joined.

Details have a row per problem (`example_abbr`) with the verdict on each repeat, and no texts. `correct`, `is_correct` or
`cascade_correct` is the grade; `pred` and `answer` are the answer and the reference, of which a parsed pair, such as
"[12, '12']", is read as its text. G-Pass of the tool stays at the problem.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from ttsframe.readers.engine.archive import BadMemberError
from ttsframe.readers.engine.document import (
    dict_of,
    list_of,
    read_object,
    shown,
    text_of,
    unpack_objects,
)
from ttsframe.readers.engine.sniff import DataFile, Unpacked, head_of
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    Unpacking,
    add_problem_id,
    cast_columns,
    number_attempts,
)
from ttsframe.readers.trajectory_formats.verl import notices

_IS_PREDICTIONS: Final = re.compile(
    rb'\s*\{\s*"[0-9]+"\s*:\s*\{\s*"(?:origin_prompt|gold|prediction)"\s*:'
)
_IS_DETAILS: Final = re.compile(
    rb'"details"\s*:\s*\[\s*\{\s*(?:"predictions"\s*:|"example_abbr"\s*:)'
)
_PAIR: Final = re.compile(r"""\[.*, ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""", re.DOTALL)
_GRADES: Final = ("correct", "is_correct", "cascade_correct")
_SPEAKERS: Final = ("HUMAN", "user")
_MODEL: Final = ("BOT", "assistant")
_DTYPES: dict[str, pl.DataType] = {
    "problem": pl.String(),
    "completion": pl.String(),
    "answer": pl.String(),
    "gold": pl.String(),
    "is_correct": pl.Boolean(),
    "n_tokens": pl.Int64(),
    "n_prompt_tokens": pl.Int64(),
}


def _recognizes(file: DataFile) -> bool:
    if file.container not in {"json", "jsonl"}:
        return False
    head = head_of(file)
    return _IS_PREDICTIONS.match(head) is not None or _IS_DETAILS.search(head) is not None


def _rows(file: DataFile) -> Iterator[Unpacked]:
    document = read_object(file)
    details = document.get("details")
    if isinstance(details, list):
        placed = {f"details[{number}]": each for number, each in enumerate(details)}
        yield from unpack_objects(placed, _of_details)
        return
    numbered = sorted(document.items(), key=lambda item: _number(item[0]))
    yield from unpack_objects({f"sample {key!r}": each for key, each in numbered}, _of_prediction)


def _number(key: str) -> tuple[int, str]:
    return (int(key), "") if key.isdecimal() and len(key) < 19 else (1 << 62, key)


def _of_prediction(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    prompt, written, gold = (sample.get(name) for name in ("origin_prompt", "prediction", "gold"))
    messages = [dict_of(each) for each in list_of(prompt)]
    n_turns = sum(each.get("role") in _MODEL and not each.get("prompt") for each in messages)
    if isinstance(written, list) and (n_turns > 1 or isinstance(gold, list)):
        raise BadMemberError("has several turns, which are no attempts")
    predictions = written if isinstance(written, list) else [written]
    texts = [text_of(dict_of(each).get("prediction", each)) for each in predictions]
    said = [
        text_of(each.get("prompt", each.get("content")))
        for each in messages
        if each.get("role") in _SPEAKERS
    ]
    row = {
        "problem": prompt if isinstance(prompt, str) else "\n\n".join(filter(None, said)) or None,
        "gold": gold if isinstance(gold, str) else None if gold is None else str(gold),
        "n_prompt_tokens": _count(sample.get("all_input_length")),
    }
    if row["problem"] is None:
        raise BadMemberError(f"its 'origin_prompt' is {shown(prompt)}, must be text or messages")
    if not texts:
        raise BadMemberError("its 'prediction' is an empty list")
    counts = sample.get("res_length")
    n_tokens = counts if isinstance(counts, list) and len(counts) == len(texts) else [counts]
    n_tokens = n_tokens if len(n_tokens) == len(texts) else [None] * len(texts)
    return [
        {**row, "completion": text, "n_tokens": _count(n)}
        for text, n in zip(texts, n_tokens, strict=True)
    ]


def _of_details(detail: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = text_of(detail.get("example_abbr"))
    if name is None:
        raise BadMemberError(
            f"its 'example_abbr' is {shown(detail.get('example_abbr'))}, must be text"
        )
    of_problem = {key: value for key, value in detail.items() if "G-Pass@" in key}
    if isinstance(detail.get("predictions"), list):  # before 0.4
        verdicts = [dict_of(each) for each in detail["predictions"]]
    else:
        listed = {key: value for key, value in detail.items() if isinstance(value, list)}
        lengths = {len(value) for value in listed.values()}
        if len(lengths) != 1:
            raise BadMemberError(f"has lists of {sorted(lengths)} verdicts, must be of one length")
        verdicts = [
            dict(zip(listed, each, strict=True)) for each in zip(*listed.values(), strict=True)
        ]
    if not verdicts:
        raise BadMemberError("has no verdicts")
    rows = []
    for verdict in verdicts:
        grade = next((verdict[key] for key in _GRADES if verdict.get(key) is not None), None)
        if grade is not None and grade not in (0, 1):
            raise BadMemberError(f"its grade is {shown(grade)}, must be true or false")
        rows.append({
            "problem_id": name,
            "answer": _parsed(verdict.get("pred")),
            "gold": _parsed(verdict.get("answer")),
            "is_correct": None if grade is None else bool(grade),
            **of_problem,
        })
    return rows


def _parsed(written: object) -> str | None:
    """Return an answer; of what Math-Verify parsed, its text."""
    text = text_of(written)
    if text is None or text in {"", "[]"}:
        return None if text is not None or written is None else str(written)
    pair = _PAIR.fullmatch(text)
    try:
        return str(ast.literal_eval(pair[1])) if pair else text
    except (SyntaxError, ValueError):
        return text


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id",), "problem")
    return number_attempts(table.frame)


FORMAT = FileFormat(
    summary="OpenCompass: predictions, or results with details of repeats, an object of one data set",
    requires=(("origin_prompt", "example_abbr"), ("prediction", "correct")),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="sample",
    columns={
        "origin_prompt": "problem",
        "prediction": "completion",
        "gold": "gold",
        "res_length": "n_tokens",
        "all_input_length": "n_prompt_tokens",
        "details.example_abbr": "problem_id",
        "details.pred": "answer",
        "details.answer": "gold",
        "details.correct": "is_correct",
    },
    is_exchangeable=True,
    ignores=(
        "results beside the details",
        "messages of other roles",
        "verdicts but for pred, answer and grade",
    ),
    notices=notices,
    unpacking=Unpacking(
        _recognizes,
        _rows,
        "one JSON object of numbered samples with 'origin_prompt' and 'prediction', or with 'details' of problems with 'example_abbr' (OpenCompass)",
    ),
)
