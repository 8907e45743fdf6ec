# SPDX-License-Identifier: Apache-2.0
"""Variants an adversary would try: pickles behind decoys, arguments no rebuild function takes, tables that lead astray.

All payloads are harmless, and nothing here ever loads one.
"""

from __future__ import annotations

from corpus.build import opcodes as op
from corpus.build.good import small_state_dict
from corpus.build.kit import (
    Call,
    Global,
    New,
    OldTensor,
    Persistent,
    Storage,
    Tensor,
    by_key,
    contiguous,
    dump,
    eager,
    legacy_parts,
    legacy_stream,
    ordered_dict,
    recipe,
    records_around,
    tar_file,
    tar_members,
    tensor,
)
from corpus.build.kit import archive as packed
from corpus.build.kit import with_serialization_id as with_id
from corpus.build.pickle_kit import HEAD, TWO, around, of
from corpus.build.safety import CLEAN, PAYLOAD
from corpus.build.tensors_kit import four, identifier, in_dict, rebuild, saved, view
from corpus.build.tensors_quantized_sparse import sparse

ZEROS = bytes(7)


def _small_tar() -> dict[str, bytes]:
    return tar_members({"w": by_key(1)}, [OldTensor(1, 2, tensor(TWO))])


# Where pickles hide


@recipe("safety/hidden-code-behind-decoys.pt")
def behind_decoys() -> bytes:
    """300 starts of pickles that are none stand between STOP and the payload."""
    return around(CLEAN + b"\x80\x02\xff" * 300 + PAYLOAD)


@recipe("safety/hidden-code-behind-many.pt")
def behind_many() -> bytes:
    """The payload is the 81st pickle of the record."""
    return around(CLEAN + dump(None) * 79 + PAYLOAD)


@recipe("safety/hidden-code-text-behind-bytes.pt")
def text_behind_bytes() -> bytes:
    """A pickle of protocol 0, without PROTO, three bytes behind STOP."""
    return around(CLEAN + bytes(3) + b"cposix\ngetcwd\n)R.")


@recipe("safety/function-list-pass.pt")
def function_list() -> bytes:
    """A list of functions, two lines of which read like a GLOBAL: nothing is called."""
    return around(CLEAN, (("functions.txt", b"sin\ncos\ntan\nexp\n"),))


@recipe("legacy/hidden-code-behind-bytes.pth")
def legacy_tail() -> bytes:
    """A payload seven bytes behind the last storage."""
    return legacy_stream(small_state_dict()) + ZEROS + PAYLOAD


@recipe("tar/hidden-code-in-padding.pth")
def tar_padding() -> bytes:
    """A payload in the bytes that fill up a member."""
    data = bytearray(tar_file(_small_tar()))
    place = data.find(b"sys_info\0") + 512 + 300
    data[place : place + len(PAYLOAD)] = PAYLOAD
    return bytes(data)


@recipe("identification/legacy-in-tar.tar")
def legacy_in_tar() -> bytes:
    """A tar whose first member is a legacy stream."""
    return tar_file({"model.pt": legacy_stream(small_state_dict())})


# What a pickle may cost


@recipe("pickle/sets-in-sets-pass.pt")
def sets_in_sets() -> bytes:
    """3,000 frozensets, one inside the other: each is an item that has to have a hash."""
    return of(op.MARK * 3000 + op.NONE + op.FROZENSET * 3000)


@recipe("safety/module-name-endless.pt")
def module_name_endless() -> bytes:
    """The name of a module of 200 parts, with a walk over 16 attributes."""
    return of(op.global_(".".join(["a"] * 200), ".".join(["b"] * 16)))


# Arguments


@recipe("tensors/state-missing.pt")
def state_missing() -> bytes:
    """_rebuild_parameter_with_state without the state."""
    return in_dict(rebuild("_rebuild_parameter_with_state", view(four()), True, ordered_dict()))


@recipe("tensors/state-number.pt")
def state_number() -> bytes:
    """A number where the attributes of a parameter belong."""
    return in_dict(rebuild("_rebuild_parameter_with_state", view(four()), True, ordered_dict(), 7))


@recipe("tensors/hooks-text.pt")
def hooks_text() -> bytes:
    """A text where the backward hooks belong."""
    return in_dict(view(four(), hooks="none"))


@recipe("tensors/class-text.pt")
def class_text() -> bytes:
    """A text where the class of a tensor belongs."""
    inner = (four(), 0, (4,), (1,), False, ordered_dict())
    function = Global("torch._utils", "_rebuild_tensor_v2")
    return in_dict(Call(Global("torch._tensor", "_rebuild_from_type_v2"), (function, "Tensor", inner, {})))


def _wrapped(levels: int, size: int) -> bytes:
    """A view of a storage of four numbers as a parameter of a parameter of a parameter ..."""
    inner = op.MARK + op.text("storage") + op.global_("torch", "FloatStorage") + op.text("0") + op.text("cpu") + op.integer(4)
    inner = op.MARK + inner + b"t" + op.BINPERSID + op.integer(0) + op.integer(size) + op.TUPLE1 + op.integer(1) + op.TUPLE1
    empty = op.global_("collections", "OrderedDict") + op.EMPTY_TUPLE + op.REDUCE
    inner = op.global_("torch._utils", "_rebuild_tensor_v2") + inner + op.NEWFALSE + empty + op.TUPLE + op.REDUCE
    outer = op.NEWTRUE + empty + op.TUPLE3 + op.REDUCE
    body = op.global_("torch._utils", "_rebuild_parameter") + op.put(0) + op.get(0) * (levels - 1) + inner + outer * levels
    return packed(with_id(records_around(HEAD + body + op.STOP, [("0", four())])))


