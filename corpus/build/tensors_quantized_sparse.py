# SPDX-License-Identifier: Apache-2.0
"""Files with quantized, packed and sparse tensors whose parts do not fit."""

from __future__ import annotations

from corpus.build.kit import (
    Call,
    Global,
    Lowering,
    Storage,
    Tensor,
    archive,
    dump,
    eager,
    ordered_dict,
    recipe,
    records_around,
    storage,
    tensor,
)
from corpus.build.kit import with_serialization_id as with_id
from corpus.build.tensors_kit import in_dict, rebuild, saved

PER_CHANNEL = Global("torch", "per_channel_affine")
PER_TENSOR = Global("torch", "per_tensor_affine")


def quantized(scheme: tuple[object, ...]) -> Call:
    """A qint8 tensor of two rows and two columns."""
    data = Storage(Global("torch", "QInt8Storage"), bytes(range(4)), 4)
    return rebuild("_rebuild_qtensor", data, 0, (2, 2), (2, 1), scheme, False, ordered_dict())


def scales(*values: float) -> tuple[object, object]:
    """Scales and zero points of as many channels."""
    return tensor(list(values), dtype="float64"), tensor([0] * len(values), dtype="int64")


def sparse(layout: str, *data: object) -> Call:
    """A sparse tensor of these parts."""
    named = Call(Global("torch.serialization", "_get_layout"), (f"torch.{layout}",))
    return rebuild("_rebuild_sparse_tensor", named, data)


def coo(rows: list[int], columns: list[int], *, size: tuple[int, ...] = (2, 3), byteorder: str = "little") -> Call:
    """A sparse matrix with a number at each of these positions."""
    count = len(rows)
    indices = tensor([*rows, *columns], (2, count), "int64", byteorder)
    values = tensor([1.5] * count, byteorder=byteorder)
    return sparse("sparse_coo", indices, values, Call(Global("torch", "Size"), (size,)), True)


def csr(crow: list[int], columns: list[int], count: int | None = None) -> Call:
    """A sparse matrix of two rows and three columns, by rows."""
    values = tensor([1.5] * (len(columns) if count is None else count))
    size = Call(Global("torch", "Size"), ((2, 3),))
    return sparse("sparse_csr", tensor(crow, dtype="int64"), tensor(columns, dtype="int64"), values, size)


@recipe("tensors/quantized-pass.pt")
def quantized_pass() -> bytes:
    """One scale for all, and one for each row."""
    return in_dict(quantized((PER_TENSOR, 0.5, 3)), quantized((PER_CHANNEL, *scales(0.5, 0.25), 0)))


@recipe("tensors/quantizer-axis.pt")
def quantizer_axis() -> bytes:
    """Axis 7 of a matrix."""
    return in_dict(quantized((PER_CHANNEL, *scales(0.5, 0.25), 7)))


@recipe("tensors/quantizer-scales.pt")
def quantizer_scales() -> bytes:
    """Three scales for two rows."""
    return in_dict(quantized((PER_CHANNEL, *scales(0.5, 0.25, 1.0), 0)))


@recipe("tensors/quantizer-scheme.pt")
def quantizer_scheme() -> bytes:
    """A scheme that does not exist."""
    return in_dict(quantized((Global("torch", "per_row_affine"), 0.5, 3)))


@recipe("tensors/quantizer-scale-text.pt")
def quantizer_scale_text() -> bytes:
    """A text as scale."""
    return in_dict(quantized((PER_TENSOR, "0.5", 3)))


@recipe("tensors/quantizer-scale-not-positive.pt")
def quantizer_scale_not_positive() -> bytes:
    """Scale 0."""
    return in_dict(quantized((PER_TENSOR, 0.0, 3)))


def packed(count: int) -> bytes:
    """4-bit numbers, 3 rows of 5: three bytes a row; ``count`` bytes of storage."""
    data = Storage(Global("torch", "QUInt4x2Storage"), bytes(count), count)
    return in_dict(rebuild("_rebuild_qtensor", data, 0, (3, 5), (5, 1), (PER_TENSOR, 0.5, 3), False, ordered_dict()))


@recipe("tensors/packed-bytes-missing.pt")
def packed_bytes_missing() -> bytes:
    """8 bytes, as if rows were not rounded up."""
    return packed(8)


@recipe("tensors/packed-pass.pt")
def packed_pass() -> bytes:
    """9 bytes."""
    return packed(9)


