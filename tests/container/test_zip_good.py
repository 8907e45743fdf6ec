# SPDX-License-Identifier: Apache-2.0
"""Good archives: every fact is what the builder wrote, and what zipfile reads."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from fdd.container.zip import looks_like_zip, read_directory, read_local_headers
from fdd.container.zip.structs import ZipFacts
from fdd.core.source import BytesSource, FileSource, SliceSource
from fdd.core.span import Span
from fdd.limits import Limits
from tests.container.zip_builder import TORCH_ITEMS, Item, Style, build, large

LIMITS = Limits()


def read(data: bytes) -> ZipFacts:
    """All facts of an archive; the regions are checked to partition it."""
    source = BytesSource(data)
    facts = read_directory(source, LIMITS)
    read_local_headers(source, facts, LIMITS)
    check_partition(facts)
    return facts


def check_partition(facts: ZipFacts) -> None:
    """Regions ascend, none is empty, each begins where the one before ends, and together they are the file."""
    position = 0
    for region in facts.regions:
        assert region.span.offset == position
        assert region.span.length > 0
        position = region.span.end
    assert position == facts.size


def codes(facts: ZipFacts) -> list[str]:
    """All fault codes in ends, directory and records."""
    found = [fault.code for fault in facts.ends.faults]
    if facts.directory is not None:
        found += [fault.code for fault in facts.directory.faults]
    for record in [*facts.records, *facts.unlisted]:
        found += [fault.code for fault in (record.local_fault, record.descriptor_fault) if fault is not None]
        found += [record.entry.extra_fault.code] if record.entry is not None and record.entry.extra_fault else []
        found += [record.local.extra_fault.code] if record.local is not None and record.local.extra_fault else []
    return found


def test_torch_archive() -> None:
    built = build()
    facts = read(built.data)
    assert codes(facts) == []
    assert facts.unlisted == []
    assert facts.overlaps == []
    assert [record.name for record in facts.records] == [item.name for item in TORCH_ITEMS]
    assert [record.local.span for record in facts.records if record.local] == built.headers
    assert [record.payload for record in facts.records] == built.payloads
    assert [record.descriptor.span if record.descriptor else None for record in facts.records] == built.descriptors
    assert [record.entry.span for record in facts.records if record.entry] == built.entries
    assert all(record.payload_complete and record.index == number for number, record in enumerate(facts.records))
    assert {region.what for region in facts.regions} == {
        "local-header", "payload", "descriptor", "directory", "zip64-end", "zip64-locator", "end",
    }  # fmt: skip


def test_fields_of_all_structures() -> None:
    built = build()
    facts = read(built.data)
    record = facts.records[2]
    entry, local, descriptor = record.entry, record.local, record.descriptor
    assert entry is not None
    assert local is not None
    assert descriptor is not None
    crc32 = zlib.crc32(TORCH_ITEMS[2].payload)
    assert (entry.flags, entry.method, entry.crc32, entry.compressed_size, entry.uncompressed_size) == (0x808, 0, crc32, 200, 200)
    assert (entry.header_offset, entry.comment, entry.extra, entry.zip64) == (built.headers[2].offset, b"", (), None)
    assert (local.flags, local.version_needed, local.crc32, local.compressed_size, local.zip64) == (0x808, 0, 0, 0, None)
    assert [(field.identifier, set(field.data)) for field in local.extra] == [(0x4246, {ord("Z")})]
    assert local.extra[0].span.end == local.span.end == record.payload.offset if record.payload else None
    assert (descriptor.crc32, descriptor.compressed_size, descriptor.width, descriptor.has_signature) == (crc32, 200, 4, True)
    ends, directory = facts.ends, facts.directory
    assert directory is not None
    assert ends.end is not None
    assert ends.zip64_end is not None
    assert ends.locator is not None
    assert ends.governing == "zip64-end"
    assert ends.start == built.zip64_end.offset
    assert (ends.end.span, ends.zip64_end.span, ends.locator.span) == (built.end, built.zip64_end, built.locator)
    assert (ends.zip64_end.record_size, ends.zip64_end.version_made_by, ends.zip64_end.entries) == (44, 0x031E, 7)
    assert (ends.locator.end_record_offset, ends.locator.disks) == (built.zip64_end.offset, 1)
    assert (directory.span, directory.stated_offset, directory.stated_size) == (built.directory, *built.directory)
    assert (directory.stated_entries, directory.base, directory.alternatives) == (7, 0, [])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("force_zip64", [False, True])
def test_same_as_zipfile(streamed: bool, method: int, force_zip64: bool) -> None:
    """zipfile writes descriptors to a stream, ZIP64 fields on demand, dates, attributes and comments."""

    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return not streamed

        def seek(self, offset: int, whence: int = 0) -> int:
            if streamed:
                raise io.UnsupportedOperation("a stream")
            return super().seek(offset, whence)

        def tell(self) -> int:
            if streamed:
                raise io.UnsupportedOperation("a stream")
            return super().tell()

    target = Stream()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, payload in (("a/data.pkl", b"x" * 1000), ("a/ü", b""), ("a/", b""), ("a/data/0", bytes(range(256)) * 9)):
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=force_zip64) as record:
                record.write(payload)
        archive.comment = b"a comment"
    data = target.getvalue()
    facts = read(data)
    assert codes(facts) == []
    assert facts.ends.governing == "end"
    assert facts.ends.end is not None
    assert facts.ends.end.comment == b"a comment"
    assert {region.what for region in facts.regions} <= {"local-header", "payload", "descriptor", "directory", "end", "comment"}
    with zipfile.ZipFile(io.BytesIO(data)) as oracle:
        infos = oracle.infolist()
        assert len(infos) == len(facts.records)
        for info, found in zip(infos, facts.records, strict=True):
            entry = found.entry
            assert entry is not None
            assert found.payload is not None
            assert found.name == info.filename.encode()
            assert (entry.crc32, entry.compressed_size, entry.uncompressed_size) == (info.CRC, info.compress_size, info.file_size)
            assert (entry.header_offset, entry.flags, entry.method) == (info.header_offset, info.flag_bits, info.compress_type)
            stored = data[found.payload.offset : found.payload.end]
            assert (zlib.decompress(stored, -15) if entry.method else stored) == oracle.read(info)
            assert (found.descriptor is not None) == bool(entry.flags & 8)
            if found.descriptor is not None:
                assert found.descriptor.compressed_size == entry.compressed_size
                assert found.descriptor.width == (8 if force_zip64 else 4)


def test_empty_archive() -> None:
    for data in (build([]).data, build([], Style(zip64=False)).data):
        facts = read(data)
        assert codes(facts) == []
        assert facts.records == []
        assert facts.directory is not None
        assert not facts.salvaged


def test_nothing_that_is_a_zip() -> None:
    for data in (b"", b"PK", b"\x80\x02}q\x00.", b"\0" * 5000, b"PK\3\4"):
        facts = read(data)
        assert facts.records == []
        assert facts.directory is None
        assert codes(facts) == ["end-record-missing"]


def test_looks_like_zip() -> None:
    built = build()
    assert looks_like_zip(built.data, b"")
    assert looks_like_zip(b"", built.data)
    assert looks_like_zip(b"", b"..PK\6\7..")
    assert looks_like_zip(b"", b"..PK\1\2..")
    assert not looks_like_zip(b"\x80\x02PK", b"PK\3\4 further on")


@pytest.mark.parametrize(
    ("signed", "wide"), [(True, False), (True, True), (False, False), (False, True)], ids=["16", "24", "12", "20"]
)
def test_descriptor_widths(signed: bool, wide: bool) -> None:
    """Nothing tells the width but the fit; a wide one may stand behind a local header without a ZIP64 field."""
    payload = b"payload " * 20
    raw = (b"PK\7\x08" if signed else b"") + struct.pack("<IQQ" if wide else "<III", zlib.crc32(payload), 160, 160)
    built = build([Item(b"a/x", payload, flags=0x800), Item(b"a/y", b"next")])
    at = built.payloads[0].end
    shift = len(raw)
    data = bytearray(built.data[:at] + raw + built.data[at:])
    data[6:8] = struct.pack("<H", 0x0808)
    directory = built.directory.offset + shift
    data[directory + 8 : directory + 10] = struct.pack("<H", 0x0808)
    second = built.entries[1].offset + shift
    data[second + 42 : second + 46] = struct.pack("<I", built.headers[1].offset + shift)
    for field, width in ((built.zip64_end.offset + 48, 8), (built.locator.offset + 8, 8), (built.end.offset + 16, 4)):
        old = int.from_bytes(data[field + shift : field + shift + width], "little")
        data[field + shift : field + shift + width] = (old + shift).to_bytes(width, "little")
    facts = read(bytes(data))
    assert codes(facts) == []
    descriptor = facts.records[0].descriptor
    assert descriptor is not None
    assert descriptor.span == Span(at, shift)
    assert (descriptor.has_signature, descriptor.width) == (signed, 8 if wide else 4)
    assert (descriptor.crc32, descriptor.uncompressed_size) == (zlib.crc32(payload), 160)


def test_over_4_gib_in_the_dialect_of_torch() -> None:
    """format.md 1.10: a ZIP64 offset in local headers, 0 for the compressed size, 24-byte descriptors, few reads."""
    sizes = [100, 5 << 30, 0, 7, 0xFFFFFFFF, 3]
    source, places = large(sizes)
    facts = read_directory(source, LIMITS)
    assert source.reads < 12
    read_local_headers(source, facts, LIMITS)
    check_partition(facts)
    assert codes(facts) == []
    assert facts.unlisted == []
    assert not any(region.what in ("gap", "prefix", "trailing") for region in facts.regions)
    assert source.bytes_read < 2 << 20
    for record, size, (header, payload) in zip(facts.records, sizes, places, strict=True):
        entry, local, descriptor = record.entry, record.local, record.descriptor
        assert entry is not None
        assert local is not None
        assert (entry.compressed_size, entry.uncompressed_size, entry.header_offset) == (size, size, header)
        assert record.payload == Span(payload, size)
        assert local.zip64_offset == (header if header >= 0xFFFFFFFF else None)
        assert local.uncompressed_size == (size if size >= 0xFFFFFFFF else 0)
        assert (descriptor is not None) == (size > 0)
        if descriptor is not None:
            assert descriptor.span == Span(payload + size, 24 if local.zip64 is not None else 16)
            assert descriptor.compressed_size == size


def test_directory_alone_needs_few_reads(tmp_path: Path) -> None:
    path = tmp_path / "large.pt"
    path.write_bytes(build([Item(b"m/data/%d" % number, bytes(60_000)) for number in range(40)]).data)
    with FileSource(path) as source:
        facts = read_directory(source, LIMITS)
        assert source.reads == 1
        assert source.bytes_read <= 1 << 16
        assert all(record.payload is None and record.local is None for record in facts.records)
        read_local_headers(source, facts, LIMITS)
        assert source.reads <= 2 + len(facts.records)
    assert codes(facts) == []


def test_archive_inside_another_source() -> None:
    built = build()
    source = SliceSource(BytesSource(b"\xff" * 777 + built.data + b"\xff" * 99), Span(777, len(built.data)))
    facts = read_directory(source, LIMITS)
    read_local_headers(source, facts, LIMITS)
    check_partition(facts)
    assert [record.payload for record in facts.records] == built.payloads


def test_longest_names_and_many_records() -> None:
    items = [Item(b"m/" + b"%d" % number * 65_533 if number == 7 else b"m/data/%d" % number, b"12") for number in range(70)]
    assert len(items[7].name) == 65_535
    facts = read(build(items).data)
    assert codes(facts) == []
    assert [record.name for record in facts.records] == [item.name for item in items]
    count = 66_000
    facts = read_directory(BytesSource(build([Item(b"m/%d" % number) for number in range(count)]).data), LIMITS)
    assert codes(facts) == []
    assert len(facts.records) == count
    assert facts.ends.governing == "zip64-end"


def test_entry_limit() -> None:
    source = BytesSource(build().data)
    facts = read_directory(source, Limits(directory_entries=3))
    assert len(facts.records) == 3
    assert codes(facts) == ["entry-limit"]
    read_local_headers(source, facts, Limits(directory_entries=3))
    check_partition(facts)


def test_extensible_data_in_zip64_end_record() -> None:
    built = build(style=Style(extensible=b"\x01\x02\x03\x04data"))
    facts = read(built.data)
    assert codes(facts) == []
    assert facts.ends.zip64_end is not None
    assert facts.ends.zip64_end.extensible == Span(built.zip64_end.end, 8)
    assert facts.ends.start == built.zip64_end.offset
    assert len(facts.records) == len(TORCH_ITEMS)


def test_longest_comment() -> None:
    facts = read(build(style=Style(comment=b"c" * 65_535)).data)
    assert codes(facts) == []
    assert facts.ends.end is not None
    assert len(facts.ends.end.comment) == 65_535
    assert len(facts.records) == len(TORCH_ITEMS)
