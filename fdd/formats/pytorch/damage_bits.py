# SPDX-License-Identifier: Apache-2.0
"""Finds the one flipped bit behind a wrong CRC-32, from the two checksums and the length alone.

CRC-32 is linear: the exclusive-or of the checksums of two equally long texts depends only on where the texts differ. For
a single bit it is x to the power of the bit's distance from the end (times a constant), modulo the CRC polynomial. So
finding the bit is a discrete logarithm, solved by baby steps and giant steps: no byte of the payload is read.
"""

from __future__ import annotations

_POLYNOMIAL = 0xEDB88320
"""Of CRC-32 (IEEE 802.3), bits reversed."""
_ORDER = (1 << 32) - 1
"""Powers of x repeat after so many: longer texts have more than one such bit."""
_Matrix = tuple[int, ...]
"""A linear map of 32 bits: what becomes of each bit alone."""


def flipped_bit(recorded: int, computed: int, length: int) -> tuple[int, int] | None:
    """The (byte offset, bit) in a text of ``length`` bytes whose flip turns one CRC-32 into the other; bit 0 is the lowest.

    None where there is no such bit, or where the text is so long (512 MiB) that it would not be the only one.
    """
    syndrome = recorded ^ computed
    if not syndrome or not 0 < length * 8 < _ORDER:
        return None
    power = _logarithm(syndrome, 8 * length)
    if power is None:
        return None
    bytes_behind, rest = divmod(power - 1, 8)
    return length - 1 - bytes_behind, 7 - rest


def _logarithm(value: int, most: int) -> int | None:
    """The number of steps, 1 to ``most``, that lead from the constant 1 to ``value``."""
    rounds = max(4, (most.bit_length() + 1) // 2)
    stride = 1 << rounds
    reached: dict[int, int] = {}
    state = 1
    for count in range(1, stride + 1):
        state = _step(state)
        reached.setdefault(state, count)
    back = _power_of_two(tuple(_step_back(1 << bit) for bit in range(32)), rounds)
    for giant in range(0, most, stride):
        count = reached.get(value, 0)
        if count:
            return giant + count if giant + count <= most else None
        value = _apply(back, value)
    return None


def _step(value: int) -> int:
    """Multiply by x: one more bit behind the flipped one."""
    return value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)


def _step_back(value: int) -> int:
    """Divide by x."""
    return (value ^ _POLYNOMIAL) << 1 | 1 if value >> 31 else value << 1


def _apply(matrix: _Matrix, value: int) -> int:
    result = 0
    for image in matrix:
        if value & 1:
            result ^= image
        value >>= 1
    return result


def _power_of_two(matrix: _Matrix, rounds: int) -> _Matrix:
    """The map applied 2 ** ``rounds`` times."""
    for _ in range(rounds):
        matrix = tuple(_apply(matrix, image) for image in matrix)
    return matrix
