# SPDX-License-Identifier: Apache-2.0
"""Watches bool values as they are read: each byte has to be 0 or 1 (format.md 2.3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class BoolTap:
    """Counts the bytes that are neither 0 nor 1; ``first`` is the place of the first one in the contents."""

    count: int = 0
    first: int = 0
    _position: int = 0

    def update(self, data: memoryview) -> None:
        """Take the next bytes."""
        odd = bytes(data).translate(None, b"\x00\x01")
        if odd and not self.count:
            self.first = self._position + bytes(data).index(odd[0])
        self.count += len(odd)
        self._position += len(data)
