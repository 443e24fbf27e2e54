"""``ttsframe search``: searches against a verifier, simulated or on stored steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import polars as pl

from ttsframe._exprs import in_order
from ttsframe.cli._console import Console
from ttsframe.cli._names import completes
from ttsframe.cli._options import OUTPUT, examples, level_option, prints
from ttsframe.cli._searches import (
    PRESET,
    RUN,
    SETTINGS,
    ResultFolder,
    Search,
    Source,
    read_numbers,
    read_policies,
    read_policy_names,
    read_settings,
    replayed,
    served,
    simulated,
)
from ttsframe.cli._servers import server_options
from ttsframe.cli._tables import curve_text, rows_text
from ttsframe.curves import scaling_curve
from ttsframe.scoring import score_trajectories
from ttsframe.search import (
    PRESETS,
    SEARCH_POLICIES,
    accuracy_bounds,
    search_costs,
    select_by_width,
)

_N_STEPS: Final = (4, 10)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog=examples(
        "ttsframe search --simulate 100 --policy best_of_n,beam,dvts --width 4,16 -o run/",
        "ttsframe search --simulate 100 --set accuracy=0.3,noise=2 --policy preset:rebase -o run/",
        "ttsframe search questions.parquet --replay bank.parquet --policy beam --width 4 -o run/",
    ),
)
@click.argument("problems", type=_FILE, required=False, metavar="[PROBLEMS]")
@click.option(
    "--simulate",
    "n_simulated",
    type=click.IntRange(min=1),
    metavar="N",
    help="Search for solutions of N simulated problems, whose true values are known.",
)
@click.option(
    "--replay",
    "bank",
    type=_FILE,
    metavar="FILE",
    help="Search a stored bank of steps and scores without a model: a Parquet file of nodes, none "
    "of which was selected by its score.",
)
@click.option(
    "--policy",
    "policies",
    callback=read_policy_names,
    shell_complete=completes([*SEARCH_POLICIES, *[f"{PRESET}{name}" for name in PRESETS]]),
    default="best_of_n,beam,dvts",
    show_default=True,
    metavar="NAME,...",
    help=f"Search policies: {', '.join(SEARCH_POLICIES)}; the choices of a published program, as "
    f"{PRESET}NAME, of {', '.join(PRESETS)}; or package.module:Class of a policy of yours.",
)
@click.option(
    "--width",
    "widths",
    callback=read_numbers(1),
    default="16",
    show_default=True,
    metavar="N,...",
    help="Solutions that each search aims at.",
)
@click.option(
    "--seed",
    "seeds",
    callback=read_numbers(0),
    default="0",
    show_default=True,
    metavar="N,...",
    help="Seeds of the draws; each is a search, and the curve averages them per problem.",
)
@click.option(
    "--lookahead",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Greedy steps that the verifier sees behind each step.",
)
@click.option(
    "--n-steps",
    type=(int, int),
    default=_N_STEPS,
    show_default=True,
    metavar="FEWEST MOST",
    help="With --simulate: number of steps of a typical solution.",
)
@click.option(
    "--set",
    "settings",
    callback=read_settings,
    multiple=True,
    metavar="NAME=NUMBER,...",
    help=f"With --simulate: {', '.join(SETTINGS)}. Repeatable.",
)
@server_options
@level_option
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    required=True,
    metavar="FOLDER",
    help="Folder to write: nodes.parquet and trajectories.parquet. An interrupted command resumes if "
    "you rerun it.",
)
@prints
def search(
    *,
    n_simulated: int | None,
    bank: Path | None,
    problems: Path | None,
    policies: tuple[str, ...],
    widths: tuple[int, ...],
    seeds: tuple[int, ...],
    lookahead: int,
    n_steps: tuple[int, int],
    settings: dict[str, float],
    confidence_level: float,
    output: Path,
    console: Console,
    **asked: Any,  # noqa: ANN401
) -> None:
    """Search for solutions against a verifier, and keep every step of the tree.

    The steps and scores come from a simulation (--simulate), from a stored bank (--replay), or from models on
    servers (--generator and --prm). PROBLEMS is Parquet, JSONL or CSV with problem_id, the text problem, which
    models are asked, and gold, by which solutions are graded. ttsframe report FOLDER shows the results.
    """
    searches = [
        Search(one.label, one.policy, seed)
        for one in read_policies(policies, widths, lookahead)
        for seed in seeds
    ]
    source = _source(
        n_simulated=n_simulated,
        bank=bank,
        problems=problems,
        n_steps=n_steps,
        settings=settings,
        asked=asked,
        console=console,
    )
    policies_made = [repr(one.policy) for one in searches]
    folder = ResultFolder(
        output,
        {**source.about, "policy": list(policies), "width": list(widths), "seed": list(seeds)}
        | {"searches": policies_made},
    )
    is_done = folder.open()
    if is_done:
        console.note(f"{output} holds these searches already.")
    else:
        folder.run(source, searches, console)
    with console.status("Counting"):
        costs = _costs(folder, searches)
        curve, bounds = _accuracies(folder.trajectories, confidence_level)
    if curve is not None:
        console.say(curve_text(curve, confidence_level=confidence_level) + "\n")
    if bounds is not None:
        console.say(
            "Some problems ran short: the bank has fewer continuations than was asked for. Accuracy if\n"
            "these problems are wrong, and if they are right:\n"
        )
        console.say(rows_text(bounds, n_rows=bounds.height, n_fixed=3, hint="") + "\n")
    console.say(rows_text(costs, n_rows=costs.height, n_fixed=2, hint="") + "\n")
    console.say(f"Wrote {folder.nodes} and {folder.trajectories}")
    console.result({
        "output": str(output),
        "nodes": str(folder.nodes),
        "trajectories": str(folder.trajectories),
        "searches": costs.to_dicts(),
        "curve": None if curve is None else curve.to_dicts(),
        "bounds": None if bounds is None else bounds.to_dicts(),
    })


def _source(
    *,
    n_simulated: int | None,
    bank: Path | None,
    problems: Path | None,
    n_steps: tuple[int, int],
    settings: dict[str, float],
    asked: dict[str, Any],
    console: Console,
) -> Source:
    """Return where steps and scores come from, by the options that were given."""
    is_served = asked["generator"] is not None or asked["prm"] is not None
    given = [
        name
        for name, is_given in (
            ("--simulate", n_simulated is not None),
            ("--replay", bank is not None),
            ("--generator and --prm", is_served),
        )
        if is_given
    ]
    if len(given) != 1:
        what = f"{' and '.join(given)} were" if given else "none was"
        raise click.UsageError(
            "steps come from --simulate N, from --replay FILE, or from --generator URL with --prm URL; "
            f"{what} given."
        )
    if n_simulated is not None:
        if problems is not None:
            raise click.UsageError(
                "PROBLEMS is no input of --simulate; simulated problems are known."
            )
        return simulated(n_simulated, n_steps, settings)
    if settings or tuple(n_steps) != _N_STEPS:
        raise click.UsageError("--set and --n-steps belong to --simulate.")
    if bank is not None:
        return replayed(bank, problems)
    if problems is None:
        raise click.UsageError(
            "PROBLEMS is missing: a file with problem_id and problem, the text that the model is asked."
        )
    return served(problems, asked, console)


def _costs(folder: ResultFolder, searches: list[Search]) -> pl.DataFrame:
    """Return what the searches of a policy and width cost per problem, in the order asked for."""
    asked = pl.DataFrame(
        [(one.label, one.policy.width) for one in searches],
        schema={"policy": pl.String, "width": pl.Int64},
        orient="row",
    ).unique(maintain_order=True)
    tokens = pl.col("n_tokens")
    mean = (
        search_costs(pl.scan_parquet(folder.nodes), by=RUN)
        .group_by("policy", "width")
        .agg(
            pl.col("n_rounds").mean().alias("rounds"),
            pl.col("n_nodes").mean().alias("steps"),
            (tokens + pl.col("n_lookahead_tokens").fill_null(0)).mean().alias("tokens"),
            (pl.col("n_dropped_tokens").sum() / tokens.sum()).alias("share_dropped"),
        )
        .collect()
    )
    table = asked.join(mean, on=["policy", "width"], how="left", maintain_order="left")
    solutions = pl.scan_parquet(folder.trajectories)
    if "is_short" not in solutions.collect_schema():
        return table
    problems = solutions.select(*RUN, "problem_id", "is_short").unique()
    short = problems.group_by("policy", "width").agg(n_short=pl.col("is_short").sum()).collect()
    return table.join(short, on=["policy", "width"], how="left", maintain_order="left")


def _accuracies(
    trajectories: Path, confidence_level: float
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Return accuracy by width, averaged over seeds per problem, and bounds where problems ran short."""
    solutions = pl.scan_parquet(trajectories)
    schema = solutions.collect_schema()
    if "gold" not in schema:
        return None, None
    scored = solutions.pipe(score_trajectories).collect()
    bounds = None
    if "is_short" in schema and scored["is_short"].any():
        is_short = pl.col("is_short").any().over("policy", "width")
        bounds = _bounds(scored.filter(is_short))
        scored = scored.filter(~is_short)
    if scored.is_empty():
        return None, bounds
    answers = select_by_width(scored, by="seed").drop("width")
    curve = scaling_curve(
        answers, by="policy", replicates="seed", confidence_level=confidence_level
    )
    return curve, bounds


def _bounds(scored: pl.DataFrame) -> pl.DataFrame:
    """Return the lowest and highest accuracy of each policy, width and selector, averaged over seeds."""
    status = pl.when("is_short").then(pl.lit("short")).otherwise(pl.lit("ok")).alias("status")
    answers = select_by_width(scored, by="seed")
    rows = []
    for (policy, width, seed), part in scored.partition_by(RUN, as_dict=True).items():
        of_run = answers.filter(policy=policy, width=width, seed=seed)
        problems = part.select("problem_id", status).unique()
        for (selector,), picked in of_run.partition_by("selector", as_dict=True).items():
            low, high = accuracy_bounds(picked, status=problems)
            rows.append((policy, width, selector, low, high))
    names, ends = ["policy", "width", "selector"], ["lowest", "highest"]
    table = pl.DataFrame(rows, schema=[*names, *ends], orient="row")
    of_search = table.with_columns(pl.col(ends).cast(pl.Float64)).group_by(names)
    return of_search.agg(in_order(pl.col(ends)).list.mean()).sort(names)
