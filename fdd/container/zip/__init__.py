# SPDX-License-Identifier: Apache-2.0
"""Reads ZIP files into facts (:class:`~fdd.container.zip.structs.ZipFacts`), damaged ones too. Nothing here judges.

:func:`read_directory` needs a handful of reads at the end of the file; :func:`read_local_headers` adds what stands at
every record. Both raise only :class:`~fdd.core.errors.SourceError`, when the bytes cannot be had.
"""

from __future__ import annotations

from collections.abc import Container

from fdd.container.zip.ends import find_ends, note_strays
from fdd.container.zip.layout import lay_out, unowned_spans
from fdd.container.zip.local import read_listed
from fdd.container.zip.locate import read_directory_of
from fdd.container.zip.salvage import find_records, find_shifted
from fdd.container.zip.structs import (
    CENTRAL_HEADER_SIGNATURE,
    END_SIGNATURE,
    LOCAL_HEADER_SIGNATURE,
    ZIP64_LOCATOR_SIGNATURE,
    ZipFacts,
    ZipRecord,
)
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.limits import Limits

__all__ = ["looks_like_zip", "read_directory", "read_local_headers", "read_some_local_headers"]


def looks_like_zip(head: bytes, tail: bytes) -> bool:
    """Whether a file may be a ZIP file, by its first and last bytes (64 KiB of each show all that can be seen)."""
    signatures = (END_SIGNATURE, ZIP64_LOCATOR_SIGNATURE, CENTRAL_HEADER_SIGNATURE)
    return head.startswith(LOCAL_HEADER_SIGNATURE) or any(signature in tail for signature in signatures)


def read_directory(source: ByteSource, limits: Limits) -> ZipFacts:
    """Read end records and central directory; no local header is read while the end records are good.

    Payloads stay unknown (None): where they begin is told by the local headers alone.
    """
    ends = find_ends(source)
    directory = read_directory_of(source, ends, limits)
    entries = directory.entries if directory is not None else []
    if directory is not None:
        note_strays(source, ends, directory.span.end)
    records = [ZipRecord(index, entry) for index, entry in enumerate(entries)]
    return ZipFacts(source.size, ends, directory, records)


def read_local_headers(source: ByteSource, facts: ZipFacts, limits: Limits) -> None:
    """Complete ``facts`` in place: local headers, payloads, descriptors, regions, overlaps, unlisted records.

    Without a directory the records are those that a walk from the front finds. Only then, and over bytes without an
    owner, is more read than headers and descriptors.
    """
    most = limits.directory_entries
    if facts.directory is None:
        behind = facts.ends.start if facts.ends.start is not None else facts.size
        facts.records = find_records(source, [Span(0, behind)], {}, most)
        facts.salvaged = True
        lay_out(facts)
    else:
        read_listed(source, facts)
        lay_out(facts)
        lost = {record.name: record.entry for record in facts.records if record.entry is not None and record.local is None}
        facts.unlisted = find_records(source, unowned_spans(facts), lost, most)
        if lost:
            facts.unlisted.extend(find_shifted(source, facts))
            facts.unlisted.sort(key=lambda record: record.local.span if record.local is not None else Span(0, 0))
            lay_out(facts)
    facts.local_headers_read = True


def read_some_local_headers(source: ByteSource, facts: ZipFacts, indexes: Container[int]) -> None:
    """Complete only some records of the directory in place, so that their payloads can be read; no region is known then."""
    read_listed(source, facts, indexes)
