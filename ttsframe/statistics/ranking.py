"""Ranks of many models or selectors on the same problems, with intervals that hold for all at once."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_fraction,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._exprs import in_order, n_distinct, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.clusters import (
    check_cluster,
    cluster_error,
    in_one_cluster,
    sum_by_cluster,
)
from ttsframe.statistics.paired import TIE, paired_inference, with_adjusted
from ttsframe.statistics.problem_values import raise_if_repeated, value_and_severity

__all__ = ["rank"]

RANKING: Final[dict[str, pl.DataType]] = {
    "rank": pl.UInt32(),
    "rank_low": pl.UInt32(),
    "rank_high": pl.UInt32(),
    "accuracy": pl.Float64(),
    "n_better": pl.UInt32(),
    "n_worse": pl.UInt32(),
    "sets": pl.List(pl.UInt32()),
    "share_of_resamples_best": pl.Float64(),
    "n_ranked": pl.UInt32(),
    "n_problems": pl.UInt32(),
    "n_left_out": pl.UInt32(),
}
"""The columns of a ranking, behind those that identify a row."""

_MATCHED: Final = ("selector", "reduction", "subsets", "budget_unit")
_DRAWS: Final = 1 << 22
"""Numbers in memory at a time."""


class _Setting(NamedTuple):
    groups: list[str]
    """Safe names of the columns that separate rankings."""
    items: list[str]
    """Safe names of the columns that identify what is ranked."""
    confidence_level: float
    n_resamples: int
    seed: int
    is_clustered: bool


def rank(
    problems: FrameT,
    /,
    *,
    column: str = "selector",
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> FrameT:
    r"""Rank models, runs or selectors on the same problems, and say how far the ranks can be trusted.

    Every pair is compared problem by problem, as `compare` does. A rank is only as certain as these
    comparisons: where a rival cannot be told apart, either of the two may be the better one.

    Parameters
    ----------
    problems
        `problems`, as in `compare`, with `value` (Float64 in [0, 1]) and `status` (without this column
        all are "ok"). Rows of the selector `oracle` are left out where selectors are ranked, since it is
        a bound.
    column
        Column whose values are ranked, such as "model". If it is "selector", selectors are ranked with
        their reductions. Rows with a null in it are left out.
    by
        Columns that separate rankings. `budget`, and `selector`, `reduction`, `subsets` and
        `budget_unit` if present and not ranked, always do.
    replicates, cluster
        As in `compare`.
    confidence_level
        Chance, in (0, 1), that all rank intervals of a ranking hold at once.
    n_resamples
        Number of resamples of the problems for `share_of_resamples_best`, at least 1.
    seed
        Seed of the resamples.

    Returns
    -------
    FrameT
        One row per ranking and value of `column`, best first:

        - `rank` (UInt32): by accuracy, from 1; equal accuracies share the better rank;
        - `rank_low`, `rank_high` (UInt32): best and worst rank that the comparisons allow;
        - `accuracy` (Float64): mean over the problems;
        - `n_better`, `n_worse` (UInt32): rivals that are significantly better, and worse;
        - `sets` (List(UInt32)): the largest sets, numbered from the best, that cannot be told apart:
          two that share a set do not differ significantly;
        - `share_of_resamples_best` (Float64): share of the resamples of the problems in which it is the
          best, ties shared. It is not the chance of being the best: of equal ones, the luckiest has
          most of it;
        - `n_ranked`, `n_problems`, `n_left_out` (UInt32): how many are ranked, problems averaged, and
          problems left out because one of them has no value.

        Intervals are from 1 to `n_ranked` below two problems (or clusters).

    Raises
    ------
    ColumnsError
        At once, if a column is missing.
    ParameterError
        At once, if a parameter is invalid, or a column is named twice.
    ParameterTypeError
        At once, if `n_resamples` or `seed` is not an int.
    DataError
        On collection, if a problem has several rows, or is in several clusters.

    See Also
    --------
    compare : Differences from one baseline, with their intervals.

    Notes
    -----
    The tests are those of `compare` (McNemar's mid-p for values of 0 and 1), corrected by Holm over all
    pairs of a ranking. With K values, the rank of one is at least 1 plus the number of rivals that are
    significantly better, and at most K less the number that are significantly worse. As Holm bounds the
    chance of any false finding, all true ranks are inside at once with the chance asked for. Percentiles
    of bootstrapped ranks do not have this property.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), Inference for ranks with applications to mobility across
    neighbourhoods and academic achievement across countries, Review of Economic Studies 91, 476-518.
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 65-70. Piepho (2004), An algorithm for a letter-based representation of all-pairwise
    comparisons, Journal of Computational and Graphical Statistics 13, 456-466, on the sets.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> values = {"new": [1.0] * 18 + [0.0] * 2, "old": [1.0] * 6 + [0.0] * 14}
    >>> values["mid"] = [1.0] * 14 + [0.0] * 6
    >>> problems = pl.concat(
    ...     pl.DataFrame({"problem_id": range(20), "model": model, "value": of_model})
    ...     for model, of_model in values.items()
    ... )
    >>> tts.rank(problems, column="model").select("model", "rank", "rank_low", "rank_high", "sets").rows()
    [('new', 1, 1, 2, [1]), ('mid', 2, 1, 2, [1]), ('old', 3, 3, 3, [2])]
    """
    check_frame(problems, "problems")
    check_fraction(confidence_level, "confidence_level")
    check_positive(n_resamples, "n_resamples")
    check_seed(seed)
    taken = {*RANKING, "problem_id", "value", "status", "n_clusters"}
    ranked: tuple[str, ...] = check_names(column, "column", taken=taken)
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    repeats: tuple[str, ...] = check_names(replicates, "replicates", taken=taken)
    named: list[str] = [*ranked, *groups, *repeats]
    clusters: tuple[str, ...] = check_cluster(cluster, taken, named)
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise ParameterError(
            f"column, by and replicates name {twice} twice, must name different columns."
        )
    schema: pl.Schema = require_columns(
        problems,
        [*named, *clusters, "problem_id", "value"],
        where="problems",
        hint="tts.select_answers(trajectories, budgets=[...], by=[...]) makes this table.",
    )
    items: list[str] = [*ranked]
    if column == "selector" and "reduction" in schema and "reduction" not in named:
        items.append("reduction")
    matched: list[str] = [
        name for name in ("budget", *_MATCHED) if name in schema and name not in {*named, *items}
    ]
    keys: dict[str, str] = safe_names([*groups, *matched])
    of_items: dict[str, str] = safe_names(items, "item")
    seeds: dict[str, str] = safe_names(repeats, "seed")
    cluster_names: dict[str, str] = dict(zip(("cluster",), clusters, strict=False))
    shown: dict[str, str] = {**keys, **of_items}
    dtypes: dict[str, pl.DataType] = {key: schema[name] for key, name in shown.items()} | RANKING
    setting = _Setting([*keys], [*of_items], confidence_level, n_resamples, seed, bool(clusters))

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lazy if "status" in schema else lazy.with_columns(status=pl.lit("ok"))
        if column == "selector":
            rows = rows.filter(pl.col("selector").ne_missing("oracle"))
        names: dict[str, str] = {**shown, "problem_id": "problem_id"}
        severity = pl.col("severity")
        values = (
            rows
            .filter(pl.col(column).is_not_null())
            .select(*to_safe({**names, **seeds, **cluster_names}), **value_and_severity())
            .group_by([*names])
            .agg(
                pl.len().alias("n_rows"),
                (n_distinct(seeds) if seeds else pl.lit(1)).alias("n_expected"),
                pl
                .when(severity.max() == 0)
                .then(in_order(pl.col("value")).list.mean())
                .alias("value"),
                *[pl.col(name).first() for name in cluster_names],
                *[pl.col(name).n_unique().alias("n_clusters") for name in cluster_names],
            )
            .filter(raise_if_repeated(names, "of one value of the ranked column"))
        )
        for name in clusters:
            values = values.filter(in_one_cluster(names, name))
        ranked = values.map_batches(lambda frame: _rank_all(frame, setting, dtypes), schema=dtypes)
        return ranked.sort(*keys, "rank", *of_items).rename(shown)

    return run_plan(problems, plan)


def _rank_all(
    frame: pl.DataFrame, setting: _Setting, dtypes: dict[str, pl.DataType]
) -> pl.DataFrame:
    """Rank the values of each group."""
    tables = [pl.DataFrame(schema=dtypes)]
    order = [*setting.items, "problem_id"]
    parts = frame.partition_by(setting.groups) if setting.groups else [frame]
    for part in parts:
        if not part.height:
            continue
        rows = part.sort(order)
        items = rows.select(*setting.groups, *setting.items).unique(maintain_order=True)
        problems, problem = np.unique(
            rows["problem_id"].rank("dense").to_numpy(), return_inverse=True
        )
        item = np.cumsum(np.append(0, np.diff(rows.select(setting.items).to_struct().rle_id()) > 0))
        values = np.full((len(problems), items.height), np.nan)
        values[problem, item] = rows["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        clusters = np.arange(len(problems))
        if setting.is_clustered:
            clusters[problem] = rows["cluster"].rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
        is_known = ~np.isnan(values).any(axis=1)
        n_left_out = int((~is_known).sum())
        ranking = _rank(values[is_known], clusters[is_known], setting)
        columns = {**ranking, "n_ranked": items.height, "n_problems": int(is_known.sum())}
        tables.append(
            items.with_columns(
                **{
                    name: value if isinstance(value, pl.Series) else pl.lit(value)
                    for name, value in columns.items()
                },
                n_left_out=pl.lit(n_left_out),
            ).select(pl.col(name).cast(dtype) for name, dtype in dtypes.items())
        )
    return pl.concat(tables)


def _rank(values: Floats, clusters: Integers, setting: _Setting) -> dict[str, pl.Series | int]:
    """Rank the columns of a matrix of problems."""
    n_problems, n_items = values.shape
    if not n_problems:
        nothing = pl.Series([None] * n_items)
        return {
            "rank": nothing,
            "rank_low": 1,
            "rank_high": n_items,
            "accuracy": nothing,
            "n_better": 0,
            "n_worse": 0,
            "sets": pl.Series([[1]] * n_items),
            "share_of_resamples_best": nothing,
        }
    # Sums of sorted values, which do not depend on the order of problems.
    accuracy = np.sort(values, axis=0).mean(axis=0)
    is_above = _significant(values, clusters, setting)
    n_better, n_worse = is_above.sum(axis=0), is_above.sum(axis=1)
    ahead = (accuracy[:, None] > accuracy[None, :] + TIE).sum(axis=0)
    sets = _sets(is_above | is_above.T, accuracy)
    return {
        "rank": pl.Series(1 + ahead),
        "rank_low": pl.Series(1 + n_better),
        "rank_high": pl.Series(n_items - n_worse),
        "accuracy": pl.Series(accuracy),
        "n_better": pl.Series(n_better),
        "n_worse": pl.Series(n_worse),
        "sets": pl.Series([
            [i + 1 for i, members in enumerate(sets) if one in members] for one in range(n_items)
        ]),
        "share_of_resamples_best": pl.Series(_shares_best(values, clusters, setting)),
    }


def _significant(values: Floats, clusters: Integers, setting: _Setting) -> Flags:
    """Return for each pair whether the first is significantly above the second, (n_items, n_items)."""
    n_items = values.shape[1]
    is_above = np.zeros((n_items, n_items), dtype=bool)
    n_units = len(np.unique(clusters))
    if n_units < 2 or n_items < 2:
        return is_above
    first, second = np.triu_indices(n_items, 1)
    rows = []
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        difference = values[:, i] - values[:, j]
        difference[np.abs(difference) <= TIE] = 0.0
        totals, sizes = sum_by_cluster(difference, clusters)
        spread = cluster_error(totals, sizes)
        wins, losses = difference > 0.0, difference < 0.0
        pair = values[:, [i, j]]
        rows.append({
            "difference": float(difference.mean()),
            "standard_error": spread.standard_error,
            "df": spread.df,
            "gained": float(difference[wins].sum()),
            "lost": float(-difference[losses].sum()),
            "n_units": n_units,
            "n_unequal": int((np.abs(totals) > TIE).sum()),
            "n_wins": int(wins.sum()),
            "n_losses": int(losses.sum()),
            "is_fractional": bool(((pair != 0.0) & (pair != 1.0)).any()),
        })
    level = setting.confidence_level
    inference = paired_inference(confidence_level=level, is_clustered=setting.is_clustered)
    pairs = pl.DataFrame(rows).with_columns(
        p_value=inference["p_value"], first=pl.Series(first), second=pl.Series(second)
    )
    adjusted = with_adjusted(pairs.lazy(), "holm").collect().sort("first", "second")
    is_found = (adjusted["p_adjusted"] <= 1.0 - level).to_numpy()
    difference = adjusted["difference"].to_numpy()
    is_above[first, second] = is_found & (difference > 0.0)
    is_above[second, first] = is_found & (difference < 0.0)
    return is_above


def _sets(differs: Flags, accuracy: Floats) -> list[set[int]]:
    """Return the largest sets in which no two differ, the best first."""
    sets: list[set[int]] = [set(range(len(accuracy)))]
    for i, j in zip(*(axis.tolist() for axis in np.nonzero(np.triu(differs))), strict=True):
        split = [
            part
            for members in sets
            for part in ([members - {i}, members - {j}] if {i, j} <= members else [members])
        ]
        sets = []
        for members in sorted(split, key=len, reverse=True):
            if not any(members <= other for other in sets):
                sets.append(members)
    return sorted(sets, key=lambda members: sorted((-accuracy[one], one) for one in members))


def _shares_best(values: Floats, clusters: Integers, setting: _Setting) -> Floats:
    """Return the share of resamples of problems, or clusters, in which each column has the best mean."""
    _, codes = np.unique(clusters, return_inverse=True)
    n_units, n_items = int(codes.max()) + 1, values.shape[1]
    # Equal rows are drawn as one, in their order, so that the order of problems does not matter.
    sums = np.column_stack([
        np.bincount(codes).astype(np.float64),
        *(np.bincount(codes, column) for column in values.T),
    ])
    units, copies = np.unique(sums, axis=0, return_counts=True)
    rng = np.random.default_rng(setting.seed)
    shares, left = np.zeros(n_items), setting.n_resamples
    while left:
        n = min(left, max(1, _DRAWS // len(units)))
        counts = rng.multinomial(n_units, copies / n_units, size=n)
        resampled = counts @ units
        means = resampled[:, 1:] / resampled[:, :1]
        is_best = means >= means.max(axis=1, keepdims=True) - TIE
        shares += (is_best / is_best.sum(axis=1, keepdims=True)).sum(axis=0)
        left -= n
    return shares / setting.n_resamples
