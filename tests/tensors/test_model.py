# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of views, against counting element by element."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdd.core.span import Span
from fdd.tensors.dtypes import DTYPES, STORAGE_CLASSES
from fdd.tensors.model import (
    INT64_MAX,
    Quantizer,
    Storage,
    Tensor,
    contiguous_stride,
    element_count,
    packed_bytes,
    unused_bytes,
    view_end,
)

FLOAT = DTYPES["float32"]
PACKED = DTYPES["quint4x2"]
shapes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=4)


def storage(count: int, dtype: str = "float32") -> Storage:
    return Storage("0", DTYPES[dtype], "torch.FloatStorage", "cpu", count)


def tensor(shape: tuple[int, ...] | None, stride: tuple[int, ...] | None = None, offset: int | None = 0) -> Tensor:
    return Tensor("", FLOAT, shape, contiguous_stride(shape) if stride is None and shape is not None else stride, offset)


@given(shapes, st.integers(0, 9))
def test_view_end_is_behind_the_last_element_reached(dimensions: list[tuple[int, int]], offset: int) -> None:
    shape, stride = tuple(size for size, _ in dimensions), tuple(step for _, step in dimensions)
    reached = [offset + sum(at * step for at, step in zip(index, stride, strict=True)) for index in product(*map(range, shape))]
    assert view_end(shape, stride, offset, FLOAT) == (max(reached) + 1) * FLOAT.size if reached else True
    assert (view_end(shape, stride, offset, FLOAT) == 0) == (not reached)
    assert element_count(shape) == len(reached)


@pytest.mark.parametrize(
    ("shape", "stride", "offset"),
    [((2,), (1, 1), 0), ((-1,), (1,), 0), ((2,), (-1,), 0), ((2,), (1,), -1), (None, (1,), 0), ((2,), (1,), None)],
)
def test_views_that_make_no_sense_have_no_size(
    shape: tuple[int, ...] | None, stride: tuple[int, ...], offset: int | None
) -> None:  # fmt: skip
    assert tensor(shape, stride, offset).view_byte_count is None


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ((), 1),
        ((2**62, 2), None),
        ((2**40, 2**40, 0), None),  # torch multiplies from the left and refuses this one
        ((0, 2**40, 2**40), 0),
        ((INT64_MAX,), INT64_MAX),
        ((3, -1), None),
        ((2**62,) * 100_000, None),
    ],
)
def test_element_count_beyond_64_bits_is_unknown(shape: tuple[int, ...], count: int | None) -> None:
    assert element_count(shape) == count


@pytest.mark.parametrize(
    ("shape", "dtype", "count"),
    [((4, 6), "quint4x2", 12), ((3, 5), "quint4x2", 9), ((4, 6), "quint2x4", 8), ((), "quint4x2", 1), ((0,), "quint4x2", 0)],
)
def test_packed_rows_are_rounded_up(shape: tuple[int, ...], dtype: str, count: int) -> None:
    assert packed_bytes(shape, DTYPES[dtype]) == count


def test_packed_bytes_beyond_64_bits_are_too_many() -> None:
    assert packed_bytes((2**40, 2**40, 2), PACKED) >= INT64_MAX


def test_span_of_a_view_is_absolute() -> None:
    data = storage(6)
    data.span = Span(100, 24)
    view = Tensor("", FLOAT, (2,), (1,), 3, data)
    assert view.span == Span(112, 8)
    assert Tensor("", FLOAT, (0,), (1,), 99, data).span == Span(100, 0)
    assert Tensor("", FLOAT, (7,), (1,), 0, data).span is None


def test_unused_bytes_lie_before_the_first_and_behind_the_last_view() -> None:
    data = storage(10)
    views = [tensor((2,), (1,), 2), tensor((2, 2), (2, 1), 4), tensor((0,), (1,), 0)]
    assert unused_bytes(data, views) == (2 + 2) * 4
    assert unused_bytes(data, [tensor((10,))]) == 0
    assert unused_bytes(data, [tensor((0,))]) == 40


def test_unused_bytes_are_not_claimed_where_something_is_unknown() -> None:
    assert unused_bytes(storage(10), [tensor((2,)), tensor(None)]) == 0
    assert unused_bytes(storage(10), [tensor((11,))]) == 0
    whole = storage(10)
    whole.bare = True
    assert unused_bytes(whole, [tensor((2,))]) == 0


def test_parts_of_a_tensor_are_components_and_parameters_of_the_quantizer() -> None:
    scales, zero_points, values = tensor((2,)), tensor((2,)), tensor((3,))
    whole = Tensor("", FLOAT, (2,), components={"values": values}, quantizer=Quantizer("x", scales, zero_points, 0))
    assert list(whole.parts) == [values, scales, zero_points]
    assert list(Tensor("", FLOAT, (2,), quantizer=Quantizer("x", 0.5, 3)).parts) == []


def test_storage_classes_have_the_sizes_of_format_md() -> None:
    sizes = {name.removesuffix("Storage"): dtype.size for name, dtype in STORAGE_CLASSES.items()}
    assert sizes == {
        "Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1,
        "ComplexFloat": 8, "ComplexDouble": 16, "QInt8": 1, "QUInt8": 1, "QInt32": 4, "QUInt4x2": 1, "QUInt2x4": 1,
        "Untyped": 1, "_Untyped": 1,
    }  # fmt: skip
