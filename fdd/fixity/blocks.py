# SPDX-License-Identifier: Apache-2.0
"""Checksums of equal blocks of a part, taken as its bytes pass."""

from __future__ import annotations

from fdd.core.digests import crc32_function

BLOCK_BYTES = 4 << 20
BLOCKS_FROM = 32 << 20
"""Segments from this size on get blocks: a manifest of a 10 GB tensor grows by 25 KB."""
LONE_BLOCK_BYTES = 4 << 10
LONE_BLOCKS = 64
"""A file that is one segment gets about so many blocks, however small: nothing else could tell where it was hurt."""


def block_size(length: int, *, alone: bool) -> int | None:
    """The size of the blocks that a segment of ``length`` bytes gets, None for none. ``alone``: it is the whole file."""
    if alone and length > LONE_BLOCK_BYTES:
        return min(BLOCK_BYTES, max(LONE_BLOCK_BYTES, 1 << (length // LONE_BLOCKS).bit_length()))
    return BLOCK_BYTES if length >= BLOCKS_FROM else None


class BlockTap:
    """A tap of :mod:`fdd.core.payload` that keeps the CRC-32 of every block of ``size`` bytes.

    ``missing`` bytes of the first blocks never pass: the values of these blocks are of no use.
    """

    def __init__(self, size: int, missing: int = 0) -> None:
        whole, begun = divmod(missing, size)
        self.size = size
        self.values: list[int] = [-1] * whole + ([0] if begun else [])
        self._crc32 = crc32_function()
        self._room = size - begun if begun else 0

    def update(self, data: memoryview) -> None:
        """Take the next bytes."""
        while data:
            if not self._room:
                self.values.append(0)
                self._room = self.size
            piece = data[: self._room]
            self.values[-1] = self._crc32(piece, self.values[-1])
            self._room -= len(piece)
            data = data[len(piece) :]
