"""Step generators that speak a server's own protocol: llama.cpp and text-generation-inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

from ttsframe._http import Usage
from ttsframe._http.replies import count_of, quote, total_logprob
from ttsframe.errors import CompletionError, ParameterError
from ttsframe.search.servers.generator import Ask, ServerGenerator, merged
from ttsframe.search.servers.prompts import Prompt, prompt_function
from ttsframe.search.servers.sampling import GeneratorOptions, read_options
from ttsframe.search.servers.steps import Step, StepRule

__all__ = ["llama_cpp_generator", "tgi_generator"]


def llama_cpp_generator(
    base_url: str,
    *,
    prompt: Prompt,
    **options: Unpack[GeneratorOptions],
) -> ServerGenerator:
    r"""Make a generator of steps that asks `/completion` of a llama.cpp server.

    The server says why a text ended (`stop_type`), which its OpenAI route does not. Each continuation
    is a request of its own.

    Parameters
    ----------
    base_url
        Address of the server: `"http://localhost:8080"`; a `/v1` at its end is left out.
    prompt
        As in `openai_generator`.
    **options
        As in `openai_generator`, but ``n_workers=8``: more requests than the server's slots (`-np`) wait
        there.

    Returns
    -------
    ServerGenerator
        The generator, for `tts.search.search`.

    Raises
    ------
    ParameterTypeError
        When a parameter has the wrong type.
    ParameterError
        When a parameter cannot be used.
    MissingExtraError
        When httpx is not installed.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.search.servers.llama_cpp_generator("http://localhost:8080", prompt="{problem}\n\n")
    ServerGenerator at http://localhost:8080
    """
    options.setdefault("n_workers", 8)
    sampling, settings = read_options("llama_cpp_generator", base_url, drops_v1=True, **options)
    fields = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "n_predict": sampling.max_tokens,
        "cache_prompt": True,
    }
    wire = _LlamaCpp(
        where=settings.base_url,
        fields=merged(fields, sampling.extra),
        rule=StepRule(sampling.separator, "auto"),
        prompt=prompt_function(prompt),
    )
    return ServerGenerator(wire, "", settings, n_per_request=1)


def tgi_generator(
    base_url: str,
    *,
    prompt: Prompt,
    **options: Unpack[GeneratorOptions],
) -> ServerGenerator:
    r"""Make a generator of steps that asks `/generate` of text-generation-inference.

    Each continuation is a request of its own.

    Parameters
    ----------
    base_url
        Address of the server: `"http://localhost:3000"`; a `/v1` at its end is left out.
    prompt
        As in `openai_generator`.
    **options
        As in `openai_generator`; `temperature` must be above 0, and a `top_p` of 1 is not sent, since
        the server refuses both.

    Returns
    -------
    ServerGenerator
        The generator, for `tts.search.search`.

    Raises
    ------
    ParameterTypeError
        When a parameter has the wrong type.
    ParameterError
        When a parameter cannot be used.
    MissingExtraError
        When httpx is not installed.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.search.servers.tgi_generator("http://localhost:3000", prompt="{problem}\n\n")
    ServerGenerator at http://localhost:3000
    """
    sampling, settings = read_options("tgi_generator", base_url, drops_v1=True, **options)
    if sampling.temperature == 0:
        raise ParameterError("temperature == 0, must be above 0: all continuations would be equal.")
    fields = {
        "do_sample": True,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p if sampling.top_p < 1 else None,
        "repetition_penalty": 1.0,
        "max_new_tokens": sampling.max_tokens,
        "return_full_text": False,
        "details": True,
    }
    wire = _Tgi(
        where=settings.base_url,
        fields=merged(fields, sampling.extra),
        rule=StepRule(sampling.separator, "auto"),
        prompt=prompt_function(prompt),
    )
    return ServerGenerator(wire, "", settings, n_per_request=1)


@dataclass
class _Native:
    """What both protocols share."""

    where: str
    fields: Mapping[str, object]
    rule: StepRule
    prompt: Callable[[str], str]
    path = ""

    def step(self, text: object, ended: str | None, ask: Ask, reply: object) -> Step:
        """Return the step; `ended` is "word", "end", "limit", or None for what is not known."""
        if not isinstance(text, str) or ended is None:
            raise CompletionError(
                f"{self.where}{self.path}: the answer does not have the text and why it ended: "
                f"{quote(reply)}."
            )
        found = self.rule.ended(
            text,
            is_cut=ended == "limit",
            stopped_by=self.rule.separator if ended == "word" else None,
            until=ask.until,
            where=self.where,
        )
        return Step(*found)


@dataclass
class _LlamaCpp(_Native):
    """The wire of llama.cpp's `/completion`."""

    path = "/completion"

    def body(self, ask: Ask) -> dict[str, object]:
        body = dict(self.fields) | {
            "prompt": self.prompt(ask.problem) + ask.prefix,
            "seed": ask.seed,
            "stop": self.rule.stops if ask.until == "step" else [],
        }
        return body | {"temperature": 0.0} if ask.is_greedy else body

    def read(self, reply: object, ask: Ask, usage: Usage) -> list[Step]:
        found = reply if isinstance(reply, dict) else {}
        ended = {"word": "word", "eos": "end", "limit": "limit"}.get(str(found.get("stop_type")))
        if "stop_type" not in found:  # before December 2024
            for name, reason in (("word", "word"), ("eos", "end"), ("limit", "limit")):
                if found.get(f"stopped_{name}") is True:
                    ended = reason
        if found.get("truncated") is True:  # the beginning of the prompt was thrown away
            ended = "limit"
        generated = count_of(found.get("tokens_predicted"))
        timings = found.get("timings")
        new = count_of(timings.get("prompt_n")) if isinstance(timings, dict) else None
        usage.n_prompt_tokens += count_of(found.get("tokens_evaluated")) or 0
        usage.n_completion_tokens += generated or 0
        return [
            self.step(found.get("content"), ended, ask, reply)._replace(
                n_tokens=generated, n_prompt_tokens_new=new
            )
        ]


@dataclass
class _Tgi(_Native):
    """The wire of text-generation-inference's `/generate`."""

    path = "/generate"

    def body(self, ask: Ask) -> dict[str, object]:
        parameters = dict(self.fields) | {
            "seed": ask.seed,
            "stop": self.rule.stops if ask.until == "step" else [],
        }
        if ask.is_greedy:
            for name in ("temperature", "top_p", "seed"):
                parameters.pop(name, None)
            parameters["do_sample"] = False
        return {"inputs": self.prompt(ask.problem) + ask.prefix, "parameters": parameters}

    def read(self, reply: object, ask: Ask, usage: Usage) -> list[Step]:
        found = reply if isinstance(reply, dict) else {}
        details = found.get("details")
        told = details if isinstance(details, dict) else {}
        reasons = {"stop_sequence": "word", "eos_token": "end", "length": "limit"}
        generated = count_of(told.get("generated_tokens"))
        usage.n_completion_tokens += generated or 0
        tokens = told.get("tokens")
        listed = tokens if isinstance(tokens, list) else []
        values = [each.get("logprob") for each in listed if isinstance(each, dict)]
        ended = reasons.get(str(told.get("finish_reason")))
        return [
            self.step(found.get("generated_text"), ended, ask, reply)._replace(
                n_tokens=generated, logprob=total_logprob(values)
            )
        ]
