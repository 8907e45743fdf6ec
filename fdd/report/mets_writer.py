# SPDX-License-Identifier: Apache-2.0
"""METS 1.12: an amdSec a file with PREMIS inside, or, the way of E-ARK, references to PREMIS files beside it."""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

from lxml import etree

from fdd.core.report import Report
from fdd.core.text import percent_encode
from fdd.report import Style, Summary
from fdd.report.premis import PremisBuilder
from fdd.report.premis_objects import set_object
from fdd.report.premis_options import PremisOptions
from fdd.report.premis_terms import DIGEST_LABELS, strongest_first
from fdd.report.premis_units import NAMESPACES, SCHEMA_LOCATION, agent_id, new_agent, new_root, plain, uuid_of
from fdd.report.premis_writer import members_of
from fdd.report.xml_codec import XSI, Element
from fdd.report.xml_writer import ByteStream

METS = "http://www.loc.gov/METS/"
XLINK = "http://www.w3.org/1999/xlink"
METS_NAMESPACES = {"mets": METS, "xlink": XLINK, **NAMESPACES}
METS_LOCATION = f"{METS} http://www.loc.gov/standards/mets/mets.xsd"
CHECKSUM_TYPES = frozenset({"MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512"})
"""Digests that METS has a token for."""


def _tag(name: str) -> str:
    return f"{{{METS}}}{name}"


@dataclass(frozen=True, slots=True)
class _Row:
    """What the file section says of a file. ``section`` is the ID of its amdSec."""

    section: str
    name: str | None
    size: int | None
    mime: str | None
    checksum: tuple[str, str] | None


