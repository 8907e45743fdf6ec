# SPDX-License-Identifier: Apache-2.0
"""Any bytes give a report: random ones, and files of the corpus with something changed, cut, moved or put twice."""

from __future__ import annotations

import json
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

import fdd
from fdd.core.finding import Verdict
from fdd.core.report import Report
from tests.report.samples import SCHEMA, written
from tests.test_corpus import CORPUS, MANIFEST

LARGEST = 20_000
MAGICS = [
    b"PK\3\4", b"PK\5\6", b"PK\1\2", b"\x80\2", b"\x80\4\x95", b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", b"ustar\0",
    b"7z\xbc\xaf'\x1c", b"\x1f\x8b\x08", b"BZh91AY&SY", b"\xfd7zXZ\0", b"(\xb5/\xfd", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY\1\0",
    b"GGUF\3\0\0\0", b"<html>", b"{", b"PYTORCH1", b"\0\0\0\0PTMF", b"\0\0\0\0ET12", b"\4\0\0\0\1\0\0\0",
    b"version https://git-lfs.github.com/spec/v1\n",
]  # fmt: skip
NAMES = st.sampled_from([None, "x.pt", "x.pth.tar", "__0_0.distcp", "m-00001-of-00002.bin", "\x1b\u202e.pt", "\ud800"])


@cache
def samples() -> list[bytes]:
    """Small files of the corpus, a spread over its folders."""
    rows = (CORPUS / entry["path"] for entry in MANIFEST[::5])
    return [path.read_bytes() for path in rows if path.stat().st_size <= LARGEST]


def check(report: Report) -> None:
    text = report.to_json(verbose=True)
    text.encode()
    SCHEMA.validate(json.loads(report.to_json()))
    assert report.verdict is not None
    crashed = [(outcome.rule, outcome.detail) for outcome in report.outcomes if outcome.reason == "crash"]
    assert crashed == []
    assert written("text", [report], verbose=True).encode()


@given(st.binary(max_size=300), st.sampled_from(MAGICS) | st.just(b""), st.integers(0, 600), NAMES)
@settings(max_examples=30)
def test_arbitrary_bytes(data: bytes, magic: bytes, zeros: int, name: str | None) -> None:
    whole = magic + data + bytes(zeros)
    report = fdd.validate(whole, name=name)
    check(report)
    assert report.verdict is not Verdict.VALID
    assert fdd.identify(whole, name=name).kind == fdd.extract(whole, name=name).identification.kind  # type: ignore[union-attr]


def changed(data: bytes, draw: st.DrawFn) -> bytes:
    place = draw(st.integers(0, max(0, len(data) - 1)))
    length = draw(st.integers(1, 64))
    piece = data[place : place + length]
    other = draw(st.integers(0, len(data)))
    match draw(st.sampled_from(["flip", "cut", "zero", "insert", "remove", "repeat", "move", "large"])):
        case "flip":
            bits = draw(st.integers(1, 255))
            return data[:place] + bytes(byte ^ bits for byte in data[place : place + 1]) + data[place + 1 :]
        case "cut":
            return data[:place]
        case "zero":
            return data[:place] + bytes(len(piece)) + data[place + length :]
        case "insert":
            return data[:place] + draw(st.binary(max_size=40)) + data[place:]
        case "remove":
            return data[:place] + data[place + length :]
        case "repeat":
            return data + data[place:]
        case "move":
            rest = data[:place] + data[place + length :]
            return rest[:other] + piece + rest[other:]
        case _:
            return data[:place] + b"\xff" * min(8, len(piece)) + data[place + 8 :]


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(samples()))
    for _ in range(draw(st.integers(1, 3))):
        data = changed(data, draw)
    return data


@given(damaged_files(), NAMES, st.sampled_from(["directory", "structure", "full", "full"]))
@settings(max_examples=30)
def test_damaged_files(data: bytes, name: str | None, depth: str) -> None:
    check(fdd.validate(data, name=name, depth=depth))
    fdd.identify(data, name=name)
