# SPDX-License-Identifier: Apache-2.0
"""Writers of reports: a table from the name of a form to the writer, loaded when asked for.

Every writer streams: ``begin``, then ``write`` for each report and ``write_set`` for facts about several files, then
``end``. It writes to a text stream it is given and never closes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TextIO

from fdd.core.errors import UsageError
from fdd.core.report import Report

WRITERS = {
    "text": "fdd.report.text:TextWriter",
    "json": "fdd.report.json_writer:JsonWriter",
    "jsonl": "fdd.report.json_writer:JsonLinesWriter",
    "xml": "fdd.report.xml_writer:XmlWriter",
    "csv": "fdd.report.csv_writer:new_csv_writer",
    "premis": "fdd.report.premis_writer:PremisWriter",
    "mets": "fdd.report.mets_writer:MetsWriter",
    "fits": "fdd.report.fits_writer:FitsWriter",
}
"""Form -> module and what makes the writer."""
FILE_SUFFIX = {
    "text": ".txt",
    "json": ".json",
    "jsonl": ".jsonl",
    "xml": ".xml",
    "csv": ".csv",
    "premis": ".premis.xml",
    "mets": ".mets.xml",
    "fits": ".fits.xml",
}
"""Ending of the file of one report in `--output-dir`."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a run wants its output.

    ``single`` says that exactly one file was asked for, so that JSON is the report itself. ``command`` is the
    subcommand (what text shows depends on it); ``color`` is for terminals only.
    """

    command: str = "validate"
    single: bool = False
    verbose: bool = False
    brief: bool = False
    color: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of single forms, by the name of their argument: `csv_records`, `premis_bitstreams`, `created` and so on."""


@dataclass(slots=True)
class Summary:
    """Counts over a run, for the closing of a document."""

    files: int = 0
    errors: int = 0
    skipped: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    safety: dict[str, int] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        """Count one report."""
        self.files += 1
        if report.error is not None:
            self.errors += 1
            return
        if report.identification is not None:
            _increase(self.kinds, report.identification.kind)
        if report.status is not None:
            _increase(self.verdicts, report.status.verdict.value)
            if report.status.safety is not None:
                _increase(self.safety, report.status.safety.value)

    def to_dict(self) -> dict[str, Any]:
        """As plain data; tables that stayed empty are left out."""
        document: dict[str, Any] = {"files": self.files, "errors": self.errors, "skipped": self.skipped}
        for name, table in (("kinds", self.kinds), ("verdicts", self.verdicts), ("safety", self.safety)):
            if table:
                document[name] = dict(sorted(table.items()))
        return document


def _increase(table: dict[str, int], key: str) -> None:
    table[key] = table.get(key, 0) + 1


class Writer(Protocol):
    """What a form of output implements."""

    def begin(self) -> None:
        """Open the document."""
        ...

    def write(self, report: Report) -> None:
        """Add a report."""
        ...

    def write_set(self, facts: Mapping[str, Any]) -> None:
        """Add facts about several files."""
        ...

    def end(self, summary: Summary) -> None:
        """Close the document."""
        ...


def new_writer(form: str, stream: TextIO, style: Style) -> Writer:
    """Make the writer of a form. Raises :class:`UsageError` for an unknown one."""
    target = WRITERS.get(form)
    if target is None:
        raise UsageError(f"unknown format {form!r}; known: {', '.join(WRITERS)}")
    module, _, name = target.partition(":")
    writer: Writer = getattr(import_module(module), name)(stream, style)
    return writer
