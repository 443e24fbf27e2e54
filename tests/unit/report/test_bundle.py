"""The script of the page is made once per user, and is made again where it was damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from ttsframe.report.bundle import vega_bundle


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Count the scripts that are made, in an empty cache."""
    scripts: list[str] = []

    def make(*_: object, **__: object) -> str:
        scripts.append(f"const n = {len(scripts)}; // </script>")
        return scripts[-1]

    monkeypatch.setattr(vl_convert, "javascript_bundle", make)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    vega_bundle.cache_clear()
    yield scripts
    vega_bundle.cache_clear()


def read_anew() -> str:
    vega_bundle.cache_clear()
    return vega_bundle()


def test_it_is_made_once_and_cannot_end_the_page(made: list[str]) -> None:
    assert read_anew() == "const n = 0; // <\\/script>"
    assert read_anew() == "const n = 0; // <\\/script>"
    assert len(made) == 1


@pytest.mark.parametrize("damage", [b"", b"// sha256 0\nalert(1)", b"\xff\xfe", None])
def test_a_damaged_file_is_replaced(made: list[str], tmp_path: Path, damage: bytes | None) -> None:
    read_anew()
    (kept,) = (tmp_path / "cache" / "ttsframe").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] if damage is None else damage)
    assert read_anew() == "const n = 1; // <\\/script>"
    assert read_anew() == "const n = 1; // <\\/script>"
    assert len(made) == 2


def test_a_page_needs_no_cache(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read_anew().startswith("const n = 0")
    assert read_anew().startswith("const n = 1")
    assert len(made) == 2
