# SPDX-License-Identifier: Apache-2.0
"""Reads the functions of a mobile module: instructions whose operands lead nowhere, operators that reach outside."""

from __future__ import annotations

from struct import Struct

from fdd.core.span import Span
from fdd.formats.pytorch.document import CodeUse, TorchDocument
from fdd.formats.pytorch.flatbuffers import Table, Walk
from fdd.formats.pytorch.instructions import OPCODES, Tables, faults_of, highest_register
from fdd.formats.pytorch.mobile_facts import MobileFacts
from fdd.formats.pytorch.script_code import is_dangerous_operator

_INSTRUCTION = Struct("<BBHi")
"""Opcode, a byte of nothing, N, X."""
PLACES = {"opcode": (0, 1), "number": (2, 2), "operand": (4, 4)}
"""Part of an instruction -> offset and length in it."""
MOST_ARGUMENTS = 256
UNKNOWN_COUNT = -1
"""Of an operator's arguments: not stated."""
MOST_HANDLE = 1 << 40


def check_functions(document: TorchDocument, facts: MobileFacts, found: Walk) -> None:
    """State instructions that cannot run, and enter operators that reach outside the program."""
    by_offset = {table.offset: table for table in found.tables if table.type == "DebugInfo"}
    for table in found.tables:
        if table.type == "Operator":
            _operator(document, facts, found, table)
        elif table.type == "Function":
            _instructions(facts, found, table)
            place = table.places.get("debug_info")
            target = found.target(place) if place is not None else None
            if target in by_offset:
                _handles(facts, found, table, by_offset[target])


def _operator(document: TorchDocument, facts: MobileFacts, found: Walk, table: Table) -> None:
    name = found.text(table, "name") or ""
    count = found.scalar(table, "argument_count", UNKNOWN_COUNT)
    if not UNKNOWN_COUNT <= count <= MOST_ARGUMENTS:
        place = Span(table.places["argument_count"], 4)
        facts.wrong_code.append((f"the operator {name} takes {count} arguments", place))
    if name in facts.operators:
        return
    facts.operators[name] = table.offset
    library, _, operator = name.partition("::")
    if is_dangerous_operator(library, operator):
        document.code.append(CodeUse(name, "dangerous", "module", Span(table.offset, 4)))


def _instructions(facts: MobileFacts, found: Walk, table: Table) -> None:
    first, count = found.vector(table, "instructions")
    if first + count * _INSTRUCTION.size > len(found.data):
        return
    tables = Tables(
        instructions=count,
        operators=found.vector(table, "operators")[1],
        constants=found.vector(table, "constants")[1],
        types=found.vector(table, "type_names")[1],
        registers=found.scalar(table, "register_size"),
    )
    name, highest, last = found.text(table, "name") or "a function", 0, ""
    for index in range(count):
        place = first + index * _INSTRUCTION.size
        code, nothing, number, operand = _INSTRUCTION.unpack_from(found.data, place)
        if nothing:
            facts.stray.append(Span(place + 1, 1))
        last = OPCODES[code] if code < len(OPCODES) else str(code)
        for part, what in faults_of(tables, last, index, operand, number):
            start, length = PLACES[part]
            facts.wrong_code.append((f"{name}, instruction {index}: {what}", Span(place + start, length)))
        highest = max(highest, highest_register(last, operand, number))
    if last != "RET":
        what = f"{name} does not end with RET" if count else f"{name} has no instructions"
        facts.wrong_code.append((what, Span(max(first - 4, first + (count - 1) * _INSTRUCTION.size), 4)))
    if highest < tables.registers:
        what = f"{name} asks for {tables.registers} registers and uses {highest}"
        facts.unused.append((what, table.span_of("register_size", 4) or Span(table.offset, 4)))


def _handles(facts: MobileFacts, found: Walk, function: Table, debug: Table) -> None:
    """One handle for each instruction, or none at all; torch counts them up."""
    name = found.text(function, "name") or "a function"
    instructions = found.vector(function, "instructions")[1]
    handles = found.numbers(debug, "handles", 8, signed=True)
    if handles and len(handles) != instructions:
        what = f"{name} has {instructions} instructions and {len(handles)} debug handles"
        facts.wrong.append((what, debug.span_of("handles", 4) or Span(debug.offset, 4)))
    before: int | None = None
    for number, (place, handle) in enumerate(handles):
        in_line = before is None or handle in (before, before + 1)
        if not in_line or not -1 <= handle < MOST_HANDLE:
            facts.unused.append((f"debug handle {handle} of {name}, instruction {number}, is out of line", Span(place, 8)))
        before = handle
