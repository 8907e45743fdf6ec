# SPDX-License-Identifier: Apache-2.0
"""The fields of the structures that torch's writer makes, and the differences a comparison finds in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fdd.container.zip.structs import CENTRAL_HEADER, LOCAL_HEADER
from fdd.core.span import Span
from fdd.formats.pytorch.canonical_evidence import Placed
from fdd.formats.pytorch.canonical_layout import DEFAULT_ALIGNMENT, CanonicalRecord

Fields = Sequence[tuple[int, int, str]]
"""Rows of (offset, length, name) within a structure; a length of -1 means: to the end."""

LOCAL_FIELDS: Fields = (
    (0, 4, "signature"), (4, 2, "version needed"), (6, 2, "flags"), (8, 2, "method"), (10, 2, "time"), (12, 2, "date"),
    (14, 4, "crc-32"), (18, 4, "compressed size"), (22, 4, "uncompressed size"), (26, 2, "name length"), (28, 2, "extra length"),
)  # fmt: skip
CENTRAL_FIELDS: Fields = (
    (0, 4, "signature"), (4, 2, "version made by"), (6, 2, "version needed"), (8, 2, "flags"), (10, 2, "method"),
    (12, 2, "time"), (14, 2, "date"), (16, 4, "crc-32"), (20, 4, "compressed size"), (24, 4, "uncompressed size"),
    (28, 2, "name length"), (30, 2, "extra length"), (32, 2, "comment length"), (34, 2, "disk start"),
    (36, 2, "internal attributes"), (38, 4, "external attributes"), (42, 4, "header offset"),
)  # fmt: skip
DESCRIPTOR_FIELDS: Fields = ((0, 4, "signature"), (4, 4, "crc-32"), (8, 4, "compressed size"), (12, 4, "uncompressed size"))
DESCRIPTOR64_FIELDS: Fields = ((0, 4, "signature"), (4, 4, "crc-32"), (8, 8, "compressed size"), (16, 8, "uncompressed size"))
ZIP64_END_FIELDS: Fields = (
    (0, 4, "signature"), (4, 8, "record size"), (12, 2, "version made by"), (14, 2, "version needed"), (16, 4, "disk number"),
    (20, 4, "directory disk"), (24, 8, "entries on disk"), (32, 8, "entries"), (40, 8, "directory size"),
    (48, 8, "directory offset"),
)  # fmt: skip
LOCATOR_FIELDS: Fields = ((0, 4, "signature"), (4, 4, "directory disk"), (8, 8, "end record offset"), (16, 4, "disks"))
END_FIELDS: Fields = (
    (0, 4, "signature"), (4, 2, "disk number"), (6, 2, "directory disk"), (8, 2, "entries on disk"), (10, 2, "entries"),
    (12, 4, "directory size"), (16, 4, "directory offset"), (20, 2, "comment length"),
)  # fmt: skip

LOCAL = "local header"
DESCRIPTOR = "data descriptor"
ENTRY = "directory entry"
ZIP64_END = "ZIP64 end record"
LOCATOR = "ZIP64 end locator"
END = "end record"
LAYOUT = "layout"


@dataclass(slots=True, frozen=True)
class Difference:
    """One field that is not as torch's writer would have written it.

    ``structure`` is local header, data descriptor, directory entry, directory, ZIP64 end record, ZIP64 end locator,
    end record, payload (of `.storage_alignment` only) or layout. Where two copies of a value disagree and nothing tells
    which is right, both are listed, the directory's one with ``expected`` equal to ``found``. A structure that is absent, and
    bytes that are missing at the end, have an empty span.
    """

    span: Span
    structure: str
    field: str
    name: bytes = b""
    record: int | None = None
    """Index into :attr:`ZipFacts.records`; None for end records, and for records the directory does not list."""
    expected: bytes = b""
    found: bytes = b""

    @property
    def where(self) -> str:
        """For people: `local header of archive/data/0: version needed`."""
        owner = f" of {self.name.decode('utf-8', 'backslashreplace')}" if self.name else ""
        return f"{self.structure}{owner}: {self.field}"


@dataclass(slots=True)
class CanonicalComparison:
    """How a file differs from the one that torch's writer makes of the same records.

    ``canonical`` is None where that cannot be told, and ``undecided`` says why. ``complete`` is false when the comparison
    ended early, at the limit of differences. ``padded`` counts the local headers with torch's padding field.
    """

    canonical: bool | None = None
    differences: list[Difference] = field(default_factory=list)
    alignment: int = DEFAULT_ALIGNMENT
    local_headers: int = 0
    padded: int = 0
    complete: bool = True
    undecided: str = ""

    @property
    def written_by_torch(self) -> bool:
        """Whether every local header has the padding field that only torch's writer makes."""
        return self.local_headers > 0 and self.padded == self.local_headers

    @property
    def mostly_padded(self) -> bool:
        """Whether more than half of the local headers have it: what damage to single headers does not change."""
        return 2 * self.padded > self.local_headers


