# SPDX-License-Identifier: Apache-2.0
"""7z archives: the list of members, read from the header at the end (7-Zip, 7zFormat.txt).

A header packed by LZMA or LZMA2 is inflated in memory within limits; the first member is told by its first bytes where it
is stored or packed by one of these alone. Nothing else is unpacked.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass, field
from struct import unpack_from
from typing import Any

from fdd.core.model import Basis
from fdd.core.source import BytesSource
from fdd.core.text import printable
from fdd.formats.foreign.containers import Identify, listing
from fdd.formats.foreign.facts import HEAD_BYTES, STRUCTURE_BYTES, ForeignFacts, InnerMember, Subject

MAGIC = b"7z\xbc\xaf\x27\x1c"
_SIGNATURE_HEADER = 32
_MOST_ITEMS = 100_000
_MOST_MEMBERS = 200

# Property ids.
_END, _HEADER, _ARCHIVE_PROPERTIES, _ADDITIONAL, _MAIN_STREAMS, _FILES = range(6)
_PACK_INFO, _UNPACK_INFO, _SUBSTREAMS, _SIZE, _CRC, _FOLDER, _UNPACK_SIZE, _STREAM_COUNT, _EMPTY_STREAM = range(6, 15)
_NAMES = 0x11
_ENCODED_HEADER = 0x17

# Coder ids.
_COPY, _LZMA, _LZMA2, _AES = b"\x00", b"\x03\x01\x01", b"\x21", b"\x06\xf1\x07\x01"


class _Malformed(Exception):
    """The header says something impossible; what was read before it counts."""


@dataclass(slots=True)
class _Folder:
    """A chain of coders with one packed stream or more; ``sizes`` are those of its outputs, the last one counts."""

    coders: list[tuple[bytes, bytes]]
    outputs: int
    packed: int
    sizes: list[int] = field(default_factory=list)
    has_crc: bool = False
    streams: int = 1

    @property
    def encrypted(self) -> bool:
        return any(coder == _AES for coder, _ in self.coders)


@dataclass(slots=True)
class _Streams:
    pack_position: int = 0
    pack_sizes: list[int] = field(default_factory=list)
    folders: list[_Folder] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Of the members with contents, in order."""


