# SPDX-License-Identifier: Apache-2.0
"""The parts of a file as it is now, with the digests that a manifest uses: to find again what has moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fdd.core.payload import Part, read_payload
from fdd.core.source import ByteSource
from fdd.fixity.manifest import Manifest
from fdd.formats.opening import open_by_kind
from fdd.formats.probe import make_probe
from fdd.limits import Limits


class FoundPart(NamedTuple):
    """A record of the file as it is now."""

    record: str | None
    offset: int


@dataclass(slots=True)
class PartsNow:
    """All records of the file as it is now, by their digests. ``orderly``: the container can be read by its directory."""

    kind: str
    orderly: bool
    by_digest: dict[tuple[str, ...], list[FoundPart]]


def find_parts(manifest: Manifest, source: ByteSource, limits: Limits) -> PartsNow:
    """Open the file and digest its records: as stored, and of deflated ones what they inflate to."""
    probe = make_probe(source, name=manifest.name, path=None, limits=limits, depth="structure")
    identification, fmt, document = open_by_kind(probe)
    by_digest: dict[tuple[str, ...], list[FoundPart]] = {}
    if fmt is None:
        return PartsNow(identification.kind, False, by_digest)
    algorithms = next((tuple(segment.digests) for segment in manifest.segments if segment.digests), ())
    rows: list[tuple[FoundPart, Part]] = []
    for record in fmt.stored_parts(document):
        if record.span is None:
            continue
        found = FoundPart(record.name, record.span.offset)
        rows.append((found, Part(record.span, algorithms=algorithms)))
        if record.method == "deflated":
            rows.append((found, Part(record.span, deflated=True, algorithms=algorithms)))
    read_payload(source, [part for _, part in rows])
    for found, part in rows:
        if part.fault is None:
            by_digest.setdefault(tuple(part.digests[name] for name in algorithms), []).append(found)
    return PartsNow(identification.kind, fmt.is_orderly(document), by_digest)
