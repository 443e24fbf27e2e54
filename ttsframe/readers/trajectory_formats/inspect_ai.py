"""inspect_ai: a log of one evaluation, `.eval` (a zip archive) or `.json`, with its samples.

A sample is one attempt: `epoch` 1 is attempt 0. A sample that was run again is in an archive twice, and
the last one counts. Long texts are kept once, as attachments that the rest refers to; new logs may give
a sample a folder of its own with attachments in parts. Members are deflated or compressed by zstd.

The value of a scorer was computed with the target, so it is never `score`. Each becomes a column
`score_{scorer}` (`score_{scorer}_{key}` if it is a dict), beside `score_{scorer}_answer`: the scorer's
reading of the answer, which for some scorers is the complete text. One scorer decides `is_correct`: the
first with the metric accuracy, else the first. C and true are right, I, N and false are wrong, and so are
1 and 0 where the metric is accuracy: in other scales 0 may be the best. Everything else (P, for partly right,
or 0.5) is null. `grade` is that value as text.

`target` is `gold`; several targets, any of which is right, are the list `targets` and no `gold`. Tokens
are those of the output; of several turns, those of the model in all of them, which counts a grader that is
the same model too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._traps import Trap
from ttsframe.errors import SourceError
from ttsframe.readers.engine.archive import Archive, BadMemberError, open_archive
from ttsframe.readers.engine.document import (
    dict_of,
    list_of,
    parse_object,
    parse_value,
    read_object,
    text_of,
)
from ttsframe.readers.engine.sniff import DataFile, Unpacked, head_of
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    Unpacking,
    add_problem_id,
    cast_columns,
    shown,
)
from ttsframe.schema import TRAJECTORY_COLUMNS

_SAMPLE: Final = re.compile(r"samples/(.+)_epoch_([0-9]+)(?:\.json|/sample\.json)", re.DOTALL)
_IS_LOG: Final = re.compile(
    rb'\s*\{\s*"version"\s*:\s*[0-9]+\s*,\s*"status"\s*:\s*"([a-z]+)".*?"eval"\s*:\s*\{', re.DOTALL
)
_CUTS: Final = (
    (b',"events_data":{', b"", b'},"turn_count":', ("events_data", "turn_count")),
    (b',"attachments":{', b"", b'},"events_data":', ("attachments", "events_data")),
    (b',"store":{', b'},"events":[', b'],"model_usage":', ("store", "events", "model_usage")),
    (b',"messages":[', b"", b'],"output":{', ("messages", "output")),
)
_INDENTED_CUTS: Final = (
    (b'\n  "events": [', b"", b'],\n  "model_usage":', ("events", "model_usage")),
)
"""What begins a part of a sample that is not needed, what is left of it, what follows it, and the keys around it."""
_EMPTIED: Final = frozenset({"messages", "store", "events", "events_data", "attachments"})
_REFERENCES: Final = ("attachment://", "tc://")
_GRADES: Final = {"C": True, "I": False, "N": False, "true": True, "false": False}
_NUMBERS: Final = {"1": True, "1.0": True, "0": False, "0.0": False}
"""Grades where the metric is accuracy."""
_FINISHED: Final = {"stop": "stop", "max_tokens": "length", "model_length": "length"}
_LENGTH_LIMITS: Final = ("context", "token", "output")

_DTYPES: dict[str, pl.DataType] = {
    **{
        name: TRAJECTORY_COLUMNS[name].dtype
        for name in (
            "problem",
            "completion",
            "gold",
            "is_correct",
            "n_tokens",
            "n_prompt_tokens",
            "finish_reason",
        )
    },
    "id": pl.String(),
    "epoch": pl.Int64(),
    "model": pl.String(),
    "task": pl.String(),
    "error": pl.String(),
    "grade": pl.String(),
    "reasoning": pl.String(),
}


def _is_log(file: DataFile) -> bool:
    if file.container in {"json", "jsonl"}:
        return _IS_LOG.match(head_of(file)) is not None
    if file.container != "zip":
        return False
    with open_archive(file) as archive:
        return not {"header.json", "_journal/start.json"}.isdisjoint(archive.members)


class _Log:
    """What the header of a log says about all samples."""

    def __init__(self, header: Mapping[str, Any], name: str) -> None:
        spec = header.get("eval")
        if not isinstance(spec, dict):
            raise SourceError(
                f"{name}: its header has no 'eval', which says what was run. Hint: it may be damaged."
            )
        self.status = text_of(header.get("status")) or "started"
        self.model = text_of(spec.get("model"))
        self.task = text_of(spec.get("task"))
        config = {
            **dict_of(dict_of(header.get("plan")).get("config")),
            **dict_of(spec.get("model_generate_config")),
        }
        self.seed = config.get("seed")
        samples, epochs = (
            dict_of(spec.get("dataset")).get("samples"),
            dict_of(spec.get("config")).get("epochs"),
        )
        self.n_samples = samples * (epochs or 1) if isinstance(samples, int) else None
        self.grader, is_accuracy = _grader(header, spec)
        self.grades = {**_GRADES, **(_NUMBERS if is_accuracy else {})}


def _grader(header: Mapping[str, Any], spec: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Return the name of the scorer that decides whether a sample is right, and whether its metric is accuracy."""
    scorers: dict[str, bool] = {}
    for score in list_of(dict_of(header.get("results")).get("scores")):
        name = text_of(dict_of(score).get("scorer"))  # several entries, for a dict of values
        if name is not None:
            metrics = dict_of(dict_of(score).get("metrics"))
            scorers[name] = scorers.get(name, False) or any(_is_accuracy(key) for key in metrics)
    for scorer in list_of(spec.get("scorers")):
        name = text_of(dict_of(scorer).get("name"))
        if name is not None:
            listed = json.dumps(dict_of(scorer).get("metrics"))
            named = re.findall(r'"name": "([^"]*)"', listed)
            scorers.setdefault(name, any(map(_is_accuracy, named)))
    graded = next((name for name, is_graded in scorers.items() if is_graded), None)
    return graded or next(iter(scorers), None), graded is not None


