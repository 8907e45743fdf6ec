# SPDX-License-Identifier: Apache-2.0
"""Makes manifests: one read of the file, digests of the whole and of every part."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, BinaryIO

from fdd._version import __version__
from fdd.core.digests import check_algorithms
from fdd.core.model import Identification
from fdd.core.paths import safe_path
from fdd.core.payload import Part, read_payload
from fdd.core.source import FileSource, open_source
from fdd.core.span import Span
from fdd.core.text import percent_encode, valid_text
from fdd.fixity.blocks import BlockTap, block_size
from fdd.fixity.manifest import Blocks, Manifest, SegmentEntry, TensorEntry
from fdd.formats.content import Content, ContentReader
from fdd.formats.opening import open_by_kind
from fdd.formats.probe import Probe, make_probe
from fdd.formats.segments import Segment
from fdd.limits import Limits
from fdd.tensors.content import flat_tensors
from fdd.tensors.model import Tensor

GENERATOR = {"name": "fdd", "version": __version__}
DEFAULT_DIGESTS = ("sha256",)


def create(
    source: str | bytes | os.PathLike[str] | BinaryIO,
    *,
    name: str | None = None,
    digests: Iterable[str] = DEFAULT_DIGESTS,
    limits: Limits | None = None,
    path: str | None = None,
    created: str | None = None,
    content: bool = False,
) -> Manifest:
    """Record a file. Parts get the first of the algorithms, the whole file all of them.

    ``content`` adds the digests of what the tensors hold (:mod:`fdd.tensors.content`): tensors whose elements cannot be had
    stay without, and so does the file then.

    ``path`` is the relative path to write into the manifest (as the file system has it, with slashes), ``created`` the time of
    making, if one is wanted: without it the manifest of the same bytes is always the same text. Raises SourceError where the
    file cannot be read, or changes while it is read: then nothing is recorded.
    """
    algorithms = check_algorithms(digests)
    opened = open_source(source)
    try:
        where = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
        name = name or (os.path.basename(where) if where is not None else "")
        probe = make_probe(opened, name=name, path=where, limits=limits or Limits(), depth="structure")
        identification, fmt, document = open_by_kind(probe)
        segments = fmt.segments(document) if fmt is not None else whole_file(opened.size)
        whole, entries = digest_segments(probe, segments, algorithms)
        held = ContentReader(fmt, document, probe.limits).all() if content and fmt is not None else None
        if isinstance(opened, FileSource):
            opened.check_unchanged()
    finally:
        if isinstance(opened, FileSource):
            opened.close()
    encoded = any(safe_path(text) != text for text in (name, path or ""))
    return Manifest(
        generator=GENERATOR,
        name=_written(name, encoded),
        size=opened.size,
        digests=whole,
        format=_format(identification) | ({"byte_order": held.byte_order} if held is not None else {}),
        segments=tuple(entries),
        tensors=_with_content(held) if held is not None else _entries(fmt.tensors(document)) if fmt is not None else (),
        content_digest=held.digest if held is not None and fmt is not None and fmt.has_all_tensors(document) else None,
        path=_written(path, encoded) if path is not None else None,
        percent_encoded=encoded,
        created=created,
    )


def _written(name: str, encoded: bool) -> str:
    """A name as the manifest has it: all of its names are percent-encoded, or none is."""
    try:
        return percent_encode(os.fsencode(name)) if encoded else name
    except UnicodeEncodeError:  # surrogates that no file system gives, only a caller
        return percent_encode(name.encode("utf-8", "surrogatepass"))


def whole_file(size: int) -> list[Segment]:
    """The one part of a file whose format has no parts."""
    return [Segment("data", Span(0, size))]


def digest_segments(
    probe: Probe, segments: list[Segment], algorithms: tuple[str, ...]
) -> tuple[dict[str, str], list[SegmentEntry]]:
    """Read the file once: digests of the whole, and an entry for each segment."""
    sizes = [block_size(segment.span.length, alone=len(segments) == 1) for segment in segments]
    taps = [BlockTap(size) if size is not None else None for size in sizes]
    parts = [
        Part(segment.span, algorithms=algorithms[:1], taps=(tap,) if tap is not None else ())
        for segment, tap in zip(segments, taps, strict=True)
    ]
    inflating = {
        index: Part(segment.span, deflated=True, algorithms=algorithms[:1])
        for index, segment in enumerate(segments)
        if segment.deflated
    }
    whole = read_payload(probe.source, [*parts, *inflating.values()], algorithms)
    entries = [
        SegmentEntry(
            segment.kind,
            segment.span,
            valid_text(segment.record) if segment.record is not None else None,
            part.digests,
            Blocks(tap.size, tuple(tap.values)) if tap is not None else None,
            inflating[index].digests if index in inflating and inflating[index].fault is None else None,
        )
        for index, (segment, part, tap) in enumerate(zip(segments, parts, taps, strict=True))
    ]
    return whole, entries


def _format(identification: Identification) -> dict[str, Any]:
    return {"fdd": identification.format, "kind": identification.kind, "version": identification.version}


def _entries(tensors: Iterable[Tensor]) -> tuple[TensorEntry, ...]:
    """Every tensor; those made of others (sparse, nested) are followed by their components, which hold the bytes."""
    return tuple(_entry(name, tensor) for name, tensor in flat_tensors(tensors))


def _with_content(content: Content) -> tuple[TensorEntry, ...]:
    return tuple(_entry(entry.name, entry.tensor, entry.digest) for entry in content.tensors)


def _entry(name: str, tensor: Tensor, content: str | None = None) -> TensorEntry:
    storage = tensor.storage
    return TensorEntry(
        name=valid_text(name),
        dtype=tensor.dtype.name if tensor.dtype is not None else None,
        shape=tensor.shape,
        record=valid_text(storage.record) if storage is not None and storage.record is not None else None,
        span=tensor.span,
        content=content,
    )
