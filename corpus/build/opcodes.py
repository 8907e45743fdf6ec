# SPDX-License-Identifier: Apache-2.0
"""A tiny pickle assembler: one function for each opcode with an argument, constants for those without.

Nothing is checked: recipes need broken streams too.
"""

from __future__ import annotations

import struct

MARK = b"("
STOP = b"."
POP = b"0"
POP_MARK = b"1"
DUP = b"2"
NONE = b"N"
NEWTRUE = b"\x88"
NEWFALSE = b"\x89"
EMPTY_TUPLE = b")"
EMPTY_LIST = b"]"
EMPTY_DICT = b"}"
EMPTY_SET = b"\x8f"
TUPLE = b"t"
TUPLE1 = b"\x85"
TUPLE2 = b"\x86"
TUPLE3 = b"\x87"
APPEND = b"a"
APPENDS = b"e"
SETITEM = b"s"
SETITEMS = b"u"
BUILD = b"b"
REDUCE = b"R"
NEWOBJ = b"\x81"
NEWOBJ_EX = b"\x92"
OBJ = b"o"
BINPERSID = b"Q"
STACK_GLOBAL = b"\x93"
MEMOIZE = b"\x94"
ADDITEMS = b"\x90"
FROZENSET = b"\x91"


def proto(version: int) -> bytes:
    """PROTO."""
    return b"\x80" + bytes([version])


def frame(length: int) -> bytes:
    """FRAME; ``length`` counts the bytes behind it."""
    return b"\x95" + struct.pack("<Q", length)


def global_(module: str, name: str) -> bytes:
    """GLOBAL."""
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def inst(module: str, name: str) -> bytes:
    """INST: its arguments lie on the stack above a mark."""
    return b"i" + module.encode() + b"\n" + name.encode() + b"\n"


def persid(text: str) -> bytes:
    """PERSID, the text form of protocol 0."""
    return b"P" + text.encode() + b"\n"


def text(value: str) -> bytes:
    """BINUNICODE."""
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def short_text(value: str) -> bytes:
    """SHORT_BINUNICODE (protocol 4)."""
    data = value.encode("utf-8", "surrogatepass")
    return b"\x8c" + bytes([len(data)]) + data


def short_string(data: bytes) -> bytes:
    """SHORT_BINSTRING: a byte string as Python 2 wrote it."""
    return b"U" + bytes([len(data)]) + data


def data_bytes(data: bytes) -> bytes:
    """SHORT_BINBYTES or BINBYTES (protocol 3)."""
    if len(data) < 256:
        return b"C" + bytes([len(data)]) + data
    return b"B" + struct.pack("<I", len(data)) + data


def integer(value: int) -> bytes:
    """BININT1, BININT2, BININT or LONG1, the shortest that holds the value: as Python chooses."""
    if 0 <= value < 1 << 8:
        return b"K" + bytes([value])
    if 0 <= value < 1 << 16:
        return b"M" + struct.pack("<H", value)
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    return long1(value)


def long1(value: int) -> bytes:
    """LONG1: two's complement, little-endian, no byte more than needed."""
    size = (value.bit_length() if value >= 0 else (~value).bit_length()) // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def long_text(value: int) -> bytes:
    """LONG, the text form of protocols 0 and 1."""
    return b"L%dL\n" % value


def real(value: float) -> bytes:
    """BINFLOAT."""
    return b"G" + struct.pack(">d", value)


def put(index: int) -> bytes:
    """BINPUT or LONG_BINPUT."""
    return b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index)


def get(index: int) -> bytes:
    """BINGET or LONG_BINGET."""
    return b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)


def ext1(code: int) -> bytes:
    """EXT1."""
    return b"\x82" + bytes([code])
