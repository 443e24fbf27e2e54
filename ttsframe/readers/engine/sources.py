"""From the source that a caller names (path, glob, folder, or several of these) to its files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ttsframe.errors import ParameterError, ParameterTypeError, SourceError

Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Candidate(NamedTuple):
    """A file that may hold rows."""

    path: Path
    is_named: bool
    """False for a file found in a folder, which may serve another purpose."""


def expand(source: Source) -> list[Candidate]:
    """List the files of a source in the order named; those of a folder or glob are sorted."""
    candidates: list[Candidate] = []
    for item in _items(source):
        candidates.extend(_expand_one(item))
    seen: dict[Path, Path] = {}
    for candidate in candidates:
        real = candidate.path.resolve()
        if real in seen:
            raise SourceError(
                f"{candidate.path}: named twice (also as {seen[real]}), so its rows would count twice. "
                f"Hint: name each file once."
            )
        seen[real] = candidate.path
    return candidates


def one_file(source: str | os.PathLike[str], parameter: str) -> Path:
    """Return the path of a source that must be a single existing file."""
    if not isinstance(source, str | os.PathLike):
        raise ParameterTypeError(
            f"{parameter} must be the path of a file, got {type(source).__name__}."
        )
    path = Path(source).expanduser()
    if path.is_dir():
        raise SourceError(f"{path}: is a folder, {parameter} must be a file.")
    if not path.exists():
        raise SourceError(f"{path}: no such file. {_nearby_files(path)}")
    return path


def _items(source: Source) -> list[str | os.PathLike[str]]:
    listed: object = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(listed, bytes) or not isinstance(listed, Sequence):
        raise ParameterTypeError(
            f"source must be a path, a glob, a folder, or a sequence of these, got "
            f"{type(source).__name__}. Hint: a frame in memory needs no reader; "
            f"tts.validate_trajectories checks it."
        )
    if not listed:
        raise ParameterError("source is empty, must name at least one file.")
    for item in listed:
        if not isinstance(item, str | os.PathLike):
            raise ParameterTypeError(
                f"source must hold paths as str or Path, got {type(item).__name__}."
            )
    return list(listed)


def _expand_one(item: str | os.PathLike[str]) -> list[Candidate]:
    text = os.fspath(item)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        raise SourceError(
            f"{text}: is a URL, must be a local file. Hint: download it first, or read it with "
            f"polars.read_parquet and write it to disk."
        )
    path = Path(text).expanduser()
    if path.is_dir():
        return _walk(path)
    if path.exists():
        return [Candidate(path, is_named=True)]
    if glob.has_magic(text):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural_key)  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not matches:
            raise SourceError(f"{text}: matches no file. {_nearby_files(path)}")
        return [
            candidate
            for match in matches
            for candidate in (_walk(match) if match.is_dir() else [Candidate(match, is_named=True)])
        ]
    raise SourceError(f"{path}: no such file or folder. {_nearby_files(path)}")


def _walk(folder: Path) -> list[Candidate]:
    """List the files in a folder and its subfolders; names that begin with a dot are hidden."""
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise SourceError(f"{folder}: holds no files (hidden files are ignored).")
    return [Candidate(path, is_named=False) for path in sorted(files, key=_natural_key)]


def _natural_key(path: Path) -> list[tuple[int, int, str]]:
    """Return a key that sorts `record_10` after `record_2`."""
    return [
        (1, int(piece), "") if piece.isdecimal() else (0, 0, piece)
        for piece in re.split(r"([0-9]+)", str(path))
    ]


def _nearby_files(path: Path) -> str:
    """Return a hint that lists the files beside a missing path."""
    folder = next((parent for parent in path.parents if parent.is_dir()), None)
    if folder is None:
        return "Hint: check the path."
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"Hint: {folder} holds {listed}." if names else f"Hint: {folder} is empty."
