# SPDX-License-Identifier: Apache-2.0
"""The reader of legacy streams, against streams put together by the kit of the corpus."""

from __future__ import annotations

import hashlib
import struct

import pytest

import fdd
from corpus.build.kit import (
    Global,
    Persistent,
    Storage,
    Tensor,
    dump,
    legacy_parts,
    legacy_stream,
    storage,
    tensor,
)
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.older_facts import LEGACY_PARTS
from fdd.resources import corpus_dir
from tests.formats.pytorch.older import opened, spread

CORPUS = corpus_dir()
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
COMPLETE_AT = {
    "good/legacy-state-dict.pth": {700},
    "good/legacy-protocol-4.pt": {643},
    "legacy/protocol-1-pass.pth": {721},
    "legacy/python-2-pass.pth": {307},
    "legacy/source-text-kept.pth": {608},
    # The first of three saves is a whole file by itself; so are the first two.
    "legacy/further-streams.pth": {700, 857, 1202},
}
"""File -> every length at which it is a whole stream, or several of them."""
ALL_LENGTHS = {"legacy/further-streams.pth"}
"""Cut at 500 lengths; the others, which differ in protocol or content only, at 50."""


def two_tensors() -> bytes:
    return legacy_stream({"a": tensor([1.0, 2.0, 3.0]), "b": tensor([4, 5], dtype="int64")})


def payload_of(document: TorchDocument, name: str) -> bytes:
    found = next(tensor for tensor in document.tensors if tensor.name == name)
    assert found.span is not None
    return document.source.read_at(*found.span)


def test_parts_and_storages_cover_the_file_without_a_gap() -> None:
    data = two_tensors()
    document = opened(data)
    stream = document.legacy
    assert stream is not None and stream.stopped is None and stream.rest is None
    assert [pickle.role for pickle in stream.pickles] == list(LEGACY_PARTS)
    position = 0
    for pickle in stream.pickles:
        assert pickle.span.offset == position
        position = pickle.span.end
    for entry in stream.storages:
        assert entry.count_span == Span(position, 8) and entry.payload is not None
        position = entry.payload.end
    assert position == stream.end == len(data)
    assert [record.name for record in document.records[:5]] == list(LEGACY_PARTS)


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_every_protocol_gives_the_same_tensors(protocol: int) -> None:
    data = legacy_stream({"a": tensor([1.0, 2.0, 3.0]), "b": tensor([4, 5], dtype="int64")}, protocol=protocol)
    document = opened(data)
    assert document.content == "state_dict"
    assert payload_of(document, "a") == struct.pack("<3f", 1, 2, 3)
    assert payload_of(document, "b") == struct.pack("<2q", 4, 5)
    assert fdd.validate(data).valid


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_storage_type_tells_the_size_of_an_element(dtype: str) -> None:
    values = tensor([1, 0, 1], dtype=dtype)
    document = opened(legacy_stream([values, tensor([7.0])]))
    assert payload_of(document, "0") == values.storage.data
    assert payload_of(document, "1") == struct.pack("<f", 7)


def test_every_part_has_its_digest() -> None:
    data = two_tensors()
    report = fdd.validate(data)
    assert len(report.records) == 7
    for record in report.records:
        part = data[record["offset"] : record["offset"] + record["length"]]
        assert record["digests"]["sha256"] == hashlib.sha256(part).hexdigest()


def test_an_object_greater_than_the_first_window_is_read_whole() -> None:
    values = {f"layer.{index}.weight": tensor([float(index)]) for index in range(1500)}
    data = legacy_stream(values)
    document = opened(data)
    assert document.legacy is not None and document.legacy.value("object") is not None
    assert document.legacy.pickles[3].span.length > 1 << 16
    assert payload_of(document, "layer.1499.weight") == struct.pack("<f", 1499)


def test_views_share_their_storage() -> None:
    whole = storage([1.0, 2.0, 3.0, 4.0])
    data = legacy_stream({"all": Tensor(whole, (4,), (1,)), "tail": Tensor(whole, (2,), (1,), offset=2)})
    document = opened(data)
    assert len(document.storages) == 1
    assert payload_of(document, "tail") == struct.pack("<2f", 3, 4)


def test_a_part_of_a_storage_counts_from_where_it_starts() -> None:
    document = opened((CORPUS / "legacy/view-of-storage-pass.pth").read_bytes())
    assert payload_of(document, "w") == struct.pack("<2f", 2, 3)


@pytest.mark.parametrize("count", [-1, 2, 4, 1 << 40, -(1 << 63)])
def test_a_damaged_count_moves_nothing(count: int) -> None:
    """The persistent id says how long the storage is, and the count of the next one agrees."""
    parts = legacy_parts([tensor([1.0, 2.0, 3.0]), tensor([4.0, 5.0])])
    parts.blocks[0] = struct.pack("<q", count) + parts.blocks[0][8:]
    document = opened(parts.join())
    assert payload_of(document, "0") == struct.pack("<3f", 1, 2, 3)
    assert payload_of(document, "1") == struct.pack("<2f", 4, 5)


