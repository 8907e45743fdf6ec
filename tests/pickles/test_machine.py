# SPDX-License-Identifier: Apache-2.0
"""The machine against CPython's pickler, unpickler and disassembler, and the loop against its own handlers."""

from __future__ import annotations

import gc
import io
import pickle
import pickletools
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fdd.limits import Limits
from fdd.pickles import children, run
from fdd.pickles.faults import CANNOT_TAKE, UNKNOWN_OPCODE, FatalFault, LimitReached
from fdd.pickles.machine import HANDLERS, _facts, _state
from fdd.pickles.nodes import Call, DictNode, Global, PickleFacts
from fdd.pickles.opcodes import OPCODES
from fdd.pickles.walk import CONTAINERS, nesting, walk
from tests.pickles.values import rebuilt, values

protocols = st.integers(0, 5)
_examples = settings(deadline=None, max_examples=70, suppress_health_check=[HealthCheck.too_slow])


def _written(value: object, protocol: int, *, in_python: bool) -> bytes:
    if not in_python:
        return pickle.dumps(value, protocol)
    stream = io.BytesIO()
    pickle._Pickler(stream, protocol).dump(value)
    return stream.getvalue()


@_examples
@given(values, protocols, st.booleans(), st.binary(max_size=5), st.binary(max_size=5))
def test_what_pickle_writes_is_read_back(value: Any, protocol: int, in_python: bool, before: bytes, behind: bytes) -> None:
    data = _written(value, protocol, in_python=in_python)
    facts = run(before + data + behind, start=len(before))
    assert (facts.start, facts.end) == (len(before), len(before) + len(data))
    assert facts.stopped and facts.faults == [] and facts.limit is None and facts.stack_left == 0
    found = rebuilt(facts.root)
    assert found == value and type(found) is type(value)
    assert facts.deepest == nesting([facts.root])[0]


@_examples
@given(values, protocols)
def test_opcodes_and_memo_are_those_that_the_disassembler_sees(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    counts: Counter[str] = Counter()
    firsts: dict[str, int] = {}
    highest, writes = -1, 0
    for opcode, argument, position in pickletools.genops(data):
        counts[opcode.name] += 1
        assert position is not None
        firsts.setdefault(opcode.name, position)
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            highest = max(highest, writes if argument is None else argument)
            writes += 1
    facts = run(data)
    assert facts.opcodes == {name: (count, firsts[name]) for name, count in counts.items()}
    assert facts.opcode_count == counts.total()
    assert (facts.memo_writes, facts.memo_highest) == (writes, highest)
    assert facts.protocols == ([(0, protocol)] if protocol >= 2 else [])


def _by_handlers(data: bytes, limits: Limits) -> PickleFacts:
    """The machine without its loop: every opcode by its handler."""
    state = _state(data, 0, limits)
    limit = None
    position = offset = 0
    try:
        while not state.stopped:
            offset = position
            if position >= len(data):
                raise FatalFault("no-stop", "the data end before STOP")
            code = data[position]
            if state.counts[code] is None:
                state.counts[code], state.firsts[code] = 0, offset
            state.counts[code] = (state.counts[code] or 0) + 1
            handler = HANDLERS[code]
            if handler is None:
                raise FatalFault(UNKNOWN_OPCODE, f"no opcode has the code 0x{code:02X}")
            position = handler(state, position, position + 1)
        offset = position
    except FatalFault as fault:
        state.fault(fault.code, offset, fault.detail, fatal=True)
    except LimitReached as reached:
        limit = reached.limit
    state.position = offset
    return _facts(state, limit)


def _flat(facts: PickleFacts) -> dict[str, Any]:
    """Facts that can be compared: nodes by kind, offset and children, atoms by their text."""

    def flat(value: Any) -> Any:
        atoms = [repr(child) for child in children(value) if type(child) in (int, float, str, bytes, bool, type(None))]
        return type(value).__name__, getattr(value, "offset", None), len(children(value)), atoms

    fields = {name: getattr(facts, name) for name in facts.__dataclass_fields__}
    fields["root"] = [flat(node) for node in walk(facts.root)] or repr(facts.root)
    fields["events"] = [(event.what, event.offset, type(event.value).__name__) for event in facts.events]
    fields["faults"] = [asdict(fault) for fault in facts.faults]
    fields["discarded"] = [flat(node) for value in facts.discarded for node in walk(value)]
    return fields


_fragments = st.sampled_from(
    [bytes((opcode.code,)) for opcode in OPCODES]
    + [b"h\x00", b"h\x01", b"q\x00", b"q\x01", b"r\x05\x00\x00\x00", b"j\x00\x00\x00\x00", b"K\x07", b"J\xff\xff\xff\xff"]
    + [b"X\x01\x00\x00\x00a", b"\x8c\x01b", b"cos\nname\n", b"ios\nname\n", b"N", b")", b"]", b"}", b"(", b"p0\n", b"g0\n"]
    + [b"U\x01\xff", b"X\x02\x00\x00\x00\xff\xff", b"I07\n", b"\x95\x02" + bytes(7), b"\x82\x01", b"Pid\n", b"\x80\x04"]
)
_streams = st.lists(_fragments, max_size=40).map(b"".join) | st.binary(max_size=60)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """A pickle with some bytes changed, cut off or put in."""
    data = bytearray(pickle.dumps(draw(values), draw(protocols)))
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(data)))
        data[position : position + draw(st.integers(0, 2))] = draw(st.binary(max_size=1) | _fragments)
    return bytes(data)


