# SPDX-License-Identifier: Apache-2.0
"""Archives whose end, or what lies around them, is wrong."""

from __future__ import annotations

from corpus.build.kit import Archive, cut, patch, recipe, set_field
from corpus.build.zip_base import base, broken
from fdd.container.zip.structs import END_RECORD, END_SIGNATURE


@recipe("zip/first-header-missing.pt")
def first_header_missing() -> bytes:
    """The first four bytes are overwritten: torch does not take the file for an archive, ZIP tools do."""
    return patch(base(), 0, b"\0\0\0\0")


@recipe("zip/end-record-missing.pt")
def end_record_missing() -> bytes:
    """Cut in front of the end record."""
    return cut(base(), -END_RECORD.size)


@recipe("zip/end-record-signature.pt")
def end_record_signature() -> bytes:
    """The signature of the end record has a wrong byte."""
    return set_field(base(), "end record", "signature", b"PK\x05\x07")


@recipe("zip/end-record-cut.pt")
def end_record_cut() -> bytes:
    """The last byte is missing."""
    return cut(base(), -1)


@recipe("zip/directory-cut.pt")
def directory_cut() -> bytes:
    """Cut in the middle of the directory."""
    return cut(base(), -300)


@recipe("zip/directory-lost.pt")
def directory_lost() -> bytes:
    """Cut in front of the directory: the records are found by a walk from the front."""
    return cut(base(), base().index(b"PK\x01\x02"))


@recipe("zip/payload-cut.pt")
def payload_cut() -> bytes:
    """Cut inside the pickle."""
    return cut(base(), 100)


@recipe("zip/bytes-after-archive.pt")
def bytes_after_archive() -> bytes:
    """A hundred bytes that mean nothing follow."""
    return base() + b"\xaa" * 100


@recipe("zip/bytes-before-archive.pt")
def bytes_before_archive() -> bytes:
    """A line of text stands in front; no offset counts it."""

    def change(parts: Archive) -> None:
        parts.prefix = b"#!/usr/bin/env python3\n"

    return broken(change)


@recipe("zip/zip64-end-missing.pt")
def zip64_end_missing() -> bytes:
    """Neither ZIP64 end record nor locator, as after other tools."""

    def change(parts: Archive) -> None:
        parts.with_zip64 = False

    return broken(change)


@recipe("zip/zip64-locator-signature.pt")
def zip64_locator_signature() -> bytes:
    """The signature of the locator is damaged: readers fall back to the short end record."""
    return set_field(base(), "ZIP64 end locator", "signature", b"PK\x06\x06")


@recipe("zip/zip64-locator-elsewhere.pt")
def zip64_locator_elsewhere() -> bytes:
    """The locator names a place 4 bytes behind the record."""
    return broken(lambda parts: parts.locator.update({"end record offset": base().index(b"PK\x06\x06") + 4}))


@recipe("zip/zip64-end-signature.pt")
def zip64_end_signature() -> bytes:
    """The signature of the ZIP64 end record is damaged."""
    return set_field(base(), "ZIP64 end record", "signature", b"PK\x06\x05")


@recipe("zip/zip64-end-size-wrong.pt")
def zip64_end_size_wrong() -> bytes:
    """The ZIP64 end record states a size that does not end at its locator."""
    return broken(lambda parts: parts.zip64_end.update({"record size": 1 << 40}))


@recipe("zip/end-records-differ.pt")
def end_records_differ() -> bytes:
    """The short end record counts 99 entries, the long one 7."""
    return broken(lambda parts: parts.end.update({"entries": 99, "entries on disk": 99}))


@recipe("zip/several-disks.pt")
def several_disks() -> bytes:
    """The end record claims to be on the third disk."""
    return broken(lambda parts: parts.end.update({"disk number": 2}))


@recipe("zip/archive-comment.pt")
def archive_comment() -> bytes:
    """A comment: torch writes none."""

    def change(parts: Archive) -> None:
        parts.comment = b"hello, archive"

    return broken(change)


@recipe("zip/archive-comment-cut.pt")
def archive_comment_cut() -> bytes:
    """A comment of 500 bytes is announced, and none is there."""
    return set_field(base(), "end record", "comment length", 500)


@recipe("zip/second-end-record.pt")
def second_end_record() -> bytes:
    """The comment holds another end record: which one counts depends on the reader."""

    def change(parts: Archive) -> None:
        parts.comment = END_SIGNATURE + bytes(END_RECORD.size - 4) + b".."

    return broken(change)
