"""``python -m ttsframe`` is the command line."""

from __future__ import annotations

from ttsframe.cli import main

main()
