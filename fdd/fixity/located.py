# SPDX-License-Identifier: Apache-2.0
"""The parts of a file as it is now, with the digests that a manifest uses: to find again what has moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from fdd.core.model import Record
from fdd.core.payload import Part, read_payload
from fdd.core.source import ByteSource
from fdd.fixity.manifest import Manifest
from fdd.formats.opening import open_by_kind
from fdd.formats.probe import make_probe
from fdd.limits import Limits

FORMLESS = frozenset({"unknown", "zeros", "text", "empty", "zip", "tar", "pickle", "python-path"})
"""Kinds that say nothing of what wrote the file: damage makes them of others."""


class FoundPart(NamedTuple):
    """A part of the file as it is now. ``record`` is the name it goes by, None where the container leads to none there."""

    record: str | None
    offset: int


@dataclass(slots=True)
class PartsNow:
    """All records of the file as it is now.

    ``container`` is zip, tar or stream. ``orderly``: it can be read by its directory. ``sound``: whether the checksums inside
    fit its records; None where some have none.
    """

    kind: str
    format: str | None
    container: str
    orderly: bool
    sound: bool | None
    records: list[FoundPart]
    by_digest: dict[tuple[str, ...], list[FoundPart]]

    def is_other_kind(self, manifest: Manifest) -> bool:
        """Whether the file is of a kind that no damage makes of the recorded one."""
        same = self.kind == manifest.format.get("kind") or (self.format is not None and self.format == manifest.format.get("fdd"))
        return not same and self.kind not in FORMLESS

    def is_other_container(self, manifest: Manifest) -> bool:
        """Whether it is a whole file of another make than the recorded one."""
        if not self.orderly or self.sound is False or self.kind == manifest.format.get("kind"):
            return False
        return self.is_other_kind(manifest) or self.container != _container_of(manifest)


def _container_of(manifest: Manifest) -> str:
    if any(segment.kind == "directory" for segment in manifest.segments):
        return "zip"
    return "tar" if manifest.format.get("kind") in ("tar", "torch-tar") else "stream"


def find_parts(manifest: Manifest, source: ByteSource, limits: Limits) -> PartsNow:
    """Open the file and digest its records: as stored, and of deflated ones what they inflate to."""
    probe = make_probe(source, name=manifest.name, path=None, limits=limits, depth="structure")
    identification, fmt, document = open_by_kind(probe)
    container = "zip" if probe.zip is not None else "tar" if probe.tar is not None else "stream"
    if fmt is None:
        return PartsNow(identification.kind, identification.format, container, False, None, [], {})
    algorithms = next((tuple(segment.digests) for segment in manifest.segments if segment.digests), ())
    rows: list[tuple[Record, FoundPart, Part]] = []
    for record in fmt.stored_parts(document):
        if record.span is None:
            continue
        found = FoundPart(record.name, record.span.offset)
        deflated = record.method == "deflated"
        for inflate in (False, True) if deflated else (False,):
            rows.append((record, found, Part(record.span, deflated=inflate, algorithms=algorithms)))
    read_payload(source, [part for _, _, part in rows])
    by_digest: dict[tuple[str, ...], list[FoundPart]] = {}
    for _, found, part in rows:
        if part.fault is None:
            by_digest.setdefault(tuple(part.digests[name] for name in algorithms), []).append(found)
    checked = ((record, part) for record, _, part in rows if part.deflated or record.method == "stored")
    records = [FoundPart(record.name, part.span.offset) for record, _, part in rows if not part.deflated]
    orderly = identification.format is not None and fmt.is_orderly(document)
    return PartsNow(identification.kind, identification.format, container, orderly, _sound(checked), records, by_digest)


def _sound(checked: Iterable[tuple[Record, Part]]) -> bool | None:
    """A checksum of 0 on bytes is one that was left out."""
    sound: bool | None = None
    unknown = False
    for record, part in checked:
        if part.fault is not None:
            return False
        if not part.size:
            continue
        if not record.crc32:
            unknown = True
        elif part.crc32 != record.crc32:
            return False
        else:
            sound = True
    return None if unknown else sound
