"""Divide a job: into slices of the source, parts of the result, and the tasks that make them.

- *direct*: a small source is one slice and one part.
- *grouped*: in Parquet whose rows of each problem are adjacent, parts are ranges of rows, cut between
  problems. To see that, the columns of `by` and `problem_id` are read, up to the first slice in which
  a problem returns. The source is read again rather than copied: slices hold only what is extracted
  from texts, and where parts become one file, they hold only the columns that are added.
- *hashed*: otherwise each slice is written to one file per part, chosen by a hash of `by` and
  `problem_id`, and a part is made of its files from all slices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe.batch.grouping import find_cuts
from ttsframe.batch.keys import AnswersTask, KeysTask
from ttsframe.batch.manifest import METADATA_KEY
from ttsframe.batch.progress import Amount, total
from ttsframe.batch.scoring import Scoring
from ttsframe.batch.sources import Slice, cut_rows, pieces_of, slices_of
from ttsframe.batch.stages import TEXTS, Curve, Score, Select, Stage, Table, Votes
from ttsframe.batch.tasks import CompleteTask, JoinTask, PartTask, ScanTask, Task, Writing
from ttsframe.readers.engine import rename_schema
from ttsframe.readers.trajectories import READERS, ScannedRun
from ttsframe.schema import require_columns
from ttsframe.scoring import GRADED_FROM
from ttsframe.votes.engine.registry import check_selectors, selector_of

__all__ = ["Phase", "Plan", "Size", "make_plan"]

Kind: TypeAlias = Literal["direct", "grouped", "hashed"]

_TEXTS_OF_SOURCES: Final = frozenset({*TEXTS, "completions", "code", "report", "output"})
_SHARE_WITHOUT_TEXTS: Final = 0.25
_BYTES_PER_ROW_GROUP: Final = 32 << 20
_MOST_ROWS_PER_GROUP: Final = 1 << 17
_FEWEST_ROWS_PER_GROUP: Final = 1 << 12
_FEWEST_ROWS_OF_SLICES: Final = 1 << 10
_N_ROW_GROUPS: Final = 4
"""Number of row groups of the result that the parts of a slice may hold in memory together."""
_PARTS_PER_SLICE: Final = 32
"""With more parts than this, slices grow with the number of parts, which limits the number of files."""
_SHARDS_FROM_ROWS: Final = 250_000
_N_SHARDS: Final = 8


class Size(NamedTuple):
    """Approximate size of a part."""

    n_rows: int
    n_bytes: int


class Phase(NamedTuple):
    """Tasks that can run in any order, after those of the earlier phases."""

    name: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a job does."""

    kind: Kind
    slices: tuple[Slice, ...]
    n_parts: int
    stages: tuple[Stage, ...]
    keys: tuple[str, ...]
    schema: dict[str, pl.DataType]
    """Columns of the source."""
    scoring: Scoring | None
    """How Score is divided; None if it is absent or not divided."""
    numbering: tuple[str, ...]
    """Columns of a run, if the source has no numbers of attempts."""
    columns: tuple[str, ...]
    """Columns of the parts."""
    table: Table
    row_group_size: int
    """Of attempts."""

    @property
    def layout(self) -> dict[str, object]:
        """The layout, for the manifest."""
        return {
            "kind": self.kind,
            "n_slices": len(self.slices),
            "n_parts": self.n_parts,
            "row_group_size": self.row_group_size,
        }

    @property
    def is_scanned(self) -> bool:
        """Whether slices are written to files, which the parts are made of."""
        return self.kind == "hashed" or self.scoring is not None

    @property
    def amount(self) -> Amount:
        """How much all slices hold."""
        return total([part.amount for part in self.slices])

    def phases(self, folder: Path, parts: Path, metadata: str, *, is_file: bool) -> list[Phase]:
        """Lay the tasks out."""
        slices, keys = folder / "slices", folder / "keys"
        is_joined = self.table == "curve" or (is_file and self.n_parts > 1)
        is_completed = is_joined and self.kind == "grouped" and self.table == "trajectories"
        final = Writing("zstd", self.row_group_size, {METADATA_KEY: metadata})
        passing = Writing("lz4", self.row_group_size, {})
        phases = []
        if self.is_scanned:
            phases.append(Phase("scan", self._scan_tasks(slices)))
            phases += self._key_phases(slices, folder / "answers", keys)
        tasks = self._part_tasks(slices, keys, parts, passing if is_joined else final)
        if is_completed:
            tasks = tuple(replace(task, columns=self._added(), order=()) for task in tasks)
        if not is_completed or self._added():
            phases.append(Phase("parts", tasks))
        if is_joined:
            phases.append(
                Phase("result", (self._last_task(folder, parts, final, is_completed=is_completed),))
            )
        return phases

    def _last_task(
        self, folder: Path, parts: Path, writing: Writing, *, is_completed: bool
    ) -> Task:
        """Return the task that makes one file of the parts."""
        output = folder / "result" / "part-00000.parquet"
        if is_completed:
            return CompleteTask(
                name="result",
                reads="the source",
                output=output,
                slices=self.slices,
                parts=parts,
                order=self._order,
                columns=self.columns,
                writing=writing,
                amount=self.amount,
            )
        last = self.stages[-1] if self.stages else None
        return JoinTask(
            name="result",
            reads="the parts",
            output=output,
            parts=parts,
            curve=last if isinstance(last, Curve) else None,
            keys=self.keys,
            writing=writing,
            amount=self.amount,
        )

    @property
    def _order(self) -> tuple[str, ...]:
        """Columns by which attempts are sorted."""
        return (*self.keys, "problem_id", "attempt")

    def _added(self) -> tuple[str, ...]:
        """Return the columns of the result that are not those of the source."""
        additions = [
            one
            for stage in self.stages
            if isinstance(stage, Score)
            for one in stage.additions(self.schema)
        ]
        added = {addition.name for addition in additions}
        return tuple(name for name in self.columns if name in added)

    def _scan_tasks(self, slices: Path) -> tuple[Task, ...]:
        """Return the tasks that read the slices of the source."""
        columns = tuple(self._scanned_columns())
        return tuple(
            ScanTask(
                name=f"slice {part.number}",
                reads=part.label,
                output=slices / f"{part.number:05}",
                amount=part.amount,
                slice=part,
                scoring=self.scoring,
                columns=columns,
                keys=self._cluster_keys(),
                n_parts=None if self.kind == "grouped" else self.n_parts,
                row_group_size=self._rows_of_slices(),
            )
            for part in self.slices
        )

    def _key_phases(self, slices: Path, answers: Path, keys: Path) -> list[Phase]:
        """Return the phases that find the distinct answers and key them; none without `Score`."""
        if self.scoring is None or not (columns := tuple(self.scoring.strings())):
            return []
        whole = self.amount
        n_shards = _N_SHARDS if (whole.n_rows or math.inf) >= _SHARDS_FROM_ROWS else 1
        gather = AnswersTask(
            name="distinct answers",
            reads="the extracted answers",
            output=answers,
            slices=slices,
            columns=columns,
            n_shards=n_shards,
            amount=whole,
        )
        shards = [
            KeysTask(
                name=f"keys {shard}",
                reads="the distinct answers",
                output=keys / f"{shard:05}",
                answers=answers,
                columns=columns,
                shard=shard,
                policy=self.scoring.stage.policy,
                amount=_share(whole, n_shards),
            )
            for shard in range(n_shards)
        ]
        return [Phase("answers", (gather,)), Phase("keys", tuple(shards))]

    def _part_tasks(
        self, slices: Path, keys: Path, parts: Path, writing: Writing
    ) -> tuple[PartTask, ...]:
        """Return the tasks that make the parts."""
        share = _share(self.amount, self.n_parts)
        schema = self._scanned_columns() if self.is_scanned else self.schema
        return tuple(
            PartTask(
                name=f"part {number}",
                reads=f"the rows of part {number}"
                if self.is_scanned
                else self.slices[number].label,
                output=parts / f"part-{number:05}.parquet",
                part=number,
                slice=None if self.kind == "hashed" else self.slices[number],
                scanned=slices if self.is_scanned else None,
                schema=schema,
                stages=tuple(stage for stage in self.stages if not isinstance(stage, Curve)),
                scoring=self.scoring,
                answer_keys=keys,
                keys=self.keys,
                order=self._order,
                numbering=self.numbering if self.kind == "hashed" else (),
                columns=self.columns,
                writing=writing,
                amount=share if self.kind == "hashed" else self.slices[number].amount,
            )
            for number in range(self.n_parts)
        )

    def _rows_of_slices(self) -> int:
        """Return the rows of a row group of slices, one of which is held in memory for each part."""
        if self.kind != "hashed":
            return self.row_group_size
        return max(_FEWEST_ROWS_OF_SLICES, self.row_group_size * _N_ROW_GROUPS // self.n_parts)

    def _cluster_keys(self) -> tuple[str, ...]:
        # Rows without numbers are numbered within their problem, in whatever run.
        return ("problem_id",) if self.numbering else (*self.keys, "problem_id")

    def _scanned_columns(self) -> dict[str, pl.DataType]:
        """Return the columns of slices."""
        if self.scoring is None:
            names = _needed(self.stages, self.keys, self.schema, self.columns)
            return {name: dtype for name, dtype in self.schema.items() if name in names}
        frame = self.scoring.extract(pl.LazyFrame(schema=pl.Schema(self.schema)))
        columns = dict(frame.collect_schema())
        if self.kind == "hashed":
            return columns
        return {name: columns[name] for name in columns if name in self.scoring.passed_on}


def make_plan(reading: ScannedRun, stages: Sequence[Stage], by: Sequence[str], size: Size) -> Plan:
    """Divide a job."""
    replicates = [name for stage in stages if isinstance(stage, Curve) for name in stage.replicates]
    keys = (*by, *(name for name in replicates if name not in by))
    schema = dict(require_columns(reading.frame, [*keys, "problem_id", "attempt"]))
    columns, table = _result(stages, keys, schema)
    needed = _needed(stages, keys, schema, columns)
    score = next((stage for stage in stages if isinstance(stage, Score)), None)
    survey, gold = reading.survey, reading.gold
    is_long_form = survey.format is READERS["long_form"]
    keeps_texts = "completion" in needed

    def is_kept(name: str) -> bool:
        if is_long_form:
            return survey.rename.get(name, name) in needed
        return keeps_texts or name not in _TEXTS_OF_SOURCES

    pieces = pieces_of(survey, is_kept, 1.0 if keeps_texts else _SHARE_WITHOUT_TEXTS)
    whole = total([piece.amount for piece in pieces])
    n_bytes = sum(piece.n_bytes_kept for piece in pieces)
    numbering: tuple[str, ...] = ()
    if is_long_form and any(
        "attempt" not in rename_schema(one.schema, survey.rename) for one in survey.files
    ):
        numbering = tuple(name for name in ("source_file", "problem_id") if name in schema)
    n_rows = whole.n_rows if is_long_form else None
    n_parts = max(1, math.ceil((n_rows or 0) / size.n_rows), math.ceil(n_bytes / size.n_bytes))
    growth = math.ceil(n_parts / _PARTS_PER_SLICE)
    slices = slices_of(
        survey, pieces, gold, schema, n_rows=size.n_rows * growth, n_bytes=size.n_bytes * growth
    )
    kind: Kind = "hashed"
    cuts: list[int] | None = None
    if len(slices) == 1 and n_parts == 1:
        kind = "direct"
    elif is_long_form:
        cluster = ["problem_id"] if numbering else [*keys, "problem_id"]
        # A part is read as one slice, including texts that are not written.
        n_cuts = max(n_parts, math.ceil(whole.n_bytes / size.n_bytes) if score else 1)
        cuts = find_cuts(slices, cluster, schema, math.ceil((whole.n_rows or 0) / n_cuts))
    if cuts is not None:
        kind = "grouped"
        slices = cut_rows(survey, pieces, gold, schema, cuts)
        n_parts = len(slices)
    per_row = n_bytes / max(1, n_rows or n_bytes // 2048)
    rows_per_group = min(_MOST_ROWS_PER_GROUP, int(_BYTES_PER_ROW_GROUP / max(per_row, 1.0)))
    scoring = None
    if score is not None and kind != "direct":
        scoring = Scoring(stage=score, schema=schema, needed=needed)
        if kind == "grouped" and not scoring.passed_on:
            scoring = None
    return Plan(
        kind=kind,
        slices=tuple(slices),
        n_parts=n_parts,
        stages=tuple(stages),
        keys=keys,
        schema=schema,
        scoring=scoring,
        numbering=numbering,
        columns=columns,
        table=table,
        row_group_size=max(_FEWEST_ROWS_PER_GROUP, rows_per_group // 1024 * 1024),
    )


def _result(
    stages: Sequence[Stage], keys: Sequence[str], schema: dict[str, pl.DataType]
) -> tuple[tuple[str, ...], Table]:
    """Return the columns of the parts and the resulting table; every stage checks its columns."""
    frame = pl.LazyFrame(schema=pl.Schema(schema))
    table: Table = "trajectories"
    columns = tuple(schema)
    for stage in stages:
        frame = stage.make(frame, keys)
        table = stage.makes
        if not isinstance(stage, Curve):
            columns = tuple(frame.collect_schema().names())
    frame.collect_schema()
    return columns, table


def _needed(
    stages: Sequence[Stage],
    keys: Sequence[str],
    schema: Mapping[str, pl.DataType],
    columns: Sequence[str],
) -> frozenset[str]:
    """Return the columns of attempts that tasks pass on."""
    needed = {*keys, "problem_id", "attempt"}
    own: set[str] = set()
    picking = next((stage for stage in stages if isinstance(stage, Votes | Select)), None)
    if picking is None:
        needed |= set(columns)
    else:
        needed |= {"answer_key", "answer", "is_correct", "gold_key", "gold"}
        needed.add("score" if picking.reductions is None else "step_scores")
        if isinstance(picking, Select):
            own |= {
                name
                for one in check_selectors(picking.selectors)
                for name in selector_of(one).columns
            }
            needed |= own
    score = next((stage for stage in stages if isinstance(stage, Score)), None)
    if score is None:
        return frozenset(needed)
    for addition in reversed(score.additions(schema)):
        if addition.name in needed:
            of_grade = GRADED_FROM if addition.name == "is_correct" else ()
            needed |= {addition.source, *addition.reads, *of_grade}
        if addition.name == "is_correct" and score.grade is not None:
            own |= set(addition.reads)
    # Answers are extracted first; the texts are passed on only if they are written, or if a grader or
    # selector of the user reads them.
    dropped = set() if picking is None and score.texts else set(TEXTS) - own
    return frozenset(needed - dropped)


def _share(whole: Amount, n: int) -> Amount:
    """Return one of equal shares."""
    return Amount(None if whole.n_rows is None else whole.n_rows // n, whole.n_bytes // n)
