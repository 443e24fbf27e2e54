"""What a client has sent, got and lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from ttsframe._checks import check_between, check_number
from ttsframe._http.replies import count_of

_MOST: Final = 1e9

LossKind: TypeAlias = Literal["failed", "too_long"]


class Lost(NamedTuple):
    """A request that was given up, because to repeat it could favor short texts."""

    kind: LossKind
    reason: str


@dataclass
class Usage:
    r"""Requests and tokens of a server so far.

    Parameters
    ----------
    n_requests
        Requests that were answered or given up; one that is repeated counts once.
    n_prompt_tokens
        Tokens of the prompts, as far as the server reports them.
    n_completion_tokens
        Generated tokens, as far as the server reports them.
    retries
        Repeated tries, by reason.
    lost
        Requests and texts that were given up, by reason.

    Examples
    --------
    >>> import ttsframe as tts
    >>> generator = tts.search.servers.llama_cpp_generator(
    ...     "http://localhost:8080", prompt="{problem}\n"
    ... )
    >>> print(generator.usage)
    0 requests
    """

    n_requests: int = 0
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add_tokens(self, reply: object) -> None:
        """Add the tokens that a reply in the OpenAI protocol reports."""
        told = reply.get("usage") if isinstance(reply, dict) else None
        if not isinstance(told, dict):
            return
        self.n_prompt_tokens += count_of(told.get("prompt_tokens")) or 0
        self.n_completion_tokens += count_of(told.get("completion_tokens")) or 0

    def cost(self, price_in: float, price_out: float) -> float:
        """Return what the tokens cost, by the prices of a million tokens of the prompts and of the replies."""
        return (self.n_prompt_tokens * price_in + self.n_completion_tokens * price_out) / 1e6

    @property
    def n_retries(self) -> int:
        """Number of repeated tries."""
        return self.retries.total()

    @property
    def n_lost(self) -> int:
        """Number of requests and texts that were given up."""
        return self.lost.total()

    def __str__(self) -> str:
        """Return one line for a person."""
        parts = [f"{self.n_requests:,} requests"]
        if self.n_prompt_tokens or self.n_completion_tokens:
            parts.append(f"{self.n_prompt_tokens:,} prompt tokens")
            parts.append(f"{self.n_completion_tokens:,} generated tokens")
        for name, counts in (("repeated", self.retries), ("given up", self.lost)):
            if counts:
                reasons = ", ".join(f"{n:,} {reason}" for reason, n in counts.most_common(5))
                parts.append(f"{counts.total():,} {name} ({reasons})")
        return ", ".join(parts)


def check_prices(**prices: float | None) -> tuple[float, float] | None:
    """Check the prices of a million tokens, in and out; one alone makes the other 0, none gives None."""
    if all(price is None for price in prices.values()):
        return None
    price_in, price_out = (
        0.0 if price is None else check_between(check_number(price, name), name, 0.0, _MOST)
        for name, price in prices.items()
    )
    return price_in, price_out
