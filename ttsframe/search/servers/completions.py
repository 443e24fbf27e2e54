"""Step generators that speak the OpenAI protocol: vLLM, SGLang and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Unpack

from ttsframe._checks import check_choice, check_positive
from ttsframe._http import Usage
from ttsframe._http.replies import count_of, in_order, quote, total_logprob
from ttsframe.errors import CompletionError
from ttsframe.search.servers.generator import Ask, ServerGenerator, merged
from ttsframe.search.servers.prompts import Prompt, prompt_function
from ttsframe.search.servers.sampling import GeneratorOptions, Sampling, read_options
from ttsframe.search.servers.service import check_text
from ttsframe.search.servers.steps import UNSAID, Step, StepEnd, StepRule

__all__ = ["chat_generator", "openai_generator"]

_STEP_ENDS: Final = ("auto", "text", "newline")


def openai_generator(
    base_url: str,
    model: str,
    *,
    prompt: Prompt,
    step_end: StepEnd = "auto",
    logprobs: bool = False,
    n_per_request: int | None = None,
    **options: Unpack[GeneratorOptions],
) -> ServerGenerator:
    r"""Make a generator of steps that asks `/completions` of an OpenAI-compatible server.

    A step ends where the model writes the separator; what stopped a text is read from `stop_reason`
    (vLLM) or `matched_stop` (SGLang), and a separator that the server cut off is put back. Needs the
    extra `server`: ``pip install 'ttsframe[server]'``.

    Parameters
    ----------
    base_url
        Address of the server including the `/v1` of most servers: `"http://localhost:8000/v1"`.
        Proxies are read from the environment, certificates from the system.
    model
        Name of the model on the server.
    prompt
        What comes before the steps: a text with `{problem}` in it, or a function of the problem, such
        as `chat_prompt` makes by the model's chat template.
    step_end
        How to tell the end of a step from the end of the solution.

        - ``"auto"``: by what the server says; if it says nothing, by the separator at the end of the
          text. A server that says nothing and cuts the separator off is refused.
        - ``"text"``: the same, for a server that is known to leave the separator in its texts.
        - ``"newline"``: no stop text is sent. The model writes on, and the text is cut after the first
          separator. Works everywhere, and wastes the tokens behind it.
    logprobs
        Whether to ask for the log-probabilities of the tokens. The sum over the step is returned as
        `logprob`; `search` does not keep it.
    n_per_request
        Maximum number of continuations per request; None: all of a node. A server that returns fewer is
        asked for the rest, and for no more at once from then on. With 1 each continuation has its own
        seed and token count; with more they share a seed, from which the server draws different ones.
    **options
        Options of all generators:

        - ``separator="\n\n"``: text that ends a step, and is part of it.
        - ``temperature=0.8``: sampling temperature; lookaheads use 0.
        - ``top_p=1.0``: share of the probability that is sampled from.
        - ``max_tokens=2048``: maximum number of tokens of a step. One that is cut there has
          `finish_reason` "length".
        - ``extra=None``: further fields of a request, or other values of those sent: `{"top_k": 20}`.
          None takes a field out, for servers that refuse what they do not know: `{"top_k": None,
          "min_p": None, "repetition_penalty": None, "return_token_ids": None,
          "include_stop_str_in_output": None}`.
        - ``api_key=None``: sent as a bearer token, only to this address: redirects are refused. The key
          never appears in a message, a file or a representation.
        - ``n_workers=64``: number of concurrent requests.
        - ``timeout=600.0``: time limit of one try in seconds, for headers and body together. A request
          that takes longer is not repeated, because that would favor short steps: its steps have
          `finish_reason` "error".
        - ``retries=5``: maximum number of repetitions of a request that was answered with 409, 425, 429
          or 502 to 504, or was refused or cut off before the first byte. Nothing else is repeated.
        - ``backoff=1.0``: seconds before the first repetition. The pause doubles up to 60 seconds and is
          shortened at random by up to half. A `Retry-After` of the server takes precedence.
        - ``max_lost=0.1``: share of requests that may be given up (timeouts, replies of 500, replies
          that break off); above it, and from the fourth on, the search stops.

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
    >>> tts.search.servers.openai_generator(
    ...     "http://localhost:8000/v1", "meta-llama/Llama-3.2-1B", prompt="{problem}\n\n", api_key="secret"
    ... )
    ServerGenerator of 'meta-llama/Llama-3.2-1B' at http://localhost:8000/v1
    """
    sampling, settings = read_options("openai_generator", base_url, **options)
    fields = _fields(model, sampling)
    if logprobs:
        fields["logprobs"] = 1
    wire = _Completions(
        path="/completions",
        where=settings.base_url,
        fields=merged(fields, sampling.extra),
        rule=_rule(sampling.separator, step_end),
        prompt=prompt_function(prompt),
    )
    most = None if n_per_request is None else check_positive(n_per_request, "n_per_request")
    return ServerGenerator(wire, model, settings, n_per_request=most)


def chat_generator(
    base_url: str,
    model: str,
    *,
    system: str | None = None,
    step_end: StepEnd = "auto",
    n_per_request: int | None = None,
    **options: Unpack[GeneratorOptions],
) -> ServerGenerator:
    """Make a generator of steps that asks `/chat/completions` to continue the assistant's message.

    For servers without `/completions`, or models whose chat template is only on the server. The first
    call checks with three requests of one token that the server continues the message, instead of
    beginning a new one, and that its template keeps the separator at the end; otherwise it is refused.
    `openai_generator` with `chat_prompt` needs no such check.

    Parameters
    ----------
    base_url, model
        Address of the server, and name of the model there.
    system
        Text of a system message; None: no such message.
    step_end, n_per_request
        As in `openai_generator`.
    **options
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
    >>> tts.search.servers.chat_generator("http://localhost:8000/v1", "Qwen/Qwen2.5-1.5B-Instruct")
    ServerGenerator of 'Qwen/Qwen2.5-1.5B-Instruct' at http://localhost:8000/v1
    """
    sampling, settings = read_options("chat_generator", base_url, **options)
    fields = _fields(model, sampling)
    wire = _Chat(
        path="/chat/completions",
        where=settings.base_url,
        fields=merged(fields, sampling.extra),
        rule=_rule(sampling.separator, step_end),
        prompt=lambda problem: problem,
        system=system,
    )
    most = None if n_per_request is None else check_positive(n_per_request, "n_per_request")
    return ServerGenerator(wire, model, settings, n_per_request=most, check=wire.check)


def _rule(separator: str, step_end: StepEnd) -> StepRule:
    check_choice(step_end, "step_end", _STEP_ENDS)
    return StepRule(separator, step_end)


def _fields(model: str, sampling: Sampling) -> dict[str, object]:
    """Return all sampling values, because servers take those that are missing from the model's files."""
    return {
        "model": check_text(model, "model"),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tokens": sampling.max_tokens,
        "return_token_ids": True,
        "include_stop_str_in_output": True,
    }


