"""Steps from a model of the library transformers, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import check_between, check_positive
from ttsframe._draws import bits_at, uniforms
from ttsframe._typing import Floats, Integers
from ttsframe.errors import CompletionError, MissingExtraError, ParameterError, ParameterTypeError
from ttsframe.search.servers.prompts import Prompt, prompt_function
from ttsframe.search.servers.service import check_text
from ttsframe.search.servers.steps import Step, StepRule

__all__ = ["TransformersGenerator", "transformers_generator"]

_WHERE: Final = "transformers"


class _Row(NamedTuple):
    """One continuation to write."""

    place: int
    prompt: str
    n_prompt: int
    key: int
    is_greedy: bool
    until: str
    n_new: int


class TransformersGenerator:
    r"""Steps from a model in this process, a `tts.search.Generator`; `transformers_generator` makes it.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.search.servers.TransformersGenerator.__name__
    'TransformersGenerator'
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - a class of a library that may be missing
        tokenizer: Any,  # noqa: ANN401
        *,
        prompt: Prompt,
        rule: StepRule,
        temperature: float,
        top_p: float,
        max_tokens: int,
        batch_size: int,
    ) -> None:
        self._model, self._tokenizer = _plain(model), tokenizer
        self._prompt = prompt_function(prompt)
        self._rule = rule
        self._temperature, self._top_p = temperature, top_p
        self._max_tokens, self._batch_size = max_tokens, batch_size
        self._ends = _ends(model, tokenizer)
        found = getattr(getattr(model, "config", None), "max_position_embeddings", None)
        self._context = found if isinstance(found, int) else None

    def __repr__(self) -> str:
        """Return the class of the model."""
        return f"{type(self).__name__} of {type(self._model).__name__}"

    def __call__(self, requests: pl.DataFrame, /) -> pl.DataFrame:
        """Continue each node `n` times."""
        if requests["problem"].null_count():
            raise ParameterError(
                "problems: a text is missing in the column 'problem', which the prompts are made of."
            )
        steps: dict[int, Step] = {}
        for rows in self._calls(requests):
            steps.update(zip([row.place for row in rows], self._write(rows), strict=True))
        ordered = [steps[place] for place in range(len(steps))]
        return pl.DataFrame(
            {
                "text": [step.text for step in ordered],
                "finish_reason": [step.finish_reason for step in ordered],
                "n_tokens": [step.n_tokens for step in ordered],
            },
            schema={"text": pl.String, "finish_reason": pl.String, "n_tokens": pl.Int64},
        )

    def _calls(self, requests: pl.DataFrame) -> Iterator[list[_Row]]:
        """Yield the rows of each call: alike in what a call has one of, prompts of like length together."""
        columns = ("problem", "prefix", "is_greedy", "until", "n")
        problems, prefixes, greedy, until, wanted = (requests[name].to_list() for name in columns)
        prompts = [
            self._prompt(problem) + prefix
            for problem, prefix in zip(problems, prefixes, strict=True)
        ]
        lengths = [len(ids) for ids in self._tokenizer(prompts)["input_ids"]] if prompts else []
        copies = np.array(wanted, dtype=np.int64)
        request = np.repeat(np.arange(len(prompts)), copies)
        child = np.arange(len(request)) - np.repeat(copies.cumsum() - copies, copies)
        keys = bits_at(requests["draw"].to_numpy()[request], child).tolist()
        rows = []
        for place, number in enumerate(request.tolist()):
            room = self._max_tokens
            if self._context is not None:
                room = max(0, min(room, self._context - lengths[number]))
            rows.append(
                _Row(
                    place,
                    prompts[number],
                    lengths[number],
                    keys[place],
                    greedy[number],
                    until[number],
                    room,
                )
            )
        rows.sort(key=lambda row: (row.is_greedy, row.until, row.n_new, row.n_prompt, row.place))
        start = 0
        for end in range(1, len(rows) + 1):
            is_alike = end < len(rows) and rows[end][4:] == rows[start][4:]
            if end - start == self._batch_size or not is_alike:
                yield rows[start:end]
                start = end

    def _write(self, rows: Sequence[_Row]) -> list[Step]:
        """Continue some prompts in one call of the model."""
        _, _, _, _, is_greedy, until, n_new = rows[0]
        if n_new == 0:
            return [Step("", "length", 0)] * len(rows)
        inputs = self._tokenizer(
            [row.prompt for row in rows], return_tensors="pt", padding=True, padding_side="left"
        ).to(self._model.device)
        if not _array(inputs["attention_mask"])[:, -1].all():
            raise CompletionError(
                f"{_WHERE}: the tokenizer put its padding behind the prompts, must be in front. Hint: "
                "transformers 4.45 or newer knows padding_side."
            )
        n_prompt = inputs["input_ids"].shape[1]
        end = _EndOfStep(
            self._tokenizer, n_prompt, self._rule.separator if until == "step" else None
        )
        keys = np.array([row.key for row in rows], dtype=np.uint64)
        temperature = 0.0 if is_greedy else self._temperature
        sequences = self._model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            # The one token that `_Sampler` leaves is the likeliest; the library's own sampling
            # draws from one stream for the whole batch.
            do_sample=False,
            max_new_tokens=n_new,
            eos_token_id=sorted(self._ends) or None,
            pad_token_id=self._tokenizer.pad_token_id,
            logits_processor=[_Sampler(keys, n_prompt, temperature, self._top_p)],
            stopping_criteria=[end],
        )
        written = _array(sequences)
        if written.ndim != 2 or len(written) != len(rows) or written.shape[1] < n_prompt:
            raise CompletionError(
                f"{_WHERE}: generate returned an array of shape {written.shape}, expected {len(rows)} rows of "
                f"at least {n_prompt} tokens."
            )
        return [
            self._step(ids, end.lengths.get(number), until, n_new, context=int(prompt[-1]))
            for number, (ids, prompt) in enumerate(
                zip(written[:, n_prompt:].tolist(), written[:, :n_prompt], strict=True)
            )
        ]

    def _step(
        self, ids: list[int], n_step: int | None, until: str, n_new: int, *, context: int
    ) -> Step:
        """Return the step in what was written behind a prompt, without the padding."""
        n_whole = next((place for place, token in enumerate(ids) if token in self._ends), None)
        if n_step is not None and (n_whole is None or n_step <= n_whole):
            text = _decoded(self._tokenizer, ids[:n_step], context)
            head, separator, _ = text.partition(self._rule.separator)
            return Step(head + separator, "step", n_step)
        if n_whole is None:
            is_cut, n_tokens = True, min(len(ids), n_new)
        else:
            is_cut, n_tokens = False, n_whole + 1
        text = _decoded(self._tokenizer, ids[:n_tokens] if is_cut else ids[:n_whole], context)
        ended = self._rule.ended(text, is_cut=is_cut, stopped_by=None, until=until, where=_WHERE)
        return Step(ended.text, ended.finish_reason, n_tokens)


