# SPDX-License-Identifier: Apache-2.0
"""Streams made to exhaust a reader: time and memory stay in proportion to the bytes, and nothing crashes."""

from __future__ import annotations

import gc
import struct
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdd.limits import Limits
from fdd.pickles import expanded_size, looks_like_pickle, present_size, run, walk
from fdd.pickles.nodes import DictNode, ListNode, PickleFacts

_DEEP = 100_000
_WIDE = Limits(pickle_nesting=10**7, pickle_stack=10**7)
_MILLION = 10**6


def _billion_laughs(levels: int) -> bytes:
    """Lists that each hold the former one ten times."""
    parts = [b"\x80\x02]q\x00"]
    for level in range(1, levels):
        parts.append(b"](" + b"h" + bytes((level - 1,)) + (b"h" + bytes((level - 1,))) * 9 + b"eq" + bytes((level,)))
    return b"".join(parts) + b"h" + bytes((levels - 1,)) + b"."


def _nested(kind: str, levels: int) -> bytes:
    middle = levels - 1
    return {
        "lists by APPEND": b"]" * levels + b"a" * middle + b".",
        "lists by APPENDS": b"](" * middle + b"]" + b"e" * middle + b".",
        "lists by LIST": b"(" * levels + b"l" * levels + b".",
        "tuples by TUPLE": b"(" * middle + b")" + b"t" * middle + b".",
        "tuples by TUPLE1": b")" + b"\x85" * middle + b".",
        "tuples by TUPLE3": b")" + b"NN\x87" * middle + b".",
        "dicts by SETITEM": b"}N" * middle + b"}" + b"s" * middle + b".",
        "dicts by SETITEMS": b"}(N" * middle + b"}" + b"u" * middle + b".",
        "dicts by DICT": b"(N" * middle + b"}" + b"d" * middle + b".",
        "frozensets": b"(" * levels + b"\x91" * levels + b".",
        "sets by ADDITEMS": b"\x8f(" * middle + b"\x8f" + b"\x90" * middle + b".",
        "persistent ids": b")" + b"Q" * middle + b".",
        "lists from the top": b"]q\x00" + b"h\x00]q\x00a" * middle + b".",
        "lists through the memo": b"]q\x000" + b"]h\x00aq\x000" * middle + b"h\x00.",
        "lists by DUP": b"]" + b"2]q\x00a0h\x00" * middle + b".",
    }[kind]


_KINDS = (
    "lists by APPEND",
    "lists by APPENDS",
    "lists by LIST",
    "tuples by TUPLE",
    "tuples by TUPLE1",
    "tuples by TUPLE3",
    "dicts by SETITEM",
    "dicts by SETITEMS",
    "dicts by DICT",
    "frozensets",
    "sets by ADDITEMS",
    "persistent ids",
    "lists from the top",
    "lists through the memo",
    "lists by DUP",
)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("levels", [1, 2, 7, 8, 9, 10, 30])
def test_nesting_is_exact(kind: str, levels: int) -> None:
    assert run(_nested(kind, levels)).deepest == levels


@pytest.mark.parametrize(
    "kind", ["lists by APPEND", "lists by APPENDS", "tuples by TUPLE", "tuples by TUPLE1", "dicts by DICT", "lists from the top"]
)
def test_very_deep_nesting_is_counted_walked_and_freed(kind: str) -> None:
    data = _nested(kind, _DEEP)
    facts = run(data, limits=_WIDE)
    assert facts.deepest == _DEEP and facts.limit is None
    assert sum(1 for _ in walk(facts.root)) <= _DEEP
    del facts
    gc.collect()


@pytest.mark.parametrize("kind", _KINDS)
def test_nesting_over_the_limit_ends_in_that_limit(kind: str) -> None:
    facts = run(_nested(kind, 2_001), limits=Limits(pickle_nesting=2_000))
    assert facts.limit == "pickle_nesting" and facts.deepest == 2_001
    assert run(_nested(kind, 2_000), limits=Limits(pickle_nesting=2_000)).limit is None


