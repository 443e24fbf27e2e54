"""Vega, Vega-Lite and Vega-Embed as one script, which takes longer to make than a page."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final

import altair as alt
import vl_convert

from ttsframe._files import replacing
from ttsframe.errors import SourceError

_EXPORT: Final = "window.vegaEmbed = vegaEmbed;"


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Return the script: from the user's cache, or made and put there."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    name = f"vega-lite-{version}-vl-convert-{metadata.version('vl-convert-python')}.js"
    folder = _folder()
    kept = None if folder is None else folder / name
    script = None if kept is None else _read(kept)
    if script is None:
        made = str(vl_convert.javascript_bundle(_EXPORT, vl_version=version))
        script = made.replace("</script", "<\\/script")
        if kept is not None:
            _keep(script, kept)
    return script


def _folder() -> Path | None:
    """Return the folder in which programs of this user keep what they can make again."""
    place = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    try:
        return Path(place or "~/.cache").expanduser() / "ttsframe"
    except RuntimeError:  # a user without a home
        return None


def _digest(script: str) -> str:
    return f"// sha256 {hashlib.sha256(script.encode()).hexdigest()}"


def _read(kept: Path) -> str | None:
    """Read a script that was kept; None if there is none, or if it is damaged."""
    try:
        first, _, script = kept.read_text("utf-8").partition("\n")
    except (OSError, UnicodeError):
        return None
    return script if first == _digest(script) else None


def _keep(script: str, kept: Path) -> None:
    """Keep a script where that is possible; without it, the next page takes longer."""
    with contextlib.suppress(OSError, SourceError):
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(kept) as temporary:
            temporary.write_text(f"{_digest(script)}\n{script}", "utf-8")
