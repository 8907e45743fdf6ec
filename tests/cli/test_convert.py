# SPDX-License-Identifier: Apache-2.0
"""`fdd convert`: a stored report gives what the run would have given, and anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Runner, broken, fill, good


@pytest.fixture
def stored(fdd: Runner, tmp_path: Path) -> Path:
    """Reports on two files and a set, in every form of JSON."""
    fill(tmp_path / "in", **{"x__pt": good(), "model-00001-of-00002__bin": broken()})
    for form, name in (("json", "all.json"), ("jsonl", "all.jsonl")):
        fdd("validate", tmp_path / "in", "--format", form, "--verbose", "--output", tmp_path / name)
    fdd("validate", tmp_path / "in" / "x.pt", "--format", "json", "--verbose", "--output", tmp_path / "one.json")
    return tmp_path


@pytest.mark.parametrize("name", ["all.json", "all.jsonl"])
@pytest.mark.parametrize("form", ["text", "xml", "csv", "jsonl"])
def test_the_same_as_from_the_files(fdd: Runner, stored: Path, name: str, form: str) -> None:
    code, out, err = fdd("convert", stored / name, "--format", form, "--verbose")
    assert (code, err) == (0, "")
    told = fdd("validate", stored / "in", "--format", form, "--verbose").out
    if form in ("text", "csv"):
        assert out == told
    elif form == "jsonl":
        assert [{**json.loads(line), "run": None} for line in out.splitlines()] == [
            {**json.loads(line), "run": None} for line in told.splitlines()
        ]
    assert "model-00001-of-00002.bin" in out


def test_one_report_stays_one(fdd: Runner, stored: Path) -> None:
    once = fdd("convert", stored / "one.json", "--format", "json", "--verbose").out
    assert once == (stored / "one.json").read_text(encoding="utf-8")
    assert "reports" in fdd("convert", stored / "all.json", "--format", "json").json


def test_several_documents(fdd: Runner, stored: Path) -> None:
    ran = fdd("convert", stored / "one.json", stored / "all.jsonl", "--format", "jsonl")
    assert (ran.code, len(ran.reports)) == (0, 3)


GARBAGE = [
    "7", "[]", "{}", '{"reports": 7}', '{"reports": [7]}', '{"reports": [], "sets": {}}', "[" * 100_000, "{}\n7", '{"a":', "x",
    '{"set": 7}', '{"set": {}}', '{"set": {"kind": "k", "root": "r", "members": [1], "missing": [], "extra": []}}',
]  # fmt: skip


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_what_is_no_report(fdd: Runner, tmp_path: Path, text: str) -> None:
    (tmp_path / "garbage").write_text(text, encoding="utf-8")
    code, out, err = fdd("convert", tmp_path / "garbage", "--format", "text")
    assert (code, out) == (2, "")
    assert err.startswith("fdd convert: ")


@pytest.mark.parametrize("name", ["missing", ".", "nul\0l"])
def test_what_cannot_be_read(fdd: Runner, tmp_path: Path, name: str) -> None:
    code, out, _ = fdd("convert", f"{tmp_path}/{name}", "--format", "text")
    assert (code, out) == (3, "")


def test_bytes_that_are_no_text(fdd: Runner, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00")
    code, out, _ = fdd("convert", tmp_path / "noise", "--format", "text")
    assert (code, out) == (3, "")
