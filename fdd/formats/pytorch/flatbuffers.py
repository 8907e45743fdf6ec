# SPDX-License-Identifier: Apache-2.0
"""A strict walker over FlatBuffers by a schema. It follows every offset once, states what leaves the file, runs nothing.

Layout (FlatBuffers documentation, "Internals"): a root offset of 4 bytes at 0; offsets are relative to their own place;
a table begins with the signed distance to its vtable; a vtable is its own size, the table's size, then one 2-byte slot a
field (0: absent). Everything lies at a multiple of its size. No part overlaps another; only vtables and equal texts are
shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct

from fdd.core.span import Span
from fdd.core.text import is_text

_U16 = Struct("<H")
_U32 = Struct("<I")
_I32 = Struct("<i")
SCALAR_SIZES = {"u8": 1, "i8": 1, "bool": 1, "u16": 2, "i32": 4, "u32": 4, "f64": 8, "i64": 8, "8-bytes": 8, "16-bytes": 16}
"""Scalars and inline structs, by size in bytes."""
_ALIGNMENTS = {**SCALAR_SIZES, "8-bytes": 4, "16-bytes": 8}
"""What the place of each is a multiple of: structs are placed by their largest member."""
_NUMBERS = {"u8": False, "i8": True, "bool": False, "u16": False, "i32": True, "u32": False, "i64": True}
"""Whole numbers -> whether they are signed."""
_OFFSET_SIZE = 4


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table, in slot order.

    ``type``: a scalar, `text`, `bytes` (as a text, but any bytes), a table's name, `[type]` for a vector, `union`.
    """

    name: str
    type: str


Schema = Mapping[str, tuple[Field, ...]]


@dataclass(slots=True)
class Table:
    """A table that was walked: where it lies, and where each present field lies (absolute offsets)."""

    type: str
    offset: int
    places: dict[str, int]
    numbers: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """(size, signed) of the present whole numbers."""
    vtable: Span = Span(0, 0)
    size: int = 0
    """Bytes of the table, as its vtable states them."""

    @property
    def end(self) -> int:
        """Offset of the first byte behind the table."""
        return self.offset + self.size

    def span_of(self, name: str, size: int) -> Span | None:
        """The bytes of a field, None where it is absent."""
        return Span(self.places[name], size) if name in self.places else None


@dataclass(slots=True)
class WalkFault:
    """A place that breaks the layout.

    ``code``: outside, vtable, field-outside, alignment, overlap, flag, text, text-end, union, limit.
    """

    code: str
    span: Span
    detail: str


@dataclass(slots=True)
class Walk:
    """What a walk found: tables in the order met, owned spans with what they hold, faults."""

    data: bytes
    tables: list[Table] = field(default_factory=list)
    parts: set[tuple[Span, str]] = field(default_factory=set)
    """Spans that a part of the file owns, and what it is; those shared by several owners once."""
    faults: list[WalkFault] = field(default_factory=list)

    def owned(self) -> list[Span]:
        """The owned spans, ascending."""
        return sorted({span for span, _ in self.parts})

    def claim(self, offset: int, length: int, what: str) -> None:
        """Enter a part."""
        self.parts.add((Span(offset, length), what))

    def fault(self, code: str, span: Span, detail: str) -> None:
        """Enter a fault."""
        self.faults.append(WalkFault(code, span, detail))

    def i32(self, offset: int) -> int:
        """The signed number at an offset inside the file."""
        number: int = _I32.unpack_from(self.data, offset)[0]
        return number

    def scalar(self, table: Table, name: str, default: int = 0) -> int:
        """A whole number of a table, its default where it is absent; signed where the schema has it signed."""
        place = table.places.get(name)
        if place is None:
            return default
        size, signed = table.numbers[name]
        return int.from_bytes(self.data[place : place + size], "little", signed=signed)

    def numbers(self, table: Table, name: str, size: int = 4, *, signed: bool = False) -> list[tuple[int, int]]:
        """(offset, value) of the items of a vector of whole numbers; none where the vector leaves the file."""
        first, count = self.vector(table, name)
        if first + count * size > len(self.data):
            return []
        places = range(first, first + count * size, size)
        return [(place, int.from_bytes(self.data[place : place + size], "little", signed=signed)) for place in places]

    def targets(self, table: Table, name: str) -> list[int]:
        """Where the offsets of a vector of tables or texts lead; none where the vector leaves the file."""
        return [place + distance for place, distance in self.numbers(table, name)]

    def u32(self, offset: int) -> int | None:
        """The number at an offset, None outside the file."""
        return _U32.unpack_from(self.data, offset)[0] if 0 <= offset <= len(self.data) - 4 else None

    def target(self, offset: int) -> int | None:
        """Where the offset stored at ``offset`` leads."""
        distance = self.u32(offset)
        return offset + distance if distance is not None else None

    def text(self, table: Table, name: str) -> str | None:
        """A text field; None where it is absent or not text."""
        place = self.target(table.places[name]) if name in table.places else None
        length = self.u32(place) if place is not None else None
        if place is None or length is None or place + 4 + length > len(self.data):
            return None
        return self.data[place + 4 : place + 4 + length].decode("utf-8", "backslashreplace")

    def vector(self, table: Table, name: str) -> tuple[int, int]:
        """(offset of the first item, number of items) of a vector field; (0, 0) where it is absent or outside."""
        place = self.target(table.places[name]) if name in table.places else None
        count = self.u32(place) if place is not None else None
        return (place + 4, count) if place is not None and count is not None else (0, 0)


