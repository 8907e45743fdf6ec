# SPDX-License-Identifier: Apache-2.0
"""The opcodes of pickle protocols 0 to 5: code, argument, protocol that introduced each, values each creates.

Source: the CPython pickle protocol (PEP 307, 3154, 574). The table is the one home of these facts; the tests compare it
with CPython's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

HIGHEST_PROTOCOL = 5


class Form(Enum):
    """How an argument lies in the stream: (fixed bytes, lines, bytes of a length prefix). Integers are little-endian.

    A length prefix is followed by as many bytes as it says; a line runs to and includes its newline.
    """

    NONE = (0, 0, 0, "")
    UINT1 = (1, 0, 0, "unsigned byte")
    UINT2 = (2, 0, 0, "unsigned 16-bit")
    INT4 = (4, 0, 0, "signed 32-bit")
    UINT4 = (4, 0, 0, "unsigned 32-bit")
    UINT8 = (8, 0, 0, "unsigned 64-bit")
    FLOAT8 = (8, 0, 0, "big-endian IEEE 754 double")
    DECIMAL_LINE = (0, 1, 0, "decimal number")
    FLOAT_LINE = (0, 1, 0, "float in decimal")
    STRING_LINE = (0, 1, 0, "quoted byte string")
    UNICODE_LINE = (0, 1, 0, "raw-unicode-escape text")
    TEXT_LINE = (0, 1, 0, "text")
    TWO_LINES = (0, 2, 0, "module, then name")
    COUNTED1 = (0, 0, 1, "unsigned byte length, bytes")
    COUNTED4 = (0, 0, 4, "unsigned 32-bit length, bytes")
    SIGNED_COUNTED4 = (0, 0, 4, "signed 32-bit length, bytes")
    COUNTED8 = (0, 0, 8, "unsigned 64-bit length, bytes")

    def __init__(self, fixed: int, lines: int, prefix: int, description: str) -> None:
        self.fixed = fixed
        self.lines = lines
        self.prefix = prefix
        self.description = description


@dataclass(frozen=True, slots=True)
class Opcode:
    """One opcode. ``creates`` counts the values it makes anew (a memo read or a DUP makes none)."""

    name: str
    code: int
    form: Form
    protocol: int
    creates: int


def _opcodes() -> tuple[Opcode, ...]:
    form = Form
    rows: tuple[tuple[str, str, Form, int, int], ...] = (
        # Integers and floats
        ("INT", "I", form.DECIMAL_LINE, 0, 1),
        ("BININT", "J", form.INT4, 1, 1),
        ("BININT1", "K", form.UINT1, 1, 1),
        ("BININT2", "M", form.UINT2, 1, 1),
        ("LONG", "L", form.DECIMAL_LINE, 0, 1),
        ("LONG1", "\x8a", form.COUNTED1, 2, 1),
        ("LONG4", "\x8b", form.SIGNED_COUNTED4, 2, 1),
        ("FLOAT", "F", form.FLOAT_LINE, 0, 1),
        ("BINFLOAT", "G", form.FLOAT8, 1, 1),
        # None and truth values
        ("NONE", "N", form.NONE, 0, 1),
        ("NEWTRUE", "\x88", form.NONE, 2, 1),
        ("NEWFALSE", "\x89", form.NONE, 2, 1),
        # Byte strings of Python 2, bytes, texts
        ("STRING", "S", form.STRING_LINE, 0, 1),
        ("BINSTRING", "T", form.SIGNED_COUNTED4, 1, 1),
        ("SHORT_BINSTRING", "U", form.COUNTED1, 1, 1),
        ("BINBYTES", "B", form.COUNTED4, 3, 1),
        ("SHORT_BINBYTES", "C", form.COUNTED1, 3, 1),
        ("BINBYTES8", "\x8e", form.COUNTED8, 4, 1),
        ("BYTEARRAY8", "\x96", form.COUNTED8, 5, 1),
        ("UNICODE", "V", form.UNICODE_LINE, 0, 1),
        ("SHORT_BINUNICODE", "\x8c", form.COUNTED1, 4, 1),
        ("BINUNICODE", "X", form.COUNTED4, 1, 1),
        ("BINUNICODE8", "\x8d", form.COUNTED8, 4, 1),
        # Buffers outside the stream
        ("NEXT_BUFFER", "\x97", form.NONE, 5, 1),
        ("READONLY_BUFFER", "\x98", form.NONE, 5, 0),
        # Containers
        ("EMPTY_LIST", "]", form.NONE, 1, 1),
        ("APPEND", "a", form.NONE, 0, 0),
        ("APPENDS", "e", form.NONE, 1, 0),
        ("LIST", "l", form.NONE, 0, 1),
        ("EMPTY_TUPLE", ")", form.NONE, 1, 1),
        ("TUPLE", "t", form.NONE, 0, 1),
        ("TUPLE1", "\x85", form.NONE, 2, 1),
        ("TUPLE2", "\x86", form.NONE, 2, 1),
        ("TUPLE3", "\x87", form.NONE, 2, 1),
        ("EMPTY_DICT", "}", form.NONE, 1, 1),
        ("DICT", "d", form.NONE, 0, 1),
        ("SETITEM", "s", form.NONE, 0, 0),
        ("SETITEMS", "u", form.NONE, 1, 0),
        ("EMPTY_SET", "\x8f", form.NONE, 4, 1),
        ("ADDITEMS", "\x90", form.NONE, 4, 0),
        ("FROZENSET", "\x91", form.NONE, 4, 1),
        # The stack
        ("POP", "0", form.NONE, 0, 0),
        ("DUP", "2", form.NONE, 0, 0),
        ("MARK", "(", form.NONE, 0, 0),
        ("POP_MARK", "1", form.NONE, 1, 0),
        # The memo
        ("GET", "g", form.DECIMAL_LINE, 0, 0),
        ("BINGET", "h", form.UINT1, 1, 0),
        ("LONG_BINGET", "j", form.UINT4, 1, 0),
        ("PUT", "p", form.DECIMAL_LINE, 0, 0),
        ("BINPUT", "q", form.UINT1, 1, 0),
        ("LONG_BINPUT", "r", form.UINT4, 1, 0),
        ("MEMOIZE", "\x94", form.NONE, 4, 0),
        # Names and calls
        ("EXT1", "\x82", form.UINT1, 2, 1),
        ("EXT2", "\x83", form.UINT2, 2, 1),
        ("EXT4", "\x84", form.INT4, 2, 1),
        ("GLOBAL", "c", form.TWO_LINES, 0, 1),
        ("STACK_GLOBAL", "\x93", form.NONE, 4, 1),
        ("REDUCE", "R", form.NONE, 0, 1),
        ("BUILD", "b", form.NONE, 0, 0),
        ("INST", "i", form.TWO_LINES, 0, 2),
        ("OBJ", "o", form.NONE, 1, 1),
        ("NEWOBJ", "\x81", form.NONE, 2, 1),
        ("NEWOBJ_EX", "\x92", form.NONE, 4, 1),
        # The stream
        ("PROTO", "\x80", form.UINT1, 2, 0),
        ("STOP", ".", form.NONE, 0, 0),
        ("FRAME", "\x95", form.UINT8, 4, 0),
        # Persistent ids
        ("PERSID", "P", form.TEXT_LINE, 0, 1),
        ("BINPERSID", "Q", form.NONE, 1, 1),
    )
    return tuple(Opcode(name, ord(code), form, protocol, creates) for name, code, form, protocol, creates in rows)


OPCODES: tuple[Opcode, ...] = _opcodes()
"""All opcodes, grouped by what they do."""

BY_NAME: dict[str, Opcode] = {opcode.name: opcode for opcode in OPCODES}

BY_CODE: tuple[Opcode | None, ...] = tuple({opcode.code: opcode for opcode in OPCODES}.get(code) for code in range(256))
"""Index: the code byte; None where no opcode has it."""

NEEDS_MARK = frozenset(
    BY_NAME[name].code
    for name in ("TUPLE", "LIST", "DICT", "FROZENSET", "APPENDS", "SETITEMS", "ADDITEMS", "POP_MARK", "INST", "OBJ")
)
"""Codes of the opcodes that take everything down to the last MARK."""

READS_MEMO = frozenset(BY_NAME[name].code for name in ("GET", "BINGET", "LONG_BINGET"))
WRITES_MEMO = frozenset(BY_NAME[name].code for name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"))


def opcode_name(code: int) -> str:
    """Name of the opcode with this byte, or the byte in hexadecimal."""
    opcode = BY_CODE[code]
    return opcode.name if opcode else f"0x{code:02X}"