@dataclass
class _Completions:
    """The wire of `/completions`."""

    path: str
    where: str
    fields: Mapping[str, object]
    rule: StepRule
    prompt: Callable[[str], str]

    def body(self, ask: Ask) -> dict[str, object]:
        body = dict(self.fields) | self.asked(ask) | {"n": ask.n, "seed": ask.seed}
        if ask.is_greedy:
            body |= {"temperature": 0.0, "top_p": 1.0}
        if ask.until == "step" and self.rule.stops:
            body["stop"] = self.rule.stops
        return body

    def asked(self, ask: Ask) -> dict[str, object]:
        """Return the fields that hold the path."""
        return {"prompt": self.prompt(ask.problem) + ask.prefix}

    def read(self, reply: object, ask: Ask, usage: Usage) -> list[Step]:
        where = f"{self.where}{self.path}"
        choices = reply.get("choices") if isinstance(reply, dict) else None
        if not isinstance(reply, dict) or not isinstance(choices, list):
            raise CompletionError(f"{where}: the answer has no list 'choices': {quote(reply)}.")
        if not all(isinstance(choice, dict) for choice in choices):
            raise CompletionError(f"{where}: a choice is no object: {quote(choices)}.")
        choices = in_order(choices, "choices", where)
        prompt_tokens, generated, new_tokens = _usage(reply.get("usage"))
        usage.n_prompt_tokens += prompt_tokens
        usage.n_completion_tokens += generated or 0
        steps = [self._step(choice, ask, where, usage) for choice in choices]
        if len(steps) == 1 and steps[0].n_tokens is None:
            steps = [steps[0]._replace(n_tokens=generated)]
        if new_tokens is not None:  # the prompt of a request is read once
            steps = [
                step._replace(n_prompt_tokens_new=new_tokens if i == 0 else 0)
                for i, step in enumerate(steps)
            ]
        return steps

    def _step(self, choice: dict[str, object], ask: Ask, where: str, usage: Usage) -> Step:
        text = self.text(choice, where)
        n_tokens, logprob = _counted(choice)
        finish = choice.get("finish_reason")
        if finish not in ("stop", "length"):  # such as "abort" and "content_filter"
            usage.lost[f"ended by {quote(finish)}"] += 1
            return Step(None, "error", n_tokens)
        stopped_by = choice.get("stop_reason", choice.get("matched_stop", UNSAID))
        ended = self.rule.ended(
            text, is_cut=finish == "length", stopped_by=stopped_by, until=ask.until, where=where
        )
        return Step(*ended, n_tokens, None, logprob)

    def text(self, choice: dict[str, object], where: str) -> str:
        """Return the text of a choice."""
        text = choice.get("text")
        if not isinstance(text, str):
            raise CompletionError(f"{where}: a choice has no string 'text': {quote(choice)}.")
        return text


