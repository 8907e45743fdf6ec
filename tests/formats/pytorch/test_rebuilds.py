# SPDX-License-Identifier: Apache-2.0
"""Tensors out of pickles: the calls that rebuild them, and what is wrong with their arguments."""

from __future__ import annotations

import pytest

from corpus.build.kit import Call, Global, Lowering, Persistent, dump, ordered_dict, storage
from corpus.build.tensors_kit import four, identifier, rebuild, view
from fdd.core.span import Span
from fdd.formats.pytorch.contents import find_tensors
from fdd.formats.pytorch.document import PickleRecord
from fdd.formats.pytorch.persistent_ids import PersistentIdReader
from fdd.formats.pytorch.pickle_values import kind_of, size_of
from fdd.formats.pytorch.rebuilds import TensorReader
from fdd.pickles import run
from fdd.pickles.nodes import ListNode
from fdd.tensors.model import Tensor

FROM_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")
V2 = Global("torch._utils", "_rebuild_tensor_v2")


def read(value: object, protocol: int = 2) -> tuple[list[tuple[str, Tensor]], list[str], TensorReader]:
    """The named tensors of a pickled value, the codes of what is wrong in it, and the reader."""
    data = dump(Lowering().lower(value), protocol)
    facts = run(data)
    pickle = PickleRecord("archive/data.pkl", "object", facts, Span(1000, len(data)), 1000, len(data))
    ids = PersistentIdReader(pickle)
    reader = TensorReader(pickle, ids)
    found = list(find_tensors(facts.root, reader, ids))
    return found, [mismatch.code for mismatch in (*ids.mismatches, *reader.mismatches)], reader


def one(value: object) -> Tensor:
    """The only tensor of a value in which nothing is wrong."""
    found, codes, _ = read(value)
    assert codes == [] and len(found) == 1
    return found[0][1]


def test_a_plain_tensor() -> None:
    tensor = one(view(four(), (2, 2), (2, 1), 0, True))
    assert (tensor.shape, tensor.stride, tensor.storage_offset, tensor.requires_grad) == ((2, 2), (2, 1), 0, True)
    assert tensor.dtype is not None and tensor.dtype.name == "float32" and tensor.location == "cpu"
    assert tensor.offset is not None and tensor.offset > 1000


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_protocols_make_no_difference(protocol: int) -> None:
    found, codes, _ = read({"a": view(four())}, protocol)
    assert codes == [] and [name for name, _ in found] == ["a"]


def test_parameters_and_attributes_are_unwrapped() -> None:
    parameter = one(rebuild("_rebuild_parameter", view(four()), True, ordered_dict()))
    assert parameter.parameter and parameter.requires_grad
    wrapped = one(Call(FROM_TYPE, (V2, Global("demo", "Mine"), (four(), 0, (4,), (1,), False, ordered_dict()), {"note": 1})))
    assert (wrapped.wrapper, wrapped.attributes, wrapped.shape) == ("demo.Mine", ("note",), (4,))


def test_each_wrapped_tensor_is_unwrapped_to_its_own_arguments() -> None:
    def wrapped(size: int) -> Call:
        return Call(FROM_TYPE, (V2, Global("demo", "Mine"), (four(), 0, (size,), (1,), False, ordered_dict()), {}))

    found, codes, _ = read([wrapped(size) for size in (1, 2, 3, 4)] * 3)
    assert codes == []
    assert [tensor.shape for _, tensor in found] == [(1,), (2,), (3,), (4,)] * 3


def test_untyped_storages_take_the_type_of_the_call() -> None:
    untyped = identifier(16, Global("torch.storage", "UntypedStorage"))
    args = (untyped, 0, (8,), (1,), False, ordered_dict(), Global("torch", "uint16"), {"neg": False})
    tensor = one(rebuild("_rebuild_tensor_v3", *args))
    assert tensor.dtype is not None and tensor.dtype.name == "uint16" and tensor.view_byte_count == 16


def test_conjugate_and_negative_bits() -> None:
    tensor = one(view(four(), (4,), (1,), 0, False, None, {"conj": True, "neg": True}))
    assert tensor.conjugate and tensor.negative


