"""What two checkouts make of all real answers: `python benchmarks/answer_changes.py OLD NEW`.

OLD and NEW are folders with a checkout each. All texts, answers and gold answers in ``../shared/data`` are
read once, with NEW; each checkout extracts, keys and grades them in a process of its own. Printed are, by
run, how many extractions, grades and keys change; how many pairs of strings of one problem share a key in
one checkout only; and examples of each class of change, to be judged by eye. The version at the beginning
of a key is no change.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

RUNS = Path(__file__).resolve().parents[2] / "shared" / "data"
TEXTS = ["run", "problem", "text", "gold"]
Text: TypeAlias = tuple[str, str, str | None]
"""Problem, text and gold answer."""
LONGEST = 90
MOST_MEMBERS = 400
"""Strings of one problem that are compared pair by pair; more are compared key by key."""


def attempts(path: Path) -> pl.DataFrame | None:
    """Read a run in a format that the package knows."""
    import ttsframe as tts  # that of the checkout under PYTHONPATH

    try:
        table = tts.read_trajectories(path)
    except tts.TtsframeError:
        return None
    names = ("problem_id", "completion", "gold", "answer", "solution")
    absent = [pl.lit(None).alias(name) for name in names if name not in table.columns]
    table = table.with_columns(absent).select(pl.col(names).cast(pl.String))
    return table.select(
        "answer",
        problem="problem_id",
        text="completion",
        gold=pl.coalesce("gold", "solution"),
    )


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def gsm8k_texts(path: Path) -> Iterator[Text]:
    for number, row in enumerate(rows_of(path)):
        yield str(number), row["ground_truth"], None
        for made in row.values():
            if isinstance(made, dict):
                yield str(number), made["solution"], row["ground_truth"]


def nemo_texts(path: Path) -> Iterator[Text]:
    for row in rows_of(path):
        yield row["id"], row["generation"], row["expected_answer"]


def lm_eval_texts(path: Path) -> Iterator[Text]:
    for row in rows_of(path):
        yield row["doc_hash"], row["resps"][0][0], row["target"]


def tree_texts(path: Path) -> Iterator[Text]:
    for row in json.loads(path.read_text(encoding="utf-8")):
        for text in row["ys"]:
            yield str(row["idx"]), text, None


def solution_texts(path: Path) -> Iterator[Text]:
    for number, row in enumerate(rows_of(path)):
        yield str(number), row["solution"], row["answer"]


def inspect_texts(path: Path) -> Iterator[Text]:
    for sample in json.loads(path.read_text(encoding="utf-8")).get("samples") or ():
        for choice in sample["output"]["choices"]:
            content = choice["message"]["content"]
            if isinstance(content, str) and isinstance(sample["target"], str):
                yield str(sample["id"]), content, sample["target"]


OTHER_TEXTS: dict[str, Callable[[Path], Iterator[Text]]] = {
    "gsm8k/*.jsonl": gsm8k_texts,
    "nemo_skills/*.jsonl": nemo_texts,
    "lm_eval/samples*.jsonl": lm_eval_texts,
    "tree_of_thought/*.json": tree_texts,
    "openr/test500.jsonl": solution_texts,
    "inspect_ai/*.json": inspect_texts,
}
"""Readers of the runs that other tools wrote, by where they lie."""


def aime_strings(path: Path) -> Iterator[tuple[str, str]]:
    for row in rows_of(path):
        yield str(row["problem_num"]), str(row["gold_answer"])
        for answer, _ in row["all_answers"]:
            yield str(row["problem_num"]), str(answer)


def loose_strings(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield "all", json.loads(line)


def labelled_strings(path: Path) -> Iterator[tuple[str, str]]:
    for row in rows_of(path):
        if row["kind"] == "pair":
            yield row["id"], row["gold"]
            yield row["id"], row["pred"]


OTHER_STRINGS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "boinf/*.jsonl": aime_strings,
    "answers/real_strings.jsonl": loose_strings,
    "answers/dev.jsonl": labelled_strings,
}
"""Readers of the files that hold answers only."""


def read_runs(folder: Path) -> None:
    """Write all texts and all strings of the real runs into the folder."""
    texts, strings = [], []
    for path in sorted(path for path in RUNS.rglob("*") if path.is_file()):
        run = pl.lit(str(path.relative_to(RUNS))).alias("run")
        read = attempts(path) if path.suffix in {".jsonl", ".json", ".parquet"} else None
        if read is None:
            reader = next((r for name, r in OTHER_TEXTS.items() if path.match(name)), None)
            found = list(reader(path)) if reader else []
            schema = dict.fromkeys(["problem", "text", "gold"], pl.String)
            read = pl.DataFrame(found, schema=schema, orient="row").with_columns(
                answer=pl.lit(None, dtype=pl.String)
            )
        texts.append(read.select(run, *TEXTS[1:]))
        strings += [read.select(run, "problem", string=column) for column in ("answer", "gold")]
        lister = next((r for name, r in OTHER_STRINGS.items() if path.match(name)), None)
        schema = {"problem": pl.String, "string": pl.String}
        listed = pl.DataFrame(list(lister(path)) if lister else [], schema=schema, orient="row")
        strings.append(listed.select(run, "problem", "string"))
    pl.concat(texts).filter(pl.col("text").is_not_null()).write_parquet(folder / "texts.parquet")
    pl.concat(strings).drop_nulls().write_parquet(folder / "strings.parquet")


def extract_texts(folder: Path, name: str) -> None:
    """Extract and grade with the checkout under PYTHONPATH."""
    import ttsframe as tts  # that of the checkout under PYTHONPATH

    texts = pl.read_parquet(folder / "texts.parquet")
    found = texts.with_columns(found=tts.extract_answer("text"))
    found = found.with_columns(is_right=tts.is_equivalent("found", "gold"))
    found.select("found", "is_right").write_parquet(folder / f"{name}.texts.parquet")


def key_strings(folder: Path, name: str) -> None:
    """Key all strings with the checkout under PYTHONPATH."""
    import ttsframe as tts  # that of the checkout under PYTHONPATH

    keyed = pl.read_parquet(folder / "every.parquet").with_columns(
        key=tts.answer_key("string").str.replace(r"^[^:]*:", ""),
        kind=tts.answers.answer_kind("string").cast(pl.String),
    )
    keyed.write_parquet(folder / f"{name}.strings.parquet")


STEPS: dict[str, Callable[..., None]] = {
    "read": read_runs,
    "extract": extract_texts,
    "key": key_strings,
}


def run_checkout(checkout: Path, *arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--step", *arguments],
        env=environment,
        check=True,
    )


def short(text: str | None) -> str:
    if text is None:
        return "null"
    shown = repr(text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 20]} ... {shown[-15:]}"


def change_of(old: str | None, new: str | None) -> str:
    """Name the class of a changed extraction."""
    if old is None:
        return "found now"
    if new is None:
        return "null now"
    if old in new:
        return "longer now"
    return "shorter now" if new in old else "another answer"


def print_extractions(folder: Path, n_examples: int) -> None:
    texts = pl.read_parquet(folder / "texts.parquet")
    old, new = (pl.read_parquet(folder / f"{name}.texts.parquet") for name in ("old", "new"))
    both = texts.with_columns(
        old=old["found"], new=new["found"], was_right=old["is_right"], is_right=new["is_right"]
    )
    both = both.with_columns(changed=pl.col("old").ne_missing(pl.col("new")))
    table = both.group_by("run", maintain_order=True).agg(
        n_texts=pl.len(),
        n_changed=pl.col("changed").sum(),
        found_now=(pl.col("old").is_null() & pl.col("new").is_not_null()).sum(),
        null_now=(pl.col("new").is_null() & pl.col("old").is_not_null()).sum(),
        right_now=(pl.col("is_right") & ~pl.col("was_right")).sum(),
        wrong_now=(~pl.col("is_right") & pl.col("was_right")).sum(),
        n_right_old=pl.col("was_right").sum(),
        n_right_new=pl.col("is_right").sum(),
    )
    print("Extractions and grades by run")
    print(table)
    classes = defaultdict(list)
    for run, text, gold, was, now, was_right, is_right in (
        both
        .filter(pl.col("changed") | pl.col("was_right").ne_missing(pl.col("is_right")))
        .select("run", "text", "gold", "old", "new", "was_right", "is_right")
        .rows()
    ):
        grade = f"{was_right} -> {is_right}"
        change = change_of(was, now) if was != now else "same answer"
        classes[change, grade].append((was, now, gold, text, run))
    for (change, grade), members in sorted(classes.items(), key=lambda item: -len(item[1])):
        print(f"\n== extraction: {change}; right: {grade}: {len(members)}")
        shown: set[tuple[str | None, str | None]] = set()
        for was, now, gold, text, run in members:
            if (was, now) in shown:
                continue
            if len(shown) == n_examples:
                break
            shown.add((was, now))
            ending = short(text[-LONGEST:])
            print(f"  {short(was)} -> {short(now)} (gold {short(gold)}) {run}\n      {ending}")


def pairs_merged(keys: dict[str, str | None], members: list[str]) -> set[tuple[str, str]]:
    """Return the pairs of strings that share a key."""
    groups = defaultdict(list)
    for member in members:
        if keys[member] is not None:
            groups[keys[member]].append(member)
    if len(members) <= MOST_MEMBERS:
        return {pair for group in groups.values() for pair in itertools.combinations(group, 2)}
    return {(group[0], other) for group in groups.values() for other in group[1:]}


def print_keys(folder: Path, n_examples: int) -> None:
    old, new = (pl.read_parquet(folder / f"{name}.strings.parquet") for name in ("old", "new"))
    was = dict(zip(old["string"], old["key"], strict=True))
    now = dict(zip(new["string"], new["key"], strict=True))
    was_kind = dict(zip(old["string"], old["kind"], strict=True))
    now_kind = dict(zip(new["string"], new["kind"], strict=True))
    problems = pl.read_parquet(folder / "grouped.parquet")
    rows, gained, lost = [], [], []
    for (run,), group in problems.group_by("run", maintain_order=True):
        n_gained, n_lost = 0, 0
        for members in group["string"].to_list():
            before, after = pairs_merged(was, members), pairs_merged(now, members)
            new_pairs = {(a, b) for a, b in after - before if was[a] != was[b]}
            old_pairs = {(a, b) for a, b in before - after if now[a] != now[b]}
            n_gained, n_lost = n_gained + len(new_pairs), n_lost + len(old_pairs)
            gained += [(run, *pair) for pair in sorted(new_pairs)]
            lost += [(run, *pair) for pair in sorted(old_pairs)]
        distinct = set(itertools.chain.from_iterable(group["string"].to_list()))
        n_changed = sum(was[string] != now[string] for string in distinct)
        rows.append((run, len(distinct), n_changed, n_gained, n_lost))
    names = ["run", "n_strings", "n_keys_changed", "pairs_merged_now", "pairs_split_now"]
    print("\nKeys by run; pairs within a problem")
    print(pl.DataFrame(rows, schema=names, orient="row"))
    for title, pairs in (("merged now", gained), ("split now", lost)):
        print(f"\n== pairs {title}: {len(pairs)}")
        distinct_pairs = dict.fromkeys((a, b) for _, a, b in pairs)
        for a, b in itertools.islice(distinct_pairs, 10 * n_examples):
            print(f"  {short(a)} and {short(b)}: {short(was[a])} / {short(was[b])} -> "
                  f"{short(now[a])} / {short(now[b])}")  # fmt: skip
    classes = defaultdict(list)
    for string, key in was.items():
        if key != now[string]:
            classes[was_kind[string], now_kind[string]].append(string)
    for (before, after), members in sorted(classes.items(), key=lambda item: -len(item[1])):
        print(f"\n== keys: {before} -> {after}: {len(members)}")
        for string in members[:: max(1, len(members) // n_examples)][:n_examples]:
            print(f"  {short(string)}: {short(was[string])} -> {short(now[string])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--examples", type=int, default=12, help="examples of each class")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=60, tbl_width_chars=200, tbl_hide_dataframe_shape=True):  # fmt: skip
        folder = Path(scratch)
        run_checkout(options.new, "read", scratch)
        for name in ("old", "new"):
            run_checkout(getattr(options, name), "extract", scratch, name)
        texts = pl.read_parquet(folder / "texts.parquet")
        extracted = [
            texts.select("run", "problem").with_columns(
                string=pl.read_parquet(folder / f"{name}.texts.parquet")["found"]
            )
            for name in ("old", "new")
        ]
        strings = pl.concat([pl.read_parquet(folder / "strings.parquet"), *extracted]).drop_nulls()
        grouped = strings.group_by("run", "problem", maintain_order=True).agg(
            pl.col("string").unique(maintain_order=True)
        )
        grouped.write_parquet(folder / "grouped.parquet")
        strings.select(pl.col("string").unique(maintain_order=True)).write_parquet(
            folder / "every.parquet"
        )
        for name in ("old", "new"):
            run_checkout(getattr(options, name), "key", scratch, name)
        print_extractions(folder, options.examples)
        print_keys(folder, options.examples)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        step, scratch, *name = sys.argv[2:]
        STEPS[step](Path(scratch), *name)
    else:
        main()
