# SPDX-License-Identifier: Apache-2.0
"""Which tensors look at which bytes, found quickly however many there are and however they overlap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from fdd.core.span import Span
from fdd.fixity.manifest import TensorEntry


class TensorIndex:
    """The tensors of a manifest by place. Deflated ones have none: they go by their record.

    Tensors are kept by the binary magnitude of their length: among those below some length, none that begins that much in
    front of a place reaches it, and all that do begin so near that few others stand between.
    """

    def __init__(self, tensors: Sequence[TensorEntry]) -> None:
        self._tensors = tensors
        self._by_magnitude: dict[int, list[tuple[int, int]]] = {}
        """Bits of the length -> (offset, number of the tensor), ascending."""
        self._unplaced: dict[str, list[int]] = {}
        for number, tensor in enumerate(tensors):
            if tensor.span is not None:
                self._by_magnitude.setdefault(tensor.span.length.bit_length(), []).append((tensor.span.offset, number))
            elif tensor.record is not None:
                self._unplaced.setdefault(tensor.record, []).append(number)
        for placed in self._by_magnitude.values():
            placed.sort()

    def names(self, spans: Iterable[Span], record: str | None) -> tuple[str, ...]:
        """Names of the tensors that look at any byte of ``spans``, or whose bytes ``record`` holds deflated; in the order of
        the manifest."""
        found = set(self._unplaced.get(record, ())) if record is not None else set()
        for wanted in spans:
            for bits, placed in self._by_magnitude.items():
                first = bisect_right(placed, (wanted.offset - (1 << bits), -1))
                behind = bisect_left(placed, (wanted.end, -1))
                found.update(number for _, number in placed[first:behind] if self._overlaps(number, wanted))
        return tuple(self._tensors[number].name for number in sorted(found))

    def _overlaps(self, number: int, wanted: Span) -> bool:
        span = self._tensors[number].span
        return span is not None and span.overlaps(wanted)
