# SPDX-License-Identifier: Apache-2.0
"""A strict walker over FlatBuffers by a schema. It follows every offset once, states what leaves the file, runs nothing.

Layout (FlatBuffers documentation, "Internals"): a root offset of 4 bytes at 0; offsets are relative to their own place;
a table begins with the signed distance to its vtable; a vtable is its own size, the table's size, then one 2-byte slot a
field (0: absent).
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


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table, in slot order. ``type``: a scalar, `text`, a table's name, `[type]` for a vector, `union`."""

    name: str
    type: str


Schema = Mapping[str, tuple[Field, ...]]


@dataclass(slots=True)
class Table:
    """A table that was walked: where it lies, and where each present field lies (absolute offsets)."""

    type: str
    offset: int
    places: dict[str, int]

    def span_of(self, name: str, size: int) -> Span | None:
        """The bytes of a field, None where it is absent."""
        return Span(self.places[name], size) if name in self.places else None


@dataclass(slots=True)
class WalkFault:
    """A place that breaks the layout. ``code``: outside, vtable, field-outside, flag, text, text-end, union, overlap-limit."""

    code: str
    span: Span
    detail: str


@dataclass(slots=True)
class Walk:
    """What a walk found: tables in the order met, owned spans, faults."""

    data: bytes
    tables: list[Table] = field(default_factory=list)
    owned: list[Span] = field(default_factory=list)
    faults: list[WalkFault] = field(default_factory=list)

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
    found.owned.append(Span(0, 8))
    start = found.target(0)
    stack: list[tuple[str, int, int]] = [(root, start, 0)] if start is not None else []
    if start is None:
        found.faults.append(WalkFault("outside", Span(0, len(data)), "the file ends before the root offset"))
    seen: set[tuple[str, int]] = set()
    while stack:
        kind, offset, pointer = stack.pop()
        if (kind, offset) in seen:
            continue
        seen.add((kind, offset))
        if len(seen) > most:
            found.faults.append(WalkFault("overlap-limit", Span(offset, 4), f"more than {most} parts"))
            break
        if kind == "text":
            _claim_text(found, offset, pointer)
        elif kind.startswith("["):
            stack.extend(_claim_vector(found, kind[1:-1], offset, pointer))
        else:
            stack.extend(_claim_table(found, schema, kind, offset, pointer, unions))
    return found


def _outside(found: Walk, pointer: int, what: str) -> None:
    found.faults.append(WalkFault("outside", Span(pointer, 4), f"{what} lies outside the file"))


def _claim_text(found: Walk, offset: int, pointer: int) -> None:
    length = found.u32(offset)
    if length is None or offset + 4 + length + 1 > len(found.data):
        _outside(found, pointer, "a text")
        return
    found.owned.append(Span(offset, 4 + length + 1))
    if found.data[offset + 4 + length]:
        found.faults.append(WalkFault("text-end", Span(offset + 4 + length, 1), "a text does not end with a zero"))
    if not is_text(found.data[offset + 4 : offset + 4 + length]):
        found.faults.append(WalkFault("text", Span(offset + 4, length), "a text is not UTF-8"))


def _claim_vector(found: Walk, item: str, offset: int, pointer: int) -> Iterator[tuple[str, int, int]]:
    count = found.u32(offset)
    size = SCALAR_SIZES.get(item, 4)
    if count is None or offset + 4 + count * size > len(found.data):
        _outside(found, pointer, "a vector")
        return
    found.owned.append(Span(offset, 4 + count * size))
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
    vtable = offset - _I32.unpack_from(found.data, offset)[0]
    sizes = _vtable_sizes(found, vtable)
    if sizes is None or offset + sizes[1] > len(found.data) or sizes[1] < 4:
        found.faults.append(WalkFault("vtable", Span(offset, 4), f"the vtable of a {kind} lies outside the file or is too short"))
        return
    vtable_size, table_size = sizes
    # Only the fields own bytes of the table: what lies between them is padding, and zero.
    found.owned += [Span(vtable, vtable_size), Span(offset, 4)]
    fields = schema[kind]
    table = Table(kind, offset, {})
    found.tables.append(table)
    slots = (vtable_size - 4) // 2
    if slots > len(fields):
        found.faults.append(WalkFault("vtable", Span(vtable, 2), f"a {kind} has {slots} fields, the schema {len(fields)}"))
    for index, entry in enumerate(fields[:slots]):
        slot = _U16.unpack_from(found.data, vtable + 4 + 2 * index)[0]
        size = SCALAR_SIZES.get(entry.type, 4)
        if slot == 0:
            continue
        if slot < 4 or slot + size > table_size:
            found.faults.append(
                WalkFault("field-outside", Span(vtable + 4 + 2 * index, 2), f"{kind}.{entry.name} lies outside its table")
            )
            continue
        table.places[entry.name] = offset + slot
        found.owned.append(Span(offset + slot, size))
    yield from _children(found, table, fields, unions)


def _vtable_sizes(found: Walk, vtable: int) -> tuple[int, int] | None:
    if not 0 <= vtable <= len(found.data) - 4:
        return None
    vtable_size, table_size = _U16.unpack_from(found.data, vtable)[0], _U16.unpack_from(found.data, vtable + 2)[0]
    return (
        (vtable_size, table_size)
        if vtable_size >= 4 and vtable_size % 2 == 0 and vtable + vtable_size <= len(found.data)
        else None
    )


def _children(
    found: Walk, table: Table, fields: tuple[Field, ...], unions: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, int, int]]:
    for entry in fields:
        place = table.places.get(entry.name)
        if place is not None and entry.type == "bool" and found.data[place] > 1:
            found.faults.append(WalkFault("flag", Span(place, 1), f"{table.type}.{entry.name} is neither 0 nor 1"))
        if place is None or entry.type in SCALAR_SIZES:
            continue
        kind: str | None = entry.type
        if kind == "union":
            kind = _union_type(found, table, unions)
            if kind is None:
                continue
        target = found.target(place)
        assert target is not None and kind is not None
        if kind in SCALAR_SIZES:
            if target + SCALAR_SIZES[kind] > len(found.data):
                _outside(found, place, f"the value of a {table.type}")
            else:
                found.owned.append(Span(target, SCALAR_SIZES[kind]))
            continue
        yield kind, target, place


def _union_type(found: Walk, table: Table, unions: Mapping[str, Mapping[int, str]]) -> str | None:
    place = table.places.get("type")
    value = found.data[place] if place is not None else 0
    kind = unions[table.type].get(value)
    if kind is None and value:
        found.faults.append(WalkFault("union", Span(place or table.offset, 1), f"{table.type} of unknown type {value}"))
    return kind
