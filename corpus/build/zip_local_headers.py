# SPDX-License-Identifier: Apache-2.0
"""Archives whose local headers or descriptors are missing, damaged, or say other things than the directory."""

from __future__ import annotations

import struct

from corpus.build.kit import Member, field_span, insert, patch, recipe, set_field
from corpus.build.zip_base import PICKLE, STORAGE, base, broken_record
from fdd.container.zip.structs import FLAG_ENCRYPTED, METHOD_DEFLATED

LOCAL = "local header"
ENTRY = "directory entry"
DESCRIPTOR = "data descriptor"


@recipe("zip/local-header-missing.pt")
def local_header_missing() -> bytes:
    """The local header of the storage is overwritten with zeros."""
    return patch(base(), field_span(base(), LOCAL, "signature", STORAGE).offset, bytes(44))


@recipe("zip/local-header-signature.pt")
def local_header_signature() -> bytes:
    """The signature of one local header has a wrong byte."""
    return set_field(base(), LOCAL, "signature", b"PK\x03\x05", STORAGE)


@recipe("zip/local-header-elsewhere.pt")
def local_header_elsewhere() -> bytes:
    """The directory gives an offset 4 bytes too low."""
    offset = field_span(base(), LOCAL, "signature", STORAGE).offset
    return set_field(base(), ENTRY, "header offset", offset - 4, STORAGE)


@recipe("zip/local-header-outside.pt")
def local_header_outside() -> bytes:
    """The directory gives an offset behind the end of the file."""
    return set_field(base(), ENTRY, "header offset", 0x7FFFFFF0, STORAGE)


@recipe("zip/local-headers-shifted.pt")
def local_headers_shifted() -> bytes:
    """A block of 32 bytes is repeated inside the pickle: all that follows stands 32 bytes later than it should."""
    return insert(base(), 96, base()[64:96])


@recipe("zip/local-header-lengths.pt")
def local_header_lengths() -> bytes:
    """A local header states a name 4 bytes longer than it is."""
    return set_field(base(), LOCAL, "name length", len(STORAGE) + 4, STORAGE)


@recipe("zip/names-differ-local.pt")
def names_differ_local() -> bytes:
    """The local header calls data.pkl data.txt."""

    def change(member: Member) -> None:
        assert member.local is not None
        member.local.name = b"archive/data.txt"

    return broken_record(change, b"data.pkl")


@recipe("zip/names-differ-directory.pt")
def names_differ_directory() -> bytes:
    """The directory calls the storage data/p: one flipped bit."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.name = b"archive/data/p"

    return broken_record(change)


@recipe("zip/methods-differ.pt")
def methods_differ() -> bytes:
    """The directory says deflated, the local header stored."""
    return set_field(base(), ENTRY, "method", METHOD_DEFLATED, STORAGE)


@recipe("zip/flags-differ.pt")
def flags_differ() -> bytes:
    """The pickle is marked as encrypted in the local header only."""

    def change(member: Member) -> None:
        assert member.local is not None
        member.local.flags |= FLAG_ENCRYPTED

    return broken_record(change, b"data.pkl")


@recipe("zip/version-or-time-differ.pt")
def version_or_time_differ() -> bytes:
    """One local header has a date, the directory none."""
    return set_field(base(), LOCAL, "date", 0x21, STORAGE)


@recipe("zip/local-sizes-differ.pt")
def local_sizes_differ() -> bytes:
    """A checksum in a local header that should leave it to the descriptor, and a wrong one."""
    return set_field(base(), LOCAL, "crc-32", 0x12345678, STORAGE)


@recipe("zip/local-sizes-differ-directory.pt")
def local_sizes_differ_directory() -> bytes:
    """Without descriptor, the directory has a wrong uncompressed size: local header and payload tell the right one."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.drop_descriptor()
        member.central.uncompressed_size += 1

    return broken_record(change)


@recipe("zip/descriptor-checksum.pt")
def descriptor_checksum() -> bytes:
    """The descriptor has a wrong checksum, the directory the right one."""
    return set_field(base(), DESCRIPTOR, "crc-32", 0x12345678, STORAGE)


@recipe("zip/descriptor-signature.pt")
def descriptor_signature() -> bytes:
    """The signature of a descriptor is damaged."""
    return set_field(base(), DESCRIPTOR, "signature", b"PK\x07\x0a", STORAGE)


@recipe("zip/descriptor-missing.pt")
def descriptor_missing() -> bytes:
    """Bit 3 announces a descriptor, and none is there."""

    def change(member: Member) -> None:
        member.descriptor = b""

    return broken_record(change)


@recipe("zip/descriptor-unannounced.pt")
def descriptor_unannounced() -> bytes:
    """A descriptor is there, and no header announces it."""

    def change(member: Member) -> None:
        descriptor = member.descriptor
        member.drop_descriptor()
        member.descriptor = descriptor

    return broken_record(change)


@recipe("zip/descriptor-too-wide.pt")
def descriptor_too_wide() -> bytes:
    """A descriptor with sizes of 8 bytes behind a header without ZIP64 field."""

    def change(member: Member) -> None:
        signature, crc, compressed, uncompressed = struct.unpack("<4sIII", member.descriptor)
        member.descriptor = struct.pack("<4sIQQ", signature, crc, compressed, uncompressed)

    return broken_record(change)


@recipe("zip/directory-checksum.pt")
def directory_checksum() -> bytes:
    """The directory has a wrong checksum of the pickle; descriptor and payload agree."""
    return set_field(base(), ENTRY, "crc-32", 0x12345678, PICKLE)


@recipe("zip/directory-record-size.pt")
def directory_record_size() -> bytes:
    """The directory makes the storage 4 bytes longer than it is."""
    data = set_field(base(), ENTRY, "compressed size", 20, STORAGE)
    return set_field(data, ENTRY, "uncompressed size", 20, STORAGE)


@recipe("zip/stored-sizes-differ.pt")
def stored_sizes_differ() -> bytes:
    """A stored record whose two sizes differ, in all places alike."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.uncompressed_size = 8
        member.descriptor = member.descriptor[:12] + struct.pack("<I", 8)

    return broken_record(change)
