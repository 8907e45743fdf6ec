# SPDX-License-Identifier: Apache-2.0
"""Objects of PREMIS that a report gives: the file, bitstreams for its records, and representations for sets of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lxml import etree

from fdd.core.model import Identification, Registry
from fdd.core.report import Report
from fdd.core.text import percent_encode
from fdd.report.frame import RECORD
from fdd.report.premis_options import PremisOptions
from fdd.report.premis_units import (
    LIBRARY_OF_CONGRESS,
    add,
    add_fixity,
    add_identifier,
    add_location,
    add_registry,
    add_relationship,
    add_significant,
    new_object,
    uuid_of,
)
from fdd.report.xml_codec import NIL, OWN_NAMESPACE, Element, is_xml_text, tag, write
from fdd.report.xml_writer import report_element

PYTORCH = "fdd000644"
OTHER_WRITERS = frozenset({"mar", "executorch"})
"""Kinds of the PyTorch format that other programs than PyTorch write."""
REPACKED = "not-from-torch-writer"
ENCRYPTED = "encrypted"
"""Names of the rules whose findings say so. (`record-encrypted` is about flags, which may be set wrongly.)"""
CONTAINERS = {"x-fmt/263": "ZIP Format", "x-fmt/265": "Tape Archive Format"}
"""PRONOM's names of the containers."""
ENTRY_NAMES = {"torch-tar": "TAR entry name", "torch-legacy": "storage key"}
"""Kind -> type of a record's name; records of other kinds of the PyTorch format are entries of a ZIP."""
DATA_ROLES = ("storage", "tensor")
MOST_BITSTREAMS = 1_000
"""Storages up to which each becomes a bitstream object by default; every one costs about 4 kB."""


def wanted_records(report: Report, options: PremisOptions) -> list[Mapping[str, Any]]:
    """The records that become bitstreams."""
    if options.bitstreams == "none":
        return []
    placed = [record for record in report.records if "offset" in record]
    if options.bitstreams == "all":
        return placed
    data = [record for record in placed if record["role"] in DATA_ROLES]
    return data if options.bitstreams == "storages" or len(data) <= MOST_BITSTREAMS else []


def originator(tool: Mapping[str, Any]) -> str:
    """Who computed the digests."""
    return f"{tool.get('name', 'fdd')} {tool.get('version', '')}".strip()


def file_object(
    report: Report, options: PremisOptions, identifier: str, bitstreams: Sequence[str], events: Sequence[str]
) -> Element:
    """The file."""
    element = new_object("file", identifier)
    characteristics = add(element, "objectCharacteristics")
    add(characteristics, "compositionLevel", "0")
    add_fixity(characteristics, report.digests, originator(report.tool))
    if "size" in report.file:
        add(characteristics, "size", str(report.file["size"]))
    _add_formats(characteristics, report, options)
    _add_creating_application(characteristics, report, options)
    if any(finding.name == ENCRYPTED for finding in report.findings):
        add(add(characteristics, "inhibitors"), "inhibitorType", "Password protection", "inhibitorType")
    if report.properties:
        add(characteristics, "objectCharacteristicsExtension").append(technical_metadata(report, brief=options.brief))
    name = options.original_name(report.file)
    if name is not None:
        add(element, "originalName", name)
        if "path" in report.file:
            value = f"file:{percent_encode(name.encode('utf-8', 'surrogatepass'))}"
            add_location(element, "Uniform Resource Identifier", value)
    if bitstreams:
        add_relationship(element, "includes", bitstreams, numbered=True)
    for event in events:
        add_identifier(element, "linkingEventIdentifier", event)
    return element


def technical_metadata(report: Report, *, brief: bool = False) -> Element:
    """The properties, records and tensors of a report in our own namespace: a report without judgement and digests.

    What is null is left out: `xsi:nil` is an error to some validators where they do not have our schema.
    """
    element = report_element(replace(report, status=None, findings=(), outcomes=(), run={}, digests={}), brief=brief)
    for null in list(element.iterfind(f".//*[@{NIL}]")):
        holder = null.getparent()
        assert holder is not None
        holder.remove(null)
    return element


def _add_formats(parent: Element, report: Report, options: PremisOptions) -> None:
    holder = add(parent, "format")
    designation = add(holder, "formatDesignation")
    identification = report.identification
    if identification is None:
        add(designation, "formatName", "unknown")
        add(holder, "formatNote", f"The file could not be read: {report.error}")
        return
    add(designation, "formatName", identification.name)
    if identification.version is not None:
        add(designation, "formatVersion", identification.version)
    loc, pronom = _entry(identification, "LoC FDD"), _entry(identification, "PRONOM")
    if loc is not None:
        add_registry(holder, LIBRARY_OF_CONGRESS, loc.id)
    if pronom is None:
        return
    if loc is None:
        add_registry(holder, "PRONOM", pronom.id)
    elif options.puid:
        second = add(parent, "format")
        add(add(second, "formatDesignation"), "formatName", CONTAINERS.get(pronom.id, "container"))
        add_registry(second, "PRONOM", pronom.id)
        add(second, "formatNote", "Container only: PRONOM has no identifier for the PyTorch format.")
    else:
        # Importers act on a PUID, and would unpack a model as they unpack a ZIP.
        add(holder, "formatNote", f"PRONOM {pronom.id} names the container only.")


