# SPDX-License-Identifier: Apache-2.0
"""Semantic units of PREMIS 3.0 as elements.

Some habits of ours keep real importers working: the literal prefix `premis:`, the version on every object, event and
agent, no comments, `eventDetail` as `key="value"` parts.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from lxml import etree

from fdd.core.text import percent_encode
from fdd.report.premis_terms import BASE, DIGEST_LABELS, strongest_first, uri_of
from fdd.report.xml_codec import XSI, Element, is_xml_text

PREMIS = "http://www.loc.gov/premis/v3"
SCHEMA_LOCATION = f"{PREMIS} http://www.loc.gov/standards/premis/v3/premis.xsd"
NAMESPACES = {"premis": PREMIS, "xsi": XSI}
VERSION = "3.0"
PROJECT = uuid.UUID("6d2f4f0e-9f1c-5a53-8b0e-6f0b6a7c1d44")
"""Namespace of the identifiers that can be computed again (UUID version 5)."""
LIBRARY_OF_CONGRESS = "Library of Congress Sustainability of Digital Formats"
"""How the registry is named in PREMIS documents."""


def premis(name: str) -> str:
    """The qualified name of an element."""
    return f"{{{PREMIS}}}{name}"


def plain(text: str) -> str:
    """A text for PREMIS: what XML cannot carry makes the whole text percent-encoded."""
    return text if is_xml_text(text) else percent_encode(text.encode("utf-8", "surrogatepass"))


def uuid_of(*parts: str) -> str:
    """The identifier that the same parts always give."""
    return str(uuid.uuid5(PROJECT, plain("/".join(parts))))


def add(parent: Element, name: str, text: str | None = None, scheme: str | None = None) -> Element:
    """Append an element of PREMIS; with ``scheme`` the text is a term, and gets its URI where the scheme has it."""
    element = etree.SubElement(parent, premis(name))
    if text is not None:
        element.text = plain(text)
        uri = uri_of(scheme, text) if scheme is not None else None
        if uri is not None:
            element.set("authority", scheme or "")
            element.set("authorityURI", f"{BASE}{scheme}")
            element.set("valueURI", uri)
    return element


def add_identifier(parent: Element, name: str, value: str) -> Element:
    """An identifier of the type UUID."""
    holder = add(parent, name)
    add(holder, f"{name}Type", "UUID")
    add(holder, f"{name}Value", value)
    return holder


def add_significant(parent: Element, kind: str, value: str) -> None:
    """A property that a migration must keep."""
    significant = add(parent, "significantProperties")
    add(significant, "significantPropertiesType", kind)
    add(significant, "significantPropertiesValue", value)


def add_fixity(parent: Element, digests: Mapping[str, str], originator: str) -> None:
    """Digests, the strongest first: readers take the first. ``originator`` says who computed them."""
    for name, digest in strongest_first(digests):
        fixity = add(parent, "fixity")
        add(fixity, "messageDigestAlgorithm", DIGEST_LABELS.get(name, name), "cryptographicHashFunctions")
        add(fixity, "messageDigest", digest)
        add(fixity, "messageDigestOriginator", originator)


def add_registry(parent: Element, name: str, key: str) -> None:
    """The entry of a format registry; a format has one at most."""
    registry = add(parent, "formatRegistry")
    add(registry, "formatRegistryName", name)
    add(registry, "formatRegistryKey", key)
    add(registry, "formatRegistryRole", "specification", "formatRegistryRole")


def add_location(parent: Element, kind: str, value: str, *, scheme: bool = True) -> None:
    """A place where the object is stored; ``scheme`` False for a type of our own."""
    location = add(add(parent, "storage"), "contentLocation")
    add(location, "contentLocationType", kind, "contentLocationType" if scheme else None)
    add(location, "contentLocationValue", value)


def add_relationship(parent: Element, subtype: str, targets: Sequence[str], *, numbered: bool = False) -> None:
    """A structural relationship to one or more objects."""
    element = add(parent, "relationship")
    add(element, "relationshipType", "structural", "relationshipType")
    add(element, "relationshipSubType", subtype, "relationshipSubType")
    for number, target in enumerate(targets, 1):
        related = add_identifier(element, "relatedObjectIdentifier", target)
        if numbered:
            add(related, "relatedObjectSequence", str(number))


def new_object(kind: str, identifier: str) -> Element:
    """An object of a category (`file`, `bitstream`, `representation`)."""
    element = etree.Element(premis("object"), nsmap=NAMESPACES)
    element.set("version", VERSION)
    element.set(f"{{{XSI}}}type", f"premis:{kind}")
    add_identifier(element, "objectIdentifier", identifier)
    return element


def new_root() -> Element:
    """A whole document, still empty."""
    root = etree.Element(premis("premis"), nsmap=NAMESPACES)
    root.set("version", VERSION)
    root.set(f"{{{XSI}}}schemaLocation", SCHEMA_LOCATION)
    return root


def detail_text(parts: Mapping[str, str]) -> str:
    """`program="fdd"; version="0.1.0"; ...`: readers split at semicolons and equals signs, so no value has any."""
    safe = {name: re.sub(r"\s+", " ", re.sub("[;=]", ",", value.replace('"', "'"))) for name, value in parts.items()}
    return "; ".join(f'{name}="{value}"' for name, value in safe.items())


def new_event(
    identifier: str,
    kind: str,
    moment: str,
    detail: Mapping[str, str],
    *,
    outcome: tuple[str, str | None],
    note: str | None,
    extension: Element | None,
    agent: str,
    role: str,
    targets: Sequence[str],
) -> Element:
    """What was done to an object and how it ended. ``outcome`` is the word and the scheme it is of, if it is of one."""
    event = etree.Element(premis("event"), nsmap=NAMESPACES)
    event.set("version", VERSION)
    add_identifier(event, "eventIdentifier", identifier)
    add(event, "eventType", kind, "eventType")
    add(event, "eventDateTime", moment)
    add(add(event, "eventDetailInformation"), "eventDetail", detail_text(detail))
    information = add(event, "eventOutcomeInformation")
    add(information, "eventOutcome", *outcome)
    if note is not None or extension is not None:
        holder = add(information, "eventOutcomeDetail")
        if note is not None:
            add(holder, "eventOutcomeDetailNote", note)
        if extension is not None:
            add(holder, "eventOutcomeDetailExtension").append(extension)
    add(add_identifier(event, "linkingAgentIdentifier", agent), "linkingAgentRole", role, "eventRelatedAgentRole")
    for target in targets:
        add(add_identifier(event, "linkingObjectIdentifier", target), "linkingObjectRole", "source", "eventRelatedObjectRole")
    return event


def agent_id(tool: Mapping[str, Any]) -> str:
    """The identifier of this version of fdd as an agent."""
    return uuid_of("agent", str(tool.get("name")), str(tool.get("version")))


def new_agent(tool: Mapping[str, Any]) -> Element:
    """fdd as an agent: a piece of software of a version."""
    element = etree.Element(premis("agent"), nsmap=NAMESPACES)
    element.set("version", VERSION)
    add_identifier(element, "agentIdentifier", agent_id(tool))
    add(element, "agentName", str(tool.get("name", "fdd")))
    add(element, "agentType", "software", "agentType")
    add(element, "agentVersion", str(tool.get("version", "")))
    return element
