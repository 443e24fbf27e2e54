"""Searches of the command line: where steps and scores come from, and the folder that holds the results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import polars as pl

from ttsframe._files import check_no_link, check_parent_folder, replacing
from ttsframe._own import load
from ttsframe._wording import counted
from ttsframe.cli._console import Console
from ttsframe.cli._names import did_you_mean
from ttsframe.cli._servers import make_servers, watching
from ttsframe.errors import ParameterError, ParameterTypeError, SourceError, TtsframeError
from ttsframe.schema import require_columns
from ttsframe.search import (
    PRESETS,
    SEARCH_POLICIES,
    Policy,
    VerifierFaults,
    preset,
    replay,
    search,
    simulate,
    to_trajectories,
)

PRESET: Final = "preset:"
RUN: Final = ("policy", "width", "seed")
"""Columns that tell the searches of a folder apart."""
_FAULTS: Final = tuple(field.name for field in fields(VerifierFaults))
_WORLD: Final = tuple(
    name
    for name, parameter in signature(simulate).parameters.items()
    if isinstance(parameter.default, int | float) or name == "seed"
)
SETTINGS: Final = (*_WORLD, *_FAULTS)
"""Numbers that `--set` sets: parameters of `simulate`, then those of the verifier's faults."""


class Found(NamedTuple):
    """What a search found."""

    nodes: pl.DataFrame
    solutions: pl.DataFrame


class Source(NamedTuple):
    """Where the steps and scores of searches come from: a model and a verifier, or a stored tree."""

    about: Mapping[str, object]
    """What identifies it, as JSON; a folder of results belongs to one source."""
    find: Callable[[Policy, int, Path], Found]
    """Search with a policy and a seed; a folder keeps what came before the search was stopped."""
    shows_progress: bool = False
    """Whether it shows its own progress."""


class Search(NamedTuple):
    """One of the searches that were asked for."""

    label: str
    policy: Policy
    seed: int

    @property
    def folder(self) -> str:
        """Name of the folder that keeps it until all are done."""
        name = self.label.replace(":", "_")
        return f"{name}-width{self.policy.width}-seed{self.seed}"


def read_policies(labels: Sequence[str], widths: Sequence[int], lookahead: int) -> list[Search]:
    """Make each policy at each width."""
    return [
        Search(label, policy if not lookahead else replace(policy, lookahead=lookahead), 0)
        for label in labels
        for width in widths
        for policy in [_make_policy(label, width)]
    ]


def _make_policy(label: str, width: int) -> Policy:
    if label.startswith(PRESET):
        return preset(label.removeprefix(PRESET), width)  # type: ignore[arg-type]
    if ":" not in label:
        return SEARCH_POLICIES[label].policy(width)  # type: ignore[index]
    try:
        own = load(label)(width)
    except TypeError as error:
        raise ParameterTypeError(
            f"{label}: cannot be called with a width ({error}). Hint: name a subclass of tts.search.Policy."
        ) from error
    if not isinstance(own, Policy):
        raise ParameterTypeError(
            f"{label}: called with a width, it returns {type(own).__name__}, must return a tts.search.Policy. "
            "Hint: name a subclass of tts.search.Policy."
        )
    return own


def read_policy_names(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, ...]:
    """Read names of policies, of presets, or of own classes, separated by commas."""
    labels = tuple(dict.fromkeys(label.strip() for label in value.split(",")))
    presets = [f"{PRESET}{name}" for name in PRESETS]
    for label in labels:
        if label in SEARCH_POLICIES or label in presets:
            continue
        if ":" in label and not label.startswith(PRESET):
            load(label)
            continue
        known = [*SEARCH_POLICIES, *presets]
        raise click.BadParameter(
            f"{label!r} is no policy; expected one of {', '.join(known)}, or package.module:Class of yours."
            f"{did_you_mean(label, known) or did_you_mean(PRESET + label, presets)}"
        )
    return labels


def read_numbers(least: int) -> Callable[[click.Context, click.Parameter, str], tuple[int, ...]]:
    """Make the callback that reads whole numbers separated by commas."""

    def read(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, ...]:
        parts = [part.strip() for part in value.split(",")]
        for part in parts:
            if not (part.isascii() and part.isdigit() and least <= int(part[:20]) < 2**31):
                raise click.BadParameter(
                    f"{part!r} is not a whole number from {least}; expected for example 4,16,64."
                )
        return tuple(dict.fromkeys(map(int, parts)))

    return read


