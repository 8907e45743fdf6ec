# SPDX-License-Identifier: Apache-2.0
"""XML reports: one document for a run, its reports written as they come (``schemas/report-1.0.xsd``)."""

from __future__ import annotations

import codecs
import io
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, TextIO

from lxml import etree

from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.core.shapes import Anything
from fdd.report import Style, Summary
from fdd.report.frame import REPORT
from fdd.report.xml_codec import NAMESPACE, XSI, Element, read, tag, write

SCHEMA_LOCATION = f"{{{XSI}}}schemaLocation"
SCHEMA = "report-1.0.xsd"
LOCATION = f"{NAMESPACE} {SCHEMA}"
NAMESPACES: Any = {None: NAMESPACE, "xsi": XSI}


class ByteStream(io.RawIOBase):
    """Hands the UTF-8 bytes of lxml on to a text stream; a character cut between two calls waits for its rest."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(self._decoder.decode(bytes(data)))
        return len(data)


class XmlWriter:
    """`report` for a single file, else `reports` around them; sets and a summary come last."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._bytes = ByteStream(stream)
        self._style = style
        self._stack = ExitStack()
        self._file: Any = None
        self._sets: list[Mapping[str, Any]] = []

    def begin(self) -> None:
        self._file = self._stack.enter_context(etree.xmlfile(self._bytes, encoding="utf-8", close=False))
        self._file.write_declaration()
        if not self._style.single:
            attributes = {"version": "1.0", SCHEMA_LOCATION: LOCATION}
            self._stack.enter_context(self._file.element(tag("reports"), attrib=attributes, nsmap=NAMESPACES))

    def write(self, report: Report) -> None:
        element = report_element(report, verbose=self._style.verbose, brief=self._style.brief)
        if self._style.single:
            element.set(SCHEMA_LOCATION, LOCATION)
        self._file.write(element)
        self._file.flush()

    def write_set(self, facts: Mapping[str, Any]) -> None:
        self._sets.append(facts)

    def end(self, summary: Summary) -> None:
        if not self._style.single:
            for facts in self._sets:
                self._file.write(_data("set", facts))
            self._file.write(_data("summary", summary.to_dict()))
        self._stack.close()


def _data(name: str, value: Mapping[str, Any]) -> Element:
    element = etree.Element(tag(name), nsmap=NAMESPACES)
    write(element, value, Anything())
    return element


def report_element(report: Report, *, verbose: bool = False, brief: bool = False) -> Element:
    """One report as an element."""
    element = etree.Element(tag("report"), nsmap=NAMESPACES)
    write(element, report.to_dict(verbose=verbose, brief=brief), REPORT)
    return element


def read_report(data: bytes) -> Report:
    """Read an XML report of one file back. Raises :class:`UsageError` where it is none."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise UsageError(f"not an XML report of fdd: {error}") from error
    if root.tag != tag("report"):
        raise UsageError("not an XML report of fdd on one file")
    return Report.from_dict(read(root, REPORT))
