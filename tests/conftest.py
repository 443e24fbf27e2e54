"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Pages have a date: without this, two of the same run differ if a minute passes between them.
os.environ["SOURCE_DATE_EPOCH"] = "1767225600"

# Shells start what runs in the background with SIGINT ignored, which the programs under test would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ci", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "full", max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "brief", max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: ten thousand tests are made, and all of them stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real runs beside the project, or skip."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real runs of ../shared/data are not here")
    return folder


collect_ignore_glob = ["data/*"]
