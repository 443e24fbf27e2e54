"""A transformer in numpy: its forward pass, its gradients, Adam, and sampling with a cache.

Causal attention and two-layer perceptrons, normalized before each part, without biases; a head for the
next token and one for a score.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating[Any]]
Ids = npt.NDArray[np.int64]
Weights = dict[str, Numbers]
EPSILON = 1e-5


def random_weights(
    seed: int, n_tokens: int, n_places: int, *, width: int, n_layers: int, inner: int
) -> Weights:
    draw = np.random.default_rng(seed)

    def matrix(*shape: int) -> Numbers:
        return draw.normal(size=shape) / np.sqrt(shape[0])

    weights = {"tokens": draw.normal(size=(n_tokens, width))}
    weights["places"] = draw.normal(size=(n_places, width)) * 0.5
    for layer in range(n_layers):
        weights[f"qkv{layer}"] = matrix(width, 3 * width)
        weights[f"out{layer}"] = matrix(width, width)
        weights[f"up{layer}"] = matrix(width, inner)
        weights[f"down{layer}"] = matrix(inner, width)
    weights["next"] = matrix(width, n_tokens)
    weights["score"] = matrix(width)
    return {name: values.astype(np.float32) for name, values in weights.items()}


def n_layers_of(weights: Weights) -> int:
    return sum(name.startswith("qkv") for name in weights)


def normalized(x: Numbers) -> tuple[Numbers, Numbers]:
    """Return rows with mean 0 and variance 1, and what they were multiplied by."""
    centered = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centered * centered).mean(axis=-1, keepdims=True) + EPSILON)
    return centered * scale, scale


def normalized_back(gradient: Numbers, y: Numbers, scale: Numbers) -> Numbers:
    along = (gradient * y).mean(axis=-1, keepdims=True)
    return np.asarray(scale * (gradient - gradient.mean(axis=-1, keepdims=True) - y * along))


def softmax(x: Numbers) -> Numbers:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def _split(x: Numbers, n_heads: int) -> Numbers:
    """Return (texts, heads, places, numbers of a head)."""
    n, length, width = x.shape
    return np.ascontiguousarray(x.reshape(n, length, n_heads, width // n_heads).swapaxes(1, 2))


def _join(x: Numbers) -> Numbers:
    n, n_heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(n, length, n_heads * size)


def forward(weights: Weights, ids: Ids, *, n_heads: int) -> tuple[Numbers, list[Any]]:
    """Return the last states of all places of texts of one length, and what gradients need."""
    _, length = ids.shape
    x = weights["tokens"][ids] + weights["places"][:length]
    future = np.triu(np.full((length, length), -np.inf, dtype=x.dtype), 1)
    kept: list[Any] = []
    for layer in range(n_layers_of(weights)):
        y, scale = normalized(x)
        q, k, v = (_split(part, n_heads) for part in np.split(y @ weights[f"qkv{layer}"], 3, -1))
        root = np.asarray(1 / np.sqrt(q.shape[-1]), dtype=x.dtype)
        seen = softmax(q @ k.swapaxes(2, 3) * root + future)
        mixed = _join(seen @ v)
        x = x + mixed @ weights[f"out{layer}"]
        z, inner_scale = normalized(x)
        up = np.maximum(z @ weights[f"up{layer}"], 0)
        x = x + up @ weights[f"down{layer}"]
        kept.append((y, scale, q, k, v, seen, mixed, z, inner_scale, up, root))
    last, scale = normalized(x)
    kept.append((last, scale))
    return last, kept


def backward(weights: Weights, ids: Ids, kept: list[Any], gradient: Numbers) -> Weights:
    """Return the gradients of all weights but the heads, given that of the last states."""
    found: Weights = {}
    g = normalized_back(gradient, *kept[-1])

    def product(name: str, left: Numbers, right: Numbers) -> Numbers:
        """Gradient of left @ weight: keep the weight's, return that of `left`."""
        found[name] = left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])
        return np.asarray(right @ weights[name].T)

    for layer in reversed(range(n_layers_of(weights))):
        y, scale, q, k, v, seen, mixed, z, inner_scale, up, root = kept[layer]
        g_up = product(f"down{layer}", up, g) * (up > 0)
        g = g + normalized_back(product(f"up{layer}", z, g_up), z, inner_scale)
        g_mixed = _split(product(f"out{layer}", mixed, g), q.shape[1])
        g_v = seen.swapaxes(2, 3) @ g_mixed
        g_seen = g_mixed @ v.swapaxes(2, 3)
        g_logits = seen * (g_seen - (g_seen * seen).sum(axis=-1, keepdims=True)) * root
        parts = (g_logits @ k, g_logits.swapaxes(2, 3) @ q, g_v)
        g_qkv = np.concatenate([_join(part) for part in parts], axis=-1)
        g = g + normalized_back(product(f"qkv{layer}", y, g_qkv), y, scale)
    found["places"] = np.zeros_like(weights["places"])
    found["places"][: ids.shape[1]] = g.sum(axis=0)
    one_hot = np.zeros((ids.size, len(weights["tokens"])), dtype=g.dtype)
    one_hot[np.arange(ids.size), ids.ravel()] = 1
    found["tokens"] = one_hot.T @ g.reshape(ids.size, -1)
    return found