class _Sampler:
    """Draws the next token of each row from its own stream, and leaves no other token possible."""

    def __init__(
        self, keys: npt.NDArray[np.uint64], n_prompt: int, temperature: float, top_p: float
    ) -> None:
        self._keys, self._n_prompt = keys, n_prompt
        self._temperature, self._top_p = temperature, top_p

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401
        logits = _array(scores).astype(np.float64)
        if self._temperature == 0:
            tokens = logits.argmax(axis=1)
        else:
            place = np.full(len(logits), input_ids.shape[1] - self._n_prompt)
            chances = _chances(logits / self._temperature, self._top_p)
            sums = chances.cumsum(axis=1)
            drawn = uniforms(bits_at(self._keys, place)) * sums[:, -1]
            tokens = np.minimum((sums <= drawn[:, None]).sum(axis=1), logits.shape[1] - 1)
        only = scores.new_full(tuple(scores.shape), float("-inf"))
        only[list(range(len(tokens))), tokens.tolist()] = 0.0
        return only


def _chances(logits: Floats, top_p: float) -> Floats:
    """Return the softmax, without the least likely tokens that are not needed for a sum of `top_p`."""
    chances: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    if top_p < 1:
        order = np.argsort(-chances, axis=1, kind="stable")
        ranked = np.take_along_axis(chances, order, axis=1)
        ranked[ranked.cumsum(axis=1) - ranked >= top_p] = 0
        np.put_along_axis(chances, order, ranked, axis=1)
    return chances


class _EndOfStep:
    """Stops a row once the separator is in what was written; the prompt may end with one."""

    def __init__(self, tokenizer: Any, n_prompt: int, separator: str | None) -> None:  # noqa: ANN401
        self._tokenizer, self._n_prompt, self._separator = tokenizer, n_prompt, separator
        self.lengths: dict[int, int] = {}

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002
        written = _array(input_ids)[:, self._n_prompt :]
        if self._separator is not None:
            for number, ids in enumerate(written.tolist()):
                if number not in self.lengths and self._separator in _decoded(
                    self._tokenizer, ids, None
                ):
                    self.lengths[number] = len(ids)
        return input_ids.new_tensor([number in self.lengths for number in range(len(written))]) > 0


def _array(tensor: Any) -> Integers:  # noqa: ANN401
    """Return a tensor of any device as an array."""
    return np.asarray(tensor.cpu())


