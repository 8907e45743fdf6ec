# SPDX-License-Identifier: Apache-2.0
"""Which of two copies is the wrong one? A ZIP states most facts twice; these helpers weigh what else tells of them.

Used by the rules that compare directory, local headers and descriptors, to name the place that is damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from fdd.container.zip.fields import CENTRAL_FIELDS, LOCAL_FIELDS, field_span
from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    FLAG_DESCRIPTOR,
    FLAG_UTF8,
    LOCAL_HEADER,
    METHOD_DEFLATED,
    METHOD_STORED,
    U32_ESCAPE,
    CentralEntry,
    LocalHeader,
    ZipRecord,
)
from fdd.core.span import Span
from fdd.core.text import decode_name, is_text
from fdd.formats.pytorch.canonical_layout import VERSION_DEFLATED
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import record_role


class Pair(NamedTuple):
    """A record with both headers: ``number`` in the list of records, and ``name`` as the document has it."""

    number: int
    name: str
    entry: CentralEntry
    local: LocalHeader
    record: ZipRecord

    @property
    def described(self) -> bool:
        """Whether a header says that a descriptor follows (that both say so is another question)."""
        return bool((self.entry.flags | self.local.flags) & FLAG_DESCRIPTOR)


def pairs(document: TorchDocument) -> Iterator[Pair]:
    """The records of which both headers were read, in the order of the directory."""
    for index, record in document.zip_records():
        if record.entry is not None and record.local is not None:
            yield Pair(index, document.records[index].name, record.entry, record.local, record)


def name_place(copy: CentralEntry | LocalHeader) -> Span:
    """The bytes of a name."""
    fixed = CENTRAL_HEADER.size if isinstance(copy, CentralEntry) else LOCAL_HEADER.size
    return Span(copy.span.offset + fixed, len(copy.name))


def field_place(copy: CentralEntry | LocalHeader, name: str) -> Span:
    """The bytes of a field, in the ZIP64 field where the header refers to it."""
    is_size = name in ("compressed_size", "uncompressed_size", "header_offset")
    raw = getattr(copy, f"raw_{name}") if is_size else None
    outside = raw == U32_ESCAPE or (raw == 0 and isinstance(copy, LocalHeader))
    if outside and copy.zip64 is not None:
        return copy.zip64.span
    return field_span(copy.span, CENTRAL_FIELDS if isinstance(copy, CentralEntry) else LOCAL_FIELDS, name)


def true_size(pair: Pair) -> int | None:
    """What most copies say of the size of a stored record; None where no value has a majority, or it is deflated."""
    entry, local, descriptor = pair.entry, pair.local, pair.record.descriptor
    if METHOD_DEFLATED in (entry.method, local.method):
        return None
    stated = [entry.compressed_size, entry.uncompressed_size, local.compressed_size, local.uncompressed_size]
    if descriptor is not None:
        stated += [descriptor.compressed_size, descriptor.uncompressed_size]
        if pair.record.payload is not None:
            stated.append(descriptor.span.offset - pair.record.payload.offset)
    votes = Counter(stated if not pair.described else [value for value in stated if value])
    ranked = votes.most_common(2)
    return ranked[0][0] if ranked and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]) else None


class Votes:
    """Decides between directory and local header by what the rest of the archive says."""

    def __init__(self, document: TorchDocument) -> None:
        self.document = document
        self._usual: dict[str, int] = {}

    def usual(self, field: str) -> int:
        """The value that most headers of the archive have."""
        if field not in self._usual:
            counted: Counter[int] = Counter()
            for pair in pairs(self.document):
                counted.update((getattr(pair.entry, field), getattr(pair.local, field)))
            self._usual[field] = counted.most_common(1)[0][0]
        return self._usual[field]

    def entry_is_wrong(self, pair: Pair, field: str) -> bool:
        """Whether the directory has the wrong one of two values of ``field``; where nothing tells, it is right."""
        ours, theirs = getattr(pair.entry, field), getattr(pair.local, field)
        expected = self._expected(pair, field)
        if expected is not None and expected in (ours, theirs):
            return bool(ours != expected)
        return bool(theirs == self.usual(field))

    def _expected(self, pair: Pair, field: str) -> int | None:
        """What torch's writer puts there, by the sizes and the descriptor of the record."""
        sizes = {pair.entry.compressed_size, pair.entry.uncompressed_size}
        deflated = len(sizes) > 1
        values = {
            "flags": FLAG_UTF8 | (FLAG_DESCRIPTOR if pair.record.descriptor is not None else 0),
            "method": METHOD_DEFLATED if deflated else METHOD_STORED,
            "version_needed": VERSION_DEFLATED if deflated else 0,
        }
        return values.get(field)

    @cached_property
    def _storage_names(self) -> frozenset[str]:
        return frozenset(storage.record for storage in self.document.storages if storage.record)

    @cached_property
    def _listed_names(self) -> Counter[bytes]:
        return Counter(record.name for record in (self.document.zip.records if self.document.zip else ()))

    def entry_name_is_wrong(self, pair: Pair) -> bool:
        """Whether the directory has the wrong one of two names."""
        ours, theirs = self._name_score(pair.entry.name), self._name_score(pair.local.name)
        if ours != theirs:
            return ours < theirs
        identity = self.document.id_facts
        return identity is not None and identity.well_formed and identity.names_platform is None

    def _name_score(self, name: bytes) -> tuple[bool, ...]:
        """What speaks for a name, the strongest first."""
        document = self.document
        text = decode_name(name)
        role = record_role(document.kind, document.local_name(text))
        inside = document.inside_root(text)
        known = role not in ("unknown", "member", "resource") and (role != "storage" or not document.storages)
        return (
            is_text(name) and not any(byte < 32 for byte in name),
            inside,
            self._listed_names[name] <= 1,
            text in self._storage_names or (inside and known),
        )
