"""The engine of all readers: from a source to files, rows, and one lazy table.

A source is expanded to files (`sources`), each is recognized by its bytes (`sniff`), the files are
surveyed to find their common format and schema (`survey`; `jsonl`, `chunks`, `json_rows`, `dtypes` for
JSON), and the survey is scanned (`scan`). The formats turn source rows into attempts or steps with the
tools in `table`; `gold` adds gold answers from a second file.
"""

from __future__ import annotations

from ttsframe.readers.engine.damage import find_damage
from ttsframe.readers.engine.faults import DAMAGED, first_line, naming
from ttsframe.readers.engine.gold import Gold, find_gold
from ttsframe.readers.engine.scan import (
    Survey,
    SurveyedFile,
    rename_schema,
    scan_survey,
    scan_table,
)
from ttsframe.readers.engine.sources import Candidate, Source, expand, is_local, one_source
from ttsframe.readers.engine.survey import scan_source
from ttsframe.readers.engine.table import FileFormat, OnError, order_columns

__all__ = [
    "DAMAGED",
    "Candidate",
    "FileFormat",
    "Gold",
    "OnError",
    "Source",
    "Survey",
    "SurveyedFile",
    "expand",
    "find_damage",
    "find_gold",
    "first_line",
    "is_local",
    "naming",
    "one_source",
    "order_columns",
    "rename_schema",
    "scan_source",
    "scan_survey",
    "scan_table",
]
