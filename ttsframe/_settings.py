"""Parameters that messages name: spelled as in Python, and known, so that other interfaces reword them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MOST_RECENT: Final = 1_000
_recent: dict[str, Setting] = {}
_constants: dict[str, Setting] = {}


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
    text = text or _spell(name, value)
    _recent.pop(text, None)
    _recent[text] = Setting(text, name, value)
    if len(_recent) > _MOST_RECENT:
        del _recent[next(iter(_recent))]
    return text


def constant(name: str, value: object = None, *, text: str | None = None) -> str:
    """Spell a parameter as `setting` does, in a text that is written once; it is never forgotten."""
    text = text or _spell(name, value)
    _constants[text] = Setting(text, name, value)
    return text


def _spell(name: str, value: object) -> str:
    return f"{name}=..." if value is None else f"{name}={value!r}"


def found(name: str, value: object) -> str:
    """Spell a parameter with the value that it has and should not have."""
    return setting(name, f"== {value}", text=f"{name} == {value}")


def settings_in(message: str) -> tuple[Setting, ...]:
    """Return the parameters that a message names, those with the longest spelling first."""
    known = {**_recent, **_constants}
    named = [setting for text, setting in known.items() if text in message]
    return tuple(sorted(named, key=lambda setting: len(setting.text), reverse=True))


BY: Final = constant("by", text="by=(...)")
BY_FILE: Final = constant("by", "source_file")
ON_PATH: Final = constant("paths", text="steps.filter('is_on_path')")
RERUN: Final = constant("rerun", text="rerun the same call")
SCORES: Final = constant("scores", text="scores='...'")
SKIP_ROWS: Final = constant("on_error", "skip", text='on_error="skip"')
STEP_PATHS: Final = constant("paths", text="tts.process.step_paths(steps)")
VALIDATE: Final = constant("validate", text="tts.validate_trajectories(trajectories)")


# User and password, and the query, in which signed addresses have their signature.
_PASSWORD: Final = re.compile(r"(?<=://)[^/@\s'\"]*@")
_QUERY: Final = re.compile(r"(://[^?\s'\"]*)\?[^\s'\"]*?(?=:?(?:[\s'\"]|$))")


def hide_secrets(text: str) -> str:
    """Replace passwords and queries in addresses."""
    return _QUERY.sub(r"\1?…", _PASSWORD.sub("…@", text))
