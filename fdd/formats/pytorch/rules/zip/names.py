# SPDX-License-Identifier: Apache-2.0
"""Rules on the names of records."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from fdd.container.zip.fields import CENTRAL_FIELDS, field_span
from fdd.container.zip.structs import FLAG_UTF8, CentralEntry, LocalHeader
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.core.text import decode_name, is_text
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, NATIVE, rule
from fdd.formats.pytorch.rules.zip.copies import name_place

LONGEST_NAME = 511
"""Bytes of a name that torch's reader keeps (format.md 1.16)."""
DRIVE = re.compile(rb"[A-Za-z]:")
CONTROL = re.compile(rb"[\x01-\x1f\x7f]|\xc2[\x80-\x9f]")
"""Both blocks of control characters, the second one as UTF-8 writes it."""


def _names(document: TorchDocument) -> Iterator[tuple[str, bytes, CentralEntry | LocalHeader]]:
    """Each record as reports call it, its name as stored, and the header the name is taken from: the directory's."""
    for index, record in document.zip_records():
        copy = record.entry or record.local
        if copy is not None:
            yield document.records[index].name, copy.name, copy


def _disputed(document: TorchDocument) -> set[bytes]:
    """Names in the directory that the local header of their record contradicts: that has a rule of its own."""
    rows = (record for _, record in document.zip_records())
    return {row.name for row in rows if row.entry is not None and row.local is not None and row.local.name != row.entry.name}


