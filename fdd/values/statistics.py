# SPDX-License-Identifier: Apache-2.0
"""Statistics of stored numbers, taken as their bytes pass: how many are no number, infinite, zero; least and greatest.

Floats are looked at as whole numbers (performance.md 1.6): the greatest signed and the greatest unsigned pattern of a piece
tell whether anything in it is infinite or no number, and the least ones whether there are zeros. Only a piece where they do
is counted out. So half precision and 8-bit types cost no more than others, and need no library that knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fdd.core.errors import UsageError
from fdd.tensors.dtypes import DTYPES, DType
from fdd.values.patterns import COMPONENTS, FLOAT_TYPES, FloatType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.unsignedinteger[Any]]

PIECE_BYTES = 1 << 20
"""What is looked at at once: several passes over it find most of it in the cache, and calls cost little beside it."""
INTEGER_FAMILIES = frozenset({"int", "uint", "bool", "quantized"})
"""Families whose stored integers are looked at; of quantized types these are not the numbers they stand for."""


@dataclass(slots=True)
class ValueStatistics:
    """What was found in ``values`` numbers. ``least`` and ``greatest`` are of the finite ones, None where there are none."""

    values: int = 0
    nan: int = 0
    inf: int = 0
    zeros: int = 0
    least: float | int | None = None
    greatest: float | int | None = None

    def add(self, other: ValueStatistics) -> None:
        """Take in what was found in further numbers."""
        self.values += other.values
        self.nan += other.nan
        self.inf += other.inf
        self.zeros += other.zeros
        if other.least is not None and other.greatest is not None:
            self.stretch(other.least, other.greatest)

    def stretch(self, least: float, greatest: float) -> None:
        """Take in a range of finite numbers."""
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def to_dict(self) -> dict[str, Any]:
        """As a report holds it."""
        return {
            "values": self.values,
            "nan": self.nan,
            "inf": self.inf,
            "zeros": self.zeros,
            "min": self.least,
            "max": self.greatest,
        }


class _Counter(Protocol):
    """Looks at pieces of one element type, and says in the end what it found."""

    def count(self, numbers: Numbers) -> None: ...

    def found(self) -> ValueStatistics: ...


class _IntegerCounter:
    def __init__(self, numpy: Any, dtype: DType) -> None:
        self._numpy = numpy
        unsigned = dtype.family in ("uint", "bool") or dtype.name == "quint8"
        self._view = f"{'u' if unsigned else 'i'}{dtype.size}"
        self._found = ValueStatistics()

    def count(self, numbers: Numbers) -> None:
        values = numbers.view(self._view)
        least, greatest = int(values.min()), int(values.max())
        self._found.values += len(values)
        self._found.stretch(least, greatest)
        if least <= 0 <= greatest:
            self._found.zeros += len(values) - int(self._numpy.count_nonzero(values))

    def found(self) -> ValueStatistics:
        return self._found


class _FloatCounter:
    """Keeps the extremes of the patterns of all finite numbers: only the end decodes them."""

    def __init__(self, numpy: Any, kind: FloatType) -> None:
        self._numpy = numpy
        self._minimum, self._maximum = numpy.minimum.reduce, numpy.maximum.reduce
        self._kind = kind
        self._sign = kind.sign
        self._signed = f"i{kind.width}"
        self._found = ValueStatistics()
        self._extremes = (kind.sign, -kind.sign - 1, 2 * kind.sign, -1)
        """Least and greatest pattern read as a signed number, then as one without sign."""

    def count(self, numbers: Numbers) -> None:
        found = self._found
        found.values += len(numbers)
        extremes = self._extremes_of(numbers)
        if self._has_others(extremes):
            numbers = self._finite(numbers)
            if not len(numbers):
                return
            extremes = self._extremes_of(numbers)
        if self._kind.signed:
            if extremes[2] == 0:
                found.zeros += len(numbers) - int(self._numpy.count_nonzero(numbers))
            if extremes[0] == -self._sign:
                found.zeros += int(self._numpy.count_nonzero(numbers == self._sign))
        before = self._extremes
        self._extremes = (
            min(before[0], extremes[0]), max(before[1], extremes[1]), min(before[2], extremes[2]), max(before[3], extremes[3]),
        )  # fmt: skip

    def found(self) -> ValueStatistics:
        kind = self._kind
        signed_least, signed_most, least, most = self._extremes
        if most >= 0 and kind.signed:
            # Among negative numbers the one nearest to zero has the least pattern, signed or not.
            greatest = signed_most if signed_most >= 0 else signed_least + 2 * kind.sign
            self._found.stretch(kind.decode(most if most >= kind.sign else least), kind.decode(greatest))
        elif most >= 0:
            self._found.stretch(kind.decode(least), kind.decode(most))
        return self._found

    def _extremes_of(self, numbers: Numbers) -> tuple[int, int, int, int]:
        signed = numbers.view(self._signed)
        least, most = self._minimum, self._maximum
        return int(least(signed)), int(most(signed)), int(least(numbers)), int(most(numbers))

    def _has_others(self, extremes: tuple[int, int, int, int]) -> bool:
        """Whether there is anything that is not finite."""
        kind = self._kind
        signed_least, signed_most, _, most = extremes
        if not kind.signed:
            return most > kind.largest
        if kind.nan_for_minus_zero:
            return signed_least == -kind.sign
        return signed_most > kind.largest or most > (kind.sign | kind.largest)

    def _finite(self, numbers: Numbers) -> Numbers:
        """Count what is not finite, and return the rest."""
        kind, numpy, found = self._kind, self._numpy, self._found
        if kind.nan_for_minus_zero:
            others = numbers == kind.sign
        else:
            magnitudes = numbers & (kind.sign - 1) if kind.signed else numbers
            others = magnitudes > kind.largest
            if kind.infinity is not None:
                infinite = int(numpy.count_nonzero(magnitudes == kind.infinity))
                found.inf += infinite
                found.nan -= infinite
        found.nan += int(numpy.count_nonzero(others))
        finite: Numbers = numbers[~others]
        return finite


def has_statistics(dtype: DType) -> bool:
    """Whether numbers of this type can be looked at: all but packed and raw bits."""
    if dtype.values_per_byte > 1:
        return False
    return dtype.family in INTEGER_FAMILIES or COMPONENTS.get(dtype.name, dtype.name) in FLOAT_TYPES


class ValueTap:
    """A tap of :mod:`fdd.core.payload` over the numbers of one storage.

    ``cuts`` are ascending numbers of elements: what lies between two of them gets statistics of its own in :meth:`ranges`,
    which has one entry more than there are cuts. Of complex types the components are looked at, each as a number.
    Raises :class:`UsageError` where numpy is not installed.
    """

    def __init__(self, dtype: DType, byte_order: str, cuts: Sequence[int] = ()) -> None:
        try:
            import numpy
        except ImportError:
            raise UsageError("value statistics need numpy: install fdd again with pip") from None
        part = DTYPES[COMPONENTS.get(dtype.name, dtype.name)]
        kind = FLOAT_TYPES.get(part.name)
        self._numpy = numpy
        self._counters: list[_Counter] = [
            _FloatCounter(numpy, kind) if kind is not None else _IntegerCounter(numpy, part) for _ in range(len(cuts) + 1)
        ]
        self._width = part.size
        self._dtype = numpy.dtype(f"u{part.size}").newbyteorder(">" if byte_order == "big" else "<")
        self._ends = [cut * dtype.size for cut in cuts]
        self._range = 0
        self._position = 0
        self._rest = b""

    def update(self, data: memoryview) -> None:
        """Take the next bytes; they may end anywhere in a number."""
        if self._rest:
            missing = self._width - len(self._rest)
            whole = self._rest + bytes(data[:missing])
            data = data[missing:]
            self._rest = b""
            if len(whole) < self._width:
                self._rest = whole
                return
            self._take(memoryview(whole))
        usable = len(data) - len(data) % self._width
        self._take(data[:usable])
        self._rest = bytes(data[usable:])

    def _take(self, data: memoryview) -> None:
        """Look at whole numbers, a piece at a time, no piece over a cut."""
        at = 0
        while at < len(data):
            while self._range < len(self._ends) and self._position >= self._ends[self._range]:
                self._range += 1
            end = min(len(data), at + PIECE_BYTES)
            if self._range < len(self._ends):
                end = min(end, at + self._ends[self._range] - self._position)
            self._count(data[at:end])
            self._position += end - at
            at = end

    def _count(self, piece: memoryview) -> None:
        numbers = self._numpy.frombuffer(piece, self._dtype)
        if not numbers.flags.aligned or not self._dtype.isnative:
            # Passes over swapped or unaligned numbers are many times slower than a copy.
            numbers = numbers.astype(self._dtype.newbyteorder("="))
        self._counters[self._range].count(numbers)

    def ranges(self) -> list[ValueStatistics]:
        """What was found between the cuts."""
        return [counter.found() for counter in self._counters]
