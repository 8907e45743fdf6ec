# SPDX-License-Identifier: Apache-2.0
"""The same tensors in every container: bytes of elements go in little-endian, and lie in the file as the form wants them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from corpus.build.kit import (
    UNTYPED,
    Global,
    OldTensor,
    Storage,
    Tensor,
    by_key,
    contiguous,
    eager,
    legacy_stream,
    state_dict,
    tar_file,
    tar_members,
)
from fdd.tensors.dtypes import DTYPES, STORAGE_CLASSES

SAFETENSORS_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32",
    "uint64": "U64", "bool": "BOOL", "complex64": "C64",
}  # fmt: skip
CLASS_OF = {dtype.name: name for name, dtype in STORAGE_CLASSES.items() if not name.endswith("UntypedStorage")}
"""dtype -> its storage class; others are stored untyped."""


class Data(NamedTuple):
    """A dense tensor."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


Model = Mapping[str, Data]


def swapped(data: bytes, dtype: str) -> bytes:
    """The bytes as a machine of the other byte order has them."""
    width = DTYPES[dtype].swap
    return b"".join(data[at : at + width][::-1] for at in range(0, len(data), width))


def kit_tensor(data: Data, byteorder: str = "little") -> Tensor:
    """A tensor of the corpus kit with a storage of its own."""
    stored = swapped(data.data, data.dtype) if byteorder == "big" else data.data
    name = CLASS_OF.get(data.dtype)
    if name is None:
        return Tensor(Storage(UNTYPED, stored, len(stored)), data.shape, contiguous(data.shape), dtype=data.dtype)
    count = len(stored) // DTYPES[data.dtype].size
    return Tensor(Storage(Global("torch", name), stored, count), data.shape, contiguous(data.shape))


def zip_little(model: Model) -> bytes:
    return eager(state_dict({name: kit_tensor(data) for name, data in model.items()}))


def zip_big(model: Model) -> bytes:
    return eager(
        state_dict({name: kit_tensor(data, "big") for name, data in model.items()}), byteorder="big", platform="linux-big-endian"
    )


def zip_silent(model: Model) -> bytes:
    """Of a release that did not state the byte order."""
    return eager(state_dict({name: kit_tensor(data) for name, data in model.items()}), era="1.9")


def legacy(model: Model) -> bytes:
    return legacy_stream(state_dict({name: kit_tensor(data) for name, data in model.items()}))


def tar(model: Model) -> bytes:
    """The tar of torch 0.1: it knows no untyped storages."""
    rows = {name: OldTensor(number, 100 + number, kit_tensor(data)) for number, (name, data) in enumerate(model.items(), 1)}
    return tar_file(tar_members({name: by_key(row.key) for name, row in rows.items()}, list(rows.values())))


def safetensors(model: Model) -> bytes:
    header: dict[str, object] = {}
    position = 0
    for name, data in model.items():
        end = position + len(data.data)
        header[name] = {"dtype": SAFETENSORS_NAMES[data.dtype], "shape": list(data.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data.data for data in model.values())


TWINS: dict[str, Callable[[Model], bytes]] = {
    "big-endian": zip_big,
    "byte order not stated": zip_silent,
    "legacy": legacy,
    "tar": tar,
    "safetensors": safetensors,
}


def every_dtype(names: Mapping[str, object] = SAFETENSORS_NAMES) -> dict[str, Data]:
    """A tensor of each type with every kind of byte in it, those that are no numbers included; sizes differ."""
    model: dict[str, Data] = {}
    for number, name in enumerate(names):
        shape = ((2, 3), (4,), (), (0, 5), (2, 1, 3))[number % 5]
        length = prod(shape) * DTYPES[name].size
        data = bytes((7 * at * at + 31 * number + 255) % 256 for at in range(length))
        model[f"layer.{number}.{name}"] = Data(name, shape, bytes(byte & 1 for byte in data) if name == "bool" else data)
    return model
