"""Importing this module raises where Altair cannot be imported: it reads docstrings of its own."""

from __future__ import annotations

import sys

from ttsframe.errors import MissingExtraError

if sys.flags.optimize > 1:
    raise MissingExtraError(
        "charts need Altair, which needs the docstrings that python -OO leaves out. Hint: python -O keeps them; "
        "PYTHONOPTIMIZE=2 is the same as -OO."
    )
