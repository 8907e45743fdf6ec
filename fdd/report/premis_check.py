# SPDX-License-Identifier: Apache-2.0
"""What the XML Schema of PREMIS lets through and a repository does not: a semantic check of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from lxml import etree

from fdd.report.premis_options import is_date
from fdd.report.premis_terms import BASE, DIGEST_DIGITS, DIGEST_LABELS, SCHEMES, STRENGTH, uri_of
from fdd.report.premis_units import PREMIS
from fdd.report.xml_codec import XSI

Element = etree._Element
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DETAIL = re.compile(r'[\w.-]+="[^";]*"(?:; [\w.-]+="[^";]*")*')
VERSIONED = ("object", "event", "agent")
CATEGORIES = frozenset(f"premis:{category}" for category in ("file", "bitstream", "representation", "intellectualEntity"))
IDENTIFIERS = (("object", "objectIdentifier"), ("event", "eventIdentifier"), ("agent", "agentIdentifier"))
IDENTIFIER = f"{{{PREMIS}}}objectIdentifier"
LINKS = (
    ("relatedObjectIdentifier", "object"),
    ("linkingObjectIdentifier", "object"),
    ("linkingEventIdentifier", "event"),
    ("linkingAgentIdentifier", "agent"),
)


def _name(name: str) -> str:
    return f"{{{PREMIS}}}{name}"


def check(root: Element) -> list[str]:
    """The faults of a document (or of any element that holds PREMIS, such as a METS), each a sentence. Empty: none."""
    parts = (_versions, _identifiers, _links, _values, _objects, _terms, _fixity, _forms)
    return [fault for part in parts for fault in part(root)]


def _versions(root: Element) -> Iterator[str]:
    for word in VERSIONED:
        for element in root.iter(_name(word)):
            if element.get("version") != "3.0":
                yield f'{word} without version="3.0"'
            if element.prefix != "premis":
                yield f"{word} with the prefix {element.prefix!r} instead of premis"
            if word == "object" and element.get(f"{{{XSI}}}type") not in CATEGORIES:
                yield f"object whose xsi:type {element.get(f'{{{XSI}}}type')!r} is none of {', '.join(sorted(CATEGORIES))}"


def _value(element: Element) -> str:
    """The value of an identifier: its second part."""
    return (element[1].text or "") if len(element) > 1 else ""


def _identifiers(root: Element) -> Iterator[str]:
    known: dict[str, set[str]] = {}
    for word, part in IDENTIFIERS:
        values = [_value(found) for element in root.iter(_name(word)) for found in element.findall(_name(part))]
        known[word] = set(values)
        if len(values) != len(set(values)):
            yield f"a {part} is there twice"
        for value in values:
            if not _UUID.fullmatch(value):
                yield f"{part} {value!r} is no UUID"
    for part, word in LINKS:
        for element in root.iter(_name(part)):
            if _value(element) not in known[word]:
                yield f"{part} {_value(element)!r} leads to no {word}"


def _links(root: Element) -> Iterator[str]:
    """An object and its events name each other."""
    objects = {_value(found): element for element in root.iter(_name("object")) for found in element.findall(IDENTIFIER)}
    for event in root.iter(_name("event")):
        own = {_value(found) for found in event.findall(_name("eventIdentifier"))}
        for link in event.findall(_name("linkingObjectIdentifier")):
            target = objects.get(_value(link))
            named = target.findall(_name("linkingEventIdentifier")) if target is not None else []
            if target is not None and own.isdisjoint(_value(found) for found in named):
                yield f"event {min(own, default='')} names an object that does not name it"


def _values(root: Element) -> Iterator[str]:
    for element in root.iter(_name("eventDateTime")):
        if not _is_moment(element.text or ""):
            yield f"eventDateTime {element.text!r} is no moment with a zone"
    for element in root.iter(_name("dateCreatedByApplication")):
        if not is_date(element.text or ""):
            yield f"dateCreatedByApplication {element.text!r} is no date"
    for element in root.iter(_name("size")):
        if not re.fullmatch(r"\d+", element.text or ""):
            yield f"size {element.text!r} is no number of bytes"
    for element in root.iter(_name("eventDetail")):
        if not _DETAIL.fullmatch(element.text or ""):
            yield f'eventDetail {element.text!r} is not of parts like key="value"'
    for element in root.iter(_name("agent")):
        if not (element.findtext(_name("agentName")) or "").strip():
            yield "agent without name"


def _is_moment(text: str) -> bool:
    try:
        return _MOMENT.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _objects(root: Element) -> Iterator[str]:
    for element in root.iter(_name("object")):
        category = str(element.get(f"{{{XSI}}}type", ""))
        characteristics = element.find(_name("objectCharacteristics"))
        if category == "premis:representation" or characteristics is None:
            continue
        if characteristics.find(_name("compositionLevel")) is None:
            yield f"{category} without compositionLevel"
        makers = [maker.text or "" for maker in characteristics.iter(_name("messageDigestOriginator"))]
        if characteristics.find(_name("size")) is None and any(maker.startswith("fdd ") for maker in makers):
            yield f"{category} of which fdd read every byte, without size"
        labels = [DIGEST_LABELS[name] for name in STRENGTH]
        found = [fixity.findtext(_name("messageDigestAlgorithm")) or "" for fixity in characteristics.findall(_name("fixity"))]
        places = [labels.index(label) for label in found if label in labels]
        if places != sorted(places):
            yield f"{category} whose first digest is not the strongest: {', '.join(found)}"


def _terms(root: Element) -> Iterator[str]:
    for element in root.iter(_name("*")):
        scheme = element.get("authority")
        if scheme is None:
            if element.get("valueURI") is not None or element.get("authorityURI") is not None:
                yield f"the term {element.text!r} has a URI and no authority"
            continue
        if scheme not in SCHEMES or element.get("authorityURI") != f"{BASE}{scheme}":
            yield f"unknown authority {scheme!r}"
        elif uri_of(scheme, element.text or "") != element.get("valueURI"):
            yield f"the term {element.text!r} of {scheme} does not have the URI {element.get('valueURI')!r}"


def _fixity(root: Element) -> Iterator[str]:
    for element in root.iter(_name("fixity")):
        algorithm = element.findtext(_name("messageDigestAlgorithm")) or ""
        digest = element.findtext(_name("messageDigest")) or ""
        if algorithm not in DIGEST_DIGITS:
            yield f"unknown digest algorithm {algorithm!r}"
        elif not re.fullmatch(f"[0-9a-f]{{{DIGEST_DIGITS[algorithm]}}}", digest):
            yield f"the {algorithm} digest {digest!r} is not of {DIGEST_DIGITS[algorithm]} lower-case digits"


def _forms(root: Element) -> Iterator[str]:
    """Comments and processing instructions inside units make importers fail."""
    for word in VERSIONED:
        for element in root.iter(_name(word)):
            if element.xpath("descendant::comment() | descendant::processing-instruction()"):
                yield f"a comment or processing instruction inside {word}"
