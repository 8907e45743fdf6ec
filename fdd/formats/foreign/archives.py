# SPDX-License-Identifier: Apache-2.0
"""RAR archives by name, with the members that their headers list; 7z is in :mod:`fdd.formats.foreign.sevenzip`."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from

from fdd.core.model import Basis
from fdd.core.source import ByteSource
from fdd.core.text import decode_name, printable
from fdd.formats.foreign.containers import Identify, listing
from fdd.formats.foreign.facts import ForeignFacts, InnerMember, Subject
from fdd.formats.foreign.sevenzip import recognise_7z

RAR4_MAGIC = b"Rar!\x1a\x07\x00"
RAR5_MAGIC = b"Rar!\x1a\x07\x01\x00"
_MOST_MEMBERS = 200
_HEADER_BYTES = 1 << 13
_RAR4_FILE, _RAR4_MAIN, _RAR4_END = 0x74, 0x73, 0x7B
_RAR4_HAS_DATA, _RAR4_LARGE, _RAR4_HEADERS_ENCRYPTED, _RAR4_PASSWORD = 0x8000, 0x0100, 0x0080, 0x0004
_RAR5_FILE, _RAR5_ENCRYPTION, _RAR5_END = 2, 4, 5


def recognise_archive(subject: Subject, identify: Identify) -> ForeignFacts | None:
    """A 7z or RAR archive."""
    if subject.head.startswith(RAR5_MAGIC):
        return _rar(subject, "5.0", "fmt/613", RAR5_MAGIC)
    if subject.head.startswith(RAR4_MAGIC):
        # PRONOM tells 2.0 and 2.9 apart; these bytes do not.
        return _rar(subject, "1.5 to 4.x", None, RAR4_MAGIC)
    return recognise_7z(subject, identify)


def _rar(subject: Subject, version: str, pronom: str | None, magic: bytes) -> ForeignFacts:
    read = _rar5_members if magic == RAR5_MAGIC else _rar4_members
    basis = [Basis("RAR signature", 0, len(magic))]
    facts = ForeignFacts("rar", "RAR archive", "", basis, version=version, mime="application/vnd.rar", pronom=pronom)
    for member in read(subject.source, len(magic)):
        if member is None:
            facts.details["encrypted_names"] = True
            break
        facts.inner.append(member)
        if len(facts.inner) >= _MOST_MEMBERS:
            break
    inside = "whose member names are encrypted" if facts.details.get("encrypted_names") else f"with {listing(facts.inner)}"
    facts.note = f"A RAR archive {inside}; unpack it and validate what is inside."
    return facts


def _rar4_members(source: ByteSource, position: int) -> Iterator[InnerMember | None]:
    """The members of a RAR 1.5 to 4.x archive; None where the headers are encrypted from here on."""
    for _ in range(_MOST_MEMBERS * 4):
        block = source.read_at(position, _HEADER_BYTES)
        if len(block) < 11:
            return
        kind, flags, size = unpack_from("<BHH", block, 2)
        if size < 7 or kind == _RAR4_END:
            return
        if kind == _RAR4_MAIN and flags & _RAR4_HEADERS_ENCRYPTED:
            yield None
            return
        data = unpack_from("<I", block, 7)[0] if flags & _RAR4_HAS_DATA or kind == _RAR4_FILE else 0
        if kind == _RAR4_FILE and len(block) >= 40:
            unpacked, name_size, start = unpack_from("<I", block, 11)[0], unpack_from("<H", block, 26)[0], 32
            if flags & _RAR4_LARGE:
                high_packed, high_unpacked = unpack_from("<II", block, 32)
                data, unpacked, start = data | high_packed << 32, unpacked | high_unpacked << 32, 40
            # Behind a NUL stands the same name in a compact form of UTF-16.
            name = block[start : start + name_size].split(b"\0", 1)[0]
            yield InnerMember(printable(decode_name(name)), unpacked)
        position += size + data


def _vint(block: bytes, position: int) -> tuple[int, int]:
    """A RAR 5 variable-length integer and where it ends; the end lies behind the block where it is cut."""
    value = 0
    for index in range(10):
        if position + index >= len(block):
            break
        value |= (block[position + index] & 0x7F) << 7 * index
        if block[position + index] < 0x80:
            return value, position + index + 1
    return 0, len(block) + 1


def _rar5_members(source: ByteSource, position: int) -> Iterator[InnerMember | None]:
    """The members of a RAR 5 archive; None where the headers are encrypted from here on."""
    for _ in range(_MOST_MEMBERS * 4):
        block = source.read_at(position, _HEADER_BYTES)
        size, start = _vint(block, 4)
        kind, at = _vint(block, start)
        flags, at = _vint(block, at)
        if size < 2 or at > len(block) or kind == _RAR5_END:
            return
        if kind == _RAR5_ENCRYPTION:
            yield None
            return
        data = 0
        if flags & 1:
            _, at = _vint(block, at)
        if flags & 2:
            data, at = _vint(block, at)
        if kind == _RAR5_FILE:
            member = _rar5_file(block, at)
            if member is None:
                return
            yield member
        position += start + size + data


def _rar5_file(block: bytes, at: int) -> InnerMember | None:
    flags, at = _vint(block, at)
    unpacked, at = _vint(block, at)
    _, at = _vint(block, at)  # attributes
    at += (4 if flags & 2 else 0) + (4 if flags & 4 else 0)  # time, CRC-32
    _, at = _vint(block, at)  # compression
    _, at = _vint(block, at)  # host system
    length, at = _vint(block, at)
    name = block[at : at + length]
    if at > len(block) or len(name) < length:
        return None
    return InnerMember(printable(decode_name(name)), None if flags & 8 else unpacked)