@rule(
    "PT-ZIP-019",
    "names-twice",
    axis="well-formed",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="No two records have the same name.",
    message="{count} records have this name: readers disagree on which one counts",
    remedy="Find out how the file was made, and compare the records; do not load it before.",
)
def names_twice(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch took the first of two `data/0` and the last of two `data.pkl`, Python's zipfile always takes the
    last: two readers see two different models.

    References: format.md 1.16.
    """
    first: dict[bytes, int] = {}
    places: dict[bytes, list[Span]] = {}
    disputed = _disputed(document)
    for index, record in document.zip_records():
        copy = record.entry or record.local
        if copy is None:
            continue
        first.setdefault(copy.name, index)
        place = name_place(copy)
        # The one that its own local header contradicts is the wrong one; else the later.
        wrong = copy.name in disputed and record.local is not None and record.local.name != copy.name
        places.setdefault(copy.name, []).insert(0 if wrong else len(places[copy.name]) if copy.name in places else 0, place)
    for name, found in places.items():
        if len(found) > 1:
            yield at(found[0] if name in disputed else found[1], record=decode_name(name), count=len(found))


@rule(
    "PT-ZIP-020",
    "names-equal-but-for-case",
    axis="well-formed",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="place",
    title="No two names are equal but for the case of letters.",
    message="the name differs from {other} only in the case of letters",
    remedy="Find out how the file was made; do not load it before.",
)
def names_equal_but_for_case(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch looks records up without regard to case, other readers do not: `DATA.PKL` shadowed `data.pkl`.

    References: format.md 1.16.
    """
    seen: dict[bytes, bytes] = {}
    for shown, name, copy in _names(document):
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield at(name_place(copy), record=shown, other=decode_name(other))


@rule(
    "PT-ZIP-021",
    "name-leaves-folder",
    axis="valid",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="Names are relative paths without `..`, backslashes and control characters.",
    message="the name {what}",
    remedy="Do not unpack the file with tools that trust names; ask the source how it was made.",
)
def name_leaves_folder(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a tool that unpacks such a record may write outside its folder, or show a name that is not the
    one it uses. torch writes no such names.

    References: APPNOTE 4.4.17.1; format.md 1.2, 1.16.
    """
    for shown, name, copy in _names(document):
        tests = (
            (b".." in name.split(b"/"), "has a part `..`"),
            (name.startswith(b"/"), "is an absolute path"),
            (DRIVE.match(name) is not None, "begins with a drive letter"),
            (b"\\" in name, "holds a backslash"),
            (CONTROL.search(name) is not None, "holds control characters"),
        )
        faults = [words for failed, words in tests if failed]
        if faults:
            yield at(name_place(copy), record=shown, what=" and ".join(faults))


@rule(
    "PT-ZIP-022",
    "name-not-utf8",
    axis="well-formed",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="Names are UTF-8, and flag bit 11 says so where they are not plain ASCII.",
    message="the name {what}",
    remedy="Ask the source for the file with an ASCII name, or rename the records with a tool that keeps all else.",
)
def name_not_utf8(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: without UTF-8 a name means other characters on every machine; torch refuses to read it.

    References: APPNOTE 4.4.4 bit 11, appendix D; format.md 1.5, 1.16.
    """
    for shown, name, copy in _names(document):
        if not is_text(name):
            yield at(name_place(copy), record=shown, what="is not valid UTF-8")
        elif not name.isascii() and not copy.flags & FLAG_UTF8:
            yield at(name_place(copy), record=shown, what="is not plain ASCII, and flag bit 11 (UTF-8) is not set")


@rule(
    "PT-ZIP-023",
    "directory-record",
    axis="valid",
    level="warning",
    clause="zip.names",
    kinds=NATIVE,
    needs=("directory",),
    title="No record stands for a folder.",
    message="the record stands for a folder: the archive was packed again by a tool other than torch",
    remedy="Nothing is lost. Prefer the file as torch wrote it, if it can still be had.",
)
def directory_record(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes files only. Records for folders tell that another tool packed the archive.

    References: format.md 1.2.
    """
    if python_made(document):
        return
    for shown, name, copy in _names(document):
        if name.endswith(b"/"):
            yield at(name_place(copy), record=shown)


@rule(
    "PT-ZIP-052",
    "name-holds-nul",
    axis="well-formed",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="No name holds a NUL byte, and none is empty.",
    message="the name {what}",
    remedy="Find out how the file was made; do not load it before.",
)
def name_holds_nul(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers written in C end the name at the NUL, others do not: they see different records.

    References: format.md 6.2 (PT-ZIP-021), 1.16.
    """
    for shown, name, copy in _names(document):
        if b"\0" in name:
            yield at(name_place(copy), record=shown, what="holds a NUL byte")
        elif not name and isinstance(copy, CentralEntry):
            yield at(field_span(copy.span, CENTRAL_FIELDS, "name_length"), record=shown, what="is empty")


@rule(
    "PT-ZIP-053",
    "name-too-long",
    axis="valid",
    level="error",
    clause="zip.names",
    kinds=NATIVE,
    needs=("directory",),
    per="record",
    title="Names have at most 511 bytes.",
    message="the name has {length} bytes; torch's reader keeps 511 and does not find the record",
    remedy="Ask the source for the file saved under a shorter name.",
)
def name_too_long(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch cuts the name when it lists the records and then cannot find them.

    References: format.md 1.16.
    """
    for shown, name, copy in _names(document):
        if len(name) > LONGEST_NAME and not python_made(document):
            yield at(name_place(copy), record=shown, length=len(name))


@rule(
    "PT-ZIP-054",
    "file-and-folder",
    axis="valid",
    level="error",
    clause="zip.names",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="No name is a file and a folder at once.",
    message="{what}",
    remedy="Find out how the file was made: it cannot be unpacked whole.",
)
def file_and_folder(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: no file system holds both, so unpacking loses one of them; a folder has no bytes of its own.

    References: APPNOTE 4.3.8; contract, section 6.
    """
    names = sorted(name for _, name, _ in _names(document))
    for shown, name, copy in _names(document):
        folder = name + b"/"
        at_most = bisect_left(names, folder)
        if name.endswith(b"/"):
            if copy.uncompressed_size:
                what = f"the name is that of a folder, and the record holds {copy.uncompressed_size} bytes"
                yield at(name_place(copy), record=shown, what=what)
        elif name and at_most < len(names) and names[at_most].startswith(folder):
            what = f"the record is a file, and {decode_name(names[at_most])} makes a folder of the same name"
            yield at(name_place(copy), record=shown, what=what)
