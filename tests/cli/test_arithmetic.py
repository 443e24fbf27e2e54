"""Models that were trained on arithmetic: what is known of them, and a search with them over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import arithmetic_models as models
import arithmetic_task as task
import model_servers as fake
import numpy as np
import numpy_transformer as net
import polars as pl
import pytest
from click.testing import Result
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe._draws import uniforms

Run = Callable[..., Result]


def problems(n: int, digits: tuple[int, ...] = task.DIGITS) -> pl.DataFrame:
    draw, parts = np.random.default_rng(11), []
    for number in digits:
        a, b = task.numbers(draw, n, number, held_out=True)
        parts.append(pl.DataFrame({"a": a, "b": b}))
    return pl.concat(parts).select(
        problem_id=pl.format("{}", pl.int_range(pl.len())),
        problem=pl.format("{}*{}", "a", "b"),
        gold=(pl.col("a") * pl.col("b")).cast(pl.String),
    )


class ArithmeticServer(fake.Models):
    """Speaks vLLM's /v1/completions and /pooling with the trained models behind them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.writer = models.Writer(models.load("arithmetic_generator", np.float64))
        self.judge = models.Judge(models.load("arithmetic_verifier", np.float64))

    def completions(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["temperature"] == 1
        seeds = np.array([body["seed"]], dtype=np.uint64)
        until = "step" if body.get("stop") else "end"
        [found] = self.writer.write([body["prompt"]], [body["n"]], seeds, until=until, greedy=False)
        choices = []
        for index, ids in enumerate(found):
            reason = models.finish(ids)
            choices.append({
                "index": index,
                "text": models.without_end(ids),
                "finish_reason": "stop" if reason == "step" else reason,
                "stop_reason": task.SEPARATOR if reason == "step" else None,
                "token_ids": ids,
            })
        total = sum(map(len, found))
        return {"choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": total}}

    def pooling(self, body: dict[str, Any]) -> dict[str, Any]:
        _, user, assistant = body["messages"]
        steps = assistant["content"].split("<extra_0>")[:-1]
        texts = [task.SEPARATOR.join([user["content"], *steps[: i + 1]]) for i in range(len(steps))]
        scores = self.judge.values(texts)
        return {"data": [{"index": 0, "data": [[1 - s, s] for s in scores]}]}


def test_a_search_over_http_is_that_in_this_process(
    ttsframe: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    asked = problems(2)
    asked.write_ndjson("problems.jsonl")
    with fake.serving(server := ArithmeticServer()) as url:
        result = ttsframe(
            "search", "problems.jsonl", "--policy", "dvts", "--width", "8", "--seed", "1", "-o", "run",
            "--generator", f"{url}/v1", "--model", "arithmetic", "--prompt", r"{problem}\n\n",
            "--temperature", "1", "--max-tokens", "16", "--prm", url, "--prm-model", "judge",
        )  # fmt: skip
    assert result.exit_code == 0, result.output
    generator = models.LocalGenerator(server.writer)
    expected = tts.search.search(asked, generator, server.judge, tts.search.DVTS(8), seed=1)
    nodes = pl.read_parquet("run/nodes.parquet").select(expected.columns)
    # A server returns the scores of all steps, a local verifier that of the last one.
    assert_frame_equal(
        nodes.drop("score_vector", "n_prompt_tokens_new"),
        expected.drop("score_vector", "n_prompt_tokens_new"),
    )
    solutions = tts.score_trajectories(pl.read_parquet("run/trajectories.parquet"))
    right = tts.select_answers(solutions, selectors="weighted_vote")["is_correct"]
    assert right.sum() >= 4
    page = ttsframe("report", "run", "-o", "page.html")
    assert page.exit_code == 0, page.output
    assert Path("page.html").stat().st_size > 10_000


def test_accuracy_falls_with_the_number_of_digits() -> None:
    weights, found = models.load("arithmetic_generator"), []
    for digits in task.DIGITS:
        draw = np.random.default_rng(digits)
        ids = task.solutions(*task.numbers(draw, 64, digits, held_out=True), digits)
        last, _ = net.forward(weights, ids[:, :-1], n_heads=models.N_HEADS)
        chances = net.softmax(last[:, task.HEAD - 1 :] @ weights["next"])
        right = np.take_along_axis(chances, ids[:, task.HEAD :, None], axis=-1)[..., 0]
        found.append(float(right.prod(axis=1).mean()))
    assert 0.2 < np.mean(found) < 0.7
    assert found == sorted(found, reverse=True)
    n_parameters = sum(values.size for values in weights.values())
    assert n_parameters < 1_000_000


def test_solutions_are_multiplications() -> None:
    draw = np.random.default_rng(0)
    for digits in task.DIGITS:
        a, b = task.numbers(draw, 20, digits, held_out=False)
        for ids, x, y in zip(task.solutions(a, b, digits), a.tolist(), b.tolist(), strict=True):
            text = task.decode(ids).replace(task.PAD, "").replace(task.END, "")
            carry, lines = 0, [f"{x}*{y}"]
            for digit in reversed(str(x)):
                total = int(digit) * y + carry
                lines.append(f"{digit}*{y}+{carry}={total:02d}")
                carry = total // 10
            assert text == "\n\n".join([*lines, rf"\boxed{{{x * y}}}"])
            assert task.encode(text) == [i for i in ids if i != task.IDS[task.END]]


def test_gradients_are_finite_differences() -> None:
    draw = np.random.default_rng(0)
    weights = net.random_weights(1, len(task.VOCABULARY), 40, width=8, n_layers=2, inner=12)
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    ids = draw.integers(0, len(task.VOCABULARY), size=(3, 9))
    labels = np.full(ids.shape, np.nan)
    labels[:, [3, 8]] = draw.uniform(size=(3, 2))
    for loss in (
        lambda: net.next_loss(weights, ids, 4, n_heads=2),
        lambda: net.score_loss(weights, ids, labels, n_heads=2),
    ):
        _, gradients = loss()
        assert gradients.keys() >= weights.keys() - {"next", "score"}
        for name, gradient in gradients.items():
            direction = draw.normal(size=gradient.shape)
            kept = weights[name]
            weights[name] = kept + 1e-6 * direction
            above, _ = loss()
            weights[name] = kept - 1e-6 * direction
            below, _ = loss()
            weights[name] = kept
            assert (above - below) / 2e-6 == pytest.approx((gradient * direction).sum(), rel=1e-4)


def test_texts_are_drawn_token_by_token() -> None:
    weights = models.load("arithmetic_generator", np.float64)
    chances = uniforms(np.random.default_rng(3).integers(0, 2**63, (6, 16), dtype=np.uint64) * 2)
    texts = ["37*8\n\n", "52*9\n\n", "37*8\n\n7*8+0=56\n\n"]
    stop = task.IDS[task.SEPARATOR]
    reader = net.Reader(weights, 1.0, n_heads=models.N_HEADS)
    for repeat in range(2):  # the second time nothing is computed
        for text in texts:
            ids = task.encode(text)
            found = reader.sample(np.array([ids]), np.zeros(6, dtype=np.int64), chances, {stop})
            for row, tokens in enumerate(found):
                expected: list[int] = []
                while len(expected) < 16 and stop not in expected:
                    last, _ = net.forward(
                        weights, np.array([ids + expected]), n_heads=models.N_HEADS
                    )
                    shares = net.softmax(last[0, -1] @ weights["next"]).cumsum()
                    expected.append(int((shares <= chances[row, len(expected)]).sum()))
                assert tokens == expected, (repeat, text)
