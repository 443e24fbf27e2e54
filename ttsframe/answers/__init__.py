"""Answers: extraction, canonical keys, grading."""

from __future__ import annotations

from ttsframe.answers.extract import extract_answer

__all__ = ["extract_answer"]
