"""Answers: extraction, canonical keys, grading."""

from __future__ import annotations

from ttsframe.answers.explain import AnswerExplanation, explain_answer
from ttsframe.answers.extract import (
    ExtractionExplanation,
    explain_extraction,
    extract_answer,
    extraction_rule,
)
from ttsframe.answers.grade import is_equivalent, is_same_key
from ttsframe.answers.keys import answer_key, answer_kind, gold_key, normalize_answer
from ttsframe.answers.lookup.table import AnswerStatistics, answer_statistics
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.single import grade_one, key_of

__all__ = [
    "AnswerExplanation",
    "AnswerPolicy",
    "AnswerStatistics",
    "ExtractionExplanation",
    "answer_key",
    "answer_kind",
    "answer_statistics",
    "explain_answer",
    "explain_extraction",
    "extract_answer",
    "extraction_rule",
    "gold_key",
    "grade_one",
    "is_equivalent",
    "is_same_key",
    "key_of",
    "normalize_answer",
]
