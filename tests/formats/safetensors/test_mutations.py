# SPDX-License-Identifier: Apache-2.0
"""Bytes changed at will: nothing raises, no rule crashes, and what is changed outside the values is found."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdd
from fdd.core.finding import Level, Reason
from fdd.core.report import Report
from fdd.core.source import BytesSource
from fdd.formats.probe import make_probe
from fdd.formats.safetensors.format import FORMAT
from fdd.limits import Limits
from fdd.resources import corpus_dir

FOLDER = corpus_dir() / "safetensors"
GOOD = (FOLDER / "good.safetensors").read_bytes()
HEADER_END = 8 + int.from_bytes(GOOD[:8], "little")
NAMES_AND_TEXTS = [b"format", b"pt", b"source", b"fdd corpus", b"steps", b"fc.bias", b"fc.weight", b"none", b"half", b"mask"]
"""What nothing else in the file repeats: a changed letter in a name is another good name."""


@cache
def seeds() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FOLDER.iterdir())]


def validated(data: bytes) -> Report:
    report = fdd.validate(data, name="x.safetensors")
    crashed = [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH]
    assert not crashed
    return report


def parts_hold(data: bytes) -> None:
    """The segments are a partition of the file, and everything that is told of it can be written as JSON."""
    probe = make_probe(BytesSource(data), name=None, path=None, limits=Limits(), depth="structure")
    identification = FORMAT.identify(probe)
    if identification is None:
        return
    document = FORMAT.open(probe, identification)
    position = 0
    for segment in FORMAT.segments(document):
        assert segment.span.offset == position
        position = segment.span.end
    assert position == len(data)
    for record in FORMAT.stored_parts(document):
        assert record.span is None or record.span.end <= len(data)


@given(st.data())
def test_mutations_never_raise(data: st.DataObject) -> None:
    mutated = bytearray(data.draw(st.sampled_from(seeds())))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mutated)))
        what = data.draw(st.sampled_from(["replace", "insert", "delete", "cut"]))
        piece = data.draw(
            st.binary(max_size=6) | st.sampled_from([b'"', b"{", b"]", b"0", b"-1", b"1e5", b'"w":', b"\\u", b"99999999999"])
        )
        if what == "replace":
            mutated[place : place + len(piece)] = piece
        elif what == "insert":
            mutated[place:place] = piece
        elif what == "delete":
            del mutated[place : place + len(piece)]
        else:
            del mutated[place:]
    validated(bytes(mutated)).to_json(verbose=True)
    parts_hold(bytes(mutated))


def unprotected() -> set[int]:
    """Offsets of the letters of names and metadata, and of the other size of an empty tensor, which says nothing."""
    found = {GOOD.index(b"[0,3]") + 3}
    for word in NAMES_AND_TEXTS:
        start = GOOD.index(b'"' + word + b'"') + 1
        found.update(range(start, start + len(word)))
    return found


@pytest.mark.parametrize("bit", range(8))
def test_flipped_bits_outside_the_values_are_found_where_they_are(bit: int) -> None:
    excused = unprotected()
    for offset in set(range(HEADER_END)) - excused:
        data = bytearray(GOOD)
        data[offset] ^= 1 << bit
        report = validated(bytes(data))
        grave = [f for f in report.findings if f.level is not Level.INFO and f.offset is not None and f.length is not None]
        held = [f.rule for f in grave if (f.offset or 0) <= offset < (f.offset or 0) + (f.length or 0)]
        assert held, (offset, bytes(data[offset - 8 if offset > 8 else 0 : offset + 8]), report.findings)
        assert report.valid is False, (offset, report.findings)


def test_flipped_bits_of_names_and_texts_leave_another_good_file_or_are_found() -> None:
    """The format repeats no name: the fixity of the file is all that protects it."""
    for offset in unprotected():
        data = bytearray(GOOD)
        data[offset] ^= 0x80
        assert "ST-HDR-004" in {finding.rule for finding in validated(bytes(data)).findings}


@pytest.mark.parametrize("length", range(0, len(GOOD), 3))
def test_cut_files_are_never_valid(length: int) -> None:
    assert validated(GOOD[:length]).valid is not True


@pytest.mark.parametrize("count", [1, 8, 100])
@pytest.mark.parametrize("byte", [b"\0", b" "])
def test_bytes_behind_the_end_are_never_valid(count: int, byte: bytes) -> None:
    report = validated(GOOD + byte * count)
    assert [(f.rule, f.offset, f.length) for f in report.findings] == [("ST-TEN-014", len(GOOD), count)]
