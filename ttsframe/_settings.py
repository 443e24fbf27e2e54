"""Parameters that messages name: spelled as in Python, and known, so that other interfaces reword them."""

from __future__ import annotations

from typing import Final, NamedTuple

_MOST: Final = 1_000
_known: dict[str, Setting] = {}


class Setting(NamedTuple):
    """A parameter, or what to do about an error, as a message names it."""

    text: str
    """As Python spells it, such as ``by='model'``."""
    name: str
    """The parameter, such as ``by``; or the action, such as ``validate``."""
    value: object = None
    """None where the message leaves it open."""


def setting(name: str, value: object = None, *, text: str | None = None) -> str:
    """Spell a parameter and its value for a message, and remember what the spelling stands for."""
    # Polars rebuilds an exception raised in a query from its message alone, so the spelling must lead
    # back to the parameter.
    if text is None:
        text = f"{name}=..." if value is None else f"{name}={value!r}"
    _known.pop(text, None)
    _known[text] = Setting(text, name, value)
    if len(_known) > _MOST:
        del _known[next(iter(_known))]
    return text


def found(name: str, value: object) -> str:
    """Spell a parameter with the value that it has and should not have."""
    return setting(name, f"== {value}", text=f"{name} == {value}")


def settings_in(message: str) -> tuple[Setting, ...]:
    """Return the parameters that a message names, those with the longest spelling first."""
    named = [one for text, one in _known.copy().items() if text in message]
    return tuple(sorted(named, key=lambda one: len(one.text), reverse=True))


BY: Final = setting("by", text="by=(...)")
BY_FILE: Final = setting("by", "source_file")
ON_PATH: Final = setting("paths", text="steps.filter('is_on_path')")
RERUN: Final = setting("rerun", text="rerun the same call")
SCORES: Final = setting("scores", text="scores='...'")
SKIP_ROWS: Final = setting("on_error", "skip", text='on_error="skip"')
STEP_PATHS: Final = setting("paths", text="tts.process.step_paths(steps)")
VALIDATE: Final = setting("validate", text="tts.validate_trajectories(trajectories)")
