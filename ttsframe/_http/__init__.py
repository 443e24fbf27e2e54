"""Requests to model servers: one client for rollouts, step generators and reward models."""

from __future__ import annotations

from ttsframe._http.address import check_address, check_api_key, require_httpx
from ttsframe._http.settings import ServerSettings
from ttsframe._http.usage import Lost, Usage, check_prices

__all__ = [
    "Lost",
    "ServerSettings",
    "Usage",
    "check_address",
    "check_api_key",
    "check_prices",
    "require_httpx",
]
