# SPDX-License-Identifier: Apache-2.0
"""Reads model.json of TorchScript archives of 1.0 to 1.2: modules, the code and debug records they name, tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.zipped import contents
from fdd.tensors.dtypes import DTYPES
from fdd.tensors.model import Storage, Tensor, contiguous_stride

JSON_DTYPES = {
    "FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "HALF": "float16", "BFLOAT16": "bfloat16", "INT8": "int8",
    "UINT8": "uint8", "BYTE": "uint8", "INT16": "int16", "INT32": "int32", "INT64": "int64", "BOOL": "bool",
}  # fmt: skip
"""Names of element types in model.json."""
ARENAS = ("torchscriptArena", "torchscriptDebugArena", "pickleArena")
"""Keys of a module whose object names a record under `key`."""
ATTRIBUTES = "attributes.pkl"


class ModelJson:
    """What model.json says. ``missing`` are (what refers to it, record) of records that are not there."""

    def __init__(self) -> None:
        self.fault: str | None = None
        self.missing_tensors: list[tuple[str, str]] = []
        self.missing_records: list[tuple[str, str]] = []


def read_model_json(document: TorchDocument, probe: Probe) -> ModelJson:
    """Fill in storages and tensors, and state what is missing."""
    facts = ModelJson()
    index = document.find("model.json")
    read = contents(document, index, probe.limits.inflated_bytes) if index is not None else None
    if read is None:
        facts.fault = "it cannot be read"
        return facts
    try:
        model = json.loads(read[0].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.fault = str(error)
        return facts
    tensors = model.get("tensors", []) if isinstance(model, dict) else None
    if not isinstance(tensors, list) or not isinstance(model.get("mainModule"), dict):
        facts.fault = "no tensors or no main module in it"
        return facts
    names: dict[str, str] = {}
    for path, module in _modules(model["mainModule"]):
        names.update(_parameters(path, module))
        facts.missing_records += _missing_records(document, path, module)
    for number, entry in enumerate(tensors):
        if isinstance(entry, dict):
            _tensor(document, facts, names.get(str(number), f"tensor {number}"), entry)
        else:
            facts.fault = f"tensor {number} is no object"
    for number in sorted(int(key) for key in names if key.isdecimal() and len(key) < 10 and int(key) >= len(tensors)):
        facts.fault = f"{names[str(number)]} is tensor {number} of {len(tensors)}"
    return facts


def _modules(module: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, module) of the main module and all below it; iterative, because files may nest without end."""
    stack: list[tuple[str, Any]] = [("", module)]
    while stack:
        path, current = stack.pop()
        if not isinstance(current, dict):
            continue
        yield path, current
        inner = current.get("submodules")
        stack.extend(
            (f"{path}{part.get('name')}/", part) for part in (inner if isinstance(inner, list) else ()) if isinstance(part, dict)
        )


def _parameters(path: str, module: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(tensor id, name) of the parameters of one module."""
    parameters = module.get("parameters")
    for parameter in parameters if isinstance(parameters, list) else ():
        if isinstance(parameter, dict):
            yield str(parameter.get("tensorId")), f"{path}{parameter.get('name')}"


def _missing_records(document: TorchDocument, path: str, module: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    where = f"the module {path.rstrip('/')}" if path else "the main module"
    for arena in ARENAS:
        named = module.get(arena)
        key = named.get("key") if isinstance(named, dict) else None
        if isinstance(key, str) and document.find(key) is None:
            yield f"{where} ({arena})", key
    attributes = module.get("attributes")
    if isinstance(attributes, list) and attributes and document.find(ATTRIBUTES) is None and _any_pickled(attributes):
        yield f"{where} (attributes)", ATTRIBUTES


def _any_pickled(attributes: list[Any]) -> bool:
    """Attributes lie in attributes.pkl, by their number."""
    return any(isinstance(attribute, dict) and "id" in attribute for attribute in attributes)


def _tensor(document: TorchDocument, facts: ModelJson, name: str, entry: Mapping[str, Any]) -> None:
    data = entry.get("data")
    key = data.get("key") if isinstance(data, dict) else None
    dtype = DTYPES.get(JSON_DTYPES.get(str(entry.get("dataType")), ""))
    shape = _integers(entry.get("dims", []))
    stride = _integers(entry["strides"]) if "strides" in entry else contiguous_stride(shape or ())
    device = entry.get("device") if isinstance(entry.get("device"), str) else None
    storage = next((known for known in document.storages if known.key == key), None) if isinstance(key, str) else None
    if storage is None and isinstance(key, str):
        storage = _storage(document, facts, name, key, dtype.name if dtype else str(entry.get("dataType")), device)
    offset = _integers([entry.get("offset", 0)])
    document.tensors.append(
        Tensor(
            name=name,
            dtype=dtype,
            shape=shape,
            stride=stride,
            storage_offset=offset[0] if offset else None,
            storage=storage,
            requires_grad=entry.get("requiresGrad") is True,
            location=device,
            function="model.json",
        )
    )


def _storage(document: TorchDocument, facts: ModelJson, name: str, key: str, type_name: str, device: str | None) -> Storage:
    index = document.find(key)
    dtype = DTYPES.get(type_name)
    storage = Storage(key, dtype, type_name, device, None, source="model.json")
    document.storages.append(storage)
    if index is None:
        storage.record = f"{document.root}/{key}" if document.root else key
        facts.missing_tensors.append((name, storage.record))
        return storage
    record = document.records[index]
    storage.record, storage.stored_size = record.name, record.size
    storage.span = record.span if record.method == "stored" else None
    storage.element_count = record.size // dtype.size if dtype is not None else None
    return storage


def _integers(values: Any) -> tuple[int, ...] | None:
    """Whole numbers, which model.json writes as texts; None where something else stands there."""
    if not isinstance(values, list):
        return None
    numbers: list[int] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, str)) or not re.fullmatch(r"-?[0-9]{1,20}", str(value)):
            return None
        numbers.append(int(value))
    return tuple(numbers)
