"""Members of a zip archive, stored, deflated or compressed by zstd; nothing is ever written to disk.

`zipfile` knows zstd (method 93) only since Python 3.14, so such members are read by pyarrow from the raw
bytes. What a member holds is bounded, whatever it claims.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, Final, NamedTuple

from ttsframe.errors import SourceError
from ttsframe.readers.engine.sniff import DataFile, open_binary

MOST_BYTES: Final = 1 << 28
"""Of a member, decompressed."""
_ZSTD: Final = 93
_LOCAL_HEADER: Final = struct.Struct("<4s22sHH")


class BadMemberError(Exception):
    """The reason why a member cannot be read; the caller knows its name."""


class Archive(NamedTuple):
    """An open archive; of members with one name the last counts."""

    zip: zipfile.ZipFile
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
        try:
            if info.compress_type == _ZSTD:
                return self._read_zstd(info)
            with self.zip.open(info) as member:
                return _bounded(member, info)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
            raise BadMemberError(f"is damaged ({error})") from error

    def _read_zstd(self, info: zipfile.ZipInfo) -> bytes:
        import pyarrow as pa  # slow to import, and only needed here

        self.stream.seek(info.header_offset)
        header = self.stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size:
            raise BadMemberError("is cut off")
        signature, _, n_name, n_extra = _LOCAL_HEADER.unpack(header)
        if signature != b"PK\x03\x04":
            raise BadMemberError("is not where the archive says")
        self.stream.seek(n_name + n_extra, 1)
        packed = self.stream.read(info.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as member:
            data = _bounded(member, info)
        if zlib.crc32(data) != info.CRC:
            raise BadMemberError("is damaged (its checksum is wrong)")
        return data


def _bounded(member: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """Read as many bytes as a member claims; more or fewer are a fault."""
    pieces, n_bytes = [], 0
    while n_bytes <= info.file_size and (piece := member.read(info.file_size + 1 - n_bytes)):
        pieces.append(piece)
        n_bytes += len(piece)
    if n_bytes != info.file_size:
        found = "more" if n_bytes > info.file_size else f"{n_bytes:,}"
        raise BadMemberError(f"claims {info.file_size:,} bytes, holds {found}")
    return b"".join(pieces)


@contextmanager
def open_archive(file: DataFile) -> Iterator[Archive]:
    """Open a zip archive and list its members."""
    with open_binary(file) as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise SourceError(
                f"{file.name}: cannot be read as a zip archive ({error}). Hint: it may be cut off, or "
                "still being written; its list of members comes last."
            ) from error
        with archive:
            infos = archive.infolist()
            n_packed = sum(info.compress_size for info in infos)
            if n_packed > stream.seek(0, 2):
                raise SourceError(
                    f"{file.name}: its members claim {n_packed:,} compressed bytes, more than the file has, so "
                    "they overlap. Hint: an archive made like this is an attack; do not open it."
                )
            yield Archive(archive, stream, {info.filename: info for info in infos})
