# SPDX-License-Identifier: Apache-2.0
"""Walks over trees of values."""

from __future__ import annotations

from fdd.pickles import children, expanded_size, present_size, run, walk
from fdd.pickles.nodes import Call, DictNode, Global, ListNode, PersistentId
from fdd.pickles.walk import largest_expansion, nesting


def test_walk_is_in_stream_order_and_meets_each_value_once() -> None:
    root = run(b"\x80\x02}q\x00(X\x01\x00\x00\x00acm\nf\nq\x01K\x01\x85q\x02Rh\x02K\x05QK\x06h\x01u.").root
    found = list(walk(root))
    assert [type(value) for value in found] == [DictNode, Call, Global, tuple, PersistentId]
    assert len({id(value) for value in found}) == len(found)
    offsets = [value.offset for value in found if isinstance(value, (Global, PersistentId))]
    assert offsets == sorted(offsets)


def test_walk_of_an_atom_is_empty() -> None:
    assert list(walk("text")) == [] and expanded_size("text", 10) == 1 and present_size(7, 10) == 1
    assert nesting([1, "x"]) == (0, None)


def test_children_of_a_call() -> None:
    call = Call("f", (1,), None, "REDUCE", 0)
    assert list(children(call)) == ["f", (1,)]
    call.kwargs = DictNode([], 0)
    call.state, call.items, call.pairs = ["s"], ["i"], ["k", "v"]
    assert list(children(call)) == ["f", (1,), call.kwargs, "i", "k", "v", "s"]


def test_sizes_count_every_reference() -> None:
    shared = ListNode([1, 2], 0)
    root = ListNode([shared, shared, (shared,)], 0)
    assert present_size(root, 100) == 1 + 3 + 2 + 1
    assert expanded_size(root, 100) == 1 + 3 * 3 + 1
    assert expanded_size(root, 5) == 5
    assert nesting([root]) == (3, root)


def test_many_references_to_one_text_are_no_expansion() -> None:
    root = ListNode(["label"] * 5000, 0)
    assert expanded_size(root, 10**6) == present_size(root, 10**6) == 5001


def test_a_circle_through_several_containers_has_no_size() -> None:
    inner = ListNode([], 0)
    outer = ListNode([(inner,)], 0)
    inner.items.append(outer)
    assert expanded_size(outer, 77) == expanded_size(inner, 77) == 77
    assert nesting([outer])[0] == 3
    assert len(list(walk(outer))) == 3


def test_the_largest_expansion_is_that_of_one_root_and_ends_at_circles() -> None:
    shared = ListNode([1, 2], 0)
    roots = [ListNode([shared, shared], 0), (shared,), shared, "text"]
    assert largest_expansion(roots, 100) == 1 + 2 * 3
    assert largest_expansion(roots, 7) == 7
    circle = ListNode([], 0)
    circle.items += [ListNode([circle], 0), ListNode([circle], 0)]
    assert largest_expansion([circle], 10**9) == 1 + 2 * 2
    assert largest_expansion([], 10) == 0
