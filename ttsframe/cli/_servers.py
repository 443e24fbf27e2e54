"""Options of the command line that name models on servers, and what they make."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import click

from ttsframe._waits import join
from ttsframe.cli._console import Console
from ttsframe.cli._options import Command
from ttsframe.search import servers
from ttsframe.search.servers import ServerGenerator, ServerVerifier
from ttsframe.search.servers.rewards import REWARD_STYLES
from ttsframe.search.servers.steps import StepEnd

GENERATOR_STYLES: Final = ("openai", "chat", "llama_cpp", "tgi")
_OPTIONS: Final = (
    click.option(
        "--generator",
        metavar="URL",
        help="Address of the server that writes steps, such as http://localhost:8000/v1.",
    ),
    click.option(
        "--generator-style",
        type=click.Choice(GENERATOR_STYLES),
        default="openai",
        show_default=True,
        help="How it is asked: /v1/completions (vLLM, SGLang), the chat route, or its own protocol.",
    ),
    click.option("--model", default="", metavar="NAME", help="Name of its model."),
    click.option(
        "--chat-template",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The model's chat template: a Jinja file, or tokenizer_config.json.",
    ),
    click.option(
        "--prompt",
        metavar="TEXT",
        help=r"Without a chat template: what comes before the steps, with {problem} in it; \n is a newline.",
    ),
    click.option("--system", metavar="TEXT", help="Text of a system message."),
    click.option(
        "--separator",
        default=r"\n\n",
        show_default=True,
        metavar="TEXT",
        help=r"Text that ends a step; \n is a newline.",
    ),
    click.option(
        "--step-end",
        type=click.Choice(get_args(StepEnd)),
        default="auto",
        show_default=True,
        help="How to tell the end of a step from that of the solution, if the server does not say it.",
    ),
    click.option(
        "--temperature", type=float, default=0.8, show_default=True, help="Temperature of steps."
    ),
    click.option(
        "--top-p",
        type=float,
        default=1.0,
        show_default=True,
        help="Probability mass that steps are drawn from.",
    ),
    click.option(
        "--max-tokens", type=int, default=2048, show_default=True, help="Tokens of a step at most."
    ),
    click.option(
        "--prm",
        metavar="URL",
        help="Address of the server that scores steps.",
    ),
    click.option(
        "--prm-style",
        type=click.Choice(REWARD_STYLES),
        default="qwen",
        show_default=True,
        help="How it is asked.",
    ),
    click.option("--prm-model", default="", metavar="NAME", help="Name of its model."),
    click.option(
        "--n-workers",
        type=int,
        default=64,
        show_default=True,
        help="Concurrent requests per server.",
    ),
    click.option(
        "--timeout",
        type=float,
        default=600.0,
        show_default=True,
        help="Seconds of a request at most.",
    ),
    click.option(
        "--max-lost",
        type=float,
        default=0.1,
        show_default=True,
        help="Share of requests that may be given up before the search stops.",
    ),
    *(
        click.option(
            name,
            type=click.FloatRange(min=0.0, max=1e9),
            metavar="PRICE",
            help=f"Price of a million {what}, for the cost that is shown; without one only tokens are.",
        )
        for name, what in (
            ("--price-in", "tokens of the generator's prompts"),
            ("--price-out", "tokens that it writes"),
            ("--prm-price", "tokens that the verifier reads"),
        )
    ),
    click.option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable with the key of the generator's server.",
    ),
    click.option(
        "--prm-api-key-env",
        metavar="NAME",
        help="Environment variable with the key of the verifier's server.",
    ),
)


class Servers(NamedTuple):
    """A model and a verifier on servers."""

    about: dict[str, object]
    """What determines their answers, as JSON: not the address, since a model may move, nor a key."""
    generator: ServerGenerator
    prm: ServerVerifier
    prices: tuple[float, float, float] | None = None
    """Of a million tokens: of the generator's prompts, of what it writes, and of what the verifier reads."""

    def cost(self) -> float | None:
        """Return what the tokens so far cost, if prices were given."""
        if self.prices is None:
            return None
        price_in, price_out, prm_price = self.prices
        return self.generator.usage.cost(price_in, price_out) + self.prm.usage.cost(prm_price, 0.0)


