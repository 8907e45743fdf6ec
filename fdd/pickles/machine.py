# SPDX-License-Identifier: Apache-2.0
"""The symbolic pickle machine: runs the opcodes on inert values. It imports, calls, looks up and hashes nothing.

Every opcode has a handler (atoms, containers, calls); together they are the machine. The loop below repeats the
commonest ones in place for speed and hands over to the handlers for everything else, faults included.

A fault is fatal where every loader stops and nothing behind it can be trusted. Where CPython, torch or an unpickler
written in Python read on, and at texts that are not UTF-8, the run goes on, so that it sees all they would execute and
all metadata; the fault stands in the facts either way. The words for faults are in faults.py.

The cyclic garbage collector is off during a run (the tree is large and has few cycles: 1.3 to 1.6 times the speed).
"""

from __future__ import annotations

import gc
import re
from itertools import repeat
from struct import Struct
from struct import error as StructError
from typing import Any

from fdd.limits import Limits
from fdd.pickles import faults
from fdd.pickles.arguments import Data
from fdd.pickles.atoms import ATOM_HANDLERS, Handler, irregular_text
from fdd.pickles.calls import CALL_HANDLERS, STREAM_HANDLERS
from fdd.pickles.containers import CONTAINER_HANDLERS, STACK_HANDLERS
from fdd.pickles.faults import FatalFault, LimitReached, Probed
from fdd.pickles.nodes import Call, Global, PersistentId, PickleEvent, PickleFacts
from fdd.pickles.opcodes import BY_NAME, HIGHEST_PROTOCOL, OPCODES, WRITES_MEMO
from fdd.pickles.state import MUTABLE, SHALLOW, State
from fdd.pickles.walk import CONTAINERS, nesting

_BY_NAME: dict[str, Handler] = ATOM_HANDLERS | CONTAINER_HANDLERS | STACK_HANDLERS | CALL_HANDLERS | STREAM_HANDLERS
HANDLERS: tuple[Handler | None, ...] = tuple(
    {BY_NAME[name].code: handler for name, handler in _BY_NAME.items()}.get(code) for code in range(256)
)
"""Index: the code byte. What each opcode does; the loop only repeats a part of it."""

_PROTO = BY_NAME["PROTO"].code
_INT4 = Struct("<i").unpack_from
_UINT4 = Struct("<I").unpack_from
_UINT2 = Struct("<H").unpack_from
_IMPORTABLE = re.compile(r"[\w.\-]+")
_COST_BYTES = 256


def run(data: Data, *, start: int = 0, limits: Limits = Limits()) -> PickleFacts:
    """Run the one pickle that begins at ``data[start]`` and say what it holds.

    Offsets in the facts are indexes into ``data``. Never raises on any bytes; stays within ``limits``.
    """
    state = _state(data, start, limits)
    collecting = gc.isenabled()
    gc.disable()
    try:
        limit = _run(state)
        return _facts(state, limit)
    finally:
        if collecting:
            gc.enable()


def looks_like_pickle(data: Data, start: int = 0, limits: Limits = Limits()) -> bool:
    """Whether the bytes are a pickle in the sense of the contract (section 6); stops at the first fatal fault or name.

    After PROTO 2 to 5, running to STOP or past a GLOBAL, STACK_GLOBAL or INST is enough. Without that, or after
    PROTO 0 or 1 (which CPython accepts and nothing writes), one of the three must be there, with names that could be
    imported: prose and source text that begins with `c` would else be a GLOBAL.
    """
    return probe(data, start, limits)[0]


def probe(data: Data, start: int = 0, limits: Limits = Limits()) -> tuple[bool, int]:
    """What :func:`looks_like_pickle` says, and what it took to find out: opcodes run, and one more for every 256 bytes."""
    head = bytes(data[start : start + 2])
    if not head or (head[0] == _PROTO and not 0 <= head[-1] <= HIGHEST_PROTOCOL):
        return False, 1
    state = _state(data, start, limits, probing=True)
    limit = _run(state)
    names = [event.value for event in state.events if event.what == "global"]
    cost = 1 + sum(filter(None, state.counts)) + (state.position - start) // _COST_BYTES
    if head[0] == _PROTO and head[-1] >= 2:
        return state.stopped or bool(names) or limit is not None, cost
    return any(_IMPORTABLE.fullmatch(name.module) and _IMPORTABLE.fullmatch(name.name) for name in names), cost


def goes_on(head: bytes) -> bool:
    """Whether the bytes begin a pickle that neither ends nor names anything in them, and may do so behind them."""
    if len(head) < 2 or (head[0] == _PROTO and head[1] > HIGHEST_PROTOCOL):
        return False
    return _run(State(head, 0, len(head) + 1, Limits(), probing=True)) == "pickle_bytes"


