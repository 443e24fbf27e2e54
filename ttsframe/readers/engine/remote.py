"""Files at a URL: tables stay there and are read by column, any other file is read into memory once."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Any, Final

import polars as pl

from ttsframe.errors import SourceError
from ttsframe.readers.engine.faults import first_line
from ttsframe.readers.engine.sniff import DataFile, sniff

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_HTTP: Final = ("http", "https")
_TEXTS: Final = re.compile(r"\.(json|jsonl|ndjson|csv|tsv|txt)(\.(gz|zst|bz2))?$", re.IGNORECASE)
_ARROW: Final = re.compile(r"\.(arrow|ipc|feather)$", re.IGNORECASE)
_RETRIES: Final = 2
_SECONDS: Final = 60
_HEAD: Final = 1 << 16
_HINT: Final = (
    "Hint: check the URL and the network; of a private place, set what Polars reads, such as HF_TOKEN "
    "or AWS_ACCESS_KEY_ID."
)


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL in lower case; None for a path."""
    match = _SCHEME.match(text)
    return None if match is None else match[1].lower()


_SCANNED: Final = ("hf", "s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")


def check_scheme(url: str) -> None:
    """Refuse a URL that neither Polars nor this module reads."""
    if scheme_of(url) not in {*_HTTP, *_SCANNED}:
        raise SourceError(
            f"{url}: is a URL that cannot be read; expected one of http, https, file, {', '.join(_SCANNED)}. "
            "Hint: download it first."
        )


def local_path(url: str) -> str:
    """Return the path of a `file://` URL."""
    from urllib.parse import unquote, urlsplit
    from urllib.request import url2pathname

    return url2pathname(unquote(urlsplit(url).path))


def remote_options(file: DataFile) -> dict[str, Any]:
    """Return what Polars needs to scan a file at a URL: it tries for minutes otherwise."""
    return {} if file.url is None else {"storage_options": {"max_retries": _RETRIES}}


def expand_url(url: str) -> list[str]:
    """List the files that a URL with the marks of a glob stands for."""
    check_scheme(url)
    if scheme_of(url) in _HTTP or not glob.has_magic(url):
        return [url]
    scan = pl.scan_lines if _TEXTS.search(url) else pl.scan_parquet
    try:
        paths = (
            scan(url, include_file_paths="path", storage_options={"max_retries": _RETRIES})
            .select(pl.col("path").unique().sort())
            .collect()
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreachable(url, error) from error
    return paths["path"].to_list()


def open_url(url: str) -> DataFile:
    """Recognize the file at a URL."""
    try:
        if scheme_of(url) in _HTTP:
            return _open_http(url)
        if _TEXTS.search(url):
            return _in_memory(url, _read_lines(url))
        options: dict[str, Any] = {"storage_options": {"max_retries": _RETRIES}}
        if _ARROW.search(url):
            pl.scan_ipc(url, glob=False, **options).collect_schema()
            return DataFile(Path(url), "arrow", None, url=url)
        pl.scan_parquet(url, glob=False, **options).collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreachable(url, error) from error
    return DataFile(Path(url), "parquet", None, url=url)


def _open_http(url: str) -> DataFile:
    from urllib.request import Request, urlopen  # slow to import

    request = Request(url, headers={"User-Agent": "ttsframe"})  # noqa: S310 - the scheme is http(s)
    with urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
        head = response.read(_HEAD)
        if head.startswith(b"PAR1") and response.headers.get("Accept-Ranges") == "bytes":
            return DataFile(Path(url), "parquet", None, url=url)
        return _in_memory(url, head + response.read())


def _in_memory(url: str, data: bytes) -> DataFile:
    return sniff(Path(url), data, url)


def _read_lines(url: str) -> bytes:
    options = {"max_retries": _RETRIES}
    lines = pl.scan_lines(url, glob=False, storage_options=options).collect().to_series()
    return "\n".join(lines).encode()


def _unreachable(url: str, error: Exception) -> SourceError:
    from urllib.error import HTTPError, URLError

    if isinstance(error, HTTPError):
        reason = f"the server answers {error.code}, {error.reason}"
    elif isinstance(error, URLError):
        reason = str(getattr(error.reason, "strerror", None) or error.reason)
    elif isinstance(error, FileNotFoundError):
        reason = "there is no such file"
    elif "expanded paths were empty" in str(error):
        reason = "it matches no file"
    else:
        reason = first_line(error)
    return SourceError(f"{url}: cannot be read ({reason}). {_HINT}")
