"""The folder of a job beside its output: finished tasks, and how the result is published."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ttsframe._files import TEMPORARY, appearing, check_no_link, check_parent_folder, remove_folder
from ttsframe._settings import constant
from ttsframe.batch.manifest import Manifest, read_manifest
from ttsframe.errors import ParameterError, SourceError

__all__ = ["Job", "check_kind", "check_not_replaced"]

_MANIFEST: Final = "manifest.json"
_PUBLISHING: Final = "publishing"
_REPLACED: Final = "replaced"
_OVERWRITE: Final = constant("overwrite", True)
_RESTART: Final = constant("restart", True)


def check_kind(sink: Path) -> None:
    """Raise if a folder exists where a file is to be written, or a file where a folder is."""
    is_file = sink.suffix.lower() == ".parquet"
    if sink.is_dir() if is_file else sink.is_file():
        raise SourceError(
            f"{sink}: is a {'folder' if is_file else 'file'}. Hint: a name that ends in '.parquet' "
            "makes one file, any other a folder of parts."
        )


def check_not_replaced(sink: Path, sources: Iterable[Path]) -> None:
    """Raise if writing the sink would replace a source."""
    target = sink.resolve()
    for path in sources:
        real = path.resolve()
        if real == target or target in real.parents:
            raise SourceError(
                f"{sink}: {path} is one of the sources and would be replaced. Hint: give the output "
                "another name, outside of the folders that are read."
            )


@dataclass(frozen=True)
class Job:
    """A job's output, and the hidden files beside it."""

    sink: Path
    """A file if its name ends in ".parquet", else a folder of parts."""

    @property
    def is_file(self) -> bool:
        """Whether the output is one file."""
        return self.sink.suffix.lower() == ".parquet"

    @property
    def folder(self) -> Path:
        """The folder of the job, on the same disk as the output."""
        return self.sink.with_name(f".{self.sink.name}.job")

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.sink.with_name(f".{self.sink.name}.lock")

    @property
    def parts(self) -> Path:
        """The folder of finished parts."""
        return self.folder / "parts"

    def check_place(self) -> None:
        """Raise if the output cannot be written."""
        check_parent_folder(self.sink)
        check_kind(self.sink)
        if self.sink.is_dir() and not os.access(self.sink, os.W_OK):
            raise SourceError(
                f"{self.sink}: cannot be written to, so it cannot be replaced. Hint: give the output another name."
            )
        check_no_link(self.folder)
        # os.path takes a name that is too long for one that is not there; the lock says what is wrong.
        for inside in self.folder.iterdir() if os.path.isdir(self.folder) else ():  # noqa: PTH112
            check_no_link(inside)

    def finished(self, wanted: Manifest, *, overwrite: bool) -> Manifest | None:
        """Return the manifest of an existing output that this very job has written; else None."""
        if not self.sink.exists() or overwrite:
            return None
        if self.sink.is_dir() and not any(self.sink.iterdir()):
            return None
        hint = (
            f"Hint: {_OVERWRITE} replaces it once the new one is complete; or give the output another "
            "name."
        )
        try:
            found = read_manifest(self.sink)
        except SourceError as error:
            raise SourceError(
                f"{self.sink}: already exists and was not written by a ttsframe job. {hint}"
            ) from error
        if changes := found.changes(wanted):
            raise SourceError(
                f"{self.sink}: already exists and was written with different settings: "
                f"{'; '.join(changes)}. {hint}"
            )
        return found

    def begin(self, wanted: Manifest, *, restart: bool) -> Manifest | None:
        """Return the manifest of an unfinished run of this job, whose tasks count; None for a new job."""
        if restart:
            self.remove()
        path = self.folder / _MANIFEST
        if not path.exists() or self._is_published():
            # A run that was killed before it wrote its manifest has done nothing else; one that was
            # killed after it published its result had nothing else to do.
            self.remove()
            return None
        try:
            found = Manifest.from_json(path.read_text(encoding="utf-8"))
        except (KeyError, TypeError, ValueError):
            changes = ["its manifest was written by another version of ttsframe"]
        else:
            changes = found.changes(wanted)
        if changes:
            raise ParameterError(
                f"{self.sink}: {self.folder} holds an unfinished job with different settings: "
                f"{'; '.join(changes)}. Hint: {_RESTART} discards its work; with the earlier settings "
                "the job resumes."
            )
        for unfinished in self.folder.rglob(f".*{TEMPORARY}"):
            remove_folder(unfinished)
        return found

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest of a new job."""
        self.folder.mkdir(exist_ok=True)
        with appearing(self.folder / _MANIFEST) as path:
            path.write_text(manifest.to_json(), encoding="utf-8")

    def publish(self, result: Path) -> None:
        """Move the result to the sink, and clean up.

        A folder that is replaced is moved to the folder of the job first: for an instant there is no
        output, but never half of one, and a job killed in between resumes with the renaming.
        """
        if self.sink.is_dir():
            replaced = self.folder / _REPLACED
            if any(self.sink.iterdir()):
                remove_folder(replaced)
                self.sink.replace(replaced)
            else:
                self.sink.rmdir()
        with appearing(self.folder / _PUBLISHING) as path:
            path.write_text(str(result.relative_to(self.folder)), encoding="utf-8")
        result.replace(self.sink)
        self.remove()

    def _is_published(self) -> bool:
        """Return whether an earlier run has moved its result to the sink."""
        marker = self.folder / _PUBLISHING
        return marker.exists() and not (self.folder / marker.read_text(encoding="utf-8")).exists()

    def remove(self) -> None:
        """Remove the folder of the job."""
        if self.folder.is_dir():
            # The manifest goes first: without it nothing in the folder counts.
            (self.folder / _MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(self.folder, ignore_errors=True)
