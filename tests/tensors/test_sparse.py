# SPDX-License-Identifier: Apache-2.0
"""How the parts of sparse tensors have to fit together."""

from __future__ import annotations

import pytest

from fdd.tensors.dtypes import DTYPES
from fdd.tensors.model import Storage, Tensor, contiguous_stride
from fdd.tensors.sparse import index_ranges, sparse_faults


def part(shape: tuple[int, ...], dtype: str = "int64", stride: tuple[int, ...] | None = None, stored: int = 100) -> Tensor:
    storage = Storage("0", DTYPES[dtype], "", "cpu", stored)
    return Tensor("part", DTYPES[dtype], shape, stride or contiguous_stride(shape), 0, storage)


def coo(indices: tuple[int, ...], values: tuple[int, ...], size: tuple[int, ...]) -> Tensor:
    parts = {"indices": part(indices), "values": part(values, "float32")}
    return Tensor("", DTYPES["float32"], size, layout="sparse_coo", components=parts)


def compressed(
    layout: str, outer: tuple[int, ...], inner: tuple[int, ...], values: tuple[int, ...], size: tuple[int, ...]
) -> Tensor:
    names = ("crow_indices", "col_indices") if layout in ("sparse_csr", "sparse_bsr") else ("ccol_indices", "row_indices")
    parts = {names[0]: part(outer), names[1]: part(inner), "values": part(values, "float32")}
    return Tensor("", DTYPES["float32"], size, layout=layout, components=parts)


GOOD = [
    coo((2, 5), (5,), (3, 4)),
    coo((1, 5), (5, 4), (3, 4)),
    coo((0, 1), (1, 3, 4), (3, 4)),
    coo((2, 0), (0,), (3, 4)),
    compressed("sparse_csr", (4,), (5,), (5,), (3, 7)),
    compressed("sparse_csc", (8,), (5,), (5,), (3, 7)),
    compressed("sparse_bsr", (4,), (5,), (5, 2, 3), (6, 9)),
    compressed("sparse_bsc", (4,), (5,), (5, 2, 3), (6, 9)),
    compressed("sparse_csr", (2, 4), (2, 5), (2, 5, 6), (2, 3, 7, 6)),
]
BAD = [
    coo((5,), (5,), (3, 4)),
    coo((2, 5), (4,), (3, 4)),
    coo((2, 5), (), (3, 4)),
    coo((3, 5), (5,), (3, 4)),
    coo((1, 5), (5, 3), (3, 4)),
    compressed("sparse_csr", (3,), (5,), (5,), (3, 7)),
    compressed("sparse_csr", (), (5,), (5,), (3, 7)),
    compressed("sparse_csr", (4,), (5,), (4,), (3, 7)),
    compressed("sparse_csr", (4,), (5,), (5, 2), (3, 7)),
    compressed("sparse_csr", (4,), (5,), (5,), (3,)),
    compressed("sparse_csc", (4,), (5,), (5,), (3, 7)),
    compressed("sparse_bsr", (4,), (5,), (5,), (6, 9)),
    compressed("sparse_bsr", (4,), (5,), (5, 2, 3), (7, 9)),
    compressed("sparse_bsr", (4,), (5,), (5, 0, 3), (6, 9)),
    compressed("sparse_csr", (3, 4), (2, 5), (2, 5), (2, 3, 7)),
]


@pytest.mark.parametrize("tensor", GOOD)
def test_parts_that_fit(tensor: Tensor) -> None:
    assert list(sparse_faults(tensor)) == []
    assert index_ranges(tensor)


@pytest.mark.parametrize("tensor", BAD)
def test_parts_that_do_not_fit(tensor: Tensor) -> None:
    assert list(sparse_faults(tensor))
    assert index_ranges(tensor) == []


def test_ranges_of_positions() -> None:
    assert index_ranges(coo((2, 5), (5,), (3, 4)))[0].limits == (3, 4)
    outer, inner = index_ranges(compressed("sparse_csr", (4,), (5,), (5,), (3, 7)))
    assert (outer.compressed, outer.limits, outer.total) == (True, (7,), 5)
    assert (inner.compressed, inner.limits) == (False, (7,))
    outer, inner = index_ranges(compressed("sparse_bsc", (4,), (5,), (5, 2, 3), (6, 9)))
    assert (outer.limits, inner.limits) == ((3,), (3,))


def test_index_tensors_are_whole_numbers_and_strided() -> None:
    floats = coo((2, 5), (5,), (3, 4))
    floats.components["indices"] = part((2, 5), "float32")
    nested = coo((2, 5), (5,), (3, 4))
    nested.components["values"] = coo((2, 5), (5,), (3, 4))
    assert list(sparse_faults(floats)) == ["indices is float32, not int64 or int32"]
    assert "values is itself sparse_coo" in list(sparse_faults(nested))


def test_an_index_tensor_that_overlaps_itself_is_found_and_an_expanded_one_is_not() -> None:
    overlapping = coo((2, 5), (5,), (3, 4))
    overlapping.components["indices"] = part((2, 5), stride=(1, 1), stored=6)
    expanded = compressed("sparse_csr", (2, 4), (2, 5), (2, 5), (2, 3, 7))
    expanded.components["crow_indices"] = part((2, 4), stride=(0, 1), stored=4)
    assert any("again and again" in fault for fault in sparse_faults(overlapping))
    assert list(sparse_faults(expanded)) == []


def test_other_layouts_are_left_alone() -> None:
    nested = Tensor("", DTYPES["float32"], None, layout="nested", components={"buffer": part((5,), "float32")})
    assert list(sparse_faults(nested)) == [] and index_ranges(nested) == []
