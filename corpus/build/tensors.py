# SPDX-License-Identifier: Apache-2.0
"""Tensors and storages as descriptions, and the pickles in which torch refers to them (format.md 2.2 to 2.4)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from corpus.build.pickles import Call, Global, New, Persistent, ordered_dict

STORAGE_CLASSES = {
    "float64": ("DoubleStorage", "d"),
    "float32": ("FloatStorage", "f"),
    "float16": ("HalfStorage", "e"),
    "bfloat16": ("BFloat16Storage", "H"),
    "int64": ("LongStorage", "q"),
    "int32": ("IntStorage", "i"),
    "int16": ("ShortStorage", "h"),
    "int8": ("CharStorage", "b"),
    "uint8": ("ByteStorage", "B"),
    "bool": ("BoolStorage", "?"),
}
"""dtype: storage class and struct code of one element; bfloat16 is given by its 16-bit patterns."""

UNTYPED = Global("torch.storage", "UntypedStorage")


@dataclass(frozen=True, eq=False)
class Storage:
    """Bytes that tensors look at. ``numel`` counts elements of the storage class, as the persistent id says it."""

    cls: Global
    data: bytes
    numel: int
    location: str = "cpu"
    key: str | None = None
    """Overrides the key that the archive would give."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A view of a storage; offset and strides in elements. ``dtype`` (e.g. "uint16") makes it a `_rebuild_tensor_v3`."""

    storage: Storage
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    requires_grad: bool = False
    dtype: str | None = None
    metadata: dict[str, bool] | None = None


@dataclass(frozen=True, eq=False)
class Parameter:
    """A torch.nn.Parameter around a tensor."""

    tensor: Tensor
    requires_grad: bool = True


def storage(values: Sequence[float], dtype: str = "float32", byteorder: str = "little", location: str = "cpu") -> Storage:
    """Make a storage of these values."""
    name, code = STORAGE_CLASSES[dtype]
    order = ">" if byteorder == "big" else "<"
    return Storage(Global("torch", name), struct.pack(f"{order}{len(values)}{code}", *values), len(values), location)


def contiguous(size: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense tensor: the last dimension runs fastest."""
    return tuple(prod(max(length, 1) for length in size[axis + 1 :]) for axis in range(len(size)))


def tensor(
    values: Sequence[float], size: Sequence[int] | None = None, dtype: str = "float32", byteorder: str = "little"
) -> Tensor:  # fmt: skip
    """Make a dense tensor with a storage of its own."""
    shape = tuple(size) if size is not None else (len(values),)
    return Tensor(storage(values, dtype, byteorder), shape, contiguous(shape))


def state_dict(tensors: dict[str, object], versions: dict[str, int] | None = None) -> Call:
    """Make what Module.state_dict() gives: an OrderedDict, with the versions of the modules as its metadata if given."""
    state = None
    if versions is not None:
        metadata = ordered_dict((prefix, {"version": version}) for prefix, version in versions.items())
        state = {"_metadata": metadata}
    return ordered_dict(tensors.items(), state)


def address_keys(number: int) -> str:
    """Keys of the writers up to 1.8 and of the legacy stream: addresses, here made up."""
    return str(94000000000000 + 64 * number)


@dataclass
class Lowering:
    """Turns descriptions into what a pickle holds, and gives storages keys in the order of first use.

    ``view_metadata``: the legacy stream's sixth item of a persistent id.
    """

    key_of: Callable[[int], str] = str
    view_metadata: bool = False
    storages: dict[int, tuple[str, Storage]] = field(default_factory=dict)
    _done: dict[int, tuple[object, object]] = field(default_factory=dict)

    @property
    def keyed(self) -> list[tuple[str, Storage]]:
        """Keys and storages in the order of first use."""
        return list(self.storages.values())

    def lower(self, value: object) -> object:
        """Replace tensors and parameters within lists, tuples, dicts and calls; one object stays one object."""
        if id(value) in self._done:
            return self._done[id(value)][1]
        result = self._lower(value)
        # The source is kept beside the result: its identity must not be given to another object.
        self._done[id(value)] = (value, result)
        return result

    def _lower(self, value: object) -> object:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, Parameter):
            parts = (self.lower(value.tensor), value.requires_grad, ordered_dict())
            return Call(Global("torch._utils", "_rebuild_parameter"), parts)
        if isinstance(value, Storage):
            return self._persistent(value)
        if isinstance(value, Call):
            items = value.items and tuple((self.lower(key), self.lower(item)) for key, item in value.items)
            args = tuple(self.lower(item) for item in value.args)
            return Call(value.function, args, items, self.lower(value.state))
        if isinstance(value, New):
            return New(value.cls, tuple(self.lower(item) for item in value.args), self.lower(value.state))
        if isinstance(value, dict):
            return {key: self.lower(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.lower(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.lower(item) for item in value)
        return value

    def _tensor(self, value: Tensor) -> Call:
        # Tuples of their own: torch makes new ones for each tensor, so that none is ever taken from the memo.
        size, stride = (*value.size,), (*value.stride,)
        args: tuple[object, ...] = (
            self._persistent(value.storage), value.offset, size, stride, value.requires_grad, ordered_dict(),
        )  # fmt: skip
        if value.dtype is not None:
            args = (*args, Global("torch", value.dtype))
        if value.metadata is not None:
            args = (*args, value.metadata)
        name = "_rebuild_tensor_v2" if value.dtype is None else "_rebuild_tensor_v3"
        return Call(Global("torch._utils", name), args)

    def _persistent(self, value: Storage) -> Persistent:
        key = self.storages.setdefault(id(value), (value.key or self.key_of(len(self.storages)), value))[0]
        identifier: tuple[object, ...] = ("storage", value.cls, key, value.location, value.numel)
        return Persistent((*identifier, None) if self.view_metadata else identifier)
