# SPDX-License-Identifier: Apache-2.0
"""How two tensors of one type and shape differ: how many values, and by how much at most. In bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fdd.core.errors import UsageError
from fdd.tensors.dtypes import DType
from fdd.values.patterns import COMPONENTS, FLOAT_TYPES
from fdd.values.statistics import INTEGER_FAMILIES

PIECE_BYTES = 1 << 20
"""What is held against each other at once; a few copies of it are made."""


@dataclass(slots=True)
class Difference:
    """``differing`` of ``values`` have other bit patterns. ``largest`` is the greatest absolute difference of finite ones (of
    complex numbers: of their distance), None where there are none or the type has no numbers. ``not_finite`` are pairs in
    which one or both are infinite or NaN. Packed and raw types count bytes."""

    values: int = 0
    differing: int = 0
    largest: float | int | None = None
    not_finite: int = 0

    def raise_to(self, distance: float) -> None:
        """Take in a distance."""
        self.largest = distance if self.largest is None else max(self.largest, distance)


def measure(first: Iterator[bytes | memoryview], second: Iterator[bytes | memoryview], dtype: DType) -> Difference:
    """Hold two streams of little-endian elements against each other. Raises :class:`UsageError` without numpy."""
    try:
        import numpy
    except ImportError:
        raise UsageError("telling how values differ needs numpy: install fdd again with pip") from None
    ruler = _Ruler(numpy, dtype)
    found = Difference()
    for left, right in _aligned(first, second):
        ruler.hold(left, right, found)
    return found


def _aligned(
    first: Iterator[bytes | memoryview], second: Iterator[bytes | memoryview]
) -> Iterator[tuple[memoryview, memoryview]]:
    """Pieces of equal length. A piece is used up before its stream is asked for the next."""
    left = right = memoryview(b"")
    while True:
        left = left or memoryview(next(first, b""))
        right = right or memoryview(next(second, b""))
        length = min(len(left), len(right), PIECE_BYTES)
        if not length:
            return
        yield left[:length], right[:length]
        left, right = left[length:], right[length:]


class _Ruler:
    """Measures the values of one type."""

    def __init__(self, numpy: Any, dtype: DType) -> None:
        self._numpy = numpy
        self._dtype = dtype
        self._part = COMPONENTS.get(dtype.name, dtype.name)
        self._parts = 2 if dtype.name in COMPONENTS else 1
        self._width = dtype.size // self._parts
        self._kind = FLOAT_TYPES.get(self._part)
        self._table: Any = None
        if self._kind is not None and self._width == 1:
            self._table = numpy.array([self._kind.number(pattern) for pattern in range(256)])

    def hold(self, left: memoryview, right: memoryview, found: Difference) -> None:
        a, b = self._patterns(left), self._patterns(right)
        others = (a != b).any(axis=1)
        found.values += len(others)
        count = int(self._numpy.count_nonzero(others))
        if not count:
            return
        found.differing += count
        a, b = a[others], b[others]
        if self._kind is not None:
            self._floats(a, b, found)
        elif self._dtype.family in INTEGER_FAMILIES and self._dtype.values_per_byte == 1:
            self._integers(a[:, 0], b[:, 0], found)

    def _patterns(self, data: memoryview) -> Any:
        numbers = self._numpy.frombuffer(data, f"<u{self._width}")
        if sys.byteorder != "little":
            numbers = numbers.astype(numbers.dtype.newbyteorder("="))
        return numbers.reshape(-1, self._parts)

    def _floats(self, a: Any, b: Any, found: Difference) -> None:
        numpy = self._numpy
        # Signalling NaN are invalid to convert, and the distance of two finite float64 can be beyond float64: it is told as
        # the greatest there is.
        with numpy.errstate(invalid="ignore", over="ignore"):
            a, b = self._numbers(a), self._numbers(b)
            finite = (numpy.isfinite(a) & numpy.isfinite(b)).all(axis=1)
            found.not_finite += len(finite) - int(numpy.count_nonzero(finite))
            steps = numpy.abs(a[finite] - b[finite])
            distances = steps[:, 0] if self._parts == 1 else numpy.hypot(steps[:, 0], steps[:, 1])
        if len(distances):
            found.raise_to(min(float(distances.max()), sys.float_info.max))

    def _numbers(self, patterns: Any) -> Any:
        numpy = self._numpy
        if self._table is not None:
            return self._table[patterns]
        if self._part == "bfloat16":
            return (patterns.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
        return patterns.view(f"f{self._width}").astype(numpy.float64)

    def _integers(self, a: Any, b: Any, found: Difference) -> None:
        """Differences modulo the width are exact as unsigned numbers, where the signed ones would overflow."""
        numpy = self._numpy
        signed = self._dtype.family in ("int", "quantized") and self._dtype.name != "quint8"
        x, y = (a.view(f"i{self._width}"), b.view(f"i{self._width}")) if signed else (a, b)
        found.raise_to(int(numpy.where(x > y, a - b, b - a).max()))
