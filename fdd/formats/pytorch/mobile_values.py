# SPDX-License-Identifier: Apache-2.0
"""Holds the values of a mobile module against each other: every index in range, of the right kind, and to an earlier value.

The reader makes the values in their order, so a value can only be made of those in front of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fdd.core.span import Span
from fdd.formats.pytorch.flatbuffers import Table, Walk
from fdd.formats.pytorch.mobile_facts import MobileFacts

FUNCTION_TYPE, OBJECT_TYPE = 16, 10
WITH_FIELDS, CUSTOM_CLASS, WITH_SETSTATE, NO_OBJECT = 1, 2, 3, 4
"""Values of ObjectType.type."""
NONE_INDEX = 0
"""Value 0 is None."""
INDEX_VECTORS = {
    "List": ("items",),
    "Tuple": ("items",),
    "Dict": ("keys", "values"),
    "Object": ("attributes",),
    "Function": ("constants",),
}
"""Vectors of indexes into the values of the module, by the table they stand in."""
INDEX_FIELDS = {"EnumValue": ("value",), "Object": ("state", "setstate"), "Arg": ("default",)}
"""Single indexes into the values; 0, the value None, where they are absent."""


@dataclass(slots=True)
class Values:
    """The values of a module: what each is (number of its type), the table that holds it, and which are referred to."""

    types: list[int]
    tables: list[Table | None]
    used: set[int] = field(default_factory=set)


def check_values(facts: MobileFacts, found: Walk, module: Table) -> None:
    """State every reference that leads nowhere, or to something that cannot stand there, and what nothing refers to."""
    values = _values(found, module)
    types = _object_types(found, module)
    owner = {table.offset: index for index, table in enumerate(values.tables) if table is not None}
    for table in found.tables:
        for place, value, what in _references(found, table):
            _refer(facts, values, place, value, what, owner.get(table.offset))
        if table.type == "Object":
            _check_object(facts, found, table, types)
        elif table.type == "Dict":
            keys, items = found.vector(table, "keys")[1], found.vector(table, "values")[1]
            if keys != items:
                facts.wrong.append((f"a dict has {keys} keys and {items} values", Span(table.offset, 4)))
    _check_module(facts, found, module, values, types)
    _check_use(facts, found, module, values, types)


def _values(found: Walk, module: Table) -> Values:
    by_offset = {table.offset: table for table in found.tables}
    boxes = [by_offset.get(target) for target in found.targets(module, "ivalues")]
    values = Values([], [])
    for box in boxes:
        values.types.append(found.scalar(box, "type") if box is not None else 0)
        place = box.places.get("value") if box is not None else None
        target = found.target(place) if place is not None else None
        values.tables.append(by_offset.get(target) if target is not None else None)
    return values


def _object_types(found: Walk, module: Table) -> list[Table | None]:
    by_offset = {table.offset: table for table in found.tables if table.type == "ObjectType"}
    return [by_offset.get(target) for target in found.targets(module, "object_types")]


def _references(found: Walk, table: Table) -> Iterator[tuple[Span, int, str]]:
    """(place, index, what it is) of every index into the values that a table holds."""
    for name in INDEX_VECTORS.get(table.type, ()):
        for place, value in found.numbers(table, name):
            yield Span(place, 4), value, f"{table.type}.{name}"
    for name in INDEX_FIELDS.get(table.type, ()):
        if name in table.places:
            yield Span(table.places[name], 4), found.scalar(table, name), f"{table.type}.{name}"


def _refer(facts: MobileFacts, values: Values, place: Span, value: int, what: str, owner: int | None) -> None:
    if value >= len(values.types):
        facts.wrong.append((f"{what} refers to value {value} of {len(values.types)}", place))
        return
    values.used.add(value)
    if owner is not None and value >= owner:
        facts.wrong.append((f"{what} of value {owner} refers to value {value}, which is not made yet", place))


def _check_object(facts: MobileFacts, found: Walk, table: Table, types: list[Table | None]) -> None:
    index = found.scalar(table, "type_index")
    place = table.span_of("type_index", 4) or Span(table.offset, 4)
    kind = types[index] if index < len(types) else None
    if kind is None:
        facts.wrong.append((f"an object refers to type {index} of {len(types)}", place))
        return
    attributes, names = found.vector(table, "attributes")[1], found.vector(kind, "attributes")[1]
    if found.scalar(kind, "type") == WITH_FIELDS and attributes != names:
        what = f"an object has {attributes} attributes, its type {found.text(kind, 'name')} has {names}"
        facts.wrong.append((what, table.span_of("attributes", 4) or place))


def _check_module(facts: MobileFacts, found: Walk, module: Table, values: Values, types: list[Table | None]) -> None:
    whole = Span(module.offset, 4)
    for place, value in found.numbers(module, "methods"):
        _refer(facts, values, Span(place, 4), value, "a method", None)
        if value < len(values.types) and values.types[value] != FUNCTION_TYPE:
            facts.wrong.append((f"a method is value {value}, which is no function", Span(place, 4)))
    for place, value in found.numbers(module, "jit_constants"):
        _refer(facts, values, Span(place, 4), value, "a constant", None)
    state = found.scalar(module, "state_obj")
    place_of_state = module.span_of("state_obj", 4) or whole
    _refer(facts, values, place_of_state, state, "the state of the module", None)
    if state < len(values.types) and values.types[state] != OBJECT_TYPE:
        facts.wrong.append((f"the state of the module is value {state}, which is no object", place_of_state))
    stated = found.scalar(module, "mobile_ivalue_size", len(values.types))
    if stated > len(values.types):
        what = f"the module states {stated} values and holds {len(values.types)}"
        facts.wrong.append((what, module.span_of("mobile_ivalue_size", 4) or whole))
    for table in found.tables:
        if table.type == "Function" and "class_type" in table.places and found.scalar(table, "class_type") >= len(types):
            what = f"a function refers to type {found.scalar(table, 'class_type')} of {len(types)}"
            facts.wrong.append((what, Span(table.places["class_type"], 4)))
        if table.type == "ObjectType" and not WITH_FIELDS <= found.scalar(table, "type") <= NO_OBJECT:
            what = f"a type is of the unknown sort {found.scalar(table, 'type')}"
            facts.wrong.append((what, table.span_of("type", 1) or Span(table.offset, 4)))


def _check_use(facts: MobileFacts, found: Walk, module: Table, values: Values, types: list[Table | None]) -> None:
    """torch stores nothing that nothing asks for."""
    boxes = found.targets(module, "ivalues")
    first = found.vector(module, "ivalues")[0]
    functions = {index for index, kind in enumerate(values.types) if kind == FUNCTION_TYPE}
    for index in range(len(boxes)):
        # Functions are called by their names as well.
        if index != NONE_INDEX and index not in values.used and index not in functions:
            facts.unused.append((f"value {index} is referred to by nothing", Span(first + 4 * index, 4)))
    first = found.vector(module, "storage_data")[0]
    for index in range(len(found.targets(module, "storage_data"))):
        if index not in facts.used_storages:
            facts.unused.append((f"storage {index} belongs to no tensor", Span(first + 4 * index, 4)))
    used_types = {found.scalar(table, "type_index") for table in found.tables if table.type == "Object"}
    used_types |= {found.scalar(table, "class_type") for table in found.tables if table.type == "Function"}
    first = found.vector(module, "object_types")[0]
    for index in range(len(types)):
        if index not in used_types:
            facts.unused.append((f"type {index} belongs to no object", Span(first + 4 * index, 4)))
