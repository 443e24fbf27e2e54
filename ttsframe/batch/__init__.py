"""Transform runs of any size from files to Parquet, with bounded memory.

`transform` reads what `scan_trajectories` reads, applies the stages, and writes one Parquet file or a
folder of parts. `Score`, `Votes`, `Select` and `Curve` give the same results as the functions in memory,
but work part by part; a part holds all attempts at some problems. An interrupted job resumes where it
stopped if you rerun the same call, and the output is written completely or not at all.

Cost
    Let N be the bytes of the columns that are read, and n those of the columns that are kept. Select
    and Votes read `by`, `problem_id`, `attempt`, `answer_key`, `answer`, `is_correct` and `score` (or
    `step_scores`), once for all budgets, selectors and reductions. Score reads the texts once, and
    keeps them only with `texts=True`.

    ========  ====================================  ==============================================
    layout    condition                             passes
    ========  ====================================  ==============================================
    direct    one slice, one part                   reads N once, writes the result once
    grouped   Parquet in which the rows of each     reads the columns of `by` and `problem_id` to
              problem are adjacent                  check this, then N once, writes the result once
    hashed    otherwise                             reads N once, writes n and reads it back (LZ4),
                                                    writes the result once
    ========  ====================================  ==============================================

    With more than one slice, Score also writes n and reads it back in the grouped layout, because the
    distinct answers of the whole source are keyed in between, once each. A single file of several parts
    is written twice: the parts with LZ4, then the file with zstd. JSON is read once more beforehand, to
    find its columns and malformed rows, and with `on_error="skip"` once again. Fingerprints read 2 MiB
    of each source file, at the beginning and at the end.

    Memory is that of one part plus what Polars reads ahead, which grows with the row groups of the
    source; a curve also holds the table `problems`. A problem is never divided, so the largest problem
    must fit in memory. The disk beside the sink holds n and the result until the job is done.

Files of a job
    A job works in the hidden folder ".<sink>.job" beside its sink and holds the lock ".<sink>.lock".
    Each task writes one file or folder, which is renamed into place when it is complete; a resumed job
    skips the tasks whose output exists. The `Manifest` is stored in that folder and, under the key
    `METADATA_KEY`, in the metadata of every file of the result. After a power failure, slices that were
    not yet on disk may be damaged, which is an error when they are read; `restart=True` starts over.

Engines
    A job is a list of phases; a phase is a number of tasks that can run in any order; a task has a
    method `run` that reads files and writes one. An `Engine` runs the tasks of a phase, on this machine
    or elsewhere. Every machine must see the files under the same paths and have the same versions.
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
