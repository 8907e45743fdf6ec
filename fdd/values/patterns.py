# SPDX-License-Identifier: Apache-2.0
"""Bit patterns of floating-point types, read as whole numbers: which are finite, infinite, not a number.

As a whole number, the pattern of a float without its sign bit grows with its magnitude: finite numbers come first, then the
infinity if the type has one, then what is not a number (IEEE 754, section 3.4; OCP 8-bit Floating Point Specification;
for the `fnuz` types the pattern of minus zero alone is no number).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FloatType:
    """A floating-point type of ``width`` bytes. ``largest`` is the pattern of the largest finite number, ``infinity`` that of
    infinity (None: the type has none), ``decode`` turns the pattern of a finite number into it.

    ``nan_for_minus_zero``: the pattern with nothing but the sign bit is the one that is no number.
    ``signed`` is False where all bits are exponent.
    """

    width: int
    largest: int
    infinity: int | None
    decode: Callable[[int], float]
    nan_for_minus_zero: bool = False
    signed: bool = True

    @property
    def sign(self) -> int:
        """The pattern of the sign bit."""
        return 1 << (8 * self.width - 1)

    def number(self, pattern: int) -> float:
        """The number of any pattern, infinities and NaN too."""
        if self.nan_for_minus_zero:
            return math.nan if pattern == self.sign else self.decode(pattern)
        magnitude = pattern & (self.sign - 1) if self.signed else pattern
        if magnitude <= self.largest:
            return self.decode(pattern)
        return math.nan if magnitude != self.infinity else -math.inf if pattern & self.sign else math.inf


def _native(code: str, width: int) -> Callable[[int], float]:
    def decode(pattern: int) -> float:
        number: float = struct.unpack(f"<{code}", pattern.to_bytes(width, "little"))[0]
        return number

    return decode


def _bfloat16(pattern: int) -> float:
    return _native("f", 4)(pattern << 16)


def _small(exponent_bits: int, mantissa_bits: int, bias: int) -> Callable[[int], float]:
    """Numbers of the 8-bit types, finite ones."""

    def decode(pattern: int) -> float:
        sign = -1.0 if pattern >> 7 else 1.0
        exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = pattern & ((1 << mantissa_bits) - 1)
        if exponent == 0:
            return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
        return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)

    return decode


FLOAT_TYPES: dict[str, FloatType] = {
    "float64": FloatType(8, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0_0000_0000_0000, _native("d", 8)),
    "float32": FloatType(4, 0x7F7F_FFFF, 0x7F80_0000, _native("f", 4)),
    "float16": FloatType(2, 0x7BFF, 0x7C00, _native("e", 2)),
    "bfloat16": FloatType(2, 0x7F7F, 0x7F80, _bfloat16),
    "float8_e4m3fn": FloatType(1, 0x7E, None, _small(4, 3, 7)),
    "float8_e5m2": FloatType(1, 0x7B, 0x7C, _small(5, 2, 15)),
    "float8_e4m3fnuz": FloatType(1, 0x7F, None, _small(4, 3, 8), nan_for_minus_zero=True),
    "float8_e5m2fnuz": FloatType(1, 0x7F, None, _small(5, 2, 16), nan_for_minus_zero=True),
    "float8_e8m0fnu": FloatType(1, 0xFE, None, lambda pattern: math.ldexp(1.0, pattern - 127), signed=False),
}
"""dtype name -> its patterns. Complex types are two components of a type here."""
COMPONENTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""Complex dtype -> the type of its real and imaginary part."""
