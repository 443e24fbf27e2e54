"""Step generators that speak a server's own protocol: llama.cpp and text-generation-inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ttsframe._checks import check_between, check_positive
from ttsframe._http import Usage
from ttsframe.errors import CompletionError, ParameterError
from ttsframe.search.servers.generator import Ask, ServerGenerator, merged
from ttsframe.search.servers.prompts import Prompt, prompt_function
from ttsframe.search.servers.service import check_text, server_settings
from ttsframe.search.servers.steps import Step, StepRule

__all__ = ["llama_cpp_generator", "tgi_generator"]


def llama_cpp_generator(
    base_url: str,
    *,
    prompt: Prompt,
    separator: str = "\n\n",
    temperature: float = 0.8,
    top_p: float = 1.0,
    max_tokens: int = 2048,
    extra: Mapping[str, object] | None = None,
    api_key: str | None = None,
    n_workers: int = 8,
    timeout: float = 600.0,
    retries: int = 5,
    backoff: float = 1.0,
    max_lost: float = 0.1,
) -> ServerGenerator:
    r"""Make a generator of steps that asks `/completion` of a llama.cpp server.

    The server says why a text ended (`stop_type`), which its OpenAI route does not. Each continuation
    is a request of its own.

    Parameters
    ----------
    base_url
        Address of the server: `"http://localhost:8080"`; a `/v1` at its end is left out.
    prompt, separator, temperature, top_p, max_tokens, extra, api_key
        As in `openai_generator`.
    n_workers
        Number of concurrent requests; more than the server's slots (`-np`) wait there.
    timeout, retries, backoff, max_lost
        As in `openai_generator`.

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
    settings = server_settings(
        "llama_cpp_generator",
        base_url,
        api_key=api_key,
        n_workers=n_workers,
        timeout=timeout,
        retries=retries,
        backoff=backoff,
        max_lost=max_lost,
        repeats_lost=False,
        drops_v1=True,
    )
    check_between(temperature, "temperature", 0.0, 100.0)
    check_between(top_p, "top_p", 0.0, 1.0)
    fields = {
        "temperature": float(temperature),
        "top_p": float(top_p),
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "n_predict": check_positive(max_tokens, "max_tokens"),
        "cache_prompt": True,
    }
    wire = _LlamaCpp(
        where=settings.base_url,
        fields=merged(fields, extra),
        rule=StepRule(check_text(separator, "separator"), "auto"),
        prompt=prompt_function(prompt),
    )
    return ServerGenerator(wire, "", settings, n_per_request=1)


def tgi_generator(
    base_url: str,
    *,
    prompt: Prompt,
    separator: str = "\n\n",
    temperature: float = 0.8,
    top_p: float = 1.0,
    max_tokens: int = 2048,
    extra: Mapping[str, object] | None = None,
    api_key: str | None = None,
    n_workers: int = 64,
    timeout: float = 600.0,
    retries: int = 5,
    backoff: float = 1.0,
    max_lost: float = 0.1,
) -> ServerGenerator:
    r"""Make a generator of steps that asks `/generate` of text-generation-inference.

    Each continuation is a request of its own.

    Parameters
    ----------
    base_url
        Address of the server: `"http://localhost:3000"`; a `/v1` at its end is left out.
    prompt, separator
        As in `openai_generator`.
    temperature
        Sampling temperature, above 0; lookaheads are greedy.
    top_p
        Share of the probability that is sampled from; 1 is not sent, since the server refuses it.
    max_tokens, extra
        As in `openai_generator`.
    api_key, n_workers, timeout, retries, backoff, max_lost
        As in `openai_generator`.

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
    settings = server_settings(
        "tgi_generator",
        base_url,
        api_key=api_key,
        n_workers=n_workers,
        timeout=timeout,
        retries=retries,
        backoff=backoff,
        max_lost=max_lost,
        repeats_lost=False,
        drops_v1=True,
    )
    check_between(temperature, "temperature", 0.0, 100.0)
    check_between(top_p, "top_p", 0.0, 1.0)
    if temperature == 0:
        raise ParameterError("temperature == 0, must be above 0: all continuations would be equal.")
    fields = {
        "do_sample": True,
        "temperature": float(temperature),
        "top_p": float(top_p) if top_p < 1 else None,
        "repetition_penalty": 1.0,
        "max_new_tokens": check_positive(max_tokens, "max_tokens"),
        "return_full_text": False,
        "details": True,
    }
    wire = _Tgi(
        where=settings.base_url,
        fields=merged(fields, extra),
        rule=StepRule(check_text(separator, "separator"), "auto"),
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
                f"{' '.join(repr(reply).split())[:300]}."
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
        generated = found.get("tokens_predicted")
        timings = found.get("timings")
        new = timings.get("prompt_n") if isinstance(timings, dict) else None
        evaluated = found.get("tokens_evaluated")
        usage.n_prompt_tokens += evaluated if isinstance(evaluated, int) else 0
        usage.n_completion_tokens += generated if isinstance(generated, int) else 0
        return [
            self.step(found.get("content"), ended, ask, reply)._replace(
                n_tokens=generated if isinstance(generated, int) else None,
                n_prompt_tokens_new=new if isinstance(new, int) else None,
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
        generated = told.get("generated_tokens")
        tokens = told.get("tokens")
        usage.n_completion_tokens += generated if isinstance(generated, int) else 0
        values = (
            [each.get("logprob") for each in tokens if isinstance(each, dict)]
            if isinstance(tokens, list)
            else []
        )
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        ended = reasons.get(str(told.get("finish_reason")))
        return [
            self.step(found.get("generated_text"), ended, ask, reply)._replace(
                n_tokens=generated if isinstance(generated, int) else None,
                logprob=sum(numbers) if numbers else None,
            )
        ]
