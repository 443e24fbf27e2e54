"""The option that names the conventions under which answers are the same."""

from __future__ import annotations

from typing import Any

import click

from ttsframe.answers import AnswerPolicy
from ttsframe.answers.policy import POLICY_CHOICES
from ttsframe.cli._names import completes, did_you_mean


def _read_policy(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> AnswerPolicy | None:
    """Read options of a policy, each as OPTION=CHOICE, several separated by commas."""
    options: dict[str, Any] = {}
    for pair in (pair.strip() for value in values for pair in value.split(",")):
        name, _, choice = (part.strip() for part in pair.partition("="))
        if name not in POLICY_CHOICES:
            known = [f"{option} ({', '.join(of)})" for option, of in POLICY_CHOICES.items()]
            raise click.BadParameter(
                f"{name!r} is no option of an answer policy; expected OPTION=CHOICE, of "
                f"{'; '.join(known)}.{did_you_mean(name, POLICY_CHOICES)}"
            )
        if choice not in POLICY_CHOICES[name]:
            raise click.BadParameter(
                f"{choice!r} is no choice of {name}; expected one of {', '.join(POLICY_CHOICES[name])}."
                f"{did_you_mean(choice, POLICY_CHOICES[name])}"
            )
        if options.setdefault(name, choice) != choice:
            raise click.BadParameter(f"{name!r} is given twice, with different choices.")
    return AnswerPolicy(**options) if options else None


policy_option = click.option(
    "--answer-policy",
    "policy",
    callback=_read_policy,
    shell_complete=completes(
        f"{name}={choice}" for name, choices in POLICY_CHOICES.items() for choice in choices
    ),
    multiple=True,
    metavar="OPTION=CHOICE,...",
    help="Conventions under which answers are the same, for example percent=fraction. Options: "
    f"{', '.join(POLICY_CHOICES)}. Repeatable.",
)
