"""Report a run: tables, answers in words, and a page of charts that opens offline."""

from __future__ import annotations

from ttsframe import _docstrings as _docstrings
from ttsframe.report.build import build_report
from ttsframe.report.report import SECTIONS, Report, Section, SectionName
from ttsframe.report.sections.votes import Example

__all__ = ["SECTIONS", "Example", "Report", "Section", "SectionName", "build_report"]
