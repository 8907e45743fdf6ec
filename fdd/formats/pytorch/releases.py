# SPDX-License-Identifier: Apache-2.0
"""Which releases of torch can have written a file (history.md). No record states it: this is an inference from clues.

A clue is something the bytes show that releases before or after a certain one do not write. The range is as narrow as
the clues that are present allow; ``basis`` names those that set its ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS, SCRIPT_KINDS

Release = tuple[int, int]
POINTER_DIGITS = 10
"""Storage names of 1.4 to 1.8 are addresses, 14 digits in practice; counters never get that long."""

DTYPE_SINCE: dict[str, Release] = {
    "float8_e4m3fn": (2, 1),
    "float8_e5m2": (2, 1),
    "float8_e4m3fnuz": (2, 1),
    "float8_e5m2fnuz": (2, 1),
    "uint16": (2, 3),
    "uint32": (2, 3),
    "uint64": (2, 3),
    "float8_e8m0fnu": (2, 7),
    "float4_e2m1fn_x2": (2, 8),
}
PROGRAM_SCHEMAS: dict[str, Release] = {
    "1": (2, 1),
    "2": (2, 2),
    "5.1": (2, 3),
    "5.3": (2, 4),
    "7.3": (2, 5),
    "8.2": (2, 6),
    "8.7": (2, 7),
}
"""Text of `version` in a .pt2 of Python's zipfile -> the release that writes it."""


@dataclass(frozen=True, slots=True)
class Clue:
    """What was seen, and the first and last release that write it; None where there is no bound on that side."""

    what: str
    first: Release | None = None
    last: Release | None = None


def torch_releases(document: TorchDocument) -> dict[str, object] | None:
    """The range of releases as `{"min", "max", "basis"}`, None where nothing tells."""
    return range_of(clues_of(document))


def range_of(found: Iterable[Clue]) -> dict[str, object] | None:
    """The range that clues leave. Those that contradict each other (a file put together by hand) give none at all."""
    clues = list(found)
    first = max((clue.first for clue in clues if clue.first is not None), default=None)
    last = min((clue.last for clue in clues if clue.last is not None), default=None)
    if not clues or (first is not None and last is not None and first > last):
        return None
    basis = [clue.what for clue in clues if (clue.first == first and first) or (clue.last == last and last)]
    return {"min": _text(first), "max": _text(last), "basis": list(dict.fromkeys(basis))}


def _text(release: Release | None) -> str | None:
    return f"{release[0]}.{release[1]}" if release is not None else None


def clues_of(document: TorchDocument) -> Iterator[Clue]:
    """Everything that dates a file."""
    kind = document.kind
    if kind in EAGER_KINDS or kind == "incomplete-save":
        yield from _eager_clues(document)
    elif kind in SCRIPT_KINDS:
        yield from _script_clues(document)
    elif kind == "torch-package":
        yield from _package_clues(document)
    elif kind == "pt2":
        yield from _program_clues(document)
    elif kind == "torch-legacy":
        yield Clue("legacy stream", (0, 1))
    elif kind == "torch-tar":
        yield Clue("tar form", (0, 1), (0, 1))
    yield from _content_clues(document)


def _eager_clues(document: TorchDocument) -> Iterator[Clue]:
    texts = document.texts
    version = texts.get("version", b"").strip()
    if ".format_version" in texts or ".storage_alignment" in texts:
        yield Clue(next(name for name in (".format_version", ".storage_alignment") if name in texts), (2, 7))
    elif "byteorder" in texts or ".data/serialization_id" in texts:
        # A save that was stopped early never got to .format_version, but closing the archive wrote these (format.md 1.2).
        stopped = document.kind == "incomplete-save"
        yield Clue("byteorder" if stopped else "byteorder without .format_version", (2, 1), None if stopped else (2, 6))
    elif version in (b"1", b"2") and _version_first(document):
        release = (1, 4) if version == b"1" else (1, 5)
        yield Clue(f"version {version.decode()} as the first record", release, release)
    else:
        yield Clue("no byteorder record", (1, 6) if version == b"3" else (1, 4), (2, 0))
        yield from _name_clues(document)
    if _crc_off(document):
        yield Clue("no checksums recorded", (2, 6))


def _version_first(document: TorchDocument) -> bool:
    return bool(document.records) and document.local_name(document.records[0].name) == "version"


