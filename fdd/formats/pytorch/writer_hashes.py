# SPDX-License-Identifier: Apache-2.0
"""String hashes and the walking order of hash sets in the two C++ libraries that torch is built with (format.md 1.12).

Checked against GCC 12's libstdc++ and libc++ 14 with three thousand names of 1 to 200 bytes, at every growth of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

_MASK = (1 << 64) - 1

# libstdc++ (Linux): MurmurHash64A form, and the hash set that keeps all nodes in one list.

_MURMUR_SEED = 0xC70F6907
_MURMUR_MULTIPLIER = 0xC6A4A7935BD1E995
_PRIMES = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679, 5967347,
)  # fmt: skip
"""Bucket counts of a growing libstdc++ set (measured with GCC 12 up to three million names)."""


def _shift_mix(value: int) -> int:
    return value ^ (value >> 47)


def murmur_hash(name: bytes, order: Literal["little", "big"]) -> int:
    """Hash as std::hash<std::string> does; only the 8-byte words depend on the byte order of the machine."""
    value = _MURMUR_SEED ^ (len(name) * _MURMUR_MULTIPLIER & _MASK)
    whole = len(name) & ~7
    for start in range(0, whole, 8):
        word = int.from_bytes(name[start : start + 8], order) * _MURMUR_MULTIPLIER & _MASK
        value = (value ^ (_shift_mix(word) * _MURMUR_MULTIPLIER & _MASK)) * _MURMUR_MULTIPLIER & _MASK
    if whole < len(name):
        value = (value ^ int.from_bytes(name[whole:], "little")) * _MURMUR_MULTIPLIER & _MASK
    return _shift_mix(_shift_mix(value) * _MURMUR_MULTIPLIER & _MASK)


class _NodeList:
    """A singly linked list of hashes with, for each bucket, the node in front of the bucket's first one (-1: the head)."""

    def __init__(self, hashes: Sequence[int]) -> None:
        self.hashes = hashes
        self.following: list[int | None] = [None] * len(hashes)
        self.first: int | None = None
        self.before: dict[int, int] = {}
        self.buckets = 1

    def next_of(self, node: int) -> int | None:
        return self.first if node < 0 else self.following[node]

    def link(self, node: int, target: int | None) -> None:
        if node < 0:
            self.first = target
        else:
            self.following[node] = target

    def insert(self, node: int) -> None:
        """Put a node in front of its bucket's first one, or of the whole list where the bucket is empty."""
        bucket = self.hashes[node] % self.buckets
        before = self.before.get(bucket)
        if before is not None:
            self.following[node] = self.next_of(before)
            self.link(before, node)
            return
        old = self.first
        self.following[node] = old
        self.first = node
        if old is not None:
            self.before[self.hashes[old] % self.buckets] = node
        self.before[bucket] = -1

    def __iter__(self) -> _NodeWalk:
        return _NodeWalk(self)


class _NodeWalk:
    def __init__(self, nodes: _NodeList) -> None:
        self._nodes = nodes
        self._at = nodes.first

    def __iter__(self) -> _NodeWalk:
        return self

    def __next__(self) -> int:
        node = self._at
        if node is None:
            raise StopIteration
        self._at = self._nodes.following[node]
        return node


def libstdcxx_order(hashes: Sequence[int]) -> list[int]:
    """Return the hashes in the order in which a libstdc++ set that got them one by one is walked."""
    nodes = _NodeList(hashes)
    for node in range(len(hashes)):
        if node == 0 or node + 1 > nodes.buckets:
            _grow_libstdcxx(nodes, 13 if node == 0 else _next_bucket_count(2 * nodes.buckets))
        nodes.insert(node)
    return [hashes[node] for node in nodes]


def _next_bucket_count(wanted: int) -> int:
    return next((prime for prime in _PRIMES if prime >= wanted), wanted)


def _grow_libstdcxx(nodes: _NodeList, buckets: int) -> None:
    order = list(nodes)
    nodes.first, nodes.before, nodes.buckets = None, {}, buckets
    for node in order:
        nodes.insert(node)


# libc++ (macOS): the first version of CityHash64, and a set that differs from the other one in how it grows.

_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_K_PAIR = 0x9DDFEA08EB382D69


def libcxx_order(hashes: Sequence[int]) -> list[int]:
    """Return the hashes in the order in which a libc++ set that got them one by one is walked."""
    nodes = _NodeList(hashes)
    nodes.buckets = 0
    for node in range(len(hashes)):
        if node + 1 > nodes.buckets:
            _grow_libcxx(nodes, _libcxx_bucket_count(nodes.buckets))
        nodes.insert(node)
    return [hashes[node] for node in nodes]


def _libcxx_bucket_count(buckets: int) -> int:
    if buckets == 0:
        return 2
    wanted = 2 * buckets + 1
    while any(wanted % divisor == 0 for divisor in range(2, int(wanted**0.5) + 1)):
        wanted += 1
    return wanted


