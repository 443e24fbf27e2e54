"""Final answers of targets that are worked out."""

from __future__ import annotations

import polars as pl
import pytest

from ttsframe.readers.engine.table import split_target

TARGETS = {
    "7": ("7", None),
    "3 + 4 = 7\n#### 7": ("7", True),
    "#### 1\n#### 2 ": ("2", True),
    r"so \boxed{\frac{1}{2}}.": (r"\frac{1}{2}", True),
    r"\boxed{1} and \boxed{{2}}": ("{2}", True),
    "#### First\nwe add\n#### Then\nwe see": ("#### First\nwe add\n#### Then\nwe see", None),
    r"cut off \boxed{\frac{1}{2}": (r"cut off \boxed{\frac{1}{2}", None),
    "": ("", None),
    None: (None, None),
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_final_answer_is_gold_and_the_rest_a_solution(target: str | None) -> None:
    frame = pl.DataFrame({"target": [target]}, schema={"target": pl.String})
    gold, is_solution = TARGETS[target]
    found = frame.select(**split_target(pl.col("target"))).row(0)
    assert found == (gold, target if is_solution else None)


def test_long_targets_cost_no_more_than_their_length() -> None:
    hostile = "\\boxed{" * 200_000
    frame = pl.DataFrame({"target": [hostile]})
    assert frame.select(**split_target(pl.col("target")))["gold"].to_list() == [hostile]
