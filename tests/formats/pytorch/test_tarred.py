# SPDX-License-Identifier: Apache-2.0
"""The reader of torch tars, against tars put together by Python's tarfile and the kit of the corpus."""

from __future__ import annotations

import hashlib
import struct

import pytest

import fdd
from corpus.build.kit import Global, OldTensor, Tensor, by_key, dump, storage, tar_file, tar_members, tensor
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.older_facts import TAR_PARTS
from fdd.resources import corpus_dir
from tests.formats.pytorch.older import opened, spread

CORPUS = corpus_dir()
MEMBERS_END = {"good/legacy-tar.pth": 3655, "tar/views-pass.pth": 3668, "tar/extended-headers-pass.pth": 7807}
"""File -> behind the last byte of its last member. From there on only filler and the end mark are missing."""


def payload_of(document: TorchDocument, name: str) -> bytes:
    found = next(tensor for tensor in document.tensors if tensor.name == name)
    assert found.span is not None
    return document.source.read_at(*found.span)


def test_tensors_get_their_names_and_bytes() -> None:
    old = [OldTensor(11, 7, tensor([1.0, 2.0, 3.0])), OldTensor(12, 8, tensor([4, 5], dtype="int64"))]
    document = opened(tar_file(tar_members({"a": by_key(11), "b": [by_key(12), by_key(11)]}, old)))
    assert [tensor.name for tensor in document.tensors] == ["a", "b/0", "b/1"]
    assert payload_of(document, "a") == payload_of(document, "b/1") == struct.pack("<3f", 1, 2, 3)
    assert payload_of(document, "b/0") == struct.pack("<2q", 4, 5)


def test_content_is_told() -> None:
    old = [OldTensor(1, 7, tensor([1.0]))]
    assert opened(tar_file(tar_members({"w": by_key(1)}, old))).content == "state_dict"
    assert opened(tar_file(tar_members(by_key(1), old))).content == "tensor"
    assert opened(tar_file(tar_members([by_key(1)], old))).content == "collection"


def test_offsets_and_strides_are_those_of_the_entry() -> None:
    whole = storage([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    document = opened(tar_file(tar_members(by_key(1), [OldTensor(1, 7, Tensor(whole, (2, 2), (1, 2), offset=1))])))
    (found,) = document.tensors
    assert (found.shape, found.stride, found.storage_offset) == ((2, 2), (1, 2), 1)
    assert payload_of(document, "") == struct.pack("<4f", 2, 3, 4, 5)


def test_views_of_storages_count_from_where_they_start() -> None:
    document = opened((CORPUS / "tar/views-pass.pth").read_bytes())
    assert payload_of(document, "part") == struct.pack("<2f", 2, 3)
    assert len(document.storages) == 1


@pytest.mark.parametrize("path", ["tar/first-generation-pass.pth", "tar/text-persistent-ids-pass.pth"])
def test_older_generations_are_read_as_well(path: str) -> None:
    document = opened((CORPUS / path).read_bytes())
    assert struct.pack("<3f", 1, 2, 3) in [payload_of(document, tensor.name) for tensor in document.tensors]


def test_members_and_storages_are_records_with_digests() -> None:
    data = (CORPUS / "good/legacy-tar.pth").read_bytes()
    report = fdd.validate(data)
    assert [record["name"] for record in report.records] == [*TAR_PARTS, "storages/7"]
    for record in report.records:
        part = data[record["offset"] : record["offset"] + record["length"]]
        assert record["digests"]["sha256"] == hashlib.sha256(part).hexdigest()


@pytest.mark.parametrize("path", MEMBERS_END)
def test_cut_anywhere_it_stays_a_torch_tar_and_is_valid_only_with_all_its_members(path: str) -> None:
    data = (CORPUS / path).read_bytes()
    end = MEMBERS_END[path]
    # The first header, behind its own extended header and the records of that where it has them.
    known = 1536 if "extended" in path else 512
    count = 500 if path == "good/legacy-tar.pth" else 50
    for length in sorted({*spread(len(data), count), end - 1, end}):
        report = fdd.validate(data[:length], digests=())
        assert report.identification is not None
        if length >= known:
            assert report.identification.kind == "torch-tar", length
        assert not [outcome for outcome in report.outcomes if outcome.open], length
        if report.identification.kind == "torch-tar":
            assert report.valid is (length >= end), length


@pytest.mark.parametrize("member", [*TAR_PARTS])
@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"junk", dump(None), dump([1]), dump((1, 2, 3)), dump(1 << 70)])
def test_odd_members_never_crash(member: str, content: bytes) -> None:
    parts = tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0]))])
    report = fdd.validate(tar_file({**parts, member: content}))
    assert not [outcome for outcome in report.outcomes if outcome.open]
    if member != "pickle" or content in (b"", b"\x80\x02", b"junk"):
        assert report.valid is False


@pytest.mark.parametrize(
    "numbers",
    [b"", b"\x01\0\0\0", struct.pack("<i4x", -1), struct.pack("<i4x", 1 << 30), struct.pack("<i4xqqq", 1, -2, 1, 0)],
)
def test_odd_sizes_never_crash(numbers: bytes) -> None:
    parts = tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0]))])
    parts["tensors"] = dump(1) + dump((1, 7, Global("torch", "FloatTensor"))) + numbers
    report = fdd.validate(tar_file(parts))
    assert report.valid is False
    assert not [outcome for outcome in report.outcomes if outcome.open]


def test_a_number_of_entries_beyond_reason_takes_no_time() -> None:
    parts = tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0]))])
    for member in ("tensors", "storages"):
        parts[member] = dump(1 << 60) + parts[member][len(dump(1)) :]
    report = fdd.validate(tar_file(parts))
    assert report.verdict == "well-formed-not-valid"
