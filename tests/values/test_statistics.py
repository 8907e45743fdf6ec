# SPDX-License-Identifier: Apache-2.0
"""Value statistics, held against numpy computing on the values themselves."""

from __future__ import annotations

import math
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdd
from corpus.build.kit import Global, Storage, Tensor, archive, eager, eager_records, legacy_stream, state_dict
from corpus.build.tensors_quantized_sparse import packed_pass, quantized_pass, sparse_pass
from fdd.core.errors import UsageError
from fdd.tensors.dtypes import DTYPES
from fdd.values import statistics
from fdd.values.patterns import FLOAT_TYPES
from fdd.values.statistics import ValueTap, has_statistics
from tests.schemas import validator
from tests.values.twins import TWINS, Data, every_dtype, kit_tensor, swapped, zip_little

NUMPY_CODES = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8", "int32": "<i4", "int16": "<i2", "int8": "<i1",
    "uint8": "<u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "<u1", "complex64": "<f4", "complex128": "<f8",
    "complex32": "<f2", "qint8": "<i1", "quint8": "<u1", "qint32": "<i4",
}  # fmt: skip


def numbers(dtype: str, data: bytes) -> list[float | int]:
    """The values that bytes stand for, by numpy, or for types it lacks by their definitions."""
    if dtype == "bfloat16":
        return [struct.unpack("<f", b"\0\0" + data[at : at + 2])[0] for at in range(0, len(data), 2)]
    if dtype.startswith("float8"):
        return [small_float(dtype, byte) for byte in data]
    found: list[float | int] = np.frombuffer(data, NUMPY_CODES[dtype]).tolist()
    return found


def small_float(dtype: str, byte: int) -> float:
    """Written out apart from the code under test (OCP 8-bit specification; ONNX documentation of the fnuz types)."""
    if dtype == "float8_e8m0fnu":
        return math.nan if byte == 255 else 2.0 ** (byte - 127)
    exponent_bits = 4 if "e4m3" in dtype else 5
    mantissa_bits = 7 - exponent_bits
    fnuz = dtype.endswith("fnuz")
    bias = 2 ** (exponent_bits - 1) - (0 if fnuz else 1)
    if fnuz and byte == 0x80:
        return math.nan
    sign = -1 if byte & 0x80 else 1
    exponent, mantissa = (byte & 0x7F) >> mantissa_bits, byte & (2**mantissa_bits - 1)
    if dtype == "float8_e4m3fn" and byte & 0x7F == 0x7F:
        return math.nan
    if dtype == "float8_e5m2" and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return math.ldexp(sign * mantissa / 2**mantissa_bits, 1 - bias)
    return math.ldexp(sign * (1 + mantissa / 2**mantissa_bits), exponent - bias)


def wanted(values: list[float | int]) -> dict[str, Any]:
    finite = [value for value in values if math.isfinite(value)]
    return {
        "values": len(values),
        "nan": sum(math.isnan(value) for value in values),
        "inf": sum(math.isinf(value) for value in values),
        "zeros": finite.count(0),
        "min": min(finite, default=None),
        "max": max(finite, default=None),
    }


def found(
    dtype: str, data: bytes, *, order: str = "little", pieces: int = 1 << 20, cuts: tuple[int, ...] = ()
) -> list[dict[str, Any]]:
    tap = ValueTap(DTYPES[dtype], order, cuts)
    stored = swapped(data, dtype) if order == "big" else data
    for at in range(0, len(stored), pieces):
        tap.update(memoryview(stored)[at : at + pieces])
    return [part.to_dict() for part in tap.ranges()]


COUNTED = sorted(name for name, dtype in DTYPES.items() if has_statistics(dtype) and (name in NUMPY_CODES or name in FLOAT_TYPES))


