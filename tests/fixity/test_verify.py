# SPDX-License-Identifier: Apache-2.0
"""Verification: whatever is done to a file, the verdict and the parts that are named are right, every time.

What must be said of a change follows from the change alone: ``tools/fixity_table.py`` makes both, and is run with every byte
of larger files by hand.
"""

from __future__ import annotations

import io
import json
import os
import random
import struct
import zipfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from corpus.build.kit import eager, ordered_dict, tensor
from corpus.build.legacy import legacy_stream
from corpus.build.tensors import Tensor
from fdd.core import payload
from fdd.core.digests import Hasher, new_hasher
from fdd.core.errors import SourceError, UsageError
from fdd.core.span import Span
from fdd.fixity import Fixity, FixityResult, Manifest, blocks, create
from fdd.fixity import verify as plain_verify
from fdd.fixity.manifest import TensorEntry
from fdd.fixity.tensors_at import TensorIndex
from fdd.resources import corpus_dir
from tests.schemas import validator
from tools import fixity_table
from tools.fixity_table import Case, File, another_model, cases, flipped, inserted, main, table

FILES = {
    "zip": "real/torch-2.13.0-state_dict.pth",
    "many storages": "good/eager-2.7-many-storages.pt",
    "TorchScript": "good/torchscript-module.pt",
    "legacy": "good/legacy-state-dict.pth",
    "tar": "good/legacy-tar.pth",
    "safetensors": "safetensors/all-types.safetensors",
}


def verify(*arguments: Any, **options: Any) -> FixityResult:
    """As it is, with its JSON form held against the schema."""
    result = plain_verify(*arguments, **options)
    validator("fixity-result").validate(result.to_dict())
    return result


@pytest.fixture(autouse=True)
def _checked_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixity_table, "verify", verify)


@cache
def file_of(kind: str) -> File:
    path = corpus_dir() / FILES[kind]
    return File(path.name, path.read_bytes())


@pytest.mark.parametrize("kind", FILES)
def test_every_change_gets_the_right_verdict_and_names_the_right_parts(kind: str) -> None:
    rows = table(file_of(kind), cases(file_of(kind), another_model(), flips=61, edits=31, swaps=14))
    wrong = {change: row.wrong[:3] for change, row in rows.items() if row.wrong}
    assert not wrong
    least = {"bit flipped": 61, "cut off": 31, "bytes inserted": 30, "bytes lost": 31}
    assert {change: rows[change].cases for change in least} == least


def test_the_changes_that_were_tried() -> None:
    tried = {case.change for case in cases(file_of("zip"), another_model(), flips=1, edits=1, swaps=50)}
    assert tried >= {
        "payloads of equal length swapped", "payloads of different length swapped", "whole records swapped",
        "packed again, stored", "packed again, deflated", "packed again in another order", "packed again under another folder",
        "packed again with a record added", "a record altered, stored", "a record altered, deflated", "a record renamed",
        "a record missing", "all zeros", "something appended", "something prepended", "an error page in its place",
        "another model in its place", "missing",
    }  # fmt: skip


