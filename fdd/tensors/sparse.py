# SPDX-License-Identifier: Apache-2.0
"""Sparse layouts: how the tensors they are made of have to fit together (format.md 2.4; torch documentation on sparse tensors).

Sizes count elements. Values of index tensors are not looked at here: :class:`IndexRange` says what they may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fdd.tensors.model import Tensor, element_count

COO = "sparse_coo"
COMPRESSED: dict[str, tuple[str, str, bool, bool]] = {
    "sparse_csr": ("crow_indices", "col_indices", False, False),
    "sparse_csc": ("ccol_indices", "row_indices", True, False),
    "sparse_bsr": ("crow_indices", "col_indices", False, True),
    "sparse_bsc": ("ccol_indices", "row_indices", True, True),
}
"""Layout -> compressed index tensor, plain index tensor, whether columns are compressed, whether values are blocks."""
INDEX_DTYPES = ("int64", "int32")


class IndexRange(NamedTuple):
    """What the values of one index tensor may be.

    ``limits``: every value of row i is at least 0 and below ``limits[i]``; one limit counts for all rows.
    ``compressed``: instead, every row starts with 0, never falls, rises by at most ``limits[0]`` at a time, and ends with
    ``total``.
    """

    tensor: Tensor
    limits: tuple[int, ...]
    compressed: bool = False
    total: int = 0


def sparse_faults(tensor: Tensor) -> Iterator[str]:
    """Why the parts of a sparse tensor do not fit together; nothing where they do or where something is unknown."""
    if tensor.layout != COO and tensor.layout not in COMPRESSED:
        return
    for name, part in tensor.components.items():
        if part.layout != "strided":
            yield f"{name} is itself {part.layout}"
        elif name != "values" and part.dtype is not None and part.dtype.name not in INDEX_DTYPES:
            yield f"{name} is {part.dtype.name}, not int64 or int32"
        elif name != "values" and _overlaps(part):
            yield f"{name} looks at the same elements of its storage again and again"
    if not _known(tensor):
        return
    if tensor.layout == COO:
        yield from _coo_faults(tensor)
    elif tensor.layout in COMPRESSED:
        yield from _compressed_faults(tensor)


def index_ranges(tensor: Tensor) -> list[IndexRange]:
    """What the values of the index tensors may be; empty where the parts do not fit together."""
    if not _known(tensor) or next(sparse_faults(tensor), None) is not None:
        return []
    size = tensor.shape or ()
    if tensor.layout == COO:
        indices = tensor.components["indices"]
        return [IndexRange(indices, size[: _shape(indices)[0]])]
    compressed_name, plain_name, by_column, _ = COMPRESSED[tensor.layout]
    compressed, plain = tensor.components[compressed_name], tensor.components[plain_name]
    rows, columns = _grid(tensor)
    across = rows if by_column else columns
    return [IndexRange(compressed, (across,), True, _shape(plain)[-1]), IndexRange(plain, (across,))]


def _known(tensor: Tensor) -> bool:
    parts = tensor.components.values()
    return tensor.shape is not None and bool(parts) and all(part.shape is not None for part in parts)


def _overlaps(part: Tensor) -> bool:
    """Whether a view that lies inside its storage has more positions than the storage has elements.

    Dimensions of stride 0 do not count: an expanded tensor shows one row for every batch.
    """
    end, storage = part.view_byte_count, part.storage
    if not end or storage is None or storage.byte_count is None or part.dtype is None or end > storage.byte_count:
        return False
    distinct = element_count(
        tuple(size for size, step in zip(part.shape or (), part.stride or (), strict=True) if step and size != 1)
    )
    return distinct is None or distinct * part.dtype.size > storage.byte_count


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.shape or ()


def _coo_faults(tensor: Tensor) -> Iterator[str]:
    size, indices, values = _shape(tensor), _shape(tensor.components["indices"]), _shape(tensor.components["values"])
    if len(indices) != 2:
        yield f"indices have {len(indices)} dimensions instead of 2"
    elif not values or values[0] != indices[1]:
        yield f"{indices[1]} positions and {values[0] if values else 'no'} values"
    elif indices[0] > len(size) or values[1:] != size[indices[0] :]:
        yield f"indices {_text(indices)} and values {_text(values)} do not make a tensor {_text(size)}"


def _compressed_faults(tensor: Tensor) -> Iterator[str]:
    compressed_name, plain_name, by_column, blocks = COMPRESSED[tensor.layout]
    compressed, plain = _shape(tensor.components[compressed_name]), _shape(tensor.components[plain_name])
    values, size = _shape(tensor.components["values"]), _shape(tensor)
    batch = len(compressed) - 1
    cell = 3 if blocks else 1
    if batch < 0 or len(plain) != batch + 1 or len(values) < batch + cell or len(size) < batch + 2:
        yield f"dimensions of {compressed_name}, {plain_name} and values do not fit"
        return
    if not compressed[:-1] == plain[:-1] == values[:batch] == size[:batch]:
        yield "the batch dimensions of its parts differ"
    if values[batch] != plain[-1]:
        yield f"{plain[-1]} positions and {values[batch]} values"
    if values[batch + cell :] != size[batch + 2 :]:
        yield "the dense dimensions of values and size differ"
    block = values[batch + 1 : batch + 3] if blocks else (1, 1)
    if min(block) < 1 or size[batch] % block[0] or size[batch + 1] % block[1]:
        yield f"blocks {_text(block)} do not tile a tensor {_text(size)}"
        return
    rows, columns = _grid(tensor)
    along = columns if by_column else rows
    if compressed[-1] != along + 1:
        yield f"{compressed_name} has {compressed[-1]} entries for {along} rows or columns instead of {along + 1}"


def _grid(tensor: Tensor) -> tuple[int, int]:
    """Rows and columns, in blocks where the layout has them."""
    compressed_name, _, _, blocks = COMPRESSED[tensor.layout]
    size, batch = _shape(tensor), len(_shape(tensor.components[compressed_name])) - 1
    values = _shape(tensor.components["values"])
    block = values[batch + 1 : batch + 3] if blocks else (1, 1)
    return size[batch] // block[0], size[batch + 1] // block[1]


def _text(shape: tuple[int, ...]) -> str:
    """A shape for a message; only the first dimensions of a very long one."""
    shown = ", ".join(str(size) for size in shape[:8])
    return f"({shown}, ...)" if len(shape) > 8 else f"({shown})"
