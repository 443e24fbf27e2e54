"""Runs of any size, from files to Parquet: bounded memory, whole outputs, jobs that can be stopped.

`transform` reads what `scan_trajectories` reads, does what the stages say, and writes one Parquet
file or a folder of parts. What the functions of the same names do in memory is done part by part; a
part has all attempts at some problems.
"""

from __future__ import annotations

from ttsframe.batch._transform import ENGINES, BatchResult, transform
from ttsframe.batch.local import Engine, LocalEngine
from ttsframe.batch.manifest import METADATA_KEY, Fingerprint, Manifest, read_manifest
from ttsframe.batch.progress import Progress
from ttsframe.batch.stages import Curve, Score, Select, Stage, Votes

__all__ = [
    "ENGINES",
    "METADATA_KEY",
    "BatchResult",
    "Curve",
    "Engine",
    "Fingerprint",
    "LocalEngine",
    "Manifest",
    "Progress",
    "Score",
    "Select",
    "Stage",
    "Votes",
    "read_manifest",
    "transform",
]
