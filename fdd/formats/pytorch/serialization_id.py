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
from fdd.formats.pytorch.writer_hashes import city_hash, libcxx_order, libstdcxx_order, murmur_hash

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
        hashes = libcxx_order([city_hash(name) for name in known])
    else:
        order: Literal["little", "big"] = "big" if platform == "linux-big-endian" else "little"
        hashes = libstdcxx_order([murmur_hash(name, order) for name in known])
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
