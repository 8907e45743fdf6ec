# SPDX-License-Identifier: Apache-2.0
"""torch's container form: written byte for byte, and compared field for field."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.build.kit import (
    CORPUS,
    archive,
    cut,
    eager,
    eager_records,
    extra_field,
    insert,
    rezip,
    set_field,
    take_apart,
    tensor,
    with_serialization_id,
)
from fdd.container.zip import read_directory, read_local_headers
from fdd.container.zip.structs import ZipFacts
from fdd.core.source import CHUNK, ByteSource, BytesSource
from fdd.core.span import Span
from fdd.formats.pytorch.canonical import (
    CanonicalComparison,
    CanonicalRecord,
    Piece,
    assemble,
    compare,
    layout,
    write_archive,
)
from fdd.limits import Limits

REAL = ("tensor.pt", "state_dict.pth", "from_buffer.bin")


def real(name: str) -> bytes:
    return (Path(CORPUS) / "real" / f"torch-2.13.0-{name}").read_bytes()


def facts_of(source: ByteSource) -> ZipFacts:
    facts = read_directory(source, Limits())
    read_local_headers(source, facts, Limits())
    return facts


def comparison(data: bytes) -> CanonicalComparison:
    source = BytesSource(data)
    return compare(source, facts_of(source))


def wheres(data: bytes) -> list[str]:
    return [difference.where for difference in comparison(data).differences]


def mixed() -> bytes:
    """Empty, tiny and deflated records, one after the other."""
    records = [("version", b"1\n"), ("code/a.py", b"x = 1\n" * 40), ("empty", b""), ("data.pkl", b"\x80\x02N."), ("none", b"")]
    return archive(records, "m", deflate=["code/a.py"])


def structure_offsets(data: bytes) -> list[int]:
    payloads = [record.payload for record in facts_of(BytesSource(data)).records]
    return [at for at in range(len(data)) if not any(span is not None and span.holds(at) for span in payloads)]


# Writing


@pytest.mark.parametrize("name", REAL)
def test_files_of_torch_are_rebuilt(name: str) -> None:
    data = real(name)
    facts = facts_of(BytesSource(data))
    rows, payloads = [], []
    for record in facts.records:
        assert record.entry is not None
        assert record.payload is not None
        entry = record.entry
        rows.append(CanonicalRecord(entry.name, entry.compressed_size, entry.uncompressed_size, entry.crc32, entry.method))
        payloads.append(data[record.payload.offset : record.payload.end])
    assert assemble(layout(rows), payloads) == data
    assert write_archive([(row.name, payload) for row, payload in zip(rows, payloads, strict=True)]) == data
    result = comparison(data)
    assert result.canonical is True
    assert result.differences == []
    assert result.written_by_torch


@pytest.mark.parametrize("alignment", [0, -1, 65537, 131072])
def test_alignments_torch_cannot_write(alignment: int) -> None:
    with pytest.raises(ValueError, match="alignment"):
        layout([CanonicalRecord(b"a/b", 1, 1, 0)], alignment)


@given(
    st.lists(st.tuples(st.text("ab/é", min_size=1, max_size=20), st.binary(max_size=80)), min_size=1, max_size=6),
    st.sampled_from([1, 2, 48, 64, 512]),
    st.booleans(),
)
def test_payloads_are_aligned_and_nothing_lies_between(records: list[tuple[str, bytes]], alignment: int, crc_off: bool) -> None:
    data = write_archive([(name.encode(), payload) for name, payload in records], alignment=alignment, crc_off=crc_off)
    facts = facts_of(BytesSource(data))
    assert len(facts.records) == len(records)
    for record, (name, payload) in zip(facts.records, records, strict=True):
        assert record.name == name.encode()
        assert record.payload is not None
        assert record.payload.offset % alignment == 0
        assert data[record.payload.offset : record.payload.end] == payload
    assert not [region for region in facts.regions if region.what in ("gap", "prefix", "trailing")]


# Comparing good files


@pytest.mark.parametrize("alignment", [1, 16, 64, 512, 65536])
def test_alignment_is_taken_from_its_record(alignment: int) -> None:
    result = comparison(eager(tensor([1.0]), alignment=alignment))
    assert result.canonical is True
    assert result.alignment == alignment


@pytest.mark.parametrize("era", ["1.4", "1.5", "1.6", "1.9", "2.1", "2.7"])
def test_every_era_is_canonical(era: str) -> None:
    assert comparison(eager([tensor([1.0]), tensor([])], era=era)).canonical is True


def test_deflated_and_empty_records() -> None:
    result = comparison(mixed())
    assert result.canonical is True
    assert result.padded == result.local_headers == 5


def test_old_script_may_bear_one_date() -> None:
    old = [("version", b"1\n"), ("code/a.py", b"pass"), ("tensors/0", b"1234"), ("model.json", b"{}")]
    assert comparison(archive(old, "s", time=0x6000, date=0x5B7D)).canonical is True
    assert wheres(set_field(archive(old, "s", time=0x6000, date=0x5B7D), "local header", "date", 1, b"s/tensors/0")) == [
        "local header of s/tensors/0: date"
    ]
    eager_one = [("data.pkl", b"N."), ("version", b"3\n")]
    assert "local header of s/version: date" in wheres(archive(eager_one, "s", time=0x6000, date=0x5B7D))


# Comparing damaged files


@pytest.mark.parametrize("data", [real("from_buffer.bin"), mixed(), eager([tensor([1.0]), tensor([])], crc_off=True)])
def test_no_flipped_bit_is_missed(data: bytes) -> None:
    # Every byte outside the payloads, one bit each; all eight were tried while this was written.
    bits = random.Random(13)
    for offset in structure_offsets(data):
        damaged = bytearray(data)
        damaged[offset] ^= 1 << bits.randrange(8)
        result = comparison(bytes(damaged))
        holding = [difference for difference in result.differences if difference.span.holds(offset)]
        assert holding, f"byte {offset}"
        assert result.canonical is False
        assert min(difference.span.length for difference in holding) <= 90
        # Two copies of a name or a checksum may stand against each other; nothing else comes in pairs.
        assert len(result.differences) <= 2 or offset > data.index(b"PK\x01\x02")


@given(st.data())
def test_any_damage_is_survived_and_canonical_means_rebuilt(data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from([mixed(), eager([tensor([1.0]), tensor([])], era="2.1")])))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(damaged)))
        length = data.draw(st.sampled_from([0, 1, 2, 4, 8, 60]))
        new = data.draw(
            st.one_of(st.binary(max_size=8), st.just(b"\xff" * length), st.just(b"PK\x03\x04"), st.just(b"PK\x01\x02"))
        )
        damaged[start : start + length] = new
    source = BytesSource(damaged)
    facts = facts_of(source)
    if compare(source, facts).canonical is True:
        rows, payloads = [], []
        for record in facts.records:
            assert record.entry is not None
            assert record.payload is not None
            entry = record.entry
            rows.append(CanonicalRecord(entry.name, entry.compressed_size, entry.uncompressed_size, entry.crc32, entry.method))
            payloads.append(bytes(damaged[record.payload.offset : record.payload.end]))
        assert assemble(layout(rows), payloads) == damaged


def test_impossible_sizes_are_survived() -> None:
    parts = take_apart(eager([tensor([1.0]), tensor([2.0])]))
    central = parts.member(b"/data/0").central
    assert central is not None
    central.compressed_size = central.uncompressed_size = 0xFFFFFFFF
    central.extra = extra_field(1, b"\xff" * 16)
    assert comparison(parts.build()).canonical is False
    central.method, central.uncompressed_size = 8, 9
    assert comparison(parts.build()).canonical is False
    local = parts.member(b"/data/1").local
    assert local is not None
    local.extra = extra_field(0x4246, b"Z" * 65531)
    assert comparison(parts.build()).canonical is False


@pytest.mark.parametrize(
    ("structure", "name", "value"),
    [
        ("local header", "version needed", 20),
        ("local header", "flags", 0x0800),
        ("local header", "crc-32", 7),
        ("local header", "compressed size", 8),
        ("local header", "name length", 3),
        ("local header", "extra length", 0),
        ("data descriptor", "signature", 0),
        ("data descriptor", "compressed size", 1 << 31),
        ("directory entry", "version made by", 0x0314),
        ("directory entry", "method", 8),
        ("directory entry", "compressed size", 9),
        ("directory entry", "uncompressed size", 9),
        ("directory entry", "internal attributes", 1),
        ("directory entry", "external attributes", 1 << 16),
        ("directory entry", "header offset", 77),
        ("ZIP64 end record", "record size", 45),
        ("ZIP64 end record", "entries", 9),
        ("ZIP64 end record", "directory size", 1),
        ("ZIP64 end locator", "end record offset", 1),
        ("ZIP64 end locator", "disks", 2),
        ("end record", "entries", 9),
        ("end record", "directory offset", 1),
    ],
)
def test_one_changed_field_is_named(structure: str, name: str, value: int) -> None:
    record = b"" if "end" in structure else b"archive/data/0"
    owner = " of archive/data/0" if record else ""
    data = set_field(eager([tensor([1.0, 2.0]), tensor([3.0])]), structure, name, value, record)
    assert wheres(data) == [f"{structure}{owner}: {name}"]


def test_two_copies_that_disagree_are_both_listed() -> None:
    data = set_field(eager(tensor([1.0, 2.0])), "directory entry", "crc-32", 7, b"archive/data/0")
    assert wheres(data) == ["data descriptor of archive/data/0: crc-32", "directory entry of archive/data/0: crc-32"]


def test_difference_says_where_and_what() -> None:
    data = set_field(eager(tensor([1.0])), "local header", "version needed", 20, b"archive/data/0")
    (difference,) = comparison(data).differences
    assert data[difference.span.offset : difference.span.end] == difference.found == b"\x14\0"
    assert difference.expected == b"\0\0"
    assert difference.record == 4


def test_wrong_alignment_text() -> None:
    records = [(name, b"32" if name == ".storage_alignment" else payload) for name, payload in eager_records(tensor([1.0]))]
    result = comparison(archive(records))
    assert result.alignment == 64
    assert [difference.where for difference in result.differences] == ["payload of archive/.storage_alignment: alignment"]


# Moved and foreign structures


def test_bytes_in_front_are_one_shift() -> None:
    data = b"#!/bin/sh\n" + eager([tensor([float(number)]) for number in range(30)])
    result = comparison(data)
    assert [(difference.where, difference.span) for difference in result.differences] == [
        ("layout of archive/data.pkl: bytes in front of the first record", Span(0, 10))
    ]
    assert result.written_by_torch


def test_gap_in_the_middle_is_one_shift() -> None:
    parts = take_apart(eager([tensor([float(number)]) for number in range(30)]))
    parts.members[7].gap = b"hidden bytes"
    (difference,) = comparison(parts.build()).differences
    assert difference.where == "layout of archive/data/3: bytes between records"
    assert difference.span.length == 12


def test_padding_changed_throughout_is_one_shift() -> None:
    parts = take_apart(eager([tensor([float(number)]) for number in range(30)], era="2.1"))
    parts.alignment = 16
    result = comparison(parts.build())
    # Extra length and padding length of the first header; from there on padding is not reported.
    assert [difference.field for difference in result.differences] == ["padding length"]


def test_record_left_out_of_the_directory() -> None:
    parts = take_apart(eager([tensor([1.0]), tensor([2.0])]))
    parts.member(b"/data/1").central = None
    (difference,) = comparison(parts.build()).differences
    assert difference.where == "layout of archive/version: bytes between records"


def test_order_of_the_directory() -> None:
    parts = take_apart(eager([tensor([1.0]), tensor([2.0])]))
    parts.directory = [*parts.members[1:], parts.members[0]]
    (difference,) = comparison(parts.build()).differences
    assert difference.where == "directory of archive/.format_version: order"


def test_missing_descriptor() -> None:
    parts = take_apart(eager([tensor([1.0]), tensor([2.0])]))
    parts.member(b"/data/0").drop_descriptor()
    fields = wheres(parts.build())
    assert "data descriptor of archive/data/0: missing" in fields
    assert "local header of archive/data/0: flags" in fields
    assert not [field for field in fields if "data/1" in field]


def test_comment_and_extra_in_the_directory() -> None:
    parts = take_apart(eager([tensor([1.0]), tensor([2.0])]))
    central = parts.member(b"/data/0").central
    assert central is not None
    central.extra, central.comment = extra_field(0x5455, b"\1abcd"), b"note"
    fields = wheres(parts.build())
    expected = ("extra length", "comment length", "extra field or comment")
    assert fields[:3] == [f"directory entry of archive/data/0: {what}" for what in expected]
    assert not [field for field in fields if "data/1" in field]


def test_missing_zip64_records() -> None:
    parts = take_apart(eager(tensor([1.0])))
    parts.with_zip64 = False
    assert wheres(parts.build()) == ["ZIP64 end record: missing", "ZIP64 end locator: missing"]


def test_bytes_behind_and_comment() -> None:
    data = eager(tensor([1.0]))
    (difference,) = comparison(data + b"tail").differences
    assert difference.where == "layout: bytes behind the end record"
    assert difference.span == Span(len(data), 4)
    parts = take_apart(data)
    parts.comment = b"hello"
    assert wheres(parts.build()) == ["end record: comment length", "layout: bytes behind the end record"]


def test_bytes_between_directory_and_ends() -> None:
    data = eager(tensor([1.0]))
    fields = wheres(insert(data, data.index(b"PK\x06\x06"), b"xyz"))
    assert fields[0] == "layout: bytes in front of the ZIP64 end record"


def test_two_archives_in_one_file() -> None:
    first, second = eager(tensor([1.0])), eager(tensor([2.0, 3.0]))
    (difference,) = comparison(first + second).differences
    assert difference.span == Span(0, len(first))


def test_rezipped_files_are_not_torchs() -> None:
    result = comparison(rezip(eager([tensor([1.0]), tensor([2.0])])))
    assert result.canonical is False
    assert not result.written_by_torch
    assert not result.mostly_padded
    assert result.padded == 0
    fields = {difference.where for difference in result.differences}
    assert "local header of archive/data/1: version needed" in fields
    assert "data descriptor of archive/data/1: missing" in fields
    assert "ZIP64 end record: missing" in fields


def test_limit_of_differences() -> None:
    source = BytesSource(rezip(eager([tensor([1.0]) for _ in range(50)])))
    result = compare(source, facts_of(source), limit=20)
    assert len(result.differences) == 20
    assert not result.complete
    assert result.canonical is False


def test_single_damaged_padding_field_leaves_the_writer_known() -> None:
    data = eager([tensor([1.0]), tensor([2.0])])
    place = data.index(b"FB", data.index(b"archive/data/1"))
    result = comparison(data[:place] + b"FC" + data[place + 2 :])
    assert [difference.where for difference in result.differences] == ["local header of archive/data/1: padding field id"]
    assert not result.written_by_torch
    assert result.mostly_padded


@pytest.mark.parametrize("keep", [40, 400, 800])
def test_without_directory_it_cannot_be_told(keep: int) -> None:
    result = comparison(cut(eager([tensor([1.0]), tensor([2.0])]), keep))
    assert result.canonical is None
    assert result.undecided


def test_nothing_to_compare() -> None:
    result = comparison(b"no archive at all")
    assert result.canonical is None
    assert not result.written_by_torch


def test_only_structures_are_read() -> None:
    big = [(f"data/{number}", bytes(100_000)) for number in range(5)]
    source = BytesSource(archive([("data.pkl", b"N."), *big, ("version", b"3\n")]))
    facts = facts_of(source)
    before, reads = source.bytes_read, source.reads
    assert compare(source, facts).canonical is True
    assert source.bytes_read - before < 3000
    assert source.reads - reads <= 2 * len(facts.records) + 5


def test_linear_in_records() -> None:
    source = BytesSource(eager([tensor([1.0]) for _ in range(3000)]))
    facts = facts_of(source)
    reads = source.reads
    assert compare(source, facts).canonical is True
    assert source.reads - reads <= 2 * len(facts.records) + 10


# Beyond 4 GiB


class SparseSource:
    """A file of gigabytes that consists of pieces; everything else reads as zero."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = [(piece.span, piece.data) for piece in pieces]
        self.size = pieces[-1].span.end
        self.bytes_read = 0
        self.reads = 0

    def read_at(self, offset: int, length: int) -> bytes:
        length = max(0, min(length, self.size - offset))
        result = bytearray(length)
        for span, data in self.pieces:
            start, end = max(span.offset, offset), min(span.end, offset + length)
            if start < end:
                result[start - offset : end - offset] = data[start - span.offset : end - span.offset]
        return bytes(result)

    def stream(self, span: Span, chunk: int = CHUNK) -> Iterator[bytes]:
        for start in range(span.offset, min(span.end, self.size), chunk):
            yield self.read_at(start, min(chunk, span.end - start))

    def will_read(self, spans: object) -> None:
        pass


