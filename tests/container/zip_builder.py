# SPDX-License-Identifier: Apache-2.0
"""ZIP files as torch writes them (format.md 1.5 to 1.10), byte by byte, with every structure's place.

Written from the description with :mod:`struct` alone, so that the reader is not tested against itself.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fdd.core.span import Span

ESCAPE = 0xFFFFFFFF


@dataclass
class Item:
    """One record. ``method`` 8 deflates; ``flags`` None means torch's; ``signed`` puts the signature on the descriptor."""

    name: bytes
    payload: bytes = b""
    method: int = 0
    flags: int | None = None
    signed: bool = True
    extra: bytes = b""
    comment: bytes = b""

    @property
    def stored(self) -> bytes:
        if self.method == 0:
            return self.payload
        deflate = zlib.compressobj(wbits=-15)
        return deflate.compress(self.payload) + deflate.flush()

    @property
    def actual_flags(self) -> int:
        return self.flags if self.flags is not None else 0x0808 if self.payload else 0x0800


@dataclass
class Built:
    """The bytes, and where each structure lies in them; ``entries`` are the single directory entries."""

    data: bytes
    headers: list[Span] = field(default_factory=list)
    payloads: list[Span] = field(default_factory=list)
    descriptors: list[Span | None] = field(default_factory=list)
    entries: list[Span] = field(default_factory=list)
    directory: Span = Span(0, 0)
    zip64_end: Span = Span(0, 0)
    locator: Span = Span(0, 0)
    end: Span = Span(0, 0)


@dataclass(frozen=True)
class Style:
    """How an archive deviates from torch's. ``offset`` is added to all stated offsets; ``gap`` follows the directory;
    ``extensible`` stands in the ZIP64 end record; ``behind_payload`` follows every descriptor."""

    zip64: bool = True
    alignment: int = 64
    prefix: bytes = b""
    offset: int = 0
    comment: bytes = b""
    gap: bytes = b""
    extensible: bytes = b""
    signature_record: bytes = b""


TORCH = Style()
TORCH_ITEMS = (
    Item(b"model/data.pkl", b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s."),
    Item(b"model/byteorder", b"little"),
    Item(b"model/data/0", bytes(range(200))),
    Item(b"model/data/1"),
    Item(b"model/data/2", b"PK and more" * 9),
    Item(b"model/version", b"3\n"),
    Item(b"model/.data/serialization_id", b"0123456789" * 4),
)


def build(items: Sequence[Item] = TORCH_ITEMS, style: Style = TORCH) -> Built:
    """Write ``items`` one behind the other, then directory and end records."""
    built = Built(b"")
    out = bytearray(style.prefix)
    for item in items:
        _local(built, out, item, style.alignment)
    start = len(out)
    for item, header in zip(items, built.headers, strict=True):
        position = len(out)
        out += central(item, header.offset + style.offset)
        built.entries.append(Span(position, len(out) - position))
    out += style.signature_record
    built.directory = Span(start, len(out) - start)
    out += style.gap
    stated = (len(items), built.directory.length, start + style.offset)
    _ends(built, out, stated, style)
    built.data = bytes(out)
    return built


def _local(built: Built, out: bytearray, item: Item, alignment: int) -> None:
    position = len(out)
    padding = -(position + 34 + len(item.name) + len(item.extra)) % alignment
    extra = item.extra + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    out += struct.pack("<4sHHHQIIHH", b"PK\3\4", 0, item.actual_flags, item.method, 0, 0, 0, len(item.name), len(extra))
    out += item.name + extra
    built.headers.append(Span(position, len(out) - position))
    stored = item.stored
    built.payloads.append(Span(len(out), len(stored)))
    out += stored
    descriptor = None
    if item.actual_flags & 8:
        raw = b"PK\7\x08" if item.signed else b""
        raw += struct.pack("<III", zlib.crc32(item.payload), len(stored), len(item.payload))
        descriptor = Span(len(out), len(raw))
        out += raw
    built.descriptors.append(descriptor)


def central(item: Item, offset: int) -> bytes:
    """A directory entry as torch writes it."""
    sizes = (zlib.crc32(item.payload), len(item.stored), len(item.payload))
    lengths = (len(item.name), 0, len(item.comment))
    fixed = struct.pack(
        "<4sHHHHIIIIHHHHHII", b"PK\1\2", 0, 0, item.actual_flags, item.method, 0, *sizes, *lengths, 0, 0, 0, offset
    )
    return fixed + item.name + item.comment


def _ends(built: Built, out: bytearray, stated: tuple[int, int, int], style: Style) -> None:
    count, size, offset = stated
    position = len(out)
    if style.zip64:
        record_size = 44 + len(style.extensible)
        out += struct.pack("<4sQHHIIQQQQ", b"PK\6\6", record_size, 0x031E, 45, 0, 0, count, count, size, offset)
        built.zip64_end = Span(position, 56)
        out += style.extensible
        built.locator = Span(len(out), 20)
        out += struct.pack("<4sIQI", b"PK\6\7", 0, position + style.offset, 1)
    built.end = Span(len(out), 22 + len(style.comment))
    small = (min(count, 0xFFFF), min(count, 0xFFFF), min(size, ESCAPE), min(offset, ESCAPE))
    out += struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, *small, len(style.comment)) + style.comment


