# SPDX-License-Identifier: Apache-2.0
"""Fixity checks as PREMIS 3.0: the file as it was recorded, and an event that says what a check found."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from lxml import etree

from fdd._version import __version__
from fdd.core.errors import UsageError
from fdd.fixity.lists import ListedFile
from fdd.fixity.manifest import Manifest
from fdd.fixity.result import BadSegment, Fixity, FixityResult
from fdd.formats import by_name
from fdd.report.frame import SEGMENTS
from fdd.report.premis import digest_base, free_base
from fdd.report.premis_options import PremisOptions
from fdd.report.premis_terms import DIGEST_LABELS, strongest_first
from fdd.report.premis_units import (
    LIBRARY_OF_CONGRESS,
    add,
    add_fixity,
    add_identifier,
    add_registry,
    add_significant,
    agent_id,
    new_event,
    new_object,
    uuid_of,
)
from fdd.report.premis_writer import PremisDocument
from fdd.report.xml_codec import OWN_NAMESPACE, Element, tag, write
from fdd.tensors.content import CONTENT_ALGORITHM

TOOL = {"name": "fdd", "version": __version__}
EVENT_TYPE = "fixity check"
MOST_NAMED = 10
"""Segments that a note names; the extension lists all of them."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a manifest, or a line of a checksum list, says of a file. ``originator``: who computed the digests."""

    path: str
    digests: Mapping[str, str]
    originator: str
    size: int | None = None
    format: Mapping[str, Any] = field(default_factory=dict)
    content_digest: str | None = None
    segments: int = 0

    @staticmethod
    def of_manifest(manifest: Manifest) -> Recorded:
        """What a manifest says."""
        generator = f"{manifest.generator.get('name', '')} {manifest.generator.get('version', '')}".strip()
        return Recorded(
            path=manifest.place,
            digests=manifest.digests,
            originator=generator or "unknown",
            size=manifest.size,
            format=manifest.format,
            content_digest=manifest.content_digest,
            segments=len(manifest.segments),
        )

    @staticmethod
    def of_listed(listed: ListedFile, source: str) -> Recorded:
        """What a line of the list ``source`` says."""
        return Recorded(listed.path, dict(listed.digests), source, listed.size)


@dataclass(frozen=True, slots=True)
class FixityCheck:
    """One check: what was recorded, what was found, and when it was begun (`YYYY-MM-DDThh:mm:ssZ`)."""

    recorded: Recorded
    result: FixityResult
    moment: str


class FixityWriter:
    """One PREMIS document for all checks of a run."""

    def __init__(self, stream: TextIO, options: Mapping[str, Any]) -> None:
        self._document = PremisDocument(stream)
        self._options = PremisOptions.of(options)
        self._taken: set[str] = set()

    def begin(self) -> None:
        """Open the document."""
        self._document.begin()

    def write(self, check: FixityCheck) -> None:
        """Add a check."""
        base = self._base(check.recorded)
        identifier = uuid_of(base)
        self._taken.add(identifier)
        event = uuid_of(base, "event", EVENT_TYPE, check.moment)
        size = check.recorded.size
        if size is None and check.result.intact:  # lists record none, but the digest holds of this many bytes
            size = check.result.size
        self._document.add([self._object(check.recorded, size, identifier, event)], [self._event(check, identifier, event)], TOOL)

    def end(self) -> None:
        """Close the document."""
        self._document.end()

    def _base(self, recorded: Recorded) -> str:
        if self._options.identifiers == "uuid4":
            return str(uuid.uuid4())
        return free_base(digest_base(recorded.digests) or recorded.path, recorded.path, self._taken)

    def _object(self, recorded: Recorded, size: int | None, identifier: str, event: str) -> Element:
        """The file as it was recorded, whatever has become of it."""
        element = new_object("file", identifier)
        if recorded.content_digest is not None:
            add_significant(element, "content digest", f"{CONTENT_ALGORITHM}:{recorded.content_digest}")
        characteristics = add(element, "objectCharacteristics")
        add(characteristics, "compositionLevel", "0")
        add_fixity(characteristics, recorded.digests, recorded.originator)
        if size is not None:
            add(characteristics, "size", str(size))
        holder = add(characteristics, "format")
        designation = add(holder, "formatDesignation")
        name = recorded.format.get("fdd")
        add(designation, "formatName", _title(name) or str(recorded.format.get("kind") or "unknown"))
        if recorded.format.get("version") is not None:
            add(designation, "formatVersion", str(recorded.format["version"]))
        if isinstance(name, str) and name.startswith("fdd0"):
            add_registry(holder, LIBRARY_OF_CONGRESS, name)
        original = self._options.original_name({"path": recorded.path})
        if original:
            add(element, "originalName", original)
        add_identifier(element, "linkingEventIdentifier", event)
        return element

    def _event(self, check: FixityCheck, file: str, identifier: str) -> Element:
        good = check.result.intact
        algorithms = ", ".join(DIGEST_LABELS.get(name, name) for name, _ in strongest_first(check.recorded.digests))
        outcome = ("pass" if good else "fail", None) if self._options.outcomes == "archivematica" else _loc(good=good)
        return new_event(
            identifier,
            EVENT_TYPE,
            check.moment,
            {"program": TOOL["name"], "version": TOOL["version"], "algorithm": algorithms},
            outcome=outcome,
            note=_note(check),
            extension=_segments(check.result.bad) if check.result.bad else None,
            agent=agent_id(TOOL),
            role="executing program",
            targets=[file],
        )


def _loc(*, good: bool) -> tuple[str, str]:
    return "success" if good else "fail", "eventOutcome"


def _title(name: Any) -> str | None:
    """The name of a format that is installed."""
    try:
        return by_name(name).title
    except UsageError:
        return None


def _note(check: FixityCheck) -> str:
    """`1 of 28 segments damaged: toy/data/0 at 896+48`, or the verdict with its sentence."""
    if check.result.verdict is Fixity.UNREADABLE:
        return f"could not be checked: {check.result.detail}"
    bad = check.result.bad
    sentence = f"{check.result.verdict.value}: {check.result.detail}"
    if not bad:
        return sentence
    named = (f"{part.record or part.kind} at {part.span.offset}+{part.span.length}" for part in bad[:MOST_NAMED])
    places = ", ".join(named)
    more = f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    head = f"{len(bad)} of {check.recorded.segments} segments damaged: {places}{more}"
    return head if check.result.verdict.value == "damaged" else f"{sentence}; {places}{more}"


def _segments(bad: tuple[BadSegment, ...]) -> Element:
    element = etree.Element(tag("segments"), nsmap=OWN_NAMESPACE)
    write(element, [segment.to_dict() for segment in bad], SEGMENTS)
    return element