def _is_accuracy(metric: str) -> bool:
    return metric.rpartition("/")[2].startswith("accuracy")


def _rows(file: DataFile) -> Iterator[Unpacked]:
    return _archive_rows(file) if file.container == "zip" else _document_rows(file)


def _archive_rows(file: DataFile) -> Iterator[Unpacked]:
    with open_archive(file) as archive:
        log = _header(archive, file.name)
        for name, data in archive.read_all(_sample_names(archive)):
            place = f"member {name!r}"
            if isinstance(data, BadMemberError):
                yield Unpacked(place, fault=str(data))
                continue
            try:
                yield Unpacked(place, _member_row(name, data, archive, log))
            except BadMemberError as reason:
                yield Unpacked(place, fault=str(reason))


def _member_row(name: str, data: bytes, archive: Archive, log: _Log) -> dict[str, Any]:
    """Turn a sample with a member or a folder of its own into a row."""
    sample = _parse_sample(data)
    if not name.endswith("/sample.json"):
        texts = _Attachments(lambda: _attachments_of(parse_object(data)))
        return _row(sample, log, texts)
    folder = name.removesuffix("sample.json")
    if folder + "metadata.json" in archive.members:
        sample["metadata"] = parse_object(archive.read(folder + "metadata.json"))
    return _row(
        sample, log, _Attachments(lambda: _attachments_in(archive, folder + "attachments/"))
    )


def _sample_names(archive: Archive) -> list[str]:
    """List the members that are samples by id and epoch: an archive has them as they ended."""
    # A sample of its own folder counts only where there is no single member for it, as for the tool.
    found: dict[tuple[str, int], str] = {}
    for name in archive.members:
        match = _SAMPLE.fullmatch(name)
        if match and not (name.endswith("/sample.json") and (match[1], int(match[2])) in found):
            found[match[1], int(match[2])] = name
    return [name for _, name in sorted(found.items(), key=lambda item: _by_number(*item[0]))]


def _by_number(identifier: str, epoch: int) -> tuple[list[tuple[int, int, str]], int]:
    """Return a key that sorts sample 10 after sample 2."""
    pieces = re.split(r"([0-9]{1,18})", identifier)
    return [(1, int(each), "") if each.isdecimal() else (0, 0, each) for each in pieces], epoch


