# SPDX-License-Identifier: Apache-2.0
"""How the tensors lie in the data: they have to follow one another without a hole, from the first byte to the last.

An empty tensor has to lie where the one before it ends (measured with the safetensors library).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fdd.core.span import Span
from fdd.formats.safetensors.header import TensorEntry


@dataclass(slots=True)
class Layout:
    """Where the tensors do not follow one another. Spans are absolute."""

    order: list[TensorEntry]
    """The entries with known offsets, in the order of their data."""
    holes: list[tuple[TensorEntry, Span]] = field(default_factory=list)
    """Bytes without an owner, and the tensor that follows them."""
    overlaps: list[tuple[TensorEntry, TensorEntry, Span]] = field(default_factory=list)
    """A tensor, the one in front of it that reaches into it, and the bytes they share."""
    misplaced: list[tuple[TensorEntry, int]] = field(default_factory=list)
    """Empty tensors, and the offset (in the data) at which they should lie."""
    trailing: Span = Span(0, 0)
    """Bytes behind the last tensor."""
    cut: list[tuple[TensorEntry, int]] = field(default_factory=list)
    """Tensors that reach behind the end of the file, and how many of their bytes are there."""
    data_end: int = 0
    """Bytes of data that the tensors ask for."""


def lay_out(entries: list[TensorEntry], data_start: int, size: int) -> Layout:
    """Sort the tensors by their offsets and hold them against each other and against the size of the file."""
    known = [entry for entry in entries if entry.begin is not None and entry.end is not None]
    layout = Layout(sorted(known, key=lambda entry: (entry.begin, entry.end)))
    position, last = 0, None
    for entry in layout.order:
        begin, end = entry.begin or 0, entry.end or 0
        if begin == end:
            if begin != position:
                layout.misplaced.append((entry, position))
            continue
        if begin > position:
            layout.holes.append((entry, Span(data_start + position, begin - position)))
        elif last is not None and begin < position:
            layout.overlaps.append((entry, last, Span(data_start + begin, min(position, end) - begin)))
        if data_start + end > size:
            layout.cut.append((entry, max(0, size - data_start - begin)))
        if end > position:
            position, last = end, entry
    layout.data_end = position
    layout.trailing = Span(data_start + position, max(0, size - data_start - position))
    return layout
