# SPDX-License-Identifier: Apache-2.0
"""Arguments of opcodes: where they end, and what their texts mean. Nothing here knows the stack.

Bad text comes back as a :class:`~fdd.pickles.faults.FatalFault` where every loader stops at it too, and as a fault
that the run survives where CPython reads on (`I0x1`, `p 1_0`): stopping there would hide what is executed behind it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from fdd.pickles.faults import (
    ARGUMENT_PAST_END,
    BAD_DECIMAL,
    BAD_FLOAT,
    BAD_STRING,
    NEGATIVE_LENGTH,
    NO_NEWLINE,
    FatalFault,
)
from fdd.pickles.opcodes import Form, Opcode

Data: TypeAlias = "bytes | memoryview"

_DECIMAL = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(rb"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf|nan)")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|[^x0-7]|x|$)", re.DOTALL)
_SIMPLE_ESCAPES = {
    b"\n": b"", b"\\": b"\\", b"'": b"'", b'"': b'"', b"a": b"\a", b"b": b"\b",
    b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip
_INDEX_DIGITS = 19
"""Decimal digits beyond which a memo index fits no 64-bit integer."""
_BLOCK = 4096


def find_newline(data: Data, position: int, size: int) -> int:
    """Offset of the first newline in ``data[position:size]``, or -1."""
    if isinstance(data, bytes):
        return data.find(b"\n", position, size)
    block = _BLOCK
    while position < size:
        found = bytes(data[position : min(position + block, size)]).find(b"\n")
        if found >= 0:
            return position + found
        position += block
        block *= 2
    return -1


def line_end(data: Data, position: int, size: int) -> int:
    """Offset of the newline that ends the line at ``position``; :class:`FatalFault` where there is none."""
    found = find_newline(data, position, size)
    if found < 0:
        raise FatalFault(NO_NEWLINE, "the line of the argument does not end")
    return found


def argument_end(opcode: Opcode, data: Data, position: int, size: int) -> int:
    """Offset behind the argument that begins at ``position``; :class:`FatalFault` where it is not complete."""
    form = opcode.form
    if form.lines:
        for _ in range(form.lines):
            position = line_end(data, position, size) + 1
        return position
    end = position + form.fixed + form.prefix
    if end > size:
        raise FatalFault(ARGUMENT_PAST_END, f"{form.fixed + form.prefix} bytes needed, {size - position} left")
    if form.prefix:
        signed = form is Form.SIGNED_COUNTED4
        length = int.from_bytes(data[position:end], "little", signed=signed)
        if length < 0:
            raise FatalFault(NEGATIVE_LENGTH, f"length {length}")
        if length > size - end:
            raise FatalFault(ARGUMENT_PAST_END, f"{length} bytes announced, {size - end} left")
        end += length
    return end


def decimal(raw: bytes, digits: int, base: int = 10) -> tuple[int | str, bool]:
    """Value of a decimal line, and whether it is plain decimal.

    A number of more than ``digits`` characters stays text: turning it into an integer takes quadratic time.
    ``base`` is the one CPython would read a text with that is not plain decimal (0: by prefix).
    Raises :class:`FatalFault` for what no loader reads.
    """
    plain = _DECIMAL.fullmatch(raw) is not None
    if len(raw) > digits:
        if plain:
            return raw.decode("ascii"), True
        raise FatalFault(BAD_DECIMAL, f"{len(raw)} bytes that are no decimal number")
    try:
        return int(raw), plain
    except ValueError:
        if plain:  # more digits than this interpreter converts (sys.set_int_max_str_digits)
            return raw.decode("ascii"), True
        if base == 10:
            raise FatalFault(BAD_DECIMAL, f"{raw[:40]!r} is no number") from None
    try:
        return int(raw, base), False
    except ValueError:
        raise FatalFault(BAD_DECIMAL, f"{raw[:40]!r} is no number") from None


def memo_index(raw: bytes) -> tuple[int, bool]:
    """Index of a PUT or GET line, and whether it is plain decimal."""
    value, plain = decimal(raw, _INDEX_DIGITS)
    if isinstance(value, str):
        raise FatalFault(BAD_DECIMAL, "the memo index has more than 64 bits")
    return value, plain


def float_line(raw: bytes, digits: int) -> tuple[float | str, bool]:
    """Value of a FLOAT line, and whether its text is one that float writers make; longer ones stay text."""
    plain = _FLOAT.fullmatch(raw) is not None
    if len(raw) > digits:
        if plain:
            return raw.decode("ascii"), True
        raise FatalFault(BAD_FLOAT, f"{len(raw)} bytes that are no number")
    try:
        return float(raw), plain
    except ValueError:
        raise FatalFault(BAD_FLOAT, f"{raw[:40]!r} is no number") from None


def string_line(raw: bytes) -> bytes:
    """Bytes of a STRING line: quotes taken off, backslash escapes of Python 2 undone."""
    if len(raw) < 2 or raw[:1] not in (b"'", b'"') or raw[-1:] != raw[:1]:
        raise FatalFault(BAD_STRING, "the byte string is not in matching quotes")
    return _ESCAPE.sub(_unescape, raw[1:-1]) if b"\\" in raw else raw[1:-1]


def _unescape(match: re.Match[bytes]) -> bytes:
    escape: bytes = match[1]
    if not escape:
        raise FatalFault(BAD_STRING, "a backslash ends the byte string")
    if escape == b"x":
        raise FatalFault(BAD_STRING, "\\x without two hexadecimal digits")
    if escape[:1] == b"x":
        return bytes((int(escape[1:], 16),))
    if escape[0] in b"01234567":
        return bytes((int(escape, 8) & 0xFF,))
    # Python keeps the backslash of an escape that it does not know.
    return _SIMPLE_ESCAPES.get(escape, b"\\" + escape)


def has_surrogates(text: str) -> bool:
    """Whether ``text`` holds lone surrogates, which UTF-8 cannot write."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def cut_text(raw: bytes, limit: int) -> bytes:
    """At most ``limit`` bytes of UTF-8 text, not ending inside a character."""
    if len(raw) <= limit:
        return raw
    while limit > 0 and raw[limit] & 0xC0 == 0x80:
        limit -= 1
    return raw[:limit]
