"""``ttsframe simulate``: a run with known true answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ttsframe.cli._console import Console
from ttsframe.cli._options import OUTPUT, examples, prints
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, guard_option, save
from ttsframe.simulation.trajectories import simulate_trajectories


@click.command(
    epilog=examples(
        "ttsframe simulate -n 500 --attempts 64 --seed 1 -o run.parquet",
    ),
)
@click.option(
    "-n",
    "--problems",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of problems.",
)
@click.option(
    "-k",
    "--attempts",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Attempts at each problem.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same rows."
)
@click.option(
    "--accuracy",
    type=(float, float),
    default=(1.0, 1.0),
    show_default=True,
    metavar="A B",
    help="Parameters of the Beta distribution of the problems' accuracies.",
)
@click.option(
    "--missing-share",
    type=float,
    default=0.03,
    show_default=True,
    help="Share of attempts without an answer.",
)
@click.option(
    "--respelled-share",
    type=float,
    default=0.4,
    show_default=True,
    help="Share of answers in an unusual spelling.",
)
@click.option(
    "--n-steps",
    type=(int, int),
    default=(3, 12),
    show_default=True,
    metavar="FEWEST MOST",
    help="Number of steps of an attempt.",
)
@click.option(
    "--score-strength",
    type=float,
    default=1.5,
    show_default=True,
    help="How well scores tell right from wrong attempts; 0: not at all.",
)
@click.option(
    "--beam-width",
    type=int,
    default=1,
    show_default=True,
    help="Number of consecutive attempts that share one outcome, as in a beam search.",
)
@click.option("--texts", is_flag=True, help="Write the texts of problems and completions too.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    required=True,
    metavar="FILE",
    help=f"File to write: {', '.join(TABLE_SUFFIXES)}.",
)
@guard_option
@prints
def simulate(
    *,
    problems: int,
    attempts: int,
    output: Path,
    console: Console,
    **settings: Any,  # noqa: ANN401  (the other options are parameters of simulate_trajectories)
) -> None:
    """Simulate a run with known true answers, as a table of one row per attempt.

    Columns that begin with true_ hold what was simulated.
    """
    check_output(output, TABLE_SUFFIXES)
    with console.status(f"Simulating {problems * attempts:,} attempts"):
        run = simulate_trajectories(problems, attempts, **settings)
    console.result(save(run, output, console))
