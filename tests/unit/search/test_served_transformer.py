"""A model that computes: a transformer behind HTTP writes and scores the steps of a search."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import click
import model_servers as fake
import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal
from tiny_transformer import SEPARATOR, TransformerServer

import ttsframe as tts
from ttsframe.cli._console import Console
from ttsframe.cli._servers import make_servers, server_options, watching

PROBLEMS = pl.DataFrame({
    "problem_id": ["a", "b", "c"],
    "problem": ["1 + 2?", "3 + 4?", "5 - 6?"],
    "gold": ["3", "7", "-1"],
})


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def options(url: str) -> list[str]:
    return [
        "--generator", f"{url}/v1", "--model", "tiny", "--prompt", r"{problem}\n\n", "--max-tokens", "24",
        "--prm", url, "--prm-model", "judge", "--n-workers", "4",
    ]  # fmt: skip


def test_a_search_is_killed_and_goes_on(tmp_path: Path) -> None:
    PROBLEMS.write_ndjson(tmp_path / "problems.jsonl")

    def start(folder: str, url: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ttsframe", "search", "problems.jsonl", *options(url)]
        command += ["--policy", "dvts", "--width", "4", "--seed", "5", "-o", folder]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)

    with fake.serving(plain := TransformerServer()) as url:
        assert start("whole", url).wait(300) == 0
    n_whole = len(plain.bodies)
    # The server answers two thirds of it and falls silent, so the kill comes in the middle.
    models = TransformerServer()
    models.holds = lambda _: len(models.bodies) > n_whole * 2 // 3
    with fake.serving(models) as url:
        process = start("killed", url)
        until = time.monotonic() + 200
        while len(models.bodies) <= n_whole * 2 // 3 and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
        assert process.wait(60) < 0
    assert (tmp_path / "killed" / "unfinished").is_dir()
    assert not (tmp_path / "killed" / "nodes.parquet").exists()
    with fake.serving(rest := TransformerServer()) as url:
        assert start("killed", url).wait(300) == 0
    assert 0 < len(rest.bodies) < n_whole
    whole, resumed = (
        pl.read_parquet(tmp_path / name / "nodes.parquet") for name in ("whole", "killed")
    )
    assert_frame_equal(whole, resumed)
    assert whole["step_score"].n_unique() > whole.height / 2
    assert whole["round"].max() > 3
    steps = whole.filter(finish_reason="step")
    assert steps.height
    assert steps["text"].str.ends_with(SEPARATOR).all()
    solutions = pl.read_parquet(tmp_path / "whole" / "trajectories.parquet")
    assert solutions["problem_id"].n_unique() == 3
    assert solutions["gold"].null_count() == 0


def test_the_scores_are_those_of_the_transformer(capsys: pytest.CaptureFixture[str]) -> None:
    models = TransformerServer()
    problems = pl.DataFrame({"problem_id": ["a"], "problem": ["1 + 2?"]})
    with fake.serving(models) as url:
        import click

        made = []

        @click.command()
        @server_options
        def run(**found: object) -> None:
            made.append(make_servers(**found))  # type: ignore[arg-type]

        prices = ["--price-in", "1000", "--price-out", "2e6", "--prm-price", "30"]
        result = CliRunner().invoke(run, [*options(url), *prices], catch_exceptions=False)
        assert result.exit_code == 0
        about, generator, prm, _ = made[0]
        policy = tts.search.Beam(4, max_rounds=3)
        with watching(Console(), made[0]):
            nodes = tts.search.search(problems, generator, prm, policy, seed=1)
    said = capsys.readouterr().err
    n_asked = sum(path == "/v1/completions" for path, _ in models.bodies)
    assert f"Note: Model: {n_asked:,} requests, " in said
    assert f"{nodes['n_tokens'].sum():,} generated tokens. Verifier: " in said
    cost = (
        1e-3 * generator.usage.n_prompt_tokens
        + 2 * generator.usage.n_completion_tokens
        + 3e-5 * prm.usage.n_prompt_tokens
    )
    assert cost > 0
    assert f" Cost: {cost:,.4g}.\n" in said
    assert "prices" not in str(about)
    assert about["model"] == "tiny"
    assert url not in str(about)
    first = nodes.filter(pl.col("step_score").is_not_null(), depth=1).row(0, named=True)
    step = first["text"].removesuffix(SEPARATOR)
    assert first["step_score"] == pytest.approx(models.judge.value(f"1 + 2?{SEPARATOR}{step}"))


@pytest.mark.parametrize(
    ("left_out", "more", "message"),
    [
        ("--prm", [], "--prm URL is missing"),
        ("--generator", [], "--generator URL is missing"),
        ("--prompt", [], "neither is given"),
        ("", ["--system", "x"], "--system needs --chat-template"),
        ("", ["--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
        ("", ["--generator-style", "chat"], "do not belong to --generator-style chat"),
    ],
)
def test_options_that_do_not_fit_are_refused(left_out: str, more: list[str], message: str) -> None:
    @click.command()
    @server_options
    def run(**found: object) -> None:
        make_servers(**found)  # type: ignore[arg-type]

    given = options("http://localhost:1")
    if left_out:
        at = given.index(left_out)
        del given[at : at + 2]
    result = CliRunner().invoke(run, [*given, *more])
    assert result.exit_code == 2
    assert message in result.output
