# SPDX-License-Identifier: Apache-2.0
"""Reads the values of sparse index tensors out of the payload and holds them against what they may be (format.md 2.4).

So it does with the tables of nested tensors, which say where in a buffer each of the tensors lies.

Values are read in the byte order of the file. Where no record states one, one of the two orders has to fit all of them.
Memory is bounded: a chunk at a time, whatever the tensors claim.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from fdd.core.finding import Reason
from fdd.core.model import ABSENT, COMPLETE, Evidence
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.objects import INDEXED, every_tensor
from fdd.formats.pytorch.zipped import contents
from fdd.limits import Limits
from fdd.tensors.model import Storage, Tensor, element_count
from fdd.tensors.nested import NESTED, nested_faults
from fdd.tensors.sparse import IndexRange, index_ranges

CHUNK = 1 << 18
"""Elements read at a time."""
MOST_READ = 64
"""Index tensors may look at the same bytes again and again: in all, this many times the size of the file is read."""
MOST_FAULTS = 200
MOST_NESTED = 1_000_000
"""Numbers in one table of a nested tensor."""
TYPE_CODES = {"int64": "q", "int32": "i"}
BLOCKERS = (
    "PT-TEN-017", "PT-TEN-010", "PT-TEN-008", "PT-TEN-009", "PT-TEN-011", "PT-TEN-007", "PT-TEN-004", "PT-TEN-001",
    "PT-TEN-003", "PT-REC-016", "PT-REC-024", "PT-ZIP-026", "PT-ZIP-024", "PT-ZIP-011", "PT-ZIP-025", "PT-ZIP-039",
    "PT-ZIP-027", "PT-ZIP-028", "PT-ZIP-002", "PT-ZIP-008", "PT-LEG-008", "PT-LEG-006", "PT-LEG-007",
)  # fmt: skip
"""Rules one of which has failed where an index tensor cannot be read."""

ReadStorage = Callable[[int, int], bytes]
"""Read bytes of one storage: offset and length, both inside the storage."""


@dataclass(frozen=True, slots=True)
class IndexFault:
    """A value that an index tensor must not hold. ``span`` are its bytes in the file, the whole record where it is deflated."""

    tensor: str | None
    record: str | None
    span: Span
    detail: str


class _Unreadable(Exception):
    """The bytes of an index tensor cannot be had; ``limit`` where it is a limit that stands against it."""

    def __init__(self, limit: str | None = None) -> None:
        super().__init__(limit)
        self.limit = limit


class _Values:
    """The values of index tensors, in one byte order."""

    def __init__(self, document: TorchDocument, order: str) -> None:
        self.document = document
        self.swap = order != sys.byteorder
        self.left = MOST_READ * document.source.size

    def faults(self, name: str | None, expected: IndexRange) -> Iterator[IndexFault]:
        """The first bad value of each row. Raises :class:`_Unreadable`."""
        tensor = expected.tensor
        read, storage = self._open(tensor), tensor.storage
        assert storage is not None and tensor.dtype is not None
        rows = list(_rows(tensor)) if len(expected.limits) > 1 else _rows(tensor)
        shared = min(expected.limits, default=0)
        for row, places in enumerate(rows):
            limit = expected.limits[row] if isinstance(rows, list) and len(rows) == len(expected.limits) else shared
            found = self._compressed(read, tensor, places, limit, expected.total) if expected.compressed else None
            if not expected.compressed:
                found = self._plain(read, tensor, places, limit)
            if found is not None:
                span = _place(self.document, storage, found[0] * tensor.dtype.size, tensor.dtype.size)
                yield IndexFault(name, storage.record, span, f"{tensor.name}: {found[1]}")

    def _plain(self, read: ReadStorage, tensor: Tensor, places: range, limit: int) -> tuple[int, str] | None:
        for start, values in self._chunks(read, tensor, places):
            if min(values) < 0 or max(values) >= limit:
                index = next(i for i, value in enumerate(values) if not 0 <= value < limit)
                return places[start + index], f"{values[index]} where 0 to {limit - 1} is possible"
        return None

    def _compressed(self, read: ReadStorage, tensor: Tensor, places: range, most: int, total: int) -> tuple[int, str] | None:
        before = 0
        for start, values in self._chunks(read, tensor, places):
            if start == 0 and values[0] != 0:
                return places[0], f"begins with {values[0]} instead of 0"
            for index, (left, right) in enumerate(pairwise((before, *values))):
                if not 0 <= right - left <= most:
                    return places[start + index], f"goes from {left} to {right}, where a row or column has 0 to {most} entries"
            before = values[-1]
        if len(places) and before != total:
            return places[-1], f"ends with {before} instead of {total}"
        return None

    def nested(self, name: str | None, whole: Tensor) -> Iterator[IndexFault]:
        """The tensors in a nested tensor that do not lie in its buffer. Raises :class:`_Unreadable`."""
        parts = whole.components
        length = element_count(parts["buffer"].shape) if parts["buffer"].shape is not None else None
        if length is None or next(nested_faults(parts), None) is not None:
            raise _Unreadable
        sizes, strides = self._table(parts["sizes"]), self._table(parts["strides"])
        # Offsets that are no tensor stand in the pickle; how far they reach is not known here.
        offsets = self._table(parts["offsets"]) if "offsets" in parts else [[0]] * len(sizes)
        # Of a table expanded by a stride of 0 one row was read, which stands for all.
        count = max(len(offsets), len(sizes), len(strides))
        full = [table * count if len(table) == 1 else table for table in (offsets, sizes, strides)]
        for row, ((start,), size, stride) in enumerate(zip(*full, strict=False)):
            numbers = [(start, "offsets", 0)] if "offsets" in parts else []
            numbers += [(number, "sizes", column) for column, number in enumerate(size)]
            numbers += [(number, "strides", column) for column, number in enumerate(stride)]
            least, most = min(numbers), max(numbers)
            reach = start + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
            if least[0] >= 0 and (0 in size or reach < length):
                continue
            # A negative number is wrong itself; of others the largest is the likeliest to be.
            _, table, column = least if least[0] < 0 else most
            what = f"sizes {tuple(size)}, strides {tuple(stride)}, offset {start} in a buffer of {length} elements"
            yield self._number_fault(name, parts[table], (row, column), f"tensor {row} of a nested tensor: {what}")

    def _number_fault(self, name: str | None, table: Tensor, place: tuple[int, int], detail: str) -> IndexFault:
        """A fault at the number in that row and column of a table."""
        storage, dtype = table.storage, table.dtype
        assert storage is not None and dtype is not None
        steps = zip(place, table.stride or (), strict=False)
        element = (table.storage_offset or 0) + sum(index * step for index, step in steps)
        return IndexFault(name, storage.record, _place(self.document, storage, element * dtype.size, dtype.size), detail)

    def _table(self, tensor: Tensor) -> list[list[int]]:
        """The rows of a small index tensor; a column is a table with one number in each row."""
        read = self._open(tensor)
        if (element_count(tensor.shape or ()) or 0) > MOST_NESTED:
            raise _Unreadable("numbers in the tables of a nested tensor")
        rows = [[value for _, values in self._chunks(read, tensor, places) for value in values] for places in _rows(tensor)]
        return [[value] for value in rows[0]] if rows and len(tensor.shape or ()) == 1 else rows

    def _open(self, tensor: Tensor) -> ReadStorage:
        """How to read the storage of an index tensor that lies inside it."""
        end, storage = tensor.view_byte_count, tensor.storage
        if end is None or storage is None or tensor.dtype is None or tensor.dtype.name not in TYPE_CODES:
            raise _Unreadable
        if end > (storage.stored_size or 0) or end > (storage.byte_count or 0):
            raise _Unreadable
        return _reader(self.document, storage)

    def _chunks(self, read: ReadStorage, tensor: Tensor, places: range) -> Iterator[tuple[int, array[int]]]:
        """(index of the first one, values). ``places`` are elements of the storage."""
        assert tensor.dtype is not None
        size = tensor.dtype.size
        per_chunk = max(1, CHUNK // places.step)
        for start in range(0, len(places), per_chunk):
            part = places[start : start + per_chunk]
            length = (part[-1] - part[0] + 1) * size
            self.left -= length
            if self.left < 0:
                raise _Unreadable("bytes of index tensors")
            data = read(part[0] * size, length)
            if len(data) < length:
                raise _Unreadable
            values = array(TYPE_CODES[tensor.dtype.name], data)
            if self.swap:
                values.byteswap()
            yield start, values[:: places.step]


def _reader(document: TorchDocument, storage: Storage) -> ReadStorage:
    """Where to read a storage. Raises :class:`_Unreadable`."""
    span = storage.span
    if span is not None:
        return lambda offset, length: document.source.read_at(span.offset + offset, min(length, span.length - offset))
    index = next((at for at, record in enumerate(document.records) if record.name == storage.record), None)
    most = Limits().inflated_bytes
    if index is None or document.records[index].method != "deflated":
        raise _Unreadable
    if document.records[index].size > most:
        raise _Unreadable("inflated_bytes")
    inflated = contents(document, index, most)
    data = inflated[0] if inflated is not None else b""
    return lambda offset, length: data[offset : offset + length]


def _place(document: TorchDocument, storage: Storage, offset: int, length: int) -> Span:
    if storage.span is not None:
        return Span(storage.span.offset + offset, length)
    record = next((record for record in document.records if record.name == storage.record), None)
    return record.span if record is not None and record.span is not None else Span(0, 0)


def _rows(tensor: Tensor) -> Iterator[range]:
    """The elements of the storage that each run along the last dimension looks at.

    A dimension of stride 0 shows the same again and again: it is looked at once. Dimensions of size 1 add nothing, so that
    the others are few: their product is at most the number of elements of the storage.
    """
    assert tensor.shape is not None and tensor.stride is not None and tensor.storage_offset is not None
    sizes = [(min(size, 1) if step == 0 else size, step) for size, step in zip(tensor.shape, tensor.stride, strict=True)]
    count, step = sizes[-1]
    outer = [(size, step) for size, step in sizes[:-1] if size != 1]
    for start in _starts(tensor.storage_offset, outer):
        yield range(start, start + count * max(step, 1), max(step, 1))


def _starts(offset: int, dimensions: list[tuple[int, int]]) -> Iterator[int]:
    if not dimensions:
        yield offset
        return
    size, step = dimensions[0]
    for at in range(size):
        yield from _starts(offset + at * step, dimensions[1:])


def byte_orders(document: TorchDocument) -> tuple[str, ...]:
    """The byte orders that the numbers in storages may have: the stated one, else both."""
    stated = document.texts.get("byteorder")
    if document.zip is None or stated == b"little":
        return ("little",)  # legacy streams are little-endian from every host
    return ("big",) if stated == b"big" else ("little", "big")


def read_index_values(document: TorchDocument) -> None:
    """Fill the fact ``index-values`` (a list of :class:`IndexFault`) and state the evidence of that name."""
    wanted = [pair for pair in every_tensor(document) if pair[1].layout in INDEXED]
    found: tuple[list[IndexFault], Evidence] = ([], COMPLETE if wanted else ABSENT)
    for order in reversed(byte_orders(document)):
        # Little comes last: where neither order fits, its faults are the ones told.
        found = _try(document, order, wanted)
        if not found[0]:
            break
    document.facts["index-values"], document.evidence["index-values"] = found


def _try(
    document: TorchDocument, order: str, wanted: list[tuple[str | None, Tensor]]
) -> tuple[list[IndexFault], Evidence]:  # fmt: skip
    values = _Values(document, order)
    faults: list[IndexFault] = []
    evidence = COMPLETE if wanted else ABSENT
    for name, tensor in wanted:
        if any(_without_values(part) for part in tensor.components.values()):
            continue
        if tensor.layout == NESTED:
            try:
                faults += values.nested(name, tensor)
            except _Unreadable as error:
                evidence = _unread(error)
            continue
        ranges = index_ranges(tensor)
        if not ranges:
            evidence = Evidence("partial", Reason.BLOCKED, BLOCKERS)
        for expected in ranges:
            try:
                faults += values.faults(name, expected)
            except _Unreadable as error:
                evidence = _unread(error)
        if len(faults) >= MOST_FAULTS:
            break
    return faults, evidence


def _without_values(tensor: Tensor) -> bool:
    """Whether a tensor has a shape only, and no numbers: one on the device meta, or an example input of a trace."""
    storage = tensor.storage
    return tensor.location == "meta" if storage is None else not storage.payload_expected


def _unread(error: _Unreadable) -> Evidence:
    if error.limit is not None:
        return Evidence("partial", Reason.LIMIT, detail=error.limit)
    return Evidence("partial", Reason.BLOCKED, BLOCKERS)
