"""Rollouts of steps by a model: any callable, or an OpenAI-compatible server."""

from __future__ import annotations

from ttsframe.process.annotation.completers import Completer, Failed, Prefix
from ttsframe.process.annotation.display import RolloutProgress
from ttsframe.process.annotation.rollouts import annotate
from ttsframe.process.annotation.server import openai_completer

__all__ = ["Completer", "Failed", "Prefix", "RolloutProgress", "annotate", "openai_completer"]
