"""Models and verifiers on servers, for `tts.search.search`; needs the extra `server`."""

from __future__ import annotations

from ttsframe.search.servers.completions import chat_generator, openai_generator
from ttsframe.search.servers.generator import ServerGenerator
from ttsframe.search.servers.native import llama_cpp_generator, tgi_generator
from ttsframe.search.servers.prompts import chat_prompt
from ttsframe.search.servers.service import Usage
from ttsframe.search.servers.verifier import ServerVerifier, server_verifier

__all__ = [
    "ServerGenerator",
    "ServerVerifier",
    "Usage",
    "chat_generator",
    "chat_prompt",
    "llama_cpp_generator",
    "openai_generator",
    "server_verifier",
    "tgi_generator",
]
