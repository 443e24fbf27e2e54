"""The folder of a job beside its output: what is done already, and how the result appears."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ttsframe._files import TEMPORARY, appearing, remove_folder
from ttsframe.batch.manifest import Manifest, read_manifest
from ttsframe.errors import ParameterError, SourceError

__all__ = ["Job"]

_MANIFEST: Final = "manifest.json"
_PUBLISHING: Final = "publishing"
_REPLACED: Final = "replaced"


@dataclass(frozen=True)
class Job:
    """Where a job works and what it makes.

    Parameters
    ----------
    sink
        The output: a file if its name ends in ".parquet", else a folder of parts.
    """

    sink: Path

    @property
    def is_file(self) -> bool:
        """Whether the output is one file.

        Returns
        -------
        bool
            False for a folder of parts.
        """
        return self.sink.suffix.lower() == ".parquet"

    @property
    def folder(self) -> Path:
        """The folder of the job, hidden beside the output.

        Returns
        -------
        Path
            On the same disk as the output.
        """
        return self.sink.with_name(f".{self.sink.name}.job")

    @property
    def lock(self) -> Path:
        """The lock file.

        Returns
        -------
        Path
            Beside the output.
        """
        return self.sink.with_name(f".{self.sink.name}.lock")

    @property
    def parts(self) -> Path:
        """The folder of the finished parts.

        Returns
        -------
        Path
            In the folder of the job.
        """
        return self.folder / "parts"

    def check_place(self) -> None:
        """Raise where nothing could be written.

        Raises
        ------
        SourceError
            When the output has no folder to be in, or is a folder where a file was named.
        """
        if not self.sink.parent.is_dir():
            raise SourceError(
                f"{self.sink.parent}: no such folder, so {self.sink.name} cannot be written there."
            )
        if self.sink.is_dir() if self.is_file else self.sink.is_file():
            raise SourceError(
                f"{self.sink}: is a {'folder' if self.is_file else 'file'}. Hint: a name that ends in "
                "'.parquet' makes one file, any other a folder of parts."
            )

    def finished(self, wanted: Manifest, *, overwrite: bool) -> Manifest | None:
        """Look at what is there under the name of the output.

        Parameters
        ----------
        wanted
            The job that is asked for.
        overwrite
            Whether something else may be replaced.

        Returns
        -------
        Manifest or None
            That of the output if this very job has made it, None if there is work to do.

        Raises
        ------
        SourceError
            When something else is there that may not be replaced.
        """
        if not self.sink.exists() or overwrite:
            return None
        if self.sink.is_dir() and not any(self.sink.iterdir()):
            return None
        try:
            found = read_manifest(self.sink)
        except SourceError as error:
            raise SourceError(
                f"{self.sink}: is there already, and no job of ttsframe has written it. Hint: "
                "overwrite=True replaces it once the new one is whole; or give the output another name."
            ) from error
        if changes := found.changes(wanted):
            raise SourceError(
                f"{self.sink}: is there already, and was made otherwise: {'; '.join(changes)}. Hint: "
                "overwrite=True replaces it once the new one is whole; or give the output another name."
            )
        return found

    def begin(self, wanted: Manifest, *, restart: bool) -> Manifest | None:
        """Make the folder of the job, or find what an earlier run of it has left.

        Parameters
        ----------
        wanted
            The job that is asked for.
        restart
            Whether to throw away what is there.

        Returns
        -------
        Manifest or None
            That of the earlier run, whose finished tasks count; None for a new job.

        Raises
        ------
        ParameterError
            When the earlier run was another job.
        """
        if restart:
            self.remove()
        kept = self.folder / _MANIFEST
        if not kept.exists() or self._is_published():
            # A run that was killed before it wrote its manifest has done nothing else, and one that was
            # killed after it let its result appear had nothing else to do.
            self.remove()
            return None
        try:
            found = Manifest.from_json(kept.read_text(encoding="utf-8"))
        except (KeyError, TypeError, ValueError):
            changes = ["its manifest is of another version of ttsframe"]
        else:
            changes = found.changes(wanted)
        if changes:
            raise ParameterError(
                f"{self.sink}: a job that was not finished is in {self.folder}, and it was another one: "
                f"{'; '.join(changes)}. Hint: restart=True throws its work away and begins anew; with "
                "everything as it was, the job goes on where it stopped."
            )
        for left in self.folder.rglob(f".*{TEMPORARY}"):
            remove_folder(left)
        return found

    def write_manifest(self, manifest: Manifest) -> None:
        """Keep the manifest of a new job.

        Parameters
        ----------
        manifest
            With its layout.
        """
        self.folder.mkdir(exist_ok=True)
        with appearing(self.folder / _MANIFEST) as path:
            path.write_text(manifest.to_json(), encoding="utf-8")

    def publish(self, result: Path) -> None:
        """Let the result take the place of the output, and clean up.

        A folder that is replaced is moved into the folder of the job first: for an instant there is
        no output, but never half of one, and a job killed there goes on with the renaming.

        Parameters
        ----------
        result
            File or folder in the folder of the job.
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
        """Tell whether an earlier run has let its result appear."""
        kept = self.folder / _PUBLISHING
        return kept.exists() and not (self.folder / kept.read_text(encoding="utf-8")).exists()

    def remove(self) -> None:
        """Remove the folder of the job."""
        if self.folder.is_dir():
            # The manifest goes first, so that a run killed here leaves no work that counts.
            (self.folder / _MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(self.folder, ignore_errors=True)
