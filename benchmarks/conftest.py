"""Benchmarks run one at a time, and never without timing unless that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore = [
    path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("bench_")
]
"""Scripts with results of their own, some of which need an extra."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Take back `-n auto` of pyproject.toml: processes side by side disturb each other's times."""
    config.option.numprocesses = 0
    config.option.dist = "no"
    config.option.tx = []


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail if times would not be taken, which pytest-benchmark only mentions."""
    benchmarks = getattr(session.config, "_benchmarksession", None)
    is_asked_for = session.config.getoption("benchmark_disable", default=False)
    if (benchmarks is None or benchmarks.disabled) and not is_asked_for:
        raise pytest.UsageError(
            "the benchmarks would run without being timed. "
            "Hint: pytest benchmarks -n 0, or --benchmark-disable for their checks alone."
        )
