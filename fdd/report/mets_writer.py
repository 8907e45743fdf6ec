# SPDX-License-Identifier: Apache-2.0
"""METS 1.12: an amdSec a file with PREMIS inside, or, the way of E-ARK, references to PREMIS files beside it."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, TextIO

from lxml import etree

from fdd.core.report import Report
from fdd.core.text import percent_encode
from fdd.report import Style, Summary
from fdd.report.premis import (
    NAMESPACES,
    PREMIS,
    PROJECT,
    SCHEMA_LOCATION,
    VERSION,
    PremisBuilder,
    PremisOptions,
    agent,
)
from fdd.report.premis_terms import DIGEST_LABELS
from fdd.report.xml_codec import XSI, Element
from fdd.report.xml_writer import ByteStream

METS = "http://www.loc.gov/METS/"
XLINK = "http://www.w3.org/1999/xlink"
METS_NAMESPACES = {"mets": METS, "xlink": XLINK, **NAMESPACES}
METS_LOCATION = f"{METS} http://www.loc.gov/standards/mets/mets.xsd"
CHECKSUM_TYPES = ("MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512")
"""Digests that METS has a token for."""


def _tag(name: str) -> str:
    return f"{{{METS}}}{name}"


class MetsWriter:
    """Header, an amdSec for each file, a file section and a structural map.

    With the option `mets_references` (a folder) each PREMIS document goes into a file there and METS points at it.
    """

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = ByteStream(stream)
        self._options = PremisOptions.of(style.options)
        self._references: str | None = style.options.get("mets_references")
        self._stack = ExitStack()
        self._file: Any = None
        self._rows: list[tuple[str, Mapping[str, Any], Mapping[str, str]]] = []
        self._opened = False
        self._taken: set[str] = set()

    def begin(self) -> None:
        self._file = self._stack.enter_context(etree.xmlfile(self._stream, encoding="utf-8", close=False))
        self._file.write_declaration()
        attributes = {
            f"{{{XSI}}}schemaLocation": f"{METS_LOCATION} {SCHEMA_LOCATION}",
            "PROFILE": "fdd technical metadata",
            "OBJID": f"urn:uuid:{uuid.uuid5(PROJECT, 'mets')}",
        }
        self._stack.enter_context(self._file.element(_tag("mets"), attrib=attributes, nsmap=METS_NAMESPACES))

    def write(self, report: Report) -> None:
        if not self._opened:
            self._opened = True
            self._file.write(_header(report))
        builder = PremisBuilder(report, self._options, self._taken)
        number = len(self._rows) + 1
        section = etree.Element(_tag("amdSec"), nsmap=METS_NAMESPACES)
        section.set("ID", f"amdSec_{number}")
        if self._references is not None:
            _reference(section, number, self._write_document(builder, report, number), self._references)
        else:
            _embed(section, number, builder, report)
        self._file.write(section)
        self._file.flush()
        self._rows.append((f"amdSec_{number}", report.file, report.digests))

    def _write_document(self, builder: PremisBuilder, report: Report, number: int) -> str:
        """Write a whole PREMIS document and return its path."""
        assert self._references is not None
        os.makedirs(self._references, exist_ok=True)
        root = etree.Element(f"{{{PREMIS}}}premis", nsmap=NAMESPACES)
        root.set("version", VERSION)
        root.set(f"{{{XSI}}}schemaLocation", SCHEMA_LOCATION)
        root.extend([*builder.objects(), *builder.events(), agent(report.tool)])
        path = os.path.join(self._references, f"premis_{number:06}.xml")
        with open(path, "wb") as stream:
            stream.write(etree.tostring(root, encoding="utf-8", xml_declaration=True))
        return path

    def write_set(self, facts: Mapping[str, Any]) -> None:
        """Sets become divisions of the structural map only through their files; METS has no unit for what is missing."""

    def end(self, summary: Summary) -> None:
        if self._rows:
            self._file.write(_file_section(self._rows, self._options))
        self._file.write(_structure(self._rows))
        self._stack.close()


def _header(report: Report) -> Element:
    header = etree.Element(_tag("metsHdr"), nsmap=METS_NAMESPACES)
    header.set("CREATEDATE", str(report.run.get("started") or "1970-01-01T00:00:00Z"))
    person = etree.SubElement(header, _tag("agent"), ROLE="CREATOR", TYPE="OTHER", OTHERTYPE="SOFTWARE")
    etree.SubElement(person, _tag("name")).text = f"fdd {report.tool.get('version', '')}"
    return header


def _embed(section: Element, number: int, builder: PremisBuilder, report: Report) -> None:
    """Single objects, events and agents, each in a wrapper of its own; METS wants techMD before digiprovMD."""
    rows = [("techMD", "PREMIS:OBJECT", element) for element in builder.objects()]
    rows += [("digiprovMD", "PREMIS:EVENT", element) for element in builder.events()]
    if number == 1:  # one agent serves the whole document
        rows.append(("digiprovMD", "PREMIS:AGENT", agent(report.tool)))
    for place, (word, kind, element) in enumerate(rows, 1):
        holder = etree.SubElement(section, _tag(word), ID=f"{word}_{number}_{place}")
        wrapper = etree.SubElement(holder, _tag("mdWrap"), MDTYPE=kind)
        element.set(f"{{{XSI}}}schemaLocation", SCHEMA_LOCATION)
        etree.SubElement(wrapper, _tag("xmlData")).append(element)


def _reference(section: Element, number: int, path: str, folder: str) -> None:
    with open(path, "rb") as stream:
        data = stream.read()
    holder = etree.SubElement(section, _tag("digiprovMD"), ID=f"digiprovMD_{number}_1", STATUS="CURRENT")
    reference = etree.SubElement(holder, _tag("mdRef"), LOCTYPE="URL", MDTYPE="PREMIS", MIMETYPE="application/xml")
    reference.set(f"{{{XLINK}}}type", "simple")
    href = os.path.join(os.path.basename(os.path.normpath(folder)), os.path.basename(path))
    reference.set(f"{{{XLINK}}}href", percent_encode(href.encode()))
    reference.set("SIZE", str(len(data)))
    reference.set("CREATED", _modified(path))
    reference.set("CHECKSUM", hashlib.sha256(data).hexdigest())
    reference.set("CHECKSUMTYPE", "SHA-256")


def _modified(path: str) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(os.stat(path).st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _file_section(rows: list[tuple[str, Mapping[str, Any], Mapping[str, str]]], options: PremisOptions) -> Element:
    section = etree.Element(_tag("fileSec"), nsmap=METS_NAMESPACES)
    group = etree.SubElement(section, _tag("fileGrp"), USE="original")
    for number, (amd, file, digests) in enumerate(rows, 1):
        entry = etree.SubElement(group, _tag("file"), ID=f"file_{number}", ADMID=amd)
        if "size" in file:
            entry.set("SIZE", str(file["size"]))
        checksum = next(
            ((DIGEST_LABELS[name], value) for name, value in digests.items() if DIGEST_LABELS.get(name) in CHECKSUM_TYPES), None
        )
        if checksum is not None:
            entry.set("CHECKSUM", checksum[1])
            entry.set("CHECKSUMTYPE", checksum[0])
        location = etree.SubElement(entry, _tag("FLocat"), LOCTYPE="OTHER", OTHERLOCTYPE="SYSTEM")
        name = str(file.get("path") or file.get("name") or "stdin")
        name = options.prefix + name.lstrip("/") if options.prefix else name
        location.set(f"{{{XLINK}}}href", percent_encode(name.encode("utf-8", "surrogatepass")))
    return section


def _structure(rows: list[tuple[str, Mapping[str, Any], Mapping[str, str]]]) -> Element:
    structure = etree.Element(_tag("structMap"), nsmap=METS_NAMESPACES)
    structure.set("TYPE", "physical")
    division = etree.SubElement(structure, _tag("div"), LABEL="files")
    for number in range(1, len(rows) + 1):
        etree.SubElement(division, _tag("fptr"), FILEID=f"file_{number}")
    return structure
