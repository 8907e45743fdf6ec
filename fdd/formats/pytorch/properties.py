# SPDX-License-Identifier: Apache-2.0
"""Technical metadata of a PyTorch file as plain data (contract, section 4, `properties`)."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from fdd.formats.pytorch.document import GlobalUse, PickleRecord, TorchDocument
from fdd.formats.pytorch.globals import modern_name
from fdd.formats.pytorch.identify import ZIP_KINDS
from fdd.formats.pytorch.names import VERSION_NAMES
from fdd.formats.pytorch.persistent_ids import ModuleSource
from fdd.formats.pytorch.plain import plain_values, text
from fdd.formats.pytorch.releases import Clue, clues_of, range_of, torch_releases
from fdd.pickles.nodes import MISSING
from fdd.tensors.model import Storage, Tensor, unused_bytes

T = TypeVar("T")
MOST_LISTED = 200
"""Entries of one list in the properties; counts are always complete."""


ARCHIVES = "archives"
"""The fact that a file consists of several archives: a list of their summaries."""


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """What the properties of a file say that consists of several archives: what they agree in."""

    byte_order: str
    version: int | None
    record_count: int
    clues: tuple[Clue, ...]


def summary_of(document: TorchDocument) -> ArchiveSummary:
    """Of one of the archives of a file."""
    clues = tuple(clues_of(document))
    return ArchiveSummary(byte_order(document), _archive_version(document), len(document.records), clues)


def _agreed(values: Iterable[T]) -> T | None:
    different = set(values)
    return different.pop() if len(different) == 1 else None


def properties_of(document: TorchDocument) -> dict[str, Any]:
    """The properties that the file has; those that do not apply to its kind are left out."""
    found: dict[str, Any] = {"content": document.content}
    archives: list[ArchiveSummary] = document.facts.get(ARCHIVES, [])
    if archives:
        found["byte_order"] = _agreed(archive.byte_order for archive in archives) or "unknown"
        found["archive_version"] = _agreed(archive.version for archive in archives)
        found["record_count"] = sum(archive.record_count for archive in archives)
    elif document.kind in ZIP_KINDS:
        found["byte_order"] = byte_order(document)
        found["archive_version"] = _archive_version(document)
        found["top_folder"] = text(document.root)
        found["record_count"] = len(document.records)
    elif document.legacy is not None or document.tar_model is not None:
        found["byte_order"] = byte_order(document)
        found["record_count"] = len(document.records)
    protocols = [pickle.facts.protocol for pickle in document.judged_pickles() if pickle.role == "object"]
    if protocols:
        found["pickle_protocol"] = max(protocols)
    releases = range_of(clue for archive in archives for clue in archive.clues) if archives else torch_releases(document)
    if releases is not None:
        found["torch_releases"] = releases
    if document.all_tensors() or document.all_storages():
        found.update(_tensor_counts(document))
    if document.pickles:
        found["globals"] = _globals(document)
        found["dependencies"] = dependencies(document.globals)
        found["metadata"] = _metadata(document)
    kept = document.facts.get("module-sources", ())
    if any(module.source for _, module in kept):
        found["embedded_sources"] = [_source(pickle, module) for pickle, module in kept if module.source]
    return found


def _source(pickle: PickleRecord, module: ModuleSource) -> dict[str, Any]:
    return {
        "name": text(module.class_name),
        "file": text(module.source_file),
        "offset": pickle.place(module.offset).offset,
        "length": len(module.source),
        "sha256": hashlib.sha256(module.source).hexdigest(),
    }


def byte_order(document: TorchDocument) -> str:
    """`little`, `big`, or `unknown` where no record says so (writers before 2.1 stored their host's order silently).

    The forms before the ZIP are little-endian, whichever machine wrote them.
    """
    if document.legacy is not None or document.tar_model is not None:
        return "little"
    stated = document.texts.get("byteorder")
    return stated.decode() if stated in (b"little", b"big") else "unknown"


def _archive_version(document: TorchDocument) -> int | None:
    """The number in the version record; None where there is none or it is no number (rules tell of that)."""
    stated = next((document.texts[name] for name in VERSION_NAMES if name in document.texts), None)
    word = stated.decode("ascii", "replace").strip() if stated is not None else ""
    return int(word) if word.isdigit() and len(word) < 10 else None


def _tensor_counts(document: TorchDocument) -> dict[str, Any]:
    tensors = document.all_tensors()
    storages = document.all_storages()
    used = _strided(tensors)
    by_storage: dict[int, list[Tensor]] = {}
    for tensor in used:
        if tensor.storage is not None:
            by_storage.setdefault(id(tensor.storage), []).append(tensor)
    found: dict[str, Any] = {
        "tensor_count": len(tensors),
        "parameter_count": sum(tensor.parameter for tensor in tensors),
        "element_count": sum(_elements(storage, by_storage.get(id(storage), [])) for storage in storages),
        "tensor_bytes": sum(max(storage.byte_count or 0, 0) for storage in storages),
        "tensor_dtypes": _counted(tensor.dtype.name if tensor.dtype is not None else "unknown" for tensor in tensors),
        "storage_count": len(storages),
        "storage_locations": _counted(text(storage.location or "unknown") for storage in storages),
        "bytes_by_dtype": _bytes_by_dtype(storages, by_storage),
        "unused_bytes": sum(unused_bytes(storage, by_storage.get(id(storage), [])) for storage in storages),
        "shared_storages": sum(len(users) > 1 for users in by_storage.values()),
        "tensor_layouts": _counted(tensor.layout for tensor in tensors),
    }
    tied = _tied(by_storage.values())
    if tied:
        found["tied_tensors"] = tied
    schemes = _counted(tensor.quantizer.scheme for tensor in used if tensor.quantizer is not None)
    if schemes:
        found["quantization"] = schemes
    meta = sum(tensor.location == "meta" for tensor in tensors)
    if meta:
        found["tensors_without_data"] = meta
    return found


def _strided(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that look at storages themselves: components of sparse and nested ones instead of the whole."""
    found: list[Tensor] = []
    for tensor in tensors:
        found += _strided(tensor.components.values()) if tensor.components else [tensor]
    return found


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _elements(storage: Storage, users: list[Tensor]) -> int:
    """Elements of a storage, each counted once; of an untyped one in the size of the tensors that look at it."""
    count = max(storage.element_count or 0, 0)
    dtypes = {tensor.dtype for tensor in users if tensor.dtype is not None}
    if storage.type_name.endswith("UntypedStorage") and len(dtypes) == 1:
        return count // next(iter(dtypes)).size
    return count


def _bytes_by_dtype(storages: list[Storage], by_storage: dict[int, list[Tensor]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for storage in storages:
        users = by_storage.get(id(storage), [])
        dtype = users[0].dtype if users else storage.dtype
        found[dtype.name if dtype is not None else "unknown"] += max(storage.byte_count or 0, 0)
    return dict(sorted(found.items()))


def _tied(groups: Iterable[list[Tensor]]) -> list[list[str]]:
    """Names that show exactly the same view of the same storage."""
    tied: list[list[str]] = []
    for users in groups:
        views: dict[tuple[object, ...], list[str]] = {}
        for tensor in users:
            views.setdefault((tensor.shape, tensor.stride, tensor.storage_offset), []).append(text(tensor.name))
        tied += [names for names in views.values() if len(names) > 1]
    return tied[:MOST_LISTED]


def _globals(document: TorchDocument) -> list[dict[str, Any]]:
    return [
        {"name": text(use.path), "count": use.count, "offset": use.span.offset, "listed": use.grade == "listed"}
        | ({"dangerous": True} if use.grade == "dangerous" else {})
        for use in document.globals[:MOST_LISTED]
    ]


def dependencies(uses: Iterable[GlobalUse]) -> list[dict[str, Any]]:
    """What loading needs beside the file: classes and functions by their package, torch's own unlisted ones included."""
    packages: dict[str, list[str]] = {}
    for use in uses:
        if use.grade == "listed":
            continue
        module, name = modern_name(use.module, use.name)
        packages.setdefault(module.split(".")[0], []).append(f"{module}.{name}")
    return [
        {"package": text(package), "origin": _origin(package), "names": sorted({text(name) for name in names})[:MOST_LISTED]}
        for package, names in sorted(packages.items())
    ]


def _origin(package: str) -> str:
    if package in ("torch", "__torch__"):
        return "torch"
    return "python" if package in sys.stdlib_module_names else "other"


def _metadata(document: TorchDocument) -> dict[str, Any]:
    pickle = next((pickle for pickle in document.judged_pickles() if pickle.role == "object"), None)
    return plain_values(pickle.facts.root) if pickle is not None and pickle.facts.root is not MISSING else {}
