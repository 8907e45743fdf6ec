# SPDX-License-Identifier: Apache-2.0
"""Breaks good files on purpose: single bytes and bits, and every field of a ZIP archive.

:func:`take_apart` gives an archive as members whose fields can be changed; :meth:`Archive.build` writes it again with
offsets and end records to match, except where they were set. :func:`set_field` changes one field in place.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    DESCRIPTOR_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    FLAG_DESCRIPTOR,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    ZIP64_END_RECORD,
    ZIP64_END_SIGNATURE,
    ZIP64_LOCATOR,
    ZIP64_LOCATOR_SIGNATURE,
)
from fdd.core.span import Span
from fdd.formats.pytorch.canonical_differences import (
    CENTRAL_FIELDS,
    DESCRIPTOR_FIELDS,
    END_FIELDS,
    LOCAL_FIELDS,
    LOCATOR_FIELDS,
    ZIP64_END_FIELDS,
    Fields,
)
from fdd.formats.pytorch.canonical_layout import EXTRA_HEAD, padding_length

EXTRA_PADDING_ID = b"FB"


def flip_bit(data: bytes, offset: int, bit: int = 0) -> bytes:
    """Turn one bit round; bit 0 is the lowest."""
    return patch(data, offset, bytes([data[offset] ^ 1 << bit]))


def patch(data: bytes, offset: int, new: bytes) -> bytes:
    """Overwrite bytes; a negative offset counts from the end."""
    offset %= len(data)
    return data[:offset] + new + data[offset + len(new) :]


def cut(data: bytes, size: int) -> bytes:
    """Keep the first ``size`` bytes; a negative size leaves that many away at the end."""
    return data[:size]


def insert(data: bytes, offset: int, new: bytes) -> bytes:
    """Put bytes in between and move the rest."""
    return data[:offset] + new + data[offset:]


def replace_once(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace bytes that occur exactly once. Raises ValueError where they do not: a recipe must hit what it means."""
    if data.count(old) != 1:
        raise ValueError(f"{old!r} occurs {data.count(old)} times")
    return data.replace(old, new)


def rezip(data: bytes, method: int = zipfile.ZIP_STORED, rename: Callable[[str], str] = str) -> bytes:
    """Write the records anew with Python's zipfile: an archive without torch's dialect, dated 1980-01-01."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", method) as new:
        for row in old.infolist():
            target = zipfile.ZipInfo(rename(row.filename))
            target.compress_type = method
            target.create_system = 3
            new.writestr(target, old.read(row))
    return buffer.getvalue()


@dataclass
class Local:
    """The fields of a local header. ``extra`` None: torch's padding field, to suit the place."""

    version_needed: int
    flags: int
    method: int
    time: int
    date: int
    crc32: int
    compressed_size: int
    uncompressed_size: int
    name: bytes
    extra: bytes | None = None
    signature: bytes = LOCAL_HEADER_SIGNATURE

    def pack(self, offset: int, alignment: int) -> bytes:
        """Return the header with name and extra, for this place."""
        extra = self.extra
        if extra is None:
            padding = padding_length(len(self.name), offset, 0, alignment)
            extra = EXTRA_PADDING_ID + struct.pack("<H", padding) + b"Z" * padding
        fixed = LOCAL_HEADER.pack(
            self.signature, self.version_needed, self.flags, self.method, self.time, self.date,
            self.crc32, self.compressed_size, self.uncompressed_size, len(self.name), len(extra),
        )  # fmt: skip
        return fixed + self.name + extra


@dataclass
class Central:
    """The fields of a directory entry. ``offset`` None: where the local header is."""

    version_made_by: int
    version_needed: int
    flags: int
    method: int
    time: int
    date: int
    crc32: int
    compressed_size: int
    uncompressed_size: int
    disk_start: int
    internal_attributes: int
    external_attributes: int
    name: bytes
    offset: int | None = None
    extra: bytes = b""
    comment: bytes = b""
    signature: bytes = CENTRAL_HEADER_SIGNATURE

    def pack(self, offset: int) -> bytes:
        """Return the entry with name, extra and comment."""
        fixed = CENTRAL_HEADER.pack(
            self.signature, self.version_made_by, self.version_needed, self.flags, self.method, self.time, self.date,
            self.crc32, self.compressed_size, self.uncompressed_size, len(self.name), len(self.extra), len(self.comment),
            self.disk_start, self.internal_attributes, self.external_attributes, offset if self.offset is None else self.offset,
        )  # fmt: skip
        return fixed + self.name + self.extra + self.comment


