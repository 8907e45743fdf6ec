# SPDX-License-Identifier: Apache-2.0
"""`validate --expect` and the `.sha256` file beside a file: the report says whether the digest is the expected one."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

import fdd
from fdd.core.errors import UsageError
from fdd.core.report import Report
from tests.cli.running import Runner, broken, fill, good
from tests.report.samples import SCHEMA

SHA256 = hashlib.sha256(good()).hexdigest()
MD5 = hashlib.md5(good()).hexdigest()
WRONG = "0" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return fill(tmp_path, x__pt=good()) / "x.pt"


def test_expected_and_found(fdd: Runner, path: Path) -> None:
    ran = fdd("validate", path, "--expect", f"sha256:{SHA256.upper()}", "--format", "json")
    assert ran.code == 0
    assert ran.json["fixity"] == {"expected": {"sha256": SHA256}, "source": "--expect", "matches": True}
    assert ran.json["options"]["expect"] == {"sha256": SHA256}
    assert list(ran.json)[-2:] == ["fixity", "digests"]
    text = fdd("validate", path, "--expect", f"sha256:{SHA256}").out.splitlines()
    assert text[1] == "  fixity: sha256 is as expected by --expect"


def test_expected_and_not_found(fdd: Runner, path: Path) -> None:
    ran = fdd("validate", path, "--expect", f"sha256:{WRONG}", "--format", "json")
    assert ran.code == 1
    assert ran.json["fixity"]["matches"] is False
    assert ran.json["status"]["verdict"] == "valid"
    text = fdd("validate", path, "--expect", f"sha256:{WRONG}")
    assert text.code == 1
    assert f"  fixity differs: sha256 is {SHA256}, expected by --expect: {WRONG}" in text.out.splitlines()
    assert fdd("validate", path, "--expect", f"sha256:{WRONG}", "--exit-zero").code == 0


def test_several_and_other_algorithms(fdd: Runner, path: Path) -> None:
    both = ("--expect", f"sha256:{SHA256}", "--expect", f"md5:{MD5}")
    ran = fdd("validate", path, *both, "--format", "json")
    assert (ran.code, ran.json["digests"]) == (0, {"sha256": SHA256, "md5": MD5})
    ran = fdd("validate", path, *both[:3], f"md5:{'0' * 32}", "--format", "json")
    assert (ran.code, ran.json["fixity"]["matches"]) == (1, False)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("abc", "sha256:HEX"),
        ("sha256:abc", "has 64 hexadecimal digits"),
        (f"sha256:{'g' * 64}", "has 64 hexadecimal digits"),
        (f"md5:{SHA256}", "has 32 hexadecimal digits"),
        (f"crc32:{'0' * 8}", "unknown digest 'crc32'"),
    ],
)
def test_what_cannot_be_expected(fdd: Runner, path: Path, value: str, said: str) -> None:
    ran = fdd("validate", path, "--expect", value)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_one_file_and_full_depth_are_needed(fdd: Runner, path: Path) -> None:
    expect = ("--expect", f"sha256:{SHA256}")
    assert fdd("validate", path, path, *expect).code == 2
    assert fdd("validate", path.parent, *expect).code == 2
    assert fdd("validate", path, *expect, "--depth", "structure").code == 2


@pytest.mark.parametrize(
    ("text", "code", "matches"),
    [
        (f"{SHA256}  x.pt\n", 0, True),
        (f"{SHA256} *x.pt\n", 0, True),
        (f"{SHA256}  ./far/away/x.pt\n", 0, True),
        (f"{SHA256}  renamed.pt\n", 0, True),
        (f"{SHA256}\n", 0, True),
        (f"SHA256 (x.pt) = {SHA256}\n", 0, True),
        (f"{WRONG}  y.pt\n{SHA256}  x.pt\n", 0, True),
        (f"{WRONG}  x.pt\n", 1, False),
        (f"{WRONG}", 1, False),
        (f"{WRONG}  y.pt\n{WRONG}  z.pt\n", 3, None),
        (f"{WRONG}  x.pt\n{SHA256}  a/x.pt\n", 3, None),
        (f"{MD5}  x.pt\n", 3, None),
        ("nothing of the kind\n", 3, None),
        ("", 3, None),
        ("\0" * (2 << 20), 3, None),
    ],
)
def test_the_file_beside(fdd: Runner, path: Path, text: str, code: int, matches: bool | None) -> None:
    path.with_name("x.pt.sha256").write_text(text, encoding="utf-8")
    ran = fdd("validate", path, "--format", "json")
    assert (ran.code, ran.json["fixity"]["matches"]) == (code, matches)
    assert ran.json["fixity"]["source"] == "neighbour"
    assert ("problem" in ran.json["fixity"]) is (matches is None)
    SCHEMA.validate(ran.json)
    said = fdd("validate", path).out.splitlines()[1]
    starts = {
        True: "  fixity: sha256 is as expected by the .sha256 file",
        False: "  fixity differs: ",
        None: "  fixity not checked: ",
    }
    assert said.startswith(starts[matches])


def test_sha256sum_writes_such_files(fdd: Runner, path: Path) -> None:
    tool = shutil.which("sha256sum")
    if tool is None:
        pytest.skip("needs sha256sum")
    written = subprocess.run([tool, path.name], cwd=path.parent, capture_output=True, check=True).stdout
    path.with_name("x.pt.sha256").write_bytes(written)
    assert fdd("validate", path, "--format", "json").json["fixity"]["matches"] is True
    path.write_bytes(broken())
    ran = fdd("validate", path, "--format", "json")
    assert (ran.code, ran.json["fixity"]["matches"]) == (1, False)


def test_the_file_beside_in_folders_and_processes(fdd: Runner, path: Path) -> None:
    fill(path.parent, y__pt=good(), **{"x.pt__sha256": f"{SHA256}  x.pt\n".encode(), "y.pt__sha256": f"{WRONG}  y.pt\n".encode()})
    ran = fdd("validate", path.parent, "--format", "jsonl", "--jobs", "2")
    assert ran.code == 1
    found = {report["file"]["name"]: report["fixity"]["matches"] for report in ran.reports if "fixity" in report}
    assert found == {"x.pt": True, "y.pt": False}


def test_what_is_given_counts_more_than_what_lies_beside(fdd: Runner, path: Path) -> None:
    path.with_name("x.pt.sha256").write_text(f"{WRONG}  x.pt\n", encoding="utf-8")
    ran = fdd("validate", path, "--expect", f"sha256:{SHA256}", "--format", "json")
    assert (ran.code, ran.json["fixity"]["source"]) == (0, "--expect")
    assert "fixity" not in fdd("validate", path, "--depth", "structure", "--format", "json").json


def test_the_api(path: Path) -> None:
    path.with_name("x.pt.sha256").write_text(f"{WRONG}  x.pt\n", encoding="utf-8")
    assert fdd.validate(path).fixity == {}
    assert fdd.validate(path, neighbours=True).fixity["matches"] is False
    report = fdd.validate(good(), expect={"sha256": SHA256}, digests=())
    assert (report.fixity["matches"], report.digests) == (True, {"sha256": SHA256})
    assert Report.from_json(report.to_json()).fixity == report.fixity
    with pytest.raises(UsageError, match="depth full"):
        fdd.validate(good(), expect={"sha256": SHA256}, depth="directory")
    with pytest.raises(UsageError, match="unknown digest"):
        fdd.validate(good(), expect={"sha257": SHA256})


def test_xml_says_it_too(fdd: Runner, path: Path) -> None:
    ran = fdd("validate", path, "--expect", f"sha256:{WRONG}", "--format", "xml")
    assert ran.code == 1
    assert WRONG in ran.out and SHA256 in ran.out
    stored = path.with_name("report.json")
    assert fdd("validate", path, "--expect", f"sha256:{WRONG}", "--format", "json", "--output", stored).code == 1
    assert fdd("convert", stored, "--format", "json").json["fixity"]["matches"] is False
