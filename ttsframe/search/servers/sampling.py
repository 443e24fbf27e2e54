"""What every step generator on a server is asked for: one list of options, their checks and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Unpack

from ttsframe._checks import check_between, check_positive
from ttsframe._http import ServerSettings
from ttsframe.search.servers.service import ServerOptions, check_text, server_settings


class GeneratorOptions(ServerOptions, total=False):
    """Options of every generator; `read_options` has the defaults."""

    separator: str
    temperature: float
    top_p: float
    max_tokens: int
    extra: Mapping[str, object] | None


class Sampling(NamedTuple):
    """How steps are sampled."""

    separator: str
    temperature: float
    top_p: float
    max_tokens: int
    extra: Mapping[str, object] | None


def read_options(
    who: str,
    base_url: str,
    *,
    drops_v1: bool = False,
    separator: str = "\n\n",
    temperature: float = 0.8,
    top_p: float = 1.0,
    max_tokens: int = 2048,
    extra: Mapping[str, object] | None = None,
    **limits: Unpack[ServerOptions],
) -> tuple[Sampling, ServerSettings]:
    """Check the options of a generator."""
    settings = server_settings(who, base_url, repeats_lost=False, drops_v1=drops_v1, **limits)
    sampling = Sampling(
        check_text(separator, "separator"),
        check_between(temperature, "temperature", 0.0, 100.0),
        check_between(top_p, "top_p", 0.0, 1.0),
        check_positive(max_tokens, "max_tokens"),
        extra,
    )
    return sampling, settings