@dataclass
class Member:
    """A record of an archive. ``central`` None leaves it out of the directory, ``local`` None out of the rest."""

    local: Local | None
    payload: bytes
    descriptor: bytes
    central: Central | None
    gap: bytes = b""
    """Bytes in front of the local header."""

    def rename(self, name: bytes) -> None:
        """Set the name in both headers."""
        if self.local is not None:
            self.local.name = name
        if self.central is not None:
            self.central.name = name

    def drop_descriptor(self) -> None:
        """Write the sizes and the checksum into the local header and leave the descriptor away."""
        if self.local is None or self.central is None:
            return
        self.descriptor = b""
        self.local.flags &= ~FLAG_DESCRIPTOR
        self.central.flags &= ~FLAG_DESCRIPTOR
        self.local.crc32 = self.central.crc32
        self.local.compressed_size, self.local.uncompressed_size = self.central.compressed_size, self.central.uncompressed_size

    def copy(self) -> Member:
        """A member that can be changed apart from this one."""
        local = replace(self.local) if self.local is not None else None
        return replace(self, local=local, central=replace(self.central) if self.central is not None else None)


@dataclass
class Archive:
    """A taken-apart archive. Members are in physical order; ``directory`` gives another order for the entries.

    ``end``, ``locator`` and ``zip64_end`` map field names (as in the comparison's field tables) to values that replace the
    right ones; the signatures are bytes.
    """

    members: list[Member]
    alignment: int = 64
    directory: list[Member] | None = None
    with_zip64: bool = True
    comment: bytes = b""
    end: dict[str, int | bytes] = field(default_factory=dict)
    locator: dict[str, int | bytes] = field(default_factory=dict)
    zip64_end: dict[str, int | bytes] = field(default_factory=dict)
    before_directory: bytes = b""
    prefix: bytes = b""
    """Bytes in front that no offset counts."""

    def member(self, suffix: bytes) -> Member:
        """Return the only member whose name ends so."""
        found = [member for member in self.members if _name(member).endswith(suffix)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} members end with {suffix!r}")
        return found[0]

    def build(self) -> bytes:
        """Write the archive."""
        parts: list[bytes] = []
        offsets: dict[int, int] = {}
        position = 0
        for member in self.members:
            position += len(member.gap)
            offsets[id(member)] = position
            head = member.local.pack(position, self.alignment) if member.local is not None else b""
            parts += [member.gap, head, member.payload, member.descriptor]
            position += len(head) + len(member.payload) + len(member.descriptor)
        parts.append(self.before_directory)
        start = position + len(self.before_directory)
        rows = [member for member in self.directory or self.members if member.central is not None]
        entries = b"".join(row.central.pack(offsets.get(id(row), 0)) for row in rows if row.central is not None)
        return self.prefix + b"".join(parts) + entries + self._ends(len(rows), Span(start, len(entries)))

    def _ends(self, count: int, directory: Span) -> bytes:
        parts: list[bytes] = []
        if self.with_zip64:
            record = ZIP64_END_RECORD.pack(
                ZIP64_END_SIGNATURE, 44, 0x031E, 45, 0, 0, count, count, directory.length, directory.offset
            )  # fmt: skip
            parts.append(_override(record, ZIP64_END_FIELDS, self.zip64_end))
            locator = ZIP64_LOCATOR.pack(ZIP64_LOCATOR_SIGNATURE, 0, directory.end, 1)
            parts.append(_override(locator, LOCATOR_FIELDS, self.locator))
        end = END_RECORD.pack(END_SIGNATURE, 0, 0, count, count, directory.length, directory.offset, len(self.comment))
        return b"".join([*parts, _override(end, END_FIELDS, self.end), self.comment])


def _override(data: bytes, fields: Fields, values: dict[str, int | bytes]) -> bytes:
    places = {name: (offset, length) for offset, length, name in fields}
    for name, value in values.items():
        offset, length = places[name]
        data = patch(data, offset, value if isinstance(value, bytes) else value.to_bytes(length, "little"))
    return data


def _name(member: Member) -> bytes:
    if member.central is not None:
        return member.central.name
    return member.local.name if member.local is not None else b""


