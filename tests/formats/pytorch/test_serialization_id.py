# SPDX-License-Identifier: Apache-2.0
"""The serialization id: against values measured with torch, libstdc++ (GCC 12) and libc++ 14."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpus.build.kit import CORPUS, archive, eager, set_field, tensor, with_serialization_id
from fdd.container.zip import read_directory, read_local_headers
from fdd.core.source import BytesSource
from fdd.formats.pytorch.serialization_id import (
    ID_RECORD,
    IdFacts,
    IdRecord,
    Platform,
    check,
    check_archive,
    content_half,
    id_text,
    names_half,
    serialization_id,
)
from fdd.limits import Limits

SIX = [b"data.pkl", b".format_version", b".storage_alignment", b"byteorder", b"data/0", b"version"]
MANY = [
    *SIX[:4],
    *(b"data/%d" % number for number in range(300)),
    b"code/__torch__/torch/nn/modules/batchnorm.py",
    b"code/__torch__/torch/nn/modules/" + b"x" * 60 + b".py.debug_pkl",
    b"version",
]
"""Crosses seven growths of the set; two names are long enough for the other branches of CityHash."""


def facts_of(data: bytes) -> IdFacts | None:
    source = BytesSource(data)
    facts = read_directory(source, Limits())
    read_local_headers(source, facts, Limits())
    return check_archive(source, facts)


@pytest.mark.parametrize(
    ("names", "platform", "expected"),
    [
        ([b"version", b"byteorder"], "linux", 104933249815536627),
        (SIX, "linux", 15728199511854643026),
        (SIX, "macos", 8434950702264123677),
        (SIX, "linux-big-endian", 7386463873679845642),
        (MANY, "linux", 393917957474007541),
        (MANY[:-1], "linux", 13300211623219439020),
        (MANY, "macos", 17358559678308462109),
        (MANY[:-1], "macos", 6267083592618871681),
        (MANY[:-2], "macos", 17484270356036831783),
    ],
)
def test_names_half(names: list[bytes], platform: Platform, expected: int) -> None:
    assert names_half(names, platform) == expected


def test_names_half_depends_on_the_order_and_not_on_the_id_record() -> None:
    assert names_half([*SIX, ID_RECORD]) == names_half(SIX)
    assert names_half(MANY[::-1]) != names_half(MANY)


def test_content_half_of_a_big_endian_writer() -> None:
    # tensor.pt of torch 2.14.1 on s390x.
    crcs = [370502555, 2212294583, 3916527423, 3556500041, 2797657658, 1432854225]
    records = [IdRecord(name, crc, 1) for name, crc in zip(SIX, crcs, strict=True)]
    result = check(b"0738646387367984564203449358563402891551", records)
    assert result.well_formed
    assert result.content_matches is True
    assert result.names_platform == "linux-big-endian"
    assert set(result.names) == {"linux", "linux-big-endian"}


def test_empty_records_and_the_id_itself_do_not_count() -> None:
    counted = [IdRecord(b"data/0", 5, 3), IdRecord(b"version", 7, 2)]
    others = [IdRecord(b"data/1", 0, 0), IdRecord(ID_RECORD, 9, 40)]
    assert content_half([*counted, *others]) == content_half(counted)
    assert content_half(counted) != content_half(counted[::-1])


@pytest.mark.parametrize(
    ("head", "size", "method", "counts"),
    [
        (b"PK\x07\x08\x11\x22\x33\x44", 8, 0, True),
        (b"PK\x07\x08\x11\x22\x33\x44", 8, 8, False),
        (b"PK\x07\x08\x11\x22\x33", 7, 0, False),
        (b"PK\x07\x09\x11\x22\x33\x44", 8, 0, False),
    ],
)
def test_payload_that_begins_like_a_descriptor(head: bytes, size: int, method: int, counts: bool) -> None:
    expected = [IdRecord(b"a", 0x44332211, 1)] if counts else []
    assert content_half([IdRecord(b"b", 5, size, method, head)]) == content_half([*expected, IdRecord(b"b", 5, 1)])


def test_quirk_as_torch_writes_it() -> None:
    # Measured with torch 2.13.0: uint8 tensors of 16 and 7 bytes that begin with PK 07 08, and an empty one.
    head = b"PK\x07\x08\x11\x22\x33\x44"
    rows = [
        IdRecord(b"data.pkl", 2750184404, 296, head=b""),
        IdRecord(b".format_version", 2212294583, 1, head=b""),
        IdRecord(b".storage_alignment", 3916527423, 2, head=b""),
        IdRecord(b"byteorder", 434322821, 6, head=b""),
        IdRecord(b"data/0", 2367237779, 16, head=head),
        IdRecord(b"data/1", 1725407305, 7, head=head[:7]),
        IdRecord(b"data/2", 0, 0, head=b""),
        IdRecord(b"version", 1432854225, 2, head=b""),
        IdRecord(b".data/serialization_id", 1148335568, 40, head=b""),
    ]
    text = b"0849488847965048735012404424972206722979"
    assert check(text, rows).content_matches is True
    assert check(text, rows).names_platform == "linux"
    assert check(text, [replace(row, head=None) for row in rows]).content_matches is False


def test_heads_are_read_where_the_id_needs_them() -> None:
    quirk = b"PK\x07\x08\x11\x22\x33\x44abcdefgh"
    result = facts_of(archive(with_serialization_id([("data/0", quirk), ("version", b"3\n")])))
    assert result is not None
    assert result.content_matches is True


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (b"0" * 40, "two-numbers"),
        (b"1" * 39, "digits"),
        (b"9" * 40, "digits"),
        (b"123e4567-e89b-12d3-a456-426614174000", "uuid"),
        (b"", "other"),
        ("٣".encode() * 20, "other"),
        (b"0" * 39 + b"\n", "other"),
    ],
)
def test_shapes(text: bytes, shape: str) -> None:
    result = check(text, [IdRecord(b"version", 1, 2)])
    assert result.shape == shape
    assert (result.content_matches is None) == (shape != "two-numbers")
    assert result.names_platform is None


def test_text_of_a_platform() -> None:
    records = [IdRecord(name, number, 1) for number, name in enumerate(SIX)]
    for platform in ("linux", "linux-big-endian", "macos"):
        text = serialization_id(records, platform)
        assert len(text) == 40
        assert check(text, records).names_platform == platform
    assert id_text(0, 1) == b"0" * 39 + b"1"


@pytest.mark.parametrize("name", ["tensor.pt", "state_dict.pth", "from_buffer.bin"])
def test_files_of_torch(name: str) -> None:
    result = facts_of((Path(CORPUS) / "real" / f"torch-2.13.0-{name}").read_bytes())
    assert result is not None
    assert result.content_matches is True
    assert result.names_platform == "linux"


def test_changed_checksum_and_missing_record() -> None:
    data = eager(tensor([1.0, 2.0]))
    changed = facts_of(set_field(data, "directory entry", "crc-32", 1, b"archive/data/0"))
    assert changed is not None
    assert changed.content_matches is False
    assert changed.names_platform == "linux"
    assert facts_of(eager(tensor([1.0]), era="1.9")) is None


def test_checksums_switched_off() -> None:
    result = facts_of(eager(tensor([1.0, 2.0]), crc_off=True))
    assert result is not None
    assert result.content_matches is True
