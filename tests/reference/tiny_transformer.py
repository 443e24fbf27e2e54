"""A transformer in numpy with seeded random weights, as a model that writes steps and as one that scores them."""

from __future__ import annotations

from typing import Any

import model_servers as fake
import numpy as np
import numpy.typing as npt

SEPARATOR, END = "\n\n", "<end>"
VOCABULARY = [SEPARATOR, END, *"0123456789+-=?. abcdefghijklmnopqrstuvwxyz"]
IDS = {token: number for number, token in enumerate(VOCABULARY)}
Numbers = npt.NDArray[np.float64]
WIDTH, HEADS, LAYERS, CONTEXT = 24, 2, 2, 256


class TinyTransformer:
    """Causal attention and two-layer perceptrons; a head for the next token, and one for the score."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)

        def weights(*shape: int) -> Numbers:
            return draw.normal(size=shape) / np.sqrt(shape[0])

        self.tokens = draw.normal(size=(len(VOCABULARY), WIDTH))
        self.places = draw.normal(size=(CONTEXT, WIDTH)) * 0.5
        self.layers = [
            (
                weights(WIDTH, 3 * WIDTH),
                weights(WIDTH, WIDTH),
                weights(WIDTH, 64),
                weights(64, WIDTH),
            )
            for _ in range(LAYERS)
        ]
        self.next = weights(WIDTH, len(VOCABULARY))
        self.score = weights(WIDTH)

    @staticmethod
    def encode(text: str) -> list[int]:
        ids = []
        while text:
            token = SEPARATOR if text.startswith(SEPARATOR) else text[0]
            ids.append(IDS[token])
            text = text[len(token) :]
        return ids

    def hidden(self, ids: list[int]) -> Numbers:
        """Return the state of the last token."""
        x = self.tokens[ids] + self.places[: len(ids)]
        future = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
        for qkv, out, up, down in self.layers:
            q, k, v = (
                part.reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
                for part in np.split(normalized(x) @ qkv, 3, axis=1)
            )
            seen = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + future)
            x = x + (seen @ v).transpose(1, 0, 2).reshape(len(ids), WIDTH) @ out
            x = x + np.maximum(normalized(x) @ up, 0) @ down
        return np.asarray(normalized(x[-1]))

    def write(
        self, prompt: str, seed: int, *, temperature: float, stop: bool, most: int
    ) -> dict[str, Any]:
        """Continue a text, as a choice of /v1/completions."""
        draw, ids = np.random.default_rng(seed), self.encode(prompt)
        written: list[int] = []
        reason, stopped_by = "length", None
        while len(written) < most:
            logits = self.hidden((ids + written)[-CONTEXT:]) @ self.next
            logits[IDS[SEPARATOR]] += 1.0
            if temperature == 0:
                token = int(np.argmax(logits))
            else:
                token = int(draw.choice(len(logits), p=softmax(logits / temperature)))
            if token == IDS[END]:
                reason = "stop"
                break
            written.append(token)
            if stop and token == IDS[SEPARATOR]:
                reason, stopped_by = "stop", SEPARATOR
                break
        text = "".join(VOCABULARY[token] for token in written)
        return {
            "text": text,
            "finish_reason": reason,
            "stop_reason": stopped_by,
            "token_ids": written,
        }

    def value(self, text: str) -> float:
        return float(1 / (1 + np.exp(-self.hidden(self.encode(text)[-CONTEXT:]) @ self.score)))


def softmax(x: Numbers) -> Numbers:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def normalized(x: Numbers) -> Numbers:
    return np.asarray((x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + 1e-5))


class TransformerServer(fake.Models):
    """Speaks vLLM's /v1/completions and /pooling with a transformer behind both."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.writer, self.judge = TinyTransformer(0), TinyTransformer(1)

    def completions(self, body: dict[str, Any]) -> dict[str, Any]:
        choices = [
            {"index": i}
            | self.writer.write(
                body["prompt"],
                body["seed"] + i,
                temperature=body["temperature"],
                stop=bool(body.get("stop")),
                most=body["max_tokens"],
            )
            for i in range(body["n"])
        ]
        total = sum(len(choice["token_ids"]) for choice in choices)
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": total}
        return {"choices": choices, "usage": usage}

    def pooling(self, body: dict[str, Any]) -> dict[str, Any]:
        _, user, assistant = body["messages"]
        steps = assistant["content"].split("<extra_0>")[:-1]
        texts = [SEPARATOR.join([user["content"], *steps[: i + 1]]) for i in range(len(steps))]
        scores = [self.judge.value(text) for text in texts]
        return {"data": [{"index": 0, "data": [[1 - s, s] for s in scores]}]}
