"""Child processes of a job run nothing of the working directory, and end with their parent in silence."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from ttsframe.batch import _child
from ttsframe.batch.progress import Amount
from ttsframe.batch.tasks import JoinTask, Writing


def test_a_module_of_the_working_directory_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    marker = tmp_path / "ran"
    for name in ("pickle", "signal", "threading"):
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w'); raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with _child.Child() as child:
        assert child._process.stdin is not None
        child._process.stdin.close()
        child._process.wait(timeout=120)
        assert not marker.exists()
        child._process.stdin = None
    assert capfd.readouterr().err == ""


def answer_nobody(sent: list[bytes]) -> tuple[int, bytes]:
    """Start a child whose parent has ended after it sent something; return what it says."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _child._PROGRAM, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(b"".join(sent), timeout=120)
    return process.returncode, said


def test_a_parent_that_ends_leaves_no_traceback(tmp_path: Path) -> None:
    done = JoinTask(
        name="join",
        reads="parts",
        output=tmp_path,
        amount=Amount(0, 0),
        parts=tmp_path,
        curve=None,
        keys=(),
        writing=Writing("lz4", 1, {}),
    )
    path, task = pickle.dumps(sys.path), pickle.dumps(done)
    assert answer_nobody([path[:-5]]) == (1, b"")
    assert answer_nobody([path, task[:-5]]) == (0, b"")
    assert answer_nobody([path, task]) == (1, b"")
