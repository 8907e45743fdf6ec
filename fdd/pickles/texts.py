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
    """First and last offset of every text and byte string of the pickle at the beginning, up to its STOP or first fault.

    ``head`` are the first of ``size`` bytes: a text may reach behind them.
    """
    position = 0
    while position < len(head):
        opcode = BY_CODE[head[position]]
        if opcode is None or opcode.code == _STOP:
            return
        try:
            end = argument_end(opcode, head, position + 1, size)
        except FatalFault as fault:
            if fault.code != faults.NO_NEWLINE:
                return
            end = size
        if opcode.code in TEXTS:
            yield position + 1, end
        position = end