def next_loss(weights: Weights, ids: Ids, start: int, *, n_heads: int) -> tuple[float, Weights]:
    """Return the mean cross-entropy of the tokens from place `start` on, and the gradients."""
    last, kept = forward(weights, ids[:, :-1], n_heads=n_heads)
    states, targets = last[:, start - 1 :], ids[:, start:]
    chances = softmax(states @ weights["next"])
    right = np.take_along_axis(chances, targets[..., None], axis=-1)
    g_logits = chances.copy()
    np.put_along_axis(g_logits, targets[..., None], right - 1, axis=-1)
    g_logits /= targets.size
    gradient = np.zeros_like(last)
    gradient[:, start - 1 :] = g_logits @ weights["next"].T
    found = backward(weights, ids[:, :-1], kept, gradient)
    flat = g_logits.reshape(-1, g_logits.shape[-1])
    found["next"] = states.reshape(len(flat), -1).T @ flat
    return float(-np.log(right + 1e-30).mean()), found


def score_loss(
    weights: Weights, ids: Ids, labels: Numbers, *, n_heads: int
) -> tuple[float, Weights]:
    """Return the mean cross-entropy of the scores where `labels` is not NaN, and the gradients."""
    last, kept = forward(weights, ids, n_heads=n_heads)
    is_labeled = ~np.isnan(labels)
    wanted = np.where(is_labeled, labels, 0)
    chance = 1 / (1 + np.exp(-(last @ weights["score"])))
    n = is_labeled.sum()
    losses = -(wanted * np.log(chance + 1e-12) + (1 - wanted) * np.log(1 - chance + 1e-12))
    g_logits = np.where(is_labeled, (chance - wanted) / n, 0).astype(last.dtype)
    found = backward(weights, ids, kept, g_logits[..., None] * weights["score"])
    found["score"] = (g_logits[..., None] * last).sum(axis=(0, 1))
    return float(losses[is_labeled].sum() / n), found


def last_states(weights: Weights, ids: Ids, *, n_heads: int) -> tuple[Numbers, list[Any]]:
    """Return the last state of the last place, and the keys and values of all places and layers."""
    last, kept = forward(weights, ids, n_heads=n_heads)
    return last[:, -1], [(layer[3], layer[4]) for layer in kept[:-1]]


class Decoder:
    """Continues texts of one length token by token; what was computed of a text is kept."""

    def __init__(
        self, weights: Weights, ids: Ids, copies: Ids, n_new: int, *, n_heads: int
    ) -> None:
        self.weights, self.n_heads = weights, n_heads
        self.state, cache = last_states(weights, ids, n_heads=n_heads)
        self.state = np.repeat(self.state, copies, axis=0)
        self.n_places = ids.shape[1]
        self.cache = [tuple(self._extended(part, copies, n_new) for part in both) for both in cache]

    @staticmethod
    def _extended(part: Numbers, copies: Ids, n_new: int) -> Numbers:
        part = np.repeat(part, copies, axis=0)
        n, n_heads, length, size = part.shape
        whole = np.empty((n, n_heads, length + n_new, size), dtype=part.dtype)
        whole[:, :, :length] = part
        return whole

    def keep(self, rows: Ids) -> None:
        self.cache = [tuple(part[rows] for part in both) for both in self.cache]
        self.state = self.state[rows]

    def add(self, tokens: Ids) -> None:
        """Put a token behind each text."""
        weights, place = self.weights, self.n_places
        self.n_places += 1
        x = weights["tokens"][tokens] + weights["places"][place]
        for layer, (keys, values) in enumerate(self.cache):
            y, _ = normalized(x)
            parts = np.split(y @ weights[f"qkv{layer}"], 3, -1)
            q, k, v = (part.reshape(len(x), self.n_heads, -1) for part in parts)
            keys[:, :, place], values[:, :, place] = k, v
            root = np.asarray(1 / np.sqrt(q.shape[-1]), dtype=x.dtype)
            logits = keys[:, :, : place + 1] @ q[..., None] * root
            seen = softmax(logits[..., 0])[:, :, None]
            mixed = (seen @ values[:, :, : place + 1])[:, :, 0].reshape(len(x), -1)
            x = x + mixed @ weights[f"out{layer}"]
            z, _ = normalized(x)
            x = x + np.maximum(z @ weights[f"up{layer}"], 0) @ weights[f"down{layer}"]
        self.state, _ = normalized(x)


