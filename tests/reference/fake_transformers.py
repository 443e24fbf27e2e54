"""A model and a tokenizer that are called as those of the library transformers are.

`generate` follows the loop of `GenerationMixin` for one text per prompt: the processors of the logits,
the likeliest token, padding behind texts that have ended, the stopping criteria. The next token's logits
are a hash of the text without padding, so no text depends on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from model_servers import bits

TOKENS = ["<pad>", "<end>", "<stop>", "\n\n", ".\n\n", "\n", "\n\nSo", *"0123456789+=? abc"]
PAD, END, STOP = range(3)


class Tensor(np.ndarray):
    """What is used of torch.Tensor."""

    def cpu(self) -> Tensor:
        return self

    def new_full(self, shape: tuple[int, ...], value: float) -> Tensor:
        return np.full(shape, value).view(Tensor)

    def new_tensor(self, values: Sequence[Any]) -> Tensor:
        return np.array(values).view(Tensor)


class Encoding(dict[str, Any]):
    def to(self, device: str) -> Encoding:
        assert device == "cpu"
        return self


class Tokenizer:
    """Longest match first; pads where it is told to."""

    pad_token_id: int | None = PAD
    eos_token_id = END

    def __call__(
        self,
        texts: list[str],
        *,
        return_tensors: str | None = None,
        padding: bool = False,
        padding_side: str = "right",
    ) -> Encoding:
        ids = [self.encode(text) for text in texts]
        if return_tensors is None:
            return Encoding(input_ids=ids)
        assert return_tensors == "pt"
        assert padding
        longest = max(map(len, ids))
        fill = [[PAD] * (longest - len(each)) for each in ids]
        gaps = [[0] * len(each) for each in fill]
        ones = [[1] * len(each) for each in ids]
        is_left = padding_side == "left"
        pairs = [(fill, ids), (gaps, ones)] if is_left else [(ids, fill), (ones, gaps)]
        whole, mask = ([a + b for a, b in zip(*pair, strict=True)] for pair in pairs)
        # Some tokenizers return this too, which generate refuses.
        types = np.zeros((len(whole), longest), dtype=np.int64).view(Tensor)
        return Encoding(
            input_ids=np.array(whole).view(Tensor),
            attention_mask=np.array(mask).view(Tensor),
            token_type_ids=types,
        )

    @staticmethod
    def encode(text: str) -> list[int]:
        ids = []
        while text:
            token = max((token for token in TOKENS if text.startswith(token)), key=len)
            ids.append(TOKENS.index(token))
            text = text[len(token) :]
        return ids

    @staticmethod
    def decode(
        ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str:
        assert skip_special_tokens
        assert not clean_up_tokenization_spaces
        return "".join(TOKENS[i] for i in ids if i > STOP)


def logits_of(ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = np.random.default_rng(bits(tuple(ids))).normal(size=len(TOKENS)) * 2
    found[PAD] = -20
    return found


class Model:
    """Answers `generate`, and keeps how it was asked."""

    device = "cpu"
    training = False

    def __init__(self, context: int = 10_000) -> None:
        self.config = SimpleNamespace(max_position_embeddings=context)
        self.generation_config = SimpleNamespace(eos_token_id=[END, STOP])
        self.asked: list[tuple[int, int]] = []

    def generate(
        self,
        *,
        input_ids: Tensor,
        attention_mask: Tensor,
        do_sample: bool,
        max_new_tokens: int,
        eos_token_id: list[int],
        pad_token_id: int,
        logits_processor: list[Callable[[Tensor, Tensor], Tensor]],
        stopping_criteria: list[Callable[[Tensor, Tensor], Tensor]],
    ) -> Tensor:
        assert not do_sample
        assert (np.diff(attention_mask, axis=1) >= 0).all()
        self.asked.append((len(input_ids), max_new_tokens))
        n_pads = (attention_mask == 0).sum(axis=1)
        assert (
            input_ids.shape[1] + max_new_tokens - n_pads.min()
            <= self.config.max_position_embeddings
        )
        is_open = np.ones(len(input_ids), dtype=bool)
        for _ in range(max_new_tokens):
            rows = zip(input_ids.tolist(), n_pads, strict=True)
            scores = np.array([logits_of(ids[n:]) for ids, n in rows]).view(Tensor)
            for process in logits_processor:
                scores = process(input_ids, scores)
            tokens = np.where(is_open, scores.argmax(axis=1), pad_token_id)
            input_ids = np.concatenate([input_ids, tokens[:, None]], axis=1).view(Tensor)
            is_open = is_open & ~np.isin(tokens, eos_token_id)
            for stops in stopping_criteria:
                is_open = is_open & ~stops(input_ids, scores)
            if not is_open.any():
                break
        return input_ids