def test_empty_ordered_dicts_of_both_pythons_are_empty_hooks() -> None:
    ordered = Global("collections", "OrderedDict")
    for hooks in (Call(ordered), Call(ordered, ([],))):
        assert one(view(four(), hooks=hooks)).shape == (4,)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (rebuild("_rebuild_tensor_v2", four(), 0, (4,), (1,)), "argument-count"),
        (rebuild("_rebuild_tensor_v2", 5, 0, (4,), (1,), False, ordered_dict()), "argument-type"),
        (view(four(), None), "argument-type"),
        (view(four(), (True,)), "argument-type"),
        (view(four(), (4,), (1,), "0"), "argument-type"),
        (view(four(), (2**63,)), "overflow"),
        (view(four(), (4,), (1,), 2**2000), "overflow"),
        (view(four(), requires_grad=1), "requires-grad"),
        (view(four(), hooks=ordered_dict([(1, 2)])), "hooks"),
        (view(four(), (4,), (1,), 0, False, None, [1]), "metadata-type"),
        (view(four(), (4,), (1,), 0, False, None, {"x": True}), "metadata-key"),
        (view(four(), (4,), (1,), 0, False, None, {"neg": 1}), "metadata-key"),
        (rebuild("_rebuild_parameter", 5, True, ordered_dict()), "argument-type"),
        (rebuild("_rebuild_qtensor", four(), 0, (4,), (1,), (), False, ordered_dict()), "quantizer"),
        (rebuild("_rebuild_sparse_tensor", Global("torch", "sparse_coo"), ()), "sparse-layout"),
        (view(identifier(4, location=None)), "id-location"),
        (view(Persistent(("storage", Global("torch", "FloatStorage"), 1.5, "cpu", 4))), "id-key"),
        (view(Persistent("storage")), "id-not-tuple"),
        (view(Persistent(("module", 1))), "id-word"),
        (view(Persistent(("storage", Global("torch", "FloatStorage"), "0", "cpu"))), "id-length"),
    ],
)
def test_what_is_wrong_is_told(value: object, code: str) -> None:
    _, codes, _ = read({"a": value})
    assert code in codes


def test_mismatches_carry_the_name_of_their_tensor() -> None:
    value = {
        "good": view(four()),
        "bad": view(four(), requires_grad=1),
        "none": rebuild("_rebuild_tensor_v2", 1),
        "outer": rebuild("_rebuild_parameter", view(four()), 1, ordered_dict()),
    }
    found, _, reader = read(value)
    reader.name_mismatches({id(tensor): name for name, tensor in found})
    assert [mismatch.tensor for mismatch in reader.mismatches] == ["bad", "none", "outer"]


def test_one_storage_is_known_by_its_first_mention_and_keeps_all() -> None:
    value = [view(identifier(4)), view(identifier(2, Global("torch", "LongStorage")))]
    found, codes, _ = read(value)
    assert codes == []
    first = found[0][1].storage
    assert first is found[1][1].storage and first is not None
    assert first.dtype is not None and (first.dtype.name, first.element_count) == ("float32", 4)
    assert [use.element_count for use in first.uses] == [4, 2]


def test_a_storage_that_stands_by_itself_is_marked() -> None:
    data = storage([1.0])
    found, _, _ = read({"bare": data, "view": view(data, (1,))})
    assert found[0][1].storage is not None and found[0][1].storage.bare
    alone, _, _ = read({"view": view(storage([1.0]), (1,))})
    assert alone[0][1].storage is not None and not alone[0][1].storage.bare


def test_sizes_in_all_their_forms() -> None:
    assert size_of((1, 2)) == (1, 2)
    assert size_of(ListNode([3], 0)) == (3,)
    assert size_of(ListNode([3.0], 0)) is None
    assert one(view(four(), Call(Global("torch", "Size"), ((4,),)))).shape == (4,)


def test_words_for_values_never_grow_long() -> None:
    assert kind_of(10**5000) == "a huge number"
    words = [kind_of(value) for value in (None, True, 7, "x", ListNode([], 0))]
    assert words == ["None", "True", "the number 7", "a text", "a list"]