@settings(_examples, max_examples=150)
@given(_streams | _damaged())
def test_the_loop_and_the_handlers_agree_on_any_bytes(data: bytes) -> None:
    limits = Limits(pickle_nesting=12)
    facts = _flat(run(data, limits=limits))
    assert facts == _flat(_by_handlers(data, limits))
    assert facts == _flat(run(memoryview(data), limits=limits))


class _Refusing(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise NotImplementedError

    def persistent_load(self, pid: Any) -> Any:
        raise NotImplementedError

    def get_extension(self, code: int) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("item", [b"(l", b"N", b"K\x01", b")", b"}"])
def test_a_buffer_is_made_of_bytes_only(item: bytes) -> None:
    assert [fault.code for fault in run(item + b"\x98.").faults] == [CANNOT_TAKE]
    assert not run(b"C\x01a\x98.").faults


@settings(_examples, max_examples=150)
@given(_damaged() | _streams)
def test_what_cpython_reads_has_no_fatal_fault(data: bytes) -> None:
    """The unpickler in Python is the oracle: it does not reserve memory by index or length."""
    assume(b"\x96" not in data and b"\x97" not in data)
    facts = run(data)
    try:
        value = _Refusing(io.BytesIO(data), encoding="utf-8").load()
    except NotImplementedError:
        return
    except Exception:  # noqa: BLE001 - whatever it says, it refuses
        # It refuses values too (unhashable keys), and looks at all of a frame at once.
        assert facts.faults or not facts.stopped or {"DICT", "SETITEM", "SETITEMS", "ADDITEMS", "FROZENSET"} & set(facts.opcodes)
        return
    assert facts.stopped and not any(fault.fatal for fault in facts.faults)
    if not facts.faults and not set(facts.opcodes) & {"BUILD", "DUP"}:
        found = facts.root
        assert found == value if type(found) not in CONTAINERS else len(children(found)) >= len(value)


def test_calls_and_names_are_logged_in_order_and_popped_ones_stay() -> None:
    facts = run(b"\x80\x04cos\nsystem\n(S'a'\ntR0\x8c\x01m\x8c\x01n\x93(iu\nv\n(cw\nx\nocy\nz\n)\x81}b.")
    assert [event.what for event in facts.events] == [
        *("global", "call", "pop-call"),
        *("global", "global", "call", "global", "call", "global", "call", "build"),
    ]
    offsets = [event.offset for event in facts.events]
    assert offsets == sorted(offsets)
    assert [event.value.path for event in facts.events if event.what == "global"] == ["os.system", "m.n", "u.v", "w.x", "y.z"]
    assert [event.value.opcode for event in facts.events if event.what == "call"] == ["REDUCE", "INST", "OBJ", "NEWOBJ"]
    assert facts.stack_left == 3 and isinstance(facts.root, Call) and facts.root.opcode == "NEWOBJ"


def test_what_a_call_takes_is_kept_in_its_places() -> None:
    facts = run(b"\x80\x02cm\nf\nK\x01\x85RK\x02aK\x03K\x08s(K\x04K\x05e(K\x06K\x07uNb}b.")
    call = facts.root
    assert isinstance(call, Call) and isinstance(call.function, Global)
    assert (call.args, call.items, call.pairs) == ((1,), [2, 4, 5], [3, 8, 6, 7])
    assert call.state is not None and call.state[0] is None and isinstance(call.state[1], DictNode)
    assert facts.faults == []


def test_keyword_arguments_are_kept() -> None:
    facts = run(b"\x80\x04cm\nf\nK\x01\x85}\x8c\x01kK\x02s\x92.")
    assert facts.faults == []
    assert (facts.root.opcode, facts.root.args, facts.root.kwargs.pairs) == ("NEWOBJ_EX", (1,), ["k", 2])


def test_names_are_kept_as_written_up_to_the_limit() -> None:
    module, name = "ä" * 300, "x" * 3000
    by_line = run(f"c{module}\n{name}\n.".encode(), limits=Limits(global_name_bytes=301)).root
    assert (by_line.module, by_line.name) == ("ä" * 150, "x" * 301)
    assert run(b"ca b\r\nc.d\n.").root.path == "a b\r.c.d"


def test_outside_references_are_logged() -> None:
    facts = run(b"\x80\x05\x97\x980Ptext\nK\x01\x85Q\x82\x07\x87.")
    assert facts.faults == []
    assert [(event.what, event.offset) for event in facts.events] == [
        ("out-of-band", 2),
        ("out-of-band", 3),
        ("persistent-id", 5),
        ("persistent-id", 14),
        ("extension", 15),
    ]
    text, binary, extension = facts.root
    assert (text.value, text.text, binary.value, binary.text, extension.code) == ("text", True, (1,), False, 7)


def test_second_protocol_is_a_fact() -> None:
    facts = run(b"N\x80\x02\x80\x03.")
    assert facts.protocols == [(1, 2), (3, 3)] and facts.faults == []


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"I00\n.", False),
        (b"I01\n.", True),
        (b"I-0\n.", 0),
        (b"L5\n.", 5),
        (b"L-17L\n.", -17),
        (b"\x8a\x00.", 0),
        (b"\x8a\x02\x00\x80.", -32768),
        (b"\x8b\x01\x00\x00\x00\xff.", -1),
        (b"F-inf\n.", float("-inf")),
        (b"F1e+16\n.", 1e16),
        (b"S'a\\x41\\101\\n\\\\\\'b\\q'\n.", "aAA\n\\'b\\q"),
        (b'S"it\'s"\n.', "it's"),
        (b"U\x02\xc3\xa4.", "ä"),
        (b"U\x01\xe4.", b"\xe4"),
        (b"T\x01\x00\x00\x00\xe4.", b"\xe4"),
        (b"Va\\u20ac\\U0001f600\xe4\n.", "a€😀ä"),
        (b"L" + b"9" * 1001 + b"L\n.", "9" * 1001),
        (b"F" + b"9" * 1001 + b"\n.", "9" * 1001),
    ],
)
def test_values_of_arguments(data: bytes, value: Any) -> None:
    facts = run(data)
    assert facts.faults == [] and facts.root == value and type(facts.root) is type(value)