class MetsWriter:
    """Header, an amdSec for each file, a file section and a structural map.

    With the option `mets_references` (a folder) each PREMIS document goes into a file there and METS points at it.
    """

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = ByteStream(stream)
        self._options = PremisOptions.of(style.options, brief=style.brief)
        self._references: str | None = style.options.get("mets_references")
        output = style.options.get("output")
        self._home = os.path.dirname(str(output)) if output else str(style.options.get("output_dir") or "")
        self._stack = ExitStack()
        self._file: Any = None
        self._rows: list[_Row] = []
        self._taken: set[str] = set()
        self._ids: dict[str, str] = {}
        self._agents: set[str] = set()
        self._sets = 0

    def begin(self) -> None:
        """Nothing yet: the identifier of the document follows from its first file."""

    def _open(self, report: Report | None, seed: str) -> None:
        self._file = self._stack.enter_context(etree.xmlfile(self._stream, encoding="utf-8", close=False))
        self._file.write_declaration()
        attributes = {
            f"{{{XSI}}}schemaLocation": f"{METS_LOCATION} {SCHEMA_LOCATION}",
            "OBJID": f"urn:uuid:{uuid_of('mets', seed)}",
            "PROFILE": "fdd technical metadata",
        }
        self._stack.enter_context(self._file.element(_tag("mets"), attrib=attributes, nsmap=METS_NAMESPACES))
        if report is not None:
            self._file.write(_header(report))

    def write(self, report: Report) -> None:
        builder = PremisBuilder(report, self._options, self._taken)
        if self._file is None:
            self._open(report, f"{builder.file_id}/{report.run.get('started', '')}")
        number = len(self._rows) + 1
        section = etree.Element(_tag("amdSec"), nsmap=METS_NAMESPACES)
        section.set("ID", f"amdSec_{number}")
        if self._references is not None:
            self._refer(section, number, builder, self._references)
        else:
            self._embed(section, number, builder)
        self._file.write(section)
        self._file.flush()
        name = self._options.original_name(report.file)
        if "path" in report.file:
            self._ids[os.path.normpath(report.file["path"])] = builder.file_id
        mime = report.identification.mime if report.identification is not None else None
        self._rows.append(_Row(f"amdSec_{number}", name, report.file.get("size"), mime, _checksum(report.digests)))

    def _embed(self, section: Element, number: int, builder: PremisBuilder) -> None:
        """Single objects, events and agents, each in a wrapper of its own; METS wants techMD before digiprovMD."""
        rows = [("techMD", "PREMIS:OBJECT", element) for element in builder.objects()]
        rows += [("digiprovMD", "PREMIS:EVENT", element) for element in builder.events()]
        tool = builder.report.tool
        if rows[-1][1] == "PREMIS:EVENT" and agent_id(tool) not in self._agents:  # one agent serves the whole document
            self._agents.add(agent_id(tool))
            rows.append(("digiprovMD", "PREMIS:AGENT", new_agent(tool)))
        _wrap(section, str(number), rows)

    def _refer(self, section: Element, number: int, builder: PremisBuilder, folder: str) -> None:
        """A PREMIS document in a file of its own, and the reference to it as E-ARK's CSIP wants it."""
        root = new_root()
        root.extend(builder.objects())
        events = list(builder.events())
        root.extend(events)
        if events:
            root.append(new_agent(builder.report.tool))
        data = etree.tostring(root, encoding="utf-8", xml_declaration=True)
        name = uuid_of(builder.file_id, str(builder.report.file.get("path", "")), str(builder.report.run.get("started", "")))
        path = os.path.join(folder, f"premis-{name}.xml")
        _write_whole(path, data)
        holder = etree.SubElement(section, _tag("digiprovMD"), ID=f"digiprovMD_{number}_1", STATUS="CURRENT")
        reference = etree.SubElement(holder, _tag("mdRef"), LOCTYPE="URL", MDTYPE="PREMIS", MDTYPEVERSION="3.0")
        reference.set("MIMETYPE", "text/xml")
        reference.set(f"{{{XLINK}}}type", "simple")
        href = os.path.relpath(path, self._home or os.curdir).replace(os.sep, "/")
        reference.set(f"{{{XLINK}}}href", percent_encode(href.encode("utf-8", "surrogateescape")))
        reference.set("SIZE", str(len(data)))
        reference.set("CREATED", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        reference.set("CHECKSUM", hashlib.sha256(data).hexdigest())
        reference.set("CHECKSUMTYPE", "SHA-256")

    def write_set(self, facts: Mapping[str, Any]) -> None:
        """A set of files is an object that no file of this document is: it gets an amdSec of its own."""
        if self._references is not None:
            return  # each PREMIS document beside this one speaks of one file
        if self._file is None:
            self._open(None, str(uuid.uuid4()))
        self._sets += 1
        section = etree.Element(_tag("amdSec"), nsmap=METS_NAMESPACES)
        section.set("ID", f"amdSec_set_{self._sets}")
        _wrap(section, f"set_{self._sets}", [("techMD", "PREMIS:OBJECT", set_object(facts, members_of(facts, self._ids)))])
        self._file.write(section)

    def end(self, summary: Summary) -> None:
        if self._file is None:
            self._open(None, str(uuid.uuid4()))
        if self._rows:
            self._file.write(self._file_section())
        self._file.write(self._structure())
        self._stack.close()

    def _file_section(self) -> Element:
        section = etree.Element(_tag("fileSec"), nsmap=METS_NAMESPACES)
        group = etree.SubElement(section, _tag("fileGrp"), USE="original")
        for number, row in enumerate(self._rows, 1):
            entry = etree.SubElement(group, _tag("file"), ID=f"file_{number}", ADMID=row.section)
            entry.attrib.update(dict(_attributes(row)))
            if row.name is None:
                continue
            location = etree.SubElement(entry, _tag("FLocat"), LOCTYPE="OTHER", OTHERLOCTYPE="SYSTEM")
            if self._references is not None:  # E-ARK asks for a URL, Archivematica for a path of the system
                location.attrib.clear()
                location.set("LOCTYPE", "URL")
                location.set(f"{{{XLINK}}}type", "simple")
            location.set(f"{{{XLINK}}}href", percent_encode(row.name.encode("utf-8", "surrogatepass")))
        return section

    def _structure(self) -> Element:
        structure = etree.Element(_tag("structMap"), nsmap=METS_NAMESPACES)
        structure.set("TYPE", "physical")
        folder = etree.SubElement(structure, _tag("div"), TYPE="Directory", LABEL="files")
        for number, row in enumerate(self._rows, 1):
            item = etree.SubElement(folder, _tag("div"), TYPE="Item")
            item.set("LABEL", plain(os.path.basename(row.name) if row.name else "standard input"))
            etree.SubElement(item, _tag("fptr"), FILEID=f"file_{number}")
        return structure


def _header(report: Report) -> Element:
    header = etree.Element(_tag("metsHdr"), nsmap=METS_NAMESPACES)
    if report.run.get("started"):
        header.set("CREATEDATE", str(report.run["started"]))
    person = etree.SubElement(header, _tag("agent"), ROLE="CREATOR", TYPE="OTHER", OTHERTYPE="SOFTWARE")
    etree.SubElement(person, _tag("name")).text = f"fdd {report.tool.get('version', '')}"
    return header


def _wrap(section: Element, number: str, rows: list[tuple[str, str, Element]]) -> None:
    for place, (word, kind, element) in enumerate(rows, 1):
        holder = etree.SubElement(section, _tag(word), ID=f"{word}_{number}_{place}")
        wrapper = etree.SubElement(holder, _tag("mdWrap"), MDTYPE=kind)
        element.set(f"{{{XSI}}}schemaLocation", SCHEMA_LOCATION)
        etree.SubElement(wrapper, _tag("xmlData")).append(element)


def _write_whole(path: str, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete. Raises OSError where that cannot be."""
    folder = os.path.dirname(path)
    os.makedirs(folder or os.curdir, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(".part", ".fdd-", folder or os.curdir)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _checksum(digests: Mapping[str, str]) -> tuple[str, str] | None:
    """Type and value of the strongest digest that METS knows."""
    known = ((DIGEST_LABELS.get(name, name), value) for name, value in strongest_first(digests))
    return next((pair for pair in known if pair[0] in CHECKSUM_TYPES), None)


def _attributes(row: _Row) -> Iterator[tuple[str, str]]:
    if row.size is not None:
        yield "SIZE", str(row.size)
    if row.mime is not None:
        yield "MIMETYPE", row.mime
    if row.checksum is not None:
        yield "CHECKSUMTYPE", row.checksum[0]
        yield "CHECKSUM", row.checksum[1]
