# SPDX-License-Identifier: Apache-2.0
"""Files whose tensors are rebuilt with wrong arguments, or lie outside their storages."""

from __future__ import annotations

from corpus.build import opcodes as op
from corpus.build.kit import Call, Global, Raw, Storage, dump, ordered_dict, recipe, state_dict, tensor
from corpus.build.tensors_kit import four, identifier, in_dict, rebuild, saved, view

UNTYPED = Storage(Global("torch.storage", "UntypedStorage"), four().data, 16)


@recipe("tensors/rebuild-arguments-few.pt")
def rebuild_arguments_few() -> bytes:
    """Five arguments where six belong."""
    return in_dict(rebuild("_rebuild_tensor_v2", four(), 0, (4,), (1,), False))


@recipe("tensors/rebuild-arguments-type.pt")
def rebuild_arguments_type() -> bytes:
    """A text where the size belongs, and a list where a storage belongs."""
    return in_dict(view(four(), "4"), view([1.0]))


@recipe("tensors/stride-count-differs.pt")
def stride_count_differs() -> bytes:
    """Two strides for one dimension."""
    return in_dict(view(four(), (4,), (1, 1)))


@recipe("tensors/negative-size.pt")
def negative_size() -> bytes:
    """A size of -4."""
    return in_dict(view(four(), (-4,)))


@recipe("tensors/negative-offset.pt")
def negative_offset() -> bytes:
    """An offset of -1."""
    return in_dict(view(four(), (4,), (1,), -1))


@recipe("tensors/view-too-long.pt")
def view_too_long() -> bytes:
    """Five elements of a storage of four."""
    return in_dict(view(four(), (5,)))


@recipe("tensors/view-offset-outside.pt")
def view_offset_outside() -> bytes:
    """Begins at element 99."""
    return in_dict(view(four(), (1,), (1,), 99))


@recipe("tensors/view-stride-outside-quantized.pt")
def view_stride_outside_quantized() -> bytes:
    """A quantized tensor with a stride of a million over four bytes."""
    data = Storage(Global("torch", "QInt8Storage"), bytes(4), 4)
    scheme = (Global("torch", "per_tensor_affine"), 0.5, 0)
    return in_dict(rebuild("_rebuild_qtensor", data, 0, (2, 2), (1000000, 1), scheme, False, ordered_dict()))


@recipe("tensors/view-dtype-outside.pt")
def view_dtype_outside() -> bytes:
    """Eight numbers of two bytes fit an untyped storage of 16 bytes, nine do not."""
    args = (0, (9,), (1,), False, ordered_dict(), Global("torch", "uint16"))
    return in_dict(rebuild("_rebuild_tensor_v3", UNTYPED, *args))


@recipe("tensors/view-pass.pt")
def view_pass() -> bytes:
    """What looks odd and is right: stride 0, a stride over a dimension of size 1, a scalar at the last element."""
    data = four()
    return in_dict(view(data, (3, 4), (0, 1)), view(data, (1, 4), (1000, 1)), view(data, (), (), 3))


@recipe("tensors/number-beyond-64-bits.pt")
def number_beyond_64_bits() -> bytes:
    """2^40 times 2^40 elements: the product is 0 in 64 bits."""
    return in_dict(view(four(), (2**40, 2**40), (0, 0)))


@recipe("tensors/number-of-a-thousand-digits.pt")
def number_of_a_thousand_digits() -> bytes:
    """A size of some thousand digits."""
    return in_dict(view(four(), (Raw(op.long1(2**2000)),)))


@recipe("tensors/empty-view-outside-storage.pt")
def empty_view_outside_storage() -> bytes:
    """No element, from element 99 on."""
    data = four()
    return in_dict(view(data), view(data, (0,), (1,), 99))


@recipe("tensors/requires-grad-not-bool.pt")
def requires_grad_not_bool() -> bytes:
    """1 instead of true."""
    return in_dict(view(four(), requires_grad=1))


@recipe("tensors/hooks-none.pt")
def hooks_none() -> bytes:
    """None where an empty OrderedDict belongs."""
    return in_dict(view(four(), hooks=Raw(op.NONE)))


@recipe("tensors/hooks-filled.pt")
def hooks_filled() -> bytes:
    """A hook."""
    return in_dict(view(four(), hooks=ordered_dict([(0, "hook")])))


@recipe("tensors/metadata-not-dict.pt")
def metadata_not_dict() -> bytes:
    """A list where the metadata belongs."""
    return in_dict(view(four(), (4,), (1,), 0, False, None, [1]))


@recipe("tensors/metadata-key-unknown.pt")
def metadata_key_unknown() -> bytes:
    """An entry that torch does not know."""
    return in_dict(view(four(), (4,), (1,), 0, False, None, {"neg": True, "x": True}))


@recipe("tensors/untyped-in-second-function.pt")
def untyped_in_second_function() -> bytes:
    """An untyped storage without a dtype."""
    return in_dict(view(UNTYPED, (16,)))


@recipe("tensors/typed-in-third-function.pt")
def typed_in_third_function() -> bytes:
    """float32 through the function for types without a storage class."""
    args = (0, (4,), (1,), False, ordered_dict(), Global("torch", "float32"))
    return in_dict(rebuild("_rebuild_tensor_v3", UNTYPED, *args))


@recipe("tensors/tensor-name-twice.pt")
def tensor_name_twice() -> bytes:
    """The keys 1 and '1'."""
    return saved({1: tensor([1.0]), "1": tensor([2.0])})


@recipe("tensors/state-dict-key-not-text.pt")
def state_dict_key_not_text() -> bytes:
    """A state_dict with a number among its keys."""
    return saved(ordered_dict([("weight", tensor([1.0])), (7, tensor([2.0]))], {"_metadata": ordered_dict()}))


@recipe("tensors/numbered-dict-pass.pt")
def numbered_dict_pass() -> bytes:
    """A dict of numbered tensors is no state_dict."""
    return saved({0: tensor([1.0]), 1: tensor([2.0])})


@recipe("tensors/attributes-pass.pt")
def attributes_pass() -> bytes:
    """Two tensors with Python attributes: each is unwrapped to its own storage."""
    wrapper, items = Global("torch._tensor", "_rebuild_from_type_v2"), []
    for number in (1.0, 2.0):
        inner = (tensor([number]).storage, 0, (1,), (1,), False, ordered_dict())
        function = Global("torch._utils", "_rebuild_tensor_v2")
        items.append(Call(wrapper, (function, Global("torch", "Tensor"), inner, {"note": "kept"})))
    return saved(state_dict({"a": items[0], "b": items[1]}))


@recipe("tensors/popped-view-outside-storage.pt")
def popped_view_outside_storage() -> bytes:
    """A tensor that reaches behind its storage is built and thrown away: loading builds it all the same."""
    bad, good = (dump(view(identifier(4), (size,)))[2:-1] for size in (9, 4))
    return saved({"a": Raw(bad + op.POP + good)}, four())
