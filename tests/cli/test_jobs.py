"""Commands as jobs: the library's rows, resumed after any end, and what they say meanwhile."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NoReturn

import polars as pl
import pytest
from click.testing import Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pyarrow import parquet

import ttsframe as tts
from benchmarks.kill_jobs import Job, kill_often, make_jobs, two_at_once
from ttsframe.cli._progress import make_bar
from ttsframe.defaults import PickOptions, choose_picks, plan_picks

Run = Callable[..., Result]
PROGRAM = [sys.executable, "-m", "ttsframe"]
KEYS = ["source_file", "problem_id", "attempt"]


def write_runs(folder: Path, sizes: list[list[int]], *, seed: int, is_shuffled: bool) -> None:
    """Write a file per run, whose problems have these numbers of attempts."""
    folder.mkdir(parents=True)
    for number, attempts in enumerate(sizes):
        run = tts.simulate_trajectories(
            len(attempts), max(attempts), seed=seed + number, texts=True
        )
        most = pl.DataFrame({
            "problem_id": run["problem_id"].unique(maintain_order=True),
            "most": attempts,
        })
        run = (
            run.join(most, on="problem_id").filter(pl.col("attempt") < pl.col("most")).drop("most")
        )
        if is_shuffled:
            run = run.sample(fraction=1.0, shuffle=True, seed=seed)
        run.write_parquet(folder / f"run{number}.parquet")


@given(
    sizes=st.lists(st.lists(st.integers(1, 6), min_size=2, max_size=5), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    is_shuffled=st.booleans(),
    rows_per_part=st.integers(3, 40),
    is_folder=st.booleans(),
)
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_commands_write_what_the_library_makes(
    ttsframe: Run,
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[list[int]],
    seed: int,
    is_shuffled: bool,
    rows_per_part: int,
    is_folder: bool,
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    write_runs(folder / "in", sizes, seed=seed, is_shuffled=is_shuffled)
    source, ending = folder / "in" / "run*.parquet", "" if is_folder else ".parquet"
    part = ("--rows-per-part", rows_per_part, "--quiet")

    def make(command: str, *options: object) -> pl.DataFrame:
        target = folder / f"{command}{ending}"
        result = ttsframe(command, source, "-o", target, *options, *part)
        assert result.exit_code == 0, result.stderr
        return pl.read_parquet(target)

    attempts = tts.read_trajectories(source)
    keys = [name for name in KEYS if name in attempts.columns]
    by = ("--by", "source_file") if "source_file" in keys else ()
    runs = [name for name in keys if name == "source_file"]
    assert_frame_equal(make("convert").sort(keys), attempts.sort(keys))
    scored = tts.score_trajectories(attempts)
    assert_frame_equal(make("score", "--texts").sort(keys), scored.sort(keys))
    # The source has no score, so that the commands reduce its step scores as they need them.
    picked = tts.select_answers(
        scored,
        selectors=["majority_vote", "weighted_vote", "best_of_n", "oracle"],
        reductions="last",
        budgets=[1, 2],
        by=runs,
    )
    order = [*runs, "problem_id", "selector", "budget"]
    assert_frame_equal(make("vote", "--budgets", "1,2", *by).sort(order), picked.sort(order))
    curve = tts.scaling_curve(picked, by=runs)
    order = [*runs, "selector", "budget"]
    assert_frame_equal(make("curve", "--budgets", "1,2", *by).sort(order), curve.sort(order))


def test_a_first_look_decides_as_all_the_attempts_do(tmp_path: Path) -> None:
    write_runs(tmp_path / "in", [[4, 4, 3], [2, 2], [7] * 9], seed=1, is_shuffled=True)
    attempts = tts.read_trajectories(tmp_path / "in")
    is_bare = pl.col("source_file").str.ends_with("run1.parquet")
    ungraded = attempts.with_columns(
        pl.when(~is_bare).then(name).alias(name)
        for name in ("gold", "solution")
        if name in attempts
    )
    for run in (attempts, ungraded, ungraded.drop("step_scores"), tts.score_trajectories(ungraded)):
        for by in ((), ("source_file",)):
            for budgets in (None, "all", [1, 2]):
                options = PickOptions(by=by, budgets=budgets)
                look, picks = choose_picks(run.lazy(), options), plan_picks(run, options)
                assert (look.options, look.notes) == (picks.options, picks.notes)
                assert len(look.runs) == len(picks.runs)
                for one, other in zip(look.runs, picks.runs, strict=True):
                    assert (one.is_graded, one.budgets) == (other.is_graded, other.budgets)
                    assert_frame_equal(one.runs, other.runs)


def test_runs_that_differ_get_budgets_of_their_own_in_one_file(
    ttsframe: Run, tmp_path: Path
) -> None:
    write_runs(tmp_path / "in", [[4] * 5, [7] * 6], seed=1, is_shuffled=False)
    args = ("curve", "in", "--by", "source_file", "-o", "curve.parquet", "--json")
    shown = json.loads(ttsframe(*args).stdout)["curve"]
    table = pl.read_parquet("curve.parquet")
    budgets = {name: set(rows["budget"]) for (name,), rows in table.group_by("source_file")}
    assert budgets == {"in/run0.parquet": {1, 2, 4}, "in/run1.parquet": {1, 2, 4, 7}}
    assert table["accuracy"].to_list() == [row["accuracy"] for row in shown]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.parquet", "in"]
    again = ttsframe(*args)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "--replace replaces it" in again.stderr
    assert ttsframe(*args, "--replace").exit_code == 0


def test_a_folder_of_parts_is_written_and_found_again(ttsframe: Run, tmp_path: Path) -> None:
    tts.simulate_trajectories(60, 16, seed=1, texts=True).write_parquet("run.parquet")
    args = ("score", "run.parquet", "-o", "parts/", "--rows-per-part", "100")
    first = ttsframe(*args)
    n_parts = len(list((tmp_path / "parts").glob("part-*.parquet")))
    assert n_parts > 1
    assert f"Wrote parts/: 960 rows for 60 problems in {n_parts} parts; columns: " in first.stdout
    document = json.loads(ttsframe(*args, "--json").stdout)
    assert document["n_parts_resumed"] == document["n_parts"] == n_parts
    assert "it existed already" in ttsframe(*args).stdout
    other = ttsframe(*args, "--reduction", "min")
    assert other.exit_code == 2
    assert "score reduction: 'last' -> 'min'" in other.stderr
    assert "--replace" in other.stderr
    assert ttsframe(*args, "--reduction", "min", "--replace").exit_code == 0


def test_a_strangers_file_is_not_replaced_unasked(ttsframe: Run, sample: Path) -> None:
    Path("out.parquet").write_text("thesis")
    result = ttsframe("convert", sample, "-o", "out.parquet")
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {Path('out.parquet').absolute()}: already exists and was not written by a "
        "ttsframe job. Hint: --replace replaces it once the new one is complete; or give the output "
        "another name.\n"
    )
    assert Path("out.parquet").read_text() == "thesis"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "a.csv", "--engine", "ray"], "--engine: only for a job, which writes Parquet"),
        (["-o", "a.jsonl", "--restart", "--rows-per-part", "9"], "--rows-per-part and --restart"),
        (["-o", "a.parquet", "--workers", "2"], "--workers: only with --engine ray"),
        (["-o", "a.parquet", "--address", "auto"], "--address: only with --engine ray"),
        (["-o", "a.parquet", "--rows-per-part", "0"], "'--rows-per-part'"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    ttsframe: Run, sample: Path, options: list[str], words: str
) -> None:
    result = ttsframe("convert", sample, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert list(Path().iterdir()) == []


def events(stderr: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in stderr.splitlines()]


def test_log_json_is_an_object_per_line(ttsframe: Run, sample: Path, lines: list[str]) -> None:
    result = ttsframe("score", sample, "-o", "out.parquet", "--log-json", "--quiet")
    assert result.exit_code == 0
    start, *_, end = events(result.stderr)
    assert (start["event"], start["command"], start["sources"]) == ("start", "score", [str(sample)])
    assert (end["event"], end["rows"], end["parts"]) == ("end", 960, 1)
    assert str(start["time"]) <= str(end["time"])

    Path("bad.jsonl").write_text("\n".join([lines[0], "no json"]))
    failed = ttsframe("curve", "bad.jsonl", "--log-json")
    assert failed.exit_code == 2
    assert [event["event"] for event in events(failed.stderr)][-1] == "error"
    assert "bad.jsonl, line 2: not JSON" in str(events(failed.stderr)[-1]["message"])
    skipped = ttsframe("curve", "bad.jsonl", "--log-json", "--on-error", "skip")
    kinds = [event["event"] for event in events(skipped.stderr)]
    assert [kind for kind in kinds if kind != "progress"] == ["start", "warning", "end"]


def test_progress_is_logged_at_most_every_second(tmp_path: Path) -> None:
    job = make_jobs(tmp_path, 20)[0]
    command = [*PROGRAM, *job.command, "-o", str(job.sink), "--log-json", "--quiet"]
    command += ["--rows-per-part", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    seen = [event for event in events(done.stderr) if event["event"] == "progress"]
    assert seen
    for event in seen:
        assert int(str(event["parts_done"])) <= int(str(event["parts"]))
        assert {"phase", "bytes_done", "rows_done", "bytes_per_second", "seconds_left"} <= set(
            event
        )
    times = [time.mktime(time.strptime(str(one["time"])[:19], "%Y-%m-%dT%H:%M:%S")) for one in seen]
    assert len(times) <= max(times) - min(times) + 2


def test_nothing_is_shown_where_nobody_looks_and_of_what_is_short(
    ttsframe: Run, sample: Path
) -> None:
    for flags in ((), ("--quiet",)):
        result = ttsframe("score", sample, "-o", "out.parquet", "--replace", *flags)
        assert result.stderr == ""


def read_all(descriptor: int) -> Iterator[bytes]:
    """Read a terminal until its other end is closed."""
    while True:
        try:
            data = os.read(descriptor, 4096)
        except OSError:  # Linux says that the other end is closed with EIO
            return
        if not data:
            return
        yield data


def test_a_terminal_shows_one_line_that_is_gone_at_the_end(tmp_path: Path) -> None:
    job = make_jobs(tmp_path, 20)[0]
    ours, theirs = pty.openpty()
    command = [*PROGRAM, *job.command, "-o", str(job.sink), "--rows-per-part", "50"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b"".join(read_all(ours)).decode()
    os.close(ours)
    assert process.returncode == 0
    assert re.search(r" \d+%", shown)
    # What is drawn is a single line, cleared at the end, and the cursor is shown again.
    assert shown.count("\n") == 1
    assert shown.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[?25h" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert all(len(line) <= 80 for line in re.split(r"[\r\n]+", plain))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_line_of_progress_fits(width: int) -> None:
    from rich.console import Console

    terminal = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    bar = make_bar(terminal)
    bar.add_task("parts", total=1_000_000_000, completed=150_000_000)
    terminal.print(bar.get_renderable())
    (line,) = terminal.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(line) <= width
    if width >= 80:
        assert line.startswith("parts ")
        assert " 15% " in line
        assert "0.1/1.0 GB" in line or "0.2/1.0 GB" in line


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    return make_jobs(tmp_path_factory.mktemp("jobs"), 40)


@pytest.mark.parametrize(
    "number", [0, *[pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 3)]]
)
def test_a_killed_job_goes_on_to_the_same_rows(jobs: list[Job], number: int) -> None:
    found = kill_often(jobs[number], 2, Random(number))
    assert len(found.kills) == 2


def test_two_jobs_at_once_do_not_mix(jobs: list[Job]) -> None:
    assert 0 in two_at_once(jobs[0])


PAUSED = """
import sys, time
from ttsframe.cli import _jobs, main

