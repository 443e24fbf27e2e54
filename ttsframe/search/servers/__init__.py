"""Models and verifiers on servers, for `tts.search.search`; needs the extra `server`."""

from __future__ import annotations

from ttsframe.search.servers.completions import chat_generator, openai_generator
from ttsframe.search.servers.generator import ServerGenerator
from ttsframe.search.servers.native import llama_cpp_generator, tgi_generator
from ttsframe.search.servers.prompts import chat_prompt
from ttsframe.search.servers.rewards import RewardStyle
from ttsframe.search.servers.service import Usage
from ttsframe.search.servers.steps import StepEnd
from ttsframe.search.servers.verifier import ServerVerifier, server_verifier

__all__ = [
    "RewardStyle",
    "ServerGenerator",
    "ServerVerifier",
    "StepEnd",
    "Usage",
    "chat_generator",
    "chat_prompt",
    "llama_cpp_generator",
    "openai_generator",
    "server_verifier",
    "tgi_generator",
]
