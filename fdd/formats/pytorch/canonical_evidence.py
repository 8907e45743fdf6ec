# SPDX-License-Identifier: Apache-2.0
"""Which record stood here? Most facts of a torch archive are written two to four times; a damaged copy is outvoted.

For :mod:`fdd.formats.pytorch.canonical`, which needs the values of each record before it can say which bytes differ.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    DESCRIPTOR_SIGNATURE,
    END_SIGNATURE,
    EXTRA_PADDING,
    EXTRA_ZIP64,
    LOCAL_HEADER,
    LOCAL_HEADER_SIGNATURE,
    METHOD_DEFLATED,
    METHOD_STORED,
    ZIP64_END_SIGNATURE,
    CentralEntry,
    ZipFacts,
    ZipRecord,
)
from fdd.core.source import ByteSource
from fdd.formats.pytorch.canonical_layout import (
    DEFAULT_ALIGNMENT,
    DESCRIPTOR,
    DESCRIPTOR64,
    MAX_ALIGNMENT,
    VERSION_DEFLATED,
    CanonicalRecord,
    descriptor,
    local_header,
    local_header_length,
    padding_length,
)

ALIGNMENT_RECORD = b".storage_alignment"
"""Name below the top folder."""
_LONGEST_ALIGNMENT = len(str(MAX_ALIGNMENT))


@dataclass(slots=True)
class Placed:
    """A record at the place of its local header. ``index`` is its place in :attr:`ZipFacts.records`, None if unlisted."""

    record: ZipRecord
    index: int | None
    offset: int


@dataclass(slots=True)
class Resolved:
    """What a record is by most of its copies, and where its payload begins in the file.

    ``disputed`` names the fields of which two copies disagree and no third one decides.
    """

    values: CanonicalRecord
    start: int
    disputed: frozenset[str] = frozenset()


def values_of_entry(entry: CentralEntry, time: int, date: int) -> CanonicalRecord:
    """Take all values from the directory."""
    method = METHOD_DEFLATED if entry.method == METHOD_DEFLATED else METHOD_STORED
    # The checksum of nothing is 0.
    crc = entry.crc32 if entry.uncompressed_size else 0
    return CanonicalRecord(entry.name, entry.compressed_size, entry.uncompressed_size, crc, method, time, date)


def place(source: ByteSource, facts: ZipFacts, alignment: int) -> list[Placed]:
    """Put the records into physical order. A header offset that leads nowhere is replaced by what its neighbours say."""
    placed: list[Placed] = []
    expected = facts.directory.base if facts.directory is not None else 0
    for index, record in enumerate(facts.records):
        offset = _stated_offset(record)
        if offset != expected and _header_named(source, expected, record.name):
            offset = expected
        placed.append(Placed(record, index, offset))
        expected = _expected_end(record, offset, alignment)
    if facts.entries_lost:
        taken = {item.offset for item in placed}
        placed.extend(
            Placed(record, None, record.local.span.offset)
            for record in facts.unlisted
            if record.local is not None and record.local.span.offset not in taken
        )
    placed.sort(key=lambda item: item.offset)
    return placed


def _stated_offset(record: ZipRecord) -> int:
    if record.local is not None:
        return record.local.span.offset
    return record.entry.header_offset if record.entry is not None else 0


def _header_named(source: ByteSource, offset: int, name: bytes) -> bool:
    head = source.read_at(offset, LOCAL_HEADER.size + len(name))
    return head[:4] == LOCAL_HEADER_SIGNATURE and head[LOCAL_HEADER.size :] == name


def _expected_end(record: ZipRecord, offset: int, alignment: int) -> int:
    if record.entry is not None:
        values = values_of_entry(record.entry, 0, 0)
        header = local_header_length(values, offset, alignment)
        return offset + header + values.stored_size + len(descriptor(values, offset))
    extent = record.extent
    return extent.end if extent is not None else offset


def find_alignment(source: ByteSource, facts: ZipFacts) -> tuple[int, int | None]:
    """Return the alignment of the archive and the index of the record that states another one, if there is such a record.

    The text of `.storage_alignment` counts; where the padding of most records says 64 instead, the text is damaged.
    """
    for index, record in enumerate(facts.records):
        if record.payload is None or ALIGNMENT_RECORD not in _names(record):
            continue
        if record.entry is not None and record.entry.method != METHOD_STORED:
            continue
        text = source.read_at(record.payload.offset, min(record.payload.length, _LONGEST_ALIGNMENT + 1))
        stated = int(text) if text.isdigit() and not text.startswith(b"0") else 0
        if stated == DEFAULT_ALIGNMENT:
            return stated, None
        if 1 <= stated <= MAX_ALIGNMENT and _fitting(facts, stated) >= _fitting(facts, DEFAULT_ALIGNMENT):
            return stated, None
        return DEFAULT_ALIGNMENT, index
    return DEFAULT_ALIGNMENT, None


def _fitting(facts: ZipFacts, alignment: int) -> int:
    """Count the local headers whose padding is what ``alignment`` asks for."""
    count = 0
    for record in facts.records:
        if record.local is None:
            continue
        length = next((len(extra.data) for extra in record.local.extra if extra.identifier == EXTRA_PADDING), None)
        zip64 = sum(extra.span.length for extra in record.local.extra if extra.identifier == EXTRA_ZIP64)
        count += length == padding_length(len(record.local.name), record.local.span.offset, zip64, alignment)
    return count


def common_time(placed: list[Placed]) -> tuple[int, int]:
    """Return the (time, date) words that all records should have: those of most copies in TorchScript files of 1.0 to 1.3.

    Later writers leave both 0. The old files are told by their order: `version` first, and code before the data.
    """
    if not placed or b"version" not in _names(placed[0].record) or not _code_before_data(placed):
        return 0, 0
    votes: Counter[tuple[int, int]] = Counter()
    for item in placed:
        for copy in (item.record.entry, item.record.local):
            if copy is not None:
                votes[copy.time, copy.date] += 1
    return votes.most_common(1)[0][0]


def _names(record: ZipRecord) -> list[bytes]:
    """Both copies of a name, below the top folder."""
    copies = [copy.name for copy in (record.entry, record.local) if copy is not None]
    return [name.partition(b"/")[2] for name in copies]


def _code_before_data(placed: list[Placed]) -> bool:
    """Whether a code record stands in front of the first one of data, or a model.json (1.0 to 1.2) is there at all."""
    for item in placed:
        names = _names(item.record)
        if any(name.startswith((b"data.pkl", b"data/")) for name in names):
            return False
        if any(name.startswith(b"code/") or name == b"model.json" for name in names):
            return True
    return False


class Witness:
    """Weighs the copies of one record's facts, the bytes around it included."""

    def __init__(self, source: ByteSource, item: Placed, canonical_offset: int, alignment: int, following: int | None) -> None:
        self._source = source
        self._entry = item.record.entry
        self._record = item.record
        self._offset = item.offset
        self._canonical_offset = canonical_offset
        self._alignment = alignment
        self._following = following
        self._head = source.read_at(item.offset, LOCAL_HEADER.size).ljust(LOCAL_HEADER.size, b"\0")
        self._fixed = LOCAL_HEADER.unpack(self._head)

    def resolve(self, time: int, date: int) -> Resolved:
        """Decide all values of the record."""
        disputed: set[str] = set()
        name = self._name(disputed)
        start, stored = self._payload(name)
        tail = self._source.read_at(start + stored, DESCRIPTOR64.size).ljust(DESCRIPTOR64.size, b"\0")
        descriptor_crc, descriptor_size = _descriptor_values(tail, stored)
        if not stored:
            return Resolved(CanonicalRecord(name, 0, 0, 0, METHOD_STORED, time, date), start, frozenset(disputed))
        method = self._method(stored, descriptor_size)
        size = stored
        if method == METHOD_DEFLATED:
            entry_size = self._entry.uncompressed_size if self._entry is not None else None
            size = _decide("uncompressed size", entry_size, descriptor_size, disputed)
        crc = _decide("crc-32", self._entry.crc32 if self._entry is not None else None, descriptor_crc, disputed)
        return Resolved(CanonicalRecord(name, stored, size, crc, method, time, date), start, frozenset(disputed))

    def _name(self, disputed: set[str]) -> bytes:
        length = int(self._fixed[9])
        own = self._source.read_at(self._offset + LOCAL_HEADER.size, length)
        if self._entry is None or self._entry.name == own:
            return own
        if self._name_score(self._entry.name) < self._name_score(own):
            return own
        if len(own) == len(self._entry.name):
            disputed.add("name")
        return self._entry.name

    def _name_score(self, name: bytes) -> int:
        raw = self._source.read_at(self._offset + LOCAL_HEADER.size, len(name) + 2)
        score = int(raw[: len(name)] == name) + int(self._fixed[9] == len(name))
        score += raw[len(name) :] in (EXTRA_PADDING.to_bytes(2, "little"), EXTRA_ZIP64.to_bytes(2, "little"))
        if self._entry is not None:
            score += self._entry.name == name
            behind = self._entry.span.offset + CENTRAL_HEADER.size + len(name) + self._entry.extra_span.length
            score += self._source.read_at(behind, 4) in (CENTRAL_HEADER_SIGNATURE, ZIP64_END_SIGNATURE, END_SIGNATURE)
        return score

    def _payload(self, name: bytes) -> tuple[int, int]:
        """Return where the payload begins and how many bytes it has, by the best evidence."""
        starts = self._starts(name)
        best = max(
            ((self._payload_score(start, size) + bonus, -number, start, size)
             for start, bonus in starts.items()
             for number, size in enumerate(self._sizes(start))),
            default=(0, 0, self._offset, 0),
        )  # fmt: skip
        return best[2], best[3]

    def _starts(self, name: bytes) -> dict[int, int]:
        """Places where the payload may begin, with what speaks for each in the header itself."""
        starts: dict[int, int] = {}
        own = self._offset + LOCAL_HEADER.size + int(self._fixed[9]) + int(self._fixed[10])
        size = self._entry.uncompressed_size if self._entry is not None else 0
        for usize in dict.fromkeys((size, 0, 1 << 32)):
            record = CanonicalRecord(name, usize, usize, 0)
            header = local_header(record, self._canonical_offset, self._alignment)
            start = self._offset + len(header)
            matching = self._source.read_at(start - 1, 1) == header[-1:]
            starts.setdefault(start, 1 + int(matching))
        local = self._record.local
        starts.setdefault(own, 0)
        starts[own] += int(local is not None and local.extra_fault is None)
        return starts

    def _sizes(self, start: int) -> list[int]:
        sizes: list[int] = []
        if self._entry is not None:
            sizes += [self._entry.compressed_size, self._entry.uncompressed_size]
        if self._record.descriptor is not None:
            sizes.append(self._record.descriptor.compressed_size)
        if self._record.payload is not None:
            sizes.append(self._record.payload.length)
        if self._following is not None:
            sizes += [self._following - start - tail for tail in (0, DESCRIPTOR.size, DESCRIPTOR64.size)]
        return [size for size in dict.fromkeys(sizes) if 0 <= size <= self._source.size] or [0]

    def _payload_score(self, start: int, size: int) -> int:
        tail = self._source.read_at(start + size, DESCRIPTOR64.size).ljust(DESCRIPTOR64.size, b"\0")
        signed = tail[:4] == DESCRIPTOR_SIGNATURE
        score = 0
        if size:
            score += 2 * signed + (tail[8:12] == (size & 0xFFFFFFFF).to_bytes(4, "little"))
        if self._entry is not None:
            score += (self._entry.compressed_size == size) + (self._entry.uncompressed_size == size)
        if self._following is not None and start + size > self._following:
            score -= 2
        widths = (DESCRIPTOR.size, DESCRIPTOR64.size) if size and (signed or self._fixed[2] & 8) else (0,)
        return score + 2 * any(start + size + width == self._following for width in widths)

    def _method(self, stored: int, descriptor_size: int | None) -> int:
        """Whether the record is deflated, by method and version in both headers and by the sizes."""
        votes = [self._fixed[3] == METHOD_DEFLATED, self._fixed[1] == VERSION_DEFLATED]
        sizes = [descriptor_size]
        if self._entry is not None:
            votes += [self._entry.method == METHOD_DEFLATED, self._entry.version_needed == VERSION_DEFLATED]
            sizes.append(self._entry.uncompressed_size)
        votes.append(stored not in sizes)
        return METHOD_DEFLATED if 2 * sum(votes) > len(votes) else METHOD_STORED


def _decide(field: str, first: int | None, second: int | None, disputed: set[str]) -> int:
    if first is not None and second is not None and first != second:
        disputed.add(field)
    return first if first is not None else second or 0


def _descriptor_values(tail: bytes, stored: int) -> tuple[int | None, int | None]:
    """Return CRC and uncompressed size if these 24 bytes look like the descriptor of ``stored`` bytes, in either width."""
    _, crc, compressed, size = DESCRIPTOR64.unpack(tail)
    if compressed == stored and stored:
        return crc, size
    signature, crc, compressed, size = DESCRIPTOR.unpack(tail[: DESCRIPTOR.size])
    if signature == DESCRIPTOR_SIGNATURE or compressed == stored:
        return crc, size
    return None, None
