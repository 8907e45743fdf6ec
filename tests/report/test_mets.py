# SPDX-License-Identifier: Apache-2.0
"""METS: valid with the PREMIS inside, and references that hold."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

import fdd
from fdd import api
from fdd.cli.main import main
from fdd.report.premis_check import check
from tests.report.official_schemas import mets_schema
from tests.report.premis_documents import MODEL, NS, XSI, document, texts
from tests.test_corpus import CORPUS, MANIFEST, report_of

HREF = "{http://www.w3.org/1999/xlink}href"


def test_the_document_of_the_whole_corpus_is_valid() -> None:
    root = document("mets", [report_of(entry) for entry in MANIFEST])
    assert check(root) == []
    mets_schema().assertValid(root)


def test_with_references(tmp_path: Path) -> None:
    reports = [report_of(entry) for entry in MANIFEST[::31]]
    output = tmp_path / "METS.xml"
    root = document("mets", reports, mets_references=str(tmp_path / "metadata" / "preservation"), output=str(output))
    mets_schema().assertValid(root)
    references = root.findall(".//m:digiprovMD/m:mdRef", NS)
    assert len(references) == len(reports)
    for reference in references:
        assert {name: reference.get(name) for name in ("LOCTYPE", "MDTYPE", "MIMETYPE", "CHECKSUMTYPE")} == {
            "LOCTYPE": "URL", "MDTYPE": "PREMIS", "MIMETYPE": "text/xml", "CHECKSUMTYPE": "SHA-256",
        }  # fmt: skip
        assert reference.get("{http://www.w3.org/1999/xlink}type") == "simple"
        href = reference.get(HREF) or ""
        assert href.startswith("metadata/preservation/"), "relative to the METS"
        data = (tmp_path / href).read_bytes()
        assert (reference.get("SIZE"), reference.get("CHECKSUM")) == (str(len(data)), hashlib.sha256(data).hexdigest())
        assert check(etree.fromstring(data)) == []
    assert {element.get("STATUS") for element in root.iterfind(".//m:digiprovMD", NS)} == {"CURRENT"}
    assert not [name for name in os.listdir(tmp_path / "metadata" / "preservation") if name.endswith(".part")]


def test_one_document_a_file_with_references_of_its_own(tmp_path: Path) -> None:
    paths = [str(CORPUS / "real" / "torch-2.13.0-tensor.pt"), str(MODEL)]
    options = ["--format", "mets", "--quiet", "--output-dir", str(tmp_path / "m"), "--mets-references", str(tmp_path / "m" / "p")]
    assert main(["validate", *paths, *options]) == 0
    for path in (tmp_path / "m").glob("*.mets.xml"):
        reference = etree.parse(str(path)).find(".//m:mdRef", NS)
        assert reference is not None
        data = (tmp_path / "m" / (reference.get(HREF) or "")).read_bytes()
        assert reference.get("CHECKSUM") == hashlib.sha256(data).hexdigest()
    assert len(list((tmp_path / "m" / "p").iterdir())) == 2


def test_wrapped_elements_say_where_their_schema_is() -> None:
    root = document("mets", [fdd.validate(str(MODEL))])
    wrapped = [element for holder in root.iterfind(".//m:xmlData", NS) for element in holder]
    assert wrapped
    assert all("premis.xsd" in (element.get(f"{{{XSI}}}schemaLocation") or "") for element in wrapped)
    kinds = [str(element.get("MDTYPE")) for element in root.iterfind(".//m:mdWrap", NS)]
    assert kinds == sorted(kinds, key=["PREMIS:OBJECT", "PREMIS:EVENT", "PREMIS:AGENT"].index)


def test_documents_have_identifiers_of_their_own() -> None:
    report = fdd.validate(str(MODEL))
    later = replace(report, run={**report.run, "started": "2030-01-01T00:00:00Z"})
    first, again, other, nothing = (document("mets", reports).get("OBJID") for reports in ([report], [report], [later], []))
    assert first == again
    assert len({first, other, nothing}) == 3


def test_what_a_file_entry_says() -> None:
    report = fdd.validate(str(MODEL), digests=("md5", "blake2b", "sha256"))
    entry = document("mets", [report], premis_prefix="objects/", premis_root=str(MODEL.parent)).find(".//m:file", NS)
    assert entry is not None
    assert (entry.get("CHECKSUMTYPE"), entry.get("CHECKSUM")) == ("SHA-256", report.digests["sha256"])
    assert (entry.get("SIZE"), entry.get("MIMETYPE")) == (str(MODEL.stat().st_size), "application/zip")
    location = entry.find("m:FLocat", NS)
    assert location is not None and location.get(HREF) == f"objects/{MODEL.name}"


@pytest.mark.parametrize("name", ["a b\x01.pt", "caf\u00e9/]]>.pt", None])
def test_names_that_are_hard_to_carry(name: str | None) -> None:
    report = fdd.validate(str(MODEL))
    file = {"size": 1} if name is None else {**report.file, "path": name}
    root = document("mets", [replace(report, file=file)])
    mets_schema().assertValid(root)
    assert [element.get(HREF) for element in root.iterfind(".//m:FLocat", NS)] == (
        [] if name is None else ["a%20b%01.pt" if name[0] == "a" else "caf%C3%A9/%5D%5D%3E.pt"]
    )


def test_sets_and_files_that_could_not_be_read() -> None:
    report = fdd.validate(str(MODEL))
    facts = {
        "kind": "sharded-model",
        "root": str(MODEL),
        "members": [MODEL.name],
        "missing": ["b"],
        "extra": [],
        "complete": False,
    }
    root = document("mets", [report, api.error_report("gone.pt", "oh")], [facts, {**facts, "missing": ["c"], "root": "other"}])
    mets_schema().assertValid(root)
    assert check(root) == []
    assert texts(root, "significantPropertiesValue") == ["incomplete; missing b", "incomplete; missing c"]
