# SPDX-License-Identifier: Apache-2.0
"""Manifests: every byte is recorded once, whatever the file, and the same bytes give the same text."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from corpus.build.kit import eager, ordered_dict, tensor
from fdd.core.errors import SourceError, UsageError
from fdd.core.payload import Part
from fdd.core.source import FileSource
from fdd.fixity import Manifest, blocks, create
from fdd.fixity.create import digest_segments
from tests.schemas import validator
from tests.test_corpus import CORPUS, MANIFEST

MODULE = import_module("fdd.fixity.create")
"""The package has a function of that name."""
SCHEMA = validator("fixity-manifest")
PATHS: list[str] = [entry["path"] for entry in MANIFEST]


def holds(manifest: Manifest, data: bytes) -> None:
    """Size and digests are those of the bytes; the segments partition them, each with the digest of its own."""
    assert manifest.size == len(data)
    assert manifest.digests == {"sha256": hashlib.sha256(data).hexdigest()}
    position = 0
    for segment in manifest.segments:
        assert segment.span.offset == position
        position = segment.span.end
        there = data[segment.span.offset : segment.span.end]
        assert segment.digests == {"sha256": hashlib.sha256(there).hexdigest()}
        if segment.blocks is not None:
            size = segment.blocks.size
            assert segment.blocks.crc32 == tuple(zlib.crc32(there[at : at + size]) for at in range(0, len(there), size))
    assert position == len(data)


def test_every_byte_of_every_file_of_the_corpus_is_recorded_once() -> None:
    for number, path in enumerate(PATHS):
        try:
            data = (CORPUS / path).read_bytes()
            manifest = create(data, name=os.path.basename(path), path=path, content=number % 4 == 0)
            holds(manifest, data)
            text = manifest.to_json()
            if number % 4 == 0:
                SCHEMA.validate(json.loads(text))
            read_back = Manifest.from_json(text)
            assert read_back == manifest
            assert read_back.to_json() == text
        except (AssertionError, jsonschema.ValidationError, UsageError) as error:
            raise AssertionError(f"{path}: {error}") from error


MODEL = eager(ordered_dict([("a", tensor([1.0, 2.0])), ("b", tensor([3.0]))]))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(extra=1),
        lambda document: document["file"].pop("digests"),
        lambda document: document["file"].update(digests={}),
        lambda document: document["file"].update(digests={"sha3": "00"}),
        lambda document: document["segments"][0].pop("sha256"),
        lambda document: document["segments"][0].update(kind="body"),
        lambda document: document["segments"][0].update(offset=-1),
        lambda document: document["segments"][0].update(blocks={"size": 0, "crc32": ["00000000"]}),
        lambda document: document["tensors"][0].pop("length"),
        lambda document: document.update(content_digest={"algorithm": "md5", "digest": "0" * 64}),
    ],
)
def test_the_schema_refuses_what_no_manifest_is(change: Any) -> None:
    document = json.loads(create(MODEL).to_json())
    SCHEMA.validate(document)
    change(document)
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(document)


def test_the_same_bytes_give_the_same_manifest_however_they_come(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(MODEL)
    expected = create(path).to_json()
    assert create(str(path)).to_json() == expected
    assert create(MODEL, name="model.pt").to_json() == expected
    assert create(io.BytesIO(MODEL), name="model.pt").to_json() == expected
    with path.open("rb") as stream:
        assert create(stream, name="model.pt").to_json() == expected
    os.utime(path, (1, 1))
    assert create(path).to_json() == expected


def test_what_manifests_hold_besides(tmp_path: Path) -> None:
    manifest = create(MODEL, name="x.pt", path="sub/x.pt", created="2026-11-29T12:00:00Z", content=True)
    document = manifest.to_dict()
    SCHEMA.validate(document)
    assert document["created"] == "2026-11-29T12:00:00Z"
    assert document["file"]["path"] == "sub/x.pt"
    assert document["format"] == {"fdd": "fdd000644", "kind": "torch-zip", "version": "3", "byte_order": "little"}
    assert [(row["name"], row["dtype"], row["shape"]) for row in document["tensors"]] == [
        ("a", "float32", [2]),
        ("b", "float32", [1]),
    ]
    assert document["content_digest"]["algorithm"] == "fdd-content-sha256-1"
    assert all("content" in row for row in document["tensors"])
    for row in document["tensors"]:
        owner = next(part for part in document["segments"] if part.get("record") == row["record"] and part["kind"] == "data")
        assert owner["offset"] <= row["offset"] and row["offset"] + row["length"] <= owner["offset"] + owner["length"]


def test_several_algorithms_in_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    data = random.Random(1).randbytes((1 << 20) + 5)  # more than is read whole at the first look
    path.write_bytes(data)
    opened: list[FileSource] = []
    monkeypatch.setattr(MODULE, "open_source", lambda source: remember(FileSource(source)))

    def remember(source: FileSource) -> FileSource:
        opened.append(source)
        return source

    names = ("sha256", "md5", "sha1", "sha384", "sha512", "blake2b")
    create(path)
    manifest = create(path, digests=names)
    assert manifest.digests == {name: hashlib.new(name, data).hexdigest() for name in names}
    assert list(manifest.digests) == list(names)
    assert all(list(segment.digests) == ["sha256"] for segment in manifest.segments)
    assert opened[0].bytes_read == opened[1].bytes_read
    with pytest.raises(UsageError, match="unknown digest"):
        create(path, digests=("sha3",))


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 70_000, 300_000])
def test_foreign_files_are_one_part_with_blocks_from_two_of_them_on(size: int) -> None:
    data = random.Random(size).randbytes(size)
    manifest = create(data)
    holds(manifest, data)
    (segment,) = manifest.segments
    assert (segment.kind, segment.record) == ("data", None)
    assert (segment.blocks is not None) is (size > 4096)
    if segment.blocks is not None:
        assert 2 <= len(segment.blocks.crc32) <= 2 * blocks.LONE_BLOCKS
    assert manifest.format["fdd"] is None


def test_large_records_get_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCKS_FROM", 1000)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 256)
    data = eager(ordered_dict([("small", tensor([1.0] * 10)), ("large", tensor([float(n) for n in range(700)]))]))
    manifest = create(data)
    holds(manifest, data)
    with_blocks = [segment for segment in manifest.segments if segment.blocks is not None]
    assert [segment.span.length for segment in with_blocks] == [2800]
    SCHEMA.validate(manifest.to_dict())


def test_a_sparse_file_larger_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "sparse.bin"
    size = blocks.BLOCK_BYTES * 9 + 17
    with path.open("wb") as stream:
        stream.truncate(size)
        stream.seek(size - 3)
        stream.write(b"end")
    manifest = create(path)
    (segment,) = manifest.segments
    assert segment.blocks is not None
    whole, rest = divmod(size, segment.blocks.size)
    assert segment.blocks.crc32 == (zlib.crc32(bytes(segment.blocks.size)),) * whole + (zlib.crc32(bytes(rest - 3) + b"end"),)


@pytest.mark.parametrize("change", ["longer", "shorter", "other"])
def test_a_file_that_changes_underneath_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(MODEL)

    def digest_and_change(*arguments: Any) -> Any:
        result = real(*arguments)
        if change == "longer":
            path.write_bytes(MODEL + b"x")
        elif change == "shorter":
            os.truncate(path, 10)
        else:
            path.write_bytes(MODEL[:-1] + b"x")
            os.utime(path, (5, 5))
        return result

    real = digest_segments
    monkeypatch.setattr(MODULE, "digest_segments", digest_and_change)
    with pytest.raises(SourceError, match="changed while it was read"):
        create(path)


def test_a_large_file_that_becomes_shorter_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(9 << 20))
    real = Part.__init__

    def cut_first(*arguments: Any, **options: Any) -> None:
        os.truncate(path, 5 << 20)
        real(*arguments, **options)

    monkeypatch.setattr(Part, "__init__", cut_first)
    with pytest.raises(SourceError, match="shorter while it was read"):
        create(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document["segments"].pop(1), "gap or overlap"),
        (lambda document: document["segments"].pop(), "cover"),
        (lambda document: document["segments"][0].update(length=-5), "length is no count: -5"),
        (lambda document: document["segments"][2].pop("sha256"), "digests of the segment"),
        (lambda document: [part.pop("sha256") for part in document["segments"]], "digests of the segment"),
        (lambda document: document["file"].update(digests={}), "no digest"),
        (lambda document: document["file"].update(digests={"sha3": "00"}), "unknown digest"),
        (lambda document: document["segments"][1].update(blocks={"size": 0, "crc32": []}), "blocks"),
        (lambda document: document["segments"][1].update(blocks={"size": 1, "crc32": ["00000000"]}), "blocks"),
        (lambda document: document.update(manifest_version="2.0"), "manifest version 2.0"),
        (lambda document: document.pop("file"), "not a fixity manifest"),
    ],
)
def test_manifests_that_do_not_speak_of_every_byte_are_refused(change: Any, said: str) -> None:
    document = json.loads(create(MODEL).to_json())
    change(document)
    with pytest.raises(UsageError, match=said):
        Manifest.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"manifest_version": 1}'])
def test_other_texts_are_no_manifests(text: str) -> None:
    with pytest.raises(UsageError, match="not a fixity manifest"):
        Manifest.from_json(text)


def test_the_api_is_there_as_the_contract_says() -> None:
    import fdd

    manifest = fdd.fixity.create(MODEL)
    assert manifest.verify(MODEL).verdict is fdd.fixity.Fixity.INTACT
    assert isinstance(manifest, fdd.fixity.Manifest)


@pytest.mark.parametrize("path", ["good/legacy-tar.pth", "good/legacy-state-dict.pth", "real/torch-2.13.0-state_dict.pth"])
def test_every_storage_is_a_part_of_its_own_with_what_stands_in_front_of_it(path: str) -> None:
    manifest = create(CORPUS / path)
    assert manifest.tensors
    for entry in manifest.tensors:
        assert entry.span is not None
        (holder,) = (segment for segment in manifest.segments if segment.span.overlaps(entry.span))
        assert (holder.kind, holder.record) == ("data", entry.record)
    owners = {segment.record for segment in manifest.segments if segment.kind == "header"}
    assert None not in owners
