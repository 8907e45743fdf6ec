# SPDX-License-Identifier: Apache-2.0
"""Writes pickles as CPython's C pickler does, from plain descriptions: nothing described here has to exist.

Containers and described objects are remembered by identity, texts and globals by value (torch's recurring texts are one
object each). :class:`Raw` puts any bytes in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from corpus.build import opcodes as op

T = TypeVar("T")

BATCH = 1000
"""Items that one SETITEMS or APPENDS takes at most."""
FRAME_MIN = 4
"""Shorter pickles get no FRAME."""


@dataclass(frozen=True)
class Global:
    """A name to import."""

    module: str
    name: str


@dataclass(frozen=True, eq=False)
class Call:
    """``function(*args)`` by REDUCE, then ``items`` by SETITEMS, then ``state`` by BUILD."""

    function: object
    args: tuple[object, ...] = ()
    items: tuple[tuple[object, object], ...] | None = None
    state: object = None


@dataclass(frozen=True, eq=False)
class New:
    """``cls.__new__(cls, *args)`` by NEWOBJ, then ``state`` by BUILD."""

    cls: object
    args: tuple[object, ...] = ()
    state: object = None


@dataclass(frozen=True, eq=False)
class Persistent:
    """A persistent id: BINPERSID of ``identifier``."""

    identifier: object


@dataclass(frozen=True, eq=False)
class Fresh:
    """A text that is an object of its own: it is not taken from the memo."""

    text: str


@dataclass(frozen=True, eq=False)
class Raw:
    """Opcodes as they are; not remembered."""

    data: bytes


ORDERED_DICT = Global("collections", "OrderedDict")


def ordered_dict(items: Iterable[tuple[object, object]] = (), state: object = None) -> Call:
    """A collections.OrderedDict."""
    return Call(ORDERED_DICT, (), tuple(items) or None, state)


def dump(value: object, protocol: int = 2) -> bytes:
    """Pickle a value with protocol 1 to 5, up to and including STOP.

    Protocol 4 and 5 get one FRAME; CPython begins another one every 64 KiB.
    """
    body = PickleWriter(protocol).write(value) + op.STOP
    head = op.proto(protocol) if protocol >= 2 else b""
    if protocol >= 4 and len(body) >= FRAME_MIN:
        head += op.frame(len(body))
    return head + body


@dataclass
class PickleWriter:
    """Writes values one after another into one memo. ``alive`` keeps the objects whose identity is remembered."""

    protocol: int = 2
    memo: dict[object, int] = field(default_factory=dict)
    alive: list[object] = field(default_factory=list)

    def write(self, value: object) -> bytes:
        """Return the opcodes that leave ``value`` on the stack."""
        if isinstance(value, Raw):
            return value.data
        simple = self._simple(value)
        if simple is not None:
            return simple
        key = self._key(value)
        if key in self.memo:
            return op.get(self.memo[key])
        return self._compound(value, key)

    def _simple(self, value: object) -> bytes | None:
        """Values that never enter the memo."""
        if value is None:
            return op.NONE
        if isinstance(value, bool):
            if self.protocol < 2:
                return b"I01\n" if value else b"I00\n"
            return op.NEWTRUE if value else op.NEWFALSE
        if isinstance(value, int):
            is_long = not -(1 << 31) <= value < 1 << 31
            return op.long_text(value) if is_long and self.protocol < 2 else op.integer(value)
        if isinstance(value, float):
            return op.real(value)
        if value == () and isinstance(value, tuple):
            return op.EMPTY_TUPLE
        return None

    def _key(self, value: object) -> object:
        if isinstance(value, (str, bytes, Global)):
            return type(value), value
        return id(value)

    def _compound(self, value: object, key: object) -> bytes:
        self.alive.append(value)
        if isinstance(value, str):
            return self._text(value) + self._remember(key)
        if isinstance(value, Fresh):
            return self._text(value.text) + self._remember(key)
        if isinstance(value, bytes):
            return self._bytes(value, key)
        if isinstance(value, Global):
            return self._global(value) + self._remember(key)
        if isinstance(value, tuple):
            return self._tuple(value) + self._remember(key)
        if isinstance(value, list):
            return op.EMPTY_LIST + self._remember(key) + self._append(value)
        if isinstance(value, dict):
            return op.EMPTY_DICT + self._remember(key) + self._set_items(list(value.items()), exact=True)
        if isinstance(value, Persistent):
            return self.write(value.identifier) + op.BINPERSID
        return self._object(value, key)

    def _object(self, value: object, key: object) -> bytes:
        if isinstance(value, Call):
            data = self.write(value.function) + self.write(value.args) + op.REDUCE + self._remember(key)
            data += self._set_items(value.items or (), exact=False)
        elif isinstance(value, New):
            data = self.write(value.cls) + self.write(value.args) + op.NEWOBJ + self._remember(key)
        else:
            raise TypeError(f"cannot pickle a {type(value).__name__}")
        return data if value.state is None else data + self.write(value.state) + op.BUILD

    def _remember(self, key: object) -> bytes:
        index = len(self.memo)
        self.memo[key] = index
        return op.MEMOIZE if self.protocol >= 4 else op.put(index)

    def _text(self, value: str) -> bytes:
        short = self.protocol >= 4 and len(value.encode("utf-8", "surrogatepass")) < 256
        return op.short_text(value) if short else op.text(value)

    def _bytes(self, value: bytes, key: object) -> bytes:
        if self.protocol >= 3:
            return op.data_bytes(value) + self._remember(key)
        # As Python 3 writes bytes for Python 2.
        call = Call(Global("__builtin__", "bytes"))
        if value:
            call = Call(Global("_codecs", "encode"), (value.decode("latin-1"), "latin1"))
        self.alive.append(call)
        return self._object(call, key)

    def _global(self, value: Global) -> bytes:
        if self.protocol < 4:
            return op.global_(value.module, value.name)
        return self.write(value.module) + self.write(value.name) + op.STACK_GLOBAL

    def _tuple(self, value: tuple[object, ...]) -> bytes:
        if len(value) <= 3 and self.protocol >= 2:
            parts = b"".join(self.write(item) for item in value)
            return parts + (op.TUPLE1, op.TUPLE2, op.TUPLE3)[len(value) - 1]
        return op.MARK + b"".join(self.write(item) for item in value) + op.TUPLE

    def _append(self, values: Sequence[object]) -> bytes:
        if len(values) == 1:
            return self.write(values[0]) + op.APPEND
        return b"".join(op.MARK + b"".join(self.write(value) for value in batch) + op.APPENDS for batch in _batches(values))

    def _set_items(self, items: Sequence[tuple[object, object]], *, exact: bool) -> bytes:
        """``exact``: a dict itself, whose last batch is marked even with one item, or none; else what an iterator gives."""
        parts: list[bytes] = []
        for batch in _batches(items):
            pairs = b"".join(self.write(key) + self.write(value) for key, value in batch)
            single = len(batch) == 1 and (not exact or len(items) == 1)
            parts.append(pairs + op.SETITEM if single else op.MARK + pairs + op.SETITEMS)
        if exact and items and len(items) % BATCH == 0:
            parts.append(op.MARK + op.SETITEMS)
        return b"".join(parts)


def _batches(values: Sequence[T]) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, BATCH)):
        yield batch
