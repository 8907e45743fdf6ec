# SPDX-License-Identifier: Apache-2.0
"""Reads the elements of a view in row-major order, whatever its strides, in bounded memory.

A view that lies in one piece is streamed. Of others a block of the result is put together at a time: parts of the payload
are read and copied with steps, which memoryviews do in C. A block needs :data:`BLOCK_BYTES`, what is read for it
:data:`READ_BYTES`, whatever the size of the tensor or of the file. Sizes and strides count units (see :class:`View`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.tensors.model import Tensor

BLOCK_BYTES = 16 << 20
READ_BYTES = 8 << 20
STREAM_BYTES = 128 << 10
"""Pieces of a stream: reads of up to this size do not suffer from unaligned buffers (performance.md, finding 2), and
whole elements fit in."""
SEEK_BYTES = 32 << 10
"""Reading as many bytes more costs about as much as one read more."""
UNIT_CODES: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Bytes of a unit -> memoryview format that copies it whole."""

Dimensions = list[tuple[int, int]]
"""Size and stride of each dimension."""


class MissingBytes(Exception):
    """The payload ends before the view does."""


@dataclass(frozen=True, slots=True)
class View:
    """A strided view in units: what is copied whole. A unit is an element, or half of one that has 16 bytes."""

    start: int
    dimensions: Dimensions
    """From the slowest to the fastest; sizes of 1 left out, neighbours that run on into each other joined."""
    unit: int
    """Bytes of a unit."""

    @property
    def count(self) -> int:
        """Units of the whole view."""
        return _count(self.dimensions)

    @property
    def copies(self) -> int:
        """About how many times something has to be copied: what the view costs beside its bytes."""
        return self.count // max((size for size, _ in self.dimensions), default=1)


def view_of(tensor: Tensor) -> View:
    """The view of a strided tensor whose shape, stride, offset and element type are known, and which is not packed."""
    assert tensor.shape is not None and tensor.stride is not None
    assert tensor.storage_offset is not None and tensor.dtype is not None
    unit = min(tensor.dtype.size, 8)
    units = tensor.dtype.size // unit
    dimensions: Dimensions = []
    pairs = [(size, step * units) for size, step in zip(tensor.shape, tensor.stride, strict=True)]
    for size, step in (*pairs, (units, 1)):
        if size == 1:
            continue
        if dimensions and dimensions[-1][1] == size * step:
            dimensions[-1] = (dimensions[-1][0] * size, step)
        else:
            dimensions.append((size, step))
    return View(tensor.storage_offset * units, dimensions, unit)


