"""Answers: extraction, canonical keys, grading."""

from __future__ import annotations

from ttsframe.answers.extract import extract_answer
from ttsframe.answers.grade import is_equivalent, is_same_key
from ttsframe.answers.keys import (
    AnswerStatistics,
    answer_key,
    answer_kind,
    answer_statistics,
    gold_key,
    normalize_answer,
)
from ttsframe.answers.policy import AnswerPolicy

__all__ = [
    "AnswerPolicy",
    "AnswerStatistics",
    "answer_key",
    "answer_kind",
    "answer_statistics",
    "extract_answer",
    "gold_key",
    "is_equivalent",
    "is_same_key",
    "normalize_answer",
]
