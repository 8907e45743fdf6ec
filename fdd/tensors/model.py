# SPDX-License-Identifier: Apache-2.0
"""Storages and the tensors that look at them, and the arithmetic of views (format.md 2.5). No format in here.

Sizes, strides and offsets of tensors count elements; everything that lies in the file counts bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fdd.core.span import Span
from fdd.tensors.dtypes import DType

INT64_MAX = (1 << 63) - 1
"""Greatest count, size, stride or offset that a reader can hold: torch keeps all of them in signed 64-bit numbers."""


@dataclass(slots=True)
class StorageUse:
    """One mention of a storage, as written. ``dtype`` is None where the class is unknown; ``span`` is the place of the
    persistent id in the file, None if unknown."""

    type_name: str
    dtype: DType | None
    location: Any
    element_count: Any
    span: Span | None


@dataclass(slots=True)
class Storage:
    """A run of elements under one key.

    ``dtype`` is None where the class is unknown; ``element_count`` None where it is not a whole number. ``uses`` are all
    mentions in stream order; the first one counts, as in torch. ``span`` is the payload, None where there is none.
    """

    key: str
    dtype: DType | None
    type_name: str
    location: str | None
    element_count: int | None
    uses: list[StorageUse] = field(default_factory=list)
    record: str | None = None
    """Name of the record with the payload, or the name it should have."""
    span: Span | None = None
    stored_size: int | None = None
    """Bytes of the payload (after decompression), None where the record is missing."""
    complete: bool = True
    """Whether the payload is all there; of a cut one ``stored_size`` counts what is left."""
    source: str = ""
    """Which pickle names it."""
    payload_expected: bool = True
    """False where writers leave the payload out on purpose (meta device, traced inputs)."""
    bare: bool = False
    """Whether the object holds the storage itself, not only through tensors."""
    byte_order: str | None = None
    """`little`, `big` or `unknown` where it comes from a file inside the file; None where the order of the file counts."""

    @property
    def place(self) -> Span | None:
        """Where the file mentions the storage first, None if unknown."""
        return self.uses[0].span if self.uses else None

    @property
    def byte_count(self) -> int | None:
        """Bytes the persistent id announces."""
        if self.dtype is None or self.element_count is None:
            return None
        return self.element_count * self.dtype.size


@dataclass(slots=True)
class Quantizer:
    """How integers stand for real numbers: ``scheme``, and scale and zero point, or tensors of them and their axis."""

    scheme: str
    scale: Any = None
    zero_point: Any = None
    axis: int | None = None


@dataclass(slots=True)
class Tensor:
    """One tensor as the file describes it.

    ``shape``, ``stride`` and ``storage_offset`` are whole numbers, or None where the file has something else there.
    ``layout`` is strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, nested, jagged, mkldnn or opaque;
    for all but strided ``components`` hold the strided tensors it is made of, by their role.
    """

    name: str
    dtype: DType | None
    shape: tuple[int, ...] | None
    stride: tuple[int, ...] | None = None
    storage_offset: int | None = 0
    storage: Storage | None = None
    layout: str = "strided"
    requires_grad: bool | None = None
    parameter: bool = False
    location: str | None = None
    function: str = ""
    """The rebuild function or class that makes it."""
    offset: int | None = None
    """Where in the file the pickle asks for it."""
    quantizer: Quantizer | None = None
    components: dict[str, Tensor] = field(default_factory=dict)
    wrapper: str | None = None
    """Class of a tensor subclass."""
    attributes: tuple[str, ...] = ()
    """Names of Python attributes kept with the tensor."""
    conjugate: bool = False
    negative: bool = False
    alias: bool = False
    """A further place of the object for a tensor that stands before it in the list."""

    @property
    def element_count(self) -> int | None:
        """Number of values, by its shape; None where that is not known, negative, or beyond 64 bits."""
        return element_count(self.shape) if self.shape is not None else None

    @property
    def parts(self) -> Iterator[Tensor]:
        """The tensors it is made of: components, and the scales and zero points of a quantiser."""
        yield from self.components.values()
        if self.quantizer is not None:
            yield from (part for part in (self.quantizer.scale, self.quantizer.zero_point) if isinstance(part, Tensor))

    @property
    def view_byte_count(self) -> int | None:
        """Bytes of the storage from the start of the storage to behind the last element the view reaches.

        0 for an empty view: nothing of it is read. None where shape, stride, offset or dtype are not known or do not fit
        together.
        """
        if self.shape is None or self.stride is None or self.storage_offset is None or self.dtype is None:
            return None
        if len(self.shape) != len(self.stride) or min((*self.shape, *self.stride, self.storage_offset)) < 0:
            return None
        return view_end(self.shape, self.stride, self.storage_offset, self.dtype)

    @property
    def span(self) -> Span | None:
        """The bytes in the file from the first to behind the last element, for views that lie inside their payload."""
        end = self.view_byte_count
        if self.storage is None or self.storage.span is None or end is None or self.dtype is None or self.storage_offset is None:
            return None
        start = self.storage_offset * self.dtype.size
        if end == 0 or end > self.storage.span.length or start >= end:
            return Span(self.storage.span.offset, 0) if end == 0 else None
        return Span(self.storage.span.offset + start, end - start)


def element_count(shape: tuple[int, ...]) -> int | None:
    """The product of the sizes; None where one is negative, or where the product of the first ones leaves 64 bits.

    torch multiplies from the left and refuses what overflows, also where a later size is 0. It keeps hostile files from
    making us multiply a million huge numbers, too.
    """
    count = 1
    for size in shape:
        count *= size
        if size < 0 or count > INT64_MAX:
            return None
    return count


def view_end(shape: tuple[int, ...], stride: tuple[int, ...], storage_offset: int, dtype: DType) -> int:
    """Bytes a view needs from the start of its storage (format.md 2.5, points 3 and 4).

    Python integers have no width, so nothing overflows. Packed types count bytes by rows: the last dimension is rounded up.
    """
    if any(size == 0 for size in shape):
        return 0
    if dtype.values_per_byte > 1:
        return storage_offset // dtype.values_per_byte + packed_bytes(shape, dtype)
    reach = storage_offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=False))
    return (reach + 1) * dtype.size


def packed_bytes(shape: tuple[int, ...], dtype: DType) -> int:
    """Bytes of a tensor of a packed type (format.md 2.5, point 4); beyond 64 bits any greater number."""
    rows = element_count(shape[:-1])
    last = shape[-1] if shape else 1
    return (INT64_MAX if rows is None else rows) * -(-last // dtype.values_per_byte)


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements, as torch computes them (a dimension of size 0 counts as 1)."""
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))


def unused_bytes(storage: Storage, tensors: Iterable[Tensor]) -> int:
    """Bytes of a storage in front of the first and behind the last element that any of its ``tensors`` reaches.

    0 where that cannot be told: a view or the size of the storage is unknown, or the object holds the storage itself.
    """
    total = storage.byte_count
    first, last = None, 0
    for tensor in tensors:
        end = tensor.view_byte_count
        if end is None or tensor.storage_offset is None or tensor.dtype is None:
            return 0
        if end:
            start = tensor.storage_offset * tensor.dtype.size // tensor.dtype.values_per_byte
            first = start if first is None else min(first, start)
            last = max(last, end)
    if total is None or storage.bare or last > total:
        return 0
    return max(0, total - (last - (first or 0)))
