# SPDX-License-Identifier: Apache-2.0
"""What objects of PREMIS say of files and records, and that they say nothing that is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lxml import etree

import fdd
from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.report.premis_check import check
from fdd.report.premis_options import PremisOptions, is_date
from fdd.report.premis_terms import strongest_first
from fdd.resources import corpus_dir, schema_path
from tests.report.premis_documents import MODEL, NS, document, objects, texts
from tests.report.samples import HOSTILE, hostile_file, written
from tests.test_corpus import MANIFEST, report_of

CORPUS = corpus_dir()


def report_on(path: str, **options: Any) -> Report:
    return fdd.validate(str(CORPUS / path), **options)


def child(element: etree._Element, path: str) -> etree._Element:
    found = element.find(path, NS)
    assert found is not None, path
    return found


def test_a_stored_record() -> None:
    report = report_on("real/torch-2.13.0-state_dict.pth")
    thing = objects(document("premis", [report]), "bitstream")[0]
    record = next(record for record in report.records if record["role"] == "storage")
    assert texts(thing, "compositionLevel") == ["0"]
    assert texts(thing, "messageDigest") == [record["digests"]["sha256"]]
    assert texts(thing, "messageDigestOriginator") == [f"fdd {fdd.__version__}"]
    assert texts(thing, "size") == [str(record["length"])]
    assert texts(thing, "formatName") == ["PyTorch tensor storage"]
    assert texts(thing, "formatVersion") == ["float32, little-endian"]
    assert texts(thing, "contentLocationType") == ["ZIP entry name", "byte offset"]
    assert texts(thing, "contentLocationValue") == [record["name"], str(record["offset"])]
    assert thing.findtext(".//f:record/f:crc32", namespaces=NS) == record["crc32"]
    assert texts(thing, "originalName") == [], "bitstreams have none in PREMIS"


def test_a_deflated_record() -> None:
    reports = (report_on(path) for path in ("zip/record-deflated.pt", "good/torchscript-module.pt"))
    report = next(report for report in reports if any(record["method"] == "deflated" for record in report.records))
    record = next(record for record in report.records if record["method"] == "deflated")
    things = objects(document("premis", [report], premis_bitstreams="all"), "bitstream")
    thing = next(thing for thing in things if record["name"] in texts(thing, "contentLocationValue"))
    assert texts(thing, "compositionLevel") == ["1"]
    assert texts(thing, "messageDigest") == [], "the digest is one of the inflated bytes"
    assert texts(thing, "size") == [str(record["length"])]
    assert f"{record['size']} bytes without it" in texts(thing, "formatNote")[-1]
    assert thing.findtext(".//f:record/f:digests/f:entry/f:value", namespaces=NS) == record["digests"]["sha256"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("real/torch-2.13.0-tensor.pt", "ZIP entry name"), ("tar/", "TAR entry name"), ("legacy/", "storage key")],
)
def test_what_the_name_of_a_record_is(path: str, kind: str) -> None:
    found = [path] if not path.endswith("/") else [str(file) for file in sorted((CORPUS / path).iterdir())]
    report = next(report for report in map(report_on, found) if any(r["role"] == "storage" for r in report.records))
    root = document("premis", [report], premis_bitstreams="storages")
    assert texts(objects(root, "bitstream")[0], "contentLocationType")[0] == kind


def test_names_that_xml_cannot_carry_are_encoded_and_say_so() -> None:
    report = fdd.validate(hostile_file(), name="x.pt")
    root = document("premis", [report], premis_bitstreams="all")
    assert check(root) == []
    encoded = [thing for thing in objects(root, "bitstream") if "percent-encoded" in texts(thing, "contentLocationType")[0]]
    assert encoded
    for thing in encoded:
        assert child(thing, ".//f:record/f:name").get("encoding") == "percent"
        assert "%1B" in texts(thing, "contentLocationValue")[0]


def test_percent_encoding_is_of_the_name_itself() -> None:
    report = replace(report_on("real/torch-2.13.0-tensor.pt"), records=())
    report = replace(report, file={**report.file, "path": f"in/{HOSTILE}"})
    name = texts(document("premis", [report]), "originalName")[0]
    assert name.startswith("in/%1B%5B2J") and name.isascii()


@pytest.mark.parametrize(
    ("path", "marked"),
    [("damage/encrypted.pt", True), ("zip/record-encrypted.pt", False), ("zip/record-patched.pt", False)],
)
def test_inhibitors_are_for_what_is_encrypted(path: str, marked: bool) -> None:
    root = document("premis", [report_on(path)])
    assert texts(root, "inhibitorType") == (["Password protection"] if marked else [])


def test_the_creating_application() -> None:
    report = report_on("real/torch-2.13.0-tensor.pt")
    root = document("premis", [report])
    assert texts(root, "creatingApplicationName") == ["PyTorch"]
    assert texts(root, "creatingApplicationVersion") == texts(root, "dateCreatedByApplication") == []
    root = document("premis", [report], created="2024-05-31")
    assert texts(root, "dateCreatedByApplication") == ["2024-05-31"]


@pytest.mark.parametrize("rule", ["PT-ZIP-059", None])
def test_the_creating_application_is_not_guessed(rule: str | None) -> None:
    """Neither for archives that were packed again, nor for what other programs write."""
    kinds = ("mar", "safetensors", "executorch")
    found = [entry for entry in MANIFEST if _mentions(entry, rule) or (rule is None and entry["kind"] in kinds)][:12]
    assert found
    for entry in found:
        assert texts(document("premis", [report_of(entry)]), "creatingApplicationName") == []


def _mentions(entry: dict[str, Any], rule: str | None) -> bool:
    return rule is not None and any(finding.startswith(rule) for finding in entry["findings"])


@pytest.mark.parametrize("text", ["2024", "2024-05", "2024-05-31", "2024~", "2024-02-29?", "2024-05-31T12:00:00Z"])
def test_dates(text: str) -> None:
    assert is_date(text)


@pytest.mark.parametrize("text", ["", "yesterday", "2024-13", "2023-02-29", "2024-05-31T12:00:00", "2024-05-31T25:00:00Z", "24"])
def test_what_is_no_date(text: str) -> None:
    assert not is_date(text)
    if text:
        with pytest.raises(UsageError, match="--created"):
            PremisOptions.of({"created": text})


def test_unknown_events_are_refused() -> None:
    with pytest.raises(UsageError, match="guessing"):
        PremisOptions.of({"premis_events": "validation,guessing"})


def test_the_strongest_digest_is_first() -> None:
    digests = {"md5": "0", "sha1": "0", "unheard": "0", "sha512": "0", "sha256": "0", "blake2b": "0"}
    assert [name for name, _ in strongest_first(digests)] == ["sha512", "blake2b", "sha256", "sha1", "md5", "unheard"]


@pytest.mark.parametrize(
    ("path", "root", "prefix", "name"),
    [
        ("objects/x.pt", "", "", "objects/x.pt"),
        ("./x.pt", "", "", "./x.pt"),
        ("./x.pt", "", "objects/", "objects/x.pt"),
        ("/data/transfer/objects/x.pt", "/data/transfer", "", "objects/x.pt"),
        ("/data/transfer/sub/x.pt", "/data/transfer/", "objects/", "objects/sub/x.pt"),
        ("/data/transfer2/x.pt", "/data/transfer", "", "/data/transfer2/x.pt"),
        ("a\\b.pt", "", "objects/", "objects/a\\b.pt"),
    ],
)
def test_original_names(path: str, root: str, prefix: str, name: str) -> None:
    assert PremisOptions(root=root, prefix=prefix).original_name({"path": path}) == name


def test_standard_input_has_no_place() -> None:
    report = fdd.validate(MODEL.read_bytes())
    root = document("premis", [report])
    assert check(root) == []
    file = objects(root, "file")[0]
    assert texts(file, "originalName") == []
    assert file.find("p:storage", NS) is None


def test_a_container_is_a_second_format_only_on_request() -> None:
    report = report_on("real/torch-2.13.0-tensor.pt")
    assert texts(objects(document("premis", [report]), "file")[0], "formatRegistryKey") == ["fdd000644"]
    file = objects(document("premis", [report], premis_puid=True), "file")[0]
    assert texts(file, "formatRegistryKey") == ["fdd000644", "x-fmt/263"]
    assert texts(file, "formatName") == ["PyTorch Serialized File Format", "ZIP Format"]


def test_extensions_are_of_our_schema() -> None:
    schema = etree.XMLSchema(etree.parse(str(schema_path("report-1.0.xsd"))))
    reports = [report_on(path) for path in ("real/torch-2.13.0-state_dict.pth", "zip/record-deflated.pt", "damage/encrypted.pt")]
    reports[0] = fdd.validate(str(MODEL), profiles=["archive-strict"])
    root = document("premis", reports, premis_bitstreams="all")
    extensions = [
        e for holder in root.iter("{*}objectCharacteristicsExtension", "{*}eventOutcomeDetailExtension") for e in holder
    ]
    assert {etree.QName(element).localname for element in extensions} == {"report", "record", "findings", "profile"}
    for element in extensions:
        schema.assertValid(etree.fromstring(etree.tostring(element)))
    assert not root.xpath("//@xsi:nil", namespaces=NS), "an error to validators that do not have our schema"


def test_lists_are_left_out_when_brief() -> None:
    report = report_on("real/torch-2.13.0-state_dict.pth")
    long, short = (written("premis", [report], brief=brief, options={"premis_bitstreams": "none"}) for brief in (False, True))
    assert "<tensors>" in long and "<records>" in long
    assert "<tensors>" not in short and "<records>" not in short and "<tensorCount>" in short


def test_identifiers_follow_from_the_bytes() -> None:
    report = report_on("real/torch-2.13.0-tensor.pt")
    moved = replace(report, file={**report.file, "path": "elsewhere/y.pt"}, run={**report.run, "started": "2030-01-01T00:00:00Z"})
    first, second = (texts(document("premis", [one]), "objectIdentifierValue") for one in (report, moved))
    assert first == second
    events = [set(texts(document("premis", [one]), "eventIdentifierValue")) for one in (report, moved)]
    assert events[0].isdisjoint(events[1]), "another run is another event"
    fresh = [texts(document("premis", [report], premis_identifiers="uuid4"), "objectIdentifierValue")[0] for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_files_of_which_no_digest_is_known_are_not_taken_for_one() -> None:
    reports = [fdd.extract(str(CORPUS / path)) for path in ("real/torch-2.13.0-tensor.pt", "zip/archive-comment.pt")]
    reports.append(replace(reports[0], file={**reports[0].file, "modified": "2001-01-01T00:00:00Z"}))
    identifiers = [texts(document("premis", [report]), "objectIdentifierValue")[0] for report in reports]
    assert len(set(identifiers)) == 3
