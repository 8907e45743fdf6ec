# SPDX-License-Identifier: Apache-2.0
"""Other readings of the same bytes: what another reader would take the file for (contract, section 6)."""

from __future__ import annotations

from fdd.container.zip.structs import END_SIGNATURE, LOCAL_HEADER_SIGNATURE
from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.pickled import probe_hidden
from fdd.pickles import looks_like_pickle

LOOKED_AT = 1 << 20
"""Bytes of a prefix or tail that are searched for another archive, at each of its ends."""
TAR_MAGIC = b"ustar"
TAR_MAGIC_OFFSET = 257


def other_reading(data: bytes) -> str | None:
    """What else would be read in these bytes by another reader, None where nothing."""
    if data[TAR_MAGIC_OFFSET : TAR_MAGIC_OFFSET + len(TAR_MAGIC)] == TAR_MAGIC:
        return "a tar archive"
    if looks_like_pickle(data):
        return "a pickle"
    if LOCAL_HEADER_SIGNATURE in data or END_SIGNATURE in data:
        return "a ZIP archive"
    return None


def find_other_readings(document: TorchDocument, probe: Probe) -> None:
    """State what stands before and behind the archive that other readers would take for the file."""
    facts = probe.zip
    if facts is None or document.zip is None:
        return
    for region in facts.regions:
        if region.what in ("prefix", "trailing") and region.span.length:
            _look(document, probe, region.span)
    if not facts.regions and facts.ends.trailing.length:
        _look(document, probe, facts.ends.trailing)
    _zip_as_pickle(document, probe)


def _look(document: TorchDocument, probe: Probe, span: Span) -> None:
    what = other_reading(probe.source.read_at(span.offset, min(span.length, LOOKED_AT)))
    if what is None and span.length > LOOKED_AT:
        what = other_reading(probe.source.read_at(span.end - LOOKED_AT, LOOKED_AT))
    if what is not None:
        document.foreign_reading.append((what, span))


def _zip_as_pickle(document: TorchDocument, probe: Probe) -> None:
    """`P` of the signature is the opcode PERSID: a newline in front of the first payload can start a pickle there."""
    payloads = [record.payload.offset for record in probe.zip.records if record.payload is not None] if probe.zip else []
    if not payloads or not probe.head.startswith(LOCAL_HEADER_SIGNATURE):
        return
    newline = probe.head.find(b"\n", 0, min(payloads))
    if newline >= 0 and looks_like_pickle(probe.head):
        document.foreign_reading.append(("a pickle", Span(0, min(payloads))))
        probe_hidden(document, Span(0, min(probe.source.size, len(probe.head))), None, probe.limits)
