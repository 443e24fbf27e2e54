"""How to speak to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MAX_QUOTE: Final = 300


@dataclass(frozen=True, kw_only=True, repr=False)
class ServerSettings:
    """Address, key and limits of a server."""

    base_url: str
    api_key: str | None = None
    timeout: float = 600.0
    retries: int = 5
    backoff: float = 1.0
    n_workers: int = 16
    max_reply_bytes: int = 1 << 26
    repeats_lost: bool = False
    """Whether a request may be repeated whose failure may depend on the text of the reply."""
    max_lost: float = 0.1
    """Share of requests that may be given up before the client stops."""

    def redact(self, text: str) -> str:
        """Make a text of the server fit for a message: short, on one line, without the key."""
        return " ".join(self.without_key(text).split())[:_MAX_QUOTE]

    def without_key(self, text: str) -> str:
        """Hide the key in a message."""
        return text.replace(self.api_key, "***") if self.api_key else text
