"""From the source that a caller names to its files, and to what stands for files in memory."""

from __future__ import annotations

import glob
import os
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from ttsframe._checks import kind_of, near_names
from ttsframe.errors import ParameterError, ParameterTypeError, SourceError
from ttsframe.readers.engine.memory import InMemory, check_splits, is_rows, is_table, name_of
from ttsframe.readers.engine.remote import expand_url, local_path, scheme_of

Place: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = Place | InMemory | Sequence[Place | InMemory]

STANDARD_INPUT: Final = "-"
_NEAR: Final = 0.75
"""Names of files are near by their suffixes alone, so they must be nearer than other names."""


class Candidate(NamedTuple):
    """A file that may hold rows, or what stands for one."""

    path: Path
    """Of anything but a file, the words or the URL that name it."""
    is_named: bool
    """False for a file found in a folder, which may serve another purpose."""
    kind: Literal["file", "pipe", "url", "standard input", "memory"] = "file"
    source: object = None
    """What is in memory, or the URL."""

    @property
    def name(self) -> str:
        """The path, URL or words, for messages."""
        return self.source if isinstance(self.source, str) else str(self.path)


def expand(source: Source) -> list[Candidate]:
    """List the files of a source in the order named; those of a folder or glob are sorted."""
    candidates: list[Candidate] = []
    for item in _items(source):
        candidates.extend(_expand_one(item))
    seen: dict[Path | str, str] = {}
    for candidate in candidates:
        real = candidate.path.resolve() if candidate.kind == "file" else candidate.name
        if real in seen:
            other = "" if candidate.name == seen[real] else f" (also as {seen[real]})"
            raise SourceError(
                f"{candidate.name}: named twice{other}, so its rows would count twice. Hint: name each "
                "file once."
            )
        seen[real] = candidate.name
    return candidates


def is_local(place: str) -> bool:
    """Return whether a place is a file or folder of this machine, neither a URL nor a pipe, which is read once."""
    is_place = place != STANDARD_INPUT and scheme_of(place) in {None, "file"}
    return is_place and not Path(place).expanduser().is_fifo()


def one_source(source: Source, parameter: str) -> Candidate:
    """Return a source that must be a single file, or what stands for one."""
    if isinstance(source, str | os.PathLike):
        text = os.fspath(source)
        path = Path(local_path(text) if scheme_of(text) == "file" else text).expanduser()
        if path.is_dir():
            raise SourceError(f"{path}: is a folder, {parameter} must be a file.")
        if is_local(text):
            if not path.exists():
                raise SourceError(f"{path}: no such file. {_nearby_files(path)}")
            return Candidate(path, is_named=True)
    elif not (is_table(source) or is_rows(source)):
        raise ParameterTypeError(
            f"{parameter} must be a file, a URL, a frame, a list of dicts or a data set, got "
            f"{kind_of(source)}."
        )
    first, *others = expand(source)
    if others:
        raise ParameterError(f"{parameter} == {source!r} is {len(others) + 1} files, must be one.")
    return first


def _items(source: Source) -> list[Candidate | Place]:
    """List what a source consists of; what is in memory is a candidate already."""
    if isinstance(source, str | os.PathLike):
        return [source]
    if is_table(source) or is_rows(source):
        return [_in_memory(source, name_of(source))]
    check_splits(source)
    if isinstance(source, bytes) or not isinstance(source, Sequence):
        raise ParameterTypeError(
            f"source must be a path, a glob, a folder, a URL, a frame, a list of dicts or a data set, or a "
            f"sequence of these, got {kind_of(source)}."
        )
    if not source:
        raise ParameterError("source is empty, must name at least one file or hold one row.")
    items: list[Candidate | Place] = []
    for number, item in enumerate(source, 1):
        if isinstance(item, str | os.PathLike):
            items.append(item)
        elif is_table(item) or is_rows(item):
            items.append(_in_memory(item, f"{name_of(item)} {number}"))
        else:
            check_splits(item)
            raise ParameterTypeError(
                f"source must hold paths as str or Path, frames, or dicts, got {kind_of(item)}."
            )
    return items


