# SPDX-License-Identifier: Apache-2.0
"""Rules that hold the list of records against what the pickles refer to, and against what torch writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from fdd.core.model import COMPLETE, Record
from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS, PACKAGE_STORAGE_NAME, SCRIPT_KINDS, SCRIPT_STORAGE_NAME, STORAGE_NAME
from fdd.formats.pytorch.persistent_ids import UNREAD_IDS
from fdd.formats.pytorch.rules.catalogue import EAGER, NATIVE, rule
from fdd.formats.pytorch.rules.records.places import name_span
from fdd.formats.pytorch.rules.tensors.places import stored_storages

STORED = frozenset({*EAGER_KINDS, *SCRIPT_KINDS, "torch-package"})
"""Kinds whose storages are records that pickles refer to."""
REFERRED = STORED - {"torchscript-json"}
"""Kinds all of whose storages are named by pickles; before 1.3 TorchScript named them in model.json."""
CANONICAL = re.compile(r"0|[1-9][0-9]*")
"""A number as torch writes it: ASCII digits, no leading zeros, no sign."""
LEADING_ZEROS = re.compile(r"(?<=/)0+(?=\d+(?:\.storage)?$)")
SCRIPT_KEY = re.compile(r"(?:(?:data|tensors|constants|bytecode|traced_inputs)/)?(?:0|[1-9][0-9]*)(?:\.storage)?")
"""Mobile archives name constants `0.storage` or `constants/0`, scripts in packages their storages `0.storage`."""
ORDER = ("object", "format-version", "storage-alignment", "byteorder", "storage", "version", "serialization-id")
"""Roles of records in the order in which torch.save writes them; before 1.6 the version came first."""
LEAST_ADDRESS = 1 << 24
"""Greater numbers are addresses, as writers up to 1.8 used them, and no count of storages."""


@rule(
    "PT-REC-013",
    "alignment-without-format-version",
    axis="advice",
    level="info",
    clause="records.alignment",
    kinds=EAGER,
    needs=("inventory",),
    title="Format version and storage alignment come together.",
    message="the record {present} is there without {absent}",
    remedy="Nothing has to be done; the file comes from a nightly build of early 2025 or was changed by another tool.",
)
def alignment_without_format_version(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: released versions of torch write both or none.

    References: format.md 1.2.
    """
    pair = (".format_version", ".storage_alignment")
    for present, absent in (pair, pair[::-1]):
        index = document.find(present)
        if index is not None and document.find(absent) is None:
            yield at(name_span(document, index), record=document.records[index].name, present=present, absent=absent)


def _number_of(document: TorchDocument, record: Record) -> str | None:
    """The number in the name of a storage, in whatever digits; None for records that are named otherwise."""
    local = document.local_name(record.name)
    if document.kind in EAGER_KINDS:
        pattern = STORAGE_NAME
    else:
        pattern = PACKAGE_STORAGE_NAME if document.kind == "torch-package" else SCRIPT_STORAGE_NAME
    if record.role != "storage" or not pattern.fullmatch(local):
        return None
    return local.removesuffix(".storage").rpartition("/")[2]


