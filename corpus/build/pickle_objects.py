# SPDX-License-Identifier: Apache-2.0
"""Pickles that the grammar allows and no object comes of."""

from __future__ import annotations

from corpus.build import opcodes as op
from corpus.build.kit import (
    Call,
    Global,
    Persistent,
    archive,
    dump,
    eager,
    ordered_dict,
    recipe,
    records_around,
    storage,
    tensor,
    with_serialization_id,
)
from corpus.build.pickle_kit import TWO, holding


@recipe("pickle/global-name-odd.pt")
def global_name_odd() -> bytes:
    """A module name with a space."""
    return holding(op.global_("my module", "Thing"))


@recipe("pickle/value-cannot-take.pt")
def setitem_on_tensor() -> bytes:
    """SETITEM on a tensor: torch before 2.10 wrote past its memory."""
    identifier = ("storage", Global("torch", "FloatStorage"), "0", "cpu", 2)
    view = (Persistent(identifier), 0, (2,), (1,), False, ordered_dict())
    pickle = dump(Call(Global("torch._utils", "_rebuild_tensor_v2"), view, ((1000, 1.0),)))
    return archive(with_serialization_id(records_around(pickle, [("0", storage(TWO))])))


@recipe("pickle/value-cannot-take-items.pt")
def items_to_size() -> bytes:
    """A key and a value for a torch.Size."""
    return eager({"weight": tensor(TWO), "size": Call(Global("torch", "Size"), ((2,),), (("a", 1),))})


@recipe("pickle/value-cannot-take-list.pt")
def setitem_on_list() -> bytes:
    """SETITEM on a list."""
    return holding(op.EMPTY_LIST + op.text("a") + op.integer(1) + op.SETITEM)


@recipe("pickle/value-cannot-take-state.pt")
def build_on_text() -> bytes:
    """BUILD on a text."""
    return holding(op.text("a") + op.EMPTY_DICT + op.BUILD)


@recipe("pickle/key-unhashable.pt")
def key_unhashable() -> bytes:
    """A list as a key."""
    return holding(op.EMPTY_DICT + op.EMPTY_LIST + op.NONE + op.SETITEM)


@recipe("pickle/key-unhashable-inside.pt")
def key_unhashable_inside() -> bytes:
    """A tuple with a dict in it as an item of a frozenset."""
    return holding(op.MARK + op.EMPTY_DICT + op.TUPLE1 + op.FROZENSET)


@recipe("pickle/key-repeated.pt")
def key_repeated() -> bytes:
    """A state_dict with one name for two tensors."""
    return eager(ordered_dict((("weight", tensor(TWO)), ("weight", tensor((3.0, 4.0))))))


def _with_id(identifier: object) -> bytes:
    """A tensor whose storage is named by ``identifier``."""
    view = (Persistent(identifier), 0, (2,), (1,), False, ordered_dict())
    pickle = dump(Call(Global("torch._utils", "_rebuild_tensor_v2"), view))
    return archive(with_serialization_id(records_around(pickle, [("0", storage(TWO))])))


@recipe("pickle/persistent-id-wrong.pt")
def id_of_six() -> bytes:
    """Six items, as in a legacy stream."""
    return _with_id(("storage", Global("torch", "FloatStorage"), "0", "cpu", 2, None))


@recipe("pickle/persistent-id-wrong-word.pt")
def id_of_module() -> bytes:
    """An id of a module class, which only legacy streams have."""
    return _with_id(("module", Global("torch.nn", "Linear"), "linear.py", "class Linear: pass"))


@recipe("pickle/persistent-id-wrong-list.pt")
def id_no_tuple() -> bytes:
    """A list instead of a tuple."""
    return _with_id(["storage", Global("torch", "FloatStorage"), "0", "cpu", 2])


@recipe("pickle/persistent-id-text.pt")
def id_text() -> bytes:
    """PERSID, as protocol 0 writes it."""
    return holding(op.persid("('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 2)"))
