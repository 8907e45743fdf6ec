# SPDX-License-Identifier: Apache-2.0
"""Tensors written out as the calls of a pickle, so that each argument can be made wrong."""

from __future__ import annotations

from corpus.build.kit import Call, Global, Lowering, Persistent, Storage, archive, dump, ordered_dict, records_around, storage
from corpus.build.kit import with_serialization_id as with_id

FOUR = (0.5, -1.0, 2.0, 0.25)


def four() -> Storage:
    """A storage of four float32 numbers."""
    return storage(FOUR)


def rebuild(name: str, *args: object) -> Call:
    """A call of one of torch's rebuild functions."""
    return Call(Global("torch._utils", name), args)


def view(
    data: object, size: object = (4,), stride: object = (1,), offset: object = 0, requires_grad: object = False,
    hooks: object = None, *more: object,
) -> Call:  # fmt: skip
    """A `_rebuild_tensor_v2` with these arguments; an empty OrderedDict where no hooks are given."""
    empty = ordered_dict() if hooks is None else hooks
    return rebuild("_rebuild_tensor_v2", data, offset, size, stride, requires_grad, empty, *more)


def identifier(number: object, kind: Global | None = None, key: str = "0", location: object = "cpu") -> Persistent:
    """The persistent id of a storage, with these parts."""
    return Persistent(("storage", kind or Global("torch", "FloatStorage"), key, location, number))


def saved(value: object, *storages: Storage, byteorder: str = "little", crc_off: bool = False) -> bytes:
    """A torch.save file of ``value``. Storages in it get keys and records; ``storages`` are records beside them."""
    lowering = Lowering()
    lowered = lowering.lower(value)
    keyed = [*lowering.keyed, *((str(len(lowering.keyed) + number), item) for number, item in enumerate(storages))]
    records = records_around(dump(lowered), keyed, byteorder=byteorder)
    return archive(with_id(records, crc_off=crc_off), crc_off=crc_off)


def in_dict(*tensors: object, byteorder: str = "little") -> bytes:
    """A file with a dict of tensors, named a, b, c ..."""
    return saved(dict(zip("abcdefgh", tensors, strict=False)), byteorder=byteorder)


def whole(data: Storage, size: tuple[int, ...], stride: tuple[int, ...]) -> Call:
    """A view of a storage from its start."""
    return view(data, size, stride)