def walk(data: bytes, schema: Schema, root: str, unions: Mapping[str, Mapping[int, str]], most: int) -> Walk:
    """Walk from the root. ``unions`` maps a table to what its union field holds for each value of its `type` field.

    ``most`` tables are walked; then a fault says so. Each place is walked once as each type, so shared parts cost nothing.
    """
    found = Walk(data)
    found.claim(0, 8, "head")
    start = found.target(0)
    stack: list[tuple[str, int, int]] = [(root, start, 0)] if start is not None else []
    if start is None:
        found.fault("outside", Span(0, len(data)), "the file ends before the root offset")
    seen: set[tuple[str, int]] = set()
    while stack:
        kind, offset, pointer = stack.pop()
        if (kind, offset) in seen:
            continue
        seen.add((kind, offset))
        if len(seen) > most:
            found.fault("limit", Span(offset, 4), f"more than {most} parts")
            break
        if offset % _OFFSET_SIZE:
            found.fault("alignment", Span(pointer, _OFFSET_SIZE), f"an offset leads to {offset}, no multiple of {_OFFSET_SIZE}")
        if kind in ("text", "bytes"):
            _claim_text(found, offset, pointer, kind)
        elif kind.startswith("["):
            stack.extend(_claim_vector(found, kind[1:-1], offset, pointer))
        else:
            stack.extend(_claim_table(found, schema, kind, offset, pointer, unions))
    _find_overlaps(found)
    return found


def _find_overlaps(found: Walk) -> None:
    """No two parts share a byte; a part that several owners share was entered once."""
    end, before = 0, ""
    for span, what in sorted(found.parts):
        if span.offset < end and span.length:
            found.fault("overlap", Span(span.offset, min(end, span.end) - span.offset), f"{what} overlaps {before}")
        if span.end > end:
            end, before = span.end, what


def _outside(found: Walk, pointer: int, what: str) -> None:
    found.fault("outside", Span(pointer, _OFFSET_SIZE), f"{what} lies outside the file")


def _claim_text(found: Walk, offset: int, pointer: int, kind: str) -> None:
    length = found.u32(offset)
    if length is None or offset + 4 + length + 1 > len(found.data):
        _outside(found, pointer, "a text")
        return
    found.claim(offset, 4 + length + 1, "a text")
    if found.data[offset + 4 + length]:
        found.fault("text-end", Span(offset + 4 + length, 1), "a text does not end with a zero")
    if kind == "text" and not is_text(found.data[offset + 4 : offset + 4 + length]):
        found.fault("text", Span(offset + 4, length), "a text is not UTF-8")


def _claim_vector(found: Walk, item: str, offset: int, pointer: int) -> Iterator[tuple[str, int, int]]:
    count = found.u32(offset)
    size = SCALAR_SIZES.get(item, _OFFSET_SIZE)
    if count is None or offset + 4 + count * size > len(found.data):
        _outside(found, pointer, "a vector")
        return
    found.claim(offset, 4 + count * size, f"a vector of {item}")
    if (offset + 4) % _ALIGNMENTS.get(item, _OFFSET_SIZE):
        what = f"a vector of {item} begins at {offset + 4}, where none can"
        found.fault("alignment", Span(pointer, _OFFSET_SIZE), what)
    if item in SCALAR_SIZES:
        return
    for index in range(count):
        place = offset + 4 + 4 * index
        target = found.target(place)
        assert target is not None
        yield item, target, place


