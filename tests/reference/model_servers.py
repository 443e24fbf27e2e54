"""Model servers for tests: each wire format as its server writes it, with faults on request.

The model is a function of the prompt, the seed and the number of the sample, so what a search should get
is known without a server.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl

from ttsframe._draws import bits_at

SEPARATOR = "\n\n"
MAX_STEPS = 6


def bits(*parts: object) -> int:
    text = "|".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def write(prompt: str, seed: int | None, sample: int, until: str) -> tuple[str, bool]:
    """Return what the model writes, with the separator at the end of a step, and whether it ended itself."""
    text = ""
    while True:
        h = bits(prompt, text, seed, sample)
        depth = (prompt + text).count(SEPARATOR)
        words = " ".join(["so"] * (h % 23))
        if h % 4 == 0 or depth >= MAX_STEPS:
            return text + f"Then {words} \\boxed{{{h % 7}}}.", True
        text += f"Take {h % 1000} {words}{SEPARATOR}"
        if until == "step":
            return text, False


def n_tokens(text: str) -> int:
    return len(text.split()) + text.count(SEPARATOR)


def value(problem: str, steps: Sequence[str]) -> float:
    """Return the score of the last of some steps."""
    return (bits(problem, *(step.strip() for step in steps)) % 10_007) / 10_007


def local_generator(prompt: str = "{problem}\n\n", *, per_request: int | None = None) -> Any:
    """Return the generator that a client of the server should be equal to."""

    def generate(requests: pl.DataFrame) -> pl.DataFrame:
        texts, reasons = [], []
        for row in requests.iter_rows(named=True):
            head = prompt.replace("{problem}", row["problem"]) + row["prefix"]
            for child in range(row["n"]):
                start = child - child % (per_request or 1 << 30)
                draw = np.array([row["draw"]], dtype=np.uint64)
                seed = int(bits_at(draw, np.array([start]))[0] >> np.uint64(33))
                seen = None if row["is_greedy"] else seed
                text, ended = write(head, seen, child - start, row["until"])
                texts.append(text)
                reasons.append("stop" if ended or row["until"] == "end" else "step")
        return pl.DataFrame({
            "text": texts,
            "finish_reason": reasons,
            "n_tokens": [n_tokens(text) for text in texts],
        })

    return generate


def split(text: str) -> list[str]:
    return [step for step in text.split(SEPARATOR) if step.strip()]


def local_verifier(prefixes: pl.DataFrame) -> list[list[float]]:
    """Return the scores that a client of the server should return."""
    whole = pl.concat_str("prefix", "text", pl.col("lookahead_text").fill_null(""))
    return [
        [value(problem, split(text)[: i + 1]) for i in range(len(split(text)))]
        for problem, text in prefixes.select("problem", whole.alias("t")).iter_rows()
    ]


Fault = Callable[[bytes, int], str | None]
"""Says what goes wrong with a request, given its body and how often it came before."""


@dataclass
class Models:
    """What a server is like, and what it was asked."""

    says: str = "stop_reason"
    """stop_reason (vLLM), matched_stop (SGLang, cuts the separator off), nothing, nothing but keeps it."""
    cap: int | None = None
    """Most choices per request."""
    trims: bool = False
    continues: bool = True
    scores_extra: int = 0
    fault: Fault | None = None
    delay: Callable[[str], float] | None = None
    holds: Callable[[str], bool] | None = None
    """Whether a request still waits."""
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tries: Counter[bytes] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    n_connections: int = 0
    n_now: int = 0
    n_most: int = 0

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        route: dict[str, Callable[[dict[str, Any]], Any]] = {
            "/v1/completions": self.completions,
            "/v1/chat/completions": self.chat,
            "/completion": self.llama_cpp,
            "/generate": self.tgi,
            "/pooling": self.pooling,
            "/classify": self.classify,
            "/score": self.score,
            "/worker_reward_inference": self.worker,
        }
        if path not in route:
            return 404, {"detail": "Not Found"}
        try:
            return 200, route[path](body)
        except TooLongError as error:
            return 400, {"error": {"message": str(error), "type": "BadRequestError", "code": 400}}

    def completions(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._openai(body["prompt"], body, is_chat=False)

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        messages = body["messages"]
        if body.get("logprobs") and body["max_tokens"] == 1:
            return self._signs(messages)
        assert not (body["add_generation_prompt"] and body["continue_final_message"])
        text = f"{messages[0]['content']}\n\n"
        if messages[-1]["role"] == "assistant":
            said = messages[-1]["content"]
            text += said.strip() if self.trims else said
            if not (self.continues and body["continue_final_message"]):
                text += "<|end|><|assistant|>"
        return self._openai(text, body, is_chat=True)

    def _openai(self, prompt: str, body: dict[str, Any], *, is_chat: bool) -> dict[str, Any]:
        if "too long" in prompt:
            raise TooLongError("This model's maximum context length is 128 tokens.")
        seed = None if body["temperature"] == 0 else body["seed"]
        until = "step" if body.get("stop") else "end"
        choices, total = [], 0
        for index in range(min(body["n"], self.cap or body["n"])):
            text, ended = write(prompt, seed, index, until)
            total += n_tokens(text)
            limit = body["max_tokens"]
            is_cut = n_tokens(text) > limit
            choice: dict[str, Any] = {"index": index, "finish_reason": "stop", "logprobs": None}
            if self.says == "stop_reason":
                choice["stop_reason"] = None if ended else SEPARATOR
                choice["token_ids"] = [7] * n_tokens(text) if body.get("return_token_ids") else None
            elif self.says == "matched_stop":
                choice["matched_stop"] = 128001 if ended else SEPARATOR
            if is_cut:
                text = " ".join(text.split()[:limit])
                choice["finish_reason"] = "length"
            elif not ended and self.says in {"matched_stop", "nothing"}:
                text = text.removesuffix(SEPARATOR)
            if body.get("logprobs"):
                choice["logprobs"] = {"token_logprobs": [-0.5] * n_tokens(text)}
            choice |= (
                {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
            )
            choices.append(choice)
        return {
            "object": "text_completion",
            "choices": choices[::-1],
            # Summed over the choices; the prompt counts once.
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": total},
        }

    def llama_cpp(self, body: dict[str, Any]) -> dict[str, Any]:
        seed = None if body["temperature"] == 0 else body["seed"]
        text, ended = write(body["prompt"], seed, 0, "step" if body["stop"] else "end")
        return {
            "content": text if ended else text.removesuffix(SEPARATOR),
            "stop": True,
            "stop_type": "eos" if ended else "word",
            "stopping_word": "" if ended else SEPARATOR,
            "tokens_predicted": n_tokens(text),
            "tokens_evaluated": 9,
            "truncated": False,
            "timings": {"prompt_n": 4},
        }

    def tgi(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["parameters"]
        seed = asked["seed"] if asked["do_sample"] else None
        text, ended = write(body["inputs"], seed, 0, "step" if asked["stop"] else "end")
        return {
            "generated_text": text,
            "details": {
                "finish_reason": "eos_token" if ended else "stop_sequence",
                "generated_tokens": n_tokens(text),
                "tokens": [{"id": 1, "text": "x", "logprob": -0.25, "special": False}],
            },
        }

    def pooling(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["task"] == "token_classify"
        if "messages" in body:
            _, user, assistant = body["messages"]
            pairs = [(user["content"], assistant["content"])]
            tag, right = "<extra_0>", True
        else:
            is_shepherd = " ки" in body["input"][0]
            tag, right = (" ки", False) if is_shepherd else ("<extra_0>", True)
            pairs = [tuple(text.split("::", 1)) for text in body["input"]]  # type: ignore[misc]
        rows: list[Any] = []
        for index, (problem, text) in enumerate(pairs):
            if "too long" in text:
                raise TooLongError("This model's maximum context length is 128 tokens.")
            steps = text.split(tag)[:-1]
            scores = [value(problem, steps[: i + 1]) for i in range(len(steps))]
            scores += [0.5] * self.scores_extra
            data = [[1 - s, s] if right else [s, 1 - s] for s in scores]
            rows.append({"index": index, "object": "pooling", "data": data})
        return {"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": 3}}

    def _signs(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        assert [m["role"] for m in messages[::2]] == ["user"] * len(messages[::2])
        problem, _, first = messages[0]["content"].partition(" ")
        steps = [first, *(m["content"] for m in messages[2::2])]
        p = value(problem, steps) * 0.98 + 0.01
        top = [("+", np.log(p)), ("-", np.log(1 - p)), ("the", -9.0)]
        listed = [{"token": token, "logprob": float(logprob)} for token, logprob in top]
        content = [{"token": "+", "logprob": 0.0, "top_logprobs": listed}]
        return {
            "choices": [{"index": 0, "message": {"content": "+"}, "logprobs": {"content": content}}]
        }

    def classify(self, body: dict[str, Any]) -> Any:
        if "text" in body:  # SGLang
            found = [{"embedding": [value("", [text])]} for text in body["text"]]
            return found if len(found) > 1 else found[0]
        rows = [
            {"index": i, "label": "LABEL_0", "probs": [value("", [text])], "num_classes": 1}
            for i, text in enumerate(body["input"])
        ]
        return {"object": "list", "data": rows, "usage": {"prompt_tokens": 3}}

    def score(self, body: dict[str, Any]) -> Any:
        pairs = zip(body["text_1"], body["text_2"], strict=True)
        rows = [
            {"index": i, "score": value(*pair)} for i, pair in enumerate((a, [b]) for a, b in pairs)
        ]
        return {"data": rows}

    def worker(self, body: dict[str, Any]) -> Any:
        return {
            "reward": [
                [value(problem, split(text)[: i + 1]) for i in range(len(split(text)))]
                for problem, text in body["input_str"]
            ]
        }


class TooLongError(Exception):
    """The prompt does not fit."""


class _Server:
    """One thread with a loop that speaks HTTP/1.1, byte by byte where a fault asks for it."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.is_ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="models")

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self.is_ready.set()
        await self.over.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.models.n_connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        models = self.models
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        path = lines[0].split()[1]
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        content = await reader.readexactly(int(headers["content-length"]))
        body = json.loads(content)
        models.bodies.append((path, body))
        models.tries[content] += 1
        models.n_now += 1
        models.n_most = max(models.n_most, models.n_now)
        try:
            fault = models.fault and models.fault(content, models.tries[content] - 1)
            if models.delay is not None:
                await asyncio.sleep(models.delay(content.decode()))
            for _ in range(2000):
                if models.holds is None or not models.holds(content.decode()):
                    break
                await asyncio.sleep(0.01)
            if fault:
                models.faults[fault] += 1
                return await self._fail(fault, models, path, body, writer)
            status, reply = models.answer(path, body)
            await self._write(writer, status, json.dumps(reply).encode())
            return True
        finally:
            models.n_now -= 1

    @staticmethod
    async def _write(
        writer: asyncio.StreamWriter, status: int, body: bytes, more: str = ""
    ) -> None:
        head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async def _fail(
        self,
        fault: str,
        models: Models,
        path: str,
        body: dict[str, Any],
        writer: asyncio.StreamWriter,
    ) -> bool:
        good = json.dumps(models.answer(path, body)[1]).encode()
        if fault.isdigit():
            more = "Retry-After: 0.01\r\n" if fault == "429" else ""
            await self._write(writer, int(fault), b'{"error": "busy"}', more)
            return True
        if fault == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(good) + good[:20])
            await writer.drain()
        elif fault == "garbled":
            await self._write(writer, 200, good[: len(good) // 2])
            return True
        elif fault == "slow":
            await asyncio.sleep(60)
        elif fault == "drip":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"X: y\r\n")
                await asyncio.sleep(0.02)
        elif fault == "huge":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            while True:
                writer.write(b" " * 65536)
                await writer.drain()
        return False  # "reset" closes at once


@contextmanager
def serving(models: Models) -> Iterator[str]:
    """Serve models; gives the address."""
    server = _Server(models)
    server.thread.start()
    assert server.is_ready.wait(60)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.loop.call_soon_threadsafe(server.over.set)
        server.thread.join()


def sometimes(*names: str, among: int = 2, tries: int = 1) -> Fault:
    """Fail the first tries of a share of the requests, by their content."""

    def fault(content: bytes, n_before: int) -> str | None:
        h = bits(content)
        if n_before >= tries or h % among:
            return None
        return names[h // among % len(names)]

    return fault
