# SPDX-License-Identifier: Apache-2.0
"""Which tensors look at which bytes, found quickly however many there are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from fdd.core.span import Span
from fdd.fixity.manifest import TensorEntry


class TensorIndex:
    """The tensors of a manifest by place. Deflated ones have none: they go by their record."""

    def __init__(self, tensors: Sequence[TensorEntry]) -> None:
        placed = [(tensor.span, number) for number, tensor in enumerate(tensors) if tensor.span is not None]
        placed.sort(key=lambda pair: (pair[0].offset, pair[1]))
        self._tensors = tensors
        self._spans = placed
        self._offsets = [span.offset for span, _ in placed]
        self._furthest = list(accumulate((span.end for span, _ in placed), max))
        self._unplaced: dict[str, list[int]] = {}
        for number, tensor in enumerate(tensors):
            if tensor.span is None and tensor.record is not None:
                self._unplaced.setdefault(tensor.record, []).append(number)

    def names(self, spans: Iterable[Span], record: str | None) -> tuple[str, ...]:
        """Names of the tensors that look at any byte of ``spans``, or whose bytes ``record`` holds deflated; in the order of
        the manifest."""
        found = set(self._unplaced.get(record, ())) if record is not None else set()
        for wanted in spans:
            at = bisect_left(self._offsets, wanted.end) - 1
            # Backwards, as far as anything reaches behind the beginning.
            while at >= 0 and self._furthest[at] > wanted.offset:
                span, number = self._spans[at]
                if span.overlaps(wanted):
                    found.add(number)
                at -= 1
        return tuple(self._tensors[number].name for number in sorted(found))
