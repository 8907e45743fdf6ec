# SPDX-License-Identifier: Apache-2.0
"""Reads mobile modules in FlatBuffers form (format.md 3.6) and the header of ExecuTorch programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, NOT_REQUESTED, Evidence, Record
from fdd.core.span import Span, gaps
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import CodeUse, TorchDocument
from fdd.formats.pytorch.flatbuffers import Field, Schema, Table, Walk, walk
from fdd.tensors.dtypes import DTYPES, SCALAR_TYPES
from fdd.tensors.model import Storage, Tensor

LARGEST_WALKED = 1 << 31
"""FlatBuffers cannot be larger: their offsets are 32-bit."""
MOST_PARTS = 5_000_000
STORAGE_ALIGNMENT = 16


def _fields(text: str) -> tuple[Field, ...]:
    """Fields from `name:type` words; a vector's brackets are part of its type."""
    return tuple(Field(*word.split(":")) for word in text.split())


SCHEMA: Schema = {
    "Module": _fields(
        "bytecode_version:u32 extra_files:[ExtraFile] methods:[u32] state_obj:u32 ivalues:[IValue] storage_data_size:i32"
        " storage_data:[StorageData] object_types:[ObjectType] jit_sources:[ExtraFile] jit_constants:[u32] operator_version:u32"
        " mobile_ivalue_size:u32"
    ),
    "IValue": _fields("type:u8 value:union"),
    "TensorMetadata": _fields(
        "storage:u32 scalar_type:i8 storage_offset:i32 sizes:[i32] strides:[i32] requires_grad:bool quantized:QuantizedSchema"
    ),
    "QuantizedSchema": _fields("qscheme:i8 scale:f64 zero_point:i32 scales:TensorMetadata zero_points:TensorMetadata axis:i32"),
    "StorageData": _fields("data:[u8]"),
    "Function": _fields(
        "name:text instructions:[8-bytes] operators:[Operator] constants:[u32] type_names:[text] register_size:i32"
        " schema:Schema debug_info:DebugInfo class_type:u32"
    ),
    "ExtraFile": _fields("name:text content:text"),
    "ObjectType": _fields("name:text type:u8 attributes:[text]"),
    "String": _fields("data:text"),
    "Device": _fields("data:text"),
    "List": _fields("items:[u32] annotation:text"),
    "Tuple": _fields("items:[u32]"),
    "Dict": _fields("keys:[u32] values:[u32] annotation:text"),
    "IntList": _fields("items:[i64]"),
    "DoubleList": _fields("items:[f64]"),
    "BoolList": _fields("items:[u8]"),
    "Object": _fields("type_index:u32 state:u32 attributes:[u32] setstate:u32"),
    "EnumValue": _fields("name:text value:u32"),
    "Operator": _fields("name:text overload:text argument_count:i32"),
    "Schema": _fields("arguments:[Arg] returns:[Arg]"),
    "Arg": _fields("name:text type:text default:u32"),
    "DebugInfo": _fields("handles:[i64]"),
}
UNIONS = {
    "IValue": {
        1: "i64", 2: "bool", 3: "f64", 4: "16-bytes", 5: "TensorMetadata", 6: "String", 7: "List", 8: "Tuple", 9: "Dict",
        10: "Object", 11: "IntList", 12: "DoubleList", 13: "BoolList", 14: "Device", 15: "EnumValue", 16: "Function",
    }
}  # fmt: skip
"""Value of IValue.type -> what the union holds."""
KNOWN_BYTECODE = range(4, 10)
INDEX_VECTORS = {("List", "items"), ("Tuple", "items"), ("Dict", "keys"), ("Dict", "values"), ("Module", "methods"),
                 ("Module", "jit_constants"), ("Object", "attributes"), ("Function", "constants")}  # fmt: skip
"""Vectors of indexes into the values of the module; a function's constants as well."""
DANGEROUS_OPERATORS = frozenset({"aten::from_file", "aten::save", "prim::rpc_async", "prim::rpc_sync", "prim::rpc_remote"})


@dataclass(slots=True)
class MobileFacts:
    """What a mobile module says and where it breaks its layout."""

    walk: Walk | None = None
    bytecode_version: int | None = None
    operator_version: int | None = None
    operators: dict[str, int] = field(default_factory=dict)
    """Operator name -> offset of its first mention."""
    extra_files: list[str] = field(default_factory=list)
    bad_indexes: list[tuple[str, Span]] = field(default_factory=list)
    storage_count: int = 0
    stated_storages: int | None = None
    stray: list[Span] = field(default_factory=list)
    """Bytes that no part owns and that are not zero."""
    outside_tensors: list[tuple[str, Span, int, int]] = field(default_factory=list)
    """(name, place, bytes needed, bytes there)"""


_I32 = Struct("<i")


def open_mobile(probe: Probe, document: TorchDocument) -> None:
    """Walk a mobile module and fill in storages, tensors, operators and faults."""
    facts = MobileFacts()
    document.facts["mobile"] = facts
    document.has_code = True
    document.evidence["payload"] = NOT_REQUESTED
    if probe.source.size > LARGEST_WALKED:
        document.evidence["mobile"] = Evidence("withheld", Reason.LIMIT, detail="larger than FlatBuffers can be")
        document.followed = False
        return
    data = probe.source.read_at(0, probe.source.size)
    facts.walk = found = walk(data, SCHEMA, "Module", UNIONS, MOST_PARTS)
    document.evidence["mobile"] = COMPLETE
    document.followed = not found.faults
    modules = [table for table in found.tables if table.type == "Module"]
    if modules:
        _read_module(document, facts, found, modules[0])
    owned = found.owned
    facts.stray = [gap for gap in gaps(owned, Span(0, len(data))) if data[gap.offset : gap.end].strip(b"\0")]