def server_options(command: Command) -> Command:
    """Add the options of servers to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_servers(
    *,
    generator: str | None,
    generator_style: str,
    model: str,
    chat_template: Path | None,
    prompt: str | None,
    system: str | None,
    separator: str,
    step_end: str,
    temperature: float,
    top_p: float,
    max_tokens: int,
    prm: str | None,
    prm_style: str,
    prm_model: str,
    n_workers: int,
    timeout: float,
    max_lost: float,
    price_in: float | None,
    price_out: float | None,
    prm_price: float | None,
    api_key_env: str | None,
    prm_api_key_env: str | None,
) -> Servers:
    """Make the generator and the verifier that the options name."""
    if generator is None or prm is None:
        missing = "--generator URL" if generator is None else "--prm URL"
        raise click.UsageError(f"{missing} is missing; a search on servers needs both.")
    ends = _unescaped(separator)
    limits: dict[str, Any] = {"n_workers": n_workers, "timeout": timeout, "max_lost": max_lost}
    sampling: dict[str, Any] = {
        "separator": ends,
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
    }
    about: dict[str, object] = {
        "generator": generator_style,
        "model": model,
        "system": system,
        "step_end": step_end,
        **sampling,
        "prm": prm_style,
        "prm_model": prm_model,
    }
    asked = {**sampling, **limits, "api_key": _key(api_key_env)}
    if generator_style == "chat":
        if chat_template is not None or prompt is not None:
            raise click.UsageError(
                "--chat-template and --prompt do not belong to --generator-style chat."
            )
        writer = servers.chat_generator(
            generator,
            model,
            system=system,
            step_end=step_end,  # type: ignore[arg-type]
            **asked,
        )
    else:
        head = _prompt(chat_template, prompt, system)
        about["prompt"] = head("{problem}") if callable(head) else head
        if generator_style == "openai":
            writer = servers.openai_generator(
                generator,
                model,
                prompt=head,
                step_end=step_end,  # type: ignore[arg-type]
                **asked,
            )
        elif generator_style == "llama_cpp":
            writer = servers.llama_cpp_generator(generator, prompt=head, **asked)
        else:
            writer = servers.tgi_generator(generator, prompt=head, **asked)
    verifier = servers.server_verifier(
        prm,
        prm_model,
        style=prm_style,  # type: ignore[arg-type]
        separator=ends,
        api_key=_key(prm_api_key_env),
        **limits,
    )
    prices = (price_in, price_out, prm_price)
    is_priced = any(price is not None for price in prices)
    return Servers(
        about,
        writer,
        verifier,
        (price_in or 0.0, price_out or 0.0, prm_price or 0.0) if is_priced else None,
    )


@contextmanager
def watching(console: Console, made: Servers) -> Iterator[None]:
    """Show requests, their rate, tokens and cost on a terminal while a search runs, and say them at its end."""
    begun = time.monotonic()
    is_over = threading.Event()

    def show(update: Callable[[str], object]) -> None:
        while not is_over.wait(1.0):
            update(f"{_progress(made, time.monotonic() - begun)} ...")

    with console.status("Searching") as status:
        update = getattr(status, "update", None)
        thread = None if update is None else threading.Thread(target=show, args=(update,))
        if thread is not None:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            if thread is not None:
                join(thread)
    cost = made.cost()
    console.note(
        f"Model: {made.generator.usage}. Verifier: {made.prm.usage}."
        + ("" if cost is None else f" Cost: {cost:,.4g}.")
    )


def _progress(made: Servers, seconds: float) -> str:
    """Return what was sent so far, in a line."""
    model, verifier = made.generator.usage, made.prm.usage
    rate = (model.n_requests + verifier.n_requests) / max(seconds, 1e-9)
    text = (
        f"{model.n_requests:,} requests to the model, {verifier.n_requests:,} to the verifier "
        f"({rate:,.0f} a second), {model.n_prompt_tokens:,} prompt and {model.n_completion_tokens:,} "
        "generated tokens"
    )
    cost = made.cost()
    text += "" if cost is None else f", cost {cost:,.4g}"
    n_retries, n_lost = model.n_retries + verifier.n_retries, model.n_lost + verifier.n_lost
    return text + (f", {n_retries:,} repeated, {n_lost:,} given up" if n_retries + n_lost else "")


def _prompt(chat_template: Path | None, prompt: str | None, system: str | None) -> Any:  # noqa: ANN401
    if (chat_template is None) == (prompt is None):
        said = "neither is" if prompt is None else "both are"
        raise click.UsageError(
            f"the prompt comes from --chat-template FILE or from --prompt TEXT; {said} given."
        )
    if chat_template is not None:
        return servers.chat_prompt(chat_template, system=system)
    if system is not None:
        raise click.UsageError("--system needs --chat-template; put the text into --prompt.")
    return _unescaped(prompt or "")


def _unescaped(text: str) -> str:
    """Read the newlines and tabs that a shell passes on as they are typed, with a backslash."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _key(variable: str | None) -> str | None:
    """Read a key from the environment: what is typed on a command line is seen by others."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise click.UsageError(f"the environment variable {variable} is not set.")
    return key
