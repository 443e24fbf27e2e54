"""Requests per second of the client of model servers beside a bare loop, memory over many requests, and lists of texts.

Servers are processes of their own that answer at once. Client and bare loop alternate, and each pair is a row, so that a machine that
others use slows both. ``python benchmarks/server_throughput.py [pairs [requests of the memory part]]`` writes
``benchmarks/results/server_throughput.txt``.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import bench_servers as bench
import polars as pl

from ttsframe._http import ServerSettings
from ttsframe._http.client import Client
from ttsframe.search.servers import server_verifier

RESULT: Final = Path(__file__).parent / "results" / "server_throughput.txt"
N: Final = 3000
WORKER: Final = (
    bench.SERVER
    .replace(
        "self.transport.write(HEAD + REPLY)",
        "n = json.loads(body)['input_str']; "
        "reply = json.dumps({'reward': [[0.5] for _ in n]}).encode(); "
        "self.transport.write(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(reply) + reply)",
    )
    .replace(
        "            self.rest = self.rest[end + 4 + length:]",
        "            body = self.rest[end + 4:end + 4 + length]\n            self.rest = self.rest[end + 4 + length:]",
    )
    .replace("import asyncio", "import asyncio, json")
)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return seconds by the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def rates(n_pairs: int) -> list[str]:
    """Time client and bare loop with 64 and 256 in flight, all in turn; connections are open, as in a search."""
    levels = (64, 256)
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        sends: dict[tuple[int, str], Callable[[int], object]] = {}
        for in_flight in levels:
            port = stack.enter_context(bench.instant_server())
            settings = ServerSettings(base_url=f"http://127.0.0.1:{port}/v1", n_workers=in_flight)
            client = stack.enter_context(Client(settings))
            bare = stack.enter_context(closing(bench.BareLoop(port, in_flight)))

            def send(n: int, client: Client = client) -> None:
                client.send_all("/completions", [bench.BODY] * n, lambda _, reply: reply)

            sends |= {(in_flight, "client"): send, (in_flight, "bare loop"): bare.send}
        for send in sends.values():
            send(2 * max(levels))
        for _ in range(n_pairs):
            for key, send in sends.items():
                found.setdefault(key, []).append(timed(lambda s=send: s(N)))
    lines = []
    for (in_flight, name), times in found.items():
        walls, cpus = zip(*times, strict=True)
        lines.append(
            f"{in_flight:3} in flight, {name:9}: by the clock {N / max(walls):6,.0f} to {N / min(walls):6,.0f} a second, "
            f"median {N / statistics.median(walls):6,.0f}; processor {1e6 * statistics.median(cpus) / N:4.0f} microseconds a "
            f"request (least {1e6 * min(cpus) / N:.0f})"
        )
    return lines


def resident() -> float:
    """Return the memory in use, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(n_requests: int) -> str:
    """Send many requests with one client; return the memory in use after each tenth."""
    used = []
    with bench.instant_server() as port:
        settings = ServerSettings(base_url=f"http://127.0.0.1:{port}/v1", n_workers=64)
        with Client(settings) as client:
            for _ in range(10):
                client.send_all("/completions", [bench.BODY] * (n_requests // 10), lambda *_: None)
                used.append(resident())
    return f"Memory after each tenth of {n_requests:,} requests of one client, MB: " + ", ".join(
        f"{each:.0f}" for each in used
    )


def lists() -> list[str]:
    """Score texts one a request and 16 a request."""
    texts = pl.DataFrame({
        "problem": "What is 6 x 7?",
        "prefix": "",
        "text": [f"{i} times nothing is nothing.\n\n" for i in range(N)],
        "lookahead_text": pl.Series([None] * N, dtype=pl.String),
    })
    lines = []
    bench.SERVER = WORKER
    with bench.instant_server() as port:
        for most in (1, 16):
            verifier = server_verifier(
                f"http://127.0.0.1:{port}", style="worker", texts_per_request=most
            )
            scores: list[object] = []
            wall, cpu = timed(lambda v=verifier, s=scores: s.extend(asyncio.run(v(texts))))
            verifier.end_search()
            assert scores == [[0.5]] * N
            lines.append(
                f"{N:,} texts to a reward worker, {most:2} a request: {verifier.usage.n_requests:5,} requests, {N / wall:6,.0f} texts a "
                f"second by the clock, processor {1e6 * cpu / N:.0f} microseconds a text"
            )
    return lines


def main(n_pairs: int, n_requests: int) -> None:
    """Measure, print and write."""
    load = os.getloadavg()[0]
    about = f"{os.cpu_count()} cores, which the servers and others use too; {N:,} requests each, {n_pairs} pairs."
    lines = [about, *rates(n_pairs), memory(n_requests), *lists()]
    lines[0] += f" Load {load:.0f} at the beginning, {os.getloadavg()[0]:.0f} at the end."
    print("\n".join(lines))
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(*numbers, *(5, 100_000)[len(numbers) :])
