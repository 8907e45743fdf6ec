# SPDX-License-Identifier: Apache-2.0
"""The element types of safetensors: their words, their widths, and which type of torch each one is.

Source: the list of types of the safetensors library 0.8.0; correspondence measured with its reader and writer for torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from fdd.tensors.dtypes import DTYPES, DType


@dataclass(frozen=True, slots=True)
class ElementType:
    """``bits`` of one value. ``rank`` is the place in the library's order of types: its writer puts higher ones first.
    ``dtype`` is the type of torch, None where torch has none; ``per_element`` how many values one element of it holds."""

    word: str
    bits: int
    rank: int
    dtype: DType | None
    per_element: int = 1


_ORDER = (
    ("BOOL", 8, "bool"),
    ("F4", 4, "float4_e2m1fn_x2"),
    ("F6_E2M3", 6, None),
    ("F6_E3M2", 6, None),
    ("U8", 8, "uint8"),
    ("I8", 8, "int8"),
    ("F8_E5M2", 8, "float8_e5m2"),
    ("F8_E4M3", 8, "float8_e4m3fn"),
    ("F8_E8M0", 8, "float8_e8m0fnu"),
    ("F8_E4M3FNUZ", 8, "float8_e4m3fnuz"),
    ("F8_E5M2FNUZ", 8, "float8_e5m2fnuz"),
    ("I16", 16, "int16"),
    ("U16", 16, "uint16"),
    ("F16", 16, "float16"),
    ("BF16", 16, "bfloat16"),
    ("I32", 32, "int32"),
    ("U32", 32, "uint32"),
    ("F32", 32, "float32"),
    ("C64", 64, "complex64"),
    ("F64", 64, "float64"),
    ("I64", 64, "int64"),
    ("U64", 64, "uint64"),
)
ELEMENT_TYPES: dict[str, ElementType] = {
    word: ElementType(word, bits, rank, DTYPES[name] if name is not None else None, 2 if word == "F4" else 1)
    for rank, (word, bits, name) in enumerate(_ORDER)
}
"""Word of the header -> element type."""