def test_sizes_of_very_deep_nesting() -> None:
    root = run(_nested("tuples by TUPLE3", _DEEP), limits=_WIDE).root
    assert expanded_size(root, _MILLION) == present_size(root, _MILLION) == 3 * _DEEP - 2


def test_calls_nest_too() -> None:
    chain = b"cm\nf\nq\x000)" + b"q\x010h\x00h\x01R\x85" * 5_000 + b"."
    facts = run(chain)
    assert facts.faults == [] and facts.deepest == 10_001
    functions = b"cm\nf\n" + b")R" * 5_000 + b"."
    assert run(functions).deepest == 5_001
    states = b"cm\nf\n)R" * 5_000 + b"N" + b"b" * 5_000 + b"."
    assert run(states).deepest == 5_001


def test_a_list_that_holds_itself() -> None:
    facts = run(b"\x80\x02]q\x00h\x00a.")
    assert facts.faults == [] and facts.deepest >= 1
    assert [type(value) for value in walk(facts.root)] == [ListNode]
    assert expanded_size(facts.root, 1000) == 1000
    assert present_size(facts.root, 1000) == 2


def test_depth_grows_through_a_shared_container() -> None:
    # ((L)) with L filled afterwards by way of the memo.
    facts = run(b"\x80\x02]q\x00\x85\x85h\x00]]]aaa0.")
    assert facts.faults == [] and facts.deepest == 6


def test_billion_laughs() -> None:
    begin = time.perf_counter()
    facts = run(_billion_laughs(100))
    assert facts.faults[0].code == "items-left"
    assert facts.deepest == 100
    assert sum(1 for _ in walk(facts.root)) == 100
    assert expanded_size(facts.root, 10**30) == 10**30
    assert expanded_size(facts.root, _MILLION) == _MILLION
    assert present_size(facts.root, _MILLION) == 1 + 99 * 10
    assert time.perf_counter() - begin < 5
    assert expanded_size(run(_billion_laughs(5)).root, 10**9) == sum(10**level for level in range(5))


def test_tuple_dag_as_key_is_never_hashed() -> None:
    key = b")" + b"2\x86" * 60
    begin = time.perf_counter()
    for data in (b"\x80\x02}" + key + b"Ns.", b"\x80\x02}(" + key + b"Nu.", b"(" + key + b"Nd.", b"(" + key + b"\x91."):
        facts = run(data)
        assert facts.faults == [] and facts.deepest == 62
        assert expanded_size(facts.root, 10**18) == 10**18
    assert time.perf_counter() - begin < 5
    assert isinstance(run(b"\x80\x02}" + key + b"Ns.").root, DictNode)


def _peak(data: bytes, limits: Limits) -> tuple[PickleFacts, int]:
    tracemalloc.start()
    try:
        facts = run(data, limits=limits)
        return facts, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        b"Nr\xff\xff\xff\x7f.",
        b"Np9223372036854775807\n.",
        b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff.",
        b"\x96" + struct.pack("<Q", 1 << 40) + b"a.",
        b"\x8d" + struct.pack("<Q", 1 << 62) + b"a.",
        b"\x8b\xff\xff\xff\x7fa.",
        b"B\xff\xff\xff\xffa.",
        b"N\x95" + struct.pack("<Q", 1 << 62) + b".",
    ],
)
def test_large_indexes_and_lengths_cost_nothing(data: bytes) -> None:
    _, peak = _peak(data, Limits())
    assert peak < 200_000


def test_memo_index_bomb_is_a_fact() -> None:
    facts = run(b"\x80\x02Nr\xff\xff\xff\x7f.")
    assert (facts.memo_highest, facts.memo_highest_offset, facts.memo_writes) == (2**31 - 1, 3, 1)
    assert facts.faults == []


def test_open_marks() -> None:
    facts = run(b"\x80\x02" + b"(" * 50_000 + b"N.")
    assert [fault.code for fault in facts.faults] == ["mark-left"] and facts.stopped
    assert run(b"(" * 300_000 + b"N.").limit == "pickle_stack"


