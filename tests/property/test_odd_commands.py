"""Commands with odd options on odd runs: each succeeds, or says in our words what is wrong."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from random import Random
from typing import Final

import polars as pl
import pytest
from click.testing import CliRunner

import ttsframe as tts
from ttsframe.cli import cli

_NO_WORDS_OF_OURS: Final = re.compile(
    r"a fault of ttsframe|Traceback|duplicated? |more than one occurrence|cannot cast|unhashable|"
    r"Resolved plan|InvalidOperation|SchemaError|ComputeError|panicked|is empty sequence"
)
_ROW: Final = pl.int_range(pl.len())
_OF_PROBLEM: Final = pl.col("problem_id").hash(1)


def _cycle(values: list[str | None]) -> pl.Expr:
    """Repeat some texts."""
    return (_ROW % len(values)).replace_strict(dict(enumerate(values)), return_dtype=pl.String)


_CHANGES: Final[dict[str, list[pl.Expr]]] = {
    "no scores": [pl.lit(None, pl.Float64).alias("score")],
    "logits": [(_ROW * 0.37 - 3).alias("score")],
    "NaN": [pl.when(_ROW % 4 > 0).then("score").otherwise(float("nan")).alias("score")],
    "equal scores": [pl.lit(1.0).alias("score")],
    "no steps": [pl.lit(None, pl.List(pl.Float64)).alias("step_scores")],
    "odd steps": [pl.concat_list(_ROW - 2.0, pl.lit(float("nan"))).alias("step_scores")],
    "some grades": [pl.when(_ROW % 3 > 0).then("is_correct").alias("is_correct")],
    "no answers": [pl.lit(None, pl.String).alias(name) for name in ("answer", "answer_key")],
    "models": [_cycle(["a", "b", None, "", "=1+1"]).alias("model")],
    "categories": [(_ROW % 2).cast(pl.String).cast(pl.Categorical).alias("model")],
    "seeds": [(_ROW % 2).alias("seed")],
    "levels": [(_OF_PROBLEM % 5).cast(pl.UInt8).alias("level"), pl.lit("x").alias("subject")],
    "dates": [pl.date(2024, 1 + _ROW % 2, 1).alias("day"), _ROW.cast(pl.Decimal(9, 2)).alias("price")],
    "tree": [pl.lit(value=False).alias("is_exchangeable")],
    "search": [pl.lit(value=False).alias("is_exchangeable"), pl.lit("beam").alias("policy"), pl.lit(8).alias("width")],
    "no tokens": [pl.lit(0, pl.Int64).alias("n_tokens")],
    "ends": [_cycle(["stop", "length", None, "error"]).alias("finish_reason")],
    "texts": [(_OF_PROBLEM % 4).alias("text")],
    "names of ours": [pl.lit(1).alias("run"), pl.lit(3).alias("budget"), pl.lit("x").alias("selector")],
    "files": [_cycle(["x/a.jsonl", "x/b.jsonl"]).alias("source_file")],
}  # fmt: skip
_DROPPED: Final = (
    ("score",),
    ("step_scores",),
    ("gold", "gold_key"),
    ("is_correct", "gold", "gold_key"),
)
_VALUES: Final[dict[str, list[str]]] = {
    "--budgets": ["1", "1,2,4", "4", "all", "3,64", "8,2"],
    "--reductions": ["last", "min,prod", "mean"],
    "--weights": ["score", "sigmoid", "softmax", "logit"],
    "--style": ["boxed", "last_number"],
    "--answer-policy": ["percent=fraction"],
    "--confidence-level": ["0.9", "0.5", "0.999"],
    "--correction": ["holm", "none"],
    "--mcnemar": ["exact"],
    "--cluster-test": ["wild_bootstrap"],
    "--estimators": ["pass@k", "pass^k,g_pass@k", "maj@k"],
    "--sections": ["votes", "health,accuracy", "comparison,ranking", "steps,search"],
    "--reference": ["GPT=0.5"],
    "--table": ["votes"],
    "--overwrite": ["is_correct", "score", "answer"],
    "--reduction": ["min", "last"],
    "--baseline": ["a", "1", "oracle", "best_of_n"],
    "--to": ["long_form", "datasets", "search_and_learn", "lm_eval", "every_eval_ever"],
    "--selectors": [],
    "--by": [],
    "--column": [],
    "--cluster": [],
    "--replicates": [],
}
_OUTPUTS: Final = {
    "report": ["page.html"],
    "curve": ["t.csv", "t.md", "t.tex", "t.html", "t.parquet"],
    "compare": ["t.csv", "t.jsonl"],
    "rank": ["t.md"],
    "vote": ["out.parquet", "out.csv", "out.jsonl"],
    "score": ["out.parquet", "out.jsonl", "out.csv"],
    "convert": ["out.parquet", "out.jsonl", "out.arrow", "out.csv"],
}
_COMMANDS: Final = (*_OUTPUTS, "report", "validate")


def odd_run(rng: Random) -> pl.DataFrame:
    """Return a run with up to three oddities, or a table of counts."""
    if not rng.randrange(16):
        n = [rng.choice([0, 3, 8]) for _ in range(9)]
        c = [rng.randint(0, each) for each in n]
        return pl.DataFrame({"problem_id": [f"p{i}" for i in range(9)], "n": n, "c": c})
    run = tts.simulate_trajectories(
        rng.choice([1, 2, 5, 30]),
        rng.choice([1, 2, 3, 8, 17]),
        seed=rng.randrange(50),
        keys=True,
        missing_share=rng.choice([0.0, 0.1, 1.0]),
    )
    for name in rng.sample([*_CHANGES], rng.randrange(4)):
        run = run.with_columns(_CHANGES[name])
    if not rng.randrange(3):
        run = run.drop(rng.choice(_DROPPED))
    return run if rng.randrange(6) else run.sample(fraction=0.7, seed=rng.randrange(9))


def written(run: pl.DataFrame, stem: Path, rng: Random) -> Path:
    """Write a run in one of the containers that hold it."""
    kind = rng.choice(["parquet", "parquet", "jsonl", "csv", "arrow"])
    path = stem.with_suffix(f".{kind}")
    if kind == "parquet":
        run.write_parquet(path)
    elif kind == "arrow":
        run.write_ipc(path)
    elif kind == "csv":
        run.select(pl.exclude(pl.List(pl.Float64))).write_csv(path)
    else:
        run.cast({pl.Decimal: pl.Float64}).write_ndjson(path)
    return path


def odd_command(files: list[str], columns: list[str], rng: Random) -> list[str]:
    """Put a command together from its own options."""
    name = rng.choice(_COMMANDS)
    known = {option for parameter in cli.commands[name].params for option in parameter.opts}
    arguments = [name, *rng.sample(files, rng.choice([1, 1, 2, 3]))]
    selectors = [*tts.SELECTORS]
    for option in sorted(known & _VALUES.keys()):
        is_column = not _VALUES[option] and option != "--selectors"
        if rng.random() < (0.3 if is_column else 0.15):
            value = rng.choice(_VALUES[option] or [*columns, "selector", "budget", "source_file"])
            if option == "--selectors":
                value = ",".join(rng.sample(selectors, rng.randint(1, 3)))
            arguments += [option, value]
    outputs = _OUTPUTS.get(name)
    if outputs and (name in {"report", "score", "convert"} or not rng.randrange(3)):
        arguments += ["-o", rng.choice(outputs)]
        arguments += ["--replace"] if "--replace" in known else []
    return [*arguments, "--json"] if not rng.randrange(6) else arguments


def failures(n_rounds: int, seed: int, folder: Path) -> list[str]:
    """Run eight commands on each of some sets of three files; return what no user should see."""
    rng = Random(seed)
    found = []
    for number in range(n_rounds):
        runs = [odd_run(rng) for _ in range(3)]
        files = [written(run, folder / f"run{number}_{i}", rng).name for i, run in enumerate(runs)]
        columns = sorted({name for run in runs for name in run.columns})
        for _ in range(8):
            arguments = odd_command(files, columns, rng)
            for path in folder.glob("t.*"):
                path.unlink()
            result = CliRunner().invoke(cli, arguments, prog_name="ttsframe")
            is_expected = result.exit_code in ((0, 1, 2) if arguments[0] == "validate" else (0, 2))
            says_it = bool(result.stderr.strip()) or result.exit_code != 2
            if not (is_expected and says_it) or _NO_WORDS_OF_OURS.search(result.stderr):
                found.append(f"{' '.join(arguments)}\n{result.exception!r}\n{result.stderr[-800:]}")
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def check(n_rounds: int, seed: int, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = failures(n_rounds, seed, folder)
    assert found == [], "\n\n".join(found)


@pytest.mark.parametrize("seed", range(4))
def test_odd_commands_on_odd_runs(seed: int, folder: Path) -> None:
    check(10, seed, folder)


@pytest.mark.slow
def test_ten_thousand_odd_commands(folder: Path) -> None:
    check(1_250, int(os.environ.get("TTSFRAME_SEED", "100")), folder)