def _in_memory(source: object, name: str) -> Candidate:
    # In `source_file`, words without the article.
    return Candidate(Path(name.removeprefix("the ")), is_named=True, kind="memory", source=source)


def _expand_one(item: Candidate | Place) -> list[Candidate]:
    if isinstance(item, Candidate):
        return [item]
    text = os.fspath(item)
    if text == STANDARD_INPUT:
        return [Candidate(Path("standard input"), is_named=True, kind="standard input")]
    scheme = scheme_of(text)
    if scheme == "file":
        text = local_path(text)
    elif scheme is not None:
        urls = expand_url(text)
        return [Candidate(Path(url), is_named=True, kind="url", source=url) for url in urls]
    path = Path(text).expanduser()
    if path.is_dir():
        return _walk(path)
    if path.exists():
        return [_named(path)]
    if glob.has_magic(text):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural_key)  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not matches:
            raise SourceError(f"{text}: matches no file. {_nearby_files(path)}")
        return [
            candidate
            for match in matches
            for candidate in (_walk(match) if match.is_dir() else [_named(match)])
        ]
    raise SourceError(f"{path}: no such file or folder. {_nearby_files(path)}")


def _named(path: Path) -> Candidate:
    if path.is_fifo():
        return Candidate(path, is_named=True, kind="pipe")
    if path.exists() and not path.is_file():
        raise SourceError(f"{path}: is a device or a socket, must be a file, a folder or a pipe.")
    return Candidate(path, is_named=True)


def _walk(folder: Path) -> list[Candidate]:
    """List the files in a folder and its subfolders; names that begin with a dot are hidden."""
    files: list[Path] = []
    # Links wait, so that a folder that is also linked, as the latest run may be, has its own name.
    waiting, linked = deque([folder]), deque[Path]()
    seen: set[Path] = set()
    while waiting or linked:
        current = waiting.popleft() if waiting else linked.popleft()
        real = current.resolve()
        if real in seen:
            continue
        if real in folder.resolve().parents:
            raise SourceError(f"{current}: is a link to a folder that holds it. Hint: remove it.")
        seen.add(real)
        for path in _list(current):
            if path.is_dir():
                (linked if path.is_symlink() else waiting).append(path)
            elif path.is_file():
                files.append(path)
            elif path.is_symlink():
                raise SourceError(f"{path}: is a link to nothing. Hint: remove it.")
    if not files:
        raise SourceError(f"{folder}: holds no files (hidden files are ignored).")
    return [Candidate(path, is_named=False) for path in sorted(files, key=_natural_key)]


def _list(folder: Path) -> list[Path]:
    """List what a folder shows."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise SourceError(
            f"{folder}: cannot be listed ({error.strerror or error}), so its files would be missing. Hint: name "
            "the files or folders to read."
        ) from error


def _natural_key(path: Path) -> list[tuple[int, int, str]]:
    """Return a key that sorts `record_10` after `record_2`."""
    return [
        (1, int(piece), "") if piece.isdecimal() else (0, 0, piece)
        for piece in re.split(r"([0-9]+)", str(path))
    ]


def _nearby_files(path: Path) -> str:
    """Return a hint that names the files that a missing path may mean, or those beside it."""
    folder = next((parent for parent in path.parents if parent.is_dir()), None)
    if folder is None:
        return "Hint: check the path."
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    wanted = path.relative_to(folder).parts[0] if path != folder else path.name
    if near := near_names(wanted, names, least=_NEAR):
        return f"Hint: did you mean {' or '.join(str(folder / name) for name in near)}?"
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    where = "the working folder" if folder == Path() else folder
    return f"Hint: {where} holds {listed}." if names else f"Hint: {where} is empty."
