# SPDX-License-Identifier: Apache-2.0
"""Opcodes that push one atom: numbers, truth values, texts, bytes, buffers. ``handler(state, offset, position) -> position``.

``offset`` is that of the opcode, ``position`` the one of its argument; the position behind the argument is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TypeAlias

from fdd.pickles import arguments, faults
from fdd.pickles.arguments import argument_end, line_end
from fdd.pickles.faults import FatalFault
from fdd.pickles.nodes import ByteArrayNode, DictNode, ListNode, OutOfBand, SetNode, Value
from fdd.pickles.opcodes import BY_NAME, Form, Opcode
from fdd.pickles.state import State

Handler: TypeAlias = Callable[[State, int, int], int]

_FLOAT8 = Struct(">d")


# Arguments


def fixed(state: State, opcode: Opcode, position: int) -> int:
    """End of a fixed argument, checked."""
    end = position + opcode.form.fixed
    return end if end <= state.size else argument_end(opcode, state.data, position, state.size)


def counted(state: State, opcode: Opcode, position: int) -> tuple[bytes, int]:
    """Bytes behind a length prefix, and where they end."""
    end = argument_end(opcode, state.data, position, state.size)
    return bytes(state.data[position + opcode.form.prefix : end]), end


def line(state: State, position: int) -> tuple[bytes, int]:
    """A line without its newline, and the position behind that."""
    end = line_end(state.data, position, state.size)
    return bytes(state.data[position:end]), end + 1


def name_line(state: State, offset: int, position: int) -> tuple[str, int]:
    """A line of GLOBAL or INST: UTF-8, cut at the limit; Latin-1 with a fault where it is not UTF-8."""
    end = line_end(state.data, position, state.size)
    limit = state.limits.global_name_bytes
    # One byte more than the limit shows whether the cut falls inside a character.
    raw = arguments.cut_text(bytes(state.data[position : min(end, position + limit + 1)]), limit)
    return _utf8_name(state, offset, raw), end + 1


def _utf8_name(state: State, offset: int, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        state.fault(faults.BAD_UTF8, offset, f"byte {error.start} of the text is not UTF-8")
        return raw.decode("latin-1")


def irregular_text(state: State, offset: int, raw: bytes, end: int) -> str:
    """A text that is not strict UTF-8: lone surrogates are noted, anything else is a fault.

    Bytes that are no text become surrogates (PEP 383), so that a report can show them again.
    """
    try:
        text = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        state.fault(faults.BAD_UTF8, offset, f"byte {error.start} of the text is not UTF-8")
        return raw.decode("utf-8", "surrogateescape")
    state.undecodable.append((offset, end - offset))
    return text


def _python2_string(state: State, offset: int, raw: bytes, end: int) -> str | bytes:
    """A byte string of Python 2: text where it is UTF-8 (as torch.load reads it), else bytes, and noted."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        state.undecodable.append((offset, end - offset))
        return raw


def not_plain(state: State, offset: int, plain: bool, code: str) -> None:
    """A number that CPython reads but that no writer writes: a fault, and the run goes on."""
    if not plain:
        state.fault(code, offset, "the number is not written plainly")


# Atoms


def _constant(value: Value) -> Handler:
    def handler(state: State, offset: int, position: int) -> int:
        state.stack.append(value)
        return position

    return handler