def _state(data: Data, start: int, limits: Limits, probing: bool = False) -> State:
    if isinstance(data, memoryview) and (data.format != "B" or data.ndim != 1 or not data.c_contiguous):
        data = bytes(data)
    total = len(data)
    if total - start > limits.pickle_bytes:
        data = memoryview(data)[: start + limits.pickle_bytes]
    return State(data, start, total, limits, probing)


def _run(state: State) -> str | None:
    """Run to the end, whichever it is; the name of the limit that ended it, if one did."""
    try:
        _loop(state)
    except FatalFault as fault:
        cut = state.size < state.total
        if cut and fault.code in (faults.NO_STOP, faults.ARGUMENT_PAST_END, faults.NO_NEWLINE):
            return "pickle_bytes"
        state.fault(fault.code, state.position, fault.detail, fatal=True)
    except LimitReached as reached:
        return reached.limit
    except Probed:
        pass
    return None


def _loop(state: State) -> None:  # noqa: C901, PLR0915 - one function for the reason below
    """Run opcodes until STOP; raises what ends a run before it.

    One function, local names, the commonest opcodes of torch's pickles first. Measured on a data.pkl of 30,000 tensors
    (benchmarks/pickle.py writes it): 0.65 s, and 2.8 s with a handler for each opcode. A branch changes nothing before it has
    read all it needs, so that an exception of Python can be explained by the handler of the opcode.
    """
    data, size, position = state.data, state.size, state.position
    stack, below, high = state.stack, state.below, state.high
    memo: Any = state.memo
    dense = True
    highest_offset = state.memo_highest_offset
    depths, depth_of, deepen, deepest = state.depths, state.depth, state.deepen, state.deepest
    events, shared = state.events, state.shared
    counts: list[Any] = state.counts
    firsts = state.firsts
    handlers, int4, uint4, uint2 = HANDLERS, _INT4, _UINT4, _UINT2
    offset = position
    last: Any = None  # the last tuple made by TUPLE, with its depth: mostly what the next opcode takes
    last_depth = 0
    while not state.stopped:
        state.stack = stack
        try:
            for _ in repeat(None, state.budget()):
                offset = position
                code = data[position]
                position += 1
                try:
                    counts[code] += 1
                except TypeError:  # None until the first one: no cost for all others
                    counts[code] = 1
                    firsts[code] = offset
                if code == 0x72:  # LONG_BINPUT
                    index = uint4(data, position)[0]
                    position += 4
                    if dense and index == len(memo):
                        memo.append(stack[-1])
                        highest_offset = offset
                    else:
                        state.stack = stack
                        state.memorise(index, offset)
                        memo = state.memo
                        dense = type(memo) is list
                elif code == 0x68:  # BINGET
                    value = memo[data[position]]
                    position += 1
                    stack.append(value)
                    kind = type(value)
                    if kind is not str and kind is not Global and kind in CONTAINERS:
                        if kind in MUTABLE:
                            shared.add(id(value))
                        high = max(high, depth_of(value))
                elif code == 0x4B:  # BININT1
                    stack.append(data[position])
                    position += 1
                elif code == 0x28:  # MARK
                    below.append((stack, high))
                    stack = []
                    high = 0
                elif code == 0x74:  # TUPLE
                    items = stack
                    depth = high + 1
                    stack, high = below.pop()
                    last = value = tuple(items)
                    last_depth = depth
                    stack.append(value)
                    if depth > SHALLOW:
                        depths[id(value)] = depth
                    if depth > high:
                        high = depth
                        if depth > deepest:
                            deepest = deepen(depth, offset)
                elif code == 0x58:  # BINUNICODE
                    begin = position + 4
                    position = begin + uint4(data, position)[0]
                    if position > size:
                        raise IndexError
                    try:
                        stack.append(str(data[begin:position], "utf-8"))
                    except UnicodeDecodeError:
                        stack.append(irregular_text(state, offset, bytes(data[begin:position]), position))
                elif code == 0x52 and type(stack[-1]) is tuple:  # REDUCE
                    function = stack[-2]
                    args = stack.pop()
                    value = Call(function, args, None, "REDUCE", offset)
                    stack[-1] = value
                    events.append(PickleEvent("call", offset, value))
                    depth = 2 if not args else (last_depth if args is last else depth_of(args)) + 1
                    if type(function) is not Global:
                        depth = max(depth, depth_of(function) + 1)
                    if depth > SHALLOW:
                        depths[id(value)] = depth
                    if depth > high:
                        high = depth
                        if depth > deepest:
                            deepest = deepen(depth, offset)
                elif code == 0x86 or code == 0x85:  # TUPLE2, TUPLE1  # noqa: PLR1714
                    if code == 0x86:
                        value = (stack[-2], stack[-1])
                        first, second = value
                        del stack[-1]
                    else:
                        value = (stack[-1],)
                        first = second = value[0]
                    depth = 1 if type(first) is int and type(second) is int else max(depth_of(first), depth_of(second)) + 1
                    stack[-1] = value
                    if depth > SHALLOW:
                        depths[id(value)] = depth
                    if depth > high:
                        high = depth
                        if depth > deepest:
                            deepest = deepen(depth, offset)
                elif code == 0x4D:  # BININT2
                    stack.append(uint2(data, position)[0])
                    position += 2
                elif code == 0x4A:  # BININT
                    stack.append(int4(data, position)[0])
                    position += 4
                elif code == 0x51:  # BINPERSID
                    args = stack[-1]
                    value = PersistentId(args, False, offset)
                    stack[-1] = value
                    events.append(PickleEvent("persistent-id", offset, value))
                    depth = (last_depth if args is last else depth_of(args)) + 1
                    if depth > SHALLOW:
                        depths[id(value)] = depth
                    if depth > high:
                        high = depth
                        if depth > deepest:
                            deepest = deepen(depth, offset)
                elif code == 0x71:  # BINPUT
                    index = data[position]
                    position += 1
                    if dense and index == len(memo):
                        memo.append(stack[-1])
                        highest_offset = offset
                    else:
                        state.stack = stack
                        state.memorise(index, offset)
                        memo = state.memo
                        dense = type(memo) is list
                elif code == 0x89:  # NEWFALSE
                    stack.append(False)
                elif code == 0x94:  # MEMOIZE
                    if dense:
                        memo.append(stack[-1])
                        highest_offset = offset
                    else:
                        state.stack = stack
                        state.memorise(len(memo), offset)
                elif code == 0x8C:  # SHORT_BINUNICODE
                    begin = position + 1
                    position = begin + data[position]
                    if position > size:
                        raise IndexError
                    try:
                        stack.append(str(data[begin:position], "utf-8"))
                    except UnicodeDecodeError:
                        stack.append(irregular_text(state, offset, bytes(data[begin:position]), position))
                elif code == 0x29:  # EMPTY_TUPLE
                    stack.append(())
                    if not high:
                        high = 1
                        if not deepest:
                            deepest = deepen(1, offset)
                else:
                    state.stack = stack
                    state.high = high
                    handler = handlers[code]
                    if handler is None:
                        raise FatalFault(faults.UNKNOWN_OPCODE, f"no opcode has the code 0x{code:02X}")
                    position = handler(state, offset, position)
                    stack = state.stack
                    high = state.high
                    if dense and memo is not state.memo:
                        memo = state.memo
                        dense = False
                    if code == 0x2E:  # STOP
                        break
        except (IndexError, KeyError, StructError) as error:
            state.stack, state.high, state.position = stack, high, offset
            raise _explained(state, offset) from error
        except (FatalFault, LimitReached, Probed):
            state.position = offset
            raise
        finally:
            state.note_highest(highest_offset)
        state.position = position


