# SPDX-License-Identifier: Apache-2.0
"""FITS output: the shape that readers of the File Information Tool Set expect (its `fits_output.xsd`)."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from lxml import etree

import fdd
from fdd import api
from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.report import Style, new_writer
from fdd.report.fits_writer import FITS
from fdd.resources import corpus_dir
from tests.report.samples import HOSTILE, hostile_reports, written
from tests.test_corpus import MANIFEST, report_of

NS = {"f": FITS}
MODEL = corpus_dir() / "real" / "torch-2.13.0-state_dict.pth"
PARTS = ["identification", "fileinfo", "filestatus", "metadata"]
FILE_INFORMATION = {"filepath", "filename", "size", "md5checksum", "fslastmodified"}
STATUS = {"well-formed", "valid", "message"}
"""Names that the schema of FITS allows in these parts, of those that fdd writes."""


def fits(report: Report) -> etree._Element:
    return etree.fromstring(written("fits", [report], single=True).encode())


def names(root: etree._Element, path: str) -> list[str]:
    return [etree.QName(element).localname for element in root.iterfind(path, NS)]


def check_shape(root: etree._Element) -> None:
    parts = names(root, "*")
    assert parts == [part for part in PARTS if part in parts]
    assert parts[:3] == PARTS[:3]
    assert names(root, "f:identification/*") == ["identity"]
    order = ["tool", "version", "externalIdentifier"]
    inside = names(root, "f:identification/f:identity/*")
    assert inside == sorted(inside, key=order.index)
    assert set(names(root, "f:fileinfo/*")) <= FILE_INFORMATION
    assert set(names(root, "f:filestatus/*")) <= STATUS
    assert names(root, "f:metadata/*") in ([], ["document"])
    for element in root.iterfind(".//*[@toolname]"):
        assert (element.get("toolname"), element.get("toolversion")) == ("fdd", fdd.__version__)
    values = [*root.iterfind("f:fileinfo/*", NS), *root.iterfind("f:filestatus/*", NS), *root.iterfind("f:metadata/*/*", NS)]
    assert all(element.get("toolname") for element in values), "Islandora shows values by their tool"
    assert all(len(element) == 0 for element in values), "and reads texts, not trees"


def test_documents_of_the_corpus_have_the_shape_of_fits() -> None:
    for entry in MANIFEST[::9]:
        check_shape(fits(report_of(entry)))
    for report in (*hostile_reports(), fdd.extract(str(MODEL)), api.error_report("gone.pt", "oh")):
        check_shape(fits(report))


def test_what_stands_in_it() -> None:
    report = fdd.validate(str(MODEL), digests=("md5", "sha256"))
    root = fits(replace(report, file={**report.file, "modified": "2024-05-31T12:00:00Z"}))
    identity = root.find("f:identification/f:identity", NS)
    assert identity is not None
    assert (identity.get("format"), identity.get("mimetype")) == ("PyTorch Serialized File Format", "application/zip")
    assert [(e.get("type"), e.text) for e in identity.iterfind("f:externalIdentifier", NS)] == [("LoC FDD", "fdd000644")]
    assert root.findtext("f:fileinfo/f:md5checksum", namespaces=NS) == report.digests["md5"]
    assert root.findtext("f:fileinfo/f:fslastmodified", namespaces=NS) == "1717156800000"
    assert root.findtext("f:filestatus/f:well-formed", namespaces=NS) == "true"
    assert root.findtext("f:filestatus/f:valid", namespaces=NS) == "true"
    assert root.findtext("f:metadata/f:document/f:tensorCount", namespaces=NS) == "9"
    assert root.findtext("f:metadata/f:document/f:tensorDtypes", namespaces=NS) == "float32 8, int64 1"


def test_messages_begin_with_the_verdict_and_the_errors() -> None:
    report = fdd.validate(str(corpus_dir() / "zip" / "end-record-missing.pt"))
    root = fits(report)
    assert root.findtext("f:filestatus/f:valid", namespaces=NS) == "false"
    told = [element.text or "" for element in root.iterfind("f:filestatus/f:message", NS)]
    assert told[0].startswith("Not well-formed (not-well-formed")
    assert "severity=error" in told[1]
    assert len(told) == 1 + len(report.findings)


def test_what_is_not_determined_is_not_stated() -> None:
    root = fits(fdd.validate(str(MODEL), depth="structure"))
    assert names(root, "f:filestatus/*")[:1] == ["message"]
    unknown = fits(fdd.validate(b"\x01\x02\x03\x04", name=HOSTILE))
    section = unknown.find("f:identification", NS)
    assert section is not None and section.get("status") == "UNKNOWN"


def test_one_file_a_document() -> None:
    with pytest.raises(UsageError, match="one PATH"):
        new_writer("fits", io.StringIO(), Style(single=False))
