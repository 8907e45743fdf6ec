# SPDX-License-Identifier: Apache-2.0
"""Mutations of good archives: nothing raises, regions partition the file, a flipped bit loses what it touches at most."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fdd.container.zip.structs import ZipFacts, ZipRecord
from fdd.core.span import Span
from tests.container.test_zip_good import read
from tests.container.zip_builder import Built, Item, Style, build, flipped

ITEMS = (Item(b"m/data.pkl", b"}q\0."), Item(b"m/data/0", bytes(range(70))), Item(b"m/data/1"), Item(b"m/version", b"3\n"))
BASES = [
    build(),
    build(ITEMS, Style(zip64=False, alignment=4)),
    build(ITEMS, Style(comment=b"PK\5\6 in a comment" * 3, prefix=b"#!", offset=-2)),
    build([Item(b"m/in.zip", build(ITEMS).data), Item(b"m/deflated", b"abc" * 99, method=8)]),
]

# Half of all places lie near the end, where directory and end records are.
Position = st.one_of(st.floats(0, 1, exclude_max=True), st.floats(0.7, 1, exclude_max=True))
Change = st.tuples(st.sampled_from(["flip", "cut", "insert", "delete", "zero", "repeat", "signature"]), Position, Position)
SIGNATURES = (b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\7\x08", b"\xff\xff\xff\xff")


def mutate(data: bytes, change: tuple[str, float, float]) -> bytes:
    """Apply one change; both numbers are places or amounts relative to the length."""
    what, one, two = change
    if not data:
        return data
    at, amount = int(one * len(data)), 1 + int(two * two * two * len(data))
    if what == "flip":
        return flipped(data, at, int(two * 8))
    if what == "cut":
        return data[:at]
    if what == "insert":
        return data[:at] + b"\xa5" * amount + data[at:]
    if what == "delete":
        return data[:at] + data[at + amount :]
    if what == "zero":
        return data[:at] + bytes(len(data[at : at + amount])) + data[at + amount :]
    if what == "repeat":
        return data[: at + amount] + data[at:]
    signature = SIGNATURES[int(two * len(SIGNATURES))]
    return data[:at] + signature + data[at + len(signature) :]


@settings(max_examples=200)
@given(st.sampled_from(range(len(BASES))), st.lists(Change, min_size=1, max_size=6))
def test_mutations_never_raise(base: int, changes: list[tuple[str, float, float]]) -> None:
    data = BASES[base].data
    for change in changes:
        data = mutate(data, change)
    check_sanity(read(data))


@settings(max_examples=100)
@given(st.lists(st.one_of(st.sampled_from(SIGNATURES), st.binary(max_size=40)), max_size=60))
def test_signatures_at_random_never_raise(parts: list[bytes]) -> None:
    check_sanity(read(b"".join(parts)))


def check_sanity(facts: ZipFacts) -> None:
    """What must hold whatever the bytes are."""
    assert facts.local_headers_read
    for number, record in enumerate(facts.records):
        assert record.index == (-1 if facts.salvaged else number)
        assert (record.local is None) == (record.payload is None)
        assert record.local is not None or record.local_fault is not None
    for record in [*facts.records, *facts.unlisted]:
        if record.local is not None and record.payload is not None:
            assert record.local.span.offset >= 0
            assert record.payload.offset == record.local.span.end <= facts.size
            assert record.payload.length >= 0
        if record.descriptor is not None:
            assert record.descriptor.span.end <= facts.size
    for one, other, span in facts.overlaps:
        assert one != other
        assert span.length > 0


def owner(built: Built, offset: int) -> tuple[str, int]:
    """Which structure holds a byte: its kind, and the number of its record or -1."""
    for kind, spans in (("header", built.headers), ("payload", built.payloads), ("entry", built.entries)):
        for number, span in enumerate(spans):
            if span.holds(offset):
                return kind, number
    for number, descriptor in enumerate(built.descriptors):
        if descriptor is not None and descriptor.holds(offset):
            return "descriptor", number
    return "ends", -1


def summary(record: ZipRecord) -> tuple[bytes, bytes | None, Span | None, Span | None]:
    """What a reader gets of a record."""
    local = record.local.name if record.local is not None else None
    return record.name, local, record.payload, record.descriptor.span if record.descriptor is not None else None


def test_a_flipped_bit_loses_what_it_touches_at_most() -> None:
    """One bit of each byte outside payloads: all records stay listed, and all others are as they were.

    Of the touched record itself, header, payload and descriptor stay too, but for damage in its size or offset in the
    directory, which nothing else repeats in a form that must be believed.
    """
    for built in BASES[:3]:
        before = [summary(record) for record in read(built.data).records]
        for offset in range(len(built.data)):
            kind, number = owner(built, offset)
            if kind == "payload":
                continue
            facts = read(flipped(built.data, offset, offset * 5 % 8))
            after = [summary(record) for record in facts.records]
            assert len(after) == len(before), (kind, number, offset)
            assert not facts.salvaged
            assert [item for place, item in enumerate(after) if place != number] == [
                item for place, item in enumerate(before) if place != number
            ], (kind, number, offset)
            if number >= 0 and not believed(built, kind, number, offset):
                assert after[number][2:] == before[number][2:], (kind, number, offset)


def believed(built: Built, kind: str, number: int, offset: int) -> bool:
    """Compressed size and header offset of an entry; and bit 3 of an empty record, which then lacks a descriptor."""
    if kind != "entry":
        return False
    return offset - built.entries[number].offset in (*range(20, 24), *range(42, 46))
