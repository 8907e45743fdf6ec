# SPDX-License-Identifier: Apache-2.0
"""Files whose storages have another type, size, place or contents than their pickle says."""

from __future__ import annotations

from corpus.build.kit import Global, Storage, Tensor, eager, ordered_dict, recipe, storage, tensor
from corpus.build.tensors_kit import FOUR, four, identifier, in_dict, rebuild, saved, view

RAW = four().data


@recipe("tensors/storage-type-unknown.pt")
def storage_type_unknown() -> bytes:
    """A storage class that torch does not have."""
    return in_dict(view(Storage(Global("torch", "Float6Storage"), RAW, 4)))


@recipe("tensors/storage-type-foreign.pt")
def storage_type_foreign() -> bytes:
    """A known class name in a module that is not torch's."""
    return in_dict(view(Storage(Global("mystorage", "FloatStorage"), RAW, 4)))


@recipe("tensors/element-count-impossible.pt")
def element_count_impossible() -> bytes:
    """A negative number of elements."""
    return in_dict(view(Storage(Global("torch", "FloatStorage"), RAW, -4)))


@recipe("tensors/element-count-text.pt")
def element_count_text() -> bytes:
    """A text where the number of elements belongs."""
    return saved({"a": view(identifier("4"))}, four())


@recipe("tensors/storage-size-short.pt")
def storage_size_short() -> bytes:
    """The pickle announces 16 bytes, the record has 8."""
    return in_dict(view(Storage(Global("torch", "FloatStorage"), RAW[:8], 4)))


@recipe("tensors/storage-size-long.pt")
def storage_size_long() -> bytes:
    """The pickle announces 16 bytes, the record has 24."""
    return in_dict(view(Storage(Global("torch", "FloatStorage"), RAW + bytes(8), 4)))


@recipe("tensors/storage-described-twice.pt")
def storage_described_twice() -> bytes:
    """One key, used for four float32 numbers twice, and once for two int64."""
    good, bad = identifier(4), identifier(2, Global("torch", "LongStorage"))
    return saved({"a": view(good), "b": view(bad, (2,)), "c": view(good)}, four())


@recipe("tensors/storage-described-twice-location.pt")
def storage_described_twice_location() -> bytes:
    """One key in two places."""
    return saved({"a": view(identifier(4)), "b": view(identifier(4, location="cuda:0"))}, four())


@recipe("tensors/storage-described-twice-pass.pt")
def storage_described_twice_pass() -> bytes:
    """uint8 and uint16 on the same bytes: a ByteStorage and an UntypedStorage, which torch allows."""
    raw, uint16 = Storage(Global("torch", "ByteStorage"), bytes(range(4)), 4), Global("torch", "uint16")
    untyped = identifier(4, Global("torch.storage", "UntypedStorage"))
    other = rebuild("_rebuild_tensor_v3", untyped, 0, (2,), (1,), False, ordered_dict(), uint16)
    return saved({"a": view(raw), "b": other})


@recipe("tensors/location-unknown.pt")
def location_unknown() -> bytes:
    """A device that torch does not know."""
    return in_dict(view(storage(FOUR, location="bogus:1")))


@recipe("tensors/location-not-cpu.pt")
def location_not_cpu() -> bytes:
    """Two storages of a GPU."""
    return in_dict(view(storage(FOUR, location="cuda:7")), view(storage(FOUR, location="cuda:7")))


@recipe("tensors/location-not-text.pt")
def location_not_text() -> bytes:
    """None where the location belongs."""
    return saved({"a": view(identifier(4, location=None))}, four())


@recipe("tensors/storage-larger-than-views.pt")
def storage_larger_than_views() -> bytes:
    """A slice of a larger tensor: the first two elements and the last one belong to nobody."""
    return in_dict(view(storage([float(number) for number in range(6)]), (3,), (1,), 2))


@recipe("tensors/bool-neither-0-nor-1.pt")
def bool_neither_0_nor_1() -> bytes:
    """A bool that is 2."""
    return in_dict(view(Storage(Global("torch", "BoolStorage"), b"\x00\x01\x02\x01", 4)))


@recipe("tensors/bool-pass.pt")
def bool_pass() -> bytes:
    """Good bools."""
    return eager({"mask": tensor([True, False, True], dtype="bool")}, "bool-pass")


@recipe("tensors/big-endian-not-swapped.pt")
def big_endian_not_swapped() -> bytes:
    """uint16 in a big-endian file."""
    untyped = Storage(Global("torch.storage", "UntypedStorage"), bytes([0, 1, 0, 2]), 4)
    return eager({"a": Tensor(untyped, (2,), (1,), dtype="uint16")}, byteorder="big", platform="linux-big-endian")


@recipe("tensors/storage-key-not-canonical.pt")
def storage_key_not_canonical() -> bytes:
    """A key that leads to another record: the version, read as two bytes."""
    byte = Global("torch", "ByteStorage")
    return saved({"a": view(identifier(2, byte, "../version"), (2,))})


@recipe("tensors/storage-numbers-skip.pt")
def storage_numbers_skip() -> bytes:
    """Storages 0 and 2."""
    second = Storage(Global("torch", "FloatStorage"), RAW, 4, key="2")
    return in_dict(view(four()), view(second))


@recipe("tensors/element-count-huge.pt")
def element_count_huge() -> bytes:
    """More elements than 64 bits can count in bytes."""
    return saved({"a": view(identifier(2**62 + 1), (1,))}, four())


@recipe("tensors/storage-bare-pass.pt")
def storage_bare_pass() -> bytes:
    """The storage itself beside a view of a part of it: nothing is left over."""
    data = four()
    return eager({"all": data, "part": Tensor(data, (2,), (1,))}, "storage-bare-pass")
