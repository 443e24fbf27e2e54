"""The formats of labeled steps by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from ttsframe.readers.step_formats import (
    math_aps,
    math_shepherd,
    openr,
    prm800k,
    prmbench,
    processbench,
    table,
    trl,
)
from ttsframe.readers.step_formats.step_format import StepFormat

StepFormatName: TypeAlias = Literal[
    "math_shepherd",
    "math_aps",
    "math_aps_tree",
    "prm800k",
    "openr",
    "trl",
    "processbench",
    "prmbench",
    "prmbench_results",
    "table",
]

STEP_FORMATS: Final[Mapping[StepFormatName, StepFormat]] = MappingProxyType({
    "math_shepherd": math_shepherd.FORMAT,
    "math_aps": math_aps.LIST_FORMAT,
    "math_aps_tree": math_aps.TREE_FORMAT,
    "prm800k": prm800k.FORMAT,
    "openr": openr.FORMAT,
    "trl": trl.FORMAT,
    "processbench": processbench.FORMAT,
    "prmbench": prmbench.FORMAT,
    "prmbench_results": prmbench.RESULTS_FORMAT,
    "table": table.FORMAT,
})
"""The formats by name, as `format=` takes them; `"auto"` uses the first that recognizes a file."""