def _entry(identification: Identification, registry: str) -> Registry | None:
    return next((entry for entry in identification.registries if entry.registry == registry), None)


def _add_creating_application(parent: Element, report: Report, options: PremisOptions) -> None:
    """PyTorch, where the bytes show it; no version and no date, because no record states them."""
    torch = _is_from_torch(report)
    if not torch and options.created is None:
        return
    application = add(parent, "creatingApplication")
    if torch:
        add(application, "creatingApplicationName", "PyTorch")
    if options.created is not None:
        add(application, "dateCreatedByApplication", options.created)


def _is_from_torch(report: Report) -> bool:
    identification = report.identification
    if identification is None or identification.format != PYTORCH or identification.kind in OTHER_WRITERS:
        return False
    return identification.confidence != "name" and all(finding.name != REPACKED for finding in report.findings)


class Bitstreams:
    """Makes the bitstream objects of one report."""

    def __init__(self, report: Report, file: str, events: Sequence[str]) -> None:
        """``file`` is the identifier of the file object; ``events`` are those that name the bitstreams too."""
        self._report = report
        self._file = file
        self._events = events
        identification = report.identification
        ours = identification is not None and identification.format == PYTORCH
        self._family = "PyTorch " if ours else ""
        kind = identification.kind if identification is not None else ""
        self._name_type = ENTRY_NAMES.get(kind, "ZIP entry name") if ours else "record name"
        self._dtypes: dict[str, dict[str, None]] = {}
        for tensor in _flat(report.tensors):
            if tensor.get("record") and tensor.get("dtype"):
                self._dtypes.setdefault(tensor["record"], {})[tensor["dtype"]] = None

    def element(self, record: Mapping[str, Any], identifier: str) -> Element:
        """One record."""
        element = new_object("bitstream", identifier)
        stored = record["method"] == "stored"
        characteristics = add(element, "objectCharacteristics")
        add(characteristics, "compositionLevel", "0" if stored else "1")
        # Digests of records are those of the inflated bytes: only of stored records do they belong to what lies here.
        add_fixity(characteristics, record.get("digests", {}) if stored else {}, originator(self._report.tool))
        add(characteristics, "size", str(record["length"]))
        self._add_format(characteristics, record)
        self._add_facts(characteristics, record, stored=stored)
        name = record["name"]
        encoded = "" if is_xml_text(name) else ", percent-encoded"
        add_location(element, f"{self._name_type}{encoded}", name, scheme=False)
        add_location(element, "byte offset", str(record["offset"]))
        add_relationship(element, "is Included In", [self._file])
        for event in self._events:
            add_identifier(element, "linkingEventIdentifier", event)
        return element

    def _add_format(self, parent: Element, record: Mapping[str, Any]) -> None:
        holder = add(parent, "format")
        designation = add(holder, "formatDesignation")
        data = record["role"] in DATA_ROLES
        add(designation, "formatName", f"{self._family}tensor storage" if data else f"{self._family}record ({record['role']})")
        if data:
            order = self._report.properties.get("byte_order", "unknown")
            known = " and ".join(self._dtypes.get(record["name"], ()))
            version = ", ".join(part for part in (known, f"{order}-endian" if order != "unknown" else "") if part)
            if version:
                add(designation, "formatVersion", version)
            add(holder, "formatNote", "Elements of one width, without a header; the file records their type elsewhere.")
        if record["method"] != "stored":
            size = f", {record['size']} bytes without it" if "size" in record else ""
            add(holder, "formatNote", f"Compressed ({record['method']}): the size is that of the stored bytes{size}.")

    def _add_facts(self, parent: Element, record: Mapping[str, Any], *, stored: bool) -> None:
        """What PREMIS has no unit for; here the name also says whether it is percent-encoded."""
        facts = {key: value for key, value in record.items() if not (stored and key == "digests")}
        element = etree.SubElement(add(parent, "objectCharacteristicsExtension"), tag("record"), nsmap=OWN_NAMESPACE)
        write(element, facts, RECORD)


def _flat(tensors: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for tensor in tensors:
        yield tensor
        yield from _flat(tensor.get("components", ()))


def set_object(facts: Mapping[str, Any], members: Sequence[str]) -> Element:
    """A set of files (shards of a model, a distributed checkpoint) as a representation. ``members``: identifiers of those
    of its files that are in the document."""
    element = new_object("representation", uuid_of("set", str(facts["kind"]), str(facts["root"]), *sorted(members)))
    missing = ", ".join(map(str, facts.get("missing", ()))) or "not known"
    add_significant(element, str(facts["kind"]), "complete" if facts.get("complete") else f"incomplete; missing {missing}")
    add(element, "originalName", str(facts["root"]))
    if members:
        add_relationship(element, "has Part", members)
    return element
