"""Runs of any size, from files to Parquet: bounded memory, whole outputs, jobs that can be stopped.

`transform` reads what `scan_trajectories` reads, does what the stages say, and writes one Parquet
file or a folder of parts. What the functions of the same names do in memory is done part by part; a
part has all attempts at some problems, so parts need nothing of each other.

What it costs
    Let N be the bytes of the columns that are read, and n those of the columns that are kept. Select
    and Votes read `by`, `problem_id`, `attempt`, `answer_key`, `answer`, `is_correct` and `score` (or
    `step_scores`), once for all budgets, selectors and reductions. Score reads the texts once, and
    keeps them only with `texts=True`.

    ========  ====================================  ==============================================
    layout    when                                  passes
    ========  ====================================  ==============================================
    direct    one slice, one part                   reads N once, writes the result once
    grouped   Parquet in which the rows of each     reads the columns of `by` and `problem_id` to
              problem stand together                see that, then N once, writes the result once
    hashed    otherwise                             reads N once, writes n and reads it back (LZ4),
                                                    writes the result once
    ========  ====================================  ==============================================

    In more than one slice, Score writes n and reads it back in the grouped layout too: distinct
    answers of the whole source get their keys in between, once each. A single file of several parts
    is written twice, since the parts are kept until it is whole: with LZ4, then with zstd. JSON is
    read once more beforehand, to find its columns and its faults, and with `on_error="skip"` once
    again. The fingerprints of the source take 2 MiB of each file, at the beginning and at the end.

    Memory is that of a part and of what Polars reads ahead, which grows with the row groups of the
    source; and, for a curve, of the table `problems`. A problem is never divided: one that is larger
    than memory does not fit. The disk beside the sink holds n and the result until the job is done.

What is kept
    A job works in the hidden folder ".<sink>.job" beside its sink, and holds the lock
    ".<sink>.lock". Each task makes a file or folder that appears whole; what is there when a job is
    made again is not made again. The `Manifest` is in that folder and, under the key `METADATA_KEY`,
    in the metadata of every file of the result. When the power fails, slices that were not yet on
    the disk may be damaged, which shows as an error when they are read; `restart=True` begins anew.

Engines
    The plan of a job is a list of phases, a phase a number of tasks in any order, a task a value with
    a method `run` that reads files and makes one. An `Engine` runs the tasks of a phase, here or
    elsewhere; it needs the files under the same paths, and the same versions, everywhere.
"""

from __future__ import annotations

from ttsframe.batch._transform import ENGINES, BatchResult, transform
from ttsframe.batch.local import Engine, LocalEngine
from ttsframe.batch.manifest import METADATA_KEY, Fingerprint, Manifest, read_manifest
from ttsframe.batch.progress import Progress
from ttsframe.batch.ray_engine import RayEngine
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
    "RayEngine",
    "Score",
    "Select",
    "Stage",
    "Votes",
    "read_manifest",
    "transform",
]
