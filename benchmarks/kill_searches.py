"""Kill searches with SIGKILL at random moments, let them go on, and compare the tree.

Each kill comes at a random moment of a search with instant servers, so most hit the journal while it
is written or Parquet while it replaces it. The same search then goes on in its folder, is killed again, and so on; a
folder that has come to its end is followed by a new one, with another policy. Every tree that comes to its end
must be that of a search without a checkpoint. ``python benchmarks/kill_searches.py [kills]`` writes
``benchmarks/results/kill_searches.txt``.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

import polars as pl

import ttsframe as tts

N_KILLS: Final = 100
SEED: Final = 7
RESULT: Final = Path(__file__).parent / "results" / "kill_searches.txt"
POLICIES: Final = {
    "rebase": tts.search.Rebase(32),
    "beam": tts.search.Beam(32, lookahead=1),
    "particle_filter": tts.search.ParticleFilter(32),
    "best_of_n": tts.search.BestOfN(32),
}
FAULTS: Final = tts.search.VerifierFaults(missing_rate=0.1)


def searched(name: str, folder: Path | None) -> pl.DataFrame:
    """Search batch by batch, so that a search has many records."""
    world = tts.search.simulate(
        40, seed=SEED, n_steps=(6, 8), faults=FAULTS, cut_rate=0.02, text_length=200
    )
    return tts.search.search(*world, POLICIES[name], seed=SEED, batch_size=10, checkpoint=folder)


def begun(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a search in a process of its own, and return when it is about to begin."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", name, str(folder)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.read(1)
    return process


def main(n_kills: int) -> None:
    """Kill, go on, compare."""
    random = Random(SEED)
    n_done = n_cut = n_cut_short = 0
    start, n_ended = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as root:
        lengths = {}
        for name in POLICIES:
            folder = Path(root) / f"whole-{name}"
            with begun(name, folder) as process:
                began = time.perf_counter()
                assert process.wait() == 0
            lengths[name] = time.perf_counter() - began
            assert pl.read_parquet(folder / "nodes.parquet").equals(searched(name, None))
        while n_done < n_kills:
            name = list(POLICIES)[n_ended % len(POLICIES)]
            folder = Path(root) / f"run-{n_ended}"
            while n_done < n_kills:
                with begun(name, folder) as process:
                    # Not so late that most searches end before they are killed.
                    time.sleep(random.uniform(0, 0.7 * lengths[name]))
                    process.send_signal(signal.SIGKILL)
                    code = process.wait()
                if code != -signal.SIGKILL:
                    break
                n_done += 1
                journal = folder / "journal.bin"
                n_cut += journal.exists() and journal.stat().st_size > 0
                if journal.exists() and random.random() < 0.5:
                    # A failure of the machine could also leave a record without its end.
                    size = journal.stat().st_size
                    with journal.open("r+b") as handle:
                        handle.truncate(random.randint(size - min(size, 20_000), size))
                    n_cut_short += 1
                if random.random() < 0.2:
                    break
            with begun(name, folder) as process:
                assert process.wait() == 0
            found = pl.read_parquet(folder / "nodes.parquet")
            assert found.equals(searched(name, None)), name
            assert sorted(path.name for path in folder.iterdir()) == [
                "nodes.parquet",
                "search.json",
            ]
            shutil.rmtree(folder)
            n_ended += 1
    where = f"{', '.join(POLICIES)}; 40 problems in batches of 10, width 32, seed {SEED}"
    lines = [
        f"{n_done} kills with SIGKILL at random moments of {n_ended} searches ({where}), {time.perf_counter() - start:.0f} s.",
        f"In {n_cut} cases the journal held something, in {n_cut_short} its last bytes (up to 20,000) were cut off as well.",
        f"All {n_ended} searches ended with the tree of a search without a checkpoint, and left no other file.",
    ]
    print("\n".join(lines))
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--child" in sys.argv:
        print("!", end="", flush=True)
        searched(sys.argv[2], Path(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else N_KILLS)
