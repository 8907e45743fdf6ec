# SPDX-License-Identifier: Apache-2.0
"""Reads .pt2 archives of torch.export (format.md 3.5): configurations of weights and constants, and the files inside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.nested import judge_records
from fdd.formats.pytorch.zipped import contents
from fdd.tensors.dtypes import DTYPES, DType
from fdd.tensors.model import Storage, Tensor

CONFIG_SUFFIXES = ("_weights_config.json", "_constants_config.json")
NESTED_HEADS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
STRIDED_LAYOUT = 7
SCHEMA_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64", 9: "complex32",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2",
    31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
"""Numbers of element types in the export schema (not torch's ScalarType numbers)."""


@dataclass(slots=True)
class ProgramFault:
    """Something in a configuration that is not as the schema has it. ``code``: not-json, not-object, entry, dtype, layout."""

    code: str
    record: str
    span: Span | None
    detail: str


@dataclass(slots=True)
class ProgramFacts:
    """What the configurations of a .pt2 say. ``missing`` are (configuration, name of the weight, record it should be in)."""

    faults: list[ProgramFault] = field(default_factory=list)
    missing: list[tuple[str, Span | None, str, str]] = field(default_factory=list)
    weights: int = 0


def read_program(document: TorchDocument, probe: Probe) -> None:
    """Fill in storages and tensors from the configurations, and judge the torch files inside."""
    facts = ProgramFacts()
    document.facts["program"] = facts
    pickled: set[str] = set()
    for index, record in enumerate(document.records):
        if record.name.endswith(CONFIG_SUFFIXES):
            pickled |= _read_config(document, probe, index, facts)
    judge_records(document, probe, _nested_records(document, pickled))


def _nested_records(document: TorchDocument, pickled: set[str]) -> Iterator[int]:
    """Records that are files of their own, by what they begin with: early releases called them .json."""
    for index, record in enumerate(document.records):
        if record.role not in ("nested", "storage", "extra-file") or record.span is None:
            continue
        named = record.role == "nested" or record.name in pickled or record.name.endswith(".pt")
        if named and (record.method != "stored" or document.source.read_at(record.span.offset, 4).startswith(NESTED_HEADS)):
            yield index


def _read_config(document: TorchDocument, probe: Probe, index: int, facts: ProgramFacts) -> set[str]:
    record = document.records[index]
    read = contents(document, index, probe.limits.inflated_bytes)
    if read is None:
        return set()
    try:
        config = json.loads(read[0].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.faults.append(ProgramFault("not-json", record.name, record.span, str(error)))
        return set()
    entries = config.get("config") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        facts.faults.append(ProgramFault("not-object", record.name, record.span, "no object under the key config"))
        return set()
    folder = record.name.rpartition("/")[0]
    pickled: set[str] = set()
    for name, entry in entries.items():
        facts.weights += 1
        path = entry.get("path_name") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            facts.faults.append(ProgramFault("entry", record.name, record.span, f"{name}: no path_name"))
            continue
        full = f"{folder}/{path}"
        if entry.get("use_pickle") is True or path.startswith("custom_obj"):
            pickled.add(full)
            _find(document, full, facts, record.name, record.span, name)
        else:
            _weight(document, facts, record.name, record.span, name, full, entry)
    return pickled


def _find(document: TorchDocument, full: str, facts: ProgramFacts, config: str, span: Span | None, name: str) -> int | None:
    index = next((number for number, record in enumerate(document.records) if record.name == full), None)
    if index is None:
        facts.missing.append((config, span, name, full))
    return index


def _weight(
    document: TorchDocument, facts: ProgramFacts, config: str, span: Span | None, name: str, full: str, entry: Mapping[str, Any]
) -> None:
    meta = entry.get("tensor_meta")
    index = _find(document, full, facts, config, span, name)
    if not isinstance(meta, dict):
        facts.faults.append(ProgramFault("entry", config, span, f"{name}: no tensor_meta"))
        return
    dtype = _dtype(meta.get("dtype"))
    if dtype is None:
        facts.faults.append(ProgramFault("dtype", config, span, f"{name}: dtype number {meta.get('dtype')!r}"))
    if meta.get("layout") != STRIDED_LAYOUT:
        facts.faults.append(ProgramFault("layout", config, span, f"{name}: layout number {meta.get('layout')!r}"))
    record = document.records[index] if index is not None else None
    device = meta.get("device")
    location = device.get("type") if isinstance(device, dict) and isinstance(device.get("type"), str) else None
    storage = next((known for known in document.storages if known.record == full), None)
    if storage is None:
        count = record.size // dtype.size if record is not None and dtype is not None else None
        type_name = dtype.name if dtype is not None else "unknown"
        storage = Storage(full.rpartition("/")[2], dtype, type_name, location, count, record=full, source=config)
        if record is not None:
            storage.stored_size = record.size
            storage.span = record.span if record.method == "stored" else None
        document.storages.append(storage)
    document.tensors.append(
        Tensor(
            name=name,
            dtype=dtype,
            shape=_numbers(meta.get("sizes")),
            stride=_numbers(meta.get("strides")),
            storage_offset=_number(meta.get("storage_offset")),
            storage=storage,
            requires_grad=meta.get("requires_grad") if isinstance(meta.get("requires_grad"), bool) else None,
            parameter=entry.get("is_param") is True,
            location=location,
            function="weights configuration",
        )
    )


def _dtype(number: Any) -> DType | None:
    return DTYPES.get(SCHEMA_DTYPES.get(number, "")) if isinstance(number, int) and not isinstance(number, bool) else None


def _number(value: Any) -> int | None:
    """A whole number of the schema: `{"as_int": n}`."""
    number = value.get("as_int") if isinstance(value, dict) else value
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _numbers(values: Any) -> tuple[int, ...] | None:
    if not isinstance(values, list):
        return None
    numbers = [_number(value) for value in values]
    return tuple(number for number in numbers if number is not None) if None not in numbers else None
