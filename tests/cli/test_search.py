"""``ttsframe search``: what it writes is what the library returns, and a command that was stopped goes on."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.cli import _searches
from ttsframe.cli._servers import make_servers
from ttsframe.cli.search import search as search_command
from ttsframe.search import replay, search, simulate, simulate_bank, to_trajectories

Run = Callable[..., Result]
S = tts.search


@pytest.fixture
def bank() -> pl.DataFrame:
    """Write a bank and its problems."""
    problems, nodes = simulate_bank(30, n_children=(8, 4), seed=0)
    nodes.write_parquet("bank.parquet")
    problems.select("problem_id", "gold").write_csv("problems.csv")
    return nodes


def test_it_writes_the_nodes_and_solutions_that_the_library_returns(ttsframe: Run) -> None:
    command = "search --simulate 8 --set accuracy=0.3,noise=2 --set trap_rate=0.5 --policy beam,preset:rebase"
    result = ttsframe(*command.split(), "--width", "4,8", "--seed", "3", "-o", "run")
    assert result.exit_code == 0, result.output
    nodes, solutions = (
        pl.read_parquet(f"run/{name}.parquet") for name in ("nodes", "trajectories")
    )
    faults = S.VerifierFaults(noise=2, trap_rate=0.5)
    world = simulate(8, seed=0, accuracy=0.3, faults=faults)
    for label, width, policy in (
        ("beam", 8, S.Beam(8)),
        ("preset:rebase", 4, S.preset("rebase", 4)),
    ):
        expected = search(*world, policy, seed=3)
        run = {"policy": label, "width": width, "seed": 3}
        assert_frame_equal(nodes.filter(**run).drop(*run), expected)
        found = to_trajectories(expected, policy=policy, problems=world.problems)
        assert_frame_equal(solutions.filter(**run).drop(*run), found.drop("policy", "width"))
    assert nodes.select("policy", "width").n_unique() == 4
    assert sorted(path.name for path in Path("run").iterdir()) == [
        "about.json",
        "nodes.parquet",
        "trajectories.parquet",
    ]
    again = ttsframe(*command.split(), "--width", "4,8", "--seed", "3", "-o", "run")
    assert "holds these searches already" in again.stderr
    assert again.stdout == result.stdout


def test_the_curve_is_that_of_the_solutions(ttsframe: Run) -> None:
    result = ttsframe(*[
        "search",
        "--simulate",
        "20",
        "--policy",
        "best_of_n",
        "--width",
        "2,4",
        "--seed",
        "0,1",
        "-o",
        "run",
        "--json",
    ])
    document = json.loads(result.stdout)
    answers = (
        pl
        .read_parquet("run/trajectories.parquet")
        .pipe(tts.score_trajectories)
        .pipe(tts.select_answers, selectors="best_of_n", by=("width", "seed"))
    )
    for row in document["curve"]:
        if row["selector"] == "best_of_n":
            right = answers.filter(width=row["budget"])["is_correct"].mean()
            assert row["accuracy"] == pytest.approx(right)
    costs = {row["width"]: row for row in document["searches"]}
    nodes = pl.read_parquet("run/nodes.parquet").filter(width=4)
    assert costs[4]["tokens"] == pytest.approx(nodes["n_tokens"].sum() / 40)


def test_a_replay_gives_solutions_of_the_bank_with_their_texts(
    ttsframe: Run, bank: pl.DataFrame
) -> None:
    command = "search problems.csv --replay bank.parquet --policy rebase --width 4 -o run"
    result = ttsframe(*command.split())
    assert result.exit_code == 0, result.output
    solutions = pl.read_parquet("run/trajectories.parquet")
    expected = replay(bank, S.Rebase(4), seed=0)
    assert_frame_equal(
        pl.read_parquet("run/nodes.parquet").drop("policy", "width", "seed"), expected.nodes
    )
    texts = to_trajectories(bank).select("node_id", text="completion")
    joined = solutions.join(texts, on="node_id", how="left")
    assert joined.select((pl.col("completion") == pl.col("text")).all()).item()
    assert "best_of_n (score)" in result.stdout


def test_problems_that_ran_short_give_bounds_and_no_curve(
    ttsframe: Run, bank: pl.DataFrame
) -> None:
    command = "search problems.csv --replay bank.parquet --policy beam --width 4,16 -o run"
    result = ttsframe(*command.split(), "--json")
    document = json.loads(result.stdout)
    assert {row["budget"] for row in document["curve"]} == {4}
    assert {(row["width"], row["lowest"], row["highest"]) for row in document["bounds"]} == {
        (16, 0.0, 1.0)
    }
    assert [row["n_short"] for row in document["searches"]] == [0, bank["problem_id"].n_unique()]
    assert "Accuracy if" in ttsframe(*command.split()).stdout


def test_without_gold_there_are_costs_and_no_accuracy(ttsframe: Run, bank: pl.DataFrame) -> None:
    result = ttsframe(*[
        "search",
        "--replay",
        "bank.parquet",
        "--policy",
        "beam",
        "--width",
        "4",
        "-o",
        "run",
        "--json",
    ])
    document = json.loads(result.stdout)
    assert document["curve"] is None
    assert document["searches"][0]["steps"] == pytest.approx(8.0)
    assert bank.height


def test_a_command_that_was_stopped_goes_on(ttsframe: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["search", "--simulate", "6", "--policy", "best_of_n,beam,dvts", "--width", "4"]
    whole = ttsframe(*command, "-o", "whole")
    assert whole.exit_code == 0
    searched: list[str] = []

    def stopped(*args: object, **options: object) -> pl.DataFrame:
        policy = args[3]
        assert isinstance(policy, S.Policy)
        searched.append(policy.name)
        if searched.count("beam") == 1 and policy.name == "beam":
            raise KeyboardInterrupt
        return search(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(_searches, "search", stopped)
    first = ttsframe(*command, "-o", "run")
    assert first.exit_code == 130
    assert not Path("run/nodes.parquet").exists()
    second = ttsframe(*command, "-o", "run")
    assert second.exit_code == 0, second.output
    assert searched == ["best_of_n", "beam", "beam", "dvts"]
    for name in ("nodes", "trajectories"):
        assert_frame_equal(
            pl.read_parquet(f"run/{name}.parquet"), pl.read_parquet(f"whole/{name}.parquet")
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "none was given"),
        ("--simulate 3 --replay bank.parquet", "--simulate and --replay were given"),
        ("problems.csv --simulate 3", "PROBLEMS is no input of --simulate"),
        ("--replay bank.parquet --set noise=1", "belong to --simulate"),
        ("--simulate 3 --policy bean", "Did you mean 'beam'"),
        ("--simulate 3 --policy preset:beam", "Did you mean 'preset:ets_beam'"),
        ("--simulate 3 --policy os:getcwd", "cannot be called with a width"),
        ("--simulate 3 --policy builtins:str", "returns str, must return a tts.search.Policy"),
        ("--simulate 3 --width 4,x", "'x' is not a whole number from 1"),
        ("--simulate 3 --set nois=1", "Did you mean 'noise'"),
        ("--simulate 3 --set noise=a", "'a' is not a number"),
        ("--simulate 3 --set noise=1,noise=2", "'noise' is given twice"),
        ("--simulate 3 --set noise=-1", "noise == -1, must be at least 0"),
        ("--replay bank.parquet --lookahead 2 --policy beam", "must be 0 in a replay"),
        ("--replay problems.csv --policy beam", "Hint"),
        ("--generator http://localhost:1/v1", "PROBLEMS is missing"),
        ("problems.csv --generator http://localhost:1/v1 --prm http://localhost:1", "'problem'"),
    ],
)
def test_bad_input_is_one_message_and_leaves_no_folder(
    ttsframe: Run, bank: pl.DataFrame, options: str, message: str
) -> None:
    assert bank.height
    result = ttsframe("search", *options.split(), "-o", "run")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not Path("run").exists()


def test_a_folder_of_other_searches_or_files_is_left_alone(ttsframe: Run) -> None:
    ttsframe(*["search", "--simulate", "3", "--policy", "beam", "--width", "4", "-o", "run"])
    before = Path("run/nodes.parquet").read_bytes()
    result = ttsframe(*[
        "search",
        "--simulate",
        "3",
        "--policy",
        "beam",
        "--width",
        "8",
        "-o",
        "run",
    ])
    assert result.exit_code == 2
    assert "holds other searches: width was [4], is [8]" in result.stderr
    assert Path("run/nodes.parquet").read_bytes() == before
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("keep", encoding="utf-8")
    result = ttsframe(*["search", "--simulate", "3", "--policy", "beam", "-o", "mine"])
    assert "holds other files" in result.stderr
    Path("run/about.json").write_text("{", encoding="utf-8")
    result = ttsframe(*[
        "search",
        "--simulate",
        "3",
        "--policy",
        "beam",
        "--width",
        "4",
        "-o",
        "run",
    ])
    assert "is damaged" in result.stderr


def test_a_file_of_several_searches_is_no_bank(ttsframe: Run) -> None:
    ttsframe(*["search", "--simulate", "3", "--policy", "beam", "--width", "4,8", "-o", "run"])
    result = ttsframe(*[
        "search",
        "--replay",
        "run/nodes.parquet",
        "--policy",
        "beam",
        "-o",
        "other",
    ])
    assert "holds 2 searches, must hold one bank" in result.stderr


PAGE = (Path(__file__).parents[2] / "docs" / "manual" / "search.md").read_text(encoding="utf-8")
DOCUMENTED = [
    shlex.split(line)
    for line in re.findall(r"^\$ ttsframe search (.*)$", PAGE.replace("\\\n", " "), re.MULTILINE)
]


@pytest.mark.parametrize("command", DOCUMENTED, ids=lambda command: " ".join(command)[:40])
def test_the_commands_of_the_page_name_options_that_exist(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Llama-3.2-1B-Instruct").mkdir()
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    Path("chat_template.jinja").write_text(template)
    Path("Llama-3.2-1B-Instruct/tokenizer_config.json").write_text(
        json.dumps({"chat_template": template})
    )
    for name in ("problems.jsonl", "questions.parquet", "bank.parquet"):
        Path(name).write_text("")
    found = search_command.make_context("search", [*command]).params
    if found["generator"] is not None:
        asked = {name: found[name] for name in signature(make_servers).parameters}
        assert make_servers(**asked).about["model"] == (found["model"] or "")


def test_recipes_with_servers_are_marked_as_not_run() -> None:
    served = [command for command in DOCUMENTED if "--generator" in command]
    assert ["--generator-style" in command for command in served] == [False, True]
    assert PAGE.index("have not been run") < PAGE.index("--generator http")
