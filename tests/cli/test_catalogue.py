# SPDX-License-Identifier: Apache-2.0
"""The commands that look at fdd itself, and the one that brings source texts out."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from corpus.build.kit import archive
from fdd import api
from fdd.cli import doctor
from fdd.formats import installed
from tests.cli.running import Runner, fill, good

RULES = [rule for fmt in installed() for rule in fmt.catalogue]


def test_list_of_rules(fdd: Runner) -> None:
    code, out, err = fdd("rules", "list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [rule.id for rule in RULES]
    found = fdd("rules", "list", "--format", "json").json
    assert [(rule["id"], rule["axis"], rule["level"]) for rule in found] == [
        (rule.id, rule.axis.value, rule.level.value) for rule in RULES
    ]


@pytest.mark.parametrize("by", ["id", "name"])
def test_page_of_a_rule(fdd: Runner, by: str) -> None:
    rule = RULES[3]
    code, out, err = fdd("rules", "show", getattr(rule, by), RULES[5].id)
    assert (code, err) == (0, "")
    assert out.startswith(f"{rule.id}  {rule.name}\n  {rule.title}\n")
    assert f"\n\n{RULES[5].id}  " in out
    assert rule.remedy in out
    (found,) = fdd("rules", "show", getattr(rule, by), "--format", "json").json
    assert all(line.strip() in out for line in found["documentation"].splitlines())
    assert (found["id"], found["message"]) == (rule.id, rule.message)


def test_unknown_rules(fdd: Runner) -> None:
    code, out, err = fdd("rules", "show", RULES[0].id, "PT-XXX-999")
    assert (code, out) == (2, "")
    assert "no rule 'PT-XXX-999'" in err


def test_formats(fdd: Runner) -> None:
    code, out, _ = fdd("formats", "list")
    assert code == 0
    assert out.splitlines()[0].startswith("fdd000644  ")
    (row, *_) = fdd("formats", "list", "--format", "json").json
    assert row["rules"] == len(installed()[0].catalogue)
    code, out, _ = fdd("formats", "show", "fdd000644")
    assert code == 0 and "clauses:" in out.splitlines()
    description = fdd("formats", "show", "fdd000644", "--format", "json").json
    assert {rule.clause for rule in installed()[0].catalogue} <= set(description["clauses"])


@pytest.fixture
def small_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of one file, in the place of the one that comes with fdd."""
    fill(tmp_path, x__pt=good(), manifest__toml=b'[[file]]\npath = "x.pt"\nverdict = "valid"\n')
    monkeypatch.setattr(doctor, "corpus_dir", lambda: tmp_path)
    return tmp_path


@pytest.mark.usefixtures("small_corpus")
def test_doctor_finds_nothing_wrong(fdd: Runner) -> None:
    code, out, err = fdd("doctor")
    assert (code, err) == (0, "")
    assert out.startswith("fdd ")
    assert "corpus: 1 of 1 files give the verdict they should" in out
    assert out.endswith("all is well\n")


def test_doctor_looks_as_deep_as_the_manifest_says(fdd: Runner, small_corpus: Path) -> None:
    entry = b'[[file]]\npath = "x.pt"\ndepth = "directory"\nverdict = "structure-valid"\n'
    fill(small_corpus, manifest__toml=entry)
    assert fdd("doctor").code == 0


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"x__pt": b"damaged"}, "x.pt: not-this-format, expected valid"),
        ({"manifest__toml": b"[[file]"}, "corpus: TOMLDecodeError"),
        ({"manifest__toml": b'[[file]]\npath = "y.pt"\nverdict = "valid"'}, "corpus: SourceError: No such file"),
    ],
)
def test_doctor_finds_what_is_wrong(fdd: Runner, small_corpus: Path, files: dict[str, bytes], problem: str) -> None:
    fill(small_corpus, **files)
    code, out, err = fdd("doctor")
    assert (code, err) == (1, "")
    assert f"PROBLEM: {problem}" in out
    assert out.endswith("1 problem\n")


@pytest.mark.usefixtures("small_corpus")
def test_doctor_names_libraries_that_are_missing(fdd: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "lxml" else object())
    monkeypatch.setattr(doctor, "schema_path", lambda name: Path("none"))
    code, out, _ = fdd("doctor")
    assert code == 1
    assert [line.split()[0:4] for line in out.splitlines() if line.startswith("PROBLEM")] == [
        ["PROBLEM:", "the", "library", "lxml"], ["PROBLEM:", "schemas/report.schema.json", "is", "missing"],
    ]  # fmt: skip


CODE = b"def forward(self):\n  return 1\n"
HOSTILE = "code/__torch__/../../\x1b[2Jx.py"


def script() -> bytes:
    """A TorchScript archive with two source texts, one of a name that wants to go elsewhere."""
    return archive([("data.pkl", b"\x80\x02N."), ("constants.pkl", b"\x80\x02)."), ("code/m.py", CODE), (HOSTILE, b"x")])


def test_source_texts_come_out_under_neutral_names(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, m__pt=script())
    code, out, err = fdd("sources", tmp_path / "m.pt", "--output-dir", tmp_path / "deep" / "out")
    assert (code, err) == (0, "")
    assert sorted(os.listdir(tmp_path / "deep" / "out")) == ["0001.txt", "0002.txt", "sources.json"]
    assert sorted(os.listdir(tmp_path)) == ["deep", "m.pt"]
    assert out.replace("\n", "").isprintable()
    listing = json.loads((tmp_path / "deep" / "out" / "sources.json").read_text(encoding="utf-8"))
    first, second = listing["sources"]
    data = (tmp_path / "deep" / "out" / first["file"]).read_bytes()
    assert data == CODE
    assert first["sha256"] == hashlib.sha256(CODE).hexdigest()
    assert script()[first["offset"] :].startswith(CODE)
    assert (first["name"], second["name"]) == ("archive/code/m.py", f"archive/{HOSTILE}")


def test_files_without_source_texts(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good(), y__h5=b"\x89HDF\r\n\x1a\n" + bytes(99))
    for name in ("x.pt", "y.h5"):
        code, out, _ = fdd("sources", tmp_path / name, "--output-dir", tmp_path / "out")
        assert (code, out) == (0, "the file carries no source text\n")
    assert json.loads((tmp_path / "out" / "sources.json").read_text(encoding="utf-8"))["sources"] == []


def test_source_texts_of_what_cannot_be_read(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    code, _, err = fdd("sources", tmp_path / "missing.pt", "--output-dir", tmp_path / "out")
    assert (code, err) == (3, f"fdd sources: {tmp_path}/missing.pt: No such file or directory\n")
    assert not (tmp_path / "out").exists()
    code, _, err = fdd("sources", tmp_path / "x.pt", "--output-dir", tmp_path / "x.pt")
    assert (code, err) == (3, f"fdd sources: {tmp_path}/x.pt: cannot be written: File exists\n")


def test_a_file_that_is_no_corpus_file_is_identified_the_same_by_command_and_call(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path, x__pt=good())
    shown = fdd("identify", tmp_path / "x.pt", "--format", "json").json
    called = json.loads(api.identify_report(str(tmp_path / "x.pt")).to_json())
    assert shown["identification"] == called["identification"]
