# SPDX-License-Identifier: Apache-2.0
"""Other readings of the same bytes: what another reader would take the file for (contract, section 6)."""

from __future__ import annotations

from fdd.container.zip import read_directory, read_local_headers
from fdd.container.zip.inflate import inflate
from fdd.container.zip.structs import END_SIGNATURE, LOCAL_HEADER, LOCAL_HEADER_SIGNATURE, METHOD_DEFLATED
from fdd.core.source import ByteSource, SliceSource
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.pickled import probe_hidden
from fdd.formats.pytorch.zipped import readable
from fdd.limits import Limits
from fdd.pickles import looks_like_pickle

LOOKED_AT = 1 << 20
"""Bytes of a prefix or tail that are searched for another archive, at each of its ends."""
ZIP = "a ZIP archive"
FLATBUFFERS = frozenset({"mobile-flatbuffer", "executorch"})
TAR_MAGIC = b"ustar"
TAR_MAGIC_OFFSET = 257


def other_reading(data: bytes, *, cut: bool = False) -> str | None:
    """What else would be read in these bytes by another reader, None where nothing. Where the archive is ``cut``, a local
    header that is not there as a whole is its own last one."""
    if data[TAR_MAGIC_OFFSET : TAR_MAGIC_OFFSET + len(TAR_MAGIC)] == TAR_MAGIC:
        return "a tar archive"
    if looks_like_pickle(data):
        return "a pickle"
    if END_SIGNATURE in data or (_has_local_header(data) if cut else LOCAL_HEADER_SIGNATURE in data):
        return ZIP
    return None


def _has_local_header(data: bytes) -> bool:
    """Whether a local header is there as a whole."""
    at = data.find(LOCAL_HEADER_SIGNATURE)
    while at >= 0:
        if at + LOCAL_HEADER.size <= len(data):
            *_, name_length, extra_length = LOCAL_HEADER.unpack_from(data, at)
            if at + LOCAL_HEADER.size + name_length + extra_length <= len(data):
                return True
        at = data.find(LOCAL_HEADER_SIGNATURE, at + 1)
    return False


def find_other_readings(document: TorchDocument, probe: Probe) -> None:
    """State what stands before and behind the file's own structure that other readers would take for the file."""
    facts = probe.zip
    if document.zip is None:
        _beside_other_kinds(document, probe)
        return
    if facts is None:
        return
    for region in facts.regions:
        if region.what in ("prefix", "trailing") and region.span.length:
            _look(document, probe, region.span)
    if not facts.regions and facts.ends.trailing.length:
        _look(document, probe, facts.ends.trailing)
    _zip_as_pickle(document, probe)


def _beside_other_kinds(document: TorchDocument, probe: Probe) -> None:
    """What a legacy stream, a tar or a FlatBuffers file is besides."""
    if document.legacy is not None:
        magic = Span(TAR_MAGIC_OFFSET, len(TAR_MAGIC))
        if probe.source.read_at(*magic) == TAR_MAGIC:
            document.foreign_reading.append(("a tar archive", magic))
        # Pickles behind a legacy stream are further saves, or rest (contract, section 6).
        rest = document.legacy.rest
        if rest is not None and rest.length and not looks_like_pickle(probe.source.read_at(rest.offset, LOOKED_AT)):
            _look(document, probe, rest)
    elif document.tar is not None:
        if document.tar.trailing.length:
            _look(document, probe, document.tar.trailing)
    elif document.kind in FLATBUFFERS and probe.zip is not None and probe.zip.records:
        document.foreign_reading.append((ZIP, Span(0, probe.source.size)))
        probe_archive(document, probe.source, Span(0, probe.source.size), probe.limits)


def probe_archive(
    document: TorchDocument, source: ByteSource, span: Span, limits: Limits, role: str = "hidden", *, inflated: bool = False
) -> None:
    """Run the pickles in the records of an archive that the file holds besides: the bytes ``source``.

    They lie at ``span`` of the file, or were ``inflated`` from what lies there.
    """
    facts = read_directory(source, limits)
    read_local_headers(source, facts, limits)
    for record in (*facts.records, *facts.unlisted):
        document.has_code = True
        if record.payload is None or not readable(record):
            document.followed = False
            continue
        place = span if inflated else Span(span.offset + record.payload.offset, record.payload.length)
        data: bytes | None = None
        if METHOD_DEFLATED in (copy.method for copy in (record.entry, record.local) if copy is not None):
            data = inflate(source, record.payload, limits.inflated_bytes)
            document.followed = document.followed and data is not None
        elif inflated:
            data = source.read_at(record.payload.offset, min(record.payload.length, limits.pickle_bytes))
        probe_hidden(document, place, decode_name(record.name), limits, data, role)


def _look(document: TorchDocument, probe: Probe, span: Span) -> None:
    cut = probe.zip is not None and probe.zip.directory is None
    what = other_reading(probe.source.read_at(span.offset, min(span.length, LOOKED_AT)), cut=cut)
    if what is None and span.length > LOOKED_AT:
        what = other_reading(probe.source.read_at(span.end - LOOKED_AT, LOOKED_AT), cut=cut)
    if what is not None:
        document.foreign_reading.append((what, span))
    if what == ZIP and document.zip is None:
        probe_archive(document, SliceSource(probe.source, span), span, probe.limits)


def _zip_as_pickle(document: TorchDocument, probe: Probe) -> None:
    """`P` of the signature is the opcode PERSID: a newline in front of the first payload can start a pickle there."""
    payloads = [record.payload.offset for record in probe.zip.records if record.payload is not None] if probe.zip else []
    if not payloads or not probe.head.startswith(LOCAL_HEADER_SIGNATURE):
        return
    newline = probe.head.find(b"\n", 0, min(payloads))
    if newline >= 0 and looks_like_pickle(probe.head):
        document.foreign_reading.append(("a pickle", Span(0, min(payloads))))
        probe_hidden(document, Span(0, min(probe.source.size, len(probe.head))), None, probe.limits)
