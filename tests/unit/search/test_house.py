"""What is public in the search is documented as everywhere."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import polars as pl
import pytest
from numpydoc.validate import validate

import ttsframe as tts
from ttsframe.search.policies import Policy, PolicyName

S = tts.search
IGNORED = {"PR04", "SA01", "ES01"}
NAMES = [name for name in S.__all__ if callable(getattr(S, name))]


def exemptions(name: str) -> set[str]:
    found = getattr(S, name)
    fields = inspect.isclass(found) and (issubclass(found, tuple) or name.startswith("Simulated"))
    exempt = {"PR01", "EX01"} if fields else set()
    # A policy's docstring lists its own parameters; the others are those of `Policy`.
    if inspect.isclass(found) and issubclass(found, Policy) and found is not Policy:
        exempt |= {"PR01", "PR02", "PR03"}
    return exempt | ({"PR01"} if getattr(found, "_is_protocol", False) else set())


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_has_the_form_of_the_house(name: str) -> None:
    errors = validate(f"ttsframe.search.{name}")["errors"]
    exempt = IGNORED | exemptions(name)
    assert not [error for error in errors if error[0] not in exempt]
    text = inspect.getdoc(getattr(S, name)) or ""
    assert ("tts.search." in text and ">>> " in text) or "EX01" in exempt


def test_names_are_sorted() -> None:
    def key(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)

    assert S.__all__ == sorted(S.__all__, key=key)


def test_the_registry_is_its_literal_and_its_classes() -> None:
    assert list(S.SEARCH_POLICIES) == list(get_args(PolicyName))
    for name, row in S.SEARCH_POLICIES.items():
        assert row.policy(8).name == name
        assert row.summary
        assert getattr(S, row.policy.__name__) is row.policy
    with pytest.raises(TypeError):
        S.SEARCH_POLICIES["mine"] = None  # type: ignore[index]


@pytest.mark.parametrize("kind", [row.policy for row in S.SEARCH_POLICIES.values()])
def test_own_parameters_of_a_policy_are_documented_and_checked(kind: type[Policy]) -> None:
    own = set(inspect.signature(kind).parameters) - set(inspect.signature(Policy).parameters)
    text = inspect.getdoc(kind) or ""
    for name in [*own, "width"]:
        assert re.search(rf"^{name}$", text, flags=re.MULTILINE), name
    with pytest.raises(tts.TtsframeError, match="width == 0, must be at least 1"):
        kind(0)
    with pytest.raises(tts.TtsframeError, match="reduction == 'best'"):
        kind(8, reduction="best")  # type: ignore[arg-type]


def test_the_frontier_has_the_columns_that_are_documented() -> None:
    seen: list[pl.DataFrame] = []

    class Watching(S.BestOfN):
        needs_paths = True

        def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
            seen.append(frontier)
            return super().ask(frontier)

    problems, generator, prm = S.simulate(3, seed=0)
    requests: list[pl.DataFrame] = []
    prefixes: list[pl.DataFrame] = []

    def generate(batch: pl.DataFrame) -> pl.DataFrame:
        requests.append(batch)
        return generator(batch)

    def verify(batch: pl.DataFrame) -> pl.Series:
        prefixes.append(batch)
        return prm(batch)

    S.search(problems, generate, verify, Watching(2), seed=0)
    for frames, columns in (
        (seen, S.FRONTIER_COLUMNS),
        (requests, S.REQUEST_COLUMNS),
        (prefixes, S.PREFIX_COLUMNS),
    ):
        for frame in frames:
            assert {n: frame.schema[n] for n in frame.columns} == {
                n: c.dtype for n, c in columns.items()
            }
    deep = seen[-1]
    assert deep["path"].list.len().to_list() == deep["depth"].to_list()
    assert deep["path"].list.last().to_list() == deep["node_id"].to_list()
    assert requests[1]["prefix"].str.starts_with("Step 1").all()
