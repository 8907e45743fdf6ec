# SPDX-License-Identifier: Apache-2.0
"""Opcodes that name, call and build, and those of the stream itself. Handlers as in atoms.py."""

from __future__ import annotations

from fdd.pickles import faults
from fdd.pickles.atoms import Handler, fixed, irregular_text, line, name_line
from fdd.pickles.containers import cannot_take, kind_of
from fdd.pickles.faults import FatalFault, Probed
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
from fdd.pickles.opcodes import BY_NAME, HIGHEST_PROTOCOL, Form
from fdd.pickles.state import Frame, State

_OPAQUE = frozenset((Call, Extension, PersistentId, OutOfBand))
"""Kinds whose class only loading decides."""
_PERHAPS_TEXT = _OPAQUE | {str, bytes}
"""Kinds that may be texts when loaded; bytes are texts of Python 2 to a reader that is told their encoding."""
_ITERABLE = frozenset((ListNode, SetNode, DictNode, ByteArrayNode, str, bytes))
"""Kinds that an unpickler written in Python unpacks into arguments although they are no tuples."""


# Names


def _named(state: State, module: str, name: str, offset: int) -> Global:
    node = Global(module, name, offset)
    state.event("global", offset, node)
    if state.probing:
        raise Probed
    return node


def _global(state: State, offset: int, position: int) -> int:
    module, position = name_line(state, offset, position)
    name, position = name_line(state, offset, position)
    state.stack.append(_named(state, module, name, offset))
    return position


def _stack_global(state: State, offset: int, position: int) -> int:
    state.need(2)
    module, name = state.stack[-2:]
    if not isinstance(module, str) or not isinstance(name, str):
        detail = f"the module is {kind_of(module)}, the name is {kind_of(name)}"
        if not {type(module), type(name)} <= _PERHAPS_TEXT:
            raise FatalFault(faults.GLOBAL_NOT_TEXT, detail)
        state.fault(faults.GLOBAL_NOT_TEXT, offset, detail)
    limit = state.limits.global_name_bytes
    del state.stack[-2:]
    state.drop(module)
    state.drop(name)
    state.stack.append(_named(state, _text_or_empty(module)[:limit], _text_or_empty(name)[:limit], offset))
    return position


