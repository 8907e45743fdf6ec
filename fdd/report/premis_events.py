# SPDX-License-Identifier: Apache-2.0
"""Events of PREMIS that a report gives: what was done with the file, and how it ended (contract, section 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from fdd.core.finding import Level, Verdict
from fdd.core.report import Report, finding_dict
from fdd.core.shapes import Anything
from fdd.report.frame import FINDINGS
from fdd.report.premis_options import PremisOptions
from fdd.report.premis_terms import ARCHIVEMATICA_OUTCOMES, DIGEST_LABELS, strongest_first
from fdd.report.xml_codec import OWN_NAMESPACE, Element, tag, write

MOST_FINDINGS = 100
"""Findings that the extension of a validation event lists; a full report has all of them."""
VALIDATOR, PROGRAM = "validator", "executing program"


@dataclass(frozen=True, slots=True)
class Planned:
    """An event of a report. ``key`` tells it from others of the same report; ``word`` is the outcome in the terms of the
    Library of Congress, ``theirs`` the one in Archivematica's."""

    key: str
    kind: str
    word: str
    theirs: str
    note: str | None = None
    detail: Mapping[str, str] = field(default_factory=dict)
    extension: Element | None = None
    role: str = PROGRAM

    def outcome(self, options: PremisOptions) -> tuple[str, str | None]:
        """The word, and the vocabulary it is of."""
        return (self.theirs, None) if options.outcomes == "archivematica" else (self.word, "eventOutcome")


def planned_events(report: Report, options: PremisOptions) -> list[Planned]:
    """The events to write: none where it is not known when the file was looked at, for then nothing could be stated."""
    if not report.run.get("started"):
        return []
    return [event for event in _all(report) if event.kind in options.events]


def _all(report: Report) -> Iterator[Planned]:
    yield _identification(report)
    validation = _validation(report)
    if validation is not None:
        yield validation
    yield from (event for entry in report.profiles if (event := _profile(entry)) is not None)
    if report.digests:
        algorithms = ", ".join(DIGEST_LABELS.get(name, name) for name, _ in strongest_first(report.digests))
        kind = "message digest calculation"
        yield Planned(kind, kind, "success", "pass", detail={"algorithm": algorithms})
    if report.properties:
        yield Planned("metadata extraction", "metadata extraction", "success", "pass")


def _identification(report: Report) -> Planned:
    kind, identification = "format identification", report.identification
    if identification is None:
        return Planned(kind, kind, "fail", "Not identified", f"The file could not be read: {report.error}")
    if identification.format is None:
        note = f"No Matching Format; kind {identification.kind}: {identification.name}"
        return Planned(kind, kind, "fail", "Not identified", note)
    return Planned(kind, kind, "success", "Positive", f"{identification.format}; kind {identification.kind}")


def _validation(report: Report) -> Planned | None:
    """None where nothing was judged: another format, or no decision."""
    status = report.status
    if status is None or status.verdict in (Verdict.NOT_THIS_FORMAT, Verdict.UNDETERMINED):
        return None
    errors, warnings = status.counts.get("error", 0), status.counts.get("warning", 0)
    note = f"{status.text}; {errors} errors, {warnings} warnings."
    if status.verdict is Verdict.STRUCTURE_VALID:
        note += f" Looked at down to the depth {status.depth}."
    if status.safety is not None:
        note += f" Safety: {status.safety.value}."
    word = "success"
    if status.verdict not in (Verdict.VALID, Verdict.STRUCTURE_VALID):
        word = "fail"
    elif status.verdict is Verdict.VALID and any(finding.level is not Level.INFO for finding in report.findings):
        word = "warning"  # an error of a valid file is one of safety, and no less than a warning
    detail = {"catalogue": str(report.tool.get("catalogue", "")), "depth": str(report.options.get("depth", status.depth))}
    told = [finding_dict(finding) for finding in report.findings[:MOST_FINDINGS]]
    extension = _extension("findings")
    write(extension, told, FINDINGS)
    theirs = ARCHIVEMATICA_OUTCOMES[status.verdict]
    return Planned("validation", "validation", word, theirs, note, detail, extension if told else None, VALIDATOR)


def _profile(entry: Mapping[str, Any]) -> Planned | None:
    """What a profile or policy makes of the file; None where it could not be decided."""
    conforms = entry.get("conforms")
    if conforms is None:
        return None
    name, failed = str(entry.get("name")), list(entry.get("failed", ()))
    note = "conforms" if conforms else f"does not conform: {len(failed)} demands are not met"
    note = f"Profile {name}: the file {note}."
    extension = _extension("profile")
    write(extension, dict(entry), Anything())
    detail = {"profile": name, "profile_version": str(entry.get("version", ""))}
    word = "success" if conforms else "fail"
    return Planned(f"validation/{name}", "validation", word, "pass" if conforms else "fail", note, detail, extension, VALIDATOR)


def _extension(name: str) -> Element:
    return etree.Element(tag(name), nsmap=OWN_NAMESPACE)
