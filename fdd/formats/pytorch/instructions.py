# SPDX-License-Identifier: Apache-2.0
"""The instructions of the mobile interpreter: which there are, and which operands lead somewhere. Nothing is interpreted.

An instruction is an opcode, an operand X (signed) and a number N (torch/csrc/jit/runtime/instruction.h and
torch/csrc/jit/mobile/interpreter.cpp). Pickled bytecode names the opcodes, FlatBuffers number them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OPCODES = tuple(
    (
        "OP OPN LOAD MOVE STOREN STORE DROP DROPR LOADC JF JMP LOOP RET WAIT CALL GUARD TYPECHECK FAIL_GUARD PROFILE_OP TAIL_CALL"
        " INTERFACE_CALL GET_ATTR SET_ATTR LIST_UNPACK TUPLE_CONSTRUCT NAMED_TUPLE_CONSTRUCT LIST_CONSTRUCT DICT_CONSTRUCT"
        " CREATE_OBJECT ISINSTANCE TUPLE_SLICE TUPLE_INDEX RAISE_EXCEPTION DICT_INDEX UNCHECKED_CAST __IS__ UN_INITIALIZED"
        " __ISNOT__ FORMAT DEVICE DTYPE DIM __NOT__ TO_LIST NUM_TO_TENSOR IS_CUDA FORK WARN ENTER EXIT AWAITABLE"
    ).split()
)
"""By their numbers."""
KNOWN = frozenset(OPCODES)
NOT_IN_MOBILE = frozenset("WAIT GUARD TYPECHECK FAIL_GUARD PROFILE_OP TAIL_CALL FORK AWAITABLE ENTER EXIT".split())
"""What only the interpreter of full TorchScript has."""
WITH_N = frozenset(
    "OPN STOREN LOOP INTERFACE_CALL NAMED_TUPLE_CONSTRUCT LIST_CONSTRUCT DICT_CONSTRUCT ISINSTANCE TUPLE_SLICE".split()
)
"""Those that read N; it is 0 in all others."""
WITH_REGISTER = frozenset("LOAD MOVE STORE DROPR STOREN".split())
WITH_JUMP = frozenset("JF JMP LOOP".split())
WITH_COUNT = frozenset("LIST_UNPACK TUPLE_CONSTRUCT FORMAT TUPLE_SLICE GET_ATTR SET_ATTR CALL".split())
"""Those whose X counts something that is not stored beside the instructions."""
WITH_OPERATOR = frozenset(("OP", "OPN"))
WITH_CONSTANT = frozenset(("LOADC", "INTERFACE_CALL"))
WITH_TYPE = frozenset("NAMED_TUPLE_CONSTRUCT LIST_CONSTRUCT DICT_CONSTRUCT CREATE_OBJECT ISINSTANCE".split())
WITH_ANY = frozenset(("WARN",))
MOST_COUNTED = 1 << 16
"""Items, attributes or functions that an operand can sensibly speak of."""


@dataclass(frozen=True, slots=True)
class Tables:
    """How much of what a function's operands lead to there is: counts."""

    instructions: int
    operators: int
    constants: int
    types: int
    registers: int


def faults_of(tables: Tables, opcode: str, index: int, operand: int, number: int) -> Iterator[tuple[str, str]]:
    """(part, what is wrong) for the instruction at ``index``; part: opcode, number, operand."""
    if opcode not in KNOWN or opcode in NOT_IN_MOBILE:
        yield "opcode", f"the mobile interpreter knows no opcode {opcode}"
        return
    if number and opcode not in WITH_N:
        yield "number", f"{opcode} takes no number, and {number} stands there"
    if not _fits(tables, opcode, index, operand, number):
        shown = f"the operand {operand}{f' and the number {number}' if number else ''}"
        yield "operand", f"{opcode} has {shown}, which leads nowhere"


def highest_register(opcode: str, operand: int, number: int) -> int:
    """The highest register an instruction touches, 0 for those that touch none."""
    if opcode not in WITH_REGISTER:
        return 0
    return operand + (number - 1 if opcode == "STOREN" else 0)


def _fits(tables: Tables, opcode: str, index: int, operand: int, number: int) -> bool:
    if opcode in WITH_REGISTER:
        return operand >= 1 and highest_register(opcode, operand, number) <= tables.registers
    if opcode in WITH_JUMP:
        return operand != 0 and 0 <= index + operand < tables.instructions
    if opcode in WITH_OPERATOR:
        return 0 <= operand < tables.operators
    if opcode in WITH_CONSTANT:
        return 0 <= operand < tables.constants
    if opcode in WITH_TYPE:
        return operand >= 0 and operand + (number if opcode == "ISINSTANCE" else 1) <= tables.types
    if opcode in WITH_COUNT:
        return 0 <= operand < MOST_COUNTED
    return operand == 0 or opcode in WITH_ANY
