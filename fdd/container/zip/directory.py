# SPDX-License-Identifier: Apache-2.0
"""The walk along the central directory (APPNOTE 4.3.12). Where it begins is decided in :mod:`locate`.

The walk trusts a header's signature and the lengths that lead from one header to the next. Where these fail it asks
which of the two is damaged, and goes on behind the damage: one bad byte must not hide the entries behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fdd.container.zip.extra import parse_extra, resolve_central, zip64_of
from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    DIGITAL_SIGNATURE,
    END_SIGNATURE,
    U16_ESCAPE,
    U32_ESCAPE,
    ZIP64_END_SIGNATURE,
    ZIP64_LOCATOR_SIGNATURE,
    CentralEntry,
    Fault,
    Zip64Extra,
)
from fdd.container.zip.window import Window, find_forward
from fdd.core.source import ByteSource
from fdd.core.span import Span

LONGEST_ENTRY = CENTRAL_HEADER.size + 3 * U16_ESCAPE
_PIECE = 4 << 20
"""Bytes of directory read at once."""
_PIECE_BEHIND_DAMAGE = 1 << 18
"""The same behind a damaged entry, lest many of these cost a large read each. Both exceed the longest entry."""
_FIXED = CENTRAL_HEADER.size
_END_SIGNATURES = (ZIP64_END_SIGNATURE, ZIP64_LOCATOR_SIGNATURE, END_SIGNATURE)


@dataclass(slots=True)
class Walk:
    """What a walk from ``start`` found: entries as stored (``header_offset`` without base), and where it ended."""

    start: int
    end: int
    entries: list[CentralEntry] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a walk keeps to. ``limit``: offset where the end records begin or, when ``cut``, where the bytes end.

    ``size`` (bytes) and ``count`` (entries) are what the end records state, -1 without any; ``most`` entries are read.
    """

    limit: int
    size: int
    count: int
    most: int
    cut: bool


def walk_directory(source: ByteSource, start: int, bounds: Bounds) -> Walk:
    """Read entries from ``start``.

    The walk goes beyond the stated size or the stated count alone, and stops where both are reached at once. An entry
    whose lengths swallow others is only noticed by the count; the walk is then repeated with an eye on signatures
    inside names, extra fields and comments.
    """
    walk = _Walker(source, start, bounds).run()
    if len(walk.entries) != bounds.count and any(_swallows(entry) for entry in walk.entries):
        return _Walker(source, start, bounds, look_inside=True).run()
    return walk


def _swallows(entry: CentralEntry) -> bool:
    parts = (entry.name, entry.comment, *(item.data for item in entry.extra))
    return any(CENTRAL_HEADER_SIGNATURE in part for part in parts) or entry.extra_fault is not None


def next_entry(raw: bytes, position: int) -> int:
    """Where the entry behind the one at ``position`` begins, by its three lengths; ``raw`` are its 46 fixed bytes."""
    lengths: tuple[int, int, int] = CENTRAL_HEADER.unpack_from(raw)[10:13]
    return position + _FIXED + sum(lengths)


def read_entry(
    data: bytes, at: int, position: int, lengths: tuple[int, int, int], fixed: tuple[Any, ...] | None = None
) -> CentralEntry:
    """Read the entry at ``data[at:]``, which stands at ``position`` in the file, with these lengths of its three parts.

    ``fixed`` are the unpacked values of its 46 bytes, where the caller has them.
    """
    (
        _, made_by, needed, flags, method, time, date, crc32, compressed, uncompressed,
        _, _, _, disk, internal, external, offset,
    ) = fixed or CENTRAL_HEADER.unpack_from(data, at)  # fmt: skip
    name_end = at + _FIXED + lengths[0]
    extra_end = name_end + lengths[1]
    end = extra_end + lengths[2]
    extra_at = position + name_end - at
    # By position, in the order of the fields: keywords take a third longer, and this runs once an entry.
    entry = CentralEntry(
        Span(position, end - at), made_by, needed, flags, method, time, date, crc32, compressed, uncompressed,
        disk, internal, external, offset, data[at + _FIXED : name_end], data[extra_end:end], Span(extra_at, lengths[1]),
        (), None, None, compressed, uncompressed, offset,
    )  # fmt: skip
    if lengths[1]:
        entry.extra, entry.extra_fault = parse_extra(data[name_end:extra_end], extra_at)
        entry.zip64 = zip64_of(entry.extra)
        if U32_ESCAPE in (compressed, uncompressed, offset):
            _resolve(entry, entry.zip64)
    return entry