def _explained(state: State, offset: int) -> FatalFault:
    """The fault behind an exception of Python: the handler of the opcode at ``offset`` finds it."""
    if offset >= state.size:
        return FatalFault(faults.NO_STOP, "the data end before STOP")
    handler = HANDLERS[state.data[offset]]
    if handler is not None:
        try:
            handler(state, offset, offset + 1)
        except FatalFault as fault:
            return fault
    raise AssertionError(f"opcode at {offset} fails in the loop and not in its handler")


def _facts(state: State, limit: str | None) -> PickleFacts:
    state.close_frame(state.position)
    if state.depths_stale:
        remaining = [item for items, _ in state.below for item in items]
        logged = (event.value for event in state.events)
        depth, outermost = nesting([state.root, *state.stack, *remaining, *state.memo_values(), *logged, *state.dropped])
        if depth > state.deepest:
            state.deepest, state.deepest_offset = depth, getattr(outermost, "offset", state.start)
            if depth > state.limits.pickle_nesting and limit is None:
                limit = "pickle_nesting"
    counts = state.counts
    # Where a limit ended the run, the stack may be left as it was some opcodes before.
    left = [item for items, _ in state.below for item in items] + state.stack if limit is None else []
    return PickleFacts(
        start=state.start,
        end=state.position,
        stopped=state.stopped,
        root=state.root,
        protocols=state.protocols,
        faults=state.faults,
        events=state.events,
        opcodes={op.name: (count, state.firsts[op.code]) for op in OPCODES if (count := counts[op.code])},
        opcode_count=sum(counts[op.code] or 0 for op in OPCODES),
        node_count=state.node_count(),
        memo_writes=sum(counts[code] or 0 for code in WRITES_MEMO),
        memo_highest=state.memo_highest,
        memo_highest_offset=state.memo_highest_offset,
        deepest=state.deepest,
        deepest_offset=state.deepest_offset,
        stack_left=state.stack_left,
        undecodable_texts=state.undecodable,
        discarded=state.dropped + [value for value in left if type(value) in CONTAINERS],
        limit=limit,
    )