@pytest.mark.parametrize("data", [b"N" * 400_000 + b".", b"(" * 400_000 + b"N.", b"N" + b"2" * 400_000 + b".", b"(N" * 400_000])
def test_the_stack_has_a_limit(data: bytes) -> None:
    facts = run(data)
    assert facts.limit == "pickle_stack" and not facts.stopped
    assert 200_000 < facts.end < 300_000
    assert run(b"N" * 199_000 + b"\x85.").limit is None


@pytest.mark.parametrize(
    "data",
    [
        b"N0" * 10_000 + b"N.",
        b"N" + b"q\x00q\x01" * 5 + b"K\x01q\x00K\x02q\x00" * 5_000 + b".",
        b"N" + b"\x80\x02" * 10_000 + b".",
        b"N" + b"NNs" * 4_000 + b".",
        b"N" + b"".join(b"r" + struct.pack("<I", index * 7) for index in range(10_000)) + b".",
        b"cm\nf\nq\x00" + b"h\x00Nb0" * 10_000 + b".",
    ],
)
def test_values_events_faults_and_memo_have_a_limit(data: bytes) -> None:
    facts = run(data, limits=Limits(pickle_nodes=1_000))
    assert facts.limit == "pickle_nodes" and not facts.stopped
    kept = (facts.node_count, len(facts.events), len(facts.faults), len(facts.protocols), facts.memo_writes)
    assert max(kept) < 5_000


def test_values_up_to_the_limit_are_read() -> None:
    assert run(b"N0" * 999 + b"N.", limits=Limits(pickle_nodes=1_000)).limit is None
    assert run(b"N0" * 999 + b"N.", limits=Limits(pickle_nodes=1_000)).node_count == 1_000


@pytest.mark.parametrize("as_view", [False, True])
def test_only_so_many_bytes_are_followed(as_view: bool) -> None:
    data = b"??\x80\x02N" + b"0N" * 100 + b"."
    source = memoryview(data) if as_view else data
    for cut in (1, 3, 50):
        facts = run(source, start=2, limits=Limits(pickle_bytes=cut))
        assert facts.limit == "pickle_bytes" and facts.faults == [] and facts.end <= 2 + cut
    assert run(source, start=2, limits=Limits(pickle_bytes=len(data) - 2)).limit is None


def test_long_decimals_stay_text() -> None:
    begin = time.perf_counter()
    digits = b"7" * 3_000_000
    facts = run(b"L" + digits + b"L\nI" + digits + b"\n\x86.")
    assert facts.faults == [] and facts.root == (digits.decode(), digits.decode())
    large = run(b"\x8b" + struct.pack("<i", 3_000_000) + b"\x7f" * 3_000_000 + b".")
    assert large.faults == [] and large.root.bit_length() == 8 * 3_000_000 - 1
    assert time.perf_counter() - begin < 5


def test_a_line_without_end() -> None:
    for data in (b"\x80\x02c" + b"a" * 2_000_000, b"V" + b"a" * 2_000_000):
        for source in (data, memoryview(data)):
            (fault,) = run(source).faults
            assert fault.code == "no-newline" and fault.offset + fault.length == len(data)


def test_probing_is_cheap() -> None:
    data = b"\x80\x02cos\nsystem\n" + b"N0" * 2_000_000
    begin = time.perf_counter()
    assert looks_like_pickle(data) and looks_like_pickle(memoryview(data))
    assert time.perf_counter() - begin < 0.5


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=200), st.integers(0, 10))
def test_any_bytes_are_read_without_an_exception(data: bytes, start: int) -> None:
    limits = Limits(pickle_nodes=50, pickle_stack=20, pickle_nesting=5)
    for prefix in (b"", b"\x80\x04", b"N"):
        facts = run(prefix + data, start=start, limits=limits)
        assert facts.stopped or facts.limit or facts.faults[-1].fatal
        assert facts.end <= max(len(prefix) + len(data), start)
        assert looks_like_pickle(prefix + data, start) in (True, False)
        expanded_size(facts.root, 1000)
