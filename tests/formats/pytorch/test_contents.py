# SPDX-License-Identifier: Apache-2.0
"""Names of tensors in an object, and what kind of object it is."""

from __future__ import annotations

import pytest

from corpus.build.kit import Call, Global, Lowering, New, dump, ordered_dict, state_dict, tensor
from fdd.core.span import Span
from fdd.formats.pytorch.contents import content_of, find_tensors, odd_state_keys
from fdd.formats.pytorch.document import PickleRecord
from fdd.formats.pytorch.persistent_ids import PersistentIdReader
from fdd.formats.pytorch.rebuilds import TensorReader
from fdd.pickles import run
from fdd.pickles.nodes import Value
from fdd.tensors.names import escape_key


def read(value: object) -> tuple[Value, TensorReader, PersistentIdReader]:
    data = dump(Lowering().lower(value))
    facts = run(data)
    pickle = PickleRecord("archive/data.pkl", "object", facts, Span(0, len(data)), 0, len(data))
    ids = PersistentIdReader(pickle)
    return facts.root, TensorReader(pickle, ids), ids


def names(value: object) -> list[str]:
    root, reader, ids = read(value)
    return [name for name, _ in find_tensors(root, reader, ids)]


def one() -> object:
    return tensor([1.0])


def module(**children: object) -> New:
    """A module: a class of its own, and the state every module has."""
    state = {"training": True, "_parameters": ordered_dict(), "_buffers": ordered_dict(), "_modules": ordered_dict()} | children
    return New(Global("demo", "Net"), (), state)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (one(), [""]),
        ({"a": one(), "b": {"c": one()}}, ["a", "b/c"]),
        ([one(), (one(), one())], ["0", "1/0", "1/1"]),
        ({"layer.weight": one()}, ["layer.weight"]),
        ({"a/b": one(), "a~b": one()}, ["a~1b", "a~0b"]),
        ({3: one(), -1: one()}, ["3", "-1"]),
        (state_dict({"x": one()}, {"": 1}), ["x"]),
        ({"t": (one(),)}, ["t/0"]),
    ],
)
def test_names(value: object, expected: list[str]) -> None:
    assert names(value) == expected


def test_state_of_modules_goes_by_its_plain_names() -> None:
    inner = module(_parameters=ordered_dict([("weight", one())]), _buffers=ordered_dict([("mean", one())]))
    outer = module(_modules=ordered_dict([("fc", inner)]), extra=one())
    assert sorted(names(outer)) == ["extra", "fc/mean", "fc/weight"]


def test_other_states_are_numbered() -> None:
    packed = New(Global("demo", "Packed"), (), (one(), (one(), one()), 3))
    assert names({"p": packed}) == ["p/0", "p/1/0", "p/1/1"]


def test_slots_stand_beside_the_dict() -> None:
    assert names({"s": New(Global("demo", "Slots"), (), ({"a": one()}, {"b": one()}))}) == ["s/a", "s/b"]


def test_one_tensor_in_two_places_has_both_names() -> None:
    shared = one()
    assert names({"a": shared, "b": shared}) == ["a", "b"]


def test_a_list_that_holds_itself_ends() -> None:
    from corpus.build import opcodes as op

    facts = run(op.proto(2) + op.EMPTY_LIST + op.put(0) + op.get(0) + op.APPEND + op.STOP)
    pickle = PickleRecord(None, "object", facts, Span(0, 9), 0, 9)
    ids = PersistentIdReader(pickle)
    assert list(find_tensors(facts.root, TensorReader(pickle, ids), ids)) == []


OPTIMIZER: dict[str, object] = {"state": {0: {"step": 1}}, "param_groups": [{"params": [0]}]}


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (one(), "tensor"),
        (state_dict({"x": one()}), "state_dict"),
        ({"x": one(), "y": one()}, "state_dict"),
        ({"x": one(), "_extra_state": 3}, "state_dict"),
        (OPTIMIZER, "optimizer"),
        ({"epoch": 3, "x": one()}, "checkpoint"),
        ({"model": {"x": one()}, "note": "y"}, "checkpoint"),
        ({"opt": OPTIMIZER}, "checkpoint"),
        (module(), "module"),
        ([one()], "collection"),
        ({0: one()}, "collection"),
        ({}, "collection"),
        (New(Global("demo", "Thing")), "object"),
        (3, "object"),
    ],
)
def test_content(value: object, content: str) -> None:
    root, reader, _ = read(value)
    assert content_of(root, reader) == content


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        (ordered_dict([("a", one()), (7, one())]), ["7"]),
        (ordered_dict([(7, one())], {"_metadata": ordered_dict()}), ["7"]),
        ({"model": {"a": one(), None: one()}, "epoch": 1}, ["<NoneType>"]),
        ({0: one(), 1: one()}, []),
        ({"a": one(), 1: "no tensor"}, []),
        (OPTIMIZER, []),
        (Call(Global("demo", "f")), []),
    ],
)
def test_keys_of_state_dicts_that_are_no_text(value: object, keys: list[str]) -> None:
    root, reader, _ = read(value)
    assert [key for _, key in odd_state_keys(root, reader)] == keys


def test_escapes_are_those_of_json_pointers() -> None:
    assert escape_key("a~1/b") == "a~01~1b"