def _name_clues(document: TorchDocument) -> Iterator[Clue]:
    """Names of storages and of the top folder, which tell releases before 2.1 apart."""
    numbers = [name.rpartition("/")[2] for name in (record.name for record in document.records if record.role == "storage")]
    numbers = [number for number in numbers if number.isdigit()]
    if any(len(number) >= POINTER_DIGITS for number in numbers):
        yield Clue("storages named by addresses", last=(1, 8))
    elif numbers:
        yield Clue("storages numbered from 0", (1, 9))
    if document.root and document.root != "archive":
        yield Clue("top folder named like the file", (1, 13))


def _crc_off(document: TorchDocument) -> bool:
    filled = [record for record in document.records if record.size]
    return bool(filled) and all(record.crc32 == 0 for record in filled)


def _script_clues(document: TorchDocument) -> Iterator[Clue]:
    names = {document.local_name(record.name) for record in document.records}
    if document.kind == "torchscript-json":
        if any(name.startswith("debug/") for name in names):
            yield Clue("model.json with debug/", (1, 2), (1, 2))
        elif "attributes.pkl" in names:
            yield Clue("model.json with attributes.pkl", (1, 1), (1, 2))
        else:
            yield Clue("model.json without attributes.pkl", (1, 0), (1, 0))
        return
    version = document.texts.get("version", b"").strip()
    if "byteorder" in document.texts or ".data/serialization_id" in document.texts:
        yield Clue("byteorder", (2, 1))
    elif version == b"1":
        dated = any(record.entry is not None and record.entry.date for _, record in document.zip_records())
        yield Clue("version 1 with dates", (1, 3), (1, 3)) if dated else Clue("version 1 without dates", (1, 4), (1, 4))
    elif version == b"2":
        yield Clue("version 2", (1, 5), (1, 5))
    else:
        yield Clue("no byteorder record", (1, 6), (2, 0))
    if "traced_inputs.pkl" in names:
        yield Clue("traced_inputs.pkl", (2, 0))
    if "bytecode.pkl" in names:
        yield Clue("bytecode.pkl", (1, 5))


def _package_clues(document: TorchDocument) -> Iterator[Clue]:
    yield Clue("byteorder", (2, 1)) if "byteorder" in document.texts else Clue("no byteorder record", (1, 9), (2, 0))
    if ".data/python_version" in document.texts:
        yield Clue(".data/python_version", (1, 12))
    if any(re.search(rf"\.data/\d{{{POINTER_DIGITS},}}\.storage$", record.name) for record in document.records):
        yield Clue("storages named by addresses", last=(1, 9))


def _program_clues(document: TorchDocument) -> Iterator[Clue]:
    if not document.root:
        version = document.texts.get("version", b"").decode("ascii", "replace").strip()
        if version in PROGRAM_SCHEMAS:
            yield Clue(f"schema version {version}", PROGRAM_SCHEMAS[version], PROGRAM_SCHEMAS[version])
        else:
            yield Clue("plain ZIP", (2, 1), (2, 7))
        return
    names = [document.local_name(record.name) for record in document.records]
    if any(name.endswith("_weights_config.json") for name in names):
        yield Clue("weights configuration", (2, 9))
    elif any(name.startswith("data/weights/") and name.endswith(".pt") for name in names):
        yield Clue("weights as a torch file inside", (2, 8), (2, 8))
    else:
        yield Clue("archive_format", (2, 8))


def _content_clues(document: TorchDocument) -> Iterator[Clue]:
    """What the pickles hold: element types and functions that came with a release, opcodes that only Python 2 writes."""
    for dtype in sorted({tensor.dtype.name for tensor in document.tensors if tensor.dtype is not None} & DTYPE_SINCE.keys()):
        yield Clue(f"dtype {dtype}", DTYPE_SINCE[dtype])
    names = {use.name for use in document.globals}
    if "_rebuild_sparse_csr_tensor" in names:
        yield Clue("_rebuild_sparse_csr_tensor", (1, 10), (1, 13))
    if "_rebuild_tensor_v3" in names:
        yield Clue("_rebuild_tensor_v3", (2, 1))
    elif "_rebuild_tensor_v2" in names and document.kind == "torch-legacy":
        yield Clue("_rebuild_tensor_v2", (0, 4))
    judged = [pickle for pickle in document.judged_pickles() if pickle.role in ("object", "packaged")]
    byte_strings = any({"SHORT_BINSTRING", "BINSTRING"} & pickle.facts.opcodes.keys() for pickle in judged)
    if document.kind not in SCRIPT_KINDS and byte_strings:
        yield Clue("byte strings of Python 2", last=(1, 4))
