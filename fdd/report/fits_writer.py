# SPDX-License-Identifier: Apache-2.0
"""FITS output: the XML of Harvard's File Information Tool Set, for repositories that read it (Islandora, Hyrax, Rosetta).

Every value names the tool it comes from, because readers tell values apart by that. FITS describes one file a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TextIO

from lxml import etree

from fdd.core.errors import UsageError
from fdd.core.finding import Level, Verdict
from fdd.core.report import Report
from fdd.core.shapes import Counts, Flag, Integer, Struct, Text, camel
from fdd.formats.vocabulary import PROPERTIES
from fdd.report import Style, Summary
from fdd.report.premis_units import plain
from fdd.report.xml_codec import XSI, Element
from fdd.report.xml_writer import ByteStream

FITS = "http://hul.harvard.edu/ois/xml/ns/fits/fits_output"
LOCATION = f"{FITS} http://hul.harvard.edu/ois/xml/xsd/fits/fits_output.xsd"
NAMESPACES: Any = {None: FITS, "xsi": XSI}
MOST_MESSAGES = 100
"""Findings that become messages; a full report has all of them."""
TOOL_NAME = "fdd"


class FitsWriter:
    """One document for one file. Raises :class:`UsageError` where several are asked for."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        if not style.single:
            raise UsageError("fits describes one file: give one PATH that is a file, or --output-dir")
        self._stream = ByteStream(stream)

    def begin(self) -> None:
        """The document is written whole."""

    def write(self, report: Report) -> None:
        data = etree.tostring(fits_element(report), encoding="utf-8", xml_declaration=True, pretty_print=True)
        self._stream.write(data)

    def write_set(self, facts: Mapping[str, Any]) -> None:
        """FITS has no place for sets."""

    def end(self, summary: Summary) -> None:
        """Nothing behind the document."""


class _Section:
    """A part of the document, whose values all say that they are of fdd."""

    def __init__(self, parent: Element, name: str, version: str) -> None:
        self.element = etree.SubElement(parent, f"{{{FITS}}}{name}")
        self._attributes = {"toolname": TOOL_NAME, "toolversion": version}

    def add(self, name: str, text: str, **attributes: str) -> Element:
        element = etree.SubElement(self.element, f"{{{FITS}}}{name}", {**self._attributes, **attributes})
        element.text = plain(text)
        return element


def fits_element(report: Report) -> Element:
    """A report as FITS output."""
    version = str(report.tool.get("version", ""))
    root = etree.Element(f"{{{FITS}}}fits", nsmap=NAMESPACES)
    root.set(f"{{{XSI}}}schemaLocation", LOCATION)
    if report.run.get("started"):
        root.set("timestamp", str(report.run["started"]))
    _identification(root, report, version)
    _file_information(root, report, version)
    _status(root, report, version)
    rows = list(_metadata(report.properties))
    if rows:
        # FITS knows image, text, document, audio and video: of these a model is a document.
        holder = etree.SubElement(root, f"{{{FITS}}}metadata")
        section = _Section(holder, "document", version)
        for name, value in rows:
            section.add(name, value, status="SINGLE_RESULT")
    return root


def _identification(root: Element, report: Report, version: str) -> None:
    section = etree.SubElement(root, f"{{{FITS}}}identification")
    found = report.identification
    if found is None or found.kind == "unknown":
        section.set("status", "UNKNOWN")
    name = plain(found.name) if found is not None else "Unknown"
    mime = (found.mime if found is not None else None) or "application/octet-stream"
    identity = etree.SubElement(
        section, f"{{{FITS}}}identity", format=name, mimetype=mime, toolname=TOOL_NAME, toolversion=version
    )
    etree.SubElement(identity, f"{{{FITS}}}tool", toolname=TOOL_NAME, toolversion=version)
    if found is None:
        return
    attributes = {"toolname": TOOL_NAME, "toolversion": version}
    if found.version is not None:
        etree.SubElement(identity, f"{{{FITS}}}version", attributes).text = plain(found.version)
    for entry in found.registries:
        # A PUID of the container would pass for one of the format.
        if entry.note is None:
            etree.SubElement(identity, f"{{{FITS}}}externalIdentifier", attributes, type=entry.registry).text = plain(entry.id)


def _file_information(root: Element, report: Report, version: str) -> None:
    section = _Section(root, "fileinfo", version)
    for element, key in (("filepath", "path"), ("filename", "name"), ("size", "size")):
        if key in report.file:
            section.add(element, str(report.file[key]))
    if "modified" in report.file:  # FITS counts milliseconds since 1970 here
        moment = datetime.fromisoformat(str(report.file["modified"]))
        section.add("fslastmodified", str(int(moment.timestamp() * 1000)))
    if "md5" in report.digests:
        section.add("md5checksum", report.digests["md5"])


def _status(root: Element, report: Report, version: str) -> None:
    section = _Section(root, "filestatus", version)
    status = report.status
    if report.error is not None:
        section.add("message", f"error: {report.error}")
    if status is None:
        return
    for name, answer in (("well-formed", status.well_formed), ("valid", status.valid)):
        if answer is not None:
            section.add(name, "true" if answer else "false", status="SINGLE_RESULT")
    section.add("message", _summary(report))
    order = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}
    for finding in sorted(report.findings, key=lambda finding: order[finding.level])[:MOST_MESSAGES]:
        place = f" offset={finding.offset}" if finding.offset is not None else ""
        section.add("message", f"{finding.message} severity={finding.level.value} id={finding.rule}{place}")


def _summary(report: Report) -> str:
    assert report.status is not None
    safety = f"; safety: {report.status.safety.value}" if report.status.safety is not None else ""
    depth = f", looked at to the depth {report.status.depth}" if report.status.verdict is Verdict.STRUCTURE_VALID else ""
    return f"{report.status.text} ({report.status.verdict.value}{depth}{safety})"


def _metadata(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The properties of the vocabulary that are single values, as names and texts."""
    for name, field in PROPERTIES.fields.items():
        value = properties.get(name)
        if value is None:
            continue
        if isinstance(field.shape, (Text, Integer)):
            yield camel(name), str(value)
        elif isinstance(field.shape, Flag):
            yield camel(name), "true" if value else "false"
        elif isinstance(field.shape, Counts):
            yield camel(name), ", ".join(f"{key} {count}" for key, count in value.items())
        elif isinstance(field.shape, Struct):
            for part, piece in field.shape.fields.items():
                if isinstance(piece.shape, (Text, Integer)) and value.get(part) is not None:
                    yield camel(f"{name}_{part}"), str(value[part])
