# SPDX-License-Identifier: Apache-2.0
"""Where in the file the rules on records point; no rules in here."""

from __future__ import annotations

from fdd.container.zip.structs import CENTRAL_HEADER, LOCAL_HEADER
from fdd.core.model import Record
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument


def name_span(document: TorchDocument, index: int) -> Span | None:
    """The name of a record as the directory holds it, else as its local header does."""
    record = document.zip_record(index)
    if record.entry is not None:
        return Span(record.entry.span.offset + CENTRAL_HEADER.size, len(record.entry.name))
    if record.local is not None:
        return Span(record.local.span.offset + LOCAL_HEADER.size, len(record.local.name))
    return None


def directory_span(document: TorchDocument) -> Span | None:
    """The central directory: where a missing record should be listed."""
    return document.zip.directory.span if document.zip is not None and document.zip.directory is not None else None


def small_record(document: TorchDocument, local: str) -> tuple[Record, bytes] | None:
    """A small record and its contents; None where it is absent or cannot be read."""
    index, text = document.find(local), document.texts.get(local)
    return (document.records[index], text) if index is not None and text is not None else None


def full_name(document: TorchDocument, local: str) -> str:
    """The whole name of a record that should be there."""
    return f"{document.root}/{local}" if document.root else local
