"""lm-evaluation-harness: samples_*.jsonl, a row per document with its responses.

A row has one value per metric, so grades of single attempts are held only where each problem has one. The
filter is "none", whose response is the first. Written by hand from `lm_eval/evaluator.py` (EleutherAI/lm-evaluation-harness,
main, function `evaluate`) and compared with a real file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl

from ttsframe.readers.trajectory_writers.writer import (
    Writer,
    check_json,
    group_problems,
    holds_numbers,
    one_run,
)
from ttsframe.schema import require_columns


def _write(attempts: pl.LazyFrame, path: Path) -> list[str]:
    require_columns(attempts, ["problem", "completion"])
    rows = one_run(attempts)
    is_single = rows["problem_id"].n_unique() == rows.height
    lost = [] if holds_numbers(rows) else ["attempt"]
    graded = "is_correct" in rows.columns and is_single
    taken = ["attempt", *(["is_correct"] if graded else [])]
    lists = ["completion", *(["is_correct"] if graded else [])]
    problems = group_problems(rows, lists, taken)
    check_json(problems.frame)
    is_number = problems.frame.schema["problem_id"].is_integer()
    with path.open("w", encoding="utf-8") as stream:
        for place, row in enumerate(problems.frame.to_dicts()):
            doc = {"problem_id": row["problem_id"]} | {name: row[name] for name in problems.carried}
            target = "" if row.get("gold") is None else str(row["gold"])
            problem = row["problem"] or ""
            sample = {
                "doc_id": row["problem_id"] if is_number else place,
                "doc": doc,
                "target": target,
                "arguments": {"gen_args_0": {"arg_0": problem, "arg_1": {"until": []}}},
                "resps": [row["completion"]],
                "filtered_resps": row["completion"][:1],
                "filter": "none",
                "metrics": ["exact_match"] if graded else [],
                "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
                "prompt_hash": _hash(problem),
                "target_hash": _hash(target),
            }
            if not is_number:  # the tool numbers documents; our reader takes this id
                sample["problem_id"] = row["problem_id"]
            if graded:
                grade = row["is_correct"][0]
                sample["exact_match"] = None if grade is None else float(grade)
            stream.write(json.dumps(sample, ensure_ascii=False) + "\n")
    return [*lost, *problems.lost]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


WRITER = Writer("lm-evaluation-harness: samples, a row per document (JSON lines)", _write, ".jsonl")
