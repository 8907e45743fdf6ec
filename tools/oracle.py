# SPDX-License-Identifier: Apache-2.0
"""Hold what fdd says of tensors against what torch itself loads: names, shapes, strides, dtypes and every byte.

usage: PYTHONPATH=. python tools/oracle.py FOLDER...      (under a Python that has torch)

Only files that ``torch.load(weights_only=True)`` loads are compared, and torch is not given what fdd calls dangerous or
could not follow: bombs would keep it busy for ever. The exit code is 1 where anything differs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fdd
from fdd.core.finding import Safety
from fdd.core.source import open_source
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.limits import Limits
from fdd.tensors.model import Storage, Tensor

HARMLESS = (None, Safety.LISTED, Safety.UNLISTED)
PARTS = {
    "sparse_coo": {"indices": "_indices", "values": "_values"},
    "sparse_csr": {"crow_indices": "crow_indices", "col_indices": "col_indices", "values": "values"},
    "sparse_bsr": {"crow_indices": "crow_indices", "col_indices": "col_indices", "values": "values"},
    "sparse_csc": {"ccol_indices": "ccol_indices", "row_indices": "row_indices", "values": "values"},
    "sparse_bsc": {"ccol_indices": "ccol_indices", "row_indices": "row_indices", "values": "values"},
}
"""Layout -> component -> the method of a loaded tensor that gives it."""


def document_of(path: Path) -> TorchDocument | None:
    """The facts of a file; None where it is no PyTorch file."""
    source = open_source(str(path))
    probe = make_probe(source, name=path.name, path=str(path), limits=Limits(), depth="full")
    plugin = by_name("fdd000644")
    identification = plugin.identify(probe)
    if identification is None:
        return None
    document = plugin.open(probe, identification)
    return document if isinstance(document, TorchDocument) else None


def load(path: Path) -> Any:
    """What torch loads, with every storage on the CPU. Raises whatever torch raises."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(path, map_location="cpu", weights_only=True)


def loaded_tensors(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, tensor) of a loaded object, by the naming of the contract, found anew here. A container is entered once."""
    import torch

    waiting: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    entered: set[int] = set()
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, torch.Tensor):
            yield "/".join(_part(key) for key in path), value
        elif isinstance(value, (dict, list, tuple)) and id(value) not in entered:
            entered.add(id(value))
            items = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += reversed([(item, (*path, key)) for key, item in items])


def _part(key: object) -> str:
    return key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key)


def compare(path: Path) -> tuple[int, list[str]] | None:
    """Number of tensors compared and every difference; None where torch does not load the file, or does not get it."""
    if fdd.validate(path, depth="directory").safety not in HARMLESS:
        return None
    try:
        value = load(path)
    except Exception:  # noqa: BLE001  (torch raises what it likes; such files are not compared)
        return None
    document = document_of(path)
    if document is None:
        return 0, ["fdd knows no PyTorch file here"]
    return differences(document, dict(loaded_tensors(value)))


def differences(document: TorchDocument, theirs: dict[str, Any]) -> tuple[int, list[str]]:
    """Number of tensors that torch loaded, and every difference to what fdd says of them."""
    ours = {tensor.name: tensor for tensor in document.tensors}
    found = [f"only torch has {name!r}" for name in theirs.keys() - ours.keys()]
    found += [f"only fdd has {name!r}" for name in ours.keys() - theirs.keys()]
    for name in theirs.keys() & ours.keys():
        found += [f"{name!r}: {what}" for what in _differences(document, ours[name], theirs[name])]
    return len(theirs), found


def _differences(document: TorchDocument, ours: Tensor, theirs: Any) -> Iterator[str]:
    dtype = str(theirs.dtype).removeprefix("torch.")
    if ours.dtype is None or ours.dtype.name != dtype:
        yield f"dtype {ours.dtype and ours.dtype.name}, torch {dtype}"
    if ours.layout in PARTS:
        if ours.shape != tuple(theirs.shape):
            yield f"shape {ours.shape}, torch {tuple(theirs.shape)}"
        for part, method in PARTS[ours.layout].items():
            yield from (f"{part}: {what}" for what in _differences(document, ours.components[part], getattr(theirs, method)()))
    elif ours.layout == "nested":
        yield from _differences(document, ours.components["buffer"], theirs.values())
    elif ours.layout == "strided":
        shift = (ours.storage_offset or 0) - theirs.storage_offset() if document.kind == "torch-legacy" else 0
        view = (tuple(theirs.shape), tuple(theirs.stride()), theirs.storage_offset() + shift)
        if (ours.shape, ours.stride, ours.storage_offset) != view:
            yield f"view {(ours.shape, ours.stride, ours.storage_offset)}, torch {view}"
        if ours.storage is not None and _stored(document, ours, shift) != loaded_bytes(theirs):
            yield "other bytes"
        if (ours.conjugate, ours.negative) != (theirs.is_conj(), theirs.is_neg()):
            yield "conjugate or negative bit"


def _stored(document: TorchDocument, tensor: Tensor, shift: int) -> bytes | None:
    """The storage of a tensor; of a view that a persistent id of early releases takes of a storage, its part only."""
    assert tensor.storage is not None and tensor.dtype is not None
    data = stored_bytes(document, tensor.storage)
    end = tensor.view_byte_count
    return data[shift * tensor.dtype.size : end] if shift and data is not None else data


def loaded_bytes(tensor: Any) -> bytes:
    """All bytes of the storage of a loaded tensor."""
    import ctypes

    storage = tensor.untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes())


def stored_bytes(document: TorchDocument, storage: Storage) -> bytes | None:
    """The bytes of a storage in the byte order of this machine, as torch makes them: by the type of the storage."""
    if storage.span is None or storage.dtype is None:
        return None
    data = document.source.read_at(storage.span.offset, storage.span.length)
    order = "big" if document.texts.get("byteorder") == b"big" else "little"
    width = storage.dtype.swap
    if order == sys.byteorder or width == 1:
        return data
    return b"".join(data[start : start + width][::-1] for start in range(0, len(data), width))


def run(compare: Callable[[Path], tuple[int, list[str]] | None], folders: list[str]) -> int:
    """Compare all files below the folders, print differences and counts."""
    loaded = tensors = files = 0
    failed: list[str] = []
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*") if path.is_file()):
        files += 1
        outcome = compare(path)
        if outcome is None:
            continue
        loaded += 1
        tensors += outcome[0]
        failed += [f"{path}: {difference}" for difference in outcome[1]]
    sys.stdout.write("".join(f"{line}\n" for line in failed))
    sys.stdout.write(f"{files} files, {loaded} loaded by torch, {tensors} tensors compared, {len(failed)} differences\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run(compare, sys.argv[1:]))