def _header(archive: Archive, name: str) -> _Log:
    """Read the header, or what is there of it while the evaluation runs."""
    for member in ("header.json", "_journal/start.json"):
        if member in archive.members:
            try:
                return _Log(parse_object(archive.read(member)), name)
            except BadMemberError as reason:
                raise SourceError(
                    f"{name}, member {member!r}: {reason}. Hint: without it nothing is known of the samples; "
                    "write the log again, or restore it."
                ) from reason
    raise SourceError(f"{name}: has neither 'header.json' nor '_journal/start.json'.")


def _document_rows(file: DataFile) -> Iterator[Unpacked]:
    document = read_object(file)
    log = _Log(document, file.name)
    samples: dict[object, tuple[int, object]] = {}
    for number, sample in enumerate(list_of(document.get("samples")), 1):
        one = dict_of(sample)
        key = (str(one.get("id")), one.get("epoch")) if "id" in one else number
        samples[str(key)] = (number, sample)
    for number, sample in samples.values():
        place = f"sample {number}"
        if not isinstance(sample, dict):
            yield Unpacked(place, fault=f"is {shown(sample)}, must be an object")
            continue
        try:
            texts = _Attachments(partial(_attachments_of, sample))
            yield Unpacked(place, _row(sample, log, texts))
        except BadMemberError as reason:
            yield Unpacked(place, fault=str(reason))


class _Attachments:
    """The long texts of a sample, which its other texts refer to; found when one does."""

    def __init__(self, find: Callable[[], Mapping[str, Any]]) -> None:
        self._find = find
        self._texts: Mapping[str, Any] | None = None

    def resolve(self, text: str) -> str:
        """Return a text, or what it refers to; a reference to nothing stays."""
        if not text.startswith(_REFERENCES):
            return text
        if self._texts is None:
            self._texts = self._find()
        found = self._texts.get(text.partition("://")[2])
        return found if isinstance(found, str) else text


def _attachments_of(sample: Mapping[str, Any]) -> dict[str, Any]:
    return dict_of(sample.get("attachments"))


def _attachments_in(archive: Archive, folder: str) -> dict[str, Any]:
    """Read the attachments of a sample with a folder of its own, by their index."""
    texts: dict[str, Any] = {}
    for name in archive.members:
        start = name.removeprefix(folder).removesuffix(".json")
        if name.startswith(folder) and start.isdecimal():
            for index, text in enumerate(list_of(parse_value(archive.read(name))), int(start)):
                texts[str(index)] = text
    return texts


def _row(sample: Mapping[str, Any], log: _Log, texts: _Attachments) -> dict[str, Any]:
    """Turn a sample into a row; what it does not have is left out."""
    identifier, epoch = sample.get("id"), sample.get("epoch")
    if not isinstance(identifier, int | str) or isinstance(identifier, bool):
        raise BadMemberError(f"its 'id' is {shown(identifier)}, must be text or a whole number")
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 1 <= epoch < 2**32:
        raise BadMemberError(f"its 'epoch' is {shown(epoch)}, must be a whole number from 1")
    output = dict_of(sample.get("output"))
    choice = dict_of(next(iter(list_of(output.get("choices"))), None))
    message = dict_of(choice.get("message"))
    completion, reasoning = _content(message.get("content"), texts)
    error, limit = dict_of(sample.get("error")), dict_of(sample.get("limit"))
    row: dict[str, Any] = {
        "id": identifier,
        "epoch": epoch,
        "problem": _problem(sample.get("input"), texts),
        "completion": completion,
        "reasoning": reasoning,
        "model": log.model,
        "task": log.task,
        "seed": log.seed,
        "error": text_of(error.get("message")),
        "limit": text_of(limit.get("type")),
        "finish_reason": _finish_reason(choice, error, limit),
    }
    row |= _tokens(sample, output, log.model)
    row |= _targets(sample.get("target"), texts)
    row |= _choices(sample.get("choices"))
    row |= {f"metadata_{name}": value for name, value in dict_of(sample.get("metadata")).items()}
    row |= _scores(sample, log, texts)
    return {name: value for name, value in row.items() if value is not None}