@pytest.mark.parametrize("dtype", sorted(FLOAT_TYPES))
def test_every_pattern_of_small_floats(dtype: str) -> None:
    """All 256 or 65,536 of them, and of wider types the corners of their ranges."""
    kind = FLOAT_TYPES[dtype]
    corners = [0, 1, kind.largest, kind.largest + 1, (kind.infinity or 0) + 1, kind.sign - 1]
    patterns = range(1 << 8 * kind.width) if kind.width < 4 else [corner | sign for corner in corners for sign in (0, kind.sign)]
    for pattern in patterns:
        value = numbers(dtype, pattern.to_bytes(kind.width, "little"))[0]
        told = kind.number(pattern)
        assert told == value or (math.isnan(told) and math.isnan(value))
    if kind.width == 1:
        for pattern in patterns:
            assert found(dtype, bytes([pattern])) == [wanted(numbers(dtype, bytes([pattern])))]


SPECIAL = {
    "float32": b"".join(struct.pack("<I", pattern) for pattern in (0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF)),
    "bfloat16": bytes.fromhex("0000008080 7f80ff c17f ffff 803f 80bf".replace(" ", "")),
    "float16": bytes.fromhex("00000080 007c 00fc 017c ffff 003c 00bc".replace(" ", "")),
    "float64": struct.pack("<6d", 0.0, -0.0, math.inf, -math.inf, math.nan, -1e308),
}


@given(
    st.sampled_from(COUNTED), st.integers(0, 40), st.integers(0, 2**32), st.sampled_from(["little", "big"]), st.integers(1, 70)
)
def test_statistics_are_numpys(dtype: str, count: int, seed: int, order: str, pieces: int) -> None:
    """Random bytes with the special numbers among them, in pieces that end anywhere."""
    rng = np.random.default_rng(seed)
    size = DTYPES[dtype].size
    data = rng.integers(0, 256, count * size, np.uint8).tobytes() if seed % 3 else bytes(count * size)
    data += SPECIAL.get(dtype, b"")[: size * (seed % 7)]
    assert found(dtype, data, order=order, pieces=pieces) == [wanted(numbers(dtype, data))]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize(("low", "high"), [(-5, -1), (1, 5), (-5, 5), (0, 0)])
