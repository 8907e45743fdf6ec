# SPDX-License-Identifier: Apache-2.0
"""Checksums: which algorithms there are, and the fastest CRC-32 that is installed."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Protocol

from fdd.core.errors import UsageError

ALGORITHMS = ("md5", "sha1", "sha256", "sha384", "sha512", "blake2b", "blake3")
"""The names reports and manifests use, in the order they are listed. blake3 needs the extra `fast`."""
DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128, "blake2b": 128, "blake3": 64}
"""Algorithm -> hexadecimal digits of its digests. Where only a length is known, it is the first of that length."""
FAST_FROM = 4 << 10
"""Bytes from which isal is worth its call: zlib takes a little over a microsecond for fewer."""


class Hasher(Protocol):
    """What hashlib objects and blake3 have in common."""

    def update(self, data: bytes | memoryview, /) -> object: ...

    def hexdigest(self) -> str: ...


def new_hasher(algorithm: str) -> Hasher:
    """Start a digest. Raises :class:`UsageError` for an unknown name or a missing library."""
    if algorithm == "blake3":
        try:
            import blake3  # an optional extra, loaded only when asked for
        except ImportError:
            raise UsageError("the digest blake3 needs the extra `fast`: pip install 'fdd[fast]'") from None
        hasher: Hasher = blake3.blake3()
        return hasher
    if algorithm not in ALGORITHMS:
        raise UsageError(f"unknown digest {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    return hashlib.new(algorithm, usedforsecurity=False)


def check_algorithms(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repeats, in the order given; raise :class:`UsageError` where one cannot be computed."""
    unique = tuple(dict.fromkeys(names))
    for name in unique:
        new_hasher(name)
    return unique


@cache
def crc32_function() -> Callable[[bytes | memoryview, int], int]:
    """``crc32(data, value)``: the IEEE 802.3 CRC-32 of ZIP, continued from ``value`` (0 to begin), by the fastest
    library that is installed. Results are the same."""
    # isal computes it about three times as fast as zlib (performance.md 1).
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    fast: Callable[[bytes | memoryview, int], int] = isal_zlib.crc32

    def crc32(data: bytes | memoryview, value: int) -> int:
        if len(data) < FAST_FROM:
            return zlib.crc32(data, value)
        result = fast(data, value)
        # On processors with AVX-512, isal leaves the upper halves of the vector registers in use, and every later SHA-256 of
        # this thread, and of threads it starts, takes a third longer (measured on Zen 4: 0.62 s/GB against 0.83). OpenSSL's
        # SHA-512 sets them free (VZEROUPPER), here in 0.6 microseconds. Where that is not so, nothing but those is lost.
        hashlib.sha512(usedforsecurity=False).digest()
        return result

    return crc32


def has_fast_crc32() -> bool:
    """Whether the CRC-32 is so fast that it needs no thread of its own."""
    return crc32_function() is not zlib.crc32
