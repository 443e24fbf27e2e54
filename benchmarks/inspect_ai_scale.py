"""A set of inspect_ai logs read by ttsframe, beside inspect_ai's own data frames on a tenth of it.

Run as ``python benchmarks/inspect_ai_scale.py [N_SAMPLES [METHOD [LENGTH]]]`` (200,000, zstd and short by default) where inspect_ai is
installed; without it, only ttsframe is measured, on short samples. Samples are those of a log that the tool wrote with its mock model, with
other texts, in logs of 10,000, written in one line and compressed by zstd, as the tool does since 0.3.206, or by deflate, as it did before.
A short sample (11 kB) is one of the tests' log, with a completion of 2 kB in its output only. A long one (53 kB) is written by the installed
tool: it repeats a completion of 5 kB in messages, scores, events and attachments, as real logs do. ``summaries`` is the tool's default, without
texts; ``messages`` has the messages, as ttsframe's completions need. Times are processor seconds of all threads, and wall seconds. ``floor`` is
the time to decompress the members and compare their checksums, which no reader of complete samples can do without.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import ttsframe as tts
from ttsframe.readers.engine.archive import open_archive
from ttsframe.readers.engine.sniff import DataFile

LOG = Path(__file__).resolve().parents[1] / "tests" / "data" / "logs" / "inspect_ai.json.gz"
N_PER_LOG = 10_000
N_EPOCHS = 4
LONG_MARK = "THE COMPLETION IS HERE. " * 5
"""What stands for the completion in a long sample: the tool makes attachments of texts of more than 100 characters."""
COMPACT = (",", ":")


def write_member(archive: zipfile.ZipFile, name: str, text: str, method: str) -> None:
    """Write a member; `zipfile` knows zstd only since Python 3.14, so its list of members is told of it."""
    if method == "deflate":
        archive.writestr(name, text)
        return
    data, info = text.encode(), zipfile.ZipInfo(name)
    archive.writestr(info, pa.Codec("zstd").compress(data, asbytes=True))
    info.compress_type, info.file_size, info.CRC = 93, len(data), zlib.crc32(data)


def write_by_tool(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let the tool evaluate one problem with its mock model; return the log without samples, and the sample as it is stored."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelAPI, ModelOutput, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    async def count_words(_self: object, *args: object, **_options: object) -> int:
        return len(str(args).split())

    # The tool asks the network for a table of tokens to estimate a length.
    for name in ("count_text_tokens", "count_tokens"):
        setattr(ModelAPI, name, count_words)
    problem = Sample(id=1, input="What is six times seven? " * 12, target="42")
    output = ModelOutput.from_content("mockllm/model", f"{LONG_MARK} ANSWER: 42")
    evaluate(
        Task(dataset=MemoryDataset([problem]), solver=generate(), scorer=[match()]),
        model=get_model("mockllm/model", custom_outputs=[output]),
        log_dir=str(folder),
        log_format="json",
        display="none",
    )
    (path,) = folder.glob("*.json")
    log = json.loads(path.read_text(encoding="utf-8"))
    (sample,) = log.pop("samples")
    path.unlink()
    return log, sample


def write_log(
    path: Path, log: dict[str, Any], model: dict[str, Any], first: int, method: str
) -> None:
    rng = random.Random(first)
    words = [f"word{number}" for number in range(2000)]
    message = model["output"]["choices"][0]["message"]
    is_long = LONG_MARK in message["content"]
    if not is_long:
        message["content"] = "@C"
    model["id"], model["epoch"], model["uuid"] = "@I", "@E", "@U"
    template = json.dumps(model, separators=COMPACT).replace(LONG_MARK, "@C")
    keys = ("id", "epoch", "input", "target", "scores", "model_usage", "metadata", "uuid")
    summary = json.dumps(
        {**{key: model[key] for key in keys}, "completed": True}, separators=COMPACT
    )
    summaries = []
    packing = zipfile.ZIP_DEFLATED if method == "deflate" else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", packing, compresslevel=1) as archive:
        write_member(archive, "_journal/start.json", json.dumps(log), method)
        for number in range(first, first + N_PER_LOG):
            identifier, epoch = number // N_EPOCHS, number % N_EPOCHS + 1
            filled = {
                '"@I"': str(identifier),
                '"@E"': str(epoch),
                "@U": f"u{number}",
                "@C": " ".join(rng.choices(words, k=600 if is_long else 300)),
            }
            sample, short = template, summary
            for mark, value in filled.items():
                sample, short = sample.replace(mark, value), short.replace(mark, value)
            write_member(archive, f"samples/{identifier}_epoch_{epoch}.json", sample, method)
            summaries.append(short)
        write_member(archive, "summaries.json", f"[{','.join(summaries)}]", method)
        write_member(archive, "header.json", json.dumps(log), method)


def clock(name: str, n_samples: int, work: Callable[[], Any]) -> float:
    """Return the processor microseconds per sample."""
    wall, used = time.perf_counter(), time.process_time()
    found = work()
    used, wall = time.process_time() - used, time.perf_counter() - wall
    if len(found) != n_samples:
        raise SystemExit(f"{name}: {len(found)} samples, must be {n_samples}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each = used / n_samples * 1e6
    print(
        f"{name}: {n_samples:,} samples, {used:.1f} s of processors, {wall:.1f} s, {each:.0f} us per sample "
        f"({wall / n_samples * 1e6:.0f} by the clock), "
        f"peak memory so far {peak:,.0f} MB",
        flush=True,
    )
    return each


def decompress(paths: list[Path]) -> list[int]:
    """Return the sizes of all members, decompressed and compared as the reader does it."""
    sizes = []
    for path in paths:
        with open_archive(DataFile(path, "zip", None)) as archive:
            names = [name for name in archive.members if name.startswith("samples/")]
            for batch in archive._batches(names):
                sizes += [len(data or b"") for _, data in archive._unpack(batch)]
    return sizes


def main(n_samples: int, method: str, length: str) -> None:
    log = json.loads(gzip.decompress(LOG.read_bytes()))
    samples = log.pop("samples")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if length == "long":
            log, sample = write_by_tool(folder)
            samples = [sample]
        paths = [folder / f"{first:07d}.eval" for first in range(0, n_samples, N_PER_LOG)]
        for number, path in enumerate(paths):
            model = json.loads(json.dumps(samples[0]))
            # The tool takes logs of one id for copies of each other.
            ids = {name: f"{name}{number}" for name in ("eval_id", "run_id", "task_id")}
            own = {**log, "eval": {**log["eval"], **ids}}
            write_log(path, own, model, number * N_PER_LOG, method)
        size = sum(path.stat().st_size for path in paths) / 1e6
        print(
            f"Python {sys.version.split()[0]}, Polars {pl.__version__}, {pl.thread_pool_size()} threads; "
            f"{len(paths)} logs, {method}, {size:.0f} MB\n"
        )
        columns = ["problem_id", "attempt", "completion", "is_correct", "n_tokens"]

        def scan() -> pl.DataFrame:
            run = tts.scan_trajectories(paths).select(columns)
            return run.collect(engine="streaming")

        ours = clock("ttsframe, scan of five columns", n_samples, scan)
        tenth = paths[: max(1, len(paths) // 10)]
        few = len(tenth) * N_PER_LOG
        small = clock("ttsframe, a tenth, all columns", few, lambda: tts.read_trajectories(tenth))
        clock("floor: decompress and compare, a tenth, one core", few, lambda: decompress(tenth))
        try:
            from inspect_ai import analysis
        except ImportError:
            print("inspect_ai is not installed.")
            return
        ways = {
            "summaries": analysis.SampleSummary,
            "messages": analysis.SampleSummary + analysis.SampleMessages,
        }
        for way, wanted in ways.items():
            theirs = clock(
                f"inspect_ai samples_df, a tenth, {way}",
                few,
                lambda wanted=wanted: analysis.samples_df(  # type: ignore[misc]
                    [str(path) for path in tenth], columns=wanted, quiet=True
                ),
            )
            print(
                f"inspect_ai ({way}) takes {theirs / ours:.1f} times the processor time of the scan, and "
                f"{theirs / small:.1f} times that of reading all columns\n",
                flush=True,
            )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 200_000, *[*given[1:], *("zstd", "short")[len(given[1:]) :]])
