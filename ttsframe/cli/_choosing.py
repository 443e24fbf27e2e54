"""Options that say how answers are chosen."""

from __future__ import annotations

from typing import Literal, get_args

import click

from ttsframe._typing import Weights
from ttsframe.cli._names import Name, completes
from ttsframe.cli._options import (
    FUNCTION_HELP,
    by_option,
    gathers,
    grade_option,
    names_of,
    question_option,
    style_option,
)
from ttsframe.cli._policy import policy_option
from ttsframe.defaults import PickOptions
from ttsframe.steps import STEP_REDUCTIONS
from ttsframe.votes.selectors import SELECTORS


def _read_budgets(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> tuple[int, ...] | Literal["all"] | None:
    """Read numbers of attempts separated by commas, or "all"."""
    if value is None:
        return None
    if value.strip() == "all":
        return "all"
    parts = [part.strip() for part in value.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and 0 < int(part[:20]) < 2**32):
            raise click.BadParameter(
                f"{part!r} is not a number of attempts; expected whole numbers from 1, such as "
                f"1,2,4,8, or all."
            )
    return tuple(map(int, parts))


chooses = gathers(
    PickOptions,
    "choosing",
    [
        click.option(
            "--budgets",
            callback=_read_budgets,
            metavar="N,...",
            help="Numbers of attempts, for example 1,2,4; or all, for all attempts at a problem.",
        ),
        click.option(
            "--selectors",
            callback=names_of(SELECTORS, takes_functions=True),
            shell_complete=completes(SELECTORS),
            metavar="NAME,...",
            help=f"How to choose an answer: {', '.join(SELECTORS)}, {FUNCTION_HELP}.",
        ),
        click.option(
            "--reductions",
            callback=names_of(STEP_REDUCTIONS, takes_functions=True),
            shell_complete=completes(STEP_REDUCTIONS),
            metavar="NAME,...",
            help=f"How to reduce step scores to a score: {', '.join(STEP_REDUCTIONS)}, "
            f"{FUNCTION_HELP}. "
            "Default: the column score if the run has one, else the last step's score.",
        ),
        click.option(
            "--weights",
            type=Name(get_args(Weights)),
            default="score",
            show_default=True,
            help="Weight of a vote in weighted_vote and top_fraction_vote; sigmoid and softmax are "
            "for logits.",
        ),
        style_option,
        question_option,
        policy_option,
        grade_option,
        by_option,
    ],
)