class _Cursor:
    """Reads the numbers of a 7z header; raises :class:`_Malformed` behind its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, length: int) -> bytes:
        piece = self._data[self._at : self._at + length]
        if len(piece) < length:
            raise _Malformed
        self._at += length
        return piece

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        """A number of 1 to 9 bytes: the ones that lead the first byte count the bytes that follow."""
        first, value = self.byte(), 0
        for index in range(8):
            mask = 0x80 >> index
            if not first & mask:
                return value | (first & (mask - 1)) << 8 * index
            value |= self.byte() << 8 * index
        return value

    def count(self) -> int:
        value = self.number()
        if value > _MOST_ITEMS:
            raise _Malformed
        return value

    def bits(self, count: int) -> list[bool]:
        data = self.take((count + 7) // 8)
        return [bool(data[index // 8] & 0x80 >> index % 8) for index in range(count)]

    def digests(self, count: int) -> list[bool]:
        """Step over CRCs; returns which are defined."""
        defined = [True] * count if self.byte() else self.bits(count)
        self.take(4 * sum(defined))
        return defined


def recognise_7z(subject: Subject, identify: Identify) -> ForeignFacts | None:
    """A 7z archive, with its members where the header can be read."""
    head = subject.head
    if not head.startswith(MAGIC):
        return None
    basis = [Basis("7z signature", 0, len(MAGIC))]
    facts = ForeignFacts("7z", "7-Zip archive", "", basis, mime="application/x-7z-compressed", pronom="fmt/484")
    inside = ""
    if len(head) >= _SIGNATURE_HEADER:
        facts.version = f"{head[6]}.{head[7]}"
        offset, size = unpack_from("<QQ", head, 12)
        facts.details["complete"] = _SIGNATURE_HEADER + offset + size <= subject.size if not subject.partial else None
        if facts.details["complete"]:
            header = subject.source.read_at(_SIGNATURE_HEADER + offset, min(size, STRUCTURE_BYTES))
            inside = _read_members(subject, facts, header, identify)
    facts.note = f"A 7-Zip archive{inside}, not a PyTorch file as it stands; unpack it and validate what is inside."
    if facts.details.get("complete") is False:
        facts.note += " It is cut off: the header at its end is missing."
    return facts


def _read_members(subject: Subject, facts: ForeignFacts, header: bytes, identify: Identify) -> str:
    """Fill ``inner`` from the header; returns the words for the note."""
    try:
        plain, encrypted = _plain_header(subject, header)
        if encrypted:
            facts.details["encrypted_names"] = True
            return " whose member names are encrypted"
        streams, names, empty = _parse_header(plain) if plain else (_Streams(), [], [])
    except (_Malformed, lzma.LZMAError, ValueError, MemoryError):
        facts.details["header_readable"] = False
        return ""
    sizes = iter(streams.sizes)
    for name, is_empty in zip(names, empty, strict=False):
        facts.inner.append(InnerMember(printable(name), 0 if is_empty else next(sizes, None)))
    facts.details |= {"member_count": len(facts.inner), "encrypted": any(folder.encrypted for folder in streams.folders)}
    _tell_first(subject, streams, facts, identify)
    facts.inner = facts.inner[:_MOST_MEMBERS]
    return f"{' (encrypted)' if facts.details['encrypted'] else ''} with {listing(facts.inner)}"


def _plain_header(subject: Subject, header: bytes) -> tuple[bytes, bool]:
    """The header behind the encodings in front of it, and whether an encryption stopped that."""
    for _ in range(4):
        if header[:1] != bytes([_ENCODED_HEADER]):
            return header, False
        streams = _parse_streams(_Cursor(header[1:]))
        if not streams.folders or not streams.pack_sizes:
            raise _Malformed
        folder = streams.folders[0]
        if folder.encrypted:
            return b"", True
        size = folder.sizes[-1] if folder.sizes else 0
        if size > min(STRUCTURE_BYTES, subject.limits.inflated_bytes):
            raise _Malformed
        header = _unpack(subject, streams, size)
    raise _Malformed


def _unpack(subject: Subject, streams: _Streams, most: int) -> bytes:
    """The first ``most`` bytes of the first folder, where one coder of copy, LZMA or LZMA2 makes it; else nothing."""
    folder = streams.folders[0]
    if len(folder.coders) != 1 or folder.packed != 1:
        return b""
    (coder, properties), start = folder.coders[0], _SIGNATURE_HEADER + streams.pack_position
    if coder == _COPY:
        return subject.source.read_at(start, min(most, streams.pack_sizes[0]))
    data = subject.source.read_at(start, min(streams.pack_sizes[0], most + (most >> 4) + HEAD_BYTES))
    # No distance can reach further back than what is asked for, so no larger dictionary is needed.
    window = max(1 << 12, most)
    spec: dict[str, Any] | None = None
    if coder == _LZMA and len(properties) >= 5 and properties[0] < 225:
        rest, lc = divmod(properties[0], 9)
        spec = {"id": lzma.FILTER_LZMA1, "lc": lc, "lp": rest % 5, "pb": rest // 5, "dict_size": window}
    elif coder == _LZMA2:
        spec = {"id": lzma.FILTER_LZMA2, "dict_size": window}
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[spec]).decompress(data, most) if spec else b""


def _tell_first(subject: Subject, streams: _Streams, facts: ForeignFacts, identify: Identify) -> None:
    """Tell the kind of the first member with contents by its first bytes."""
    member = next((member for member in facts.inner if member.size), None)
    if member is None or member.size is None or not (streams.folders and streams.pack_sizes and subject.may_look_inside):
        return
    try:
        data = _unpack(subject, streams, min(HEAD_BYTES, member.size, subject.limits.inflated_bytes))
    except (lzma.LZMAError, ValueError, MemoryError):
        return
    if data:
        partial = len(data) < member.size
        found = identify(subject.inside(BytesSource(data), member.name, partial=partial))
        member.kind = None if found.kind == "unknown" else found.kind


def _parse_header(header: bytes) -> tuple[_Streams, list[str], list[bool]]:
    """The streams, the names of all members, and which of them are empty."""
    cursor, streams = _Cursor(header), _Streams()
    names: list[str] = []
    empty: list[bool] = []
    if cursor.byte() != _HEADER:
        raise _Malformed
    while (kind := cursor.number()) != _END:
        if kind == _ARCHIVE_PROPERTIES:
            while cursor.number() != _END:
                cursor.take(cursor.number())
        elif kind == _ADDITIONAL:
            _parse_streams(cursor)
        elif kind == _MAIN_STREAMS:
            streams = _parse_streams(cursor)
        elif kind == _FILES:
            names, empty = _parse_files(cursor)
        else:
            raise _Malformed
    return streams, names, empty


def _parse_files(cursor: _Cursor) -> tuple[list[str], list[bool]]:
    count = cursor.count()
    names, empty = [""] * count, [False] * count
    while (kind := cursor.number()) != _END:
        body = _Cursor(data := cursor.take(cursor.number()))
        if kind == _EMPTY_STREAM:
            empty = body.bits(count)
        elif kind == _NAMES and data[:1] == b"\0":
            # UTF-16 texts, each ended by a NUL; the first byte says that they stand here.
            names = data[1:].decode("utf-16-le", "replace").split("\0")[:count]
    return names, empty


def _parse_streams(cursor: _Cursor) -> _Streams:
    streams, counted = _Streams(), False
    while (kind := cursor.number()) != _END:
        if kind == _PACK_INFO:
            streams.pack_position, packs = cursor.number(), cursor.count()
            while (part := cursor.number()) != _END:
                if part == _SIZE:
                    streams.pack_sizes = [cursor.number() for _ in range(packs)]
                elif part == _CRC:
                    cursor.digests(packs)
                else:
                    raise _Malformed
        elif kind == _UNPACK_INFO:
            streams.folders = _parse_folders(cursor)
        elif kind == _SUBSTREAMS:
            _parse_substreams(cursor, streams)
            counted = True
        else:
            raise _Malformed
    if not counted:
        streams.sizes = [folder.sizes[-1] for folder in streams.folders if folder.sizes]
    return streams


def _parse_folders(cursor: _Cursor) -> list[_Folder]:
    folders: list[_Folder] = []
    while (kind := cursor.number()) != _END:
        if kind == _FOLDER:
            count = cursor.count()
            if cursor.byte():  # "external": the descriptions stand in another stream
                raise _Malformed
            folders = [_parse_folder(cursor) for _ in range(count)]
        elif kind == _UNPACK_SIZE:
            for folder in folders:
                folder.sizes = [cursor.number() for _ in range(folder.outputs)]
        elif kind == _CRC:
            for folder, defined in zip(folders, cursor.digests(len(folders)), strict=True):
                folder.has_crc = defined
        else:
            raise _Malformed
    return folders


def _parse_folder(cursor: _Cursor) -> _Folder:
    coders: list[tuple[bytes, bytes]] = []
    inputs = outputs = 0
    for _ in range(min(cursor.count(), 32)):
        flags = cursor.byte()
        identifier = cursor.take(flags & 0x0F)
        complex_coder = bool(flags & 0x10)
        inputs += cursor.count() if complex_coder else 1
        outputs += cursor.count() if complex_coder else 1
        coders.append((identifier, cursor.take(cursor.number()) if flags & 0x20 else b""))
    if not outputs or outputs > _MOST_ITEMS or inputs > _MOST_ITEMS:
        raise _Malformed
    for _ in range(outputs - 1):
        cursor.number(), cursor.number()
    packed = inputs - (outputs - 1)
    if packed > 1:
        for _ in range(packed):
            cursor.number()
    return _Folder(coders, outputs, packed)


def _parse_substreams(cursor: _Cursor, streams: _Streams) -> None:
    kind = cursor.number()
    if kind == _STREAM_COUNT:
        for folder in streams.folders:
            folder.streams = cursor.count()
        kind = cursor.number()
    for folder in streams.folders:
        total, sizes = folder.sizes[-1] if folder.sizes else 0, []
        if kind == _SIZE:
            sizes = [cursor.number() for _ in range(folder.streams - 1)]
        if folder.streams and (kind == _SIZE or folder.streams == 1):
            sizes.append(max(0, total - sum(sizes)))
        streams.sizes += sizes
    if kind == _SIZE:
        kind = cursor.number()
    if kind == _CRC:
        # A folder of one stream whose CRC is known above is left out here.
        known_above = sum(folder.streams == 1 and folder.has_crc for folder in streams.folders)
        cursor.digests(sum(folder.streams for folder in streams.folders) - known_above)
        kind = cursor.number()
    if kind != _END:
        raise _Malformed
