# SPDX-License-Identifier: Apache-2.0
"""Pickles that break the grammar, each in one way."""

from __future__ import annotations

import struct

from corpus.build import opcodes as op
from corpus.build.kit import eager, recipe, tensor
from corpus.build.pickle_kit import HEAD, TWO, around, holding, of

ORDERED_DICT = op.global_("collections", "OrderedDict")


@recipe("pickle/protocol-not-stated.pt")
def protocol_not_stated() -> bytes:
    """Protocol 1: no PROTO in front."""
    return around(op.EMPTY_DICT + op.STOP)


@recipe("pickle/protocol-unknown.pt")
def protocol_unknown() -> bytes:
    """PROTO says 6."""
    return around(op.proto(6) + op.EMPTY_DICT + op.STOP)


@recipe("pickle/protocol-unusual.pt")
def protocol_unusual() -> bytes:
    """torch.save(..., pickle_protocol=4): FRAME, STACK_GLOBAL and short texts, which the restricted loader does not know."""
    return eager({"weight": tensor(TWO)}, protocol=4)


@recipe("pickle/protocol-3.pt")
def protocol_3() -> bytes:
    """torch.save(..., pickle_protocol=3)."""
    return eager({"weight": tensor(TWO)}, protocol=3)


@recipe("pickle/opcode-unknown.pt")
def opcode_unknown() -> bytes:
    """The byte FF where an opcode belongs."""
    return of(op.EMPTY_DICT + b"\xff")


@recipe("pickle/opcode-unknown-argument-cut.pt")
def opcode_argument_cut() -> bytes:
    """A GLOBAL whose name does not end with a newline."""
    return around(HEAD + b"ccollections\nOrderedDict")


@recipe("pickle/length-past-end.pt")
def length_past_end() -> bytes:
    """A text of 255 bytes where three are left."""
    return around(HEAD + b"X" + struct.pack("<I", 255) + b"abc")


@recipe("pickle/length-past-end-negative.pt")
def length_negative() -> bytes:
    """A byte string of -1 bytes."""
    return of(b"T" + struct.pack("<i", -1))


@recipe("pickle/length-past-end-big-endian.pt")
def length_big_endian() -> bytes:
    """The length of a text in big-endian byte order."""
    return of(op.EMPTY_DICT + b"X" + struct.pack(">I", 6) + b"weight" + op.integer(1) + op.SETITEM)


@recipe("pickle/stop-missing.pt")
def stop_missing() -> bytes:
    """The last byte is missing."""
    return around(HEAD + op.EMPTY_DICT)


@recipe("pickle/bytes-after-stop.pt")
def bytes_after_stop() -> bytes:
    """Four bytes behind STOP."""
    return around(HEAD + op.EMPTY_DICT + op.STOP + b"junk")


@recipe("pickle/stack-underflow.pt")
def stack_underflow() -> bytes:
    """STOP on an empty stack."""
    return of(b"")


@recipe("pickle/stack-underflow-put.pt")
def put_on_empty_stack() -> bytes:
    """BINPUT with nothing to remember."""
    return of(op.put(0) + op.EMPTY_DICT)


@recipe("pickle/mark-unbalanced.pt")
def mark_missing() -> bytes:
    """TUPLE without a MARK."""
    return of(op.NONE + op.TUPLE)


@recipe("pickle/mark-unbalanced-open.pt")
def mark_open() -> bytes:
    """A MARK that nothing closes."""
    return of(op.MARK + op.EMPTY_DICT)


@recipe("pickle/items-left.pt")
def items_left() -> bytes:
    """Two values at STOP."""
    return of(op.NONE + op.EMPTY_DICT)


@recipe("pickle/text-not-utf8.pt")
def text_not_utf8() -> bytes:
    """A key with the byte FF."""
    return of(op.EMPTY_DICT + b"X" + struct.pack("<I", 2) + b"w\xff" + op.integer(1) + op.SETITEM)


@recipe("pickle/text-irregular.pt")
def text_irregular() -> bytes:
    """A key that is half a surrogate pair."""
    return holding(op.text("\ud800"))


@recipe("pickle/frame-wrong.pt")
def frame_past_end() -> bytes:
    """A FRAME of 1,000 bytes."""
    return around(op.proto(4) + op.frame(1000) + op.EMPTY_DICT + op.STOP)


@recipe("pickle/frame-wrong-inside-opcode.pt")
def frame_inside_opcode() -> bytes:
    """A FRAME that ends within the argument of BININT2."""
    return around(op.proto(4) + op.frame(2) + op.integer(1000) + op.STOP)


@recipe("pickle/frame-wrong-nested.pt")
def frame_nested() -> bytes:
    """A FRAME within another."""
    body = op.EMPTY_DICT + op.STOP
    return around(op.proto(4) + op.frame(len(body) + 9) + op.frame(len(body)) + body)


@recipe("pickle/text-argument-wrong.pt")
def memo_index_odd() -> bytes:
    """PUT with an index that only some readers take for 10."""
    return of(op.EMPTY_DICT + b"p 1_0\n")


@recipe("pickle/text-argument-wrong-integer.pt")
def integer_odd() -> bytes:
    """INT in hexadecimal."""
    return of(b"I0x10\n")


@recipe("pickle/text-argument-wrong-string.pt")
def string_without_quotes() -> bytes:
    """STRING without quotes."""
    return of(b"Sabc\n")


@recipe("pickle/operand-wrong.pt")
def arguments_no_tuple() -> bytes:
    """REDUCE with a dict as arguments."""
    return of(ORDERED_DICT + op.EMPTY_DICT + op.REDUCE)


@recipe("pickle/operand-wrong-odd-items.pt")
def odd_items() -> bytes:
    """SETITEMS with a key that has no value."""
    return of(op.EMPTY_DICT + op.MARK + op.text("a") + op.SETITEMS)


@recipe("pickle/operand-wrong-names.pt")
def names_no_texts() -> bytes:
    """STACK_GLOBAL with a number as module."""
    return around(op.proto(4) + op.integer(1) + op.short_text("OrderedDict") + op.STACK_GLOBAL + op.STOP)


@recipe("pickle/operand-wrong-keywords.pt")
def keywords_no_dict() -> bytes:
    """NEWOBJ_EX with None as keyword arguments."""
    return around(op.proto(4) + ORDERED_DICT + op.EMPTY_TUPLE + op.NONE + op.NEWOBJ_EX + op.STOP)


@recipe("pickle/extension-code-wrong.pt")
def extension_code_zero() -> bytes:
    """Extension code 0."""
    return holding(op.ext1(0))


@recipe("pickle/extension-opcode.pt")
def extension() -> bytes:
    """A class by its number in the registry."""
    return holding(op.ext1(1))


@recipe("pickle/buffer-out-of-band.pt")
def out_of_band() -> bytes:
    """NEXT_BUFFER: the bytes come from outside."""
    return holding(b"\x97")


@recipe("pickle/second-protocol.pt")
def second_protocol() -> bytes:
    """PROTO 4 in the middle."""
    return holding(op.proto(4) + op.NONE)
