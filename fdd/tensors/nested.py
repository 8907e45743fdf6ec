# SPDX-License-Identifier: Apache-2.0
"""Nested tensors of strided layout: how the tensors they are made of have to fit together (format.md 2.4).

A nested tensor is a list of tensors that lie one behind the other in one buffer: a row of ``sizes`` and of ``strides``, and
an entry of ``offsets``, for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fdd.tensors.model import Tensor

NESTED = "nested"
"""The layout."""
TABLES = (("sizes", 2), ("strides", 2), ("offsets", 1))
"""Names of the tables and how many dimensions they have."""


def nested_faults(parts: Mapping[str, Tensor], listed_offsets: int | None = None) -> Iterator[str]:
    """Why the parts do not fit together; nothing where they do or where something is unknown.

    ``listed_offsets``: how many offsets there are where they are no tensor, as early writers had them.
    """
    tables = [(name, parts[name], dimensions) for name, dimensions in TABLES if name in parts]
    for name, table, dimensions in tables:
        if table.layout != "strided" or (table.dtype is not None and table.dtype.name != "int64"):
            yield f"a nested tensor whose {name} are not plain int64 numbers"
        elif table.shape is not None and len(table.shape) != dimensions and 0 not in table.shape:
            yield f"a nested tensor whose {name} have {len(table.shape)} dimensions instead of {dimensions}"
    sizes, strides = parts["sizes"].shape, parts["strides"].shape
    if sizes is None or strides is None:
        return
    if sizes != strides:
        yield f"a nested tensor with sizes {sizes} and strides {strides}"
    offsets = parts["offsets"].shape if "offsets" in parts else (listed_offsets,)
    if offsets is not None and sizes and offsets and offsets[0] != sizes[0]:
        yield f"a nested tensor of {sizes[0]} tensors with {offsets[0]} offsets"