def patched(data: bytes, offset: int, new: bytes) -> bytes:
    """``data`` with the bytes at ``offset`` replaced."""
    return data[:offset] + new + data[offset + len(new) :]


def flipped(data: bytes, offset: int, bit: int) -> bytes:
    """``data`` with one bit turned over."""
    return patched(data, offset, bytes([data[offset] ^ (1 << bit)]))


@dataclass
class Sparse:
    """A source of any size: zeros, but for the pieces given. Counts what is read of it."""

    size: int
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    bytes_read: int = 0
    reads: int = 0

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        length = min(length, self.size - offset)
        out = bytearray(length)
        for start, data in self.pieces:
            low, high = max(start, offset), min(start + len(data), offset + length)
            if low < high:
                out[low - offset : high - offset] = data[low - start : high - start]
        self.reads += 1
        self.bytes_read += length
        return bytes(out)

    def stream(self, span: Span, chunk: int = 1 << 20) -> Iterator[bytes]:
        position, end = span.offset, min(span.end, self.size)
        while position < end:
            piece = self.read_at(position, min(chunk, end - position))
            yield piece
            position += len(piece)

    def will_read(self, spans: Iterable[Span]) -> None:
        """Nothing to prepare."""


def large(sizes: Sequence[int]) -> tuple[Sparse, list[tuple[int, int]]]:
    """An archive whose payloads are zeros of these sizes, in torch's ZIP64 dialect, and ``(header, payload)`` offsets."""
    source = Sparse(0)
    position, places, directory = 0, [], b""
    for number, size in enumerate(sizes):
        name = b"big/data/%d" % number
        flags = 0x0808 if size else 0x0800
        numbers = struct.pack("<QQ", size, 0) if size >= ESCAPE else b""
        true = struct.pack("<QQ", size, size) if size >= ESCAPE else b""
        tail = struct.pack("<Q", position) if position >= ESCAPE else b""
        local64, central64 = numbers + tail, true + tail
        field64 = struct.pack("<HH", 1, len(local64)) + local64 if local64 else b""
        start = position + 34 + len(name) + len(field64)
        extra = field64 + struct.pack("<2sH", b"FB", -start % 64) + b"Z" * (-start % 64)
        header = struct.pack("<4sHHHQIIHH", b"PK\3\4", 0, flags, 0, 0, 0, 0, len(name), len(extra)) + name + extra
        source.pieces.append((position, header))
        payload = position + len(header)
        places.append((position, payload))
        wide = "<4sIQQ" if field64 else "<4sIII"
        descriptor = struct.pack(wide, b"PK\7\x08", 0, size, size) if size else b""
        source.pieces.append((payload + size, descriptor))
        field64 = struct.pack("<HH", 1, len(central64)) + central64 if central64 else b""
        values = (0, min(size, ESCAPE), min(size, ESCAPE), len(name), len(field64), 0, 0, 0, 0, min(position, ESCAPE))
        directory += struct.pack("<4sHHHHIIIIHHHHHII", b"PK\1\2", 0, 0, flags, 0, 0, *values) + name + field64
        position = payload + size + len(descriptor)
    built = Built(b"")
    out = bytearray()
    _ends(built, out, (len(sizes), len(directory), position), Style())
    locator = struct.pack("<Q", position + len(directory))
    source.pieces.append((position, directory + patched(bytes(out), built.locator.offset + 8, locator)))
    source.size = position + len(directory) + len(out)
    return source, places
