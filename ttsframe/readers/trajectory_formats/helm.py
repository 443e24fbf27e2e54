"""HELM: `scenario_state.json` of a run, one object with a request and its completions for each instance.

Completions of an instance, also those with other examples in the prompt (`train_trial_index`), are its attempts. An
instance that was perturbed is a problem of its own. The references with the tag "correct" are `gold`, or `targets`
if there are several; of a choice by letter, `answer` is what the letter stands for. Grades are in other files, by metric, and
are not read: attempts are graded by their answers. `logprob` is that of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._traps import Trap
from ttsframe.errors import SourceError
from ttsframe.readers.engine.archive import BadMemberError
from ttsframe.readers.engine.document import (
    begins,
    dict_of,
    list_of,
    read_object,
    text_of,
    unpack_objects,
)
from ttsframe.readers.engine.sniff import DataFile, Unpacked
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    Unpacking,
    add_problem_id,
    cast_columns,
    number_attempts,
    shown,
)

_BEGINS: Final = re.compile(rb'\s*\{\s*"adapter_spec"\s*:\s*\{')
_FINISHED: Final = {"stop": "stop", "endoftext": "stop", "eos": "stop", "length": "length"}
_DTYPES: dict[str, pl.DataType] = {
    "id": pl.String(),
    "problem": pl.String(),
    "completion": pl.String(),
    "gold": pl.String(),
    "answer": pl.String(),
    "model": pl.String(),
    "n_tokens": pl.Int64(),
    "finish_reason": pl.String(),
    "logprob": pl.Float64(),
    "train_trial": pl.Int64(),
}


def _rows(file: DataFile) -> Iterator[Unpacked]:
    states = read_object(file).get("request_states")
    if not isinstance(states, list):
        raise SourceError(f"{file.name}: 'request_states' is {shown(states)}, must be a list.")
    placed = {f"request_states[{number}]": state for number, state in enumerate(states)}
    yield from unpack_objects(placed, _attempts)


def _attempts(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    instance, request, result = (
        dict_of(state.get(name)) for name in ("instance", "request", "result")
    )
    if state.get("reference_index") is not None:
        raise BadMemberError(
            "has a 'reference_index', so it scores a choice; likelihoods of choices are no attempts"
        )
    identifier = text_of(instance.get("id"))
    if identifier is None:
        raise BadMemberError(f"its 'instance.id' is {shown(instance.get('id'))}, must be text")
    perturbation = dict_of(instance.get("perturbation"))
    if perturbation:
        kind = "/".join(str(value) for _, value in sorted(perturbation.items()))
        identifier = f"{identifier}/{kind}"
    trial = state.get("train_trial_index")
    row = {
        "id": identifier,
        "problem": _text(instance.get("input")),
        "model": text_of(request.get("model")),
        "perturbation": text_of(perturbation.get("name")),
        "train_trial": trial if isinstance(trial, int) else None,
        "error": text_of(result.get("error")),
        **_gold(instance),
    }
    mapping = dict_of(state.get("output_mapping"))
    completions = [dict_of(each) for each in list_of(result.get("completions"))]
    if not completions:
        # A request that failed is an attempt without a text.
        return [{**row, "finish_reason": "error" if result else None}]
    return [{**row, **_completion(each, mapping)} for each in completions]


def _completion(completion: Mapping[str, Any], mapping: Mapping[str, Any]) -> dict[str, Any]:
    said = text_of(completion.get("text"))
    reason = dict_of(completion.get("finish_reason")).get("reason")
    logprob = completion.get("logprob")
    return {
        "completion": said,
        "answer": text_of(mapping.get((said or "").strip())) if mapping else None,
        "n_tokens": len(list_of(completion.get("tokens"))) or None,
        "logprob": logprob if isinstance(logprob, int | float) else None,
        "finish_reason": _FINISHED.get(reason) if isinstance(reason, str) else None,
    }


def _gold(instance: Mapping[str, Any]) -> dict[str, Any]:
    right = [
        _text(dict_of(reference).get("output"))
        for reference in list_of(instance.get("references"))
        if "correct" in list_of(dict_of(reference).get("tags"))
    ]
    texts = [text for text in right if text is not None]
    return {"targets": texts} if len(texts) > 1 else {"gold": texts[0] if texts else None}


def _text(written: object) -> str | None:
    """Return a text; older versions write it without the object around it."""
    return text_of(dict_of(written).get("text")) if isinstance(written, dict) else text_of(written)


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id", "id"), "problem")
    return number_attempts(table.frame.drop("id", strict=False))


FORMAT = FileFormat(
    summary="HELM: scenario_state.json, the requests of a run with their completions",
    requires=(("id",), ("train_trial",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="completion",
    columns={
        "instance.id": "problem_id",
        "instance.input.text": "problem",
        "instance.references": "gold",
        "output_mapping": "answer",
        "request.model": "model",
        "result.completions.text": "completion",
        "result.completions.tokens": "n_tokens",
        "result.completions.finish_reason": "finish_reason",
    },
    is_exchangeable=True,
    ignores=(
        "adapter_spec",
        "request but for its model",
        "instance.split",
        "annotations",
        "prompt_truncated",
        "result.request_time",
        "completions.thinking",
    ),
    traps=(
        Trap(
            "several_prompts",
            ("train_trial",),
            pl.col("train_trial") != pl.col("train_trial").first(),
            "had other examples in their prompts than the first",
            "their accuracy differs by the examples too. by='train_trial' (--by train_trial) keeps them apart.",
            severity="note",
        ),
    ),
    unpacking=Unpacking(
        partial(begins, _BEGINS),
        _rows,
        "one JSON object with 'adapter_spec' and 'request_states' (scenario_state.json of HELM)",
    ),
)
