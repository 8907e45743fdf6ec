# SPDX-License-Identifier: Apache-2.0
"""What the rules on pickles have in common: picking faults and opcodes out of the facts, and where they lie."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.span import Span
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.pickles import faults as codes
from fdd.pickles.nodes import PickleFault
from fdd.pickles.opcodes import BY_NAME

INCOMPLETE = (codes.UNKNOWN_OPCODE, codes.NO_NEWLINE, codes.ARGUMENT_PAST_END)
LENGTHS = (codes.ARGUMENT_PAST_END, codes.NEGATIVE_LENGTH)
TEXTS = (codes.BAD_DECIMAL, codes.BAD_FLOAT, codes.BAD_STRING, codes.BAD_UNICODE_ESCAPE)
STACK = (codes.STACK_UNDERFLOW, codes.MEMO_NOTHING_TO_PUT)
MARKS = (codes.NO_MARK, codes.POP_ACROSS_MARK, codes.MARK_LEFT)
OPERANDS = (codes.ARGUMENTS_NOT_TUPLE, codes.KEYWORDS_NOT_DICT, codes.GLOBAL_NOT_TEXT, codes.ODD_ITEMS)


def faults(document: TorchDocument, *wanted: str) -> Iterator[tuple[PickleRecord, PickleFault]]:
    """The faults with these codes in the pickles that the format asks for."""
    for pickle in document.judged_pickles():
        for fault in pickle.facts.faults:
            if fault.code in wanted:
                yield pickle, fault


def fault_place(pickle: PickleRecord, fault: PickleFault) -> Span:
    """Where a fault lies: its opcode with the argument; for a missing STOP the end of the pickle."""
    if fault.length == 0 and fault.offset > pickle.facts.start:
        return pickle.place(fault.offset - 1)
    return pickle.place(fault.offset, max(1, fault.length))


def named(fault: PickleFault) -> str:
    """Opcode and detail in words."""
    return f"{fault.opcode}: {fault.detail}" if fault.opcode else fault.detail


def opcode_place(pickle: PickleRecord, name: str) -> Span:
    """Where an opcode with a fixed argument, or none, first stands in a pickle that has it."""
    form = BY_NAME[name].form
    return pickle.place(pickle.facts.opcodes[name][1], 1 + form.fixed + form.prefix)
