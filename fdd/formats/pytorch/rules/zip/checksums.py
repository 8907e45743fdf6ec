# SPDX-License-Identifier: Apache-2.0
"""Rules on recorded checksums: that they are there, and fit the payloads."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.container.zip.fields import CENTRAL_FIELDS, field_span
from fdd.core.model import Record
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, NATIVE, rule

NEVER = "never"
ALL = "all"
STORAGES = "storages"


def unrecorded(document: TorchDocument) -> str:
    """Which records have 0 in place of a checksum on purpose: `all`, `storages` (torch's ``skip_data``), or `never`."""
    filled = [record for record in document.records if record.size and record.crc32 is not None]
    without = [record for record in filled if not record.crc32]
    if not without or python_made(document):
        return NEVER
    if len(without) == len(filled):
        return ALL
    storages = sum(record.role == "storage" for record in filled)
    only = all(record.role == "storage" for record in without)
    return STORAGES if only and len(without) == storages else NEVER


def _checksum_place(document: TorchDocument, index: int) -> Span | None:
    entry = document.zip_record(index).entry
    return field_span(entry.span, CENTRAL_FIELDS, "crc32") if entry is not None else None


@rule(
    "PT-ZIP-028",
    "payload-checksum-wrong",
    axis="well-formed",
    level="error",
    clause="zip.checksum",
    kinds=ARCHIVES,
    needs=("payload",),
    per="record",
    title="The payload of each record has the recorded CRC-32.",
    message="the payload has CRC-32 {computed}, recorded is {recorded}: the record is altered although the file may open",
    remedy="Get the file again from its source. torch.load does not check this and would load wrong values.",
)
def payload_checksum_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: this is the only proof inside the file that its values are those that were saved. torch never looks.

    References: APPNOTE 4.4.7; format.md 1.11.
    """
    skipped = unrecorded(document)
    for index, record in enumerate(document.records):
        computed, recorded = record.computed_crc32, record.crc32
        if computed is None or recorded is None or computed == recorded or record.inflate_fault is not None:
            continue
        on_purpose = recorded == 0 and (skipped == ALL or (skipped == STORAGES and record.role == "storage"))
        if not on_purpose and not _directory_is_wrong(document, index, computed):
            yield at(record.span, record=record.name, computed=f"{computed:08x}", recorded=f"{recorded:08x}")


def _directory_is_wrong(document: TorchDocument, index: int, computed: int) -> bool:
    """Whether the directory has a wrong checksum or size, by the other copies: that has rules of its own."""
    record = document.zip_record(index)
    if record.descriptor_fault is not None and record.descriptor_fault.code == "descriptor-displaced":
        return True
    copies = (record.descriptor, record.local if record.descriptor is None else None)
    return record.entry is not None and any(copy is not None and copy.crc32 == computed for copy in copies)


@rule(
    "PT-ZIP-029",
    "checksums-not-recorded",
    axis="valid",
    level="warning",
    clause="zip.checksum",
    kinds=NATIVE,
    needs=("inventory",),
    title="Checksums are recorded.",
    message="no record has a checksum: it was written with set_crc32_options(False)",
    remedy="Make a checksum of the whole file now and keep it: the file cannot prove its own integrity.",
)
def checksums_not_recorded(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: without checksums damage to values cannot be seen in the file itself.

    References: format.md 1.11.
    """
    if unrecorded(document) == ALL:
        index = next(index for index, record in enumerate(document.records) if record.size)
        yield at(_checksum_place(document, index), record=document.records[index].name)


def _skipped(document: TorchDocument) -> list[tuple[int, Record]]:
    """The storages whose checksum was left away, where that was done by ``skip_data``."""
    if unrecorded(document) != STORAGES:
        return []
    rows = enumerate(document.records)
    return [(index, record) for index, record in rows if record.role == "storage" and record.size and not record.crc32]


@rule(
    "PT-ZIP-047",
    "storages-without-checksum",
    axis="valid",
    level="warning",
    clause="zip.checksum",
    kinds=NATIVE,
    needs=("inventory", "payload"),
    title="Storages have checksums where other records have them.",
    message="the storages have no checksum, all other records have one: they were filled in after saving (skip_data)",
    remedy="Make a checksum of the whole file now and keep it: the file cannot prove the integrity of its values.",
)
def storages_without_checksum(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: damage to the values cannot be seen in the file itself.

    References: format.md 1.11.
    """
    rows = _skipped(document)
    if any(record.all_zero is False for _, record in rows):
        for index, record in rows:
            yield at(_checksum_place(document, index), record=record.name)


@rule(
    "PT-ZIP-048",
    "storages-never-written",
    axis="valid",
    level="error",
    clause="zip.checksum",
    kinds=NATIVE,
    needs=("inventory", "payload"),
    title="Storages were written, not only reserved.",
    message="the storages have no checksum and hold zeros only: their room was reserved (skip_data), and never filled",
    remedy="Ask for the finished file: this one has the structure of the model and none of its values.",
)
def storages_never_written(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the file loads, and gives a model whose values are all zero.

    References: format.md 1.11.
    """
    rows = _skipped(document)
    if rows and all(record.all_zero for _, record in rows):
        for _, record in rows:
            yield at(record.span, record=record.name)