def test_the_table_counts_what_is_told_wrongly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tool that finds everything right must be able to find something wrong."""
    file = file_of("legacy")
    wrong_place = Case("moved", file.data[:-1] + b"\xff", frozenset({"damaged"}), frozenset({0}))
    wrong_verdict = Case("moved", file.data, frozenset({"damaged"}))
    row = table(file, [wrong_place, wrong_verdict, *flipped(file, 3)])["moved"]
    assert (row.cases, row.verdict_right, row.segments_right, len(row.wrong)) == (2, 1, 1, 2)
    path = tmp_path / "x.pt"
    path.write_bytes(file.data[:400])
    assert main([str(path), "--flips", "5", "--edits", "5"]) == 0
    assert "| bit flipped | 5 | 5 | 5 |" in capsys.readouterr().out


def model(**tensors: list[float]) -> bytes:
    return eager(ordered_dict([(name, tensor(values)) for name, values in tensors.items()]))


def held(data: bytes, changed: bytes, name: str = "x.pt") -> FixityResult:
    return verify(create(data, name=name), changed)


def test_what_damage_hurts() -> None:
    """Two tensors look at one storage, a third at another."""
    file = file_of("zip")
    manifest = file.manifest
    for entry in manifest.tensors:
        assert entry.span is not None
        changed = bytearray(file.data)
        changed[entry.span.offset] ^= 1
        result = manifest.verify(bytes(changed))
        assert result.verdict is Fixity.DAMAGED
        assert result.tensors == (entry.name,)
        assert [(bad.kind, bad.record) for bad in result.bad] == [("data", entry.record)]
    document = result.to_dict()
    assert document["verdict"] == "damaged" and document["tensors"] == [entry.name]
    assert document["segments"][0]["tensors"] == [entry.name]
    assert not result.intact


def test_several_damages_are_all_named() -> None:
    file = file_of("zip")
    places = [span.offset for span in (tensor.span for tensor in file.manifest.tensors) if span is not None]
    changed = bytearray(file.data)
    for offset in (places[0], places[3], len(changed) - 1):
        changed[offset] ^= 0x40
    result = verify(file.manifest, bytes(changed))
    assert result.verdict is Fixity.DAMAGED
    assert [file.at(bad.span.offset) for bad in result.bad] == [
        file.at(offset) for offset in (places[0], places[3], len(changed) - 1)
    ]
    assert result.tensors == (file.manifest.tensors[0].name, file.manifest.tensors[3].name)


def test_a_swap_and_a_damage_elsewhere_are_damage() -> None:
    file = file_of("many storages")
    payloads = [index for index in file.payloads() if "data/" in str(file.segments[index].record)]
    a, b = next((a, b) for a in payloads for b in payloads if a < b and file.bytes_of(a) != file.bytes_of(b))
    first, second = file.segments[a].span, file.segments[b].span
    changed = bytearray(file.data)
    changed[first.offset : first.end], changed[second.offset : second.end] = file.bytes_of(b), file.bytes_of(a)
    changed[-1] ^= 1
    result = verify(file.manifest, bytes(changed))
    assert {file.at(bad.span.offset) for bad in result.bad} == {a, b, len(file.segments) - 1}
    assert result.verdict in (Fixity.DAMAGED, Fixity.SHIFTED)


def test_three_payloads_in_a_ring() -> None:
    """No exchange of two explains it; the payloads are found all the same."""
    data = model(a=[1.0] * 5, b=[2.0] * 9, c=[3.0] * 14, d=[4.0] * 3)
    file = File("x.pt", data)
    a, b, c = (index for index in file.payloads() if str(file.segments[index].record)[-2:] in ("/0", "/1", "/2"))
    spans = [file.segments[index].span for index in (a, b, c)]
    between = [data[spans[0].end : spans[1].offset], data[spans[1].end : spans[2].offset]]
    parts = [file.bytes_of(c), between[0], file.bytes_of(a), between[1], file.bytes_of(b)]
    result = verify(file.manifest, data[: spans[0].offset] + b"".join(parts) + data[spans[2].end :])
    assert result.verdict is Fixity.SHIFTED
    found = {file.at(bad.span.offset): bad.found_at for bad in result.bad}
    assert found[c] == spans[0].offset
    assert found[a] == spans[0].offset + spans[2].length + len(between[0])
    assert set(result.tensors) == {"a", "b", "c"}


def test_a_record_twice_is_not_packing() -> None:
    """A second record of the same name: another reader may take the other one."""
    data = model(a=[1.0] * 8, b=[2.0] * 8)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        rows = [(name, archive.read(name)) for name in archive.namelist()]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, payload in rows:
            archive.writestr(name, payload)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(*rows[0])
    result = held(data, stream.getvalue())
    assert result.verdict in (Fixity.SHIFTED, Fixity.DAMAGED)


@pytest.mark.parametrize("root", ["a", "renamed", "a-much-longer-name-for-the-same", "x" * 40])
def test_saved_again_under_another_name_with_equal_bytes_in_several_records(root: str) -> None:
    """Equal bytes come to lie where others lay: the names tell that nothing was exchanged."""
    values = ordered_dict(
        [("a", tensor([float(n) for n in range(6)])), *((n, tensor([0.0] * 5)) for n in "zyx"), ("w", tensor([1.0] * 3))]
    )
    result = held(eager(values, "longname"), eager(values, root))
    assert (result.verdict, result.tensors) == (Fixity.REPACKAGED, ())


@pytest.mark.parametrize("twin", ["legacy", "zip", "safetensors"])
def test_a_file_of_the_same_tensors_in_another_form_is_another_file(twin: str) -> None:
    values = ordered_dict([("a", tensor([1.0] * 8)), ("b", tensor([2.0] * 8))])
    head = json.dumps({k: {"dtype": "F32", "shape": [8], "data_offsets": [n * 32, n * 32 + 32]} for n, k in enumerate("ab")})
    packed = len(head).to_bytes(8, "little") + head.encode() + struct.pack("<16f", *[1.0] * 8, *[2.0] * 8)
    forms = {"legacy": legacy_stream(values), "zip": eager(values), "safetensors": packed}
    kinds = {"legacy": "torch-legacy", "zip": "torch-zip", "safetensors": "safetensors"}
    for other in forms.keys() - {twin}:
        result = held(forms[twin], forms[other])
        assert result.verdict is Fixity.REPLACED
        assert f"{kinds[other]} in place of {kinds[twin]}; 2 of 2 storages are in it" in result.detail


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
@pytest.mark.parametrize("text", ["404: Not Found", "Entry not found", "<html><body>no</body></html>", '{"error": "no"}'])
def test_a_short_text_is_no_beginning_of_the_file(kind: str, text: str) -> None:
    assert held(file_of(kind).data, text.encode()).verdict is Fixity.REPLACED


def test_flips_in_packed_records_are_damage_even_where_they_unpack_to_the_same() -> None:
    """The last byte of a deflate stream has bits that mean nothing."""
    with zipfile.ZipFile(io.BytesIO(model(a=[1.0] * 50, b=[2.0] * 9))) as archive:
        rows = [(name, archive.read(name)) for name in archive.namelist()]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, payload in rows:
            archive.writestr(name, payload)
    file = File("x.pt", stream.getvalue())
    harmless = 0
    for index in file.payloads():
        segment = file.segments[index]
        for bit in range(8):
            changed = bytearray(file.data)
            changed[segment.span.end - 1] ^= 1 << bit
            result = verify(file.manifest, bytes(changed))
            assert result.verdict is Fixity.DAMAGED
            assert [(bad.kind, bad.record, bad.found_at) for bad in result.bad] == [("data", segment.record, None)]
            harmless += "unpacks to the bytes it held" in result.detail
    assert harmless > 5


def test_an_empty_record_that_is_gone() -> None:
    data = eager(ordered_dict([("none", tensor([])), ("some", tensor([1.0]))]))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        rows = [(name, archive.read(name)) for name in archive.namelist()]
    empty = next(name for name, payload in rows if not payload)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, payload in rows:
            if payload:
                archive.writestr(name, payload)
    result = held(data, stream.getvalue())
    assert result.verdict is Fixity.DAMAGED
    assert empty in {bad.record for bad in result.bad if bad.found_at is None}


def test_the_same_structure_with_other_values_is_another_file() -> None:
    first, second = model(a=[1.0, 2.0] * 9, b=[3.0] * 30), model(a=[1.5, 2.5] * 9, b=[3.5] * 30)
    result = held(first, second)
    assert result.verdict is Fixity.REPLACED
    assert result.tensors == ("a", "b")
    one = held(first, model(a=[1.0, 2.0] * 9, b=[3.5] * 30))
    assert (one.verdict, one.tensors) == (Fixity.DAMAGED, ("b",))
    assert "written, not damaged" in one.detail


class TestFilesOfOnePart:
    """Foreign files: blocks are all that tells one damage from another."""

    DATA = b"\x89HDF\r\n\x1a\n" + random.Random(3).randbytes(100_000)

    def test_flips_name_the_block(self) -> None:
        manifest = create(self.DATA)
        size = blocks.block_size(len(self.DATA), alone=True)
        assert size is not None
        for offset in range(0, len(self.DATA), 9973):
            changed = bytearray(self.DATA)
            changed[offset] ^= 1
            result = verify(manifest, bytes(changed))
            assert result.verdict is Fixity.DAMAGED
            first, last = result.bad[0].bad_blocks or (None, None)
            assert first == last and first is not None and first.holds(offset) and first.length <= size

    @pytest.mark.parametrize("size", [1, 5000, 60_000, 99_999])
    def test_cuts(self, size: int) -> None:
        assert held(self.DATA, self.DATA[:size]).verdict is Fixity.TRUNCATED

    def test_ends(self) -> None:
        assert held(self.DATA, self.DATA + b"x").verdict is Fixity.EXTENDED
        result = held(self.DATA, b"xyz" + self.DATA)
        assert (result.verdict, result.shift, result.shifted_from, result.bad) == (Fixity.SHIFTED, 3, 0, ())

    @pytest.mark.parametrize("offset", [10, 50_000, 97_000])
    @pytest.mark.parametrize("change", [3, -3, 5000, -900])
    def test_bytes_inserted_and_lost(self, offset: int, change: int) -> None:
        middle = b"\0" * change + self.DATA[offset:] if change > 0 else self.DATA[offset - change :]
        result = held(self.DATA, self.DATA[:offset] + middle)
        assert (result.verdict, result.shift) == (Fixity.SHIFTED, change)
        assert result.bad[0].bad_blocks is not None
        first, last = result.bad[0].bad_blocks
        assert first.offset <= offset and offset + max(0, -change) <= last.end
        assert last.end - first.offset <= 3 * first.length

    def test_other_files(self) -> None:
        other = b"\x89HDF\r\n\x1a\n" + random.Random(4).randbytes(100_000)
        assert held(self.DATA, other).verdict is Fixity.REPLACED
        assert held(self.DATA, b"<!DOCTYPE html><html><body>gone</body></html>").verdict is Fixity.REPLACED
        assert held(self.DATA, bytes(len(self.DATA))).verdict is Fixity.DAMAGED
        assert held(self.DATA, bytes(50)).verdict is Fixity.DAMAGED
        assert held(b"", b"x").verdict is Fixity.EXTENDED
        assert held(b"hello", b"").verdict is Fixity.TRUNCATED
        assert held(b"hello", b"hallo").verdict is Fixity.DAMAGED
        assert held(b"hello world, this", b"hello there, what").verdict is Fixity.DAMAGED


def test_blocks_of_large_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCKS_FROM", 1000)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 256)
    data = model(small=[1.0] * 10, large=[float(n) for n in range(700)])
    manifest = Manifest.from_json(create(data).to_json())
    large = next(segment for segment in manifest.segments if segment.blocks is not None)
    changed = bytearray(data)
    for at in (300, 1100):
        changed[large.span.offset + at] ^= 1
    result = verify(manifest, bytes(changed))
    assert (result.verdict, result.tensors) == (Fixity.DAMAGED, ("large",))
    first, last = result.bad[0].bad_blocks or (None, None)
    assert first == (large.span.offset + 256, 256) and last == (large.span.offset + 1024, 256)
    row = result.to_dict()["segments"][0]
    assert row["first_bad_block"] == {"offset": large.span.offset + 256, "length": 256}
    lost = verify(manifest, data[: large.span.offset + 600] + data[large.span.offset + 700 :])
    assert (lost.verdict, lost.shift) == (Fixity.SHIFTED, -100)
    assert lost.bad[0].bad_blocks == ((large.span.offset + 512, 256), (large.span.offset + 512, 256))


def test_damage_far_inside_a_large_sparse_file(tmp_path: Path) -> None:
    path = tmp_path / "sparse.bin"
    size = 200 << 20
    with path.open("wb") as stream:
        stream.write(b"\x89HDF\r\n\x1a\n")
        stream.truncate(size)
    manifest = create(path)
    with path.open("r+b") as stream:
        stream.seek(150 << 20)
        stream.write(b"\x01")
    result = verify(manifest, path)
    assert result.verdict is Fixity.DAMAGED
    first, last = result.bad[0].bad_blocks or (None, None)
    assert first == last and first is not None and first.holds(150 << 20) and first.length == blocks.BLOCK_BYTES


def test_only_what_the_manifest_holds_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(name: str) -> Hasher:
        asked.append(name)
        return new_hasher(name)

    monkeypatch.setattr(payload, "new_hasher", noted)
    manifest = create(b"hello", digests=("sha1", "md5"))
    asked.clear()
    assert verify(manifest, b"hello").intact
    assert sorted(asked) == ["md5", "sha1", "sha1"]


def test_a_manifest_whose_whole_and_parts_disagree() -> None:
    manifest = Manifest.from_json(create(MODEL).to_json().replace(create(MODEL).digests["sha256"], "0" * 64, 1))
    result = verify(manifest, MODEL)
    assert result.verdict is Fixity.DAMAGED
    assert not result.bad


MODEL = model(a=[1.0, 2.0])


def test_files_that_change_underneath_or_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = create(MODEL)
    with pytest.raises(SourceError, match="a directory"):
        verify(manifest, tmp_path)
    path = tmp_path / "x.pt"
    path.write_bytes(MODEL)
    module = import_module("fdd.fixity.verify")
    real = module.read_payload

    def read_and_change(*arguments: object) -> object:
        result = real(*arguments)
        os.utime(path, (7, 7))
        return result

    monkeypatch.setattr(module, "read_payload", read_and_change)
    with pytest.raises(SourceError, match="changed while it was read"):
        verify(manifest, path)


def test_hostile_manifests_are_refused_or_answered() -> None:
    """Lengths that no file has, and names of digests that there are not, end in an answer."""
    text = create(MODEL).to_json()
    with pytest.raises(UsageError):
        Manifest.from_json(text.replace('"sha256"', '"sha3_256"'))
    huge = 1 << 62
    document = create(b"hello").to_dict()
    document["file"]["size"] = document["segments"][0]["length"] = huge
    assert verify(Manifest.from_json(json.dumps(document)), MODEL).verdict is not Fixity.INTACT


def test_random_splices_never_pass_as_intact() -> None:
    chance = random.Random(11)
    file = file_of("zip")
    for _ in range(60):
        start = chance.randrange(len(file.data))
        end = min(len(file.data), start + chance.choice((0, 1, 40, 500)))
        piece = file.data[chance.randrange(len(file.data)) :][: chance.choice((0, 3, 64, 700))]
        changed = file.data[:start] + piece + file.data[end:]
        result = verify(file.manifest, changed)
        assert result.intact is (changed == file.data)
        for bad in result.bad:
            there = changed[bad.span.offset : bad.span.end]
            if bad.found_at is None and len(changed) == len(file.data):
                assert there != file.data[bad.span.offset : bad.span.end]
            if bad.found_at is not None:
                assert changed[bad.found_at :][: bad.span.length] == file.data[bad.span.offset : bad.span.end]


def test_an_insertion_names_where_it_was_made() -> None:
    file = file_of("tar")
    for case in inserted(file, 9):
        result = verify(file.manifest, case.data or b"")
        assert f"{result.shift} bytes were inserted" in result.detail


def packed(values: Any, method: int) -> bytes:
    """The same records, written by Python's zipfile."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(eager(values))) as archive, zipfile.ZipFile(stream, "w", method) as other:
        for name in archive.namelist():
            other.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), archive.read(name), method)
    return stream.getvalue()


