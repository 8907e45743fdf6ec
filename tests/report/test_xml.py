# SPDX-License-Identifier: Apache-2.0
"""XML reports: valid by our schema, and equal to the report they were made of."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import fdd
from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.core.shapes import Anything, Text
from fdd.report import Style, Summary, new_writer
from fdd.report.xml_codec import read, tag, write
from fdd.report.xml_writer import read_report, report_element
from fdd.resources import corpus_dir, schema_path
from tests.report.samples import written
from tests.test_corpus import MANIFEST, report_on

HOSTILE = [
    "\x01\x02",
    "a\ud800b",
    "]]>",
    "<&\"'>",
    "\u202e\u200b",
    "%41%",
    "\r\n\t",
    " ",
    "",
    "x" * 60_000,
    "\ufffe\uffff",
    "\U0001f600",
]


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(str(schema_path("report-1.0.xsd"))))


def corpus_reports() -> Iterator[Report]:
    yield from (report_on(entry["path"], entry.get("name"), entry.get("depth", "full")) for entry in MANIFEST[::3])


def test_every_report_is_valid_and_reads_back_equal(schema: etree.XMLSchema) -> None:
    for report in corpus_reports():
        data = etree.tostring(report_element(report, verbose=True))
        schema.assertValid(etree.fromstring(data))
        assert read_report(data).to_dict(verbose=True) == report.to_dict(verbose=True)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_survive(schema: etree.XMLSchema, text: str) -> None:
    report = fdd.validate(str(corpus_dir() / "real" / "torch-2.13.0-tensor.pt"))
    records = tuple({**record, "name": text} for record in report.records)
    hostile = replace(
        report, records=records, properties={**report.properties, "metadata": {"key": text, "list": [text, None, 1.5]}}
    )
    data = etree.tostring(report_element(hostile))
    schema.assertValid(etree.fromstring(data))
    back = read_report(data).to_dict()
    assert [record["name"] for record in back["records"]] == [text] * len(records)
    assert back["properties"]["metadata"] == {"key": text, "list": [text, None, 1.5]}


def test_ten_thousand_records(schema: etree.XMLSchema) -> None:
    report = fdd.validate(str(corpus_dir() / "real" / "torch-2.13.0-tensor.pt"))
    many = tuple({**report.records[0], "name": f"{'x' * 100}/{number}"} for number in range(10_000))
    data = etree.tostring(report_element(replace(report, records=many)))
    schema.assertValid(etree.fromstring(data))
    assert read_report(data).records == many


@pytest.mark.parametrize("single", [True, False])
def test_the_document_says_where_its_schema_is(single: bool) -> None:
    report = fdd.validate(str(corpus_dir() / "real" / "torch-2.13.0-tensor.pt"))
    root = etree.fromstring(written("xml", [report], single=single).encode())
    assert root.tag == tag("report" if single else "reports")
    assert root.get("{http://www.w3.org/2001/XMLSchema-instance}schemaLocation") == "urn:x-fdd:report:1.0 report-1.0.xsd"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(PLAIN)
def test_any_plain_data_reads_back_equal(value: Any) -> None:
    element = etree.Element(tag("value"))
    write(element, value, Anything())
    assert read(etree.fromstring(etree.tostring(element)), Anything()) == value


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_any_text_reads_back_equal(text: str) -> None:
    element = etree.Element(tag("value"))
    write(element, text, Text())
    assert read(etree.fromstring(etree.tostring(element)), Text()) == text


def test_several_reports_with_sets_and_summary(schema: etree.XMLSchema) -> None:
    stream = io.StringIO()
    writer = new_writer("xml", stream, Style(single=False))
    writer.begin()
    summary = Summary()
    for report in list(corpus_reports())[:5]:
        summary.add(report)
        writer.write(report)
    writer.write_set({"kind": "sharded-model", "root": "x", "members": ["a\x01"], "missing": [], "extra": [], "complete": True})
    writer.end(summary)
    root = etree.fromstring(stream.getvalue().encode())
    schema.assertValid(root)
    assert len(root.findall(tag("report"))) == 5


@pytest.mark.parametrize("data", [b"", b"<x/>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"\xff"])
def test_other_documents_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        read_report(data)
