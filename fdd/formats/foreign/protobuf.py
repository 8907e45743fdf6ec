# SPDX-License-Identifier: Apache-2.0
"""Formats that are Protocol Buffers without a magic number: ONNX, and TensorFlow's GraphDef, SavedModel, MetaGraphDef.

Told by shape: field numbers and wire types of the top message that no other data is likely to have. Further down the
TensorFlow files that have a mark of their own: checkpoint tables and TensorFlow Lite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from fdd.core.model import Basis
from fdd.core.source import ByteSource
from fdd.core.text import printable
from fdd.formats.foreign.facts import ForeignFacts, Subject

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_FIELDS = 64
_SHORT = 1 << 10
"""Longest text or small message that is read from a field."""

# ModelProto (onnx.proto): field number -> wire type.
_ONNX_FIELDS = {1: _VARINT, 5: _VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), _BYTES)
_MOST_IR_VERSION = 64
_GRAPH_DEF_FIELDS = {1: _BYTES, 2: _BYTES, 3: _VARINT, 4: _BYTES, 5: _BYTES}
_NODE_DEF_FIELDS = frozenset((1, 2, 3, 4, 5, 6, 7))
_NODE_NAME = re.compile(rb"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_OP_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_>.]*")
_TABLE_MAGIC = bytes.fromhex("57fb808b247547db")
"""Last eight bytes of a LevelDB-style table, which TensorFlow checkpoints (V1) and their .index files (V2) are."""


class WireField(NamedTuple):
    """One field: number, wire type, offset of its content, and its value (varint) or its stated length (bytes)."""

    number: int
    wire: int
    offset: int
    value: int
    complete: bool


def _varint(data: bytes, position: int) -> tuple[int, int] | None:
    value = 0
    for index in range(10):
        if position + index >= len(data):
            return None
        byte = data[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    return None


def walk(source: ByteSource, start: int, end: int) -> Iterator[WireField | None]:
    """Yield the fields of the message in ``[start, end)``, stepping over contents unread; None where it is malformed."""
    position = start
    while position < end:
        head = source.read_at(position, min(20, end - position))
        key = _varint(head, 0)
        if key is None or not key[0] >> 3:
            yield None
            return
        number, wire = key[0] >> 3, key[0] & 7
        content, value = position + key[1], 0
        if wire in (_VARINT, _BYTES):
            parsed = _varint(head, key[1])
            if parsed is None:
                yield None
                return
            value, content = parsed[0], position + parsed[1]
        length = {_VARINT: 0, _BYTES: value, _FIXED64: 8, _FIXED32: 4}.get(wire)
        if length is None:
            yield None
            return
        position = content + length
        yield WireField(number, wire, content, value, position <= end)


def _fields(source: ByteSource, start: int, end: int, most: int = _MOST_FIELDS) -> list[WireField] | None:
    """The first fields of a message; None where it is malformed within them."""
    fields: list[WireField] = []
    for item in walk(source, start, end):
        if item is None:
            return None
        fields.append(item)
        if len(fields) >= most:
            break
    return fields


def _bytes_of(source: ByteSource, item: WireField) -> bytes:
    return source.read_at(item.offset, min(item.value, _SHORT))


def recognise_onnx(subject: Subject) -> ForeignFacts | None:
    """An ONNX ModelProto: `ir_version`, then known fields only, among them the graph or an operator set."""
    fields = _fields(subject.source, 0, subject.size) if subject.head[:1] == b"\x08" else None
    if not fields or any(_ONNX_FIELDS.get(item.number) != item.wire for item in fields):
        return None
    first = {item.number: item for item in reversed(fields)}
    version = first[1].value if 1 in first else 0
    if not 1 <= version <= _MOST_IR_VERSION or not (7 in first or 8 in first):
        return None
    if any(not item.complete and item.number != 7 for item in fields):
        return None
    details: dict[str, Any] = {"ir_version": version}
    for number, key in ((2, "producer_name"), (3, "producer_version"), (4, "domain")):
        if number in first:
            text = _bytes_of(subject.source, first[number])
            if b"\0" in text:
                return None
            details[key] = printable(text)
    details["opsets"] = [opset for item in fields if item.number == 8 and (opset := _opset(subject.source, item))]
    if 7 in first:
        details["graph_bytes"] = first[7].value
        details["complete"] = first[7].complete or None if subject.partial else first[7].complete
    producer = f", producer {details['producer_name']}" if details.get("producer_name") else ""
    note = f"An ONNX model (ir_version {version}{producer}); open it with ONNX tools, not with torch.load."
    if details.get("complete") is False:
        note += f" It is cut off inside its graph: {subject.size} of at least {first[7].offset + first[7].value} bytes are here."
    basis = [Basis("ModelProto ir_version", 0, first[1].offset)]
    return ForeignFacts("onnx", "ONNX model", note, basis, version=str(version), details=details)


def _opset(source: ByteSource, item: WireField) -> str | None:
    """An OperatorSetIdProto as `domain 17`; the default domain is `ai.onnx`."""
    domain, version = "ai.onnx", None
    for part in _fields(source, item.offset, item.offset + item.value, 4) or ():
        if part.number == 1 and part.wire == _BYTES and part.value:
            domain = printable(_bytes_of(source, part))
        elif part.number == 2 and part.wire == _VARINT:
            version = part.value
    return None if version is None else f"{domain} {version}"


def recognise_tensorflow(subject: Subject) -> ForeignFacts | None:
    """TensorFlow: SavedModel, MetaGraphDef or GraphDef by their shape, checkpoint tables and TensorFlow Lite by their marks."""
    found = _checkpoint_table(subject)
    if found is None and subject.head[4:8] == b"TFL3":
        found = "TensorFlow Lite model", [Basis("TFL3 identifier", 4, 4)], {}
    if found is None:
        fields = _fields(subject.source, 0, subject.size)
        found = _graph(subject, fields) if fields else None
    if found is None:
        return None
    name, basis, details = found
    note = f"A TensorFlow file ({name}), not a PyTorch file; open it with TensorFlow."
    return ForeignFacts("tensorflow", name, note, basis, details=details)


_Found = tuple[str, list[Basis], dict[str, Any]]


def _checkpoint_table(subject: Subject) -> _Found | None:
    if subject.size < 48 or subject.partial or subject.source.read_at(subject.size - 8, 8) != _TABLE_MAGIC:
        return None
    return "TensorFlow checkpoint table", [Basis("table magic", subject.size - 8, 8)], {}


def _graph(subject: Subject, fields: list[WireField]) -> _Found | None:
    head, source = fields[0], subject.source
    if head.number == 1 and head.wire == _VARINT and head.value == 1 and len(fields) > 1:
        metas = fields[1:]
        if all(item.number == 2 and item.wire == _BYTES for item in metas) and _is_meta_graph(source, metas[0]):
            return "TensorFlow SavedModel", [Basis("SavedModel schema version", 0, 2)], {"meta_graphs": len(metas)}
        return None
    if _is_meta_graph(source, WireField(0, _BYTES, 0, subject.size, True)):
        return "TensorFlow MetaGraphDef", [Basis("meta_info_def and graph_def", 0, head.offset)], {}
    if any(_GRAPH_DEF_FIELDS.get(item.number) != item.wire for item in fields):
        return None
    nodes = [item for item in fields if item.number == 1]
    if head.number != 1 or not all(_is_node(source, item) for item in nodes if item.complete) or not head.complete:
        return None
    operations = [printable(_node_op(source, item)) for item in nodes[:16]]
    return "TensorFlow GraphDef", [Basis("first NodeDef", 0, head.offset + head.value)], {"first_operations": operations}


def _is_meta_graph(source: ByteSource, item: WireField) -> bool:
    """Whether the message is a MetaGraphDef: meta_info_def (1), then a graph_def (2) that begins with a node."""
    fields = _fields(source, item.offset, min(item.offset + item.value, source.size), 8)
    if not fields or any(part.wire != _BYTES or part.number > 7 for part in fields):
        return False
    graph = next((part for part in fields if part.number == 2), None)
    if graph is None:
        return False
    nodes = _fields(source, graph.offset, min(graph.offset + graph.value, source.size), 1)
    return bool(nodes) and nodes is not None and nodes[0].number == 1 and nodes[0].wire == _BYTES and _is_node(source, nodes[0])


def _is_node(source: ByteSource, item: WireField) -> bool:
    """Whether the message is a NodeDef: name and operation are words, and there is nothing but its fields."""
    fields = _fields(source, item.offset, item.offset + item.value)
    if not fields or any(part.wire != _BYTES or part.number not in _NODE_DEF_FIELDS or not part.complete for part in fields):
        return False
    texts = {part.number: _bytes_of(source, part) for part in fields if part.number in (1, 2)}
    return bool(_NODE_NAME.fullmatch(texts.get(1, b"")) and _OP_NAME.fullmatch(texts.get(2, b"")))


def _node_op(source: ByteSource, item: WireField) -> bytes:
    fields = _fields(source, item.offset, item.offset + item.value) or []
    return next((_bytes_of(source, part) for part in fields if part.number == 2), b"")