def take_apart(data: bytes) -> Archive:
    """Read a good archive without ZIP64 entries into members that can be changed.

    A padding field of torch is made anew by :meth:`Archive.build`, for the alignment set there; it is kept as it is where
    it does not suit an alignment of 64.
    """
    end = END_RECORD.unpack_from(data, data.rindex(END_SIGNATURE))
    position, members = end[6], []
    for _ in range(end[4]):
        row = CENTRAL_HEADER.unpack_from(data, position)
        name_end = position + CENTRAL_HEADER.size + row[10]
        extra_end = name_end + row[11]
        name, extra = data[position + CENTRAL_HEADER.size : name_end], data[name_end:extra_end]
        position = extra_end + row[12]
        central = Central(*row[1:10], *row[13:16], name)  # type: ignore[call-arg]  # mypy cannot count the items of a slice
        central.extra, central.comment = extra, data[extra_end:position]
        members.append((row[16], _member(data, row[16], central)))
    members.sort(key=lambda pair: pair[0])
    return Archive([member for _, member in members], with_zip64=ZIP64_END_SIGNATURE in data)


def _member(data: bytes, offset: int, central: Central) -> Member:
    row = LOCAL_HEADER.unpack_from(data, offset)
    name_end = offset + LOCAL_HEADER.size + row[9]
    start = name_end + row[10]
    name, extra = data[offset + LOCAL_HEADER.size : name_end], data[name_end:start]
    local = Local(row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], name, extra)
    if local.pack(offset, 64) == replace(local, extra=None).pack(offset, 64):
        local.extra = None
    end = start + central.compressed_size
    descriptor = data[end : end + 16] if central.flags & FLAG_DESCRIPTOR else b""
    return Member(local, data[start:end], descriptor, central)


_STRUCTURES: dict[str, tuple[bytes, int, Fields]] = {
    "local header": (LOCAL_HEADER_SIGNATURE, LOCAL_HEADER.size, LOCAL_FIELDS),
    "directory entry": (CENTRAL_HEADER_SIGNATURE, CENTRAL_HEADER.size, CENTRAL_FIELDS),
    "data descriptor": (DESCRIPTOR_SIGNATURE, 0, DESCRIPTOR_FIELDS),
    "ZIP64 end record": (ZIP64_END_SIGNATURE, 0, ZIP64_END_FIELDS),
    "ZIP64 end locator": (ZIP64_LOCATOR_SIGNATURE, 0, LOCATOR_FIELDS),
    "end record": (END_SIGNATURE, 0, END_FIELDS),
}


def field_span(data: bytes, structure: str, name: str, record: bytes = b"") -> Span:
    """Find a field in a good archive; ``record`` is the full name of its record, where the structure has one."""
    signature, size, fields = _STRUCTURES[structure]
    start = _structure_start(data, structure, signature, size, record)
    offset, length = next((offset, length) for offset, length, what in fields if what == name)
    return Span(start + offset, length)


def _structure_start(data: bytes, structure: str, signature: bytes, size: int, record: bytes) -> int:
    if not record:
        return data.rindex(signature)
    if structure == "data descriptor":
        header = field_span(data, "local header", "signature", record).offset
        row = LOCAL_HEADER.unpack_from(data, header)
        entry = field_span(data, "directory entry", "compressed size", record).offset
        return header + LOCAL_HEADER.size + int(row[9]) + int(row[10]) + int.from_bytes(data[entry : entry + 4], "little")
    start = data.find(signature)
    while start >= 0:
        head = data[start : start + size]
        length = int.from_bytes(head[26:28] if size == LOCAL_HEADER.size else head[28:30], "little")
        if data[start + size : start + size + length] == record:
            return start
        start = data.find(signature, start + 1)
    raise ValueError(f"no {structure} of {record!r}")


def set_field(data: bytes, structure: str, name: str, value: int | bytes, record: bytes = b"") -> bytes:
    """Change one field in place, e.g. ``set_field(data, "directory entry", "crc-32", 1, b"archive/data/0")``."""
    span = field_span(data, structure, name, record)
    return patch(data, span.offset, value if isinstance(value, bytes) else value.to_bytes(span.length, "little"))


def padding_field(length: int) -> bytes:
    """torch's padding extra field with ``length`` bytes of padding."""
    return EXTRA_PADDING_ID + struct.pack("<H", length) + b"Z" * length


def extra_field(identifier: int, data: bytes) -> bytes:
    """Any extra field."""
    return EXTRA_HEAD.pack(identifier, len(data)) + data
