# SPDX-License-Identifier: Apache-2.0
"""The fixity manifest: a value, its JSON form (``schemas/fixity-manifest.schema.json``), and reading it back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote_to_bytes

from fdd.core.digests import check_algorithms
from fdd.core.errors import UsageError
from fdd.core.span import Span
from fdd.core.text import json_text
from fdd.fixity import reading
from fdd.limits import Limits

if TYPE_CHECKING:
    from fdd.fixity.result import FixityResult

MANIFEST_VERSION = "1.0"
SEGMENT_KEYS = frozenset({"kind", "offset", "length", "record", "blocks", "inflated"})
"""Of a segment all that is no digest."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """CRC-32 values of equal blocks of one large segment, so that damage inside is localised.

    The digest of the segment proves the damage; the blocks only say where, so a fast checksum serves. ``size`` in bytes;
    the last block may be shorter.
    """

    size: int
    crc32: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One part of the file and its digests by algorithm. ``kind`` as in :mod:`fdd.formats.segments`."""

    kind: str
    span: Span
    record: str | None
    digests: Mapping[str, str]
    blocks: Blocks | None = None
    inflated: Mapping[str, str] | None = None
    """Digests of what a deflated record inflates to: they outlive packing again."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor and the bytes it looks at: what damage to those bytes hurts. ``content`` is its content digest, if made."""

    name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    record: str | None
    span: Span | None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything recorded of one file. The segments partition it: lengths sum up to ``size``, without gap or overlap."""

    generator: Mapping[str, str]
    name: str
    size: int
    digests: Mapping[str, str]
    format: Mapping[str, Any]
    segments: tuple[SegmentEntry, ...]
    tensors: tuple[TensorEntry, ...] = ()
    content_digest: str | None = None
    path: str | None = None
    """Relative path in the collection it was made for, with slashes."""
    percent_encoded: bool = False
    """Whether name and path are percent-encoded, because they are no valid text."""
    created: str | None = None

    @property
    def place(self) -> str:
        """Path in the collection, or the name, as text."""
        return self.path or self.name

    @property
    def file_system_path(self) -> str:
        """The same as the file system has it: bytes that are no text are decoded (surrogate escapes)."""
        return os.fsdecode(unquote_to_bytes(self.place)) if self.percent_encoded else self.place

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms of the digests of the whole file."""
        return tuple(self.digests)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the order of the schema."""
        document: dict[str, Any] = {"manifest_version": MANIFEST_VERSION, "generator": dict(self.generator)}
        if self.created is not None:
            document["created"] = self.created
        file: dict[str, Any] = {"name": self.name}
        if self.path is not None:
            file["path"] = self.path
        if self.percent_encoded:
            file["percent_encoded"] = True
        document["file"] = file | {"size": self.size, "digests": dict(self.digests)}
        document["format"] = dict(self.format)
        document["segments"] = [_segment_dict(segment) for segment in self.segments]
        if self.tensors:
            document["tensors"] = [_tensor_dict(tensor) for tensor in self.tensors]
        if self.content_digest is not None:
            document["content_digest"] = {"algorithm": "fdd-content-sha256-1", "digest": self.content_digest}
        return document

    def to_json(self) -> str:
        """The manifest as text: equal for equal files, whenever and wherever it is made."""
        return json_text(self.to_dict(), indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Read a manifest. Raises :class:`UsageError` where the text is none, or its segments do not partition the file."""
        try:
            document = json.loads(text)
            manifest = _from_dict(document)
            if manifest.place:  # bytes that came without a name have none
                reading.check_stays_below(manifest.file_system_path)
        except KeyError as error:
            raise UsageError(f"not a fixity manifest: no {error.args[0]}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"not a fixity manifest: {error}") from error
        _check(manifest)
        return manifest

    def verify(self, source: str | bytes | os.PathLike[str] | BinaryIO, *, limits: Limits | None = None) -> FixityResult:
        """See :func:`fdd.fixity.verify.verify`."""
        from fdd.fixity.verify import verify

        return verify(self, source, limits=limits)


def _check(manifest: Manifest) -> None:
    """Make sure that the manifest says something of every byte. Raises :class:`UsageError` where it does not."""
    position = 0
    for segment in manifest.segments:
        if segment.span.offset != position or segment.span.length < 0:
            raise UsageError(f"not a whole fixity manifest: the segments leave a gap or overlap at {position}")
        position = segment.span.end
        if set(segment.digests) != set(manifest.segments[0].digests) or (segment.span.length and not segment.digests):
            raise UsageError(
                f"not a whole fixity manifest: the digests of the segment at {segment.span.offset} are not those of all"
            )
        blocks = segment.blocks
        if blocks is not None and (blocks.size < 1 or len(blocks.crc32) != -(-segment.span.length // blocks.size)):
            raise UsageError(f"not a whole fixity manifest: the blocks of the segment at {segment.span.offset} do not cover it")
    if position != manifest.size:
        raise UsageError(f"not a whole fixity manifest: the segments cover {position} of {manifest.size} bytes")
    if not manifest.digests:
        raise UsageError("not a whole fixity manifest: the file has no digest")
    check_algorithms([*manifest.digests, *(manifest.segments[0].digests if manifest.segments else ())])


def _segment_dict(segment: SegmentEntry) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": segment.kind, "offset": segment.span.offset, "length": segment.span.length}
    if segment.record is not None:
        entry["record"] = segment.record
    entry |= segment.digests
    if segment.inflated is not None:
        entry["inflated"] = dict(segment.inflated)
    if segment.blocks is not None:
        entry["blocks"] = {"size": segment.blocks.size, "crc32": [f"{value:08x}" for value in segment.blocks.crc32]}
    return entry


def _tensor_dict(tensor: TensorEntry) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape) if tensor.shape is not None else None,
    }
    if tensor.record is not None:
        entry["record"] = tensor.record
    if tensor.span is not None:
        entry |= {"offset": tensor.span.offset, "length": tensor.span.length}
    if tensor.content is not None:
        entry["content"] = {"algorithm": "fdd-tensor-sha256-1", "digest": tensor.content}
    return entry


def _from_dict(document: Any) -> Manifest:
    version = reading.text(reading.mapping(document, "document")["manifest_version"], "manifest_version")
    if version.partition(".")[0] != MANIFEST_VERSION.partition(".")[0]:
        raise ValueError(f"manifest version {version}")
    file = reading.mapping(document["file"], "file")
    content = document.get("content_digest")
    return Manifest(
        generator={key: reading.text(value, key) for key, value in reading.mapping(document["generator"], "generator").items()},
        name=reading.text(file["name"], "name"),
        size=reading.count(file["size"], "size"),
        digests=reading.digests(file["digests"], "digests"),
        format={key: reading.text_or_none(value, key) for key, value in reading.mapping(document["format"], "format").items()},
        segments=tuple(_segment(reading.mapping(item, "segment")) for item in reading.items(document["segments"], "segments")),
        tensors=tuple(_tensor(reading.mapping(item, "tensor")) for item in reading.items(document.get("tensors", []), "tensors")),
        content_digest=reading.digest("sha256", reading.mapping(content, "content_digest")["digest"])
        if content is not None
        else None,
        path=reading.text_or_none(file.get("path"), "path"),
        percent_encoded=reading.flag(file.get("percent_encoded", False), "percent_encoded"),
        created=reading.text_or_none(document.get("created"), "created"),
    )


def _segment(item: Mapping[str, Any]) -> SegmentEntry:
    return SegmentEntry(
        kind=reading.text(item["kind"], "kind"),
        span=Span(reading.count(item["offset"], "offset"), reading.count(item["length"], "length")),
        record=reading.text_or_none(item.get("record"), "record"),
        digests={name: reading.digest(name, value) for name, value in item.items() if name not in SEGMENT_KEYS},
        inflated=reading.digests(item["inflated"], "inflated") if "inflated" in item else None,
        blocks=_blocks(reading.mapping(item["blocks"], "blocks")) if "blocks" in item else None,
    )


def _blocks(item: Mapping[str, Any]) -> Blocks:
    values = tuple(int(reading.crc32(value), 16) for value in reading.items(item["crc32"], "crc32"))
    return Blocks(reading.count(item["size"], "size"), values)


def _tensor(item: Mapping[str, Any]) -> TensorEntry:
    shape = item.get("shape")
    placed = "offset" in item
    return TensorEntry(
        name=reading.text(item["name"], "name"),
        dtype=reading.text_or_none(item.get("dtype"), "dtype"),
        shape=tuple(reading.integer(size, "shape") for size in reading.items(shape, "shape")) if shape is not None else None,
        record=reading.text_or_none(item.get("record"), "record"),
        span=Span(reading.count(item["offset"], "offset"), reading.count(item["length"], "length")) if placed else None,
        content=_content(item["content"]) if "content" in item else None,
    )


def _content(item: Any) -> str:
    return reading.digest("sha256", reading.mapping(item, "content")["digest"])
