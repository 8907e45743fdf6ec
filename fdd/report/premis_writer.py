# SPDX-License-Identifier: Apache-2.0
"""PREMIS 3.0: one document for a run. Objects are written as they come; events wait in a file, because they come after."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, TextIO

from lxml import etree

from fdd.core.report import Report
from fdd.report import Style, Summary
from fdd.report.premis import PremisBuilder
from fdd.report.premis_objects import set_object
from fdd.report.premis_options import PremisOptions
from fdd.report.premis_units import NAMESPACES, SCHEMA_LOCATION, VERSION, new_agent, premis
from fdd.report.xml_codec import XSI, Element
from fdd.report.xml_writer import ByteStream

IN_MEMORY = 1 << 20
"""Bytes of waiting events above which they go to a file."""


class PremisDocument:
    """A document that is written piece by piece: objects at once, then events, then the agents that the events name."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = ByteStream(stream)
        self._stack = ExitStack()
        self._file: Any = None
        self._waiting = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  (closed with the stack)
        self._agents: dict[tuple[str, str], Mapping[str, Any]] = {}

    def begin(self) -> None:
        """Open the document."""
        self._stack.enter_context(self._waiting)
        self._file = self._stack.enter_context(etree.xmlfile(self._stream, encoding="utf-8", close=False))
        self._file.write_declaration()
        attributes = {"version": VERSION, f"{{{XSI}}}schemaLocation": SCHEMA_LOCATION}
        self._stack.enter_context(self._file.element(premis("premis"), attrib=attributes, nsmap=NAMESPACES))

    def add(self, objects: Iterable[Element], events: Iterable[Element], tool: Mapping[str, Any]) -> None:
        """Write objects and keep events; ``tool`` is the agent of the events."""
        for element in objects:
            self._file.write(element)
        for event in events:
            data = etree.tostring(event)
            self._waiting.write(len(data).to_bytes(8, "big") + data)
            self._agents[(str(tool.get("name")), str(tool.get("version")))] = tool
        self._file.flush()

    def end(self) -> None:
        """Write what waited and close the document."""
        self._waiting.seek(0)
        while head := self._waiting.read(8):
            self._file.write(etree.fromstring(self._waiting.read(int.from_bytes(head, "big"))))
        for tool in self._agents.values():
            self._file.write(new_agent(tool))
        self._stack.close()


class PremisWriter:
    """One document for a run of reports."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._document = PremisDocument(stream)
        self._options = PremisOptions.of(style.options, brief=style.brief)
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def begin(self) -> None:
        self._document.begin()

    def write(self, report: Report) -> None:
        builder = PremisBuilder(report, self._options, self._taken)
        path = report.file.get("path")
        if path is not None:
            self._ids[os.path.normpath(path)] = builder.file_id
        self._document.add(builder.objects(), builder.events(), report.tool)

    def write_set(self, facts: Mapping[str, Any]) -> None:
        self._document.add([set_object(facts, members_of(facts, self._ids))], (), {})

    def end(self, summary: Summary) -> None:
        self._document.end()


def members_of(facts: Mapping[str, Any], identifiers: Mapping[str, str]) -> list[str]:
    """The identifiers of the files of a set, as far as they are in the document. ``identifiers``: normal path ->
    identifier."""
    folder = facts["root"] if facts["kind"] == "distributed-checkpoint" else os.path.dirname(str(facts["root"]))
    paths = (os.path.normpath(os.path.join(folder, name)) for name in facts["members"])
    return [identifiers[path] for path in paths if path in identifiers]
