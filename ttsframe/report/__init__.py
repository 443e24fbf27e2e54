"""The report of a run: what was loaded, its curves, and a page of charts that opens anywhere."""

from __future__ import annotations

from ttsframe.report.build import Report, build_report
from ttsframe.report.example import Example

__all__ = ["Example", "Report", "build_report"]
