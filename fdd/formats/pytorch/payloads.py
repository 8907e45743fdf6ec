# SPDX-License-Identifier: Apache-2.0
"""The payload pass of PyTorch files: one read that gives the digests of the file, the checksums of its records, and what
the values of some storages show."""

from __future__ import annotations

from collections.abc import Iterable

from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, Evidence, Record
from fdd.core.payload import Part, read_payload
from fdd.formats.pytorch.bool_values import bool_taps, note_bools
from fdd.formats.pytorch.damage import diagnose_payload
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.evidence import HEADER_RULES, UNREADABLE_RULES
from fdd.formats.pytorch.index_values import read_index_values
from fdd.formats.pytorch.zipped import readable


def read_payloads(document: TorchDocument, algorithms: tuple[str, ...], watched: Iterable[Part] = ()) -> None:
    """Read the whole file once and fill in what was computed; state the evidence `payload`. ``watched`` are parts of others
    that are filled in the same read."""
    parts: list[tuple[Record, Part]] = []
    taps = bool_taps(document)
    skipped = False
    for index, record in enumerate(document.records):
        if record.span is None or not checkable(document, index):
            skipped = True
            continue
        watching = (taps[record.name],) if record.name in taps else ()
        parts.append(
            (record, Part(record.span, record.method == "deflated", algorithms, watching, watch_zeros=record.crc32 == 0))
        )
    document.digests = read_payload(document.source, [*(part for _, part in parts), *watched], algorithms)
    for record, part in parts:
        record.computed_crc32 = part.crc32
        record.digests = part.digests
        record.all_zero = part.all_zero
        if record.method == "deflated":
            record.inflated = part.size
            record.inflate_fault = part.fault
    note_bools(document, taps)
    read_index_values(document)
    document.evidence["payload"] = Evidence("partial", Reason.BLOCKED, UNREADABLE_RULES + HEADER_RULES) if skipped else COMPLETE
    diagnose_payload(document)


def checkable(document: TorchDocument, index: int) -> bool:
    """Whether the bytes of a record can be turned into its contents."""
    if document.zip is None:
        return True
    return readable(document.zip.records[index]) and document.records[index].method in ("stored", "deflated")
