"""Models and verifiers on servers or in this process, for `tts.search.search`."""

from __future__ import annotations

from ttsframe.search.servers.completions import chat_generator, openai_generator
from ttsframe.search.servers.generator import ServerGenerator
from ttsframe.search.servers.native import llama_cpp_generator, tgi_generator
from ttsframe.search.servers.prompts import chat_prompt
from ttsframe.search.servers.service import Usage
from ttsframe.search.servers.transformers_model import (
    TransformersGenerator,
    transformers_generator,
)
from ttsframe.search.servers.verifier import ServerVerifier, server_verifier

__all__ = [
    "ServerGenerator",
    "ServerVerifier",
    "TransformersGenerator",
    "Usage",
    "chat_generator",
    "chat_prompt",
    "llama_cpp_generator",
    "openai_generator",
    "server_verifier",
    "tgi_generator",
    "transformers_generator",
]
