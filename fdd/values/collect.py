# SPDX-License-Identifier: Apache-2.0
"""Statistics for a report: of each storage, and of each tensor that shows a part of one without gaps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fdd.core.errors import LimitExceeded
from fdd.core.model import Document
from fdd.core.payload import Part, read_payload
from fdd.core.span import Span
from fdd.core.text import valid_text
from fdd.formats.plugin import Format
from fdd.limits import Limits
from fdd.tensors.content import flat_tensors, missing_content
from fdd.tensors.dtypes import DType
from fdd.tensors.model import Storage, Tensor
from fdd.values.statistics import ValueStatistics, ValueTap, has_statistics

MOST_CUTS = 10_000
"""Storages that are cut into more parts get statistics as a whole only."""


@dataclass(slots=True)
class _Group:
    """A storage as one element type sees it. ``tensors``: name, first element, element behind the last one."""

    storage: Storage
    dtype: DType
    tensors: list[tuple[str, int, int]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    tap: ValueTap | None = None

    @property
    def length(self) -> int:
        """Bytes to look at: what is there of what is announced."""
        stored, announced = self.storage.stored_size or 0, self.storage.byte_count
        return stored if announced is None else min(stored, announced)

    def rows(self) -> Iterator[dict[str, Any]]:
        assert self.tap is not None
        found_in = self.tap.ranges()
        record = valid_text(self.storage.record) if self.storage.record is not None else None
        place = {"record": record, "dtype": self.dtype.name}
        yield place | _merged(found_in).to_dict()
        for name, first, end in self.tensors:
            ranges = found_in[bisect_right(self.cuts, first) : bisect_left(self.cuts, end) + 1] if first < end else []
            found = _merged(ranges)
            yield {"tensor": valid_text(name)} | place | found.to_dict()


class StatisticsCollector:
    """Watches the numbers of a file.

    ``parts`` have to pass through a payload pass; :meth:`finish` reads what could not be in it, and gives the rows.
    """

    def __init__(self, fmt: Format, document: Document, limits: Limits) -> None:
        self._format = fmt
        self._document = document
        self._limits = limits
        self._groups = _groups(fmt, document)
        self.parts: list[Part] = []
        self._apart: list[_Group] = []
        for group in self._groups:
            payload = fmt.payload(document, group.storage, limits)
            if payload is None:
                continue
            group.tap = ValueTap(group.dtype, fmt.byte_order(document, group.storage) or "little", group.cuts)
            if group.storage.span is None:
                self._apart.append(group)
            else:
                span = Span(group.storage.span.offset, min(group.length, group.storage.span.length))
                self.parts.append(Part(span, taps=(group.tap,), checksum=False))

    def read(self) -> None:
        """Read the parts on their own, where nothing else is read. Raises SourceError where reading fails."""
        read_payload(self._document.source, self.parts)

    def finish(self) -> tuple[dict[str, Any], ...]:
        """Read what lies deflated, and return a row for each storage and each tensor. Raises SourceError."""
        for group in self._apart:
            payload = self._format.payload(self._document, group.storage, self._limits)
            assert payload is not None and group.tap is not None
            try:
                for piece in payload.stream(Span(0, group.length)):
                    group.tap.update(memoryview(piece))
            except LimitExceeded:
                group.tap = None
        return tuple(row for group in self._groups if group.tap is not None for row in group.rows())


def _groups(fmt: Format, document: Document) -> list[_Group]:
    groups: dict[tuple[int, str], _Group] = {}
    for name, tensor in flat_tensors(fmt.tensors(document)):
        if tensor.storage is None or tensor.dtype is None or not has_statistics(tensor.dtype):
            continue
        group = groups.setdefault((id(tensor.storage), tensor.dtype.name), _Group(tensor.storage, tensor.dtype))
        place = _place(tensor)
        if place is not None:
            group.tensors.append((name, *place))
    for group in groups.values():
        ends = {end for _, *place in group.tensors for end in place}
        cuts = sorted(end for end in ends if 0 < end < group.length // group.dtype.size)
        if len(cuts) > MOST_CUTS:
            group.tensors.clear()
        else:
            group.cuts = cuts
    return list(groups.values())


def _place(tensor: Tensor) -> tuple[int, int] | None:
    """The elements of its storage that a tensor shows, each once and without a gap; None where there is no such run."""
    if missing_content(tensor) is not None or tensor.conjugate or tensor.negative:
        return None
    assert tensor.shape is not None
    if 0 in tensor.shape:
        return 0, 0
    assert tensor.stride is not None and tensor.storage_offset is not None
    count = 1
    for step, size in sorted((step, size) for size, step in zip(tensor.shape, tensor.stride, strict=True) if size > 1):
        if step != count:
            return None
        count *= size
    return tensor.storage_offset, tensor.storage_offset + count


def _merged(ranges: list[ValueStatistics]) -> ValueStatistics:
    found = ValueStatistics()
    for part in ranges:
        found.add(part)
    return found
