# SPDX-License-Identifier: Apache-2.0
"""Where the numbers of storages lie, in which byte order, and whether all of them are known."""

from __future__ import annotations

from fdd.core.inflate import InflatedSource
from fdd.core.source import ByteSource, SliceSource
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS, SCRIPT_KINDS
from fdd.formats.pytorch.payloads import checkable
from fdd.formats.pytorch.properties import byte_order
from fdd.limits import Limits
from fdd.tensors.model import Storage

OBJECT_KINDS = EAGER_KINDS | SCRIPT_KINDS | {"torch-legacy", "torch-tar", "torch-package", "incomplete-save"}
"""Kinds whose tensors stand in pickles: without a pickle that ran to its end, nobody knows them all."""
INPUTS = ("objects", "storages", "nested", "mobile", "executorch")
"""Evidence on what tensors are read from."""
TENSOR_LOST = frozenset({"argument-count", "sparse-layout", "argument-type"})
"""Mismatches where a call that makes a tensor made none, or one without its view."""


def payload_of(document: TorchDocument, storage: Storage, limits: Limits) -> ByteSource | None:
    """What the record of a storage holds; None where there is no record, or it cannot be read (encrypted, unknown method)."""
    # A storage with a byte order of its own lies in a file inside the file: its record is none of this one's.
    index = _indexes(document).get(storage.record or "") if storage.byte_order is None else None
    if index is not None and not checkable(document, index):
        return None
    if storage.span is not None:
        return SliceSource(document.source, storage.span)
    record = document.records[index] if index is not None else None
    if record is None or record.span is None or record.method != "deflated":
        return None
    return InflatedSource(document.source, record.span, record.size, limits.inflated_bytes)


def _indexes(document: TorchDocument) -> dict[str, int]:
    """Name of a record -> index of the first one of that name, made once."""
    if "record-indexes" not in document.facts:
        indexes: dict[str, int] = {}
        for number, record in enumerate(document.records):
            indexes.setdefault(record.name, number)
        document.facts["record-indexes"] = indexes
    found: dict[str, int] = document.facts["record-indexes"]
    return found


def byte_order_of(document: TorchDocument, storage: Storage) -> str | None:
    """`little` or `big`; None where no record of the file, or of the file inside it, says so."""
    order = storage.byte_order or byte_order(document)
    return order if order in ("little", "big") else None


def has_all_tensors(document: TorchDocument) -> bool:
    """Whether all that could name a tensor was read to its end."""
    states = [document.evidence[name].state for name in INPUTS if name in document.evidence]
    if any(state in ("partial", "withheld") for state in states):
        return False
    objects = document.evidence.get("objects")  # a file of several archives states none of its own
    if document.kind in OBJECT_KINDS and (objects is None or objects.state != "complete"):
        return bool(document.nested)
    return not any(mismatch.code in TENSOR_LOST for mismatch in document.mismatches)