def test_damage_to_a_deflated_storage_names_its_tensors_and_is_damage() -> None:
    """Even where the stream breaks so early that nothing comes out of it."""
    data = packed(ordered_dict([("w", tensor([n / 7 for n in range(200)])), ("v", tensor([1.5] * 99))]), zipfile.ZIP_DEFLATED)
    manifest = create(data)
    place = next(row.span for row in manifest.segments if row.kind == "data" and row.record == "archive/data/0")
    for offset in range(place.offset, place.end, 7):
        changed = bytearray(data)
        changed[offset] ^= 1 << (offset % 8)
        result = verify(manifest, bytes(changed))
        assert (result.verdict, result.tensors) == (Fixity.DAMAGED, ("w",)), offset
        assert "not damaged" not in result.detail


def test_blocks_between_two_damages_hurt_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64)
    monkeypatch.setattr(blocks, "BLOCKS_FROM", 256)
    storage = tensor([float(n) for n in range(160)])
    views = [(f"p{n}", Tensor(storage.storage, (16,), (1,), offset=16 * n)) for n in range(10)]
    data = eager(ordered_dict(views))
    manifest = create(data)
    row = next(row for row in manifest.segments if row.record == "archive/data/0" and row.kind == "data")
    assert row.blocks is not None and len(row.blocks.crc32) == 10
    changed = bytearray(data)
    for number in (1, 8):
        changed[row.span.offset + 64 * number] ^= 1
    (bad,) = verify(manifest, bytes(changed)).bad
    assert bad.tensors == ("p1", "p8")
    assert bad.bad_blocks is not None and (bad.bad_blocks[0].offset, bad.bad_blocks[1].end) == (
        row.span.offset + 64, row.span.offset + 64 * 9,
    )  # fmt: skip


