# SPDX-License-Identifier: Apache-2.0
"""Rules on what the small records say: version, byte order, format version, alignment, serialization id."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdd.core.model import Record
from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import VERSION_NAMES
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import EAGER, NATIVE, rule
from fdd.formats.pytorch.rules.records.places import small_record

OLDEST_VERSION, NEWEST_VERSION = 1, 10
"""Archive versions that torch reads (format.md 1.15)."""
CURRENT_VERSION = 3
"""What torch.save has written since 1.6."""
FIRST_WRITTEN_VERSIONS = (1, 2)
"""What torch.save wrote in 1.4 and 1.5, when the version was the first record."""
MOST_ALIGNMENT = 65536
"""Above, the length of the padding field no longer fits its 16 bits."""
MOST_DIGITS = 20
"""Longer numbers are out of every range, and are not turned into numbers here."""
SCHEMA_VERSION = re.compile(rb"\d+(?:\.\d+)?\n?")
"""Version of the export schema, which exported programs of 2.1 to 2.7 keep in a record of this name."""


def _version_records(document: TorchDocument) -> Iterator[tuple[Record, bytes]]:
    for name in VERSION_NAMES:
        found = small_record(document, name)
        if found is not None:
            yield found


def _archive_versions(document: TorchDocument) -> Iterator[tuple[Record, str]]:
    """The version records that hold a number, without that of exported programs, which counts something else."""
    for record, text in _version_records(document):
        if not python_made(document) and re.fullmatch(rb"\d+\n?", text):
            yield record, text.decode().strip()


def _positive(text: bytes) -> int | None:
    """A positive number in plain decimal digits; None for any other text."""
    return int(text) if re.fullmatch(rb"[1-9]\d*", text) and len(text) <= MOST_DIGITS else None


@rule(
    "PT-REC-005",
    "version-not-a-number",
    axis="valid",
    level="error",
    clause="records.version",
    kinds=NATIVE,
    needs=("texts",),
    per="record",
    title="The version is a number in decimal digits.",
    message='the version is "{text}", not a number in decimal digits',
    remedy="Get the file again from its source. torch reads some such texts leniently, other readers refuse them.",
)
def version_not_a_number(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers that parse this text in different ways see different versions, or none.

    References: format.md 1.15; history.md table 2 (exported programs of 2.1 to 2.7).
    """
    for record, text in _version_records(document):
        good = SCHEMA_VERSION if python_made(document) else re.compile(rb"\d+\n?")
        if not good.fullmatch(text):
            yield at(record.span, record=record.name, text=text[:40].decode("latin-1"))


@rule(
    "PT-REC-023",
    "version-newline-missing",
    axis="valid",
    level="warning",
    clause="records.version",
    kinds=NATIVE,
    needs=("texts",),
    per="record",
    title="The version ends with a newline.",
    message="the version {text} ends without a newline",
    remedy="Nothing is lost. Prefer the file as torch wrote it, if it can still be had.",
)
def version_newline_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch's writer always ends the version with a newline; another tool made this record.

    References: format.md 1.2, 1.15.
    """
    for record, text in _version_records(document):
        if not python_made(document) and text.isdigit():
            yield at(record.span, record=record.name, text=text[:40].decode("latin-1"))


@rule(
    "PT-REC-006",
    "version-out-of-range",
    axis="valid",
    level="error",
    clause="records.version",
    kinds=NATIVE,
    needs=("texts",),
    per="record",
    title="The version is one that torch has written.",
    message="the archive has version {text}; known are {oldest} to {newest}",
    remedy="Compare with another copy. If the number is meant, a newer release of fdd may know it.",
)
def version_out_of_range(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch refuses versions it does not know; rules of an unknown version cannot be checked.

    References: format.md 1.15, 1.16.
    """
    for record, text in _archive_versions(document):
        number = text.lstrip("0") or "0"
        if len(number) > MOST_DIGITS or not OLDEST_VERSION <= int(number) <= NEWEST_VERSION:
            yield at(record.span, record=record.name, text=text[:40], oldest=OLDEST_VERSION, newest=NEWEST_VERSION)


