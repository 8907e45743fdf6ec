# SPDX-License-Identifier: Apache-2.0
"""Rules on the comparison with the container that torch's own writer makes of the same records (format.md 1.13)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.pytorch.canonical import Difference
from fdd.formats.pytorch.canonical_differences import ENTRY, LAYOUT, LOCAL
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.rules.catalogue import NATIVE, rule
from fdd.formats.pytorch.rules.zip.copies import Votes, pairs

MOST_FIELDS = 3
"""Where more fields of one structure differ, it is another structure: one finding."""
SHOWN = 16
"""Bytes of a field shown in a message."""


@rule(
    "PT-ZIP-035",
    "differs-from-torch-writer",
    axis="valid",
    level="warning",
    clause="zip.canonical",
    kinds=NATIVE,
    needs=("canonical",),
    per="place",
    title="The bytes around the payloads are those that torch's writer makes.",
    message="{where}: expected {expected}, found {found}",
    remedy="torch wrote this archive and it was changed since: get the file again from its source and compare.",
)
def differs_from_torch_writer(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every byte of the container follows from the records. One that differs shows damage or a change that
    no checksum covers.

    References: format.md 1.13.
    """
    comparison = document.canonical
    if comparison is None or not comparison.mostly_padded:
        return
    lost = sum(record.local is None for _, record in document.zip_records())
    if lost > 1 and comparison.differences:
        # Bytes were lost or inserted: nothing stands where it should, and the rule on missing headers tells.
        first = comparison.differences[0]
        where = f"{first.structure}, {first.field}, and {len(comparison.differences) - 1} more differences"
        yield at(first.span, where=where, expected="those of torch's writer", found="others")
        return
    for (structure, name, _), group in groupby(_telling(document, comparison.differences), key=_structure):
        rows = list(group)
        record = decode_name(name) if name else None
        if len(rows) > MOST_FIELDS:
            place = Span(rows[0].span.offset, rows[-1].span.end - rows[0].span.offset)
            where = f"{structure}, {len(rows)} fields"
            yield at(place, record=record, where=where, expected="those of torch's writer", found=f"{place.length} other bytes")
            continue
        for row in rows:
            other = "nothing" if structure == LAYOUT else "another value"
            expected = other if row.expected == row.found else _bytes(row.expected)
            found = _bytes(row.found) if row.found else f"{row.span.length} bytes"
            yield at(row.span, record=record, where=f"{structure}, {row.field}", expected=expected, found=found)


def _bytes(data: bytes) -> str:
    return data[:SHOWN].hex(" ") + (" ..." if len(data) > SHOWN else "")


def _structure(difference: Difference) -> tuple[str, bytes, int | None]:
    return difference.structure, difference.name, difference.record


def _telling(document: TorchDocument, differences: list[Difference]) -> Iterator[Difference]:
    """The differences without those that only follow: absent structures, and of two copies the right one."""
    present = [row for row in differences if row.span.length]
    votes = Votes(document)
    wrong_names = {
        pair.number: ENTRY if votes.entry_name_is_wrong(pair) else LOCAL
        for pair in pairs(document)
        if pair.entry.name != pair.local.name
    }
    described = {pair.number for pair in pairs(document) if pair.described}
    for row in present or differences[:1]:
        computed = document.records[row.record].computed_crc32 if row.record is not None else None
        right = computed is not None and row.found == computed.to_bytes(4, "little")
        # In front of a descriptor torch leaves the checksum 0: there, the true one is a difference, too.
        if row.field == "crc-32" and right and not (row.structure == LOCAL and row.record in described):
            continue
        if row.field == "name" and row.record in wrong_names and row.structure != wrong_names[row.record]:
            continue
        yield row


@rule(
    "PT-ZIP-059",
    "not-from-torch-writer",
    axis="advice",
    level="info",
    clause="zip.canonical",
    kinds=NATIVE,
    needs=("canonical",),
    title="torch's own writer made the archive.",
    message="the archive was packed again by a tool other than torch; the first difference is in: {where}",
    remedy="Nothing is lost where all other rules pass. Prefer the file as torch wrote it, if it can still be had.",
)
def not_from_torch_writer(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: an archive that was packed again is no longer the file that torch wrote; its history has a gap.

    References: format.md 1.13.
    """
    comparison = document.canonical
    if comparison is None or comparison.mostly_padded:
        return
    for difference in comparison.differences:
        record = decode_name(difference.name) if difference.name else None
        yield at(difference.span, record=record, where=f"{difference.structure}, {difference.field}")
