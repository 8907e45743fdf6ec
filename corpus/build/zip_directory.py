# SPDX-License-Identifier: Apache-2.0
"""Archives whose central directory is wrong, or holds what torch does not write there."""

from __future__ import annotations

import stat
import struct

from corpus.build.kit import Archive, Member, insert, recipe, rezip, set_field, take_apart
from corpus.build.zip_base import PICKLE, STORAGE, base, broken, broken_record
from fdd.container.zip.structs import DIGITAL_SIGNATURE, ZIP64_END_SIGNATURE

BOTH = ("ZIP64 end record", "end record")


@recipe("zip/directory-count-wrong.pt")
def directory_count_wrong() -> bytes:
    """Both end records count one entry more than there are."""
    count = {"entries": 8, "entries on disk": 8}

    def change(parts: Archive) -> None:
        parts.end.update(count)
        parts.zip64_end.update(count)

    return broken(change)


@recipe("zip/directory-size-wrong.pt")
def directory_size_wrong() -> bytes:
    """Both end records state a directory that is 20 bytes short."""
    good = take_apart(base()).build()
    size = good.index(ZIP64_END_SIGNATURE) - good.index(b"PK\x01\x02") - 20
    data = good
    for structure in BOTH:
        data = set_field(data, structure, "directory size", size)
    return data


@recipe("zip/directory-entry-signature.pt")
def directory_entry_signature() -> bytes:
    """One entry has a damaged signature: readers stop there."""
    return set_field(base(), "directory entry", "signature", b"PK\x01\x03", STORAGE)


@recipe("zip/directory-entry-lengths.pt")
def directory_entry_lengths() -> bytes:
    """One entry states a comment of 64 bytes that is not there, and so swallows a part of the next one."""
    return set_field(base(), "directory entry", "comment length", 64, STORAGE)


@recipe("zip/directory-offset-wrong.pt")
def directory_offset_wrong() -> bytes:
    """Both end records name a place where no directory is."""
    data = base()
    for structure in BOTH:
        data = set_field(data, structure, "directory offset", 100)
    return data


@recipe("zip/directory-order.pt")
def directory_order() -> bytes:
    """The entries of the first two records are exchanged."""

    def change(parts: Archive) -> None:
        first, second, *rest = parts.members
        parts.directory = [second, first, *rest]

    return broken(change)


@recipe("zip/directory-other-structure.pt")
def directory_other_structure() -> bytes:
    """A digital signature stands behind the last entry; all sizes count it."""
    good = base()
    signature = DIGITAL_SIGNATURE + struct.pack("<H", 20) + b"not checked by anyon"
    end = good.index(ZIP64_END_SIGNATURE)
    size = end - good.index(b"PK\x01\x02") + len(signature)
    data = good
    for structure in BOTH:
        data = set_field(data, structure, "directory size", size)
    data = set_field(data, "ZIP64 end locator", "end record offset", end + len(signature))
    return insert(data, end, signature)


@recipe("zip/entry-comment.pt")
def entry_comment() -> bytes:
    """An entry has a comment."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.comment = b"look here"

    return broken_record(change)


@recipe("zip/special-file.pt")
def special_file() -> bytes:
    """An entry is marked as a symbolic link, by a Unix host."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.version_made_by = 3 << 8
        member.central.external_attributes = (stat.S_IFLNK | 0o777) << 16

    return broken_record(change)


@recipe("zip/packed-again.pt")
def packed_again() -> bytes:
    """All records copied by Python's zipfile: dates, no padding, no ZIP64 records."""
    return rezip(base())


@recipe("zip/entry-maker.pt")
def entry_maker() -> bytes:
    """One entry of torch's own archive names another maker: only the rebuild shows it."""
    return set_field(base(), "directory entry", "version made by", 0x0300, PICKLE)


@recipe("zip/directory-disk-count-wrong.pt")
def directory_disk_count_wrong() -> bytes:
    """Both end records count the entries right in all, and one too few on this disk."""

    def change(parts: Archive) -> None:
        for record in (parts.end, parts.zip64_end):
            record["entries on disk"] = 6

    return broken(change)


@recipe("zip/zip64-end-extensible.pt")
def zip64_end_extensible() -> bytes:
    """The ZIP64 end record has an extensible data sector, which its size counts."""
    data = set_field(base(), "ZIP64 end record", "record size", 44 + 16)
    return insert(data, data.index(b"PK\x06\x07"), b"not of this form")