def test_a_damaged_persistent_id_moves_nothing() -> None:
    """The count and the next one agree, so that the number in the object is the wrong one."""
    parts = legacy_parts([tensor([1.0, 2.0, 3.0]), tensor([4.0, 5.0])])
    assert parts.pickle.count(b"K\x03N") == 1  # three elements, no view
    parts.pickle = parts.pickle.replace(b"K\x03N", b"K\x02N")
    document = opened(parts.join())
    assert payload_of(document, "1") == struct.pack("<2f", 4, 5)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_a_storage_of_unknown_type_is_measured_by_what_follows(dtype: str) -> None:
    data = tensor([1, 1, 1], dtype=dtype).storage.data
    odd = Tensor(Storage(Global("torch", "OtherStorage"), data, 3), (3,), (1,))
    document = opened(legacy_stream([odd, tensor([4.0, 5.0])]))
    assert payload_of(document, "1") == struct.pack("<2f", 4, 5)
    assert document.storages[0].span is not None and document.storages[0].span.length == len(data)


def test_further_streams_are_found_and_their_storages_too() -> None:
    document = opened(two_tensors() + legacy_stream(tensor([9.0])) + legacy_stream(None))
    assert document.legacy is not None
    assert [len(stream.storages) for stream in document.legacy.further] == [1, 0]
    assert document.legacy.rest is None
    record = next(record for record in document.records if record.name.startswith("stream 2/storages/"))
    assert record.span is not None and document.source.read_at(*record.span) == struct.pack("<f", 9)
    assert [tensor.name for tensor in document.tensors] == ["a", "b"]


def test_a_further_stream_that_contradicts_itself_is_no_complete_one() -> None:
    second = legacy_parts(tensor([9.0, 8.0]))
    second.blocks[0] = struct.pack("<q", 1) + second.blocks[0][8:]
    data = two_tensors()
    document = opened(data + second.join())
    assert document.legacy is not None and not document.legacy.further
    assert document.legacy.rest == Span(len(data), len(second.join()))


@pytest.mark.parametrize("source", ["class A: pass\n", "# größer\nclass A: pass\n"])
def test_source_texts_come_out_as_they_went_in(source: str) -> None:
    cls = Persistent(("module", Global("m", "A"), "m.py", source))
    document = opened(legacy_stream([cls]))
    ((_, module),) = document.facts["module-sources"]
    assert (module.class_name, module.source_file, module.source) == ("m.A", "m.py", source.encode())


def test_source_texts_of_python_2_keep_their_bytes() -> None:
    source = b"# caf\xe9\nclass A: pass\n"
    parts = legacy_parts([None])
    body = b"\x80\x02(U\x06modulecm\nA\nU\x04m.pyU" + bytes([len(source)]) + source + b"tQ."
    parts.pickle = body
    ((_, module),) = opened(parts.join()).facts["module-sources"]
    assert module.source == source


def test_the_ids_of_protocol_0_are_read_for_description_only() -> None:
    data = (CORPUS / "legacy/protocol-0.pth").read_bytes()
    assert payload_of(opened(data), "w") == struct.pack("<2f", 0.5, -1)
    assert fdd.validate(data).verdict == "well-formed-not-valid"


@pytest.mark.parametrize("path", COMPLETE_AT)
def test_cut_anywhere_it_stays_a_legacy_stream_and_is_valid_only_where_it_is_whole(path: str) -> None:
    data = (CORPUS / path).read_bytes()
    count = 500 if path in ALL_LENGTHS else 50
    lengths = {*spread(len(data), count), *COMPLETE_AT[path], *(length - 1 for length in COMPLETE_AT[path])}
    valid = set()
    for length in sorted(lengths):
        report = fdd.validate(data[:length], digests=())
        assert report.identification is not None
        if length >= 4:
            assert report.identification.kind == "torch-legacy", length
        assert not [outcome for outcome in report.outcomes if outcome.open], length
        if report.valid:
            valid.add(length)
    assert valid == COMPLETE_AT[path]


@pytest.mark.parametrize("keys", [[], None, {}, "94000000000000", [None], [True], [[]], [("a",)], 7])
def test_odd_key_lists_never_crash(keys: object) -> None:
    parts = legacy_parts(tensor([1.0]))
    parts.keys = dump(keys)
    report = fdd.validate(parts.join())
    assert report.valid is False
    assert not [outcome for outcome in report.outcomes if outcome.open]


@pytest.mark.parametrize("system", [None, 1, {}, {"little_endian": 1}, {"protocol_version": "x", "little_endian": True}])
def test_odd_system_information_never_crashes(system: object) -> None:
    parts = legacy_parts(tensor([1.0]))
    parts.sys_info = dump(system)
    report = fdd.validate(parts.join())
    assert report.verdict == "well-formed-not-valid"
    assert not [outcome for outcome in report.outcomes if outcome.open]


def test_an_untyped_storage_counts_bytes() -> None:
    data = Storage(Global("torch.storage", "UntypedStorage"), bytes(range(8)), 8)
    document = opened(legacy_stream({"u": Tensor(data, (4,), (1,), dtype="uint16"), "f": tensor([1.0])}))
    assert payload_of(document, "u") == bytes(range(8))
    assert payload_of(document, "f") == struct.pack("<f", 1)
