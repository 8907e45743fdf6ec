# SPDX-License-Identifier: Apache-2.0
"""Watches the payload of bool storages as it is read: each byte has to be 0 or 1 (format.md 2.3)."""

from __future__ import annotations

from dataclasses import dataclass

from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.tensors.bools import BoolTap


@dataclass(frozen=True, slots=True)
class OddBools:
    """A bool storage with other bytes than 0 and 1: how many, and where the first one is."""

    record: str
    span: Span
    count: int
    total: int


def bool_taps(document: TorchDocument) -> dict[str, BoolTap]:
    """A tap for each record that some persistent id takes for bool values and for nothing else."""
    dtypes: dict[str, set[str | None]] = {}
    for storage in document.storages:
        if storage.record is not None:
            dtypes.setdefault(storage.record, set()).add(storage.dtype.name if storage.dtype is not None else None)
    return {record: BoolTap() for record, names in dtypes.items() if names == {"bool"}}


def note_bools(document: TorchDocument, taps: dict[str, BoolTap]) -> None:
    """Fill the fact ``odd-bools`` (a list of :class:`OddBools`) from taps that have seen their payload."""
    found = document.facts.setdefault("odd-bools", [])
    for record in document.records:
        tap = taps.get(record.name)
        if tap is not None and tap.count and record.span is not None:
            place = Span(record.span.offset + tap.first, 1) if record.method == "stored" else record.span
            found.append(OddBools(record.name, place, tap.count, record.size))