class Paused(_jobs.JobProgress):
    def __call__(self, progress):
        super().__call__(progress)
        if progress.phase == "parts" and progress.n_tasks_done == 1:
            print("paused", flush=True)
            for _ in range(3_000):  # a signal that comes just before a sleep does not end it
                time.sleep(0.1)

_jobs.JobProgress = Paused
main(sys.argv[1:])
"""
"""The program, which waits after the first part."""

STARTED = """
import os, sys, time
from ttsframe.cli import _console, main

log = _console.Console.log

def log_and_wait(self, event, **fields):
    log(self, event, **fields)
    if event == "start":
        os.write(2, b"waiting\\n")
        for _ in range(3_000):
            time.sleep(0.1)

_console.Console.log = log_and_wait
main(sys.argv[1:])
"""
"""The program, which waits after the line that logs its start."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_told_to_stop_says_so_and_goes_on_later(
    jobs: list[Job], number: signal.Signals
) -> None:
    job = Job("stopped", (*jobs[1].command, "--log-json"), jobs[1].sink)
    command = [sys.executable, "-c", PAUSED, *job.command, "-o", str(job.sink)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "paused\n"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stdout) == (128 + number, "")
    last = events(stderr)[-1]
    assert last["event"] == "stopped"
    assert last["message"] == "Stopped. Rerun the same command to resume."
    assert not job.sink.exists()
    job.finish()
    assert job.hidden() == []
    job.remove()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_only_shown_leaves_nothing_when_it_is_stopped(
    jobs: list[Job], tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", STARTED, *without_part_size(jobs[2]), "--log-json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        # A signal that comes while the line is being logged may be lost, and a second one may come
        # when the program has ended the handling of signals.
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        _, rest = process.communicate(timeout=300)
    assert json.loads(first)["event"] == "start"
    assert "Traceback" not in rest
    if number == signal.SIGINT:
        assert (process.returncode, events(rest)[-1]["message"]) == (130, "Interrupted.")
    else:
        assert process.returncode == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def without_part_size(job: Job) -> tuple[str, ...]:
    return job.command[: job.command.index("--rows-per-part")]


@pytest.mark.parametrize("command", ["curve", "vote"])
@pytest.mark.parametrize("output", [[], ["-o", "out.csv"]])
@pytest.mark.parametrize(
    "option",
    [["--restart"], ["--engine", "ray"], ["--engine", "polars"], ["--rows-per-part", "9"]],
)
def test_options_of_jobs_need_an_output_that_a_job_writes(
    ttsframe: Run, sample: Path, command: str, output: list[str], option: list[str]
) -> None:
    result = ttsframe(command, sample, *output, *option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{option[0]}: only for a job, which writes Parquet. Hint: -o X" in result.stderr
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("command", ["curve", "vote"])
def test_nothing_is_written_where_nothing_is_asked_for(
    ttsframe: Run, sample: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a file is written")

    monkeypatch.setattr("polars.LazyFrame.sink_parquet", refuse)
    monkeypatch.setattr("ttsframe.cli._jobs.transform", refuse)
    assert ttsframe(command, sample).exit_code == 0
    assert list(Path().iterdir()) == []


def test_curve_and_vote_say_the_same_with_a_job_and_without(ttsframe: Run, tmp_path: Path) -> None:
    write_runs(tmp_path / "in", [[4] * 5, [7] * 6], seed=1, is_shuffled=True)
    for source in ("in", "in/run0.parquet"):
        by = ["--by", "source_file"] if source == "in" else []
        for command, key in ("curve", "curve"), ("vote", "problems"):
            target = f"{command}.parquet"
            job = ttsframe(command, source, *by, "-o", target, "--replace", "--json")
            shown = json.loads(ttsframe(command, source, *by, "--json").stdout)
            table = pl.read_parquet(target)
            rows = pl.DataFrame(shown[key], schema=table.schema)
            keys = [
                name for name in ("source_file", "selector", "budget", "problem_id") if name in rows
            ]
            assert_frame_equal(rows.sort(keys), table.sort(keys))
            assert job.exit_code == 0


@pytest.mark.parametrize("column", ["problem_id", "completion", "step_scores"])
@pytest.mark.parametrize("command", ["score", "curve"])
def test_a_damaged_row_group_is_named(ttsframe: Run, column: str, command: str) -> None:
    run = tts.simulate_trajectories(40, 8, seed=1, texts=True)
    run.write_parquet("run.parquet", row_group_size=80)
    footer = parquet.read_metadata("run.parquet").row_group(2)
    chunk = next(
        footer.column(i)
        for i in range(footer.num_columns)
        if footer.column(i).path_in_schema.startswith(column)
    )
    data = bytearray(Path("run.parquet").read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    Path("run.parquet").write_bytes(data)
    for output in (["-o", "out.parquet", "--rows-per-part", "80"], ["-o", "out.jsonl"]):
        result = ttsframe(command, "run.parquet", *output)
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert "run.parquet" in result.stderr
        assert "read (" in result.stderr
        assert not Path(output[1]).exists()


def test_a_full_disk_ends_in_one_message(
    ttsframe: Run, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("polars.LazyFrame.sink_parquet", refuse)
        result = ttsframe("score", sample, "-o", "out.parquet")
    assert result.exit_code == 2
    assert "could not be written (No space left on device)" in result.stderr
    assert "rerun the same command; completed parts are reused" in result.stderr
    assert not Path("out.parquet").exists()
    assert ttsframe("score", sample, "-o", "out.parquet").exit_code == 0
