# SPDX-License-Identifier: Apache-2.0
"""What damage to records means for tensors, and how large the whole file was."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fdd.container.zip.structs import EXTRA_PADDING, METHOD_STORED, ZipRecord
from fdd.core.text import decode_name
from fdd.formats.pytorch.canonical_layout import DEFAULT_ALIGNMENT, MAX_ALIGNMENT, CanonicalRecord, layout
from fdd.formats.pytorch.damage_facts import StorageTally
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS
from fdd.formats.pytorch.objects import every_tensor
from fdd.tensors.model import Storage

LARGEST_SIZE = 1 << 63
"""Bytes that no record can have: what a pickle states is not what was written."""
LAST_RECORDS = (("version", 2, ""), (".data/serialization_id", 40, "byteorder"))
"""What torch writes behind the storages: name, bytes, and the record that shows a release that writes it (1.2, 1.12)."""


class Losses:
    """Names of tensors by the record that holds their values; made once a damaged record is known."""

    def __init__(self, document: TorchDocument) -> None:
        self._document = document
        self._tensors: dict[str, dict[str, None]] = {}
        for name, tensor in every_tensor(document):
            if tensor.storage is not None and tensor.storage.record is not None and name is not None:
                self._tensors.setdefault(tensor.storage.record, {})[name] = None

    def tensors(self, records: Iterable[str]) -> list[str]:
        """Tensors with values in any of these records, in the order of the records."""
        return list(dict.fromkeys(name for record in records for name in self._tensors.get(record, ())))

    def storages(self) -> dict[str, Storage]:
        """The storages that must have a payload, by the name of their record."""
        found: dict[str, Storage] = {}
        for storage in self._document.storages:
            if storage.payload_expected and storage.record is not None:
                found.setdefault(storage.record, storage)
        return found

    def tally(self, whole: Collection[str], cut: Collection[str]) -> StorageTally | None:
        """Count storages whose record is whole, cut, or missing; None where the pickles name none."""
        named = self.storages()
        if not named:
            return None
        broken = [record for record in named if record not in whole]
        parts = sum(record in cut for record in broken)
        return StorageTally(len(named), len(named) - len(broken), parts, len(broken) - parts, self.tensors(broken))


def expected_bytes(losses: Losses, name: str) -> int | None:
    """Bytes that the pickle asks for in a record; None where it is no storage or has no sensible size."""
    storage = losses.storages().get(name)
    size = storage.byte_count if storage is not None else None
    return size if size is not None and size >= 0 else None


def whole_size(document: TorchDocument, records: list[ZipRecord], cut: ZipRecord | None, losses: Losses) -> int | None:
    """Bytes of the whole file, by torch's layout; None where another tool wrote it, or where not all records are known.

    ``records`` are complete, in file order. The storages that the pickle names and torch's closing records are added.
    """
    rows = [_row(record) for record in records]
    first = next((record.local for record in records if record.local is not None), None)
    made_by_torch = first is not None and any(extra.identifier == EXTRA_PADDING for extra in first.extra)
    if not made_by_torch or any(row is None for row in rows):
        return None
    known = [row for row in rows if row is not None]
    missing = _missing_rows(document, {row.name for row in known}, losses)
    if missing is None or (cut is not None and cut.name not in {row.name for row in missing}):
        return None
    stated = document.texts.get(".storage_alignment", b"")
    alignment = int(stated) if stated.isdigit() and len(stated) <= 5 else DEFAULT_ALIGNMENT
    if not 1 <= alignment <= MAX_ALIGNMENT:
        return None
    return layout([*known, *missing], alignment)[-1].span.end


def nothing_missing(document: TorchDocument, records: Collection[bytes], losses: Losses) -> bool:
    """Whether all records that torch.save writes are among these names; False where that cannot be told."""
    return _missing_rows(document, records, losses) == []


def _row(record: ZipRecord) -> CanonicalRecord | None:
    if record.payload is None or record.local is None:
        return None
    size, method = record.payload.length, record.local.method
    plain = record.descriptor.uncompressed_size if record.descriptor is not None else size
    return CanonicalRecord(record.name, size, size if method == METHOD_STORED else plain, 0, method)


def _missing_rows(document: TorchDocument, present: Collection[bytes], losses: Losses) -> list[CanonicalRecord] | None:
    """The records that torch.save would have written behind the present ones."""
    if document.kind not in EAGER_KINDS or not document.pickles or not all(p.facts.stopped for p in document.judged_pickles()):
        return None
    rows: list[CanonicalRecord] = []
    for name, storage in losses.storages().items():
        size = storage.byte_count
        written = name.encode("utf-8", "surrogatepass")  # a damaged pickle may give a name that no text has
        if written in present:
            continue
        if size is None or not 0 <= size < LARGEST_SIZE:
            return None
        rows.append(CanonicalRecord(written, size, size, 0))
    rows.extend(_closing_rows(document, present))
    return rows


def _closing_rows(document: TorchDocument, present: Collection[bytes]) -> Iterator[CanonicalRecord]:
    prefix = f"{document.root}/" if document.root else ""
    names = {decode_name(name) for name in present}
    for name, size, sign in LAST_RECORDS:
        if prefix + name not in names and (not sign or prefix + sign in names):
            yield CanonicalRecord((prefix + name).encode(), size, size, 0)
