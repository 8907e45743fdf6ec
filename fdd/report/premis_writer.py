# SPDX-License-Identifier: Apache-2.0
"""PREMIS 3.0: one document for a run. Objects are written as they come; events wait in a file, because they come after."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, TextIO

from lxml import etree

from fdd.core.report import Report
from fdd.report import Style, Summary
from fdd.report.premis import (
    NAMESPACES,
    PREMIS,
    SCHEMA_LOCATION,
    VERSION,
    PremisBuilder,
    PremisOptions,
    agent,
    representation,
)
from fdd.report.xml_codec import XSI
from fdd.report.xml_writer import ByteStream

IN_MEMORY = 1 << 20
"""Bytes of waiting events above which they go to a file."""


class PremisWriter:
    """Objects, then events, then the agent."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = ByteStream(stream)
        self._options = PremisOptions.of(style.options)
        self._stack = ExitStack()
        self._file: Any = None
        self._waiting = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  (closed with the stack)
        self._tool: Mapping[str, Any] = {}
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def begin(self) -> None:
        self._stack.enter_context(self._waiting)
        self._file = self._stack.enter_context(etree.xmlfile(self._stream, encoding="utf-8", close=False))
        self._file.write_declaration()
        attributes = {"version": VERSION, f"{{{XSI}}}schemaLocation": SCHEMA_LOCATION}
        self._stack.enter_context(self._file.element(f"{{{PREMIS}}}premis", attrib=attributes, nsmap=NAMESPACES))

    def write(self, report: Report) -> None:
        builder = PremisBuilder(report, self._options, self._taken)
        self._tool = report.tool
        path = report.file.get("path")
        if path is not None:
            self._ids[path] = builder.file_id
        for element in builder.objects():
            self._file.write(element)
        for event in builder.events():
            data = etree.tostring(event)
            self._waiting.write(len(data).to_bytes(8, "big") + data)
        self._file.flush()

    def write_set(self, facts: Mapping[str, Any]) -> None:
        folder = facts["root"] if facts["kind"] == "distributed-checkpoint" else os.path.dirname(str(facts["root"]))
        paths = (os.path.join(folder, name) for name in facts["members"])
        self._file.write(representation(facts, [self._ids[path] for path in paths if path in self._ids]))

    def end(self, summary: Summary) -> None:
        self._waiting.seek(0)
        while head := self._waiting.read(8):
            self._file.write(etree.fromstring(self._waiting.read(int.from_bytes(head, "big"))))
        if self._tool:
            self._file.write(agent(self._tool))
        self._stack.close()
