"""A transformer in numpy with seeded random weights, as a model that writes steps and as one that scores them."""

from __future__ import annotations

from typing import Any

import model_servers as fake
import numpy as np
import numpy_transformer as net

SEPARATOR, END = "\n\n", "<end>"
VOCABULARY = [SEPARATOR, END, *"0123456789+-=?. abcdefghijklmnopqrstuvwxyz"]
IDS = {token: number for number, token in enumerate(VOCABULARY)}
WIDTH, HEADS, LAYERS, CONTEXT = 24, 2, 2, 256


class TinyTransformer:
    """Causal attention and two-layer perceptrons; a head for the next token, and one for the score."""

    def __init__(self, seed: int) -> None:
        weights = net.random_weights(
            seed, len(VOCABULARY), CONTEXT, width=WIDTH, n_layers=LAYERS, inner=64
        )
        self.weights = {name: values.astype(np.float64) for name, values in weights.items()}

    @staticmethod
    def encode(text: str) -> list[int]:
        ids = []
        while text:
            token = SEPARATOR if text.startswith(SEPARATOR) else text[0]
            ids.append(IDS[token])
            text = text[len(token) :]
        return ids

    def hidden(self, ids: list[int]) -> net.Numbers:
        """Return the state of the last token."""
        states, _ = net.last_states(self.weights, np.array([ids]), n_heads=HEADS)
        return np.asarray(states[0])

    def write(
        self, prompt: str, seed: int, *, temperature: float, stop: bool, most: int
    ) -> dict[str, Any]:
        """Continue a text, as a choice of /v1/completions."""
        draw, ids = np.random.default_rng(seed), self.encode(prompt)
        written: list[int] = []
        reason, stopped_by = "length", None
        while len(written) < most:
            logits = self.hidden((ids + written)[-CONTEXT:]) @ self.weights["next"]
            logits[IDS[SEPARATOR]] += 1.0
            if temperature == 0:
                token = int(np.argmax(logits))
            else:
                token = int(draw.choice(len(logits), p=net.softmax(logits / temperature)))
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
        return float(
            1 / (1 + np.exp(-self.hidden(self.encode(text)[-CONTEXT:]) @ self.weights["score"]))
        )


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