def read_view(view: View, payload: ByteSource) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a view that is not empty, in pieces of whole units. A piece is valid until the next is asked for.

    ``payload`` begins with the first byte of the storage. Raises :class:`MissingBytes`, and SourceError where reading fails.
    """
    *outer, (size, step) = view.dimensions or [(1, 1)]
    if step == 1 and (not outer or size * view.unit >= STREAM_BYTES):
        for start in _starts(view.start, outer):
            yield from _stream(payload, Span(start * view.unit, size * view.unit))
    else:
        yield from _Gatherer(view.unit, payload).blocks(view.start, view.dimensions)


def _stream(payload: ByteSource, span: Span) -> Iterator[bytes]:
    left = span.length
    for piece in payload.stream(span, STREAM_BYTES):
        left -= len(piece)
        yield piece
    if left:
        raise MissingBytes


def _starts(start: int, dimensions: Dimensions) -> Iterator[int]:
    """Where each index of the dimensions leads to, in row-major order."""
    if not dimensions:
        yield start
        return
    (size, step), *rest = dimensions
    for index in range(size):
        yield from _starts(start + index * step, rest)


def _count(dimensions: Dimensions) -> int:
    count = 1
    for size, _ in dimensions:
        count *= size
    return count


class _Axis(NamedTuple):
    """A dimension of a copy: its steps in what is read and in what is written."""

    size: int
    source: int
    target: int


class _Gatherer:
    """Puts blocks together, one after the other in the same buffer."""

    def __init__(self, unit: int, payload: ByteSource) -> None:
        self._unit = unit
        self._payload = payload
        self._buffer = bytearray()

    def blocks(self, start: int, dimensions: Dimensions) -> Iterator[memoryview]:
        """As many of the fastest dimensions as fit into a block are taken whole; the next one is cut."""
        capacity = BLOCK_BYTES // self._unit
        first = len(dimensions) - 1
        inner = 1
        while first > 0 and inner * dimensions[first][0] <= capacity:
            inner *= dimensions[first][0]
            first -= 1
        size, step = dimensions[first]
        most = max(1, min(size, capacity // inner))
        self._buffer = bytearray(most * inner * self._unit)
        held: tuple[int, int] | None = None
        for begin in _starts(start, dimensions[:first]):
            for index in range(0, size, most):
                count = min(most, size - index)
                place = (begin + index * step, count)
                if place != held:  # repeated dimensions (stride 0) show the same block again
                    self._fill(place[0], [(count, step), *dimensions[first + 1 :]])
                    held = place
                yield memoryview(self._buffer)[: count * inner * self._unit]

    def _fill(self, start: int, dimensions: Dimensions) -> None:
        axes: list[_Axis] = []
        step = 1
        for size, source in reversed(dimensions):
            axes.append(_Axis(size, source, step))
            step *= size
        with memoryview(self._buffer) as whole, whole.cast(UNIT_CODES[self._unit]) as target:
            self._gather(start, target, 0, axes)

    def _gather(self, start: int, target: memoryview, place: int, axes: list[_Axis]) -> None:
        """Read what the axes reach and copy it; if that is too much at a time, halve the axis that reaches farthest."""
        reach = 1 + sum((axis.size - 1) * axis.source for axis in axes)
        if self._at_once(reach, axes):
            data = self._payload.read_at(start * self._unit, reach * self._unit)
            if len(data) < reach * self._unit:
                raise MissingBytes
            with memoryview(data) as raw, raw.cast(UNIT_CODES[self._unit]) as source:
                _copy(source, target, place, axes)
            return
        widest = max(range(len(axes)), key=lambda number: (axes[number].size - 1) * axes[number].source)
        axis = axes[widest]
        half = axis.size // 2
        for skipped, size in ((0, half), (half, axis.size - half)):
            part = [*axes[:widest], axis._replace(size=size), *axes[widest + 1 :]]
            self._gather(start + skipped * axis.source, target, place + skipped * axis.target, part)

    def _at_once(self, reach: int, axes: list[_Axis]) -> bool:
        """Whether reading everything from the first to the last unit fits, and costs less than reading only what is used."""
        if reach * self._unit > READ_BYTES:
            return False
        used, run = 1, 1
        for axis in axes:
            if axis.source:
                used *= axis.size
                run = max(run, axis.size if axis.source == 1 else 1)
        return used >= reach or reach * self._unit <= SEEK_BYTES * (used // run)


def _copy(source: memoryview, target: memoryview, place: int, axes: list[_Axis]) -> None:
    """Copy along the longest axis in C, along the others in a loop."""
    longest = max(range(len(axes)), key=lambda number: _weight(axes[number]))
    size, step_in, step_out = axes[longest]
    reach_in, reach_out = (size - 1) * step_in + 1, (size - 1) * step_out + 1
    others = [axis for number, axis in enumerate(axes) if number != longest and axis.size > 1]
    for at_in, at_out in _pairs(0, place, others):
        if step_in:
            target[at_out : at_out + reach_out : step_out] = source[at_in : at_in + reach_in : step_in]
        else:
            repeated = source[at_in : at_in + 1].tobytes() * size
            target[at_out : at_out + reach_out : step_out] = memoryview(repeated).cast(UNIT_CODES[source.itemsize])


def _weight(axis: _Axis) -> int:
    """Runs of neighbours on both sides cost a fraction of single steps."""
    return axis.size * 4 if axis.source == axis.target == 1 else axis.size


def _pairs(at_in: int, at_out: int, axes: list[_Axis]) -> Iterator[tuple[int, int]]:
    if not axes:
        yield at_in, at_out
        return
    *rest, (size, step_in, step_out) = axes
    if rest:
        for index in range(size):
            yield from _pairs(at_in + index * step_in, at_out + index * step_out, rest)
    else:
        for index in range(size):
            yield at_in + index * step_in, at_out + index * step_out
