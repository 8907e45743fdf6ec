# SPDX-License-Identifier: Apache-2.0
"""Reads the configurations of a .pt2 archive that describe weights and constants (format.md 3.5), into storages and tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.export_facts import ProgramFacts, ProgramFault
from fdd.formats.pytorch.zipped import contents
from fdd.tensors.dtypes import DTYPES, DType
from fdd.tensors.model import Storage, Tensor

CONFIG_SUFFIXES = ("_weights_config.json", "_constants_config.json")
STRIDED_LAYOUT = 7
SCHEMA_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64", 9: "complex32",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2",
    31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
"""Numbers of element types in the export schema (not torch's ScalarType numbers)."""
OBJECT_PREFIXES = ("custom_obj", "opaque_obj")
OPAQUE_PREFIX = "opaque_obj"
"""Payloads that are bare pickles; all other pickled ones are torch files."""


def read_payloads(document: TorchDocument, probe: Probe, facts: ProgramFacts) -> None:
    """Read every configuration; fill in storages and tensors, and state what is wrong with them."""
    configs = [index for index, record in enumerate(document.records) if record.name.endswith(CONFIG_SUFFIXES)]
    reader = _PayloadReader(document, facts, len({_model_of(document, index) for index in configs}) > 1)
    for index in configs:
        config = _entries(document, probe, index, facts)
        for name, entry in config.items():
            reader.read(index, _model_of(document, index), name, entry)


def _model_of(document: TorchDocument, index: int) -> str:
    """The model that a configuration is of."""
    name = document.records[index].name.rpartition("/")[2]
    return next(name.removesuffix(suffix) for suffix in CONFIG_SUFFIXES if name.endswith(suffix))


def _entries(document: TorchDocument, probe: Probe, index: int, facts: ProgramFacts) -> Mapping[str, Any]:
    record = document.records[index]
    read = contents(document, index, probe.limits.inflated_bytes)
    if read is None:
        return {}
    if len(read[0]) < record.size and record.size > probe.limits.inflated_bytes:
        facts.limited = True
        return {}
    try:
        config = json.loads(read[0].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.faults.append(ProgramFault("not-json", record.name, record.span, str(error)))
        return {}
    entries = config.get("config") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        facts.faults.append(ProgramFault("not-object", record.name, record.span, "no object under the key config"))
        return {}
    return entries


class _PayloadReader:
    """Turns the entries of all configurations into storages and tensors."""

    def __init__(self, document: TorchDocument, facts: ProgramFacts, several: bool) -> None:
        self.document = document
        self.facts = facts
        self.several = several
        self.by_name: dict[str, int] = {}
        for index, record in enumerate(document.records):
            self.by_name.setdefault(record.name, index)
        self.storages: dict[str, Storage] = {}

    def read(self, index: int, model: str, name: str, entry: Any) -> None:
        """Read one entry; ``index`` is the record of its configuration."""
        config = self.document.records[index]
        path = entry.get("path_name") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            self._fault("entry", config.name, config.span, f"{name}: no path_name")
            return
        full = f"{config.name.rpartition('/')[0]}/{path}"
        self.facts.described.add(full)
        self.facts.names.setdefault(model, set()).add(name)
        if full not in self.by_name:
            self.facts.missing.append((config.name, config.span, name, full))
        if entry.get("use_pickle") is True or path.startswith(OBJECT_PREFIXES):
            (self.facts.opaque if path.startswith(OPAQUE_PREFIX) else self.facts.pickled).add(full)
        else:
            label = name.replace("~", "~0").replace("/", "~1")
            self._weight(config.name, config.span, f"{model}/{label}" if self.several else label, full, entry)

    def _fault(self, code: str, record: str, span: Span | None, detail: str) -> None:
        self.facts.faults.append(ProgramFault(code, record, span, detail))

    def _weight(self, config: str, span: Span | None, name: str, full: str, entry: Mapping[str, Any]) -> None:
        meta = entry.get("tensor_meta")
        if not isinstance(meta, dict):
            self._fault("entry", config, span, f"{name}: no tensor_meta")
            return
        dtype = _dtype(meta.get("dtype"))
        if dtype is None:
            self._fault("dtype", config, span, f"{name}: dtype number {meta.get('dtype')!r}")
        if meta.get("layout") != STRIDED_LAYOUT:
            self._fault("layout", config, span, f"{name}: layout number {meta.get('layout')!r}")
        device = meta.get("device")
        location = device.get("type") if isinstance(device, dict) and isinstance(device.get("type"), str) else None
        grad = meta.get("requires_grad")
        self.document.tensors.append(
            Tensor(
                name=name,
                dtype=dtype,
                shape=_numbers(meta.get("sizes")),
                stride=_numbers(meta.get("strides")),
                storage_offset=_number(meta.get("storage_offset")),
                storage=self._storage(full, dtype, location, config),
                requires_grad=grad if isinstance(grad, bool) else None,
                parameter=entry.get("is_param") is True,
                location=location,
                function="weights configuration",
            )
        )

    def _storage(self, full: str, dtype: DType | None, location: str | None, config: str) -> Storage:
        storage = self.storages.get(full)
        if storage is not None:
            return storage
        record = self.document.records[self.by_name[full]] if full in self.by_name else None
        count = record.size // dtype.size if record is not None and dtype is not None else None
        type_name = dtype.name if dtype is not None else "unknown"
        storage = Storage(full.rpartition("/")[2], dtype, type_name, location, count, record=full, source=config)
        if record is not None:
            storage.stored_size = record.size
            storage.span = record.span if record.method == "stored" else None
        self.storages[full] = storage
        self.document.storages.append(storage)
        return storage


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
