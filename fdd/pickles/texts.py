# SPDX-License-Identifier: Apache-2.0
"""Where the texts and byte strings of a pickle lie, found by its opcodes alone."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.pickles import faults
from fdd.pickles.arguments import argument_end
from fdd.pickles.faults import FatalFault
from fdd.pickles.opcodes import BY_CODE, BY_NAME

TEXTS = frozenset(
    BY_NAME[name].code
    for name in (
        "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE",
        "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8",
    )
)  # fmt: skip
"""Codes of the opcodes whose argument may be any text or bytes."""
_STOP = BY_NAME["STOP"].code


def texts_of_first(head: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Where every argument that is a text or a byte string begins (with its length, if it has one) and the offset behind it:
    of the pickle at the beginning, up to its STOP or first fault.

    ``head`` are the first of ``size`` bytes: a text may reach behind them. One that announces more bytes than the file has
    was cut, and counts to the end.
    """
    position = 0
    while position < len(head):
        opcode = BY_CODE[head[position]]
        if opcode is None or opcode.code == _STOP:
            return
        try:
            end = argument_end(opcode, head, position + 1, size)
        except FatalFault as fault:
            if fault.code not in (faults.NO_NEWLINE, faults.ARGUMENT_PAST_END) or opcode.code not in TEXTS:
                return
            end = size
        if opcode.code in TEXTS:
            yield position + 1, end
        position = end


def goes_beyond(head: bytes, size: int) -> bool:
    """Whether the opcodes at the beginning lead out of ``head`` and stay within the ``size`` bytes of the file."""
    position = 0
    while position < len(head):
        opcode = BY_CODE[head[position]]
        if opcode is None or opcode.code == _STOP:
            return False
        try:
            position = argument_end(opcode, head, position + 1, size)
        except FatalFault as fault:
            return fault.code == faults.NO_NEWLINE
    return position <= size
