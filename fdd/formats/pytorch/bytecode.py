# SPDX-License-Identifier: Apache-2.0
"""Reads bytecode.pkl of mobile archives (format.md 3.2, row 9): version, functions, instructions, operators.

The root is a tuple: the version (none in 1.5 and 1.6), then one tuple a function: name, tables, and since 1.8 a schema. The
tables are pairs of a name and a value: instructions (opcode, X, N), operators (name, overload, and since 1.9 the number of
arguments), constants, types, register_size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fdd.core.span import Span
from fdd.formats.pytorch.document import CodeUse, PickleRecord, TorchDocument
from fdd.formats.pytorch.instructions import Tables, faults_of
from fdd.formats.pytorch.persistent_ids import text_of
from fdd.formats.pytorch.pickle_values import int_of
from fdd.formats.pytorch.script_code import is_dangerous_operator
from fdd.pickles.nodes import MISSING, ListNode, Value

TABLES = ("instructions", "operators", "constants", "types", "register_size")


@dataclass(slots=True)
class BytecodeFacts:
    """What bytecode.pkl says. ``read`` is false where there is none, or where its pickle breaks off."""

    read: bool = False
    version: int | None = None
    span: Span | None = None
    record: str | None = None
    faults: list[str] = field(default_factory=list)


def read_bytecode(document: TorchDocument) -> BytecodeFacts:
    """State version and functions, and enter operators that reach outside the program."""
    facts = BytecodeFacts()
    pickle = next((found for found in document.judged_pickles() if found.role == "bytecode"), None)
    if pickle is None or pickle.facts.root is MISSING:
        return facts
    facts.read, facts.span, facts.record = True, pickle.span, pickle.record
    items = _items(pickle.facts.root)
    if items is None:
        facts.faults.append("the bytecode is no tuple")
        return facts
    facts.version = int_of(items[0]) if items else None
    for number, item in enumerate(items[1:] if facts.version is not None else items):
        facts.faults += _function(document, pickle, number, item)
    return facts


def _items(value: Value) -> list[Value] | None:
    if isinstance(value, ListNode):
        return value.items
    return list(value) if isinstance(value, tuple) else None


def _function(document: TorchDocument, pickle: PickleRecord, number: int, item: Value) -> Iterator[str]:
    parts = _items(item)
    name = text_of(parts[0]) if parts else None
    pairs = _items(parts[1]) if parts is not None and len(parts) > 1 else None
    if name is None or pairs is None:
        yield f"function {number} has no name, or no tables"
        return
    tables: dict[str, Value] = {}
    for pair in pairs:
        entry = _items(pair)
        key = text_of(entry[0]) if entry is not None and len(entry) == 2 else None
        if entry is not None and key is not None:
            tables[key] = entry[1]
    registers = int_of(tables.get("register_size"))
    found = {key: _items(tables.get(key)) for key in TABLES[:-1]}
    missing = [key for key in TABLES[:-1] if found[key] is None] + ([] if registers is not None else [TABLES[-1]])
    if missing or registers is None:
        yield f"{name} has no {', '.join(missing)}"
        return
    rows = {key: values or [] for key, values in found.items()}
    yield from _operators(document, pickle, name, rows["operators"])
    instructions, operators, constants, types = (len(rows[key]) for key in TABLES[:-1])
    counts = Tables(instructions, operators, constants, types, registers)
    yield from _instructions(name, counts, rows["instructions"])


def _operators(document: TorchDocument, pickle: PickleRecord, name: str, rows: list[Value]) -> Iterator[str]:
    for number, row in enumerate(rows):
        parts = _items(row)
        operator = text_of(parts[0]) if parts else None
        if operator is None:
            yield f"{name}, operator {number} has no name"
            continue
        library, _, word = operator.partition("::")
        if is_dangerous_operator(library, word):
            document.code.append(CodeUse(operator, "dangerous", pickle.record or "bytecode.pkl", pickle.span))


def _instructions(name: str, counts: Tables, rows: list[Value]) -> Iterator[str]:
    for index, row in enumerate(rows):
        parts = _items(row) or []
        opcode = text_of(parts[0]) if parts else None
        operand, number = (int_of(parts[1]), int_of(parts[2])) if len(parts) == 3 else (None, None)
        if opcode is None or operand is None or number is None:
            yield f"{name}, instruction {index} is no opcode with two numbers"
            continue
        yield from (f"{name}, instruction {index}: {what}" for _, what in faults_of(counts, opcode, index, operand, number))
