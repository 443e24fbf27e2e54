"""From a problem to the text that a model continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ttsframe.errors import ParameterError, ParameterTypeError, SourceError

__all__ = ["chat_prompt"]

Prompt: TypeAlias = str | Callable[[str], str]
"""A text with `{problem}` in it, or a function of the problem's text."""


def chat_prompt(
    template: str | Path,
    *,
    system: str | None = None,
    bos_token: str = "",
    eos_token: str = "",
) -> Callable[[str], str]:
    r"""Make prompts by a model's chat template, up to the point where its answer begins.

    The steps of a path are put behind this text as they are, so no newline at the end of a step is
    lost, as it is when a template trims the messages that it is given.

    Parameters
    ----------
    template
        The template, in Jinja; or, as a `Path`, a file with it: `chat_template.jinja`, or
        `tokenizer_config.json`, which has it as `chat_template`.
    system
        Text of a system message; None: no such message, though a template may add its own.
    bos_token
        What the template is given as `bos_token`. Empty, because servers put it in front themselves.
    eos_token
        What the template is given as `eos_token`, for templates that end messages with it.

    Returns
    -------
    Callable[[str], str]
        From the text of a problem to the prompt, for the parameter `prompt` of a generator.

    Raises
    ------
    ParameterError
        When the template cannot be read, or refuses the messages.
    ParameterTypeError
        When `template` is neither a text nor a path.
    SourceError
        When the file cannot be read, or holds no template.

    Notes
    -----
    The template runs in Jinja's sandbox, with the settings and the names that Hugging Face's
    tokenizers give it, except the date: a prompt must not change with the clock, so templates that ask
    for it use their own.

    Examples
    --------
    >>> import ttsframe as tts
    >>> template = (
    ...     "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>\n{% endfor %}"
    ...     "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    ... )
    >>> prompt = tts.search.servers.chat_prompt(template)
    >>> prompt("6 x 7?")
    '<|user|>\n6 x 7?<|end|>\n<|assistant|>\n'
    """
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    if not isinstance(template, str | Path):
        raise ParameterTypeError(
            f"template is a {type(template).__name__}, must be a str or a Path."
        )
    source = template if isinstance(template, str) else _read(template)
    # The settings of apply_chat_template in transformers, which templates are written for.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols"],
        autoescape=False,
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    try:
        compiled = environment.from_string(source)
    except TemplateError as error:
        raise ParameterError(f"template is no Jinja template ({error}).") from error

    def render(problem: str) -> str:
        messages = [] if system is None else [{"role": "system", "content": system}]
        messages.append({"role": "user", "content": problem})
        try:
            return compiled.render(
                messages=messages,
                add_generation_prompt=True,
                bos_token=bos_token,
                eos_token=eos_token,
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise ParameterError(f"template refuses the messages ({error}).") from error

    if "\0problem\0" not in render("\0problem\0"):
        raise ParameterError("template leaves out the problem.")
    return render


def prompt_function(prompt: Prompt | None) -> Callable[[str], str]:
    """Return the function from a problem to the prompt."""
    if prompt is None:
        raise ParameterError(
            "prompt is missing. Hint: tts.search.servers.chat_prompt(template) makes prompts by a chat "
            "template; '{problem}\\n\\n' suits a model without one."
        )
    if isinstance(prompt, str):
        if "{problem}" not in prompt:
            raise ParameterError(f"prompt == {prompt!r}, must contain '{{problem}}'.")
        text = prompt
        return lambda problem: text.replace("{problem}", problem)
    if not callable(prompt):
        raise ParameterTypeError(
            f"prompt is a {type(prompt).__name__}, must be a str or a function."
        )
    return prompt


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".json":
            return text
        found = json.loads(text).get("chat_template")
    except (OSError, ValueError, AttributeError) as error:
        raise SourceError(f"{path}: cannot be read as a chat template ({error}).") from error
    if isinstance(found, list):  # several, by name
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("default")
    if not isinstance(found, str):
        raise SourceError(f"{path}: has no text 'chat_template'.")
    return found


def _to_json(value: Any, **options: Any) -> str:  # noqa: ANN401
    return json.dumps(value, ensure_ascii=False, **options)


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)