class _Rows(NamedTuple):
    """Continuations: what each is behind of, what is written, and the numbers that draw its tokens."""

    start: list[int]
    written: list[list[int]]
    drawn: list[list[float]]


class Reader:
    """The next tokens' chances behind texts of one start, summed up; each text is computed once."""

    def __init__(self, weights: Weights, temperature: float, *, n_heads: int) -> None:
        self.weights, self.temperature, self.n_heads = weights, temperature, n_heads
        self.known: dict[bytes, dict[tuple[int, ...], list[float]]] = {}

    def sample(
        self,
        ids: Ids,
        owner: Ids,
        chances: npt.NDArray[np.float64],
        stops: set[int],
    ) -> list[list[int]]:
        """Continue texts until a stop token, which is kept, or until the chances are used up.

        Row i continues text `owner[i]` of `ids`; number j of `chances[i]` draws its token j.
        """
        known = [self.known.setdefault(row.tobytes(), {}) for row in ids]
        rows = _Rows(owner.tolist(), [[] for _ in owner], chances.tolist())
        waiting = list(range(len(owner)))
        while waiting:
            waiting = [
                row
                for row in waiting
                if not self._walk(rows.written[row], rows.drawn[row], known[rows.start[row]], stops)
            ]
            if waiting:
                self._compute(ids, known, rows, waiting, stops)
        return rows.written

    @staticmethod
    def _walk(
        text: list[int],
        chances: list[float],
        known: dict[tuple[int, ...], list[float]],
        stops: set[int],
    ) -> bool:
        """Draw tokens as far as the chances are known; tell whether the text has ended."""
        while len(text) < len(chances) and not (text and text[-1] in stops):
            sums = known.get(tuple(text))
            if sums is None:
                return False
            text.append(Reader._draw(sums, chances[len(text)]))
        return True

    def _compute(
        self,
        ids: Ids,
        known: list[dict[tuple[int, ...], list[float]]],
        rows: _Rows,
        waiting: list[int],
        stops: set[int],
    ) -> None:
        """Follow the waiting rows to their ends, all of equal text as one path."""
        # What is written of them is read again behind its start.
        texts = sorted({(rows.start[row], tuple(rows.written[row])) for row in waiting})
        numbers, copies = np.unique([start for start, _ in texts], return_counts=True)
        n_new = len(rows.drawn[0])
        decoder = Decoder(self.weights, ids[numbers], copies, n_new, n_heads=self.n_heads)
        for place in range(n_new):
            sums = self._sums(decoder.state)
            paths = {each: path for path, each in enumerate(texts)}
            going: dict[tuple[int, tuple[int, ...]], tuple[int, int]] = {}
            for (start, text), path in paths.items():
                if len(text) == place:
                    known[start][text] = sums[path]
                else:
                    going[start, text] = path, text[place]
            for row in waiting:
                start, text = rows.start[row], rows.written[row]
                path = paths.get((start, tuple(text)))
                if path is None or len(text) != place:
                    continue
                text.append(self._draw(sums[path], rows.drawn[row][place]))
                if text[-1] not in stops and place < n_new - 1:
                    going.setdefault((start, tuple(text)), (path, text[-1]))
            if not going:
                return
            texts = list(going)
            decoder.keep(np.array([path for path, _ in going.values()]))
            decoder.add(np.array([token for _, token in going.values()]))

    @staticmethod
    def _draw(sums: list[float], chance: float) -> int:
        return bisect_right(sums, chance * sums[-1], hi=len(sums) - 1)

    def _sums(self, states: Numbers) -> list[list[float]]:
        logits = (states @ self.weights["next"]).astype(np.float64)
        if self.temperature == 0:
            return (
                (np.arange(logits.shape[1]) >= logits.argmax(axis=1)[:, None])
                .astype(float)
                .tolist()
            )
        sums: list[list[float]] = softmax(logits / self.temperature).cumsum(axis=1).tolist()
        return sums


class Adam:
    """Adam with gradients clipped to norm 1; weights without a gradient stay."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.mean = {name: np.zeros_like(values) for name, values in weights.items()}
        self.square = {name: np.zeros_like(values) for name, values in weights.items()}
        self.n_steps = 0

    def step(self, gradients: Weights, rate: float) -> None:
        self.n_steps += 1
        norm = float(np.sqrt(sum(float((g * g).sum()) for g in gradients.values())))
        clip = np.float32(min(1.0, 1 / (norm + 1e-12)))
        for name, unclipped in gradients.items():
            gradient = unclipped * clip
            mean, square = self.mean[name], self.square[name]
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.01) * (gradient * gradient - square)
            unbiased = mean / np.float32(1 - 0.9**self.n_steps)
            spread = np.sqrt(square / np.float32(1 - 0.99**self.n_steps)) + np.float32(1e-8)
            self.weights[name] -= np.float32(rate) * unbiased / spread
