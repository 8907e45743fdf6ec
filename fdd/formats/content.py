# SPDX-License-Identifier: Apache-2.0
"""What the tensors of a file hold, through the seam of formats: digests, and the elements themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fdd.core.errors import LimitExceeded
from fdd.core.model import Document
from fdd.core.source import ByteSource
from fdd.core.text import valid_text
from fdd.formats.plugin import Format
from fdd.limits import Limits
from fdd.tensors.content import (
    COMPONENTS,
    ByteOrder,
    NoContent,
    content_cost,
    content_digest,
    digest_elements,
    elements,
    flat_tensors,
)
from fdd.tensors.model import Storage, Tensor

MOST_TIMES = 64
MOST_MORE = 1 << 30
"""Tensors may show the same bytes again and again: in all, this many times the size of the file and as many bytes more are
worked through. Real files stay far below; a hostile one can ask for exabytes."""
TOO_MUCH = "limit: its elements are too many for so small a file"


@dataclass(frozen=True, slots=True)
class TensorContent:
    """A tensor and the digest of its elements, or the reason why it has none."""

    name: str
    tensor: Tensor
    digest: str | None
    reason: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing: tensors made of components have digests only there."""
        return self.digest is not None or self.reason == COMPONENTS


@dataclass(frozen=True, slots=True)
class Content:
    """Digests of all tensors of a file, in its order. ``byte_order``: little, big, mixed (files within the file differ),
    unknown (taken for little), none (no numbers)."""

    tensors: tuple[TensorContent, ...]
    byte_order: str

    @property
    def digest(self) -> str | None:
        """The digest of the file; None where a tensor has none."""
        if not all(entry.is_whole for entry in self.tensors):
            return None
        return content_digest((entry.name, entry.digest) for entry in self.tensors if entry.digest is not None)


class ContentReader:
    """Reads the elements of the tensors of one file, within limits that count for all of them together."""

    def __init__(self, fmt: Format, document: Document, limits: Limits) -> None:
        self._format = fmt
        self._document = document
        self._limits = limits
        self._left = MOST_TIMES * document.source.size + MOST_MORE

    def byte_order(self, storage: Storage | None) -> str:
        """`little`, `big` or `unknown`."""
        stated = self._format.byte_order(self._document, storage) if storage is not None else None
        return stated or "unknown"

    def digest(self, tensor: Tensor) -> str:
        """The digest of a tensor. Raises :class:`NoContent`, and SourceError where reading fails."""
        try:
            return digest_elements(tensor, *self._place(tensor))
        except LimitExceeded as error:
            raise NoContent(f"limit: {error}") from error

    def elements(self, tensor: Tensor) -> Iterator[bytes | memoryview]:
        """See :func:`fdd.tensors.content.elements`."""
        try:
            yield from elements(tensor, *self._place(tensor))
        except LimitExceeded as error:
            raise NoContent(f"limit: {error}") from error

    def _place(self, tensor: Tensor) -> tuple[ByteSource | None, ByteOrder]:
        cost = content_cost(tensor)
        if cost > self._left:
            raise NoContent(TOO_MUCH)
        self._left -= cost
        if tensor.storage is None:
            return None, "little"
        payload = self._format.payload(self._document, tensor.storage, self._limits)
        return payload, "big" if self.byte_order(tensor.storage) == "big" else "little"

    def _try(self, tensor: Tensor) -> tuple[str | None, str | None]:
        try:
            return self.digest(tensor), None
        except NoContent as error:
            return None, str(error)

    def all(self) -> Content:
        """The digests of all tensors; equal views of one storage are read once."""
        known: dict[tuple[object, ...], tuple[str | None, str | None]] = {}
        found: list[TensorContent] = []
        orders: set[str] = set()
        for name, tensor in flat_tensors(self._format.tensors(self._document)):
            key = (id(tensor) if tensor.storage is None else id(tensor.storage), *_view_key(tensor))
            if key not in known:
                known[key] = self._try(tensor)
            digest, reason = known[key]
            if tensor.storage is not None and digest is not None:
                orders.add(self.byte_order(tensor.storage))
            found.append(TensorContent(valid_text(name), tensor, digest, reason))
        return Content(tuple(found), next(iter(orders), "none") if len(orders) < 2 else "mixed")


def _view_key(tensor: Tensor) -> tuple[object, ...]:
    """What makes two tensors on one storage show the same elements."""
    dtype = tensor.dtype.name if tensor.dtype is not None else None
    flags = (tensor.layout, tensor.location == "meta", tensor.conjugate, tensor.negative, bool(tensor.components))
    return dtype, tensor.shape, tensor.stride, tensor.storage_offset, *flags
