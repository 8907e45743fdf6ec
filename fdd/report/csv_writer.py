# SPDX-License-Identifier: Apache-2.0
"""CSV: one table, a row a file, or a row a record. Cells that a spreadsheet would take for a formula are quoted."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any, TextIO

from fdd.core.finding import Level
from fdd.core.report import Report
from fdd.core.shapes import Counts, Flag, Integer, ListOf, Struct, Text
from fdd.core.text import printable
from fdd.formats.vocabulary import PROPERTIES
from fdd.report import Style, Summary

FILE_COLUMNS = (
    "path", "size", "kind", "format", "version", "verdict", "well_formed", "valid", "safety", "errors", "warnings",
    "first_finding", "profiles", "error",
)  # fmt: skip
DIGEST_COLUMNS = ("sha256", "other_digests")
RECORD_COLUMNS = ("path", "record", "role", "offset", "length", "size", "method", "crc32", "sha256")
_WEIGHT = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}
FORMULA_STARTS = ("=", "+", "-", "@", "\t")
"""What spreadsheets take for the beginning of a formula (contract, section 2)."""


def property_columns() -> list[str]:
    """The columns that the vocabulary adds: properties of one value, and the ends of the range of releases."""
    columns = []
    for name, field in PROPERTIES.fields.items():
        if isinstance(field.shape, (Text, Integer, Flag, Counts)):
            columns.append(name)
        elif isinstance(field.shape, Struct):
            columns += [f"{name}_{part}" for part, piece in field.shape.fields.items() if not isinstance(piece.shape, ListOf)]
    return columns


def cell(value: Any) -> str:
    """One cell: nothing for null, lower-case words for truth, an apostrophe in front of what looks like a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        value = "; ".join(f"{key}={entry}" for key, entry in value.items())
    text = printable(str(value), most=32_000)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


class CsvWriter:
    """A row a file."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._csv = csv.writer(stream, lineterminator="\r\n")
        self._properties = property_columns()

    def begin(self) -> None:
        self._csv.writerow([*FILE_COLUMNS, *self._properties, *DIGEST_COLUMNS])

    def write(self, report: Report) -> None:
        status, identification = report.status, report.identification
        # The first error, else the first warning: what a reader of one cell has to know.
        first = min(report.findings, key=lambda finding: _WEIGHT[finding.level], default=None)
        values: list[Any] = [
            report.file.get("path", report.file.get("name")),
            report.file.get("size"),
            identification.kind if identification is not None else None,
            identification.format if identification is not None else None,
            identification.version if identification is not None else None,
            status.verdict.value if status is not None else None,
            status.well_formed if status is not None else None,
            status.valid if status is not None else None,
            status.safety.value if status is not None and status.safety is not None else None,
            status.counts.get("error") if status is not None else None,
            status.counts.get("warning") if status is not None else None,
            f"{first.rule}: {first.message}" if first is not None else None,
            {str(entry.get("name")): _conforms(entry.get("conforms")) for entry in report.profiles},
            report.error,
        ]
        values += [_property(report.properties, column) for column in self._properties]
        others = {name: value for name, value in report.digests.items() if name != "sha256"}
        self._csv.writerow([cell(value) for value in (*values, report.digests.get("sha256"), others)])

    def write_set(self, facts: Mapping[str, Any]) -> None:
        """Sets have no row: the table is one of files."""

    def end(self, summary: Summary) -> None:
        """Nothing behind the last row."""


def _conforms(answer: Any) -> str:
    return "conforms" if answer is True else "does not conform" if answer is False else "undecided"


def _property(properties: Mapping[str, Any], column: str) -> Any:
    if column in properties:
        return properties[column]
    for name, value in properties.items():
        if column.startswith(f"{name}_") and isinstance(value, Mapping):
            return value.get(column[len(name) + 1 :])
    return None


def new_csv_writer(stream: TextIO, style: Style) -> CsvWriter | CsvRecordsWriter:
    """A row a file, or with the option `csv_records` a row a record."""
    return CsvRecordsWriter(stream, style) if style.options.get("csv_records") else CsvWriter(stream, style)


class CsvRecordsWriter:
    """A row a record; a file without records has none."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._csv = csv.writer(stream, lineterminator="\r\n")

    def begin(self) -> None:
        self._csv.writerow(RECORD_COLUMNS)

    def write(self, report: Report) -> None:
        path = report.file.get("path", report.file.get("name"))
        for record in report.records:
            values = [path, record["name"], *(record.get(name) for name in RECORD_COLUMNS[2:-1])]
            self._csv.writerow([cell(value) for value in (*values, record.get("digests", {}).get("sha256"))])

    def write_set(self, facts: Mapping[str, Any]) -> None:
        """Sets have no row."""

    def end(self, summary: Summary) -> None:
        """Nothing behind the last row."""
