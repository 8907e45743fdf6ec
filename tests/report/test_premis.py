# SPDX-License-Identifier: Apache-2.0
"""PREMIS and METS: valid by the official schemas, sound by the semantic check, and what a repository expects to find."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from lxml import etree

import fdd
from fdd import api
from fdd.core.report import Report
from fdd.report.premis_check import check
from fdd.resources import corpus_dir
from tests.report.official_schemas import premis_schema
from tests.report.premis_documents import MODEL, NS, XSI, document
from tests.test_corpus import MANIFEST, report_of


def corpus_reports(step: int = 11) -> Iterator[Report]:
    yield from (report_of(entry) for entry in MANIFEST[::step])


def test_the_document_of_the_whole_corpus_is_valid() -> None:
    root = document("premis", list(corpus_reports(step=1)))
    assert check(root) == []
    premis_schema().assertValid(root)


@pytest.mark.parametrize(
    "options",
    [
        {"premis_bitstreams": "all", "premis_links": "all"},
        {"premis_identifiers": "uuid4", "premis_puid": True, "created": "2024"},
        {
            "premis_bitstreams": "none",
            "premis_outcomes": "archivematica",
            "premis_events": "validation",
            "premis_prefix": "objects/",
        },
    ],
)
def test_documents_of_all_options_are_valid(options: dict[str, Any]) -> None:
    root = document("premis", list(corpus_reports()), **options)
    assert check(root) == []
    premis_schema().assertValid(root)


def test_single_documents_are_valid_each() -> None:
    schema = premis_schema()
    for report in corpus_reports(step=23):
        root = document("premis", [report])
        assert check(root) == []
        schema.assertValid(root)


def test_what_stands_in_a_document() -> None:
    report = fdd.validate(str(MODEL), digests=("md5", "sha256"))
    root = document("premis", [report], premis_prefix="objects/")
    file = root.find("p:object[@xsi:type='premis:file']", NS)
    assert file is not None
    assert file.findtext("p:originalName", namespaces=NS) == "objects/" + str(MODEL).lstrip("/")
    labels = [element.text for element in file.iterfind(".//p:messageDigestAlgorithm", NS)]
    assert labels == ["SHA-256", "MD5"], "readers take the first: the strongest stands there"
    assert file.findtext(".//p:formatRegistryKey", namespaces=NS) == "fdd000644"
    assert "x-fmt/263" in (file.findtext(".//p:formatNote", namespaces=NS) or "")
    bitstreams = root.findall("p:object[@xsi:type='premis:bitstream']", NS)
    storages = [record for record in report.records if record["role"] == "storage"]
    offsets = [element.text for element in root.iterfind(".//p:contentLocationValue", NS)]
    assert len(bitstreams) == len(storages)
    assert {str(record["offset"]) for record in storages} <= set(offsets)
    types = [element.text for element in root.iterfind(".//p:eventType", NS)]
    assert types == ["format identification", "validation", "message digest calculation", "metadata extraction"]
    outcomes = [element.text for element in root.iterfind(".//p:eventOutcome", NS)]
    assert outcomes == ["success"] * 4


@pytest.mark.parametrize(
    ("path", "outcome", "archivematica"),
    [
        ("real/torch-2.13.0-tensor.pt", "success", "pass"),
        ("zip/archive-comment.pt", "warning", "pass"),
        ("zip/bytes-after-archive.pt", "fail", "partial pass"),
        ("zip/end-record-missing.pt", "fail", "fail"),
    ],
)
def test_outcomes_follow_from_verdicts(path: str, outcome: str, archivematica: str) -> None:
    report = fdd.validate(str(corpus_dir() / path))
    for words, expected in (("loc", outcome), ("archivematica", archivematica)):
        root = document("premis", [report], premis_events="validation", premis_outcomes=words)
        assert [element.text for element in root.iterfind(".//p:eventOutcome", NS)] == [expected]


def test_foreign_and_unreadable_files() -> None:
    foreign = fdd.validate(b"hello world, this is no model", name="x.pt")
    root = document("premis", [foreign, api.error_report("/nowhere/x.pt", "No such file or directory")])
    assert check(root) == []
    notes = [element.text or "" for element in root.iterfind(".//p:eventOutcomeDetailNote", NS)]
    assert any(note.startswith("No Matching Format") for note in notes)
    assert "validation" not in [element.text for element in root.iterfind(".//p:eventType", NS)]


def test_hostile_names_and_many_records() -> None:
    report = fdd.validate(str(MODEL))
    record = next(record for record in report.records if record["role"] == "storage")
    for name in ("\x01\x02", "a\ud800", "]]>", "y" * 60_000):
        hostile = replace(report, records=({**record, "name": name},), file={**report.file, "path": f"in/{name}"})
        root = document("premis", [hostile], premis_bitstreams="all")
        assert check(root) == []
        premis_schema().assertValid(root)
    many = tuple({**record, "name": f"model/data/{number}", "offset": number} for number in range(10_000))
    root = document("premis", [replace(report, records=many)], premis_bitstreams="all")
    assert len(root.findall("p:object", NS)) == 10_001
    premis_schema().assertValid(root)


def test_identifiers_repeat_and_copies_differ() -> None:
    report = fdd.validate(str(MODEL))
    first, second = (document("premis", [report]) for _ in range(2))
    assert etree.tostring(first) == etree.tostring(second)
    twice = document("premis", [report, replace(report, file={**report.file, "path": "copy.pth"})])
    assert check(twice) == []


def test_sets_become_representations() -> None:
    report = fdd.validate(str(MODEL))
    path = str(report.file["path"])
    facts = {"kind": "sharded-model", "root": path, "members": [MODEL.name], "missing": ["b"], "extra": [], "complete": False}
    root = document("premis", [report], [facts])
    premis_schema().assertValid(root)
    assert check(root) == []
    thing = root.find("p:object[@xsi:type='premis:representation']", NS)
    assert thing is not None and "missing b" in (thing.findtext(".//p:significantPropertiesValue", namespaces=NS) or "")


def _set(root: etree._Element, path: str, text: str) -> None:
    found = root.find(path, NS)
    assert found is not None
    found.text = text


def _swap_fixity(root: etree._Element) -> None:
    first = root.find(".//p:fixity", NS)
    assert first is not None
    first.addnext(copy.deepcopy(first))
    _set(root, ".//p:messageDigestAlgorithm", "MD5")
    _set(root, ".//p:messageDigest", "0" * 32)
    first[0].set("valueURI", f"{first[0].get('authorityURI')}/md5")


FAULTS: dict[str, Callable[[Any], Any]] = {
    "version": lambda root: root.find("p:event", NS).attrib.pop("version"),
    "link": lambda root: _set(root, ".//p:linkingObjectIdentifierValue", "00000000-0000-0000-0000-000000000000"),
    "one-way link": lambda root: [root[0].remove(link) for link in root[0].findall("p:linkingEventIdentifier", NS)],
    "identifier": lambda root: _set(root, ".//p:objectIdentifierValue", "not a uuid"),
    "time": lambda root: _set(root, ".//p:eventDateTime", "yesterday"),
    "impossible time": lambda root: _set(root, ".//p:eventDateTime", "2024-02-30T12:00:00Z"),
    "time without zone": lambda root: _set(root, ".//p:eventDateTime", "2024-02-03T12:00:00"),
    "size": lambda root: _set(root, ".//p:size", "-1"),
    "no size": lambda root: root.find(".//p:size", NS).getparent().remove(root.find(".//p:size", NS)),
    "no level": lambda root: root[0][1].remove(root[0][1][0]),
    "digest": lambda root: _set(root, ".//p:messageDigest", "ABC"),
    "upper-case digest": lambda root: _set(root, ".//p:messageDigest", "A" * 64),
    "algorithm": lambda root: _set(root, ".//p:messageDigestAlgorithm", "SHA-0"),
    "order of digests": _swap_fixity,
    "detail": lambda root: _set(root, ".//p:eventDetail", "free text"),
    "trailing semicolon": lambda root: _set(root, ".//p:eventDetail", 'program="fdd";'),
    "term": lambda root: _set(root, ".//p:eventType", "guessing"),
    "authority": lambda root: root.find(".//p:eventType", NS).set("authority", "eventTypes"),
    "URI alone": lambda root: root.find(".//p:eventType", NS).attrib.pop("authority"),
    "category": lambda root: root[0].set(f"{{{XSI}}}type", "premis:files"),
    "agent": lambda root: _set(root, ".//p:agentName", " "),
    "twice": lambda root: root.insert(0, copy.deepcopy(root.find("p:object", NS))),
    "comment": lambda root: root.find("p:agent", NS).append(etree.Comment("x")),
    "instruction": lambda root: root.find("p:event", NS).append(etree.ProcessingInstruction("x", "y")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_semantic_check_finds_what_the_schema_lets_through(fault: str) -> None:
    root = document("premis", [fdd.validate(str(MODEL))])
    assert check(root) == []
    FAULTS[fault](root)
    assert check(root) != []
