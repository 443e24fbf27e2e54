"""The report of a run: what was loaded, its curves, and a page of charts that opens anywhere."""

from __future__ import annotations

from ttsframe.report.build import build_report
from ttsframe.report.contents import SECTIONS
from ttsframe.report.example import Example
from ttsframe.report.report import Report

__all__ = ["SECTIONS", "Example", "Report", "build_report"]