def test_numbers_of_one_sign(dtype: str, low: float, high: float) -> None:
    values = np.random.default_rng(1).uniform(low, high, 1000)
    if dtype == "bfloat16":
        data = (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    else:
        data = values.astype(NUMPY_CODES[dtype]).tobytes()
    assert found(dtype, data) == [wanted(numbers(dtype, data))]


@given(st.lists(st.integers(1, 99), max_size=6, unique=True).map(sorted), st.integers(1, 500))
def test_parts_have_statistics_of_their_own(cuts: list[int], pieces: int) -> None:
    values = np.random.default_rng(7).standard_normal(100).astype("<f4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "PIECE_BYTES", 64)
        parts = found("float32", values.tobytes(), pieces=pieces, cuts=tuple(cuts))
    bounds = [0, *cuts, 100]
    assert parts == [wanted(values[a:b].tolist()) for a, b in pairwise(bounds)]


def rows(data: bytes, **options: Any) -> dict[str, dict[str, Any]]:
    """By tensor, or by record."""
    report = fdd.validate(data, stats=True, **options)
    assert fdd.extract(data, stats=True).statistics == report.statistics
    validator("report").validate(report.to_dict())
    assert fdd.Report.from_json(report.to_json()).statistics == report.statistics
    return {row.get("tensor", row["record"]): dict(row) for row in report.statistics}


@pytest.mark.parametrize("twin", ["little", "big-endian", "legacy", "safetensors"])
def test_statistics_of_files(twin: str) -> None:
    model = every_dtype()
    data = zip_little(model) if twin == "little" else TWINS[twin](model)
    reported = rows(data)
    for name, held in model.items():
        row = reported[name]
        assert row["dtype"] == held.dtype
        assert {key: row[key] for key in wanted([])} == wanted(numbers(held.dtype, held.data))


def test_tensors_that_show_parts_of_a_storage() -> None:
    values = np.arange(-6, 18, dtype="<f4")
    storage = Storage(Global("torch", "FloatStorage"), values.tobytes(), 24)
    reported = rows(
        eager(
            {
                "whole": Tensor(storage, (4, 6), (1, 4)),
                "rows": Tensor(storage, (2, 6), (6, 1), offset=6),
                "over": Tensor(storage, (9,), (1,), offset=5),
                "empty": Tensor(storage, (0, 6), (6, 1)),
                "column": Tensor(storage, (4,), (6,)),
                "expanded": Tensor(storage, (3, 6), (0, 1)),
                "conjugate": Tensor(storage, (24,), (1,), metadata={"neg": True}, dtype=None),
            }
        )
    )
    shown = {name: (row["values"], row["min"], row["max"], row["zeros"]) for name, row in reported.items()}
    assert shown == {
        "archive/data/0": (24, -6, 17, 1),
        "whole": (24, -6, 17, 1),
        "rows": (12, 0, 11, 1),
        "over": (9, -1, 7, 1),
        "empty": (0, None, None, 0),
    }


def test_storages_that_are_not_aligned() -> None:
    """Legacy payloads begin anywhere."""
    data = legacy_stream(state_dict({"x": kit_tensor(Data("float64", (3,), struct.pack("<3d", 1, -2, math.nan)))}))
    row = rows(data)["x"]
    assert (row["min"], row["max"], row["nan"]) == (-2, 1, 1)


def test_a_deflated_storage() -> None:
    records = eager_records({"x": kit_tensor(Data("int16", (500,), struct.pack("<500h", *range(-250, 250))))})
    row = rows(archive(records, deflate=["data/0"]))["x"]
    assert (row["values"], row["min"], row["max"], row["zeros"]) == (500, -250, 249, 1)


def test_a_storage_cut_short_is_counted_as_far_as_it_goes() -> None:
    short = Tensor(Storage(Global("torch", "FloatStorage"), struct.pack("<3f", 1, 2, 3), 4), (4,), (1,))
    assert {name: row["values"] for name, row in rows(eager({"x": short})).items()} == {"archive/data/0": 3}


def test_components_and_quantized_tensors() -> None:
    sparse = rows(sparse_pass())
    assert sparse["a/values"]["max"] == 1.5
    assert sparse["a/indices"]["dtype"] == "int64"
    assert rows(quantized_pass())["a"]["max"] == 3
    assert rows(packed_pass()) == {}


def test_large_files_are_read_by_several_threads(tmp_path: Any) -> None:
    values = np.random.default_rng(2).standard_normal(3 << 20).astype("<f4")
    values[[5, 70_000]] = np.nan, -np.inf
    path = tmp_path / "x.pt"
    path.write_bytes(eager({"x": kit_tensor(Data("float32", (3 << 20,), values.tobytes()))}))
    report = fdd.validate(str(path), stats=True)
    finite = values[np.isfinite(values)]
    assert dict(report.statistics[1]) == {
        "tensor": "x", "record": "archive/data/0", "dtype": "float32", "values": 3 << 20, "nan": 1, "inf": 1, "zeros": 0,
        "min": float(finite.min()), "max": float(finite.max()),
    }  # fmt: skip
    assert report.digests == fdd.validate(str(path)).digests
    assert report.records == fdd.validate(str(path)).records


def test_only_on_request_and_only_where_values_are_read() -> None:
    data = zip_little({"x": Data("uint8", (1,), b"\1")})
    report = fdd.validate(data)
    assert report.statistics == ()
    assert "statistics" not in report.to_dict()
    with pytest.raises(UsageError):
        fdd.validate(data, depth="structure", stats=True)
    assert fdd.validate(b"text", stats=True).statistics == ()
    assert "statistics" not in fdd.validate(data, stats=True).to_dict(brief=True)