@rule(
    "PT-REC-015",
    "storage-name-not-canonical",
    axis="valid",
    level="error",
    clause="records.storages",
    kinds=STORED,
    needs=("directory",),
    per="record",
    title="Storages are named by plain decimal numbers.",
    message="the storage {name} is not named by a plain decimal number",
    remedy="Get the file again from its source; torch looks for the number without leading zeros.",
)
def storage_name_not_canonical(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: names are compared as texts: `data/00` is never found for storage 0.

    References: format.md 1.2, 3.4, 3.5.
    """
    present = {record.name for record in document.records}
    wanted = {storage.record for storage in document.storages}
    for index, record in enumerate(document.records):
        number = _number_of(document, record)
        if number is None or CANONICAL.fullmatch(number):
            continue
        plain = LEADING_ZEROS.sub("", record.name)
        # One that no pickle wants, under this name or the plain one, is a storage left over: that has a rule of its own.
        if record.name in wanted or (plain not in present and (plain in wanted or not wanted)):
            yield at(name_span(document, index), record=record.name, name=document.local_name(record.name))


@rule(
    "PT-REC-024",
    "storage-key-not-canonical",
    axis="valid",
    level="error",
    clause="records.storages",
    kinds=STORED,
    needs=("objects",),
    per="place",
    title="Pickles refer to storages by plain decimal numbers.",
    message='the pickle names a storage "{key}", which is not a plain decimal number',
    remedy="Do not load the file: a key with a path in it may reach other records or, with careless tools, other files.",
)
def storage_key_not_canonical(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the key becomes part of a name. `../version` would read another record as numbers.

    References: format.md 1.2, 2.2.
    """
    canonical = CANONICAL if document.kind in EAGER_KINDS else SCRIPT_KEY
    for storage, tensor in stored_storages(document):
        if storage.uses and not canonical.fullmatch(storage.key):
            yield at(storage.place, record=storage.source, tensor=tensor, key=storage.key)


@rule(
    "PT-REC-016",
    "storage-missing",
    axis="valid",
    level="error",
    clause="records.storages",
    kinds=STORED,
    needs=("storages", "inventory"),
    per="place",
    title="Every storage that a pickle refers to has a record.",
    message="the storage {name} ({bytes} bytes) is missing",
    remedy="Get the file again from its source; the tensors of this storage are lost in this copy.",
)
def storage_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the tensors that look at this storage cannot be read.

    References: format.md 1.16; DOC.
    """
    for storage, tensor in stored_storages(document):
        if storage.uses and storage.stored_size is None and storage.location != "meta":
            announced = storage.byte_count if storage.byte_count is not None else "an unknown number of"
            name = storage.record or storage.key
            yield at(storage.place, record=storage.source, tensor=tensor, name=name, bytes=announced)


def _all_keys_known(document: TorchDocument) -> bool:
    """Whether all storages that the pickles refer to are known: none breaks off, and every persistent id could be read."""
    unread = any(mismatch.code in UNREAD_IDS for mismatch in document.mismatches)
    return document.evidence.get("objects") == COMPLETE and not unread


@rule(
    "PT-REC-017",
    "storage-orphan",
    axis="valid",
    level="warning",
    clause="records.storages",
    kinds=REFERRED,
    needs=("storages", "inventory"),
    per="record",
    title="Every storage is one that a pickle refers to.",
    message="no pickle refers to the storage {name} ({size} bytes)",
    remedy="Look at what it holds: torch never reads it, and anything can hide there.",
)
def storage_orphan(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch writes no such record. It is left over from an edit, or hides something.

    References: format.md 1.16.
    """
    if not _all_keys_known(document):
        return
    named = {storage.record for storage in document.storages}
    for index, record in enumerate(document.records):
        if record.name not in named and _number_of(document, record) is not None:
            yield at(name_span(document, index), record=record.name, name=record.name, size=record.size)


@rule(
    "PT-REC-018",
    "record-unknown",
    axis="valid",
    level="warning",
    clause="records.required",
    kinds=NATIVE,
    needs=("directory",),
    per="record",
    title="Every record is one that the format knows.",
    message="the format knows no record {name} ({size} bytes)",
    remedy="Find out where it comes from. torch does not read it; what it holds is not part of the model.",
)
def record_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: nothing tells what such a record is for, and no later reader will know. Code can travel in it.

    References: format.md 1.2, 3.4, 3.5.
    """
    for index, record in enumerate(document.records):
        unnumbered = record.role == "storage" and document.kind in STORED and _number_of(document, record) is None
        if record.role == "unknown" or unnumbered:
            name = document.local_name(record.name) or record.name
            yield at(name_span(document, index), record=record.name, name=name, size=record.size)


@rule(
    "PT-REC-019",
    "storage-numbers-skip",
    axis="advice",
    level="info",
    clause="records.storages",
    kinds=EAGER,
    needs=("objects",),
    title="Storages are numbered without holes.",
    message="{count} storages are numbered up to {last}; the first number left out is {hole}",
    remedy="Nothing has to be done; torch itself leaves no number out, so another tool made or changed the file.",
)
def storage_numbers_skip(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch numbers storages as it meets them. A hole tells that something was taken out.

    References: format.md 1.2.
    """
    numbers = {int(s.key): s for s in document.storages if CANONICAL.fullmatch(s.key) and len(s.key) < 10}
    if not _all_keys_known(document) or not numbers or len(numbers) < len(document.storages) or max(numbers) >= LEAST_ADDRESS:
        return
    hole = next(number for number in range(len(numbers) + 1) if number not in numbers)
    if hole < len(numbers):
        behind = numbers[min(number for number in numbers if number > hole)]
        yield at(behind.place, record=behind.source, count=len(numbers), last=max(numbers), hole=hole)


@rule(
    "PT-REC-020",
    "record-order-unusual",
    axis="advice",
    level="info",
    clause="records.order",
    kinds=EAGER,
    needs=("local-headers", "inventory"),
    title="Records stand in the order in which torch writes them.",
    message="{name} stands behind {before}",
    remedy="Nothing has to be done; it tells that another tool, or an option of torch.save, made the file.",
)
def record_order_unusual(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the order tells who wrote the file, and readers that compute the places of storages rely on it.

    References: format.md 1.2, 1.4; history.md table 1.
    """
    ranks = sorted(_ranks(document))
    for (_, rank_before, behind), (_, rank, index) in pairwise(ranks):
        if rank < rank_before:
            name, before = document.records[index].name, document.records[behind].name
            yield at(name_span(document, index), record=name, name=name, before=before)
            return


def _ranks(document: TorchDocument) -> Iterator[tuple[int, tuple[int, int, str], int]]:
    """(place in the file, place in torch's order, index) of each record that torch's order knows.

    Storages are in numeric order where `.format_version` says so, else they are sorted as texts.
    """
    placed = sorted((record.local.span.offset, index) for index, record in document.zip_records() if record.local is not None)
    version_first = bool(placed) and document.records[placed[0][1]].role == "version"
    numeric = document.find(".format_version") is not None
    for offset, index in placed:
        record = document.records[index]
        number = record.name.rpartition("/")[2] if record.role == "storage" else ""
        by_number = int(number) if numeric and len(number) < 20 and CANONICAL.fullmatch(number) else 0
        if record.role == "version" and version_first:
            yield offset, (-1, 0, ""), index
        elif record.role in ORDER:
            yield offset, (ORDER.index(record.role), by_number, "" if numeric else number), index
