# SPDX-License-Identifier: Apache-2.0
"""Archives with extra fields that are broken, unknown, or contradict the header."""

from __future__ import annotations

import struct
import zlib

from corpus.build.kit import Member, extra_field, padding_field, patch, recipe
from corpus.build.zip_base import STORAGE, base, broken_record
from fdd.container.zip.structs import EXTRA_UNICODE_PATH, EXTRA_ZIP64

INFO_ZIP_TIME = 0x5455


def _set_local_extra(member: Member, extra: bytes) -> None:
    """Put extra fields into a local header in front of a padding field that keeps the payload aligned."""
    assert member.local is not None
    member.local.extra = extra + padding_field(_padding_length() - len(extra))


def _padding_length() -> int:
    """Bytes of padding that the storage has."""
    at = base().index(STORAGE) + len(STORAGE)
    return int.from_bytes(base()[at + 2 : at + 4], "little")


@recipe("zip/extra-field-broken.pt")
def extra_field_broken() -> bytes:
    """The padding field claims 2000 bytes."""
    at = base().index(STORAGE) + len(STORAGE)
    return patch(base(), at + 2, struct.pack("<H", 2000))


@recipe("zip/extra-field-too-short.pt")
def extra_field_too_short() -> bytes:
    """The padding field is 3 bytes shorter than its area."""
    at = base().index(STORAGE) + len(STORAGE)
    return patch(base(), at + 2, struct.pack("<H", _padding_length() - 3))


@recipe("zip/padding-not-filler.pt")
def padding_not_filler() -> bytes:
    """A text hides in the padding."""
    at = base().index(STORAGE) + len(STORAGE)
    return patch(base(), at + 8, b"a hidden message")


@recipe("zip/extra-field-unknown.pt")
def extra_field_unknown() -> bytes:
    """A time stamp of Info-ZIP stands in front of the padding."""
    return broken_record(lambda member: _set_local_extra(member, extra_field(INFO_ZIP_TIME, b"\x01" + bytes(4))))


@recipe("zip/zip64-field-uncalled.pt")
def zip64_field_uncalled() -> bytes:
    """A ZIP64 field gives other sizes than the header, which does not refer to it."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.extra = extra_field(EXTRA_ZIP64, struct.pack("<QQ", 99999, 99999))

    return broken_record(change, b"data.pkl")


@recipe("zip/zip64-field-cut.pt")
def zip64_field_cut() -> bytes:
    """The header refers both sizes to a ZIP64 field that holds one of them."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.extra = extra_field(EXTRA_ZIP64, struct.pack("<Q", len(member.payload)))
        member.central.compressed_size = member.central.uncompressed_size = 0xFFFFFFFF

    return broken_record(change)


@recipe("zip/zip64-field-local.pt")
def zip64_field_local() -> bytes:
    """A local header has a ZIP64 field in torch's form, for a record that needs none."""

    def change(member: Member) -> None:
        _set_local_extra(member, extra_field(EXTRA_ZIP64, struct.pack("<QQ", len(member.payload), 0)))
        signature, crc, compressed, uncompressed = struct.unpack("<4sIII", member.descriptor)
        member.descriptor = struct.pack("<4sIQQ", signature, crc, compressed, uncompressed)

    return broken_record(change)


def _unicode_path(name: bytes, crc_of: bytes) -> bytes:
    return extra_field(EXTRA_UNICODE_PATH, b"\x01" + struct.pack("<I", zlib.crc32(crc_of)) + name)


@recipe("zip/unicode-path-contradicts.pt")
def unicode_path_contradicts() -> bytes:
    """A Unicode path field gives the pickle another name."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.extra = _unicode_path(b"archive/other.pkl", member.central.name)

    return broken_record(change, b"data.pkl")


@recipe("zip/unicode-path-pass.pt")
def unicode_path_pass() -> bytes:
    """A Unicode path field that repeats the name: only unknown to the format."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.extra = _unicode_path(member.central.name, member.central.name)

    return broken_record(change, b"data.pkl")