BIG = 0xFFFFFFFF


def big_records() -> list[CanonicalRecord]:
    return [
        CanonicalRecord(b"b/data.pkl", 100, 100, 1),
        CanonicalRecord(b"b/data/0", BIG, BIG, 2),
        CanonicalRecord(b"b/data/1", 20, 20, 3),
        CanonicalRecord(b"b/data/2", 0, 0, 0),
        CanonicalRecord(b"b/data/3", BIG + 17, BIG + 17, 4),
    ]


def test_zip64_dialect() -> None:
    pieces = layout(big_records())
    local = {piece.record: piece for piece in pieces if piece.what == "local-header"}
    central = {piece.record: piece for piece in pieces if piece.what == "directory-entry"}
    tails = {piece.record: piece for piece in pieces if piece.what == "descriptor"}

    def extras(number: int) -> tuple[bytes, bytes]:
        return local[number].data[38:], central[number].data[46 + 8 :]

    size = BIG.to_bytes(8, "little")
    first, entry = extras(1)
    assert first.startswith(b"\1\0\x10\0" + size + bytes(8) + b"FB")
    assert entry == b"\1\0\x10\0" + size + size
    offset = local[2].span.offset.to_bytes(8, "little")
    first, entry = extras(2)
    assert first.startswith(b"\1\0\x08\0" + offset + b"FB")
    assert entry == b"\1\0\x08\0" + offset
    first, entry = extras(3)
    assert first.startswith(b"\1\0\x08\0" + local[3].span.offset.to_bytes(8, "little") + b"FB")
    size, offset = (BIG + 17).to_bytes(8, "little"), local[4].span.offset.to_bytes(8, "little")
    first, entry = extras(4)
    assert first.startswith(b"\1\0\x18\0" + size + bytes(8) + offset + b"FB")
    assert entry == b"\1\0\x18\0" + size + size + offset
    for number in (1, 2, 3, 4):
        assert local[number].data[4:6] == b"\0\0"
        assert local[number].data[14:26] == bytes(12)
        assert local[number].span.end % 64 == 0
    assert central[1].data[20:28] == b"\xff" * 8
    assert central[2].data[42:46] == b"\xff" * 4
    assert {number: piece.span.length for number, piece in tails.items()} == {0: 16, 1: 24, 2: 24, 4: 24}
    assert pieces[-1].data[16:20] == b"\xff" * 4


def test_compare_beyond_4_gib() -> None:
    pieces = layout(big_records())
    source = SparseSource(pieces)
    facts = facts_of(source)
    assert compare(source, facts).canonical is True
    place = next(piece for piece in pieces if piece.what == "local-header" and piece.record == 4)
    damaged = bytearray(place.data)
    damaged[50] ^= 1
    broken = SparseSource([piece._replace(data=bytes(damaged)) if piece is place else piece for piece in pieces])
    (difference,) = compare(broken, facts_of(broken)).differences
    assert difference.where == "local header of b/data/3: ZIP64 field"


def test_id_is_part_of_what_the_kit_writes() -> None:
    records = with_serialization_id(eager_records(tensor([1.0])))
    assert archive(records) == eager(tensor([1.0]))
