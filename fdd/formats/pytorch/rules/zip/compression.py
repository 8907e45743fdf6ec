# SPDX-License-Identifier: Apache-2.0
"""Rules on how payloads are stored: encryption, methods, deflated data."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.container.zip.fields import CENTRAL_FIELDS, LOCAL_FIELDS, field_span
from fdd.container.zip.structs import (
    FLAG_DESCRIPTOR,
    FLAG_ENCRYPTED,
    FLAG_MASKED,
    FLAG_PATCHED,
    FLAG_STRONG_ENCRYPTION,
    FLAG_UTF8,
    METHOD_DEFLATED,
    METHOD_STORED,
    ZipRecord,
)
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.opening import python_made
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, EAGER, NATIVE, rule
from fdd.limits import Limits

HIDING = {
    FLAG_ENCRYPTED: "encrypted",
    FLAG_PATCHED: "patch data",
    FLAG_STRONG_ENCRYPTION: "strongly encrypted",
    FLAG_MASKED: "masked",
}
"""Flags that make a payload unreadable, and what they say of it."""
COMMON_FLAGS = FLAG_DESCRIPTOR | FLAG_UTF8


def _agreed(record: ZipRecord, field: str) -> tuple[int, Span] | None:
    """A value that the headers agree on, and where it stands first; None where they differ (rules of their own tell)."""
    entry, local = record.entry, record.local
    if entry is not None:
        value = int(getattr(entry, field))
        same = local is None or getattr(local, field) == value
        return (value, field_span(entry.span, CENTRAL_FIELDS, field)) if same else None
    if local is not None:
        return int(getattr(local, field)), field_span(local.span, LOCAL_FIELDS, field)
    return None


def _values(document: TorchDocument, field: str) -> Iterator[tuple[int, int, Span]]:
    """Index, value and place of a field for all records whose headers agree on it."""
    for index, record in document.zip_records():
        agreed = _agreed(record, field)
        if agreed is not None:
            yield index, *agreed


@rule(
    "PT-ZIP-024",
    "record-encrypted",
    axis="valid",
    level="error",
    clause="zip.flags",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="No record is encrypted, patched or masked.",
    message="the record is marked as {how}: its contents cannot be judged",
    remedy="Ask the source for the file without encryption; torch reads no encrypted archive.",
)
def record_encrypted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: what is encrypted cannot be validated, migrated or checked for what it would run, and is lost with
    its key.

    References: APPNOTE 4.4.4; format.md 1.16.
    """
    for index, flags, place in _values(document, "flags"):
        said = [words for bit, words in HIDING.items() if flags & bit]
        if said:
            yield at(place, record=document.records[index].name, how=" and ".join(said))


@rule(
    "PT-ZIP-025",
    "method-unknown",
    axis="valid",
    level="error",
    clause="zip.method",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="Records are stored or deflated.",
    message="the record is compressed by method {method}, which torch does not read",
    remedy="Ask for the file as torch wrote it, or unpack it with a tool that knows the method.",
)
def method_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch's reader knows methods 0 and 8 only and refuses all others.

    References: APPNOTE 4.4.5; format.md 1.16.
    """
    for index, method, place in _values(document, "method"):
        if method not in (METHOD_STORED, METHOD_DEFLATED):
            yield at(place, record=document.records[index].name, method=method)


@rule(
    "PT-ZIP-026",
    "record-deflated",
    axis="valid",
    level="error",
    clause="zip.method",
    kinds=EAGER,
    needs=("directory",),
    title="The records of a torch.save file are stored, not deflated.",
    message="the record is deflated: the archive was written again by a tool other than torch",
    remedy="Prefer the file as torch wrote it. The values are intact where all other rules pass.",
)
def record_deflated(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the format stores its records. Readers that map the file into memory take the raw bytes of a record
    for its values, so a deflated storage gives garbage.

    References: format.md 1.5, 1.17.
    """
    for index, method, place in _values(document, "method"):
        if method == METHOD_DEFLATED:
            yield at(place, record=document.records[index].name)


@rule(
    "PT-ZIP-027",
    "deflate-damaged",
    axis="well-formed",
    level="error",
    clause="zip.method",
    kinds=ARCHIVES,
    needs=("payload",),
    per="record",
    title="Deflated data inflates to just the announced size.",
    message="{what}",
    remedy="Get the file again from its source: the payload is damaged.",
)
def deflate_damaged(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch loaded wrong values from damaged deflate data without an error.

    References: RFC 1951; format.md 1.16.
    """
    for index, record in enumerate(document.records):
        if _agreed(document.zip_record(index), "method") is None:
            continue  # stored, perhaps: the headers differ
        if record.inflate_fault is not None:
            yield at(record.span, record=record.name, what=record.inflate_fault)
        elif record.inflated is not None and record.inflated != record.size:
            what = f"the payload inflates to {record.inflated} bytes, announced are {record.size}"
            yield at(record.span, record=record.name, what=what)


@rule(
    "PT-ZIP-037",
    "flags-unusual",
    axis="valid",
    level="warning",
    clause="zip.flags",
    kinds=NATIVE,
    needs=("directory",),
    title="No flags but those for descriptors and UTF-8 names are set.",
    message="the flags are {flags}; torch sets none but 0x0008 and 0x0800",
    remedy="Nothing is lost where all other rules pass; another tool wrote or changed the archive.",
)
def flags_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: other flags tell that another tool was at work, and some readers act on them.

    References: APPNOTE 4.4.4; format.md 1.5.
    """
    if python_made(document):
        return
    hiding = sum(HIDING)
    for index, flags, place in _values(document, "flags"):
        if flags & ~(COMMON_FLAGS | hiding):
            yield at(place, record=document.records[index].name, flags=f"{flags:#06x}")


@rule(
    "PT-ZIP-046",
    "deflate-bomb",
    axis="safety",
    level="error",
    clause="zip.method",
    kinds=ARCHIVES,
    needs=("directory",),
    per="record",
    title="No record expands beyond all proportion.",
    message="{stored} stored bytes become {size}: more than {ratio} times as many",
    remedy="Do not load or unpack the file without a limit on memory and disk.",
)
def deflate_bomb(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch reserves memory for the announced size before it inflates. A few bytes can exhaust a machine.

    References: format.md 6.2 (PT-ZIP-027); contract, section 1, resource bombs.
    """
    limits = Limits()
    for record in document.records:
        stored = record.span.length if record.span is not None else 0
        size = max(record.size, record.inflated or 0)
        ratio = limits.inflate_ratio
        if record.method == "deflated" and stored and size > limits.inflated_bytes and size > ratio * stored:
            yield at(record.span, record=record.name, stored=stored, size=size, ratio=ratio)
