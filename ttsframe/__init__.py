"""Test-time-compute scaling runs as Polars frames."""

from __future__ import annotations

from importlib.metadata import version as _version

from ttsframe.errors import TtsframeError

__version__ = _version("ttsframe")

__all__ = ["TtsframeError"]
