# SPDX-License-Identifier: Apache-2.0
"""Archives with names that are double, ambiguous, unsafe or too long."""

from __future__ import annotations

from corpus.build.kit import Archive, Member, archive, eager_records, recipe, tensor, with_serialization_id
from corpus.build.zip_base import broken, broken_record, with_record
from fdd.container.zip.structs import FLAG_UTF8


@recipe("zip/names-twice.pt")
def names_twice() -> bytes:
    """Two records data/0 with other numbers."""
    return with_record("data/0", bytes(16))


@recipe("zip/names-equal-but-for-case.pt")
def names_equal_but_for_case() -> bytes:
    """DATA/0 beside data/0: torch takes the one for the other."""
    return with_record("DATA/0", bytes(16))


@recipe("zip/name-leaves-folder.pt")
def name_leaves_folder() -> bytes:
    """A record that would be unpacked two folders higher."""
    return with_record("../../inert", b"nothing")


@recipe("zip/name-absolute.pt")
def name_absolute() -> bytes:
    """A record with an absolute path."""

    def change(parts: Archive) -> None:
        parts.member(b"byteorder").rename(b"/inert")

    return broken(change)


@recipe("zip/name-backslash.pt")
def name_backslash() -> bytes:
    """A name with a drive letter, backslashes and a control character."""

    def change(parts: Archive) -> None:
        parts.member(b"byteorder").rename(b"C:\\inert\x1b")

    return broken(change)


@recipe("zip/name-not-utf8.pt")
def name_not_utf8() -> bytes:
    """A name in GBK, marked as UTF-8."""
    return broken_record(lambda member: member.rename("archive/模型".encode("gbk")), b"byteorder")


@recipe("zip/name-without-utf8-flag.pt")
def name_without_utf8_flag() -> bytes:
    """A name in UTF-8 that is not marked as such."""

    def change(member: Member) -> None:
        member.rename("archive/modèle".encode())
        for copy in (member.local, member.central):
            assert copy is not None
            copy.flags &= ~FLAG_UTF8

    return broken_record(change, b"byteorder")


@recipe("zip/directory-record.pt")
def directory_record() -> bytes:
    """A record for the folder, as Info-ZIP writes it."""
    records = eager_records(tensor([0.5, -1.0]))
    return archive(with_serialization_id([("", b""), *records]))


@recipe("zip/name-holds-nul.pt")
def name_holds_nul() -> bytes:
    """A name that ends for C programs in front of .txt."""
    return broken_record(lambda member: member.rename(b"archive/byteorder\0.txt"), b"byteorder")


@recipe("zip/name-empty.pt")
def name_empty() -> bytes:
    """A record without a name."""
    return broken_record(lambda member: member.rename(b""), b"byteorder")


@recipe("zip/name-too-long.pt")
def name_too_long() -> bytes:
    """A name of 600 bytes."""
    return with_record("n" * 592, b"text")


@recipe("zip/file-and-folder.pt")
def file_and_folder() -> bytes:
    """A record data beside data/0."""
    return with_record("data", b"text")
