"""The trained models as a search and an annotation see them: generator, completer, verifier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import arithmetic_task as task
import numpy as np
import numpy.typing as npt
import numpy_transformer as net
import polars as pl

from ttsframe._draws import bits_at, uniforms

Keys = npt.NDArray[np.uint64]
N_HEADS = 4
MOST_OF_STEP = 16
TEXTS_AT_ONCE = 128
DATA = Path(__file__).parents[2] / "data"


def load(name: str, dtype: type[np.floating] = np.float32) -> net.Weights:
    with np.load(DATA / f"{name}.npz") as stored:
        return {key: stored[key].astype(dtype) for key in stored.files}


def store(name: str, weights: net.Weights) -> None:
    """Keep weights in half precision."""
    halves = {key: values.astype(np.float16) for key, values in weights.items()}
    np.savez_compressed(DATA / f"{name}.npz", **halves)


def by_length(texts: Sequence[Sequence[int]], size: int) -> Iterator[tuple[net.Ids, net.Ids]]:
    """Yield numbers of texts of one length, `size` or fewer at once, and their tokens."""
    lengths = np.array([len(ids) for ids in texts])
    for length in np.unique(lengths):
        numbers = np.flatnonzero(lengths == length)
        for start in range(0, len(numbers), size):
            some = numbers[start : start + size]
            yield some, np.array([texts[number] for number in some])


def child_keys(seeds: Keys, copies: npt.NDArray[np.int64]) -> Keys:
    """Return the key of each continuation, from the seed of its text and its place among them."""
    places = np.concatenate([np.arange(n) for n in copies]) if len(copies) else copies
    return bits_at(np.repeat(seeds, copies), places)


class Writer:
    """A decoder-only transformer that continues texts of the task."""

    def __init__(self, weights: net.Weights, temperature: float = 1.0) -> None:
        self._sampling = net.Reader(weights, temperature, n_heads=N_HEADS)
        self._greedy = net.Reader(weights, 0.0, n_heads=N_HEADS)

    def write(
        self, texts: Sequence[str], copies: Sequence[int], seeds: Keys, *, until: str, greedy: bool
    ) -> list[list[list[int]]]:
        """Return the tokens of each continuation of each text."""
        stops = {task.IDS[task.END]} | ({task.IDS[task.SEPARATOR]} if until == "step" else set())
        reader = self._greedy if greedy else self._sampling
        each = np.asarray(copies, dtype=np.int64)
        owner = np.repeat(np.arange(len(texts)), each)
        keys = child_keys(seeds, each)
        # Equal texts are read once.
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        of_row = np.array([distinct[text] for text in texts], dtype=np.int64)[owner]
        encoded = [task.encode(text) for text in distinct]
        found: list[list[int]] = [[] for _ in owner]
        for numbers, ids in by_length(encoded, TEXTS_AT_ONCE):
            n_new = task.MOST - ids.shape[1]
            if until == "step":
                n_new = min(n_new, MOST_OF_STEP)
            if n_new <= 0:
                continue
            rows = np.flatnonzero(np.isin(of_row, numbers))
            places = np.tile(np.arange(n_new), len(rows))
            chances = uniforms(bits_at(np.repeat(keys[rows], n_new), places))
            written = reader.sample(
                ids, np.searchsorted(numbers, of_row[rows]), chances.reshape(-1, n_new), stops
            )
            for row, ids_of_row in zip(rows.tolist(), written, strict=True):
                found[row] = ids_of_row
        ends = each.cumsum()
        return [found[end - n : end] for end, n in zip(ends.tolist(), each.tolist(), strict=True)]


def finish(ids: list[int]) -> str:
    if ids and ids[-1] == task.IDS[task.END]:
        return "stop"
    return "step" if ids and ids[-1] == task.IDS[task.SEPARATOR] else "length"


def without_end(ids: list[int]) -> str:
    return task.decode(ids[:-1] if ids and ids[-1] == task.IDS[task.END] else ids)


class LocalGenerator:
    """A `tts.search.Generator` in this process; seeds are those that a server would be sent."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def __call__(self, requests: pl.DataFrame, /) -> pl.DataFrame:
        seeds = bits_at(requests["draw"].to_numpy(), np.zeros(requests.height, dtype=np.int64))
        prompts = requests.select(pl.concat_str("problem", pl.lit("\n\n"), "prefix")).to_series()
        parts = []
        numbered = requests.with_row_index("request").with_columns(prompt=prompts)
        for (until, is_greedy), some in numbered.group_by(
            "until", "is_greedy", maintain_order=True
        ):
            rows = some["request"].to_numpy()
            found = self.writer.write(
                some["prompt"].to_list(),
                some["n"].to_list(),
                seeds[rows] >> np.uint64(33),
                until=str(until),
                greedy=bool(is_greedy),
            )
            flat = [ids for each in found for ids in each]
            parts.append(
                pl.DataFrame(
                    {
                        "request": np.repeat(rows, some["n"].to_numpy()).astype(np.int64),
                        "text": [without_end(ids) for ids in flat],
                        "finish_reason": [finish(ids) for ids in flat],
                        "n_tokens": [len(ids) for ids in flat],
                    },
                    schema_overrides={"text": pl.String, "finish_reason": pl.String},
                )
            )
        return pl.concat(parts) if parts else pl.DataFrame()


class LocalCompleter:
    """A completer for `tts.process.annotate`; the draws depend on the text of the prefix."""

    key = "arithmetic"

    def __init__(self, writer: Writer, seed: int) -> None:
        self.writer, self.seed = writer, seed

    def __call__(self, prefixes: list[str], n: int, /) -> list[list[str]]:
        digests = [sha256(f"{self.seed} {prefix}".encode()).digest()[:8] for prefix in prefixes]
        seeds = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        found = self.writer.write(prefixes, [n] * len(prefixes), seeds, until="end", greedy=False)
        return [[without_end(ids) for ids in each] for each in found]


class Judge:
    """The transformer with a head for scores: the chance that a path still reaches the right answer."""

    def __init__(self, weights: net.Weights) -> None:
        self.weights = weights
        self._known: dict[str, float] = {}

    def values(self, texts: Sequence[str]) -> list[float]:
        """Score the last step of each text, at its last token before the separator."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        encoded = [task.encode(text.removesuffix(task.SEPARATOR))[: task.MOST] for text in fresh]
        for numbers, ids in by_length(encoded, TEXTS_AT_ONCE):
            last, _ = net.last_states(self.weights, ids, n_heads=N_HEADS)
            values = 1 / (1 + np.exp(-(last @ self.weights["score"])))
            self._known |= zip([fresh[number] for number in numbers], values.tolist(), strict=True)
        return [self._known[text] for text in texts]

    def __call__(self, prefixes: pl.DataFrame, /) -> list[float]:
        parts = [
            "problem",
            pl.lit("\n\n"),
            "prefix",
            "text",
            pl.col("lookahead_text").fill_null(""),
        ]
        return self.values(prefixes.select(pl.concat_str(parts)).to_series().to_list())