@recipe("tensors/sparse-pass.pt")
def sparse_pass() -> bytes:
    """A matrix by positions, one by rows, one by blocks of rows."""
    crow, column = tensor([0, 1, 1], dtype="int64"), tensor([1], dtype="int64")
    blocks = tensor([1.0, 2.0, 3.0, 4.0], (1, 2, 2))
    bsr = sparse("sparse_bsr", crow, column, blocks, Call(Global("torch", "Size"), ((4, 6),)))
    return in_dict(coo([0, 1], [2, 0]), csr([0, 1, 2], [2, 0]), bsr)


@recipe("tensors/sparse-big-endian-pass.pt")
def sparse_big_endian_pass() -> bytes:
    """Positions are read in the byte order of the file."""
    return eager({"a": coo([0, 1], [2, 0], byteorder="big")}, byteorder="big", platform="linux-big-endian")


@recipe("tensors/sparse-unknown-order-pass.pt")
def sparse_unknown_order_pass() -> bytes:
    """No byteorder record, and big-endian positions: they fit one of the two orders."""
    return eager({"a": coo([0, 1], [2, 0], byteorder="big")}, era="1.9")


@recipe("tensors/sparse-layout.pt")
def sparse_layout() -> bytes:
    """A layout that does not exist."""
    return in_dict(sparse("sparse_xyz", tensor([0], (1, 1), "int64"), tensor([1.0]), (3,)))


@recipe("tensors/sparse-index-type.pt")
def sparse_index_type() -> bytes:
    """Positions as float32."""
    return in_dict(sparse("sparse_coo", tensor([0.0, 1.0], (2, 1)), tensor([1.0]), (2, 3)))


@recipe("tensors/sparse-shapes.pt")
def sparse_shapes() -> bytes:
    """Two positions and three values; five row starts for two rows; columns of another batch."""
    wrong_values = sparse("sparse_coo", tensor([0, 1, 2, 0], (2, 2), "int64"), tensor([1.0, 2.0, 3.0]), (2, 3))
    return in_dict(wrong_values, csr([0, 0, 0, 0, 2], [2, 0]), csr([0, 1, 2], [2, 0], 3))


@recipe("tensors/sparse-position-outside.pt")
def sparse_position_outside() -> bytes:
    """Row 99 of two."""
    return in_dict(coo([0, 99], [2, 0]))


@recipe("tensors/sparse-position-negative.pt")
def sparse_position_negative() -> bytes:
    """Column -1, in a file that does not tell its byte order: it fits neither."""
    return eager({"a": coo([0, 1], [2, -1])}, era="1.9")


@recipe("tensors/sparse-rows-fall.pt")
def sparse_rows_fall() -> bytes:
    """Row starts that fall, end too early, begin too late; a column that is not there."""
    return in_dict(csr([0, 2, 1], [2, 0]), csr([0, 1, 1], [2, 0]), csr([1, 1, 2], [2, 0]), csr([0, 1, 2], [2, 3]))


@recipe("tensors/sparse-index-overlaps.pt")
def sparse_index_overlaps() -> bytes:
    """Positions that look at the same four numbers a hundred times and more."""
    data = storage([0, 0, 0, 0], "int64")
    indices = Tensor(data, (2, 3), (1, 1))
    return in_dict(sparse("sparse_coo", indices, tensor([1.0, 2.0, 3.0]), (2, 3)))


@recipe("tensors/sparse-deflated.pt")
def sparse_deflated() -> bytes:
    """The positions lie in a deflated record, where they are looked at all the same: row 99 of two."""
    lowering = Lowering()
    pickle = dump(lowering.lower({"a": coo([0, 99], [2, 0])}))
    return archive(with_id(records_around(pickle, lowering.keyed)), deflate=["data/0"])


@recipe("tensors/sparse-index-missing.pt")
def sparse_index_missing() -> bytes:
    """The record of the positions is missing."""
    lowering = Lowering()
    pickle = dump(lowering.lower({"a": coo([0, 1], [2, 0])}))
    return archive(with_id(records_around(pickle, [row for row in lowering.keyed if row[0] != "0"])))


@recipe("tensors/sparse-expanded-pass.pt")
def sparse_expanded_pass() -> bytes:
    """A batch of two matrices that share their positions by a stride of 0."""
    size = Call(Global("torch", "Size"), ((2, 2, 3),))
    crow = Tensor(storage([0, 1, 2], "int64"), (2, 3), (0, 1))
    columns = Tensor(storage([2, 0], "int64"), (2, 2), (0, 1))
    return saved({"a": sparse("sparse_csr", crow, columns, tensor([1.0, 2.0, 3.0, 4.0], (2, 2)), size)})
