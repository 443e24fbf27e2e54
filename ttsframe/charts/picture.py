"""A chart as a drawing, for notebooks that show several things at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import vl_convert

from ttsframe import _html
from ttsframe.errors import DataError


def show_chart(draw: Callable[[], Any]) -> str:
    """Draw a chart as a fragment of HTML; empty where a chart cannot hold the data."""
    try:
        chart = draw()
    except DataError:
        return ""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    svg = vl_convert.vegalite_to_svg(
        chart.to_dict(validate=False), vl_version=version, allowed_base_urls=[]
    )
    title = chart.title
    return _html.picture(svg, "" if title is alt.Undefined else str(title.text))