def _int(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    if raw in (b"00", b"01"):
        state.stack.append(raw == b"01")
        return end
    value, plain = arguments.decimal(raw, state.limits.decimal_digits, base=0)
    not_plain(state, offset, plain, faults.BAD_DECIMAL)
    state.stack.append(value)
    return end


def _long(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    value, plain = arguments.decimal(raw.removesuffix(b"L"), state.limits.decimal_digits, base=0)
    not_plain(state, offset, plain, faults.BAD_DECIMAL)
    state.stack.append(value)
    return end


def _counted_int(name: str) -> Handler:
    opcode = BY_NAME[name]

    def handler(state: State, offset: int, position: int) -> int:
        raw, end = counted(state, opcode, position)
        state.stack.append(int.from_bytes(raw, "little", signed=True))
        return end

    return handler


def _fixed_int(name: str) -> Handler:
    opcode = BY_NAME[name]
    signed = opcode.form is Form.INT4

    def handler(state: State, offset: int, position: int) -> int:
        end = fixed(state, opcode, position)
        state.stack.append(int.from_bytes(state.data[position:end], "little", signed=signed))
        return end

    return handler


def _float(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    value, plain = arguments.float_line(raw, state.limits.decimal_digits)
    not_plain(state, offset, plain, faults.BAD_FLOAT)
    state.stack.append(value)
    return end


def _binfloat(state: State, offset: int, position: int) -> int:
    end = fixed(state, BY_NAME["BINFLOAT"], position)
    state.stack.append(_FLOAT8.unpack_from(state.data, position)[0])
    return end


def _string(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    state.stack.append(_python2_string(state, offset, arguments.string_line(raw), end))
    return end


def _counted_string(name: str) -> Handler:
    opcode = BY_NAME[name]

    def handler(state: State, offset: int, position: int) -> int:
        raw, end = counted(state, opcode, position)
        state.stack.append(_python2_string(state, offset, raw, end))
        return end

    return handler


def _counted_bytes(name: str) -> Handler:
    opcode = BY_NAME[name]

    def handler(state: State, offset: int, position: int) -> int:
        raw, end = counted(state, opcode, position)
        state.stack.append(raw)
        return end

    return handler


def _counted_text(name: str) -> Handler:
    opcode = BY_NAME[name]

    def handler(state: State, offset: int, position: int) -> int:
        raw, end = counted(state, opcode, position)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = irregular_text(state, offset, raw, end)
        state.stack.append(text)
        return end

    return handler


def _unicode(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    try:
        text = raw.decode("raw-unicode-escape")
    except UnicodeDecodeError as error:
        raise FatalFault(faults.BAD_UNICODE_ESCAPE, f"byte {error.start} of the text: {error.reason}") from None
    if arguments.has_surrogates(text):
        state.undecodable.append((offset, end - offset))
    state.stack.append(text)
    return end


def _bytearray(state: State, offset: int, position: int) -> int:
    raw, end = counted(state, BY_NAME["BYTEARRAY8"], position)
    state.stack.append(ByteArrayNode(raw, offset))
    return end


def _next_buffer(state: State, offset: int, position: int) -> int:
    buffer = OutOfBand(offset)
    state.stack.append(buffer)
    state.event("out-of-band", offset, buffer)
    return position


def _readonly_buffer(state: State, offset: int, position: int) -> int:
    """Python takes a memoryview of the item, which these have not; of an object of unknown class nothing is known."""
    state.need(1)
    item = state.stack[-1]
    if item is None or isinstance(item, (str, int, float, tuple, ListNode, DictNode, SetNode)):
        state.fault(faults.CANNOT_TAKE, offset, "the item on the stack is no buffer")
    state.event("out-of-band", offset, item)
    return position


ATOM_HANDLERS: dict[str, Handler] = {
    "INT": _int,
    "BININT": _fixed_int("BININT"),
    "BININT1": _fixed_int("BININT1"),
    "BININT2": _fixed_int("BININT2"),
    "LONG": _long,
    "LONG1": _counted_int("LONG1"),
    "LONG4": _counted_int("LONG4"),
    "FLOAT": _float,
    "BINFLOAT": _binfloat,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "STRING": _string,
    "BINSTRING": _counted_string("BINSTRING"),
    "SHORT_BINSTRING": _counted_string("SHORT_BINSTRING"),
    "BINBYTES": _counted_bytes("BINBYTES"),
    "SHORT_BINBYTES": _counted_bytes("SHORT_BINBYTES"),
    "BINBYTES8": _counted_bytes("BINBYTES8"),
    "BYTEARRAY8": _bytearray,
    "UNICODE": _unicode,
    "SHORT_BINUNICODE": _counted_text("SHORT_BINUNICODE"),
    "BINUNICODE": _counted_text("BINUNICODE"),
    "BINUNICODE8": _counted_text("BINUNICODE8"),
    "NEXT_BUFFER": _next_buffer,
    "READONLY_BUFFER": _readonly_buffer,
}
