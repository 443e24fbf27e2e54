"""Requests per second of the client of model servers, beside a bare loop over sockets in the same run.

The server is a process of its own that answers at once. `TTSFRAME_BENCH_SERVERS` sets the number of
requests of each measurement (default 600; 100000 shows that memory stays flat).
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from ttsframe._http import ServerSettings
from ttsframe._http.client import Client

N = int(os.environ.get("TTSFRAME_BENCH_SERVERS", "600"))
SERVER = """
import asyncio
REPLY = b'{"choices": [{"index": 0, "text": "so\\\\n\\\\n", "finish_reason": "stop", "stop_reason": "\\\\n\\\\n"}]}'
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(REPLY)
class Instant(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""
    def data_received(self, data):
        self.rest += data
        while (end := self.rest.find(b"\\r\\n\\r\\n")) >= 0:
            head = self.rest[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\\r\\n")[0])
            if len(self.rest) < end + 4 + length:
                return
            self.rest = self.rest[end + 4 + length:]
            self.transport.write(HEAD + REPLY)
async def main():
    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
BODY = {
    "model": "m",
    "prompt": "What is 6 x 7? " * 40,
    "n": 1,
    "max_tokens": 2048,
    "stop": ["\n\n"],
}


@contextmanager
def instant_server() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


class BareLoop:
    """Posts over raw sockets that stay open: no time limits, no errors, no checks of the reply."""

    def __init__(self, port: int, in_flight: int) -> None:
        self._loop = asyncio.new_event_loop()
        content = json.dumps(BODY).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(
            content
        )
        self._request = head + content

        async def opened() -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
            return [await asyncio.open_connection("127.0.0.1", port) for _ in range(in_flight)]

        self._connections = self._loop.run_until_complete(opened())

    def send(self, n: int) -> list[str]:
        left, texts = iter(range(n)), []

        async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for _ in left:
                writer.write(self._request)
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.partition(b"Length: ")[2]))
                texts.append(json.loads(body)["choices"][0]["text"])

        async def run() -> None:
            await asyncio.gather(*(work(*connection) for connection in self._connections))

        self._loop.run_until_complete(run())
        return texts

    def close(self) -> None:
        for _, writer in self._connections:
            writer.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


@pytest.mark.parametrize("in_flight", [64, 256])
def test_requests_per_second(in_flight: int) -> None:
    with instant_server() as port, closing(BareLoop(port, in_flight)) as bare:
        settings = ServerSettings(base_url=f"http://127.0.0.1:{port}/v1", n_workers=in_flight)
        with Client(settings) as client:

            def by_client(n: int) -> list[str]:
                return client.send_all(
                    "/completions",
                    [BODY] * n,
                    lambda _, reply: reply["choices"][0]["text"],  # type: ignore[index]
                )

            for name, send in (("client", by_client), ("bare loop", bare.send)):
                send(2 * in_flight)
                best_wall = best_cpu = 1e9
                for _ in range(3):
                    wall, cpu = time.perf_counter(), time.process_time()
                    texts = send(N)
                    best_wall = min(best_wall, time.perf_counter() - wall)
                    best_cpu = min(best_cpu, time.process_time() - cpu)
                    assert texts == ["so\n\n"] * N
                print(
                    f"{name}, {in_flight} in flight: {N / best_wall:,.0f} a second, {N / best_cpu:,.0f} per second "
                    f"of processor time, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB"
                )