def test_time_grows_with_the_records_and_not_with_their_square() -> None:
    """Counted in comparisons of spans, which is what grew."""
    calls = 0
    real = Span.overlaps

    def counted(self: Span, other: Span) -> bool:
        nonlocal calls
        calls += 1
        return real(self, other)

    data = eager(ordered_dict([(f"t{n}", tensor([float(n)])) for n in range(400)]))
    manifest = create(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Span, "overlaps", counted)
        for changed in (data[: len(data) // 3], packed(ordered_dict([(f"t{n}", tensor([float(n)])) for n in range(400)]), 0)):
            verify(manifest, changed)
    assert calls < 20 * 400


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["file"].update(size=float("inf")), lambda document: document["file"].update(size=1.5),
        lambda document: document["file"].update(path=5), lambda document: document["file"].update(path="../x"),
        lambda document: document["file"].update(path="/etc/hostname"), lambda document: document["file"].update(name="\ud800"),
        lambda document: document.update(format=[]), lambda document: document.update(generator="fdd"),
        lambda document: document["segments"][0].update(record=[]), lambda document: document["segments"][0].update(sha256=""),
        lambda document: document["segments"][0].update(sha256=None),
        lambda document: document["segments"][0].update(sha256="ab"),
        lambda document: document["segments"][0].update(length=True), lambda document: document["tensors"][0].update(length=-1),
        lambda document: document["tensors"][0].update(record={}), lambda document: document["tensors"][0].update(shape="2"),
        lambda document: document.update(segments={}), lambda document: document.pop("file"),
        lambda document: document["segments"][0].update(blocks={"size": 4, "crc32": "00"}),
    ],
)  # fmt: skip
def test_manifests_that_are_none_are_refused(change: Any) -> None:
    document = json.loads(create(file_of("zip").data, path="x.pt").to_json())
    change(document)
    with pytest.raises(UsageError, match=r"not a (whole )?fixity manifest"):
        Manifest.from_json(json.dumps(document))