def _decoded(tokenizer: Any, ids: list[int], context: int | None) -> str:  # noqa: ANN401
    """Return the text of tokens; behind a token of context, since some tokenizers drop a first space."""

    def decode(some: list[int]) -> str:
        return str(
            tokenizer.decode(some, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    if context is None:
        return decode(ids)
    before, whole = decode([context]), decode([context, *ids])
    return whole.removeprefix(before) if whole.startswith(before) else decode(ids)


def _plain(model: Any) -> Any:  # noqa: ANN401
    """Return a model, its weights shared, without what its files say on generating: penalties, bans, lengths."""
    told = getattr(model, "generation_config", None)
    if told is None:
        return model
    plain = copy(model)
    plain.generation_config = type(told)(
        cache_implementation=getattr(told, "cache_implementation", None)
    )
    return plain


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:  # noqa: ANN401
    """Return the tokens that end a text, of which a model may have several."""
    found = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if found is None:
        found = tokenizer.eos_token_id
    if found is None:
        return frozenset()
    return frozenset([found] if isinstance(found, int) else found)


def transformers_generator(
    model: object,
    tokenizer: object = None,
    *,
    prompt: Prompt,
    separator: str = "\n\n",
    temperature: float = 0.8,
    top_p: float = 1.0,
    max_tokens: int = 2048,
    batch_size: int = 32,
) -> TransformersGenerator:
    r"""Make a generator of steps from a model of the library transformers, without a server.

    For small models and for trying out; a server with a cache of prefixes is much faster. The library and
    PyTorch are not installed with any extra of this package.

    Parameters
    ----------
    model
        A decoder-only model with the method `generate`, in evaluation mode; or the name or folder of
        one, which `AutoModelForCausalLM` loads.
    tokenizer
        Its tokenizer, with a padding token. None: the one of the name or folder.
    prompt
        What comes before the steps: a text with `{problem}` in it, or a function of the problem, such
        as `chat_prompt` makes by the model's chat template. The tokenizer adds its special tokens.
    separator
        Text that ends a step, and is part of it. Looked for in what was written, so a separator at the
        end of the prompt does not count.
    temperature
        Sampling temperature; lookaheads use 0.
    top_p
        Share of the probability that is sampled from.
    max_tokens
        Maximum number of tokens of a step, less where the context of the model ends. A step that is cut
        there has `finish_reason` "length".
    batch_size
        Maximum number of texts per call of `generate`; prompts of like length are put together.

    Returns
    -------
    TransformersGenerator
        The generator, for `tts.search.search`.

    Raises
    ------
    ParameterTypeError
        When a parameter has the wrong type.
    ParameterError
        When a parameter cannot be used, the tokenizer has no padding token, or the model is in training
        mode.
    MissingExtraError
        When `model` is a name and transformers or PyTorch is not installed.

    Notes
    -----
    `generate` draws from one random stream for all texts of a call. Here each continuation has a stream
    of its own, drawn from the node and its index, so that it does not depend on `batch_size` nor on
    the other texts. What can still differ is the rounding of the model: padding, batch, device and
    version change its logits in the last digits, and where a draw falls on such a digit, the token. On
    one machine the same call gives the same steps, unless the device's own kernels are random.

    Of the model's own `generation_config` only the tokens that end a text and the kind of its cache are used: its
    temperature, penalties, banned tokens and lengths would change what is sampled.

    A step ends at the first of: the end-of-text token ("stop", counted in `n_tokens`), the token that
    completes the separator ("step"; what that token holds behind it is cut off), `max_tokens`
    ("length").

    Examples
    --------
    >>> import ttsframe as tts
    >>> def load():  # not run here: needs transformers and PyTorch
    ...     return tts.search.servers.transformers_generator(
    ...         "Qwen/Qwen2.5-0.5B-Instruct", prompt="{problem}\n\n"
    ...     )
    """
    if isinstance(model, str):
        model, tokenizer = _loaded(model, tokenizer)
    if not callable(getattr(model, "generate", None)):
        raise ParameterTypeError(
            f"model is a {type(model).__name__}, must be a name or have the method generate, such as "
            "AutoModelForCausalLM.from_pretrained(name)."
        )
    if getattr(model, "training", False):
        raise ParameterError(
            "model is in training mode, which draws at random. Hint: model.eval()."
        )
    if not callable(tokenizer) or not callable(getattr(tokenizer, "decode", None)):
        raise ParameterTypeError(
            f"tokenizer is a {type(tokenizer).__name__}, must be the model's tokenizer. Hint: "
            "AutoTokenizer.from_pretrained(name)."
        )
    if getattr(tokenizer, "pad_token_id", None) is None:
        raise ParameterError(
            "tokenizer has no padding token. Hint: tokenizer.pad_token = tokenizer.eos_token."
        )
    check_between(temperature, "temperature", 0.0, 100.0)
    check_between(top_p, "top_p", 0.0, 1.0)
    if top_p == 0:
        raise ParameterError(
            "top_p == 0.0, must be above 0. Hint: temperature=0 takes the likeliest token."
        )
    return TransformersGenerator(
        model,
        tokenizer,
        prompt=prompt,
        rule=StepRule(check_text(separator, "separator"), "auto"),
        temperature=float(temperature),
        top_p=float(top_p),
        max_tokens=check_positive(max_tokens, "max_tokens"),
        batch_size=check_positive(batch_size, "batch_size"),
    )


def _loaded(name: str, tokenizer: object) -> tuple[object, object]:
    """Load a model and, unless there is one, its tokenizer."""
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingExtraError(
            f"model == {name!r} needs transformers and PyTorch, which are not installed. Hint: python -m pip "
            "install transformers torch."
        ) from error
    if tokenizer is None:
        tokenizer = AutoTokenizer.from_pretrained(name)
    return AutoModelForCausalLM.from_pretrained(name).eval(), tokenizer
