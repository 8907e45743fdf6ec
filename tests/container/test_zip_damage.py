# SPDX-License-Identifier: Apache-2.0
"""Damaged and deviating archives: what is lost is a fault, and the rest is still read."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from fdd.container.zip.structs import ZipFacts, ZipRecord
from fdd.core.span import Span
from tests.container.test_zip_good import codes, read
from tests.container.zip_builder import TORCH_ITEMS, Built, Item, Style, build, flipped, patched

NAMES = [item.name for item in TORCH_ITEMS]
RECORDS = len(TORCH_ITEMS)


def names(records: list[ZipRecord]) -> list[bytes]:
    return [record.name for record in records]


def whats(facts: ZipFacts) -> list[tuple[str, Span]]:
    """The regions that nobody owns."""
    return [(region.what, region.span) for region in facts.regions if region.what in ("prefix", "gap", "trailing")]


def assert_complete(facts: ZipFacts, built: Built, shift: int = 0) -> None:
    """All records are there with header, payload and descriptor."""
    assert [record.name for record in facts.records] == NAMES
    assert [record.payload for record in facts.records] == [Span(s.offset + shift, s.length) for s in built.payloads]
    found = [record.descriptor.span if record.descriptor else None for record in facts.records]
    assert found == [Span(s.offset + shift, s.length) if s else None for s in built.descriptors]


# End records


@pytest.mark.parametrize(
    ("zip64", "comment", "damage"),
    [
        (zip64, comment, damage)
        for zip64 in (True, False)
        for comment in (b"", b"a comment")
        for damage in (b"XK\5\6", b"PK\5\7", b"\0\0\0\0")
        # Without ZIP64 records and without any signature nothing tells where a record with a comment begins.
        if zip64 or not comment or damage != b"\0\0\0\0"
    ],
)
def test_end_record_signature(zip64: bool, comment: bytes, damage: bytes) -> None:
    built = build(style=Style(zip64=zip64, comment=comment))
    facts = read(patched(built.data, built.end.offset, damage))
    assert codes(facts) == ["end-record-signature"]
    assert facts.ends.faults[0].offset == built.end.offset
    assert facts.ends.governing == ("zip64-end" if zip64 else "end")
    assert facts.ends.end is not None
    assert facts.ends.end.comment == comment
    assert_complete(facts, built)


@pytest.mark.parametrize(
    ("place", "expected"),
    [("locator", ["locator-signature"]), ("zip64_end", ["zip64-end-signature"])],
)
def test_zip64_signatures(place: str, expected: list[str]) -> None:
    built = build()
    facts = read(patched(built.data, getattr(built, place).offset, b"PK\xff\xff"))
    assert codes(facts) == expected
    assert facts.ends.zip64_end is not None
    assert facts.ends.locator is not None
    assert facts.ends.governing == "end"
    assert_complete(facts, built)


def test_all_end_signatures_at_once() -> None:
    built = build()
    data = built.data
    for span in (built.zip64_end, built.locator):
        data = patched(data, span.offset, b"XXXX")
    facts = read(data)
    assert codes(facts) == ["locator-signature", "zip64-end-signature"]
    assert_complete(facts, built)


def test_locator_names_another_place() -> None:
    built = build()
    facts = read(patched(built.data, built.locator.offset + 8, struct.pack("<Q", built.zip64_end.offset - 4)))
    assert codes(facts) == ["locator-target"]
    assert facts.ends.zip64_end is not None
    assert facts.ends.governing == "end"
    assert_complete(facts, built)


def test_escaped_end_record_makes_zip64_govern_in_spite_of_its_locator() -> None:
    built = build()
    data = patched(built.data, built.end.offset + 8, b"\xff" * 12)
    facts = read(patched(data, built.locator.offset, b"PK\0\0"))
    assert codes(facts) == ["locator-signature"]
    assert facts.ends.governing == "zip64-end"
    assert_complete(facts, built)


def test_locator_without_record() -> None:
    built = build()
    facts = read(built.data[: built.zip64_end.offset] + built.data[built.locator.offset :])
    assert codes(facts) == ["locator-target", "zip64-end-missing"]
    assert facts.ends.zip64_end is None
    assert_complete(facts, built)


def test_zeros_in_place_of_the_zip64_end_record() -> None:
    built = build()
    facts = read(patched(built.data, built.zip64_end.offset, bytes(56)))
    assert codes(facts) == ["zip64-end-signature"]
    assert facts.ends.governing == "end"
    assert whats(facts) == []
    assert_complete(facts, built)


def test_two_zip64_end_records() -> None:
    """The locator names a record that is not in front of it: that one counts, as for torch; the other is told."""
    built = build()
    other = patched(built.data[built.zip64_end.offset : built.zip64_end.end], 40, struct.pack("<QQ", 78, 1))
    data = built.data[: built.zip64_end.end] + other + built.data[built.zip64_end.end :]
    facts = read(data)
    assert facts.ends.zip64_end is not None
    assert facts.ends.zip64_end.span.offset == built.zip64_end.offset
    assert facts.ends.other_zip64_ends == [built.zip64_end.offset + 56]
    assert facts.ends.governing == "zip64-end"
    assert_complete(facts, built)


@pytest.mark.parametrize("zip64", [True, False])
def test_comment_length_beyond_the_end(zip64: bool) -> None:
    built = build(style=Style(zip64=zip64, comment=b"abc"))
    facts = read(patched(built.data, built.end.offset + 20, struct.pack("<H", 500)))
    assert codes(facts) == ["comment-cut"]
    assert facts.ends.end is not None
    assert (facts.ends.end.comment_length, facts.ends.end.comment) == (500, b"abc")
    assert_complete(facts, built)


def test_end_record_in_a_comment() -> None:
    """The last record whose comment reaches the end counts; the other is told."""
    inner = build([Item(b"inner/x", b"1")], Style(zip64=False))
    built = build(style=Style(comment=inner.data))
    facts = read(built.data)
    assert facts.ends.other_ends == [built.end.offset]
    assert names(facts.records) == [b"inner/x"]
    assert facts.directory is not None
    assert facts.directory.base == built.end.offset + 22
    assert names(facts.unlisted) == NAMES


def test_signature_in_a_comment_is_no_end_record() -> None:
    built = build(style=Style(comment=b"see PK\5\6 and so on, no record at all here"))
    facts = read(built.data)
    assert facts.ends.other_ends == [built.end.offset + 22 + 4]
    assert codes(facts) == []
    assert_complete(facts, built)


@pytest.mark.parametrize("length", [1, 300, 70_000, 3_000_000])
@pytest.mark.parametrize("filler", [b"\0", b"\n", b"PK\3"])
def test_bytes_behind(length: int, filler: bytes) -> None:
    built = build()
    tail = (filler * length)[:length]
    facts = read(built.data + tail)
    assert codes(facts) == []
    assert facts.ends.trailing == Span(len(built.data), length)
    assert whats(facts) == [("trailing", Span(len(built.data), length))]
    assert_complete(facts, built)


@pytest.mark.parametrize("lost", range(1, 99))
def test_cut_in_the_end_records(lost: int) -> None:
    built = build()
    facts = read(built.data[:-lost])
    expected = "end-record-cut" if lost < 22 else "end-record-missing"
    assert expected in codes(facts)
    assert_complete(facts, built)
    assert facts.directory is not None
    assert facts.directory.span == built.directory
    assert facts.ends.governing == ("zip64-end" if lost <= 42 else "")
    if lost < 22:
        assert facts.ends.end is not None
        assert facts.ends.end.span.length == 22 - lost


@pytest.mark.parametrize("zeros", [3, 21, 22, 23, 40, 60, 90])
def test_zeros_over_the_end_records(zeros: int) -> None:
    built = build()
    facts = read(built.data[:-zeros] + bytes(zeros))
    assert_complete(facts, built)


@pytest.mark.parametrize("zeros", [200, 100_000])
def test_zeros_behind_a_cut_archive(zeros: int) -> None:
    built = build()
    facts = read(built.data[:-30] + bytes(zeros))
    assert "end-record-missing" in codes(facts)
    assert_complete(facts, built)


# Directory


@pytest.mark.parametrize("zip64", [True, False])
@pytest.mark.parametrize("field", ["offset", "size", "count"])
@pytest.mark.parametrize("change", [-1, 1, 20, -20, 1 << 20])
def test_wrong_number_in_end_records(zip64: bool, field: str, change: int) -> None:
    """Both copies carry the same wrong number, and the other two still lead to the directory."""
    built = build(style=Style(zip64=zip64))
    wide, narrow = {"offset": (48, 16), "size": (40, 12), "count": (32, 10)}[field]
    true = {"offset": built.directory.offset, "size": built.directory.length, "count": RECORDS}[field]
    wrong, mask = max(0, true + change), 0xFFFF if field == "count" else 0xFFFFFFFF
    data = patched(built.data, built.end.offset + narrow, struct.pack("<H" if field == "count" else "<I", wrong & mask))
    if zip64:
        data = patched(data, built.zip64_end.offset + wide, struct.pack("<Q", wrong))
    facts = read(data)
    assert_complete(facts, built)
    assert facts.directory is not None
    assert facts.directory.span == built.directory
    assert facts.directory.base == 0
    assert codes(facts) == (["directory-offset"] if field == "offset" else [])
    stated = {"offset": facts.directory.stated_offset, "size": facts.directory.stated_size}
    assert stated.get(field, facts.directory.stated_entries) == (wrong if zip64 else wrong & mask)


def test_offset_that_hits_the_second_entry() -> None:
    built = build()
    wrong = built.entries[1].offset
    data = patched(built.data, built.zip64_end.offset + 48, struct.pack("<Q", wrong))
    data = patched(data, built.end.offset + 16, struct.pack("<I", wrong))
    facts = read(data)
    assert_complete(facts, built)
    assert facts.directory is not None
    assert facts.directory.alternatives == [wrong]


def test_all_numbers_wrong() -> None:
    built = build()
    data = patched(built.data, built.zip64_end.offset + 24, b"\x77" * 32)
    facts = read(patched(data, built.end.offset + 8, b"\x77" * 12))
    assert_complete(facts, built)
    assert facts.directory is not None
    assert facts.directory.span == built.directory


@pytest.mark.parametrize("number", range(RECORDS))
def test_entry_signature(number: int) -> None:
    built = build()
    facts = read(patched(built.data, built.entries[number].offset, b"\0\0\0\0"))
    assert codes(facts) == ["entry-signature"]
    assert facts.directory is not None
    assert facts.directory.faults[0].offset == built.entries[number].offset
    assert_complete(facts, built)


@pytest.mark.parametrize("number", range(RECORDS))
@pytest.mark.parametrize("field", [28, 30, 32])
def test_entry_lengths(number: int, field: int) -> None:
    built = build()
    at = built.entries[number].offset + field
    for bit in range(16):
        facts = read(flipped(built.data, at + bit // 8, bit % 8))
        assert "entry-lengths" in codes(facts), bit
        assert_complete(facts, built)


def test_overwritten_entries() -> None:
    """Bytes that are no entry are passed over; their records are found by their local headers."""
    built = build()
    middle = Span(built.entries[2].offset, built.entries[2].length + 20)
    facts = read(patched(built.data, middle.offset, b"\xaa" * middle.length))
    assert "entry-signature" in codes(facts)
    assert names(facts.records) == NAMES[:2] + NAMES[4:]
    assert names(facts.unlisted) == NAMES[2:4]
    assert [record.payload for record in facts.unlisted] == built.payloads[2:4]


@pytest.mark.parametrize("lost", [1, 30, 80, 150])
def test_cut_in_the_directory(lost: int) -> None:
    built = build()
    facts = read(built.data[: built.directory.end - lost])
    kept = sum(entry.end <= built.directory.end - lost for entry in built.entries)
    assert 0 < kept < RECORDS
    assert names(facts.records) == NAMES[:kept]
    assert names(facts.unlisted) == NAMES[kept:]
    assert [record.payload for record in facts.records + facts.unlisted] == built.payloads
    assert not facts.salvaged


def test_entries_beyond_the_count_and_size() -> None:
    """Size and count agree on the end, and an entry follows: a second directory in the gap."""
    built = build()
    data = built.data
    first = sum(entry.length for entry in built.entries[:5])
    for at, value, layout in ((24, 5, "<Q"), (32, 5, "<Q"), (40, first, "<Q")):
        data = patched(data, built.zip64_end.offset + at, struct.pack(layout, value))
    facts = read(data)
    assert codes(facts) == ["entry-behind-end"]
    assert names(facts.records) == NAMES[:5]
    assert names(facts.unlisted) == NAMES[5:]
    assert ("gap", Span(built.entries[5].offset, built.directory.end - built.entries[5].offset)) in whats(facts)


def test_digital_signature() -> None:
    record = b"PK\5\5" + struct.pack("<H", 9) + b"signature"
    built = build(style=Style(signature_record=record))
    facts = read(built.data)
    assert codes(facts) == ["digital-signature"]
    assert facts.directory is not None
    assert facts.directory.span == built.directory
    assert whats(facts) == []
    assert_complete(facts, built)


@pytest.mark.parametrize("gap", [b"x", b"PK\1\2 and no entry", b"\0" * 5000])
def test_bytes_between_directory_and_end_records(gap: bytes) -> None:
    built = build(style=Style(gap=gap))
    facts = read(built.data)
    assert whats(facts) == [("gap", Span(built.directory.end, len(gap)))]
    assert facts.directory is not None
    assert facts.directory.span == built.directory
    assert_complete(facts, built)


def test_two_directories() -> None:
    """The ZIP64 record names one directory, the end record another: the first counts, the other is told."""
    built = build()
    copy = built.data[built.directory.offset : built.directory.end]
    data = bytearray(built.data[: built.directory.end] + copy + built.data[built.directory.end :])
    shift = len(copy)
    locator = built.locator.offset + shift + 8
    data[locator : locator + 8] = struct.pack("<Q", built.zip64_end.offset + shift)
    end = built.end.offset + shift + 16
    data[end : end + 4] = struct.pack("<I", built.directory.offset + shift)
    facts = read(bytes(data))
    assert facts.directory is not None
    assert facts.directory.span == built.directory
    assert facts.directory.alternatives == [built.directory.end]
    assert "entry-behind-end" in codes(facts)
    assert_complete(facts, built)


# Bytes in front


def test_prefix_that_offsets_count() -> None:
    built = build(style=Style(prefix=b"#!/bin/sh\n"))
    facts = read(built.data)
    assert codes(facts) == []
    assert whats(facts) == [("prefix", Span(0, 10))]
    assert facts.directory is not None
    assert facts.directory.base == 0
    assert_complete(facts, built)


@pytest.mark.parametrize("zip64", [True, False])
def test_prefix_that_offsets_do_not_count(zip64: bool) -> None:
    built = build(style=Style(prefix=b"x" * 64, offset=-64, zip64=zip64))
    facts = read(built.data)
    assert codes(facts) == []
    assert whats(facts) == [("prefix", Span(0, 64))]
    assert facts.directory is not None
    assert facts.directory.base == 64
    assert facts.directory.stated_offset == built.directory.offset - 64
    assert_complete(facts, built)


def test_two_archives_in_a_row() -> None:
    built = build()
    facts = read(built.data * 2)
    size = len(built.data)
    assert facts.directory is not None
    assert facts.directory.base == size
    assert facts.directory.alternatives == [built.directory.offset]
    assert facts.ends.other_ends == [built.end.offset]
    assert facts.ends.other_zip64_ends == [built.zip64_end.offset]
    assert codes(facts) == []
    assert_complete(facts, built, shift=size)
    assert names(facts.unlisted) == NAMES
    assert [record.payload for record in facts.unlisted] == built.payloads


# Local headers and descriptors


@pytest.mark.parametrize("number", range(RECORDS))
def test_local_signature(number: int) -> None:
    built = build()
    facts = read(patched(built.data, built.headers[number].offset, b"\0\0\0\0"))
    assert codes(facts) == ["local-header-signature"]
    assert_complete(facts, built)


@pytest.mark.parametrize("number", [0, 2, 4])
@pytest.mark.parametrize("field", [26, 28])
def test_local_lengths(number: int, field: int) -> None:
    built = build()
    at = built.headers[number].offset + field
    for bit in range(16):
        facts = read(flipped(built.data, at + bit // 8, bit % 8))
        assert codes(facts) == ["local-header-lengths"], bit
        assert_complete(facts, built)


def test_no_local_header() -> None:
    built = build()
    header = built.headers[2]
    facts = read(patched(built.data, header.offset, b"\xff" * header.length))
    assert codes(facts) == ["local-header-missing"]
    record = facts.records[2]
    assert (record.local, record.payload, record.descriptor) == (None, None, None)
    assert whats(facts) == [("gap", Span(header.offset, built.headers[3].offset - header.offset))]
    first = read(patched(built.data, 0, b"\xff" * built.headers[0].length))
    assert whats(first) == [("gap", Span(0, built.headers[1].offset))]


@pytest.mark.parametrize(
    ("offset", "code"),
    [(0xFFFFFFF0, "local-header-outside"), (10, "local-header-missing")],
)
def test_wrong_offset_in_an_entry(offset: int, code: str) -> None:
    built = build()
    facts = read(patched(built.data, built.entries[4].offset + 42, struct.pack("<I", offset)))
    assert codes(facts) == [code]
    assert names(facts.unlisted) == [NAMES[4]]
    assert facts.unlisted[0].payload == built.payloads[4]


@pytest.mark.parametrize("number", [0, 4])
def test_descriptor_signature(number: int) -> None:
    built = build()
    span = built.descriptors[number]
    assert span is not None
    facts = read(patched(built.data, span.offset, b"PK\7\x09"))
    assert codes(facts) == ["descriptor-signature"]
    assert_complete(facts, built)
    descriptor = facts.records[number].descriptor
    assert descriptor is not None
    assert descriptor.compressed_size == len(TORCH_ITEMS[number].payload)


def test_junk_over_a_descriptor() -> None:
    built = build()
    span = built.descriptors[2]
    assert span is not None
    facts = read(patched(built.data, span.offset, b"\xee" * 16))
    assert codes(facts) == ["descriptor-signature"]
    assert facts.records[2].descriptor is not None
    assert facts.records[2].descriptor.compressed_size == 0xEEEEEEEE
    assert_complete(facts, built)


@pytest.mark.parametrize("place", ["headers", "entries"])
def test_flag_for_a_descriptor_is_damaged(place: str) -> None:
    """Bit 3 off where a descriptor follows, and on where none does (the record is empty)."""
    built = build()
    at = 6 if place == "headers" else 8
    for number in (2, 4):
        facts = read(flipped(built.data, getattr(built, place)[number].offset + at, 3))
        assert codes(facts) == []
        assert_complete(facts, built)
    facts = read(flipped(built.data, getattr(built, place)[3].offset + at, 3))
    assert codes(facts) == ["descriptor-missing"]
    assert_complete(facts, built)


@pytest.mark.parametrize("size", [180, 220, 0, 1 << 30])
def test_wrong_compressed_size_in_an_entry(size: int) -> None:
    """The payload is as long as the directory says; the descriptor is found where it stands."""
    built = build()
    facts = read(patched(built.data, built.entries[2].offset + 20, struct.pack("<I", size)))
    record = facts.records[2]
    assert codes(facts) == ["descriptor-displaced"]
    assert record.payload == Span(built.payloads[2].offset, size)
    assert record.payload_complete == (size < len(built.data))
    assert record.descriptor is not None
    assert record.descriptor.span == built.descriptors[2]
    for number, other in enumerate(facts.records):
        assert number == 2 or other.payload == built.payloads[number]
    assert bool(facts.overlaps) == (size > 216)


def test_overlaps() -> None:
    built = build()
    data = built.data
    for number in range(1, RECORDS):
        data = patched(data, built.entries[number].offset + 42, struct.pack("<I", built.headers[2].offset))
    facts = read(data)
    shared = {(one, other) for one, other, _ in facts.overlaps}
    assert len(facts.overlaps) == RECORDS - 2
    assert all({1, 2} & set(pair) for pair in shared)
    assert whats(facts) == [
        ("gap", Span(built.headers[1].offset, built.headers[2].offset - built.headers[1].offset)),
        ("gap", Span(built.headers[3].offset, built.directory.offset - built.headers[3].offset)),
    ]


def test_overlap_with_the_directory() -> None:
    built = build()
    size = built.directory.end - built.payloads[6].offset
    facts = read(patched(built.data, built.entries[6].offset + 20, struct.pack("<I", size)))
    assert (6, -1, built.directory) in facts.overlaps
    assert [region.span for region in facts.regions if region.what == "directory"] == [built.directory]


def test_record_that_only_a_local_header_tells_of() -> None:
    ghost = build([Item(b"model/ghost.pkl", b"hidden")])
    record = ghost.data[: ghost.directory.offset]
    built = build(style=Style(prefix=record))
    facts = read(built.data)
    assert names(facts.unlisted) == [b"model/ghost.pkl"]
    assert facts.unlisted[0].index == -1
    assert facts.unlisted[0].payload == ghost.payloads[0]
    assert facts.unlisted[0].descriptor is not None
    assert_complete(facts, built)


@pytest.mark.parametrize("change", [-64, -1, 1, 2, 512])
def test_bytes_lost_or_inserted_in_a_payload(change: int) -> None:
    """All records behind the fault are found, as far away from their stated place as the change is long."""
    built = build()
    at = built.payloads[2].offset + 70
    data = built.data[:at] + built.data[at - min(change, 0) :]
    data = data[:at] + bytes(max(change, 0)) + data[at:]
    facts = read(data)
    assert [record.name for record in facts.records] == NAMES
    lost = [record for record in facts.records if record.local is None]
    assert names(lost) == NAMES[3:]
    assert names(facts.unlisted) == NAMES[3:]
    for record, moved in zip(lost, facts.unlisted, strict=True):
        assert record.entry is not None
        assert moved.local is not None
        assert moved.local.span.offset - record.entry.header_offset == change
        assert moved.payload is not None
        assert moved.payload.length == record.entry.compressed_size
    assert facts.directory is not None
    assert "directory-offset" in codes(facts)


# No directory


@pytest.mark.parametrize("zip64", [True, False])
def test_salvage_every_cut(zip64: bool) -> None:
    """Wherever the bytes in front of the directory end: all whole records, then one without an end."""
    built = build(style=Style(zip64=zip64))
    for end in range(built.headers[0].end, built.directory.offset, 7):
        facts = read(built.data[:end])
        assert facts.salvaged
        started = [number for number in range(RECORDS) if built.headers[number].end <= end]
        assert names(facts.records) == [NAMES[number] for number in started]
        for number in started[:-1]:
            assert facts.records[number].payload == built.payloads[number]
            assert facts.records[number].payload_complete
        last, whole = facts.records[-1], built.payloads[started[-1]]
        assert last.payload is not None
        if last.payload_complete:
            assert last.payload == whole
        else:
            assert last.payload.offset == whole.offset


def test_salvage_of_archives_inside_records() -> None:
    inner = build()
    items = [Item(b"a/one", inner.data), Item(b"a/two", inner.data + b"more"), Item(b"a/three", b"3")]
    built = build(items)
    facts = read(built.data[: built.directory.offset])
    assert facts.salvaged
    assert names(facts.records) == [b"a/one", b"a/two", b"a/three"]
    assert [record.payload for record in facts.records] == built.payloads
    for end in range(built.payloads[1].offset + 4, built.payloads[2].offset, 5):
        cut = read(built.data[:end])
        assert cut.salvaged
        assert names(cut.records)[:2] == [b"a/one", b"a/two"]
        assert cut.records[0].payload == built.payloads[0]
        assert cut.records[1].payload is not None
        assert cut.records[1].payload.offset == built.payloads[1].offset
        whole = cut.records[1].payload_complete
        assert cut.records[1].payload.length == (built.payloads[1].length if whole else end - built.payloads[1].offset)


def test_listed_archives_inside_records() -> None:
    inner = build()
    built = build([Item(b"a/one", inner.data), Item(b"a/two", inner.data), Item(b"a/three", b"3")])
    facts = read(built.data)
    assert codes(facts) == []
    assert facts.unlisted == []
    assert [record.payload for record in facts.records] == built.payloads


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("method", [0, 8])
def test_salvage_deflated_and_unsigned(signed: bool, method: int) -> None:
    items = [replace(item, method=method if item.payload else 0, signed=signed) for item in TORCH_ITEMS]
    built = build(items)
    facts = read(built.data[: built.directory.offset])
    assert names(facts.records) == NAMES
    assert [record.payload for record in facts.records] == built.payloads
    assert [record.descriptor.span if record.descriptor else None for record in facts.records] == built.descriptors


def test_salvage_with_a_damaged_descriptor() -> None:
    built = build()
    span = built.descriptors[2]
    assert span is not None
    facts = read(patched(built.data[: built.directory.offset], span.offset, b"XXXX"))
    assert codes(facts) == ["end-record-missing", "descriptor-signature"]
    assert [record.payload for record in facts.records] == built.payloads


def test_salvage_across_chunks() -> None:
    """Signatures and descriptors on both sides of the 1 MiB pieces in which the file is read."""
    for rest in range(0, 40, 3):
        size = (1 << 20) - 64 - 30 - rest
        items = [Item(b"a/0", bytes(size)), Item(b"a/1", b"one"), Item(b"a/2", b"two")]
        built = build(items, Style(alignment=1))
        facts = read(built.data[: built.directory.offset])
        assert [record.payload for record in facts.records] == built.payloads


def test_salvage_sizes_in_local_headers() -> None:
    """Archives that other tools write: no bit 3, sizes in the local header."""
    built = build()
    data = bytearray(built.data[: built.directory.offset])
    for header, payload in zip(built.headers, built.payloads, strict=True):
        data[header.offset + 6 : header.offset + 8] = struct.pack("<H", 0x0800)
        data[header.offset + 18 : header.offset + 26] = struct.pack("<II", payload.length, payload.length)
    facts = read(bytes(data))
    assert names(facts.records) == NAMES
    assert [record.payload for record in facts.records] == built.payloads
    end = built.payloads[4].offset + 10
    facts = read(bytes(data[:end]))
    assert not facts.records[-1].payload_complete
    assert facts.records[-1].payload == Span(built.payloads[4].offset, 10)