@dataclass
class _Chat(_Completions):
    """The wire of `/chat/completions`, which continues the assistant's message."""

    system: str | None = None

    def asked(self, ask: Ask) -> dict[str, object]:
        return self._messages(ask.problem, ask.prefix)

    def _messages(self, problem: str, prefix: str, *, continues: bool = True) -> dict[str, object]:
        messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        messages.append({"role": "user", "content": problem})
        if prefix:
            messages.append({"role": "assistant", "content": prefix})
        is_continued = continues and bool(prefix)
        return {
            "messages": messages,
            "add_generation_prompt": not is_continued,
            "continue_final_message": is_continued,
        }

    def text(self, choice: dict[str, object], where: str) -> str:
        message = choice.get("message")
        text = message.get("content") if isinstance(message, dict) else None
        if not isinstance(text, str):
            raise CompletionError(
                f"{where}: a choice has no string 'message.content': {quote(choice)}. Hint: a server with a "
                "reasoning parser returns the text elsewhere; start it without."
            )
        return text

    def check(self, generator: ServerGenerator) -> None:
        """Check that the server continues a message as it stands, by the lengths of three prompts."""
        where = f"{self.where}{self.path}"
        step = "First, 1 + 1 = 2."
        asked = [
            self._messages("What is 1 + 1 + 1?", step),
            self._messages("What is 1 + 1 + 1?", step, continues=False),
            self._messages("What is 1 + 1 + 1?", step + self.rule.separator),
        ]
        fields = dict(self.fields) | {"max_tokens": 1, "n": 1, "seed": 0}
        lengths = generator._client.send_all(  # noqa: SLF001 - the wire is part of its generator
            self.path,
            [fields | messages for messages in asked],
            lambda _, reply: _usage(reply.get("usage") if isinstance(reply, dict) else None)[0],
        )
        hint = "Hint: openai_generator with chat_prompt renders the messages here."
        if not all(lengths):
            raise CompletionError(
                f"{where}: gives no 'usage', so it cannot be checked that it continues a message. {hint}"
            )
        continued, begun, longer = lengths
        if continued >= begun:
            raise CompletionError(
                f"{where}: does not continue the assistant's message but begins a new one: prompts of "
                f"{continued} and {begun} tokens with and without 'continue_final_message'. {hint}"
            )
        if longer <= continued:
            raise CompletionError(
                f"{where}: the chat template cuts off {self.rule.separator!r} at the end of a step: prompts "
                f"of {longer} and {continued} tokens with and without it. {hint}"
            )


def _usage(usage: object) -> tuple[int, int | None, int | None]:
    """Return prompt tokens, generated tokens, and prompt tokens that no cache held, where it is told."""
    if not isinstance(usage, dict):
        return 0, None, None
    n_prompt = count_of(usage.get("prompt_tokens")) or 0
    details = usage.get("prompt_tokens_details")
    cached = count_of(details.get("cached_tokens")) if isinstance(details, dict) else None
    fresh = n_prompt - cached if cached is not None and cached <= n_prompt else None
    return n_prompt, count_of(usage.get("completion_tokens")), fresh


def _counted(choice: dict[str, object]) -> tuple[int | None, float | None]:
    """Return the tokens of a choice and the sum of their log-probabilities, as far as they are told."""
    ids, logprobs = choice.get("token_ids"), choice.get("logprobs")
    values: list[object] | None = None
    if isinstance(logprobs, dict):
        listed = logprobs.get("token_logprobs")
        content = logprobs.get("content")
        if isinstance(listed, list):
            values = listed
        elif isinstance(content, list):
            values = [each.get("logprob") if isinstance(each, dict) else None for each in content]
    n_tokens = len(ids) if isinstance(ids, list) else None if values is None else len(values)
    return n_tokens, None if values is None else total_logprob(values)
