# SPDX-License-Identifier: Apache-2.0
"""Reads mobile modules in FlatBuffers form (format.md 3.6): storages, tensors, sources. What the values, the functions and
the layout show is in the modules beside this one: mobile_values, mobile_code, mobile_layout."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, NOT_REQUESTED, Evidence, Record
from fdd.core.span import Span, gaps
from fdd.core.text import is_text
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.flatbuffers import Field, Schema, Table, Walk, walk
from fdd.formats.pytorch.mobile_code import check_functions
from fdd.formats.pytorch.mobile_facts import MobileFacts
from fdd.formats.pytorch.mobile_layout import check_layout
from fdd.formats.pytorch.mobile_names import check_names
from fdd.formats.pytorch.mobile_values import check_values
from fdd.formats.pytorch.pickled import probe_hidden
from fdd.formats.pytorch.script_code import read_source
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
    "ExtraFile": _fields("name:text content:bytes"),
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
REQUIRED = {
    "Module": ("bytecode_version", "methods", "ivalues", "storage_data", "object_types"),
    "TensorMetadata": ("sizes", "strides"),
    "StorageData": ("data",),
    "Function": ("name", "instructions", "operators", "constants"),
    "ExtraFile": ("name", "content"),
    "ObjectType": ("name",),
    "String": ("data",),
    "Device": ("data",),
    "List": ("items",),
    "Tuple": ("items",),
    "Dict": ("keys", "values"),
    "IntList": ("items",),
    "DoubleList": ("items",),
    "BoolList": ("items",),
    "EnumValue": ("name",),
    "Operator": ("name",),
    "Arg": ("type",),
    "DebugInfo": ("handles",),
}
"""Fields that readers take for granted; without a bytecode version there is none that is known."""


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
    _find_missing(found)
    document.evidence["mobile"] = COMPLETE
    facts.stray = list(_stray(found))
    modules = [table for table in found.tables if table.type == "Module"]
    if modules:
        _read_module(probe, document, facts, found, modules[0])
    document.followed = not found.faults
    for gap in facts.stray:
        probe_hidden(document, gap, None, probe.limits)


def _stray(found: Walk) -> Iterator[Span]:
    """What no part owns and is not zero, from its first byte to its last."""
    for gap in gaps(found.owned(), Span(0, len(found.data))):
        held = found.data[gap.offset : gap.end]
        start = len(held) - len(held.lstrip(b"\0"))
        if start < len(held):
            yield Span(gap.offset + start, len(held.strip(b"\0")))


def _find_missing(found: Walk) -> None:
    for table in found.tables:
        for name in REQUIRED.get(table.type, ()):
            if name not in table.places:
                found.fault("missing", Span(table.offset, 4), f"a {table.type} has no {name}")


def _read_module(probe: Probe, document: TorchDocument, facts: MobileFacts, found: Walk, module: Table) -> None:
    facts.bytecode_version = found.scalar(module, "bytecode_version")
    facts.operator_version = found.scalar(module, "operator_version")
    storages = _storages(document, facts, found, module)
    stated = found.scalar(module, "storage_data_size", len(storages))
    if stated != len(storages):
        span = module.span_of("storage_data_size", 4)
        facts.wrong.append((f"the module states {stated} storages and holds {len(storages)}", span or Span(module.offset, 4)))
    tensors = [table for table in found.tables if table.type == "TensorMetadata"]
    for number, table in enumerate(tensors):
        _tensor(document, facts, found, table, storages, f"value {number}")
    _read_texts(probe, document, facts, found, module)
    check_values(facts, found, module)
    check_functions(document, facts, found)
    check_names(facts, found, module)
    check_layout(facts, found, module)


def _storages(document: TorchDocument, facts: MobileFacts, found: Walk, module: Table) -> list[Storage]:
    by_offset = {table.offset: table for table in found.tables if table.type == "StorageData"}
    storages: list[Storage] = []
    for index, offset in enumerate(found.targets(module, "storage_data")):
        start, length = found.vector(by_offset[offset], "data") if offset in by_offset else (0, 0)
        if start % STORAGE_ALIGNMENT:
            facts.wrong.append((f"storage {index} does not begin at a multiple of {STORAGE_ALIGNMENT}", Span(start - 4, 4)))
        name = f"storage {index}"
        span = Span(start, length)
        storages.append(
            Storage(str(index), None, "bytes", "cpu", length, record=name, span=span, stored_size=length, source="module")
        )
        if span.end <= document.size:
            document.records.append(Record(name, "storage", span, length))
    document.storages += storages
    return storages


def _tensor(document: TorchDocument, facts: MobileFacts, found: Walk, table: Table, storages: list[Storage], name: str) -> None:
    index = found.scalar(table, "storage")
    scalar_type = found.scalar(table, "scalar_type")
    offset = found.scalar(table, "storage_offset")
    place = Span(table.offset, 4)
    if index >= len(storages):
        facts.wrong.append((f"{name} refers to storage {index} of {len(storages)}", table.span_of("storage", 4) or place))
        return
    facts.used_storages.add(index)
    dtype = DTYPES.get(SCALAR_TYPES[scalar_type]) if 0 <= scalar_type < len(SCALAR_TYPES) else None
    storage = storages[index]
    storage.dtype = storage.dtype or dtype
    tensor = Tensor(
        name=name,
        dtype=dtype,
        shape=tuple(size for _, size in found.numbers(table, "sizes", signed=True)),
        stride=tuple(step for _, step in found.numbers(table, "strides", signed=True)),
        storage_offset=offset,
        storage=storage,
        requires_grad=found.scalar(table, "requires_grad") == 1,
        location="cpu",
        function="TensorMetadata",
        offset=table.offset,
    )
    need, there = tensor.view_byte_count, storage.stored_size or 0
    if dtype is None:
        facts.wrong.append((f"{name} has the unknown type number {scalar_type}", table.span_of("scalar_type", 1) or place))
    elif need is None:
        facts.wrong.append((f"{name} has sizes, strides and an offset that do not fit each other", place))
    elif need > there:
        facts.outside_tensors.append((name, place, need, there))
    document.tensors.append(tensor)


def _read_texts(probe: Probe, document: TorchDocument, facts: MobileFacts, found: Walk, module: Table) -> None:
    """The sources and the files that travel in the module; a source is judged as code, a file may hide a pickle."""
    files = {table.offset: table for table in found.tables if table.type == "ExtraFile"}
    for group in ("extra_files", "jit_sources"):
        for offset in found.targets(module, group):
            table = files.get(offset)
            first, length = found.vector(table, "content") if table is not None else (0, 0)
            if table is None or first + length > document.size:
                continue
            name, span = found.text(table, "name") or "", Span(first, length)
            if group == "extra_files":
                facts.extra_files.append((name, span))
                probe_hidden(document, span, name, probe.limits, role="carried")
            else:
                if not is_text(found.data[span.offset : span.end]):
                    found.fault("text", span, f"the source {name} is not UTF-8")
                source = read_source(document, found.data[span.offset : span.end], name, span, span.offset)
                facts.sources.append((name, source, span))
