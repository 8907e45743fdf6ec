# SPDX-License-Identifier: Apache-2.0
"""Digests of what tensors hold, whatever the container, the offsets, the strides and the byte order (premis.md, section 8).

``fdd-tensor-sha256-1`` is the SHA-256 of `fdd-tensor-1`, NUL, ``["dtype",[sizes]]`` as JSON without spaces, NUL, and the
elements: in row-major order of the view, each little-endian, bit by bit as stored. ``fdd-content-sha256-1`` is the SHA-256 of
one line for each tensor, ``["name","digest"]`` and LF, sorted by the bytes of the names. The JSON is UTF-8; only quotation
mark, backslash and control characters are escaped.

What a reader sees counts: where a view is marked conjugate or negative, the sign bits are flipped as torch flips them. Of
quantized tensors the integers count, not what they stand for; of packed types the bytes. Not covered: sharing of storages,
strides, requires_grad, and whatever is no tensor. Sparse and nested tensors have no digest themselves, their components have.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Iterable, Iterator
from typing import Literal

from fdd.core.source import ByteSource, SliceSource
from fdd.tensors.dtypes import DType
from fdd.tensors.gather import STREAM_BYTES, UNIT_CODES, MissingBytes, View, read_view, view_of
from fdd.tensors.model import Storage, Tensor, contiguous_stride, packed_bytes

TENSOR_ALGORITHM = "fdd-tensor-sha256-1"
CONTENT_ALGORITHM = "fdd-content-sha256-1"
ByteOrder = Literal["little", "big"]
SIGNED_FAMILIES = frozenset({"float", "complex"})
COPY_COST = 256
"""One copy costs about as much as hashing this many bytes."""


class NoContent(Exception):
    """A tensor whose elements cannot be had; the text says why."""


NOT_THERE = "not all of its bytes are in the file"
"""Why there is no content where the payload is missing or too short."""
NO_DATA = "it has no data in the file, as its writer meant it"
COMPONENTS = "it is made of components, which have digests of their own"


def flat_tensors(tensors: Iterable[Tensor], prefix: str | None = None) -> Iterator[tuple[str, Tensor]]:
    """Every tensor with its name; those made of others are followed by their components, named `name/role`."""
    for tensor in tensors:
        name = tensor.name if prefix is None else prefix
        yield name, tensor
        for role, component in tensor.components.items():
            yield from flat_tensors([component], f"{name}/{role}" if name else role)


def tensor_digest(tensor: Tensor, source: ByteSource, byte_order: ByteOrder) -> str | None:
    """The digest of a tensor whose storage lies in ``source`` as it is (``tensor.storage.span``), its numbers in that byte
    order. None where its elements cannot be had. Raises SourceError where reading fails."""
    storage = tensor.storage
    payload = SliceSource(source, storage.span) if storage is not None and storage.span is not None else None
    try:
        return digest_elements(tensor, payload, byte_order)
    except NoContent:
        return None


def digest_elements(tensor: Tensor, payload: ByteSource | None, byte_order: ByteOrder) -> str:
    """The digest of a tensor. ``payload`` begins with the first byte of its storage, None where there is none.

    Raises :class:`NoContent`, and SourceError where reading fails.
    """
    pieces = elements(tensor, payload, byte_order)
    assert tensor.dtype is not None and tensor.shape is not None
    hasher = hashlib.sha256(b"fdd-tensor-1\0" + _json([tensor.dtype.name, list(tensor.shape)]) + b"\0")
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


def content_digest(pairs: Iterable[tuple[str, str]]) -> str:
    """The digest of a file: of the names of its tensors and their digests."""
    lines = sorted((name.encode(), _json([name, digest])) for name, digest in pairs)
    return hashlib.sha256(b"".join(line + b"\n" for _, line in lines)).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def elements(tensor: Tensor, payload: ByteSource | None, byte_order: ByteOrder) -> Iterator[bytes | memoryview]:
    """The elements as little-endian bytes in row-major order, in pieces of whole components that are valid until the next one.

    Raises :class:`NoContent` at once where the facts tell that it cannot be had, and later where bytes are missing.
    """
    reason = missing_content(tensor)
    if reason is not None:
        raise NoContent(reason)
    if tensor.element_count == 0:
        return iter(())
    if payload is None:
        raise NoContent(NOT_THERE)
    assert tensor.dtype is not None
    return _checked(_oriented(_raw(tensor, payload), tensor, tensor.dtype, byte_order))


def missing_content(tensor: Tensor) -> str | None:
    """Why the elements of a tensor cannot be had, as far as the facts tell without reading; None where nothing speaks
    against it."""
    if tensor.components:
        return COMPONENTS
    if tensor.dtype is None or tensor.shape is None or tensor.element_count is None:
        return "its type or shape is not known"
    if tensor.location == "meta" or (tensor.storage is not None and not tensor.storage.payload_expected):
        return NO_DATA
    if tensor.layout != "strided":
        return f"its layout is {tensor.layout}"
    if tensor.negative and tensor.dtype.family not in SIGNED_FAMILIES:
        return "it is marked negative, which its type cannot be"
    if tensor.element_count == 0:
        return None
    end = tensor.view_byte_count
    if tensor.storage is None or end is None:
        return "its view of a storage is not known"
    if tensor.dtype.values_per_byte > 1 and not _whole_rows(tensor):
        return "it is packed and not contiguous"
    return NOT_THERE if end > _bytes_there(tensor.storage) else None


def _bytes_there(storage: Storage) -> int:
    stored, announced = storage.stored_size or 0, storage.byte_count
    return stored if announced is None else min(stored, announced)


def _whole_rows(tensor: Tensor) -> bool:
    assert tensor.shape is not None and tensor.dtype is not None and tensor.storage_offset is not None
    return tensor.stride == contiguous_stride(tensor.shape) and tensor.storage_offset % tensor.dtype.values_per_byte == 0


def content_cost(tensor: Tensor) -> int:
    """About how many bytes of work the elements of a tensor are; 0 where they cannot be had. A few stored bytes can be shown
    as terabytes (stride 0), so whoever reads hostile files has to ask first."""
    if missing_content(tensor) is not None or tensor.element_count == 0:
        return 0
    view = _view(tensor)
    return max(view.count * view.unit, view.copies * COPY_COST)


def _view(tensor: Tensor) -> View:
    assert tensor.dtype is not None and tensor.shape is not None and tensor.storage_offset is not None
    if tensor.dtype.values_per_byte > 1:
        start = tensor.storage_offset // tensor.dtype.values_per_byte
        return View(start, [(packed_bytes(tensor.shape, tensor.dtype), 1)], 1)
    return view_of(tensor)


def _raw(tensor: Tensor, payload: ByteSource) -> Iterator[bytes | memoryview]:
    return read_view(_view(tensor), payload)


def _checked(pieces: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    try:
        yield from pieces
    except MissingBytes:
        raise NoContent(NOT_THERE) from None


def _oriented(
    pieces: Iterator[bytes | memoryview], tensor: Tensor, dtype: DType, byte_order: ByteOrder
) -> Iterator[bytes | memoryview]:
    """Turn components to little-endian and flip the sign bits that the view flips."""
    if byte_order == "big" and dtype.swap > 1:
        pieces = (_swapped(piece, dtype.swap) for piece in pieces)
    flips = _sign_flips(tensor, dtype)
    if any(flips):
        pieces = (_flipped(part, flips) for piece in pieces for part in _cut(piece))
    return pieces


def _swapped(piece: bytes | memoryview, width: int) -> memoryview:
    numbers = array(UNIT_CODES[width], bytes(piece))
    assert numbers.itemsize == width
    numbers.byteswap()
    return memoryview(numbers).cast("B")


def _sign_flips(tensor: Tensor, dtype: DType) -> bytes:
    """What is xored to each little-endian element: torch's lazy negation and conjugation are changes of sign bits."""
    components = dtype.size // dtype.swap
    flips = [tensor.negative ^ (tensor.conjugate and dtype.family == "complex" and number == 1) for number in range(components)]
    return b"".join(bytes(dtype.swap - 1) + (b"\x80" if flip else b"\0") for flip in flips)


def _cut(piece: bytes | memoryview) -> Iterator[bytes | memoryview]:
    yield from (piece[at : at + STREAM_BYTES] for at in range(0, len(piece), STREAM_BYTES))


def _flipped(piece: bytes | memoryview, flips: bytes) -> bytes:
    number = int.from_bytes(piece, sys.byteorder)
    mask = int.from_bytes(flips * (len(piece) // len(flips)), sys.byteorder)
    return (number ^ mask).to_bytes(len(piece), sys.byteorder)