def read_settings(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    """Read numbers of the simulation, each as NAME=NUMBER."""
    settings: dict[str, float] = {}
    for pair in (pair.strip() for value in values for pair in value.split(",")):
        name, _, text = (part.strip() for part in pair.partition("="))
        if name not in SETTINGS:
            raise click.BadParameter(
                f"{name!r} is no number of the simulation; expected NAME=NUMBER, of {', '.join(SETTINGS)}."
                f"{did_you_mean(name, SETTINGS)}"
            )
        try:
            number = float(text)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a number, in {pair!r}.") from None
        if name in settings:
            raise click.BadParameter(f"{name!r} is given twice.")
        settings[name] = int(number) if text.lstrip("-").isdigit() else number
    return settings


def simulated(n_problems: int, n_steps: tuple[int, int], settings: Mapping[str, float]) -> Source:
    """Return a simulated model and verifier."""
    world: dict[str, Any] = {name: settings[name] for name in _WORLD if name in settings}
    faults: dict[str, Any] = {name: settings[name] for name in _FAULTS if name in settings}
    try:
        problems, generator, prm = simulate(
            n_problems, n_steps=n_steps, faults=VerifierFaults(**faults), **{"seed": 0, **world}
        )
    except (ParameterError, ParameterTypeError) as error:
        # As text: the numbers are no options of their own.
        raise click.BadParameter(str(error), param_hint="'--set'") from error

    def find(policy: Policy, seed: int, folder: Path) -> Found:
        nodes = search(problems, generator, prm, policy, seed=seed, checkpoint=folder)
        return Found(nodes, to_trajectories(nodes, policy=policy, problems=problems))

    about = {"simulate": n_problems, "n_steps": list(n_steps), "set": dict(settings)}
    return Source(about, find)


def replayed(bank: Path, problems: Path | None) -> Source:
    """Return a stored bank as a model and a verifier."""
    nodes = pl.scan_parquet(bank)
    schema = nodes.collect_schema()
    if {*RUN} <= {*schema} and (n := nodes.select(pl.struct(RUN).n_unique()).collect().item()) > 1:
        raise SourceError(
            f"{bank}: holds {n} searches, must hold one bank. Hint: write the rows of one policy, width and "
            "seed to a file."
        )
    known = None if problems is None else _read_problems(problems, schema.get("problem_id"))
    # The texts are read once, of solutions: a replay holds none.
    texts = to_trajectories(nodes).select("problem_id", "node_id", "completion").collect()

    def find(policy: Policy, seed: int, folder: Path) -> Found:
        made = replay(nodes, policy, seed=seed)
        solutions = (
            to_trajectories(made.nodes, policy=policy, problems=known)
            .drop("completion")
            .join(
                texts,
                on=["problem_id", "node_id"],
                how="left",
                nulls_equal=True,
                maintain_order="left",
            )
            .join(
                made.problems.select("problem_id", is_short=pl.col("status") == "short"),
                on="problem_id",
                how="left",
                maintain_order="left",
            )
        )
        del folder  # A replay takes less time than reading what it kept.
        return Found(made.nodes, solutions)

    size = bank.stat().st_size
    about = {"replay": str(bank), "bytes": size, "problems": problems and str(problems)}
    return Source(about, find)


def served(path: Path, asked: Mapping[str, Any], console: Console) -> Source:
    """Return a model and a verifier on servers."""
    problems = _read_problems(path, None)
    require_columns(problems, ["problem_id", "problem"], where=str(path))
    made = make_servers(**asked)

    def find(policy: Policy, seed: int, folder: Path) -> Found:
        with watching(console, made):
            nodes = search(problems, made.generator, made.prm, policy, seed=seed, checkpoint=folder)
        return Found(nodes, to_trajectories(nodes, policy=policy, problems=problems))

    return Source({"problems": str(path), **made.about}, find, shows_progress=True)


def _read_problems(path: Path, dtype: pl.DataType | None) -> pl.DataFrame:
    """Read a table with a row per problem."""
    match path.suffix.lower():
        case ".parquet":
            table = pl.read_parquet(path)
        case ".jsonl":
            table = pl.read_ndjson(path)
        case ".csv":
            table = pl.read_csv(path)
        case _:
            raise SourceError(f"{path}: must end in .parquet, .jsonl or .csv.")
    require_columns(table, ["problem_id"], where=str(path))
    texts = [pl.col(name).cast(pl.String) for name in ("problem", "gold") if name in table]
    return table.select(pl.col("problem_id").cast(dtype or pl.String), *texts)


class ResultFolder:
    """The folder of some searches: first one folder each, at the end one table of nodes and of solutions."""

    def __init__(self, path: Path, about: Mapping[str, object]) -> None:
        self.nodes, self.trajectories = path / "nodes.parquet", path / "trajectories.parquet"
        self._path, self._parts = path, path / "unfinished"
        self._about, self._file = dict(about), path / "about.json"
        self._is_new = False

    def open(self) -> bool:
        """Make or check the folder; return whether it holds the results already."""
        if self._path.exists() and not self._path.is_dir():
            raise SourceError(
                f"{self._path}: is a file, must be a folder. Hint: name a new folder."
            )
        self._is_new = not self._path.exists()
        if self._is_new:
            check_parent_folder(self._path)
            self._path.mkdir()
        if not self._file.exists():
            if any(self._path.iterdir()):
                raise SourceError(
                    f"{self._path}: holds other files, must be a new folder or that of the same searches."
                )
            with replacing(self._file) as temporary:
                temporary.write_text(json.dumps(self._about, indent=1) + "\n", encoding="utf-8")
        self._check()
        return self.nodes.exists() and self.trajectories.exists()

    def _check(self) -> None:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SourceError(
                f"{self._file}: is damaged ({error}). Hint: delete the folder."
            ) from error
        wanted = json.loads(json.dumps(self._about))
        different = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
        if different:
            name = different[0]
            raise SourceError(
                f"{self._path}: holds other searches: {name} was {found.get(name)}, is {wanted.get(name)}. "
                "Hint: name another folder, or repeat the command that it began with."
            )

    @contextmanager
    def _removed_if_empty(self) -> Iterator[None]:
        """Remove a new folder where a search was refused before anything was kept."""
        try:
            yield
        except TtsframeError:
            if self._is_new and not any(path.is_file() for path in self._parts.rglob("*")):
                shutil.rmtree(self._path)
            raise

    def run(self, source: Source, searches: Sequence[Search], console: Console) -> None:
        """Run what was not finished before, and write the tables."""
        check_no_link(self._parts)
        self._parts.mkdir(exist_ok=True)
        for number, one in enumerate(searches, 1):
            where = self._parts / one.folder
            check_no_link(where)
            check_no_link(where / "journal")
            if (where / "solutions.parquet").exists():
                continue
            width = counted([one.policy.width], "path")
            title = f"{one.label}, {width}: search {number} of {len(searches)}"
            with nullcontext() if source.shows_progress else console.status(title):
                where.mkdir(exist_ok=True)
                with self._removed_if_empty():
                    nodes, solutions = source.find(one.policy, one.seed, where / "journal")
                label = [
                    pl.lit(one.label).alias("policy"),
                    pl.lit(one.policy.width, pl.Int64).alias("width"),
                    pl.lit(one.seed, pl.Int64).alias("seed"),
                ]
                solutions = solutions.drop("policy", "width").select(*label, pl.all())
                for name, table in (
                    ("nodes.parquet", nodes.select(*label, pl.all())),
                    ("solutions.parquet", solutions),
                ):
                    with replacing(where / name) as temporary:
                        table.write_parquet(temporary)
        with console.status(f"Writing {self._path}"):
            for name, target in (
                ("nodes.parquet", self.nodes),
                ("solutions.parquet", self.trajectories),
            ):
                parts = [pl.scan_parquet(self._parts / one.folder / name) for one in searches]
                with replacing(target) as temporary:
                    pl.concat(parts, how="diagonal").sink_parquet(temporary)
            shutil.rmtree(self._parts)
