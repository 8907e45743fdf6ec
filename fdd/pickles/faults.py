# SPDX-License-Identifier: Apache-2.0
"""The fixed words for what can be wrong in a pickle, and the two ways a run can end before STOP."""

from __future__ import annotations

# The bytes of an opcode
UNKNOWN_OPCODE = "unknown-opcode"
NO_STOP = "no-stop"
ARGUMENT_PAST_END = "argument-past-end"
NO_NEWLINE = "no-newline"
NEGATIVE_LENGTH = "negative-length"
BAD_DECIMAL = "bad-decimal"
BAD_FLOAT = "bad-float"
BAD_STRING = "bad-string"
BAD_UNICODE_ESCAPE = "bad-unicode-escape"
BAD_UTF8 = "bad-utf8"
EXTENSION_CODE = "extension-code"
UNKNOWN_PROTOCOL = "unknown-protocol"
# Frames
FRAME_PAST_END = "frame-past-end"
FRAME_INSIDE_OPCODE = "frame-inside-opcode"
FRAME_NESTED = "frame-nested"
# Stack and memo
STACK_UNDERFLOW = "stack-underflow"
NO_MARK = "no-mark"
POP_ACROSS_MARK = "pop-across-mark"
MARK_LEFT = "mark-left"
ITEMS_LEFT = "items-left"
MEMO_UNWRITTEN = "memo-unwritten"
MEMO_NOTHING_TO_PUT = "memo-nothing-to-put"
# Operands
ARGUMENTS_NOT_TUPLE = "arguments-not-tuple"
KEYWORDS_NOT_DICT = "keywords-not-dict"
GLOBAL_NOT_TEXT = "global-not-text"
ODD_ITEMS = "odd-items"
CANNOT_TAKE = "cannot-take"
"""The one code that is no breach of the grammar: APPEND, SETITEM, ADDITEMS or BUILD on a value of another kind."""


class FatalFault(Exception):
    """Ends a run inside the machine; never leaves :func:`fdd.pickles.run`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


class LimitReached(Exception):
    """A limit of :class:`fdd.limits.Limits`, by the name of its field, ends a run; never leaves the machine."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Probed(Exception):
    """A probe has met the name it was looking for; never leaves the machine."""