def _scores(sample: Mapping[str, Any], log: _Log, texts: _Attachments) -> dict[str, Any]:
    """Return the value of each scorer, and the grade."""
    scores = {name: dict_of(score) for name, score in dict_of(sample.get("scores")).items()}
    if not scores and isinstance(sample.get("score"), dict):  # before there could be several
        scores = {log.grader or "score": sample["score"]}
    row: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.get("value")
        values = value if isinstance(value, dict) else {"": value}
        row |= {
            f"score_{name}_{key}" if key else f"score_{name}": each for key, each in values.items()
        }
        if isinstance(answer := score.get("answer"), str):
            row[f"score_{name}_answer"] = texts.resolve(answer)
    decisive = scores.get(log.grader or "") or next(iter(scores.values()), {})
    grade = decisive.get("value")
    if isinstance(grade, str | int | float):
        row["grade"] = grade if isinstance(grade, str) else json.dumps(grade)
        row["is_correct"] = log.grades.get(row["grade"])
    return row


def _problem(written: object, texts: _Attachments) -> str | None:
    """Return the text of the problem: that of the user, of several messages."""
    if isinstance(written, str):
        return texts.resolve(written)
    said = [
        _content(dict_of(message).get("content"), texts)[0]
        for message in list_of(written)
        if dict_of(message).get("role") == "user"
    ]
    return "\n\n".join(text for text in said if text) or None


def _content(content: object, texts: _Attachments) -> tuple[str | None, str | None]:
    """Return the text and the reasoning of a message."""
    if isinstance(content, str):
        return texts.resolve(content), None
    parts = [dict_of(part) for part in list_of(content)]
    said, thought = (
        [
            texts.resolve(part[kind])
            for part in parts
            if part.get("type") == kind and isinstance(part.get(kind), str)
        ]
        for kind in ("text", "reasoning")
    )
    return "\n".join(said) if parts else None, "\n".join(thought) or None


def _targets(target: object, texts: _Attachments) -> dict[str, Any]:
    listed = [
        texts.resolve(each)
        for each in ([target] if isinstance(target, str) else list_of(target))
        if isinstance(each, str)
    ]
    if len(listed) > 1:
        return {"targets": listed}
    return {"gold": listed[0] or None} if listed else {}


def _choices(choices: object) -> dict[str, Any]:
    return (
        {"choices": [str(each) for each in choices]}
        if isinstance(choices, list) and choices
        else {}
    )


def _finish_reason(
    choice: Mapping[str, Any], error: Mapping[str, Any], limit: Mapping[str, Any]
) -> str | None:
    if error:
        return "error"
    if limit.get("type") in _LENGTH_LIMITS:
        return "length"
    return _FINISHED.get(str(choice.get("stop_reason")))


def _tokens(
    sample: Mapping[str, Any], output: Mapping[str, Any], model: str | None
) -> dict[str, Any]:
    n_turns = sample.get("turn_count")
    if not isinstance(n_turns, int):
        n_turns = sum(
            dict_of(message).get("role") == "assistant"
            for message in list_of(sample.get("messages"))
        )
    total = dict_of(dict_of(sample.get("model_usage")).get(model or ""))
    last = dict_of(output.get("usage"))
    usage = (total or last) if n_turns > 1 else (last or total)
    return {
        ours: usage.get(theirs)
        for ours, theirs in (("n_tokens", "output_tokens"), ("n_prompt_tokens", "input_tokens"))
    }