def _text_or_empty(value: Value) -> str:
    """The text of a name; empty where only loading makes it."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


def _extension(name: str) -> Handler:
    opcode = BY_NAME[name]
    signed = opcode.form is Form.INT4

    def handler(state: State, offset: int, position: int) -> int:
        end = fixed(state, opcode, position)
        code = int.from_bytes(state.data[position:end], "little", signed=signed)
        if code <= 0:
            raise FatalFault(faults.EXTENSION_CODE, f"extension code {code}")
        node = Extension(code, offset)
        state.stack.append(node)
        state.event("extension", offset, node)
        return end

    return handler


# Calls


def _called(state: State, call: Call, depth: int) -> None:
    """Push a call with arguments of nesting ``depth``."""
    state.push(call, 1 + max(depth, state.depth(call.function)), call.offset)
    state.event("call", call.offset, call)


def _check_arguments(state: State, offset: int, args: Value) -> None:
    """Arguments that are no tuple: the run goes on where some loader might, so that it sees what that loader would run."""
    if isinstance(args, tuple):
        return
    kind = type(args)
    detail = f"the arguments are {kind_of(args)}"
    if kind not in _OPAQUE and kind not in _ITERABLE:
        raise FatalFault(faults.ARGUMENTS_NOT_TUPLE, detail)
    state.fault(faults.ARGUMENTS_NOT_TUPLE, offset, detail)


def _call(name: str) -> Handler:
    def handler(state: State, offset: int, position: int) -> int:
        state.need(2)
        function, args = state.stack[-2:]
        _check_arguments(state, offset, args)
        del state.stack[-2:]
        _called(state, Call(function, args, None, name, offset), state.depth(args))
        return position

    return handler


def _newobj_ex(state: State, offset: int, position: int) -> int:
    state.need(3)
    function, args, kwargs = state.stack[-3:]
    _check_arguments(state, offset, args)
    if not isinstance(kwargs, DictNode):
        detail = f"the keyword arguments are {kind_of(kwargs)}"
        if type(kwargs) not in _OPAQUE:
            raise FatalFault(faults.KEYWORDS_NOT_DICT, detail)
        state.fault(faults.KEYWORDS_NOT_DICT, offset, detail)
    del state.stack[-3:]
    _called(state, Call(function, args, kwargs, "NEWOBJ_EX", offset), max(state.depth(args), state.depth(kwargs)))
    return position


def _inst(state: State, offset: int, position: int) -> int:
    module, position = name_line(state, offset, position)
    name, position = name_line(state, offset, position)
    items, high = state.pop_mark()
    function = _named(state, module, name, offset)
    _called(state, Call(function, tuple(items), None, "INST", offset), high + 1)
    return position


def _obj(state: State, offset: int, position: int) -> int:
    items, high = state.pop_mark()
    if not items:
        raise FatalFault(faults.POP_ACROSS_MARK, "no class above the last MARK")
    _called(state, Call(items[0], tuple(items[1:]), None, "OBJ", offset), high + 1)
    return position


def _build(state: State, offset: int, position: int) -> int:
    state.need(2)
    argument = state.stack.pop()
    target = state.stack[-1]
    if isinstance(target, Call):
        state.grow(target, state.depth(argument), offset)
        if target.state is None:
            target.state = []
        target.state.append(argument)
    elif isinstance(target, (Global, Extension)):
        state.drop(argument)
    else:
        cannot_take(state, offset, target, [argument])
    state.event("build", offset, target)
    return position


# Persistent ids


def _persid(state: State, offset: int, position: int) -> int:
    raw, end = line(state, position)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = irregular_text(state, offset, raw, end)
    _persistent(state, PersistentId(text, True, offset), 0)
    return end


def _binpersid(state: State, offset: int, position: int) -> int:
    state.need(1)
    value = state.stack.pop()
    _persistent(state, PersistentId(value, False, offset), state.depth(value))
    return position


def _persistent(state: State, node: PersistentId, depth: int) -> None:
    state.push(node, depth + 1, node.offset)
    state.event("persistent-id", node.offset, node)


# The stream


def _proto(state: State, offset: int, position: int) -> int:
    end = fixed(state, BY_NAME["PROTO"], position)
    protocol = state.data[position]
    state.protocols.append((offset, protocol))
    if protocol > HIGHEST_PROTOCOL:
        state.fault(faults.UNKNOWN_PROTOCOL, offset, f"protocol {protocol}")
    return end


def _frame(state: State, offset: int, position: int) -> int:
    body = fixed(state, BY_NAME["FRAME"], position)
    length = int.from_bytes(state.data[position:body], "little")
    state.open_frame(Frame(offset, body, body + length))
    return body


def _stop(state: State, offset: int, position: int) -> int:
    state.need(1)
    state.root = state.stack.pop()
    state.stopped = True
    state.stack_left = state.stack_size() - len(state.below)
    if state.below:
        state.fault(faults.MARK_LEFT, offset, f"{len(state.below)} MARKs are open")
    if state.stack_left:
        state.fault(faults.ITEMS_LEFT, offset, f"{state.stack_left} items lie below the result")
    return position


CALL_HANDLERS: dict[str, Handler] = {
    "EXT1": _extension("EXT1"),
    "EXT2": _extension("EXT2"),
    "EXT4": _extension("EXT4"),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _call("REDUCE"),
    "BUILD": _build,
    "INST": _inst,
    "OBJ": _obj,
    "NEWOBJ": _call("NEWOBJ"),
    "NEWOBJ_EX": _newobj_ex,
    "PERSID": _persid,
    "BINPERSID": _binpersid,
}

STREAM_HANDLERS: dict[str, Handler] = {"PROTO": _proto, "FRAME": _frame, "STOP": _stop}
