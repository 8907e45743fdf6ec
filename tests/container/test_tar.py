# SPDX-License-Identifier: Apache-2.0
"""Tar archives written byte by byte and by tarfile; every fault as a fact with its place, and no byte without an owner."""

from __future__ import annotations

import io
import tarfile
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdd.container.tar import BLOCK, TarFacts, looks_like_tar, read_tar
from fdd.core.source import BytesSource
from fdd.limits import Limits

END = bytes(2 * BLOCK)


def header(
    name: bytes = b"sys_info",
    size: int | bytes = 0,
    type_flag: bytes = b"0",
    *,
    magic: bytes = b"ustar\x0000",
    link: bytes = b"",
    prefix: bytes = b"",
    checksum: int | None = None,
    tail: bytes | None = None,
) -> bytes:
    """One header block; the checksum is right unless one is given."""
    field = size if isinstance(size, bytes) else b"%011o\0" % size
    owner = b"user".ljust(32, b"\0") + b"group".ljust(32, b"\0") + bytes(16)
    end = tail if tail is not None else owner + prefix.ljust(155, b"\0")
    block = (
        name.ljust(100, b"\0") + b"0000644\0" + b"0001750\0" * 2 + field + b"14000000000\0" + b" " * 8
        + type_flag + link.ljust(100, b"\0") + magic + end
    ).ljust(BLOCK, b"\0")  # fmt: skip
    stated = sum(block) if checksum is None else checksum
    return block[:148] + b"%06o\0 " % stated + block[156:]


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def read(data: bytes, **limits: int) -> TarFacts:
    facts = read_tar(BytesSource(data), Limits(**limits))
    check_partition(facts)
    return facts


def check_partition(facts: TarFacts) -> None:
    """The regions cover the file without overlap; all other spans lie in the file."""
    spans = [region.span for region in facts.regions]
    assert sum(span.length for span in spans) == facts.size
    assert all(before.end == after.offset for before, after in pairwise(spans))
    assert not spans or spans[0].offset == 0
    for member in facts.members:
        for span in (member.header.span, member.payload, member.padding, member.sparse_maps):
            assert span.length >= 0
            assert 0 <= span.offset <= span.end <= facts.size or not span.length


def codes(facts: TarFacts) -> list[str]:
    return [fault.code for fault in facts.faults]


def test_plain_archive() -> None:
    facts = read(header(b"sys_info", 3) + padded(b"abc") + header(b"pickle", BLOCK) + b"p" * BLOCK + END)
    assert [(m.name, m.size, m.payload, m.padding, m.type, m.payload_complete) for m in facts.members] == [
        (b"sys_info", 3, (512, 3), (515, 509), "file", True),
        (b"pickle", 512, (1536, 512), (2048, 0), "file", True),
    ]
    assert (facts.end, facts.trailing, facts.faults) == ((2048, 1024), (3072, 0), [])
    assert [region.what for region in facts.regions] == ["header", "payload", "padding", "header", "payload", "end"]
    assert [region.record for region in facts.regions] == [0, 0, 0, 1, 1, None]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_agrees_with_tarfile(form: int) -> None:
    long = form != tarfile.USTAR_FORMAT
    names = ["sys_info", "folder/" + "deep/" * 25 + "x", "umlaut-ü" if long else "plain", "n" * (300 if long else 90)]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for index, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size = 700 * index
            archive.addfile(info, io.BytesIO(bytes([index + 1]) * info.size))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "t" * (150 if long else 50)
        archive.addfile(link)
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    data = buffer.getvalue()
    facts = read(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [(m.name.encode(), m.size, m.offset_data, m.linkname.encode(), m.chksum) for m in archive.getmembers()]
    got = [(m.name.rstrip(b"/"), m.size, m.payload.offset, m.link_name, m.header.stated_checksum) for m in facts.members]
    assert got == expected
    assert [m.type for m in facts.members[-2:]] == ["symbolic-link", "directory"]
    assert facts.faults == []
    assert facts.end.end == facts.size


@given(st.integers(0, 2**88 - 1))
def test_base256_sizes(size: int) -> None:
    facts = read(header(size=b"\x80" + size.to_bytes(11, "big")) + b"data")
    assert facts.members[0].size == size
    assert facts.members[0].header.size_base256
    assert facts.members[0].payload_complete is (size <= 4)


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (b"00000000010\0", 8),
        (b"         10 ", 8),
        (b"10\0garbage!!", 8),
        (b"\0" * 12, 0),
        (b"00000000080\0", None),
        (b"\xff" * 12, -1),
    ],
)
def test_size_fields(raw: bytes, size: int | None) -> None:
    facts = read(header(size=raw) + padded(b"12345678") + END)
    assert facts.members[0].size == size
    bad = size is None or size < 0
    assert ("size-field" in codes(facts)) is bad
    assert facts.members[0].payload_complete is (size is not None)


