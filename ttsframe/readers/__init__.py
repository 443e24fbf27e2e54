"""Files of other tools, and ttsframe's own, read as trajectories or as labeled steps."""

from __future__ import annotations

from ttsframe.readers.steps import STEP_FORMATS, read_steps, scan_steps, write_steps
from ttsframe.readers.trajectories import READERS, read_trajectories, scan_trajectories
from ttsframe.readers.writing import WRITERS, write_trajectories

__all__ = [
    "READERS",
    "STEP_FORMATS",
    "WRITERS",
    "read_steps",
    "read_trajectories",
    "scan_steps",
    "scan_trajectories",
    "write_steps",
    "write_trajectories",
]