def _grow_libcxx(nodes: _NodeList, buckets: int) -> None:
    """Keep the order of the list, but move a node whose bucket was met before to the front of that bucket's run."""
    nodes.buckets, nodes.before = buckets, {}
    if nodes.first is None:
        return
    previous = nodes.first
    previous_bucket = nodes.hashes[previous] % buckets
    nodes.before[previous_bucket] = -1
    while (node := nodes.following[previous]) is not None:
        bucket = nodes.hashes[node] % buckets
        if bucket == previous_bucket:
            previous = node
        elif bucket not in nodes.before:
            nodes.before[bucket] = previous
            previous, previous_bucket = node, bucket
        else:
            nodes.following[previous] = nodes.following[node]
            nodes.following[node] = nodes.next_of(nodes.before[bucket])
            nodes.link(nodes.before[bucket], node)


def _word(text: bytes, start: int, length: int = 8) -> int:
    return int.from_bytes(text[start : start + length], "little")


def _rotate(value: int, shift: int) -> int:
    value &= _MASK
    return ((value >> shift) | (value << (64 - shift))) & _MASK


def _hash_pair(first: int, second: int) -> int:
    first, second = first & _MASK, second & _MASK
    one = _shift_mix((first ^ second) * _K_PAIR & _MASK)
    two = _shift_mix((second ^ one) * _K_PAIR & _MASK)
    return two * _K_PAIR & _MASK


def city_hash(name: bytes) -> int:
    """Hash as libc++'s std::hash<std::string> does on a little-endian 64-bit machine."""
    if len(name) <= 16:
        return _city_upto_16(name)
    if len(name) <= 32:
        return _city_17_to_32(name)
    return _city_33_to_64(name) if len(name) <= 64 else _city_long(name)


def _city_upto_16(name: bytes) -> int:
    length = len(name)
    if length > 8:
        first, last = _word(name, 0), _word(name, length - 8)
        return _hash_pair(first, _rotate(last + length, length)) ^ last
    if length >= 4:
        # The first word is shifted as a 32-bit number: its upper three bits are lost.
        return _hash_pair(length + (_word(name, 0, 4) << 3 & 0xFFFFFFFF), _word(name, length - 4, 4))
    if length:
        front = name[0] + (name[length >> 1] << 8)
        back = length + (name[-1] << 2)
        return _shift_mix((front * _K2 ^ back * _K3) & _MASK) * _K2 & _MASK
    return _K2


def _city_17_to_32(name: bytes) -> int:
    length = len(name)
    a, b = _word(name, 0) * _K1 & _MASK, _word(name, 8)
    c, d = _word(name, length - 8) * _K2 & _MASK, _word(name, length - 16) * _K0 & _MASK
    return _hash_pair(_rotate(a - b, 43) + _rotate(c, 30) + d, a + _rotate(b ^ _K3, 20) - c + length)


def _city_half(a: int, z: int, second: int, third: int) -> tuple[int, int]:
    b, c = _rotate(a + z, 52), _rotate(a, 37)
    a += second
    c += _rotate(a, 7)
    a += third
    return (a + z) & _MASK, (b + _rotate(a, 31) + c) & _MASK


def _city_33_to_64(name: bytes) -> int:
    length = len(name)
    z = _word(name, 24)
    a = _word(name, 0) + (length + _word(name, length - 16)) * _K0
    front_first, front_second = _city_half(a, z, _word(name, 8), _word(name, 16))
    a = _word(name, 16) + _word(name, length - 32)
    back_first, back_second = _city_half(a, z + _word(name, length - 8), _word(name, length - 24), _word(name, length - 16))
    mixed = _shift_mix(((front_first + back_second) * _K2 + (back_first + front_second) * _K0) & _MASK)
    return _shift_mix((mixed * _K0 + front_second) & _MASK) * _K2 & _MASK


def _city_weak(name: bytes, start: int, a: int, b: int) -> tuple[int, int]:
    words = [_word(name, start + step) for step in (0, 8, 16, 24)]
    a += words[0]
    b = _rotate(b + a + words[3], 21)
    c = a
    a += words[1] + words[2]
    b += _rotate(a, 44)
    return (a + words[3]) & _MASK, (b + c) & _MASK


def _city_long(name: bytes) -> int:
    length = len(name)
    x = _word(name, length - 40)
    y = _word(name, length - 16) + _word(name, length - 56)
    z = _hash_pair(_word(name, length - 48) + length, _word(name, length - 24))
    v = _city_weak(name, length - 64, length, z)
    w = _city_weak(name, length - 32, y + _K1, x)
    x = x * _K1 + _word(name, 0)
    for start in range(0, (length - 1) & ~63, 64):
        x = _rotate(x + y + v[0] + _word(name, start + 8), 37) * _K1 & _MASK
        y = _rotate(y + v[1] + _word(name, start + 48), 42) * _K1 & _MASK
        x ^= w[1]
        y = (y + v[0] + _word(name, start + 40)) & _MASK
        z = _rotate(z + w[0], 33) * _K1 & _MASK
        v = _city_weak(name, start, v[1] * _K1, x + w[0])
        w = _city_weak(name, start + 32, z + w[1], y + _word(name, start + 16))
        z, x = x, z
    return _hash_pair(_hash_pair(v[0], w[0]) + _shift_mix(y) * _K1 + z, _hash_pair(v[1], w[1]) + x)