def test_texts_that_are_not_utf8_are_noted() -> None:
    surrogate = "\ud800".encode("utf-8", "surrogatepass")
    facts = run(b"\x80\x02X\x03\x00\x00\x00" + surrogate + b"(V\\ud800\nU\x02\xff\xfeU\x02\xc3\xa4t\x86.")
    assert facts.faults == []
    assert facts.undecodable_texts == [(2, 8), (11, 8), (19, 4)]


def test_memo_facts() -> None:
    facts = run(b"\x80\x02]q\x00Nq\x00r\x00\x01\x00\x00h\x000h\x000.")
    assert [(event.what, event.offset) for event in facts.events] == [("memo-overwrite", 6)]
    assert (facts.memo_writes, facts.memo_highest, facts.memo_highest_offset) == (3, 256, 8)
    again = run(b"\x80\x02]q\x00q\x00.")
    assert again.events == [] and again.memo_writes == 2 and again.memo_highest_offset == 3


def test_memoize_counts_entries_not_indexes() -> None:
    # Entries 5 and then 1: MEMOIZE writes to the number of entries, as CPython does.
    facts = run(b"\x80\x04K\x09q\x05\x94h\x01\x86.")
    assert facts.faults == [] and facts.root == (9, 9)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_before(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        run(b"\x80\x02N.")
        run(b"\xff")
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
