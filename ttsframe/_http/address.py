"""Checks of what a user says about a server; no message shows a key or an address that may hold one."""

from __future__ import annotations

from urllib.parse import urlsplit

from ttsframe.errors import MissingExtraError, ParameterError, ParameterTypeError


def require_httpx(name: str) -> None:
    """Check that the extra is installed."""
    try:
        import httpx  # noqa: F401 - only its absence matters here
    except ImportError as error:
        raise MissingExtraError(
            f"{name} needs httpx, which is not installed. Hint: python -m pip install 'ttsframe[server]'."
        ) from error


def check_address(base_url: str) -> str:
    """Check that an address is plain, and return it without a slash at the end."""
    import httpx

    if not isinstance(base_url, str):
        raise ParameterTypeError(f"base_url is a {type(base_url).__name__}, must be a str.")
    hint = "Hint: 'http://localhost:8000/v1'."
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port, httpx.URL(base_url).host
    except (ValueError, httpx.InvalidURL):
        is_address = False
    if not is_address or not base_url.isascii() or not base_url.isprintable() or " " in base_url:
        raise ParameterError(f"base_url must be an http:// or https:// address. {hint}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ParameterError(
            f"base_url has a user name, a query or a fragment, must end with its path. {hint} Pass a key "
            "as api_key."
        )
    return base_url.rstrip("/")


def check_api_key(api_key: str | None) -> None:
    """Check that a key can be sent in a header, without showing it."""
    if api_key is None:
        return
    if not isinstance(api_key, str):
        raise ParameterTypeError(f"api_key is a {type(api_key).__name__}, must be a str.")
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ParameterError(
            "api_key must be printable ASCII without blanks. Hint: .strip() removes a newline at the end."
        )
