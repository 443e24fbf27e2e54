"""A reward model on a server as the verifier of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, Unpack

import polars as pl

from ttsframe._checks import check_choice, check_positive
from ttsframe._http import Lost, ServerSettings
from ttsframe.errors import ParameterError
from ttsframe.search.servers.prompts import Prompt, prompt_function
from ttsframe.search.servers.rewards import (
    QWEN_SYSTEM,
    REWARD_STYLES,
    ChatSigns,
    Outcome,
    Pooling,
    RewardStyle,
    RewardWire,
    Score,
    Solution,
    Worker,
)
from ttsframe.search.servers.service import ServerOptions, Service, check_text, server_settings

__all__ = ["ServerVerifier", "server_verifier"]

_Found: TypeAlias = Sequence[Score] | Lost


class ServerVerifier(Service):
    """Scores from a reward model on a server, a `tts.search.ProcessRewardModel`.

    Texts that appear twice in a round are sent once. Steps without a text are not scored, and a path
    without any has no score.

    Attributes
    ----------
    usage : Usage
        Requests and tokens so far, what was repeated and what was given up.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.search.servers.server_verifier("http://localhost:8001", "Qwen/Qwen2.5-Math-PRM-7B")
    ServerVerifier of 'Qwen/Qwen2.5-Math-PRM-7B' at http://localhost:8001
    """

    kind = "verifier"

    def __init__(
        self,
        wire: RewardWire,
        model: str,
        settings: ServerSettings,
        *,
        separator: str,
        texts_per_request: int,
    ) -> None:
        super().__init__(model, settings)
        self._wire = wire
        self._separator = separator
        self._most = texts_per_request if wire.takes_lists else 1

    async def __call__(self, prefixes: pl.DataFrame, /) -> list[Score]:
        """Score each prefix."""
        whole = pl.concat_str("prefix", "text", pl.col("lookahead_text").fill_null(""))
        asked = [
            Solution(problem or "", self._steps(text))
            for problem, text in prefixes.select("problem", whole.alias("whole")).rows()
        ]
        distinct = list(dict.fromkeys(each for each in asked if each.steps))
        batches = [
            distinct[start : start + self._most] for start in range(0, len(distinct), self._most)
        ]
        scores: dict[Solution, Score] = {}
        while batches:
            found = await self._client.send_all_async(
                self._wire.path,
                [self._wire.body(batch) for batch in batches],
                self._reader(batches),
                lambda _, lost: lost,
            )
            again: list[list[Solution]] = []
            for batch, answer in zip(batches, found, strict=True):
                if not isinstance(answer, Lost):
                    scores.update(zip(batch, answer, strict=True))
                elif len(batch) > 1:  # one text may have spoilt it for the others
                    again.extend([each] for each in batch)
                else:
                    scores[batch[0]] = None
            batches = again
        return [scores.get(each) for each in asked]

    def _reader(self, batches: list[list[Solution]]) -> Callable[[int, object], _Found]:
        return lambda number, reply: self._wire.read(reply, batches[number], self.usage)

    def _steps(self, text: str) -> tuple[str, ...]:
        return tuple(step for step in text.split(self._separator) if step.strip())


def server_verifier(
    base_url: str,
    model: str = "",
    *,
    style: RewardStyle = "qwen",
    separator: str = "\n\n",
    prompt: Prompt | None = None,
    system: str | None = None,
    step_tag: str | None = None,
    suffix: str = "",
    texts_per_request: int = 16,
    **options: Unpack[ServerOptions],
) -> ServerVerifier:
    r"""Make a verifier of steps that asks a reward model on a server.

    The number of scores must be the number of steps; a reply with another number ends the search and
    says both. A step tag in the text of a step is broken up, so that it is not taken for the end of a
    step. Needs the extra `server`: ``pip install 'ttsframe[server]'``.

    Parameters
    ----------
    base_url
        Address of the server. `"chat"` needs the `/v1` of most servers, the others leave it out.
    model
        Name of the model on the server; a worker has none.
    style
        How the model is asked.

        - ``"qwen"``: Qwen2.5-Math-PRM on vLLM, `/pooling`; steps end with `<extra_0>`.
        - ``"math_shepherd"``: Math-Shepherd on vLLM, `/pooling`; steps end with the tag of its
          training. The server needs a `--pooler-config` with the tag and the two words.
        - ``"chat"``: models that answer each step with + or - (RLHFlow), on any server that returns
          log-probabilities. Only the newest step is scored, by one request.
        - ``"worker"``: a reward worker (`/worker_reward_inference`), one list of scores per text.
        - ``"vllm_classify"``, ``"sglang_classify"``, ``"vllm_score"``: outcome models, one score of the
          whole text, which stands as the score of the newest step.
    separator
        Text between steps, that of the generator.
    prompt
        What comes before the steps: a text with `{problem}` in it, or a function of the problem, such
        as `chat_prompt` makes. None: `"qwen"` sends messages, one text per request, and the server
        applies its template; `"math_shepherd"` uses `"{problem} "`; a worker is sent pairs; outcome
        models get problem, separator and steps. Not for `"chat"` and `"vllm_score"`.
    system
        Text of a system message; None: for `"qwen"` that of its training, else no such message.
    step_tag
        Text after each step; None: that of the style, for a worker `separator`.
    suffix
        Text at the end, such as the end of a message; for `"vllm_classify"` and `"sglang_classify"`.
    texts_per_request
        Maximum number of texts in a request, where the server takes a list.
    **options
        Key and limits of the server: ``api_key=None``, ``n_workers=64``, ``timeout=600.0``,
        ``retries=5``, ``backoff=1.0``, ``max_lost=0.1``, as in `openai_generator`, with two differences,
        because to score a text twice favors none: requests are also repeated that timed out, broke off or were
        answered with 408 or another 5xx except 501 and 505; and what failed for good, or was too long
        for the model, has a null as its score.

    Returns
    -------
    ServerVerifier
        The verifier, for `tts.search.search`.

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
    >>> tts.search.servers.server_verifier(
    ...     "http://localhost:8001/v1", "RLHFlow/Llama3.1-8B-PRM-Deepseek-Data", style="chat"
    ... )
    ServerVerifier of 'RLHFlow/Llama3.1-8B-PRM-Deepseek-Data' at http://localhost:8001/v1
    """
    check_choice(style, "style", REWARD_STYLES)
    check_text(separator, "separator")
    check_positive(texts_per_request, "texts_per_request")
    settings = server_settings(
        "server_verifier",
        base_url,
        repeats_lost=True,
        drops_v1=style != "chat",
        **options,
    )
    if style != "worker":
        check_text(model, "model")
    if prompt is not None and style in {"chat", "vllm_score"}:
        raise ParameterError(f"prompt is given, which style={style!r} does not use.")
    if suffix and style not in {"vllm_classify", "sglang_classify"}:
        raise ParameterError(f"suffix is given, which style={style!r} does not use.")
    made = None if prompt is None else prompt_function(prompt)
    where = settings.base_url
    wire: RewardWire
    if style == "qwen":
        told = QWEN_SYSTEM if system is None else system
        wire = Pooling(where, model, step_tag or "<extra_0>", "", 1, made, told)
    elif style == "math_shepherd":
        render = made or prompt_function("{problem} ")
        wire = Pooling(where, model, step_tag or " ки", "\n", 0, render, None)
    elif style == "chat":
        wire = ChatSigns(where, model, system)
    elif style == "worker":
        wire = Worker(where, step_tag or separator, made)
    else:
        wire = Outcome(where, model, style, separator, made, suffix)
    return ServerVerifier(
        wire, model, settings, separator=separator, texts_per_request=texts_per_request
    )
