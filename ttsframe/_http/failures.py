"""Why a request failed, and whether to send it again could change what is drawn."""

from __future__ import annotations

import contextlib
import email.utils
import os
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import httpcore

FailureKind: TypeAlias = Literal["unsent", "lost", "too_long", "refused"]
"""unsent: cannot depend on the text, so it is sent again. lost: may depend on the text. too_long: the
context is full. refused: no further try can help."""

_UNSENT: Final = {409, 425, 429, 502, 503, 504}
_REFUSED_AMONG_5XX: Final = {501, 505}
_MAX_RETRY_AFTER_SECONDS: Final = 600.0
"""A server that asks for a longer wait is given up."""
_HINTS: Final = {
    400: "the server's message is above; the model may have no chat template, or a smaller context.",
    401: "api_key='...' is sent as a bearer token.",
    403: "api_key='...' is sent as a bearer token.",
    404: "base_url ends in /v1 with most servers, and model must be a name that the server knows.",
    422: "the server's message is above.",
    429: "reduce the number of concurrent requests: n_workers.",
}
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|size|window)|exceeds? the (?:available|maximum) context|"
    r"longer than the (?:maximum )?model|must have less than \d+ tokens|`max_new_tokens` must be <=",
    re.IGNORECASE,
)
"""What vLLM, SGLang, llama.cpp and TGI say of a prompt that does not fit."""


class Failure(NamedTuple):
    """Why a try failed; `label` names it in counts, `reason` in messages."""

    kind: FailureKind
    label: str
    reason: str
    retry_after: float | None = None
    hint: str = ""


def refusal(
    status: int, phrase: str, retry_after: str | None, body: str, redact: Callable[[str], str]
) -> Failure:
    """Describe a reply whose status is not 2xx."""
    message = redact(body)
    hint = _HINTS.get(status, "")
    if 300 <= status < 400:
        hint = "redirects are not followed, because the key would be sent along; use the target."
    wait = _seconds(retry_after)
    kind: FailureKind = "refused"
    if status in {400, 413, 422} and _TOO_LONG.search(body):
        kind = "too_long"
    elif status in _UNSENT:
        kind = "unsent"
    elif status == 408 or (status >= 500 and status not in _REFUSED_AMONG_5XX):
        kind = "lost"
    if wait is not None and wait > _MAX_RETRY_AFTER_SECONDS:
        kind = "refused"
    label = "too long for the context" if kind == "too_long" else f"answered {status}"
    return Failure(
        kind,
        label,
        f"answered {status} {redact(phrase)}{': ' if message else ''}{message}",
        wait,
        hint,
    )


def timed_out(seconds: float) -> Failure:
    """Describe a try that took too long, which long texts do."""
    return Failure(
        "lost",
        "timed out",
        f"did not answer within {seconds:g} seconds",
        hint="timeout must cover all completions of one request; a smaller max_tokens, "
        "n_per_request or n_workers makes requests shorter.",
    )


def unreachable(error: Exception, *, has_begun_reply: bool) -> Failure:
    """Describe a connection that failed."""
    if isinstance(error, httpcore.ConnectTimeout):
        return Failure(
            "unsent", "not reached", f"could not be reached ({error})", hint="check base_url."
        )
    cause = _innermost(error)
    reason = str(cause) or type(cause).__name__
    hint = ""
    if isinstance(cause, ConnectionError):
        reason = os.strerror(cause.errno) if cause.errno else reason
        hint = "start the server, or check base_url."
    if isinstance(cause, ssl.SSLCertVerificationError):
        hint = "set SSL_CERT_FILE to a file with the certificates to trust."
        return Failure("refused", "not trusted", f"could not be reached ({reason})", hint=hint)
    kind: FailureKind = "lost" if has_begun_reply else "unsent"
    label = "broke off" if has_begun_reply else "not reached"
    return Failure(kind, label, f"could not be reached ({reason})", hint=hint)


def _innermost(error: BaseException) -> BaseException:
    """Return the first error of a chain, of several addresses that of the first."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
    return error


def _seconds(header: str | None) -> float | None:
    """Read how many seconds the server asks to wait: a number or a date."""
    if header is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(header))
    try:
        date = email.utils.parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