@rule(
    "PT-REC-007",
    "version-unusual",
    axis="advice",
    level="info",
    clause="records.version",
    kinds=EAGER,
    needs=("texts", "inventory"),
    title="The version is the one that torch.save wrote in its time.",
    message="the archive has version {text}; torch.save has written {current} since 1.6, and 1 and 2 in 1.4 and 1.5",
    remedy="Nothing has to be done; the file was made or changed by another tool.",
)
def version_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the version hints at the writer. Any other number was not written by torch.save.

    References: format.md 1.15; history.md table 1.
    """
    old = document.records[:1] and document.records[0].role == "version" and document.find("byteorder") is None
    expected = (*FIRST_WRITTEN_VERSIONS, CURRENT_VERSION) if old else (CURRENT_VERSION,)
    for record, text in _archive_versions(document):
        if len(text) > MOST_DIGITS or int(text) not in expected:
            yield at(record.span, record=record.name, text=text[:40], current=CURRENT_VERSION)


@rule(
    "PT-REC-009",
    "byteorder-unknown",
    axis="valid",
    level="error",
    clause="records.byteorder",
    kinds=NATIVE,
    needs=("texts",),
    title="The byte order is exactly `little` or `big`.",
    message="the byte order is \"{text}\" instead of 'little' or 'big'",
    remedy="Compare with another copy: without this word it is unknown how to read the numbers.",
)
def byteorder_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every number of the storages depends on it. torch refuses any other word.

    References: format.md 1.14, 1.16.
    """
    found = small_record(document, "byteorder")
    if found is not None and found[1] not in (b"little", b"big"):
        yield at(found[0].span, record=found[0].name, text=found[1][:40].decode("latin-1"))


@rule(
    "PT-REC-011",
    "format-version-unknown",
    axis="valid",
    level="warning",
    clause="records.format-version",
    kinds=EAGER,
    needs=("texts",),
    title="The format version is a number that is known.",
    message='the record .format_version says "{text}"; known is 1',
    remedy="Look for a newer release of fdd, or for the tool that changed the record.",
)
def format_version_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the number tells in which order the storages were written; a reader may compute their places from it.

    References: format.md 1.2.
    """
    found = small_record(document, ".format_version")
    if found is not None and found[1] != b"1":
        yield at(found[0].span, record=found[0].name, text=found[1][:40].decode("latin-1"))


@rule(
    "PT-REC-012",
    "alignment-impossible",
    axis="valid",
    level="error",
    clause="records.alignment",
    kinds=EAGER,
    needs=("texts",),
    title="The storage alignment is a power of two from 1 to 65536.",
    message='the record .storage_alignment says "{text}", which is no power of two from 1 to {most}',
    remedy="Compare with another copy; readers that compute the places of storages from this number go wrong.",
)
def alignment_impossible(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers may compute where each storage lies from this number. Padding for more than 65536 bytes does
    not fit its field; torch itself cannot load such a file.

    References: format.md 1.6, 1.17.
    """
    found = small_record(document, ".storage_alignment")
    if found is None:
        return
    number = _positive(found[1])
    if number is None or number > MOST_ALIGNMENT or number & (number - 1):
        yield at(found[0].span, record=found[0].name, text=found[1][:40].decode("latin-1"), most=MOST_ALIGNMENT)


@rule(
    "PT-REC-014",
    "serialization-id-malformed",
    axis="valid",
    level="warning",
    clause="records.serialization-id",
    kinds=NATIVE,
    needs=("texts",),
    title="The serialization id is 40 decimal digits: two numbers of 64 bits.",
    message='the serialization id is "{text}", not two numbers of 20 digits each',
    remedy="Nothing is lost. The id of a nightly build of 2023, or of another tool, cannot be checked.",
)
def serialization_id_malformed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: an id of the right form can be computed again from the records and shows whether any of them was
    exchanged. Another text shows nothing.

    References: format.md 1.12.
    """
    found = small_record(document, ".data/serialization_id")
    if found is not None and document.id_facts is not None and not document.id_facts.well_formed:
        yield at(found[0].span, record=found[0].name, text=found[1][:80].decode("latin-1"))
