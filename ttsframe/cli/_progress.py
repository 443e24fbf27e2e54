"""Show the progress of a job: as one line on a terminal, or as JSON lines in a log."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from ttsframe.batch import Progress
from ttsframe.cli._console import Console

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.progress import Progress as ProgressBar

_SECONDS_BETWEEN_LOGS: Final = 1.0
_PHASES: Final = {
    "scan": "reading",
    "answers": "distinct answers",
    "keys": "answer keys",
    "parts": "parts",
    "result": "result",
}


class JobProgress:
    """Receives what a job reports and shows it, if anything is to be shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._logged_at = -_SECONDS_BETWEEN_LOGS
        self._bar: ProgressBar | None = None
        self._phase = ""
        self._lock = threading.Lock()
        self._is_closed = False

    def __call__(self, progress: Progress) -> None:
        """Show or log a report."""
        with self._lock:
            if self._is_closed:
                return
            if self._console.is_log_json:
                self._log(progress)
            elif self._console.shows_progress:
                self._draw(progress)

    def close(self) -> None:
        """Show nothing more, and remove the line from the terminal."""
        with self._lock:
            self._is_closed = True
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:
            from rich.console import Console as RichConsole

            self._bar = make_bar(RichConsole(stderr=True))
            self._bar.start()
        if progress.phase != self._phase:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._phase = progress.phase
            self._bar.add_task(
                _PHASES.get(self._phase, self._phase),
                total=progress.n_bytes,
                completed=progress.n_bytes_done,
            )
        self._bar.update(self._bar.task_ids[0], completed=progress.n_bytes_done)

    def _log(self, progress: Progress) -> None:
        if time.monotonic() - self._logged_at < _SECONDS_BETWEEN_LOGS:
            return
        self._logged_at = time.monotonic()
        fields = {
            name.removeprefix("n_").replace("tasks", "parts"): value
            for name, value in progress._asdict().items()
        }
        self._console.log("progress", **fields)


def make_bar(terminal: RichConsole) -> ProgressBar:
    """Make the line: phase, bar, percentage, bytes, rate and time left; it disappears at the end."""
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=20),
        progress.TaskProgressColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
        transient=True,
    )