class EnoughError(Exception):
    """The limit of differences is reached."""


class Structure(NamedTuple):
    """A structure at ``offset`` and its fields; ``disputed`` ones are reported whatever they hold."""

    name: str
    offset: int
    fields: Fields
    disputed: frozenset[str] = frozenset()


class Reporter:
    """Collects differences up to a limit, and knows whether the file has left the canonical layout.

    ``size`` is that of the file: damaged offsets and sizes lead out of it, and no difference lies there.
    """

    def __init__(self, result: CanonicalComparison, limit: int, size: int) -> None:
        self._result = result
        self._size = size
        self._limit = limit
        self.moved = False

    def add(
        self, span: Span, structure: str, what: str, owner: Placed | None, *, expected: bytes = b"", found: bytes = b""
    ) -> None:  # fmt: skip
        """Report one difference. Raises :class:`EnoughError` at the limit."""
        if len(self._result.differences) >= self._limit:
            raise EnoughError
        name = owner.record.name if owner is not None else b""
        index = owner.index if owner is not None else None
        start, end = (min(max(0, place), self._size) for place in (span.offset, span.end))
        self._result.differences.append(Difference(Span(start, end - start), structure, what, name, index, expected, found))

    def shift(self, span: Span, structure: str, what: str, owner: Placed | None) -> None:
        """Report that the file leaves the canonical layout here, unless it did so before."""
        if not self.moved:
            self.add(span, structure, what, owner)
        self.moved = True

    def compare(self, row: Structure, expected: bytes, found: bytes, owner: Placed | None) -> None:
        """Report each field of a structure that is not as expected, or is disputed."""
        if expected == found and not row.disputed:
            return
        for start, length, what in row.fields:
            end = start + length if length >= 0 else len(expected)
            one, other = expected[start:end], found[start:end]
            if one != other or what in row.disputed:
                self.add(Span(row.offset + start, len(other)), row.name, what, owner, expected=one, found=other)


def local_fields(values: CanonicalRecord, zip64: int) -> Fields:
    name_end = LOCAL_HEADER.size + len(values.name)
    padding = name_end + zip64
    rows = [*LOCAL_FIELDS, (LOCAL_HEADER.size, len(values.name), "name")]
    if zip64:
        rows.append((name_end, zip64, "ZIP64 field"))
    return [*rows, (padding, 2, "padding field id"), (padding + 2, 2, "padding length"), (padding + 4, -1, "padding")]


def central_fields(values: CanonicalRecord, expected: bytes) -> Fields:
    name_end = CENTRAL_HEADER.size + len(values.name)
    rows = [*CENTRAL_FIELDS, (CENTRAL_HEADER.size, len(values.name), "name")]
    return [*rows, (name_end, -1, "ZIP64 field")] if len(expected) > name_end else rows