def _read_module(document: TorchDocument, facts: MobileFacts, found: Walk, module: Table) -> None:
    facts.bytecode_version = found.u32(module.places["bytecode_version"]) if "bytecode_version" in module.places else 0
    facts.operator_version = found.u32(module.places["operator_version"]) if "operator_version" in module.places else None
    if "storage_data_size" in module.places:
        facts.stated_storages = _I32.unpack_from(found.data, module.places["storage_data_size"])[0]
    storages = _storages(document, facts, found, module)
    facts.storage_count = len(storages)
    _, values = found.vector(module, "ivalues")
    _, types = found.vector(module, "object_types")
    number = 0
    for table in found.tables:
        if table.type == "TensorMetadata":
            _tensor(document, facts, found, table, storages, f"value {number}")
            number += 1
        elif table.type == "Operator":
            _operator(document, facts, found, table)
        elif table.type == "ExtraFile":
            name = found.text(table, "name")
            if name is not None:
                facts.extra_files.append(name)
        _check_indexes(facts, found, table, values, types)


def _storages(document: TorchDocument, facts: MobileFacts, found: Walk, module: Table) -> list[Storage]:
    first, count = found.vector(module, "storage_data")
    by_offset = {table.offset: table for table in found.tables if table.type == "StorageData"}
    storages: list[Storage] = []
    for index in range(min(count, len(by_offset))):
        table = by_offset.get(found.target(first + 4 * index) or -1)
        if table is None:
            continue
        start, length = found.vector(table, "data")
        span = Span(start, length)
        if start % STORAGE_ALIGNMENT:
            facts.bad_indexes.append((f"storage {index} does not begin at a multiple of {STORAGE_ALIGNMENT}", Span(start - 4, 4)))
        name = f"storage {index}"
        storages.append(
            Storage(str(index), None, "bytes", "cpu", length, record=name, span=span, stored_size=length, source="module")
        )
        document.records.append(Record(name, "storage", span, length))
    document.storages += storages
    return storages


def _tensor(document: TorchDocument, facts: MobileFacts, found: Walk, table: Table, storages: list[Storage], name: str) -> None:
    index = found.u32(table.places["storage"]) if "storage" in table.places else 0
    scalar_type = found.data[table.places["scalar_type"]] if "scalar_type" in table.places else 0
    offset = _I32.unpack_from(found.data, table.places["storage_offset"])[0] if "storage_offset" in table.places else 0
    place = Span(table.offset, 4)
    if index is None or index >= len(storages):
        facts.bad_indexes.append((f"{name} refers to storage {index} of {len(storages)}", place))
        return
    dtype = DTYPES.get(SCALAR_TYPES[scalar_type]) if scalar_type < len(SCALAR_TYPES) else None
    storage = storages[index]
    storage.dtype = storage.dtype or dtype
    tensor = Tensor(
        name=name,
        dtype=dtype,
        shape=_numbers(found, table, "sizes"),
        stride=_numbers(found, table, "strides"),
        storage_offset=offset,
        storage=storage,
        location="cpu",
        function="TensorMetadata",
        offset=table.offset,
    )
    if dtype is None:
        facts.bad_indexes.append((f"{name} has the unknown type number {scalar_type}", place))
    elif min((*(tensor.shape or ()), *(tensor.stride or ()), offset), default=0) < 0 or len(tensor.shape or ()) != len(
        tensor.stride or ()
    ):
        facts.bad_indexes.append((f"{name} has sizes and strides that do not fit each other", place))
    elif (tensor.view_byte_count or 0) > (storage.stored_size or 0):
        facts.outside_tensors.append((name, place, tensor.view_byte_count or 0, storage.stored_size or 0))
    document.tensors.append(tensor)


def _numbers(found: Walk, table: Table, name: str) -> tuple[int, ...]:
    first, count = found.vector(table, name)
    if first + 4 * count > len(found.data):
        return ()
    return tuple(_I32.unpack_from(found.data, first + 4 * index)[0] for index in range(count))


def _operator(document: TorchDocument, facts: MobileFacts, found: Walk, table: Table) -> None:
    name = found.text(table, "name")
    if name is None or name in facts.operators:
        return
    facts.operators[name] = table.offset
    if name in DANGEROUS_OPERATORS:
        document.code.append(CodeUse(name, "dangerous", "module", Span(table.offset, 4)))


def _check_indexes(facts: MobileFacts, found: Walk, table: Table, values: int, types: int) -> None:
    """Indexes into the module's values and object types are in range."""
    for kind, name in INDEX_VECTORS:
        if table.type != kind or name not in table.places:
            continue
        first, count = found.vector(table, name)
        if first + 4 * count > len(found.data):
            continue
        for index in range(count):
            value = found.u32(first + 4 * index)
            if value is not None and value >= values:
                facts.bad_indexes.append((f"{kind}.{name} refers to value {value} of {values}", Span(first + 4 * index, 4)))
    if table.type == "Object" and "type_index" in table.places:
        value = found.u32(table.places["type_index"])
        if value is not None and value >= types:
            facts.bad_indexes.append((f"an object refers to type {value} of {types}", Span(table.places["type_index"], 4)))
    if table.type == "Module" and "state_obj" in table.places:
        value = found.u32(table.places["state_obj"])
        if value is not None and value >= values:
            facts.bad_indexes.append((f"the state is value {value} of {values}", Span(table.places["state_obj"], 4)))
