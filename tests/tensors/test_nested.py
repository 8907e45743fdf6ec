# SPDX-License-Identifier: Apache-2.0
"""How the parts of a nested tensor fit together."""

from __future__ import annotations

import pytest

from fdd.tensors.dtypes import DTYPES
from fdd.tensors.model import Tensor
from fdd.tensors.nested import nested_faults


def _parts(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {name: Tensor("", DTYPES["int64"], shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("parts", "listed", "count"),
    [
        (_parts(sizes=(2, 3), strides=(2, 3), offsets=(2,)), None, 0),
        (_parts(sizes=(2, 3), strides=(2, 3)), 2, 0),
        (_parts(sizes=(0,), strides=(0,), offsets=(0,)), None, 0),
        (_parts(sizes=(2, 3), strides=(2, 3)), 1, 1),
        (_parts(sizes=(2, 3), strides=(1, 3), offsets=(2,)), None, 1),
        (_parts(sizes=(2, 3), strides=(2, 3), offsets=(3,)), None, 1),
        (_parts(sizes=(6,), strides=(6,), offsets=(6,)), None, 2),
        (_parts(sizes=(), strides=(), offsets=()), None, 3),
    ],
)
def test_shapes(parts: dict[str, Tensor], listed: int | None, count: int) -> None:
    assert len(list(nested_faults(parts, listed))) == count


def test_tables_are_int64() -> None:
    parts = _parts(sizes=(2, 3), strides=(2, 3), offsets=(2,))
    parts["sizes"].dtype = DTYPES["float32"]
    assert len(list(nested_faults(parts))) == 1
