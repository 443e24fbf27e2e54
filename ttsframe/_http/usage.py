"""What a client has sent, got and lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

LossKind: TypeAlias = Literal["failed", "too_long"]


class Lost(NamedTuple):
    """A request that was given up, because to repeat it could favor short texts."""

    kind: LossKind
    reason: str


@dataclass
class Usage:
    """Requests and tokens of one server so far."""

    n_requests: int = 0
    """Requests that were answered or given up; a request that is repeated counts once."""
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    """Repeated tries, by reason."""
    lost: Counter[str] = field(default_factory=Counter)
    """Requests that were given up, by reason."""

    @property
    def n_retries(self) -> int:
        return self.retries.total()

    @property
    def n_lost(self) -> int:
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
