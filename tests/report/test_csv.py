# SPDX-License-Identifier: Apache-2.0
"""CSV: one table that spreadsheets open without obeying it, with the columns of the vocabulary."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdd
from fdd import api
from fdd.core.report import Report
from fdd.core.shapes import Counts, Flag, Integer, Text
from fdd.formats.vocabulary import PROPERTIES
from fdd.report.csv_writer import FORMULA_STARTS, RECORD_COLUMNS, cell
from fdd.resources import corpus_dir
from tests.report.samples import good_file, hostile_reports, some_reports, written

MODEL = corpus_dir() / "real" / "torch-2.13.0-state_dict.pth"


def rows(reports: list[Report], **options: Any) -> list[dict[str, str]]:
    """The table, read as a spreadsheet reads it."""
    table = list(csv.reader(io.StringIO(written("csv", reports, options=options), newline=""), strict=True))
    head, *body = table
    assert len(head) == len(set(head))
    assert all(len(row) == len(head) for row in body)
    return [dict(zip(head, row, strict=True)) for row in body]


def test_a_row_a_file() -> None:
    reports = some_reports()
    table = rows(reports)
    assert [row["path"] for row in table] == [cell(report.file["path"]) for report in reports]
    for row, report in zip(table, reports, strict=True):
        assert report.status is not None and report.identification is not None
        assert row["kind"] == report.identification.kind
        assert row["verdict"] == report.status.verdict.value
        assert row["well_formed"] == {True: "true", False: "false", None: ""}[report.status.well_formed]
        assert row["errors"] == str(report.status.counts["error"])
        assert row["sha256"] == report.digests.get("sha256", "")


def test_columns_come_from_the_vocabulary() -> None:
    (row,) = rows([fdd.validate(str(MODEL))])
    single = [name for name, field in PROPERTIES.fields.items() if isinstance(field.shape, (Text, Integer, Flag, Counts))]
    assert set(single) <= set(row)
    assert {"torch_releases_min", "torch_releases_max"} <= set(row)
    assert not {"globals", "dependencies", "metadata"} & set(row), "lists have no place in one row"
    assert (row["content"], row["tensor_count"], row["tensor_dtypes"]) == ("state_dict", "9", "float32=8; int64=1")
    assert row["torch_releases_min"] != ""


def test_the_finding_that_weighs_most_is_shown() -> None:
    report = next(report for report in some_reports() if len({finding.level for finding in report.findings}) > 1)
    turned = replace(report, findings=tuple(reversed(report.findings)))
    for one in (report, turned):
        shown = rows([one])[0]["first_finding"].partition(":")[0].lstrip("'")
        levels = {finding.rule: finding.level.value for finding in one.findings}
        assert levels[shown] == min(levels.values(), key=["error", "warning", "info"].index)


def test_other_digests_and_profiles() -> None:
    report = fdd.validate(good_file(), name="x.pt", digests=("md5", "sha256", "sha1"), profiles=["ingest", "torchscript"])
    (row,) = rows([report])
    assert row["other_digests"] == f"md5={report.digests['md5']}; sha1={report.digests['sha1']}"
    words = {True: "conforms", False: "does not conform"}
    assert row["profiles"] == "; ".join(f"{entry['name']}={words[entry['conforms']]}" for entry in report.profiles)


def test_a_file_that_could_not_be_read() -> None:
    (row,) = rows([api.error_report("gone.pt", "No such file")])
    assert {name: text for name, text in row.items() if text} == {"path": "gone.pt", "error": "No such file"}


def test_a_row_a_record() -> None:
    report = fdd.validate(str(MODEL))
    table = rows([report, api.error_report("gone.pt", "oh")], csv_records=True)
    assert [row["record"] for row in table] == [record["name"] for record in report.records]
    assert tuple(table[0]) == RECORD_COLUMNS
    for row, record in zip(table, report.records, strict=True):
        assert (row["offset"], row["length"]) == (str(record["offset"]), str(record["length"]))
        assert row["sha256"] == record["digests"]["sha256"]


@given(st.text())
def test_no_cell_is_a_formula(text: str) -> None:
    shown = cell(text)
    assert not shown.startswith(FORMULA_STARTS)
    assert not set(shown) & set("\r\n\0\x1b\u202e\ud800"), "nothing that breaks a line or hides"


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", '"=1'])
def test_names_that_pose_as_formulas(text: str) -> None:
    report = fdd.validate(good_file(), name="x.pt")
    report = replace(
        report,
        file={"path": text},
        records=({**report.records[0], "name": text},),
        properties={**report.properties, "top_folder": text},
    )
    (row,) = rows([report])
    (record,) = rows([report], csv_records=True)
    for shown in (row["path"], row["top_folder"], record["path"], record["record"]):
        assert shown.lstrip("'").startswith(text.replace("\t", "\\x09")[:1])
        assert not shown.startswith(FORMULA_STARTS)


def test_hostile_names_keep_the_table_whole() -> None:
    assert len(rows(list(hostile_reports()))) == len(hostile_reports())
    assert len(rows(list(hostile_reports()), csv_records=True)) == sum(len(report.records) for report in hostile_reports())


def test_long_names_and_many_records() -> None:
    report = fdd.validate(good_file(), name="x.pt")
    record = report.records[0]
    long = replace(report, records=({**record, "name": "x" * 60_000},), file={"path": "y" * 60_000})
    (row,) = rows([long], csv_records=True)
    assert len(row["record"]) < 32_767, "what a cell of a spreadsheet holds"
    assert "[... 28000 characters ...]" in row["record"]
    many = replace(report, records=tuple({**record, "name": f"a/{number}"} for number in range(10_000)))
    assert len(rows([many], csv_records=True)) == 10_000
