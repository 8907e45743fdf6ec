# SPDX-License-Identifier: Apache-2.0
"""Archives whose structures overlap, leave gaps, or stand at other places than torch puts them."""

from __future__ import annotations

from corpus.build.kit import (
    Archive,
    archive,
    eager,
    eager_records,
    field_span,
    recipe,
    set_field,
    take_apart,
    tensor,
    with_serialization_id,
)
from corpus.build.zip_base import STORAGE, base, broken

VERSION = b"archive/version"


@recipe("zip/records-overlap.pt")
def records_overlap() -> bytes:
    """The entry of version points at the storage."""
    return set_field(base(), "directory entry", "header offset", _start(base(), STORAGE), VERSION)


@recipe("zip/records-overlap-quoted.pt")
def records_overlap_quoted() -> bytes:
    """The storage is made so long that it takes in the record behind it, headers and all."""
    data = base()
    length = _start(data, VERSION) - _start(data, STORAGE)
    for name in ("compressed size", "uncompressed size"):
        data = set_field(data, "directory entry", name, length, STORAGE)
    return data


def _start(data: bytes, record: bytes) -> int:
    return field_span(data, "local header", "signature", record).offset


@recipe("zip/bytes-without-owner.pt")
def bytes_without_owner() -> bytes:
    """128 foreign bytes between two records; all offsets are right."""

    def change(parts: Archive) -> None:
        parts.member(b"/version").gap = b"nothing to see here. " * 6 + b".."

    return broken(change)


@recipe("zip/bytes-before-directory.pt")
def bytes_before_directory() -> bytes:
    """64 foreign bytes between the last record and the directory."""

    def change(parts: Archive) -> None:
        parts.before_directory = b"\xaa" * 64

    return broken(change)


@recipe("zip/record-not-listed.pt")
def record_not_listed() -> bytes:
    """A record with its local header that the directory does not know."""

    def change(parts: Archive) -> None:
        hidden = parts.member(b"/byteorder").copy()
        hidden.rename(b"archive/hidden")
        hidden.central = None
        parts.members.insert(5, hidden)

    return broken(change)


@recipe("zip/storage-unaligned.pt")
def storage_unaligned() -> bytes:
    """An archive of torch 2.0 whose storages begin at multiples of 4 only."""
    return archive(eager_records(tensor([0.5, -1.0]), era="1.9"), alignment=4)


@recipe("zip/storage-unaligned-against-record.pt")
def storage_unaligned_against_record() -> bytes:
    """.storage_alignment says 64, the storages begin at multiples of 4."""
    return archive(with_serialization_id(eager_records(tensor([0.5, -1.0]))), alignment=4)


@recipe("zip/no-room-for-record.pt")
def no_room_for_record() -> bytes:
    """The directory makes the storage longer than the room in front of the next record: seen without local headers."""
    data = base()
    for name in ("compressed size", "uncompressed size"):
        data = set_field(data, "directory entry", name, 1000, STORAGE)
    return data


@recipe("zip/too-much-room.pt")
def too_much_room() -> bytes:
    """An archive of torch 2.0 with 300 foreign bytes behind the storage: seen without local headers."""
    parts = take_apart(eager(tensor([0.5, -1.0]), era="1.9"))
    parts.member(b"/version").gap = b"\xaa" * 300
    return parts.build()
