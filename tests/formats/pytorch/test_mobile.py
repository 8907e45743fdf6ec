# SPDX-License-Identifier: Apache-2.0
"""Mobile modules in FlatBuffers form: the walker, the values, the code, the names, and how much damage shows."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

import fdd
from corpus.build.flatbuffer_kit import INSTRUCTIONS, SOURCE, TENSORS, Builder, Mobile, Offset, Scalar
from corpus.build.kit import patch
from corpus.build.mobile_files import program
from fdd.core.engine import run_rules
from fdd.core.finding import Reason, State
from fdd.core.source import BytesSource
from fdd.core.span import Span
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.flatbuffers import Field, walk
from fdd.formats.pytorch.instructions import KNOWN, NOT_IN_MOBILE, OPCODES, Tables, faults_of, highest_register
from fdd.formats.pytorch.mobile import SCHEMA, UNIONS
from fdd.formats.pytorch.mobile_facts import MobileFacts
from fdd.limits import Limits

GOOD = Mobile()
STEP = 29
"""Every so manieth bit is flipped; prime to 8, so that all bits of a byte have their turn."""
WEIGHT, BIAS = TENSORS


def _document(data: bytes) -> TorchDocument:
    fmt = by_name("fdd000644")
    probe = make_probe(BytesSource(data), name="m.ptl", path=None, limits=Limits(), depth="full")
    identification = fmt.identify(probe)
    assert identification is not None
    document = fmt.open(probe, identification)
    assert isinstance(document, TorchDocument)
    return document


def _facts(data: bytes) -> MobileFacts:
    facts = _document(data).facts["mobile"]
    assert isinstance(facts, MobileFacts)
    return facts


RULES = [rule for rule in by_name("fdd000644").catalogue if rule.id.startswith("PT-MOB")]


def _failed(data: bytes) -> set[str]:
    """Rules on mobile modules that fail."""
    outcomes = run_rules(RULES, _document(data), findings_per_rule=1)
    assert not [outcome for outcome in outcomes if outcome.reason is Reason.CRASH]
    return {outcome.rule for outcome in outcomes if outcome.state is State.FAILED}


# What a good module says


def test_a_module_is_read_to_its_tensors_operators_and_sources() -> None:
    document = _document(GOOD.build())
    facts = document.facts["mobile"]
    seen = [
        (tensor.shape, tensor.stride, tensor.dtype and tensor.dtype.name, tensor.requires_grad) for tensor in document.tensors
    ]
    assert sorted(seen, key=str) == [((2, 3), (3, 1), "float32", True), ((2,), (1,), "float32", False)]
    assert sorted(facts.operators) == ["aten::linear", "aten::mul"]
    assert [(name, source) for name, source, _ in facts.sources] == [("__torch__.net", SOURCE)]
    assert (facts.bytecode_version, facts.operator_version) == (9, 1)
    data = document.source.read_at(0, document.size)
    for storage in document.storages:
        assert storage.span is not None and storage.span.offset % 16 == 0
    held = {data[storage.span.offset : storage.span.end] for storage in document.storages if storage.span}
    assert held == {struct.pack("<6f", *WEIGHT.values), struct.pack("<2f", *BIAS.values)}


def test_the_sources_are_handed_out() -> None:
    found = list(by_name("fdd000644").sources(_document(GOOD.build()), Limits()))
    assert [(source.name, source.data) for source in found] == [("__torch__.net", SOURCE.encode())]


def test_a_good_module_has_no_finding() -> None:
    report = fdd.validate(GOOD.build(), name="m.ptl")
    assert report.verdict is not None and report.verdict.value == "valid" and not report.findings


# The walker, by a schema of its own

SMALL = {
    "Root": (
        Field("count", "u32"),
        Field("name", "text"),
        Field("items", "[Item]"),
        Field("flag", "bool"),
        Field("wide", "[i64]"),
    ),
    "Item": (Field("type", "u8"), Field("value", "union")),
}
KINDS = {"Item": {1: "i64", 2: "Root"}}


def _small(**parts: int) -> bytes:
    b = Builder()
    name = b.text("ab")
    wide = b.vector("q", (1, 2))
    value = b.structure(struct.pack("<q", 9), 8)
    item = b.table(Scalar("<B", 1), Offset(value))
    items = b.offsets((item, item))
    root = b.table(Scalar("<I", parts.get("count", 3)), Offset(name), Offset(items), Scalar("<?", True), Offset(wide))
    return b.finish(root)


def _codes(data: bytes, most: int = 100) -> set[str]:
    return {fault.code for fault in walk(data, SMALL, "Root", KINDS, most).faults}


def test_a_walk_finds_every_part_once() -> None:
    found = walk(_small(), SMALL, "Root", KINDS, 100)
    root = found.tables[0]
    assert not found.faults and [table.type for table in found.tables] == ["Root", "Item"]
    assert (found.scalar(root, "count"), found.text(root, "name"), found.scalar(root, "flag")) == (3, "ab", 1)
    assert [value for _, value in found.numbers(root, "wide", 8, signed=True)] == [1, 2]
    assert found.scalar(found.tables[1], "absent", 7) == 7


def _place(data: bytes, name: str) -> int:
    return walk(data, SMALL, "Root", KINDS, 100).tables[0].places[name]


def test_each_way_to_break_the_layout_has_its_word() -> None:
    data = _small()
    root = walk(data, SMALL, "Root", KINDS, 100).tables[0]
    vtable = root.vtable.offset
    name = _place(data, "name")
    text = name + struct.unpack_from("<I", data, name)[0]
    far = struct.pack("<I", 0xFFFFFF0)
    assert _codes(patch(data, 0, far)) == {"outside"}
    assert _codes(patch(data, name, far)) == {"outside"}
    assert _codes(patch(data, text, far)) == {"outside"}
    assert _codes(patch(data, _place(data, "wide"), far)) == {"outside"}
    assert "alignment" in _codes(patch(data, name, struct.pack("<I", text - name + 1)))
    assert "vtable" in _codes(patch(data, root.offset, struct.pack("<i", -0x10000)))
    assert "vtable" in _codes(patch(data, vtable, struct.pack("<H", 2)))
    assert "field-outside" in _codes(patch(data, vtable + 4, struct.pack("<H", 0x400)))
    assert "field-outside" in _codes(patch(data, vtable + 4, struct.pack("<H", 2)))
    assert "flag" in _codes(patch(data, root.places["flag"], b"\x02"))
    assert "text" in _codes(patch(data, text + 4, b"\xff"))
    assert "text-end" in _codes(patch(data, text + 6, b"x"))
    assert "overlap" in _codes(patch(data, vtable + 4, data[vtable + 6 : vtable + 8]))
    item = walk(data, SMALL, "Root", KINDS, 100).tables[1]
    assert _codes(patch(data, item.places["type"], b"\x09")) == {"union"}
    assert _codes(patch(data, item.places["type"], b"\x00")) == {"union"}
    assert _codes(data, most=1) == {"limit"}


def test_a_vector_that_announces_billions_of_items_costs_nothing() -> None:
    data = _small()
    place = _place(data, "items")
    vector = place + struct.unpack_from("<I", data, place)[0]
    assert _codes(patch(data, vector, b"\xff\xff\xff\xff")) == {"outside"}


@pytest.mark.parametrize("length", range(24))
def test_a_walk_over_next_to_nothing_ends(length: int) -> None:
    assert walk(_small()[:length], SMALL, "Root", KINDS, 100).faults


# Instructions

TABLES = Tables(instructions=4, operators=2, constants=3, types=1, registers=5)


@pytest.mark.parametrize(
    ("opcode", "index", "operand", "number", "wrong"),
    [
        ("OP", 0, 1, 0, None), ("OP", 0, 2, 0, "operand"), ("OP", 0, -1, 0, "operand"), ("OP", 0, 0, 1, "number"),
        ("OPN", 0, 0, 9, None), ("LOAD", 0, 5, 0, None), ("LOAD", 0, 6, 0, "operand"), ("LOAD", 0, 0, 0, "operand"),
        ("STOREN", 0, 1, 5, None), ("STOREN", 0, 2, 5, "operand"), ("LOADC", 0, 2, 0, None), ("LOADC", 0, 3, 0, "operand"),
        ("INTERFACE_CALL", 0, 2, 4, None), ("JF", 0, 3, 0, None), ("JF", 1, 3, 0, "operand"), ("JMP", 3, -3, 0, None),
        ("JMP", 3, -4, 0, "operand"), ("JMP", 1, 0, 0, "operand"), ("LOOP", 0, 2, 3, None), ("RET", 0, 0, 0, None),
        ("RET", 0, 1, 0, "operand"), ("LIST_CONSTRUCT", 0, 0, 7, None), ("LIST_CONSTRUCT", 0, 1, 7, "operand"),
        ("ISINSTANCE", 0, 0, 1, None), ("ISINSTANCE", 0, 0, 2, "operand"), ("GET_ATTR", 0, 40, 0, None),
        ("GET_ATTR", 0, -1, 0, "operand"), ("TUPLE_CONSTRUCT", 0, 1 << 20, 0, "operand"), ("WARN", 0, -1, 0, None),
        ("DIM", 0, 0, 0, None), ("DIM", 0, 3, 0, "operand"), ("FORK", 0, 0, 0, "opcode"), ("SYSCALL", 0, 0, 0, "opcode"),
    ],
)  # fmt: skip
def test_operands_lead_to_what_is_there(opcode: str, index: int, operand: int, number: int, wrong: str | None) -> None:
    assert [part for part, _ in faults_of(TABLES, opcode, index, operand, number)] == ([wrong] if wrong else [])


def test_every_opcode_is_judged_by_one_of_the_groups() -> None:
    assert len(OPCODES) == len(KNOWN) == 51 and NOT_IN_MOBILE < KNOWN
    for opcode in KNOWN - NOT_IN_MOBILE:
        assert not list(faults_of(TABLES, opcode, 0, 1 if opcode in ("JF", "JMP", "LOOP") else 0, 0)) or opcode in (
            "LOAD", "MOVE", "STORE", "STOREN", "DROPR",
        )  # fmt: skip
    assert (highest_register("STOREN", 3, 2), highest_register("MOVE", 3, 0), highest_register("OP", 9, 0)) == (4, 3, 0)


# Rules


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"type_index": 1}, "PT-MOB-003"),
        ({"state": 0}, "PT-MOB-003"),
        ({"state": 77}, "PT-MOB-003"),
        ({"methods": (77,)}, "PT-MOB-003"),
        ({"stated_storages": 9}, "PT-MOB-003"),
        ({"constant_index": 5}, "PT-MOB-003"),  # a value that is not made yet
        ({"handles": (1, 2)}, "PT-MOB-003"),
        ({"tensors": (replace(WEIGHT, scalar_type=99), BIAS)}, "PT-MOB-003"),
        ({"tensors": (replace(WEIGHT, strides=(3,)), BIAS)}, "PT-MOB-003"),
        ({"tensors": (replace(WEIGHT, sizes=(-2, 3)), BIAS)}, "PT-MOB-003"),
        ({"tensors": (replace(WEIGHT, offset=1), BIAS)}, "PT-MOB-004"),
        ({"bytecode_version": 3}, "PT-MOB-005"),
        ({"bytecode_version": 10}, "PT-MOB-005"),
        ({"instructions": ()}, "PT-MOB-006"),
        ({"instructions": ((200, 0, 0), *INSTRUCTIONS)}, "PT-MOB-006"),
        ({"operators": (("aten::linear", "", 3), ("aten::mul", "Scalar", 5000))}, "PT-MOB-006"),
        ({"operator_version": 11}, "PT-MOB-007"),
        ({"hidden": bytes(40)}, "PT-MOB-007"),
        ({"source_name": "__torch__.bet"}, "PT-MOB-008"),
        ({"method": "backward"}, "PT-MOB-008"),
        ({"attribute_names": ("weight", "bia$")}, "PT-MOB-008"),
        ({"operators": (("linear", "", 3), ("aten::mul", "Scalar", 2))}, "PT-MOB-008"),
        ({"registers": 9}, "PT-MOB-009"),
        ({"spare_value": True}, "PT-MOB-009"),
        ({"hidden": b"x"}, "PT-MOB-002"),
    ],
)  # fmt: skip
def test_one_wrong_thing_fails_its_rule(changes: dict[str, object], rule: str) -> None:
    assert rule in _failed(GOOD.but(**changes).build())


@pytest.mark.parametrize("version", range(4, 10))
def test_every_bytecode_version_that_readers_take_is_known(version: int) -> None:
    assert not _failed(GOOD.but(bytecode_version=version).build())


def test_modules_without_sources_or_handles_are_usual() -> None:
    assert not _failed(GOOD.but(source="", handles=()).build())


def test_binary_files_of_the_user_are_no_fault_and_pickles_among_them_are_found() -> None:
    assert not _failed(GOOD.but(extra_files=(("a.bin", b"\xff\x00\xfe"),)).build())
    call = b"\x80\x02cposix\ngetcwd\n)R."
    report = fdd.validate(GOOD.but(extra_files=(("a.bin", call),)).build())
    assert report.safety is not None and report.safety.value == "dangerous"


def test_tables_without_what_readers_take_for_granted() -> None:
    b = Builder()
    data = b.finish(b.table(Scalar("<I", 9)))
    details = {fault.detail for fault in _facts(data).walk.faults}  # type: ignore[union-attr]
    assert {"a Module has no ivalues", "a Module has no methods"} <= details
    assert "PT-MOB-001" in _failed(data)


# Damage


def _flips(data: bytes, step: int) -> Iterator[bytes]:
    for bit in range(0, 8 * len(data), step):
        yield patch(data, bit // 8, bytes([data[bit // 8] ^ 1 << bit % 8]))


def test_six_of_ten_flipped_bits_show_although_there_is_no_checksum() -> None:
    """Outside of the weights and the text of the source, whose bytes nothing repeats, nine of ten show."""
    data = GOOD.build()
    start = data.index(SOURCE.encode())
    free = [Span(start, len(SOURCE))] + [s.span for s in _document(data).storages if s.span]
    found = total = found_in_structure = structure = 0
    for bit, flipped in zip(range(0, 8 * len(data), STEP), _flips(data, STEP), strict=True):
        seen = flipped[4:8] != b"PTMF" or bool(_failed(flipped))
        inside = any(span.holds(bit // 8) for span in free)
        total, found = total + 1, found + seen
        structure, found_in_structure = structure + (not inside), found_in_structure + (seen and not inside)
    assert found > 0.6 * total
    assert found_in_structure > 0.85 * structure


def test_no_part_of_a_module_from_its_start_is_a_whole_one() -> None:
    data = GOOD.build()
    for size in range(8, len(data), 5):
        document = _document(data[:size])
        assert document.kind == "mobile-flatbuffer"
        assert _failed(data[:size]) & {"PT-MOB-001", "PT-MOB-002"}, size


def test_random_bytes_behind_the_identifier_never_crash() -> None:
    generator = random.Random(11)
    for _ in range(150):
        size = generator.randrange(8, 400)
        body = bytes(generator.choice((0, 0, 0, 4, 8, 12, 16, 255, generator.randrange(256))) for _ in range(size))
        data = struct.pack("<I", generator.randrange(0, size, 4)) + b"PTMF" + body
        assert _failed(data)


def test_shuffled_words_of_a_good_module_never_crash() -> None:
    generator = random.Random(12)
    good = GOOD.build()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(3):
            place = generator.randrange(8, len(data) - 4, 4)
            other = generator.randrange(8, len(data) - 4, 4)
            data[place : place + 4] = data[other : other + 4]
        _failed(bytes(data))


def test_schema_and_unions_name_tables_that_are_there() -> None:
    for fields in SCHEMA.values():
        for entry in fields:
            kind = entry.type.strip("[]")
            assert kind in SCHEMA or kind in {"text", "bytes", "union", "bool", "u8", "i8", "u32", "i32", "i64", "f64", "8-bytes"}
    assert set(UNIONS["IValue"]) == set(range(1, 17))


# ExecuTorch


@pytest.mark.parametrize(
    ("data", "fails"),
    [
        (program(64, 64), False),
        (program(96), False),
        (program(97), True),
        (program(64, 97), True),
        (program(64, 32), True),
        (program(64, header=8), True),
        (program(64, root=200), True),
        (program(64, root=33), True),
        (b"\x10\0\0\0ET12" + bytes(40), False),
        (b"\x10\0\0\0ET12", True),
    ],
)
def test_the_header_of_executorch_programs(data: bytes, fails: bool) -> None:
    report = fdd.validate(data)
    assert report.identification is not None and report.identification.kind == "executorch"
    assert report.verdict is not None
    assert report.verdict.value == ("not-well-formed" if fails else "undetermined")
    assert report.safety is not None and report.safety.value == "undetermined"
