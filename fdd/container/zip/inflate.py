# SPDX-License-Identifier: Apache-2.0
"""Inflates stored spans into memory, as far as a limit."""

from __future__ import annotations

import zlib

from fdd.core.source import ByteSource
from fdd.core.span import Span


def inflate(source: ByteSource, span: Span, most: int) -> bytes | None:
    """Inflate a raw deflate stream, at most ``most`` bytes of it; None where it is damaged from the start."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    pieces: list[bytes] = []
    got = 0
    try:
        for chunk in source.stream(span):
            piece = inflater.decompress(chunk, most - got)
            pieces.append(piece)
            got += len(piece)
            if inflater.eof or got >= most:
                break
    except zlib.error:
        return b"".join(pieces) or None
    return b"".join(pieces)
