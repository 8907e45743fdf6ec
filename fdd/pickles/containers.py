# SPDX-License-Identifier: Apache-2.0
"""Opcodes of containers, stack and memo. Stack effects are those of CPython's unpickler; handlers as in atoms.py."""

from __future__ import annotations

from fdd.pickles import arguments, faults
from fdd.pickles.atoms import Handler, fixed, line, not_plain
from fdd.pickles.faults import FatalFault
from fdd.pickles.nodes import (
    ByteArrayNode,
    Call,
    DictNode,
    Extension,
    Global,
    ListNode,
    OutOfBand,
    PersistentId,
    SetNode,
    Value,
)
from fdd.pickles.opcodes import BY_NAME
from fdd.pickles.state import State

# Containers


def _empty_list(state: State, offset: int, position: int) -> int:
    state.push(ListNode([], offset), 1, offset)
    return position


def _empty_dict(state: State, offset: int, position: int) -> int:
    state.push(DictNode([], offset), 1, offset)
    return position


def _empty_set(state: State, offset: int, position: int) -> int:
    state.push(SetNode([], False, offset), 1, offset)
    return position


def _empty_tuple(state: State, offset: int, position: int) -> int:
    state.push((), 1, offset)
    return position


def _tuple(state: State, offset: int, position: int) -> int:
    items, high = state.pop_mark()
    state.push(tuple(items), high + 1, offset)
    return position


def _list(state: State, offset: int, position: int) -> int:
    items, high = state.pop_mark()
    state.push(ListNode(items, offset), high + 1, offset)
    return position


def _frozenset(state: State, offset: int, position: int) -> int:
    items, high = state.pop_mark()
    state.push(SetNode(items, True, offset), high + 1, offset)
    return position


def _dict(state: State, offset: int, position: int) -> int:
    pairs, high = state.pop_mark()
    _even(pairs)
    state.push(DictNode(pairs, offset), high + 1, offset)
    return position


def _even(pairs: list[Value]) -> None:
    if len(pairs) % 2:
        raise FatalFault(faults.ODD_ITEMS, f"{len(pairs)} items are no pairs of key and value")


def _small_tuple(count: int) -> Handler:
    def handler(state: State, offset: int, position: int) -> int:
        state.need(count)
        value = tuple(state.stack[-count:])
        del state.stack[-count:]
        state.push(value, 1 + max(map(state.depth, value)), offset)
        return position

    return handler


def kind_of(value: Value) -> str:
    """What a value is, in words for a finding."""
    if isinstance(value, Call):
        return "the result of a call"
    words = {
        ListNode: "a list", SetNode: "a set", DictNode: "a dict", ByteArrayNode: "a bytearray", Global: "an imported name",
        PersistentId: "a persistent id", Extension: "an extension", OutOfBand: "an out-of-band buffer", str: "a text",
    }  # fmt: skip
    return words.get(type(value), f"a {type(value).__name__}")


def cannot_take(state: State, offset: int, target: Value, values: list[Value]) -> None:
    for value in values:
        state.drop(value)
    state.fault(faults.CANNOT_TAKE, offset, f"{kind_of(target)} cannot take this")


def _add_items(state: State, offset: int, values: list[Value], depth: int, kind: type[ListNode] | type[SetNode]) -> None:
    target = state.stack[-1]
    if isinstance(target, Call):
        state.grow(target, depth, offset)
        if target.items is None:
            target.items = []
        target.items.extend(values)
    elif type(target) is kind and not (isinstance(target, SetNode) and target.frozen):
        state.grow(target, depth, offset)
        target.items.extend(values)
    else:
        cannot_take(state, offset, target, values)


def _add_pairs(state: State, offset: int, pairs: list[Value], depth: int) -> None:
    target = state.stack[-1]
    if isinstance(target, DictNode):
        state.grow(target, depth, offset)
        target.pairs.extend(pairs)
    elif isinstance(target, Call):
        state.grow(target, depth, offset)
        if target.pairs is None:
            target.pairs = []
        target.pairs.extend(pairs)
    else:
        cannot_take(state, offset, target, pairs)


