"""The client of OpenAI-compatible servers, against local servers that behave well and badly."""

from __future__ import annotations

import asyncio
import email.utils
import gc
import json
import logging
import pickle
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts
from ttsframe.errors import (
    CompletionError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
)

KEY = "sk-very-secret"

LONG = 120.0
"""Seconds that a server holds an answer back, unless the test ends before; it counts the answers that it held so long."""

SOON = 60.0
"""Seconds within which everything else happens, even on a busy machine."""


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


Answer = Callable[["Server", BaseHTTPRequestHandler, dict[str, Any]], None]


class Server:
    """A server on localhost that answers as it is told, and remembers what it was asked."""

    def __init__(self, answer: Answer, protocol: str) -> None:
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.ports: set[int] = set()
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.is_over = threading.Event()
        self.n_waited_for = 0
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = protocol

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server.lock:
                    server.requests.append(body)
                    server.headers.append(dict(self.headers))
                    server.paths.append(self.path)
                    server.times.append(time.time())
                    server.ports.add(self.client_address[1])
                try:
                    answer(server, self, body)
                except OSError:
                    self.close_connection = True  # the client is gone

            def log_message(self, *_: object) -> None:
                pass

        class Quick(ThreadingHTTPServer):
            request_queue_size = 128

        self.http = Quick(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))

    def hold(self) -> None:
        """Hold an answer back, and count it if the client waited for it."""
        if not self.is_over.wait(LONG):
            with self.lock:
                self.n_waited_for += 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/v1"