@recipe("tensors/wrapped-often-pass.pt")
def wrapped_often() -> bytes:
    """A parameter of a parameter, 200 times: torch unwraps them one after the other."""
    return _wrapped(200, 4)


@recipe("tensors/wrapped-often-outside.pt")
def wrapped_often_outside() -> bytes:
    """The same around a view that leaves its storage."""
    return _wrapped(200, 5)


@recipe("tensors/wrapped-too-deep.pt")
def wrapped_too_deep() -> bytes:
    """A tensor of a subclass, whose inner function is the same again, 150 times."""
    function, tensor_class = Global("torch._tensor", "_rebuild_from_type_v2"), Global("torch", "Tensor")
    inner: tuple[object, ...] = (four(), 0, (5,), (1,), False, ordered_dict())
    call: tuple[object, ...] = (Global("torch._utils", "_rebuild_tensor_v2"), tensor_class, inner, {})
    for _ in range(150):
        call = (function, tensor_class, call, {})
    return in_dict(Call(function, call))


@recipe("tensors/quantizer-of-floats.pt")
def quantizer_of_floats() -> bytes:
    """A quantized tensor over a storage of float32."""
    scheme = (Global("torch", "per_tensor_affine"), 0.5, 3)
    return in_dict(rebuild("_rebuild_qtensor", four(), 0, (2, 2), (2, 1), scheme, False, ordered_dict()))


@recipe("tensors/storage-type-dtype.pt")
def storage_type_dtype() -> bytes:
    """A dtype where the class of the storage belongs."""
    return saved({"a": view(identifier(4, Global("torch", "float32")))}, four())


@recipe("pickle/storage-key-number.pt")
def storage_key_number() -> bytes:
    """The key of a storage is a number instead of its text."""
    number = Persistent(("storage", Global("torch", "FloatStorage"), 0, "cpu", 4))
    return saved({"a": view(number)}, four())


@recipe("legacy/storage-key-number.pth")
def legacy_key_number() -> bytes:
    """A number as key in the object, its text in the list of keys: torch finds no storage for it."""
    parts = legacy_parts({"a": tensor(TWO)}, keys=("10",))
    identifier = ("storage", Global("torch", "FloatStorage"), 10, "cpu", 2, None)
    parts.pickle = dump({"a": rebuild("_rebuild_tensor", Persistent(identifier), 0, (2,), (1,))})
    return parts.join()


# Nested tensors


def _table(values: list[int], size: tuple[int, ...]) -> Tensor:
    return tensor(values, size, "int64")


def _nested(sizes: list[int], offsets: object, rows: int = 2) -> Call:
    """A nested tensor of two matrices in a buffer of six numbers."""
    strides = _table([2, 1, 2, 1][: 2 * rows], (rows, 2))
    return rebuild("_rebuild_nested_tensor", tensor([1, 2, 3, 4, 5, 6]), _table(sizes, (2, 2)), strides, offsets)


@recipe("tensors/nested-pass.pt")
def nested_pass() -> bytes:
    """A matrix of 1 x 2 and one of 2 x 2; offsets as a tensor, and as the list that 1.13 wrote."""
    return in_dict(_nested([1, 2, 2, 2], _table([0, 2], (2,))), _nested([1, 2, 2, 2], [0, 2]))


@recipe("tensors/nested-outside-buffer.pt")
def nested_outside() -> bytes:
    """The second matrix has three rows, of which the buffer holds two."""
    return in_dict(_nested([1, 2, 3, 2], _table([0, 2], (2,))))


@recipe("tensors/nested-negative-offset.pt")
def nested_negative() -> bytes:
    """The second matrix begins in front of the buffer."""
    return in_dict(_nested([1, 2, 2, 2], _table([0, -2], (2,))))


@recipe("tensors/nested-tables-differ.pt")
def nested_tables() -> bytes:
    """Two rows of sizes, one row of strides."""
    return in_dict(_nested([1, 2, 2, 2], _table([0, 2], (2,)), rows=1))


# TorchScript


@recipe("records/script-class-outside.pt")
def script_class_outside() -> bytes:
    """What is left of a TorchScript archive without its code."""
    module = New(Global("__torch__", "Scale"), (), {"factor": Storage(Global("torch", "FloatStorage"), bytes(8), 2)})
    return eager(module)


@recipe("tensors/sparse-meta-pass.pt")
def sparse_meta() -> bytes:
    """Sparse and nested tensors on the device meta: shapes without numbers."""

    def meta(dtype: str, *size: int) -> Call:
        return rebuild("_rebuild_meta_tensor_no_storage", Global("torch", dtype), size, contiguous(size), False)

    tables = (meta("int64", 2, 2), meta("int64", 2, 2), meta("int64", 2))
    size = Call(Global("torch", "Size"), ((2, 3),))
    parts = (meta("int64", 2, 3), meta("float32", 3), size, True)
    return in_dict(sparse("sparse_coo", *parts), rebuild("_rebuild_nested_tensor", meta("float32", 6), *tables))


@recipe("tensors/nested-offset-list-negative.pt")
def nested_list_negative() -> bytes:
    """A negative number in a list of offsets."""
    return in_dict(_nested([1, 2, 2, 2], [0, -2]))
