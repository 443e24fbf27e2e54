"""Members of a zip archive, stored, deflated or compressed by zstd; nothing is ever written to disk.

`zipfile` lists the members. It knows zstd (method 93) only since Python 3.14 and is slow for many small
members, so their bytes are read and decompressed here. What a member holds is bounded, whatever it claims.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from typing import Any, BinaryIO, Final, NamedTuple

from ttsframe.errors import SourceError
from ttsframe.readers.engine.sniff import DataFile, open_binary

MOST_BYTES: Final = 1 << 28
"""Of a member, decompressed."""
_ZSTD: Final = 93
_LOCAL_HEADER: Final = struct.Struct("<4s22sHH")
_GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP_END: Final = struct.Struct("<II")
_BATCH_BYTES: Final = 1 << 20
"""Of members that are decompressed at once."""
_EXTRA: Final = 64
"""Bytes read for the extra fields of a member, which are seldom longer."""


class BadMemberError(Exception):
    """The reason why a member cannot be read; the caller knows its name."""


class Archive(NamedTuple):
    """An open archive; of members with one name the last counts."""

    stream: BinaryIO
    members: dict[str, zipfile.ZipInfo]

    def read(self, name: str) -> bytes:
        """Return the bytes of a member."""
        info = self.members[name]
        if info.file_size > MOST_BYTES:
            raise BadMemberError(
                f"claims {info.file_size:,} bytes, at most {MOST_BYTES:,} are read"
            )
        if info.flag_bits & 1:
            raise BadMemberError("is encrypted")
        data = _decompress(self._packed(info), info)
        if len(data) != info.file_size:
            raise BadMemberError(f"claims {info.file_size:,} bytes, holds {len(data):,}")
        if zlib.crc32(data) != info.CRC:
            raise BadMemberError("is damaged (its checksum is wrong)")
        return data

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | BadMemberError]]:
        """Yield the bytes of members in order, or why they cannot be read."""
        for batch in map(self._unpack, self._batches(names)):
            for name, data in batch:
                yield name, self._read_or_reason(name) if data is None else data

    def _batches(self, names: Iterable[str]) -> Iterator[list[tuple[str, bytes]]]:
        """Yield the compressed bytes of members, several of one method together; none for those that are odd."""
        batch: list[tuple[str, bytes]] = []
        size, method = 0, None
        for name in names:
            info = self.members[name]
            is_full = size + info.file_size > _BATCH_BYTES or info.compress_type != method
            if batch and is_full:
                yield batch
                batch, size = [], 0
            is_odd = info.file_size > MOST_BYTES or info.flag_bits & 1
            try:
                batch.append((name, b"" if is_odd else self._packed(info)))
            except BadMemberError:
                batch.append((name, b""))
            size, method = size + info.file_size, info.compress_type
        if batch:
            yield batch

    def _unpack(self, batch: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes | None]]:
        """Decompress a batch in one call; None where that fails."""
        infos = [self.members[name] for name, _ in batch]
        packed = [data for _, data in batch]
        joined = _decompress_joined(packed, infos)
        ends = accumulate(info.file_size for info in infos)
        pieces = [joined[end - info.file_size : end] for info, end in zip(infos, ends, strict=True)]
        return [
            (name, piece if _is_whole(piece, info) else None)
            for (name, _), piece, info in zip(batch, pieces, infos, strict=True)
        ]

    def _read_or_reason(self, name: str) -> bytes | BadMemberError:
        try:
            return self.read(name)
        except BadMemberError as reason:
            return reason

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        self.stream.seek(info.header_offset)
        n_before = _LOCAL_HEADER.size + len(info.filename.encode()) + _EXTRA
        data = self.stream.read(n_before + info.compress_size)
        if not data.startswith(b"PK\x03\x04") or len(data) < _LOCAL_HEADER.size:
            raise BadMemberError("is not where the archive says")
        _, _, n_name, n_extra = _LOCAL_HEADER.unpack_from(data)
        start = _LOCAL_HEADER.size + n_name + n_extra
        end = start + info.compress_size
        if end > len(data):
            data += self.stream.read(end - len(data))
        if end > len(data):
            raise BadMemberError("is cut off")
        return data[start:end]


def _decompress(packed: bytes, info: zipfile.ZipInfo) -> bytes:
    """Decompress as many bytes as a member claims; more are a fault."""
    method = info.compress_type
    if method == zipfile.ZIP_STORED:
        return packed
    if method == zipfile.ZIP_DEFLATED:
        # Without this check, a limit of 0 would mean none.
        worker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = worker.decompress(packed, info.file_size + 1)
        except zlib.error as error:
            raise BadMemberError(f"is damaged ({error})") from error
        if len(data) > info.file_size:
            raise BadMemberError(f"claims {info.file_size:,} bytes, holds more")
        return data
    if method != _ZSTD:
        raise BadMemberError(f"is compressed by method {method}; deflate and zstd are read")
    try:
        return bytes(_zstd().decompress(packed, info.file_size, asbytes=True))
    except (OSError, ValueError) as error:
        raise BadMemberError(
            f"is damaged, or holds more than the {info.file_size:,} bytes that it claims ({error})"
        ) from error


def _decompress_joined(packed: Sequence[bytes], infos: Sequence[zipfile.ZipInfo]) -> bytes:
    """Decompress members of one method as one stream; what is wrong with it is found member by member."""
    method = infos[0].compress_type
    if method == zipfile.ZIP_STORED:
        return b"".join(packed)
    n_bytes = sum(info.file_size for info in infos)
    if method == zipfile.ZIP_DEFLATED:
        packed = [_as_gzip(data, info) for data, info in zip(packed, infos, strict=True)]
    elif method != _ZSTD:
        return b""
    import pyarrow as pa  # slow to import, and only needed here

    codec = "gzip" if method == zipfile.ZIP_DEFLATED else "zstd"
    try:
        with pa.input_stream(pa.py_buffer(b"".join(packed)), compression=codec) as stream:
            return bytes(stream.read(n_bytes))
    except OSError:
        return b""


def _is_whole(data: bytes, info: zipfile.ZipInfo) -> bool:
    """Return whether a member has its size and checksum, which gzip has compared."""
    is_compared = info.compress_type == zipfile.ZIP_DEFLATED
    return len(data) == info.file_size and (is_compared or zlib.crc32(data) == info.CRC)


def _as_gzip(packed: bytes, info: zipfile.ZipInfo) -> bytes:
    """Frame deflated bytes as a file of gzip, of which several in a row are one stream."""
    return _GZIP_HEADER + packed + _GZIP_END.pack(info.CRC, info.file_size)


@lru_cache(maxsize=1)
def _zstd() -> Any:  # noqa: ANN401 - a codec of pyarrow, which has no types
    import pyarrow as pa  # slow to import, and only needed here

    return pa.Codec("zstd")


@contextmanager
def open_archive(file: DataFile) -> Iterator[Archive]:
    """Open a zip archive and list its members."""
    with open_binary(file) as stream:
        if file.held is None and file.compression is None:
            status = file.path.stat()
            same = file._replace(unpack=None, rows=None)
            members = _members_of(same, status.st_mtime_ns, status.st_size)
        else:
            members = _list_members(file, stream)
        yield Archive(stream, members)


@lru_cache(maxsize=8)
def _members_of(file: DataFile, _modified: int, _size: int) -> dict[str, zipfile.ZipInfo]:
    """List the members of a file, which is recognized, described and read one after the other."""
    with open_binary(file) as stream:
        return _list_members(file, stream)


def _list_members(file: DataFile, stream: BinaryIO) -> dict[str, zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, RuntimeError, ValueError, struct.error) as error:
        raise SourceError(
            f"{file.name}: cannot be read as a zip archive ({error}). Hint: it may be cut off, or "
            "still being written; its list of members comes last."
        ) from error
    n_packed = sum(info.compress_size for info in infos)
    if n_packed > stream.seek(0, 2):
        raise SourceError(
            f"{file.name}: its members claim {n_packed:,} compressed bytes, more than the file has, so "
            "they overlap. Hint: an archive made like this is an attack; do not open it."
        )
    return {info.filename: info for info in infos}