def _append(state: State, offset: int, position: int) -> int:
    state.need(2)
    value = state.stack.pop()
    _add_items(state, offset, [value], state.depth(value), ListNode)
    return position


def _appends(state: State, offset: int, position: int) -> int:
    items, high = state.pop_mark()
    state.need(1)
    _add_items(state, offset, items, high, ListNode)
    return position


def _additems(state: State, offset: int, position: int) -> int:
    items, high = state.pop_mark()
    state.need(1)
    _add_items(state, offset, items, high, SetNode)
    return position


def _setitem(state: State, offset: int, position: int) -> int:
    state.need(3)
    value = state.stack.pop()
    key = state.stack.pop()
    _add_pairs(state, offset, [key, value], max(state.depth(key), state.depth(value)))
    return position


def _setitems(state: State, offset: int, position: int) -> int:
    pairs, high = state.pop_mark()
    state.need(1)
    _even(pairs)
    _add_pairs(state, offset, pairs, high)
    return position


# The stack and the memo


def _pop(state: State, offset: int, position: int) -> int:
    if state.stack:
        _popped(state, offset, state.stack.pop())
    elif state.below:  # CPython: POP on a MARK takes the MARK away
        state.stack, state.high = state.below.pop()
    else:
        raise state.underflow(1)
    return position


def _popped(state: State, offset: int, value: Value) -> None:
    state.drop(value)
    if isinstance(value, Call):
        state.event("pop-call", offset, value)


def _mark(state: State, offset: int, position: int) -> int:
    state.mark()
    return position


def _pop_mark(state: State, offset: int, position: int) -> int:
    items, _ = state.pop_mark()
    for value in items:
        _popped(state, offset, value)
    return position


def _dup(state: State, offset: int, position: int) -> int:
    state.need(1)
    state.push_again(state.stack[-1], offset)
    return position


def _put(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    index, plain = arguments.memo_index(raw)
    if index < 0:
        raise FatalFault(faults.BAD_DECIMAL, f"memo index {index}")
    not_plain(state, offset, plain, faults.BAD_DECIMAL)
    state.memorise(index, offset)
    return end


def _get(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    index, plain = arguments.memo_index(raw)
    not_plain(state, offset, plain, faults.BAD_DECIMAL)
    state.recall(index, offset)
    return end


def _fixed_get(name: str) -> Handler:
    opcode = BY_NAME[name]

    def handler(state: State, offset: int, position: int) -> int:
        end = fixed(state, opcode, position)
        state.recall(int.from_bytes(state.data[position:end], "little"), offset)
        return end

    return handler


def _fixed_put(name: str) -> Handler:
    opcode = BY_NAME[name]

    def handler(state: State, offset: int, position: int) -> int:
        end = fixed(state, opcode, position)
        state.memorise(int.from_bytes(state.data[position:end], "little"), offset)
        return end

    return handler


def _memoize(state: State, offset: int, position: int) -> int:
    state.memorise(len(state.memo), offset)
    return position


CONTAINER_HANDLERS: dict[str, Handler] = {
    "EMPTY_LIST": _empty_list,
    "APPEND": _append,
    "APPENDS": _appends,
    "LIST": _list,
    "EMPTY_TUPLE": _empty_tuple,
    "TUPLE": _tuple,
    "TUPLE1": _small_tuple(1),
    "TUPLE2": _small_tuple(2),
    "TUPLE3": _small_tuple(3),
    "EMPTY_DICT": _empty_dict,
    "DICT": _dict,
    "SETITEM": _setitem,
    "SETITEMS": _setitems,
    "EMPTY_SET": _empty_set,
    "ADDITEMS": _additems,
    "FROZENSET": _frozenset,
}

STACK_HANDLERS: dict[str, Handler] = {
    "POP": _pop,
    "DUP": _dup,
    "MARK": _mark,
    "POP_MARK": _pop_mark,
    "GET": _get,
    "BINGET": _fixed_get("BINGET"),
    "LONG_BINGET": _fixed_get("LONG_BINGET"),
    "PUT": _put,
    "BINPUT": _fixed_put("BINPUT"),
    "LONG_BINPUT": _fixed_put("LONG_BINPUT"),
    "MEMOIZE": _memoize,
}
