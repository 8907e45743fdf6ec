# SPDX-License-Identifier: Apache-2.0
"""The objects and events of PREMIS 3.0 that one report gives, tied together by their identifiers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

from fdd.core.report import Report
from fdd.report.premis_events import planned_events
from fdd.report.premis_objects import Bitstreams, file_object, wanted_records
from fdd.report.premis_options import PremisOptions
from fdd.report.premis_terms import strongest_first
from fdd.report.premis_units import agent_id, new_event, uuid_of
from fdd.report.xml_codec import Element


def digest_base(digests: Mapping[str, str]) -> str | None:
    """What the identifier of a file is made of: its SHA-256, else its strongest digest; None where it has none."""
    return digests.get("sha256") or next((f"{name}:{value}" for name, value in strongest_first(digests)), None)


def free_base(base: str, path: str, taken: set[str]) -> str:
    """The base, or, where a file of the document has its identifier already, one with the path of this copy in it."""
    candidate, number = base, 1
    while uuid_of(candidate) in taken:
        candidate = f"{base}@{path}" + (f"#{number}" if number > 1 else "")
        number += 1
    return candidate


class PremisBuilder:
    """Identifiers repeat from run to run, unless fresh ones are asked for: that of the file follows from its SHA-256, that
    of an event from the file, the event and its time."""

    def __init__(self, report: Report, options: PremisOptions, taken: set[str]) -> None:
        """``taken`` are the identifiers of files in the same document: a second copy of the same bytes gets its own."""
        self.report = report
        self.options = options
        self._base = self._new_base(taken)
        self.file_id = self._identifier()
        taken.add(self.file_id)
        self._moment = str(report.run.get("started"))
        self._planned = planned_events(report, options)
        self._event_ids = [self._identifier("event", event.key, self._moment) for event in self._planned]
        self._records = wanted_records(report, options)
        self._record_ids = [self._identifier(f"{record['name']}@{record['offset']}") for record in self._records]

    def _new_base(self, taken: set[str]) -> str:
        if self.options.identifiers == "uuid4":
            return str(uuid.uuid4())
        file = self.report.file
        base = digest_base(self.report.digests)
        if base is None:  # of the bytes nothing is known: the place, size and time of the file have to do
            base = ":".join(str(file.get(name, "")) for name in ("path", "size", "modified"))
        return free_base(base, str(file.get("path", "")), taken)

    def _identifier(self, *parts: str) -> str:
        return uuid_of(self._base, *parts)

    def objects(self) -> Iterator[Element]:
        """The file, and its bitstreams."""
        yield file_object(self.report, self.options, self.file_id, self._record_ids, self._event_ids)
        shared = self._event_ids if self.options.links == "all" else ()
        bitstreams = Bitstreams(self.report, self.file_id, shared)
        for record, identifier in zip(self._records, self._record_ids, strict=True):
            yield bitstreams.element(record, identifier)

    def events(self) -> Iterator[Element]:
        """What was done with the file, and how it ended."""
        targets = [self.file_id, *(self._record_ids if self.options.links == "all" else ())]
        program = {key: str(self.report.tool.get(name, "")) for key, name in (("program", "name"), ("version", "version"))}
        for identifier, event in zip(self._event_ids, self._planned, strict=True):
            yield new_event(
                identifier,
                event.kind,
                self._moment,
                program | dict(event.detail),
                outcome=event.outcome(self.options),
                note=event.note,
                extension=event.extension,
                agent=agent_id(self.report.tool),
                role=event.role,
                targets=targets,
            )