def _parse_sample(data: bytes) -> dict[str, Any]:
    """Parse a sample without its messages, events and attachments, which are most of it and seldom needed."""
    pieces: list[bytes] = []
    keys: set[str] = set()
    rest = len(data)
    for start_mark, left, end_mark, around in _INDENTED_CUTS if data[1:2] == b"\n" else _CUTS:
        if around[0] == "messages" and "turn_count" not in keys:
            continue  # in older logs the messages tell the number of turns
        # A text has no line end and no bare quote of its own in JSON, so these are keys.
        end = data.rfind(end_mark, 0, rest)
        # What is near the end is found faster from there.
        is_late = around[1] in {"events_data", "turn_count"}
        start = (data.rfind if is_late else data.find)(start_mark, 0, max(end, 0))
        if start >= 0:
            pieces += (data[end:rest], left)
            rest = start + len(start_mark)
            keys.update(around)
    if not keys:
        return parse_object(data)
    pieces.append(data[:rest])
    try:
        sample = parse_object(b"".join(reversed(pieces)))
    except BadMemberError:
        return parse_object(data)
    # Other brackets than those of the outermost object would leave it without one of its keys.
    is_right = keys <= sample.keys() and not any(sample[name] for name in keys & _EMPTIED)
    return sample if is_right else parse_object(data)


def _notices(file: DataFile, columns: Mapping[str, pl.DataType]) -> Iterator[str]:
    is_empty = all(isinstance(dtype, pl.Null) for dtype in columns.values())
    if file.container == "zip":
        with open_archive(file) as archive:
            log = _header(archive, file.name)
            status, of = log.status, f" of {log.n_samples:,}" if log.n_samples else ""
            if status != "success" and not is_empty:
                n_found = len(_sample_names(archive))
                yield f"the evaluation has the status {status!r}; {n_found:,}{of} samples are in its log."
    else:
        match = _IS_LOG.match(head_of(file))
        status = match[1].decode() if match else "unknown"
        if status != "success" and not is_empty:
            yield f"the evaluation has the status {status!r}; some samples may be missing in its log."
    if is_empty:
        yield f"the log holds no samples (status {status!r}), so there are no attempts in it."


def _to_attempts(source: Table) -> pl.LazyFrame:
    table = add_problem_id(cast_columns(source, _DTYPES), ("problem_id", "id"), "problem")
    attempt = (pl.col("epoch") - 1).cast(pl.UInt32).alias("attempt")
    return table.frame.with_columns(attempt).drop("id", "epoch", strict=False)


FORMAT = FileFormat(
    summary="inspect_ai: a log of an evaluation (.eval or .json), its epochs as attempts",
    requires=(("id",), ("epoch",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    unit="sample",
    columns={
        "id": "problem_id",
        "epoch": "attempt",
        "input": "problem",
        "target": "gold",
        "output.choices.message.content": "completion",
        "output.choices.stop_reason": "finish_reason",
        "output.usage.output_tokens": "n_tokens",
        "output.usage.input_tokens": "n_prompt_tokens",
        "eval.model": "model",
        "scores.value": "is_correct",
    },
    is_exchangeable=True,
    ignores=(
        "messages",
        "events",
        "store",
        "scores.explanation",
        "scores.metadata",
        "output.choices after the first",
        "total_time",
        "working_time",
        "uuid",
    ),
    traps=(
        Trap(
            "sample_errors",
            ("error", "is_correct"),
            pl.col("error").is_not_null() & pl.col("is_correct").is_null(),
            "ended in an error and were not graded",
            "inspect_ai leaves them out of its metrics; here their problems have fewer graded attempts. Run "
            "'inspect eval-retry' on the log, or count them as wrong by filling 'is_correct'.",
        ),
        Trap(
            "partial_grades",
            ("grade", "is_correct"),
            pl.col("grade").is_not_null() & pl.col("is_correct").is_null(),
            "have a grade that is neither right nor wrong, such as P",
            "'is_correct' is null there, and curves leave them out; inspect_ai counts P as half. Decide with "
            "a column of your own: is_correct=pl.col('grade') == 'C'.",
        ),
        Trap(
            "graded_by_model",
            ("score_model_graded_qa",),
            pl.col("score_model_graded_qa").is_not_null(),
            "were graded by a model",
            "its grades are not exact, and its tokens are part of 'n_tokens' where it is the evaluated model "
            "and a sample has several turns.",
            severity="note",
        ),
    ),
    notices=_notices,
    unpacking=Unpacking(
        _is_log,
        _rows,
        "a log of inspect_ai ('header.json' and 'samples/' in a zip archive, or one JSON object with 'version', 'status' and 'eval')",
    ),
)
