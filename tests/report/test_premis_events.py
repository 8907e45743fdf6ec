# SPDX-License-Identifier: Apache-2.0
"""Events of PREMIS: one for each thing that was done, with the outcome that the contract asks for."""

from __future__ import annotations

from dataclasses import replace

import fdd
from fdd import api
from fdd.report.premis_check import check
from fdd.report.premis_units import detail_text
from fdd.resources import corpus_dir
from tests.report.premis_documents import MODEL, NS, document, objects, texts
from tests.test_corpus import MANIFEST, report_of

TENSOR = corpus_dir() / "real" / "torch-2.13.0-tensor.pt"


def test_events_are_linked_to_the_file_unless_asked_otherwise() -> None:
    report = fdd.validate(str(MODEL))
    for links in ("file", "all"):
        root = document("premis", [report], premis_links=links)
        assert check(root) == []
        things = [*objects(root, "file"), *objects(root, "bitstream")]
        linked = [len(thing.findall("p:linkingEventIdentifier", NS)) for thing in things]
        assert linked == [4] + [4 if links == "all" else 0] * (len(things) - 1)
        targets = {len(event.findall("p:linkingObjectIdentifier", NS)) for event in root.iterfind("p:event", NS)}
        assert targets == {len(things) if links == "all" else 1}


def test_the_date_is_that_of_the_run() -> None:
    report = fdd.validate(str(TENSOR))
    stored = fdd.Report.from_json(replace(report, run={**report.run, "started": "2025-01-02T03:04:05Z"}).to_json())
    root = document("premis", [stored])
    assert set(texts(root, "eventDateTime")) == {"2025-01-02T03:04:05Z"}


def test_without_a_date_there_is_no_event_and_no_agent() -> None:
    root = document("premis", [replace(fdd.validate(str(TENSOR)), run={})])
    assert check(root) == []
    assert root.find("p:event", NS) is None and root.find("p:agent", NS) is None
    assert objects(root, "file")[0].find("p:linkingEventIdentifier", NS) is None


def test_a_file_that_could_not_be_read() -> None:
    root = document("premis", [api.error_report("gone.pt", "No such file or directory")])
    assert check(root) == []
    assert texts(root, "eventType") == ["format identification"]
    assert texts(root, "eventOutcome") == ["fail"]
    assert texts(root, "eventOutcomeDetailNote") == ["The file could not be read: No such file or directory"]


def test_depths_below_full() -> None:
    root = document("premis", [fdd.validate(str(TENSOR), depth="structure")], premis_events="validation")
    assert texts(root, "eventOutcome") == ["success"]
    assert "down to the depth structure" in texts(root, "eventOutcomeDetailNote")[0]


def test_a_valid_file_that_is_dangerous_is_no_plain_success() -> None:
    entry = next(entry for entry in MANIFEST if (entry["verdict"], entry["safety"]) == ("valid", "dangerous"))
    root = document("premis", [report_of(entry)], premis_events="validation")
    assert texts(root, "eventOutcome") == ["warning"]
    assert "Safety: dangerous." in texts(root, "eventOutcomeDetailNote")[0]


def test_each_profile_is_a_validation_of_its_own() -> None:
    report = fdd.validate(str(TENSOR), profiles=["ingest", "torchscript"])
    root = document("premis", [report], premis_events="validation")
    assert check(root) == []
    assert texts(root, "eventType") == ["validation"] * 3
    conforms = [bool(entry["conforms"]) for entry in report.profiles]
    assert texts(root, "eventOutcome")[1:] == ["success" if answer else "fail" for answer in conforms]
    assert [
        f'profile="{entry["name"]}"' in detail
        for entry, detail in zip(report.profiles, texts(root, "eventDetail")[1:], strict=True)
    ]
    undecided = replace(report, profiles=({"name": "x", "conforms": None},))
    assert len(texts(document("premis", [undecided], premis_events="validation"), "eventType")) == 1


def test_only_events_that_were_asked_for() -> None:
    root = document("premis", [fdd.validate(str(TENSOR))], premis_events="validation, message digest calculation")
    assert texts(root, "eventType") == ["validation", "message digest calculation"]
    assert len(objects(root, "file")[0].findall("p:linkingEventIdentifier", NS)) == 2


def test_words_of_archivematica() -> None:
    reports = [fdd.validate(str(TENSOR)), fdd.validate(b"hello", name="x.pt")]
    root = document("premis", reports, premis_outcomes="archivematica")
    assert texts(root, "eventOutcome") == ["Positive", "pass", "pass", "pass", "Not identified", "pass"]
    assert all(element.get("authority") is None for element in root.iterfind(".//p:eventOutcome", NS))


def test_details_can_be_split_whatever_is_in_them() -> None:
    text = detail_text({"program": 'a"b;c=d\ne', "version": "1"})
    assert text == 'program="a\'b,c,d e"; version="1"'
    assert dict(part.split("=") for part in text.split("; ")) == {"program": '"a\'b,c,d e"', "version": '"1"'}
