# SPDX-License-Identifier: Apache-2.0
"""Held against the safetensors library: what it reads we read alike, what it refuses has an error here."""

from __future__ import annotations

import json
from struct import pack
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fdd
from fdd.core.finding import Axis, Level
from fdd.core.report import Report
from fdd.formats.safetensors.dtypes import ELEMENT_TYPES
from fdd.resources import corpus_dir

library = pytest.importorskip("safetensors")
FOLDER = corpus_dir() / "safetensors"
FILES = sorted(FOLDER.iterdir())
STRICTER = frozenset("""ST-HDR-006 ST-HDR-007 ST-HDR-009 ST-HDR-011 ST-HDR-014 ST-TEN-001 ST-TEN-004 ST-TEN-008""".split())
"""Rules that are errors here although the library may read the file: it takes whitespace around the header, the last of two
keys, null for metadata, lists for entries, objects for types, and shapes up to 2^64; and it looks for no other format."""


def deserialized(data: bytes) -> dict[str, dict[str, Any]] | None:
    """What the library finds by name; None where it refuses the file."""
    try:
        return dict(library.deserialize(data))
    except library.SafetensorError:
        return None


def errors(report: Report) -> set[str]:
    axes = (Axis.WELL_FORMED, Axis.VALID)
    return {finding.rule for finding in report.findings if finding.level is Level.ERROR and finding.axis in axes}


def agree(data: bytes) -> None:
    report, read = fdd.validate(data, name="x.safetensors"), deserialized(data)
    if read is None:
        assert report.valid is False or (report.identification is not None and report.identification.format is None)
        return
    if report.valid is not True:
        # Where only the head of a file is gone that we know it by, the library may still read it.
        assert errors(report) <= STRICTER, report.findings
        return
    words = {entry["name"]: entry for entry in report.tensors}
    keys = {record["name"]: record for record in report.records[1:]}
    assert set(keys) == set(read)
    for name, tensor in read.items():
        record = keys[name]
        assert data[record["offset"] : record["offset"] + record["length"]] == bytes(tensor["data"])
        kind = ELEMENT_TYPES[tensor["dtype"]]
        entry = words[name.replace("~", "~0").replace("/", "~1")]
        # torch holds F4 in pairs along the last dimension: an odd one cannot be a tensor of torch.
        odd = kind.per_element > 1 and (not tensor["shape"] or tensor["shape"][-1] % kind.per_element != 0)
        assert entry["dtype"] == (kind.dtype.name if kind.dtype is not None and not odd else None)
        if kind.per_element == 1:
            assert entry["shape"] == tensor["shape"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_the_corpus(path: Any) -> None:
    agree(path.read_bytes())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_every_cut_and_every_flip_of_the_header(path: Any) -> None:
    data = path.read_bytes()
    for offset in range(0, min(len(data), 150), 29):
        agree(data[:offset])
        flipped = bytearray(data)
        flipped[offset] ^= 1 << (offset % 8)
        agree(bytes(flipped))


NUMBERS: st.SearchStrategy[Any] = st.integers(0, 12) | st.sampled_from(
    [-1, 1.5, "2", None, True, 1 << 31, 1 << 63, 1 << 64, [], {}]
)
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*ELEMENT_TYPES, "F8", "f32", 1, None]),
        "shape": st.lists(NUMBERS, max_size=3) | NUMBERS,
        "data_offsets": st.lists(NUMBERS, min_size=1, max_size=3),
    },
    optional={"extra": st.sampled_from([1, "x", [1], {"a": None}])},
)
HEADERS = st.dictionaries(st.text(max_size=4), ENTRIES, max_size=3) | st.fixed_dictionaries(
    {"__metadata__": st.dictionaries(st.text(max_size=2), NUMBERS | st.text(max_size=3)) | NUMBERS}
)


@given(HEADERS, st.integers(0, 24), st.sampled_from(["", " ", "    ", "\n", "\0"]))
def test_headers_at_will(header: dict[str, Any], size: int, behind: str) -> None:
    text = json.dumps(header).encode() + behind.encode()
    agree(pack("<Q", len(text)) + text + bytes(size))


@given(st.lists(st.tuples(st.sampled_from(sorted(ELEMENT_TYPES)), st.lists(st.integers(0, 3), max_size=3)), max_size=4))
@example([("F4", [0, 1])])
@example([("F4", [3, 2])])
def test_good_files_at_will(tensors: list[tuple[str, list[int]]]) -> None:
    """Laid out one behind the other: both read them, but where a tensor ends inside a byte."""
    header: dict[str, Any] = {}
    position, whole = 0, True
    for number, (word, shape) in enumerate(tensors):
        bits = ELEMENT_TYPES[word].bits
        for length in shape:
            bits *= length
        whole = whole and bits % 8 == 0
        header[f"t{number}"] = {"dtype": word, "shape": shape, "data_offsets": [position, position + bits // 8]}
        position += bits // 8
    text = json.dumps(header).encode()
    data = pack("<Q", len(text)) + text + bytes(position)
    assert (deserialized(data) is not None) == whole
    assert fdd.validate(data).valid is whole
    agree(data)


def test_the_library_writes_what_is_canonical() -> None:
    serialize = pytest.importorskip("safetensors.numpy").save
    numpy = pytest.importorskip("numpy")
    tensors = {
        "b": numpy.arange(3, dtype="float32"),
        "a": numpy.ones((2, 2), dtype="float32"),
        'q"\\/\x1f\x7fü': numpy.zeros((0, 4), dtype="int64"),
        "mask": numpy.array([True, False]),
        "half": numpy.float16([1.5]),
        "scalar": numpy.array(7, dtype="uint8"),
    }
    report = fdd.validate(serialize(tensors, metadata={"format": "np", "a": "x\n"}), name="x.safetensors")
    assert report.valid is True
    assert {finding.rule for finding in report.findings} == {"ST-TEN-017"}
    assert report.properties["metadata"] == {"format": "np", "a": "x\n"}
