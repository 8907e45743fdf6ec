# SPDX-License-Identifier: Apache-2.0
"""Which files count as safetensors, damaged ones too, and what a curator is told of those under another name."""

from __future__ import annotations

import json
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdd
from fdd.core.finding import Verdict
from fdd.core.model import Identification


def safetensors(header: object, data: bytes = b"", pad: int = 0) -> bytes:
    text = json.dumps(header).encode() + b" " * pad
    return pack("<Q", len(text)) + text + data


TENSORS = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"format": "pt"}}
WHOLE = safetensors(TENSORS, bytes(8))


def identified(data: bytes, name: str | None = "model.pt") -> Identification:
    found = fdd.identify(data, name=name)
    assert json.loads(json.dumps(found.details)) == found.details
    for _, offset, length in found.basis:
        assert 0 <= offset <= offset + length <= len(data)
    return found


@given(st.integers(0, 300) | st.sampled_from([0x6328, 0x6928, 0x0280, 0x0380, 0x8B1F, 0x5A42]))
def test_whatever_the_first_bytes(pad: int) -> None:
    text = json.dumps(TENSORS).encode()
    length = pad if pad > 300 else len(text) + pad
    found = identified(pack("<Q", length) + text.ljust(length) + bytes(8))
    assert (found.kind, found.format) == ("safetensors", "safetensors")
    assert found.details == {"header_bytes": length, "tensor_count": 1, "data_bytes": 8, "complete": True}


def test_the_note_says_what_to_do_with_another_name() -> None:
    other = identified(WHOLE)
    assert other.extension_matches is False
    assert other.note is not None
    assert "(1 tensor) with another extension" in other.note
    assert "no code" in other.note
    assert "name it .safetensors" in other.note
    right = identified(WHOLE, "model.safetensors")
    assert (right.extension_matches, right.note) == (True, None)
    unnamed = identified(WHOLE, None)
    assert unnamed.extension_matches is None
    assert unnamed.note is not None
    assert "extension" not in unnamed.note


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_cut_files_say_so(name: str) -> None:
    cut = identified(WHOLE[:-3], name)
    assert cut.details["complete"] is False
    assert cut.note is not None
    assert "5 of 8 bytes" in cut.note
    in_header = identified(WHOLE[:90], name)
    assert in_header.details["complete"] is False
    assert in_header.note is not None
    assert "cut off inside its header" in in_header.note


@pytest.mark.parametrize("offset", range(9))
@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_length_or_brace_does_not_take_the_kind_away(offset: int, bit: int) -> None:
    data = bytearray(WHOLE)
    data[offset] ^= 1 << bit
    report = fdd.validate(bytes(data), name="model.safetensors")
    assert report.identification is not None
    assert report.identification.kind == "safetensors"
    assert report.verdict is Verdict.NOT_WELL_FORMED


@pytest.mark.parametrize("word", [b"dtype", b"shape", b"data_offsets"])
def test_damaged_words_do_not_take_the_kind_away(word: bytes) -> None:
    report = fdd.validate(WHOLE.replace(word, word.upper()))
    assert report.identification is not None
    assert report.identification.kind == "safetensors"
    assert "ST-TEN-002" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize("header", [{"a": 1}, {"a": {"x": 1}}, ["data"], ["dtype", "shape", "x"], "data_offsets", {"a": "dtype"}])
def test_other_json_behind_a_length(header: object) -> None:
    assert identified(safetensors(header, b"\0\xff\0")).kind != "safetensors"


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(TENSORS).encode(),
        json.dumps([[], [TENSORS]], indent=6).encode(),
        b'{"w":   {"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        b"\0" * 100,
        b"\x02\0\0\0\0\0\0\0{",
        b"",
    ],
)
def test_texts_and_short_files(data: bytes) -> None:
    assert identified(data).kind != "safetensors"


@pytest.mark.parametrize("text", [b"{}", b"{}      ", b"{}\n"])
def test_a_file_without_anything(text: bytes) -> None:
    assert identified(pack("<Q", len(text)) + text).kind == "safetensors"


def test_judged_by_its_own_format_only() -> None:
    assert fdd.validate(WHOLE, name="x.pt").verdict is Verdict.VALID
    assert fdd.validate(WHOLE, name="x.pt", as_format="safetensors").verdict is Verdict.VALID
    other = fdd.validate(WHOLE, name="x.pt", as_format="fdd000644")
    assert other.verdict is Verdict.NOT_THIS_FORMAT
    assert other.identification is not None
    assert (other.identification.kind, other.identification.format) == ("safetensors", None)
    assert other.safety is None
