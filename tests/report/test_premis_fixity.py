# SPDX-License-Identifier: Apache-2.0
"""Fixity checks as PREMIS: `fdd fixity verify --format premis`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from lxml import etree

import fdd
from fdd.cli.main import main
from fdd.fixity import Manifest, create
from fdd.report.premis_check import check
from fdd.resources import schema_path
from tests.report.official_schemas import premis_schema
from tests.report.premis_documents import MODEL, NS, document, objects, texts


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with the model and its manifest."""
    (tmp_path / "model.pth").write_bytes(MODEL.read_bytes())
    manifest = create(str(tmp_path / "model.pth"), digests=("sha256", "md5"), content=True)
    (tmp_path / "model.pth.fixity.json").write_text(manifest.to_json(), encoding="utf-8")
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], folder: Path, code: int, *options: str) -> etree._Element:
    capsys.readouterr()
    assert main(["fixity", "verify", str(folder / "model.pth.fixity.json"), "--format", "premis", *options]) == code
    root = etree.fromstring(capsys.readouterr().out.encode())
    assert check(root) == []
    return root


def test_intact(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    root = checked(capsys, recorded, 0)
    premis_schema().assertValid(root)
    assert (texts(root, "eventType"), texts(root, "eventOutcome")) == (["fixity check"], ["success"])
    assert texts(root, "messageDigestAlgorithm") == ["SHA-256", "MD5"]
    manifest = Manifest.from_json((recorded / "model.pth.fixity.json").read_text(encoding="utf-8"))
    assert texts(root, "significantPropertiesType") == ["content digest"]
    assert texts(root, "significantPropertiesValue") == [f"fdd-content-sha256-1:{manifest.content_digest}"]
    validated = document("premis", [fdd.validate(str(MODEL))])
    same = texts(objects(validated, "file")[0], "objectIdentifierValue")
    assert texts(root, "objectIdentifierValue") == same, "the file has one identifier, whatever is done with it"


def test_damaged(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    record = next(record for record in fdd.extract(str(MODEL)).records if record["role"] == "storage")
    data = bytearray(MODEL.read_bytes())
    data[record["offset"]] ^= 1
    (recorded / "model.pth").write_bytes(data)
    root = checked(capsys, recorded, 1)
    manifest = Manifest.from_json((recorded / "model.pth.fixity.json").read_text(encoding="utf-8"))
    assert texts(root, "eventOutcome") == ["fail"]
    place = f"{record['name']} at {record['offset']}+{record['length']}"
    assert texts(root, "eventOutcomeDetailNote") == [f"1 of {len(manifest.segments)} segments damaged: {place}"]
    segments = root.find(".//f:segments", NS)
    assert segments is not None
    etree.XMLSchema(etree.parse(str(schema_path("report-1.0.xsd")))).assertValid(etree.fromstring(etree.tostring(segments)))
    assert segments.findtext("f:segment/f:offset", namespaces=NS) == str(record["offset"])
    theirs = checked(capsys, recorded, 1, "--premis-outcomes", "archivematica")
    assert texts(theirs, "eventOutcome") == ["fail"]


@pytest.mark.parametrize("what", ["gone", "cut", "folder"])
def test_other_ends(capsys: pytest.CaptureFixture[str], recorded: Path, what: str) -> None:
    (recorded / "model.pth").unlink()
    if what == "cut":
        (recorded / "model.pth").write_bytes(MODEL.read_bytes()[:-700])
    elif what == "folder":
        (recorded / "model.pth").mkdir()
    root = checked(capsys, recorded, 3 if what == "folder" else 1)
    note = texts(root, "eventOutcomeDetailNote")[0]
    assert note.startswith({"gone": "missing: ", "cut": "truncated: ", "folder": "could not be checked: "}[what])
    assert texts(root, "eventOutcome") == ["fail"]


def test_checksum_lists_and_manifests_that_cannot_be_read(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    listing = recorded / "sums.txt"
    listing.write_text(f"{hashlib.sha256(MODEL.read_bytes()).hexdigest()}  model.pth\n", encoding="utf-8")
    assert main(["fixity", "verify", str(listing), "--format", "premis", "--premis-prefix", "objects/"]) == 0
    root = etree.fromstring(capsys.readouterr().out.encode())
    assert check(root) == []
    assert texts(root, "messageDigestOriginator") == ["sums.txt"], "they came with the files"
    assert texts(root, "originalName") == ["objects/model.pth"]
    (recorded / "model.pth.fixity.json").write_text("{", encoding="utf-8")
    assert main(["fixity", "verify", str(recorded / "model.pth.fixity.json"), "--format", "premis"]) == 3
    said = capsys.readouterr()
    assert "not a fixity manifest" in said.err and "<premis:event" not in said.out