def test_a_short_cut_of_a_tar_is_a_cut() -> None:
    data = file_of("tar").data
    assert {held(data, data[:length]).verdict for length in range(1, 15)} == {Fixity.TRUNCATED}


def test_tensors_are_found_by_place_whatever_lies_over_them() -> None:
    """A long tensor in front of short ones, one over all, empty ones, and any mixture."""
    rng = random.Random(5)
    spans = [Span(0, 1000), Span(10, 500), *(Span(20 * n, 7) for n in range(40)), Span(300, 0)]
    spans += [Span(rng.randrange(1000), rng.choice([0, 1, 2, 3, 64, 200])) for _ in range(200)]
    tensors = [TensorEntry(str(number), "float32", (1,), None, span) for number, span in enumerate(spans)]
    index = TensorIndex([*tensors, TensorEntry("packed", "float32", (1,), "r", None)])
    for _ in range(400):
        wanted = Span(rng.randrange(1100), rng.choice([1, 5, 100]))
        assert index.names([wanted], "r") == (*(row.name for row in tensors if row.span and row.span.overlaps(wanted)), "packed")


def test_one_flipped_bit_is_damage_even_where_another_archive_lies_in_the_file() -> None:
    inner = eager(ordered_dict([("x", tensor([1.0]))]))
    head = json.dumps({"t": {"dtype": "U8", "shape": [len(inner)], "data_offsets": [0, len(inner)]}}).encode()
    for data in (len(head).to_bytes(8, "little") + head + inner, legacy_stream(tensor([1.0])) + inner, inner + inner):
        for offset in range(0, len(data), 37):
            changed = bytearray(data)
            changed[offset] ^= 1
            assert held(data, bytes(changed)).verdict is Fixity.DAMAGED, offset


def test_damage_in_a_file_of_several_archives_names_its_tensors() -> None:
    part = eager(tensor([1.0, 2.0]))
    manifest = create(part + part, name="__0_0.distcp")
    assert [row.record for row in manifest.segments if row.kind == "data"] == [
        "archive 0/archive/data/0",
        "archive 1/archive/data/0",
    ]
    place = next(row.span.offset for row in manifest.segments if row.record == "archive 1/archive/data/0")
    changed = bytearray(part + part)
    changed[place] ^= 1
    assert verify(manifest, bytes(changed)).tensors == ("archive 1",)


def test_a_whole_smaller_file_is_no_beginning_of_the_recorded_one() -> None:
    large = eager(ordered_dict([(f"name{n}", tensor([float(n)])) for n in range(300)]))
    small = eager(ordered_dict([("a", tensor([5.0]))]))
    assert held(large, small).verdict is Fixity.REPLACED
