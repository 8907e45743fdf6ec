# SPDX-License-Identifier: Apache-2.0
"""Archives whose payloads are encrypted, compressed, damaged, or without checksum."""

from __future__ import annotations

import struct
import zlib

from corpus.build.kit import (
    Member,
    archive,
    eager,
    eager_records,
    field_span,
    flip_bit,
    patch,
    recipe,
    set_field,
    tensor,
    with_serialization_id,
)
from corpus.build.zip_base import STORAGE, base, broken_record
from fdd.container.zip.structs import (
    FLAG_ENCRYPTED,
    FLAG_MASKED,
    FLAG_PATCHED,
    FLAG_STRONG_ENCRYPTION,
    METHOD_DEFLATED,
)

METHOD_LZMA = 14
FLAG_MAXIMUM = 1 << 1
"""An option of the compressor (APPNOTE 4.4.4)."""
BOMB_SIZE = 1 << 30


def _with_flags(flags: int) -> bytes:
    def change(member: Member) -> None:
        for copy in (member.local, member.central):
            assert copy is not None
            copy.flags |= flags

    return broken_record(change, b"data.pkl")


@recipe("zip/record-encrypted.pt")
def record_encrypted() -> bytes:
    """The pickle is marked as encrypted in both headers."""
    return _with_flags(FLAG_ENCRYPTED)


@recipe("zip/record-patched.pt")
def record_patched() -> bytes:
    """The pickle is marked as patch data in both headers."""
    return _with_flags(FLAG_PATCHED)


@recipe("zip/record-strongly-encrypted.pt")
def record_strongly_encrypted() -> bytes:
    """The pickle is marked as strongly encrypted and masked in both headers."""
    return _with_flags(FLAG_STRONG_ENCRYPTION | FLAG_MASKED)


@recipe("zip/flags-unusual.pt")
def flags_unusual() -> bytes:
    """A flag that has a meaning for deflated records only."""
    return _with_flags(FLAG_MAXIMUM)


@recipe("zip/method-unknown.pt")
def method_unknown() -> bytes:
    """The storage claims to be LZMA data, in both headers."""

    def change(member: Member) -> None:
        for copy in (member.local, member.central):
            assert copy is not None
            copy.method = METHOD_LZMA

    return broken_record(change)


def _numbers() -> list[tuple[str, bytes]]:
    return eager_records(tensor([1.0] * 64))


def _deflated() -> bytes:
    return archive(with_serialization_id(_numbers()), deflate=["data/0"])


@recipe("zip/record-deflated.pt")
def record_deflated() -> bytes:
    """A storage is deflated: good ZIP, but not this format."""
    return _deflated()


def _payload_start(data: bytes) -> int:
    header = field_span(data, "local header", "signature", STORAGE).offset
    lengths = struct.unpack_from("<HH", data, header + 26)
    return header + 30 + int(sum(lengths))


@recipe("zip/deflate-damaged.pt")
def deflate_damaged() -> bytes:
    """The deflate stream begins with a block type that does not exist."""
    data = _deflated()
    return patch(data, _payload_start(data), b"\x07")


@recipe("zip/deflate-size-wrong.pt")
def deflate_size_wrong() -> bytes:
    """Directory and descriptor announce 8 bytes more than come out."""
    data = set_field(_deflated(), "directory entry", "uncompressed size", 264, STORAGE)
    return set_field(data, "data descriptor", "uncompressed size", 264, STORAGE)


@recipe("zip/deflate-bomb.pt")
def deflate_bomb() -> bytes:
    """A few bytes announce a gigabyte."""

    def change(member: Member) -> None:
        assert member.local is not None and member.central is not None
        compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        member.payload = compressor.compress(member.payload) + compressor.flush()
        for copy in (member.local, member.central):
            copy.method, copy.version_needed = METHOD_DEFLATED, 20
        member.central.compressed_size, member.central.uncompressed_size = len(member.payload), BOMB_SIZE
        member.descriptor = member.descriptor[:8] + struct.pack("<II", len(member.payload), BOMB_SIZE)

    return broken_record(change)


@recipe("zip/payload-checksum-wrong.pt")
def payload_checksum_wrong() -> bytes:
    """One bit of a number is turned round; torch loads it without a word."""
    return flip_bit(base(), _payload_start(base()) + 2, 6)


@recipe("zip/checksum-missing-once.pt")
def checksum_missing_once() -> bytes:
    """The pickle has checksum 0 while all other records have theirs."""
    records = with_serialization_id(eager_records(tensor([0.5, -1.0])), crc_off_names=["data.pkl"])
    return archive(records, crc_off_names=["data.pkl"])


@recipe("zip/checksums-not-recorded.pt")
def checksums_not_recorded() -> bytes:
    """Written with set_crc32_options(False)."""
    return eager(tensor([0.5, -1.0]), crc_off=True)


def _skipped(values: list[float]) -> bytes:
    records = with_serialization_id(eager_records(tensor(values)), crc_off_names=["data/0"])
    return archive(records, crc_off_names=["data/0"])


@recipe("zip/storages-without-checksum.pt")
def storages_without_checksum() -> bytes:
    """Written inside skip_data() and filled in later."""
    return _skipped([0.5, -1.0])


@recipe("zip/storages-never-written.pt")
def storages_never_written() -> bytes:
    """Written inside skip_data(), and never filled."""
    return _skipped([0.0, 0.0])
