# SPDX-License-Identifier: Apache-2.0
"""What a symbolic run of a pickle leaves behind: values, an event log, faults. Nothing is resolved, called or imported.

Atoms are plain Python values (None, bool, int, float, str, bytes) and tuples are Python tuples: they carry no place.
Tuples are never hashed and never compared deeply by fdd, because sharing can make them exponentially large.
Every other value is one of the nodes below, with the offset of the opcode that made it (bytes, from the pickle's start).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""None, bool, int, float, str, bytes, tuple, or a node of this module."""


class Global:
    """A name that loading would import: GLOBAL, INST or STACK_GLOBAL.

    ``module`` and ``name`` are exactly as written (protocol 2 of Python 3 writes Python 2 names such as `__builtin__`).
    """

    __slots__ = ("module", "name", "offset")

    def __init__(self, module: str, name: str, offset: int) -> None:
        self.module = module
        self.name = name
        self.offset = offset

    @property
    def path(self) -> str:
        """`module.name`."""
        return f"{self.module}.{self.name}"


class Call:
    """An object that loading would create by calling something: REDUCE, NEWOBJ, NEWOBJ_EX, OBJ, INST.

    ``state`` collects the operands of BUILD, in order; ``items`` what APPEND(S) and ADDITEMS added; ``pairs`` what
    SETITEM(S) added, as alternating keys and values. All three are None until first used.
    """

    __slots__ = ("function", "args", "kwargs", "opcode", "offset", "state", "items", "pairs")

    def __init__(self, function: Value, args: Value, kwargs: Value, opcode: str, offset: int) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.opcode = opcode
        self.offset = offset
        self.state: list[Value] | None = None
        self.items: list[Value] | None = None
        self.pairs: list[Value] | None = None


class ListNode:
    """A list (EMPTY_LIST, LIST)."""

    __slots__ = ("items", "offset")

    def __init__(self, items: list[Value], offset: int) -> None:
        self.items = items
        self.offset = offset


class SetNode:
    """A set or frozenset (EMPTY_SET with ADDITEMS, FROZENSET)."""

    __slots__ = ("items", "frozen", "offset")

    def __init__(self, items: list[Value], frozen: bool, offset: int) -> None:
        self.items = items
        self.frozen = frozen
        self.offset = offset


class DictNode:
    """A dict (EMPTY_DICT, DICT): ``pairs`` alternates keys and values in the order written, repeats included."""

    __slots__ = ("pairs", "offset")

    def __init__(self, pairs: list[Value], offset: int) -> None:
        self.pairs = pairs
        self.offset = offset


class ByteArrayNode:
    """A bytearray (BYTEARRAY8)."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes, offset: int) -> None:
        self.data = data
        self.offset = offset


class PersistentId:
    """A reference to something outside the pickle: PERSID (``text`` true) or BINPERSID."""

    __slots__ = ("value", "text", "offset")

    def __init__(self, value: Value, text: bool, offset: int) -> None:
        self.value = value
        self.text = text
        self.offset = offset


class Extension:
    """A class named through the extension registry (EXT1, EXT2, EXT4)."""

    __slots__ = ("code", "offset")

    def __init__(self, code: int, offset: int) -> None:
        self.code = code
        self.offset = offset


class OutOfBand:
    """A buffer handed in from outside (NEXT_BUFFER)."""

    __slots__ = ("offset",)

    def __init__(self, offset: int) -> None:
        self.offset = offset


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""The root of a pickle that stopped before there was one."""


@dataclass(slots=True)
class PickleFault:
    """Something that stands against the pickle grammar or uses a value in a way its kind cannot take.

    ``code`` is a fixed word of :mod:`fdd.pickles.machine`; ``fatal`` means the run ended there.
    """

    code: str
    offset: int
    length: int
    opcode: str
    detail: str
    fatal: bool


@dataclass(slots=True)
class PickleEvent:
    """Something loading would do, in the order it would do it; popped results stay in this log.

    ``what``: global, call, build, persistent-id, extension, out-of-band, memo-overwrite, pop-call.
    ``value`` is the node concerned (a Global, Call, PersistentId ...), for build the target.
    """

    what: str
    offset: int
    value: Value


@dataclass(slots=True)
class PickleFacts:
    """One pickle, from ``start`` to behind its STOP. Offsets are bytes from the start of the data that was run."""

    start: int = 0
    end: int = 0
    """Behind STOP, or where the run stopped."""
    stopped: bool = False
    """STOP was reached."""
    root: Value = MISSING
    protocols: list[tuple[int, int]] = field(default_factory=list)
    """(offset, argument) of each PROTO."""
    faults: list[PickleFault] = field(default_factory=list)
    events: list[PickleEvent] = field(default_factory=list)
    opcodes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Opcode name -> (how often, offset of the first)."""
    opcode_count: int = 0
    node_count: int = 0
    memo_writes: int = 0
    memo_highest: int = -1
    memo_highest_offset: int = 0
    deepest: int = 0
    """Deepest nesting of containers seen."""
    deepest_offset: int = 0
    stack_left: int = 0
    """Items left below the result at STOP (0 in a good pickle)."""
    undecodable_texts: list[tuple[int, int]] = field(default_factory=list)
    """(offset, length) of byte strings of Python 2 and texts with lone surrogates that are not UTF-8."""
    discarded: list[Value] = field(default_factory=list)
    """Containers that were made and are no part of the result: popped ones, and what was left on the stack."""
    limit: str | None = None
    """The field of Limits that stopped the run, if one did."""

    @property
    def protocol(self) -> int:
        """The protocol of the first PROTO opcode; 0 or 1 where there is none."""
        if self.protocols:
            return self.protocols[0][1]
        return 1 if any(name.startswith(("BIN", "SHORT_", "EMPTY_", "TUPLE1")) for name in self.opcodes) else 0
