# SPDX-License-Identifier: Apache-2.0
"""The one table of element types (format.md 2.3): names, sizes, and how bytes are swapped between hosts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type.

    ``size`` is the bytes of one element; of packed types (``values_per_byte`` above 1, quint4x2 and quint2x4) an
    element of the storage is one byte. ``swap`` is the width in bytes that is reversed on a host of the other byte
    order: complex numbers are two components. ``untyped`` types have no storage class of their own: torch saves them
    through UntypedStorage and `_rebuild_tensor_v3`. ``family`` is one of float, int, uint, complex, bool, quantized, bits.
    """

    name: str
    size: int
    family: str
    swap: int
    untyped: bool = False
    values_per_byte: int = 1


def _dtype(name: str, size: int, family: str, *, swap: int | None = None, untyped: bool = False, values: int = 1) -> DType:
    return DType(name, size, family, size if swap is None else swap, untyped, values)


DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        _dtype("float64", 8, "float"),
        _dtype("float32", 4, "float"),
        _dtype("float16", 2, "float"),
        _dtype("bfloat16", 2, "float"),
        _dtype("int64", 8, "int"),
        _dtype("int32", 4, "int"),
        _dtype("int16", 2, "int"),
        _dtype("int8", 1, "int"),
        _dtype("uint8", 1, "uint"),
        _dtype("bool", 1, "bool"),
        _dtype("complex64", 8, "complex", swap=4),
        _dtype("complex128", 16, "complex", swap=8),
        _dtype("qint8", 1, "quantized"),
        _dtype("quint8", 1, "quantized"),
        _dtype("qint32", 4, "quantized"),
        _dtype("quint4x2", 1, "quantized", values=2),
        _dtype("quint2x4", 1, "quantized", values=4),
        _dtype("float8_e4m3fn", 1, "float", untyped=True),
        _dtype("float8_e4m3fnuz", 1, "float", untyped=True),
        _dtype("float8_e5m2", 1, "float", untyped=True),
        _dtype("float8_e5m2fnuz", 1, "float", untyped=True),
        _dtype("float8_e8m0fnu", 1, "float", untyped=True),
        _dtype("float4_e2m1fn_x2", 1, "float", untyped=True),
        _dtype("uint16", 2, "uint", untyped=True),
        _dtype("uint32", 4, "uint", untyped=True),
        _dtype("uint64", 8, "uint", untyped=True),
        _dtype("complex32", 4, "complex", swap=2, untyped=True),
        _dtype("bits8", 1, "bits", untyped=True),
        _dtype("bits1x8", 1, "bits", untyped=True),
        _dtype("bits2x4", 1, "bits", untyped=True),
        _dtype("bits4x2", 1, "bits", untyped=True),
        _dtype("bits16", 2, "bits", untyped=True),
        *(_dtype(f"int{bits}", 1, "int", untyped=True) for bits in range(1, 8)),
        *(_dtype(f"uint{bits}", 1, "uint", untyped=True) for bits in range(1, 8)),
    )
}
"""torch dtype name -> element type."""

BYTE = DTYPES["uint8"]
"""The element of an UntypedStorage."""

STORAGE_CLASSES: dict[str, DType] = {
    "DoubleStorage": DTYPES["float64"],
    "FloatStorage": DTYPES["float32"],
    "HalfStorage": DTYPES["float16"],
    "BFloat16Storage": DTYPES["bfloat16"],
    "LongStorage": DTYPES["int64"],
    "IntStorage": DTYPES["int32"],
    "ShortStorage": DTYPES["int16"],
    "CharStorage": DTYPES["int8"],
    "ByteStorage": DTYPES["uint8"],
    "BoolStorage": DTYPES["bool"],
    "ComplexFloatStorage": DTYPES["complex64"],
    "ComplexDoubleStorage": DTYPES["complex128"],
    "QInt8Storage": DTYPES["qint8"],
    "QUInt8Storage": DTYPES["quint8"],
    "QInt32Storage": DTYPES["qint32"],
    "QUInt4x2Storage": DTYPES["quint4x2"],
    "QUInt2x4Storage": DTYPES["quint2x4"],
    "UntypedStorage": BYTE,
    "_UntypedStorage": BYTE,  # its name in 1.11 to 1.13
}
"""Name of a storage class -> the type of its elements."""

ALIASES: dict[str, str] = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
"""Other names of dtypes in the torch module."""
SCALAR_TYPES: tuple[str, ...] = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128",
    "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8",
    "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64",
)  # fmt: skip
"""torch's ScalarType numbers, as mobile FlatBuffers use them: the index is the number."""


def torch_dtype(name: str) -> DType | None:
    """The dtype that `torch.<name>` is, None for other names."""
    return DTYPES.get(ALIASES.get(name, name))
