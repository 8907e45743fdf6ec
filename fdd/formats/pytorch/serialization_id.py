# SPDX-License-Identifier: Apache-2.0
"""The record ``.data/serialization_id``: two 64-bit numbers that torch's writer makes of names and checksums (format.md 1.12).

Both halves are computed anew from the records. The first depends on the C++ library of the writing machine: its string
hash and the order in which its hash set is walked. So the half that fits tells the platform family of the writer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from fdd.container.zip.structs import DESCRIPTOR_SIGNATURE, METHOD_STORED, ZipFacts, ZipRecord
from fdd.core.source import ByteSource

ID_RECORD = b".data/serialization_id"
"""Name below the top folder."""
ID_LENGTH = 40
"""Digits of the whole record: two numbers of 20 digits each."""
HEAD_LENGTH = 8
"""Bytes of a stored payload that :func:`content_half` may look at."""

Platform = Literal["linux", "linux-big-endian", "macos"]
PLATFORMS: tuple[Platform, ...] = ("linux", "linux-big-endian", "macos")
Shape = Literal["two-numbers", "uuid", "digits", "other"]

_MASK = (1 << 64) - 1
_UUID = re.compile(rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(slots=True, frozen=True)
class IdRecord:
    """What the id depends on of one record. ``name`` is without the top folder; ``size`` is the uncompressed size in bytes.

    ``head`` holds the first :data:`HEAD_LENGTH` bytes of a stored payload, or None where they were not looked at: the
    payload is then taken as one that does not begin like a data descriptor.
    """

    name: bytes
    crc32: int
    size: int
    method: int = METHOD_STORED
    head: bytes | None = None


@dataclass(slots=True, frozen=True)
class IdFacts:
    """A serialization id and what it should be.

    ``content_matches`` and ``names_platform`` are None where the text has no two halves to compare; ``names_platform`` is
    None also where no known platform gives the first half. ``names`` holds the first half for each platform.
    """

    text: bytes
    shape: Shape
    content_matches: bool | None
    names_platform: Platform | None
    content: int
    names: dict[Platform, int]

    @property
    def well_formed(self) -> bool:
        """Whether the text is 40 digits of two numbers below 2**64."""
        return self.shape == "two-numbers"


def id_text(names: int, content: int) -> bytes:
    """Write both halves as the record holds them: 20 decimal digits each."""
    return b"%020d%020d" % (names, content)


def combine(seed: int, value: int) -> int:
    """Mix ``value`` into ``seed``; both unsigned 64-bit."""
    return seed ^ ((value + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & _MASK)


def content_half(records: Iterable[IdRecord]) -> int:
    """Compute the second half from all records in physical order; the id record itself is passed over.

    The writer picks the checksums out of the bytes it writes, by the signature of a data descriptor. Empty records have
    none and do not count; a stored payload that begins with this signature counts as one more, with its bytes 4 to 7.
    """
    seed = 0
    for record in records:
        if record.name == ID_RECORD or record.size == 0:
            continue
        if record.method == METHOD_STORED and record.size >= HEAD_LENGTH and _looks_like_descriptor(record.head):
            seed = combine(seed, int.from_bytes((record.head or b"")[4:8], "little"))
        seed = combine(seed, record.crc32)
    return seed


def _looks_like_descriptor(head: bytes | None) -> bool:
    return head is not None and head.startswith(DESCRIPTOR_SIGNATURE) and len(head) >= HEAD_LENGTH


def names_half(names: Iterable[bytes], platform: Platform = "linux") -> int:
    """Compute the first half from the names below the top folder, in the order of writing; the id record is passed over."""
    known = [name for name in dict.fromkeys(names) if name != ID_RECORD]
    if platform == "macos":
        hashes = _walk_libcxx([_city_hash(name) for name in known])
    else:
        order: Literal["little", "big"] = "big" if platform == "linux-big-endian" else "little"
        hashes = _walk_libstdcxx([_murmur_hash(name, order) for name in known])
    seed = 0
    for value in hashes:
        seed = combine(seed, value)
    return seed


def check(text: bytes, records: Iterable[IdRecord]) -> IdFacts:
    """Hold the payload of the id record against ``records`` (all of the archive, in physical order)."""
    records = list(records)
    shape = _shape(text)
    content = content_half(records)
    names: dict[Platform, int] = {}
    if shape != "two-numbers":
        return IdFacts(text, shape, None, None, content, names)
    for platform in PLATFORMS:
        names[platform] = names_half((record.name for record in records), platform)
        if names[platform] == int(text[:20]):
            return IdFacts(text, shape, int(text[20:]) == content, platform, content, names)
    return IdFacts(text, shape, int(text[20:]) == content, None, content, names)


def serialization_id(records: Iterable[IdRecord], platform: Platform = "linux") -> bytes:
    """Make the payload that a writer on ``platform`` gives to the id record of these records."""
    records = list(records)
    return id_text(names_half((record.name for record in records), platform), content_half(records))


def _shape(text: bytes) -> Shape:
    # isdigit() of bytes knows ASCII digits only.
    if text.isdigit():
        padded = len(text) == ID_LENGTH and int(text[:20]) <= _MASK and int(text[20:]) <= _MASK
        return "two-numbers" if padded else "digits"
    return "uuid" if _UUID.fullmatch(text) else "other"


def check_archive(source: ByteSource, facts: ZipFacts) -> IdFacts | None:
    """Read the id record of an archive and check it; None where there is no such record or it is not stored whole.

    Heads of payloads are read only when the second half does not fit without them. Raises SourceError.
    """
    listed = in_physical_order(facts.records)
    holder = next((record for record in listed if _below_top(record.name) == ID_RECORD), None)
    if holder is None or holder.payload is None or not holder.payload_complete or _method(holder) != METHOD_STORED:
        return None
    # No id is longer; a damaged size must not make us read a gigabyte.
    text = source.read_at(holder.payload.offset, min(holder.payload.length, 4 * ID_LENGTH))
    result = check(text, records_of(listed))
    if result.content_matches is not False:
        return result
    return check(text, records_of(listed, lambda record: _head(source, record)))


def in_physical_order(records: Iterable[ZipRecord]) -> list[ZipRecord]:
    """Sort records by where their local header is, or should be."""
    return sorted(records, key=_header_offset)


def records_of(records: Sequence[ZipRecord], head_of: Callable[[ZipRecord], bytes | None] | None = None) -> list[IdRecord]:
    """Take what the id depends on from the central directory, else from what stands beside the payload."""
    return [
        IdRecord(_below_top(record.name), _crc32(record), _size(record), _method(record), head_of(record) if head_of else None)
        for record in records
    ]


def _header_offset(record: ZipRecord) -> int:
    if record.local is not None:
        return record.local.span.offset
    return record.entry.header_offset if record.entry is not None else 0


def _below_top(name: bytes) -> bytes:
    return name.partition(b"/")[2]


def _crc32(record: ZipRecord) -> int:
    if record.entry is not None:
        return record.entry.crc32
    return record.descriptor.crc32 if record.descriptor is not None else 0


def _size(record: ZipRecord) -> int:
    if record.entry is not None:
        return record.entry.uncompressed_size
    return record.descriptor.uncompressed_size if record.descriptor is not None else 0


def _method(record: ZipRecord) -> int:
    if record.entry is not None:
        return record.entry.method
    return record.local.method if record.local is not None else METHOD_STORED


def _head(source: ByteSource, record: ZipRecord) -> bytes | None:
    if record.payload is None or _method(record) != METHOD_STORED:
        return None
    return source.read_at(record.payload.offset, min(record.payload.length, HEAD_LENGTH))


# libstdc++ (Linux): MurmurHash64A form, and the hash set that keeps all nodes in one list.

_MURMUR_SEED = 0xC70F6907
_MURMUR_MULTIPLIER = 0xC6A4A7935BD1E995
_PRIMES = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679, 5967347,
)  # fmt: skip
"""Bucket counts of a growing libstdc++ set (measured with GCC 12 up to three million names)."""


def _shift_mix(value: int) -> int:
    return value ^ (value >> 47)


def _murmur_hash(name: bytes, order: Literal["little", "big"]) -> int:
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


def _walk_libstdcxx(hashes: Sequence[int]) -> list[int]:
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


def _walk_libcxx(hashes: Sequence[int]) -> list[int]:
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


def _city_hash(name: bytes) -> int:
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