def test_checksums() -> None:
    good = header(b"\xe4\xf6\xfc")
    stated = sum(good[:148]) + sum(good[156:]) + 8 * 32
    signed = header(b"\xe4\xf6\xfc", checksum=stated - 3 * 256)
    facts = read(good + signed + header(checksum=1) + END)
    assert [m.header.checksum_matches for m in facts.members] == [True, True, False]
    assert [(fault.code, fault.offset, fault.expected) for fault in facts.faults] == [
        ("checksum", 1024 + 148, f"{facts.members[2].header.computed_checksum:06o}")
    ]
    assert looks_like_tar(good)
    assert looks_like_tar(signed)


def test_looks_like_tar_by_magic_or_checksum() -> None:
    damaged = header(checksum=0)
    assert looks_like_tar(damaged)
    v7 = header(magic=bytes(8))
    assert looks_like_tar(v7)
    assert not looks_like_tar(header(magic=bytes(8), checksum=7))
    assert not looks_like_tar(b"")
    assert not looks_like_tar(bytes(BLOCK))
    assert not looks_like_tar(v7[:300])
    assert not looks_like_tar(b"PK\x03\x04" + bytes(600))


def test_one_flipped_bit_stays_a_tar() -> None:
    whole = header(b"sys_info", 3) + padded(b"abc") + header(b"pickle", 3) + padded(b"abc") + END
    for bit in range(BLOCK * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        assert looks_like_tar(bytes(data))
        facts = read(bytes(data))
        assert b"pickle" in [member.name for member in facts.members]
        # In the checksum field itself a digit may become a blank, and the number stays what it was.
        assert "checksum" in codes(facts) or 148 <= bit // 8 < 156


def test_search_for_headers_ends() -> None:
    """A member of wrong size, then an extension that leads nowhere: the same bytes are not searched for ever."""
    wrong = header(b"a", 5000, checksum=1)
    facts = read(wrong + header(b"x", 9, b"x") + padded(b"9 path=a\n") + b"j" * BLOCK)
    assert [m.name for m in facts.members] == [b"a"]
    assert codes(facts) == ["checksum", "payload-cut", "header-missing", "end-missing", "extension-orphan"]


def test_pax_and_global_records() -> None:
    pax = b"30 path=" + b"p" * 21 + b"\n" + b"12 size=700\n" + b"19 linkpath=target\n"
    shared = b"16 comment=none\n"
    data = header(b"g", len(shared), b"g") + padded(shared) + header(b"x", len(pax), b"x") + padded(pax)
    data += header(b"short", 0) + padded(bytes(700)) + header(b"next", 0) + END
    facts = read(data)
    assert [(m.name, m.size, m.link_name) for m in facts.members] == [(b"p" * 21, 700, b"target"), (b"next", 0, b"")]
    assert facts.globals[0].records == [(b"comment", b"none")]
    assert facts.members[0].extensions[0].records[1] == (b"size", b"700")
    assert facts.faults == []
    assert [region.what for region in facts.regions][:4] == ["extension", "extension", "header", "payload"]


@pytest.mark.parametrize(
    "records", [b"99 path=x\n", b"path=x\n", b"0 path=x\n", b"10 pathxx\n\n", b"9 path=x\nrest", b"-9 path=x\n"]
)
def test_broken_pax_records(records: bytes) -> None:
    facts = read(header(b"x", len(records), b"x") + padded(records) + header(b"own") + END)
    assert codes(facts) == ["pax-record"]
    assert len(facts.members) == 1


def test_gnu_long_names_and_prefix() -> None:
    data = header(b"././@LongLink", 200, b"L", magic=b"ustar  \0") + padded(b"n" * 199 + b"\0")
    data += header(b"././@LongLink", 150, b"K", magic=b"ustar  \0") + padded(b"t" * 149 + b"\0")
    data += header(b"n" * 100, 0, b"2", magic=b"ustar  \0") + header(b"leaf", prefix=b"branch")
    data += header(b"leaf", prefix=b"12345", magic=b"ustar  \0") + END
    facts = read(data)
    assert [m.name for m in facts.members] == [b"n" * 199, b"branch/leaf", b"leaf"]
    assert facts.members[0].link_name == b"t" * 149
    assert facts.members[0].type == "symbolic-link"


def test_links_have_no_payload_whatever_their_size_says() -> None:
    facts = read(header(b"a", 5000, b"1", link=b"b") + header(b"b", 1) + padded(b"x") + END)
    link, file = facts.members
    assert (link.name, link.type, link.size, link.payload.length) == (b"a", "hard-link", 5000, 0)
    assert (file.name, file.type, file.size, file.payload.length) == (b"b", "file", 1, 1)
    assert facts.faults == []


def test_sparse_maps_are_stepped_over() -> None:
    head = bytearray(header(b"s", 3, b"S", tail=bytes(217) + b"\1" + bytes(29)))
    further = bytes(504) + b"\1" + bytes(7)
    facts = read(bytes(head) + further + bytes(BLOCK) + padded(b"abc") + END)
    assert facts.members[0].sparse_maps == (512, 1024)
    assert facts.members[0].payload == (1536, 3)
    assert codes(read(bytes(head) + further)) == ["sparse-map-cut", "payload-cut", "end-missing"]


def test_old_folder_type() -> None:
    old = header(b"folder/", 0, b"\0", magic=bytes(8)) + header(b"a", 0, b"\0", magic=bytes(8))
    facts = read(old + header(b"q", 0, b"Q") + END)
    assert [m.type for m in facts.members] == ["directory", "file", "other"]


def test_cut_in_every_place() -> None:
    whole = header(b"sys_info", 3) + padded(b"abc") + header(b"pickle", 600) + padded(b"p" * 600) + END
    for length in range(1, len(whole)):
        facts = read(whole[:length])
        last = facts.members[-1] if facts.members else None
        if length < 512:
            assert codes(facts)[:1] == ["header-cut"]
        elif length < 515 or 1536 <= length < 2136:
            assert last is not None
            assert not last.payload_complete
            assert codes(facts)[0] == "payload-cut"
            assert last.payload.end == length
        elif 1024 < length < 1536:
            assert codes(facts) == ["header-cut", "end-missing"]
        elif 2560 < length < len(whole):
            assert codes(facts) == ["end-single"]
        else:
            assert codes(facts) == ["end-missing"]


def test_bytes_behind_the_end() -> None:
    facts = read(header() + END + bytes(100) + b"PK\x03\x04 hidden")
    assert facts.end == (512, 1024)
    assert facts.trailing == (1536, 111)
    assert facts.faults == []
    single = read(header() + bytes(BLOCK) + b"hidden")
    assert (single.end, single.trailing, codes(single)) == ((512, 512), (1024, 6), ["end-single"])


def test_place_without_header_is_skipped() -> None:
    junk = b"j" * BLOCK * 3
    facts = read(header(b"a") + junk + header(b"b", 1) + padded(b"x") + END)
    assert [m.name for m in facts.members] == [b"a", b"b"]
    assert codes(facts) == ["header-missing"]
    assert [region.what for region in facts.regions] == ["header", "gap", "header", "payload", "padding", "end"]
    lost = read(header(b"a") + junk)
    assert codes(lost) == ["header-missing", "end-missing"]
    assert lost.trailing == (512, 1536)


def test_wrong_size_does_not_hide_the_next_member() -> None:
    right = header(b"a", 3)
    for wrong in (b"00000010003\0", b"00777777773\0", b"00000000000\0", b"0000000000x\0"):
        data = right[:124] + wrong + right[136:] + padded(b"abc") + header(b"b", 1) + padded(b"x") + END + b"behind"
        facts = read(data)
        assert [m.name for m in facts.members] == [b"a", b"b"]
        assert "checksum" in codes(facts)


def test_limits() -> None:
    many = b"".join(header(b"m%d" % index) for index in range(6)) + END
    facts = read(many, directory_entries=4)
    assert len(facts.members) == 4
    assert codes(facts) == ["entry-limit", "end-missing"]
    long = header(b"x", 2000, b"L") + padded(b"n" * 2000) + header(b"short") + END
    facts = read(long, text_bytes=1000)
    assert facts.members[0].name == b"n" * 1000
    assert codes(facts) == ["extension-limit"]


def test_extension_without_member() -> None:
    facts = read(header(b"x", 9, b"x") + padded(b"9 path=a\n") + END)
    assert (facts.members, codes(facts)) == ([], ["extension-orphan"])
    cut = read(header(b"x", 900, b"x") + b"9 path=a\n")
    assert codes(cut) == ["extension-cut", "end-missing", "extension-orphan"]


@given(st.binary(max_size=3000))
def test_arbitrary_bytes(data: bytes) -> None:
    looks_like_tar(data)
    read(data)


_BLOCKS = st.one_of(
    st.builds(
        header,
        st.binary(max_size=20),
        st.one_of(st.integers(0, 3000), st.binary(min_size=12, max_size=12)),
        st.sampled_from([b"0", b"1", b"5", b"L", b"K", b"x", b"g", b"S", b"\0", b"Z"]),
        magic=st.sampled_from([b"ustar\x0000", b"ustar  \0", bytes(8), b"ustbr\x0000"]),
        checksum=st.one_of(st.none(), st.integers(0, 8**6 - 1)),
    ),
    st.binary(max_size=600).map(padded),
    st.just(bytes(BLOCK)),
    st.just(b"17 path=somewhere\n".ljust(BLOCK, b"\0")),
)


@given(st.lists(_BLOCKS, max_size=12), st.integers(0, 600))
def test_arbitrary_sequences_of_blocks(blocks: list[bytes], cut: int) -> None:
    data = b"".join(blocks)
    read(data[: max(0, len(data) - cut)])
