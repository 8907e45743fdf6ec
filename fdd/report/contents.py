# SPDX-License-Identifier: Apache-2.0
"""Records and tensors in the shape of a report."""

from __future__ import annotations

from typing import Any

from fdd.core.model import Record
from fdd.core.text import valid_text
from fdd.tensors.model import Tensor


def record_dict(record: Record) -> dict[str, Any]:
    """A record as the report lists it; ``length`` counts stored bytes, ``size`` those after inflating where they differ."""
    entry: dict[str, Any] = {"name": valid_text(record.name), "role": record.role}
    if record.span is not None:
        entry["offset"] = record.span.offset
        entry["length"] = record.span.length
    if record.span is None or record.size != record.span.length:
        entry["size"] = record.size
    entry["method"] = record.method
    if record.crc32 is not None:
        entry["crc32"] = f"{record.crc32:08x}"
    if record.digests:
        entry["digests"] = dict(record.digests)
    return entry


def tensor_dict(tensor: Tensor) -> dict[str, Any]:
    """A tensor as the report lists it: elements for shape, stride and storage offset, bytes for its place in the file."""
    entry: dict[str, Any] = {
        "name": valid_text(tensor.name),
        "dtype": tensor.dtype.name if tensor.dtype is not None else None,
        "shape": _numbers(tensor.shape),
    }
    if tensor.layout == "strided":
        entry["stride"] = _numbers(tensor.stride)
        entry["storage_offset"] = tensor.storage_offset
    else:
        entry["layout"] = tensor.layout
    if tensor.storage is not None:
        entry["record"] = valid_text(tensor.storage.record) if tensor.storage.record is not None else None
    span = tensor.span
    if span is not None:
        entry["offset"] = span.offset
        entry["length"] = span.length
    entry["location"] = valid_text(tensor.location) if tensor.location is not None else None
    for key, value in (
        ("parameter", tensor.parameter),
        ("requires_grad", tensor.requires_grad),
        ("conjugate", tensor.conjugate),
        ("negative", tensor.negative),
        ("class", valid_text(tensor.wrapper or "")),
    ):
        if value:
            entry[key] = value
    if tensor.quantizer is not None:
        entry["quantization"] = tensor.quantizer.scheme
    if tensor.components:
        entry["components"] = [tensor_dict(component) for component in tensor.components.values()]
    return entry


def _numbers(numbers: tuple[int, ...] | None) -> list[int] | None:
    return list(numbers) if numbers is not None else None
