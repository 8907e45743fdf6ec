# SPDX-License-Identifier: Apache-2.0
"""Data descriptors (APPNOTE 4.3.9). Their signature is optional and their width is told nowhere: both are judged by fit."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from fdd.container.zip.structs import DESCRIPTOR_SIGNATURE, DataDescriptor, Fault
from fdd.container.zip.window import Window
from fdd.core.span import Span

NARROW = Struct("<III")
WIDE = Struct("<IQQ")
LONGEST_DESCRIPTOR = 4 + WIDE.size
LENGTHS = (16, 24, 12, 20)
"""With signature in both widths, then without: all lengths a descriptor can have, the usual ones first."""


class Expectation(NamedTuple):
    """What is known of a descriptor before it is read.

    ``required``: bit 3 is set in a header. ``wide``: the local header has a ZIP64 field. ``room``: bytes up to the next
    structure. The other three are what the directory says.
    """

    required: bool
    wide: bool
    room: int
    crc32: int
    compressed_size: int
    uncompressed_size: int


def decode(data: bytes, length: int, position: int) -> DataDescriptor:
    """Read the first ``length`` (one of :data:`LENGTHS`) bytes of ``data`` as a descriptor that stands at ``position``."""
    has_signature = length in (16, 24)
    layout, width = (NARROW, 4) if length in (12, 16) else (WIDE, 8)
    crc32, compressed, uncompressed = layout.unpack_from(data, 4 if has_signature else 0)
    return DataDescriptor(Span(position, length), has_signature, crc32, compressed, uncompressed, width)


def read_descriptor(
    window: Window, position: int, expected: Expectation, ahead: int = 0
) -> tuple[DataDescriptor | None, Fault | None]:
    """Read the descriptor at ``position``, directly behind a payload.

    Where none is required, one is still recorded if its signature stands there and there is room for it.
    """
    data = window.read(position, LONGEST_DESCRIPTOR, ahead)
    signed = data[:4] == DESCRIPTOR_SIGNATURE
    if not expected.required and (not signed or expected.room < 16):
        return None, None
    if signed and len(data) >= 16:
        usual = decode(data, 24 if expected.wide and len(data) >= 24 else 16, position)
        if usual.compressed_size == expected.compressed_size and usual.uncompressed_size == expected.uncompressed_size:
            return usual, None
        return _best(data, position, (16, 24), expected)[0], None
    if len(data) < 12 or signed:
        code = "descriptor-cut" if position + len(data) >= window.size else "descriptor-missing"
        return None, Fault(code, position, len(data), "a data descriptor")
    damaged = Fault("descriptor-signature", position, 4, "50 4B 07 08")
    fitting = tuple(length for length in LENGTHS if length <= min(expected.room, len(data)))
    best, score = _best(data, position, fitting, expected) if fitting else (None, 0)
    if best is None or score < _SURE:
        if expected.room not in fitting:
            return None, Fault("descriptor-missing", position, 0, "a data descriptor")
        best = decode(data, expected.room, position)
    return best, damaged if best.has_signature else None


_SURE = 7
"""Two of the three fields agree with the directory."""


def _best(data: bytes, position: int, lengths: tuple[int, ...], expected: Expectation) -> tuple[DataDescriptor, int]:
    """The reading that agrees best with the directory, then with the room there is, then with the local header."""
    candidates = [decode(data, length, position) for length in lengths if length <= len(data)]
    ranked = [(_agreement(item, expected), _likelihood(item, expected), item) for item in candidates]
    score, _, best = max(ranked, key=lambda rank: rank[:2])
    return best, score


def _agreement(item: DataDescriptor, expected: Expectation) -> int:
    same_crc = item.crc32 == expected.crc32
    same_compressed = item.compressed_size == expected.compressed_size
    same_uncompressed = item.uncompressed_size == expected.uncompressed_size
    return 3 * same_crc + 4 * same_compressed + 4 * same_uncompressed


def _likelihood(item: DataDescriptor, expected: Expectation) -> int:
    return 2 * (item.span.length == expected.room) + ((item.width == 8) == expected.wide)


def find_displaced(window: Window, payload: int, behind: int) -> DataDescriptor | None:
    """A descriptor in front of the structure at ``behind`` that counts exactly the bytes from ``payload`` up to itself."""
    for length in (16, 24):
        position = behind - length
        data = window.read(position, length) if position >= payload else b""
        if data[:4] == DESCRIPTOR_SIGNATURE:
            found = decode(data, length, position)
            if found.compressed_size == position - payload:
                return found
    return None
