# SPDX-License-Identifier: Apache-2.0
"""Reads what is special in TorchScript archives (format.md 3.4): code as text, bytecode, model.json. Code is never run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import CodeUse, PickleRecord, TorchDocument
from fdd.formats.pytorch.pickle_values import int_of
from fdd.formats.pytorch.zipped import contents
from fdd.pickles.nodes import Global, ListNode
from fdd.tensors.dtypes import DTYPES
from fdd.tensors.model import Storage, Tensor, contiguous_stride

BUILT_IN_CLASSES = "__torch__.torch.classes."
"""Classes that come with torch or an extension: the archive has no code for them."""
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.])((?:\w+\.)*\w+)\s*\(")
_TEXT_OR_COMMENT = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*")
_DANGEROUS_OPERATOR = re.compile(
    r"(?:torch|ops\.aten|aten)\.(?:from_file|save|load|_load\w*|tofile)"
    r"|(?:ops\.)?(?:prim\.)?rpc_(?:async|sync|remote)"
    r"|(?:torch\.)?ops\.\w+\.\w*(?:read_file|write_file|load_audio_file|save_audio_file|apply_effects_file|from_file|to_file"
    r"|open|socket|exec|system|shell|popen|load_library|download|url)\w*"
)
"""Operators with which code reaches files, other processes or the network."""

JSON_DTYPES = {
    "FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "HALF": "float16", "BFLOAT16": "bfloat16", "INT8": "int8",
    "UINT8": "uint8", "BYTE": "uint8", "INT16": "int16", "INT32": "int32", "INT64": "int64", "BOOL": "bool",
}  # fmt: skip
"""Names of element types in model.json."""
FIRST_BYTECODE, LAST_BYTECODE = 4, 9


@dataclass(slots=True)
class ScriptFacts:
    """Code and bytecode of a TorchScript archive.

    ``modules`` are dotted names that have a code file; ``classes`` the classes defined in them. ``missing_code`` are
    (class, record that should define it, span of the pickle's mention, record of the pickle).
    """

    modules: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    undecodable: list[tuple[str, Span]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    missing_code: list[tuple[str, str, Span, str | None]] = field(default_factory=list)
    bytecode_version: int | None = None
    bytecode_span: Span | None = None
    json_fault: str | None = None
    missing_tensors: list[tuple[str, str]] = field(default_factory=list)
    """Of model.json: (name of the tensor, record it should be in)."""


def read_script(document: TorchDocument, probe: Probe) -> None:
    """State what code and bytecode say; of model.json also storages and tensors."""
    facts = ScriptFacts()
    document.facts["script"] = facts
    for index, record in enumerate(document.records):
        if record.role == "code":
            document.has_code = True
            _read_code(document, probe, index, facts)
    _find_missing_code(document, facts)
    _read_bytecode_version(document, facts)
    if document.kind == "torchscript-json":
        _read_model_json(document, probe, facts)


def module_of(local: str) -> str | None:
    """Dotted module name of a code record below the top folder; None for records that are no Python-like source."""
    for folder in ("code/", "libs/", "ts_code/code/"):
        if local.startswith(folder) and local.endswith(".py"):
            return local[len(folder) : -3].replace("/", ".")
    return None


def _read_code(document: TorchDocument, probe: Probe, index: int, facts: ScriptFacts) -> None:
    record = document.records[index]
    read = contents(document, index, probe.limits.inflated_bytes)
    if read is None or record.span is None:
        facts.unreadable.append(record.name)
        document.followed = False
        return
    data, shift = read
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = Span(shift + error.start, error.end - error.start) if shift is not None else record.span
        facts.undecodable.append((record.name, place))
        source = data.decode("utf-8", "replace")
    module = module_of(document.local_name(record.name))
    if module is not None:
        facts.modules.add(module)
        facts.classes |= {f"{module}.{name}" for name in _CLASS.findall(source)}
    for name, offset in operators(source):
        place = record.span if shift is None else Span(shift + len(source[:offset].encode("utf-8")), len(name))
        grade = "dangerous" if _DANGEROUS_OPERATOR.fullmatch(name) else "listed"
        if grade == "dangerous":
            document.code.append(CodeUse(name, grade, record.name, place))


def operators(source: str) -> Iterator[tuple[str, int]]:
    """The dotted names that the code calls, with their offset in characters; texts and comments are passed over."""
    blanked = _TEXT_OR_COMMENT.sub(lambda match: " " * len(match.group()), source)
    yield from ((match.group(1), match.start(1)) for match in _CALL.finditer(blanked))


def _find_missing_code(document: TorchDocument, facts: ScriptFacts) -> None:
    if document.kind == "torchscript-json":
        return
    known = {document.local_name(record.name) for record in document.records}
    told: set[str] = set()
    for pickle in document.judged_pickles():
        for event in pickle.facts.events:
            node = event.value
            if event.what != "global" or not isinstance(node, Global) or not node.module.startswith("__torch__"):
                continue
            if node.path.startswith(BUILT_IN_CLASSES) or node.path in told:
                continue
            told.add(node.path)
            expected = f"code/{node.module.replace('.', '/')}.py"
            if expected not in known:
                facts.missing_code.append((node.path, expected, pickle.place(event.offset), pickle.record))


def _read_bytecode_version(document: TorchDocument, facts: ScriptFacts) -> None:
    """The first item of bytecode.pkl; 1.5 and 1.6 have none there, but a function."""
    pickle = next((found for found in document.judged_pickles() if found.role == "bytecode"), None)
    if pickle is None:
        return
    facts.bytecode_span = pickle.span
    facts.bytecode_version = _first_number(pickle)


def _first_number(pickle: PickleRecord) -> int | None:
    root = pickle.facts.root
    items = root.items if isinstance(root, ListNode) else root
    return int_of(items[0]) if isinstance(items, (tuple, list)) and items else None


def _read_model_json(document: TorchDocument, probe: Probe, facts: ScriptFacts) -> None:
    index = document.find("model.json")
    read = contents(document, index, probe.limits.inflated_bytes) if index is not None else None
    if read is None:
        facts.json_fault = "it cannot be read"
        return
    try:
        model = json.loads(read[0].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.json_fault = str(error)
        return
    tensors = model.get("tensors", []) if isinstance(model, dict) else None
    if not isinstance(tensors, list) or not isinstance(model.get("mainModule"), dict):
        facts.json_fault = "no tensors or no main module in it"
        return
    names = dict(_tensor_names(model["mainModule"]))
    for number, entry in enumerate(tensors):
        if isinstance(entry, dict):
            _json_tensor(document, facts, names.get(str(number), f"tensor {number}"), entry)
        else:
            facts.json_fault = f"tensor {number} is no object"


def _tensor_names(module: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(tensor id, name) of all parameters, by way of the modules; iterative, because files may nest without end."""
    stack: list[tuple[str, Any]] = [("", module)]
    while stack:
        path, current = stack.pop()
        if not isinstance(current, dict):
            continue
        for parameter in current.get("parameters", []) if isinstance(current.get("parameters"), list) else ():
            if isinstance(parameter, dict):
                yield str(parameter.get("tensorId")), f"{path}{parameter.get('name')}"
        for inner in current.get("submodules", []) if isinstance(current.get("submodules"), list) else ():
            if isinstance(inner, dict):
                stack.append((f"{path}{inner.get('name')}/", inner))


def _json_tensor(document: TorchDocument, facts: ScriptFacts, name: str, entry: Mapping[str, Any]) -> None:
    data = entry.get("data")
    key = data.get("key") if isinstance(data, dict) else None
    dtype = DTYPES.get(JSON_DTYPES.get(str(entry.get("dataType")), ""))
    shape = _integers(entry.get("dims", []))
    stride = _integers(entry["strides"]) if "strides" in entry else contiguous_stride(shape or ())
    device = entry.get("device") if isinstance(entry.get("device"), str) else None
    storage = next((known for known in document.storages if known.key == key), None) if isinstance(key, str) else None
    if storage is None and isinstance(key, str):
        storage = _json_storage(document, facts, name, key, dtype.name if dtype else str(entry.get("dataType")), device)
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


def _json_storage(
    document: TorchDocument, facts: ScriptFacts, name: str, key: str, type_name: str, device: str | None
) -> Storage:
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
        if isinstance(value, bool) or not isinstance(value, (int, str)) or not re.fullmatch(r"-?\d{1,20}", str(value)):
            return None
        numbers.append(int(value))
    return tuple(numbers)