@contextmanager
def serving(answer: Answer, protocol: str = "HTTP/1.0") -> Iterator[Server]:
    gc.freeze()  # so that the collection below looks at what came since, not at all that tests have loaded
    server = Server(answer, protocol)
    server.thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.http.shutdown()
        server.thread.join()
        server.http.server_close()
        gc.collect()  # a socket left open would be a warning here, which is an error
        gc.unfreeze()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def choices(body: dict[str, Any], texts: list[object]) -> bytes:
    """Return an answer of the protocol, with the last choice first."""
    is_chat = "messages" in body
    made = [
        {
            "index": i,
            **({"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}),
        }
        for i, text in enumerate(texts)
    ]
    return json.dumps({"object": "text_completion", "choices": made[::-1]}).encode()


def echo(_: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    said = body["prompt"] if "prompt" in body else body["messages"][-1]["content"]
    send(handler, choices(body, [f"{said}#{i}" for i in range(body["n"])]))


def failing(n_times: int, status: int, **headers: str) -> Answer:
    """Answer with an error some times, then well."""

    def answer(server: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if len(server.requests) <= n_times:
            said = json.dumps({"error": {"message": f"no:\n {handler.headers['Authorization']}"}})
            send(handler, said.encode(), status, **headers)
        else:
            echo(server, handler, body)

    return answer


def client(server: Server, **options: Any) -> tts.process.Completer:
    options = {"api_key": KEY, "backoff": 0.01, "timeout": SOON} | options
    return tts.process.openai_completer(server.url, "tiny", **options)


def workers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("completer")]


def test_a_prefix_is_continued_as_it_is() -> None:
    with serving(echo) as server:
        completer = client(server, temperature=0.5, max_tokens=7, stop="\n\n", extra={"top_p": 0.9})
        found = completer(["one\n", "two π {x}\n"], 3)
    assert found == [[f"{text}#{i}" for i in range(3)] for text in ("one\n", "two π {x}\n")]
    seeds = [request.pop("seed") for request in server.requests]
    assert len(set(seeds)) == 2
    assert all(0 <= seed < 2**31 for seed in seeds)
    asked = {request.pop("prompt"): request for request in server.requests}
    same = {"model": "tiny", "temperature": 0.5, "max_tokens": 7, "stop": ["\n\n"], "top_p": 0.9}
    assert asked == {"one\n": same | {"n": 3}, "two π {x}\n": same | {"n": 3}}
    assert set(server.paths) == {"/v1/completions"}
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


def test_a_chat_continues_the_assistants_message() -> None:
    with serving(echo) as server:
        completer = client(server, chat=True, api_key=None, max_tokens=None, extra={"seed": None})
        found = completer(
            [tts.process.Prefix("What?\n\n", "one\n"), tts.process.Prefix("What?\n\n", "")], 1
        )
    assert found == [["one\n#0"], ["What?#0"]]
    user = {"role": "user", "content": "What?"}
    continued = {
        "messages": [user, {"role": "assistant", "content": "one\n"}],
        "add_generation_prompt": False,
        "continue_final_message": True,
    }
    same = {"model": "tiny", "temperature": 0.7, "n": 1}
    asked = sorted(server.requests, key=lambda request: -len(request["messages"]))
    assert asked == [same | continued, same | {"messages": [user]}]
    assert set(server.paths) == {"/v1/chat/completions"}
    assert not any("Authorization" in headers for headers in server.headers)


def test_a_chat_needs_to_know_where_the_problem_ends() -> None:
    with serving(echo) as server, pytest.raises(ParameterError, match=r"tts\.process\.Prefix"):
        client(server, chat=True)(["plain"], 1)
    assert not server.requests


def test_a_chat_without_content_is_an_empty_completion() -> None:
    with serving(lambda _, handler, body: send(handler, choices(body, [None, "x"]))) as server:
        assert client(server, chat=True)([tts.process.Prefix("a", "b")], 2) == [["", "x"]]


def test_many_completions_are_asked_for_in_shares() -> None:
    with serving(echo) as server:
        found = client(server, n_per_request=3)(["a", "b"], 7)
    assert [len(texts) for texts in found] == [7, 7]
    assert sorted(request["n"] for request in server.requests) == [1, 1, 3, 3, 3, 3]


def test_no_more_requests_than_workers_are_under_way() -> None:
    under_way: list[int] = [0]
    lock = threading.Lock()
    three = threading.Barrier(3)

    def slow(server: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with lock:
            under_way.append(under_way[-1] + 1)
        three.wait(SOON)  # as many as workers are
        with lock:  # before the answer, after which the client may ask again
            under_way.append(under_way[-1] - 1)
        echo(server, handler, body)

    with serving(slow) as server:
        found = client(server, n_workers=3, timeout=SOON)([str(i) for i in range(21)], 1)
        assert [texts[0] for texts in found] == [f"{i}#0" for i in range(21)]
        assert len(server.requests) == 21
    assert max(under_way) == 3
    assert not workers()


def test_connections_are_reused() -> None:
    with serving(echo, "HTTP/1.1") as server:
        found = client(server, n_workers=1)([str(i) for i in range(9)], 1)
    assert found == [[f"{i}#0"] for i in range(9)]
    assert len(server.requests) == 9
    assert len(server.ports) == 1


def test_a_notebook_with_a_running_loop_can_ask_too() -> None:
    async def cell() -> object:
        return client(server)(["a"], 2)

    with serving(echo) as server:
        assert asyncio.run(cell()) == [["a#0", "a#1"]]
    assert not workers()


def test_httpx_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ttsframe\[server\]'"):
        tts.process.openai_completer("http://localhost:8000/v1", "tiny")


@pytest.mark.parametrize("status", [409, 425, 429, 502, 503, 504])
def test_what_cannot_depend_on_the_text_is_tried_again_with_its_seed(status: int) -> None:
    with serving(failing(2, status)) as server:
        completer = client(server)
        assert completer(["a"], 1) == [["a#0"]]
    assert len(server.requests) == 3
    assert len({request["seed"] for request in server.requests}) == 1
    assert completer.usage.retries == {f"answered {status}": 2}
    assert completer.usage.n_lost == 0


@pytest.mark.parametrize("status", [408, 500])
def test_what_may_depend_on_the_text_is_not_tried_again(status: int) -> None:
    with serving(failing(1, status)) as server:
        completer = client(server, n_per_request=2, n_workers=1)
        failed, kept = completer(["a"], 4)[0][:2], completer(["b"], 2)
    assert failed == [tts.process.Failed("error")] * 2
    assert kept == [["b#0", "b#1"]]
    assert len(server.requests) == 3
    assert completer.usage.lost == {f"answered {status}": 1}


def test_a_prefix_that_does_not_fit_into_the_context_failed_for_its_length() -> None:
    def full(_: Server, handler: BaseHTTPRequestHandler, __: dict[str, Any]) -> None:
        said = "This model's maximum context length is 8 tokens."
        send(handler, json.dumps({"message": said}).encode(), 400)

    with serving(full) as server:
        assert client(server)(["a"], 1) == [[tts.process.Failed("length")]]
    assert len(server.requests) == 1


def test_a_server_that_fails_for_long_texts_leaves_no_label_for_them() -> None:
    """Long completions fail: nothing is drawn again, and the result says how many failed."""
    n_steps, drawn = 40, {}

    def answer(_: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        is_long = body["seed"] % 4 == 0
        drawn[body["prompt"], body["seed"]] = is_long
        if is_long:
            send(handler, b"too long", 500)
        else:
            send(handler, choices(body, ["The answer is 4."]))

    solutions = pl.DataFrame({
        "problem_id": [f"p{i}" for i in range(n_steps)],
        "solution_id": 0,
        "step": 0,
        "problem": [f"What is {i} + 1?" for i in range(n_steps)],
        "text": "It is simple.",
        "gold": "4",
    })
    with serving(answer) as server:
        completer = client(server, n_per_request=1, max_lost=1.0)
        with pytest.warns(UserWarning, match="given up") as said:
            rollouts = tts.process.annotate(solutions, completer, 4)
    assert len(drawn) == len(server.requests) == 4 * n_steps
    n_failed = sum(drawn.values())
    assert 0 < n_failed < len(drawn)
    assert f"{n_failed} of {len(drawn)} completions were given up ({n_failed} error)" in str(
        said[0].message
    )
    failed = rollouts.filter(pl.col("finish_reason").is_not_null())
    assert failed["finish_reason"].to_list() == ["error"] * n_failed
    for name in ("completion", "answer", "is_correct"):
        assert failed[name].null_count() == n_failed
        assert rollouts[name].null_count() == n_failed
    steps = tts.process.estimate_steps(rollouts)
    assert steps["n_ungraded"].sum() == n_failed
    assert steps["n_rollouts"].sum() == len(drawn) - n_failed


def counted(_: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    said = json.loads(choices(body, ["The answer is 4."] * body["n"]))
    said["usage"] = {"prompt_tokens": 1_000, "completion_tokens": 200_000}
    send(handler, json.dumps(said).encode())


def test_progress_tells_rollouts_tokens_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    solutions = pl.DataFrame({
        "problem_id": ["p", "q"],
        "solution_id": 0,
        "step": 0,
        "problem": ["What is 3 + 1?", "What is 2 + 2?"],
        "text": "It is simple.",
        "gold": "4",
    })
    with serving(counted) as server:
        completer = client(server)
        with tts.process.RolloutProgress(completer, price_in=100, price_out=2.5) as progress:
            tts.process.annotate(solutions, completer, 3, progress=progress, batch_size=1)
    assert re.fullmatch(
        r"6 of 6 rollouts \([\d,.]+ a second\), 2,000 prompt and 400,000 generated tokens, cost 1\.2",
        str(progress),
    )
    assert capsys.readouterr().err == ""  # no terminal
    without = tts.process.RolloutProgress(completer)
    without(1, 2)
    assert str(without).endswith("400,000 generated tokens")
    alone = tts.process.RolloutProgress()
    alone(1, 2)
    assert str(alone).startswith("1 of 2 rollouts (0.0 a second)")


def test_progress_is_drawn_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    with tts.process.RolloutProgress() as progress:
        progress(12, 48)
        progress(24, 48)
    drawn = capsys.readouterr().err.split("\r\x1b[K")
    assert [line[:17] for line in drawn] == ["", "12 of 48 rollouts", "24 of 48 rollouts", ""]
    assert max(map(len, drawn)) < 30


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"price_in": -1.0}, ParameterError, "price_in"),
        ({"price_out": "1"}, ParameterTypeError, "price_out"),
        ({"completer": len, "price_out": 1.0}, ParameterTypeError, "counts tokens"),
    ],
)
def test_prices_are_checked(options: dict[str, Any], error: type[Exception], message: str) -> None:
    completer = tts.process.openai_completer("http://localhost:8000/v1", "tiny")
    with pytest.raises(error, match=message):
        tts.process.RolloutProgress(**{"completer": completer} | options)


def test_too_many_failures_end_the_work() -> None:
    with (
        serving(failing(99, 500)) as server,
        pytest.raises(CompletionError, match="would favor short texts"),
    ):
        client(server, n_workers=1)([str(i) for i in range(20)], 1)
    assert len(server.requests) == 4


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_the_server_says_how_long_to_wait(form: str) -> None:
    until: list[float] = []

    def answer(server: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if until:
            echo(server, handler, body)
            return
        until.append(time.time() + 0.5 if form == "seconds" else int(time.time()) + 2.0)
        wait = "0.5" if form == "seconds" else email.utils.formatdate(until[0], usegmt=True)
        send(handler, b"", 429, Retry_After=wait)

    with serving(answer) as server:
        assert client(server, backoff=0.0)(["a"], 1) == [["a#0"]]
    assert server.times[1] >= until[0] - 0.05  # clocks differ by a little


@pytest.mark.parametrize("wait", ["86400", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_wait_without_end_is_not_waited_for(wait: str) -> None:
    with (
        serving(failing(9, 429, Retry_After=wait)) as server,
        pytest.raises(CompletionError, match="answered 429"),
    ):
        client(server)(["a"], 1)
    assert len(server.requests) == 1


def test_a_wait_that_cannot_be_read_is_the_usual_one() -> None:
    with serving(failing(1, 503, Retry_After="soon")) as server:
        assert client(server)(["a"], 1) == [["a#0"]]


def test_a_server_that_fails_for_ever_is_given_up() -> None:
    with (
        serving(failing(99, 503)) as server,
        pytest.raises(CompletionError, match=r"/v1/completions: answered 503 .* \(4 tries\)"),
    ):
        client(server, retries=3)(["a"], 1)
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("status", "hint"),
    [(400, "chat template"), (401, "api_key"), (404, "base_url"), (422, "message")],
)
def test_what_cannot_pass_is_not_tried_again_and_the_key_is_not_shown(
    status: int, hint: str
) -> None:
    with serving(failing(99, status)) as server, pytest.raises(CompletionError) as error:
        client(server)(["a"], 1)
    assert len(server.requests) == 1
    said = str(error.value)
    assert f"answered {status}" in said
    assert "no:\\n Bearer ***" in said
    assert hint in said.partition("Hint: ")[2]
    assert KEY not in said


@pytest.mark.parametrize("form", ["{0}", '"{0}"', '{{"choices": ["{0}"]}}'])
def test_a_server_that_repeats_the_key_does_not_get_it_shown(form: str) -> None:
    def answer(_: Server, handler: BaseHTTPRequestHandler, __: dict[str, Any]) -> None:
        send(handler, form.format(handler.headers["Authorization"]).encode())

    with serving(answer) as server, pytest.raises(CompletionError) as error:
        client(server)(["a"], 1)
    assert "Bearer ***" in str(error.value)
    assert KEY not in str(error.value)


def test_nothing_that_is_logged_or_printed_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(failing(99, 503)) as server, pytest.raises(CompletionError) as error:
        client(server, retries=1)(["a"], 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(CompletionError) as unreached:
        tts.process.openai_completer(url, "tiny", api_key=KEY, retries=0)(["a"], 1)
    printed = [
        *traceback.format_exception(error.value),
        *traceback.format_exception(unreached.value),
    ]
    assert KEY not in caplog.text + "".join(printed)


def test_an_error_ends_the_waits_of_other_requests() -> None:
    is_refused = threading.Event()

    def answer(_: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if body["prompt"] == "bad":
            assert is_refused.wait(SOON)
            send(handler, b"", 400)
        else:
            send(handler, b"", 503, Retry_After=str(LONG))
            is_refused.set()

    with serving(answer) as server:
        with pytest.raises(CompletionError, match="answered 400"):
            client(server, timeout=LONG)(["a", "bad"], 1)
        assert len(server.requests) == 2  # a client that waited would have asked again
    assert not workers()


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(server: Server, handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not server.is_over.is_set():
            handler.wfile.write(b" " * 100_000)

    monkeypatch.setattr("ttsframe.process.annotation.server._MAX_REPLY_BYTES", 1_000_000)
    with serving(endless) as server:
        with pytest.raises(CompletionError, match="with more than 1,000,000 bytes"):
            client(server)(["a"], 1)
        assert len(server.requests) == 1


def test_a_redirect_is_not_followed() -> None:
    with serving(echo) as other:

        def away(_: Server, handler: BaseHTTPRequestHandler, __: dict[str, Any]) -> None:
            send(handler, b"", 302, Location=f"{other.url}/completions")

        with (
            serving(away) as server,
            pytest.raises(CompletionError, match=r"302.*redirects are not followed"),
        ):
            client(server)(["a"], 1)
    assert not other.requests


WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"<html>hello</html>", "not JSON .* begins '<html>hello</html>'.*Hint"),
    "half of it": (b'{"choices": [', "not JSON"),
    "deep": (b"[" * 100_000, "not JSON"),
    "no UTF-8": (b"\xff\xfe{}\x00", "not JSON"),
    "a list": (b"[1, 2]", r"has no list 'choices': \[1, 2\]"),
    "an error": (b'{"error": "busy"}', "has no list 'choices': .*busy"),
    "too few": (b'{"choices": [{"text": "x"}]}', "returned 1 choices, expected 2.*n_per_request=1"),
    "no text": (b'{"choices": [{"text": "x"}, {}]}', "a choice without a string 'text': {}"),
    "null": (b'{"choices": [{"text": "x"}, {"text": null}]}', "without a string 'text'"),
    "numbers": (b'{"choices": [1, 2]}', "without a string 'text': 1"),
}


@pytest.mark.parametrize(("body", "message"), WRONG.values(), ids=WRONG)
def test_an_answer_that_is_none_is_an_error(body: bytes, message: str) -> None:
    with (
        serving(lambda _, handler, __: send(handler, body)) as server,
        pytest.raises(CompletionError, match=rf"{server.url}/completions: .*{message}"),
    ):
        client(server)(["a"], 2)
    assert len(server.requests) == 1


def test_choices_without_an_index_keep_their_order() -> None:
    body = b'{"choices": [{"text": "x"}, {"text": "y", "index": 0}]}'
    with serving(lambda _, handler, __: send(handler, body)) as server:
        assert client(server)(["a"], 2) == [["x", "y"]]


def test_an_answer_that_breaks_off_is_asked_for_again_only_before_its_first_byte() -> None:
    def broken(server: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if len(server.requests) == 1:
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif len(server.requests) == 2:
            echo(server, handler, body)
        else:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b'{"choices": []}')

    with serving(broken) as server:
        completer = client(server)
        assert completer(["a"], 1) == [["a#0"]]
        assert len(server.requests) == 2
        assert completer(["a"], 1) == [[tts.process.Failed()]]
    assert len(server.requests) == 3


def test_an_answer_in_chunks_is_read() -> None:
    def chunked(_: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        said = choices(body, ["x" * 200_000])
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(said), 70_000):
            piece = said[start : start + 70_000]
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    with serving(chunked) as server:
        assert client(server)(["a"], 1) == [["x" * 200_000]]


@pytest.mark.parametrize("how", ["silent", "headers", "dripping"])
def test_a_slow_server_is_not_waited_for(how: str) -> None:
    def slow(server: Server, handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
        if how != "silent":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.flush_headers()
        if how == "dripping":
            handler.end_headers()
        while not server.is_over.wait(0.02):
            if how != "silent":
                handler.wfile.write(b" " if how == "dripping" else b"X-More: x\r\n")

    with serving(slow) as server:
        completer = client(server, timeout=0.2, retries=1)
        assert completer(["a"], 1) == [[tts.process.Failed()]]
        assert completer.usage.lost == {"timed out": 1}


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    completer = tts.process.openai_completer(url, "tiny", retries=1, backoff=0.0)
    with pytest.raises(
        CompletionError, match=rf"{url}/completions: could not be reached .*refused"
    ):
        completer(["a"], 1)
    gc.collect()


def test_a_server_without_encryption_is_not_spoken_to_with_it() -> None:
    with serving(echo) as server:
        url = server.url.replace("http://", "https://")
        completer = tts.process.openai_completer(url, "tiny", retries=0, timeout=10.0)
        with pytest.raises(CompletionError, match=r"could not be reached .*SSL"):
            completer(["a"], 1)
    assert not server.requests


def test_an_error_ends_the_other_requests_at_once() -> None:
    three = threading.Barrier(3)

    def answer(server: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if len(server.requests) <= 3:
            three.wait(SOON)  # the others are under way
        if body["prompt"] == "bad":
            send(handler, b"", 400)
        else:
            server.hold()

    with serving(answer) as server:
        with pytest.raises(CompletionError, match="answered 400"):
            client(server, n_workers=3, timeout=LONG)(["a", "b", "bad", *"cdefghij"], 1)
        assert not server.n_waited_for
        assert len(server.requests) <= 5  # of 11; a worker may begin one more
    assert not workers()


def test_an_interrupt_does_not_wait_for_completions() -> None:
    two = threading.Barrier(2, lambda: signal.pthread_kill(main, signal.SIGINT))
    main = threading.main_thread().ident or 0

    def answer(server: Server, *_: object) -> None:
        two.wait(SOON)  # both requests are under way
        server.hold()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with serving(answer) as server:
            with pytest.raises(KeyboardInterrupt):
                client(server, n_workers=2, timeout=LONG)(["a", "b", "c"], 1)
            assert not server.n_waited_for
    finally:
        signal.signal(signal.SIGINT, before)
    assert not workers()


def test_steps_are_annotated_by_a_server_and_go_on_after_it_failed(tmp_path: Path) -> None:
    solutions = pl.DataFrame({
        "problem_id": ["p"] * 3,
        "solution_id": [0, 0, 0],
        "step": [0, 1, 2],
        "problem": ["What is 7 x 6 + 5?"] * 3,
        "text": ["7 x 6 = 42", "42 + 5 = 47", "The answer is 47."],
        "gold": ["47"] * 3,
    })

    def answer(server: Server, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if len(server.requests) == 2:
            send(handler, b"", 400)
        else:
            texts: list[object] = [f"The answer is {47 - i}." for i in range(body["n"])]
            send(handler, choices(body, texts))

    with serving(answer) as server:
        for chat in (False, True):
            server.requests.clear()
            completer = client(server, chat=chat)
            with pytest.raises(CompletionError):
                tts.process.annotate(solutions, completer, 4, cache=tmp_path, batch_size=1)
            rollouts = tts.process.annotate(solutions, completer, 4, cache=tmp_path, batch_size=1)
            assert len(server.requests) == 3
            steps = tts.process.estimate_steps(rollouts)
            assert steps["soft"].to_list() == [0.25, 0.25, 1.0]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"tiny" in written
    assert KEY.encode() not in written


def test_the_key_tells_models_apart_and_is_no_secret() -> None:
    def make(**options: Any) -> Any:
        return tts.process.openai_completer(**{"base_url": "http://a/v1", "model": "m"} | options)

    base = make(api_key=KEY)
    assert base.key == make(base_url="https://b:8000").key == make(timeout=1.0, n_workers=1).key
    others: list[dict[str, object]] = [
        {"model": "n"},
        {"temperature": 0.8},
        {"max_tokens": 5},
        {"stop": ["x"]},
        {"chat": True},
        {"extra": {"top_p": 0.5}},
    ]
    assert len({base.key, *(make(**options).key for options in others)}) == 7
    assert KEY not in base.key + repr(base) + str(base)
    assert repr(base) == "OpenAI-compatible completer of 'm' at http://a/v1"
    assert pickle.loads(pickle.dumps(base)).key == base.key  # noqa: S301 - made on this line


def test_copies_are_refused() -> None:
    with serving(echo) as server:
        assert client(server, temperature=0)(["a"], 1) == [["a#0"]]
        with pytest.raises(ParameterError, match="all be the same"):
            client(server, temperature=0.0)(["a"], 2)


PARAMETERS: list[tuple[dict[str, object], type[Exception], str]] = [
    ({"base_url": "file:///tmp/x"}, ParameterError, "http:// or https://"),
    ({"base_url": "ftp://host/v1"}, ParameterError, "http:// or https://"),
    ({"base_url": "localhost:8000/v1"}, ParameterError, "http:// or https://"),
    ({"base_url": "http:///v1"}, ParameterError, "http:// or https://"),
    ({"base_url": "http://xn--/v1"}, ParameterError, "http:// or https://"),
    ({"base_url": "http://host:port/v1"}, ParameterError, "http:// or https://"),
    ({"base_url": "http://host/v1\r\nX: y"}, ParameterError, "http:// or https://"),
    ({"base_url": f"http://me:{KEY}@host/v1"}, ParameterError, "a user name"),
    ({"base_url": f"http://host/v1?key={KEY}"}, ParameterError, "a query"),
    ({"base_url": None}, ParameterTypeError, "base_url is a NoneType"),
    ({"model": ""}, ParameterError, "model is empty"),
    ({"model": 3}, ParameterTypeError, "model is a int"),
    ({"api_key": f"{KEY}\n"}, ParameterError, "api_key must be printable"),
    ({"api_key": f"{KEY} x"}, ParameterError, "without blanks"),
    ({"api_key": f"{KEY}é"}, ParameterError, "ASCII"),
    ({"api_key": ""}, ParameterError, "api_key must be"),
    ({"api_key": 3}, ParameterTypeError, "api_key is a int"),
    ({"temperature": -0.1}, ParameterError, "temperature == -0.1"),
    ({"temperature": float("nan")}, ParameterError, "temperature == nan"),
    ({"max_tokens": 0}, ParameterError, "max_tokens == 0"),
    ({"n_workers": 0}, ParameterError, "n_workers == 0"),
    ({"n_per_request": 0}, ParameterError, "n_per_request == 0"),
    ({"retries": -1}, ParameterError, "retries == -1"),
    ({"retries": 1.5}, ParameterTypeError, "retries must be an int, got float"),
    ({"backoff": -1.0}, ParameterError, "backoff == -1.0"),
    ({"timeout": 0.0}, ParameterError, "timeout == 0.0"),
    ({"timeout": float("inf")}, ParameterError, "timeout == inf"),
    ({"stop": ["x", ""]}, ParameterError, "stop == "),
    ({"stop": [3]}, ParameterError, "stop == "),
    ({"extra": {"seed": 1}}, ParameterError, "repeat its completions"),
    ({"extra": {"stream": True}}, ParameterError, "'stream'"),
    ({"extra": {"n": 2}}, ParameterError, "'n', which is set by n_rollouts"),
    ({"extra": {"logit_bias": {1, 2}}}, ParameterError, "cannot be written as JSON"),
]


@pytest.mark.parametrize(("options", "kind", "message"), PARAMETERS)
def test_parameters_are_checked_at_once(
    options: dict[str, object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as error:
        tts.process.openai_completer(**{"base_url": "http://localhost/v1", "model": "m"} | options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert KEY not in str(error.value)
