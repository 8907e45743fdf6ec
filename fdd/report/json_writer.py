# SPDX-License-Identifier: Apache-2.0
"""JSON: one document for a run, or one report a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from fdd.core.report import Report
from fdd.core.text import json_text
from fdd.report import Style, Summary


class JsonWriter:
    """One JSON document: the report itself for a single file, else an object with all reports, written as they come."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._reports = 0
        self._sets: list[Mapping[str, Any]] = []

    def begin(self) -> None:
        if not self._style.single:
            self._stream.write('{"reports": [')

    def write(self, report: Report) -> None:
        text = report.to_json(verbose=self._style.verbose, brief=self._style.brief)
        # In one piece: an interrupt must not come between a comma and what follows it.
        self._stream.write(text if self._style.single else (",\n" if self._reports else "\n") + text)
        self._reports += 1

    def write_set(self, facts: Mapping[str, Any]) -> None:
        self._sets.append(facts)

    def end(self, summary: Summary) -> None:
        if self._style.single:
            self._stream.write("\n")
            return
        self._stream.write("\n]")
        if self._sets:
            self._stream.write(f', "sets": {json_text(self._sets)}')
        self._stream.write(f', "summary": {json_text(summary.to_dict())}}}\n')


class JsonLinesWriter:
    """One report a line; sets of files as lines of their own."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style

    def begin(self) -> None:
        """Nothing in front of the first line."""

    def write(self, report: Report) -> None:
        self._stream.write(report.to_json(verbose=self._style.verbose, brief=self._style.brief, indent=None) + "\n")

    def write_set(self, facts: Mapping[str, Any]) -> None:
        self._stream.write(json_text({"set": facts}) + "\n")

    def end(self, summary: Summary) -> None:
        """Nothing behind the last line: a stream can be joined to another."""
