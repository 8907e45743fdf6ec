# SPDX-License-Identifier: Apache-2.0
"""Tar archives as facts: v7, POSIX ustar and PAX (IEEE Std 1003.1, `pax`, "ustar Interchange Format"), GNU long names.

Nothing here judges and nothing raises on bad bytes. Offsets and lengths are bytes, offsets absolute in the file.
Payloads are never read, except those of extension members (long names, PAX records), within the limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fdd.container.zip.structs import Fault, Region
from fdd.core.source import ByteSource
from fdd.core.span import Span, gaps
from fdd.limits import Limits

BLOCK = 512
USTAR_MAGIC = b"ustar"
MAGIC_OFFSET = 257
CHECKSUM_OFFSET = 148
RESYNC_BYTES = 64 << 20
"""How far behind a place without a header the next one is looked for."""

_LOW_BYTES = bytes(range(128))

TYPE_NAMES = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",  # "contiguous": every reader treats it as a regular file
    b"1": "hard-link",
    b"2": "symbolic-link",
    b"3": "character-device",
    b"4": "block-device",
    b"5": "directory",
    b"6": "fifo",
    b"S": "sparse-file",
}
WITHOUT_PAYLOAD = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))
PAX_TYPES = frozenset((b"x", b"X", b"g"))
LONG_NAME_TYPES = frozenset((b"L", b"K"))


@dataclass(slots=True)
class TarHeader:
    """One 512-byte header block. Numbers are None where their field is not a number."""

    span: Span
    name: bytes
    """The name field up to its first NUL."""
    mode: int | None
    size: int | None
    size_base256: bool
    """Whether the size is binary (GNU base-256) instead of octal text."""
    modified: int | None
    stated_checksum: int | None
    computed_checksum: int
    """Sum of all bytes, unsigned, with spaces in the checksum field."""
    signed_checksum: int
    """The same with signed bytes, as some old writers computed it."""
    type_flag: bytes
    link_name: bytes
    magic: bytes
    """Eight bytes, magic and version: `ustar\\0` + `00` (POSIX), `ustar  \\0` (GNU), other (v7)."""
    prefix: bytes

    @property
    def checksum_matches(self) -> bool:
        """Whether the stated checksum is one of the two sums."""
        return self.stated_checksum in (self.computed_checksum, self.signed_checksum)

    @property
    def full_name(self) -> bytes:
        """The name with the POSIX prefix in front of it."""
        posix = self.magic[:6] == b"ustar\0"
        return self.prefix + b"/" + self.name if posix and self.prefix else self.name


@dataclass(slots=True)
class TarExtension:
    """A member that only describes the next ones: PAX records (`x`, `g`, Solaris `X`) or a GNU long name (`L`, `K`)."""

    header: TarHeader
    payload: Span
    padding: Span
    records: list[tuple[bytes, bytes]] = field(default_factory=list)
    """PAX keywords and values in order; for `L` the keyword `path`, for `K` `linkpath`."""


@dataclass(slots=True)
class TarMember:
    """A member and where it lies. ``name``, ``link_name`` and ``size`` are resolved through the extensions in front."""

    index: int
    header: TarHeader
    name: bytes
    link_name: bytes
    type: str
    """file, hard-link, symbolic-link, character-device, block-device, directory, fifo, sparse-file, or `other`."""
    size: int | None
    """Bytes as stated; links, devices and folders have no payload whatever it says."""
    payload: Span
    """As much of the payload as lies in the file."""
    payload_complete: bool
    padding: Span
    """From the payload to the next 512-byte boundary, as far as it lies in the file."""
    extensions: tuple[TarExtension, ...] = ()
    sparse_maps: Span = Span(0, 0)
    """Further header blocks of an old GNU sparse file."""


@dataclass(slots=True)
class TarFacts:
    """A tar file taken apart."""

    size: int
    members: list[TarMember] = field(default_factory=list)
    globals: list[TarExtension] = field(default_factory=list)
    """PAX global headers, in order."""
    end: Span = Span(0, 0)
    """The zero bytes from the end mark on; empty where there is no zero block."""
    trailing: Span = Span(0, 0)
    """What follows the zero bytes, or the place where reading stopped."""
    faults: list[Fault] = field(default_factory=list)
    """codes: header-cut, header-missing (no header where one should be), checksum, size-field, payload-cut, pax-record,
    extension-cut, extension-limit, extension-orphan, sparse-map-cut, end-missing, end-single (less than two zero blocks),
    entry-limit"""
    regions: list[Region] = field(default_factory=list)
    """A partition of the file: header, extension, payload, padding, end, trailing, gap. ``record`` is the member."""


def looks_like_tar(head: bytes) -> bool:
    """Whether ``head`` (the first 512 bytes) is a tar header: `ustar` at 257, one flipped bit allowed, or a v7 header
    whose checksum is right. A wrong checksum does not take the kind away where the magic is there."""
    if len(head) < MAGIC_OFFSET + len(USTAR_MAGIC):
        return False
    return _near_magic(head) or (len(head) >= BLOCK and any(head[:BLOCK]) and _parse_header(head[:BLOCK], 0).checksum_matches)


def _near_magic(block: bytes) -> bool:
    found = block[MAGIC_OFFSET : MAGIC_OFFSET + len(USTAR_MAGIC)]
    if found == USTAR_MAGIC:
        return True
    return sum((a ^ b).bit_count() for a, b in zip(found, USTAR_MAGIC, strict=False)) <= 1 and len(found) == len(USTAR_MAGIC)


def _number(raw: bytes) -> int | None:
    """Read a numeric field: octal text ended by NUL or space, or GNU base-256 (first byte 0x80 or 0xFF)."""
    if raw[0] == 0x80:
        return int.from_bytes(raw[1:], "big")
    if raw[0] == 0xFF:
        return int.from_bytes(raw, "big", signed=True)
    digits = raw.lstrip(b" ").split(b"\0", 1)[0].rstrip(b" ")
    if not digits:
        return 0
    return int(digits, 8) if all(0x30 <= digit <= 0x37 for digit in digits) else None


def _text(raw: bytes) -> bytes:
    return raw.split(b"\0", 1)[0]


def _parse_header(block: bytes, offset: int) -> TarHeader:
    stated = block[CHECKSUM_OFFSET : CHECKSUM_OFFSET + 8]
    others = block[:CHECKSUM_OFFSET] + b" " * 8 + block[CHECKSUM_OFFSET + 8 :]
    unsigned = sum(others)
    return TarHeader(
        span=Span(offset, BLOCK),
        name=_text(block[:100]),
        mode=_number(block[100:108]),
        size=_number(block[124:136]),
        size_base256=block[124] in (0x80, 0xFF),
        modified=_number(block[136:148]),
        stated_checksum=_number(stated) if stated.strip(b" \0") else None,
        computed_checksum=unsigned,
        signed_checksum=unsigned - 256 * len(others.translate(None, _LOW_BYTES)),
        type_flag=block[156:157],
        link_name=_text(block[157:257]),
        magic=block[257:265],
        prefix=_text(block[345:500]),
    )


def read_tar(source: ByteSource, limits: Limits) -> TarFacts:
    """Read every header of ``source``. Stops at the first zero block, as readers do, or where no header can be found.

    The first block is taken for a header whatever it holds; call :func:`looks_like_tar` first. A later block counts as
    one where the magic stands (one flipped bit allowed) or the checksum is right. Where neither holds, the next block
    that has both is looked for, within :data:`RESYNC_BYTES`. Raises only what the source raises.
    """
    return _Reader(source, limits).run()


class _Reader:
    def __init__(self, source: ByteSource, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._facts = TarFacts(source.size)
        self._pending: list[TarExtension] = []
        self._position = 0
        self._searched = 0
        """No header before this offset will be looked for again: the search never goes back over the same bytes."""
        self._global_records: dict[bytes, bytes] = {}

    def run(self) -> TarFacts:
        facts = self._facts
        while self._step():
            pass
        if not facts.end.length:
            self._fault("end-missing", facts.size, 0, "two zero blocks")
        elif facts.end.length < 2 * BLOCK:
            self._fault("end-single", facts.end.offset, facts.end.length, "two zero blocks")
        for extension in self._pending:
            self._fault("extension-orphan", extension.header.span.offset, BLOCK, "a member that it describes")
        facts.regions = list(_partition(facts, self._pending))
        return facts

    def _step(self) -> bool:
        """Read what stands at the position; False when there is nothing more to read."""
        facts, start = self._facts, self._position
        block = self._source.read_at(start, BLOCK)
        if not block:
            return self._recover()
        if not any(block):
            if self._recover():
                return True
            facts.end, facts.trailing = self._measure_end()
            return False
        if len(block) < BLOCK:
            self._fault("header-cut", start, len(block), f"{BLOCK} bytes of header")
        elif len(facts.members) + len(facts.globals) + len(self._pending) >= self._limits.directory_entries:
            self._fault("entry-limit", start, BLOCK)
        else:
            header = _parse_header(block, start)
            if not start or _near_magic(block) or header.checksum_matches:
                self._read_entry(header)
                return True
            self._fault("header-missing", start, BLOCK, "a tar header or a zero block")
            if self._recover() or self._resynchronise(start):
                return True
        facts.trailing = Span(start, facts.size - start)
        return False

    def _fault(self, code: str, offset: int, length: int, expected: str = "") -> None:
        self._facts.faults.append(Fault(code, offset, length, expected))

    def _measure_end(self) -> tuple[Span, Span]:
        """The zeros from the position on, and what stands behind them."""
        start, size = self._position, self._facts.size
        position = start
        for piece in self._source.stream(Span(start, size - start)):
            rest = piece.lstrip(b"\0")
            position += len(piece) - len(rest)
            if rest:
                # Readers see blocks: the bytes behind begin with the block that is not all zero.
                position -= (position - start) % BLOCK
                break
        return Span(start, position - start), Span(position, size - position)

    def _recover(self) -> bool:
        """Where the last member's checksum is wrong its size may be what lies: look for a header right behind its own."""
        last = self._facts.members[-1] if self._facts.members else None
        if last is None or last.header.checksum_matches or last.header.span.end < self._searched:
            return False
        return self._resynchronise(last.header.span.end)

    def _resynchronise(self, start: int) -> bool:
        """Go on at the next block from ``start`` on that is surely a header; False where there is none near enough."""
        facts = self._facts
        position = start
        for piece in self._source.stream(Span(start, min(facts.size - start, RESYNC_BYTES))):
            at = piece.find(USTAR_MAGIC)
            while at >= 0:
                offset = position + at - MAGIC_OFFSET
                if offset >= start and (offset - start) % BLOCK == 0 and self._is_header(offset):
                    last = facts.members[-1] if facts.members else None
                    if last is not None and last.padding.end > offset:
                        last.payload = Span(last.payload.offset, max(0, min(last.payload.end, offset) - last.payload.offset))
                        last.padding = Span(last.payload.end, offset - last.payload.end)
                        last.payload_complete = False
                    self._pending.clear()
                    self._position, self._searched = offset, offset + 1
                    return True
                at = piece.find(USTAR_MAGIC, at + 1)
            position += len(piece)
        self._searched = position + 1
        return False

    def _is_header(self, offset: int) -> bool:
        block = self._source.read_at(offset, BLOCK)
        return len(block) == BLOCK and _parse_header(block, offset).checksum_matches

    def _read_entry(self, header: TarHeader) -> None:
        offset = header.span.offset
        if not header.checksum_matches:
            self._fault("checksum", offset + CHECKSUM_OFFSET, 8, f"{header.computed_checksum:06o}")
        if header.type_flag in PAX_TYPES or header.type_flag in LONG_NAME_TYPES:
            self._read_extension(header)
        else:
            self._read_member(header)

    def _place(self, start: int, size: int) -> tuple[Span, Span, int]:
        """Payload and padding of ``size`` bytes at ``start``, both inside the file, and where the next header stands."""
        following = start + -(-size // BLOCK) * BLOCK
        payload = Span(start, min(size, max(0, self._facts.size - start)))
        padding = Span(payload.end, min(following, self._facts.size) - payload.end)
        return payload, padding, following

    def _read_extension(self, header: TarHeader) -> None:
        size = self._usable_size(header, header.size)
        payload, padding, self._position = self._place(header.span.end, size)
        extension = TarExtension(header, payload, padding)
        if payload.length < size:
            self._fault("extension-cut", payload.offset, payload.length, f"{size} bytes")
        data = self._source.read_at(payload.offset, min(payload.length, self._limits.text_bytes))
        if len(data) < payload.length:
            self._fault("extension-limit", payload.offset + len(data), payload.length - len(data))
        if header.type_flag in LONG_NAME_TYPES:
            extension.records = [(b"path" if header.type_flag == b"L" else b"linkpath", _text(data))]
        else:
            extension.records, read = _pax_records(data)
            if read < len(data):
                self._fault("pax-record", payload.offset + read, len(data) - read, "LENGTH KEYWORD=VALUE newline")
        if header.type_flag == b"g":
            self._facts.globals.append(extension)
            self._global_records.update(extension.records)
        else:
            self._pending.append(extension)

    def _read_member(self, header: TarHeader) -> None:
        facts = self._facts
        known = self._global_records | dict(record for extension in self._pending for record in extension.records)
        stated = header.size
        if b"size" in known:
            digits = known[b"size"]
            # PAX numbers are decimal; 20 digits hold every 64-bit size.
            stated = int(digits) if digits.isdigit() and len(digits) <= 20 else None
        maps = self._sparse_maps(header)
        size = 0 if header.type_flag in WITHOUT_PAYLOAD else self._usable_size(header, stated)
        payload, padding, self._position = self._place(maps.end, size)
        name = known.get(b"GNU.sparse.name") or known.get(b"path") or header.full_name
        kind = TYPE_NAMES.get(header.type_flag, "other")
        if header.type_flag == b"\0" and name.endswith(b"/"):
            kind = "directory"  # v7 had no type for folders
        complete = payload.length == size and (stated is not None or header.type_flag in WITHOUT_PAYLOAD)
        if payload.length < size:
            self._fault("payload-cut", payload.offset, payload.length, f"{size} bytes")
        link = known.get(b"linkpath") or header.link_name
        member = TarMember(len(facts.members), header, name, link, kind, stated, payload, complete, padding)
        member.extensions, member.sparse_maps = tuple(self._pending), maps
        facts.members.append(member)
        self._pending = []

    def _usable_size(self, header: TarHeader, stated: int | None) -> int:
        """The size to step over: 0, and a fault, where the field is no number or negative."""
        if stated is None or stated < 0:
            self._fault("size-field", header.span.offset + 124, 12, "octal digits")
            return 0
        return stated

    def _sparse_maps(self, header: TarHeader) -> Span:
        """Step over the further maps of an old GNU sparse file: byte 482 of the header, 504 of a map say that one follows."""
        start = end = header.span.end
        if header.type_flag == b"S":
            flag = self._source.read_at(header.span.offset + 482, 1)
            while flag not in (b"", b"\0"):
                block = self._source.read_at(end, BLOCK)
                if len(block) < BLOCK:
                    self._fault("sparse-map-cut", end, len(block), f"{BLOCK} bytes")
                    return Span(start, end + len(block) - start)
                end += BLOCK
                flag = block[504:505]
        return Span(start, end - start)


def _pax_records(data: bytes) -> tuple[list[tuple[bytes, bytes]], int]:
    """Split PAX records (`LENGTH KEYWORD=VALUE` newline); returns them and how many bytes were understood."""
    records: list[tuple[bytes, bytes]] = []
    position = 0
    while position < len(data):
        digits, space, _ = data[position : position + 21].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        record = data[position : position + length]
        keyword, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if len(record) < length or not record.endswith(b"\n") or not equals or not keyword:
            break
        records.append((keyword, value))
        position += length
    return records, position


def _partition(facts: TarFacts, orphans: list[TarExtension]) -> Iterator[Region]:
    """Cover the file: every byte belongs to one region. Bytes that were skipped to find the next header are gaps."""
    owned: list[Region] = []

    def own_extension(extension: TarExtension, record: int | None) -> None:
        start = extension.header.span.offset
        owned.append(Region(Span(start, extension.padding.end - start), "extension", record))

    for extension in (*facts.globals, *orphans):
        own_extension(extension, None)
    for member in facts.members:
        for extension in member.extensions:
            own_extension(extension, member.index)
        header = Span(member.header.span.offset, BLOCK + member.sparse_maps.length)
        for span, what in ((header, "header"), (member.payload, "payload"), (member.padding, "padding")):
            owned.append(Region(span, what, member.index))
    owned += [Region(facts.end, "end"), Region(facts.trailing, "trailing")]
    owned = [region for region in owned if region.span.length]
    owned += [Region(span, "gap") for span in gaps((region.span for region in owned), Span(0, facts.size))]
    position = 0
    for region in sorted(owned, key=lambda region: region.span):
        if region.span.end > position:
            start = max(position, region.span.offset)
            yield Region(Span(start, region.span.end - start), region.what, region.record)
            position = region.span.end
