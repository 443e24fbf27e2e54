"""The trees of searches beside their solutions, for commands that read runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe.cli._console import Console
from ttsframe.cli._options import Run
from ttsframe.defaults import PickOptions

NODES: Final = "nodes.parquet"
SOLUTIONS: Final = "trajectories.parquet"
_RUN: Final = ("policy", "width")
_TREE: Final = {"problem_id", "node_id", "parent_id", "is_kept"}


def beside(run: Run) -> tuple[Run, pl.LazyFrame | None]:
    """Return a run without its trees, and the trees: of a folder of searches, or beside a table of solutions."""
    if len(run.sources) != 1:
        return run, None
    source = Path(run.sources[0])
    is_folder = source.is_dir()
    solutions = source / SOLUTIONS if is_folder else source
    nodes = solutions.with_name(NODES)
    if solutions == nodes or not (solutions.is_file() and nodes.is_file()):
        return run, None
    tree = pl.scan_parquet(nodes)
    if not {*tree.collect_schema()} >= _TREE:
        return run, None
    return replace(run, sources=(str(solutions),)), tree


def tell_searches_apart(
    choosing: PickOptions, attempts: pl.LazyFrame, nodes: pl.LazyFrame | None, console: Console
) -> PickOptions:
    """Make each policy and width a run, and seeds its replicates, unless the caller says otherwise."""
    if nodes is None or choosing.by:
        return choosing
    both = {*attempts.collect_schema()} & {*nodes.collect_schema()}
    if not {*_RUN} <= both:
        return choosing
    names = [*_RUN, *(["seed"] if "seed" in both else [])]
    counts = attempts.select(pl.col(names).n_unique()).collect().row(0, named=True)
    replicates = ("seed",) if counts.get("seed", 1) > 1 else ()
    by = tuple(name for name in _RUN if counts[name] > 1)
    if not by:
        return replace(choosing, replicates=replicates)
    listed = " and ".join(by)
    console.note(
        f"each {listed} is a run of its own{', seeds are averaged' if replicates else ''}."
    )
    return replace(choosing, by=by, replicates=replicates)
