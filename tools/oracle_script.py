# SPDX-License-Identifier: Apache-2.0
"""As tools/oracle.py, for TorchScript archives and mobile modules: what ``torch.jit.load`` gives.

usage: PYTHONPATH=. python tools/oracle_script.py FOLDER...      (under a Python that has torch)

Loading a script can run its ``__setstate__``: only files are loaded that fdd calls listed. torch does not turn the bytes of
scripts of big-endian machines, so storages are compared as they lie in the file. The exit code is 1 where anything differs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fdd
from fdd.core.finding import Safety
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.zipped import contents
from fdd.tensors.model import Tensor
from tools import oracle

KINDS = frozenset({"torchscript", "torchscript-mobile", "torchscript-json", "mobile-flatbuffer"})
ELSEWHERE = ("constants.pkl", "bytecode.pkl", "traced_inputs.pkl", "attributes.pkl")
"""Pickles whose tensors are no attributes of the module."""


def load(path: Path, kind: str) -> Any:
    """The module. Raises whatever torch raises."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "mobile-flatbuffer":
            return torch.jit.jit_module_from_flatbuffer(str(path))
        return torch.jit.load(str(path), map_location="cpu")


def compare(path: Path) -> tuple[int, list[str]] | None:
    """Number of tensors compared and every difference; None where the file is no script, or torch does not load it."""
    report = fdd.validate(str(path))
    kind = report.identification.kind if report.identification is not None else ""
    if kind not in KINDS or report.safety is not Safety.LISTED:
        return None
    try:
        module = load(path, kind)
    except Exception as error:  # noqa: BLE001  (torch raises what it likes; such files are not compared)
        sys.stderr.write(f"{path}: {type(error).__name__}: {str(error).strip()[:100]}\n")
        return None
    document = oracle.document_of(path)
    assert document is not None
    if kind == "mobile-flatbuffer":
        return _by_bytes(document, module)
    return _by_name(document, module)


def _by_name(document: TorchDocument, module: Any) -> tuple[int, list[str]]:
    """Every parameter and buffer is one of ours, and every one of ours is found in the module."""
    ours = {tensor.name: tensor for tensor in document.tensors if not tensor.name.startswith(ELSEWHERE)}
    theirs = {name.replace(".", "/") for name, _ in (*module.named_parameters(), *module.named_buffers())}
    found = [f"only torch has {name!r}" for name in sorted(theirs - ours.keys())]
    compared = 0
    for name, tensor in ours.items():
        value = _reach(module._c, name.split("/"))
        if value is None:
            continue  # within an object of an extension: its class holds it in a form of its own
        compared += 1
        found += [f"{name!r}: {what}" for what in _differences(document, tensor, value)]
    return compared, found


def _reach(value: Any, path: list[str]) -> Any:
    """The tensor at a path of attributes, positions and keys; None where the path leads elsewhere."""
    import torch

    for part in path:
        if isinstance(value, (torch._C.ScriptModule, torch._C.ScriptObject)):
            if not value.hasattr(part):
                return None
            value = value.getattr(part)
        elif isinstance(value, (list, tuple)) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part, value.get(int(part)) if part.isdecimal() else None)
        else:
            return None
    return value if isinstance(value, torch.Tensor) else None


def _by_bytes(document: TorchDocument, module: Any) -> tuple[int, list[str]]:
    """A mobile module does not name its tensors one by one: each parameter and buffer is one of ours by shape and bytes."""
    ours = [(_view(tensor), _bytes(document, tensor)) for tensor in document.tensors]
    found: list[str] = []
    compared = 0
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        compared += 1
        view = (str(value.dtype).removeprefix("torch."), tuple(value.shape), tuple(value.stride()), value.storage_offset())
        if (view, bytes(value.untyped_storage())) not in ours:
            found.append(f"{name!r}: no tensor {view} with these bytes")
    return compared, found


def _view(tensor: Tensor) -> tuple[Any, ...]:
    return (tensor.dtype.name if tensor.dtype else None, tensor.shape, tensor.stride, tensor.storage_offset)


def _bytes(document: TorchDocument, tensor: Tensor) -> bytes | None:
    """The bytes of its storage as they lie in the record."""
    storage = tensor.storage
    if storage is None or storage.span is not None:
        return document.source.read_at(storage.span.offset, storage.span.length) if storage and storage.span else None
    index = next((number for number, record in enumerate(document.records) if record.name == storage.record), None)
    read = contents(document, index, document.records[index].size) if index is not None else None
    return read[0] if read is not None else None


def _differences(document: TorchDocument, ours: Tensor, theirs: Any) -> Iterator[str]:
    view = (str(theirs.dtype).removeprefix("torch."), tuple(theirs.shape), tuple(theirs.stride()), theirs.storage_offset())
    if _view(ours) != view:
        yield f"{_view(ours)}, torch {view}"
    if ours.storage is not None and _bytes(document, ours) != bytes(theirs.untyped_storage()):
        yield "other bytes"


if __name__ == "__main__":
    sys.exit(oracle.run(compare, sys.argv[1:]))
