# SPDX-License-Identifier: Apache-2.0
"""What the plug-in tells of a file: tensors, records, segments, properties, digests, and limits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdd
from fdd.core.finding import Reason, Safety, Verdict
from fdd.core.source import BytesSource
from fdd.fixity.create import create
from fdd.formats import by_name, installed
from fdd.formats.probe import make_probe
from fdd.formats.safetensors.document import SafetensorsDocument
from fdd.formats.safetensors.dtypes import ELEMENT_TYPES
from fdd.formats.safetensors.format import FORMAT
from fdd.formats.safetensors.header import LONGEST_HEADER, read_text
from fdd.limits import Limits
from fdd.resources import corpus_dir

FOLDER = corpus_dir() / "safetensors"
GOOD = FOLDER / "good.safetensors"


def opened(data: bytes, depth: str = "full") -> SafetensorsDocument:
    probe = make_probe(BytesSource(data), name="x.safetensors", path=None, limits=Limits(), depth=depth)
    identification = FORMAT.identify(probe)
    assert identification is not None
    document = FORMAT.open(probe, identification)
    assert isinstance(document, SafetensorsDocument)
    return document


def test_is_installed_behind_pytorch() -> None:
    assert [fmt.name for fmt in installed()][:2] == ["fdd000644", "safetensors"]
    assert by_name("safetensors") is FORMAT
    assert FORMAT.catalogue.name == "safetensors/1"


def test_properties_and_tensors() -> None:
    report = fdd.extract(str(GOOD))
    assert report.properties == {
        "content": "state_dict",
        "byte_order": "little",
        "record_count": 7,
        "tensor_count": 6,
        "element_count": 16,
        "tensor_bytes": 51,
        "tensor_dtypes": {"bool": 1, "float16": 1, "float32": 3, "int64": 1},
        "bytes_by_dtype": {"bool": 3, "float16": 8, "float32": 32, "int64": 8},
        "metadata": {"format": "pt", "source": "fdd corpus"},
    }
    weight = next(tensor for tensor in report.tensors if tensor["name"] == "fc.weight")
    start = 8 + int.from_bytes(GOOD.read_bytes()[:8], "little")
    assert weight == {
        "name": "fc.weight",
        "dtype": "float32",
        "shape": [2, 3],
        "stride": [3, 1],
        "storage_offset": 0,
        "record": "fc.weight",
        "offset": start + 16,
        "length": 24,
        "location": None,
    }


def test_names_have_the_escapes_of_all_tensor_names() -> None:
    report = fdd.extract(str(FOLDER / "scalar-and-names.safetensors"))
    assert [tensor["name"] for tensor in report.tensors] == ['a"b\\c', "a~1b~0c", "größe"]
    assert [record["name"] for record in report.records] == ["header", 'a"b\\c', "a/b~c", "größe"]


def test_types_are_those_of_torch() -> None:
    report = fdd.extract(str(FOLDER / "all-types.safetensors"))
    shapes = {tensor["name"]: (tensor["dtype"], tensor["shape"]) for tensor in report.tensors}
    assert shapes["of_F8_E4M3"] == ("float8_e4m3fn", [2, 4])
    assert shapes["of_F4"] == ("float4_e2m1fn_x2", [2, 2])  # torch counts pairs, the file values
    assert shapes["of_F6_E2M3"] == (None, [2, 4])
    assert report.properties["tensor_dtypes"]["F6_E2M3"] == 1
    assert report.properties["element_count"] == 8 * len(shapes)


def test_one_read_gives_digests_of_the_file_and_its_records() -> None:
    data = GOOD.read_bytes()
    report = fdd.validate(data, digests=("sha256", "md5"))
    assert report.digests == {"sha256": hashlib.sha256(data).hexdigest(), "md5": hashlib.md5(data).hexdigest()}
    for record in report.records:
        piece = data[record["offset"] : record["offset"] + record["length"]]
        assert record["digests"]["sha256"] == hashlib.sha256(piece).hexdigest()
    assert report.records[0]["offset"] == 0
    assert report.status is not None
    assert (report.verdict, report.safety, report.status.complete) == (Verdict.VALID, None, True)


def test_segments_name_every_part() -> None:
    document = opened(GOOD.read_bytes())
    header = document.header
    assert header.text.object_end is not None
    parts = [(segment.kind, segment.record, segment.span.length) for segment in FORMAT.segments(document)]
    assert parts == [
        ("header", None, header.text.object_end),
        ("padding", None, 8 + header.stated - header.text.object_end),
        ("data", "steps", 8),
        ("data", "fc.bias", 8),
        ("data", "fc.weight", 24),
        ("data", "none", 0),
        ("data", "half", 8),
        ("data", "mask", 3),
    ]
    assert FORMAT.is_orderly(document)
    assert FORMAT.has_all_tensors(document)
    assert list(FORMAT.sources(document, Limits())) == []


@pytest.mark.parametrize("name", ["data-hole", "data-overlap", "bytes-after-data", "data-cut", "header-length-wrong"])
def test_is_not_orderly(name: str) -> None:
    document = opened((FOLDER / f"{name}.safetensors").read_bytes())
    assert not FORMAT.is_orderly(document)
    assert FORMAT.has_all_tensors(document)


@pytest.mark.parametrize("name", ["header-not-json", "header-cut", "duplicate-key", "dtype-not-text", "entry-not-object"])
def test_has_not_all_tensors(name: str) -> None:
    assert not FORMAT.has_all_tensors(opened((FOLDER / f"{name}.safetensors").read_bytes()))


def test_fixity_names_the_tensor_of_every_byte() -> None:
    manifest = create(str(GOOD))
    assert manifest.format["fdd"] == "safetensors"
    assert [segment.record for segment in manifest.segments if segment.kind == "data"] == [
        "steps", "fc.bias", "fc.weight", "none", "half", "mask",
    ]  # fmt: skip
    assert sum(segment.span.length for segment in manifest.segments) == manifest.size


def test_a_wrong_length_does_not_lose_the_tensors() -> None:
    whole, broken = GOOD.read_bytes(), (FOLDER / "header-length-wrong.safetensors").read_bytes()
    assert fdd.extract(broken).tensors == fdd.extract(whole).tensors
    document = opened(broken)
    assert document.header.length == int.from_bytes(whole[:8], "little") != document.header.stated


def test_tensors_in_front_of_a_cut_stay_known() -> None:
    report = fdd.validate(GOOD.read_bytes()[:-20])
    lost = [finding.tensor for finding in report.findings if finding.rule == "ST-TEN-013"]
    assert lost == ["fc.weight"]
    assert {tensor["name"] for tensor in report.tensors if tensor.get("length")} == {"steps", "fc.bias"}


@pytest.mark.parametrize("depth", ["directory", "structure"])
def test_shallow_depths_leave_the_values_unread(depth: str) -> None:
    report = fdd.validate(str(FOLDER / "bool-neither-true-nor-false.safetensors"), depth=depth)
    assert report.verdict is Verdict.STRUCTURE_VALID
    assert not report.findings


def test_values_beyond_the_limit_leave_the_verdict_open() -> None:
    report = fdd.validate(str(GOOD), limits=Limits(pickle_nodes=20))
    assert report.verdict is Verdict.UNDETERMINED
    reasons = {outcome.reason for outcome in report.not_evaluated()}
    assert Reason.LIMIT in reasons


def test_code_in_another_reading_leaves_the_safety_open() -> None:
    report = fdd.validate(str(FOLDER / "other-reading-behind.safetensors"))
    assert report.safety is Safety.UNDETERMINED
    assert report.verdict is Verdict.NOT_WELL_FORMED


def test_hostile_shapes_cost_nothing() -> None:
    shape = [1 << 62] * 20_000
    text = json.dumps({"w": {"dtype": "F32", "shape": [0, *shape], "data_offsets": [0, 0]}}).encode()
    report = fdd.validate(pack("<Q", len(text)) + text)
    assert report.verdict is Verdict.VALID
    assert report.tensors[0]["stride"] is None


@given(
    st.sampled_from(sorted(ELEMENT_TYPES)),
    st.lists(st.integers(0, 1 << 60), max_size=20),
    st.tuples(st.integers(0, 1 << 60), st.integers(0, 1 << 60)),
    st.sampled_from([None, 0, 2]),
)
def test_regular_entries_are_read_as_all_others(
    word: str, shape: list[int], offsets: tuple[int, int], indent: int | None
) -> None:
    """The pattern for what writers put and the reader for anything give the same entry."""
    fields = {"dtype": word, "shape": shape, "data_offsets": offsets}
    quick = read_text(json.dumps({"w": fields}, indent=indent).encode(), Limits())
    slow = read_text(json.dumps({"w": {**fields, "x": 0}}, indent=indent).encode(), Limits())
    for found, other in zip(quick.entries, slow.entries, strict=True):
        assert (found.word, found.shape, found.begin, found.end) == (other.word, other.shape, other.begin, other.end)
        assert (found.key_span, found.places, found.missing, other.missing) == (other.key_span, other.places, [], [])
    assert [entry.unknown for entry in quick.entries] == [[]]


def test_metadata_that_look_like_a_tensor_are_metadata() -> None:
    text = b'{"__metadata__":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    found = read_text(text, Limits())
    assert (found.entries, found.metadata) == ([], {"dtype": "F32"})
    assert [(key, what) for key, _, what in found.not_text] == [("shape", "a list"), ("data_offsets", "a list")]
    assert text[found.not_text[0][1].offset - 8 :].startswith(b"[2]")


def test_a_header_longer_than_any_reader_takes(tmp_path: Path) -> None:
    """A sparse file: the JSON ends early, the stated length does not."""
    text = b'{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    path = tmp_path / "long.safetensors"
    length = LONGEST_HEADER + 1
    with path.open("wb") as file:
        file.write(pack("<Q", length) + text)
        file.truncate(8 + length + 4)
    report = fdd.validate(str(path), digests=(), depth="structure")
    assert {"ST-HDR-001", "ST-HDR-003"} <= {finding.rule for finding in report.findings}
    assert report.verdict is Verdict.NOT_WELL_FORMED