def _resolve(entry: CentralEntry, zip64: Zip64Extra | None) -> None:
    uncompressed, compressed, offset, fault = resolve_central(
        entry.raw_uncompressed_size, entry.raw_compressed_size, entry.raw_header_offset, zip64
    )
    entry.uncompressed_size, entry.compressed_size, entry.header_offset = uncompressed, compressed, offset
    entry.extra_fault = entry.extra_fault or fault


class _Walker:
    def __init__(self, source: ByteSource, start: int, bounds: Bounds, look_inside: bool = False) -> None:
        self.source = source
        self.window = Window(source)
        self.limit = bounds.limit
        self.cut = bounds.cut
        self.stated_end = start + bounds.size if bounds.size > 0 else -1
        self.count = bounds.count
        self.most = bounds.most
        self.look_inside = look_inside
        self.walk = Walk(start, start)

    def run(self) -> Walk:
        walk = self.walk
        position: int | None = walk.start
        while position is not None and position < self.limit:
            position = self._good_run(position)
            if len(walk.entries) >= self.most:
                walk.faults.append(Fault("entry-limit", position, 0, f"at most {self.most} entries"))
                position = None
            elif self._is_stated_end(position):
                if position + 4 <= self.limit and self._is_entry(position):
                    walk.faults.append(Fault("entry-behind-end", position, 4, "the end of the directory"))
                position = self._digital_signature(position)
            elif position < self.limit:
                position = self._recover(position)
        return walk

    def _is_stated_end(self, position: int) -> bool:
        return position == self.stated_end and len(self.walk.entries) == self.count

    def _is_entry(self, position: int) -> bool:
        return self.window.read(position, 4) == CENTRAL_HEADER_SIGNATURE

    def _good_run(self, position: int) -> int:
        """Read entries as long as each begins with its signature and ends inside the directory."""
        entries = self.walk.entries
        piece = _PIECE if position == self.walk.start else _PIECE_BEHIND_DAMAGE
        go_on = True
        while go_on and position + _FIXED <= self.limit and not self._is_stated_end(position):
            data = self.window.read(position, min(piece, self.limit - position))
            used, go_on = self._entries_in(data, position)
            position += used
            self.walk.end = max(self.walk.end, position)
            go_on = go_on and used > 0 and len(entries) < self.most
            piece = _PIECE
        return position

    def _entries_in(self, data: bytes, position: int) -> tuple[int, bool]:
        """Read the entries that are whole in ``data``; tell how many bytes they take, and whether more data may help."""
        entries = self.walk.entries
        unpack = CENTRAL_HEADER.unpack_from
        at, total = 0, len(data)
        stated_end = self.stated_end - position
        while at + _FIXED <= total and len(entries) < self.most:
            values = unpack(data, at)
            name, extra, comment = values[10:13]
            behind = at + _FIXED + name + extra + comment
            if values[0] != CENTRAL_HEADER_SIGNATURE:
                return at, False
            if behind > total:
                break
            if self.look_inside and data.find(CENTRAL_HEADER_SIGNATURE, at + _FIXED, behind) >= 0:
                return at, False
            entries.append(read_entry(data, at, position + at, (name, extra, comment), values))
            at = behind
            if at == stated_end and len(entries) == self.count:
                return at, False
        return at, True

    def _recover(self, position: int) -> int | None:
        """Go on at ``position``, where no good entry stands. Returns where the next good one does; None at the end."""
        raw = self.window.read(position, min(_FIXED, self.limit - position))
        if raw[:4] == CENTRAL_HEADER_SIGNATURE:
            return self._overrun(position, raw)
        if raw[:4] == DIGITAL_SIGNATURE:
            return self._digital_signature(position)
        behind = self._leads_on(position, raw)
        if behind is not None:
            lengths = CENTRAL_HEADER.unpack(raw)[10:13]
            self._take(position, lengths, Fault("entry-signature", position, 4, "50 4B 01 02"))
            return behind
        return self._resynchronize(position)

    def _take(self, position: int, lengths: tuple[int, int, int], fault: Fault) -> None:
        data = self.window.read(position, _FIXED + sum(lengths))
        self.walk.faults.append(fault)
        self.walk.entries.append(read_entry(data, 0, position, lengths))
        self.walk.end = self.walk.entries[-1].span.end

    def _leads_on(self, position: int, raw: bytes) -> int | None:
        """Where the lengths of an entry without signature lead, if that is another entry or the end of the directory."""
        if len(raw) < _FIXED or raw[:4] in _END_SIGNATURES:
            return None
        behind = next_entry(raw, position)
        is_end = behind == self.stated_end or (behind == self.limit and not self.cut)
        if behind > self.limit or not (is_end or self.window.read(behind, 4) in (CENTRAL_HEADER_SIGNATURE, DIGITAL_SIGNATURE)):
            return None
        return behind if raw[4:] != bytes(_FIXED - 4) else None

    def _next_signature(self, position: int) -> int | None:
        return find_forward(self.source, CENTRAL_HEADER_SIGNATURE, Span(position, max(0, self.limit - position)))

    def _overrun(self, position: int, raw: bytes) -> int | None:
        """A header whose lengths lead over the end of the directory, or over the next header."""
        follower = self._next_signature(position + _FIXED) if len(raw) == _FIXED else None
        if follower is not None and follower - position <= LONGEST_ENTRY:
            return self._cut_lengths(position, raw, follower)
        if self.cut or len(raw) < _FIXED:
            self.walk.faults.append(Fault("entry-cut", position, self.limit - position, "a whole directory entry"))
            self.walk.end = max(self.walk.end, self.limit)
            return None
        if self.limit - position > LONGEST_ENTRY:
            return None
        return self._cut_lengths(position, raw, self.limit)

    def _cut_lengths(self, position: int, raw: bytes, behind: int) -> int:
        lengths = _repair(CENTRAL_HEADER.unpack(raw)[10:13], behind - position - _FIXED)
        self._take(position, lengths, Fault("entry-lengths", position, behind - position, f"{behind - position} bytes"))
        return behind

    def _resynchronize(self, position: int) -> int | None:
        """No entry at ``position``: the lengths of the entry before may be wrong, or bytes are in the way."""
        entries = self.walk.entries
        follower = None
        if entries:
            follower = self._next_signature(entries[-1].span.offset + _FIXED)
        elif position + _FIXED < self.limit:
            follower = self._next_signature(position + 1)
        behind = follower
        if behind is None and self.stated_end == self.limit:
            behind = self.limit
        if behind is None:
            return None
        between = behind - position
        # One bit of a length moves the next entry by a power of two; fewer than 46 bytes are no entry of their own.
        if entries and (between < _FIXED or between & (between - 1) == 0) and self._stretch(behind):
            return behind
        if between > 0:
            self.walk.faults.append(Fault("entry-signature", position, between, "50 4B 01 02"))
            self.walk.end = behind
            return behind
        return None

    def _stretch(self, behind: int) -> bool:
        """Read the last entry again, as one that ends at ``behind``."""
        last = self.walk.entries[-1]
        if not 0 <= behind - last.span.offset - _FIXED <= 3 * U16_ESCAPE:
            return False
        self.walk.entries.pop()
        self._cut_lengths(last.span.offset, self.window.read(last.span.offset, _FIXED), behind)
        return True

    def _digital_signature(self, position: int) -> int | None:
        """Pass over a digital signature record (APPNOTE 4.3.13) at ``position``."""
        raw = self.window.read(position, 6)
        if raw[:4] != DIGITAL_SIGNATURE or len(raw) < 6 or position + 6 > self.limit:
            return None
        behind = min(position + 6 + int.from_bytes(raw[4:], "little"), self.limit)
        self.walk.faults.append(Fault("digital-signature", position, behind - position))
        self.walk.end = behind
        return behind if behind < self.limit and self._is_entry(behind) else None


def _repair(lengths: tuple[int, int, int], total: int) -> tuple[int, int, int]:
    """Make name, extra and comment length add up to ``total``: the first of these that does.

    A comment or extra area that should be empty, as nearly all are; else another name length; else all is name.
    """
    name, extra, comment = lengths
    if name + extra == total:
        return name, extra, 0
    if name + comment == total:
        return name, 0, comment
    if 0 < total - extra - comment <= U16_ESCAPE:
        return total - extra - comment, extra, comment
    name = min(name, total, U16_ESCAPE)
    extra = min(extra, total - name)
    return name, extra, total - name - extra if total - name - extra <= U16_ESCAPE else 0
