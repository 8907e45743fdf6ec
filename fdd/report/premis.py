# SPDX-License-Identifier: Apache-2.0
"""Builds PREMIS 3.0 elements from a report.

Some habits of ours keep real importers working: the literal prefix `premis:`, the version on every object, event and
agent, no comments, `eventDetail` as `key="value"` parts, events linked to the file object unless asked otherwise.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from fdd.core.errors import UsageError
from fdd.core.finding import Level, Verdict
from fdd.core.report import Report
from fdd.core.text import percent_encode
from fdd.report.premis_terms import BASE, DIGEST_LABELS, uri_of
from fdd.report.xml_codec import XSI, Element, tag, write
from fdd.report.xml_writer import report_element

PREMIS = "http://www.loc.gov/premis/v3"
SCHEMA_LOCATION = f"{PREMIS} http://www.loc.gov/standards/premis/v3/premis.xsd"
NAMESPACES = {"premis": PREMIS, "xsi": XSI}
VERSION = "3.0"
PROJECT = uuid.UUID("6d2f4f0e-9f1c-5a53-8b0e-6f0b6a7c1d44")
"""Namespace of the identifiers made of digests (UUID version 5)."""
MOST_BITSTREAMS = 1_000
"""Storages up to which each becomes a bitstream object by default; every one costs about 4 kB."""
MOST_FINDINGS = 100
EVENT_TYPES = ("format identification", "validation", "message digest calculation", "metadata extraction")
STRENGTH = ("sha512", "blake2b", "blake3", "sha384", "sha256", "sha1", "md5")
"""Digests from strong to weak: readers take the first."""
ARCHIVEMATICA_OUTCOMES = {"success": "pass", "warning": "pass", "fail": "fail"}
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class PremisOptions:
    """What a repository wants of its documents.

    ``bitstreams``: none, storages or all records, or auto (storages up to a number). ``events``: which types are written.
    ``links``: whether events name the file only, or its bitstreams too. ``outcomes``: `loc` or `archivematica` words.
    ``identifiers``: uuid5 (of the digests, so that runs repeat) or uuid4. ``created``: date of making the file, if the
    caller knows it. ``puid``: add a format for the ZIP container (importers may unpack it). ``prefix``: put in front of
    the original name.
    """

    bitstreams: str = "auto"
    events: tuple[str, ...] = EVENT_TYPES
    links: str = "file"
    outcomes: str = "loc"
    identifiers: str = "uuid5"
    created: str | None = None
    puid: bool = False
    prefix: str = ""

    @staticmethod
    def of(options: Mapping[str, Any]) -> PremisOptions:
        """Read them from the options of a run. Raises :class:`UsageError` for unknown event types."""
        words = options.get("premis_events")
        events = tuple(word.strip() for word in words.split(",")) if words else EVENT_TYPES
        unknown = [word for word in events if word not in EVENT_TYPES]
        if unknown:
            raise UsageError(f"unknown event type {unknown[0]!r}; known: {', '.join(EVENT_TYPES)}")
        return PremisOptions(
            bitstreams=options.get("premis_bitstreams") or "auto",
            events=events,
            links=options.get("premis_links") or "file",
            outcomes=options.get("premis_outcomes") or "loc",
            identifiers=options.get("premis_identifiers") or "uuid5",
            created=options.get("created"),
            puid=bool(options.get("premis_puid")),
            prefix=options.get("premis_prefix") or "",
        )


def plain(text: str) -> str:
    """A text for PREMIS: what XML cannot carry makes the whole text percent-encoded."""
    return percent_encode(text.encode("utf-8", "surrogatepass")) if _FORBIDDEN.search(text) else text


def add(parent: Element, name: str, text: str | None = None, scheme: str | None = None) -> Element:
    """Append an element of PREMIS; with ``scheme`` the text is a term, and gets its URI where the scheme has it."""
    element = etree.SubElement(parent, f"{{{PREMIS}}}{name}")
    if text is not None:
        element.text = plain(text)
        uri = uri_of(scheme, text) if scheme is not None else None
        if uri is not None:
            element.set("authority", scheme or "")
            element.set("authorityURI", f"{BASE}{scheme}")
            element.set("valueURI", uri)
    return element


def add_identifier(parent: Element, name: str, value: str, *, wrap: bool = True) -> Element:
    """An identifier of the type UUID."""
    holder = add(parent, name) if wrap else parent
    add(holder, f"{name}Type", "UUID")
    add(holder, f"{name}Value", value)
    return holder


def new_object(kind: str) -> Element:
    """An object of a category (`file`, `bitstream`, `representation`)."""
    element = etree.Element(f"{{{PREMIS}}}object", nsmap=NAMESPACES)
    element.set("version", VERSION)
    element.set(f"{{{XSI}}}type", f"premis:{kind}")
    return element


class PremisBuilder:
    """The objects, events and agent that one report gives."""

    def __init__(self, report: Report, options: PremisOptions, taken: set[str]) -> None:
        """``taken`` are the identifiers of files in the same document: a second copy of the same bytes gets its own."""
        self.report = report
        self.options = options
        self._fresh: dict[str, str] = {}
        self._base = report.digests.get("sha256") or f"{report.file.get('path', '')}:{report.file.get('size', '')}"
        if self._identifier("") in taken:
            self._base += f"@{report.file.get('path', '')}#{len(taken)}"
        self.file_id = self._identifier("")
        taken.add(self.file_id)
        self.agent_id = agent_id(report.tool)

    def _identifier(self, part: str) -> str:
        if self.options.identifiers == "uuid4":
            return self._fresh.setdefault(part, str(uuid.uuid4()))
        return str(uuid.uuid5(PROJECT, plain(f"{self._base}/{part}" if part else self._base)))

    @property
    def original_name(self) -> str:
        """The name the file has in the transfer."""
        name = str(self.report.file.get("path") or self.report.file.get("name") or "stdin")
        return self.options.prefix + name.lstrip("/") if self.options.prefix else name

    def objects(self) -> Iterator[Element]:
        """The file, and its bitstreams."""
        bitstreams = self._bitstream_records()
        identifiers = [self._identifier(f"{record['name']}@{record['offset']}") for record in bitstreams]
        events = [identifier for identifier, _ in self._event_rows()]
        yield self._file(identifiers, events)
        dtypes = {tensor["record"]: tensor["dtype"] for tensor in _flat(self.report.tensors) if tensor.get("record")}
        for record, identifier in zip(bitstreams, identifiers, strict=True):
            yield self._bitstream(record, identifier, dtypes.get(record["name"]), events)

    def _bitstream_records(self) -> list[Mapping[str, Any]]:
        wanted = self.options.bitstreams
        if wanted == "none":
            return []
        placed = [record for record in self.report.records if "offset" in record]
        if wanted == "all":
            return placed
        storages = [record for record in placed if record["role"] == "storage"]
        return storages if wanted == "storages" or len(storages) <= MOST_BITSTREAMS else []

    def _file(self, bitstreams: Sequence[str], events: Sequence[str]) -> Element:
        report = self.report
        element = new_object("file")
        add_identifier(element, "objectIdentifier", self.file_id)
        content = report.properties.get("content_digest")
        if isinstance(content, str):
            self._significant(element, "content digest", content)
        characteristics = add(element, "objectCharacteristics")
        add(characteristics, "compositionLevel", "0")
        self._fixity(characteristics, report.digests)
        if "size" in report.file:
            add(characteristics, "size", str(report.file["size"]))
        self._formats(characteristics)
        self._creating_application(characteristics)
        if any(finding.name == "record-encrypted" for finding in report.findings):
            add(add(characteristics, "inhibitors"), "inhibitorType", "Password protection", "inhibitorType")
        if report.properties:
            add(characteristics, "objectCharacteristicsExtension").append(technical_metadata(report))
        add(element, "originalName", self.original_name)
        location = add(add(element, "storage"), "contentLocation")
        add(location, "contentLocationType", "Uniform Resource Identifier", "contentLocationType")
        add(location, "contentLocationValue", f"file:{percent_encode(self.original_name.encode('utf-8', 'surrogatepass'))}")
        if bitstreams:
            relationship(element, "structural", "includes", bitstreams, numbered=True)
        for identifier in events:
            add_identifier(element, "linkingEventIdentifier", identifier)
        return element

    def _fixity(self, parent: Element, digests: Mapping[str, str]) -> None:
        for name in sorted(digests, key=lambda name: STRENGTH.index(name) if name in STRENGTH else len(STRENGTH)):
            fixity = add(parent, "fixity")
            add(fixity, "messageDigestAlgorithm", DIGEST_LABELS.get(name, name), "cryptographicHashFunctions")
            add(fixity, "messageDigest", digests[name])
            add(fixity, "messageDigestOriginator", f"fdd {self.report.tool.get('version', '')}")

    def _formats(self, parent: Element) -> None:
        identification = self.report.identification
        designation = add(add(parent, "format"), "formatDesignation")
        holder = designation.getparent()
        assert holder is not None
        if identification is None:
            add(designation, "formatName", "unknown")
            return
        add(designation, "formatName", identification.name)
        if identification.version is not None:
            add(designation, "formatVersion", identification.version)
        registry = next((entry for entry in identification.registries if entry.registry == "LoC FDD"), None)
        if registry is not None:
            self._registry(holder, "Library of Congress Sustainability of Digital Formats", registry.id)
        container = next((entry for entry in identification.registries if entry.registry == "PRONOM"), None)
        if container is None:
            return
        if registry is None:
            self._registry(holder, "PRONOM", container.id)
        elif self.options.puid:
            second = add(parent, "format")
            add(
                add(second, "formatDesignation"),
                "formatName",
                "ZIP Format" if container.id == "x-fmt/263" else "Tape Archive Format",
            )
            self._registry(second, "PRONOM", container.id)
            add(second, "formatNote", "Container only: PRONOM has no identifier for the PyTorch format.")
        else:
            add(holder, "formatNote", f"PRONOM {container.id} names the container only.")

    def _registry(self, parent: Element, name: str, key: str) -> None:
        registry = add(parent, "formatRegistry")
        add(registry, "formatRegistryName", name)
        add(registry, "formatRegistryKey", key)
        add(registry, "formatRegistryRole", "specification", "formatRegistryRole")

    def _creating_application(self, parent: Element) -> None:
        """PyTorch, where the bytes show it; no version and no date, because no record states them."""
        identification = self.report.identification
        torch = identification is not None and identification.format == "fdd000644"
        if not torch and self.options.created is None:
            return
        application = add(parent, "creatingApplication")
        if torch:
            add(application, "creatingApplicationName", "PyTorch")
        if self.options.created is not None:
            add(application, "dateCreatedByApplication", self.options.created)

    def _significant(self, parent: Element, kind: str, value: str) -> None:
        significant = add(parent, "significantProperties")
        add(significant, "significantPropertiesType", kind)
        add(significant, "significantPropertiesValue", value)

    def _bitstream(self, record: Mapping[str, Any], identifier: str, dtype: str | None, events: Sequence[str]) -> Element:
        element = new_object("bitstream")
        add_identifier(element, "objectIdentifier", identifier)
        digests = record.get("digests", {})
        stored = record["method"] == "stored"
        characteristics = add(element, "objectCharacteristics")
        add(characteristics, "compositionLevel", "0" if stored else "1")
        if stored:
            self._fixity(characteristics, digests)
        add(characteristics, "size", str(record["length"]))
        holder = add(characteristics, "format")
        designation = add(holder, "formatDesignation")
        if record["role"] == "storage":
            add(designation, "formatName", "PyTorch tensor storage")
            order = self.report.properties.get("byte_order", "unknown")
            add(
                designation,
                "formatVersion",
                f"{dtype or 'unknown'}, {order}-endian" if order != "unknown" else f"{dtype or 'unknown'}",
            )
            add(
                holder,
                "formatNote",
                "Array of elements of one width without a header; type and byte order are recorded outside of it.",
            )
        else:
            add(designation, "formatName", f"PyTorch record ({record['role']})")
        if not stored:
            add(holder, "formatNote", "Deflated: the size is that of the stored bytes.")
        for kind, value, scheme in (
            ("ZIP entry name", record["name"], None),
            ("byte offset", str(record["offset"]), "contentLocationType"),
        ):
            location = add(add(element, "storage"), "contentLocation")
            add(location, "contentLocationType", kind, scheme)
            add(location, "contentLocationValue", value)
        relationship(element, "structural", "is Included In", [self.file_id])
        if self.options.links == "all":
            for event in events:
                add_identifier(element, "linkingEventIdentifier", event)
        return element

    # Events

    def _event_rows(self) -> list[tuple[str, str]]:
        """(identifier, type) of the events that are written."""
        return [(self._identifier(f"event/{kind}"), kind) for kind in self.options.events if self._happened(kind)]

    def _happened(self, kind: str) -> bool:
        report = self.report
        if kind == "format identification":
            return report.identification is not None or report.error is not None
        if kind == "validation":
            return report.status is not None and report.verdict not in (Verdict.NOT_THIS_FORMAT, Verdict.UNDETERMINED)
        if kind == "message digest calculation":
            return bool(report.digests)
        return bool(report.properties)

    def events(self) -> Iterator[Element]:
        """What was done with the file, and how it ended."""
        members = (
            [self._identifier(f"{record['name']}@{record['offset']}") for record in self._bitstream_records()]
            if self.options.links == "all"
            else []
        )
        for identifier, kind in self._event_rows():
            event = etree.Element(f"{{{PREMIS}}}event", nsmap=NAMESPACES)
            event.set("version", VERSION)
            add_identifier(event, "eventIdentifier", identifier)
            add(event, "eventType", kind, "eventType")
            add(event, "eventDateTime", str(self.report.run.get("started") or "1970-01-01T00:00:00Z"))
            add(add(event, "eventDetailInformation"), "eventDetail", self._detail(kind))
            self._outcome(event, kind)
            agent = add_identifier(event, "linkingAgentIdentifier", self.agent_id)
            role = "validator" if kind == "validation" else "executing program"
            add(agent, "linkingAgentRole", role, "eventRelatedAgentRole")
            for target in (self.file_id, *members):
                linked = add_identifier(event, "linkingObjectIdentifier", target)
                add(linked, "linkingObjectRole", "source", "eventRelatedObjectRole")
            yield event

    def _detail(self, kind: str) -> str:
        """`program="fdd"; version="0.1.0"; ...`: parts of one `=` each, no `;` in a value, because readers split there."""
        parts = {"program": "fdd", "version": str(self.report.tool.get("version", ""))}
        if kind == "validation":
            parts["catalogue"] = str(self.report.tool.get("catalogue", ""))
            parts["depth"] = str(self.report.options.get("depth", ""))
        elif kind == "message digest calculation":
            parts["algorithm"] = ", ".join(DIGEST_LABELS.get(name, name) for name in self.report.digests)
        return "; ".join(f'{name}="{value.replace(";", ",").replace("=", " ")}"' for name, value in parts.items())

    def _outcome(self, event: Element, kind: str) -> None:
        outcome, note = self._identification_outcome() if kind == "format identification" else ("success", None)
        if kind == "validation":
            outcome, note = self._validation_outcome()
        information = add(event, "eventOutcomeInformation")
        if self.options.outcomes == "archivematica":
            partial = self.report.verdict in (Verdict.WELL_FORMED_NOT_VALID, Verdict.STRUCTURE_VALID) and kind == "validation"
            add(information, "eventOutcome", "partial pass" if partial else ARCHIVEMATICA_OUTCOMES[outcome])
        else:
            add(information, "eventOutcome", outcome, "eventOutcome")
        findings = self.report.findings[:MOST_FINDINGS] if kind == "validation" else ()
        if note is not None or findings:
            detail = add(information, "eventOutcomeDetail")
            if note is not None:
                add(detail, "eventOutcomeDetailNote", note)
            if findings:
                add(detail, "eventOutcomeDetailExtension").append(_findings(self.report))

    def _identification_outcome(self) -> tuple[str, str | None]:
        identification = self.report.identification
        if identification is None:
            return "fail", str(self.report.error)
        if identification.format is None:
            return "fail", f"No Matching Format; kind {identification.kind}: {identification.name}"
        return "success", f"{identification.format}; kind {identification.kind}"

    def _validation_outcome(self) -> tuple[str, str]:
        status = self.report.status
        assert status is not None
        errors, warnings = status.counts.get("error", 0), status.counts.get("warning", 0)
        note = f"{status.text}; {errors} errors, {warnings} warnings."
        if status.verdict is Verdict.STRUCTURE_VALID:
            note += f" Looked at down to the depth {status.depth}."
        if status.safety is not None:
            note += f" Safety: {status.safety.value}."
        if status.verdict not in (Verdict.VALID, Verdict.STRUCTURE_VALID):
            return "fail", note
        valid_warnings = any(finding.level is Level.WARNING for finding in self.report.findings)
        return "warning" if valid_warnings else "success", note


def relationship(parent: Element, kind: str, subtype: str, targets: Sequence[str], *, numbered: bool = False) -> None:
    """A relationship to one or more objects."""
    element = add(parent, "relationship")
    add(element, "relationshipType", kind, "relationshipType")
    add(element, "relationshipSubType", subtype, "relationshipSubType")
    for number, target in enumerate(targets, 1):
        related = add_identifier(element, "relatedObjectIdentifier", target)
        if numbered:
            add(related, "relatedObjectSequence", str(number))


def technical_metadata(report: Report) -> Element:
    """The properties of a report in our own namespace: a report without judgement and without long lists."""
    from dataclasses import replace

    return report_element(replace(report, status=None, findings=(), outcomes=(), run={}, digests={}), brief=True)


def _findings(report: Report) -> Element:
    from fdd.report.frame import REPORT

    shape = REPORT.fields["findings"].shape
    element = etree.Element(tag("findings"))
    write(element, report.to_dict()["findings"][:MOST_FINDINGS], shape)
    return element


def _flat(tensors: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for tensor in tensors:
        yield tensor
        yield from _flat(tensor.get("components", ()))


def agent_id(tool: Mapping[str, Any]) -> str:
    """The identifier of this version of fdd as an agent."""
    return str(uuid.uuid5(PROJECT, f"agent/{tool.get('name')}/{tool.get('version')}"))


def agent(tool: Mapping[str, Any]) -> Element:
    """fdd as a PREMIS agent."""
    element = etree.Element(f"{{{PREMIS}}}agent", nsmap=NAMESPACES)
    element.set("version", VERSION)
    add_identifier(element, "agentIdentifier", agent_id(tool))
    add(element, "agentName", str(tool.get("name", "fdd")))
    add(element, "agentType", "software", "agentType")
    add(element, "agentVersion", str(tool.get("version", "")))
    return element


def representation(facts: Mapping[str, Any], members: Sequence[str]) -> Element:
    """A set of files (shards of a model, a distributed checkpoint) as a representation object."""
    element = new_object("representation")
    add_identifier(element, "objectIdentifier", str(uuid.uuid5(PROJECT, "/".join([str(facts["kind"]), *sorted(members)]))))
    state = (
        "complete"
        if facts.get("complete")
        else f"incomplete; missing {', '.join(map(str, facts.get('missing', ()))) or 'not known'}"
    )
    significant = add(element, "significantProperties")
    add(significant, "significantPropertiesType", str(facts["kind"]))
    add(significant, "significantPropertiesValue", state)
    add(element, "originalName", str(facts["root"]))
    if members:
        relationship(element, "structural", "has Part", members)
    return element
