# SPDX-License-Identifier: Apache-2.0
"""Opens a file by the first installed format that knows it."""

from __future__ import annotations

from fdd.core.model import Document, Identification
from fdd.formats import one_by_one
from fdd.formats.plugin import Format
from fdd.formats.probe import Probe


def open_by_kind(probe: Probe) -> tuple[Identification, Format | None, Document]:
    """The format is None for foreign files: they are identified and no more. Raises SourceError where reading fails."""
    for fmt in one_by_one():
        identification = fmt.identify(probe)
        if identification is not None:
            return identification, fmt, fmt.open(probe, identification)
    from fdd.formats.neighbours import open_neighbour

    document = open_neighbour(probe)
    return document.identification, None, document