def _claim_table(
    found: Walk, schema: Schema, kind: str, offset: int, pointer: int, unions: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, int, int]]:
    if not 0 <= offset <= len(found.data) - 4:
        _outside(found, pointer, f"a {kind}")
        return
    vtable = offset - found.i32(offset)
    sizes = _vtable_sizes(found, vtable)
    if sizes is None or offset + sizes[1] > len(found.data) or sizes[1] < 4:
        found.fault("vtable", Span(offset, 4), f"the vtable of a {kind} lies outside the file or is too short")
        return
    vtable_size, table_size = sizes
    if vtable % 2:
        found.fault("alignment", Span(offset, 4), f"the vtable of a {kind} lies at the odd place {vtable}")
    # Only the fields own bytes of the table: what lies between them is padding, and zero.
    found.claim(vtable, vtable_size, "a vtable")
    found.claim(offset, 4, f"a {kind}")
    fields = schema[kind]
    table = Table(kind, offset, {}, vtable=Span(vtable, vtable_size), size=table_size)
    found.tables.append(table)
    slots = (vtable_size - 4) // 2
    if slots > len(fields):
        found.fault("vtable", Span(vtable, 2), f"a {kind} has {slots} fields, the schema {len(fields)}")
    for index, entry in enumerate(fields[:slots]):
        _claim_field(found, table, entry, Span(vtable + 4 + 2 * index, 2))
    yield from _children(found, table, fields, unions)


def _claim_field(found: Walk, table: Table, entry: Field, slot_span: Span) -> None:
    slot = _U16.unpack_from(found.data, slot_span.offset)[0]
    size = SCALAR_SIZES.get(entry.type, _OFFSET_SIZE)
    if slot == 0:
        return
    name = f"{table.type}.{entry.name}"
    if slot < 4 or slot + size > table.size:
        found.fault("field-outside", slot_span, f"{name} lies outside its table")
        return
    place = table.offset + slot
    if place % size:
        found.fault("alignment", slot_span, f"{name} lies at {place}, no multiple of {size}")
    table.places[entry.name] = place
    if entry.type in _NUMBERS:
        table.numbers[entry.name] = (size, _NUMBERS[entry.type])
    found.claim(place, size, name)


def _vtable_sizes(found: Walk, vtable: int) -> tuple[int, int] | None:
    if not 0 <= vtable <= len(found.data) - 4:
        return None
    vtable_size, table_size = _U16.unpack_from(found.data, vtable)[0], _U16.unpack_from(found.data, vtable + 2)[0]
    whole = vtable_size >= 4 and vtable_size % 2 == 0 and vtable + vtable_size <= len(found.data)
    return (vtable_size, table_size) if whole else None


def _children(
    found: Walk, table: Table, fields: tuple[Field, ...], unions: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, int, int]]:
    for entry in fields:
        place = table.places.get(entry.name)
        if entry.type == "union":
            yield from _union(found, table, place, unions[table.type])
            continue
        if place is None:
            continue
        if entry.type == "bool" and found.data[place] > 1:
            found.fault("flag", Span(place, 1), f"{table.type}.{entry.name} is neither 0 nor 1")
        if entry.type not in SCALAR_SIZES:
            target = found.target(place)
            assert target is not None
            yield entry.type, target, place


def _union(found: Walk, table: Table, place: int | None, kinds: Mapping[int, str]) -> Iterator[tuple[str, int, int]]:
    """The value of a union, by the type that its table states; type 0 has none."""
    stated = table.places.get("type")
    value = found.data[stated] if stated is not None else 0
    kind = kinds.get(value)
    where = Span(stated if stated is not None else table.offset, 1)
    if value and kind is None:
        found.fault("union", where, f"{table.type} of unknown type {value}")
    elif (place is None) != (value == 0):
        what = "a value without a type" if value == 0 else f"no value for its type {value}"
        found.fault("union", where, f"{table.type} has {what}")
    if place is None or kind is None:
        return
    target = found.target(place)
    assert target is not None
    if kind not in SCALAR_SIZES:
        yield kind, target, place
        return
    size = SCALAR_SIZES[kind]
    if target + size > len(found.data):
        _outside(found, place, f"the value of a {table.type}")
        return
    if target % _ALIGNMENTS[kind]:
        found.fault("alignment", Span(place, 4), f"the value of a {table.type} lies at {target}, no multiple of {size}")
    if kind == "bool" and found.data[target] > 1:
        found.fault("flag", Span(target, 1), f"the value of a {table.type} is neither 0 nor 1")
    found.claim(target, size, f"the value of a {table.type}")
