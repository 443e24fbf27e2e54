"""Find where parts can begin in a source whose rows of each problem are adjacent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe.batch.numbered import row_hash
from ttsframe.batch.sources import Slice
from ttsframe.readers.engine import Survey, SurveyedFile, rename_schema, scan_table

__all__ = ["find_cuts"]


def find_cuts(
    slices: Sequence[Slice],
    cluster: Sequence[str],
    schema: Mapping[str, pl.DataType],
    n_rows: int,
) -> list[int] | None:
    """Return the rows at which parts begin; None if the rows of a problem are not adjacent."""
    starts: list[npt.NDArray[np.int64]] = []
    values: list[npt.NDArray[np.uint64]] = []
    at, last = 0, None
    files = [(part.survey, file) for part in slices for file in part.survey.files]
    for survey, one in files:
        if one.is_json or "problem_id" not in rename_schema(one.schema, survey.rename):
            return None
        hashes = _cluster_hashes(survey, one, cluster, schema)
        begins = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1
        if len(hashes) and hashes[0] != last:
            begins = np.concatenate([np.zeros(1, np.int64), begins])
        starts.append(begins + at)
        values.append(hashes[begins])
        if len(np.unique(values[-1])) < len(begins):
            return None
        at, last = at + len(hashes), hashes[-1] if len(hashes) else last
    rows, problems = np.concatenate(starts), np.concatenate(values)
    if len(np.unique(problems)) < len(problems):
        return None
    cuts = [0]
    while (following := int(np.searchsorted(rows, cuts[-1] + n_rows))) < len(rows):
        cuts.append(int(rows[following]))
    return cuts


def _cluster_hashes(
    survey: Survey, one: SurveyedFile, cluster: Sequence[str], schema: Mapping[str, pl.DataType]
) -> npt.NDArray[np.uint64]:
    """Return a hash of the problem of each row of a file."""
    columns = rename_schema(one.schema, survey.rename)
    found = {name: pl.col(name) if name in columns else pl.lit(None) for name in cluster}
    if "source_file" in found and survey.has_several_runs:
        recorded = [pl.col("source_file")] if "source_file" in columns else []
        found["source_file"] = pl.coalesce(*recorded, pl.lit(one.run))
    values = [value.cast(schema[name]).alias(name) for name, value in found.items()]
    table = scan_table(one).rename(survey.rename).select(values)
    hashes = table.select(row_hash(schema, cluster)).collect().to_series()
    return hashes.to_numpy()
